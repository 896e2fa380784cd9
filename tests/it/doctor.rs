//! What could keep servers from working: found without starting one, said plainly, repaired only when asked.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("doctor":
        a_healthy_machine, what_a_start_needs, entries_that_stand_badly, own_files_and_repairs, ports_and_proxies,
        runtimes_and_paths, servers_are_tried_when_asked, in_the_terminal,
    )
}

/// A program of the test's own `bin`.
pub fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a small file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("mode can be set");
}

/// Only the test's own programs, and those of the system that scripts need.
fn bare(env: &mut TestEnv) {
    for name in ["sh", "sleep", "cat"] {
        let from = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
        let from = from.iter().find(|from| from.exists()).expect("a system program");
        std::os::unix::fs::symlink(from, env.bin().join(name)).expect("a link");
    }
    let bin = env.bin().display().to_string();
    env.set("PATH", &bin);
}

fn look(host: &Host, params: Value) -> Vec<Value> {
    let result = host.must("mcp.doctor", params);
    result["checks"].as_array().cloned().unwrap_or_default()
}

fn problems(checks: &[Value]) -> Vec<&str> {
    let bad = checks.iter().filter(|check| check["level"] != "ok");
    bad.filter_map(|check| check["id"].as_str()).collect()
}

#[track_caller]
fn the<'c>(checks: &'c [Value], id: &str) -> &'c Value {
    let mut found = checks.iter().filter(|check| check["id"] == id);
    match (found.next(), found.next()) {
        (Some(check), None) => check,
        _ => panic!("not one `{id}`: {checks:#?}"),
    }
}

fn a_healthy_machine() {
    let mut env = TestEnv::new();
    bare(&mut env);
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let checks = look(&host, json!({}));
    assert_eq!(problems(&checks), Vec::<&str>::new(), "{checks:#?}");
    assert_eq!(the(&checks, "server")["server"], json!("srv"));
    assert!(env.server_processes().is_empty(), "nothing is started");
}

fn what_a_start_needs() {
    let mut env = TestEnv::new();
    bare(&mut env);
    env.write_config(&json!({
        "gone": { "command": "no-such-program-anywhere" },
        "keyed": { "command": "sh", "env": { "A_KEY": "${NOT_SET_ANYWHERE}" } },
        "lost": { "command": "sh", "cwd": "/no/such/folder" },
        "off": { "command": "no-such-program-either", "enabled": false },
    }));
    let host = Host::start(&env);
    let checks = look(&host, json!({}));
    let mut found = problems(&checks);
    found.sort_unstable();
    assert_eq!(
        found,
        ["command_missing", "launch_impossible", "variable_unset"],
        "{checks:#?}"
    );
    assert!(
        the(&checks, "variable_unset")["message"]
            .to_string()
            .contains("NOT_SET_ANYWHERE")
    );
    assert_eq!(the(&checks, "command_missing")["level"], json!("error"));
    let checks = look(&host, json!({ "server": "keyed" }));
    assert_eq!(problems(&checks), ["variable_unset"], "one server alone");
    let unknown = host
        .ask("mcp.doctor", json!({ "server": "nope" }))
        .expect_err("unknown");
    assert_eq!(unknown.kind(), "target_mismatch");
}

fn entries_that_stand_badly() {
    let mut env = TestEnv::new();
    bare(&mut env);
    env.write_config(&json!({
        "a": { "command": "sh", "args": ["-c", "exit"], "enviroment": {} },
        "b": { "command": "sh", "args": ["-c", "exit"] },
        "c": { "command": "sh", "timeoutMs": 5 },
        // It starts as little as `c` does, and is no double of it.
        "d": { "command": "sh", "timeoutMs": 5 },
    }));
    fs::create_dir(env.project().join(".pillion")).expect("a folder");
    fs::write(
        env.project().join(".pillion/mcp.json"),
        r#"{"servers": {"own": {"command": "sh"}}}"#,
    )
    .expect("a file");
    let host = Host::start(&env);
    let checks = look(&host, json!({}));
    let mut found = problems(&checks);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "entry_broken",
            "entry_broken",
            "entry_twice",
            "member_unknown",
            "needs_trust"
        ],
        "{checks:#?}"
    );
    let unknown = the(&checks, "member_unknown");
    assert_eq!(
        (&unknown["evidence"], &unknown["hint"]),
        (
            &json!(["enviroment"]),
            &json!("`enviroment` is not known; did you mean `env`?")
        )
    );
    env.write_config(&json!({ "e": { "comand": "sh" } }));
    let checks = look(&host, json!({ "server": "e" }));
    let said = the(&checks, "entry_broken")["message"].to_string();
    assert!(
        said.contains("`comand` is not known; did you mean `command`?"),
        "{said}"
    );
}

