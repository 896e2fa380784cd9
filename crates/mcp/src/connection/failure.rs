//! Why an exchange brought no result, in the engine's own words, before it becomes an error of the layer above.

use super::core::Core;
use super::envelope::{self, Incoming, Outcome, RpcError};
use crate::error::{CallError, CloseReason, Closed, ConnectError};
use crate::transport::TransportError;

#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Rpc {
        error: RpcError,
        /// Of the HTTP response that carried it, where it was no success.
        status: Option<u16>,
    },
    Transport(TransportError),
    Closed(Closed),
}

impl Failure {
    /// An HTTP status with a JSON-RPC error in its body is that error, except where the status says more: for authorization, and for
    /// faults of the server or of what stands in front of it.
    pub(crate) fn from_transport(error: TransportError) -> Failure {
        if let TransportError::Status { status, body, .. } = &error
            && !matches!(status, 401 | 403 | 500..)
            && let Some(rpc) = error_in(body)
        {
            return Failure::Rpc {
                error: rpc,
                status: Some(*status),
            };
        }
        Failure::Transport(error)
    }

    /// Why there is no connection, over this carrier.
    pub(crate) fn into_connect_error(self, core: &Core) -> ConnectError {
        match self {
            Failure::Rpc {
                error: RpcError { code, message, data },
                ..
            } => ConnectError::Rpc { code, message, data },
            Failure::Closed(_) | Failure::Transport(TransportError::Closed) => core.exited(),
            Failure::Transport(error) => match error {
                TransportError::Status {
                    status, challenges, ..
                } if is_unauthorized(status, &challenges) => {
                    ConnectError::Unauthorized { status, challenges }
                }
                TransportError::Status { status, body, .. } => ConnectError::Http {
                    status,
                    body,
                    also: None,
                },
                TransportError::BadMedia {
                    status,
                    content_type,
                    body,
                } => ConnectError::Protocol(no_answer(status, content_type.as_deref(), &body)),
                TransportError::Redirect(to) => ConnectError::Redirect(to),
                TransportError::Authorization(why) => ConnectError::Authorization(why),
                TransportError::Connect(why) => ConnectError::Unreachable(why),
                TransportError::TooLarge { limit } => ConnectError::TooLarge { limit },
                other => ConnectError::Protocol(other.to_string()),
            },
        }
    }

    pub(crate) fn code(&self) -> Option<i64> {
        match self {
            Failure::Rpc { error, .. } => Some(error.code),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Failure::Rpc { status, .. } => *status,
            Failure::Transport(TransportError::Status { status, .. }) => Some(*status),
            _ => None,
        }
    }

    /// What the server wrote about it.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Failure::Rpc { error, .. } => Some(&error.message),
            Failure::Transport(TransportError::Status { body, .. }) => Some(body),
            _ => None,
        }
    }
}

fn error_in(body: &str) -> Option<RpcError> {
    let mut found = None;
    envelope::parse(body.as_bytes(), |message| {
        if let Incoming::Response {
            outcome: Outcome::Error(error),
            ..
        } = message
        {
            found.get_or_insert(error);
        }
    })
    .ok()?;
    found
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> CallError {
        match failure {
            Failure::Rpc {
                error: RpcError { code, message, data },
                ..
            } => CallError::Rpc { code, message, data },
            Failure::Closed(closed) => CallError::Closed(closed),
            Failure::Transport(error) => match error {
                TransportError::Status {
                    status, challenges, ..
                } if is_unauthorized(status, &challenges) => CallError::Unauthorized { status, challenges },
                TransportError::Status { status, body, .. } => CallError::Http { status, body },
                TransportError::SessionGone => CallError::Http {
                    status: 404,
                    body: "the server has ended the session".into(),
                },
                TransportError::Redirect(_) | TransportError::Connect(_) => {
                    CallError::Unreachable(match error {
                        TransportError::Connect(text) => text,
                        other => other.to_string(),
                    })
                }
                TransportError::Authorization(why) => CallError::Authorization(why),
                TransportError::StreamEnded => CallError::StreamEnded,
                TransportError::TooLarge { limit } => CallError::TooLarge { limit },
                TransportError::BadMedia {
                    status,
                    content_type,
                    body,
                } => CallError::Protocol(no_answer(status, content_type.as_deref(), &body)),
                TransportError::Protocol(text) => CallError::Protocol(text),
                TransportError::Overloaded => CallError::Overloaded,
                TransportError::Closed => {
                    CallError::Closed(Closed::new(CloseReason::Failed, "the connection is closed"))
                }
            },
        }
    }
}

/// A 403 without a challenge is a refusal that no login mends.
fn is_unauthorized(status: u16, challenges: &[String]) -> bool {
    status == 401 || (status == 403 && !challenges.is_empty())
}

fn no_answer(status: u16, content_type: Option<&str>, body: &str) -> String {
    format!(
        "HTTP status {status} with {} instead of an answer: {body}",
        content_type.unwrap_or("no content type")
    )
}
