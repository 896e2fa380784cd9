//! One configured server: its entry, its state, its log and its catalog. A task of its own runs it.

mod env_file;
pub(crate) mod eras;
mod helper;
mod host;
pub(crate) mod in_host;
pub(crate) mod launch;
pub(crate) mod login;
pub(crate) mod login_shell;
mod logs;
mod network;
mod program;
mod runner;
pub(crate) mod secrets;
pub(crate) mod state;
pub(crate) mod trial;
pub(crate) mod veil;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use mcp::Connection;
use protocol::{
    ChangeReason, Dir, Error, ErrorKind, Layer, LogLevel, LogLine, LogSource, McpLog, Notification,
    ServerEntry, ServerName, Tier,
};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::catalog::Catalog;
use crate::consent::Gate;
use crate::consent::held::Held;
use crate::consent::ledger::Place;
use crate::core::Core;
use crate::limits;
use crate::model::lineage::{self, Lineage};
use login::Login;
use logs::Logs;
use runner::Order;
use state::{Failure, State};

/// A handle on one server; cheap to share.
pub(crate) struct Server {
    pub core: Arc<Core>,
    pub name: ServerName,
    pub layer: Layer,
    /// The real path of the project it belongs to; `None` for servers of the whole sidecar.
    pub root: Option<PathBuf>,
    /// The same, in the host's spelling.
    pub directory: Option<Dir>,
    /// The file of its entry.
    pub file: Option<PathBuf>,
    /// There is no entry, only a request for one or the memory of a refused one.
    pub is_empty: bool,
    /// Digest of the launch-relevant part of the entry.
    pub digest: String,
    pub catalog: Catalog,
    /// Resources the host subscribed to; they outlive reconnects.
    pub subscriptions: Mutex<BTreeSet<String>>,
    /// One change of the subscriptions at a time: each is a difference from what the server has confirmed.
    pub subscribing: tokio::sync::Mutex<()>,
    /// One call at a time, for an entry with `parallel: false`.
    pub turn: tokio::sync::Mutex<()>,
    /// From where relative paths of the entry are taken.
    pub base: PathBuf,
    entry: RwLock<Arc<ServerEntry>>,
    reading: RwLock<Reading>,
    enabled: AtomicBool,
    /// With what belongs to the entry of a project's file: neither is looked at without the other.
    gate: Mutex<(Gate, Option<Held>)>,
    /// What its last start did with the environment.
    environment: Mutex<Vec<String>>,
    pub login: Login,
    state: Mutex<State>,
    logs: Mutex<Logs>,
    followed: AtomicBool,
    orders: mpsc::UnboundedSender<Order>,
    in_use: AtomicUsize,
    last_used: AtomicU64,
    freed: Notify,
}

/// How an entry reads, in words for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// Why it cannot be started at all.
    pub faults: Vec<String>,
    /// Members that do nothing, since they are misspelt.
    pub slips: Vec<String>,
}

/// What a server is made from.
pub(crate) struct NewServer {
    pub name: ServerName,
    pub layer: Layer,
    pub root: Option<PathBuf>,
    pub directory: Option<Dir>,
    pub file: Option<PathBuf>,
    pub entry: ServerEntry,
    pub reading: Reading,
    pub base: PathBuf,
    pub enabled: bool,
    pub gate: Gate,
    /// What was agreed to of a project's file, where the gate is open.
    pub held: Option<Held>,
    pub is_empty: bool,
}

