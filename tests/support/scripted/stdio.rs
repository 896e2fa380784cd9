//! A scripted server as an entry can start it: an executable file that turns into this test binary
//! in the role of a server, with a script, a log, and a way to tell it something while it runs.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::log::ServerLog;

/// First argument that makes this binary play a part instead of running tests.
pub const PLAY: &str = "__play";

#[derive(Debug, Clone)]
pub struct StdioServer {
    /// What goes into `command`: the server itself.
    pub command: String,
    /// The same server behind a launcher that starts it as its own child and waits.
    pub wrapper: String,
    pub log: ServerLog,
    control: PathBuf,
}

impl StdioServer {
    /// `script` as `stdio_play` reads it: `start`, `on`, `rest`, `mcp`, `line_end`.
    pub fn create(dir: &Path, name: &str, script: Value) -> StdioServer {
        let log = dir.join(format!("{name}.log"));
        let control = dir.join(format!("{name}.control"));
        let mut script = script;
        script["log"] = json!(log);
        script["control"] = json!(control);
        let file = dir.join(format!("{name}.script.json"));
        fs::write(&file, script.to_string()).expect("the test folder can be written");
        fs::write(&control, "").expect("the test folder can be written");
        let command = launcher(dir, name, "child", &file);
        let wrapper = launcher(dir, &format!("{name}-wrapper"), "wrapper", &file);
        StdioServer {
            command,
            wrapper,
            log: ServerLog::new(&log),
            control,
        }
    }

    /// A plain server with results laid over (see [`super::plain`]).
    pub fn plain(dir: &Path, name: &str, mcp: Value) -> StdioServer {
        StdioServer::create(dir, name, json!({ "rest": "plain", "mcp": mcp }))
    }

    pub fn entry(&self) -> Value {
        json!({ "command": self.command })
    }

    /// Actions of a child script, done now by whoever runs (all instances read the same list).
    pub fn order(&self, actions: Value) {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(&self.control)
            .expect("control file exists");
        file.write_all(format!("{actions}\n").as_bytes())
            .expect("control file takes a line");
    }

    /// A message that the server sends on its own.
    pub fn push(&self, message: &Value) {
        self.order(json!([{ "out": message.to_string() }]));
    }
}

/// A shell script keeps its own name in the process list only for the instant before `exec`.
fn launcher(dir: &Path, name: &str, role: &str, script: &Path) -> String {
    let binary = std::env::current_exe().expect("the path of this binary");
    let path = dir.join(name);
    let text = format!(
        "#!/bin/sh\nexec {} {PLAY} {role} {} \"$@\"\n",
        quoted(&binary.to_string_lossy()),
        quoted(&script.to_string_lossy())
    );
    // Written elsewhere and renamed: a file that a fork of another test still holds open for writing
    // cannot be executed (ETXTBSY).
    let draft = dir.join(format!("{name}.draft"));
    fs::write(&draft, text).expect("the test folder can be written");
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("mode can be set");
    fs::rename(&draft, &path).expect("rename within a folder");
    path.to_string_lossy().into_owned()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A script of the cases' `child` list, sorted by when its items run.
pub fn child_script(child: &[Value], rest: Option<&str>, line_end: &str, mcp: &Map<String, Value>) -> Value {
    let on = child
        .iter()
        .position(|item| item.get("on").is_some())
        .unwrap_or(child.len());
    json!({
        "start": child[..on],
        "on": child[on..],
        "rest": rest,
        "line_end": line_end,
        "mcp": mcp,
    })
}
