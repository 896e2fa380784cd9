//! What everything in the manager shares: the world, the host, its wishes, and the books of what is in flight.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use protocol::{Dir, HostCapabilities, InitializationOptions, StartPolicy};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::catalog::names::Naming;
use crate::changes::Changes;
use crate::env::Env;
use crate::limits;
use crate::question::queue::Questions;
use crate::sampling::Samples;
use crate::server::eras::EraCache;
use crate::sink::HostSink;

/// What the host asked for in the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub client_name: String,
    pub capabilities: HostCapabilities,
    pub naming: Naming,
    pub message_bytes: usize,
    pub eager: bool,
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
            eager: options.start == Some(StartPolicy::Eager),
        }
    }
}

/// Shared by the manager and its servers; knows no server itself.
pub(crate) struct Core {
    pub env: Env,
    pub sink: Arc<dyn HostSink>,
    pub questions: Questions,
    pub samples: Samples,
    pub calls: Calls,
    pub changes: Changes,
    pub eras: EraCache,
    /// Servers that start at this moment; fair, so who is asked for first starts first.
    pub starts: Semaphore,
    /// Cancelled when the connection to the host is over.
    pub closing: CancellationToken,
    settings: OnceLock<Settings>,
    client: OnceLock<reqwest::Client>,
    directories: Mutex<Vec<Directory>>,
    sequence: Mutex<HashMap<String, u64>>,
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
            calls: Calls::default(),
            changes: Changes::default(),
            eras,
            starts: Semaphore::new(limits::SIMULTANEOUS_STARTS),
            closing: CancellationToken::new(),
            settings: OnceLock::new(),
            client: OnceLock::new(),
            directories: Mutex::default(),
            sequence: Mutex::default(),
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
