//! The event streams of streamable HTTP: the one that answers a request, and the standalone one of a legacy session.
//!
//! Streams of the legacy era are resumed after the last event id they brought.

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Method, StatusCode};
use reqwest::Response;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::exchange::{self, LAST_EVENT_ID, Media};
use super::{Shared, lock, reader};
use crate::limits::{
    AFTER_ANSWER, RESUME_BACKOFF, RESUME_BACKOFF_MAX, RESUME_TRIES, RESUME_WAIT_MIN, STREAM_LASTED,
};
use crate::target::Era;
use crate::transport::TransportError;
use crate::transport::event_stream::{EventStream, Item, Kind};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Compressing proxies hold back the events of an endless stream.
const UNCOMPRESSED: HeaderValue = HeaderValue::from_static("identity");

/// The waits before a new connection: as long as the server asked for, else 1 s; when that does not help, half as much
/// again each time up to 30 s.
struct Backoff {
    tries: u32,
    own: Duration,
}

impl Backoff {
    fn new() -> Backoff {
        Backoff {
            tries: 0,
            own: RESUME_BACKOFF,
        }
    }

    /// The next wait, or `None` when it has been tried often enough.
    fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        self.tries += 1;
        if self.tries > RESUME_TRIES {
            return None;
        }
        let own = self.own;
        self.own = (own * 3 / 2).min(RESUME_BACKOFF_MAX);
        Some(match asked {
            Some(asked) if self.tries == 1 => asked.max(RESUME_WAIT_MIN),
            Some(asked) => asked.max(own),
            None => own,
        })
    }
}

impl Shared {
    /// Reads the stream that answers a request, through as many connections as it takes.
    pub(super) async fn read_answer(
        &self,
        id: u64,
        mut response: Response,
        era: Era,
    ) -> Result<(), TransportError> {
        let mut stream = EventStream::new(self.limit);
        let mut backoff = Backoff::new();
        loop {
            let progress = self.read_until_lost(id, &mut response, &mut stream).await?;
            let Some(inbox) = self.inbox.upgrade() else {
                return Ok(());
            };
            if !inbox.waits_for(id) {
                return Ok(());
            }
            drop(inbox);
            if era == Era::Modern || stream.last_id().is_none() {
                return Err(TransportError::StreamEnded);
            }
            // A server that names a wait wants to be polled.
            if progress || stream.retry().is_some() {
                backoff = Backoff::new();
            }
            response = self.resume(id, &mut stream, &mut backoff).await?;
        }
    }

    /// Reads one connection to its end. Says whether it brought anything.
    async fn read_until_lost(
        &self,
        id: u64,
        response: &mut Response,
        stream: &mut EventStream,
    ) -> Result<bool, TransportError> {
        let first_id = stream.last_id().map(str::to_owned);
        let mut progress = false;
        let mut deadline = None;
        loop {
            let next = reader::next(response, stream);
            let item = match deadline {
                None => next.await,
                Some(deadline) => tokio::time::timeout_at(deadline, next).await.unwrap_or(None),
            };
            match item {
                None => return Ok(progress || stream.last_id() != first_id.as_deref()),
                Some(Item::TooLarge { .. } | Item::Skipped { .. }) => {
                    return Err(TransportError::TooLarge { limit: self.limit });
                }
                Some(Item::Event {
                    kind: Kind::Message,
                    data,
                }) => {
                    progress = true;
                    let Some(inbox) = self.inbox.upgrade() else {
                        return Ok(progress);
                    };
                    reader::hand_over(&*inbox, data, Some(id));
                    if deadline.is_none() && !inbox.waits_for(id) {
                        deadline = Some(Instant::now() + AFTER_ANSWER);
                    }
                }
                Some(Item::Event { .. }) => {}
            }
        }
    }

    /// Takes up the stream of a request where it was lost. The request itself is never sent again: it may have been carried
    /// out, so every refusal means that its outcome is unknown.
    async fn resume(
        &self,
        id: u64,
        stream: &mut EventStream,
        backoff: &mut Backoff,
    ) -> Result<Response, TransportError> {
        loop {
            let Some(wait) = backoff.next(stream.retry()) else {
                return Err(TransportError::StreamEnded);
            };
            tokio::time::sleep(wait).await;
            if !self.inbox.upgrade().is_some_and(|inbox| inbox.waits_for(id)) {
                return Err(TransportError::StreamEnded);
            }
            match self.get(stream).await {
                Ok(response) if exchange::media(&response) == Media::EventStream => {
                    stream.restart();
                    return Ok(response);
                }
                Ok(response) => {
                    self.note(format!(
                        "a lost stream was resumed with HTTP status {}, but no event stream",
                        response.status().as_u16()
                    ));
                    return Err(TransportError::StreamEnded);
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    self.note(format!("a lost stream could not be resumed: {error}"));
                    return Err(TransportError::StreamEnded);
                }
            }
        }
    }

