//! JSON-RPC of peers, the same by POST and by WebSocket: read as a host's messages are, answered in the same words.

use std::sync::Arc;

use jsonrpsee::Methods;
use protocol::{Error, ErrorKind, Method, Tier};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::serve::envelope::{self, Id, Message};
use crate::serve::{limits, registry};

/// What comes of one message.
pub struct Answer {
    pub text: String,
    /// What a subscription brings, as whole messages, and its place among those of the connection.
    pub news: Option<(mpsc::Receiver<Box<RawValue>>, OwnedSemaphorePermit)>,
}

/// Whether the carrier stays open, so that news can follow.
#[derive(Clone, Copy, Debug)]
pub enum Carrier<'a> {
    Post,
    /// With the places for subscriptions that are left.
    WebSocket(&'a Arc<Semaphore>),
}

/// Carries one message out. A notification has no answer, and neither has a response.
pub async fn answer(methods: &Methods, tier: Tier, body: &[u8], carrier: Carrier<'_>) -> Option<Answer> {
    let (id, method, params) = match envelope::read(body) {
        Ok(Message::Request { id, method, params }) => (id, method, params),
        Ok(Message::Notification { .. } | Message::Response { .. }) => return None,
        Err(refused) => return Some(Answer::error(refused.id.as_ref(), refused.error)),
    };
    let place = match place(&method, carrier) {
        Ok(place) => place,
        Err(error) => return Some(Answer::error(Some(&id), error)),
    };
    // The id goes its own way: jsonrpsee's type does not hold every one that JSON-RPC allows.
    let params = params.map_or("{}", RawValue::get);
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":{},"params":{params}}}"#,
        json!(method)
    );
    let mut methods = methods.clone();
    methods.extensions_mut().insert(tier);
    Some(
        match methods.raw_json_request(&request, limits::PEER_MESSAGES).await {
            Ok((response, news)) => Answer {
                news: place.map(|place| (news, place)),
                ..Answer::relayed(&id, response.get())
            },
            Err(fault) => {
                let error = Error::new(ErrorKind::InvalidRequest, format!("no JSON-RPC request: {fault}"));
                Answer::error(Some(&id), error)
            }
        },
    )
}

/// What is said of a message that is larger than a peer's may be.
pub fn too_large(limit: usize) -> Error {
    Error::new(ErrorKind::TooLarge, "the message is too large").limit(limit as u64)
}

impl Answer {
    pub fn error(id: Option<&Id>, error: Error) -> Answer {
        let id = id.map_or("null", Id::text);
        let error = json!(registry::object(error));
        Answer {
            text: format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
            news: None,
        }
    }

    /// jsonrpsee's response, with the id as it came.
    fn relayed(id: &Id, response: &str) -> Answer {
        #[derive(Deserialize)]
        struct Response<'r> {
            #[serde(borrow)]
            result: Option<&'r RawValue>,
            #[serde(borrow)]
            error: Option<&'r RawValue>,
        }
        let (name, outcome) = match serde_json::from_str::<Response<'_>>(response) {
            Ok(Response {
                error: Some(error), ..
            }) => ("error", error.get()),
            Ok(Response { result, .. }) => ("result", result.map_or("null", RawValue::get)),
            Err(fault) => {
                let error = Error::new(ErrorKind::Internal, format!("the answer does not read: {fault}"));
                return Answer::error(Some(id), error);
            }
        };
        Answer {
            text: format!(r#"{{"jsonrpc":"2.0","id":{},"{name}":{outcome}}}"#, id.text()),
            news: None,
        }
    }
}

/// The place that a subscription takes; an error for a method that peers do not have on this carrier.
fn place(method: &str, carrier: Carrier<'_>) -> Result<Option<OwnedSemaphorePermit>, Error> {
    let is_unsubscribing = method == registry::UNSUBSCRIBE;
    if method == registry::SUBSCRIBE || is_unsubscribing {
        return match carrier {
            Carrier::Post => Err(Error::new(
                ErrorKind::InvalidCommand,
                "news needs a connection that stays open",
            )
            .hint("subscribe over a WebSocket")),
            Carrier::WebSocket(_) if is_unsubscribing => Ok(None),
            Carrier::WebSocket(places) => Arc::clone(places).try_acquire_owned().map(Some).map_err(|_| {
                Error::new(ErrorKind::Overloaded, "too many subscriptions on one connection")
                    .limit(limits::PEER_SUBSCRIPTIONS as u64)
                    .hint("end one with `mcp.unsubscribe`")
            }),
        };
    }
    match Method::from_name(method) {
        Some(method) if method.available() => Ok(None),
        Some(method) => Err(registry::absent(method)),
        None => Err(Error::new(
            ErrorKind::MethodNotFound,
            format!("there is no method `{method}`"),
        )
        .hint("docs/protocol.md lists all")),
    }
}
