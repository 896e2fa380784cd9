//! The task that runs one server: start, crash and restart, idle stop, and every order given to it.

use std::future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use mcp::{Closed, ConnectError, Connection, Elicitation, Options, ProtocolChoice, Target};
use protocol::{ChangeReason, Error, ErrorKind, LogLevel, LogSource, ServerEntry};
use tokio::sync::{mpsc, oneshot};

use super::eras::EraCache;
use super::host::Host;
use super::state::{Failure, State};
use super::{Server, helper, launch, login};
use crate::core::Core;
use crate::env;
use crate::error::{exit_error, start_error};
use crate::install;
use crate::install::lock::{self, Prepared};
use crate::limits;

/// What may be ordered.
pub(super) enum Order {
    Start(oneshot::Sender<Result<Connection, Error>>),
    Stop(oneshot::Sender<()>),
    /// Stop when idle.
    Rest,
    /// Stop when idle, and end the task.
    Retire,
    /// A connection ended by itself.
    Closed {
        generation: u64,
        closed: Closed,
    },
}

struct Runner {
    server: Arc<Server>,
    orders: mpsc::UnboundedReceiver<Order>,
    /// Whoever waits for the start that is under way.
    waiting: Vec<oneshot::Sender<Result<Connection, Error>>>,
    /// Crashes in a row.
    crashes: u32,
    generation: u64,
    retired: bool,
    /// To stop as soon as nobody uses it.
    resting: bool,
}

/// What the task does next.
enum Next {
    Rest,
    Connect,
    /// Connect after a pause, unless somebody asks sooner.
    Pause(Duration),
    Run(Connection, Instant),
    End,
}

pub(super) async fn run(server: Arc<Server>, orders: mpsc::UnboundedReceiver<Order>) {
    let mut runner = Runner {
        server,
        orders,
        waiting: Vec::new(),
        crashes: 0,
        generation: 0,
        retired: false,
        resting: false,
    };
    let mut next = Next::Rest;
    loop {
        next = match next {
            Next::Rest => runner.rest().await,
            Next::Connect => runner.connect().await,
            Next::Pause(pause) => runner.pause(pause).await,
            Next::Run(connection, since) => runner.supervise(connection, since).await,
            Next::End => return,
        };
    }
}

impl Runner {
    async fn rest(&mut self) -> Next {
        if self.retired {
            return Next::End;
        }
        match self.orders.recv().await {
            Some(Order::Start(reply)) => {
                self.waiting.push(reply);
                self.crashes = 0;
                Next::Connect
            }
            Some(Order::Stop(done)) => {
                self.stopped(done);
                Next::Rest
            }
            Some(Order::Closed { .. } | Order::Rest) => Next::Rest,
            Some(Order::Retire) | None => Next::End,
        }
    }

    async fn pause(&mut self, pause: Duration) -> Next {
        let wake = tokio::time::sleep(pause);
        tokio::pin!(wake);
        loop {
            tokio::select! {
                () = &mut wake => return Next::Connect,
                order = self.orders.recv() => match order {
                    Some(Order::Start(reply)) => {
                        self.waiting.push(reply);
                        return Next::Connect;
                    }
                    Some(Order::Stop(done)) => {
                        self.stopped(done);
                        return Next::Rest;
                    }
                    Some(Order::Closed { .. }) => {}
                    Some(Order::Rest) => {
                        self.server.set_state(State::Stopped);
                        return Next::Rest;
                    }
                    Some(Order::Retire) | None => {
                        self.server.set_state(State::Stopped);
                        return Next::End;
                    }
                },
            }
        }
    }

    fn stopped(&mut self, done: oneshot::Sender<()>) {
        self.crashes = 0;
        self.server.set_state(State::Stopped);
        // Nobody may wait for it any more.
        let _ = done.send(());
    }