    /// Asks for a stream: a new one, or that after the last event.
    async fn get(&self, stream: &EventStream) -> Result<Response, TransportError> {
        let session = lock(&self.session).clone();
        let mut headers = session.headers(EVENTS);
        headers.insert(::http::header::ACCEPT_ENCODING, UNCOMPRESSED);
        if let Some(id) = stream
            .last_id()
            .and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok())
        {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self
            .endpoint
            .send(Method::GET, headers, None, &exchange::no_hold)
            .await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(exchange::refusal(response).await)
    }
}

/// Reads the standalone stream of a session as long as the server offers one. `ready` fires at its first head.
pub(super) async fn listen(shared: Arc<Shared>, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    let mut was_stream = false;
    let mut stream = EventStream::new(shared.limit);
    let mut backoff = Backoff::new();
    loop {
        match shared.get(&stream).await {
            Ok(mut response) if exchange::media(&response) == Media::EventStream => {
                if let Some(ready) = ready.take() {
                    // Who waited for it may have gone on.
                    let _ = ready.send(());
                }
                was_stream = true;
                let started = Instant::now();
                stream.restart();
                let progress = shared.read_standalone(&mut response, &mut stream).await;
                if progress || started.elapsed() >= STREAM_LASTED {
                    backoff = Backoff::new();
                }
            }
            Ok(response) => {
                let status = response.status();
                shared.note(format!(
                    "GET is answered with HTTP status {}, but no event stream",
                    status.as_u16()
                ));
                return;
            }
            Err(TransportError::Status { status, .. }) if status == StatusCode::METHOD_NOT_ALLOWED => return,
            Err(TransportError::Connect(_) | TransportError::StreamEnded) => {}
            Err(error) if was_stream && is_passing(&error) => {}
            Err(error) => {
                shared.note(format!("the standalone stream is not offered: {error}"));
                return;
            }
        }
        let asked = stream.retry();
        let wait = match (backoff.next(asked), asked) {
            (Some(wait), _) => wait,
            // A server that names a wait wants to be polled, but not in vain and often.
            (None, Some(asked)) => asked.max(RESUME_BACKOFF_MAX),
            (None, None) => {
                shared.note("the standalone stream was lost too often, it is not opened again".to_owned());
                return;
            }
        };
        tokio::time::sleep(wait).await;
    }
}

impl Shared {
    /// Says whether the connection brought a message.
    async fn read_standalone(&self, response: &mut Response, stream: &mut EventStream) -> bool {
        let mut progress = false;
        let mut found = false;
        while let Some(item) = reader::next(response, stream).await {
            let Some(inbox) = self.inbox.upgrade() else {
                return progress;
            };
            match item {
                Item::Event {
                    kind: Kind::Message,
                    data,
                } => {
                    progress = true;
                    reader::hand_over(&*inbox, data, None);
                }
                Item::Event { .. } => {}
                Item::TooLarge { head } => found = inbox.oversize(&head, None),
                Item::Skipped { .. } if found => {}
                Item::Skipped { head, tail } => {
                    inbox.oversize(&head, Some(&tail));
                }
            }
        }
        progress
    }
}

/// Whether a new try may go better.
fn is_passing(error: &TransportError) -> bool {
    match error {
        TransportError::Connect(_) | TransportError::StreamEnded => true,
        TransportError::Status { status, .. } => matches!(status, 502..=504),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_what_the_server_asked_for_and_end() {
        let rows: [(Option<u64>, [u64; 5]); 4] = [
            (None, [1000, 1500, 2250, 3375, 5062]),
            (Some(500), [500, 1500, 2250, 3375, 5062]),
            (Some(0), [100, 1500, 2250, 3375, 5062]),
            (Some(3000), [3000, 3000, 3000, 3375, 5062]),
        ];
        for (asked, expected) in rows {
            let mut backoff = Backoff::new();
            let asked = asked.map(Duration::from_millis);
            let waits: Vec<u128> = std::iter::from_fn(|| backoff.next(asked))
                .map(|wait| wait.as_millis())
                .take(9)
                .collect();
            assert_eq!(waits, expected.map(u128::from), "{asked:?}");
        }
    }
}
