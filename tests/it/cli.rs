//! The command line as a person or script meets it: exit code, stdout and stderr of each command.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{TestEnv, clock, processes};

pub fn stories() -> Vec<Trial> {
    stories!("cli":
        usage, status, broken_file, entries, lists, one_failing_server, calls, typed_arguments, arguments_from_files,
        tool_errors, verbatim_json, errors_as_json, reading, prompts, logs, nobody_to_ask, login_needed, denied,
        deadline, interrupted, quiet_when_the_reader_left, schema, completions,
    )
}

/// A place with the demo's own notes server, which ships inside the binary.
fn with_notes() -> TestEnv {
    let env = TestEnv::new();
    env.write_config(&json!({ "notes": notes() }));
    env
}

fn notes() -> Value {
    json!({ "command": env!("CARGO_BIN_EXE_pillion"), "args": ["demo-server", "stdio"] })
}

fn said(env: &TestEnv, args: &[&str]) -> String {
    said_with(env, args, "")
}

/// What a command did, with what differs between runs replaced.
fn said_with(env: &TestEnv, args: &[&str], stdin: &str) -> String {
    let mut child = command(env, args).spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(stdin.as_bytes()).expect("stdin is read or small");
    drop(pipe);
    let output = child.wait_with_output().expect("an end");
    let mut text = format!("exit {}", output.status.code().unwrap_or(-1));
    for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        let stream = String::from_utf8(bytes).expect("UTF-8");
        if !stream.is_empty() {
            text.push_str(&format!("\n--- {name}\n{}", stream.trim_end_matches('\n')));
        }
    }
    text.replace(env!("CARGO_BIN_EXE_pillion"), "[PILLION]")
        .replace(&*env.data().to_string_lossy(), "[DATA]")
        .replace(&*env.project().to_string_lossy(), "[PROJECT]")
        .replace(&*env.bin().to_string_lossy(), "[BIN]")
}

fn command(env: &TestEnv, args: &[&str]) -> Command {
    let mut command = env.command();
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn usage() {
    let env = TestEnv::new();
    assert!(said(&env, &["--help"]).contains("130  interrupted"));
    for args in [
        &[][..],
        &["nope"],
        &["call"],
        &["add", "x"],
        &["add", "x", "--url", "http://a/", "--", "b"],
    ] {
        assert!(said(&env, args).starts_with("exit 2\n--- stderr\n"), "{args:?}");
    }
    assert_snapshot!(said(&env, &["status", "--directory", "nowhere"]), @r"");
}

fn status() {
    let env = TestEnv::new();
    assert_snapshot!(said(&env, &["status"]), @r"");
    env.write_config(&json!({
        "notes": notes(), "off": { "command": "x", "enabled": false }, "web": { "url": "https://example.com/mcp?key=1" },
    }));
    assert_snapshot!(said(&env, &["status"]), @r"");
    assert_snapshot!(said(&env, &["status", "off"]), @r"");
    assert_snapshot!(said(&env, &["status", "nope"]), @r"");
    let said = said(&env, &["status", "--json"]);
    let document: Value =
        serde_json::from_str(said.trim_start_matches("exit 0\n--- stdout\n")).expect("one document");
    assert_eq!(document["servers"].as_array().map(Vec::len), Some(3));
}

fn broken_file() {
    let env = TestEnv::new();
    env.write_config_text("{\n  \"servers\": {\n    \"a\": }\n");
    assert_snapshot!(said(&env, &["status"]), @r"");
    assert_snapshot!(said(&env, &["add", "x", "--", "y"]), @r"");
}

fn entries() {
    let env = TestEnv::new();
    assert_snapshot!(said(&env, &["add", "docs", "--url", "https://example.com/mcp"]), @r"");
    assert_snapshot!(said(&env, &["add", "docs", "--", "other"]), @r"");
    let replace = [
        "add",
        "docs",
        "--replace",
        "--env",
        "TOKEN=${MY_TOKEN}",
        "--cwd",
        ".",
        "--",
        "npx",
        "-y",
        "docs",
    ];
    assert_snapshot!(said(&env, &replace), @r"");
    assert_snapshot!(said(&env, &["add", "bad name", "--", "x"]), @r"");
    assert_snapshot!(said(&env, &["disable", "docs"]), @r"");
    let text = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    let entry = &serde_json::from_str::<Value>(&text).expect("JSON")["servers"]["docs"];
    let expected = json!({ "TOKEN": "${MY_TOKEN}" });
    assert_eq!(
        (&entry["command"], &entry["env"], &entry["enabled"]),
        (&json!("npx"), &expected, &json!(false))
    );
    assert_snapshot!(said(&env, &["status"]), @r"");
    assert_snapshot!(said(&env, &["enable", "docs"]), @r"");
    assert_snapshot!(said(&env, &["remove", "docs"]), @r"");
    assert_snapshot!(said(&env, &["remove", "docs"]), @r"");
    let dry = said(
        &env,
        &[
            "add",
            "new",
            "--dry-run",
            "--header",
            "X-Key: ${KEY}",
            "--url",
            "https://example.com/",
        ],
    );
    assert!(
        dry.starts_with("exit 0") && dry.contains("\"X-Key\"") && dry.ends_with("Nothing was written"),
        "{dry}"
    );
    assert_snapshot!(said(&env, &["status"]), @r"");
}

fn lists() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["tools"]), @r"");
    assert_snapshot!(said(&env, &["tools", "notes"]), @r"");
    assert_snapshot!(said(&env, &["resources"]), @r"");
    assert_snapshot!(said(&env, &["prompts", "notes"]), @r"");
    let json = said(&env, &["tools", "--json"]);
    let document: Value =
        serde_json::from_str(json.trim_start_matches("exit 0\n--- stdout\n")).expect("one document");
    assert_eq!(
        (
            document["items"].as_array().map(Vec::len),
            document["issues"].as_array().map(Vec::len)
        ),
        (Some(4), Some(0))
    );
}

