//! No write of a part decides about the whole: what waits, was refused or is not trusted stays so, whatever is written.

mod stands;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use self::stands::{
    STANDS, approved, asked, change_file, change_tool, changed_in_file, decide, holds, program, project_file,
    stored, untrusted, user_file,
};
use crate::stories;
use crate::support::{Host, StdioServer, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("gates":
        no_write_passes_a_decision_by, what_was_approved_stays_approved, a_switch_stays_where_it_is,
        what_lapsed_is_asked_again, a_name_that_is_asked_for_is_taken, removal_forgets_trust,
        what_is_held_stays_held_while_nobody_runs, another_server_under_a_name_begins_anew,
    )
}

/// Every write that is not the person's word about the whole entry `name`.
fn writes(name: &str, layer: &str) -> Vec<(&'static str, Value)> {
    let text = json!({ "mcpServers": { name: { "command": "true" } } }).to_string();
    vec![
        ("mcp.reload", json!({})),
        ("mcp.start", json!({ "server": name })),
        (
            "mcp.edit",
            json!({ "server": name, "layer": layer, "set": { "label": "Mine" } }),
        ),
        (
            "mcp.edit",
            json!({ "server": name, "layer": layer, "set": { "enabled": true, "env": { "A": "1" } } }),
        ),
        (
            "mcp.edit",
            json!({ "server": name, "layer": layer, "unset": ["/enabled"] }),
        ),
        (
            "mcp.add",
            json!({ "name": name, "entry": { "command": "true" }, "scope": layer }),
        ),
        ("mcp.import", json!({ "text": text, "scope": layer })),
        (
            "mcp.enable",
            json!({ "server": name, "layer": "userPackage", "enabled": true }),
        ),
        (
            "mcp.enable",
            json!({ "server": name, "layer": "userPackage", "enabled": false }),
        ),
        (
            "mcp.enable",
            json!({ "server": name, "layer": layer, "enabled": false }),
        ),
        (
            "mcp.edit",
            json!({ "server": name, "layer": layer, "rename": "other" }),
        ),
    ]
}

/// Every write of a whole entry that goes on starting the same program.
fn replacements(env: &TestEnv, server: &StdioServer, layer: &str) -> Vec<(&'static str, Value)> {
    let entry = |token: &str| {
        let mut entry = server.entry();
        entry["env"] = json!({ "API_TOKEN": token });
        entry
    };
    let text = json!({ "mcpServers": { "srv": entry("imported") } }).to_string();
    let theirs = env.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(theirs.parent().expect("a folder")).expect("a folder");
    let synced = json!({ "mcpServers": { "srv": entry("synced") } }).to_string();
    std::fs::write(theirs, synced).expect("a file");
    vec![
        (
            "mcp.add",
            json!({ "name": "srv", "entry": entry("replaced"), "scope": layer, "replace": true }),
        ),
        (
            "mcp.import",
            json!({ "text": text, "scope": layer, "replace": true }),
        ),
        (
            "mcp.sync",
            json!({ "client": "cursor", "direction": "from", "replace": true }),
        ),
        (
            "mcp.add",
            json!({ "name": "srv", "entry": entry("asked"), "scope": layer, "replace": true, "gate": true }),
        ),
        ("mcp.profile", json!({ "profile": "few" })),
        (
            "mcp.edit",
            json!({ "server": "srv", "layer": layer, "set": { "args": ["--other"], "cwd": "/" }, "rename": "new" }),
        ),
        (
            "mcp.edit",
            json!({ "server": "new", "layer": layer, "set": { "timeoutMs": 5000 }, "rename": "srv" }),
        ),
    ]
}

