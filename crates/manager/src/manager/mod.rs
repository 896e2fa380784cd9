//! The handle on everything, and the life of the connection to one host.

mod allowing;
mod authorizing;
mod builtins;
mod bundling;
mod calling;
mod composing;
mod configuring;
mod consenting;
mod editing;
mod examining;
mod exchanging;
mod finding;
mod finding_tools;
mod foreign_files;
mod gating;
mod installing;
mod listing;
mod modelling;
mod noticing;
mod profiling;
mod reading;
mod restarting;
mod subscribing;
mod syncing;
mod trying;
mod watching;

use std::path::PathBuf;
use std::sync::Arc;

use protocol::{
    ClosedReason, Dir, Error, ErrorKind, InitializationOptions, KnownFiles, Layer, McpHostLayers,
    McpHostMessage, Method, NotificationName, PROTOCOL_VERSION, ServerCapabilitiesMcp, Tier,
};

use crate::config::layers::{Layers, user_file};
use crate::config::validate::REVISIONS;
use crate::core::Core;
use crate::env::Env;
use crate::limits;
use crate::server::Server;
use crate::sink::HostSink;
use crate::spelling::distance;

/// Everything a host can want from its MCP servers. Cheap to clone.
#[derive(Clone)]
pub struct Manager {
    core: Arc<Core>,
    layers: Arc<Layers>,
}

impl Manager {
    /// A manager at rest: nothing is read and nothing started before [`Manager::initialize`].
    pub fn new(env: Env, sink: Arc<dyn HostSink>) -> Manager {
        let core = Core::new(env, sink);
        let layers = Arc::new(Layers::new(&core));
        let (weak_core, weak_layers) = (Arc::downgrade(&core), Arc::downgrade(&layers));
        core.changes.set_lookup(Box::new(move |directory, name| {
            let root = weak_core.upgrade()?.root(directory);
            let layers = weak_layers.upgrade()?;
            match layers.find(&root, name) {
                Some(server) => Some((server, true)),
                None => layers.shown(&root, name).map(|server| (server, true)),
            }
        }));
        Manager { core, layers }
    }

    /// The handshake. Never fails over a broken file or folder: `mcp.status` says it.
    pub fn initialize(&self, options: InitializationOptions, folders: Vec<Dir>) -> ServerCapabilitiesMcp {
        self.core.configure(&options);
        for directory in options.directories.iter().flatten().chain(&folders) {
            self.core.open(directory);
        }
        self.layers.set_host(options.layers.unwrap_or_default());
        self.layers.set_profile(options.server_profile.as_deref());
        self.layers.reload(&self.core);
        self.start_eagerly(|_| true);
        self.notice_changes();
        let data_dir = self.core.env.data_dir();
        let path = |name: &str| Dir::from(data_dir.join(name).display().to_string());
        ServerCapabilitiesMcp {
            protocol_version: PROTOCOL_VERSION.to_owned(),
            methods: Method::ALL
                .iter()
                .filter(|method| method.available())
                .map(|method| method.name().to_owned())
                .collect(),
            notifications: NotificationName::ALL
                .iter()
                .map(|name| name.as_str().to_owned())
                .collect(),
            mcp_revisions: REVISIONS.iter().map(|&revision| revision.to_owned()).collect(),
            default_directory: self.core.default_directory(),
            files: KnownFiles {
                data_dir: Dir::from(data_dir.display().to_string()),
                user: Dir::from(user_file(&self.core).display().to_string()),
                auth: path("mcp-auth.json"),
                trust: path("trust.json"),
            },
        }
    }

    /// Starts what does not wait for its first use. All at once: the number that starts together is bounded elsewhere.
    fn start_eagerly(&self, concerns: impl Fn(&Server) -> bool) {
        let eager = self.core.settings().eager;
        let mut servers: Vec<Arc<Server>> = Vec::new();
        for (root, _) in self.core.real_directories() {
            servers.extend(self.layers.effective(&root));
        }
        if servers.is_empty() {
            servers = self.layers.effective(self.core.env.home());
        }
        servers.sort_by_key(Arc::as_ptr);
        servers.dedup_by(|a, b| Arc::ptr_eq(a, b));
        for server in servers.into_iter().filter(|server| concerns(server)) {
            let autostart = server.entry().autostart;
            if server.is_enabled() && (autostart == Some(true) || (eager && autostart != Some(false))) {
                // A failure shows in the status.
                tokio::spawn(async move { drop(server.connection(Tier::Local).await) });
            }
        }
    }

    /// The world as this manager sees it.
    pub fn env(&self) -> &Env {
        &self.core.env
    }

    /// Whether the host has a directory open.
    pub fn is_open(&self, directory: &Dir) -> bool {
        let root = self.core.root(directory);
        self.core.real_directories().iter().any(|(open, _)| *open == root)
    }

    /// The directory that serves where none is named.
    pub fn default_directory(&self) -> Dir {
        self.core.default_directory()
    }

    /// Workspace folders came or went.
    pub fn folders_changed(&self, added: Vec<Dir>, removed: Vec<Dir>) {
        for directory in &removed {
            self.core.close_directory(directory);
        }
        for directory in &added {
            self.core.open(directory);
        }
        self.layers.freshen(&self.core);
        self.tell_roots();
    }