/// One of many is a warning; the one that was named is a failure.
fn one_failing_server() {
    let env = TestEnv::new();
    let crash = env.scripted_server(
        "crash",
        json!({ "start": [{ "stderr": "no licence\n" }, { "exit": 7 }] }),
    );
    env.write_config(&json!({ "notes": notes(), "crash": crash.entry() }));
    assert_snapshot!(said(&env, &["prompts"]), @r"");
    assert_snapshot!(said(&env, &["prompts", "crash"]), @r"");
    assert_snapshot!(said(&env, &["tools", "nope"]), @r"");
}

fn calls() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["call", "notes", "list_notes"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "import_notes", "count=2"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "import_notes", r#"{"count": 1}"#]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "nope"]), @r"");
    assert_snapshot!(said(&env, &["call", "nope", "list_notes"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "crash"]), @r"");
}

fn typed_arguments() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["call", "notes", "import_notes", "count=many"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "import_notes", "cuont=2"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "share_note"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "share_note", "welcome"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "share_note", "{"]), @r"");
}

fn arguments_from_files() {
    let env = TestEnv::new();
    let server = env.plain_server("echo", json!({ "tools/call": { "$echo": true } }));
    env.write_config(&json!({ "echo": server.entry() }));
    std::fs::write(env.project().join("note.json"), "{ \"z\": 1.10, \"a\": [] }").expect("a small file");
    let echoed = |args: &[&str], stdin: &str| {
        let said = said_with(
            &env,
            &[&["call", "echo", "plain", "--json"], args].concat(),
            stdin,
        );
        said.split_once("\"echo\":")
            .map(|(_, rest)| rest.split_once('}').map_or("", |(head, _)| head).to_owned() + "}")
    };
    let expected = Some("{ \"z\": 1.10, \"a\": [] }".to_owned());
    assert_eq!(echoed(&["@note.json"], ""), expected);
    assert_eq!(echoed(&["-"], "{ \"z\": 1.10, \"a\": [] }\n"), expected);
    assert_snapshot!(said(&env, &["call", "echo", "plain", "@nowhere.json"]), @r"");
}

fn tool_errors() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["call", "notes", "share_note", "note=nowhere"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "share_note", "note=nowhere", "--json"]), @r"");
}

/// What the server wrote is what the script gets: order, numbers, unknown members.
fn verbatim_json() {
    let env = TestEnv::new();
    let raw = r#"{"zz":1.10,"content":[{"type":"new","x":12345678901234567890}],"aa":null}"#;
    let server = env.plain_server("srv", json!({ "tools/call": { "$raw": raw } }));
    env.write_config(&json!({ "srv": server.entry() }));
    assert_eq!(
        said(&env, &["call", "srv", "plain", "{}", "--json"]),
        format!("exit 0\n--- stdout\n{{\"result\":{raw},\"issues\":[]}}")
    );
}

