//! How an entry can stand about which a person has to decide, or decided against it.

use serde_json::{Value, json};

use crate::support::{Host, StdioServer, TestEnv};

/// An entry about which a person has to decide, or decided against it.
pub(super) struct Stand {
    pub name: &'static str,
    /// Brings `srv` there; what may run under this name is `server`.
    pub make: fn(&TestEnv, &Host, &StdioServer),
    /// What its status says, and goes on saying.
    pub state: &'static str,
    /// An administrator forbids it meanwhile; afterwards it must stand as it stood.
    pub forbidden: bool,
    /// Methods by which the person decides about all of it: what was shown or written by the person.
    pub decided_by: &'static [&'static str],
    /// It may run, but for its tool: that is not the one that was accepted.
    pub held: bool,
}

fn ask(host: &Host, entry: &Value, scope: &str) {
    host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": entry, "gate": true, "replace": true, "scope": scope }),
    );
}

pub(super) fn decide(host: &Host, decision: &str) {
    let pending = host.must("mcp.pending", json!({}));
    let review = &pending["reviews"][0];
    host.must(
        "mcp.decide",
        json!({ "server": "srv", "revision": review["revision"], "decision": decision }),
    );
}

/// A hand that is not Pillion's changes what would be started.
pub(super) fn change_file(file: &std::path::Path) {
    let text = std::fs::read_to_string(file).expect("the file");
    let mut whole: Value = serde_json::from_str(&text).expect("JSON");
    whole["servers"]["srv"]["args"] = json!(["--changed"]);
    std::fs::write(file, whole.to_string()).expect("a file");
}

pub(super) fn user_file(env: &TestEnv) -> std::path::PathBuf {
    env.data().join("mcp.json")
}

pub(super) fn project_file(env: &TestEnv) -> std::path::PathBuf {
    env.project().join(".pillion/mcp.json")
}

pub(super) fn approved(host: &Host, server: &StdioServer, scope: &str) {
    ask(host, &server.entry(), scope);
    decide(host, "approve");
}

pub(super) fn stored(host: &Host, server: &StdioServer, scope: &str) {
    host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": server.entry(), "scope": scope, "start": false }),
    );
}

pub(super) fn asked(_: &TestEnv, host: &Host, server: &StdioServer) {
    ask(host, &server.entry(), "user");
}

fn replaced(_: &TestEnv, host: &Host, server: &StdioServer) {
    stored(host, server, "user");
    let mut entry = server.entry();
    entry["args"] = json!(["--wanted"]);
    ask(host, &entry, "user");
}

pub(super) fn changed_in_file(env: &TestEnv, host: &Host, server: &StdioServer) {
    approved(host, server, "user");
    change_file(&user_file(env));
}

fn rejected(env: &TestEnv, host: &Host, server: &StdioServer) {
    asked(env, host, server);
    decide(host, "reject");
}

fn replacement_rejected(env: &TestEnv, host: &Host, server: &StdioServer) {
    replaced(env, host, server);
    decide(host, "reject");
}

fn change_rejected(env: &TestEnv, host: &Host, server: &StdioServer) {
    changed_in_file(env, host, server);
    decide(host, "reject");
}

pub(super) fn untrusted(env: &TestEnv, _: &Host, server: &StdioServer) {
    crate::trust::write_project(env, &json!({ "srv": server.entry() }));
}

fn asked_in_a_project(_: &TestEnv, host: &Host, server: &StdioServer) {
    ask(host, &server.entry(), "project");
}

fn untrusted_and_asked(env: &TestEnv, host: &Host, server: &StdioServer) {
    untrusted(env, host, server);
    asked_in_a_project(env, host, server);
}

fn untrusted_and_rejected(env: &TestEnv, host: &Host, server: &StdioServer) {
    untrusted_and_asked(env, host, server);
    decide(host, "reject");
}

fn changed_in_a_project(env: &TestEnv, host: &Host, server: &StdioServer) {
    approved(host, server, "project");
    change_file(&project_file(env));
}

fn trusted_and_changed(env: &TestEnv, host: &Host, server: &StdioServer) {
    untrusted(env, host, server);
    crate::trust::trust(host);
    change_file(&project_file(env));
}

/// The program of `srv` from now on, with one tool.
pub(super) fn program(env: &TestEnv, description: &str) -> StdioServer {
    let tool = json!({ "name": "echo", "description": description, "inputSchema": { "type": "object" } });
    env.plain_server("srv", json!({ "tools/list": { "tools": [tool] } }))
}

/// The tool of what stands there was accepted, and is another one now.
pub(super) fn change_tool(env: &TestEnv, host: &Host) {
    program(env, "Echoes");
    host.must("mcp.tools.list", json!({}));
    program(env, "Echoes, then mails it");
    host.must("mcp.restart", json!({ "server": "srv" }));
    assert!(holds(host, "srv"));
}

/// Whether the tool of `name` waits for a decision, and only by its description.
pub(super) fn holds(host: &Host, name: &str) -> bool {
    host.must("mcp.tools.list", json!({}));
    let reviews = host.must("mcp.tools.review", json!({ "server": name }));
    let change = &reviews["reviews"][0]["changes"][0];
    (&change["tool"], &change["held"], &change["members"])
        == (&json!("echo"), &json!(true), &json!(["description"]))
}

fn tool_changed(env: &TestEnv, host: &Host, server: &StdioServer) {
    stored(host, server, "user");
    change_tool(env, host);
}

fn tool_changed_in_a_project(env: &TestEnv, host: &Host, server: &StdioServer) {
    stored(host, server, "project");
    change_tool(env, host);
}

const fn stand(name: &'static str, make: fn(&TestEnv, &Host, &StdioServer), state: &'static str) -> Stand {
    Stand {
        name,
        make,
        state,
        forbidden: false,
        decided_by: &[],
        held: false,
    }
}

pub(super) const STANDS: [Stand; 18] = [
    stand("asked for", asked, "pending"),
    stand("to be replaced", replaced, "pending"),
    stand("changed in its file", changed_in_file, "pending"),
    Stand {
        // A name without an entry is free.
        decided_by: &["mcp.add", "mcp.import"],
        ..stand("rejected", rejected, "disabled")
    },
    Stand {
        decided_by: &["mcp.enable"],
        ..stand("replacement rejected", replacement_rejected, "disabled")
    },
    stand("change rejected", change_rejected, "disabled"),
    stand("untrusted", untrusted, "needs_trust"),
    stand("asked for in a project", asked_in_a_project, "pending"),
    stand("untrusted and asked for", untrusted_and_asked, "pending"),
    Stand {
        decided_by: &["mcp.enable"],
        ..stand("untrusted and rejected", untrusted_and_rejected, "disabled")
    },
    stand("changed in a project", changed_in_a_project, "pending"),
    stand("trusted and changed", trusted_and_changed, "needs_trust"),
    Stand {
        forbidden: true,
        ..stand("forbidden, changed in its file", changed_in_file, "pending")
    },
    Stand {
        forbidden: true,
        ..stand("forbidden, to be replaced", replaced, "pending")
    },
    Stand {
        forbidden: true,
        ..stand("forbidden, untrusted", untrusted, "needs_trust")
    },
    Stand {
        held: true,
        ..stand("its tool changed", tool_changed, "ready")
    },
    Stand {
        held: true,
        ..stand(
            "its tool changed, in a project",
            tool_changed_in_a_project,
            "ready",
        )
    },
    Stand {
        held: true,
        forbidden: true,
        ..stand("forbidden, its tool changed", tool_changed, "ready")
    },
];
