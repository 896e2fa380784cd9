//! Real child processes that misbehave.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::*;
use crate::error::{CallError, SpawnFailure};
use crate::target::{StdioTarget, Target};

/// What every scripted server begins with.
const PRELUDE: &str = r#"
import sys, json, os, time, signal, subprocess
out = sys.stdout.buffer
def send(message, end=b"\n"):
    out.write(json.dumps(message).encode() + end); out.flush()
def answer(message, result, end=b"\n"):
    send({"jsonrpc": "2.0", "id": message["id"], "result": result}, end)
def hello(message, end=b"\n"):
    method = message.get("method")
    if method == "initialize":
        answer(message, {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}, end)
    elif method == "server/discover":
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "?"}}, end)
    else:
        return False
    return True
def messages():
    for line in sys.stdin.buffer:
        yield json.loads(line)
"#;

fn python(script: &str) -> StdioTarget {
    StdioTarget {
        command: PathBuf::from("/usr/bin/env"),
        args: vec!["python3".into(), "-c".into(), format!("{PRELUDE}{script}").into()],
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        cwd: std::env::temp_dir(),
        watchdog: None,
    }
}

async fn start(target: StdioTarget, host: &Arc<TestHost>) -> Result<Connection, ConnectError> {
    crate::connect(Target::Stdio(target), options(), host.clone()).await
}

async fn echo(connection: &Connection) -> Result<Box<RawValue>, CallError> {
    connection
        .request("tools/call", raw("{}"), CallOptions::new(20 * SECOND))
        .await
}

fn is_alive(pid: u32) -> bool {
    // A zombie of somebody else is dead enough.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_plain_server_from_start_to_end() {
    let script = r#"
print("My Server v1.0\n\n============", flush=True)
sys.stderr.write("starting \x1b[31mred\x1b[0m\n" + "x" * 300000 + "\n"); sys.stderr.flush()
out.write(b"bad bytes: \xff\xfe\n")
for message in messages():
    if hello(message, b"\r\n"): continue
    if message.get("method") == "tools/call": answer(message, {"cwd": os.getcwd(), "env": dict(os.environ)}, b"\r\n")
"#;
    let host = TestHost::silent();
    let mut target = python(script);
    target.env.push(("ONLY".into(), "1".into()));
    let connection = start(target, &host).await.expect("connected");
    let pid = connection.pid().expect("a child");
    assert!(is_alive(pid));
    let answer: Value =
        serde_json::from_str(echo(&connection).await.expect("an answer").get()).expect("JSON");
    assert_eq!(
        Path::new(answer["cwd"].as_str().expect("text")),
        std::env::temp_dir().canonicalize().expect("exists")
    );
    assert_eq!(answer["env"]["ONLY"], "1");
    assert!(answer["env"].get("HOME").is_none());
    connection.close().await;
    assert!(!is_alive(pid));
    let events = host.events().join("\n");
    for part in [
        "Noise(\"My Server v1.0\")",
        "Noise(\"bad bytes",
        "Stderr(\"starting red\")",
        "reason: Ordered",
    ] {
        assert!(events.contains(part), "{part} is missing");
    }
}

#[tokio::test]
async fn a_server_that_dies_of_the_probe_is_started_afresh() {
    for dying in ["sys.exit(1)", "hello(message); sys.exit(1)"] {
        dies_of_the_probe(dying).await;
    }
}

async fn dies_of_the_probe(dying: &str) {
    let script = r#"
for message in messages():
    if message["method"] == "server/discover":
        DYING
    if hello(message): continue
    if message.get("method") == "tools/call": answer(message, {})
"#;
    let host = TestHost::silent();
    let connection = start(python(&script.replace("DYING", dying)), &host)
        .await
        .expect("connected");
    assert!(connection.info().settled);
    echo(&connection).await.expect("an answer");
    assert!(!host.events().iter().any(|event| event.starts_with("Closed")));
}

#[tokio::test]
async fn an_exit_at_the_start_tells_why() {
    let host = TestHost::silent();
    let script =
        r#"print("usage: server TOKEN"); sys.stderr.write("Error: ACME_TOKEN is not set\n"); sys.exit(3)"#;
    let Err(ConnectError::Exited { closed, first_noise }) = start(python(script), &host).await else {
        panic!("must not connect");
    };
    assert_eq!(closed.exit_code, Some(3));
    assert_eq!(closed.stderr_tail, "Error: ACME_TOKEN is not set");
    assert_eq!(first_noise.as_deref(), Some("usage: server TOKEN"));
}

#[tokio::test]
async fn what_cannot_be_started() {
    let host = TestHost::silent();
    let check = async |command: &str, cwd: &str, expected: SpawnFailure| {
        let target = StdioTarget {
            command: command.into(),
            cwd: cwd.into(),
            ..python("")
        };
        match start(target, &host).await {
            Err(ConnectError::Spawn { failure, .. }) => assert_eq!(failure, expected, "{command}"),
            other => panic!("{command}: {:?}", other.err()),
        }
    };
    check("/no/such/command", "/", SpawnFailure::NotFound).await;
    check("/etc/passwd", "/", SpawnFailure::Permission).await;
    check("/bin/sh", "/no/such/directory", SpawnFailure::Cwd).await;
}

