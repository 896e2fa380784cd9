//! An entry shows tools under other names and in other words; the server is still called by its own.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::model::tool;
use crate::stories;
use crate::support::{Host, StdioServer, TestEnv};
use crate::trust::{trust, write_project};

pub fn stories() -> Vec<Trial> {
    stories!("overrides":
        tools_are_shown_as_the_entry_says, lists_name_the_servers_own, an_edit_changes_names_at_once,
        what_cannot_be_is_told, two_tools_share_no_name, names_have_a_length, changes_are_still_held,
        a_project_is_asked_again, in_the_terminal,
    )
}

fn with_overrides(env: &TestEnv, server: &StdioServer, tools: Value) -> Host {
    let mut entry = server.entry();
    entry["tools"] = tools;
    env.write_config(&json!({ "srv": entry }));
    Host::start(env)
}

fn two(env: &TestEnv) -> StdioServer {
    env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("v2_srch"), tool("drop")] } }),
    )
}

fn shown() -> Value {
    json!({ "v2_srch": { "name": "find", "title": "Find", "description": "Finds notes by their words" } })
}

fn tools_are_shown_as_the_entry_says() {
    let env = TestEnv::new();
    let server = two(&env);
    let host = with_overrides(&env, &server, json!({ "overrides": shown() }));
    let listed = &host.must("mcp.tools.list", json!({}))["items"];
    let tool = &listed[0];
    assert_eq!(
        [
            &tool["name"],
            &tool["renamed"],
            &tool["exposed"],
            &tool["title"],
            &tool["description"]
        ],
        [
            "v2_srch",
            "find",
            "mcp__srv__find",
            "Find",
            "Finds notes by their words"
        ]
    );
    assert_eq!(tool["raw"]["description"], "Does v2_srch");
    assert_eq!(
        (&listed[1]["name"], listed[1].get("renamed")),
        (&json!("drop"), None)
    );

    let offer = host.must("mcp.model.tools", json!({}));
    let tool = &offer["tools"][0];
    assert_eq!(
        [&tool["name"], &tool["tool"], &tool["title"], &tool["description"]],
        ["mcp__srv__find", "v2_srch", "Find", "Finds notes by their words"]
    );
    let hits = host.must("mcp.tools.search", json!({ "query": "find notes" }));
    assert_eq!(hits["hits"][0]["name"], "mcp__srv__find");

    let result = host.must("mcp.model.call", json!({ "name": "mcp__srv__find" }));
    assert_eq!(result["outcome"], "ok");
    for name in ["find", "v2_srch", "mcp__srv__find"] {
        assert!(host.call("srv", name, json!({})).is_ok(), "{name}");
    }
    let calls = server.log.requests("tools/call");
    assert_eq!(calls.len(), 4);
    assert!(
        calls.iter().all(|call| call["params"]["name"] == "v2_srch"),
        "{calls:?}"
    );
    // The name it had is no name for the model any more.
    let result = host.must("mcp.model.call", json!({ "name": "mcp__srv__v2_srch" }));
    assert_eq!(result["failure"]["kind"], "not_found");
}

fn lists_name_the_servers_own() {
    let env = TestEnv::new();
    let server = two(&env);
    let tools = json!({ "overrides": shown(), "deny": ["v2_srch"], "ask": ["find"] });
    let host = with_overrides(&env, &server, tools);
    let listed = host.must("mcp.tools.list", json!({}));
    assert_eq!(listed["items"][0]["hidden"], "denied");
    let error = host.call("srv", "find", json!({})).expect_err("denied");
    assert_eq!((error.kind(), &error.data["by"]), ("denied", &json!("list")));
    assert_eq!(server.log.requests("tools/call").len(), 0);
}

fn an_edit_changes_names_at_once() {
    let env = TestEnv::new();
    let server = two(&env);
    let host = with_overrides(
        &env,
        &server,
        json!({ "overrides": { "drop": { "title": "Drop" } } }),
    );
    host.must("mcp.tools.list", json!({}));
    host.must(
        "mcp.edit",
        json!({ "server": "srv", "set": { "tools": { "overrides": shown() } } }),
    );
    let listed = &host.must("mcp.tools.list", json!({}))["items"];
    assert_eq!(
        (&listed[0]["renamed"], &listed[1]["title"]),
        (&json!("find"), &json!("Drop"))
    );
    let params = json!({ "server": "srv", "unset": ["/tools/overrides/v2_srch/name"] });
    host.must("mcp.edit", params);
    let listed = &host.must("mcp.tools.list", json!({}))["items"];
    assert_eq!(
        (listed[0].get("renamed"), &listed[0]["title"]),
        (None, &json!("Find"))
    );
    // Nothing that runs was touched.
    assert_eq!(server.log.requests("initialize").len(), 1);
}

