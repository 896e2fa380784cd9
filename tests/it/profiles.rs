//! Profiles: named sets of servers, of which a session uses one.

use std::process::Output;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, StdioServer, TestEnv, clock};
use crate::trust::trust;

pub fn stories() -> Vec<Trial> {
    stories!("profiles":
        a_session_uses_what_its_profile_holds, the_file_has_a_default, another_profile_while_servers_run,
        a_call_may_finish, an_unknown_profile_starts_nothing, faults_have_a_place, unknown_servers_are_told,
        a_project_only_narrows, what_is_off_stays_off, what_is_left_out_can_be_edited, files_keep_their_profiles,
        in_the_terminal, a_mistake_in_the_terminal,
    )
}

fn write(env: &TestEnv, mut members: Value, servers: &[(&str, &StdioServer)]) {
    let entries = servers
        .iter()
        .map(|(name, server)| ((*name).to_owned(), server.entry()));
    members["servers"] = Value::Object(entries.collect());
    env.write_config_text(&members.to_string());
}

fn work() -> Value {
    json!({ "profiles": {
        "work": { "servers": ["one"], "description": "What the day needs" },
        "home": { "servers": ["two", "one"] },
    } })
}

fn host_with(env: &TestEnv, profile: &str) -> Host {
    let initialization = json!({ "serverProfile": profile, "capabilities": { "questions": true } });
    Host::start_with(
        env,
        HostOptions {
            initialization,
            ..HostOptions::default()
        },
    )
}

fn two(env: &TestEnv) -> (StdioServer, StdioServer) {
    (
        env.plain_server("one", json!({})),
        env.plain_server("two", json!({})),
    )
}

