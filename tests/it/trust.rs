//! Projects: their entries are shown, and cause nothing before a person trusts them as they stand.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::environment::started_env;
use crate::stories;
use crate::support::{Host, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("trust":
        untrusted_projects_do_nothing, trust_is_for_what_was_shown, what_is_not_shown_is_named,
        a_change_is_asked_again_with_its_difference,
        what_did_not_change_goes_on, revoking_stops_at_once, local_writes_keep_trust,
        packages_of_a_project_need_trust, one_instance_per_directory, personal_switches_leave_the_project_alone,
        layers_hide_each_other, another_process_trusts,
        an_edit_is_no_trust, packages_come_and_go, what_a_file_holds_is_trusted_with_it, no_race_with_a_file,
    )
}

pub fn write_project(env: &TestEnv, servers: &Value) {
    let folder = env.project().join(".pillion");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = serde_json::to_string_pretty(&json!({ "servers": servers })).expect("JSON");
    std::fs::write(folder.join("mcp.json"), text).expect("a file");
}

pub fn trust(host: &Host) -> Value {
    let review = host.must("mcp.trust", json!({}));
    host.must(
        "mcp.trust",
        json!({ "action": "grant", "revision": review["revision"] }),
    )
}

/// Who changes a label of an entry has not agreed to the command beside it.
fn an_edit_is_no_trust() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let edit = json!({ "server": "srv", "set": { "label": "Mine" } });
    let written = host.must("mcp.edit", edit);
    assert_eq!(
        (&written["written"], &written["server"]["state"]),
        (&json!(true), &json!("needs_trust")),
        "{written}"
    );
    host.must("mcp.edit", json!({ "server": "srv", "rename": "other" }));
    host.must("mcp.enable", json!({ "server": "other", "enabled": true }));
    assert_eq!(host.status("other")["state"], "needs_trust");
    assert!(server.log.starts().is_empty());
    // Once it is trusted, what the person changes stays trusted.
    trust(&host);
    let edit = json!({ "server": "other", "set": { "env": { "A": "1" } } });
    assert_eq!(host.must("mcp.edit", edit)["server"]["state"], "stopped");
    host.call("other", "echo", json!({})).expect("trusted");
}

fn untrusted_projects_do_nothing() {
    let env = TestEnv::new();
    let (project, user) = (env.plain_server("p", json!({})), env.plain_server("u", json!({})));
    write_project(&env, &json!({ "srv": project.entry(), "only": project.entry() }));
    env.write_config(&json!({ "srv": user.entry() }));
    let host = Host::start(&env);
    let status = host.must("mcp.status", json!({}));
    assert_eq!(status["trust"], "untrusted");
    let records = status["servers"].as_array().expect("a list");
    let of = |name: &str, layer: &str| {
        let found = records
            .iter()
            .find(|record| record["name"] == name && record["layer"] == layer);
        found.cloned().unwrap_or_else(|| panic!("{status}"))
    };
    let waiting = of("only", "project");
    assert_eq!(
        (&waiting["state"], &waiting["needsTrust"]),
        (&json!("needs_trust"), &json!(true))
    );
    assert_eq!(
        (
            &of("srv", "project")["effective"],
            &of("srv", "user")["effective"]
        ),
        (&json!(false), &json!(true))
    );
    // Exactly as if it did not exist.
    let unknown = host.call("nowhere", "echo", json!({})).expect_err("unknown");
    for error in [
        host.call("only", "echo", json!({})).expect_err("untrusted"),
        host.ask("mcp.start", json!({ "server": "only" }))
            .expect_err("untrusted"),
        host.ask("mcp.tools.list", json!({ "server": "only" }))
            .expect_err("untrusted"),
    ] {
        assert_eq!(
            (error.code, error.kind(), &error.data["reason"]),
            (unknown.code, unknown.kind(), &unknown.data["reason"])
        );
    }
    // The user's own entry of the same name goes on working.
    host.call("srv", "echo", json!({})).expect("the user's server");
    host.must("mcp.catalog", json!({}));
    assert_eq!((project.log.starts().len(), user.log.starts().len()), (0, 1));
}

