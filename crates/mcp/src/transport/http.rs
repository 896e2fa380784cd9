//! Streamable HTTP: every message is a POST of its own, answered with JSON or with an event stream.
//!
//! In the legacy era (2025-03-26 to 2025-11-25) there is a session, a standalone stream for what the server says by
//! itself, and lost streams are resumed. In the modern era (2026-07-28) there is none of this: a lost stream is a lost
//! request, and giving a request up means to close its connection.

pub(crate) mod client;
pub(crate) mod exchange;
pub(crate) mod reader;
mod stream;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderMap, HeaderValue, Method};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::Response;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::exchange::{Endpoint, Media, PROTOCOL_VERSION, SESSION_ID};
use super::{Inbox, Link, LinkLimits, OutKind, Outgoing, TransportError};
use crate::error::{CloseReason, Closed};
use crate::limits::{DELETE_WAIT, LISTEN_WAIT, SHOWN_BODY};
use crate::target::{Era, HttpTarget};

pub use self::client::{ClientOptions, client, client_builder};
pub use self::exchange::is_reserved_header;

/// The first version that wants to be named in a header.
const FIRST_NAMED_VERSION: &str = "2025-06-18";

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Makes a link; nothing is sent before the first message.
pub(crate) fn open(target: HttpTarget, limits: LinkLimits, inbox: Weak<dyn Inbox>) -> Arc<dyn Link> {
    Arc::new(HttpLink(Arc::new(Shared {
        endpoint: Endpoint::new(target),
        limit: limits.max_message_bytes,
        inbox,
        session: Mutex::default(),
        requests: Mutex::default(),
        listener: Mutex::default(),
        tasks: TaskTracker::new(),
        closing: CancellationToken::new(),
    })))
}

struct HttpLink(Arc<Shared>);

struct Shared {
    endpoint: Endpoint,
    /// The largest message we take, in bytes.
    limit: usize,
    inbox: Weak<dyn Inbox>,
    session: Mutex<Session>,
    /// The requests whose responses are not over.
    requests: Mutex<HashMap<u64, AbortHandle>>,
    /// The task that reads the standalone stream.
    listener: Mutex<Option<AbortHandle>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// What every message of a legacy session carries.
#[derive(Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Link for HttpLink {
    fn send(&self, out: Outgoing) {
        let shared = Arc::clone(&self.0);
        let OutKind::Request(id) = out.kind else {
            self.0.spawn(async move {
                if let Err(error) = shared.post(&out).await {
                    shared.note(format!("a message was not taken by the server: {error}"));
                }
            });
            return;
        };
        // Tasks start in the order in which they were spawned, so messages leave in call order.
        let mut requests = lock(&self.0.requests);
        let task = self.0.spawn(async move {
            if let Err(error) = shared.request(id, &out).await {
                shared.fail(id, error);
            }
            lock(&shared.requests).remove(&id);
        });
        if let Some(task) = task {
            requests.insert(id, task);
            return;
        }
        drop(requests);
        self.0.fail(id, TransportError::Closed);
    }

    fn deliver(&self, out: Outgoing) -> BoxFuture<'static, Result<(), TransportError>> {
        if matches!(out.kind, OutKind::Request(_)) {
            self.send(out);
            return async { Ok(()) }.boxed();
        }
        let (sender, receiver) = oneshot::channel();
        let shared = Arc::clone(&self.0);
        self.0.spawn(async move {
            // Nobody may be waiting any more.
            let _ = sender.send(shared.post(&out).await.map(drop));
        });
        async { receiver.await.unwrap_or(Err(TransportError::Closed)) }.boxed()
    }

    fn cancel(&self, id: u64) {
        if let Some(task) = lock(&self.0.requests).remove(&id) {
            // Dropping a response that was not read to its end closes its connection.
            task.abort();
        }
    }

    fn negotiated(&self, protocol_version: &str) {
        let is_named = protocol_version >= FIRST_NAMED_VERSION;
        lock(&self.0.session).version = HeaderValue::from_str(protocol_version).ok().filter(|_| is_named);
    }

    fn listen(&self) -> BoxFuture<'static, ()> {
        let (sender, receiver) = oneshot::channel();
        let task = self.0.spawn(stream::listen(Arc::clone(&self.0), sender));
        if let Some(old) = std::mem::replace(&mut *lock(&self.0.listener), task) {
            old.abort();
        }
        async {
            // Whatever the server said about it, the session is usable.
            let _ = tokio::time::timeout(LISTEN_WAIT, receiver).await;
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.0);
        async move {
            let is_first = !shared.closing.is_cancelled();
            shared.closing.cancel();
            shared.tasks.close();
            shared.tasks.wait().await;
            if !is_first {
                return;
            }
            if let Some(inbox) = shared.inbox.upgrade() {
                inbox.closed(Closed::new(CloseReason::Ordered, "closed"));
            }
            shared.leave_session().await;
        }
        .boxed()
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.0.closing.cancel();
    }
}

