//! Why an exchange brought no result, in the engine's own words, before it becomes an error of the layer above.

use super::envelope::{self, Incoming, Outcome, RpcError};
use crate::error::{CallError, CloseReason, Closed};
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
                } if status == 401 || (status == 403 && !challenges.is_empty()) => {
                    CallError::Unauthorized { status, challenges }
                }
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
                TransportError::StreamEnded => CallError::StreamEnded,
                TransportError::TooLarge { limit } => CallError::TooLarge { limit },
                TransportError::BadMedia {
                    status,
                    content_type,
                    body,
                } => CallError::Protocol(format!(
                    "HTTP status {status} with {} instead of an answer: {body}",
                    content_type.as_deref().unwrap_or("no content type")
                )),
                TransportError::Protocol(text) => CallError::Protocol(text),
                TransportError::Overloaded => CallError::Overloaded,
                TransportError::Closed => {
                    CallError::Closed(Closed::new(CloseReason::Failed, "the connection is closed"))
                }
            },
        }
    }
}
