//! Resources, prompts, completion and logs of servers.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, StdioServer, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("offers":
        a_resource_is_read, a_resource_may_ask, resources_have_a_limit, a_missing_resource, updates_are_told,
        prompts_are_filled, prompts_need_their_arguments, prompts_have_a_limit, values_are_completed,
        nothing_to_complete, logs_of_every_source, logs_are_followed,
    )
}

fn one(env: &TestEnv, mut mcp: Value) -> (Host, StdioServer) {
    let capabilities = json!({
        "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "completions": {}, "logging": {},
    });
    mcp["initialize"] = json!({ "capabilities": capabilities });
    for (method, list) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        if mcp.get(method).is_none() {
            mcp[method] = json!({ list: [] });
        }
    }
    mcp["logging/setLevel"] = json!({});
    let server = env.plain_server("srv", mcp);
    env.write_config(&json!({ "srv": server.entry() }));
    (Host::start(env), server)
}

fn a_resource_is_read() {
    let env = TestEnv::new();
    let raw =
        "{\"contents\":[{\"uri\":\"x:1\",\"blob\":\"AAAA\",\"n\":1.10},{\"uri\":\"x:2\",\"text\":\"é\"}]}";
    let (host, server) = one(&env, json!({ "resources/read": { "$raw": raw } }));
    let params = json!({ "directory": host.directory(), "server": "srv", "uri": "x:1" });
    let received = host.send("mcp.resource.read", params).wait_raw();
    assert!(
        received.text.contains(&format!("\"result\":{raw}")),
        "{}",
        received.text
    );
    assert_eq!(server.log.wait_request("resources/read")["params"]["uri"], "x:1");
}

fn a_resource_may_ask() {
    let env = TestEnv::new();
    let question = json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": { "type": "object", "properties": {} } } });
    let (host, server) = one(
        &env,
        json!({ "resources/read": { "$ask": [question], "contents": [] } }),
    );
    let read = host.send_here("mcp.resource.read", json!({ "server": "srv", "uri": "x:1" }));
    let question = host.wait_question(0);
    host.answer(&question, "accept", Some(json!({})))
        .expect("an answer");
    assert!(read.wait().is_ok());
    assert_eq!(server.log.wait_reply("ask-1")["result"]["action"], "accept");
}

fn resources_have_a_limit() {
    let env = TestEnv::new();
    let text = "x".repeat((1 << 20) + 1);
    let (host, _server) = one(
        &env,
        json!({ "resources/read": { "contents": [{ "uri": "x:1", "text": text }] } }),
    );
    let error = host
        .ask("mcp.resource.read", json!({ "server": "srv", "uri": "x:1" }))
        .expect_err("over 1 MiB");
    assert_eq!(
        (error.code, error.kind(), &error.data["limit"]),
        (-32055, "too_large", &json!(1 << 20))
    );
}

fn a_missing_resource() {
    let env = TestEnv::new();
    let error = json!({ "code": -32002, "message": "Resource not found" });
    let (host, _server) = one(
        &env,
        json!({
            "resources/list": { "resources": [{ "uri": "x:1", "name": "one" }] },
            "resources/read": { "$error": error },
        }),
    );
    let error = host
        .ask("mcp.resource.read", json!({ "server": "srv", "uri": "x:2" }))
        .expect_err("not there");
    assert!(["not_found", "mcp_error"].contains(&error.kind()), "{error}");
}

fn updates_are_told() {
    let env = TestEnv::new();
    let (host, server) = one(
        &env,
        json!({ "resources/subscribe": {}, "resources/unsubscribe": {} }),
    );
    let params = json!({ "server": "srv", "uri": "x:1" });
    assert_eq!(host.must("mcp.resource.subscribe", params.clone()), json!({}));
    assert_eq!(
        host.must("mcp.resource.subscribe", params.clone()),
        json!({}),
        "twice is once"
    );
    server.log.wait_request("resources/subscribe");
    let updated =
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "x:1" } });
    server.push(&updated);
    let told = host.wait_notification("mcp.resource.updated", |_| true);
    assert_eq!(
        told,
        json!({ "directory": host.directory(), "server": "srv", "uri": "x:1" })
    );
    assert_eq!(server.log.requests("resources/subscribe").len(), 1);
    // It outlives a restart.
    host.must("mcp.restart", json!({ "server": "srv" }));
    clock::eventually("a new subscription", || {
        (server.log.requests("resources/subscribe").len() == 2).then_some(())
    });
    assert_eq!(host.must("mcp.resource.unsubscribe", params.clone()), json!({}));
    server.log.wait_request("resources/unsubscribe");
}

fn greet() -> Value {
    json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "who", "required": true }, { "name": "how" }] }] })
}

fn prompts_are_filled() {
    let env = TestEnv::new();
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": "hello" } }]);
    let (host, server) = one(
        &env,
        json!({ "prompts/list": greet(), "prompts/get": { "messages": messages } }),
    );
    let page = host.must("mcp.prompts.list", json!({}));
    assert_eq!(
        (&page["items"][0]["command"], &page["items"][0]["type"]),
        (&json!("/srv:greet"), &json!("prompt"))
    );
    let answer = host.must(
        "mcp.prompt.get",
        json!({ "server": "srv", "name": "greet", "args": { "who": "you" } }),
    );
    assert_eq!(answer["result"], json!({ "messages": messages }));
    assert_eq!(
        server.log.wait_request("prompts/get")["params"]["arguments"],
        json!({ "who": "you" })
    );
}