    /// The host's entries are others now. What launches the same thing is not touched.
    pub fn host_layers(&self, params: McpHostLayers) {
        self.layers.set_host(params.layers);
        let reloaded = self.layers.reload(&self.core);
        self.start_eagerly(|server| {
            let mut begun = reloaded.added.iter().chain(&reloaded.changed);
            server.layer == Layer::Host && begun.any(|name| *name == server.name)
        });
    }

    /// A server that the host implements says something. An error: nobody listens to it.
    pub fn host_message(&self, params: &McpHostMessage) -> Result<(), Error> {
        self.core.host_lines.take(params)
    }

    /// The same of a message that was too large to be read; `head` and `tail` are its ends.
    pub fn host_message_too_large(&self, connection: u64, head: &[u8], tail: &[u8]) {
        self.core.host_lines.take_oversize(connection, head, tail);
    }

    /// Opens a directory with its first use; answers with the spelling that the host used first.
    fn open(&self, directory: &Dir) -> Dir {
        let (spelling, is_new) = self.core.open(directory);
        if is_new {
            self.layers.freshen(&self.core);
            self.tell_roots();
        }
        spelling
    }

    /// Opens a directory; answers with its real path.
    fn root(&self, directory: &Dir) -> Result<PathBuf, Error> {
        let spelling = self.open(check_directory(directory)?);
        Ok(self.core.root(&spelling))
    }

    /// The open directories are the roots that servers may ask for.
    fn tell_roots(&self) {
        if self.core.settings().capabilities.roots == Some(true) {
            for server in self.layers.all() {
                if let Some(connection) = server.connected() {
                    connection.roots_changed();
                }
            }
        }
    }

    /// Ends everything: questions closed, calls answered, children stopped. Takes at most [`limits::SHUTDOWN`].
    pub async fn shutdown(&self) {
        self.core.closing.cancel();
        self.core.questions.end(None, &ClosedReason::Shutdown);
        let servers = self.layers.all();
        let stops: Vec<_> = servers
            .into_iter()
            .map(|server| tokio::spawn(async move { server.stop().await }))
            .collect();
        let all = async {
            for stop in stops {
                // A task that panicked has no server any more.
                let _ = stop.await;
            }
            self.core.eras.flush().await;
        };
        if tokio::time::timeout(limits::SHUTDOWN, all).await.is_err() {
            tracing::warn!("not every server ended in time");
        }
        self.core.spills.end();
        // Lists that are still being kept: a command line ends right after its one request.
        let _ = tokio::time::timeout(limits::LAST_WRITES, self.core.caches.lock()).await;
    }

    /// The server of a name, as seen from a directory.
    fn server(&self, directory: &Dir, name: &str) -> Result<Arc<Server>, Error> {
        let root = self.root(directory)?;
        self.layers.freshen_soon(&self.core);
        if let Some(server) = self.layers.find(&root, name) {
            return Ok(server);
        }
        // It may have been written a moment ago, by an editor or another process.
        self.layers.freshen(&self.core);
        self.layers
            .find(&root, name)
            .ok_or_else(|| self.unknown(&root, name))
    }

    fn unknown(&self, root: &std::path::Path, name: &str) -> Error {
        let names: Vec<String> = self
            .layers
            .effective(root)
            .iter()
            .map(|server| server.name.to_string())
            .collect();
        Error::new(ErrorKind::TargetMismatch, format!("there is no server `{name}`"))
            .reason("unknown")
            .candidates(near(name, names))
            .hint("`mcp.status` lists the servers")
            .server(name)
    }

    /// The server of a name in a layer, for changes to its entry. A person may change what is not trusted.
    fn server_in(&self, directory: &Dir, name: &str, layer: Option<Layer>) -> Result<Arc<Server>, Error> {
        let root = self.root(directory)?;
        self.layers.freshen(&self.core);
        let server = match layer {
            None => self.layers.shown(&root, name),
            Some(layer) => self.layers.in_layer(&root, name, layer),
        };
        server.ok_or_else(|| self.unknown(&root, name))
    }
}

/// Directories are absolute paths, never URIs.
fn check_directory(directory: &Dir) -> Result<&Dir, Error> {
    if std::path::Path::new(&**directory).is_absolute() {
        return Ok(directory);
    }
    Err(Error::new(
        ErrorKind::InvalidParams,
        format!("`{directory}` is no absolute path"),
    )
    .path("/directory")
    .expected("an absolute path, not a `file:` URI"))
}

/// The names nearest to a misspelt one, at most five; all of them when none is near.
fn near(name: &str, mut names: Vec<String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let score = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        if candidate.contains(&wanted) || wanted.contains(&candidate) {
            0
        } else {
            distance(&candidate, &wanted)
        }
    };
    names.sort_by_key(|candidate| score(candidate));
    let close: Vec<String> = names
        .iter()
        .filter(|candidate| score(candidate) <= 1 + name.chars().count() / 3)
        .cloned()
        .collect();
    let mut best = if close.is_empty() { names } else { close };
    best.truncate(5);
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_first() {
        let names = || ["github", "filesystem", "git"].map(str::to_owned).to_vec();
        assert_eq!(near("gihub", names()), ["github"]);
        assert_eq!(near("xyzzy", names()).len(), 3);
    }
}
