//! Remote servers: sessions, resumption, headers, sign-in needed, and addresses that do not answer.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::scripted::rules::Seen;
use crate::support::{Host, HttpHost, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("transports":
        headers_on_every_request, a_session_from_start_to_end, a_stream_is_resumed, a_lost_stream_is_not_repeated,
        sign_in_is_needed, nobody_listens, not_an_address, the_old_transport_by_name, the_old_stream_breaks,
        an_unusable_answer, reserved_headers_stay_ours,
    )
}

fn started(env: &TestEnv, server: &HttpHost, entry: Value) -> (Host, Value) {
    let mut whole = server.entry();
    for (key, value) in entry.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    env.write_config(&json!({ "srv": whole }));
    let host = Host::start(env);
    let record = host.start_server("srv");
    (host, record)
}

fn with_rules(rules: &Value, mcp: &Value) -> HttpHost {
    let server = HttpHost::bind();
    server.serve_rules(rules, mcp);
    server
}

fn headers_on_every_request() {
    let mut env = TestEnv::new();
    env.set("MY_KEY", "k-1");
    let server = with_rules(
        &json!([
            { "match": "POST /mcp", "respond": { "mcp": { "session": ["s-1"] } } },
            { "match": "GET /mcp", "respond": { "mcp_stream": {} } },
            { "match": "DELETE /mcp", "respond": { "status": 204, "text": "" } },
        ]),
        &json!({}),
    );
    let (host, record) = started(
        &env,
        &server,
        json!({ "headers": { "X-Api-Key": "${MY_KEY}", "Authorization": "Bearer fixed" } }),
    );
    assert_eq!(record["state"], "ready", "{record}");
    assert!(host.call("srv", "echo", json!({})).is_ok());
    host.must("mcp.stop", json!({ "server": "srv" }));
    server.wait("the goodbye", |seen| seen.method == "DELETE");
    let log = server.log();
    assert!(
        ["POST", "GET", "DELETE"]
            .iter()
            .all(|method| log.iter().any(|seen| seen.method == *method))
    );
    for seen in log {
        assert_eq!(
            (&seen.headers["x-api-key"], &seen.headers["authorization"]),
            (&json!("k-1"), &json!("Bearer fixed"))
        );
        assert_eq!(seen.headers.get("origin"), None, "not a browser");
        if seen.method == "POST" {
            let accept = seen.headers["accept"].as_str().expect("a header");
            assert!(
                accept.contains("application/json") && accept.contains("text/event-stream"),
                "{accept}"
            );
            assert_eq!(seen.headers["content-type"], "application/json");
        }
    }
}

fn a_session_from_start_to_end() {
    let env = TestEnv::new();
    let server = with_rules(
        &json!([
            { "match": "POST /mcp", "respond": { "mcp": { "session": ["s-1", "s-2"] } } },
            { "match": "GET /mcp", "respond": { "mcp_stream": {} } },
            { "match": "DELETE /mcp", "respond": { "status": 405, "text": "" } },
        ]),
        &json!({}),
    );
    let (host, _) = started(&env, &server, json!({}));
    assert!(host.call("srv", "echo", json!({})).is_ok());
    host.must("mcp.stop", json!({ "server": "srv" }));
    let log: Vec<Seen> = server
        .log()
        .into_iter()
        .filter(|seen| seen.rpc() != Some("server/discover"))
        .collect();
    let lines: Vec<(&str, Option<&str>)> = log
        .iter()
        .map(|seen| (seen.method.as_str(), seen.rpc()))
        .collect();
    assert_eq!(
        lines[..2],
        [
            ("POST", Some("initialize")),
            ("POST", Some("notifications/initialized"))
        ]
    );
    assert_eq!(lines.last(), Some(&("DELETE", None)));
    assert_eq!(log[0].headers.get("mcp-session-id"), None);
    for seen in &log[1..] {
        assert_eq!(
            seen.headers["mcp-session-id"],
            "s-1",
            "{} {:?}",
            seen.method,
            seen.rpc()
        );
        assert_eq!(seen.headers["mcp-protocol-version"], "2025-11-25");
        assert_eq!(
            seen.headers.get("mcp-method"),
            None,
            "headers of the newest revision stay away"
        );
    }
}

/// The server ends the stream on purpose and says where to go on, and when.
fn a_stream_is_resumed() {
    let env = TestEnv::new();
    let stream = json!({ "content-type": "text/event-stream" });
    let answer = "id: e-2\ndata: {\"jsonrpc\":\"2.0\",\"id\":{id:tools/call},\"result\":{\"content\":[],\"late\":1.10}}\n\n";
    let server = with_rules(
        &json!([
            { "match": "POST /mcp", "when": { "rpc": "tools/call" }, "respond": { "headers": stream, "text": "id: e-1\nretry: 150\ndata:\n\n" } },
            { "match": "POST /mcp", "respond": { "mcp": { "session": ["s-1"] } } },
            { "match": "GET /mcp", "when": { "header": { "last-event-id": "e-1" } }, "respond": { "headers": stream, "text": answer } },
            { "match": "* /mcp", "respond": { "status": 405, "text": "" } },
        ]),
        &json!({}),
    );
    let (host, _) = started(&env, &server, json!({}));
    let received = host.send_call("srv", "echo", json!({})).wait_raw();
    assert!(
        received
            .text
            .contains("\"result\":{\"content\":[],\"late\":1.10}"),
        "{}",
        received.text
    );
    assert_eq!(server.requests("tools/call").len(), 1);
}