fn trust_is_for_what_was_shown() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    let mut entry = server.entry();
    entry["args"] = json!(["--api-key", "sk-1", "--mode", "fast"]);
    entry["env"] = json!({ "API_TOKEN": "tk-2", "MODE": "${WHAT}" });
    write_project(&env, &json!({ "srv": entry }));
    let host = Host::start(&env);
    let review = host.must("mcp.trust", json!({}));
    assert_eq!(review["state"], "untrusted");
    let shown = &review["reviews"][0];
    assert_eq!(
        (&shown["why"], &shown["target"]["argv"]),
        (
            &json!("project"),
            &json!(["--api-key", "********", "--mode", "fast"])
        )
    );
    assert_eq!(
        (&shown["target"]["envNames"], &shown["reads"]),
        (&json!(["API_TOKEN", "MODE"]), &json!(["${WHAT}"]))
    );
    assert!(!review.to_string().contains("sk-1") && !review.to_string().contains("tk-2"));
    // Another revision, or none, trusts nothing.
    for revision in [Value::Null, json!("0000")] {
        let error = host
            .ask("mcp.trust", json!({ "action": "grant", "revision": revision }))
            .expect_err("stale");
        assert_eq!((error.code, error.kind()), (-32053, "stale_review"));
    }
    let mut changed = entry.clone();
    changed["args"] = json!(["--evil"]);
    write_project(&env, &json!({ "srv": changed }));
    let error = host
        .ask(
            "mcp.trust",
            json!({ "action": "grant", "revision": review["revision"] }),
        )
        .expect_err("changed meanwhile");
    assert_eq!(error.kind(), "stale_review");
    write_project(&env, &json!({ "srv": server.entry() }));
    assert_eq!(trust(&host)["state"], "trusted");
    assert_eq!(server.log.starts().len(), 0, "trust starts nothing");
    host.call("srv", "echo", json!({})).expect("trusted");
    assert!(env.data().join("trust.json").exists());
    assert!(!env.project().join("trust.json").exists());
}

/// A value that no review shows does not change unseen.
fn what_is_not_shown_is_named() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    let host = Host::start(&env);
    let write = |members: Value| {
        let mut entry = server.entry();
        for (name, value) in members.as_object().into_iter().flatten() {
            entry[name] = value.clone();
        }
        write_project(&env, &json!({ "srv": entry }));
    };
    write(json!({ "env": { "UPSTREAM": "good.example", "a/b": "1" }, "elicitation": true }));
    trust(&host);
    write(json!({ "env": { "UPSTREAM": "evil.example", "NEW": "2" }, "elicitation": false }));
    let review = host.must("mcp.trust", json!({}));
    assert_eq!(
        review["reviews"][0]["changed"],
        json!(["/elicitation", "/env/NEW", "/env/UPSTREAM", "/env/a~1b"])
    );
    assert!(!review.to_string().contains(".example"), "{review}");
    let shown = env.command().arg("trust").output().expect("the binary runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("  changed:     elicitation, variable NEW, variable UPSTREAM, variable a/b\n"),
        "{shown}"
    );
    // What stayed as it was is said once, and without a sign.
    assert!(
        shown.contains("  command:     ") && !shown.contains("- command"),
        "{shown}"
    );
    // What was trusted before its members were remembered is asked about all the same.
    let file = env.data().join("trust.json");
    let mut text: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("the file")).expect("JSON");
    let of_all = text["directories"]
        .as_object_mut()
        .expect("directories")
        .values_mut();
    for directory in of_all {
        let entry = directory["entries"]["project:srv"]
            .as_object_mut()
            .expect("an entry");
        entry.remove("members").expect("members");
    }
    std::fs::write(&file, text.to_string()).expect("a file");
    let review = host.must("mcp.trust", json!({}));
    assert_eq!(
        (&review["state"], &review["reviews"][0]["changed"]),
        (&json!("changed"), &json!([]))
    );
}