fn errors_as_json() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["call", "notes", "nope", "--json"]), @r"");
    assert_snapshot!(said(&env, &["call", "notes", "share_note", "--json"]), @r"");
}

fn reading() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["read", "notes", "note://ideas"]), @r"");
    assert_snapshot!(said(&env, &["read", "notes", "note://nowhere"]), @r"");
    let blob = json!({ "contents": [{ "uri": "x://1", "mimeType": "application/octet-stream", "blob": "YWIA/w==" }] });
    let server = env.plain_server("srv", json!({ "resources/read": blob }));
    env.write_config(&json!({ "srv": server.entry() }));
    let output = command(&env, &["read", "srv", "x://1"]).output().expect("an end");
    assert_eq!(output.stdout, b"ab\0\xff");
}

fn prompts() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["prompt", "notes", "summarize", "note=ideas", "style=one line"]), @r"");
    assert_snapshot!(said(&env, &["prompt", "notes", "summarize"]), @r"");
}

fn logs() {
    let env = TestEnv::new();
    let chatty = env.scripted_server(
        "chatty",
        json!({ "start": [{ "stderr": "hello\n" }], "rest": "plain" }),
    );
    let crash = env.scripted_server(
        "crash",
        json!({ "start": [{ "stderr": "no licence\n" }, { "exit": 7 }] }),
    );
    env.write_config(&json!({ "chatty": chatty.entry(), "crash": crash.entry(), "notes": notes() }));
    assert!(said(&env, &["logs", "chatty"]).starts_with("exit 0\n--- stdout\nhello"));
    assert_snapshot!(said(&env, &["logs", "notes"]), @r"");
    let crashed = said(&env, &["logs", "crash"]);
    assert!(
        crashed.starts_with("exit 1\n") && crashed.contains("no licence"),
        "{crashed}"
    );
}

fn nobody_to_ask() {
    let env = with_notes();
    assert_snapshot!(said(&env, &["call", "notes", "share_note", "note=ideas"]), @r"");
}

fn login_needed() {
    let env = TestEnv::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    env.write_config(&json!({ "docs": { "url": url } }));
    let said = said(&env, &["call", "docs", "x", "{}"]);
    assert!(said.starts_with("exit 3\n--- stderr\nerror: "), "{said}");
}

fn denied() {
    let env = TestEnv::new();
    let mut entry = notes();
    entry["tools"] = json!({ "deny": ["crash"] });
    env.write_config(&json!({ "notes": entry }));
    assert_snapshot!(said(&env, &["call", "notes", "crash"]), @r"");
    assert_snapshot!(said(&env, &["tools", "notes"]), @r"");
}

fn deadline() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$none": true } }));
    env.write_config(&json!({ "srv": server.entry() }));
    assert_snapshot!(said(&env, &["call", "srv", "plain", "{}", "--timeout", "1"]), @r"");
}

fn interrupted() {
    let env = with_notes();
    let mut child = command(&env, &["call", "notes", "import_notes", "count=20"])
        .spawn()
        .expect("the binary starts");
    clock::eventually("the server", || {
        let is_server =
            |process: &processes::Process| process.command.iter().any(|part| part == "demo-server");
        env.processes().iter().any(is_server).then_some(())
    });
    processes::signal(i32::try_from(child.id()).expect("a small id"), libc::SIGINT);
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
    env.assert_nothing_left(Duration::from_secs(1));
}

fn quiet_when_the_reader_left() {
    let env = TestEnv::new();
    let mut child = command(&env, &["schema"]).spawn().expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}

fn schema() {
    let env = TestEnv::new();
    let file = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../schema/methods/mcp.tool.call.json"
    ));
    let output = command(&env, &["schema", "mcp.tool.call"])
        .output()
        .expect("an end");
    assert_eq!(
        String::from_utf8(output.stdout).expect("UTF-8"),
        file.expect("the published schema")
    );
    assert_snapshot!(said(&env, &["schema", "tool"]), @r"");
}

fn completions() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = said(&env, &["completions", shell]);
        assert!(
            script.starts_with("exit 0") && script.contains("pillion"),
            "{shell}"
        );
    }
}
