//! The bytes on stdin: whatever they are, the session lives on and the next good frame is served.

use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv, clock, frames};

pub fn stories() -> Vec<Trial> {
    stories!("framing":
        malformed_frames_by_the_thousand, a_batch_is_refused, ten_gigabytes_announced, byte_by_byte,
        many_frames_at_once, other_headers, a_message_on_a_line_of_its_own, not_a_message, garbage_of_any_kind,
    )
}

#[track_caller]
fn assert_alive(host: &Host) {
    assert_eq!(
        host.request("mcp.questions", json!({})),
        Ok(json!({ "open": [], "waiting": 0 }))
    );
}

/// Error answers without an id, so far.
fn nameless_errors(host: &Host) -> Vec<Value> {
    let messages = host.messages();
    let nameless = messages
        .iter()
        .filter(|one| one.message.method.is_none() && one.message.id == Some(Value::Null));
    nameless
        .map(|one| serde_json::from_str(one.message.error.as_ref().expect("an error").get()).expect("JSON"))
        .collect()
}

#[track_caller]
fn wait_nameless(host: &Host, count: usize) -> Vec<Value> {
    host.wait_for("error answers without an id", |messages| {
        let n_found = messages
            .iter()
            .filter(|one| one.message.id == Some(Value::Null))
            .count();
        (n_found >= count).then_some(())
    });
    nameless_errors(host)
}

fn malformed_frames_by_the_thousand() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let bodies: [&[u8]; 5] = [
        b"{",
        b"nonsense",
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        b"\xff\xfe{}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"\xc3\x28\"}",
    ];
    let mut bytes = Vec::new();
    for round in 0..2000 {
        for body in bodies {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(body);
        }
        if round % 50 == 0 {
            host.write(&bytes);
            bytes.clear();
        }
    }
    host.write(&bytes);
    let errors = wait_nameless(&host, 10_000);
    assert_eq!(errors.len(), 10_000);
    for error in errors {
        assert_eq!(
            (&error["code"], &error["data"]["kind"]),
            (&json!(-32700), &json!("parse_error")),
            "{error}"
        );
    }
    assert_alive(&host);
}

fn a_batch_is_refused() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let batch = json!([{ "jsonrpc": "2.0", "id": 1, "method": "mcp.questions" }]).to_string();
    host.write(&frames::encode(&batch));
    host.write(&frames::encode("[]"));
    for error in wait_nameless(&host, 2) {
        assert_eq!(
            (&error["code"], &error["data"]["kind"]),
            (&json!(-32600), &json!("invalid_request"))
        );
        assert!(error["data"]["hint"].is_string(), "{error}");
    }
    assert_alive(&host);
}

fn ten_gigabytes_announced() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let before = crate::support::processes::resident(host.pid);
    host.write(b"Content-Length: 10737418240\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":\"big\",\"method\":\"mcp.questions\"}");
    let error = host.wait_for("an answer to the oversize frame", |messages| {
        messages
            .iter()
            .find(|one| one.message.error.is_some())
            .map(|one| one.text.clone())
    });
    assert!(error.contains("\"big\""), "the id could be read: {error}");
    assert_alive(&host);
    // Also a length that fits no number.
    host.write(b"Content-Length: 99999999999999999999999999\r\n\r\n{}");
    assert_alive(&host);
    let growth = crate::support::processes::resident(host.pid).saturating_sub(before);
    assert!(growth < 20 << 20, "{growth} bytes");
}

/// Somebody who speaks MCP's own framing is told which one this is, on the wire and on stderr.
fn a_message_on_a_line_of_its_own() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    host.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"line\",\"method\":\"mcp.questions\"}\n");
    let error = host.wait_for("an answer to the line", |messages| {
        let answer = messages
            .iter()
            .find(|one| one.message.id == Some(json!("line")))?;
        serde_json::from_str::<Value>(answer.message.error.as_ref()?.get()).ok()
    });
    assert_eq!(
        (&error["code"], &error["data"]["kind"]),
        (&json!(-32700), &json!("parse_error"))
    );
    assert!(
        error["data"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("Content-Length")),
        "{error}"
    );
    assert_alive(&host);
}

