//! What a prompt box can mention and call.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("mentions":
        aliases_beside_files, ambiguous_ones_are_marked, what_begins_like_it, a_limit, own_commands_win,
        a_failing_server_is_told, read_only_peers_discover_nothing, a_models_side_is_local,
    )
}

pub fn offers(resources: Value, prompts: Value) -> Value {
    json!({
        "initialize": { "capabilities": { "tools": {}, "prompts": {}, "resources": {} } },
        "resources/list": { "resources": resources },
        "resources/templates/list": { "resourceTemplates": [] },
        "prompts/list": { "prompts": prompts },
    })
}

fn of<'a>(result: &'a Value, list: &str, member: &str) -> Vec<&'a str> {
    let items = result[list].as_array().expect("a list").iter();
    items.map(|item| item[member].as_str().expect("a text")).collect()
}

fn start(env: &TestEnv) -> Host {
    let docs = env.plain_server(
        "docs",
        offers(
            json!([
                { "uri": "x:1", "name": "Read Me!" }, { "uri": "x:2", "name": "guide.md" },
                { "uri": "x:3", "name": "twice" }, { "uri": "x:4", "name": "twice" },
            ]),
            json!([{ "name": "code review", "arguments": [{ "name": "path", "required": true }] }, { "name": "help" }]),
        ),
    );
    env.write_config(&json!({ "docs": docs.entry() }));
    Host::start(env)
}

fn aliases_beside_files() {
    let env = TestEnv::new();
    let host = start(&env);
    let result = host.must("mcp.mentions.list", json!({}));
    assert_eq!(
        of(&result, "resources", "mention"),
        ["@docs:Read_Me_", "@docs:guide.md", "@docs:twice", "@docs:twice"]
    );
    assert_eq!(
        of(&result, "prompts", "command"),
        ["/docs:code_review", "/docs:help"]
    );
    assert_eq!(result["prompts"][0]["arguments"][0]["required"], true);
}

fn ambiguous_ones_are_marked() {
    let env = TestEnv::new();
    let host = start(&env);
    let result = host.must("mcp.mentions.list", json!({}));
    let marks: Vec<bool> = result["resources"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| item["ambiguous"] == true)
        .collect();
    assert_eq!(marks, [false, false, true, true]);
}

fn what_begins_like_it() {
    let env = TestEnv::new();
    let host = start(&env);
    let mentions = |prefix: &str| host.must("mcp.mentions.list", json!({ "prefix": prefix }));
    assert_eq!(
        of(&mentions("@docs:gu"), "resources", "mention"),
        ["@docs:guide.md"]
    );
    assert_eq!(of(&mentions("@docs:gu"), "prompts", "command"), [] as [&str; 0]);
    assert_eq!(of(&mentions("@GUI"), "resources", "mention"), ["@docs:guide.md"]);
    assert_eq!(of(&mentions("/rev"), "prompts", "command"), ["/docs:code_review"]);
    assert_eq!(of(&mentions("/rev"), "resources", "mention"), [] as [&str; 0]);
    assert_eq!(of(&mentions("@zebra"), "resources", "mention"), [] as [&str; 0]);
}

fn a_limit() {
    let env = TestEnv::new();
    let host = start(&env);
    for (limit, n, more) in [(3, 3, true), (4, 4, false), (5, 4, false)] {
        let result = host.must("mcp.mentions.list", json!({ "limit": limit, "prefix": "@" }));
        assert_eq!(result["resources"].as_array().map(Vec::len), Some(n), "{limit}");
        assert_eq!(
            result["issues"]
                .as_array()
                .is_some_and(|issues| !issues.is_empty()),
            more,
            "{limit}"
        );
    }
}

fn own_commands_win() {
    let env = TestEnv::new();
    let host = start(&env);
    let result = host.must("mcp.mentions.list", json!({ "reserved": ["/docs:help"] }));
    assert_eq!(of(&result, "prompts", "command"), ["/docs:code_review"]);
}

fn a_failing_server_is_told() {
    let env = TestEnv::new();
    let docs = env.plain_server("docs", offers(json!([{ "uri": "x:1", "name": "a" }]), json!([])));
    env.write_config(&json!({ "docs": docs.entry(), "gone": { "command": "no-such-cmd-xyz" } }));
    let host = Host::start(&env);
    let result = host.must("mcp.mentions.list", json!({}));
    assert_eq!(of(&result, "resources", "mention"), ["@docs:a"]);
    assert_eq!(result["issues"][0]["server"], "gone");
}

fn asked(peer: &super::peers::Peer, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    peer.send("POST", "/", &[], &body.to_string()).1
}

fn read_only_peers_discover_nothing() {
    let env = TestEnv::new();
    let docs = env.plain_server("docs", offers(json!([{ "uri": "x:1", "name": "a" }]), json!([])));
    env.write_config(&json!({ "docs": docs.entry() }));
    let (host, _, peer) = super::peers::start(&env);
    let directory = host.directory();
    let result = asked(&peer, "mcp.mentions.list", json!({ "directory": directory }))["result"].clone();
    assert_eq!(
        (&result["resources"], result["issues"].as_array().map(Vec::len)),
        (&json!([]), Some(1))
    );
    let result = asked(
        &peer,
        "mcp.prompt.expand",
        json!({ "directory": directory, "text": "@docs:a" }),
    )["result"]
        .clone();
    assert_eq!(result["parts"], json!([{ "type": "text", "text": "@docs:a" }]));
    assert_eq!(docs.log.starts().len(), 0);
    // What is known already is no discovery.
    host.must("mcp.mentions.list", json!({}));
    let result = asked(&peer, "mcp.mentions.list", json!({ "directory": directory }))["result"].clone();
    assert_eq!(of(&result, "resources", "mention"), ["@docs:a"]);
    assert_eq!(docs.log.requests("resources/read").len(), 0);
}

fn a_models_side_is_local() {
    let env = TestEnv::new();
    let (host, full, read_only) = super::peers::start(&env);
    for peer in [&full, &read_only] {
        for (method, more) in [
            ("mcp.model.tools", json!({})),
            ("mcp.model.call", json!({ "name": "mcp_resource_list" })),
            ("mcp.tools.search", json!({ "query": "x" })),
            ("mcp.tools.review", json!({})),
        ] {
            let mut params = more;
            params["directory"] = json!(host.directory());
            assert_eq!(
                asked(peer, method, params)["error"]["data"]["kind"],
                "forbidden",
                "{method}"
            );
        }
    }
}
