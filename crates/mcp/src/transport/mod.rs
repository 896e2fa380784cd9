//! What the engine and the carriers of its messages have to say to each other.
//!
//! A [`Link`] carries whole JSON-RPC messages and knows nothing of their meaning; whatever arrives goes straight into the
//! engine's [`Inbox`], called by the task that read it.

use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::error::Closed;
use crate::target::Era;

pub(crate) mod event_stream;
pub(crate) mod http;
pub mod relay;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod sse;
pub(crate) mod stdio;

mod child;
mod line;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod program;
pub(crate) mod stderr;

/// Takes what a link received. Links hold it weakly: a connection nobody holds any more ends.
pub(crate) trait Inbox: Send + Sync {
    /// One JSON-RPC message, or a batch of them. `origin`: our request on whose response stream it came (HTTP only).
    fn message(&self, text: &[u8], origin: Option<u64>);
    /// The same for a big text whose buffer the link can give away.
    fn big_message(&self, text: Vec<u8>, origin: Option<u64>) {
        self.message(&text, origin);
    }
    /// Whether this request still has no answer: a link resumes or reports a lost response stream only then.
    fn waits_for(&self, id: u64) -> bool;
    /// This request will get no answer. Harmless for a request that has one already.
    fn failed(&self, id: u64, error: TransportError);
    /// The clock of this request's call stands still while the guard lives: a person is waited for.
    fn hold(&self, _id: u64) -> Box<dyn Send + Sync> {
        Box::new(())
    }
    /// A message too large to keep on a carrier that all requests share: its first bytes, and its last ones once they are known. The engine looks in them for
    /// the id of the request to fail, and says whether it found one.
    fn oversize(&self, head: &[u8], tail: Option<&[u8]>) -> bool;
    /// A line that will not end: whoever waits on this carrier waits in vain (stdio).
    fn stuck(&self);
    /// Something between the messages that is none.
    fn noise(&self, text: &str);
    /// One line of a child's stderr, control characters made harmless.
    fn stderr(&self, line: String);
    /// A remark for people who look for a fault.
    fn note(&self, text: String);
    /// The carrier is gone: every waiter fails. Called once; the engine adds what the child said last.
    fn closed(&self, closed: Closed);
}

/// One message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub kind: OutKind,
    /// The whole JSON message, without a line end.
    pub text: Bytes,
    /// HTTP headers of this message beyond those every message has: `MCP-Protocol-Version` and `Mcp-*` of the modern era.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// An `initialize`: it is sent without session id and version header, and its response brings the new session.
    pub opens_session: bool,
    /// Modern responses have no session and are never resumed.
    pub era: Era,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutKind {
    Request(u64),
    Notification,
    Response,
}

/// Carries messages to one server.
pub(crate) trait Link: Send + Sync {
    /// Enqueues in call order and returns at once. What becomes of a request is told through the inbox; a notification or
    /// response that cannot be delivered is worth a note.
    fn send(&self, out: Outgoing);
    /// As `send`, but waits until the message is delivered (HTTP: the status arrived).
    fn deliver(&self, out: Outgoing) -> BoxFuture<'static, Result<(), TransportError>>;
    /// The request has been given up. HTTP: drops its response stream. stdio: nothing.
    fn cancel(&self, id: u64);
    /// The version a legacy handshake settled on: from the next message on, `notifications/initialized`, HTTP names it in
    /// a header where that version wants it.
    fn negotiated(&self, protocol_version: &str);
    /// Opens the standalone stream of a legacy session (streamable HTTP; nothing elsewhere), after `notifications/initialized`
    /// was delivered. Returns when the head of that stream arrived, or after one second. Called again after a new handshake.
    fn listen(&self) -> BoxFuture<'static, ()>;
    /// Ends the carrier and returns when nothing of it is left. May be called again.
    fn close(&self) -> BoxFuture<'static, ()>;
    fn pid(&self) -> Option<u32> {
        None
    }
}

/// Bounds a link keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkLimits {
    pub max_message_bytes: usize,
    /// How long the child of a stdio link may take to end by itself, and again after SIGTERM.
    pub stop_grace: Duration,
}

/// Why a link could not bring an answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum TransportError {
    /// An HTTP status other than 2xx. The body (at most 64 KiB) may hold a JSON-RPC error: the engine looks.
    #[error("HTTP status {status}")]
    Status {
        status: u16,
        content_type: Option<String>,
        body: String,
        /// The values of `WWW-Authenticate`.
        challenges: Vec<String>,
    },
    /// 404 or 410 to a message that carried a session id, or a 400 that says that it does not know the session.
    #[error("the server has ended the session")]
    SessionGone,
    /// A redirect that is not followed: its target without query.
    #[error("the server redirects to {0}")]
    Redirect(String),
    /// The message could not be authorized.
    #[error("{0}")]
    Authorization(String),
    /// DNS, TCP, TLS.
    #[error("the server cannot be reached: {0}")]
    Connect(String),
    /// The response ended before the answer.
    #[error("the stream ended before the answer")]
    StreamEnded,
    #[error("the message is larger than {limit} bytes")]
    TooLarge { limit: usize },
    /// 2xx, but neither JSON nor an event stream, or nothing at all, or JSON without the answer.
    #[error("HTTP status {status} without an answer")]
    BadMedia {
        status: u16,
        content_type: Option<String>,
        body: String,
    },
    /// The server broke a rule of the transport itself.
    #[error("{0}")]
    Protocol(String),
    /// The peer does not take what is already queued for it.
    #[error("too many messages are waiting for this server")]
    Overloaded,
    #[error("the connection is closed")]
    Closed,
}
