//! Servers of both eras of MCP behind one protocol: probing, falling back, and the rules of the
//! revision of 2026-07-28, of which a host sees nothing.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HttpHost, StdioServer, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("eras":
        newest_over_stdio, newest_over_http, input_required_over_stdio, input_required_over_http,
        input_required_many_rounds, input_required_declined, cancel_closes_the_stream,
        old_server_that_dies_over_the_probe, verdicts_are_remembered, pinned_to_the_old, pinned_to_the_new,
        a_version_is_corrected, no_common_version, listens_for_changes, parameters_in_headers,
        a_silent_probe_falls_back,
    )
}

const META: &str = "io.modelcontextprotocol/protocolVersion";
const MODERN: &str = "2026-07-28";

fn modern(mut mcp: Value) -> Value {
    if mcp.get("server/discover").is_none() {
        mcp["server/discover"] = json!({});
    }
    mcp
}

fn stdio(env: &TestEnv, mcp: Value) -> (Host, StdioServer) {
    let server = env.plain_server("srv", mcp);
    env.write_config(&json!({ "srv": server.entry() }));
    (Host::start(env), server)
}

fn newest_over_stdio() {
    let env = TestEnv::new();
    let (host, server) = stdio(&env, modern(json!({})));
    let record = host.start_server("srv");
    assert_eq!(
        record["connection"],
        json!({ "transport": "stdio", "protocolVersion": MODERN, "era": "modern" })
    );
    assert!(host.call("srv", "echo", json!({ "a": 1 })).is_ok());
    assert_eq!(server.log.requests("initialize").len(), 0);
    assert_eq!(server.log.requests("notifications/initialized").len(), 0);
    let call = server.log.wait_request("tools/call");
    let meta = &call["params"]["_meta"];
    assert_eq!(meta[META], MODERN);
    assert!(
        meta["io.modelcontextprotocol/clientCapabilities"].is_object(),
        "{meta}"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientInfo"]["name"]
            .as_str()
            .map(str::is_empty),
        Some(false)
    );
    assert_eq!(call["params"]["arguments"], json!({ "a": 1 }));
}

fn newest_over_http() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&modern(json!({})));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(
        record["connection"],
        json!({ "transport": "streamable-http", "protocolVersion": MODERN, "era": "modern" })
    );
    assert!(host.call("srv", "echo", json!({})).is_ok());
    for seen in server.log() {
        assert_eq!(seen.method, "POST", "no GET, no DELETE");
        let method = seen.rpc().expect("a request").to_owned();
        assert_eq!(seen.headers["mcp-protocol-version"], MODERN);
        assert_eq!(seen.headers["mcp-method"], json!(method));
        assert_eq!(seen.json.as_ref().expect("JSON")["params"]["_meta"][META], MODERN);
        let name = (method == "tools/call").then(|| json!("echo"));
        assert_eq!(seen.headers.get("mcp-name"), name.as_ref(), "{method}");
        assert_eq!(seen.headers.get("mcp-session-id"), None);
    }
}

/// State that a careless client would reorder, unescape or round.
const STATE: &str = "{\\\"b\\\":1.10,\\\"a\\\":\\\"\\u00e9\\/\\ud83d\\ude00\\\"}==\\n";

fn needs_input() -> String {
    let request = json!({ "method": "elicitation/create", "params": {
        "message": "who?", "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
    } });
    format!(
        "{{\"resultType\":\"input_required\",\"inputRequests\":{{\"q1\":{request}}},\"requestState\":\"{STATE}\"}}"
    )
}

fn check_retry(first: &Value, retry: &Value, retry_text: &str) {
    assert_ne!(first["id"], retry["id"], "a fresh id");
    assert_eq!(
        retry["params"]["inputResponses"],
        json!({ "q1": { "action": "accept", "content": { "name": "octocat" } } })
    );
    assert!(
        retry_text.contains(&format!("\"requestState\":\"{STATE}\"")),
        "byte for byte: {retry_text}"
    );
    assert_eq!(
        (&retry["params"]["name"], &retry["params"]["arguments"]),
        (&first["params"]["name"], &first["params"]["arguments"])
    );
    assert_eq!(retry["params"]["_meta"][META], MODERN);
    assert_eq!(first["params"].get("requestState"), None);
}

