//! A place of its own for each test: home, data folder, project, a clean environment, and the
//! promise that nothing is left running when the test is over.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::processes::{self, MARK, Process};
use super::scripted::StdioServer;
use super::{clock, matching};

pub struct TestEnv {
    dir: tempfile::TempDir,
    mark: String,
    vars: BTreeMap<String, String>,
    is_ordinary: bool,
}

impl TestEnv {
    pub fn new() -> TestEnv {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = tempfile::Builder::new()
            .prefix("pillion-it-")
            .tempdir()
            .expect("a temporary folder");
        for name in ["home", "data", "project", "bin", "tmp"] {
            fs::create_dir(dir.path().join(name)).expect("an empty folder");
        }
        keep_private(&dir.path().join("data"), 0o700);
        let mut env = TestEnv {
            dir,
            mark,
            vars: BTreeMap::new(),
            is_ordinary: false,
        };
        env.trap_openers();
        env.set("HOME", &env.home().to_string_lossy());
        env.set("PATH", &env.path_variable());
        env.set("LANG", "C.UTF-8");
        env
    }

    /// Programs that would open a page or a file in front of a person only leave a note here.
    fn trap_openers(&self) {
        for name in [
            "xdg-open",
            "open",
            "sensible-browser",
            "x-www-browser",
            "gio",
            "firefox",
        ] {
            let file = self.bin().join(name);
            let text = format!("#!/bin/sh\necho \"$@\" >> '{}'\n", self.opened_file().display());
            fs::write(&file, text).expect("a small file");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("mode can be set");
        }
    }

    fn opened_file(&self) -> PathBuf {
        self.dir.path().join("opened")
    }

    /// What was opened on its own, see [`TestEnv::trap_openers`].
    pub fn opened(&self) -> Vec<String> {
        fs::read_to_string(self.opened_file())
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// An empty folder, `{tmp}` of the cases.
    pub fn tmp(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    pub fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    pub fn path_variable(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        format!("{}:{path}", self.bin().display())
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.vars.insert(name.to_owned(), value.to_owned());
    }

    /// Instead of the clean environment.
    pub fn replace_vars(&mut self, vars: BTreeMap<String, String>) {
        self.vars = vars;
    }

    /// The user layer, as a person would have written it.
    pub fn write_config(&self, servers: &Value) {
        let text = serde_json::to_string_pretty(&json!({ "servers": servers })).expect("JSON");
        self.write_config_text(&text);
    }

    pub fn write_config_text(&self, text: &str) {
        let file = self.data().join("mcp.json");
        fs::write(&file, text).expect("the data folder can be written");
        keep_private(&file, 0o600);
    }

    /// A scripted stdio server with results laid over those of the plain one.
    pub fn plain_server(&self, name: &str, mcp: Value) -> StdioServer {
        StdioServer::plain(&self.bin(), name, mcp)
    }

    pub fn scripted_server(&self, name: &str, script: Value) -> StdioServer {
        StdioServer::create(&self.bin(), name, script)
    }

    /// Modes of files count for the binary also when root runs the tests.
    pub fn without_rights_of_root(&mut self) {
        self.is_ordinary = true;
    }

    /// The binary under test, with nothing of our own environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
        command.env_clear().envs(&self.vars);
        command.env("PILLION_HOME", self.data()).env(MARK, &self.mark);
        command.current_dir(self.project());
        #[cfg(target_os = "linux")]
        if self.is_ordinary {
            processes::drop_rights_over_files(&mut command);
        }
        command
    }

    /// Everything that runs on behalf of this test.
    pub fn processes(&self) -> Vec<Process> {
        processes::marked(&self.mark)
    }

    /// What runs on behalf of this test besides the binary itself: the servers it started.
    pub fn server_processes(&self) -> Vec<Process> {
        let is_server = |process: &Process| {
            process
                .command
                .iter()
                .any(|part| part == super::scripted::stdio::PLAY)
        };
        self.processes().into_iter().filter(is_server).collect()
    }

    /// Panics when something still runs after `limit`.
    #[track_caller]
    pub fn assert_nothing_left(&self, limit: Duration) {
        let gone = clock::poll(limit, || self.processes().is_empty().then_some(()));
        assert!(gone.is_some(), "still running: {:#?}", self.processes());
    }
}

/// As Pillion itself would have made it.
fn keep_private(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode can be set");
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        let gone = clock::poll(Duration::from_millis(1500), || {
            self.processes().is_empty().then_some(())
        });
        let left = self.processes();
        for process in &left {
            processes::signal(process.pid, libc::SIGKILL);
        }
        if gone.is_none() && !std::thread::panicking() {
            panic!(
                "the test is over and this still runs: {}",
                matching::cut(&format!("{left:?}"))
            );
        }
    }
}