fn a_change_is_asked_again_with_its_difference() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    trust(&host);
    host.start_server("srv");
    let mut entry = server.entry();
    entry["args"] = json!(["--evil"]);
    write_project(&env, &json!({ "srv": entry }));
    host.wait_notification("mcp.changed", |params| {
        params["status"]["name"] == "srv" && params["status"]["state"] == "needs_trust"
    });
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    let review = host.must("mcp.trust", json!({}));
    assert_eq!(review["state"], "changed");
    let shown = &review["reviews"][0];
    assert_eq!(shown["why"], "project_changed");
    assert_eq!(
        (&shown["before"]["argv"], &shown["target"]["argv"]),
        (&json!([]), &json!(["--evil"]))
    );
    assert_eq!(shown["changed"], json!(["/args"]));
    assert!(host.call("srv", "echo", json!({})).is_err());
    assert_eq!(server.log.starts().len(), 1);
    // A label is nothing that runs.
    entry["args"] = json!([]);
    let mut named = server.entry();
    named["label"] = json!("Another name");
    write_project(&env, &json!({ "srv": named }));
    assert_eq!(host.must("mcp.trust", json!({}))["state"], "trusted");
}

fn what_did_not_change_goes_on() {
    let env = TestEnv::new();
    let (one, two) = (
        env.plain_server("one", json!({})),
        env.plain_server("two", json!({})),
    );
    write_project(&env, &json!({ "one": one.entry(), "two": two.entry() }));
    let host = Host::start(&env);
    trust(&host);
    host.start_server("one");
    let mut entry = two.entry();
    entry["args"] = json!(["more"]);
    write_project(
        &env,
        &json!({ "one": one.entry(), "two": entry, "three": two.entry() }),
    );
    assert_eq!(host.must("mcp.status", json!({}))["trust"], "changed");
    host.call("one", "echo", json!({})).expect("still trusted");
    assert_eq!(one.log.starts().len(), 1);
    for name in ["two", "three"] {
        assert_eq!(host.status(name)["state"], "needs_trust", "{name}");
    }
}

fn revoking_stops_at_once() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    trust(&host);
    host.start_server("srv");
    let revoked = host.must("mcp.trust", json!({ "action": "revoke" }));
    assert_eq!(revoked["state"], "untrusted");
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    assert_eq!(host.status("srv")["state"], "needs_trust");
}

fn local_writes_keep_trust() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    let host = Host::start(&env);
    assert_eq!(host.must("mcp.status", json!({}))["trust"], "nothing_to_trust");
    let add = json!({ "name": "srv", "scope": "project", "entry": server.entry() });
    let written = host.must("mcp.add", add);
    assert_eq!(
        (&written["server"]["layer"], &written["server"]["directory"]),
        (&json!("project"), &json!(host.directory()))
    );
    host.wait_state("srv", "ready");
    host.must("mcp.edit", json!({ "server": "srv", "set": { "args": ["x"] } }));
    assert_eq!(host.must("mcp.status", json!({}))["trust"], "trusted");
    // A colleague's entry beside it is not trusted by that.
    let file = env.project().join(".pillion/mcp.json");
    let mut text: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("the file")).expect("JSON");
    text["servers"]["theirs"] = server.entry();
    std::fs::write(&file, text.to_string()).expect("a file");
    host.must("mcp.edit", json!({ "server": "srv", "set": { "args": ["y"] } }));
    assert_eq!(host.must("mcp.status", json!({}))["trust"], "changed");
    assert_eq!(host.status("theirs")["state"], "needs_trust");
    assert_ne!(host.status("srv")["state"], "needs_trust");
}

