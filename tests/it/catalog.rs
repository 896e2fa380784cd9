//! What running servers offer: paged, isolated per server and per category, and told when it changes.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Map, Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("catalog":
        pages_on_both_sides, cursors_go_stale, categories_fail_apart, servers_fail_apart, answers_at_once,
        only_what_is_known, list_changed_is_told, everything_of_a_server, exposed_names_are_stable,
        items_are_verbatim, reload_reads_again, a_list_call_per_server,
    )
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn names(page: &Value) -> Vec<&str> {
    page["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["name"].as_str().expect("a name"))
        .collect()
}

fn pages_on_both_sides() {
    let env = TestEnv::new();
    let pages: Vec<Value> = (0..5)
        .map(|page| {
            let tools: Vec<Value> = (0..90)
                .map(|number| tool(&format!("t{:03}", page * 90 + number)))
                .collect();
            if page == 4 {
                json!({ "tools": tools })
            } else {
                json!({ "tools": tools, "nextCursor": format!("c{page}") })
            }
        })
        .collect();
    let server = env.plain_server("srv", json!({ "tools/list": pages }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let mut all = Vec::new();
    let mut sizes = Vec::new();
    let mut cursor = None;
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor: Value| json!({ "cursor": cursor }));
        let page = host.must("mcp.tools.list", params);
        sizes.push(names(&page).len());
        all.extend(names(&page).iter().map(|name| (*name).to_owned()));
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(sizes, [200, 200, 50]);
    let expected: Vec<String> = (0..450).map(|number| format!("t{number:03}")).collect();
    assert_eq!(all, expected);
    let cursors: Vec<Value> = server
        .log
        .requests("tools/list")
        .iter()
        .map(|request| request["params"]["cursor"].clone())
        .collect();
    assert_eq!(
        cursors,
        [Value::Null, json!("c0"), json!("c1"), json!("c2"), json!("c3")]
    );
    assert_eq!(
        names(&host.must("mcp.tools.list", json!({ "limit": 3 }))),
        ["t000", "t001", "t002"]
    );
}

fn cursors_go_stale() {
    let env = TestEnv::new();
    let lists = json!([{ "tools": [tool("a"), tool("b"), tool("c")] }, { "tools": [tool("d"), tool("e")] }]);
    let server = env.plain_server("srv", json!({ "initialize": { "capabilities": { "tools": { "listChanged": true } } }, "tools/list": lists }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let page = host.must("mcp.tools.list", json!({ "limit": 2 }));
    let cursor = page["nextCursor"].clone();
    assert_eq!(
        names(&host.must("mcp.tools.list", json!({ "limit": 2, "cursor": cursor }))),
        ["c"]
    );
    // Other parameters, another list.
    let error = host.ask(
        "mcp.tools.list",
        json!({ "server": "srv", "limit": 2, "cursor": cursor }),
    );
    assert_eq!(error.expect_err("of another request").kind(), "stale_cursor");
    server.push(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    host.wait_notification("mcp.changed", |params| {
        params["reasons"]
            .as_array()
            .is_some_and(|all| all.contains(&json!("tools")))
            && params["status"]["tools"] == 2
    });
    let error = host
        .ask("mcp.tools.list", json!({ "limit": 2, "cursor": cursor }))
        .expect_err("it changed");
    assert_eq!((error.code, error.kind()), (-32053, "stale_cursor"));
    let error = host
        .ask("mcp.tools.list", json!({ "cursor": "made up" }))
        .expect_err("not ours");
    assert_eq!(error.kind(), "stale_cursor");
}

fn categories_fail_apart() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({
            "initialize": { "capabilities": { "tools": {}, "prompts": {}, "resources": {} } },
            "tools/list": { "tools": [tool("good"), { "name": 7 }, "text"] },
            "prompts/list": { "$error": { "code": -32603, "message": "prompts are broken" } },
            "resources/list": { "resources": [{ "uri": "x:1", "name": "r" }] },
            "resources/templates/list": { "resourceTemplates": "nonsense" },
        }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let tools = host.must("mcp.tools.list", json!({}));
    assert_eq!(names(&tools), ["good"]);
    assert!(
        tools["issues"]
            .as_array()
            .is_some_and(|issues| issues.iter().any(|one| one["kind"] == "item_skipped")),
        "{tools}"
    );
    assert_eq!(names(&host.must("mcp.resources.list", json!({}))), ["r"]);
    let prompts = host.must("mcp.prompts.list", json!({}));
    assert_eq!(names(&prompts), [] as [&str; 0]);
    let issue = &prompts["issues"][0];
    assert_eq!(
        (&issue["server"], &issue["category"]),
        (&json!("srv"), &json!("prompts")),
        "{prompts}"
    );
    assert!(
        issue["message"]
            .as_str()
            .is_some_and(|text| text.contains("prompts are broken")),
        "{issue}"
    );
    let record = host.status("srv");
    assert_eq!(
        (&record["state"], &record["tools"], &record["resources"]),
        (&json!("ready"), &json!(1), &json!(1))
    );
}

fn servers_fail_apart() {
    let env = TestEnv::new();
    let mut entries = Map::new();
    for number in 0..6 {
        let name = format!("s{number}");
        entries.insert(name.clone(), env.plain_server(&name, json!({})).entry());
    }
    let crashing = env.scripted_server("crashing", json!({ "start": [{ "err": "boom" }, { "exit": 1 }] }));
    let hanging = env.scripted_server("hanging", json!({}));
    entries.insert("crashing".to_owned(), crashing.entry());
    entries.insert("hanging".to_owned(), hanging.entry());
    entries.insert("missing".to_owned(), json!({ "command": "no-such-cmd-xyz" }));
    env.write_config(&Value::Object(entries));
    let host = Host::start(&env);
    let start = Instant::now();
    let page = host.must("mcp.tools.list", json!({ "waitMs": 4000 }));
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert_eq!(names(&page).len(), 6, "{page}");
    let mut blamed: Vec<&str> = page["issues"]
        .as_array()
        .expect("issues")
        .iter()
        .filter_map(|issue| issue["server"].as_str())
        .collect();
    blamed.sort_unstable();
    assert_eq!(blamed, ["crashing", "hanging", "missing"], "{}", page["issues"]);
}

fn answers_at_once() {
    let env = TestEnv::new();
    let slow = env.plain_server("slow", json!({ "initialize": { "$delay_ms": 700 } }));
    env.write_config(&json!({ "slow": slow.entry() }));
    let host = Host::start(&env);
    let start = Instant::now();
    let page = host.must("mcp.catalog", json!({ "waitMs": 0 }));
    assert!(
        start.elapsed() < Duration::from_millis(600),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(page["items"], json!([]));
    assert_eq!(page["servers"][0]["server"], "slow");
    assert_eq!(page["servers"][0]["state"], "connecting", "{page}");
    assert_eq!(page["issues"][0]["server"], "slow", "{page}");
    // The news follows.
    host.wait_notification("mcp.changed", |params| {
        params["status"]["state"] == "ready" && params["status"]["tools"] == 1
    });
    assert_eq!(
        names(&host.must("mcp.tools.list", json!({ "waitMs": 0 }))),
        ["echo"]
    );
}

fn only_what_is_known() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let page = host.must("mcp.catalog", json!({ "discover": false }));
    assert_eq!(page["items"], json!([]));
    assert_eq!(page["servers"][0]["state"], "stopped");
    assert_eq!(server.log.starts().len(), 0);
    host.must("mcp.tools.list", json!({}));
    assert_eq!(
        names(&host.must("mcp.tools.list", json!({ "discover": false }))),
        ["echo"]
    );
}

fn list_changed_is_told() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({
        "initialize": { "capabilities": { "tools": { "listChanged": true }, "prompts": { "listChanged": true } } },
        "tools/list": [{ "tools": [tool("old")] }, { "tools": [tool("old"), tool("new")] }],
        "prompts/list": { "prompts": [] },
    }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.must("mcp.catalog", json!({}));
    let before = host.status("srv");
    server.push(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    let changed = host.wait_notification("mcp.changed", |params| params["status"]["tools"] == 2);
    assert!(
        changed["reasons"]
            .as_array()
            .is_some_and(|all| all.contains(&json!("tools"))),
        "{changed}"
    );
    assert_ne!(changed["status"]["catalog"], before["catalog"]);
    assert_eq!(names(&host.must("mcp.tools.list", json!({}))), ["old", "new"]);
    assert_eq!(
        server.log.requests("prompts/list").len(),
        1,
        "only what changed is read again"
    );
}

fn everything_of_a_server() {
    let env = TestEnv::new();
    let server = env.plain_server("docs", json!({
        "initialize": { "capabilities": { "tools": {}, "prompts": {}, "resources": {} }, "instructions": "Ask nicely." },
        "prompts/list": { "prompts": [{ "name": "review", "title": "Review it", "arguments": [{ "name": "file", "required": true }, { "name": "style" }] }] },
        "resources/list": { "resources": [{ "uri": "file:///a", "name": "read_me", "mimeType": "text/plain", "size": 12 }] },
        "resources/templates/list": { "resourceTemplates": [{ "uriTemplate": "file:///{path}", "name": "files" }] },
    }));
    env.write_config(&json!({ "docs": server.entry() }));
    let host = Host::start(&env);
    let page = host.must("mcp.catalog", json!({}));
    let mut types: Vec<&str> = page["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    types.sort_unstable();
    assert_eq!(types, ["prompt", "resource", "template", "tool"]);
    let item = |kind: &str| {
        page["items"]
            .as_array()
            .expect("items")
            .iter()
            .find(|item| item["type"] == kind)
            .expect(kind)
            .clone()
    };
    let prompt = item("prompt");
    assert_eq!(
        (&prompt["command"], &prompt["title"]),
        (&json!("/docs:review"), &json!("Review it"))
    );
    assert_eq!(
        prompt["arguments"],
        json!([{ "name": "file", "required": true }, { "name": "style", "required": false }])
    );
    let resource = item("resource");
    assert_eq!(
        (&resource["mention"], &resource["size"]),
        (&json!("@docs:read_me"), &json!(12))
    );
    assert_eq!(item("template")["uriTemplate"], "file:///{path}");
    assert_eq!(page["servers"][0]["instructions"], "Ask nicely.");
    assert_eq!(
        page["servers"][0]["info"],
        json!({ "name": "plain", "version": "1.0.0" })
    );
    assert_eq!(page["issues"], json!([]));
    let record = host.status("docs");
    let counts = [
        &record["tools"],
        &record["resources"],
        &record["templates"],
        &record["prompts"],
    ];
    assert_eq!(counts, [1, 1, 1, 1]);
}

fn exposed_names_are_stable() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let other = env.plain_server("other", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let exposed =
        |host: &Host| host.must("mcp.tools.list", json!({ "server": "srv" }))["items"][0]["exposed"].clone();
    let before = exposed(&host);
    host.must("mcp.add", json!({ "name": "other", "entry": other.entry() }));
    assert_eq!(exposed(&host), before, "another server's coming renames nothing");
    let text = before.as_str().expect("a name");
    assert!(text.contains("srv") && text.contains("echo"), "{text}");
    assert!(host.call("srv", text, json!({})).is_ok());
    assert_eq!(server.log.wait_request("tools/call")["params"]["name"], "echo");
}

fn items_are_verbatim() {
    let env = TestEnv::new();
    let raw = "{\"tools\":[{\"zz\":1.10,\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"b\":{},\"a\":{}}},\"n\":12345678901234567890123}]}";
    let server = env.plain_server("srv", json!({ "tools/list": { "$raw": raw } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let received = host.send_here("mcp.tools.list", json!({})).wait_raw();
    let item = &raw["{\"tools\":[".len()..raw.len() - 2];
    assert!(
        received.text.contains(&format!("\"raw\":{item}")),
        "{}",
        received.text
    );
}

fn reload_reads_again() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": [{ "tools": [tool("a")] }, { "tools": [tool("b")] }] }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    assert_eq!(names(&host.must("mcp.tools.list", json!({}))), ["a"]);
    assert_eq!(names(&host.must("mcp.tools.list", json!({}))), ["a"], "a cache");
    assert_eq!(
        names(&host.must("mcp.tools.list", json!({ "reload": true }))),
        ["b"]
    );
    assert_eq!(server.log.requests("tools/list").len(), 2);
}

/// Many lists at once ask a server once.
fn a_list_call_per_server() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/list": { "$delay_ms": 300 } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let lists: Vec<_> = (0..10)
        .map(|_| host.send_here("mcp.tools.list", json!({})))
        .collect();
    for list in lists {
        assert_eq!(names(&list.wait().expect("a list")), ["echo"]);
    }
    assert_eq!(server.log.requests("tools/list").len(), 1);
    assert_eq!(server.log.starts().len(), 1);
}
