//! The user's file: changed through the protocol and by hand, and what a reload leaves alone.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("config":
        added_and_started, names_are_taken, edits_keep_the_file, removed, secrets_are_masked, dry_runs_write_nothing,
        reload_leaves_the_unchanged_alone, reload_lets_calls_finish, variables_expand, reload_says_what_is_new, a_slip_is_set_right,
    )
}

fn read(env: &TestEnv) -> String {
    std::fs::read_to_string(env.data().join("mcp.json")).unwrap_or_default()
}

fn added_and_started() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    let written = host.must("mcp.add", json!({ "name": "srv", "entry": server.entry() }));
    assert_eq!(
        (&written["written"], &written["server"]["name"]),
        (&json!(true), &json!("srv"))
    );
    host.wait_state("srv", "ready");
    let file: Value = serde_json::from_str(&read(&env)).expect("JSON");
    assert_eq!(file["servers"]["srv"]["command"], json!(server.command));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(env.data().join("mcp.json"))
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let other = json!({ "name": "quiet", "entry": server.entry(), "start": false });
    host.must("mcp.add", other);
    assert_eq!(host.status("quiet")["state"], "stopped");
}

fn names_are_taken() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "one" } }));
    let host = Host::start(&env);
    let params = json!({ "name": "srv", "entry": { "command": "two" }, "start": false });
    let error = host.ask("mcp.add", params.clone()).expect_err("taken");
    assert_eq!(
        (error.code, error.kind(), &error.data["by"]),
        (-32053, "name_taken", &json!("user"))
    );
    let mut replace = params;
    replace["replace"] = json!(true);
    host.must("mcp.add", replace);
    assert!(read(&env).contains("two"));
    for name in ["pillion", "with blank", ""] {
        let error = host
            .ask("mcp.add", json!({ "name": name, "entry": { "command": "x" } }))
            .expect_err(name);
        assert_eq!(error.kind(), "invalid_params", "{name}");
    }
    let error = host
        .ask("mcp.add", json!({ "name": "n", "entry": { "comand": "x" } }))
        .expect_err("misspelt");
    assert_eq!(
        (error.kind(), &error.data["path"]),
        ("invalid_params", &json!("/entry/comand"))
    );
}

/// Comments, order, unknown members and other servers stay as the person wrote them.
fn edits_keep_the_file() {
    let env = TestEnv::new();
    let text = "// mine\n{\n  \"editor\": {\"x\": 1.10},\n  \"servers\": {\n    // the second\n    \"b\": { \"command\": \"two\", \"own\": true },\n    \"a\": { \"command\": \"one\" }, // first\n  },\n}\n";
    env.write_config_text(text);
    let host = Host::start(&env);
    host.must("mcp.enable", json!({ "server": "a", "enabled": false }));
    let after = read(&env);
    for kept in [
        "// mine",
        "\"editor\": {\"x\": 1.10}",
        "// the second",
        "\"own\": true",
        "// first",
    ] {
        assert!(after.contains(kept), "{kept} in {after}");
    }
    assert!(after.find("\"b\"") < after.find("\"a\""), "{after}");
    assert_eq!(host.status("a")["state"], "disabled");
    host.must(
        "mcp.add",
        json!({ "name": "c", "entry": { "command": "three" }, "start": false }),
    );
    let after = read(&env);
    assert!(after.contains("// first") && after.contains("three"), "{after}");
}

fn removed() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry(), "other": server.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    host.must("mcp.remove", json!({ "server": "srv" }));
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    let gone = host.wait_notification("mcp.changed", |params| {
        params["server"] == "srv" && params.get("status").is_none()
    });
    assert!(
        gone["reasons"]
            .as_array()
            .is_some_and(|all| all.contains(&json!("config"))),
        "{gone}"
    );
    assert_eq!(host.status("srv"), Value::Null);
    assert!(!read(&env).contains("\"srv\""));
    assert_eq!(host.status("other")["state"], "stopped");
}

