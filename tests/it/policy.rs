//! Rules for tools and servers: what asks, what is remembered, and what an administrator does not allow.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("policy":
        the_host_asks_by_default, ask_lists_ask, a_risk_is_explained, patterns_ask_and_let_pass, a_yes_is_remembered_as_told, a_no_is_a_result, an_answer_that_does_not_fit,
        nobody_to_ask,
        a_project_cannot_loosen, a_changed_tool_is_asked_again, the_administrator_forbids, references_do_not_get_round_it,
        a_broken_policy_forbids_everything, the_reason_is_told_in_a_terminal, a_rule_reaches_what_runs,
    )
}

fn host(env: &TestEnv, approval: &str, questions: bool) -> Host {
    Host::start_with(
        env,
        HostOptions {
            initialization: json!({ "toolApproval": approval, "capabilities": { "questions": questions } }),
            ..Default::default()
        },
    )
}

fn model_call(host: &Host, arguments: Value) -> Value {
    host.must(
        "mcp.model.call",
        json!({ "name": "mcp__srv__echo", "arguments": arguments, "session": "chat" }),
    )
}

/// A model's call, with the person's answer to the `index`-th question.
fn answered(host: &Host, index: usize, session: &str, answer: Value) -> (Value, Value) {
    let pending = host.send_here(
        "mcp.model.call",
        json!({ "name": "mcp__srv__echo", "arguments": { "n": 1.0 }, "session": session, "call": format!("c{index}") }),
    );
    let question = host.wait_question(index);
    let mut params = answer;
    params["question"] = question["id"].clone();
    host.request("mcp.answer", params).expect("an answer");
    (question, pending.wait().expect("a result"))
}

fn the_host_asks_by_default() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = host(&env, "host", true);
    assert_eq!(model_call(&host, json!({}))["outcome"], "ok");
    assert!(host.notifications("mcp.question").is_empty());
}

