//! Trying a server before it is saved: what is said, and that nothing stays.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HttpHost, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("testing":
        a_draft_is_tried, a_running_server_is_left_alone, stored_secrets_are_used, failures_are_results,
        a_silent_server_is_given_up, remote_drafts, in_the_terminal,
    )
}

/// Nothing runs, nothing is written, nobody was told anything.
fn nothing_stays(env: &TestEnv, host: &Host) {
    assert!(env.server_processes().is_empty(), "{:?}", env.server_processes());
    assert!(!env.data().join("mcp.json").exists());
    assert!(host.notifications("mcp.changed").is_empty());
    assert_eq!(host.must("mcp.status", json!({}))["servers"], json!([]));
}

fn a_draft_is_tried() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    let result = host.must("mcp.test", json!({ "entry": server.entry() }));
    assert_eq!(result["ok"], json!(true), "{result}");
    let message = result["message"].as_str().unwrap_or_default();
    let n_tools = result["tools"].as_array().map_or(0, Vec::len);
    assert!(n_tools > 0, "{result}");
    assert!(
        message.starts_with("Connected in ") && message.contains(&format!("s - {n_tools} tool")),
        "{message}"
    );
    assert!(result["info"].is_object() && result["tools"][0]["name"].is_string());
    nothing_stays(&env, &host);
}

fn a_running_server_is_left_alone() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    // Afterwards the number of tools is known.
    host.must("mcp.tools.list", json!({ "server": "srv" }));
    let before = host.status("srv");
    let written = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    let result = host.must(
        "mcp.test",
        json!({ "server": "srv", "set": { "env": { "EXTRA": "1" } } }),
    );
    assert_eq!(result["ok"], json!(true), "{result}");
    let after = host.status("srv");
    for member in ["state", "pid", "startedAt", "tools"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    assert_eq!(env.server_processes().len(), 1);
    let after = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    assert_eq!(after, written);
    host.must("mcp.enable", json!({ "server": "srv", "enabled": false }));
    let result = host.must("mcp.test", json!({ "server": "srv" }));
    assert_eq!(result["ok"], json!(true), "a switch that is off is no obstacle");
}

/// A form sends secrets back blank or masked; the stored ones are meant.
fn stored_secrets_are_used() {
    let env = TestEnv::new();
    let http = HttpHost::plain(&json!({}));
    let mut entry = http.entry();
    entry["headers"] = json!({ "x-api-key": "k-7" });
    env.write_config(&json!({ "web": entry }));
    let host = Host::start(&env);
    let params = json!({ "server": "web", "set": { "headers": { "x-api-key": "" } } });
    assert_eq!(host.must("mcp.test", params)["ok"], json!(true));
    let seen = http.log();
    assert!(!seen.is_empty());
    assert!(
        seen.iter()
            .all(|seen| seen.headers.get("x-api-key") == Some(&json!("k-7"))),
        "the stored key is sent"
    );
    let error = host
        .ask(
            "mcp.test",
            json!({ "entry": { "url": "http://127.0.0.1:9/", "headers": { "x-api-key": "********" } } }),
        )
        .expect_err("a mask is no secret");
    assert_eq!(error.kind(), "invalid_params");
}

fn failures_are_results() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let check = |params: Value, kind: &str, said: &str| {
        let result = host.must("mcp.test", params);
        assert_eq!(
            (&result["ok"], &result["fault"]["kind"]),
            (&json!(false), &json!(kind)),
            "{result}"
        );
        let message = result["message"].as_str().unwrap_or_default();
        assert!(
            message.starts_with("Test failed: ") && message.contains(said),
            "{message}"
        );
    };
    check(
        json!({ "entry": { "command": "no-such-program-anywhere" } }),
        "command_not_found",
        "command not found",
    );
    check(
        json!({ "entry": { "command": "sh", "args": ["-c", "echo broken >&2; exit 3"] } }),
        "exited",
        "broken",
    );
    check(
        json!({ "entry": { "command": "sh", "env": { "A_KEY": "${NOT_SET_ANYWHERE}" } } }),
        "unset_variable",
        "NOT_SET_ANYWHERE",
    );
    let neither = host.ask("mcp.test", json!({})).expect_err("nothing to test");
    assert_eq!(neither.kind(), "invalid_params");
    let unknown = host
        .ask("mcp.test", json!({ "server": "nope" }))
        .expect_err("unknown");
    assert_eq!(unknown.kind(), "target_mismatch");
    nothing_stays(&env, &host);
}

