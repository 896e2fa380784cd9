//! The carrier to a server that lives in the process of whoever uses this crate: messages are handed over as they are.
//!
//! Nothing is read or written here, so there is nothing to frame, no process to end, and nothing to wait for.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Inbox, Link, OutKind, Outgoing, TransportError};
use crate::error::{CloseReason, Closed};

/// Opens lines to one server.
pub trait Relay: Send + Sync + 'static {
    /// A connection begins; what the server says goes into `mailbox`.
    fn open(&self, mailbox: Mailbox) -> Box<dyn Line>;
}

/// The way to the server, for one connection.
pub trait Line: Send + Sync + 'static {
    /// Hands one JSON-RPC message over, in call order, and returns at once. `false`: there is no room for it.
    fn send(&self, message: Bytes) -> bool;
    /// The connection is over. Called once.
    fn close(&self);
}

/// Takes what the server says. A connection nobody holds any more takes nothing.
#[derive(Clone)]
pub struct Mailbox(Weak<dyn Inbox>);

impl Mailbox {
    /// One JSON-RPC message. Whoever waits for it is served before this returns.
    pub fn message(&self, text: &str) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.message(text.as_bytes(), None);
        }
    }

    /// A message that was too large to take: its first and last bytes, in which the request that it answers is looked for.
    pub fn oversize(&self, head: &[u8], tail: &[u8]) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.oversize(head, Some(tail));
        }
    }

    /// The server has ended.
    pub fn ended(&self, why: &str) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.closed(Closed::new(CloseReason::ServerExited, why));
        }
    }
}

pub(crate) struct RelayLink {
    /// `None` once it is closed.
    line: Mutex<Option<Box<dyn Line>>>,
    inbox: Weak<dyn Inbox>,
}

impl RelayLink {
    pub(crate) fn open(relay: &dyn Relay, inbox: Weak<dyn Inbox>) -> Arc<RelayLink> {
        Arc::new(RelayLink {
            line: Mutex::new(Some(relay.open(Mailbox(inbox.clone())))),
            inbox,
        })
    }

    fn hand_over(&self, message: Bytes) -> Result<(), TransportError> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        match &*line {
            None => Err(TransportError::Closed),
            Some(line) if line.send(message) => Ok(()),
            Some(_) => Err(TransportError::Overloaded),
        }
    }

    fn end(&self) {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(line) = line {
            line.close();
        }
    }
}

impl Link for RelayLink {
    fn send(&self, out: Outgoing) {
        let Err(error) = self.hand_over(out.text) else {
            return;
        };
        let Some(inbox) = self.inbox.upgrade() else {
            return;
        };
        match out.kind {
            OutKind::Request(id) => inbox.failed(id, error),
            OutKind::Notification | OutKind::Response => {
                inbox.note("there was no room for a message to the server, it was dropped".into());
            }
        }
    }

    fn deliver(&self, out: Outgoing) -> BoxFuture<'static, Result<(), TransportError>> {
        std::future::ready(self.hand_over(out.text)).boxed()
    }

    fn cancel(&self, _id: u64) {}

    fn negotiated(&self, _protocol_version: &str) {}

    fn listen(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.end();
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.closed(Closed::new(CloseReason::Ordered, "the connection was closed"));
        }
        std::future::ready(()).boxed()
    }
}

impl Drop for RelayLink {
    fn drop(&mut self) {
        self.end();
    }
}