    fn settle(&mut self, outcome: &Result<Connection, Error>) {
        for waiting in self.waiting.drain(..) {
            // A caller that was cancelled meanwhile needs no answer.
            let _ = waiting.send(outcome.clone());
        }
    }

    /// One attempt to start. A stop, or the removal of the entry, interrupts it.
    async fn connect(&mut self) -> Next {
        self.generation += 1;
        self.resting = false;
        self.server.set_state(State::Connecting);
        // A panic of ours must not take the server's task with it: nobody could start the server again.
        let attempt = AssertUnwindSafe(open(Arc::clone(&self.server), self.generation)).catch_unwind();
        tokio::pin!(attempt);
        let outcome = loop {
            tokio::select! {
                outcome = &mut attempt => break outcome,
                order = self.orders.recv() => match order {
                    Some(Order::Start(reply)) => self.waiting.push(reply),
                    Some(Order::Closed { .. }) => {}
                    Some(Order::Rest) => self.resting = true,
                    Some(Order::Stop(done)) => {
                        self.settle(&Err(Error::new(ErrorKind::CallCancelled, "the server was stopped while it started").by("stop")));
                        self.stopped(done);
                        return Next::Rest;
                    }
                    Some(Order::Retire) | None => {
                        self.settle(&Err(Error::new(ErrorKind::CallCancelled, "the server was removed while it started").by("stop")));
                        self.server.set_state(State::Stopped);
                        return Next::End;
                    }
                },
            }
        };
        let outcome = outcome.unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Internal,
                "the start failed by a fault of Pillion's own",
            )
            .hint("report it, with what Pillion wrote to stderr"))
        });
        match outcome {
            Ok(connection) => {
                let started_at = env::now();
                self.server.last_used.store(started_at, Ordering::Relaxed);
                self.server.catalog.connected();
                self.server.set_state(State::Ready {
                    connection: connection.clone(),
                    started_at,
                });
                self.settle(&Ok(connection.clone()));
                greet(&self.server, &connection);
                Next::Run(connection, Instant::now())
            }
            Err(error) => {
                let error = self.server.veil().error(error);
                self.server
                    .log(LogSource::Pillion, LogLevel::Error, &error.message);
                // After a crash a failed restart is one more crash; a first start that fails is final for now.
                if self.crashes > 0 && error.kind != ErrorKind::NeedsAuth {
                    return self.crashed(error);
                }
                self.settle(&Err(error.clone()));
                let since = Instant::now();
                self.server.set_state(match error.kind {
                    ErrorKind::NeedsAuth => State::NeedsAuth {
                        failure: Failure::now(error),
                        since,
                    },
                    _ if self.server.entry().fail_on_startup_error == Some(false) => State::Stopped,
                    _ => State::Failed {
                        failure: Failure::now(error),
                        since,
                        last: false,
                    },
                });
                Next::Rest
            }
        }
    }

    /// Watches over a running server until it is to stop or ends by itself.
    async fn supervise(&mut self, connection: Connection, since: Instant) -> Next {
        loop {
            let in_use = self.server.in_use.load(Ordering::Relaxed) > 0;
            if (self.retired || self.resting) && !in_use {
                return self.close(&connection, None).await;
            }
            let idle = self
                .server
                .entry()
                .idle_stop_ms
                .filter(|ms| *ms > 0 && !in_use)
                .map(|ms| {
                    let used = self.server.last_used.load(Ordering::Relaxed);
                    Duration::from_millis((used + ms).saturating_sub(env::now()))
                });
            let idle_over = async {
                match idle {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                () = idle_over => {
                    if self.server.in_use.load(Ordering::Relaxed) == 0 {
                        self.server.log(LogSource::Pillion, LogLevel::Info, "stopped, since nobody used it");
                        return self.close(&connection, None).await;
                    }
                }
                // Somebody stopped using it: look again at the clock and at retirement.
                () = self.server.freed.notified() => {}
                order = self.orders.recv() => match order {
                    Some(Order::Start(reply)) => {
                        // Switched on again before it came to rest.
                        self.resting = false;
                        let _ = reply.send(Ok(connection.clone()));
                    }
                    Some(Order::Rest) => self.resting = true,
                    Some(Order::Stop(done)) => return self.close(&connection, Some(done)).await,
                    Some(Order::Retire) => self.retired = true,
                    Some(Order::Closed { generation, closed }) if generation == self.generation => {
                        return self.lost(&connection, &closed, since).await;
                    }
                    Some(Order::Closed { .. }) => {}
                    None => return self.close(&connection, None).await,
                },
            }
        }
    }

    async fn close(&mut self, connection: &Connection, done: Option<oneshot::Sender<()>>) -> Next {
        // The state first, so that nobody begins a call on a connection that goes away.
        self.server.set_state(State::Stopped);
        connection.close().await;
        if let Some(done) = done {
            self.stopped(done);
        }
        Next::Rest
    }

    /// The server went away without an order.
    async fn lost(&mut self, connection: &Connection, closed: &Closed, since: Instant) -> Next {
        let error = exit_error(closed, "the server ended");
        self.server
            .log(LogSource::Pillion, LogLevel::Error, &error.message);
        if since.elapsed() > limits::RECOVERED_AFTER {
            self.crashes = 0;
        }
        // Its process is gone or going; what is left of its group ends before another one starts.
        self.server.set_state(State::Connecting);
        connection.close().await;
        let reconnects = self
            .server
            .entry()
            .reconnect
            .as_ref()
            .is_none_or(|reconnect| reconnect.enabled);
        if self.retired {
            self.server.set_state(State::Stopped);
            return Next::End;
        }
        if !reconnects {
            self.server.set_state(State::Failed {
                failure: Failure::now(error),
                since: Instant::now(),
                last: false,
            });
            return Next::Rest;
        }
        self.crashed(error)
    }

    /// Counts a crash: another attempt after a pause, or the end of attempts.
    fn crashed(&mut self, mut error: Error) -> Next {
        self.crashes += 1;
        if self.crashes >= limits::CRASHES_IN_A_ROW {
            error.message = format!(
                "{} ({} times in a row; it is not started again by itself)",
                error.message, self.crashes
            );
            error.data.hint = Some("see `mcp.logs`, correct the cause, then `mcp.restart`".to_owned());
            self.settle(&Err(error.clone()));
            self.server.set_state(State::Failed {
                failure: Failure::now(error),
                since: Instant::now(),
                last: true,
            });
            return Next::Rest;
        }
        // Whoever waits for the start learns how this attempt went; the next one comes by itself.
        self.settle(&Err(error.clone()));
        let pause = (limits::BACKOFF_FIRST * 2u32.pow(self.crashes - 1)).min(limits::BACKOFF_LONGEST);
        let at = env::now() + pause.as_millis() as u64;
        self.server.set_state(State::Backoff {
            attempt: self.crashes,
            at,
            failure: Failure::now(error),
        });
        Next::Pause(pause)
    }
}

