//! Decisions in a terminal's words: trust, approvals, edits, as a script sees them.

use std::process::Output;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};
use crate::terminal::Terminal;

pub fn stories() -> Vec<Trial> {
    stories!("consent_cli":
        trusting, what_cannot_run_is_shown_as_such, switching_on_says_what_is_missing, approving, editing, grants_are_listed, hostile_names,
        removing_asks_once, without_a_terminal_removing_wants_a_yes, trust_is_asked_in_a_terminal,
    )
}

fn run(env: &TestEnv, args: &[&str]) -> Output {
    env.command().args(args).output().expect("the binary runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn file(env: &TestEnv) -> Value {
    let text = std::fs::read_to_string(env.data().join("mcp.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn trusting() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    crate::trust::write_project(&env, &json!({ "srv": server.entry() }));
    let listed = out(&run(&env, &["status"]));
    assert!(
        listed.contains("srv") && listed.contains("needs trust"),
        "{listed}"
    );
    // As if there were no such server; only the person is told where it waits.
    for args in [
        &["call", "srv", "echo"][..],
        &["tools", "srv"],
        &["test", "srv"],
        &["auth", "srv"],
    ] {
        let refused = run(&env, args);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(
            err(&refused).contains("there is no server `srv`")
                && err(&refused).contains("`pillion trust` shows what"),
            "{args:?}: {refused:?}"
        );
    }
    assert!(server.log.starts().is_empty());
    let shown = run(&env, &["trust"]);
    assert_eq!(shown.status.code(), Some(4), "{shown:?}");
    assert!(out(&shown).contains(&server.command), "{shown:?}");
    assert!(err(&shown).contains("pillion trust --revision"), "{shown:?}");
    let refused = run(&env, &["trust", "--revision", "nonsense"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let review: Value = serde_json::from_str(&out(&run(&env, &["trust", "--json"]))).expect("JSON");
    let revision = review["revision"].as_str().expect("a revision");
    // The one revision that is named is the one that counts.
    let named = err(&shown);
    assert!(
        named.contains(&format!("--revision {revision}")) && !out(&shown).contains("revision"),
        "{shown:?}"
    );
    assert!(run(&env, &["trust", "--revision", revision]).status.success());
    assert!(err(&run(&env, &["trust"])).contains(&format!("as revision {revision}")));
    let called = run(&env, &["call", "srv", "echo"]);
    assert!(called.status.success(), "{called:?}");
    assert!(err(&run(&env, &["trust", "--revoke"])).contains("is not trusted any more"));
    assert!(err(&run(&env, &["trust", "--revoke"])).contains("was not trusted"));
    assert!(!run(&env, &["call", "srv", "echo"]).status.success());
}

/// A faulty entry is not shown as if it could run.
fn what_cannot_run_is_shown_as_such() {
    let env = TestEnv::new();
    crate::trust::write_project(
        &env,
        &json!({ "none": { "args": ["x"] }, "late": { "command": "x", "timeoutMs": 5 } }),
    );
    let shown = out(&run(&env, &["trust"]));
    assert_eq!(shown.matches("does not start as it stands").count(), 2, "{shown}");
    assert!(
        shown.contains("nothing would run") && shown.contains("line "),
        "{shown}"
    );
}

/// "Enabled" is said of what starts now; else what is missing, and the next step.
fn switching_on_says_what_is_missing() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    env.write_config(&json!({ "mine": server.entry() }));
    let said = run(&env, &["enable", "mine"]);
    assert_eq!(
        (said.status.code(), err(&said).trim()),
        (Some(0), "Enabled `mine`")
    );
    crate::trust::write_project(&env, &json!({ "theirs": server.entry(), "none": {} }));
    let said = err(&run(&env, &["enable", "theirs"]));
    assert!(
        said.contains("not trusted") && said.contains("pillion trust") && !said.contains("Enabled"),
        "{said}"
    );
    let host = Host::start(&env);
    host.must(
        "mcp.add",
        json!({ "name": "asked", "entry": server.entry(), "gate": true }),
    );
    let review = host.must("mcp.pending", json!({}))["reviews"][0].clone();
    let decide = |decision: &str, review: &Value| {
        host.must(
            "mcp.decide",
            json!({ "server": "asked", "revision": review["revision"], "decision": decision }),
        );
    };
    decide("approve", &review);
    let mut text = file(&env);
    text["servers"]["asked"]["args"] = json!(["--changed"]);
    std::fs::write(env.data().join("mcp.json"), text.to_string()).expect("a file");
    let refused = run(&env, &["enable", "asked"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(err(&refused).contains("pillion approve"), "{refused:?}");
    let review = host.must("mcp.pending", json!({}))["reviews"][0].clone();
    decide("reject", &review);
    let said = err(&run(&env, &["enable", "asked"]));
    assert!(
        said.contains("waits for your decision") && said.contains("pillion approve asked"),
        "{said}"
    );
}

fn approving() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    assert!(err(&run(&env, &["approve"])).contains("Nothing waits"));
    let host = Host::start(&env);
    let mut entry = server.entry();
    entry["args"] = json!(["--token", "t-1", "a b"]);
    for name in ["yes", "no"] {
        host.must("mcp.add", json!({ "name": name, "entry": entry, "gate": true }));
    }
    let listed = out(&run(&env, &["approve"]));
    assert!(listed.contains("[\"--token\",\"********\",\"a b\"]"), "{listed}");
    assert!(!listed.contains("t-1"), "{listed}");
    let pending: Value = serde_json::from_str(&out(&run(&env, &["approve", "--json"]))).expect("JSON");
    let revision = |name: &str| {
        let found = pending["reviews"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|review| review["server"] == name);
        found
            .and_then(|review| review["revision"].as_str())
            .expect("a revision")
            .to_owned()
    };
    let crossed = run(&env, &["approve", "yes", "--revision", &revision("no")]);
    assert_eq!(crossed.status.code(), Some(1), "{crossed:?}");
    let approved = run(&env, &["approve", "yes", "--revision", &revision("yes")]);
    assert!(approved.status.success(), "{approved:?}");
    let rejected = run(
        &env,
        &["approve", "no", "--revision", &revision("no"), "--reject"],
    );
    assert!(rejected.status.success(), "{rejected:?}");
    // The host that runs beside it hears of both.
    host.wait_state("yes", "stopped");
    host.wait_state("no", "disabled");
}

fn editing() {
    let env = TestEnv::new();
    env.write_config(
        &json!({ "srv": { "command": "x", "args": ["old"], "env": { "API_KEY": "k-1", "MODE": "m" } } }),
    );
    let dry = run(&env, &["edit", "srv", "--label", "Shown", "--dry-run"]);
    assert!(
        out(&dry).contains("Shown") && !out(&dry).contains("k-1"),
        "{dry:?}"
    );
    assert!(file(&env)["servers"]["srv"].get("label").is_none());
    let edited = run(
        &env,
        &[
            "edit",
            "srv",
            "--env",
            "MODE=n",
            "--unset",
            "/args",
            "--timeout",
            "2",
        ],
    );
    assert!(edited.status.success(), "{edited:?}");
    let entry = file(&env)["servers"]["srv"].clone();
    assert_eq!(
        (&entry["env"], entry.get("args"), &entry["timeoutMs"]),
        (&json!({ "API_KEY": "k-1", "MODE": "n" }), None, &json!(2000))
    );
    for (args, code, said) in [
        (&["edit", "srv"][..], 2, "nothing to change is given"),
        (&["edit", "srv", "--unset", "/nope"], 1, "`srv` has no `/nope`"),
        (
            &["edit", "srv", "--rename", "a b"],
            2,
            "`a b` is no name: letters",
        ),
    ] {
        let refused = run(&env, args);
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        assert!(err(&refused).contains(said), "{refused:?}");
    }
    // What nobody knows and what is wrong can be taken away.
    env.write_config(&json!({
        "srv": { "command": "x", "own": { "a": 1 } },
        "wrong": { "command": "x", "timeoutMs": 5 },
    }));
    for (name, pointer) in [("srv", "/own/a"), ("wrong", "/timeoutMs")] {
        let taken = run(&env, &["edit", name, "--unset", pointer]);
        assert!(taken.status.success(), "{taken:?}");
    }
    assert_eq!(file(&env)["servers"]["wrong"].get("timeoutMs"), None);
    assert_eq!(file(&env)["servers"]["srv"].get("own"), None);
    let moved = run(&env, &["edit", "srv", "--url", "https://example.com/mcp"]);
    assert!(moved.status.success(), "{moved:?}");
    assert_eq!(file(&env)["servers"]["srv"].get("command"), None);
    let shown = out(&run(&env, &["config", "srv"]));
    assert!(shown.contains("https://example.com/mcp"), "{shown}");
}

fn grants_are_listed() {
    let env = TestEnv::new();
    assert!(err(&run(&env, &["grants"])).contains("No answers are remembered"));
    let unknown = run(&env, &["grants", "--revoke", "g9"]);
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    assert!(
        err(&unknown).contains("no answer is remembered as `g9`"),
        "{unknown:?}"
    );
}

/// What a repository calls its servers cannot move the cursor.
fn hostile_names() {
    let env = TestEnv::new();
    crate::trust::write_project(&env, &json!({ "a\u{202e}b": { "command": "x\u{1b}[2J" } }));
    let shown = out(&run(&env, &["trust"]));
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
}

fn in_terminal(env: &TestEnv, args: &[&str]) -> Terminal {
    let mut command = env.command();
    // Words stand together without colours between them.
    command.args(args).env("NO_COLOR", "1");
    Terminal::run(command)
}

fn removing_asks_once() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x" } }));
    let mut terminal = in_terminal(&env, &["remove", "srv"]);
    terminal.when("Remove `srv`?", "n\r");
    let (_, screen) = terminal.end();
    assert!(screen.contains("Nothing is uninstalled"), "{screen}");
    assert!(screen.contains("Nothing was changed"), "{screen}");
    let mut terminal = in_terminal(&env, &["remove", "srv"]);
    terminal.when("Remove `srv`?", "y\r");
    assert_eq!(terminal.end().0, Some(0));
    assert!(file(&env)["servers"].get("srv").is_none());
    // What is not there is not asked about.
    let terminal = in_terminal(&env, &["remove", "srv"]);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(1), "{screen}");
    assert!(!screen.contains("Remove `srv`?"), "{screen}");
}

fn without_a_terminal_removing_wants_a_yes() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x" } }));
    let refused = run(&env, &["remove", "srv"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("`--yes`"), "{said}");
    assert!(file(&env)["servers"].get("srv").is_some());
    assert_eq!(run(&env, &["remove", "srv", "--yes"]).status.code(), Some(0));
    assert!(file(&env)["servers"].get("srv").is_none());
}

fn trust_is_asked_in_a_terminal() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    crate::trust::write_project(&env, &json!({ "srv": server.entry() }));
    let mut terminal = in_terminal(&env, &["trust"]);
    terminal.when("Trust these servers as they stand?", "n\r");
    terminal.end();
    assert!(!run(&env, &["call", "srv", "echo"]).status.success());
    let mut terminal = in_terminal(&env, &["trust"]);
    terminal.when("Trust these servers as they stand?", "y\r");
    let (_, screen) = terminal.end();
    assert!(
        screen.contains(&server.command) || screen.contains("arguments:"),
        "{screen}"
    );
    assert!(run(&env, &["call", "srv", "echo"]).status.success());
    // What a commit changed is asked about again, with what it was.
    let mut changed = server.entry();
    changed["args"] = json!(["--evil"]);
    crate::trust::write_project(&env, &json!({ "srv": changed }));
    let mut terminal = in_terminal(&env, &["trust"]);
    terminal.when("Trust these servers as they stand?", "n\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(4), "{screen}");
    assert!(
        screen.contains("- arguments: []") && screen.contains("+ arguments: [\"--evil\"]"),
        "{screen}"
    );
}