/// A pull that changes only what an entry reads is a change of the entry.
fn what_a_file_holds_is_trusted_with_it() {
    let env = TestEnv::new();
    let (own, theirs) = (
        env.plain_server("own", json!({})),
        env.plain_server("theirs", json!({})),
    );
    let root = env.project();
    let package = root.join(".pillion/packages/pack");
    std::fs::create_dir_all(&package).expect("a folder");
    // Its own file decides which program runs.
    let entry = json!({ "command": format!("${{RUNNER:-{}}}", own.command), "envFile": ".env" });
    let text = json!({ "servers": { "packed": entry } }).to_string();
    std::fs::write(package.join("mcp.json"), text).expect("a file");
    let mine = env.home().join("mine.env");
    let mut elsewhere = own.entry();
    elsewhere["envFile"] = json!("~/mine.env");
    write_project(&env, &json!({ "srv": entry, "elsewhere": elsewhere }));
    std::fs::write(&mine, "A=1\n").expect("a file");
    for folder in [&root, &package] {
        std::fs::write(folder.join(".env"), "A=1\n").expect("a file");
    }
    let host = Host::start(&env);
    trust(&host);
    let names = ["srv", "packed"];
    for (name, folder) in names.into_iter().zip([&root, &package]) {
        host.start_server(name);
        let evil = format!("RUNNER={}\n", theirs.command);
        std::fs::write(folder.join(".env"), &evil).expect("a file");
        host.wait_notification("mcp.changed", |params| {
            params["status"]["name"] == name && params["status"]["state"] == "needs_trust"
        });
        clock::eventually("its process to end", || {
            env.server_processes().is_empty().then_some(())
        });
        assert!(host.call(name, "echo", json!({})).is_err());
    }
    let review = host.must("mcp.trust", json!({}));
    assert_eq!(review["state"], "changed");
    for shown in review["reviews"].as_array().expect("a list") {
        let changed = if names.contains(&shown["server"].as_str().expect("a name")) {
            json!(["/envFile"])
        } else {
            json!([])
        };
        assert_eq!(shown["changed"], changed, "{shown}");
    }
    let shown = env.command().arg("trust").output().expect("the binary runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("  changed:     file of variables\n"), "{shown}");
    // Who changes a label has not looked at the file.
    host.must("mcp.edit", json!({ "server": "srv", "set": { "label": "Mine" } }));
    assert_eq!(host.status("srv")["state"], "needs_trust");
    assert!(theirs.log.starts().is_empty());
    // What the review showed may have changed since.
    std::fs::remove_file(root.join(".env")).expect("the file");
    let error = host
        .ask(
            "mcp.trust",
            json!({ "action": "grant", "revision": review["revision"] }),
        )
        .expect_err("changed");
    assert_eq!(error.kind(), "stale_review");
    // A file that is not there yet is no other than none.
    trust(&host);
    std::fs::write(root.join(".env"), "A=1\n").expect("a file");
    assert_eq!(host.status("srv")["state"], "needs_trust");
    // The person's own file is the person's.
    std::fs::write(&mine, "A=2\n").expect("a file");
    host.start_server("elsewhere");
    assert_eq!(started_env(&own)["A"], "2");
    // What was asked about and agreed to counts.
    trust(&host);
    host.start_server("packed");
    assert_eq!(theirs.log.starts().len(), 1, "agreed to");
}

/// The file is changed after the gate was passed, and before the server starts.
fn no_race_with_a_file() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    let root = env.project();
    std::fs::write(root.join(".env"), "A=1\n").expect("a file");
    let mut entry = server.entry();
    entry["envFile"] = json!(".env");
    entry["env"] = json!({ "B": "${cmd:sh -c 'echo A=2 > .env; echo b'}" });
    // A start finds out only then which file this is.
    let mut named = server.entry();
    named["envFile"] = json!("${cmd:echo .env}");
    write_project(&env, &json!({ "srv": entry, "named": named }));
    let host = Host::start(&env);
    trust(&host);
    for name in ["named", "srv"] {
        let outcome = host
            .ask("mcp.start", json!({ "server": name }))
            .map_or_else(|error| error.data.to_string(), |record| record.to_string());
        assert!(
            outcome.contains("is not what was agreed to") || outcome.contains("needs_trust"),
            "{name}: {outcome}"
        );
    }
    assert!(server.log.starts().is_empty());
    assert_eq!(host.status("srv")["state"], "needs_trust");
}