#[tokio::test]
async fn a_server_that_ignores_everything_is_killed() {
    let script = r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for message in messages(): hello(message)
while True: time.sleep(1)
"#;
    let host = TestHost::silent();
    let connection = start(python(script), &host).await.expect("connected");
    let pid = connection.pid().expect("a child");
    let started = std::time::Instant::now();
    connection.close().await;
    assert!(!is_alive(pid));
    assert!(started.elapsed() < 5 * SECOND);
    assert!(host.events().last().expect("closed").contains("SIGKILL"));
}

#[tokio::test]
async fn a_launcher_takes_its_server_along() {
    let script = r#"
child = subprocess.Popen(["sleep", "60"])
for message in messages():
    if hello(message): continue
    if message.get("method") == "tools/call":
        answer(message, child.pid); os._exit(7)
"#;
    let host = TestHost::silent();
    let connection = start(python(script), &host).await.expect("connected");
    let child: u32 = echo(&connection)
        .await
        .expect("an answer")
        .get()
        .parse()
        .expect("a pid");
    connection.closed().await;
    assert!(
        host.events()
            .last()
            .expect("closed")
            .contains("exit_code: Some(7)")
    );
    for _ in 0..100 {
        if !is_alive(child) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the grandchild lives on");
}

#[tokio::test]
async fn a_connection_nobody_holds_ends() {
    let host = TestHost::silent();
    let connection = start(python("for message in messages(): hello(message)"), &host)
        .await
        .expect("connected");
    let pid = connection.pid().expect("a child");
    let closed = connection.closed();
    drop(connection);
    closed.await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn big_answers_pass_and_bigger_ones_fail_their_call_alone() {
    // The limit is 1 MiB.
    let script = r#"
for message in messages():
    if hello(message): continue
    if message.get("method") != "tools/call": continue
    size = message["params"].get("size", 1)
    if message["params"].get("last"):
        out.write(b'{"result":{"id":5,"x":"' + b"y" * size + b'"},"id":%d}\n' % message["id"]); out.flush()
    else:
        answer(message, "y" * size)
"#;
    let host = TestHost::silent();
    let connection = start(python(script), &host).await.expect("connected");
    let call = |params: &str| connection.request("tools/call", raw(params), CallOptions::new(20 * SECOND));
    let answer = call(r#"{"size":1000000}"#).await.expect("an answer");
    assert_eq!(answer.get().len(), 1_000_002);
    // Two at a time: the one that is too large is told apart by its id.
    let (large, small) = tokio::join!(call(r#"{"size":3000000}"#), call("{}"));
    assert!(
        matches!(large, Err(CallError::TooLarge { limit: 1_048_576 })),
        "{large:?}"
    );
    assert_eq!(small.expect("an answer").get(), r#""y""#);
    let (large, small) = tokio::join!(call(r#"{"size":3000000,"last":true}"#), call("{}"));
    assert!(matches!(large, Err(CallError::TooLarge { .. })), "{large:?}");
    small.expect("an answer");
}

#[tokio::test]
async fn an_endless_line_fails_the_call_in_flight() {
    let script = r#"
for message in messages():
    if hello(message): continue
    if message.get("method") != "tools/call": continue
    try:
        while True: out.write(b"x" * 65536)
    except BrokenPipeError: os._exit(1)
"#;
    let host = TestHost::silent();
    let connection = start(python(script), &host).await.expect("connected");
    let answer = echo(&connection).await;
    assert!(matches!(answer, Err(CallError::TooLarge { .. })), "{answer:?}");
    connection.close().await;
}

#[tokio::test]
async fn the_watchdog_hears_of_every_child() {
    let (read, write) = std::io::pipe().expect("a pipe");
    let watchdog: Arc<OwnedFd> = Arc::new(write.into());
    let host = TestHost::silent();
    let mut target = python("for message in messages(): hello(message)");
    target.watchdog = Some(watchdog.clone());
    let connection = start(target.clone(), &host).await.expect("connected");
    let pid = connection.pid().expect("a child");
    connection.close().await;
    drop(connection);
    // What is no program gets as far as fork, and nobody learns its id.
    target.command = "/etc/passwd".into();
    assert!(start(target, &host).await.is_err());
    drop(watchdog);
    let mut text = String::new();
    let mut read = read;
    read.read_to_string(&mut text).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], [format!("+{pid}"), format!("-{pid}")]);
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2].trim_start_matches('+'), lines[3].trim_start_matches('-'));
}

#[tokio::test]
async fn sixty_four_calls_in_flight_come_back_each_to_its_own() {
    let script = r#"
for message in messages():
    if hello(message): continue
    if message.get("method") == "tools/call": answer(message, message["params"]["n"])
"#;
    let host = TestHost::silent();
    let connection = start(python(script), &host).await.expect("connected");
    let calls = (0..64).map(|number| {
        let params = raw(&format!(r#"{{"n":{number}}}"#));
        connection.request("tools/call", params, CallOptions::new(20 * SECOND))
    });
    let answers = futures_util::future::join_all(calls).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.expect("an answer").get(), number.to_string());
    }
}
