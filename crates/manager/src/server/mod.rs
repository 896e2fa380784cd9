//! One configured server: its entry, its state, its log and its catalog. A task of its own runs it.

pub(crate) mod eras;
mod host;
pub(crate) mod launch;
mod login_shell;
mod logs;
mod runner;
pub(crate) mod state;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use mcp::Connection;
use protocol::{
    ChangeReason, Error, ErrorKind, Layer, LogLevel, LogLine, LogSource, McpLog, Notification, ServerEntry,
    ServerName,
};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::catalog::Catalog;
use crate::core::Core;
use crate::limits;
use logs::Logs;
use runner::Order;
use state::State;

/// A handle on one server; cheap to share.
pub(crate) struct Server {
    pub core: Arc<Core>,
    pub name: ServerName,
    pub layer: Layer,
    /// Digest of the launch-relevant part of the entry.
    pub digest: String,
    pub catalog: Catalog,
    /// Resources the host subscribed to; they outlive reconnects.
    pub subscriptions: Mutex<BTreeSet<String>>,
    /// One call at a time, for an entry with `parallel: false`.
    pub turn: tokio::sync::Mutex<()>,
    /// From where relative paths of the entry are taken.
    base: PathBuf,
    entry: RwLock<Arc<ServerEntry>>,
    /// Why the entry cannot be started at all.
    faults: RwLock<Vec<String>>,
    enabled: AtomicBool,
    effective: AtomicBool,
    state: Mutex<State>,
    logs: Mutex<Logs>,
    followed: AtomicBool,
    orders: mpsc::UnboundedSender<Order>,
    in_use: AtomicUsize,
    last_used: AtomicU64,
    freed: Notify,
}

/// What a server is made from.
pub(crate) struct NewServer {
    pub name: ServerName,
    pub layer: Layer,
    pub entry: ServerEntry,
    pub faults: Vec<String>,
    pub base: PathBuf,
}

impl Server {
    /// A server at rest, with the task that will run it.
    pub fn new(core: &Arc<Core>, new: NewServer) -> Arc<Server> {
        let (orders, received) = mpsc::unbounded_channel();
        let server = Arc::new(Server {
            core: Arc::clone(core),
            digest: launch::digest(&new.entry),
            catalog: Catalog::new(new.name.clone()),
            subscriptions: Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
            base: new.base,
            enabled: AtomicBool::new(new.entry.enabled != Some(false)),
            entry: RwLock::new(Arc::new(new.entry)),
            faults: RwLock::new(new.faults),
            name: new.name,
            layer: new.layer,
            effective: AtomicBool::new(true),
            state: Mutex::new(State::Stopped),
            logs: Mutex::default(),
            followed: AtomicBool::new(false),
            orders,
            in_use: AtomicUsize::new(0),
            last_used: AtomicU64::new(0),
            freed: Notify::new(),
        });
        tokio::spawn(runner::run(Arc::clone(&server), received));
        server
    }

