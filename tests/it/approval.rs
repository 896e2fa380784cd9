//! The gate: what others ask for waits for a person, and does nothing until then.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, HttpHost, StdioServer, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("approval":
        a_request_does_nothing, approval_writes_and_starts_nothing, only_what_was_shown_is_approved,
        rejection_drops_the_details, a_replaced_server_is_suspended, requests_lapse, ten_at_a_time,
        requests_of_two_processes_share_the_limit, a_file_edit_after_approval_is_asked_again, requests_survive_restarts,
        an_approved_entry_of_a_project_changes, what_a_file_holds_is_approved_with_it, a_review_is_never_cut,
        clocks_do_not_help, projects_have_requests_too, calls_and_decisions_are_logged_when_wanted,
    )
}

fn config(env: &TestEnv) -> Value {
    let text = std::fs::read_to_string(env.data().join("mcp.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn ask(host: &Host, name: &str, entry: &Value) -> Value {
    host.must("mcp.add", json!({ "name": name, "entry": entry, "gate": true }))
}

fn review(host: &Host, name: &str) -> Value {
    let pending = host.must("mcp.pending", json!({}));
    let found = pending["reviews"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|review| review["server"] == name);
    found
        .cloned()
        .unwrap_or_else(|| panic!("no review of {name} in {pending}"))
}

fn decide(host: &Host, review: &Value, decision: &str) -> Value {
    host.must(
        "mcp.decide",
        json!({ "server": review["server"], "revision": review["revision"], "decision": decision }),
    )
}

fn a_request_does_nothing() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let mut entry = server.entry();
    entry["args"] = json!(["--marker-argument"]);
    let host = Host::start(&env);
    let written = ask(&host, "srv", &entry);
    assert_eq!(written["server"]["state"], "pending");
    let record = host.status("srv");
    let members: Vec<&str> = record
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    for member in members {
        assert!(
            [
                "name",
                "label",
                "layer",
                "source",
                "state",
                "pending",
                "effective",
                "readOnly",
                "seq",
                "directory"
            ]
            .contains(&member),
            "{member} in {record}"
        );
    }
    for outcome in [
        host.call("srv", "echo", json!({})),
        host.ask("mcp.start", json!({ "server": "srv" })),
        host.ask("mcp.tools.list", json!({ "server": "srv" })),
    ] {
        let error = outcome.expect_err("pending");
        assert_eq!(
            (error.kind(), &error.data["reason"]),
            ("target_mismatch", &json!("pending"))
        );
    }
    host.must("mcp.catalog", json!({}));
    host.must("mcp.reload", json!({}));
    assert_eq!(host.must("mcp.status", json!({}))["pending"], 1);
    assert_eq!(server.log.starts().len(), 0);
    for method in ["mcp.status", "mcp.config", "mcp.catalog"] {
        let text = host.must(method, json!({})).to_string();
        assert!(!text.contains("--marker-argument"), "{method}: {text}");
    }
}

fn approval_writes_and_starts_nothing() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start_with(
        &env,
        HostOptions {
            initialization: json!({ "start": "eager", "capabilities": { "questions": true, "openUrl": true } }),
            ..Default::default()
        },
    );
    let mut entry = server.entry();
    entry["autostart"] = json!(true);
    ask(&host, "srv", &entry);
    let shown = review(&host, "srv");
    assert_eq!(
        (&shown["why"], &shown["requestedBy"], &shown["target"]["command"]),
        (&json!("request"), &json!("host"), &json!(server.command))
    );
    let decided = decide(&host, &shown, "approve");
    assert_eq!(decided["server"]["state"], "stopped");
    assert_eq!(server.log.starts().len(), 0);
    assert_eq!(config(&env)["servers"]["srv"]["command"], json!(server.command));
    assert!(config(&env).get("pending").is_none());
    // A remote one is not spoken to, nobody is logged in, and no page opens.
    let remote = HttpHost::plain(&json!({}));
    let mut entry = remote.entry();
    entry["autostart"] = json!(true);
    ask(&host, "far", &entry);
    decide(&host, &review(&host, "far"), "approve");
    host.must("mcp.status", json!({}));
    assert!(remote.log().is_empty(), "{:?}", remote.log());
    // From now on it is a server as any other.
    host.call("srv", "echo", json!({})).expect("approved");
    assert!(!remote.log().iter().any(|seen| seen.is("* *")));
}