/// Whether the tool ran is not known, so it is not run again.
fn a_lost_stream_is_not_repeated() {
    let env = TestEnv::new();
    let stream = json!({ "content-type": "text/event-stream" });
    let server = with_rules(
        &json!([
            { "match": "POST /mcp", "when": { "rpc": "tools/call" }, "respond": { "headers": stream, "text": ": hello\n\n", "hang_up": true } },
            { "match": "POST /mcp", "respond": { "mcp": {} } },
            { "match": "* /mcp", "respond": { "status": 405, "text": "" } },
        ]),
        &json!({}),
    );
    let (host, _) = started(&env, &server, json!({}));
    let error = host
        .call("srv", "echo", json!({}))
        .expect_err("the answer is lost");
    assert_eq!(error.code, -32055, "{error}");
    assert_eq!(server.requests("tools/call").len(), 1);
    assert_eq!(host.status("srv")["state"], "ready");
}

fn sign_in_is_needed() {
    let env = TestEnv::new();
    let challenge =
        json!({ "www-authenticate": "Bearer resource_metadata=\"http://127.0.0.1:9/.well-known/x\"" });
    let server = with_rules(
        &json!([{ "match": "* *", "respond": { "status": 401, "headers": challenge, "text": "" } }]),
        &json!({}),
    );
    let (host, record) = started(&env, &server, json!({}));
    assert_eq!(
        (&record["state"], &record["auth"]),
        (&json!("needs_auth"), &json!("needs_auth")),
        "{record}"
    );
    assert_eq!(
        (&record["transport"], record.get("pid")),
        (&json!("remote"), None)
    );
    let error = host.call("srv", "echo", json!({})).expect_err("no token");
    assert_eq!((error.code, error.kind()), (-32056, "needs_auth"));
    let page = host.must("mcp.tools.list", json!({}));
    assert_eq!(page["issues"][0]["kind"], "needs_auth", "{page}");
}

fn nobody_listens() {
    let env = TestEnv::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    env.write_config(&json!({ "srv": { "url": format!("http://{address}/mcp") } }));
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["error"]["kind"]),
        (&json!("error"), &json!("connect_failed")),
        "{record}"
    );
    let error = host.call("srv", "echo", json!({})).expect_err("nobody there");
    assert_eq!((error.code, error.kind()), (-32055, "connect_failed"));
}

fn not_an_address() {
    let env = TestEnv::new();
    env.write_config(
        &json!({ "file": { "url": "file:///etc/passwd" }, "junk": { "url": "not an address" } }),
    );
    let host = Host::start(&env);
    for name in ["file", "junk"] {
        let record = host.status(name);
        assert_eq!(record["state"], "error", "{record}");
    }
}

fn the_old_transport_by_name() {
    let env = TestEnv::new();
    let rules = json!([{ "match": "GET /mcp", "respond": { "legacy_sse": { "endpoint": "/m" } } }]);
    let server = with_rules(&rules, &json!({}));
    let (host, record) = started(&env, &server, json!({ "transport": "sse" }));
    assert_eq!(record["connection"]["transport"], "sse", "{record}");
    assert!(host.call("srv", "echo", json!({})).is_ok());
    assert!(
        !server
            .log()
            .iter()
            .any(|seen| seen.method == "POST" && seen.path == "/mcp"),
        "only the old one"
    );
}

fn the_old_stream_breaks() {
    let env = TestEnv::new();
    let rules = json!([{ "match": "GET /mcp", "respond": { "legacy_sse": { "endpoint": "/m" } } }]);
    let server = with_rules(&rules, &json!({ "tools/call:die": { "$exit": 1 } }));
    let (host, _) = started(&env, &server, json!({ "transport": "sse" }));
    let error = host
        .call("srv", "die", json!({}))
        .expect_err("the stream is gone");
    assert_eq!(error.code, -32055, "{error}");
    assert_eq!(server.requests("tools/call").len(), 1, "a call is never repeated");
    // The next use connects again.
    assert!(host.call("srv", "echo", json!({})).is_ok());
    assert!(server.requests("initialize").len() >= 2);
}

fn an_unusable_answer() {
    let env = TestEnv::new();
    let page = json!({ "headers": { "content-type": "text/html" }, "text": "<h1>Hello</h1>" });
    let server = with_rules(&json!([{ "match": "* *", "respond": page }]), &json!({}));
    let (_host, record) = started(&env, &server, json!({}));
    assert_eq!(record["state"], "error", "{record}");
    let fault = record["error"].to_string();
    assert!(
        fault.contains("text/html") || fault.contains("Hello"),
        "it shows what was answered: {fault}"
    );
}

fn reserved_headers_stay_ours() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&json!({}));
    let headers = json!({ "Accept": "text/plain", "Mcp-Session-Id": "mine", "MCP-Protocol-Version": "1", "X-Fine": "yes" });
    let (_host, record) = started(&env, &server, json!({ "headers": headers }));
    assert_eq!(record["state"], "ready", "{record}");
    for seen in server.log() {
        assert_ne!(seen.headers["accept"], "text/plain");
        assert_eq!(seen.headers.get("mcp-session-id"), None);
        assert_ne!(seen.headers.get("mcp-protocol-version"), Some(&json!("1")));
        assert_eq!(seen.headers["x-fine"], "yes");
    }
}
