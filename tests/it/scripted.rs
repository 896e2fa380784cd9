//! The scripted servers themselves, driven without Pillion: what stories rely on must hold.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{HttpHost, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("scripted": stdio_answers, stdio_stubborn, http_rules, http_stream)
}

fn stdio_answers() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/call:raw": { "$raw": "{\"content\":[],\"n\":1.10}" } }),
    );
    let mut child = Command::new(&server.command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the launcher is executable");
    let mut input = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ask = |message: Value| {
        writeln!(input, "{message}").expect("the server reads");
        lines.next().expect("an answer").expect("UTF-8")
    };
    let answer = ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }));
    assert!(answer.contains("2025-11-25"), "{answer}");
    let answer =
        ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "raw" } }));
    assert_eq!(
        answer,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[],\"n\":1.10}}"
    );
    let answer = ask(json!({ "jsonrpc": "2.0", "id": 3, "method": "server/discover" }));
    assert!(answer.contains("-32601"), "{answer}");
    drop(input);
    child.wait().expect("it ends at end of input");
    assert_eq!(server.log.ends(), ["eof"]);
    assert_eq!(server.log.requests("initialize").len(), 1);
}

fn stdio_stubborn() {
    let env = TestEnv::new();
    let script = json!({ "start": [{ "ignore": ["eof", "SIGTERM"] }], "rest": "plain" });
    let server = env.scripted_server("srv", script);
    let mut child = Command::new(&server.command)
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdin.take());
    clock::eventually("end of input", || (server.log.ends() == ["eof"]).then_some(()));
    crate::support::processes::signal(i32::try_from(child.id()).expect("a pid"), libc::SIGTERM);
    clock::eventually("the signal", || {
        (server.log.ends() == ["eof", "SIGTERM"]).then_some(())
    });
    assert!(child.try_wait().expect("our child").is_none());
    child.kill().expect("our child");
    child.wait().expect("our child");
    assert!(server.log.exits().is_empty());
}

/// Plain HTTP/1.1 over a socket: the client is not what is tested.
fn exchange(host: &HttpHost, request: &str) -> String {
    use std::io::Read as _;
    let address = host.origin.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).expect("the host listens");
    stream.write_all(request.as_bytes()).expect("the host reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

fn post(host: &HttpHost, path: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    exchange(
        host,
        &format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        ),
    )
}

fn http_rules() {
    let host = HttpHost::bind();
    let rules = json!([
        { "match": "POST /mcp", "when": { "rpc": "ping" }, "times": 1, "respond": { "status": 503, "text": "no" } },
        { "match": "POST /mcp", "respond": { "mcp": { "session": ["s-1"] } } },
    ]);
    host.serve_rules(&rules, &json!({}));
    let ping = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" });
    assert!(post(&host, "/mcp", &ping).starts_with("HTTP/1.1 503"));
    assert!(post(&host, "/mcp", &ping).contains("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"));
    let answer = post(
        &host,
        "/mcp",
        &json!({ "jsonrpc": "2.0", "id": 8, "method": "initialize" }),
    );
    assert!(answer.contains("mcp-session-id: s-1"), "{answer}");
    assert!(
        post(&host, "/mcp", &ping).starts_with("HTTP/1.1 400"),
        "the session id is demanded"
    );
    assert!(post(&host, "/nothing", &ping).starts_with("HTTP/1.1 404"));
    assert_eq!(host.log().len(), 5);
}

fn http_stream() {
    let host = HttpHost::bind();
    let rules = json!([
        { "match": "POST /a", "respond": { "mcp": { "as": "sse", "split": "every_byte" } } },
        { "match": "POST /b", "respond": { "headers": { "content-type": "text/event-stream" }, "text": "data: {\"id\":{id}}\n\n" } },
        { "match": "GET /c", "respond": { "status": 200, "headers": { "content-type": null }, "chunks": ["6869", "utf8:!"] } },
    ]);
    host.serve_rules(&rules, &json!({}));
    let answer = post(
        &host,
        "/a",
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }),
    );
    assert!(answer.contains("text/event-stream"), "{answer}");
    let answer = post(
        &host,
        "/b",
        &json!({ "jsonrpc": "2.0", "id": "x", "method": "ping" }),
    );
    assert!(answer.contains("data: {\"id\":\"x\"}"), "{answer}");
    let answer = exchange(&host, "GET /c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(!answer.contains("content-type"), "{answer}");
    assert!(answer.contains("2\r\nhi\r\n"), "{answer}");
}