fn prompts_need_their_arguments() {
    let env = TestEnv::new();
    let (host, server) = one(
        &env,
        json!({ "prompts/list": greet(), "prompts/get": { "messages": [] } }),
    );
    let error = host.ask(
        "mcp.prompt.get",
        json!({ "server": "srv", "name": "greet", "args": { "how": "loud" } }),
    );
    let error = error.expect_err("`who` is missing");
    assert_eq!(
        (error.code, error.kind(), &error.data["names"]),
        (-32058, "argument_missing", &json!(["who"]))
    );
    assert_eq!(server.log.requests("prompts/get").len(), 0);
    let error = host
        .ask("mcp.prompt.get", json!({ "server": "srv", "name": "great" }))
        .expect_err("no such prompt");
    assert_eq!(
        (error.kind(), &error.data["what"]),
        ("not_found", &json!("prompt"))
    );
    assert_eq!(error.data["candidates"], json!(["greet"]));
}

fn prompts_have_a_limit() {
    let env = TestEnv::new();
    let text = "x".repeat((256 << 10) + 1);
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": text } }]);
    let list = json!({ "prompts": [{ "name": "big" }] });
    let (host, _server) = one(
        &env,
        json!({ "prompts/list": list, "prompts/get": { "messages": messages } }),
    );
    let error = host
        .ask("mcp.prompt.get", json!({ "server": "srv", "name": "big" }))
        .expect_err("over 256 KiB");
    assert_eq!(
        (error.kind(), &error.data["limit"]),
        ("too_large", &json!(256 << 10))
    );
}

fn values_are_completed() {
    let env = TestEnv::new();
    let values: Vec<String> = (0..120).map(|number| format!("v{number}")).collect();
    let completion = json!({ "completion": { "values": values, "total": 500, "hasMore": true } });
    let (host, server) = one(
        &env,
        json!({ "prompts/list": greet(), "completion/complete": completion }),
    );
    let reference = json!({ "type": "prompt", "name": "greet" });
    let params = json!({ "server": "srv", "ref": reference, "argument": "who", "value": "v", "args": { "how": "loud" } });
    let answer = host.must("mcp.complete", params);
    assert_eq!(answer["values"].as_array().map(Vec::len), Some(100));
    assert_eq!((&answer["total"], &answer["more"]), (&json!(500), &json!(true)));
    let request = server.log.wait_request("completion/complete");
    assert_eq!(
        request["params"]["ref"],
        json!({ "type": "ref/prompt", "name": "greet" })
    );
    assert_eq!(
        request["params"]["argument"],
        json!({ "name": "who", "value": "v" })
    );
    assert_eq!(
        request["params"]["context"]["arguments"],
        json!({ "how": "loud" })
    );
    let reference = json!({ "type": "template", "uriTemplate": "x:{y}" });
    host.must(
        "mcp.complete",
        json!({ "server": "srv", "ref": reference, "argument": "y", "value": "" }),
    );
    let request = server
        .log
        .requests("completion/complete")
        .pop()
        .expect("the second");
    assert_eq!(
        request["params"]["ref"],
        json!({ "type": "ref/resource", "uri": "x:{y}" })
    );
}

fn nothing_to_complete() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let reference = json!({ "type": "prompt", "name": "greet" });
    let answer = host.must(
        "mcp.complete",
        json!({ "server": "srv", "ref": reference, "argument": "a", "value": "" }),
    );
    assert_eq!((&answer["values"], &answer["more"]), (&json!([]), &json!(false)));
    assert_eq!(server.log.requests("completion/complete").len(), 0);
}

fn logs_of_every_source() {
    let env = TestEnv::new();
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "warning", "logger": "db", "data": { "slow": true } } });
    let (host, server) = one(&env, json!({ "tools/call": { "$before": [message] } }));
    host.start_server("srv");
    server.order(json!([{ "err": "on stderr" }, { "out": "on stdout" }]));
    assert!(host.call("srv", "echo", json!({})).is_ok());
    let find = |source: &str, text: &str| {
        clock::eventually(&format!("`{text}` from {source}"), || {
            let logs = host.must("mcp.logs", json!({ "server": "srv" }));
            let lines = logs["lines"].as_array().expect("lines").clone();
            lines.into_iter().find(|line| {
                line["source"] == source && line["text"].as_str().is_some_and(|found| found.contains(text))
            })
        })
    };
    find("stderr", "on stderr");
    assert_eq!(find("server", "slow")["level"], "warning");
    find("protocol", "on stdout");
    let one = host.must("mcp.logs", json!({ "server": "srv", "limit": 1 }));
    assert_eq!(one["lines"].as_array().map(Vec::len), Some(1));
}

fn logs_are_followed() {
    let env = TestEnv::new();
    let (host, server) = one(&env, json!({}));
    host.start_server("srv");
    server.order(json!([{ "err": "before" }]));
    host.must("mcp.logs", json!({ "server": "srv", "follow": true }));
    server.order(json!([{ "err": "while" }]));
    let told = |text: &str, told: &Value| {
        told["lines"]
            .as_array()
            .is_some_and(|lines| lines.iter().any(|line| line["text"] == text))
    };
    let log = host.wait_notification("mcp.log", |log| told("while", log));
    assert_eq!((&log["server"], &log["dropped"]), (&json!("srv"), &json!(0)));
    host.must("mcp.logs", json!({ "server": "srv", "follow": false }));
    server.order(json!([{ "err": "after" }]));
    clock::eventually("the line to be kept", || {
        let logs = host.must("mcp.logs", json!({ "server": "srv" }));
        told("after", &logs).then_some(())
    });
    assert!(!host.notifications("mcp.log").iter().any(|log| told("after", log)));
}
