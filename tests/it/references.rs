//! `${cmd:…}`, `${input:…}` and `${keyring:…}` in entries.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::stories;
use crate::support::{Host, HostOptions, HttpHost, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("references":
        a_command_gives_a_value, a_value_is_asked_for_once, a_value_is_typed_in_a_terminal, without_anybody_to_ask, the_credential_store,
    )
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn program(env: &TestEnv, name: &str, script: &str) {
    let path = env.bin().join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a small file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode can be set");
}

fn keyed(server: &HttpHost, value: &str) -> Value {
    json!({ "url": format!("{}/mcp", server.origin), "oauth": false, "headers": { "x-api-key": value } })
}

#[track_caller]
fn hides(host: &Host, secret: &str) {
    for one in host.messages() {
        assert!(!one.text.contains(secret), "{}", one.text);
    }
    assert!(!host.stderr().contains(secret));
}

fn a_command_gives_a_value() {
    let mut env = TestEnv::new();
    env.set("VAULT", "dev");
    program(
        &env,
        "vault",
        "[ \"$1\" = read ] && [ \"$2\" = \"dev and more\" ] && echo k-1-secret",
    );
    program(&env, "fails", "echo k-1-secret; exit 4");
    let server = HttpHost::plain(&json!({}));
    env.write_config(&json!({
        "srv": keyed(&server, "v ${cmd:vault read \"$VAULT and more\"}"),
        "fails": keyed(&server, "${cmd:fails}"),
        "shell": keyed(&server, "${cmd:vault read x | head}"),
        "unset": keyed(&server, "${cmd:vault $NOWHERE}"),
    }));
    let host = Host::start(&env);
    assert_eq!(text(&host.start_server("srv")["state"]), "ready");
    assert_eq!(server.log()[0].headers["x-api-key"], "v k-1-secret");
    for (name, said) in [
        ("fails", "code 4"),
        ("shell", "no shell"),
        ("unset", "`NOWHERE` is not set"),
    ] {
        let record = host.start_server(name);
        let message = text(&record["error"]["message"]);
        assert!(message.contains(said), "{record}");
    }
    // What is configured is shown as it stands, here and when it is passed on.
    let shown = host.must("mcp.config", json!({}));
    assert!(shown.to_string().contains("${cmd:vault read"), "{shown}");
    hides(&host, "k-1-secret");
}

fn a_value_is_asked_for_once() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&json!({}));
    env.write_config(&json!({
        "srv": keyed(&server, "${input:api key}"),
        "other": keyed(&server, "Bearer ${input:api key}"),
    }));
    let host = Host::start(&env);
    let start = host.send_here("mcp.start", json!({ "server": "srv" }));
    let question = host.wait_question(0);
    assert_eq!(
        (text(&question["type"]), text(&question["server"])),
        ("form", "srv")
    );
    assert_eq!(question["fields"][0]["secret"], true);
    assert_eq!(question["fields"][0]["label"], "api key");
    host.answer(&question, "accept", Some(json!({ "value": "typed-secret" })))
        .expect("it is open");
    assert_eq!(text(&start.wait().expect("started")["server"]["state"]), "ready");
    assert_eq!(server.log()[0].headers["x-api-key"], "typed-secret");
    host.must("mcp.restart", json!({ "server": "srv" }));
    assert_eq!(text(&host.start_server("other")["state"]), "ready");
    assert_eq!(
        server.log().pop().expect("a request").headers["x-api-key"],
        "Bearer typed-secret"
    );
    assert_eq!(
        host.notifications("mcp.question").len(),
        1,
        "it is kept for this process"
    );
    hides(&host, "typed-secret");
}

fn a_value_is_typed_in_a_terminal() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&json!({}));
    env.write_config(&json!({ "srv": keyed(&server, "${input:key}") }));
    let mut command = env.command();
    command.args(["call", "srv", "echo"]);
    let mut terminal = Terminal::run(command);
    terminal.when("srv needs a value", "typed-secret\r");
    terminal.when("What now?", "\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("typed-secret"), "{screen}");
    assert_eq!(server.log()[0].headers["x-api-key"], "typed-secret");
}

fn without_anybody_to_ask() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&json!({}));
    env.write_config(
        &json!({ "srv": keyed(&server, "${input:key}"), "soft": keyed(&server, "${input:key:-none}") }),
    );
    let silent = HostOptions {
        initialization: json!({ "capabilities": {} }),
        ..HostOptions::default()
    };
    let host = Host::start_with(&env, silent);
    let record = host.start_server("srv");
    assert_eq!(text(&record["error"]["kind"]), "cannot_ask", "{record}");
    assert!(text(&record["error"]["hint"]).contains("terminal"), "{record}");
    assert_eq!(text(&host.start_server("soft")["state"]), "ready");
    assert_eq!(server.log()[0].headers["x-api-key"], "none");
    drop(host);

    let host = Host::start(&env);
    let start = host.send_here("mcp.start", json!({ "server": "srv" }));
    host.answer(&host.wait_question(0), "decline", None)
        .expect("it is open");
    let record = start.wait().expect("an answer")["server"].clone();
    assert!(
        text(&record["error"]["message"]).contains("gave none"),
        "{record}"
    );
}

fn the_credential_store() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&json!({}));
    env.write_config(&json!({
        "srv": keyed(&server, "${keyring:github/me}"),
        "short": keyed(&server, "${keyring:github}"),
        "soft": keyed(&server, "${keyring:github/me:-none}"),
    }));
    let host = Host::start(&env);
    for (name, said) in [("srv", "credential store"), ("short", "${keyring:github}")] {
        let record = host.start_server(name);
        assert_eq!(text(&record["error"]["kind"]), "start_failed", "{record}");
        assert!(text(&record["error"]["message"]).contains(said), "{record}");
    }
    assert_eq!(text(&host.start_server("soft")["state"]), "ready");
}