fn only_what_was_shown_is_approved() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    ask(&host, "srv", &json!({ "command": "one" }));
    let shown = review(&host, "srv");
    host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": { "command": "evil" }, "gate": true, "replace": true }),
    );
    let params = json!({ "server": "srv", "revision": shown["revision"], "decision": "approve" });
    let error = host.ask("mcp.decide", params).expect_err("stale");
    assert_eq!((error.code, error.kind()), (-32053, "stale_review"));
    assert_eq!(host.status("srv")["state"], "pending");
    assert!(config(&env)["servers"].get("srv").is_none());
    // The same text asked for again is another request, too.
    let shown = review(&host, "srv");
    std::thread::sleep(std::time::Duration::from_millis(2));
    host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": { "command": "evil" }, "gate": true, "replace": true }),
    );
    let params = json!({ "server": "srv", "revision": shown["revision"], "decision": "approve" });
    assert_eq!(
        host.ask("mcp.decide", params).expect_err("stale").kind(),
        "stale_review"
    );
    let unknown = json!({ "server": "nobody", "revision": "x", "decision": "approve" });
    assert_eq!(
        host.ask("mcp.decide", unknown).expect_err("unknown").kind(),
        "target_mismatch"
    );
}

/// A package with an entry of the same name.
fn below(env: &TestEnv) -> StdioServer {
    let package = env.data().join("packages/lower");
    std::fs::create_dir_all(&package).expect("a folder");
    let lower = env.plain_server("lower", json!({}));
    let entries = json!({ "servers": { "srv": lower.entry() } });
    std::fs::write(package.join("mcp.json"), entries.to_string()).expect("a file");
    lower
}

fn rejection_drops_the_details() {
    let env = TestEnv::new();
    let lower = below(&env);
    let host = Host::start(&env);
    ask(&host, "srv", &json!({ "command": "wanted-by-a-model" }));
    decide(&host, &review(&host, "srv"), "reject");
    let text = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    assert!(!text.contains("wanted-by-a-model"), "{text}");
    // The name stays taken: nothing below it comes to life.
    let record = host.status("srv");
    assert_eq!(
        (&record["state"], &record["layer"]),
        (&json!("disabled"), &json!("user"))
    );
    let error = host.call("srv", "echo", json!({})).expect_err("refused");
    assert_eq!(error.data["reason"], "disabled");
    assert_eq!(lower.log.starts().len(), 0);
    // It comes back by a fresh request or by the person's own hand.
    ask(&host, "srv", &json!({ "command": "again" }));
    assert_eq!(host.status("srv")["state"], "pending");
    decide(&host, &review(&host, "srv"), "reject");
    host.must("mcp.remove", json!({ "server": "srv", "layer": "user" }));
    host.call("srv", "echo", json!({})).expect("the package's");
}