fn secrets_are_masked() {
    let env = TestEnv::new();
    env.write_config(&json!({
        "srv": { "command": "x", "args": ["--api-key", "hunter2"], "env": { "API_TOKEN": "hunter2", "REF": "${SECRET_KEY}", "PLAIN": "p" } },
        "web": { "url": "https://user:hunter2@h.example/mcp?token=hunter2", "headers": { "x-api-key": "hunter2" } },
    }));
    let host = Host::start(&env);
    let config = host.must("mcp.config", json!({}));
    assert!(!config.to_string().contains("hunter2"), "{config}");
    let entry = &config["servers"]
        .as_array()
        .expect("servers")
        .iter()
        .find(|one| one["name"] == "srv")
        .expect("srv")["entry"];
    assert_eq!(
        entry["env"],
        json!({ "API_TOKEN": "********", "REF": "${SECRET_KEY}", "PLAIN": "p" })
    );
    let status = host.must("mcp.status", json!({}));
    assert!(!status.to_string().contains("hunter2"), "{status}");
    let _ = host.ask("mcp.start", json!({ "server": "srv" }));
    assert!(!host.messages().iter().any(|one| one.text.contains("hunter2")));
    assert!(!host.stderr().contains("hunter2"));
}

fn dry_runs_write_nothing() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let entry = json!({ "command": "x", "env": { "MY_TOKEN": "hunter2" } });
    let written = host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": entry, "dryRun": true }),
    );
    assert_eq!(written["written"], false);
    let text = written["text"].as_str().expect("what would be written");
    assert!(text.contains("********") && !text.contains("hunter2"), "{text}");
    assert_eq!(read(&env), "");
    assert_eq!(host.status("srv"), Value::Null);
}

fn reload_leaves_the_unchanged_alone() {
    let env = TestEnv::new();
    let server = env.plain_server("same", json!({}));
    let changed = env.plain_server("changed", json!({}));
    let gone = env.plain_server("gone", json!({}));
    let servers = json!({ "same": server.entry(), "changed": changed.entry(), "gone": gone.entry() });
    env.write_config(&servers);
    let host = Host::start(&env);
    let pid = host.start_server("same")["pid"].clone();
    host.start_server("changed");
    host.start_server("gone");
    // Only what concerns the launch counts as a change; the label does not.
    env.write_config(&json!({
        "new": { "command": "x" },
        "same": { "label": "Renamed", "command": server.command },
        "changed": { "command": changed.command, "args": ["--other"] },
    }));
    // The watch on the file may have been quicker than the request: then nothing is left to report.
    let report = host.must("mcp.reload", json!({}));
    let listed = |list: &str| report[list].as_array().cloned().unwrap_or_default();
    assert!(listed("unchanged").contains(&json!("same")), "{report}");
    let mut all = [listed("added"), listed("changed"), listed("unchanged")].concat();
    all.sort_by_key(Value::to_string);
    assert_eq!(all, ["changed", "new", "same"], "{report}");
    assert!(
        listed("removed").is_empty() || listed("removed") == ["gone"],
        "{report}"
    );
    assert_eq!(
        (&host.status("same")["pid"], &host.status("same")["label"]),
        (&pid, &json!("Renamed"))
    );
    assert_eq!(server.log.starts().len(), 1);
    assert!(host.call("changed", "echo", json!({})).is_ok());
    assert_eq!(
        changed.log.starts().last().expect("a start")["args"],
        json!(["--other"])
    );
    clock::eventually("the removed server to end", || {
        (!gone.log.exits().is_empty()).then_some(())
    });
}

fn reload_lets_calls_finish() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$delay_ms": 700 } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let call = host.send_call("srv", "echo", json!({}));
    server.log.wait_request("tools/call");
    env.write_config(&json!({ "srv": { "command": server.command, "args": ["new"] } }));
    host.must("mcp.reload", json!({}));
    assert!(call.wait().is_ok(), "what runs may finish");
    assert!(host.call("srv", "echo", json!({})).is_ok());
    assert_eq!(
        server.log.starts().last().expect("a start")["args"],
        json!(["new"])
    );
}

fn variables_expand() {
    let mut env = TestEnv::new();
    env.set("MY_VALUE", "from outside");
    let server = env.plain_server("srv", json!({}));
    std::fs::write(
        env.home().join("srv.env"),
        "# comment\nFROM_FILE=filed\nexport QUOTED=\"a b\"\n",
    )
    .expect("a file");
    let entry = json!({
        "command": server.command,
        "args": ["${MY_VALUE}", "${NOT_SET:-fallback}", "$MY_VALUE"],
        "env": { "EXPANDED": "<${MY_VALUE}>" },
        "envFile": "srv.env",
    });
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(&env);
    host.start_server("srv");
    let start = server.log.starts().pop().expect("a start");
    assert_eq!(start["args"], json!(["from outside", "fallback", "$MY_VALUE"]));
    let vars = &start["env"];
    assert_eq!(
        (&vars["EXPANDED"], &vars["FROM_FILE"], &vars["QUOTED"]),
        (&json!("<from outside>"), &json!("filed"), &json!("a b"))
    );
    assert_eq!(start["cwd"], json!(env.home()), "the home folder by default");
    assert!(read(&env).contains("${MY_VALUE}"), "references stay on the disk");
}