impl Shared {
    /// Runs until it is done or the link closes. Nothing is started on a closed link.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        if self.closing.is_cancelled() {
            return None;
        }
        let closing = self.closing.clone();
        let task = self.tasks.spawn(async move {
            closing.run_until_cancelled(work).await;
        });
        Some(task.abort_handle())
    }

    /// Sends a message and returns the response, if it is a success.
    async fn post(&self, out: &Outgoing) -> Result<Response, TransportError> {
        let session = if out.era == Era::Modern || out.opens_session {
            Session::default()
        } else {
            lock(&self.session).clone()
        };
        let mut headers = session.headers(JSON_OR_EVENTS);
        headers.insert(CONTENT_TYPE, JSON);
        for (name, value) in &out.headers {
            headers.insert(name, value.clone());
        }
        let response = self
            .endpoint
            .send(Method::POST, headers, Some(out.text.clone()), &|| {
                self.hold(out.kind)
            })
            .await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let refusal = exchange::refusal(response).await;
        Err(if session.is_gone(&refusal) {
            TransportError::SessionGone
        } else {
            refusal
        })
    }

    /// Carries a request through: on success its answer is in the inbox.
    async fn request(&self, id: u64, out: &Outgoing) -> Result<(), TransportError> {
        let response = self.post(out).await?;
        if out.opens_session && out.era == Era::Legacy {
            let id = response.headers().get(SESSION_ID).cloned();
            *lock(&self.session) = Session {
                id: id.map(valid_session_id).transpose()?,
                version: None,
            };
        }
        match exchange::media(&response) {
            Media::EventStream => self.read_answer(id, response, out.era).await,
            Media::Other => Err(exchange::bad_media(response).await),
            Media::Json => {
                let status = response.status().as_u16();
                let content_type = exchange::content_type(&response);
                let body = exchange::whole_body(response, self.limit).await?;
                let Some(inbox) = self.inbox.upgrade() else {
                    return Ok(());
                };
                let beginning = body.slice(..body.len().min(SHOWN_BODY)).to_vec();
                if !body.is_empty() {
                    reader::hand_over(&*inbox, body, Some(id));
                }
                if !inbox.waits_for(id) {
                    return Ok(());
                }
                let body = String::from_utf8_lossy(&beginning).into_owned();
                Err(TransportError::BadMedia {
                    status,
                    content_type,
                    body,
                })
            }
        }
    }

    async fn leave_session(&self) {
        let session = lock(&self.session).clone();
        if session.id.is_none() {
            return;
        }
        let mut headers = session.headers(JSON_OR_EVENTS);
        headers.remove(ACCEPT);
        // 405 means that the server does not care; nothing else matters either.
        let _ = tokio::time::timeout(
            DELETE_WAIT,
            self.endpoint
                .send(Method::DELETE, headers, None, &exchange::no_hold),
        )
        .await;
    }

    /// Stops the clock of a request while its authorization is settled.
    fn hold(&self, kind: OutKind) -> Box<dyn Send + Sync> {
        match (kind, self.inbox.upgrade()) {
            (OutKind::Request(id), Some(inbox)) => inbox.hold(id),
            _ => exchange::no_hold(),
        }
    }

    fn fail(&self, id: u64, error: TransportError) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.failed(id, error);
        }
    }

    fn note(&self, text: String) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.note(text);
        }
    }
}

impl Session {
    fn headers(&self, accept: HeaderValue) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept);
        if let Some(id) = &self.id {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = &self.version {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
        headers
    }

    /// Whether a message of this session was refused because the server does not know the session any more.
    fn is_gone(&self, refusal: &TransportError) -> bool {
        let TransportError::Status { status, body, .. } = refusal else {
            return false;
        };
        self.id.is_some()
            && match status {
                404 | 410 => true,
                // The TypeScript SDK's example servers say "No valid session ID provided" after a restart.
                400 => {
                    let body = body.to_ascii_lowercase();
                    [
                        "session id",
                        "session not found",
                        "invalid session",
                        "unknown session",
                        "session expired",
                    ]
                    .iter()
                    .any(|phrase| body.contains(phrase))
                }
                _ => false,
            }
    }
}

fn valid_session_id(mut id: HeaderValue) -> Result<HeaderValue, TransportError> {
    if id.is_empty() || !id.as_bytes().iter().all(u8::is_ascii_graphic) {
        return Err(TransportError::Protocol(
            "the server's session id has characters that are not allowed".to_owned(),
        ));
    }
    id.set_sensitive(true);
    Ok(id)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
