//! Servers that the host implements in its own process: their messages go over the host's own connection.
//!
//! Every start is a connection with a number of its own, so that what is said late, after a stop, reaches nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use mcp::{Line, Mailbox, Relay, Target};
use protocol::{
    EntryTransport, Error, ErrorKind, McpHostMessage, McpHostSend, Notification, Raw, ServerEntry, ServerName,
};

use crate::core::Core;

/// The connections that are open at this moment.
#[derive(Default)]
pub(crate) struct HostLines {
    count: AtomicU64,
    open: Mutex<HashMap<u64, (ServerName, Mailbox)>>,
}

impl HostLines {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, (ServerName, Mailbox)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what a server of the host says. An error: there is nobody to pass it to.
    pub fn take(&self, said: &McpHostMessage) -> Result<(), Error> {
        let mailbox = self.mailbox(&said.server, said.connection)?;
        match &said.message {
            Some(message) => mailbox.message(message.get()),
            None => {
                self.open().remove(&said.connection);
                mailbox.ended("the host ended the server");
            }
        }
        Ok(())
    }

    /// The same of a message that was too large to be read.
    pub fn take_oversize(&self, connection: u64, head: &[u8], tail: &[u8]) {
        let mailbox = self.open().get(&connection).map(|(_, mailbox)| mailbox.clone());
        if let Some(mailbox) = mailbox {
            mailbox.oversize(head, tail);
        }
    }

    fn mailbox(&self, server: &str, connection: u64) -> Result<Mailbox, Error> {
        if let Some((name, mailbox)) = self.open().get(&connection)
            && **name == *server
        {
            return Ok(mailbox.clone());
        }
        // The host may have said it before it read that the connection was over.
        let is_late = (1..=self.count.load(Ordering::Relaxed)).contains(&connection);
        let (kind, state) = if is_late {
            (ErrorKind::CallCancelled, "is over")
        } else {
            (ErrorKind::TargetMismatch, "was never opened")
        };
        let message = format!("connection {connection} of the host's server `{server}` {state}");
        Err(Error::new(kind, message).server(server))
    }
}

/// Whether the host itself is the server of this entry.
pub(crate) fn is_in_host(entry: &ServerEntry) -> bool {
    entry.transport == Some(EntryTransport::Host)
}

/// The way to a server that the host implements; `None` for any other.
pub(super) fn target(core: &Arc<Core>, name: &ServerName, entry: &ServerEntry) -> Option<Target> {
    is_in_host(entry).then(|| {
        Target::Relay(Arc::new(HostServer {
            core: Arc::downgrade(core),
            name: name.clone(),
        }))
    })
}

struct HostServer {
    core: Weak<Core>,
    name: ServerName,
}

impl Relay for HostServer {
    fn open(&self, mailbox: Mailbox) -> Box<dyn Line> {
        let mut connection = 0;
        if let Some(core) = self.core.upgrade() {
            let lines = &core.host_lines;
            connection = lines.count.fetch_add(1, Ordering::Relaxed) + 1;
            lines.open().insert(connection, (self.name.clone(), mailbox));
        }
        Box::new(HostLine {
            core: Weak::clone(&self.core),
            name: self.name.clone(),
            connection,
        })
    }
}

struct HostLine {
    core: Weak<Core>,
    name: ServerName,
    connection: u64,
}

impl HostLine {
    fn notification(&self, message: Option<Raw>) -> Notification {
        Notification::HostSend(McpHostSend {
            server: self.name.clone(),
            connection: self.connection,
            message,
        })
    }
}

impl Line for HostLine {
    fn send(&self, message: Bytes) -> bool {
        let Some(core) = self.core.upgrade() else {
            return false;
        };
        // The engine writes JSON in UTF-8 only.
        let message = String::from_utf8(Vec::from(message))
            .ok()
            .and_then(Raw::from_text);
        message.is_some_and(|message| core.sink.deliver(self.notification(Some(message))))
    }

    fn close(&self) {
        let Some(core) = self.core.upgrade() else {
            return;
        };
        // Whom the host ended itself it need not be told of.
        if core.host_lines.open().remove(&self.connection).is_some() {
            core.sink.notify(self.notification(None));
        }
    }
}
