//! `mcp.prefetch` and `mcp.lock`: packages fetched once, and named exactly.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use mcp::Target;
use protocol::{
    Dir, Error, ErrorKind, ExactPackage, Layer, LockAction, LockRow, LockStatus, McpLock, McpLockResult,
    McpPrefetch, McpPrefetchResult, PrefetchStatus, Prefetched, ServerName, ToolDrift,
};

use super::Manager;
use super::configuring::{blocking, dir};
use crate::config::store::Readers;
use crate::install::lock::{self, LockFile, Locked};
use crate::install::{self, Installed, Wish, wish};
use crate::limits;
use crate::progress::Work;
use crate::server::Server;
use crate::server::launch;
use crate::sink::RequestContext;

/// A server and what its lock says of it.
struct Candidate {
    server: Arc<Server>,
    wish: Option<Wish>,
    locked: Option<Locked>,
}

/// What one file is to say, by the server's name.
type Locks = Vec<(String, Locked)>;

impl Manager {
    /// `mcp.prefetch`: fetches packages of `npx` and `uvx`, so that a start needs no download; starts nothing.
    pub async fn prefetch(
        &self,
        request: &RequestContext,
        params: McpPrefetch,
    ) -> Result<McpPrefetchResult, Error> {
        let candidates = self
            .candidates(&params.directory, params.servers.as_deref())
            .await?;
        let is_named = params.servers.is_some();
        let token = params.work_done_token.as_ref();
        let work = Work::begin(
            &self.core.calls,
            &self.core.sink,
            token,
            "Fetching packages",
            true,
        )?;
        let update = params.update == Some(true);
        let rows = stream::iter(candidates)
            .filter(|candidate| std::future::ready(is_named || candidate.wish.is_some()))
            .map(|candidate| self.prefetched(candidate, update, &work))
            .buffered(limits::SIMULTANEOUS_FETCHES);
        tokio::select! {
            servers = rows.collect() => Ok(McpPrefetchResult { servers }),
            () = request.cancel.cancelled() => Err(cancelled()),
        }
    }

    async fn prefetched(&self, candidate: Candidate, update: bool, work: &Work<'_>) -> Prefetched {
        let mut row = Prefetched {
            server: candidate.server.name.clone(),
            status: PrefetchStatus::NotNeeded,
            package: None,
            message: None,
            hint: None,
        };
        let Some(wish) = &candidate.wish else {
            let entry = candidate.server.entry();
            row.message = Some(match entry.command.as_deref() {
                None => "it is reached by an address".to_owned(),
                Some(command) => format!("`{command}` is not `npx` or `uvx` with a package of a registry"),
            });
            return row;
        };
        let exact = candidate
            .locked
            .as_ref()
            .filter(|locked| locked.fits(wish))
            .map(Locked::exact);
        let here = self.installed(wish).await;
        let is_there = match (&here, &exact) {
            (Some(here), Some(exact)) => install::same(&here.package, exact),
            (Some(_), None) => !update,
            (None, _) => false,
        };
        if is_there {
            row.status = PrefetchStatus::Present;
            row.package = here.map(|here| here.package);
            return row;
        }
        match self.fetch(&candidate.server, wish, exact.as_ref(), work).await {
            Ok(installed) => {
                row.status = PrefetchStatus::Fetched;
                row.package = Some(installed.package);
            }
            Err(error) => {
                row.status = PrefetchStatus::Failed;
                row.hint = error.data.hint;
                row.message = Some(error.message);
            }
        }
        row
    }

    /// `mcp.lock`: which version of each package may start, and with which tools.
    pub async fn lock(&self, request: &RequestContext, params: McpLock) -> Result<McpLockResult, Error> {
        let action = params.action.unwrap_or(LockAction::Check);
        let candidates = self
            .candidates(&params.directory, params.servers.as_deref())
            .await?;
        let token = params.work_done_token.as_ref();
        let work = Work::begin(&self.core.calls, &self.core.sink, token, "Locking packages", true)?;
        let mut result = McpLockResult {
            servers: Vec::new(),
            written: Vec::new(),
        };
        let everything = async {
            let mut writes: BTreeMap<PathBuf, (Arc<Server>, Locks)> = BTreeMap::new();
            for candidate in candidates {
                let Some(path) = lock::path(&candidate.server) else {
                    continue;
                };
                if candidate.wish.is_none() && candidate.locked.is_none() {
                    continue;
                }
                let (row, locked) = self.locked(&candidate, action, &work).await;
                if let Some(locked) = locked {
                    let write = writes
                        .entry(path)
                        .or_insert_with(|| (Arc::clone(&candidate.server), Vec::new()));
                    write.1.push((row.server.to_string(), locked));
                }
                result.servers.push(row);
            }
            for (path, (server, locks)) in writes {
                result.written.push(dir(&path));
                write(path, &server, locks).await?;
            }
            if params.servers.is_none() {
                result.servers.extend(self.unused(&params.directory).await?);
            }
            Ok(())
        };
        tokio::select! {
            done = everything => done?,
            () = request.cancel.cancelled() => return Err(cancelled()),
        }
        Ok(result)
    }