/// Whose tools are listed.
fn listed(host: &Host) -> Vec<String> {
    let list = host.must("mcp.tools.list", json!({}));
    let items = list["items"].as_array().expect("a list").iter();
    let mut names: Vec<String> = items
        .map(|item| item["server"].as_str().unwrap_or_default().to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn run(env: &TestEnv, args: &[&str]) -> Output {
    env.command().args(args).output().expect("the binary runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn a_session_uses_what_its_profile_holds() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    write(&env, work(), &[("one", &one), ("two", &two)]);
    let host = host_with(&env, "work");
    assert_eq!(listed(&host), ["one"]);
    let offer = host.must("mcp.model.tools", json!({})).to_string();
    assert!(
        offer.contains("mcp__one__") && !offer.contains("mcp__two__"),
        "{offer}"
    );
    let catalog = host.must("mcp.catalog", json!({}));
    assert_eq!(catalog["servers"].as_array().map(Vec::len), Some(1), "{catalog}");

    let status = host.must("mcp.status", json!({}));
    assert_eq!(status["profile"], json!({ "name": "work", "chosenBy": "host" }));
    let record = host.status("two");
    assert_eq!(
        (
            &record["state"],
            &record["leftOutBy"],
            &record["issues"][0]["message"]
        ),
        (
            &json!("disabled"),
            &json!("work"),
            &json!("not in profile `work`")
        )
    );
    assert!(host.status("one").get("leftOutBy").is_none());

    for (method, params) in [
        ("mcp.tool.call", json!({ "server": "two", "name": "echo" })),
        ("mcp.start", json!({ "server": "two" })),
        ("mcp.restart", json!({ "server": "two" })),
        ("mcp.tools.list", json!({ "server": "two" })),
        ("mcp.resource.read", json!({ "server": "two", "uri": "a:b" })),
        ("mcp.prompt.get", json!({ "server": "two", "name": "p" })),
        ("mcp.resource.subscribe", json!({ "server": "two", "uri": "a:b" })),
    ] {
        let error = host.ask(method, params).expect_err("not used");
        assert_eq!(
            (error.kind(), &error.data["reason"]),
            ("target_mismatch", &json!("profile")),
            "{method}: {error}"
        );
        assert!(
            error.message.contains("`two` is not used: not in profile `work`"),
            "{method}: {error}"
        );
        assert!(
            error.data["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("mcp.profile")),
            "{error}"
        );
    }
    host.call("one", "echo", json!({})).expect("it is used");
    assert!(two.log.starts().is_empty(), "nothing started it");
}

fn the_file_has_a_default() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    let mut members = work();
    members["defaultProfile"] = json!("work");
    write(&env, members, &[("one", &one), ("two", &two)]);
    let host = Host::start(&env);
    assert_eq!(
        host.must("mcp.status", json!({}))["profile"],
        json!({ "name": "work", "chosenBy": "file" })
    );
    assert_eq!(listed(&host), ["one"]);
    // The file changes by hand.
    write(&env, work(), &[("one", &one), ("two", &two)]);
    clock::eventually("every server is used", || {
        (listed(&host) == ["one", "two"]).then_some(())
    });
    assert!(host.must("mcp.status", json!({})).get("profile").is_none());
    assert_eq!(one.log.starts().len(), 1, "what stays is not touched");
    let all = host_with(&env, "all");
    assert_eq!(listed(&all), ["one", "two"]);
}

fn another_profile_while_servers_run() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    let mut members = work();
    members["servers"] = json!({ "one": one.entry(), "two": two.entry() });
    members["servers"]["two"]["autostart"] = json!(true);
    env.write_config_text(&members.to_string());
    let host = host_with(&env, "work");
    host.start_server("one");
    assert!(
        two.log.starts().is_empty(),
        "what is left out does not start by itself"
    );

    let answer = host.must("mcp.profile", json!({ "profile": "home" }));
    assert_eq!(answer["profile"]["name"], "home");
    assert_eq!(
        answer["profiles"][1],
        json!({ "name": "work", "layer": "user",
        "file": env.data().join("mcp.json").display().to_string(), "servers": ["one"], "description": "What the day needs" })
    );
    host.wait_state("two", "ready");
    let pid = two.log.last_pid().expect("it runs");

    host.must("mcp.profile", json!({ "profile": "work" }));
    host.wait_state("two", "disabled");
    clock::eventually("its process ends", || {
        (!crate::support::processes::is_alive(pid)).then_some(())
    });
    assert_eq!(one.log.starts().len(), 1, "what stays is not touched");
    assert_eq!(host.status("one")["state"], "ready");
    host.wait_notification("mcp.changed", |changed| changed.get("server").is_none());

    let error = host
        .ask("mcp.profile", json!({ "profile": "wrok" }))
        .expect_err("unknown");
    assert_eq!(
        (error.kind(), &error.data["candidates"]),
        ("not_found", &json!(["work"]))
    );
    assert!(error.message.contains("`home`, `work`, `all`"), "{error}");
    assert_eq!(
        host.must("mcp.profile", json!({}))["profile"]["name"],
        "work",
        "nothing changed"
    );
    host.must("mcp.profile", json!({ "profile": "all" }));
    assert_eq!(listed(&host), ["one", "two"]);
}

fn a_call_may_finish() {
    let env = TestEnv::new();
    let one = env.plain_server("one", json!({}));
    let two = env.plain_server("two", json!({ "tools/call": { "$delay_ms": 700 } }));
    write(&env, work(), &[("one", &one), ("two", &two)]);
    let host = host_with(&env, "home");
    let call = host.send_call("two", "echo", json!({}));
    two.log.wait_request("tools/call");
    host.must("mcp.profile", json!({ "profile": "work" }));
    let error = host.call("two", "echo", json!({})).expect_err("no new calls");
    assert_eq!(error.data["reason"], "profile");
    assert!(call.wait().is_ok(), "what runs may finish");
    clock::eventually("it ends after its call", || {
        (!two.log.exits().is_empty()).then_some(())
    });
}

fn an_unknown_profile_starts_nothing() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    write(&env, work(), &[("one", &one), ("two", &two)]);
    let host = host_with(&env, "wrok");
    assert_eq!(listed(&host), Vec::<String>::new());
    let status = host.must("mcp.status", json!({}));
    let message = status["profile"]["issues"][0]["message"]
        .as_str()
        .unwrap_or_default();
    assert_eq!(
        message,
        "there is no profile `wrok`; there is `home`, `work`, `all`"
    );
    let error = host.call("one", "echo", json!({})).expect_err("not used");
    assert!(error.message.contains("there is no profile `wrok`"), "{error}");
    assert!(one.log.starts().is_empty() && two.log.starts().is_empty());

    for default in [json!("gone"), json!(7), json!("")] {
        let mut members = work();
        members["defaultProfile"] = default.clone();
        write(&env, members, &[("one", &one)]);
        let host = Host::start(&env);
        assert_eq!(listed(&host), Vec::<String>::new(), "{default}");
        let status = host.must("mcp.status", json!({}));
        assert!(
            status["profile"]["issues"][0]["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("defaultProfile")),
            "{status}"
        );
    }
}

fn faults_have_a_place() {
    let env = TestEnv::new();
    let (one, _) = two(&env);
    let host = Host::start(&env);
    for (profiles, message, line, column) in [
        ("[]", "`profiles` must be an object", 2, 13),
        (
            "{\"a\": {\"servers\": \"one\"}}",
            "the profile `a` was left out: `servers` must be a list, not a text",
            2,
            31,
        ),
        (
            "{\"a\": {\"servers\": [\"one\"], \"colour\": 1}}",
            "the profile `a` was left out: `colour` is not known",
            2,
            40,
        ),
        (
            "{\"a\": {\"servrs\": [\"one\"]}}",
            "the profile `a` was left out: `servrs` is not known; did you mean `servers`?",
            2,
            20,
        ),
        (
            "{\"a\": {}}",
            "the profile `a` was left out: it needs `servers`",
            2,
            19,
        ),
        (
            "{\"all\": {\"servers\": []}}",
            "`all` stands for every server",
            2,
            14,
        ),
        ("{\"a b\": {\"servers\": []}}", "a name has 1 to 64", 2, 14),
        (
            "{\"a\": {\"servers\": []}, \"a\": {\"servers\": []}}",
            "`a` occurs twice",
            2,
            36,
        ),
    ] {
        let text = format!(
            "{{\"servers\": {{\"one\": {}}},\n\"profiles\": {profiles}, \"defaultProfile\": \"a\"}}",
            one.entry()
        );
        env.write_config_text(&text);
        let status = host.must("mcp.status", json!({}));
        let fault = &status["files"][0]["fault"];
        assert!(
            fault["message"]
                .as_str()
                .is_some_and(|said| said.contains(message)),
            "{profiles}: {fault}"
        );
        assert_eq!(
            (&fault["line"], &fault["column"]),
            (&json!(line), &json!(column)),
            "{profiles}: {fault}"
        );
        assert_eq!(
            status["servers"][0]["state"], "disabled",
            "a broken profile switches nothing on"
        );
    }
}

fn unknown_servers_are_told() {
    let env = TestEnv::new();
    let (one, _) = two(&env);
    write(
        &env,
        json!({ "profiles": { "work": { "servers": ["one", "gone"] } } }),
        &[("one", &one)],
    );
    let host = host_with(&env, "work");
    let status = host.must("mcp.status", json!({}));
    assert_eq!(status["files"][0].get("fault"), None, "no fault of the file");
    let issues = &status["profile"]["issues"];
    assert_eq!(
        issues[0]["message"],
        "profile `work` names `gone`, which does not exist here"
    );
    assert_eq!(
        host.must("mcp.config", json!({}))["profiles"][0]["unknown"],
        json!(["gone"])
    );
    assert_eq!(listed(&host), ["one"]);
    // A name follows its entry.
    host.must("mcp.edit", json!({ "server": "one", "rename": "first" }));
    assert_eq!(
        host.must("mcp.config", json!({}))["profiles"][0]["servers"],
        json!(["first", "gone"])
    );
    assert_eq!(listed(&host), ["first"]);
}

fn write_project(env: &TestEnv, whole: &Value) {
    let folder = env.project().join(".pillion");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("mcp.json"), whole.to_string()).expect("a file");
}

fn a_project_only_narrows() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    let (left, right) = (
        env.plain_server("left", json!({})),
        env.plain_server("right", json!({})),
    );
    let project = json!({
        "servers": { "left": left.entry(), "right": right.entry() },
        "profiles": { "work": { "servers": ["left", "two"] }, "team": { "servers": ["right", "one"] } },
        "defaultProfile": "team",
    });
    write_project(&env, &project);
    let user = json!({ "profiles": { "work": { "servers": ["one", "left", "right"] } } });
    write(&env, user, &[("one", &one), ("two", &two)]);

    let host = host_with(&env, "work");
    assert_eq!(listed(&host), ["one"], "a profile is no trust");
    assert_eq!(host.status("left")["state"], "needs_trust");
    let project_file = host.must("mcp.status", json!({}))["files"].to_string();
    assert!(
        project_file.contains("`defaultProfile` belongs into your own mcp.json"),
        "{project_file}"
    );
    trust(&host);
    assert_eq!(
        listed(&host),
        ["left", "one"],
        "both files have to name a project's server"
    );
    host.must("mcp.profile", json!({ "profile": "team" }));
    assert_eq!(
        listed(&host),
        ["right"],
        "a project says nothing about the person's own servers"
    );
    host.must("mcp.profile", json!({ "profile": "all" }));
    assert_eq!(listed(&host), ["left", "one", "right", "two"]);
}

