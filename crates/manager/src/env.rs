//! The only door to the clock, the environment and the folders of this machine.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Starts the watchdog on first use; `None` where there is none.
pub type WatchdogHook = Arc<dyn Fn() -> Option<Arc<OwnedFd>> + Send + Sync>;

/// What the manager may know of the world around it.
#[derive(Clone)]
pub struct Env {
    variables: Arc<Vec<(OsString, OsString)>>,
    home: PathBuf,
    data_dir: PathBuf,
    watchdog: Option<WatchdogHook>,
}

impl Env {
    /// The environment of this process.
    pub fn from_process() -> Env {
        let variables: Vec<_> = std::env::vars_os().collect();
        let home = etcetera::home_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let mut env = Env {
            variables: Arc::new(variables),
            data_dir: PathBuf::new(),
            home,
            watchdog: None,
        };
        env.data_dir = env.default_data_dir();
        env
    }

    /// The same, with another data folder.
    pub fn with_data_dir(mut self, data_dir: PathBuf) -> Env {
        self.data_dir = data_dir;
        self
    }

    /// The same, with children under a watchdog that outlives this process.
    pub fn with_watchdog(mut self, hook: WatchdogHook) -> Env {
        self.watchdog = Some(hook);
        self
    }

    /// `$PILLION_HOME`, else the platform's data folder.
    fn default_data_dir(&self) -> PathBuf {
        if let Some(dir) = self.folder_variable("PILLION_HOME") {
            return dir;
        }
        if cfg!(target_os = "macos") {
            return self.home.join("Library/Application Support/pillion");
        }
        if cfg!(windows) {
            let local = self.folder_variable("LOCALAPPDATA");
            return local
                .unwrap_or_else(|| self.home.join("AppData/Local"))
                .join("pillion");
        }
        let data = self
            .folder_variable("XDG_DATA_HOME")
            .filter(|dir| dir.is_absolute());
        data.unwrap_or_else(|| self.home.join(".local/share"))
            .join("pillion")
    }

    fn folder_variable(&self, name: &str) -> Option<PathBuf> {
        self.variable_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }

    /// Folder of Pillion's own files.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The person's home folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// All variables, as children inherit them.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// One variable.
    pub fn variable_os(&self, name: &str) -> Option<OsString> {
        self.variables
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    }

    /// One variable, when it is valid UTF-8.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variable_os(name).and_then(|value| value.into_string().ok())
    }

    /// The names of the proxies that are configured for HTTP.
    pub fn proxy_hosts(&self) -> Vec<String> {
        let names = [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ];
        let values = names.iter().filter_map(|name| self.variable(name));
        let hosts = values.filter_map(|value| {
            let value = if value.contains("://") {
                value
            } else {
                format!("http://{value}")
            };
            Some(url::Url::parse(&value).ok()?.host_str()?.to_owned())
        });
        hosts.collect()
    }

    /// Milliseconds since the epoch.
    pub fn now(&self) -> u64 {
        now()
    }

    /// The pipe of the watchdog, started on first use.
    pub fn watchdog(&self) -> Option<Arc<OwnedFd>> {
        self.watchdog.as_ref().and_then(|hook| hook())
    }

    /// `~` and `~/…` as the home folder; anything else as it is.
    pub fn expand_tilde(&self, path: &str) -> PathBuf {
        match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with(['/', '\\']) => self.home.join(&rest[1..]),
            _ => PathBuf::from(path),
        }
    }
}

/// Milliseconds since the epoch.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