fn no_write_passes_a_decision_by() {
    for stand in &STANDS {
        let mut env = TestEnv::new();
        let server = env.plain_server("srv", json!({}));
        let package = env.data().join("packages/lower");
        std::fs::create_dir_all(&package).expect("a folder");
        let lower = json!({ "servers": { "srv": { "command": "true", "enabled": false } } });
        std::fs::write(package.join("mcp.json"), lower.to_string()).expect("a file");
        let policy = env.tmp().join("policy.json");
        std::fs::write(&policy, "{}").expect("a file");
        let profiles = json!({ "profiles": { "few": { "servers": ["srv", "new", "other"] } } });
        env.write_config_text(&profiles.to_string());
        env.set("PILLION_POLICY", &policy.to_string_lossy());
        let host = Host::start(&env);
        (stand.make)(&env, &host, &server);
        let is_of_project = !state(&host, "srv", "project").is_empty();
        let layer = if is_of_project { "project" } else { "user" };
        assert_eq!(state(&host, "srv", layer), stand.state, "{}", stand.name);
        let tried = |name: &str, method: &str, params: &Value| {
            let what = format!("{}: {method} {params}", stand.name);
            if stand.forbidden {
                std::fs::write(&policy, json!({ "deny": [{ "name": "*" }] }).to_string()).expect("a file");
                host.must("mcp.reload", json!({}));
                assert_eq!(state(&host, name, layer), "disabled", "{what}");
            }
            let outcome = host.ask(method, params.clone());
            if stand.forbidden {
                std::fs::write(&policy, "{}").expect("a file");
                host.must("mcp.reload", json!({}));
            }
            let name = match (&outcome, params["rename"].as_str()) {
                (Ok(_), Some(new)) => new.to_owned(),
                _ => name.to_owned(),
            };
            let mut after = state(&host, &name, layer);
            if stand.held {
                if after == "pending" {
                    decide(&host, "approve");
                    after = state(&host, &name, layer);
                }
                let is_written = |answer: &Value| answer["added"] != 0 && answer["written"] != 0;
                let is_whole = params["replace"] == true || method == "mcp.profile";
                assert!(
                    !is_whole || stand.forbidden || outcome.as_ref().is_ok_and(is_written),
                    "{what}: {outcome:?}"
                );
                let error = host.call(&name, "echo", json!({})).expect_err(&what);
                let is_off = after == "disabled" && error.data["reason"] == "disabled";
                assert!(is_off || error.data["by"] == "held", "{what}: {after}, {error}");
                assert!(is_off || holds(&host, &name), "{what}");
                assert!(server.log.requests("tools/call").is_empty(), "{what}");
                return name;
            }
            assert!(
                after == stand.state || after == "pending",
                "{what}: {after}, {outcome:?}"
            );
            assert!(host.call(&name, "echo", json!({})).is_err(), "{what}");
            assert!(server.log.starts().is_empty(), "{what}");
            name
        };
        let mut name = "srv".to_owned();
        let all = if stand.held {
            replacements(&env, &server, layer)
        } else {
            Vec::new()
        };
        for (method, params) in all {
            name = tried(&name, method, &params);
        }
        for (method, params) in writes("srv", layer) {
            if !stand.decided_by.contains(&method) || method == "mcp.enable" {
                name = tried(&name, method, &params);
            }
        }
        if !stand.decided_by.contains(&"mcp.enable") {
            tried(
                &name,
                "mcp.enable",
                &json!({ "server": name, "layer": layer, "enabled": true }),
            );
        }
    }
}

/// A hand in the file while no process looks is no decision about the tools either.
fn what_is_held_stays_held_while_nobody_runs() {
    for (scope, file) in [
        ("user", user_file as fn(&TestEnv) -> _),
        ("project", project_file),
    ] {
        let env = TestEnv::new();
        let server = program(&env, "Echoes");
        let host = Host::start(&env);
        stored(&host, &server, scope);
        change_tool(&env, &host);
        drop(host);
        change_file(&file(&env));
        if scope == "project" {
            crate::trust::trust(&Host::start(&env));
        }
        let called = env.command().args(["call", "srv", "echo"]).output();
        let called = called.expect("the binary runs");
        assert_eq!(called.status.code(), Some(4), "{scope}: {called:?}");
        let shown = env.command().arg("pin").output().expect("the binary runs");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("- description: Echoes\n"), "{scope}: {shown}");
        // What was accepted before the change is accepted after it.
        program(&env, "Echoes");
        let called = env.command().args(["call", "srv", "echo"]).output();
        assert_eq!(called.expect("the binary runs").status.code(), Some(0), "{scope}");
    }
}