/// Starts a server once.
async fn open(server: Arc<Server>, generation: u64) -> Result<Connection, Error> {
    // A person may be asked, and must not hold the starts of others up meanwhile.
    if let Some(refusal) = server.refusal() {
        return Err(refusal);
    }
    server.find_secrets(true).await?;
    let _turn = server
        .core
        .starts
        .acquire()
        .await
        .map_err(|_| Error::new(ErrorKind::Internal, "no more starts"))?;
    // It may have waited for its turn for a while.
    let origin = server.admitted()?;
    let entry = server.entry();
    let mut prepared = launch::prepare(&server.core, &entry, &server.name, &origin)
        .await
        .inspect_err(|error| {
            // Shown beside what was passed on and withheld: names only.
            let unset = (error.kind == ErrorKind::UnsetVariable).then_some(error.data.names.as_deref());
            let unset = unset
                .flatten()
                .map(|names| format!("not set: {}", names.join(", ")));
            server.set_environment(unset.into_iter().collect());
        })?;
    server.set_environment(std::mem::take(&mut prepared.notes));
    if let Target::Http(target) = &mut prepared.target {
        target.tokens = helper::beneath(prepared.helper.take(), login::tokens(&server).await?);
    }
    if let Some(reason) = server.core.forbidden(&server.name, &prepared) {
        return Err(Error::new(
            ErrorKind::Denied,
            format!("`{}` is forbidden: {reason}", server.name),
        )
        .by("administrator"));
    }
    let cold = divert(&server, &mut prepared.target).await?;
    for name in entry
        .headers
        .iter()
        .flatten()
        .map(|(name, _)| name)
        .filter(|name| is_reserved(name))
    {
        server.log(
            LogSource::Pillion,
            LogLevel::Warning,
            &format!("the header `{name}` of the entry is not sent: the protocol sets it"),
        );
    }
    let options = options(
        &server.core,
        &entry,
        server.core.eras.get(&server.digest),
        start_timeout(&server, cold.as_ref()),
    );
    let host = Arc::new(Host::new(&server, generation));
    let is_remote = matches!(prepared.target, Target::Http(_));
    let veil = prepared.veil;
    match mcp::connect(prepared.target, options, host).await {
        Ok(connection) => {
            // Silence alone does not settle an era: a cold start may have been slow to answer.
            if connection.info().settled {
                EraCache::put(&server.core, &server.digest, connection.info().era);
            }
            Ok(connection)
        }
        Err(error) => {
            if matches!(
                error,
                ConnectError::UnsupportedVersion { .. }
                    | ConnectError::Protocol(_)
                    | ConnectError::Rpc { .. }
            ) {
                server.core.eras.forget(&server.digest);
            }
            if let ConnectError::Unauthorized { challenges, .. } = &error
                && let Some(challenge) = auth::bearer(challenges)
            {
                let scope = challenge
                    .scope()
                    .map(|scope| format!(", scope `{scope}`"))
                    .unwrap_or_default();
                server.log(
                    LogSource::Pillion,
                    LogLevel::Warning,
                    &format!("the server asks for a login ({}{scope})", challenge.scheme),
                );
            }
            let mut error = match (&error, server.login.refusal()) {
                (ConnectError::Unauthorized { status, .. }, Some(refusal)) => refusal.http_status(*status),
                _ => veil.error(start_error(&error)),
            };
            if let (Some(cold), ErrorKind::TimedOut) = (&cold, &error.kind) {
                error.data.hint = Some(cold.hint());
            }
            if is_remote
                && matches!(entry.oauth, Some(protocol::OauthSetting::Off(_)))
                && error.kind == ErrorKind::NeedsAuth
            {
                let status = error.data.http_status.unwrap_or(401);
                error = Error::new(
                    ErrorKind::ConnectFailed,
                    format!("the server refused the credentials of the entry (HTTP status {status})"),
                )
                .hint("correct `headers` of the entry")
                .http_status(status);
            }
            Err(error)
        }
    }
}