fn what_is_off_stays_off() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    let mut members = work();
    members["servers"] = json!({ "one": one.entry(), "two": two.entry() });
    members["servers"]["one"]["enabled"] = json!(false);
    env.write_config_text(&members.to_string());
    let host = host_with(&env, "home");
    assert_eq!(listed(&host), ["two"]);
    assert_eq!(
        host.call("one", "echo", json!({})).expect_err("off").data["reason"],
        "disabled"
    );
    // The switch and the profile are two things.
    host.must("mcp.profile", json!({ "profile": "work" }));
    host.must("mcp.enable", json!({ "server": "two", "enabled": false }));
    host.must("mcp.enable", json!({ "server": "two", "enabled": true }));
    assert_eq!(host.status("two")["leftOutBy"], "work");
    host.must("mcp.enable", json!({ "server": "one", "enabled": true }));
    assert_eq!(listed(&host), ["one"]);
}

fn what_is_left_out_can_be_edited() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    write(&env, work(), &[("one", &one), ("two", &two)]);
    let host = host_with(&env, "work");
    let tested = host.must("mcp.test", json!({ "server": "two" }));
    assert_eq!(tested["ok"], true, "{tested}");
    let edited = host.must(
        "mcp.edit",
        json!({ "server": "two", "set": { "label": "Second" } }),
    );
    assert_eq!(
        (&edited["server"]["label"], &edited["server"]["state"]),
        (&json!("Second"), &json!("disabled"))
    );
    let found = host.must("mcp.doctor", json!({ "server": "two" })).to_string();
    assert!(found.contains("not_in_profile"), "{found}");
    // A new server is outside until the profile names it.
    let added = host.must("mcp.add", json!({ "name": "three", "entry": two.entry() }));
    assert_eq!(added["server"]["leftOutBy"], "work");
    host.must("mcp.remove", json!({ "server": "two" }));
    assert_eq!(two.log.starts().len(), 1, "the test was the only start");
}