/// Nothing is held against a server because another one had its name before; what is the same is not accepted by a way
/// round.
fn another_server_under_a_name_begins_anew() {
    let env = TestEnv::new();
    let server = program(&env, "Echoes");
    let host = Host::start(&env);
    stored(&host, &server, "user");
    change_tool(&env, &host);
    let write = |entry: Option<Value>| {
        let servers = entry.map_or_else(|| json!({}), |entry| json!({ "srv": entry }));
        env.write_config(&servers);
        host.must("mcp.reload", json!({}));
    };
    let stranger = env.plain_server(
        "stranger",
        json!({
            "initialize": { "instructions": "Echo everything." },
            "tools/list": { "tools": [{ "name": "echo", "description": "Quite another thing", "inputSchema": { "type": "object" } }] },
        }),
    );
    for gap in [true, false] {
        // The very same entry comes back, after its removal by hand and without it.
        if gap {
            write(None);
        }
        write(Some(server.entry()));
        let error = host.call("srv", "echo", json!({})).expect_err("held");
        assert_eq!(error.data["by"], "held", "{gap}");
        // And another one takes its name.
        if gap {
            write(None);
        }
        write(Some(stranger.entry()));
        host.call("srv", "echo", json!({})).expect("a server of its own");
        let offer = host.must("mcp.model.tools", json!({}));
        assert_eq!(
            offer["servers"]
                .as_array()
                .and_then(|servers| servers.last())
                .map(|server| &server["instructions"]),
            Some(&json!("Echo everything.")),
            "{offer}"
        );
        assert_eq!(host.must("mcp.tools.review", json!({}))["reviews"], json!([]));
    }
    // What the person gives up is forgotten, and so is what its name stood for.
    write(Some(server.entry()));
    assert!(holds(&host, "srv"));
    host.must("mcp.remove", json!({ "server": "srv" }));
    let mut entry = server.entry();
    entry["args"] = json!(["--again"]);
    write(Some(entry));
    host.call("srv", "echo", json!({})).expect("begun anew");
}

/// The state of a name in one layer.
fn state(host: &Host, name: &str, layer: &str) -> String {
    let status = host.must("mcp.status", json!({}));
    let records = status["servers"].as_array().into_iter().flatten();
    let found = records
        .clone()
        .find(|record| record["name"] == name && record["layer"] == layer);
    found
        .and_then(|record| record["state"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// An entry that came through the gate stays under it: neither an edit nor the switch takes it out.
fn what_was_approved_stays_approved() {
    for (method, params) in [
        ("mcp.edit", json!({ "server": "srv", "set": { "label": "Mine" } })),
        (
            "mcp.edit",
            json!({ "server": "srv", "set": { "args": ["--mine"] } }),
        ),
        ("mcp.enable", json!({ "server": "srv", "enabled": false })),
        ("mcp.enable", json!({ "server": "srv", "enabled": true })),
    ] {
        for (scope, file) in [
            ("user", user_file as fn(&TestEnv) -> _),
            ("project", project_file),
        ] {
            let env = TestEnv::new();
            let server = env.plain_server("srv", json!({}));
            let host = Host::start(&env);
            approved(&host, &server, scope);
            host.must(method, params.clone());
            assert_ne!(
                host.status("srv")["state"],
                "pending",
                "{scope} {method} {params}"
            );
            change_file(&file(&env));
            assert_eq!(
                host.status("srv")["state"],
                "pending",
                "{scope} {method} {params}"
            );
        }
    }
}

/// A change of something else leaves the person's switch alone, under a new name too.
fn a_switch_stays_where_it_is() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    untrusted(&env, &Host::start(&env), &server);
    let host = Host::start(&env);
    crate::trust::trust(&host);
    host.must("mcp.enable", json!({ "server": "srv", "enabled": false }));
    for params in [
        json!({ "server": "srv", "set": { "label": "Mine" } }),
        json!({ "server": "srv", "rename": "other" }),
    ] {
        let written = host.must("mcp.edit", params);
        assert_eq!(written["server"]["state"], "disabled", "{written}");
    }
    assert!(server.log.starts().is_empty());
    host.must(
        "mcp.edit",
        json!({ "server": "other", "set": { "enabled": true } }),
    );
    host.wait_state("other", "ready");
}

/// What a hand changed and nobody looked at for a day does not come to life by its switch.
fn what_lapsed_is_asked_again() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    changed_in_file(&env, &host, &server);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 60 * 60);
    let file = std::fs::File::options()
        .append(true)
        .open(user_file(&env))
        .expect("the file");
    file.set_modified(old).expect("a time");
    host.must("mcp.reload", json!({}));
    assert_eq!(host.status("srv")["state"], "disabled");
    let written = host.must("mcp.enable", json!({ "server": "srv", "enabled": true }));
    assert_eq!(
        (&written["server"]["state"], &written["review"]["target"]["argv"]),
        (&json!("pending"), &json!(["--changed"])),
        "{written}"
    );
    assert!(host.call("srv", "echo", json!({})).is_err());
    decide(&host, "approve");
    host.call("srv", "echo", json!({})).expect("approved");
}