fn reload_says_what_is_new() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    assert_eq!(host.must("mcp.status", json!({}))["servers"], json!([]));
    env.write_config(&json!({ "a": { "command": "x" }, "b": { "command": "y" } }));
    let report = host.must("mcp.reload", json!({}));
    assert_eq!(
        report,
        json!({ "added": ["a", "b"], "removed": [], "changed": [], "unchanged": [] })
    );
    assert_eq!(host.status("a")["state"], "stopped");
    let report = host.must("mcp.reload", json!({}));
    assert_eq!(report["unchanged"], json!(["a", "b"]));
}

/// A misspelt member does nothing: whoever looks is told which one was meant, in a host and in a terminal.
fn a_slip_is_set_right() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let mut slips = server.entry();
    slips["timoutMs"] = json!(5000);
    slips["colour"] = json!("blue");
    slips["tools"] = json!({ "alow": ["x"], "overrides": { "echo": { "nmae": "b" } } });
    env.write_config(&json!({
        "srv": slips, "remote": { "url": "http://127.0.0.1:9/", "oauth": { "clientID": "a" } }, "none": { "comand": "x" },
    }));
    let said = |args: &[&str]| {
        let output = env.command().args(args).output().expect("the binary runs");
        [output.stdout.as_slice(), &output.stderr]
            .map(String::from_utf8_lossy)
            .concat()
    };
    let host = Host::start(&env);
    let issues = |server: &str| host.status(server)["issues"].to_string();
    let screen = said(&["status"]);
    for (server, slip) in [
        ("srv", "`timoutMs` is not known; did you mean `timeoutMs`?"),
        ("srv", "`tools.alow` is not known; did you mean `allow`?"),
        (
            "srv",
            "`tools.overrides.echo.nmae` is not known; did you mean `name`?",
        ),
        (
            "remote",
            "`oauth.clientID` is not known; did you mean `clientId`?",
        ),
    ] {
        assert!(issues(server).contains(slip), "{slip} in {}", issues(server));
        assert!(
            screen.contains(&format!("warning: {server}: {slip}")),
            "{slip} in {screen}"
        );
    }
    assert!(
        !issues("srv").contains("colour"),
        "what is nobody's slip may be somebody's note"
    );
    let fault = host.status("none")["error"].to_string();
    let slip = "`comand` is not known; did you mean `command`?";
    assert!(fault.contains(slip), "{fault}");
    assert_eq!(host.status("none").get("issues"), None, "it is said once");
    assert!(
        screen.contains(slip) && said(&["call", "none", "x"]).contains(slip),
        "{screen}"
    );
    host.call("srv", "echo", json!({}))
        .expect("it works all the same");
    // Set right, nothing is said any more.
    env.write_config(&json!({ "srv": server.entry() }));
    assert_eq!(host.status("srv").get("issues"), None);
    // What a host sends is refused, with the same words.
    let error = host
        .ask(
            "mcp.add",
            json!({ "name": "n", "entry": { "command": "x", "timoutMs": 5000 } }),
        )
        .expect_err("misspelt");
    assert_eq!(error.data["hint"], json!("did you mean `timeoutMs`?"), "{error}");
    // The file itself.
    env.write_config_text("{\n  \"severs\": { \"srv\": { \"command\": \"x\" } }\n}\n");
    let files = host.must("mcp.status", json!({}))["files"].to_string();
    assert!(
        files.contains("`severs` is not known; did you mean `servers`?"),
        "{files}"
    );
    let screen = said(&["status"]);
    assert!(
        screen.contains("mcp.json:2:3: `severs` is not known; did you mean `servers`?"),
        "{screen}"
    );
    // It is told as long as it stands there, whatever stands beside it.
    assert!(said(&["add", "n", "--", "x"]).contains("Added `n`"));
    assert!(said(&["status"]).contains("`severs` is not known"));
    assert_eq!(host.status("n")["state"], "stopped");
}
