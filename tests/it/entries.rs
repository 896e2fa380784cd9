//! Entries by hand: every field and its bounds, names, where they came from, and what a change does to what runs.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::model::tool;
use crate::stories;
use crate::support::{Host, TestEnv, clock, processes};

pub fn stories() -> Vec<Trial> {
    stories!("entries":
        the_first_needs_nothing, every_field_is_kept, numbers_and_names_have_bounds, a_taken_name_is_marked,
        where_they_came_from, a_change_acts_at_once, a_wedged_server_is_restarted, lists_of_tools_act_at_once,
        fields_in_the_terminal, entries_of_a_package_can_be_switched,
    )
}

fn stored(env: &TestEnv, name: &str) -> Value {
    let text = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    serde_json::from_str::<Value>(&text).expect("JSON")["servers"][name].clone()
}

fn run(env: &TestEnv, args: &[&str]) -> Output {
    env.command().args(args).output().expect("the binary runs")
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Nothing was ever set up: no folder, no file. A host that runs already has the server at once.
fn the_first_needs_nothing() {
    let env = TestEnv::new();
    std::fs::remove_dir(env.data()).expect("an empty folder");
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    assert_eq!(host.must("mcp.status", json!({}))["servers"], json!([]));
    let output = run(&env, &["add", "srv", "--", &server.command]);
    let file = env.data().join("mcp.json");
    assert!(
        err(&output).contains(&format!("to {}", file.display())),
        "{output:?}"
    );
    for (path, mode) in [(&env.data(), 0o700), (&file, 0o600)] {
        let found = std::fs::metadata(path).expect("it was made").permissions().mode();
        assert_eq!(found & 0o777, mode, "{}", path.display());
    }
    assert_eq!(host.capabilities()["files"]["user"], json!(file));
    host.call("srv", "echo", json!({})).expect("without a restart");
}

/// Two entries with every member that the schema has: they stand in the file as they were given, are shown so, and an
/// edit of one member leaves the others.
fn every_field_is_kept() {
    let env = TestEnv::new();
    let local = json!({
        "command": "x", "args": ["-a", ""], "env": { "API_KEY": "${KEY}", "MODE": "" }, "cwd": "~", "envFile": "~/.env",
        "enabled": false, "label": "Local one", "timeoutMs": 1000, "startTimeoutMs": 600_000, "elicitation": false,
        "reconnect": { "enabled": false }, "failOnStartupError": false, "autostart": true, "protocol": "legacy",
        "category": "dev", "required": true, "parallel": false, "idleStopMs": 0,
        "tools": { "allow": ["a*"], "deny": ["b"], "ask": ["c"], "auto": ["d"], "overrides": { "e": { "name": "f" } } },
        "secrets": ["/args/1"], "inputs": { "key": { "description": "The key", "secret": true } },
        "source": "catalog:memory", "createdAt": 5, "updatedAt": 6,
    });
    let remote = json!({
        "url": "https://h.example/mcp", "headers": { "X-Api-Key": "${KEY}" }, "headersHelper": ["helper", "a"],
        "transport": "http", "oauth": { "clientId": "me", "clientSecret": "${SECRET}", "callbackPort": 4000 },
        "tls": { "ca": "~/ca.pem" }, "account": "work", "enabled": false,
    });
    let schema = protocol::schema::standalone::<protocol::ServerEntry>();
    let members = schema["properties"].as_object().expect("an object");
    let missing: Vec<&String> = members
        .keys()
        .filter(|name| local.get(*name).is_none() && remote.get(*name).is_none())
        .collect();
    assert!(missing.is_empty(), "no entry of this story has {missing:?}");

    let host = Host::start(&env);
    for (name, entry) in [("local", &local), ("remote", &remote)] {
        host.must("mcp.add", json!({ "name": name, "entry": entry }));
        let shown = host.must("mcp.config", json!({ "server": name }))["servers"][0].clone();
        for (member, value) in entry.as_object().expect("an object") {
            if member != "updatedAt" {
                assert_eq!(&stored(&env, name)[member], value, "{name} {member}");
                assert_eq!(&shown["entry"][member], value, "{name} {member}");
            }
        }
        let (created, updated) = (&stored(&env, name)["createdAt"], &stored(&env, name)["updatedAt"]);
        assert!(
            updated.as_u64() > Some(6) && created.as_u64() <= updated.as_u64(),
            "{created} {updated}"
        );
        let before = stored(&env, name);
        host.must(
            "mcp.edit",
            json!({ "server": name, "set": { "label": "Another" } }),
        );
        let mut expected = before.clone();
        expected["label"] = json!("Another");
        expected["updatedAt"] = stored(&env, name)["updatedAt"].clone();
        assert_eq!(stored(&env, name), expected);
        assert!(expected["updatedAt"].as_u64() >= before["updatedAt"].as_u64());
    }
    let record = host.status("local");
    assert_eq!(
        (
            &record["label"],
            &record["category"],
            &record["source"],
            &record["timeoutMs"],
            &record["prefix"]
        ),
        (
            &json!("Another"),
            &json!("dev"),
            &json!("catalog:memory"),
            &json!(1000),
            &json!("mcp__local__")
        )
    );
    // What is not given is as documented.
    host.must(
        "mcp.add",
        json!({ "name": "bare", "entry": { "command": "x" }, "start": false }),
    );
    let record = host.status("bare");
    assert_eq!(
        (&record["label"], &record["timeoutMs"], &record["state"]),
        (&json!("bare"), &json!(60_000), &json!("stopped"))
    );
}

/// The same bounds when an entry is added, changed and only tried out, each with its place.
fn numbers_and_names_have_bounds() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x" } }));
    let host = Host::start(&env);
    let before = stored(&env, "srv");
    for (member, value, fits) in [
        ("timeoutMs", json!(999), false),
        ("timeoutMs", json!(1000), true),
        ("timeoutMs", json!(600_000), true),
        ("timeoutMs", json!(600_001), false),
        ("timeoutMs", json!(1500.5), false),
        ("timeoutMs", json!("1500"), false),
        ("startTimeoutMs", json!(999), false),
        ("label", json!(""), false),
        ("label", json!("l".repeat(200)), true),
        ("label", json!("l".repeat(201)), false),
        ("cwd", json!(""), false),
        ("env", json!({ "A=B": "x" }), false),
        ("env", json!({ "A": 1 }), false),
        ("args", json!(["a\u{0}b"]), false),
        ("env", json!({ "A": "a\u{0}b" }), false),
        ("reconnect", json!({}), false),
        ("reconnect", json!(true), false),
        ("tools", json!({ "allow": "a" }), false),
    ] {
        let set = json!({ member: value });
        let mut entry = set.clone();
        entry["command"] = json!("x");
        let asked = [
            host.ask("mcp.edit", json!({ "server": "srv", "set": set, "dryRun": true })),
            host.ask(
                "mcp.add",
                json!({ "name": "new", "entry": entry, "dryRun": true }),
            ),
        ];
        for (outcome, at) in asked.into_iter().zip(["/set", "/entry"]) {
            match outcome {
                Ok(written) => assert!(fits && written["written"] == false, "{member} {value}"),
                Err(error) => {
                    assert!(!fits, "{member} {value}: {error}");
                    assert_eq!(error.kind(), "invalid_params", "{member} {value}");
                    let path = error.data["path"].as_str().unwrap_or_default();
                    assert!(
                        path.starts_with(&format!("{at}/{member}")),
                        "{member} {value}: {path}"
                    );
                }
            }
        }
    }
    for (name, fits) in [
        ("a", true),
        ("A-z_09", true),
        (&*"n".repeat(32), true),
        (&*"n".repeat(33), false),
        ("", false),
        ("a.b", false),
        ("a b", false),
        ("ä", false),
        ("a/b", false),
    ] {
        let add = json!({ "name": name, "entry": { "command": "x" }, "dryRun": true });
        assert_eq!(host.ask("mcp.add", add).is_ok(), fits, "{name}");
        let edit = json!({ "server": "srv", "rename": name, "dryRun": true });
        assert_eq!(host.ask("mcp.edit", edit).is_ok(), fits, "{name}");
    }
    let entry = json!({ "url": "https://h.example/mcp", "headers": { "X-A": "one\r\nX-B: two" } });
    let error = host
        .ask("mcp.add", json!({ "name": "new", "entry": entry }))
        .expect_err("two headers");
    assert_eq!(error.data["path"], "/entry/headers/X-A");
    assert_eq!(stored(&env, "srv"), before);
}