    /// How one server stands, and the lock it gets where that is asked for.
    async fn locked(
        &self,
        candidate: &Candidate,
        action: LockAction,
        work: &Work<'_>,
    ) -> (LockRow, Option<Locked>) {
        let server = &candidate.server;
        let tools = self.fingerprints(server).await;
        let mut row = LockRow {
            server: server.name.clone(),
            status: LockStatus::Locked,
            locked: candidate.locked.as_ref().map(Locked::exact),
            installed: None,
            tools: BTreeMap::new(),
            message: String::new(),
            hint: None,
        };
        let Some(wish) = &candidate.wish else {
            row.status = LockStatus::Drifted;
            row.message = "its entry is not started with `npx` or `uvx` any more".to_owned();
            row.hint = Some("take it out of the lock file by hand, or restore the entry".to_owned());
            return (row, None);
        };
        let fitting = candidate.locked.as_ref().filter(|locked| locked.fits(wish));
        let fetches = match action {
            LockAction::Check => false,
            LockAction::Write => candidate.locked.is_none(),
            LockAction::Update => true,
        };
        let mut here = self.installed(wish).await;
        if fetches && (here.is_none() || action == LockAction::Update) {
            match self.fetch(server, wish, None, work).await {
                Ok(installed) => here = Some(installed),
                Err(error) => {
                    row.status = LockStatus::Failed;
                    row.message = error.message;
                    row.hint = error.data.hint;
                    return (row, None);
                }
            }
        }
        row.installed = here.as_ref().map(|here| here.package.clone());
        if fetches && let Some(here) = &here {
            let locked = Locked::new(wish, &here.package, tools);
            row.message = match &candidate.locked {
                Some(before) if before.version != locked.version => {
                    format!(
                        "{} {} instead of {}",
                        locked.package, locked.version, before.version
                    )
                }
                _ => format!("{} {}", locked.package, locked.version),
            };
            row.locked = Some(locked.exact());
            return (row, Some(locked));
        }
        compare(&mut row, candidate.locked.as_ref(), fitting, wish, tools.as_ref());
        // Tools that nobody knew when it was locked are known after its first start.
        let learns = action == LockAction::Write && row.status == LockStatus::Locked;
        let learned = fitting
            .filter(|locked| learns && locked.tools.is_none() && tools.is_some())
            .map(|locked| Locked {
                tools,
                ..locked.clone()
            });
        (row, learned)
    }

    /// Locks that name no server.
    async fn unused(&self, directory: &Dir) -> Result<Vec<LockRow>, Error> {
        let root = self.root(directory)?;
        let visible = self.layers.visible(&root);
        let mut files: Vec<(PathBuf, Option<PathBuf>, Layer)> = [Layer::User, Layer::Project]
            .map(|layer| {
                let file = self.home(&root, layer, "").path.with_file_name("mcp.lock.json");
                (file, (layer == Layer::Project).then(|| root.clone()), layer)
            })
            .to_vec();
        files.dedup_by(|a, b| a.0 == b.0);
        let mut rows = Vec::new();
        for (path, root, layer) in files {
            let file = blocking(move || lock::read(&path, root.as_deref())).await?;
            for (name, locked) in file.servers {
                let is_known = visible
                    .iter()
                    .any(|server| *server.name == *name && server.layer == layer);
                if !is_known {
                    rows.push(LockRow {
                        server: ServerName::from(name),
                        status: LockStatus::Unused,
                        locked: Some(locked.exact()),
                        installed: None,
                        tools: BTreeMap::new(),
                        message: "the lock names a server that has no entry".to_owned(),
                        hint: None,
                    });
                }
            }
        }
        Ok(rows)
    }

    async fn candidates(
        &self,
        directory: &Dir,
        names: Option<&[ServerName]>,
    ) -> Result<Vec<Candidate>, Error> {
        let root = self.root(directory)?;
        self.layers.freshen(&self.core);
        let servers: Vec<Arc<Server>> = match names {
            None => {
                let effective = self.layers.effective(&root);
                effective
                    .into_iter()
                    .filter(|server| server.is_enabled())
                    .collect()
            }
            Some(names) => {
                let found = names.iter().map(|name| self.server(directory, name));
                found.collect::<Result<_, _>>()?
            }
        };
        // What nobody agreed to is not fetched either: packages may run code while they are installed.
        if let Some(refusal) = servers
            .iter()
            .filter(|server| !server.gate().is_open())
            .find_map(|server| server.refusal())
        {
            return Err(refusal);
        }
        blocking(move || {
            let mut files: BTreeMap<PathBuf, LockFile> = BTreeMap::new();
            let mut candidates = Vec::new();
            for server in servers {
                let mut locked = None;
                if let Some(path) = lock::path(&server) {
                    if !files.contains_key(&path) {
                        files.insert(path.clone(), lock::read(&path, server.root.as_deref())?);
                    }
                    locked = files[&path].servers.get(&*server.name).cloned();
                }
                candidates.push(Candidate {
                    wish: wish(&server.entry()),
                    locked,
                    server,
                });
            }
            Ok(candidates)
        })
        .await
    }

