//! The model's side: names, schemas and calls, each as a model can use it.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("model":
        tools_are_offered_verbatim, names_keep_when_servers_come_and_go, names_have_a_length, a_known_list_is_not_sent_again,
        hidden_tools_are_not_offered, a_call_passes_through, failures_are_results, denied_tools_are_refused,
        a_call_can_be_cancelled, structured_content_is_checked, a_broken_schema_costs_only_itself, schemas_fit_a_dialect,
        one_dialect_per_request, instructions_are_offered, same_names_are_told_apart, a_project_takes_no_name_over, names_of_built_in_tools_are_taken,
        a_model_finds_its_tools,
    )
}

pub fn tool(name: &str) -> Value {
    json!({ "name": name, "description": format!("Does {name}"), "inputSchema": { "type": "object" } })
}

fn names(offer: &Value) -> Vec<&str> {
    let tools = offer["tools"].as_array().expect("tools");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {result}"))
}

fn with(env: &TestEnv, initialization: Value) -> Host {
    Host::start_with(
        env,
        HostOptions {
            initialization,
            ..HostOptions::default()
        },
    )
}

fn tools_are_offered_verbatim() {
    let env = TestEnv::new();
    let definition = "{\"name\":\"add\",\"title\":\"Add\",\"description\":\"Adds\",\"inputSchema\":{\"type\":\"object\",\"z\":1.10,\"a\":{}},\"outputSchema\":{\"type\":\"object\",\"x\":2.0},\"annotations\":{\"readOnlyHint\":true}}";
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "$raw": format!("{{\"tools\":[{definition}]}}") } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let params = json!({ "directory": host.directory() });
    let received = host.send("mcp.model.tools", params).wait_raw();
    for part in [
        "\"inputSchema\":{\"type\":\"object\",\"z\":1.10,\"a\":{}}",
        "\"outputSchema\":{\"type\":\"object\",\"x\":2.0}",
        "\"annotations\":{\"readOnlyHint\":true}",
    ] {
        assert!(received.text.contains(part), "{part} in {}", received.text);
    }
    let offer = host.must("mcp.model.tools", json!({}));
    let tool = &offer["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["server"], &tool["tool"], &tool["approval"]),
        (
            &json!("mcp__srv__add"),
            &json!("srv"),
            &json!("add"),
            &json!("auto")
        )
    );
    assert!(
        tool["tokens"]
            .as_u64()
            .is_some_and(|tokens| (10..60).contains(&tokens)),
        "{tool}"
    );
    assert_eq!(offer["servers"][0]["tokens"], tool["tokens"]);
}

fn names_keep_when_servers_come_and_go() {
    let env = TestEnv::new();
    let odd = json!({ "tools/list": { "tools": [tool("a b"), tool("a/b"), tool("plain")] } });
    let one = env.plain_server("one", odd.clone());
    let two = env.plain_server("two", odd);
    env.write_config(&json!({ "one": one.entry() }));
    let host = Host::start(&env);
    let before = host.must("mcp.model.tools", json!({}));
    let before: Vec<String> = names(&before).iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(before[2], "mcp__one__plain");
    assert!(
        before[0].starts_with("mcp__one__a_b_") && before[0] != before[1],
        "{before:?}"
    );
    env.write_config(&json!({ "one": one.entry(), "two": two.entry() }));
    host.must("mcp.reload", json!({}));
    let both = host.must("mcp.model.tools", json!({}));
    let both = names(&both);
    assert_eq!(both.len(), 6);
    assert!(
        before.iter().all(|name| both.contains(&name.as_str())),
        "{both:?}"
    );
}