/// A form can mark the field before anything is written, and names who has the name.
fn a_taken_name_is_marked() {
    let env = TestEnv::new();
    env.write_config(
        &json!({ "docs": { "command": "x", "label": "The documents" }, "other": { "command": "y" } }),
    );
    let host = Host::start(&env);
    let text = "\"docs\" is already used by \"The documents\"";
    let entry = json!({ "command": "z" });
    for (method, params, path) in [
        (
            "mcp.add",
            json!({ "name": "docs", "entry": entry, "dryRun": true }),
            "/name",
        ),
        ("mcp.add", json!({ "name": "docs", "entry": entry }), "/name"),
        (
            "mcp.edit",
            json!({ "server": "other", "rename": "docs" }),
            "/rename",
        ),
    ] {
        let error = host.ask(method, params).expect_err("taken");
        assert_eq!(
            (error.kind(), error.message.as_str(), &error.data["path"]),
            ("name_taken", text, &json!(path))
        );
    }
    let imported = host.must(
        "mcp.import",
        json!({ "text": "{\"mcpServers\": {\"docs\": {\"command\": \"z\"}}}" }),
    );
    assert_eq!(
        (
            &imported["results"][0]["status"],
            &imported["results"][0]["reason"]
        ),
        (&json!("skipped"), &json!(text))
    );
    let output = run(&env, &["add", "docs", "--", "z"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).starts_with(&format!("error: {text}\n")),
        "{output:?}"
    );
    assert_eq!(stored(&env, "docs")["command"], "x");
}