fn byte_by_byte() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let pending = host.send_as(json!("ü"), "mcp.questions", "{}");
    assert!(pending.wait().is_ok());
    let body = "{\"jsonrpc\":\"2.0\",\"id\":\"日本 😀\",\"method\":\"mcp.questions\",\"params\":{}}";
    for byte in frames::encode(body) {
        host.write(&[byte]);
    }
    host.wait_for("the answer", |messages| {
        messages
            .iter()
            .find(|one| one.message.id == Some(json!("日本 😀")))
            .map(|_| ())
    });
}

fn many_frames_at_once() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let mut bytes = Vec::new();
    for number in 0..500 {
        let body = json!({ "jsonrpc": "2.0", "id": format!("n{number}"), "method": "mcp.questions" });
        bytes.extend(frames::encode(&body.to_string()));
    }
    host.write(&bytes);
    host.wait_for("500 answers", |messages| {
        let answered = |one: &&std::sync::Arc<crate::support::host::Received>| {
            one.message
                .id
                .as_ref()
                .is_some_and(|id| id.as_str().is_some_and(|id| id.starts_with('n')))
        };
        (messages.iter().filter(answered).count() == 500).then_some(())
    });
}

fn other_headers() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let body = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "mcp.questions" }).to_string();
    let frame = |header: &str, id: &str| {
        let body = body(id);
        format!("{}\r\n\r\n{body}", header.replace("LEN", &body.len().to_string()))
    };
    let type_header = "Content-Length: LEN\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8";
    host.write(frame(type_header, "with a type").as_bytes());
    host.write(frame("content-length:LEN", "lower case").as_bytes());
    host.write(frame("X-Other: 1\r\nContent-Length:   LEN", "another").as_bytes());
    for id in ["with a type", "lower case", "another"] {
        host.wait_for(id, |messages| {
            messages
                .iter()
                .find(|one| one.message.id == Some(json!(id)))
                .map(|_| ())
        });
    }
}

/// JSON that is no request: refused with an id where there is one.
fn not_a_message() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    for body in [
        "1",
        "\"text\"",
        "null",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"mcp.questions\"}",
    ] {
        host.write(&frames::encode(body));
    }
    for error in wait_nameless(&host, 4) {
        assert_eq!(error["code"], -32600, "{error}");
    }
    // An answer to nothing is ignored.
    host.write(&frames::encode(
        "{\"jsonrpc\":\"2.0\",\"id\":1000001,\"result\":{}}",
    ));
    host.write(&frames::encode("{\"jsonrpc\":\"2.0\",\"id\":\"m\",\"method\":7}"));
    host.wait_for("an answer with the id", |messages| {
        messages
            .iter()
            .find(|one| one.message.id == Some(json!("m")) && one.message.error.is_some())
            .map(|_| ())
    });
    assert_alive(&host);
}

/// Random bytes between good frames never swallow the next good frame. A header inside the garbage may
/// announce a body, which costs as many frames as it covers.
fn garbage_of_any_kind() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "(Content-Length: ?[0-9]{0,3}\r?\n\r?\n?[{}a-z\":]{0,40}){0,4}".prop_map(String::into_bytes),
    ];
    let mut runner = TestRunner::new(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&piece, |garbage| {
        host.write(&garbage);
        // A blank line ends what may look like an open header; a body of up to 999 bytes takes a few frames.
        host.write(b"\r\n\r\n");
        let pending: Vec<_> = (0..16).map(|_| host.send("mcp.questions", json!({}))).collect();
        let last = pending.last().expect("sixteen");
        prop_assert!(
            last.wait_within(clock::PATIENCE).is_some(),
            "no answer after {garbage:?}"
        );
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