fn issue<'v>(result: &'v Value, item: &str) -> &'v str {
    let issues = result["issues"].as_array().expect("issues");
    let found = issues.iter().find(|issue| issue["item"] == item);
    found.unwrap_or_else(|| panic!("{item} in {result}"))["message"]
        .as_str()
        .expect("text")
}

fn what_cannot_be_is_told() {
    let env = TestEnv::new();
    let server = two(&env);
    let overrides = json!({ "gone": { "title": "G" }, "v2_srch": { "name": "drop", "title": "S" } });
    let host = with_overrides(&env, &server, json!({ "overrides": overrides }));
    let listed = host.must("mcp.tools.list", json!({}));
    assert!(issue(&listed, "gone").contains("does not offer"));
    assert!(issue(&listed, "v2_srch").contains("keeps its name"));
    let tool = &listed["items"][0];
    assert_eq!(
        (&tool["exposed"], &tool["title"]),
        (&json!("mcp__srv__v2_srch"), &json!("S"))
    );
}

fn two_tools_share_no_name() {
    let env = TestEnv::new();
    let server = two(&env);
    let overrides = json!({ "drop": { "name": "one" }, "v2_srch": { "name": "one" } });
    let host = with_overrides(&env, &server, json!({ "overrides": overrides }));
    let record = host.status("srv");
    assert_eq!(record["error"]["kind"], "config_broken", "{record}");
    assert!(
        record.to_string().contains("cannot both be named `one`"),
        "{record}"
    );
    let params =
        json!({ "server": "srv", "set": { "tools": { "overrides": { "drop": { "name": "a b" } } } } });
    let error = host.ask("mcp.edit", params).expect_err("no name");
    assert_eq!(error.kind(), "invalid_params");
    assert!(server.log.lines().is_empty());
}

fn names_have_a_length() {
    let env = TestEnv::new();
    let server = two(&env);
    let host = with_overrides(&env, &server, json!({}));
    for (length, fits) in [(63, true), (64, true), (65, false)] {
        let overrides = json!({ "drop": { "name": "x".repeat(length) } });
        let set = json!({ "server": "srv", "set": { "tools": { "overrides": overrides } }, "dryRun": true });
        assert_eq!(host.ask("mcp.edit", set).is_ok(), fits, "{length}");
    }
}

fn changes_are_still_held() {
    let env = TestEnv::new();
    let mut changed = tool("v2_srch");
    changed["description"] = json!("Does something else");
    let server = env.plain_server(
        "srv",
        json!({
            "initialize": { "capabilities": { "tools": { "listChanged": true } } },
            "tools/list": [{ "tools": [tool("v2_srch")] }, { "tools": [changed] }],
        }),
    );
    let host = with_overrides(&env, &server, json!({ "overrides": shown() }));
    host.must("mcp.tools.list", json!({}));
    server.push(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    host.wait_notification("mcp.changed", |params| params["status"]["catalog"] == "2");
    let error = host.call("srv", "find", json!({})).expect_err("held");
    assert_eq!(error.data["by"], "held");
    let result = host.must("mcp.model.call", json!({ "name": "mcp__srv__find" }));
    assert_eq!(result["outcome"], "denied");
    let review = &host.must("mcp.tools.review", json!({}))["reviews"][0];
    let change = &review["changes"][0];
    assert_eq!(
        (&change["tool"], &change["after"]["description"]),
        (&json!("v2_srch"), &json!("Does something else"))
    );
    assert_eq!(server.log.requests("tools/call").len(), 0);
}

fn a_project_is_asked_again() {
    let env = TestEnv::new();
    let server = two(&env);
    write_project(&env, &json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    trust(&host);
    host.must("mcp.tools.list", json!({}));
    let mut entry = server.entry();
    entry["tools"] = json!({ "overrides": { "drop": { "name": "list", "description": "Lists notes" } } });
    write_project(&env, &json!({ "srv": entry }));
    host.must("mcp.reload", json!({}));
    assert_eq!(host.status("srv")["state"], "needs_trust");
    let review = host.must("mcp.trust", json!({}));
    assert!(
        review
            .to_string()
            .contains("`drop` is shown as `list` in other words"),
        "{review}"
    );
}

fn in_the_terminal() {
    let env = TestEnv::new();
    let server = two(&env);
    let mut entry = server.entry();
    entry["tools"] = json!({ "overrides": shown() });
    env.write_config(&json!({ "srv": entry }));
    let mut list = env.command();
    let output = list.args(["tools", "srv"]).output().expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("find (the server's v2_srch)") && text.contains("Finds notes"),
        "{text}"
    );
    let mut call = env.command();
    assert!(
        call.args(["call", "srv", "find"])
            .status()
            .expect("the binary runs")
            .success()
    );
    assert_eq!(server.log.wait_request("tools/call")["params"]["name"], "v2_srch");
}