fn ask_lists_ask() {
    let env = TestEnv::new();
    let hints = json!({ "destructiveHint": true, "openWorldHint": true });
    let tools = json!([
        { "name": "echo", "description": "Says it again", "inputSchema": { "type": "object" }, "annotations": hints },
    ]);
    let server = env.plain_server("srv", json!({ "tools/list": { "tools": tools } }));
    let mut entry = server.entry();
    entry["tools"] = json!({ "ask": ["ec*"] });
    env.write_config(&json!({ "srv": entry }));
    let host = host(&env, "host", true);
    let tools = host.must("mcp.model.tools", json!({}));
    let tool = tools["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|tool| tool["name"] == "mcp__srv__echo");
    assert_eq!(tool.map(|tool| &tool["approval"]), Some(&json!("ask")), "{tools}");
    let (question, result) = answered(&host, 0, "chat", json!({ "action": "accept" }));
    assert_eq!(
        (
            &question["type"],
            &question["tool"],
            &question["exposed"],
            &question["server"]
        ),
        (
            &json!("approval"),
            &json!("echo"),
            &json!("mcp__srv__echo"),
            &json!("srv")
        )
    );
    assert_eq!(
        (&question["arguments"], &question["call"]),
        (&json!({ "n": 1.0 }), &json!("c0"))
    );
    // What the person should know: the tool's own words, the server's hints, and what they mean.
    assert_eq!(
        (&question["description"], &question["annotations"]),
        (&json!("Says it again"), &hints)
    );
    assert_eq!(
        question["message"],
        "May the model call `echo` with these arguments? Its server says that it may overwrite or delete. It says that it reaches other systems."
    );
    assert_eq!(result["outcome"], "ok");
    // A person's own call is not asked about.
    host.call("srv", "echo", json!({})).expect("a call");
}

/// A call's risk in words. What a server leaves out counts as the worst.
fn a_risk_is_explained() {
    for (hints, said) in [
        (json!({}), "does not rule out that it overwrites or deletes."),
        (
            json!({ "readOnlyHint": true, "destructiveHint": true }),
            "says that it changes nothing.",
        ),
        (
            json!({ "destructiveHint": false, "openWorldHint": false }),
            "says that it may add, but neither overwrites nor deletes.",
        ),
        (
            json!({ "readOnlyHint": "true" }),
            "does not rule out that it overwrites or deletes.",
        ),
    ] {
        let env = TestEnv::new();
        let tool = json!({ "name": "echo", "inputSchema": { "type": "object" }, "annotations": hints });
        let server = env.plain_server("srv", json!({ "tools/list": { "tools": [tool] } }));
        env.write_config(&json!({ "srv": server.entry() }));
        let host = host(&env, "ask", true);
        let (question, _) = answered(&host, 0, "chat", json!({ "action": "decline" }));
        let message = question["message"].as_str().expect("a message");
        assert!(
            message.ends_with(&format!("Its server {said}")),
            "{hints}: {message}"
        );
    }
}

fn a_yes_is_remembered_as_told() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let first = host(&env, "ask", true);
    // Once: asked again.
    answered(
        &first,
        0,
        "chat",
        json!({ "action": "accept", "remember": "once" }),
    );
    // For the session: not in another one, and not after its end.
    answered(
        &first,
        1,
        "chat",
        json!({ "action": "accept", "remember": "session" }),
    );
    assert_eq!(model_call(&first, json!({}))["outcome"], "ok");
    answered(&first, 2, "other", json!({ "action": "accept" }));
    first
        .request("mcp.session.end", json!({ "session": "chat" }))
        .expect("ended");
    answered(
        &first,
        3,
        "chat",
        json!({ "action": "accept", "remember": "directory" }),
    );
    assert_eq!(first.notifications("mcp.question").len(), 4);
    // For the directory: by every process.
    let second = host(&env, "ask", true);
    assert_eq!(model_call(&second, json!({}))["outcome"], "ok");
    let grants = second.must("mcp.grants", json!({}))["grants"].clone();
    assert_eq!(
        (&grants[0]["scope"], &grants[0]["decision"], &grants[0]["tool"]),
        (&json!("directory"), &json!("allow"), &json!("echo"))
    );
    let left = first.must("mcp.grants", json!({ "revoke": [grants[0]["id"]] }));
    assert_eq!(left["grants"], json!([]));
    let (_, result) = answered(&second, 0, "chat", json!({ "action": "decline" }));
    assert_eq!(result["outcome"], "denied");
}

/// What the person wrote about tools holds for all that fit, those too that come later.
fn patterns_ask_and_let_pass() {
    let env = TestEnv::new();
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("get_a"), tool("get_secret"), tool("set_a")] } }),
    );
    let mut entry = server.entry();
    entry["tools"] = json!({ "auto": ["get_*"], "ask": ["*secret*"] });
    env.write_config(&json!({ "srv": entry }));
    let host = host(&env, "ask", false);
    let outcome = |tool: &str| {
        let params = json!({ "name": format!("mcp__srv__{tool}"), "session": "chat" });
        host.must("mcp.model.call", params)["outcome"].clone()
    };
    assert_eq!(
        (outcome("get_a"), outcome("get_secret"), outcome("set_a")),
        (json!("ok"), json!("cannot_ask"), json!("cannot_ask"))
    );
}

fn a_no_is_a_result() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = host(&env, "ask", true);
    let (_, result) = answered(
        &host,
        0,
        "chat",
        json!({ "action": "decline", "remember": "always" }),
    );
    assert_eq!(
        (&result["outcome"], &result["isError"], &result["failure"]["kind"]),
        (&json!("denied"), &json!(true), &json!("denied"))
    );
    // Remembered: the model is told at once, and nobody is bothered.
    assert_eq!(model_call(&host, json!({}))["outcome"], "denied");
    assert_eq!(host.notifications("mcp.question").len(), 1);
    assert!(server.log.requests("tools/call").is_empty());
}