fn names_have_a_length() {
    let env = TestEnv::new();
    // `srv_` and the tool make 23, 24 and 25 characters.
    let tools: Vec<Value> = [19, 20, 21].iter().map(|n| tool(&"x".repeat(*n))).collect();
    let server = env.plain_server("srv", json!({ "tools/list": { "tools": tools } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = with(
        &env,
        json!({ "toolNames": { "template": "{server}_{tool}", "maxLength": 24 } }),
    );
    let offer = host.must("mcp.model.tools", json!({}));
    let names = names(&offer);
    assert_eq!(names[0], format!("srv_{}", "x".repeat(19)));
    assert_eq!(names[1], format!("srv_{}", "x".repeat(20)));
    assert_eq!(names[2].len(), 24);
    assert_ne!(names[2], names[1]);
    let result = host.must("mcp.model.call", json!({ "name": names[2], "arguments": {} }));
    assert_eq!(result["outcome"], "ok");
    assert_eq!(
        server.log.wait_request("tools/call")["params"]["name"],
        "x".repeat(21)
    );
}

fn a_known_list_is_not_sent_again() {
    let env = TestEnv::new();
    let lists = json!([{ "tools": [tool("a")] }, { "tools": [tool("a"), tool("b")] }]);
    let server = env.plain_server("srv", json!({ "initialize": { "capabilities": { "tools": { "listChanged": true } } }, "tools/list": lists }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let first = host.must("mcp.model.tools", json!({}));
    assert_eq!(
        (names(&first), &first["unchanged"]),
        (vec!["mcp__srv__a"], &json!(false))
    );
    let again = host.must("mcp.model.tools", json!({ "known": first["revision"] }));
    assert_eq!((names(&again).len(), &again["unchanged"]), (0, &json!(true)));
    assert_eq!(again["revision"], first["revision"]);
    server.push(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    host.wait_notification("mcp.changed", |params| params["status"]["tools"] == 2);
    let next = host.must("mcp.model.tools", json!({ "known": first["revision"] }));
    assert_eq!((names(&next).len(), &next["unchanged"]), (2, &json!(false)));
}

fn hidden_tools_are_not_offered() {
    let env = TestEnv::new();
    let app = json!({ "name": "draw", "inputSchema": { "type": "object" }, "_meta": { "ui": { "visibility": ["app"] } } });
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("read"), tool("drop"), app] } }),
    );
    let mut entry = server.entry();
    entry["tools"] = json!({ "deny": ["drop"] });
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(&env);
    assert_eq!(
        names(&host.must("mcp.model.tools", json!({}))),
        ["mcp__srv__read"]
    );
    let result = host.must("mcp.model.call", json!({ "name": "mcp__srv__draw" }));
    assert_eq!(
        (&result["outcome"], &result["failure"]["kind"]),
        (&json!("failed"), &json!("not_found"))
    );
    assert_eq!(server.log.requests("tools/call").len(), 0);
}

fn a_call_passes_through() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("add")] },
            "tools/call": { "$raw": "{\"content\":[{\"type\":\"text\",\"text\":\"x\",\"n\":1.10}],\"structuredContent\":{\"b\":2.50,\"a\":1}}" } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let params = format!(
        "{{\"directory\":{},\"name\":\"mcp__srv__add\",\"arguments\":{{\"z\":1.10,\"a\":[]}}}}",
        json!(host.directory())
    );
    let received = host.send_as(json!("call"), "mcp.model.call", &params).wait_raw();
    for part in [
        "{\"type\":\"text\",\"text\":\"x\",\"n\":1.10}",
        "\"structuredContent\":{\"b\":2.50,\"a\":1}",
        "\"outcome\":\"ok\"",
        "\"isError\":false",
    ] {
        assert!(received.text.contains(part), "{part} in {}", received.text);
    }
    let lines = server.log.lines();
    assert!(
        lines.iter().any(|line| line.contains("{\"z\":1.10,\"a\":[]}")),
        "{lines:?}"
    );
}

