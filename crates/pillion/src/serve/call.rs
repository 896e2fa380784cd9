//! One request on its way through the registry: what came, on which terms, and the slot for its answer.
//!
//! The answer is written as the frame that goes out. jsonrpsee's own response would copy a big result twice and read
//! it once more.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use manager::RequestContext;
use protocol::{Error, ErrorKind, MethodSpec};
use serde::Serialize;

use super::check;
use super::envelope::Id;
use super::frame::Frame;
use super::limits;

#[derive(Debug)]
pub struct Call {
    id: Id,
    pub context: RequestContext,
    body: Mutex<Option<Body>>,
    slot: Mutex<Option<Result<Frame, Error>>>,
}

/// The message, of which only the parameters are still of interest.
#[derive(Debug)]
struct Body {
    message: Vec<u8>,
    params: Option<Range<usize>>,
}

impl Call {
    /// `params` is where they stand in `message`.
    pub fn new(id: Id, context: RequestContext, message: Vec<u8>, params: Option<Range<usize>>) -> Call {
        let body = Mutex::new(Some(Body { message, params }));
        Call {
            id,
            context,
            body,
            slot: Mutex::default(),
        }
    }

    /// The parameters, once; the message is given back, so that a request that waits holds what it needs only.
    pub async fn params<M: MethodSpec>(&self) -> Result<M::Params, Error> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
        let body = body.ok_or_else(|| Error::new(ErrorKind::Internal, "the parameters were already read"))?;
        if body.message.len() <= limits::CHECK_INLINE_BYTES {
            return body.read::<M>();
        }
        let read = tokio::task::spawn_blocking(move || body.read::<M>()).await;
        read.unwrap_or_else(|fault| Err(Error::new(ErrorKind::Internal, fault.to_string())))
    }

    pub fn answer<T: Serialize>(&self, outcome: Result<T, Error>) {
        let outcome = outcome.map(|result| Frame::result(&self.id, &result));
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    /// The frame that answers the request, whatever happened to it.
    pub fn into_frame(self: std::sync::Arc<Self>, cancelled_by_host: bool) -> Frame {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let error = match slot {
            Some(Ok(frame)) => return frame,
            Some(Err(error)) => error,
            None => Error::new(ErrorKind::Internal, "the request failed inside Pillion")
                .hint("report it, with what Pillion wrote to stderr"),
        };
        // A client that did not ask for it drops a -32800, and its caller waits for ever.
        if error.kind == ErrorKind::Cancelled && !cancelled_by_host {
            let ended = Error::new(ErrorKind::CallCancelled, "the connection ended").by("shutdown");
            return Frame::error(Some(&self.id), &ended);
        }
        Frame::error(Some(&self.id), &error)
    }
}

impl Body {
    fn read<M: MethodSpec>(self) -> Result<M::Params, Error> {
        let text = match self.params {
            None => None,
            // The message was read as UTF-8, and the range is that of a value in it.
            Some(range) => self
                .message
                .get(range)
                .and_then(|params| std::str::from_utf8(params).ok()),
        };
        check::params::<M>(text)
    }
}