/// The set of servers follows what comes and goes while a host runs; what did not change is not touched.
fn packages_come_and_go() {
    let env = TestEnv::new();
    let kept = env.plain_server("kept", json!({}));
    let busy = env.plain_server("busy", json!({ "tools/call": { "$delay_ms": 700 } }));
    let idle = env.plain_server("idle", json!({}));
    env.write_config(&json!({ "kept": kept.entry() }));
    let host = Host::start(&env);
    host.start_server("kept");
    let pid = host.status("kept")["pid"].clone();
    let install = |folder: &str, servers: Value| {
        let place = env.data().join("packages").join(folder);
        std::fs::create_dir_all(&place).expect("a folder");
        let text = json!({ "servers": servers }).to_string();
        std::fs::write(place.join("mcp.json"), text).expect("a file");
    };
    // Installed: there at once, and started by its use only.
    install("both", json!({ "busy": busy.entry(), "idle": idle.entry() }));
    assert_eq!(host.status("busy")["state"], "stopped");
    assert!(busy.log.starts().is_empty());
    host.start_server("idle");
    let call = host.send_call("busy", "echo", json!({}));
    busy.log.wait_request("tools/call");
    // Changed: what is in use finishes its call, and the next use starts what it is now.
    let mut other = busy.entry();
    other["env"] = json!({ "MODE": "new" });
    install("both", json!({ "busy": other, "idle": idle.entry() }));
    host.must("mcp.status", json!({}));
    call.wait().expect("what runs may finish");
    host.call("busy", "echo", json!({})).expect("the new one");
    assert_eq!(started_env(&busy)["MODE"], "new");
    assert_eq!((busy.log.starts().len(), idle.log.starts().len()), (2, 1));
    // Switched off, then removed: an idle one ends at once, one in use after its call.
    let call = host.send_call("busy", "echo", json!({}));
    clock::eventually("the second call", || {
        (busy.log.requests("tools/call").len() == 3).then_some(())
    });
    env.write_config_text(
        &json!({ "servers": { "kept": kept.entry() }, "packages": { "both": { "enabled": false } } })
            .to_string(),
    );
    assert_eq!(host.status("idle"), Value::Null);
    clock::eventually("the idle one to end", || {
        (!idle.log.exits().is_empty()).then_some(())
    });
    call.wait().expect("what runs may finish");
    clock::eventually("the busy one to end", || {
        (busy.log.exits().len() == 2).then_some(())
    });
    env.write_config(&json!({ "kept": kept.entry() }));
    host.call("idle", "echo", json!({})).expect("switched on again");
    std::fs::remove_dir_all(env.data().join("packages/both")).expect("removed");
    assert_eq!(host.status("idle"), Value::Null);
    assert_eq!(
        host.call("idle", "echo", json!({})).expect_err("gone").kind(),
        "target_mismatch"
    );
    assert_eq!(host.status("kept")["pid"], pid);
    assert_eq!(kept.log.starts().len(), 1);
}

fn packages_of_a_project_need_trust() {
    let env = TestEnv::new();
    let (of_project, of_user) = (env.plain_server("p", json!({})), env.plain_server("u", json!({})));
    for (folder, server) in [
        (env.project().join(".pillion/packages/tools"), &of_project),
        (env.data().join("packages/mine"), &of_user),
    ] {
        std::fs::create_dir_all(&folder).expect("a folder");
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let text = json!({ "servers": { name: server.entry() } });
        std::fs::write(folder.join("mcp.json"), text.to_string()).expect("a file");
    }
    let host = Host::start(&env);
    let record = host.status("tools");
    assert_eq!(
        (
            &record["layer"],
            &record["state"],
            &record["source"],
            &record["readOnly"]
        ),
        (
            &json!("projectPackage"),
            &json!("needs_trust"),
            &json!("package:tools"),
            &json!(true)
        )
    );
    assert_eq!(host.status("mine")["layer"], "userPackage");
    host.call("mine", "echo", json!({})).expect("the user's package");
    trust(&host);
    host.call("tools", "echo", json!({})).expect("trusted");
    // A package that goes takes its servers along; one that is switched off, too.
    std::fs::remove_dir_all(env.project().join(".pillion/packages/tools")).expect("removed");
    assert_eq!(host.status("tools"), Value::Null);
    env.write_config_text("{\"packages\": {\"mine\": {\"enabled\": false}}}");
    assert_eq!(host.status("mine"), Value::Null);
    let error = host
        .ask("mcp.remove", json!({ "server": "mine" }))
        .expect_err("gone");
    assert_eq!(error.kind(), "target_mismatch");
}