/// Starts what is installed instead of fetching it; answers what may have to be fetched first.
async fn divert(server: &Arc<Server>, target: &mut Target) -> Result<Option<Cold>, Error> {
    let Target::Stdio(target) = target else {
        return Ok(None);
    };
    let looked = Arc::clone(server);
    let seen = target.clone();
    let look = tokio::task::spawn_blocking(move || {
        let prepared = lock::prepare(&looked)?;
        Ok(match prepared {
            Prepared::Cold(wish) => (
                Prepared::Plain,
                Some(Cold {
                    is_cached: install::is_cached(&looked.core, &wish, &seen),
                    wish,
                }),
            ),
            other => (other, None),
        })
    });
    let (prepared, cold) = look
        .await
        .unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, error.to_string())))?;
    if let Prepared::Installed(wish, installed) = &prepared {
        install::divert(&server.core, wish, installed, target);
        let package = &installed.package;
        let message = format!(
            "starts {} {} from where it was fetched to",
            package.name, package.version
        );
        server.log(LogSource::Pillion, LogLevel::Info, &message);
    }
    if let Some(cold) = &cold
        && cold.is_cached == Some(false)
    {
        server.log(LogSource::Pillion, LogLevel::Info, &cold.note());
        let mut notes = server.environment();
        notes.push(cold.note());
        server.set_environment(notes);
        server.changed(ChangeReason::State);
    }
    Ok(cold)
}

