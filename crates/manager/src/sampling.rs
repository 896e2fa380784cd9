//! Requests of servers to the host's model (`sampling/createMessage`), forwarded to a host that declared it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp::InputReply;
use protocol::{Error, ErrorKind, McpSampleAnswer, QuestionId};
use tokio::sync::oneshot;

use crate::limits;

/// The code that the specification's example gives a refused sampling request.
const REFUSED: i64 = -1;

/// Requests that wait for the host's model.
#[derive(Default)]
pub(crate) struct Samples {
    waiting: Mutex<HashMap<QuestionId, oneshot::Sender<InputReply>>>,
}

impl Samples {
    fn waiting(&self) -> MutexGuard<'_, HashMap<QuestionId, oneshot::Sender<InputReply>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the host's answer, after `send` told it.
    pub async fn ask(&self, id: QuestionId, send: impl FnOnce()) -> InputReply {
        let (reply, answer) = oneshot::channel();
        self.waiting().insert(id.clone(), reply);
        let forget = Forget { samples: self, id };
        send();
        let answer = tokio::time::timeout(limits::SAMPLE_WAIT, answer).await;
        drop(forget);
        match answer {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => refused("the host ended"),
            Err(_) => refused("the host did not answer in time"),
        }
    }

    /// `mcp.sample.answer`.
    pub fn answer(&self, answer: McpSampleAnswer) -> Result<(), Error> {
        let reply = match (answer.result, answer.refused) {
            (Some(result), None) => InputReply::Result(result.0),
            (None, Some(refusal)) => refused(&refusal.message),
            _ => {
                return Err(
                    Error::new(ErrorKind::InvalidParams, "give either `result` or `refused`")
                        .path("/result")
                        .expected("exactly one of `result` and `refused`"),
                );
            }
        };
        let Some(waiting) = self.waiting().remove(&answer.sample) else {
            return Err(Error::new(ErrorKind::QuestionClosed, "this request is not open").reason("unknown"));
        };
        // The call may have ended meanwhile; then nobody needs the answer.
        let _ = waiting.send(reply);
        Ok(())
    }
}

pub(crate) fn refused(message: &str) -> InputReply {
    InputReply::Error {
        code: REFUSED,
        message: message.to_owned(),
    }
}

struct Forget<'a> {
    samples: &'a Samples,
    id: QuestionId,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.samples.waiting().remove(&self.id);
    }
}