fn own_files_and_repairs() {
    let mut env = TestEnv::new();
    bare(&mut env);
    let data = env.data();
    fs::write(data.join("grants.json"), "{}").expect("a file");
    fs::set_permissions(data.join("grants.json"), fs::Permissions::from_mode(0o644))
        .expect("mode can be set");
    fs::write(data.join("trust.json"), "{ secret-text").expect("a file");
    fs::set_permissions(data.join("trust.json"), fs::Permissions::from_mode(0o600)).expect("mode can be set");
    let leftover = data.join(".mcp-x.tmp");
    let old = fs::File::create(&leftover).expect("a file");
    old.set_modified(std::time::SystemTime::now() - Duration::from_secs(7200))
        .expect("a time");
    // No process has this id: Linux gives none above 4,194,304.
    let peers = json!({ "endpoints": [{ "address": "127.0.0.1:1", "pid": 4_194_400 }] });
    let leave_peers = || {
        fs::write(data.join("peers.json"), peers.to_string()).expect("a file");
        fs::set_permissions(data.join("peers.json"), fs::Permissions::from_mode(0o600))
            .expect("mode can be set");
    };
    leave_peers();
    let host = Host::start(&env);
    // A sidecar tidies up once, when it starts.
    clock::eventually("no endpoint of a dead process", || {
        (!data.join("peers.json").exists()).then_some(())
    });
    leave_peers();
    let checks = look(&host, json!({}));
    let mut found = problems(&checks);
    found.sort_unstable();
    assert_eq!(
        found,
        ["file_broken", "file_leftover", "file_mode", "peers_stale"],
        "{checks:#?}"
    );
    assert!(
        !json!(checks).to_string().contains("secret-text"),
        "what a file holds is not told"
    );
    assert!(leftover.exists(), "looking repairs nothing");
    let repairs: Vec<&Value> = ["file_leftover", "file_mode", "peers_stale"]
        .map(|id| &the(&checks, id)["repair"]["id"])
        .to_vec();
    let repaired = look(&host, json!({ "repair": repairs }));
    for id in ["file_leftover", "file_mode", "peers_stale"] {
        assert_eq!(the(&repaired, id)["repaired"], json!(true), "{repaired:#?}");
    }
    assert_eq!(problems(&look(&host, json!({}))), ["file_broken"]);
    assert!(!leftover.exists() && !data.join("peers.json").exists());
    let mode = fs::metadata(data.join("grants.json"))
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn ports_and_proxies() {
    let mut env = TestEnv::new();
    bare(&mut env);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = closed.local_addr().expect("an address").port();
    drop(closed);
    env.set("http_proxy", &format!("http://me:pass-w0rd@127.0.0.1:{nobody}"));
    env.set("NO_PROXY", "a.example");
    env.set("no_proxy", "b.example");
    env.write_config(&json!({
        "web": { "url": "http://127.0.0.1:9/mcp", "oauth": { "callbackPort": port } },
    }));
    let host = Host::start(&env);
    let checks = look(&host, json!({}));
    let mut found = problems(&checks);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "callback_port_busy",
            "proxy_catches_loopback",
            "proxy_differs",
            "proxy_unreachable"
        ],
        "{checks:#?}"
    );
    let holder = the(&checks, "callback_port_busy")["evidence"].to_string();
    assert!(
        holder.contains(&format!("process {}", std::process::id())),
        "{holder}"
    );
    assert!(
        !json!(checks).to_string().contains("pass-w0rd"),
        "no password is told"
    );
}