/// What a host answers wrongly is not said to be the person's no.
fn an_answer_that_does_not_fit() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = host(&env, "ask", true);
    let misplaced = json!({ "action": "accept", "content": { "remember": "always" } });
    let (_, result) = answered(&host, 0, "chat", misplaced);
    assert_eq!(result["outcome"], "denied");
    let said = result["failure"].to_string();
    assert!(
        said.contains("nobody decided: the host closed the question, or its answer did not fit"),
        "{said}"
    );
    assert!(server.log.requests("tools/call").is_empty());
}

fn nobody_to_ask() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = host(&env, "ask", false);
    let result = model_call(&host, json!({}));
    assert_eq!(
        (&result["outcome"], &result["failure"]["kind"]),
        (&json!("cannot_ask"), &json!("cannot_ask"))
    );
    assert!(server.log.requests("tools/call").is_empty());
}

fn a_project_cannot_loosen() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let mut entry = server.entry();
    entry["tools"] = json!({ "auto": ["*"] });
    crate::trust::write_project(&env, &json!({ "srv": entry }));
    let first = host(&env, "ask", true);
    let review = first.must("mcp.trust", json!({}));
    assert!(
        !review["reviews"][0]["relaxes"].to_string().contains("tools.auto"),
        "what counts for nothing is not shown as loosening: {review}"
    );
    crate::trust::trust(&first);
    answered(&first, 0, "chat", json!({ "action": "accept" }));
    drop(first);
    // The same words in the person's own file count.
    std::fs::remove_dir_all(env.project().join(".pillion")).expect("removed");
    env.write_config(&json!({ "srv": entry }));
    let second = host(&env, "ask", true);
    assert_eq!(model_call(&second, json!({}))["outcome"], "ok");
    assert!(second.notifications("mcp.question").is_empty());
}

fn a_changed_tool_is_asked_again() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let first = host(&env, "ask", true);
    answered(
        &first,
        0,
        "chat",
        json!({ "action": "accept", "remember": "always" }),
    );
    assert_eq!(model_call(&first, json!({}))["outcome"], "ok");
    first.must(
        "mcp.edit",
        json!({ "server": "srv", "set": { "args": ["other"] } }),
    );
    let (_, result) = answered(&first, 1, "chat", json!({ "action": "accept" }));
    assert_eq!(result["outcome"], "ok");
}

fn policy(env: &mut TestEnv, text: &str) {
    let file = env.tmp().join("policy.json");
    std::fs::write(&file, text).expect("a file");
    env.set("PILLION_POLICY", &file.to_string_lossy());
}

fn the_administrator_forbids() {
    let mut env = TestEnv::new();
    let (good, bad) = (
        env.plain_server("good", json!({})),
        env.plain_server("bad", json!({})),
    );
    env.write_config(
        &json!({ "good": good.entry(), "bad": bad.entry(), "far": { "url": "https://h.example/mcp" } }),
    );
    policy(
        &mut env,
        &json!({ "deny": [
            { "command": bad.command, "reason": "not reviewed" }, { "url": "https://*", "reason": "no remote servers" }
        ] })
        .to_string(),
    );
    let host = Host::start(&env);
    host.call("good", "echo", json!({})).expect("allowed");
    for (name, reason) in [("bad", "not reviewed"), ("far", "no remote servers")] {
        let record = host.status(name);
        assert_eq!(record["state"], "disabled");
        assert!(record["issues"].to_string().contains(reason), "{record}");
        let error = host
            .ask("mcp.start", json!({ "server": name }))
            .expect_err("forbidden");
        assert_eq!(
            (error.kind(), &error.data["by"]),
            ("denied", &json!("administrator"))
        );
        assert!(error.message.contains(reason), "{error}");
        // No switch lifts it.
        host.must("mcp.enable", json!({ "server": name, "enabled": true }));
        assert_eq!(host.status(name)["state"], "disabled");
    }
    assert_eq!(bad.log.starts().len(), 0);
}