fn one_instance_per_directory() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "srv": server.entry() }));
    let other = env.tmp().join("other");
    std::fs::create_dir_all(other.join(".pillion")).expect("a folder");
    std::fs::copy(
        env.project().join(".pillion/mcp.json"),
        other.join(".pillion/mcp.json"),
    )
    .expect("a copy");
    env.write_config(&json!({ "everywhere": server.entry() }));
    let host = Host::start(&env);
    trust(&host);
    let there = other.to_string_lossy().into_owned();
    let review = host
        .request("mcp.trust", json!({ "directory": there }))
        .expect("a review");
    assert_eq!(review["state"], "untrusted", "trust is for one directory");
    host.request(
        "mcp.trust",
        json!({ "directory": there, "action": "grant", "revision": review["revision"] }),
    )
    .expect("granted");
    host.start_server("srv");
    let second = host
        .request("mcp.start", json!({ "directory": there, "server": "srv" }))
        .expect("started");
    assert_eq!(second["server"]["state"], "ready");
    assert_ne!(second["server"]["pid"], host.status("srv")["pid"]);
    let shared = host
        .request("mcp.start", json!({ "directory": there, "server": "everywhere" }))
        .expect("started");
    assert_eq!(shared["server"]["pid"], host.status("everywhere")["pid"]);
    assert_eq!(server.log.starts().len(), 3);
}

fn personal_switches_leave_the_project_alone() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "srv": server.entry() }));
    let file = env.project().join(".pillion/mcp.json");
    let before = std::fs::read_to_string(&file).expect("the file");
    let host = Host::start(&env);
    trust(&host);
    host.start_server("srv");
    host.must("mcp.enable", json!({ "server": "srv", "enabled": false }));
    assert_eq!(host.status("srv")["state"], "disabled");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), before);
    // It is remembered, for this directory and by every process.
    let second = Host::start(&env);
    assert_eq!(second.status("srv")["state"], "disabled");
    second.must("mcp.enable", json!({ "server": "srv", "enabled": true }));
    second.wait_state("srv", "ready");
    clock::eventually("the first to notice", || {
        (host.status("srv")["state"] == "stopped").then_some(())
    });
}

fn layers_hide_each_other() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    let mut off = server.entry();
    off["enabled"] = json!(false);
    write_project(&env, &json!({ "srv": off }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.call("srv", "echo", json!({}))
        .expect("the user's, as long as the project is not trusted");
    trust(&host);
    let error = host
        .call("srv", "echo", json!({}))
        .expect_err("hidden by a disabled entry");
    assert_eq!(
        (error.kind(), &error.data["reason"]),
        ("target_mismatch", &json!("disabled"))
    );
    let config = host.must("mcp.config", json!({ "server": "srv" }));
    let user = config["servers"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|entry| entry["layer"] == "user");
    assert_eq!(user.map(|entry| &entry["shadowedBy"]), Some(&json!("project")));
    let removed = host.must("mcp.remove", json!({ "server": "srv", "layer": "project" }));
    assert_eq!(removed["server"]["layer"], "user");
}

/// A decision in a terminal reaches a running editor.
fn another_process_trusts() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "srv": server.entry() }));
    let (first, second) = (Host::start(&env), Host::start(&env));
    assert_eq!(first.status("srv")["state"], "needs_trust");
    trust(&second);
    let told = first.wait_notification("mcp.changed", |params| {
        params["server"] == "srv" && params["status"]["state"] == "stopped"
    });
    assert!(
        told["reasons"]
            .as_array()
            .is_some_and(|all| all.contains(&json!("trust"))),
        "{told}"
    );
    first.call("srv", "echo", json!({})).expect("trusted");
}
