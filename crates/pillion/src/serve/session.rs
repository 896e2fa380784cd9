//! One conversation with one host: a loop that owns its state and never waits for anything but the next event.
//!
//! Everything that may take time runs in a task of its own; its answer goes to the outbox, and the loop does not even
//! wait for room there.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use manager::{Env, HostSink as _, Manager, RequestContext};
use protocol::{Error, ErrorKind, HostNotification, LogMessage, MessageType, Method, Notification, Tier};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::call::Call;
use super::ending::{self, End, Ends};
use super::envelope::{self, Id, Message, Refused};
use super::frame::Frame;
use super::framing::{Fault, Item};
use super::host::Host;
use super::in_host;
use super::lifecycle::{self, Lifecycle, Phase};
use super::limits;
use super::outbox::Outbox;
use super::peers::{self, Peers};
use super::pump::{Arrival, Pump};
use super::registry::Registry;
use super::requests::Requests;
use super::stdio::{Input, Output};
use crate::memory;

/// The conversation, from the first byte to the last.
pub struct Session {
    pump: Pump,
    outbox: Outbox,
    host: Host,
    lifecycle: Lifecycle,
    requests: Requests,
    registry: OnceLock<Registry>,
    /// The manager on its way out.
    stopping: Option<JoinHandle<()>>,
    ends: Ends,
    ended: mpsc::Receiver<End>,
    /// Where peers are let in, if they are.
    listen: Option<SocketAddr>,
    peers: Option<Peers>,
}

/// What the loop waits for.
enum Event {
    Arrived(std::io::Result<Arrival>),
    Ended(End),
    /// Time to see whether the session has become quiet.
    Paused,
}

impl Session {
    pub fn new(env: Env, unattended: bool, input: Input, listen: Option<SocketAddr>) -> Session {
        let outbox = Outbox::new();
        let host = Host::new(outbox.clone());
        let (ends, ended) = mpsc::channel(1);
        Session {
            pump: Pump::new(input),
            lifecycle: Lifecycle::new(env, unattended, host.clone()),
            outbox,
            host,
            requests: Requests::default(),
            registry: OnceLock::new(),
            stopping: None,
            ends,
            ended,
            listen,
            peers: None,
        }
    }

    /// Where to tell that the session must end.
    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Serves until something ends it; then stops everything and answers what it was.
    pub async fn run(mut self, output: Output) -> End {
        self.write_to(output);
        let end = self.serve().await;
        tracing::info!(?end, "the session ends");
        ending::last_resort(end);
        self.stop().await;
        end
    }

    fn write_to(&self, output: Output) {
        let (outbox, ends) = (self.outbox.clone(), self.ends.clone());
        tokio::spawn(async move {
            let fault = outbox.write_to(output).await;
            tracing::info!(%fault, "the host does not read any more");
            ending::tell(&ends, End::OutputClosed);
        });
    }

    async fn serve(&mut self) -> End {
        let pause = tokio::time::sleep(limits::QUIET);
        tokio::pin!(pause);
        // Whether a message came since the pause began; `None` once the session is quiet, and then nothing wakes it.
        let mut stirred = Some(true);
        loop {
            let event = tokio::select! {
                biased;
                Some(end) = self.ended.recv() => Event::Ended(end),
                arrival = self.pump.read() => Event::Arrived(arrival),
                () = &mut pause, if stirred.is_some() => Event::Paused,
            };
            match event {
                Event::Ended(end) => return end,
                Event::Paused => {
                    if stirred == Some(true) {
                        stirred = Some(false);
                        pause.as_mut().reset(Instant::now() + limits::QUIET);
                    } else {
                        stirred = None;
                        memory::forget_code();
                    }
                }
                Event::Arrived(Ok(Arrival::End)) => return End::InputClosed,
                Event::Arrived(Ok(Arrival::Bytes)) => {}
                Event::Arrived(Ok(Arrival::Fault(fault))) => self.fault(fault),
                Event::Arrived(Err(fault)) => {
                    tracing::info!(%fault, "stdin cannot be read any more");
                    return End::InputClosed;
                }
            }
            while let Some(item) = self.pump.next() {
                if stirred.replace(true).is_none() {
                    pause.as_mut().reset(Instant::now() + limits::QUIET);
                }
                if let Some(end) = self.item(item).await {
                    return end;
                }
            }
        }
    }

