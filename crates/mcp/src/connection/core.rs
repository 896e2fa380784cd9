//! The heart of a connection: who waits for which answer, and where everything that arrives goes.
//!
//! The task that reads from the carrier calls in here and completes the waiter itself, in the order of the wire.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::call::{Call, Hold};
use super::envelope::{self, Incoming, Outcome};
use super::failure::Failure;
use crate::error::{CloseReason, Closed, ConnectError};
use crate::host::{ConnectionHost, Event};
use crate::target::{ClientCapabilities, Era, Options};
use crate::transport::stderr::Ring;
use crate::transport::{Inbox, Link, OutKind, Outgoing, TransportError};

pub(crate) type Answer = Result<Box<RawValue>, Failure>;

pub(crate) struct Core {
    this: Weak<Core>,
    pub(crate) host: Arc<dyn ConnectionHost>,
    pub(crate) capabilities: ClientCapabilities,
    limit: usize,
    link: OnceLock<Arc<dyn Link>>,
    /// On HTTP a request is cancelled by closing its stream, and headers repeat parts of it.
    pub(crate) is_http: bool,
    next_id: AtomicU64,
    era: AtomicU8,
    state: Mutex<State>,
    pub(crate) gone: CancellationToken,
}

/// What is known of the peer while it is being found out, and changes afterwards.
#[derive(Default)]
pub(super) struct State {
    closed: Option<Closed>,
    told: bool,
    /// From here on the layer above is told of the end by an event, before by an error.
    announced: bool,
    waiting: HashMap<u64, Waiting>,
    /// Calls that have become a task, by the id of their request: it stays the token of their progress.
    tasks: HashMap<u64, Arc<Call>>,
    /// Open questions of a legacy server by its own id.
    pub(super) questions: HashMap<String, AbortHandle>,
    /// Subscriptions by the id of their request, until they are acknowledged and afterwards.
    pub(super) subscriptions: HashMap<u64, Option<oneshot::Sender<()>>>,
    /// Who waits for a person to be done in the browser, by `elicitationId`.
    pub(super) browsers: HashMap<String, Arc<Notify>>,
    stderr: Ring,
    first_noise: Option<String>,
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    call: Option<Arc<Call>>,
}

impl Core {
    pub(crate) fn new(host: Arc<dyn ConnectionHost>, options: &Options, is_http: bool) -> Arc<Core> {
        Arc::new_cyclic(|this| Core {
            this: this.clone(),
            host,
            capabilities: options.capabilities,
            limit: options.max_message_bytes,
            link: OnceLock::new(),
            is_http,
            next_id: AtomicU64::new(1),
            era: AtomicU8::new(0),
            state: Mutex::default(),
            gone: CancellationToken::new(),
        })
    }

    pub(crate) fn inbox(&self) -> Weak<dyn Inbox> {
        self.this.clone()
    }

    pub(crate) fn weak(&self) -> Weak<Core> {
        self.this.clone()
    }

    /// Called once, right after the link was opened.
    pub(crate) fn attach(&self, link: Arc<dyn Link>) {
        let _ = self.link.set(link);
    }

    pub(crate) fn link(&self) -> Option<&Arc<dyn Link>> {
        self.link.get()
    }

    pub(crate) fn settle(&self, era: Era) {
        let era = match era {
            Era::Legacy => 1,
            Era::Modern => 2,
        };
        self.era.store(era, Ordering::Relaxed);
    }