fn references_do_not_get_round_it() {
    let mut env = TestEnv::new();
    let bad = env.plain_server("bad", json!({}));
    env.set("PROGRAM", &bad.command);
    env.write_config(&json!({ "srv": { "command": "${PROGRAM}" } }));
    policy(&mut env, &json!({ "deny": [{ "command": "bad" }] }).to_string());
    let host = Host::start(&env);
    let error = host
        .ask("mcp.start", json!({ "server": "srv" }))
        .expect_err("forbidden");
    assert_eq!(
        (error.kind(), &error.data["by"]),
        ("denied", &json!("administrator"))
    );
    assert_eq!(bad.log.starts().len(), 0);
}

fn a_broken_policy_forbids_everything() {
    let mut env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    policy(&mut env, "{ broken");
    let host = Host::start(&env);
    let record = host.status("srv");
    assert_eq!(record["state"], "disabled");
    assert!(record["issues"].to_string().contains("does not read"), "{record}");
    assert!(host.call("srv", "echo", json!({})).is_err());
    assert_eq!(server.log.starts().len(), 0);
}

/// Whoever meets a forbidden server is told why.
fn the_reason_is_told_in_a_terminal() {
    let mut env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    policy(
        &mut env,
        &json!({ "allow": [{ "command": "uvx" }], "reason": "ask the platform team" }).to_string(),
    );
    for (args, code, said) in [
        (&["status"][..], 0, "disabled: forbidden: ask the platform team"),
        (
            &["enable", "srv"],
            0,
            "may not start: forbidden: ask the platform team",
        ),
        (
            &["call", "srv", "echo"],
            4,
            "error: `srv` is forbidden: ask the platform team",
        ),
        (
            &["tools", "srv"],
            4,
            "error: `srv` is forbidden: ask the platform team",
        ),
        (
            &["test", "srv"],
            4,
            "error: `srv` is forbidden: ask the platform team",
        ),
        (
            &["test", "--", "srv"],
            4,
            "this is forbidden: ask the platform team",
        ),
        (
            &["add", "other", "--", "x"],
            0,
            "may not start: forbidden: ask the platform team",
        ),
        (
            &["doctor", "srv"],
            0,
            "`srv` is forbidden by the administrator: ask the platform team",
        ),
    ] {
        let output = env.command().args(args).output().expect("the binary runs");
        let text = [output.stdout.as_slice(), &output.stderr]
            .map(String::from_utf8_lossy)
            .concat();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
    assert!(server.log.starts().is_empty());
    std::fs::write(env.tmp().join("policy.json"), "{\"alow\": []}").expect("a file");
    let output = env.command().arg("status").output().expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("does not read: unknown field `alow`"), "{text}");
}

/// A rule that comes while a server runs ends it, and its end lets it start again.
fn a_rule_reaches_what_runs() {
    let mut env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    policy(&mut env, "{}");
    let host = Host::start(&env);
    host.start_server("srv");
    let file = env.tmp().join("policy.json");
    std::fs::write(
        &file,
        json!({ "deny": [{ "name": "s*", "reason": "recalled" }] }).to_string(),
    )
    .expect("a file");
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    host.wait_notification("mcp.changed", |params| {
        params["status"]["name"] == "srv"
            && params["status"]["issues"]
                .to_string()
                .contains("forbidden: recalled")
    });
    let error = host.call("srv", "echo", json!({})).expect_err("forbidden");
    assert_eq!(
        (error.kind(), &error.data["by"]),
        ("denied", &json!("administrator"))
    );
    std::fs::remove_file(&file).expect("removed");
    clock::eventually("the rule to be gone", || {
        (host.status("srv")["state"] == "stopped").then_some(())
    });
    host.call("srv", "echo", json!({})).expect("allowed again");
}
