//! The ways to die. Whatever way a host goes, Pillion follows within five seconds, with the promised
//! exit code, and leaves no process behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, StdioServer, TestEnv, clock, frames};

pub fn stories() -> Vec<Trial> {
    stories!("shutdown":
        shutdown_and_exit, exit_alone, end_of_input, sigterm, sighup, sigint, broken_pipe, host_is_gone,
        shutdown_answers_at_once, what_is_open_is_answered, questions_are_closed, nothing_is_taken_up_afterwards,
        stubborn_server, before_initialize,
    )
}

const LIMIT: Duration = Duration::from_secs(5);

/// A host with a server behind a launcher, running.
fn running(env: &TestEnv, options: HostOptions) -> (Host, StdioServer) {
    let server = env.plain_server("srv", json!({ "tools/call": { "$none": true } }));
    env.write_config(&json!({ "srv": { "command": server.wrapper } }));
    let host = Host::start_with(env, options);
    assert_eq!(host.start_server("srv")["state"], "ready");
    assert_eq!(env.server_processes().len(), 2, "launcher and server");
    (host, server)
}

fn dies(way: impl FnOnce(&Host), code: i32) {
    let env = TestEnv::new();
    let (host, server) = running(&env, HostOptions::default());
    way(&host);
    assert_eq!(host.wait_exit(LIMIT).code(), Some(code));
    env.assert_nothing_left(Duration::from_secs(1));
    assert_eq!(
        server.log.ends().first().map(String::as_str),
        Some("eof"),
        "the polite way comes first"
    );
}

fn shutdown_and_exit() {
    dies(
        |host| {
            assert_eq!(host.request("shutdown", Value::Null), Ok(Value::Null));
            host.notify("exit", Value::Null);
        },
        0,
    );
}

fn exit_alone() {
    dies(|host| host.notify("exit", Value::Null), 1);
}

fn end_of_input() {
    dies(Host::close_stdin, 1);
}

fn sigterm() {
    dies(|host| host.signal(libc::SIGTERM), 1);
}

fn sighup() {
    dies(|host| host.signal(libc::SIGHUP), 1);
}

fn sigint() {
    dies(|host| host.signal(libc::SIGINT), 1);
}

/// The host stopped reading: seen at the first write. Stdin stays open.
fn broken_pipe() {
    use std::io::{BufReader, Write as _};
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let mut child = env
        .command()
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary under test starts");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut say = |message: Value| {
        input
            .write_all(&frames::encode(&message.to_string()))
            .expect("it reads")
    };
    let params = json!({ "capabilities": {}, "initializationOptions": {} });
    say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    assert!(frames::read(&mut output).expect("a frame").is_some());
    say(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
    let start = json!({ "directory": env.project(), "server": "srv" });
    say(json!({ "jsonrpc": "2.0", "id": 2, "method": "mcp.start", "params": start }));
    server.log.wait_request("tools/list");
    drop(output);
    say(json!({ "jsonrpc": "2.0", "id": 3, "method": "mcp.questions" }));
    let status = clock::poll(LIMIT, || child.try_wait().expect("our child"));
    let code = status.and_then(|status| status.code());
    if code.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    assert_eq!(code, Some(1));
    env.assert_nothing_left(Duration::from_secs(1));
}

/// `processId` of the handshake is watched: a host that was killed may leave its pipes open.
fn host_is_gone() {
    let env = TestEnv::new();
    let mut other = Command::new("sleep")
        .arg("600")
        .spawn()
        .expect("a process to watch");
    let options = HostOptions {
        process_id: Some(other.id()),
        ..HostOptions::default()
    };
    let (host, _server) = running(&env, options);
    other.kill().expect("our child");
    other.wait().expect("our child");
    assert_eq!(host.wait_exit(LIMIT).code(), Some(1));
    env.assert_nothing_left(Duration::from_secs(1));
}

fn shutdown_answers_at_once() {
    let env = TestEnv::new();
    let script = json!({ "start": [{ "ignore": ["eof", "SIGTERM"] }], "rest": "plain" });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    let start = Instant::now();
    assert_eq!(host.request("shutdown", Value::Null), Ok(Value::Null));
    // 250 ms are promised; the rest is for a busy machine.
    assert!(
        start.elapsed() < Duration::from_millis(600),
        "{:?}",
        start.elapsed()
    );
    host.notify("exit", Value::Null);
    assert_eq!(host.wait_exit(LIMIT).code(), Some(0));
    env.assert_nothing_left(Duration::from_secs(1));
    assert_eq!(server.log.ends(), ["eof", "SIGTERM"], "and then SIGKILL");
}

fn what_is_open_is_answered() {
    let env = TestEnv::new();
    let (host, server) = running(&env, HostOptions::default());
    let call = host.send_call("srv", "echo", json!({}));
    server.log.wait_request("tools/call");
    let shutdown = host.send("shutdown", Value::Null);
    let error = call.wait().expect_err("the call ends");
    assert_eq!((error.code, error.kind()), (-32055, "call_cancelled"));
    assert_eq!(error.data["by"], "shutdown");
    assert_eq!(shutdown.wait(), Ok(Value::Null));
    host.notify("exit", Value::Null);
    assert_eq!(host.wait_exit(LIMIT).code(), Some(0));
}

fn questions_are_closed() {
    let env = TestEnv::new();
    let question = json!({ "method": "elicitation/create", "params": {
        "message": "m", "requestedSchema": { "type": "object", "properties": {} },
    } });
    let server = env.plain_server("srv", json!({ "tools/call": { "$ask": [question] } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    assert_eq!(host.request("shutdown", Value::Null), Ok(Value::Null));
    let closed = host.wait_notification("mcp.question.closed", |_| true);
    assert_eq!(
        (&closed["question"], &closed["reason"]),
        (&question["id"], &json!("shutdown"))
    );
    assert_eq!(call.wait().expect_err("it is over").kind(), "call_cancelled");
    assert_eq!(
        server.log.wait_reply("ask-1")["result"],
        json!({ "action": "cancel" })
    );
    host.notify("exit", Value::Null);
    assert_eq!(host.wait_exit(LIMIT).code(), Some(0));
}

fn nothing_is_taken_up_afterwards() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    assert_eq!(host.request("shutdown", Value::Null), Ok(Value::Null));
    let error = host.request("mcp.questions", json!({})).expect_err("it is over");
    assert_eq!((error.code, error.kind()), (-32600, "shutting_down"));
    host.notify("exit", Value::Null);
    assert_eq!(host.wait_exit(LIMIT).code(), Some(0));
}

fn stubborn_server() {
    let env = TestEnv::new();
    let script = json!({ "start": [{ "ignore": ["eof", "SIGTERM"] }], "rest": "plain" });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": { "command": server.wrapper } }));
    let host = Host::start(&env);
    host.start_server("srv");
    host.close_stdin();
    assert_eq!(host.wait_exit(LIMIT).code(), Some(1));
    env.assert_nothing_left(Duration::from_secs(1));
}

fn before_initialize() {
    let env = TestEnv::new();
    let host = Host::spawn(&env, &[]);
    host.notify("exit", Value::Null);
    assert_eq!(host.wait_exit(LIMIT).code(), Some(1));
    let host = Host::spawn(&env, &[]);
    host.close_stdin();
    assert_eq!(host.wait_exit(LIMIT).code(), Some(1));
}
