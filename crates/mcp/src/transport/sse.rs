//! HTTP+SSE, the remote transport of 2024-11-05: one endless event stream down, POSTs up to an address that the stream
//! names first.
//!
//! Answers come on the stream, so a lost stream is a lost connection; nothing is resumed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use ::http::{HeaderMap, HeaderValue, Method};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::Response;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event_stream::{EventStream, Item, Kind};
use super::http::exchange::{self, Endpoint, Media};
use super::http::reader;
use super::{Inbox, Link, LinkLimits, OutKind, Outgoing, TransportError};
use crate::error::{CloseReason, Closed};
use crate::limits::ENDPOINT_WAIT;
use crate::target::HttpTarget;

/// Opens the stream and waits for the address that messages are sent to.
pub(crate) async fn open(
    target: HttpTarget,
    limits: LinkLimits,
    inbox: Weak<dyn Inbox>,
) -> Result<Arc<dyn Link>, TransportError> {
    open_within(ENDPOINT_WAIT, target, limits, inbox).await
}

async fn open_within(
    wait: Duration,
    target: HttpTarget,
    limits: LinkLimits,
    inbox: Weak<dyn Inbox>,
) -> Result<Arc<dyn Link>, TransportError> {
    let endpoint = Endpoint::new(target);
    let mut stream = EventStream::new(limits.max_message_bytes);
    let opening = async {
        let mut response = open_stream(&endpoint).await?;
        let address = read_address(&mut response, &mut stream).await?;
        Ok((response, address))
    };
    let (response, address) = tokio::time::timeout(wait, opening).await.unwrap_or_else(|_| {
        Err(TransportError::Protocol(format!(
            "no `endpoint` event came within {} s",
            wait.as_secs_f32()
        )))
    })?;
    let source = endpoint.url();
    let address = source
        .join(address.trim())
        .map_err(|_| TransportError::Protocol("the `endpoint` event names no valid address".to_owned()))?;
    if !exchange::is_same_origin(&source, &address) {
        let origin = address.origin().ascii_serialization();
        return Err(TransportError::Protocol(format!(
            "the `endpoint` event names another origin, {origin}"
        )));
    }

    let shared = Arc::new(Shared {
        endpoint: endpoint.at(address),
        inbox,
        tasks: TaskTracker::new(),
        closing: CancellationToken::new(),
    });
    shared.spawn(read(Arc::clone(&shared), response, stream));
    Ok(Arc::new(SseLink(shared)))
}

struct SseLink(Arc<Shared>);

struct Shared {
    /// Where messages are sent to.
    endpoint: Endpoint,
    inbox: Weak<dyn Inbox>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Link for SseLink {
    fn send(&self, out: Outgoing) {
        let shared = Arc::clone(&self.0);
        let kind = out.kind;
        let work = async move {
            let Err(error) = shared.post(out).await else {
                return;
            };
            let Some(inbox) = shared.inbox.upgrade() else {
                return;
            };
            match kind {
                OutKind::Request(id) => inbox.failed(id, error),
                OutKind::Notification | OutKind::Response => {
                    inbox.note(format!("a message was not taken by the server: {error}"));
                }
            }
        };
        if !self.0.spawn(work)
            && let OutKind::Request(id) = kind
            && let Some(inbox) = self.0.inbox.upgrade()
        {
            inbox.failed(id, TransportError::Closed);
        }
    }

    fn deliver(&self, out: Outgoing) -> BoxFuture<'static, Result<(), TransportError>> {
        let (sender, receiver) = oneshot::channel();
        let shared = Arc::clone(&self.0);
        self.0.spawn(async move {
            // Nobody may be waiting any more.
            let _ = sender.send(shared.post(out).await);
        });
        async { receiver.await.unwrap_or(Err(TransportError::Closed)) }.boxed()
    }

    fn cancel(&self, _id: u64) {}

    fn negotiated(&self, _protocol_version: &str) {}

    fn listen(&self) -> BoxFuture<'static, ()> {
        async {}.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.0);
        async move {
            shared.end(Closed::new(CloseReason::Ordered, "closed"));
            shared.tasks.wait().await;
        }
        .boxed()
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.0.closing.cancel();
    }
}

impl Shared {
    /// Runs until it is done or the link closes. Nothing is started on a closed link.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        if self.closing.is_cancelled() {
            return false;
        }
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            closing.run_until_cancelled(work).await;
        });
        true
    }

    /// Whatever body a success has, the answer comes on the stream.
    async fn post(&self, out: Outgoing) -> Result<(), TransportError> {
        let mut headers = HeaderMap::new();
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in out.headers {
            headers.insert(name, value);
        }
        let kind = out.kind;
        let hold = || match (kind, self.inbox.upgrade()) {
            (OutKind::Request(id), Some(inbox)) => inbox.hold(id),
            _ => exchange::no_hold(),
        };
        let response = self
            .endpoint
            .send(Method::POST, headers, Some(out.text), &hold)
            .await?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(exchange::refusal(response).await)
        }
    }

    /// Ends the link once.
    fn end(&self, closed: Closed) {
        let is_first = !self.closing.is_cancelled();
        self.closing.cancel();
        self.tasks.close();
        if is_first && let Some(inbox) = self.inbox.upgrade() {
            inbox.closed(closed);
        }
    }
}

async fn open_stream(endpoint: &Endpoint) -> Result<Response, TransportError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    // Compressing proxies hold back the events of an endless stream.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let response = endpoint
        .send(Method::GET, headers, None, &exchange::no_hold)
        .await?;
    if !response.status().is_success() {
        return Err(exchange::refusal(response).await);
    }
    if exchange::media(&response) != Media::EventStream {
        return Err(exchange::bad_media(response).await);
    }
    Ok(response)
}

/// Messages before the address are ignored: nothing was asked yet.
async fn read_address(response: &mut Response, stream: &mut EventStream) -> Result<String, TransportError> {
    while let Some(item) = reader::next(response, stream).await {
        if let Item::Event {
            kind: Kind::Endpoint,
            data,
        } = item
        {
            return Ok(String::from_utf8_lossy(&data).into_owned());
        }
    }
    Err(TransportError::Protocol(
        "the stream ended before its `endpoint` event".to_owned(),
    ))
}

async fn read(shared: Arc<Shared>, mut response: Response, mut stream: EventStream) {
    let mut found = false;
    while let Some(item) = reader::next(&mut response, &mut stream).await {
        let Some(inbox) = shared.inbox.upgrade() else {
            return;
        };
        match item {
            Item::Event {
                kind: Kind::Message,
                data,
            } => reader::hand_over(&*inbox, data, None),
            Item::Event { .. } => {}
            Item::TooLarge { head } => found = inbox.oversize(&head, None),
            Item::Skipped { .. } if found => {}
            Item::Skipped { head, tail } => {
                inbox.oversize(&head, Some(&tail));
            }
        }
    }
    shared.end(Closed::new(
        CloseReason::StreamEnded,
        "the server's event stream ended",
    ));
}

#[cfg(test)]
mod tests;
