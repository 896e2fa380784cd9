//! The requests in flight: which ids are taken, who is to be cancelled, and how much memory their bodies hold.
//!
//! A request is admitted on arrival and leaves when its answer is queued; in between there is one [`Ticket`], and
//! dropping it is leaving. So an id is answered once, and a second request with it is refused until then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{Error, ErrorKind};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::envelope::Id;
use super::limits;

#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Box<str>, Open>,
    body_bytes: usize,
}

#[derive(Debug)]
struct Open {
    cancel: CancellationToken,
    /// The host sent `$/cancelRequest`. Only then may the answer be -32800: Neovim drops one it did not ask for.
    asked: bool,
}

/// One request in flight.
#[derive(Debug)]
pub struct Ticket {
    requests: Requests,
    key: Box<str>,
    body_bytes: usize,
    pub cancel: CancellationToken,
}

impl Requests {
    pub fn admit(&self, id: &Id, body_bytes: usize) -> Result<Ticket, Error> {
        let mut table = self.table();
        let key: Box<str> = id.key().into();
        if table.open.contains_key(&key) {
            let message = format!("the id {} is in use by a request in flight", id.text());
            return Err(Error::new(ErrorKind::InvalidRequest, message)
                .hint("give each request an id of its own, or wait for the answer"));
        }
        if table.open.len() >= limits::REQUESTS {
            return Err(overloaded("too many requests are in flight", limits::REQUESTS));
        }
        // A body bigger than the budget (`maxMessageBytes` may allow it) goes alone.
        if table.body_bytes > 0 && table.body_bytes + body_bytes > limits::BODIES_BYTES {
            return Err(overloaded(
                "the requests in flight hold too much memory",
                limits::BODIES_BYTES,
            ));
        }
        table.body_bytes += body_bytes;
        let cancel = CancellationToken::new();
        table.open.insert(
            key.clone(),
            Open {
                cancel: cancel.clone(),
                asked: false,
            },
        );
        drop(table);
        Ok(Ticket {
            requests: self.clone(),
            key,
            body_bytes,
            cancel,
        })
    }

    /// The host gave up on a request. Unknown ids are those just answered.
    pub fn cancel(&self, id: &Id) {
        let cancel = self.table().open.get_mut(&*id.key()).map(|open| {
            open.asked = true;
            open.cancel.clone()
        });
        // Outside the lock: it may wake a task that looks at the table.
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// The connection ended.
    pub fn cancel_all(&self) {
        let tokens: Vec<_> = self
            .table()
            .open
            .values()
            .map(|open| open.cancel.clone())
            .collect();
        tokens.iter().for_each(CancellationToken::cancel);
    }

    /// Waits until every answer is queued.
    pub async fn emptied(&self) {
        loop {
            let emptied = self.0.emptied.notified();
            if self.table().open.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds the lock.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Whether the host asked for this request to be cancelled.
    pub fn cancelled_by_host(&self) -> bool {
        self.requests
            .table()
            .open
            .get(&self.key)
            .is_some_and(|open| open.asked)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut table = self.requests.table();
        table.open.remove(&self.key);
        table.body_bytes -= self.body_bytes;
        if table.open.is_empty() {
            // After a burst.
            table.open.shrink_to(64);
            drop(table);
            self.requests.0.emptied.notify_waiters();
        }
    }
}

fn overloaded(message: &str, limit: usize) -> Error {
    Error::new(ErrorKind::Overloaded, message)
        .hint("send it again later")
        .retry_after_ms(limits::RETRY_AFTER.as_millis() as u64)
        .limit(limit as u64)
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{Message, read};
    use super::*;

    fn id(text: &str) -> Id {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#);
        match read(body.as_bytes()) {
            Ok(Message::Request { id, .. }) => id,
            other => panic!("{other:?}"),
        }
    }

    fn kind(outcome: Result<Ticket, Error>) -> Option<ErrorKind> {
        outcome.err().map(|error| error.kind)
    }

    #[test]
    fn an_id_is_free_again_after_its_answer() {
        let requests = Requests::default();
        let ticket = requests.admit(&id("1"), 0).unwrap();
        assert_eq!(kind(requests.admit(&id("1"), 0)), Some(ErrorKind::InvalidRequest));
        assert_eq!(kind(requests.admit(&id("\"1\""), 0)), None);
        drop(ticket);
        assert_eq!(kind(requests.admit(&id("1"), 0)), None);
    }

    #[test]
    fn only_the_host_cancels_by_name() {
        let requests = Requests::default();
        let first = requests.admit(&id(r#""a\u0062""#), 0).unwrap();
        let second = requests.admit(&id("2"), 0).unwrap();
        requests.cancel(&id("\"ab\""));
        requests.cancel(&id("3"));
        assert!(first.cancel.is_cancelled() && first.cancelled_by_host());
        requests.cancel_all();
        assert!(second.cancel.is_cancelled() && !second.cancelled_by_host());
    }

    #[test]
    fn bodies_and_requests_are_bounded() {
        let requests = Requests::default();
        let big = requests.admit(&id("0"), 4 * limits::BODIES_BYTES).unwrap();
        assert_eq!(kind(requests.admit(&id("1"), 1)), Some(ErrorKind::Overloaded));
        drop(big);
        let tickets: Vec<_> = (0..limits::REQUESTS)
            .map(|n| requests.admit(&id(&n.to_string()), 10).unwrap())
            .collect();
        let error = requests.admit(&id("\"x\""), 1).unwrap_err();
        assert_eq!(
            (error.kind, error.data.retry_after_ms),
            (ErrorKind::Overloaded, Some(500))
        );
        drop(tickets);
        assert_eq!(kind(requests.admit(&id("1"), limits::BODIES_BYTES)), None);
    }
}
