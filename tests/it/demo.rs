//! `pillion demo`: every step comes out, with and without a person, and nothing is left behind.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::stories;
use crate::support::{TestEnv, processes};

pub fn stories() -> Vec<Trial> {
    stories!("demo": without_a_person, as_json, traced, killed_outright)
}

/// A place where also the demo's own temporary folder lies.
fn place() -> TestEnv {
    let mut env = TestEnv::new();
    let tmp = env.tmp().to_string_lossy().into_owned();
    env.set("TMPDIR", &tmp);
    env
}

fn command(env: &TestEnv, args: &[&str]) -> Command {
    let mut command = env.command();
    command.arg("demo").args(args).stdin(Stdio::null());
    command
}

fn run(env: &TestEnv, args: &[&str]) -> String {
    let output = command(env, args).output().expect("the binary starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0), "{text}");
    env.assert_nothing_left(Duration::from_secs(1));
    assert_eq!(
        fs::read_dir(env.tmp()).expect("a folder").count(),
        0,
        "files are left"
    );
    assert_eq!(
        fs::read_dir(env.data()).expect("a folder").count(),
        0,
        "the person's own data folder was used"
    );
    text
}

fn without_a_person() {
    let text = run(&place(), &[]);
    for expected in [
        "ready, stdio, revision 2025-11-25",
        "ready, streamable-http, revision 2026-07-28",
        "note 5 of 5",
        "Imported 5 notes",
        "Shared \"My welcome\" with team",
        "Lisbon on Saturday",
        "A sidecar sits behind the rider",
        "Summarize this note in one line",
        "kind `exited`",
        "needs_auth (needs authorization)",
        "May Pillion see your calendar?",
        "You are logged in",
        "ready, streamable-http, revision 2026-07-28, authorized",
        "seen with access token 1",
        "seen with access token 2",
        "stopped; its tokens are revoked and forgotten",
        "kind `needs_auth`",
        "Everything came out as expected; no process and no file is left.",
    ] {
        assert!(text.contains(expected), "`{expected}` is missing in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colours outside of a terminal");
}

fn as_json() {
    let text = run(&place(), &["--json"]);
    let document: Value = serde_json::from_str(&text).expect("one document");
    let titles: Vec<&str> = document["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|step| step["title"].as_str())
        .collect();
    assert_eq!(
        (titles.len(), titles.first(), titles.last()),
        (15, Some(&"Say hello"), Some(&"Leave"))
    );
}

fn traced() {
    let text = run(&place(), &["--trace"]);
    for expected in [
        "→ {\"id\":1,\"method\":\"initialize\"",
        "← {\"method\":\"mcp.question\"",
        "→ {\"method\":\"exit\"",
        // What a login looks like on the wire.
        "⇠ 401 WWW-Authenticate: Bearer resource_metadata=",
        "⇢ POST /register {\"client_name\":\"Pillion (pillion demo)\"",
        "⇢ POST /token grant_type=authorization_code&code=•••",
        "⇢ POST /token grant_type=refresh_token&refresh_token=•••",
        "⇢ POST /revoke token=•••",
        "Authorization: Bearer •••",
    ] {
        assert!(text.contains(expected), "`{expected}` is missing in\n{text}");
    }
    for secret in [
        "token\":\"",
        "token=",
        "code=",
        "verifier=",
        "Bearer •",
        "&state=",
    ] {
        let mut shown = text.lines().filter(|line| line.starts_with(['⇢', '⇠']));
        let open = shown.find(|line| line.split(secret).skip(1).any(|rest| !rest.starts_with('•')));
        assert_eq!(open, None, "something is not masked");
    }
}

fn killed_outright() {
    let env = place();
    let mut child = command(&env, &[])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    crate::support::clock::eventually("a server", || {
        let is_server = |process: &processes::Process| process.command.iter().any(|part| part == "stdio");
        env.processes().iter().any(is_server).then_some(())
    });
    processes::signal(i32::try_from(child.id()).expect("a small id"), libc::SIGKILL);
    child.wait().expect("an end");
    env.assert_nothing_left(Duration::from_secs(5));
}