    async fn item(&mut self, item: Item) -> Option<End> {
        let body = match item {
            Item::Message(body) => body,
            Item::Fault(fault) => {
                self.fault(fault);
                return None;
            }
        };
        match envelope::read(&body) {
            Ok(Message::Request { id, method, params }) => match Method::from_name(&method) {
                Some(method) => {
                    let params = params.map(|params| place(&body, params));
                    self.request(id, method, body, params);
                }
                None => self.lsp_request(id, &method, params).await,
            },
            Ok(Message::Notification { method, params }) => return self.notification(&method, params).await,
            Ok(Message::Response { id, result }) => {
                if let Some(id) = id {
                    self.host.answered(&id, result);
                }
            }
            Err(Refused { id, error }) => {
                tracing::warn!(%error, "a message of the host was refused");
                self.outbox.push(Frame::error(id.as_ref(), &error));
            }
        }
        None
    }

    /// A request of ours: admitted here, carried out in a task.
    fn request(&mut self, id: Id, method: Method, body: Vec<u8>, params: Option<std::ops::Range<usize>>) {
        let registry = match (self.lifecycle.phase(), self.registry.get()) {
            (Phase::Initialized, Some(registry)) => registry.clone(),
            (phase, _) => {
                let error = lifecycle::refused(phase, method.name());
                return self.outbox.push(Frame::error(Some(&id), &error));
            }
        };
        let ticket = match self.requests.admit(&id, body.len()) {
            Ok(ticket) => ticket,
            Err(error) => return self.outbox.push(Frame::error(Some(&id), &error)),
        };
        let context = RequestContext {
            cancel: ticket.cancel.clone(),
            tier: Tier::Local,
        };
        let call = Arc::new(Call::new(id, context, body, params));
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            let work = AssertUnwindSafe(registry.dispatch(method, Arc::clone(&call)));
            if work.catch_unwind().await.is_err() {
                tracing::error!(%method, "a request panicked");
            }
            outbox.reply(call.into_frame(ticket.cancelled_by_host())).await;
            drop(ticket);
        });
    }

    /// A request of LSP's, or one that nobody knows.
    async fn lsp_request(&mut self, id: Id, method: &str, params: Option<&RawValue>) {
        let outcome = match method {
            "initialize" => self.initialize(params).await,
            "shutdown" => match self.lifecycle.shutdown().await {
                Ok(result) => return self.shut_down(id, result),
                Err(error) => Err(error),
            },
            _ if self.lifecycle.phase() != Phase::Initialized => {
                Err(lifecycle::refused(self.lifecycle.phase(), method))
            }
            _ => Err(Error::new(
                ErrorKind::MethodNotFound,
                format!("there is no method `{method}`"),
            )
            .hint("`capabilities.experimental.mcp.methods` in the answer to `initialize` lists all")),
        };
        self.outbox.push(match outcome {
            Ok(result) => Frame::result(&id, &result),
            Err(error) => Frame::error(Some(&id), &error),
        });
    }

    async fn initialize(&mut self, params: Option<&RawValue>) -> Result<Value, Error> {
        let result = self.lifecycle.initialize(params).await?;
        let Some(settled) = self.lifecycle.settled() else {
            return Ok(result);
        };
        self.registry
            .get_or_init(|| Registry::new(settled.manager.clone()));
        if let Some(bytes) = settled.max_message_bytes {
            self.pump.set_limit(bytes);
        }
        if let Some(process_id) = settled.process_id
            && let Err(fault) = ending::watch_host(process_id, &self.ends)
        {
            tracing::info!(%fault, process_id, "the host's process cannot be watched");
        }
        let env = settled.manager.env();
        let Some(address) = self.listen.take() else {
            peers::tidy(env);
            return Ok(result);
        };
        match peers::listen(address, env, settled.manager.clone(), self.host.news()).await {
            Ok(peers) => self.peers = Some(peers),
            Err(fault) => {
                tracing::error!(%fault, %address, "peers cannot be let in");
                self.host.notify(Notification::LogMessage(LogMessage {
                    kind: MessageType::Error,
                    message: format!("other programs cannot be let in at {address}: {fault}"),
                }));
            }
        }
        Ok(result)
    }

    /// Everything ends now. The answer to `shutdown` comes after those to the requests in flight, or soon anyway.
    fn shut_down(&mut self, id: Id, result: Value) {
        let (outbox, requests) = (self.outbox.clone(), self.requests.clone());
        self.stop_manager(async move {
            let _ = tokio::time::timeout(limits::SHUTDOWN_ANSWER, requests.emptied()).await;
            outbox.push(Frame::result(&id, &result));
        });
    }

    async fn notification(&mut self, method: &str, params: Option<&RawValue>) -> Option<End> {
        match method {
            "initialized" if self.lifecycle.phase() == Phase::Initialized => {
                self.lifecycle.note("initialized").await;
                self.outbox.release();
            }
            "exit" => {
                let orderly = self.lifecycle.phase() == Phase::ShutDown;
                self.lifecycle.note("exit").await;
                return Some(End::Exit { orderly });
            }
            "$/cancelRequest" => {
                if let Some(id) = params.and_then(cancelled_id) {
                    self.requests.cancel(&id);
                }
            }
            "workspace/didChangeWorkspaceFolders" => {
                if let Some(manager) = self.manager() {
                    let (added, removed) = lifecycle::folder_changes(params);
                    manager.folders_changed(added, removed);
                }
            }
            // Others than the host's own mean nothing to us, and a notification has no answer.
            _ => {
                let own = HostNotification::ALL.iter().find(|name| name.as_str() == method);
                if let (Some(name), Some(manager), Phase::Initialized) =
                    (own, self.manager(), self.lifecycle.phase())
                {
                    in_host::notified(manager, &self.host, *name, params);
                }
            }
        }
        None
    }

    fn fault(&self, fault: Fault) {
        let (id, error) = match fault {
            Fault::Header(text) => {
                let message = format!("`Content-Length: {text}` is not a number of bytes");
                let error = Error::new(ErrorKind::InvalidRequest, message);
                (
                    None,
                    error.hint("it is followed by the number of bytes of the message"),
                )
            }
            Fault::CutShort { length, body } => {
                let message = format!("the message ends after {} of {length} bytes", body.len());
                (
                    envelope::id_in_head(&body),
                    Error::new(ErrorKind::ParseError, message),
                )
            }
            Fault::Unframed(line) => {
                let message = "a message stands on a line of its own, without `Content-Length`";
                (
                    envelope::id_in_head(&line),
                    Error::new(ErrorKind::ParseError, message).hint(
                        "before each message: `Content-Length: `, its number of bytes, and an empty line",
                    ),
                )
            }
            Fault::TooLarge {
                length,
                limit,
                head,
                tail,
            } => {
                let id = envelope::id_in_head(&head).or_else(|| envelope::id_in_tail(&tail));
                if let Some(manager) = self.manager() {
                    in_host::too_large(manager, &head, &tail);
                }
                let message = format!("the message has {length} bytes, at most {limit} are taken");
                let error = Error::new(ErrorKind::InvalidRequest, message).limit(limit as u64);
                (
                    id,
                    error.hint("`initializationOptions.maxMessageBytes` sets the limit"),
                )
            }
        };
        tracing::warn!(%error, "a frame of the host was refused");
        self.outbox.push(Frame::error(id.as_ref(), &error));
    }

    fn manager(&self) -> Option<&Manager> {
        self.lifecycle.settled().map(|settled| &settled.manager)
    }

    /// Once; `beside` is done at the same time.
    fn stop_manager(&mut self, beside: impl Future<Output = ()> + Send + 'static) {
        self.peers = None;
        let Some(manager) = self.manager().cloned() else {
            return;
        };
        let stop = || {
            tokio::spawn(async move {
                tokio::join!(manager.shutdown(), beside);
            })
        };
        self.stopping.get_or_insert_with(stop);
    }

    /// Children stopped, last answers written: within [`limits::LAST_RESORT`].
    async fn stop(&mut self) {
        self.stop_manager(async {});
        self.host.end();
        self.requests.cancel_all();
        if let Some(stopping) = self.stopping.take()
            && tokio::time::timeout(limits::SHUTDOWN, stopping).await.is_err()
        {
            tracing::warn!("not everything stopped in time");
        }
        let answered = async {
            self.requests.emptied().await;
            self.outbox.flushed().await;
        };
        let _ = tokio::time::timeout(limits::FLUSH, answered).await;
    }
}

/// Where a part of a message stands in it.
fn place(body: &[u8], part: &RawValue) -> std::ops::Range<usize> {
    let start = part.get().as_ptr() as usize - body.as_ptr() as usize;
    start..start + part.get().len()
}

fn cancelled_id(params: &RawValue) -> Option<Id> {
    #[derive(Deserialize)]
    struct Cancel<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let cancel: Cancel<'_> = serde_json::from_str(params.get()).ok()?;
    Id::new(cancel.id.get())
}