fn a_name_that_is_asked_for_is_taken() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "mine": server.entry() }));
    let host = Host::start(&env);
    asked(&env, &host, &server);
    let error = host
        .ask("mcp.edit", json!({ "server": "mine", "rename": "srv" }))
        .expect_err("taken");
    assert_eq!(error.kind(), "name_taken");
    assert_eq!(host.status("srv")["state"], "pending");
    // A name that was refused is free for the person.
    decide(&host, "reject");
    host.must("mcp.edit", json!({ "server": "mine", "rename": "srv" }));
    host.call("srv", "echo", json!({}))
        .expect("the person's own entry");
}

/// An entry that comes back is asked about again; other directories are not touched.
fn removal_forgets_trust() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let both = json!({ "srv": server.entry(), "other": server.entry() });
    crate::trust::write_project(&env, &both);
    let elsewhere = env.tmp().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".pillion")).expect("a folder");
    std::fs::copy(project_file(&env), elsewhere.join(".pillion/mcp.json")).expect("a copy");
    let host = Host::start(&env);
    crate::trust::trust(&host);
    let there = elsewhere.to_string_lossy().into_owned();
    let review = host
        .request("mcp.trust", json!({ "directory": there }))
        .expect("a review");
    host.request(
        "mcp.trust",
        json!({ "directory": there, "action": "grant", "revision": review["revision"] }),
    )
    .expect("granted");
    let keys = || {
        let text = std::fs::read_to_string(env.data().join("trust.json")).expect("the file");
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        let of = |directory: &std::path::Path| -> Vec<String> {
            let real = std::fs::canonicalize(directory).expect("a path");
            let entries = &whole["directories"][&*real.to_string_lossy()]["entries"];
            entries
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone())
                .collect()
        };
        (of(&env.project()), of(&elsewhere))
    };
    let all = vec!["project:other".to_owned(), "project:srv".to_owned()];
    assert_eq!(keys(), (all.clone(), all.clone()));
    host.must("mcp.remove", json!({ "server": "srv" }));
    assert_eq!(keys(), (vec!["project:other".to_owned()], all.clone()));
    // A new name is not a second one.
    host.must("mcp.edit", json!({ "server": "other", "rename": "third" }));
    assert_eq!(keys(), (vec!["project:third".to_owned()], all.clone()));
    host.must("mcp.remove", json!({ "server": "third" }));
    assert_eq!(keys(), (Vec::new(), all));
    crate::trust::write_project(&env, &both);
    assert_eq!(host.must("mcp.status", json!({}))["trust"], "untrusted");
    assert_eq!(host.status("srv")["state"], "needs_trust");
}