fn a_replaced_server_is_suspended() {
    let env = TestEnv::new();
    let (old, new) = (
        env.plain_server("old", json!({})),
        env.plain_server("new", json!({})),
    );
    let mut entry = old.entry();
    entry["env"] = json!({ "API_KEY": "kept-1" });
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(&env);
    host.start_server("srv");
    let mut wanted = new.entry();
    wanted["env"] = json!({ "API_KEY": "kept-1" });
    host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": wanted, "gate": true, "replace": true }),
    );
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    let shown = review(&host, "srv");
    assert_eq!(
        (&shown["before"]["command"], &shown["keeps"]),
        (&json!(old.command), &json!(["/env/API_KEY"]))
    );
    assert!(host.call("srv", "echo", json!({})).is_err());
    // A no leaves it off until the person says otherwise.
    decide(&host, &shown, "reject");
    assert_eq!(host.status("srv")["state"], "disabled");
    host.must("mcp.enable", json!({ "server": "srv", "enabled": true }));
    clock::eventually("it to run again", || {
        (host.status("srv")["state"] == "ready").then_some(())
    });
    assert_eq!((old.log.starts().len(), new.log.starts().len()), (2, 0));
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// What a clock would do in a day, done to the file.
pub fn rewrite_times(env: &TestEnv, change: impl Fn(u64) -> u64) {
    let mut text = config(env);
    for (_, shelf) in text["pending"].as_object_mut().into_iter().flatten() {
        for (_, request) in shelf.as_object_mut().into_iter().flatten() {
            for member in ["requestedAt", "expiresAt"] {
                let at = request[member].as_u64().expect("a time");
                request[member] = json!(change(at));
            }
        }
    }
    std::fs::write(env.data().join("mcp.json"), text.to_string()).expect("a file");
}

const DAY: u64 = 24 * 60 * 60 * 1000;

fn requests_lapse() {
    let env = TestEnv::new();
    let lower = below(&env);
    let host = Host::start(&env);
    let before = now_ms();
    ask(&host, "srv", &json!({ "command": "secret-plan" }));
    let shown = review(&host, "srv");
    let expires = shown["expiresAt"].as_u64().expect("a time");
    assert!(expires >= before + DAY && expires <= now_ms() + DAY);
    let said = |command: &str| {
        let said = env.command().arg(command).output().expect("the binary runs");
        String::from_utf8_lossy(&said.stdout).into_owned()
    };
    assert!(
        said("status").contains("pending: lapses in 23 h"),
        "{}",
        said("status")
    );
    assert!(
        said("approve").contains("  lapses:      in 23 h\n"),
        "{}",
        said("approve")
    );
    rewrite_times(&env, |at| at - DAY);
    host.wait_notification("mcp.changed", |params| {
        params["server"] == "srv" && params["status"]["state"] == "disabled"
    });
    let params = json!({ "server": "srv", "revision": shown["revision"], "decision": "approve" });
    assert_eq!(
        host.ask("mcp.decide", params).expect_err("lapsed").kind(),
        "stale_review"
    );
    assert_eq!(host.must("mcp.status", json!({}))["pending"], 0);
    clock::eventually("its details to be dropped", || {
        (!config(&env).to_string().contains("secret-plan")).then_some(())
    });
    assert_eq!(host.status("srv")["state"], "disabled");
    // Nor does its end bring to life what stands below its name.
    assert!(host.call("srv", "echo", json!({})).is_err());
    assert_eq!(lower.log.starts().len(), 0);
}

fn ten_at_a_time() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    for n in 0..10 {
        ask(&host, &format!("s{n}"), &json!({ "command": "x" }));
    }
    let params = json!({ "name": "one-more", "entry": { "command": "x" }, "gate": true });
    let error = host.ask("mcp.add", params.clone()).expect_err("too many");
    assert_eq!(
        (error.code, error.kind(), &error.data["limit"]),
        (-32054, "too_many_pending", &json!(10))
    );
    let budget = std::fs::read_to_string(env.data().join("mcp-pending-budget.json")).expect("the budget");
    let budget: Value = serde_json::from_str(&budget).expect("JSON");
    assert_eq!(budget["requests"].as_array().map(Vec::len), Some(10));
    // Asking again under the same name takes no further place, and a decision frees one.
    let again = json!({ "name": "s1", "entry": { "command": "y" }, "gate": true, "replace": true });
    host.must("mcp.add", again);
    decide(&host, &review(&host, "s0"), "reject");
    host.must("mcp.add", params);
    let pending = host.must("mcp.pending", json!({}));
    assert_eq!(
        (pending["reviews"].as_array().map(Vec::len), &pending["limit"]),
        (Some(10), &json!(10))
    );
}

