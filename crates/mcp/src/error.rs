//! How connecting and calling can fail, and how a connection ends.

use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;

/// Why a request got no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The server's own error.
    #[error("{message}")]
    Rpc {
        code: i64,
        message: String,
        data: Option<Box<RawValue>>,
    },
    #[error("no answer within {} s", after.as_secs_f32())]
    TimedOut { after: Duration },
    #[error("cancelled")]
    Cancelled,
    #[error("the message is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the connection is closed: {0}")]
    Closed(Closed),
    #[error("HTTP status {status}")]
    Http { status: u16, body: String },
    #[error("HTTP status {status}: authorization is needed")]
    Unauthorized { status: u16, challenges: Vec<String> },
    /// The request was not sent, since it could not be authorized.
    #[error("{0}")]
    Authorization(String),
    /// The request did not reach the server.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(String),
    /// The outcome of the request is unknown.
    #[error("the stream ended before the answer")]
    StreamEnded,
    #[error("too many requests are waiting for this server")]
    Overloaded,
    /// The host answered a question of the server with an error, which this era has no way to tell the server.
    #[error("{message}")]
    Refused { code: i64, message: String },
}

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{message}")]
    Spawn { failure: SpawnFailure, message: String },
    /// The process ended before the handshake was done.
    #[error("the server ended during its start: {closed}")]
    Exited {
        closed: Closed,
        /// The first line on stdout that was not JSON-RPC, often the reason.
        first_noise: Option<String>,
    },
    #[error("no answer to `{phase}` within {} s", after.as_secs_f32())]
    TimedOut {
        phase: &'static str,
        after: Duration,
        stderr_tail: String,
        first_noise: Option<String>,
    },
    #[error("HTTP status {status}: authorization is needed")]
    Unauthorized { status: u16, challenges: Vec<String> },
    /// Nothing was sent, since it could not be authorized.
    #[error("{0}")]
    Authorization(String),
    #[error("HTTP status {status}")]
    Http {
        status: u16,
        body: String,
        /// What the fallback met.
        also: Option<String>,
    },
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("no common protocol version: the server speaks {}, we speak {}", theirs.join(", "), ours.join(", "))]
    UnsupportedVersion { theirs: Vec<String>, ours: Vec<String> },
    /// The server refused the handshake with an error of its own.
    #[error("{message}")]
    Rpc {
        code: i64,
        message: String,
        data: Option<Box<RawValue>>,
    },
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(String),
    /// The target of a redirect that is not followed, without its query.
    #[error("the server redirects to {0}")]
    Redirect(String),
    #[error("the message is larger than {limit} bytes")]
    TooLarge { limit: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnFailure {
    NotFound,
    Permission,
    /// The working directory is missing or not a directory.
    Cwd,
    Other,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub reason: CloseReason,
    pub exit_code: Option<i32>,
    /// Such as `SIGKILL`.
    pub signal: Option<String>,
    pub stderr_tail: String,
    /// One line for people.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// We closed it.
    Ordered,
    ServerExited,
    /// The carrier ended although nobody ordered it.
    StreamEnded,
    Failed,
}

impl Closed {
    /// An end without a process.
    pub fn new(reason: CloseReason, message: impl Into<String>) -> Closed {
        Closed {
            reason,
            exit_code: None,
            signal: None,
            stderr_tail: String::new(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