fn answer_who(host: &Host, call: crate::support::host::Pending<'_>) {
    let question = host.wait_question(0);
    assert_eq!(
        (&question["type"], &question["message"]),
        (&json!("form"), &json!("who?"))
    );
    host.answer(&question, "accept", Some(json!({ "name": "octocat" })))
        .expect("an answer");
    let answer = call.wait().expect("a result");
    assert_eq!(answer["result"]["content"][0]["text"], "ok");
    assert_eq!(answer["issues"], json!([]));
}

fn input_required_over_stdio() {
    let env = TestEnv::new();
    let (host, server) = stdio(
        &env,
        modern(json!({ "tools/call": [{ "$raw": needs_input() }, {}] })),
    );
    let call = host.send_call("srv", "echo", json!({ "z": 1, "a": 2 }));
    answer_who(&host, call);
    let calls = server.log.requests("tools/call");
    let text = server
        .log
        .lines()
        .into_iter()
        .rfind(|line| line.contains("tools/call"))
        .expect("the retry");
    check_retry(&calls[0], &calls[1], &text);
}

fn input_required_over_http() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&modern(json!({ "tools/call": [{ "$raw": needs_input() }, {}] })));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let call = host.send_call("srv", "echo", json!({ "z": 1, "a": 2 }));
    answer_who(&host, call);
    let calls = server.requests("tools/call");
    check_retry(
        calls[0].json.as_ref().expect("JSON"),
        calls[1].json.as_ref().expect("JSON"),
        &calls[1].body,
    );
    assert_eq!(calls[1].headers["mcp-name"], "echo");
}

/// A state alone is load shedding: no one is asked. A server that never has enough is stopped.
fn input_required_many_rounds() {
    let env = TestEnv::new();
    let shed = "{\"resultType\":\"input_required\",\"requestState\":\"later\"}";
    let (host, server) = stdio(
        &env,
        modern(json!({
            "tools/call:later": [{ "$raw": shed }, { "$raw": shed }, {}],
            "tools/call:endless": { "$raw": shed },
        })),
    );
    assert!(host.call("srv", "later", json!({})).is_ok());
    assert_eq!(server.log.requests("tools/call").len(), 3);
    let error = host.call("srv", "endless", json!({})).expect_err("enough");
    assert_eq!(error.code, -32055, "{error}");
    let n_rounds = server.log.requests("tools/call").len() - 3;
    assert!((5..=20).contains(&n_rounds), "{n_rounds} rounds");
    assert_eq!(host.notifications("mcp.question"), [] as [Value; 0]);
}

fn input_required_declined() {
    let env = TestEnv::new();
    let (host, server) = stdio(
        &env,
        modern(json!({ "tools/call": [{ "$raw": needs_input() }, {}] })),
    );
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    host.answer(&question, "decline", None).expect("an answer");
    assert!(call.wait().is_ok());
    let retry = server.log.requests("tools/call").pop().expect("the retry");
    assert_eq!(
        retry["params"]["inputResponses"],
        json!({ "q1": { "action": "decline" } })
    );
}

/// Over HTTP this era knows no cancel message: the stream is closed.
fn cancel_closes_the_stream() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&modern(json!({ "tools/call": { "$none": true } })));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let call = host.send_call("srv", "echo", json!({}));
    server.wait("the call", |seen| seen.rpc() == Some("tools/call"));
    call.cancel();
    assert_eq!(call.wait().expect_err("cancelled").code, -32800);
    server.wait_dropped("tools/call");
    assert!(server.requests("notifications/cancelled").is_empty());
}

/// Seen with servers of old SDKs: any request before `initialize` ends the process.
fn old_server_that_dies_over_the_probe() {
    let env = TestEnv::new();
    let script = json!({ "on": [{ "on": "server/discover", "do": [{ "exit": 1 }] }], "rest": "plain" });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["connection"]["era"]),
        (&json!("ready"), &json!("legacy")),
        "{record}"
    );
    assert_eq!(
        server.log.starts().len(),
        2,
        "a fresh process for the old handshake"
    );
    let log = host
        .request("mcp.logs", json!({ "directory": env.project(), "server": "srv" }))
        .expect("the log");
    assert!(log.to_string().contains("it is started once more"), "{log}");
    assert!(host.call("srv", "echo", json!({})).is_ok());
}