fn where_they_came_from() {
    let env = TestEnv::new();
    let paste = "{\"mcpServers\": {\"theirs\": {\"command\": \"x\"}}}";
    std::fs::write(env.project().join("theirs.json"), paste).expect("a file");
    for args in [
        &["add", "mine", "--", "x"][..],
        &["add", "pasted", "--yes", "--paste", "npx -y thing"],
        &["import", "theirs.json"],
        &["add", "memory", "--yes", "--from", "memory"],
    ] {
        let output = run(&env, args);
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
    let host = Host::start(&env);
    for (name, source) in [
        ("mine", "manual"),
        ("pasted", "paste"),
        ("theirs", "import"),
        ("memory", "catalog:memory"),
    ] {
        assert_eq!(host.status(name)["source"], source, "{name}");
        assert_eq!(stored(&env, name)["source"], source, "{name}");
        // A change is no other origin.
        host.must("mcp.edit", json!({ "server": name, "set": { "label": "L" } }));
        assert_eq!(stored(&env, name)["source"], source, "{name}");
    }
}

/// The old process is gone, the new one is there, and its tools are those that a model is offered.
fn a_change_acts_at_once() {
    let env = TestEnv::new();
    let [first, second] = ["first", "second"].map(|name| {
        let script = json!({ "tools/list": { "tools": [tool("before")] }, "tools/call": { "$none": true } });
        env.plain_server(name, script)
    });
    let new = env.plain_server("new", json!({ "tools/list": { "tools": [tool("after")] } }));
    env.write_config(&json!({ "srv": first.entry() }));
    let host = Host::start(&env);
    let offered = || {
        let offer = host.must("mcp.model.tools", json!({}));
        let tools = offer["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .filter(|tool| tool["server"] == "srv")
            .map(|tool| tool["name"].clone())
            .collect::<Vec<_>>()
    };
    let change = |name: &str, from: &crate::support::StdioServer, order: &dyn Fn()| {
        assert_eq!(offered(), [json!("mcp__srv__before")], "{name}");
        let call = host.send_call("srv", "before", json!({}));
        from.log.wait_request("tools/call");
        let pid = from.log.last_pid().expect("it runs");
        order();
        let error = call.wait().expect_err("its server is another one");
        assert_eq!(error.kind(), "call_cancelled", "{name}");
        assert!(!processes::is_alive(pid), "{name}: answered when it is gone");
        host.must("mcp.start", json!({ "server": "srv" }));
        assert_eq!(offered(), [json!("mcp__srv__after")], "{name}");
    };
    change("edit", &first, &|| {
        host.must(
            "mcp.edit",
            json!({ "server": "srv", "set": { "command": new.command } }),
        );
    });
    host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": second.entry(), "replace": true }),
    );
    change("replace", &second, &|| {
        host.must(
            "mcp.add",
            json!({ "name": "srv", "entry": new.entry(), "replace": true }),
        );
    });
    assert_eq!(env.server_processes().len(), 1);
}

/// A server that hangs, in its start or in a call, and one that does not want to go.
fn a_wedged_server_is_restarted() {
    let env = TestEnv::new();
    let silent = env.plain_server("silent", json!({ "initialize": { "$none": true } }));
    let deaf = env.plain_server("deaf", json!({ "tools/call": { "$none": true } }));
    env.write_config(&json!({ "silent": silent.entry(), "deaf": deaf.entry() }));
    let host = Host::start(&env);
    let starting = host.send_here("mcp.start", json!({ "server": "silent" }));
    silent.log.wait_request("initialize");
    assert_eq!(host.status("silent")["state"], "connecting");
    let first = silent.log.last_pid().expect("it runs");
    let restarting = host.send_here("mcp.restart", json!({ "server": "silent" }));
    clock::eventually("another process", || {
        (silent.log.starts().len() == 2).then_some(())
    });
    assert!(!processes::is_alive(first));
    host.must("mcp.enable", json!({ "server": "silent", "enabled": false }));
    for waiting in [starting, restarting] {
        assert_ne!(
            waiting.wait().map(|done| done["server"]["state"].clone()),
            Ok(json!("ready"))
        );
    }
    assert!(env.server_processes().is_empty());
    let call = host.send_call("deaf", "echo", json!({}));
    deaf.log.wait_request("tools/call");
    let before = host.status("deaf")["pid"].clone();
    let restarted = host.must("mcp.restart", json!({ "server": "deaf" }))["server"].clone();
    assert_eq!(restarted["state"], "ready");
    assert_ne!(restarted["pid"], before);
    assert_eq!(call.wait().expect_err("ended").kind(), "call_cancelled");
    // Switched off it is gone from every list, and stays in the file; switched on it is there again.
    let pid = deaf.log.last_pid().expect("it runs");
    host.must("mcp.enable", json!({ "server": "deaf", "enabled": false }));
    assert!(!processes::is_alive(pid));
    let lists = [
        host.must("mcp.tools.list", json!({})),
        host.must("mcp.model.tools", json!({})),
        host.must("mcp.catalog", json!({})),
    ];
    for list in lists {
        assert!(!list.to_string().contains("deaf"), "{list}");
    }
    assert_eq!(
        (
            host.status("deaf")["state"].clone(),
            &stored(&env, "deaf")["enabled"]
        ),
        (json!("disabled"), &json!(false))
    );
    host.must("mcp.enable", json!({ "server": "deaf", "enabled": true }));
    host.wait_state("deaf", "ready");
    clock::eventually("its tools", || {
        let offer = host.must("mcp.model.tools", json!({}));
        offer.to_string().contains("mcp__deaf__echo").then_some(())
    });
}

/// Which tools may be used, and which are asked about, is changed while the server runs on.
fn lists_of_tools_act_at_once() {
    let env = TestEnv::new();
    let names = ["read_a", "read_b", "write"];
    let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    let server = env.plain_server("srv", json!({ "tools/list": { "tools": tools } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let pid = host.start_server("srv")["pid"].clone();
    for (lists, offered, asked) in [
        (json!({}), &["read_a", "read_b", "write"][..], &[][..]),
        (json!({ "deny": ["write"] }), &["read_a", "read_b"], &[]),
        (
            json!({ "deny": ["write"], "ask": ["*_b"] }),
            &["read_a", "read_b"],
            &["read_b"],
        ),
        (json!({ "allow": ["read*"], "deny": ["*_a"] }), &["read_b"], &[]),
        (json!({ "allow": ["nothing"] }), &[], &[]),
        (json!({ "allow": [] }), &[], &[]),
        (json!({ "deny": ["READ_A"] }), &["read_a", "read_b", "write"], &[]),
    ] {
        host.must(
            "mcp.edit",
            json!({ "server": "srv", "set": { "tools": lists } , "unset": ["/tools"] }),
        );
        let offer = host.must("mcp.model.tools", json!({}));
        let all = offer["tools"].as_array().cloned().unwrap_or_default();
        let of = |is: &dyn Fn(&Value) -> bool| -> Vec<String> {
            let fitting = all.iter().filter(|tool| tool["server"] == "srv" && is(tool));
            fitting
                .map(|tool| tool["tool"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(of(&|_| true), offered, "{lists}");
        assert_eq!(of(&|tool| tool["approval"] == "ask"), asked, "{lists}");
        for name in names {
            let outcome = host.call("srv", name, json!({}));
            assert_eq!(
                outcome.is_ok(),
                offered.contains(&name),
                "{lists} {name}: {outcome:?}"
            );
        }
    }
    assert_eq!((&host.status("srv")["pid"], server.log.starts().len()), (&pid, 1));
}

/// What a form has under its last heading, as options; and what a slip of them is told.
fn fields_in_the_terminal() {
    let env = TestEnv::new();
    let output = run(
        &env,
        &[
            "add",
            "srv",
            "--label",
            "My server",
            "--timeout",
            "5",
            "--no-reconnect",
            "--deny-tool",
            "rm*",
            "--ask-tool",
            "write",
            "--",
            "x",
        ],
    );
    assert!(output.status.success(), "{output:?}");
    let entry = stored(&env, "srv");
    assert_eq!(
        (
            &entry["label"],
            &entry["timeoutMs"],
            &entry["reconnect"],
            &entry["tools"]
        ),
        (
            &json!("My server"),
            &json!(5000),
            &json!({ "enabled": false }),
            &json!({ "deny": ["rm*"], "ask": ["write"] })
        )
    );
    let output = run(
        &env,
        &[
            "edit",
            "srv",
            "--cwd",
            "sub",
            "--deny-tool",
            "a",
            "--deny-tool",
            "b",
        ],
    );
    assert!(output.status.success(), "{output:?}");
    let entry = stored(&env, "srv");
    assert_eq!(
        (&entry["cwd"], &entry["tools"], &entry["label"]),
        (
            &json!(env.project().join("sub")),
            &json!({ "deny": ["a", "b"], "ask": ["write"] }),
            &json!("My server")
        )
    );
    for (args, told) in [
        (
            &["add", "n", "--timeout", "0", "--", "x"][..],
            "0 is not in 1..=600",
        ),
        (&["edit", "srv", "--timeout", "601"], "601 is not in 1..=600"),
        (
            &["add", "n", "--cwd", "", "--", "x"],
            "a value is required for '--cwd <DIR>'",
        ),
        (
            &["add", "n", "--scope", "project", "--", "x"],
            "`--project` writes it into the project's file",
        ),
        (
            &["add", "n", "--from", "memory", "--label", "L"],
            "use `pillion edit`",
        ),
        (
            &["add", "n", "--env", "API_KEY=********", "--", "x"],
            "`API_KEY` is given as `********`",
        ),
        (&["edit", "srv", "--label", ""], "label"),
    ] {
        let output = run(&env, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(err(&output).contains(told), "{args:?}: {}", err(&output));
    }
}

/// What somebody else brings is shown beside the person's own: it cannot be changed, and can be switched.
fn entries_of_a_package_can_be_switched() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let folder = env.data().join("packages/theirs");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = json!({ "servers": { "srv": server.entry() } }).to_string();
    std::fs::write(folder.join("mcp.json"), &text).expect("a file");
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(
        (
            &record["layer"],
            &record["readOnly"],
            &record["source"],
            &record["state"]
        ),
        (
            &json!("userPackage"),
            &json!(true),
            &json!("package:theirs"),
            &json!("ready")
        )
    );
    for (method, params) in [
        ("mcp.edit", json!({ "server": "srv", "set": { "label": "x" } })),
        ("mcp.remove", json!({ "server": "srv" })),
    ] {
        let error = host.ask(method, params).expect_err("not the person's");
        assert_eq!(
            (error.kind(), &error.data["by"]),
            ("read_only", &json!("userPackage")),
            "{method}"
        );
    }
    let output = run(&env, &["edit", "srv", "--label", "x"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        err(&output).contains("comes from a package") && err(&output).contains("pillion disable"),
        "{output:?}"
    );
    // A terminal switches it for everybody who runs.
    assert!(run(&env, &["disable", "srv"]).status.success());
    host.wait_state("srv", "disabled");
    clock::eventually("its end", || env.server_processes().is_empty().then_some(()));
    host.must("mcp.enable", json!({ "server": "srv", "enabled": true }));
    host.call("srv", "echo", json!({})).expect("it is on");
    assert_eq!(
        std::fs::read_to_string(folder.join("mcp.json")).expect("the file"),
        text
    );
}