fn requests_of_two_processes_share_the_limit() {
    let env = TestEnv::new();
    let hosts = [Host::start(&env), Host::start(&env)];
    let accepted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(index, host)| {
                scope.spawn(move || {
                    let asked = (0..8).map(|n| {
                        let name = format!("p{index}-{n}");
                        host.ask(
                            "mcp.add",
                            json!({ "name": name, "entry": { "command": "x" }, "gate": true }),
                        )
                    });
                    asked.filter(Result::is_ok).count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!(accepted, 10);
    for host in &hosts {
        assert_eq!(host.must("mcp.status", json!({}))["pending"], 10);
    }
}

fn a_file_edit_after_approval_is_asked_again() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    let mut entry = server.entry();
    entry["env"] = json!({ "UPSTREAM": "good.example" });
    ask(&host, "srv", &entry);
    decide(&host, &review(&host, "srv"), "approve");
    host.start_server("srv");
    let mut text = config(&env);
    text["servers"]["srv"]["args"] = json!(["--evil"]);
    text["servers"]["srv"]["env"]["UPSTREAM"] = json!("evil.example");
    std::fs::write(env.data().join("mcp.json"), text.to_string()).expect("a file");
    host.wait_state("srv", "pending");
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    assert!(host.call("srv", "echo", json!({})).is_err());
    let shown = review(&host, "srv");
    // What was approved stands beside what would run now.
    assert_eq!(
        (
            &shown["before"]["argv"],
            &shown["target"]["argv"],
            &shown["changed"]
        ),
        (&json!([]), &json!(["--evil"]), &json!(["/args", "/env/UPSTREAM"]))
    );
    assert!(!shown.to_string().contains(".example"), "{shown}");
    decide(&host, &shown, "approve");
    host.call("srv", "echo", json!({}))
        .expect("approved as it stands now");
    // The person's own change is no such thing.
    host.must(
        "mcp.edit",
        json!({ "server": "srv", "set": { "args": ["--mine"] } }),
    );
    assert_ne!(host.status("srv")["state"], "pending");
    // An approval that was written down as a digest only counts as ever.
    let mut text = config(&env);
    text["approved"]["user"]["srv"] = text["approved"]["user"]["srv"]["digest"].take();
    std::fs::write(env.data().join("mcp.json"), text.to_string()).expect("a file");
    host.must("mcp.reload", json!({}));
    host.call("srv", "echo", json!({})).expect("approved");
    text["servers"]["srv"]["args"] = json!(["--evil"]);
    std::fs::write(env.data().join("mcp.json"), text.to_string()).expect("a file");
    host.must("mcp.reload", json!({}));
    assert_eq!(review(&host, "srv")["changed"], json!([]));
}

/// The same in a project: what was approved is what was trusted.
fn an_approved_entry_of_a_project_changes() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    let params = json!({ "name": "srv", "entry": server.entry(), "gate": true, "scope": "project" });
    host.must("mcp.add", params);
    decide(&host, &review(&host, "srv"), "approve");
    let mut entry = server.entry();
    entry["cwd"] = json!("/");
    crate::trust::write_project(&env, &json!({ "srv": entry }));
    host.must("mcp.reload", json!({}));
    let shown = review(&host, "srv");
    let folder = env.project().canonicalize().expect("a folder");
    assert_eq!(
        (
            &shown["before"]["cwd"],
            &shown["target"]["cwd"],
            &shown["changed"]
        ),
        (&json!(folder), &json!("/"), &json!(["/cwd"]))
    );
}

/// What a request reads of a project changes with the project.
fn what_a_file_holds_is_approved_with_it() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let file = env.project().join("p.env");
    std::fs::write(&file, "MODE=fast\n").expect("a file");
    let host = Host::start(&env);
    let (mut entry, mut own) = (server.entry(), server.entry());
    entry["envFile"] = json!(file);
    own["envFile"] = json!("own.env");
    std::fs::write(env.home().join("own.env"), "A=1\n").expect("a file");
    ask(&host, "srv", &entry);
    let shown = review(&host, "srv");
    std::fs::write(&file, "MODE=slow\n").expect("a file");
    let params = json!({ "server": "srv", "revision": shown["revision"], "decision": "approve" });
    let error = host.ask("mcp.decide", params).expect_err("changed");
    assert_eq!(error.kind(), "stale_review");
    decide(&host, &review(&host, "srv"), "approve");
    host.start_server("srv");
    std::fs::write(&file, "MODE=evil\n").expect("a file");
    host.wait_state("srv", "pending");
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    let shown = review(&host, "srv");
    assert_eq!(shown["changed"], json!(["/envFile"]), "{shown}");
    decide(&host, &shown, "approve");
    host.start_server("srv");
    // The same for an entry of the project itself.
    let params = json!({ "name": "inside", "entry": { "command": "x", "envFile": "p.env" }, "gate": true, "scope": "project" });
    host.must("mcp.add", params);
    decide(&host, &review(&host, "inside"), "approve");
    assert_eq!(host.status("inside")["state"], "stopped");
    std::fs::write(&file, "MODE=fast\n").expect("a file");
    assert_eq!(host.status("inside")["state"], "pending");
    // A file of the person's own may change.
    ask(&host, "own", &own);
    decide(&host, &review(&host, "own"), "approve");
    std::fs::write(env.home().join("own.env"), "A=2\n").expect("a file");
    assert_eq!(host.status("own")["state"], "stopped");
    host.start_server("own");
}