fn verdicts_are_remembered() {
    let env = TestEnv::new();
    let (host, server) = stdio(&env, json!({}));
    host.start_server("srv");
    assert_eq!(server.log.requests("server/discover").len(), 1);
    host.must("mcp.restart", json!({ "server": "srv" }));
    assert_eq!(
        server.log.requests("server/discover").len(),
        1,
        "within one process"
    );
    drop(host);
    let host = Host::start(&env);
    assert_eq!(host.start_server("srv")["state"], "ready");
    assert_eq!(
        server.log.requests("server/discover").len(),
        1,
        "and for the next"
    );
}

fn pinned_to_the_old() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": { "command": server.command, "protocol": "legacy" } }));
    let host = Host::start(&env);
    assert_eq!(host.start_server("srv")["connection"]["era"], "legacy");
    assert_eq!(server.log.requests("server/discover").len(), 0);
    let initialize = server.log.wait_request("initialize");
    assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
}

fn pinned_to_the_new() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": { "command": server.command, "protocol": MODERN } }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(record["state"], "error", "{record}");
    assert_eq!(server.log.requests("initialize").len(), 0, "no falling back");
}

fn a_version_is_corrected() {
    let env = TestEnv::new();
    let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": { "supported": [MODERN], "requested": "x" } });
    let (host, server) = stdio(&env, json!({ "server/discover": [{ "$error": error }, {}] }));
    let record = host.start_server("srv");
    assert_eq!(record["connection"]["era"], "modern", "{record}");
    assert_eq!(server.log.requests("initialize").len(), 0);
}

fn no_common_version() {
    let env = TestEnv::new();
    let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": { "supported": ["2031-01-01"], "requested": MODERN } });
    let (host, server) = stdio(&env, json!({ "server/discover": { "$error": error } }));
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["error"]["kind"]),
        (&json!("error"), &json!("unsupported_protocol")),
        "{record}"
    );
    let message = record["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("2031-01-01") && message.contains(MODERN),
        "both sides are named: {message}"
    );
    assert_eq!(server.log.requests("initialize").len(), 0);
}

fn listens_for_changes() {
    let env = TestEnv::new();
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let server = HttpHost::plain(&json!({
        "server/discover": { "capabilities": { "tools": { "listChanged": true } } },
        "tools/list": [{ "tools": [tool("old")] }, { "tools": [tool("old"), tool("new")] }],
    }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    // What changed before it was read is no change.
    host.must("mcp.tools.list", json!({}));
    let listen = server.wait("a listen request", |seen| {
        seen.rpc() == Some("subscriptions/listen")
    });
    assert_eq!(
        listen.json.expect("JSON")["params"]["notifications"]["toolsListChanged"],
        true
    );
    crate::support::clock::eventually("the open stream", || (server.n_streams() == 1).then_some(()));
    server.push(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {} }));
    host.wait_notification("mcp.changed", |params| params["status"]["tools"] == 2);
}

fn parameters_in_headers() {
    let env = TestEnv::new();
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "n": { "type": "integer", "x-mcp-header": "N" },
    } });
    let bad = json!({ "type": "object", "properties": { "x": { "type": "number", "x-mcp-header": "X" } } });
    let list = json!({ "tools": [{ "name": "where", "inputSchema": schema }, { "name": "bad", "inputSchema": bad }] });
    let server = HttpHost::plain(&modern(json!({ "tools/list": list })));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let page = host.must("mcp.tools.list", json!({}));
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
    assert!(page["issues"].to_string().contains("bad"), "{page}");
    assert!(
        host.call("srv", "where", json!({ "region": "Hello, 世界", "n": -7 }))
            .is_ok()
    );
    let call = server.requests("tools/call").pop().expect("the call");
    assert_eq!(
        call.headers["mcp-param-region"],
        "=?base64?SGVsbG8sIOS4lueVjA==?="
    );
    assert_eq!(call.headers["mcp-param-n"], "-7");
}

/// Silence is an answer too. `startTimeoutMs` bounds the waiting.
fn a_silent_probe_falls_back() {
    let env = TestEnv::new();
    let script = json!({ "on": [{ "on": "server/discover", "do": [] }], "rest": "plain" });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": { "command": server.command, "startTimeoutMs": 4000 } }));
    let host = Host::start(&env);
    let start = Instant::now();
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["connection"]["era"]),
        (&json!("ready"), &json!("legacy")),
        "{record}"
    );
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}