fn a_silent_server_is_given_up() {
    let env = TestEnv::new();
    let npx = env.bin().join("npx");
    std::fs::write(&npx, "#!/bin/sh\ntrap '' TERM\necho fetching >&2\nsleep 30\n").expect("a file");
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&npx, std::fs::Permissions::from_mode(0o755)).expect("mode can be set");
    let host = Host::start(&env);
    let begun = Instant::now();
    let result = host.must(
        "mcp.test",
        json!({ "entry": { "command": "npx", "args": ["-y", "x"] }, "timeoutMs": 2000 }),
    );
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(3500), "{took:?}");
    assert_eq!(result["message"], json!("Test failed: No tool sync within 2s"));
    assert_eq!(result["fault"]["kind"], json!("timed_out"));
    let hint = result["fault"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("downloading"), "{hint}");
    assert!(
        result["fault"]["stderrTail"]
            .as_str()
            .is_some_and(|tail| tail.contains("fetching"))
    );
    env_is_quiet(&env);
    nothing_stays(&env, &host);
}

/// Only the sidecar itself is left.
fn env_is_quiet(env: &TestEnv) {
    let quiet = crate::support::clock::poll(Duration::from_secs(2), || {
        let left = env.processes();
        let is_server = |part: &String| part == "sleep" || part.ends_with("/npx");
        (!left.iter().any(|process| process.command.iter().any(is_server))).then_some(())
    });
    assert!(quiet.is_some(), "{:?}", env.processes());
}

fn remote_drafts() {
    let env = TestEnv::new();
    let http = HttpHost::plain(&json!({}));
    let host = Host::start(&env);
    let result = host.must("mcp.test", json!({ "entry": http.entry() }));
    assert_eq!(result["ok"], json!(true), "{result}");
    let result = host.must(
        "mcp.test",
        json!({ "entry": { "url": "http://127.0.0.1:9/mcp" } }),
    );
    assert_eq!(result["fault"]["kind"], json!("connect_failed"), "{result}");
    nothing_stays(&env, &host);
}

fn in_the_terminal() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let run = |args: &[&str]| {
        let output = env.command().args(args).output().expect("the binary starts");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, stdout, stderr) = run(&["test", "--", &server.command]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("TOOL"), "{stdout}");
    assert!(stderr.starts_with("Connected in "), "{stderr}");
    let (code, _, stderr) = run(&["test", "--", "no-such-program-anywhere"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("error: Test failed: command not found"),
        "{stderr}"
    );
    // There is no entry whose log or members a hint could name.
    assert!(
        stderr.contains("hint: install it, or write its absolute path\n"),
        "{stderr}"
    );
    let (code, _, stderr) = run(&["test", "--", "sh", "-c", "exit 3"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("hint: run the command in a terminal"), "{stderr}");
    let (code, _, stderr) = run(&["test", "--", "python3 -m foo"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("hint: the command holds blanks"), "{stderr}");
    let (code, stdout, _) = run(&["test", "--json", "--", "no-such-program-anywhere"]);
    assert_eq!(code, Some(1));
    let result: Value = serde_json::from_str(&stdout).expect("one document");
    assert_eq!(result["ok"], json!(false));
    assert!(!env.data().join("mcp.json").exists());
    assert_eq!(run(&["test"]).0, Some(2));
}