fn failures_are_results() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({
            "tools/list": { "tools": [tool("wrong"), tool("refused"), tool("silent"), tool("dies")] },
            "tools/call:wrong": { "content": [{ "type": "text", "text": "no such file" }], "isError": true },
            "tools/call:refused": { "$error": { "code": -32602, "message": "the path is missing" } },
            "tools/call:silent": { "$none": true },
            "tools/call:dies": { "$exit": 3 },
        }),
    );
    env.write_config(&json!({ "srv": server.entry(), "gone": { "command": "no-such-cmd-xyz" } }));
    let host = Host::start(&env);
    let call = |name: &str, more: Value| {
        let mut params = json!({ "name": name });
        params
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        host.must("mcp.model.call", params)
    };
    let result = call("mcp__srv__wrong", json!({}));
    assert_eq!(
        (&result["outcome"], &result["isError"], text(&result)),
        (&json!("tool_error"), &json!(true), "no such file")
    );
    let result = call("mcp__srv__refused", json!({}));
    assert_eq!(
        (&result["outcome"], &result["failure"]["kind"]),
        (&json!("failed"), &json!("mcp_error"))
    );
    assert!(text(&result).contains("the path is missing"));
    let result = call("mcp__srv__silent", json!({ "timeoutMs": 1000 }));
    assert_eq!(result["failure"]["kind"], "timed_out");
    assert!(result["elapsedMs"].as_u64().is_some_and(|ms| ms >= 1000));
    let result = call("mcp__srv__dies", json!({}));
    assert_eq!(
        (&result["failure"]["kind"], &result["failure"]["exitCode"]),
        (&json!("exited"), &json!(3))
    );
    let result = call("mcp__srv__worng", json!({}));
    assert_eq!(
        (&result["failure"]["kind"], &result["isError"]),
        (&json!("not_found"), &json!(true))
    );
    assert!(text(&result).contains("mcp__srv__wrong"), "{result}");
    // What is wrong with the request itself is an error.
    let error = host
        .ask("mcp.model.call", json!({ "name": "" }))
        .expect_err("empty");
    assert_eq!(error.kind(), "invalid_params");
}

fn denied_tools_are_refused() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("read"), tool("drop")] } }),
    );
    let mut entry = server.entry();
    entry["tools"] = json!({ "allow": ["read*"] });
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(&env);
    let result = host.must("mcp.model.call", json!({ "name": "mcp__srv__drop" }));
    assert_eq!(
        (&result["outcome"], &result["isError"], &result["failure"]["kind"]),
        (&json!("denied"), &json!(true), &json!("denied"))
    );
    assert_eq!(server.log.requests("tools/call").len(), 0);
}

fn a_call_can_be_cancelled() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("long")] }, "tools/call": { "$none": true } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let call = host.send_here(
        "mcp.model.call",
        json!({ "name": "mcp__srv__long", "call": "c1", "workDoneToken": "t" }),
    );
    server.log.wait_request("tools/call");
    let error = host
        .ask(
            "mcp.model.call",
            json!({ "name": "mcp__srv__long", "call": "c1" }),
        )
        .expect_err("in use");
    assert_eq!(error.kind(), "in_use");
    assert_eq!(
        host.request("mcp.call.cancel", json!({ "call": "c1" }))
            .expect("an answer")["cancelled"],
        true
    );
    let result = call.wait().expect("a result");
    assert_eq!(
        (&result["outcome"], &result["failure"]["kind"]),
        (&json!("failed"), &json!("call_cancelled"))
    );
    server.log.wait_request("notifications/cancelled");
    let call = host.send_here("mcp.model.call", json!({ "name": "mcp__srv__long" }));
    crate::support::clock::eventually("the second call", || {
        (server.log.requests("tools/call").len() == 2).then_some(())
    });
    host.notify("$/cancelRequest", json!({ "id": call.id }));
    let error = call.wait().expect_err("cancelled");
    assert_eq!((error.code, error.kind()), (-32800, "cancelled"));
}

fn structured_content_is_checked() {
    let env = TestEnv::new();
    let mut sum = tool("sum");
    sum["outputSchema"] =
        json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [sum] }, "tools/call": { "content": [], "structuredContent": { "sum": "seven" } } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let result = host.must("mcp.model.call", json!({ "name": "mcp__srv__sum" }));
    assert_eq!(
        (&result["outcome"], &result["structuredContent"]),
        (&json!("ok"), &json!({ "sum": "seven" }))
    );
    assert!(
        result["issues"][0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("output schema at `/sum`")),
        "{result}"
    );
}

fn a_broken_schema_costs_only_itself() {
    let env = TestEnv::new();
    let broken = json!({ "name": "broken", "inputSchema": { "type": "object", "properties": { "a": { "type": "strin" } } } });
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("good"), broken, { "name": "none" }, { "name": "text", "inputSchema": { "type": "string" } }] } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let offer = host.must("mcp.model.tools", json!({}));
    assert_eq!(names(&offer), ["mcp__srv__good", "mcp__srv__none"]);
    assert_eq!(offer["tools"][1]["inputSchema"], json!({ "type": "object" }));
    let blamed: Vec<&Value> = offer["issues"]
        .as_array()
        .expect("issues")
        .iter()
        .filter(|issue| issue["kind"] == "item_skipped")
        .map(|issue| &issue["item"])
        .collect();
    assert!(
        blamed.contains(&&json!("broken")) && blamed.contains(&&json!("text")),
        "{offer}"
    );
    // A projection mends it.
    let offer = host.must("mcp.model.tools", json!({ "dialect": "portable" }));
    assert_eq!(
        names(&offer),
        ["mcp__srv__good", "mcp__srv__broken", "mcp__srv__none"]
    );
}