fn runtimes_and_paths() {
    let mut env = TestEnv::new();
    bare(&mut env);
    script(&env.bin().join("node"), "echo v16.1.0");
    script(&env.bin().join("docker"), "echo broken >&2; exit 1");
    let elsewhere = env.tmp().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    script(&elsewhere.join("special"), "echo 1.0");
    // A login shell with another PATH, which also shows what it prints at its start.
    script(
        &env.bin().join("shell"),
        &format!(
            "PATH={}\nexport PATH\necho welcome\nshift\nexec /bin/sh \"$@\"",
            elsewhere.display()
        ),
    );
    let shell = env.bin().join("shell").display().to_string();
    env.set("SHELL", &shell);
    env.write_config(&json!({
        "here": { "command": "node", "args": ["x.js"] },
        "there": { "command": "special" },
    }));
    let host = Host::start(&env);
    let checks = look(&host, json!({}));
    let mut found = problems(&checks);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "path_short",
            "path_terminal_only",
            "runtime_broken",
            "runtime_old"
        ],
        "{checks:#?}"
    );
    assert!(
        the(&checks, "path_short")["message"]
            .to_string()
            .contains("special")
    );
    assert!(
        the(&checks, "path_terminal_only")["message"]
            .to_string()
            .contains("node")
    );
    // One that hangs is given up.
    script(&env.bin().join("uv"), "exec sleep 60");
    let begun = Instant::now();
    let checks = look(&host, json!({}));
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert!(
        json!(checks).to_string().contains("no answer within"),
        "{checks:#?}"
    );
}

fn servers_are_tried_when_asked() {
    let mut env = TestEnv::new();
    bare(&mut env);
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({
        "srv": server.entry(),
        "broken": { "command": "sh", "args": ["-c", "echo it is broken >&2; exit 3"] },
    }));
    let host = Host::start(&env);
    assert_eq!(problems(&look(&host, json!({}))), Vec::<&str>::new());
    let checks = look(&host, json!({ "start": true }));
    assert_eq!(problems(&checks), ["server_failed"], "{checks:#?}");
    let failed = the(&checks, "server_failed");
    assert_eq!(
        (&failed["server"], &failed["evidence"]),
        (&json!("broken"), &json!(["it is broken"]))
    );
    assert!(the(&checks, "server")["message"].to_string().contains("tool"));
    assert!(env.server_processes().is_empty(), "nothing stays");
}

fn in_the_terminal() {
    let mut env = TestEnv::new();
    bare(&mut env);
    let run = |args: &[&str]| {
        let output = env.command().args(args).output().expect("the binary starts");
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&*env.data().to_string_lossy(), "[DATA]");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["doctor"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(stderr, "Nothing is wrong\n");
    assert_eq!(stdout, "Files\n  ok       data folder [DATA]\n");
    env.write_config(&json!({ "gone": { "command": "no-such-program-anywhere" } }));
    fs::write(env.data().join("grants.json"), "{}").expect("a file");
    fs::set_permissions(env.data().join("grants.json"), fs::Permissions::from_mode(0o644))
        .expect("mode can be set");
    let (code, stdout, stderr) = run(&["doctor"]);
    assert_eq!(
        (code, &*stderr),
        (Some(1), "1 error, 1 warning; `pillion doctor --fix` repairs 1\n")
    );
    assert!(
        stdout.contains("  warning  others can read `[DATA]/grants.json` [file_mode]\n"),
        "{stdout}"
    );
    assert!(
        stdout.contains("  error    `gone`: command not found"),
        "{stdout}"
    );
    let (code, _, stderr) = run(&["doctor", "--fix"]);
    assert_eq!(code, Some(2), "nobody can be asked: {stderr}");
    assert!(stderr.contains("--yes"), "{stderr}");
    let (_, _, stderr) = run(&["doctor", "--fix", "--yes"]);
    assert!(
        stderr.contains("done: take the rights of others on `[DATA]/grants.json` away"),
        "{stderr}"
    );
    let (_, _, stderr) = run(&["doctor"]);
    assert_eq!(stderr, "1 error\n");
}
