//! What everything in the manager shares: the world, the host, its wishes, and the books of what is in flight.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use protocol::{
    Dialect, Dir, HostCapabilities, InitializationOptions, ResourceTools, StartPolicy, ToolApproval,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::catalog::names::Naming;
use crate::changes::Changes;
use crate::config::expand;
use crate::consent::audit;
use crate::consent::grants::Grants;
use crate::consent::policy::{Candidate, Policy};
use crate::env::Env;
use crate::limits;
use crate::model::pins::Pins;
use crate::model::spill::Spills;
use crate::question::queue::Questions;
use crate::sampling::Samples;
use crate::server::eras::EraCache;
use crate::server::in_host::HostLines;
use crate::server::launch::Prepared;
use crate::server::secrets::Secrets;
use crate::sink::HostSink;

/// What the host asked for in the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub client_name: String,
    pub capabilities: HostCapabilities,
    pub naming: Naming,
    pub message_bytes: usize,
    pub eager: bool,
    pub tool_approval: ToolApproval,
    /// Characters of one model result.
    pub result_chars: usize,
    pub resource_tools: ResourceTools,
    pub dialect: Dialect,
    /// What keeps this host's logins apart from those of others.
    pub login_profile: Option<String>,
}

impl Settings {
    fn new(options: &InitializationOptions) -> Settings {
        Settings {
            client_name: options.client_name.clone().unwrap_or_else(|| "host".to_owned()),
            capabilities: options.capabilities.clone().unwrap_or_default(),
            naming: Naming::new(options.tool_names.as_ref()),
            message_bytes: options
                .max_message_bytes
                .map_or(limits::MESSAGE_BYTES, |bytes| bytes as usize),
            tool_approval: options.tool_approval.unwrap_or(ToolApproval::Host),
            eager: options.start == Some(StartPolicy::Eager),
            result_chars: options
                .max_result_chars
                .map_or(limits::RESULT_CHARS, |chars| chars as usize),
            resource_tools: options.resource_tools.unwrap_or(ResourceTools::Pillion),
            dialect: options.dialect.unwrap_or(Dialect::None),
            login_profile: options.profile.clone(),
        }
    }

    /// Under which account a login of an entry is kept: its own, apart for each host that wants that.
    pub fn account(&self, own: Option<&str>) -> Option<String> {
        match &self.login_profile {
            Some(profile) => Some(format!("{}~{profile}", own.unwrap_or_default())),
            None => own.map(str::to_owned),
        }
    }
}

/// Shared by the manager and its servers; knows no server itself.
pub(crate) struct Core {
    pub env: Env,
    pub sink: Arc<dyn HostSink>,
    pub questions: Questions,
    pub samples: Samples,
    pub host_lines: HostLines,
    pub secrets: Secrets,
    pub calls: Calls,
    pub changes: Changes,
    pub eras: EraCache,
    pub pins: Pins,
    pub spills: Spills,
    /// Servers that start at this moment; fair, so who is asked for first starts first.
    pub starts: Semaphore,
    /// Small files of our own are read and written one after another: forty servers that start together must not
    /// take forty threads, nor wait for each other's locks.
    pub disk: tokio::sync::Mutex<()>,
    /// The same for what nobody waits for: a list must not wait until the lists before it are kept.
    pub caches: tokio::sync::Mutex<()>,
    /// Cancelled when the connection to the host is over.
    pub closing: CancellationToken,
    settings: OnceLock<Settings>,
    client: OnceLock<reqwest::Client>,
    finder: OnceLock<reqwest::Client>,
    authorizer: OnceLock<auth::Authorizer>,
    directories: Mutex<Vec<Directory>>,
    sequence: Mutex<HashMap<String, u64>>,
    policy: Mutex<Policy>,
    pub grants: Grants,
}

/// An open directory: its real path, and the spelling that the host used first.
struct Directory {
    real: PathBuf,
    spelling: Dir,
}

impl Core {
    pub fn new(env: Env, sink: Arc<dyn HostSink>) -> Arc<Core> {
        let eras = EraCache::new(env.data_dir().join("cache/eras.json"));
        Arc::new(Core {
            questions: Questions::new(Arc::clone(&sink)),
            samples: Samples::default(),
            host_lines: HostLines::default(),
            secrets: Secrets::default(),
            calls: Calls::default(),
            changes: Changes::default(),
            eras,
            pins: Pins::new(env.data_dir()),
            spills: Spills::new(env.data_dir().join("results")),
            starts: Semaphore::new(limits::SIMULTANEOUS_STARTS),
            disk: tokio::sync::Mutex::new(()),
            caches: tokio::sync::Mutex::new(()),
            closing: CancellationToken::new(),
            settings: OnceLock::new(),
            client: OnceLock::new(),
            finder: OnceLock::new(),
            authorizer: OnceLock::new(),
            directories: Mutex::default(),
            sequence: Mutex::default(),
            policy: Mutex::default(),
            grants: Grants::new(env.data_dir().join("grants.json")),
            env,
            sink,
        })
    }