    pub fn entry(&self) -> Arc<ServerEntry> {
        Arc::clone(&self.entry.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes over an entry that launches the same thing.
    pub fn update_entry(self: &Arc<Self>, entry: ServerEntry, faults: Vec<String>) {
        let enabled = entry.enabled != Some(false);
        let changed = {
            let mut current = self.entry.write().unwrap_or_else(PoisonError::into_inner);
            let changed = **current != entry;
            *current = Arc::new(entry);
            let mut known = self.faults.write().unwrap_or_else(PoisonError::into_inner);
            let faults_changed = *known != faults;
            *known = faults;
            changed || faults_changed
        };
        self.enabled.store(enabled, Ordering::Relaxed);
        if changed {
            self.catalog.forget_items();
            self.changed(ChangeReason::Config);
        }
    }

    pub fn faults(&self) -> Vec<String> {
        self.faults.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// The switch of an entry whose file is not ours to write.
    pub fn switch(self: &Arc<Self>, enabled: bool) {
        if self.enabled.swap(enabled, Ordering::Relaxed) != enabled {
            self.changed(ChangeReason::Config);
        }
    }

    /// Whether no entry of a higher layer hides this one.
    pub fn is_effective(&self) -> bool {
        self.effective.load(Ordering::Relaxed)
    }

    pub fn set_effective(&self, effective: bool) {
        self.effective.store(effective, Ordering::Relaxed);
    }

    pub fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_state(self: &Arc<Self>, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed(ChangeReason::State);
    }

    pub fn changed(self: &Arc<Self>, reason: ChangeReason) {
        self.core.changes.mark(&self.core, self, reason);
    }

    /// How long a call may be silent.
    pub fn call_timeout(&self) -> Duration {
        Duration::from_millis(self.entry().timeout_ms.unwrap_or(limits::CALL_TIMEOUT_MS))
    }

    fn start_timeout(&self) -> Duration {
        self.entry()
            .start_timeout_ms
            .map_or_else(|| self.call_timeout(), Duration::from_millis)
    }

    /// The names of its tools begin with this.
    pub fn prefix(&self) -> String {
        self.core.settings().naming.prefix(&self.name)
    }

    /// The connection, when there is one at this moment.
    pub fn connected(&self) -> Option<Connection> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Ready { connection, .. } => Some(connection.clone()),
            _ => None,
        }
    }

    /// The connection, starting the server where that is due. A start that failed lately is not repeated.
    pub async fn connection(&self) -> Result<Connection, Error> {
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        let failed = match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Failed { failure, since, last }
                if *last || since.elapsed() < limits::RETRY_FAILED_AFTER =>
            {
                Some(failure.error.clone())
            }
            State::NeedsAuth { failure, since } if since.elapsed() < limits::RETRY_FAILED_AFTER => {
                Some(failure.error.clone())
            }
            _ => None,
        };
        match failed {
            Some(error) => Err(error.server(self.name.clone())),
            None => self.start().await,
        }
    }

    /// Starts the server, whatever its state was, and waits until that is settled.
    pub async fn start(&self) -> Result<Connection, Error> {
        if !self.is_enabled() {
            let error = Error::new(ErrorKind::TargetMismatch, format!("`{}` is disabled", self.name))
                .reason("disabled");
            return Err(error
                .hint("enable it with `mcp.enable`")
                .server(self.name.clone()));
        }
        if let Some(fault) = self.faults().first() {
            let error = Error::new(
                ErrorKind::ConfigBroken,
                format!("the entry of `{}` has a fault: {fault}", self.name),
            );
            return Err(error
                .hint("correct the entry in its file")
                .server(self.name.clone()));
        }
        let (reply, settled) = oneshot::channel();
        let _ = self.orders.send(Order::Start(reply));
        let outcome = settled.await.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::CallCancelled, "the server is being removed").by("stop"))
        });
        outcome.map_err(|error| error.server(self.name.clone()))
    }

    /// Stops the server now; calls in flight end.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        let _ = self.orders.send(Order::Stop(done));
        // An error means that its task is over, hence stopped.
        let _ = stopped.await;
    }

    /// Ends the server for good, as soon as the calls in flight are done.
    pub fn retire(&self) {
        let _ = self.orders.send(Order::Retire);
        self.freed.notify_one();
    }

    /// Marks the server as in use until the guard is dropped.
    pub fn in_use(self: &Arc<Self>) -> InUse {
        self.in_use.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    /// Keeps a line of its log, and sends it where somebody follows.
    pub fn log(&self, source: LogSource, level: LogLevel, text: &str) {
        let line = self
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(source, level, text);
        if self.followed.load(Ordering::Relaxed) {
            self.send_log(vec![line]);
        }
    }

    fn send_log(&self, lines: Vec<LogLine>) {
        for directory in self.core.open_directories() {
            self.core.sink.notify(Notification::Log(McpLog {
                directory,
                server: self.name.clone(),
                lines: lines.clone(),
                dropped: 0,
            }));
        }
    }

    /// The newest lines of its log and how many are not among them.
    pub fn log_lines(&self, limit: usize) -> (Vec<LogLine>, u64) {
        self.logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .last(limit)
    }

    /// Turns `mcp.log` on or off.
    pub fn follow(&self, followed: bool) {
        self.followed.store(followed, Ordering::Relaxed);
    }
}

/// Counts one use of a server.
pub(crate) struct InUse(Arc<Server>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.last_used.store(crate::env::now(), Ordering::Relaxed);
        if self.0.in_use.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.freed.notify_one();
        }
    }
}
