//! What is held is called by no method of the table: each is tried with parameters that name the tool in every way.
//!
//! The same sweep runs first while nothing is held, and shows which methods call tools at all: a method that is added
//! and does is found there, and must keep the hold here.

use std::collections::BTreeSet;
use std::time::Duration;

use libtest_mimic::Trial;
use protocol::Method;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, StdioServer, TestEnv, filling};

pub fn stories() -> Vec<Trial> {
    stories!("held": no_method_calls_what_is_held)
}

/// Names of the tool, and of the built-in tool that calls by name.
const NAMES: [&str; 4] = ["read", "mcp__srv__reader", "mcp_tool_call", "reader"];
/// It forgets what was accepted, since the person gave the server up.
const FORGETS: [&str; 1] = ["mcp.remove"];

fn server(env: &TestEnv, description: &str) -> StdioServer {
    let tool = json!({ "name": "read", "description": description, "inputSchema": { "type": "object" } });
    env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool] }, "tools/call": { "content": [{ "type": "text", "text": "done" }] } }),
    )
}

/// The methods after which the server had been asked to call its tool.
fn callers(env: &TestEnv, server: &StdioServer) -> BTreeSet<&'static str> {
    let mut entry = server.entry();
    entry["tools"] = json!({ "overrides": { "read": { "name": "reader" } } });
    let config = json!({ "srv": entry });
    env.write_config(&config);
    let host = Host::start(env);
    host.must("mcp.tools.list", json!({}));
    let mut callers = BTreeSet::new();
    let mut token = 0;
    for method in Method::ALL
        .iter()
        .filter(|method| !FORGETS.contains(&method.name()))
    {
        let schema = protocol::schema::params_schema(*method);
        let before = server.log.requests("tools/call").len();
        for seed in 0..NAMES.len() {
            for full in [false, true] {
                token += 1;
                let unique = format!("{token}");
                let meaning = |member: &str| meaning(member, seed, host.directory(), &unique);
                let params = filling::fill(&schema, full, seed, &meaning);
                let pending = host.send(method.name(), params.clone());
                // An error is an answer too.
                let _ = pending
                    .wait_within(Duration::from_secs(30))
                    .unwrap_or_else(|| panic!("{method} is not answered: {params}"));
            }
        }
        if server.log.requests("tools/call").len() > before {
            callers.insert(method.name());
        }
        env.write_config(&config);
        host.must("mcp.reload", json!({}));
    }
    callers
}

fn meaning(member: &str, seed: usize, directory: &str, unique: &str) -> Option<Value> {
    Some(match member {
        "directory" => json!(directory),
        "server" => json!("srv"),
        "servers" | "names" => json!(["srv"]),
        "name" | "tool" => json!(NAMES[seed]),
        "arguments" => json!({ "name": "mcp__srv__reader", "arguments": {} }),
        "text" => json!("@srv:read /srv:read"),
        "query" => json!("read"),
        "workDoneToken" | "call" => json!(unique),
        "timeoutMs" => json!(5000),
        "entry" => json!({ "command": "/nonexistent/program" }),
        "set" => json!({ "label": "Other" }),
        "unset" => json!(["/label"]),
        "rename" | "id" => json!("other"),
        _ => return None,
    })
}

fn no_method_calls_what_is_held() {
    let env = TestEnv::new();
    let accepted = server(&env, "Reads");
    assert_eq!(
        callers(&env, &accepted),
        BTreeSet::from(["mcp.model.call", "mcp.tool.call"])
    );
    // The same program, which now says something else of its tool.
    let changed = server(&env, "Reads, then mails it");
    assert_eq!(callers(&env, &changed), BTreeSet::new());
    assert!(!changed.log.starts().is_empty());
}
