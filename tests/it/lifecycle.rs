//! Servers come and go: lazily, eagerly, by order, by crash, and not at all with a reason.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::handshake::options;
use crate::stories;
use crate::support::{Host, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("lifecycle":
        lazy_by_default, eager_when_asked, autostart_of_one, start_stop_restart, stop_ends_calls,
        crash_is_recovered, crash_loop_ends, no_reconnect_when_told, command_not_found, exits_with_a_reason,
        noise_before_death, unset_variable, start_has_a_limit, unknown_server, disabled_server,
        records_are_whole_and_ordered, a_bad_entry_harms_no_other, runs_in_its_own_group,
    )
}

fn lazy_by_default() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let record = host.status("srv");
    assert_eq!(
        (&record["state"], &record["layer"]),
        (&json!("stopped"), &json!("user"))
    );
    assert_eq!(server.log.starts().len(), 0, "a status starts nothing");
    assert!(host.call("srv", "echo", json!({})).is_ok());
    assert_eq!(host.status("srv")["state"], "ready");
    assert_eq!(server.log.starts().len(), 1);
}

fn eager_when_asked() {
    let env = TestEnv::new();
    let servers: Vec<_> = (0..3)
        .map(|number| env.plain_server(&format!("s{number}"), json!({})))
        .collect();
    let off = env.plain_server("off", json!({}));
    let mut entries: serde_json::Map<String, Value> = servers
        .iter()
        .enumerate()
        .map(|(number, server)| (format!("s{number}"), server.entry()))
        .collect();
    entries.insert(
        "off".to_owned(),
        json!({ "command": off.command, "enabled": false }),
    );
    env.write_config(&Value::Object(entries));
    let host = Host::start_with(&env, options(json!({ "start": "eager" })));
    for name in ["s0", "s1", "s2"] {
        host.wait_state(name, "ready");
    }
    assert_eq!(off.log.starts().len(), 0);
}

fn autostart_of_one() {
    let env = TestEnv::new();
    let (one, two) = (
        env.plain_server("one", json!({})),
        env.plain_server("two", json!({})),
    );
    env.write_config(&json!({ "one": { "command": one.command, "autostart": true }, "two": two.entry() }));
    let host = Host::start(&env);
    host.wait_state("one", "ready");
    assert_eq!(two.log.starts().len(), 0);
}

fn start_stop_restart() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(record["state"], "ready");
    assert_eq!(
        record["connection"],
        json!({ "transport": "stdio", "protocolVersion": "2025-11-25", "era": "legacy" })
    );
    assert_eq!(record["pid"], json!(server.log.last_pid()));
    assert!(record["startedAt"].is_i64(), "{record}");
    assert_eq!(
        host.start_server("srv")["pid"],
        record["pid"],
        "starting twice is starting once"
    );
    let restarted = host.must("mcp.restart", json!({ "server": "srv" }))["server"].clone();
    assert_eq!(restarted["state"], "ready");
    assert_ne!(restarted["pid"], record["pid"]);
    let stopped = host.must("mcp.stop", json!({ "server": "srv" }))["server"].clone();
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(stopped.get("pid"), None);
    assert!(env.server_processes().is_empty(), "stop answers when it is gone");
    // Stopped by order, started by use.
    assert!(host.call("srv", "echo", json!({})).is_ok());
}

fn stop_ends_calls() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$none": true } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let call = host.send_call("srv", "echo", json!({}));
    server.log.wait_request("tools/call");
    host.must("mcp.stop", json!({ "server": "srv" }));
    let error = call.wait().expect_err("its server is stopped");
    assert_eq!(
        (error.code, error.kind(), &error.data["by"]),
        (-32055, "call_cancelled", &json!("stop"))
    );
}

fn crash_is_recovered() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call:die": { "$exit": 7 } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let first = host.start_server("srv")["pid"].clone();
    let error = host
        .call("srv", "die", json!({}))
        .expect_err("the server dies over it");
    // Two readings are fair: the tool is unknown to the list, or the server was asked and died.
    if error.kind() == "not_found" {
        server.order(json!([{ "exit": 7 }]));
    } else {
        assert_eq!(
            (error.code, error.kind(), &error.data["exitCode"]),
            (-32055, "exited", &json!(7))
        );
    }
    let waiting = host.wait_notification("mcp.changed", |params| params["status"].get("retry").is_some());
    assert_eq!(waiting["status"]["state"], "connecting");
    assert_eq!(waiting["status"]["retry"]["attempt"], 1);
    let ready = host.wait_notification("mcp.changed", |params| {
        params["status"]["state"] == "ready" && params["status"]["pid"] != first
    });
    assert_eq!(ready["status"].get("retry"), None);
    assert!(host.call("srv", "echo", json!({})).is_ok());
}

