//! How a model reads resources: two tools of ours, or three under other names; exact limits, failures it can use.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::model::tool;
use crate::stories;
use crate::support::{Host, HostOptions, StdioServer, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("resource_tools":
        they_come_and_go, one_line_each, two_hundred_lines, a_server_without_any, what_is_not_listed_is_told,
        text_is_read, a_mebibyte_is_read, binary_is_named, failures_are_tool_errors, they_can_be_denied,
        three_under_other_names, or_none,
    )
}

fn capabilities() -> Value {
    json!({ "capabilities": { "tools": {}, "resources": { "listChanged": true } } })
}

fn server(env: &TestEnv, name: &str, resources: Vec<Value>, read: Value) -> StdioServer {
    env.plain_server(
        name,
        json!({
            "initialize": capabilities(), "tools/list": { "tools": [tool("t")] },
            "resources/list": { "resources": resources }, "resources/templates/list": { "resourceTemplates": [] },
            "resources/read": read,
        }),
    )
}

fn resource(n: usize) -> Value {
    json!({ "uri": format!("x:{n}"), "name": format!("r{n}") })
}

fn built_in(offer: &Value) -> Vec<&str> {
    let tools = offer["tools"].as_array().expect("tools").iter();
    tools
        .filter(|tool| tool["server"] == "pillion")
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

fn call(host: &Host, name: &str, arguments: Value) -> Value {
    host.must("mcp.model.call", json!({ "name": name, "arguments": arguments }))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {result}"))
}

fn they_come_and_go() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({
            "initialize": capabilities(), "tools/list": { "tools": [tool("t")] },
            "resources/list": [{ "resources": [] }, { "resources": [resource(1)] }],
            "resources/templates/list": { "resourceTemplates": [] },
        }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    assert_eq!(
        built_in(&host.must("mcp.model.tools", json!({}))),
        [] as [&str; 0]
    );
    server.push(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/list_changed" }));
    host.wait_notification("mcp.changed", |params| params["status"]["resources"] == 1);
    let offer = host.must("mcp.model.tools", json!({}));
    assert_eq!(built_in(&offer), ["mcp_resource_list", "mcp_resource_read"]);
    assert_eq!(offer["tools"][0]["approval"], "auto");
    host.must("mcp.enable", json!({ "server": "srv", "enabled": false }));
    assert_eq!(
        built_in(&host.must("mcp.model.tools", json!({}))),
        [] as [&str; 0]
    );
}

fn one_line_each() {
    let env = TestEnv::new();
    let mut docs = resource(1);
    docs["mimeType"] = json!("text/markdown");
    docs["description"] = json!("first\nsecond\tthird");
    let server = env.plain_server(
        "srv",
        json!({
            "initialize": capabilities(), "resources/list": { "resources": [docs, resource(2)] },
            "resources/templates/list": { "resourceTemplates": [{ "uriTemplate": "x:{id}", "name": "any" }] },
        }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let result = call(&host, "mcp_resource_list", json!({}));
    assert_eq!(result["outcome"], "ok");
    assert_eq!(
        text(&result),
        "srv\tx:1\tr1\ttext/markdown\tfirst second third\nsrv\tx:2\tr2\nsrv\tx:{id}\tany"
    );
    assert_eq!(
        text(&call(&host, "mcp_resource_list", json!({ "server": "srv" }))),
        text(&result)
    );
}

fn two_hundred_lines() {
    for (n, n_lines, last) in [
        (199, 199, "srv\tx:198\tr198"),
        (200, 200, "srv\tx:199\tr199"),
        (201, 201, "… and 1 more"),
    ] {
        let env = TestEnv::new();
        let server = server(&env, "srv", (0..n).map(resource).collect(), json!({}));
        env.write_config(&json!({ "srv": server.entry() }));
        let host = Host::start(&env);
        let result = call(&host, "mcp_resource_list", json!({}));
        let lines: Vec<&str> = text(&result).lines().collect();
        assert_eq!((lines.len(), lines[lines.len() - 1]), (n_lines, last));
    }
}

fn a_server_without_any() {
    let env = TestEnv::new();
    let full = server(&env, "full", vec![resource(1)], json!({}));
    let empty = env.plain_server("empty", json!({}));
    env.write_config(
        &json!({ "full": full.entry(), "empty": empty.entry(), "off": { "command": "x", "enabled": false } }),
    );
    let host = Host::start(&env);
    let result = call(&host, "mcp_resource_list", json!({ "server": "empty" }));
    assert_eq!(
        (&result["outcome"], text(&result)),
        (
            &json!("ok"),
            "`empty` has no resources. Servers that have some: full."
        )
    );
    for name in ["nobody", "off"] {
        for (tool, arguments) in [
            ("mcp_resource_list", json!({ "server": name })),
            ("mcp_resource_read", json!({ "server": name, "uri": "x:1" })),
        ] {
            let result = call(&host, tool, arguments);
            assert_eq!(
                (&result["outcome"], &result["isError"]),
                (&json!("tool_error"), &json!(true)),
                "{result}"
            );
            assert!(
                text(&result).contains(&format!("`{name}`"))
                    && text(&result).ends_with("Servers that have some: full."),
                "{result}"
            );
        }
    }
}

fn what_is_not_listed_is_told() {
    let env = TestEnv::new();
    let full = server(&env, "full", vec![resource(1)], json!({}));
    let broken = env.plain_server(
        "broken",
        json!({ "initialize": capabilities(), "resources/list": { "$error": { "code": -32603, "message": "out of\norder" } }, "resources/templates/list": { "resourceTemplates": [] } }),
    );
    env.write_config(&json!({ "full": full.entry(), "broken": broken.entry() }));
    let host = Host::start(&env);
    let result = call(&host, "mcp_resource_list", json!({}));
    assert!(
        text(&result).starts_with("full\tx:1\tr1\n\n! broken: "),
        "{result}"
    );
    assert!(text(&result).contains("out of order"), "{result}");
}

fn text_is_read() {
    let env = TestEnv::new();
    let contents = json!({ "contents": [{ "uri": "x:1", "text": "one" }, { "uri": "x:1", "text": "two" }] });
    let server = server(&env, "srv", vec![resource(1)], contents);
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let result = call(
        &host,
        "mcp_resource_read",
        json!({ "server": "srv", "uri": "x:1" }),
    );
    assert_eq!((&result["outcome"], text(&result)), (&json!("ok"), "one\ntwo"));
    assert_eq!(server.log.wait_request("resources/read")["params"]["uri"], "x:1");
    let result = call(
        &host,
        "mcp_resource_read",
        json!({ "server": "srv", "uri": "x:1", "offset": 5 }),
    );
    assert_eq!(text(&result), "wo");
}

fn a_mebibyte_is_read() {
    let frame = "{\"contents\":[{\"uri\":\"x:1\",\"text\":\"\"}]}".len();
    for (size, outcome) in [
        ((1 << 20) - 1, "ok"),
        (1 << 20, "ok"),
        ((1 << 20) + 1, "tool_error"),
    ] {
        let env = TestEnv::new();
        let body = "a".repeat(size - frame);
        let raw = format!("{{\"contents\":[{{\"uri\":\"x:1\",\"text\":\"{body}\"}}]}}");
        let server = server(&env, "srv", vec![resource(1)], json!({ "$raw": raw }));
        env.write_config(&json!({ "srv": server.entry() }));
        let host = Host::start_with(
            &env,
            HostOptions {
                initialization: json!({ "maxResultChars": 10_000_000 }),
                ..HostOptions::default()
            },
        );
        let result = call(
            &host,
            "mcp_resource_read",
            json!({ "server": "srv", "uri": "x:1" }),
        );
        assert_eq!(result["outcome"], outcome, "{size}");
        if outcome == "ok" {
            assert_eq!(text(&result).len(), body.len());
        } else {
            assert!(text(&result).contains("too large"), "{}", text(&result));
        }
    }
}

fn binary_is_named() {
    let env = TestEnv::new();
    let contents = json!({ "contents": [{ "uri": "x:1", "blob": "AAECAwQ=", "mimeType": "image/png" }] });
    let server = server(&env, "srv", vec![resource(1)], contents);
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let result = call(
        &host,
        "mcp_resource_read",
        json!({ "server": "srv", "uri": "x:1" }),
    );
    assert_eq!(text(&result), "[binary content: image/png, 5 bytes]");
    assert!(!result.to_string().contains("AAECAwQ"));
}

fn failures_are_tool_errors() {
    let env = TestEnv::new();
    let server = server(
        &env,
        "srv",
        vec![resource(1)],
        json!({ "$error": { "code": -32002, "message": "no such note" } }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let result = call(
        &host,
        "mcp_resource_read",
        json!({ "server": "srv", "uri": "x:9" }),
    );
    assert_eq!(
        (&result["outcome"], &result["failure"]),
        (&json!("tool_error"), &Value::Null)
    );
    assert!(text(&result).contains("no such note"), "{result}");
    for arguments in [
        json!({}),
        json!({ "server": "srv" }),
        json!({ "server": 7, "uri": "x:1" }),
    ] {
        assert_eq!(
            call(&host, "mcp_resource_read", arguments)["outcome"],
            "tool_error"
        );
    }
    let result = call(
        &host,
        "mcp_resource_read",
        json!({ "server": "pillion", "uri": "pillion://result/none" }),
    );
    assert_eq!(result["outcome"], "tool_error");
}

fn they_can_be_denied() {
    let env = TestEnv::new();
    let closed = server(&env, "closed", vec![resource(1)], json!({}));
    let open = server(&env, "open", vec![resource(2)], json!({}));
    let mut entry = closed.entry();
    entry["tools"] = json!({ "deny": ["mcp_resource_*"] });
    env.write_config(&json!({ "closed": entry, "open": open.entry() }));
    let host = Host::start(&env);
    assert_eq!(
        text(&call(&host, "mcp_resource_list", json!({}))),
        "open\tx:2\tr2"
    );
    let result = call(
        &host,
        "mcp_resource_read",
        json!({ "server": "closed", "uri": "x:1" }),
    );
    assert_eq!(
        (&result["outcome"], &result["failure"]["kind"]),
        (&json!("denied"), &json!("denied"))
    );
    assert_eq!(closed.log.requests("resources/read").len(), 0);
    assert_eq!(
        call(&host, "mcp_resource_list", json!({ "server": "closed" }))["outcome"],
        "denied"
    );
    // The last server that had some goes: so do the tools.
    host.must("mcp.enable", json!({ "server": "open", "enabled": false }));
    assert_eq!(
        built_in(&host.must("mcp.model.tools", json!({}))),
        [] as [&str; 0]
    );
    assert_eq!(call(&host, "mcp_resource_list", json!({}))["outcome"], "denied");
}

fn three_under_other_names() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({
            "initialize": capabilities(), "resources/list": { "resources": [resource(1)] },
            "resources/templates/list": { "resourceTemplates": [{ "uriTemplate": "x:{id}", "name": "any" }] },
            "resources/read": { "contents": [{ "uri": "x:1", "text": "one" }] },
        }),
    );
    let plain = env.plain_server("plain", json!({}));
    env.write_config(&json!({ "srv": server.entry(), "plain": plain.entry() }));
    let host = Host::start_with(
        &env,
        HostOptions {
            initialization: json!({ "resourceTools": "shared" }),
            ..HostOptions::default()
        },
    );
    let three = [
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ];
    assert_eq!(built_in(&host.must("mcp.model.tools", json!({}))), three);
    assert_eq!(text(&call(&host, three[0], json!({}))), "srv\tx:1\tr1");
    assert_eq!(text(&call(&host, three[1], json!({}))), "srv\tx:{id}\tany");
    assert_eq!(
        text(&call(&host, three[2], json!({ "server": "srv", "uri": "x:1" }))),
        "one"
    );
    // They are there even if nothing is.
    host.must("mcp.enable", json!({ "server": "srv", "enabled": false }));
    assert_eq!(built_in(&host.must("mcp.model.tools", json!({}))), three);
    assert_eq!(
        text(&call(&host, three[0], json!({}))),
        "No server has resources."
    );
}

fn or_none() {
    let env = TestEnv::new();
    let server = server(&env, "srv", vec![resource(1)], json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    assert_eq!(
        built_in(&host.must("mcp.model.tools", json!({ "resourceTools": "none" }))),
        [] as [&str; 0]
    );
    assert_eq!(built_in(&host.must("mcp.model.tools", json!({}))).len(), 2);
}