fn schemas_fit_a_dialect() {
    let env = TestEnv::new();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "oneOf": [
            { "type": "object", "properties": { "id": { "$ref": "#/$defs/Id" } }, "required": ["id"] },
            { "type": "object", "properties": { "name": { "type": ["string", "null"] } }, "required": ["name"] },
        ],
        "$defs": { "Id": { "type": "integer", "exclusiveMinimum": 0 } },
    });
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("plain"), { "name": "find", "inputSchema": schema }] } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = with(&env, json!({ "dialect": "gemini" }));
    let offer = host.must("mcp.model.tools", json!({}));
    assert_eq!(
        offer["tools"][1]["inputSchema"],
        json!({
            "type": "object",
            "properties": { "id": { "type": "integer", "minimum": 1 }, "name": { "type": "string", "nullable": true } },
            "description": "Give one of these groups: {id} or {name}.",
        })
    );
    let told: Vec<&Value> = offer["issues"]
        .as_array()
        .expect("issues")
        .iter()
        .filter(|issue| issue["kind"] == "schema_rewritten")
        .collect();
    assert!(
        told.len() >= 4
            && told
                .iter()
                .all(|issue| issue["item"] == "find" && issue["server"] == "srv"),
        "{offer}"
    );
    // What fits is not touched, and the catalog shows what the server wrote.
    assert_eq!(offer["tools"][0]["inputSchema"]["type"], "object");
    assert!(host.must("mcp.tools.list", json!({}))["items"][1]["raw"]["inputSchema"]["oneOf"].is_array());
}

fn one_dialect_per_request() {
    let env = TestEnv::new();
    let schema = json!({ "type": "object", "properties": { "when": { "type": "string", "format": "date" }, "x y": { "type": "string" }, "all": { "type": "array" } } });
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [{ "name": "find", "inputSchema": schema }] } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let properties = |dialect: &str| {
        let offer = host.must("mcp.model.tools", json!({ "dialect": dialect }));
        offer["tools"][0]["inputSchema"]["properties"].clone()
    };
    assert_eq!(properties("none"), schema["properties"]);
    let openai = properties("openai");
    assert_eq!(
        (&openai["all"], &openai["when"]["format"]),
        (&json!({ "type": "array", "items": {} }), &json!("date"))
    );
    let anthropic = properties("anthropic");
    assert!(
        anthropic.get("x y").is_none() && anthropic["when"]["format"] == "date",
        "{anthropic}"
    );
    let gemini = properties("gemini");
    assert!(
        gemini.get("x y").is_some() && gemini["when"].get("format").is_none(),
        "{gemini}"
    );
    let portable = properties("portable");
    assert!(
        portable.get("x y").is_none() && portable["when"].get("format").is_none(),
        "{portable}"
    );
}

fn instructions_are_offered() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "initialize": { "instructions": "Be brief." }, "tools/list": { "tools": [tool("a")] } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let offer = host.must("mcp.model.tools", json!({}));
    assert_eq!(
        (
            &offer["servers"][0]["server"],
            &offer["servers"][0]["instructions"],
            &offer["servers"][0]["tools"]
        ),
        (&json!("srv"), &json!("Be brief."), &json!(1))
    );
}

fn same_names_are_told_apart() {
    let env = TestEnv::new();
    let one = env.plain_server(
        "one",
        json!({ "tools/list": { "tools": [tool("read"), tool("a")] } }),
    );
    let two = env.plain_server(
        "two",
        json!({ "tools/list": { "tools": [tool("read"), tool("b")] } }),
    );
    env.write_config(&json!({ "one": one.entry(), "two": two.entry() }));
    let host = with(&env, json!({ "toolNames": { "template": "{tool}" } }));
    let offer = host.must("mcp.model.tools", json!({}));
    let all: Vec<String> = names(&offer).iter().map(|name| (*name).to_owned()).collect();
    assert!(
        all.iter().filter(|name| name.starts_with("read_")).count() == 2 && all.len() == 4,
        "{all:?}"
    );
    let offer = host.must("mcp.model.tools", json!({ "servers": ["two", "three"] }));
    assert_eq!(names(&offer), all[2..], "they do not depend on who else is there");
    assert_eq!(offer["issues"][0]["kind"], "target_mismatch");
}