fn crash_loop_ends() {
    let env = TestEnv::new();
    let script = json!({ "on": [{ "on": "tools/list", "do": ["answer", { "exit": 9 }] }], "rest": "plain" });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.ask("mcp.start", json!({ "server": "srv" }))
        .expect("the outcome is a result");
    let last = host.wait_state("srv", "error");
    assert_eq!(last["error"]["exitCode"], 9, "{last}");
    assert_eq!(last.get("retry"), None);
    let n_starts = server.log.starts().len();
    assert!((3..=8).contains(&n_starts), "{n_starts} starts");
    assert!(env.server_processes().is_empty());
    // A person's order begins again.
    host.ask("mcp.start", json!({ "server": "srv" }))
        .expect("the outcome is a result");
    assert!(server.log.starts().len() > n_starts);
}

fn no_reconnect_when_told() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": { "command": server.command, "reconnect": { "enabled": false } } }));
    let host = Host::start(&env);
    host.start_server("srv");
    server.order(json!([{ "err": "out of luck" }, { "exit": 4 }]));
    let record = host.wait_state("srv", "error");
    let error = &record["error"];
    assert_eq!(
        (&error["kind"], &error["exitCode"]),
        (&json!("exited"), &json!(4))
    );
    assert!(
        error["stderrTail"]
            .as_str()
            .is_some_and(|tail| tail.contains("out of luck")),
        "{error}"
    );
    assert_eq!(server.log.starts().len(), 1);
}

fn command_not_found() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "no-such-cmd-xyz", "args": ["-y"] } }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(record["state"], "error");
    assert_eq!(record["error"]["kind"], "command_not_found");
    assert!(record["error"]["hint"].is_string(), "{record}");
    let error = host.call("srv", "echo", json!({})).expect_err("it does not run");
    assert_eq!((error.code, error.kind()), (-32055, "command_not_found"));
    let candidates = error.data["candidates"].as_array().expect("where was looked");
    let bin = env.bin().to_string_lossy().into_owned();
    assert!(
        candidates
            .iter()
            .any(|one| one.as_str().is_some_and(|one| one.starts_with(&bin))),
        "{candidates:?}"
    );
}

fn exits_with_a_reason() {
    let env = TestEnv::new();
    let script = json!({ "start": [{ "err": "Error: ACME_TOKEN is not set" }, { "exit": 3 }] });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    let error = &record["error"];
    assert_eq!(
        (&record["state"], &error["kind"], &error["exitCode"]),
        (&json!("error"), &json!("exited"), &json!(3))
    );
    assert!(
        error["stderrTail"]
            .as_str()
            .is_some_and(|tail| tail.contains("ACME_TOKEN")),
        "{error}"
    );
    let error = host.call("srv", "echo", json!({})).expect_err("it does not run");
    assert_eq!(
        (error.code, error.kind(), &error.data["exitCode"]),
        (-32055, "exited", &json!(3))
    );
    assert!(
        error.data["stderrTail"]
            .as_str()
            .is_some_and(|tail| tail.contains("ACME_TOKEN")),
        "{}",
        error.data
    );
}

/// Some say on stdout why they end.
fn noise_before_death() {
    let env = TestEnv::new();
    let script = json!({ "start": [{ "out": "Usage: srv --token TOKEN" }, { "exit": 2 }] });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(record["error"]["exitCode"], 2);
    assert!(
        record["error"].to_string().contains("Usage: srv --token TOKEN"),
        "{}",
        record["error"]
    );
}

fn unset_variable() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let entry =
        json!({ "command": server.command, "env": { "T": "${NOPE_NOT_SET}", "U": "${NOR_THIS:-fine}" } });
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["error"]["kind"]),
        (&json!("error"), &json!("unset_variable"))
    );
    assert!(
        record["issues"].to_string().contains("not set: NOPE_NOT_SET"),
        "{record}"
    );
    let error = host.call("srv", "echo", json!({})).expect_err("it does not run");
    assert_eq!((error.code, error.kind()), (-32054, "unset_variable"));
    assert_eq!(error.data["names"], json!(["NOPE_NOT_SET"]));
    assert_eq!(server.log.starts().len(), 0);
}