    async fn installed(&self, wish: &Wish) -> Option<Installed> {
        let (core, wish) = (Arc::clone(&self.core), wish.clone());
        let look = tokio::task::spawn_blocking(move || install::installed(&core, &wish));
        look.await.ok().flatten()
    }

    async fn fingerprints(&self, server: &Server) -> Option<BTreeMap<String, String>> {
        let (core, digest) = (Arc::clone(&self.core), server.digest.clone());
        let look = tokio::task::spawn_blocking(move || core.pins.book(&digest).fingerprints());
        look.await.ok().flatten()
    }

    async fn fetch(
        &self,
        server: &Server,
        wish: &Wish,
        exact: Option<&ExactPackage>,
        work: &Work<'_>,
    ) -> Result<Installed, Error> {
        let entry = install::for_manager(&server.entry());
        let core = &self.core;
        let prepared = launch::prepare(core, &entry, &server.name, &server.origin()).await?;
        if let Some(reason) = core.forbidden(&server.name, &prepared) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("`{}` is forbidden: {reason}", server.name),
            )
            .by("administrator"));
        }
        let Target::Stdio(tools) = prepared.target else {
            return Err(install::failed("it is reached by an address"));
        };
        let say = |line: &str| work.message(&format!("{}: {line}", server.name));
        install::fetch(core, wish, &tools, exact, &say).await
    }
}

/// Says how a server stands to its lock.
fn compare(
    row: &mut LockRow,
    locked: Option<&Locked>,
    fitting: Option<&Locked>,
    wish: &Wish,
    tools: Option<&BTreeMap<String, String>>,
) {
    let Some(locked) = locked else {
        row.status = LockStatus::Unlocked;
        row.message = format!("`{}` is not locked yet", wish.spec);
        row.hint = Some("`mcp.lock` with action `write` locks it".to_owned());
        return;
    };
    let update = "`mcp.lock` with action `update` locks the entry as it is";
    if fitting.is_none() {
        row.status = LockStatus::Drifted;
        row.message = format!(
            "the entry asks for `{}`, and `{}` is locked",
            wish.spec, locked.spec
        );
        row.hint = Some(update.to_owned());
        return;
    }
    let exact = locked.exact();
    row.tools = locked.drift(tools);
    match &row.installed {
        Some(here) if here.version != exact.version => {
            row.status = LockStatus::Drifted;
            row.message = format!("{} is fetched, and {} is locked", here.version, exact.version);
            row.hint = Some("`mcp.prefetch` fetches what is locked".to_owned());
        }
        Some(here) if !install::same(here, &exact) => {
            row.status = LockStatus::Drifted;
            row.message = format!(
                "what is fetched of {} {} has another integrity",
                exact.name, exact.version
            );
            row.hint = Some("`mcp.prefetch` fetches it again and compares".to_owned());
        }
        _ if !row.tools.is_empty() => {
            row.status = LockStatus::Drifted;
            let changed = row
                .tools
                .iter()
                .map(|(tool, drift)| format!("{tool} {}", said(*drift)));
            row.message = format!("its tools differ: {}", changed.collect::<Vec<_>>().join(", "));
            row.hint = Some(update.to_owned());
        }
        None => {
            row.status = LockStatus::NotInstalled;
            row.message = format!("{} {} is not fetched here yet", exact.name, exact.version);
            row.hint = Some("`mcp.prefetch` fetches it".to_owned());
        }
        Some(_) => row.message = format!("{} {}", exact.name, exact.version),
    }
}

fn said(drift: ToolDrift) -> &'static str {
    match drift {
        ToolDrift::Added => "is new",
        ToolDrift::Removed => "is gone",
        ToolDrift::Changed => "changed",
    }
}

async fn write(path: PathBuf, server: &Server, locks: Locks) -> Result<(), Error> {
    let readers = match server.layer {
        Layer::Project => Readers::Everyone,
        _ => Readers::Person,
    };
    let root = server.root.clone();
    if let Some(root) = &root {
        super::gating::check_inside(&path, root)?;
    }
    blocking(move || lock::change(&path, root.as_deref(), readers, |file| file.servers.extend(locks))).await
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "cancelled by the host")
}