/// However long it is, a person sees all of it.
fn a_review_is_never_cut() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let args: Vec<String> = (0..256)
        .map(|n| format!("--argument-{n}={}", "x".repeat(150)))
        .collect();
    ask(&host, "srv", &json!({ "command": "program", "args": args }));
    let shown = review(&host, "srv");
    assert_eq!(shown["target"]["argv"], json!(args));
    let listed = env.command().arg("approve").output().expect("the binary runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains(&json!(args).to_string()), "{listed}");
    // What a person could not review is not asked for.
    let long = json!({ "command": "program", "args": vec!["x".repeat(4000); 256] });
    let params = json!({ "name": "long", "entry": long, "gate": true });
    assert_eq!(
        host.ask("mcp.add", params).expect_err("too long").kind(),
        "too_large"
    );
    assert_eq!(
        host.must("mcp.pending", json!({}))["reviews"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

fn requests_survive_restarts() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let server = env.plain_server("srv", json!({}));
    ask(&host, "srv", &server.entry());
    let shown = review(&host, "srv");
    drop(host);
    use std::os::unix::fs::PermissionsExt as _;
    for file in ["mcp.json", "mcp-pending-budget.json"] {
        let mode = std::fs::metadata(env.data().join(file))
            .expect(file)
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let host = Host::start(&env);
    assert_eq!(review(&host, "srv")["revision"], shown["revision"]);
    decide(&host, &shown, "approve");
    host.call("srv", "echo", json!({})).expect("approved");
}

/// Neither a clock that was set back nor a longer life written into the file keeps a request alive.
fn clocks_do_not_help() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    ask(&host, "srv", &json!({ "command": "x" }));
    rewrite_times(&env, |at| at + 2 * DAY);
    clock::eventually("it to lapse", || {
        (host.status("srv")["state"] == "disabled").then_some(())
    });
    assert_eq!(host.must("mcp.pending", json!({}))["reviews"], json!([]));
}

fn projects_have_requests_too() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    let params = json!({ "name": "srv", "entry": server.entry(), "gate": true, "scope": "project" });
    host.must("mcp.add", params);
    assert!(!env.project().join(".pillion/mcp.json").exists());
    assert_eq!(host.status("srv")["layer"], "project");
    let shown = review(&host, "srv");
    assert_eq!(shown["layer"], "project");
    decide(&host, &shown, "approve");
    assert!(env.project().join(".pillion/mcp.json").exists());
    assert_eq!(host.must("mcp.status", json!({}))["trust"], "trusted");
    host.call("srv", "echo", json!({})).expect("approved is trusted");
    assert!(!config(&env).to_string().contains(&server.command));
}

/// One line for each call and decision, whoever made it; names and outcomes, and nothing that was said.
fn calls_and_decisions_are_logged_when_wanted() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/call": { "content": [{ "type": "text", "text": "in-no-log" }] } }),
    );
    let log = env.data().join("audit.jsonl");
    let mut entry = server.entry();
    entry["tools"] = json!({ "deny": ["echo"] });
    env.write_config(&json!({ "srv": server.entry(), "closed": entry }));
    crate::trust::write_project(
        &env,
        &json!({ "theirs": { "command": "x", "env": { "API_KEY": "in-no-log" } } }),
    );
    let host = Host::start_with(
        &env,
        HostOptions {
            initialization: json!({ "toolApproval": "ask", "capabilities": { "questions": true } }),
            ..Default::default()
        },
    );
    let secret = json!({ "password": "in-no-log" });
    host.call("srv", "echo", secret.clone()).expect("a call");
    assert!(!log.exists(), "off by default");
    let first = "{\"event\":\"mine\"}\n";
    std::fs::write(&log, first).expect("a file");
    host.call("srv", "echo", secret.clone()).expect("a call");
    host.call("closed", "echo", secret.clone()).expect_err("denied");
    // Another process writes into the same file.
    let called = env
        .command()
        .args(["call", "srv", "echo", "password=in-no-log"])
        .output();
    assert!(called.expect("the binary runs").status.success());
    let model = |answer: Value| {
        let index = host.notifications("mcp.question").len();
        let params = json!({ "name": "mcp__srv__echo", "arguments": secret, "session": "chat" });
        let pending = host.send_here("mcp.model.call", params);
        let mut params = answer;
        params["question"] = host.wait_question(index)["id"].clone();
        host.request("mcp.answer", params).expect("an answer");
        pending.wait().expect("a result");
    };
    model(json!({ "action": "decline" }));
    model(json!({ "action": "cancel" }));
    model(json!({ "action": "accept", "remember": "always" }));
    host.must(
        "mcp.model.call",
        json!({ "name": "mcp__srv__echo", "arguments": secret, "session": "chat" }),
    );
    let grants = host.must("mcp.grants", json!({}))["grants"].clone();
    host.must("mcp.grants", json!({ "revoke": [grants[0]["id"], "no-such"] }));
    ask(
        &host,
        "other",
        &json!({ "command": "x", "env": { "API_KEY": "in-no-log" } }),
    );
    decide(&host, &review(&host, "other"), "reject");
    crate::trust::trust(&host);
    host.must("mcp.trust", json!({ "action": "revoke" }));
    let text = std::fs::read_to_string(&log).expect("the log");
    assert!(text.starts_with(first) && !text.contains("in-no-log"), "{text}");
    let lines: Vec<Value> = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for line in &lines {
        assert!(line["at"].is_u64() && line["pid"].is_u64(), "{line}");
    }
    let short: Vec<String> = lines
        .iter()
        .map(|line| {
            let members = [
                "event", "server", "tool", "subject", "decision", "action", "outcome", "by",
            ];
            let values = members.iter().filter_map(|member| line[member].as_str());
            values.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        short,
        [
            "call srv echo ok local",
            "call closed echo denied local",
            "call srv echo ok local",
            "approval srv echo deny person",
            "approval srv echo denied nobody",
            "approval srv echo allow person",
            "call srv echo ok local",
            "approval srv echo allow grant",
            "call srv echo ok local",
            "grant srv echo revoke",
            "decision other entry reject",
            "trust grant",
            "trust revoke",
        ],
        "{text}"
    );
    std::fs::remove_file(&log).expect("removed");
    host.call("srv", "echo", json!({})).expect("a call");
    assert!(!log.exists(), "it is not made again");
}
