//! The bundled list of servers, over the protocol and in the terminal.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("gallery": found_and_added, in_the_terminal)
}

fn ids(result: &Value) -> Vec<&str> {
    let items = result["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item["id"].as_str()).collect()
}

fn found_and_added() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let all = host.must("mcp.gallery", json!({}));
    assert!(ids(&all).len() >= 40);
    assert_eq!(
        all["categories"],
        json!(["core", "dev", "data", "search", "productivity", "cloud"])
    );
    let core = host.must("mcp.gallery", json!({ "category": "core" }));
    assert!(ids(&core).contains(&"filesystem"));
    let found = host.must("mcp.gallery", json!({ "query": "FILES folders" }));
    assert_eq!(ids(&found), ["filesystem"]);
    let memory = host.must("mcp.gallery", json!({ "query": "memory" }))["items"][0].clone();
    assert_eq!(
        (&memory["added"], &memory["draft"]["nameTaken"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(memory["draft"]["target"]["type"], json!("local"));
    let draft = &memory["draft"];
    host.must(
        "mcp.add",
        json!({ "name": draft["name"], "entry": draft["entry"], "start": false }),
    );
    let again = host.must("mcp.gallery", json!({ "query": "memory" }))["items"][0].clone();
    assert_eq!(
        (&again["added"], &again["draft"]["nameTaken"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(host.status("memory")["source"], json!("catalog:memory"));
}

fn in_the_terminal() {
    let env = TestEnv::new();
    let run = |args: &[&str]| {
        let output = env.command().args(args).output().expect("the binary starts");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (stdout, _) = run(&["gallery", "brave"]);
    assert!(stdout.starts_with("ID"), "{stdout}");
    assert!(stdout.contains("by Brave - needs BRAVE_API_KEY"), "{stdout}");
    let (stdout, stderr) = run(&["gallery", "no such thing"]);
    assert_eq!(stdout, "");
    assert!(
        stderr.starts_with("No server of the gallery fits")
            && stderr.contains("`pillion search no such thing`"),
        "{stderr}"
    );
}