/// A package that is not in our own folder.
struct Cold {
    wish: install::Wish,
    is_cached: Option<bool>,
}

impl Cold {
    fn note(&self) -> String {
        format!(
            "its first start downloads `{}`; `mcp.prefetch` does that once",
            self.wish.spec
        )
    }

    fn hint(&self) -> String {
        format!(
            "`{}` may still have been downloading: `mcp.prefetch` fetches it once, then a start needs no download",
            self.wish.spec
        )
    }
}

/// How long a start may take: a download that is certain has its own time, unless the entry says how long.
fn start_timeout(server: &Server, cold: Option<&Cold>) -> Duration {
    let downloads = cold.is_some_and(|cold| cold.is_cached == Some(false));
    let entry = server.entry();
    if downloads && entry.start_timeout_ms.is_none() {
        // What calls may take is another matter.
        limits::DOWNLOAD.max(server.start_timeout())
    } else {
        server.start_timeout()
    }
}

/// How a connection of this entry is opened.
pub(super) fn options(
    core: &Core,
    entry: &ServerEntry,
    verdict: Option<mcp::Era>,
    start_timeout: Duration,
) -> Options {
    let settings = core.settings();
    let protocol = match entry.protocol.as_deref() {
        None | Some("auto") => ProtocolChoice::Auto,
        Some("legacy") => ProtocolChoice::Legacy,
        Some(revision) => ProtocolChoice::Pin(revision.to_owned()),
    };
    let elicitation = match (entry.elicitation, settings.capabilities.url_questions) {
        (Some(false), _) => Elicitation::None,
        (_, Some(true)) => Elicitation::FormAndUrl,
        _ => Elicitation::Form,
    };
    Options {
        client_name: format!("Pillion ({})", settings.client_name),
        client_version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol,
        verdict,
        start_timeout,
        probe_timeout: limits::PROBE_TIMEOUT.min(start_timeout / 2),
        capabilities: mcp::ClientCapabilities {
            elicitation,
            sampling: settings.capabilities.sampling == Some(true),
            roots: settings.capabilities.roots == Some(true),
        },
        max_message_bytes: settings.message_bytes,
        max_in_flight: limits::IN_FLIGHT_PER_SERVER,
        stop_grace: limits::STOP_GRACE,
    }
}

fn is_reserved(name: &str) -> bool {
    name.parse().is_ok_and(|name| mcp::is_reserved_header(&name))
}

/// What is done right after a start: the list of tools is read, and subscriptions of the last connection are renewed.
pub(super) fn greet(server: &Arc<Server>, connection: &Connection) {
    let server = Arc::clone(server);
    let connection = connection.clone();
    tokio::spawn(async move {
        server.catalog.tools(&server, &connection).await;
        let _turn = server.subscribing.lock().await;
        let uris: Vec<String> = server
            .subscriptions
            .lock()
            .map(|uris| uris.iter().cloned().collect())
            .unwrap_or_default();
        if !uris.is_empty()
            && let Err(error) = connection.subscribe(uris).await
        {
            server.log(
                LogSource::Pillion,
                LogLevel::Warning,
                &format!("subscriptions were not renewed: {error}"),
            );
        }
    });
}
