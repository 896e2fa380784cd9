//! What a scripted stdio server saw, one JSON object per line, readable while it runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::clock;

/// The reading side. Writing is done by the scripted process itself.
#[derive(Debug, Clone)]
pub struct ServerLog {
    path: PathBuf,
}

impl ServerLog {
    pub fn new(path: &Path) -> ServerLog {
        ServerLog {
            path: path.to_owned(),
        }
    }

    /// Every whole line so far. A line that is still being written does not count yet.
    pub fn entries(&self) -> Vec<Value> {
        let text = fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    fn named(&self, event: &str) -> Vec<Value> {
        self.entries()
            .into_iter()
            .filter(|entry| entry["event"] == event)
            .collect()
    }

    /// One per process that was started: `pid`, `args`, `cwd`, `env`.
    pub fn starts(&self) -> Vec<Value> {
        self.named("start")
    }

    pub fn last_pid(&self) -> Option<i32> {
        i32::try_from(self.starts().last()?["pid"].as_i64()?).ok()
    }

    /// The exact lines that came in.
    pub fn lines(&self) -> Vec<String> {
        let text = |entry: Value| entry["line"].as_str().unwrap_or_default().to_owned();
        self.named("received").into_iter().map(text).collect()
    }

    /// The messages that came in, those that a `Value` can hold.
    pub fn received(&self) -> Vec<Value> {
        self.lines()
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub fn requests(&self, method: &str) -> Vec<Value> {
        self.received()
            .into_iter()
            .filter(|message| message["method"] == method)
            .collect()
    }

    /// `eof` and signals in the order they were noticed.
    pub fn ends(&self) -> Vec<String> {
        let name = |entry: Value| entry["name"].as_str().unwrap_or_default().to_owned();
        self.named("end").into_iter().map(name).collect()
    }

    /// Processes that said goodbye themselves. Who is gone without that was killed.
    pub fn exits(&self) -> Vec<Value> {
        self.named("exit")
    }

    /// The first message from now or before that the test looks for.
    #[track_caller]
    pub fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        clock::eventually(what, || {
            self.received().into_iter().find(|message| wanted(message))
        })
    }

    #[track_caller]
    pub fn wait_request(&self, method: &str) -> Value {
        self.wait(&format!("`{method}` to reach the server"), |message| {
            message["method"] == method
        })
    }

    /// The reply to a question of the server's, by its id.
    #[track_caller]
    pub fn wait_reply(&self, id: &str) -> Value {
        self.wait(&format!("the reply to `{id}`"), |message| {
            message["id"] == json!(id) && message.get("method").is_none()
        })
    }
}