    /// `None` while it is being found out.
    pub(crate) fn era(&self) -> Option<Era> {
        match self.era.load(Ordering::Relaxed) {
            1 => Some(Era::Legacy),
            2 => Some(Era::Modern),
            _ => None,
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the layer above holds a connection. `false`: it is over already.
    pub(crate) fn announce(&self) -> bool {
        let mut state = self.state();
        state.announced = state.closed.is_none();
        state.announced
    }

    /// The end of a connection that never was.
    pub(crate) fn exited(&self) -> ConnectError {
        let closed = Closed {
            stderr_tail: self.stderr_tail(),
            ..self.end()
        };
        ConnectError::Exited {
            closed,
            first_noise: self.first_noise(),
        }
    }

    pub(crate) fn first_noise(&self) -> Option<String> {
        self.state().first_noise.clone()
    }

    pub(crate) fn stderr_tail(&self) -> String {
        self.state().stderr.tail()
    }

    /// Sends a request and waits for its answer. Dropping the future gives the request up, and tells the server so.
    pub(crate) async fn exchange<'a>(&'a self, message: Message<'_, 'a>) -> Answer {
        let (answer, pending) = self.begin(message);
        let answer = answer.await;
        pending.done();
        answer.unwrap_or_else(|_| Err(Failure::Closed(self.end())))
    }

    /// As `exchange`, for who has to know the id first.
    pub(crate) fn begin<'a>(&'a self, message: Message<'_, 'a>) -> (oneshot::Receiver<Answer>, Pending<'a>) {
        let Message {
            id,
            method,
            params,
            headers,
            era,
            call,
            opens_session,
        } = message;
        let (sender, receiver) = oneshot::channel();
        let pending = Pending {
            core: self,
            id,
            call,
            tells: !opens_session && id < envelope::PROBE,
        };
        {
            let mut state = self.state();
            if let Some(closed) = &state.closed {
                let _ = sender.send(Err(Failure::Closed(closed.clone())));
                return (receiver, pending);
            }
            state.waiting.insert(
                id,
                Waiting {
                    answer: sender,
                    call: call.cloned(),
                },
            );
        }
        let text = envelope::call(Some(id), method, params);
        self.send(Outgoing {
            kind: OutKind::Request(id),
            text: text.into(),
            headers,
            opens_session,
            era,
        });
        (receiver, pending)
    }

    /// Sends a request whose answer nobody needs.
    pub(crate) fn post(&self, method: &str, params: &[&str], era: Era, headers: Vec<Header>) {
        let id = self.next_id();
        let text = envelope::call(Some(id), method, params);
        self.send(Outgoing {
            kind: OutKind::Request(id),
            text: text.into(),
            headers,
            opens_session: false,
            era,
        });
    }

    pub(crate) fn notification(method: &str, params: &[&str]) -> Outgoing {
        Outgoing {
            kind: OutKind::Notification,
            text: envelope::call(None, method, params).into(),
            headers: Vec::new(),
            opens_session: false,
            era: Era::Legacy,
        }
    }

    pub(super) fn respond(&self, text: Vec<u8>) {
        self.send(Outgoing {
            kind: OutKind::Response,
            text: Bytes::from(text),
            headers: Vec::new(),
            opens_session: false,
            era: Era::Legacy,
        });
    }

    pub(crate) fn send(&self, out: Outgoing) {
        if let Some(link) = self.link.get() {
            link.send(out);
        }
    }