    /// Takes the host's wishes; only the first handshake counts.
    pub fn configure(&self, options: &InitializationOptions) {
        let _ = self.settings.set(Settings::new(options));
    }

    pub fn settings(&self) -> &Settings {
        self.settings
            .get_or_init(|| Settings::new(&InitializationOptions::default()))
    }

    /// The one HTTP client, made on first use: most configurations need none.
    pub fn client(&self) -> &reqwest::Client {
        self.client
            .get_or_init(|| mcp::client(&mcp::ClientOptions::default()))
    }

    /// The HTTP client of searches, which give up connecting sooner: what is found elsewhere is waiting.
    pub fn finder(&self) -> &reqwest::Client {
        self.finder.get_or_init(|| {
            mcp::client(&mcp::ClientOptions {
                connect_timeout: limits::FIND_CONNECT,
                ..mcp::ClientOptions::default()
            })
        })
    }

    /// The logins of the data folder, looked at on first use.
    pub fn authorizer(&self) -> &auth::Authorizer {
        self.authorizer.get_or_init(|| {
            let path = self.env.data_dir().join("mcp-auth.json");
            let factory = || mcp::client_builder(&mcp::ClientOptions::default());
            auth::Authorizer::new(path, Arc::new(factory), self.env.proxy_hosts())
        })
    }

    /// What a reference in an entry stands for: a variable, or a secret that was found out for entries of this folder.
    pub fn reference(&self, base: &Path, name: &str) -> Option<String> {
        match expand::source(name) {
            Some(_) => self.secrets.get(base, name),
            None => self.env.variable(name),
        }
    }

    fn directories(&self) -> MutexGuard<'_, Vec<Directory>> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a directory with its first use; answers with the spelling that the host used first, and whether it is new.
    pub fn open(&self, directory: &Dir) -> (Dir, bool) {
        let mut directories = self.directories();
        if let Some(open) = directories.iter().find(|open| open.spelling == *directory) {
            return (open.spelling.clone(), false);
        }
        let real = real_path(directory);
        if let Some(open) = directories.iter().find(|open| open.real == real) {
            return (open.spelling.clone(), false);
        }
        if directories.len() >= limits::DIRECTORIES {
            directories.remove(0);
        }
        directories.push(Directory {
            real,
            spelling: directory.clone(),
        });
        (directory.clone(), true)
    }

    /// Closes a directory when its workspace folder is removed.
    pub fn close_directory(&self, directory: &Dir) {
        let real = real_path(directory);
        self.directories().retain(|open| open.real != real);
    }

    /// The open directories, in the host's spelling.
    pub fn open_directories(&self) -> Vec<Dir> {
        self.directories()
            .iter()
            .map(|open| open.spelling.clone())
            .collect()
    }

    /// The open directories by real path, with the host's spelling.
    pub fn real_directories(&self) -> Vec<(PathBuf, Dir)> {
        self.directories()
            .iter()
            .map(|open| (open.real.clone(), open.spelling.clone()))
            .collect()
    }

    /// The real path of an open directory.
    pub fn root(&self, directory: &Dir) -> PathBuf {
        let directories = self.directories();
        let open = directories.iter().find(|open| open.spelling == *directory);
        open.map_or_else(|| real_path(directory), |open| open.real.clone())
    }

    /// Writes down what a person may want to look up, where that is wanted.
    pub fn audit(&self, event: &audit::Event<'_>) {
        audit::write(self.env.data_dir(), event);
    }

    fn policy(&self) -> MutexGuard<'_, Policy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_policy(&self, policy: Policy) {
        *self.policy() = policy;
    }

    pub fn policy_outdated(&self) -> bool {
        self.policy().outdated()
    }

    pub fn policy_files(&self) -> Vec<PathBuf> {
        self.policy().files().map(Path::to_owned).collect()
    }

    /// Why the administrator does not allow what is about to start, references filled in.
    pub fn forbidden(&self, name: &str, prepared: &Prepared) -> Option<String> {
        let (command, args, url) = match &prepared.target {
            mcp::Target::Stdio(target) => {
                let args: Vec<String> = target
                    .args
                    .iter()
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect();
                (
                    Some(target.command.to_string_lossy().into_owned()),
                    args.join(" "),
                    None,
                )
            }
            mcp::Target::Http(_) => (None, String::new(), prepared.address.clone()),
            mcp::Target::Relay(_) => (None, String::new(), None),
        };
        self.policy().forbids_candidate(Candidate {
            name,
            command: command.as_deref(),
            args: &args,
            url: url.as_deref(),
        })
    }

    /// The first open directory, else the home folder.
    pub fn default_directory(&self) -> Dir {
        self.directories().first().map_or_else(
            || Dir::from(self.env.home().display().to_string()),
            |open| open.spelling.clone(),
        )
    }

    /// The number of the next record of this name.
    pub fn next_sequence(&self, name: &str) -> u64 {
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        let number = sequence.entry(name.to_owned()).or_default();
        *number += 1;
        *number
    }
}

fn real_path(directory: &str) -> PathBuf {
    let path = Path::new(directory);
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