fn files_keep_their_profiles() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    let mut members = work();
    members["defaultProfile"] = json!("work");
    write(&env, members.clone(), &[("one", &one)]);
    let file = env.tmp().join("other.json");
    std::fs::write(&file, json!({ "mcpServers": { "two": two.entry() } }).to_string()).expect("a file");
    let imported = run(&env, &["import", file.to_str().expect("UTF-8")]);
    assert!(imported.status.success(), "{imported:?}");
    let text = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    let stored: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(stored["profiles"], members["profiles"]);
    assert_eq!(stored["defaultProfile"], "work");
    assert!(stored["servers"]["two"].is_object(), "{stored}");
    // What a profile leaves out is exported all the same.
    assert!(out(&run(&env, &["export"])).contains("two"));
}

fn in_the_terminal() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    write(&env, work(), &[("one", &one), ("two", &two)]);
    let status = run(&env, &["status", "--profile", "work"]);
    assert!(
        out(&status).contains("disabled: not in profile `work`"),
        "{status:?}"
    );
    assert!(err(&status).contains("Profile: work"), "{status:?}");
    let tools = out(&run(&env, &["tools", "--profile", "work"]));
    assert!(tools.contains("one") && !tools.contains("two"), "{tools}");
    let called = run(&env, &["call", "two", "echo", "--profile", "work"]);
    assert_eq!(called.status.code(), Some(1), "{called:?}");
    assert!(
        err(&called).contains("not in profile `work`") && err(&called).contains("--profile NAME"),
        "{called:?}"
    );
    assert!(!err(&called).contains("mcp.profile"), "{called:?}");
    assert!(
        run(&env, &["call", "two", "echo", "--profile", "home"])
            .status
            .success()
    );
    assert!(run(&env, &["call", "two", "echo"]).status.success());
    let config = run(&env, &["config"]);
    assert!(out(&config).contains("What the day needs"), "{config:?}");
}

fn a_mistake_in_the_terminal() {
    let env = TestEnv::new();
    let (one, two) = two(&env);
    write(&env, work(), &[("one", &one), ("two", &two)]);
    for args in [["tools", "--profile", "wrok"], ["status", "--profile", "wrok"]] {
        let failed = run(&env, &args);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        assert!(
            err(&failed).contains("there is no profile `wrok`; there is `home`, `work`, `all`"),
            "{failed:?}"
        );
        assert!(
            err(&failed).contains("pillion config") && !err(&failed).contains("mcp.profile"),
            "{failed:?}"
        );
    }
    let mut members = work();
    members["defaultProfile"] = json!("gone");
    write(&env, members, &[("one", &one)]);
    let status = run(&env, &["status"]);
    assert!(
        status.status.success() && err(&status).contains("there is no profile `gone`"),
        "{status:?}"
    );
    assert!(one.log.starts().is_empty());
}