    /// The request with this id has been answered, but its call goes on as a task.
    pub(crate) fn keep_as_task(&self, id: u64, call: &Arc<Call>) -> TaskGuard<'_> {
        self.state().tasks.insert(id, call.clone());
        TaskGuard { core: self, id }
    }

    /// The call that a progress token stands for.
    pub(super) fn call_of_token(&self, token: u64) -> Option<Arc<Call>> {
        let state = self.state();
        let waiting = state
            .waiting
            .get(&token)
            .and_then(|waiting| waiting.call.as_ref());
        waiting
            .or_else(|| state.tasks.get(&token))
            .filter(|call| call.wants_progress())
            .cloned()
    }

    pub(crate) fn event(&self, event: Event) {
        self.host.event(event);
    }

    /// How the connection ended.
    pub(crate) fn end(&self) -> Closed {
        let closed = self.state().closed.clone();
        closed.unwrap_or_else(|| Closed::new(CloseReason::Failed, "the connection is closed"))
    }

    /// Nothing will come any more: whoever waits fails at once, open questions are withdrawn.
    pub(crate) fn give_up(&self, mut closed: Closed) {
        let (waiting, questions) = {
            let mut state = self.state();
            if state.closed.is_some() {
                return;
            }
            closed.stderr_tail = state.stderr.tail();
            state.closed = Some(closed.clone());
            (
                std::mem::take(&mut state.waiting),
                std::mem::take(&mut state.questions),
            )
        };
        for waiting in waiting.into_values() {
            let _ = waiting.answer.send(Err(Failure::Closed(closed.clone())));
        }
        for question in questions.into_values() {
            question.abort();
        }
    }

    pub(super) fn answer(&self, id: u64, answer: Answer) -> bool {
        let waiting = self.state().waiting.remove(&id);
        // An answer to a request that has been given up is of no interest.
        waiting.is_some_and(|waiting| waiting.answer.send(answer).is_ok())
    }

    /// The only request that waits, if it is one.
    fn sole_waiter(&self) -> Option<u64> {
        let state = self.state();
        let mut ids = state.waiting.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    /// The calls that a message of the server may belong to: of the request on whose stream it came, else all that may ask.
    pub(super) fn calls_behind(&self, origin: Option<u64>, task: Option<&str>) -> Vec<Arc<Call>> {
        let state = self.state();
        let own = origin.and_then(|origin| state.waiting.get(&origin)?.call.as_ref());
        let mut calls: Vec<Arc<Call>> = match own {
            Some(call) => vec![call.clone()],
            None => {
                let waiting = state.waiting.values().filter_map(|waiting| waiting.call.as_ref());
                waiting.chain(state.tasks.values()).cloned().collect()
            }
        };
        drop(state);
        if let Some(task) = task
            && let Some(call) = calls.iter().find(|call| call.is_task(task)).cloned()
        {
            return vec![call];
        }
        calls.retain(|call| call.tag.is_some());
        calls.sort_by_key(|call| call.tag);
        calls.dedup_by_key(|call| call.tag);
        calls
    }

    fn incoming(&self, message: Incoming<'_>, origin: Option<u64>) {
        match message {
            Incoming::Response { id, outcome } => self.response(id, outcome, origin),
            Incoming::Request { id, method, params } => self.request(id, &method, params, origin),
            Incoming::Notification { method, params } => self.notified(&method, params),
            Incoming::Malformed(why) => self.note(format!("a message of the server is not valid: {why}")),
        }
    }

    fn response(&self, id: Option<u64>, outcome: Outcome<'_>, origin: Option<u64>) {
        match (id, outcome) {
            (Some(id), Outcome::Result(result)) => {
                self.answer(id, Ok(result.to_owned()));
            }
            (Some(id), Outcome::Error(error)) => {
                self.answer(id, Err(Failure::Rpc { error, status: None }));
            }
            // The server could not read our request well enough to know its id.
            (None, Outcome::Error(error)) => match origin.or_else(|| self.sole_waiter()) {
                Some(id) => {
                    self.answer(id, Err(Failure::Rpc { error, status: None }));
                }
                None => self.note(format!(
                    "the server reports an error outside any request: {}",
                    error.message
                )),
            },
            (None, Outcome::Result(_)) => self.note("the server answered with an id we never sent".into()),
        }
    }
}

pub(crate) type Header = (http::HeaderName, http::HeaderValue);

/// A request on its way out.
pub(crate) struct Message<'a, 'call> {
    pub id: u64,
    pub method: &'a str,
    /// Joined they are the params.
    pub params: &'a [&'a str],
    pub headers: Vec<Header>,
    pub era: Era,
    pub call: Option<&'call Arc<Call>>,
    pub opens_session: bool,
}

/// While it lives, the token of a call that has become a task is known.
pub(crate) struct TaskGuard<'a> {
    core: &'a Core,
    id: u64,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        self.core.state().tasks.remove(&self.id);
    }
}

/// A request without an answer so far. Dropped before `done`, it gives the request up.
pub(crate) struct Pending<'a> {
    core: &'a Core,
    id: u64,
    call: Option<&'a Arc<Call>>,
    /// Whether the server is told: neither a probe nor `initialize` may be cancelled.
    tells: bool,
}