impl Server {
    /// A server at rest, with the task that will run it.
    pub fn new(core: &Arc<Core>, new: NewServer) -> Arc<Server> {
        let (orders, received) = mpsc::unbounded_channel();
        let server = Arc::new(Server {
            core: Arc::clone(core),
            digest: launch::digest_of(core, &new.name, &new.entry),
            catalog: Catalog::new(new.name.clone()),
            subscriptions: Mutex::default(),
            subscribing: tokio::sync::Mutex::new(()),
            turn: tokio::sync::Mutex::new(()),
            base: new.base,
            enabled: AtomicBool::new(new.enabled),
            gate: Mutex::new((new.gate, new.held)),
            environment: Mutex::default(),
            login: Login::default(),
            root: new.root,
            directory: new.directory,
            file: new.file,
            is_empty: new.is_empty,
            entry: RwLock::new(Arc::new(new.entry)),
            reading: RwLock::new(new.reading),
            name: new.name,
            layer: new.layer,
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
    pub fn update(
        self: &Arc<Self>,
        entry: ServerEntry,
        reading: Reading,
        enabled: bool,
        (gate, held): (Gate, Option<Held>),
    ) {
        let mut changed = {
            let mut current = self.entry.write().unwrap_or_else(PoisonError::into_inner);
            let changed = **current != entry;
            *current = Arc::new(entry);
            let mut known = self.reading.write().unwrap_or_else(PoisonError::into_inner);
            let reads_otherwise = *known != reading;
            *known = reading;
            changed || reads_otherwise
        };
        if changed {
            self.catalog.forget_items();
        }
        if self.enabled.swap(enabled, Ordering::Relaxed) != enabled {
            changed = true;
            if !enabled {
                // Calls in flight may finish.
                let _ = self.orders.send(Order::Rest);
                self.freed.notify_one();
            }
        }
        if changed {
            self.changed(ChangeReason::Config);
        }
        self.set_gate(gate, held);
    }

    pub fn gate(&self) -> Gate {
        self.guarded().0.clone()
    }

    /// What belongs to its entry of a project's file.
    pub fn held(&self) -> Option<Held> {
        self.guarded().1.clone()
    }

    fn guarded(&self) -> MutexGuard<'_, (Gate, Option<Held>)> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its entry comes from, or why it may not run now. What is read for a start is compared with what that says,
    /// so that it is what was agreed to.
    pub fn admitted(&self) -> Result<launch::Origin, Error> {
        let (gate, held) = self.guarded().clone();
        match self.refusal_by(&gate) {
            Some(refusal) => Err(refusal),
            None => Ok(self.origin_with(held)),
        }
    }

    /// Where its entry comes from.
    pub fn origin(&self) -> launch::Origin {
        self.origin_with(self.held())
    }

    fn origin_with(&self, held: Option<Held>) -> launch::Origin {
        launch::Origin {
            base: self.base.clone(),
            root: self.root.clone(),
            held,
        }
    }

    fn set_gate(self: &Arc<Self>, gate: Gate, held: Option<Held>) {
        let (before, _) = std::mem::replace(&mut *self.guarded(), (gate.clone(), held));
        if before == gate {
            return;
        }
        let is_outside = |gate: &Gate| matches!(gate, Gate::Outside { .. });
        if is_outside(&gate) {
            // Calls in flight may finish.
            let _ = self.orders.send(Order::Rest);
            self.freed.notify_one();
        } else if before.is_open() || (is_outside(&before) && !gate.is_open()) {
            // What nobody agrees to any more ends at once.
            let (done, _) = oneshot::channel();
            let _ = self.orders.send(Order::Stop(done));
        }
        let about_trust = before == Gate::NeedsTrust || gate == Gate::NeedsTrust;
        self.changed(if about_trust {
            ChangeReason::Trust
        } else if is_outside(&before) || is_outside(&gate) {
            ChangeReason::Config
        } else {
            ChangeReason::Pending
        });
    }

    pub fn needs_trust(&self) -> bool {
        self.gate() == Gate::NeedsTrust
    }

    /// Whether it shows in a directory.
    pub fn is_visible(&self, root: &Path) -> bool {
        self.root.as_deref().is_none_or(|own| own == root)
    }

    /// The directories it shows in, in the host's spelling.
    pub fn directories(&self) -> Vec<Dir> {
        match &self.directory {
            Some(directory) => vec![directory.clone()],
            None => self.core.open_directories(),
        }
    }

    /// Where its entry stands.
    pub fn place(&self) -> Place {
        Place {
            layer: self.layer,
            root: self.root.clone(),
            name: self.name.to_string(),
        }
    }

    /// Whose accepted definitions hold for it.
    pub fn lineage(&self) -> Lineage {
        Lineage {
            place: self.place(),
            launch: self.digest.clone(),
            program: lineage::program(&self.entry()),
        }
    }

    /// Whether it comes from a project, by file or by package.
    pub fn is_of_project(&self) -> bool {
        self.root.is_some()
    }

    /// How much of Pillion's environment it gets.
    pub fn inherit(&self) -> launch::Inherit {
        self.origin().inherit()
    }

    /// Why the entry cannot be started at all.
    pub fn faults(&self) -> Vec<String> {
        self.reading().faults
    }

    pub fn reading(&self) -> Reading {
        self.reading
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether it may run: switched on, and nothing stands before it.
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed) && self.gate().is_open()
    }

    /// The switch alone.
    pub fn is_switched_on(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// What its last start did with the environment, in sentences.
    pub fn environment(&self) -> Vec<String> {
        self.environment
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_environment(&self, notes: Vec<String>) {
        *self.environment.lock().unwrap_or_else(PoisonError::into_inner) = notes;
    }

    pub fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_state(self: &Arc<Self>, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed(ChangeReason::State);
    }

    /// Another reason why it needs a login, as long as it does not run.
    fn replace_login_failure(self: &Arc<Self>, failure: Failure) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(
            *state,
            State::Stopped | State::NeedsAuth { .. } | State::Failed { .. }
        ) {
            *state = State::NeedsAuth {
                failure,
                since: Instant::now(),
            };
        }
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
            State::Ready { connection, .. } if self.gate().is_open() => Some(connection.clone()),
            _ => None,
        }
    }

    /// What it says about its use, as long as that is what was accepted.
    pub fn instructions(&self) -> Option<String> {
        let instructions = self.connected()?.info().instructions.clone()?;
        // What the host itself offers is its own word. Of others nothing counts before it was compared.
        let is_accepted = in_host::is_in_host(&self.entry())
            || self
                .core
                .pins
                .last(&self.digest)
                .is_some_and(|book| book.accepts_instructions(&instructions));
        is_accepted.then_some(instructions)
    }

    /// The connection, starting the server where that is due and `by` may. A start that failed lately is not repeated.
    pub async fn connection(&self, by: Tier) -> Result<Connection, Error> {
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        let failed = match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Failed { failure, since, last }
                if *last || since.elapsed() < limits::RETRY_FAILED_AFTER =>
            {
                Some(failure.error.clone())
            }
            State::NeedsAuth { failure, since }
                if since.elapsed() < limits::RETRY_FAILED_AFTER && !self.has_new_login() =>
            {
                Some(failure.error.clone())
            }
            _ => None,
        };
        match failed {
            Some(error) => Err(error.server(self.name.clone())),
            None => self.start(by).await,
        }
    }

    /// Starts the server, whatever its state was, and waits until that is settled.
    pub async fn start(&self, by: Tier) -> Result<Connection, Error> {
        if let Some(error) = self.refusal() {
            return Err(error);
        }
        self.check_asked_by(by).await?;
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

    /// Why it may not run, if it may not.
    pub fn refusal(&self) -> Option<Error> {
        self.refusal_by(&self.gate())
    }

    /// The same for what stands behind its gate.
    pub fn refusal_by(&self, gate: &Gate) -> Option<Error> {
        let mismatch = |what: &str, reason: &str, hint: &str| {
            Error::new(ErrorKind::TargetMismatch, format!("`{}` {what}", self.name))
                .reason(reason)
                .hint(hint)
                .server(self.name.clone())
        };
        match gate {
            Gate::Open if self.is_switched_on() => None,
            Gate::Outside { reason, .. } if self.is_switched_on() => Some(mismatch(
                &format!("is not used: {reason}"),
                "profile",
                "choose another profile with `mcp.profile`, or name the server in the profile in `mcp.json`",
            )),
            Gate::Open | Gate::Outside { .. } => {
                Some(mismatch("is disabled", "disabled", "enable it with `mcp.enable`"))
            }
            Gate::Pending { .. } => Some(mismatch(
                "waits for a decision",
                "pending",
                "`mcp.pending` shows what is asked",
            )),
            Gate::Refused => Some(mismatch(
                "was refused",
                "disabled",
                "ask for it again, or switch on what stood there with `mcp.enable`",
            )),
            Gate::NeedsTrust => Some(mismatch(
                "does not exist",
                "unknown",
                "`mcp.status` lists the servers",
            )),
            Gate::Forbidden { reason } => Some(
                Error::new(
                    ErrorKind::Denied,
                    format!("`{}` is forbidden: {reason}", self.name),
                )
                .by("administrator")
                .server(self.name.clone()),
            ),
        }
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
        // In our own words nothing is told that a reference stood for.
        let text = match source {
            LogSource::Pillion => Cow::Owned(self.veil().text(text)),
            _ => Cow::Borrowed(text),
        };
        let line = self
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(source, level, &text);
        if self.followed.load(Ordering::Relaxed) {
            self.send_log(vec![line]);
        }
    }

    fn send_log(&self, lines: Vec<LogLine>) {
        for directory in self.directories() {
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