fn start_has_a_limit() {
    let env = TestEnv::new();
    let server = env.scripted_server("srv", json!({}));
    env.write_config(&json!({ "srv": { "command": server.command, "startTimeoutMs": 1000 } }));
    let host = Host::start(&env);
    let start = Instant::now();
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["error"]["kind"]),
        (&json!("error"), &json!("timed_out")),
        "{record}"
    );
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    clock::eventually("the silent server to be stopped", || {
        env.server_processes().is_empty().then_some(())
    });
}

fn unknown_server() {
    let env = TestEnv::new();
    env.write_config(&json!({ "github": { "command": "x" } }));
    let host = Host::start(&env);
    for (method, params) in [
        ("mcp.start", json!({ "server": "githib" })),
        ("mcp.tool.call", json!({ "server": "githib", "name": "t" })),
        ("mcp.logs", json!({ "server": "githib" })),
        ("mcp.stop", json!({ "server": "githib" })),
    ] {
        let error = host.ask(method, params).expect_err(method);
        assert_eq!(
            (error.code, error.kind()),
            (-32051, "target_mismatch"),
            "{method}"
        );
        assert_eq!(error.data["reason"], "unknown", "{method}");
        assert_eq!(error.data["candidates"], json!(["github"]), "{method}");
    }
    let status = host.must("mcp.status", json!({ "server": "githib" }));
    assert_eq!(status["servers"], json!([]));
}

fn disabled_server() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": { "command": server.command, "enabled": false } }));
    let host = Host::start(&env);
    assert_eq!(host.status("srv")["state"], "disabled");
    let error = host
        .ask("mcp.start", json!({ "server": "srv" }))
        .expect_err("it is disabled");
    assert_eq!(
        (error.code, error.kind(), &error.data["reason"]),
        (-32051, "target_mismatch", &json!("disabled"))
    );
    let page = host.must("mcp.tools.list", json!({}));
    assert_eq!(page["items"], json!([]));
    assert_eq!(server.log.starts().len(), 0);
    let written = host.must("mcp.enable", json!({ "server": "srv", "enabled": true }));
    assert_eq!(written["written"], true);
    host.wait_state("srv", "ready");
}

fn records_are_whole_and_ordered() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": { "command": server.command, "label": "The server" } }));
    let host = Host::start(&env);
    host.start_server("srv");
    host.wait_state("srv", "ready");
    host.must("mcp.stop", json!({ "server": "srv" }));
    host.wait_state("srv", "stopped");
    let mut last = 0;
    let changes = host.notifications("mcp.changed");
    // Without a server it speaks of the directory as a whole.
    for params in changes.iter().filter(|params| params.get("server").is_some()) {
        assert_eq!(
            params["directory"],
            json!(env.project()),
            "the spelling that the host used"
        );
        let record = &params["status"];
        assert_eq!(
            (&record["name"], &record["label"]),
            (&json!("srv"), &json!("The server"))
        );
        assert!(
            record["source"].is_string() && record["effective"] == true,
            "{record}"
        );
        let seq = record["seq"].as_u64().expect("a number");
        assert!(seq > last, "{seq} after {last}");
        last = seq;
    }
    assert!(last > 0, "something was told");
}

fn a_bad_entry_harms_no_other() {
    let env = TestEnv::new();
    let server = env.plain_server("good", json!({}));
    env.write_config(&json!({
        "good": server.entry(),
        "both": { "command": "x", "url": "http://localhost/" },
        "neither": {},
        "odd": { "command": 7 },
    }));
    let host = Host::start(&env);
    assert_eq!(host.start_server("good")["state"], "ready");
    for name in ["both", "neither", "odd"] {
        let record = host.status(name);
        assert_eq!(record["state"], "error", "{name}: {record}");
        assert!(record["error"]["message"].is_string(), "{record}");
    }
}

fn runs_in_its_own_group() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let pid = host.start_server("srv")["pid"].as_i64().expect("a pid");
    let pid = i32::try_from(pid).expect("a pid");
    // SAFETY: plain system call.
    let group = unsafe { libc::getpgid(pid) };
    assert_eq!(group, pid);
}