impl Pending<'_> {
    pub(crate) fn done(self) {
        std::mem::forget(self);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.core.state().waiting.remove(&self.id).is_none() {
            return;
        }
        let Some(link) = self.core.link.get() else {
            return;
        };
        let modern_http = self.core.is_http && self.core.era() == Some(Era::Modern);
        if self.tells && !modern_http {
            let mut params = br#"{"requestId":"#.to_vec();
            envelope::push_id(&mut params, self.id);
            let reason = self.call.map_or("the request was given up", |call| call.reason());
            let params = format!(
                r#"{},"reason":{}}}"#,
                String::from_utf8_lossy(&params),
                envelope::quoted(reason)
            );
            link.send(Core::notification("notifications/cancelled", &[&params]));
        }
        link.cancel(self.id);
    }
}

impl Inbox for Core {
    fn message(&self, text: &[u8], origin: Option<u64>) {
        if envelope::parse(text, |message| self.incoming(message, origin)).is_err() {
            let shown = &text[..text.len().min(crate::limits::NOISE_LINE)];
            self.noise(&String::from_utf8_lossy(shown));
        }
    }

    fn big_message(&self, mut text: Vec<u8>, origin: Option<u64>) {
        let Some((id, range)) = envelope::place_of_result(&text) else {
            return self.message(&text, origin);
        };
        text.truncate(range.end);
        text.drain(..range.start);
        let result = String::from_utf8(text)
            .ok()
            .and_then(|text| RawValue::from_string(text).ok());
        self.answer(id, Ok(result.unwrap_or_else(super::members::null)));
    }

    fn waits_for(&self, id: u64) -> bool {
        self.state().waiting.contains_key(&id)
    }

    fn failed(&self, id: u64, error: TransportError) {
        self.answer(id, Err(Failure::from_transport(error)));
    }

    fn hold(&self, id: u64) -> Box<dyn Send + Sync> {
        let call = self
            .state()
            .waiting
            .get(&id)
            .and_then(|waiting| waiting.call.clone());
        Box::new(Hold::on(call.into_iter().collect()))
    }

    fn oversize(&self, head: &[u8], tail: Option<&[u8]>) -> bool {
        if envelope::is_call(head) {
            self.note("a message of the server was too large and has been dropped".into());
            return true;
        }
        let found = envelope::id_at_edges(head, tail).filter(|id| self.waits_for(*id));
        match found.or_else(|| self.sole_waiter()) {
            Some(id) => self.answer(
                id,
                Err(Failure::Transport(TransportError::TooLarge { limit: self.limit })),
            ),
            None => {
                if tail.is_some() {
                    self.note("an answer was too large and has been dropped; it is unknown which one".into());
                }
                false
            }
        }
    }

    fn stuck(&self) {
        let waiting = std::mem::take(&mut self.state().waiting);
        for waiting in waiting.into_values() {
            let _ = waiting
                .answer
                .send(Err(Failure::Transport(TransportError::TooLarge {
                    limit: self.limit,
                })));
        }
    }

    fn noise(&self, text: &str) {
        let text = crate::transport::stderr::harmless(text);
        self.state().first_noise.get_or_insert_with(|| text.clone());
        self.event(Event::Noise(text));
    }

    fn stderr(&self, line: String) {
        self.state().stderr.push(line.clone());
        self.event(Event::Stderr(line));
    }

    fn note(&self, text: String) {
        self.event(Event::Protocol(text));
    }

    fn closed(&self, mut closed: Closed) {
        self.give_up(closed.clone());
        let tell = {
            let mut state = self.state();
            closed.stderr_tail = state.stderr.tail();
            // The carrier knows more about an end that we ordered, such as the exit code.
            let ordered = state
                .closed
                .as_ref()
                .is_some_and(|first| first.reason == CloseReason::Ordered);
            if ordered {
                closed.reason = CloseReason::Ordered;
            }
            state.announced && !std::mem::replace(&mut state.told, true)
        };
        if tell {
            self.event(Event::Closed(closed));
        }
        self.gone.cancel();
    }
}