/// A name that a tool of the person's had is never answered by a project's server, under any template.
fn a_project_takes_no_name_over() {
    let env = TestEnv::new();
    let lists = |names: [&str; 1]| json!({ "tools/list": { "tools": names.map(tool) } });
    let mine = env.plain_server("mine", lists(["read_file"]));
    let (theirs, glued) = (
        env.plain_server("theirs", lists(["read_file"])),
        env.plain_server("glued", lists(["e_read_file"])),
    );
    for template in ["{tool}", "{server}{tool}", "{tool}{server}", "{server}_{tool}"] {
        env.write_config(&json!({ "mine": mine.entry() }));
        crate::trust::write_project(&env, &json!({}));
        let host = with(&env, json!({ "toolNames": { "template": template } }));
        let before = host.must("mcp.model.tools", json!({}));
        let name = names(&before)[0];
        crate::trust::write_project(&env, &json!({ "Mine": theirs.entry(), "min": glued.entry() }));
        crate::trust::trust(&host);
        let offer = host.must("mcp.model.tools", json!({}));
        let tools = offer["tools"].as_array().expect("a list");
        assert_eq!(
            (tools.len(), &tools[0]["server"], &tools[0]["name"]),
            (3, &json!("mine"), &json!(name)),
            "{template}"
        );
        host.must("mcp.model.call", json!({ "name": name }));
        env.write_config(&json!({}));
        host.must("mcp.reload", json!({}));
        let gone = host.must("mcp.model.call", json!({ "name": name }));
        assert_ne!(gone["outcome"], "ok", "{template}: {gone}");
    }
    assert_eq!(
        (
            mine.log.requests("tools/call").len(),
            theirs.log.requests("tools/call").len()
        ),
        (4, 0)
    );
    assert!(glued.log.requests("tools/call").is_empty());
}

fn names_of_built_in_tools_are_taken() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("mcp_resource_read")] } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = with(&env, json!({ "toolNames": { "template": "{tool}" } }));
    let offer = host.must("mcp.model.tools", json!({}));
    let name = names(&offer)[0];
    assert!(name.starts_with("mcp_resource_read_"), "{name}");
    assert_eq!(
        host.must("mcp.model.call", json!({ "name": name }))["outcome"],
        "ok"
    );
}

fn a_model_finds_its_tools() {
    let env = TestEnv::new();
    let mut issue = tool("create_issue");
    issue["description"] = json!("Open a new issue in a repository");
    issue["inputSchema"] = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
    let server = env.plain_server(
        "gh",
        json!({ "tools/list": { "tools": [issue, tool("other")] }, "tools/call": { "$echo": true } }),
    );
    env.write_config(&json!({ "gh": server.entry() }));
    let host = Host::start(&env);
    let offer = host.must("mcp.model.tools", json!({ "load": "search" }));
    assert_eq!(names(&offer), ["mcp_tool_search", "mcp_tool_call"]);
    assert_eq!(offer["servers"][1]["tools"], 2);
    let found = host.must(
        "mcp.model.call",
        json!({ "name": "mcp_tool_search", "arguments": { "query": "open an issue" } }),
    );
    assert!(
        text(&found).starts_with("mcp__gh__create_issue\n") && text(&found).contains("\"title\""),
        "{found}"
    );
    let result = host.must("mcp.model.call", json!({ "name": "mcp_tool_call", "arguments": { "name": "mcp__gh__create_issue", "arguments": { "title": "x" } } }));
    assert_eq!(result["outcome"], "ok");
    assert_eq!(
        server.log.wait_request("tools/call")["params"]["arguments"],
        json!({ "title": "x" })
    );
    let result = host.must(
        "mcp.model.call",
        json!({ "name": "mcp_tool_call", "arguments": {} }),
    );
    assert_eq!(result["isError"], true);
    let result = host.must(
        "mcp.model.call",
        json!({ "name": "mcp_tool_search", "arguments": {} }),
    );
    assert_eq!(result["outcome"], "tool_error");
}
