//! What a model's context costs: estimates, results that are too large, and tools found instead of loaded.

use std::os::unix::fs::PermissionsExt as _;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::model::tool;
use crate::stories;
use crate::support::{Host, HostOptions, StdioServer, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("budget":
        what_fits_is_whole, in_the_terminal, what_is_larger_is_a_preview, it_is_read_on, it_ends_with_its_session, it_ends_with_the_connection,
        pictures_become_files, large_structure_is_not_doubled, without_a_tool_to_read, servers_may_sleep,
        only_unseen_servers_are_asked, a_search_has_a_limit, costs_are_known_before, a_test_says_what_it_costs,
    )
}

fn start(env: &TestEnv, call: Value, initialization: Value) -> (Host, StdioServer) {
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [tool("big")] }, "tools/call": call }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start_with(
        env,
        HostOptions {
            initialization,
            ..HostOptions::default()
        },
    );
    (host, server)
}

/// A server that is switched off, one that is not trusted, and one that was never seen.
fn costs_are_known_before() {
    let env = TestEnv::new();
    let lists = json!({ "tools/list": { "tools": [tool("read"), tool("drop")] } });
    let server = env.plain_server("srv", lists);
    let other = env.plain_server("other", json!({}));
    let mut entry = server.entry();
    entry["tools"] = json!({ "deny": ["drop"] });
    env.write_config(&json!({ "srv": entry, "other": other.entry() }));
    let host = Host::start(&env);
    let offer = host.must("mcp.model.tools", json!({ "servers": ["srv"] }));
    let tokens = &offer["servers"][0]["tokens"];
    assert_eq!(&host.status("srv")["tokens"], tokens);
    host.must("mcp.stop", json!({ "server": "srv" }));
    drop(host);

    entry["enabled"] = json!(false);
    env.write_config(&json!({ "srv": entry, "other": other.entry() }));
    crate::trust::write_project(&env, &json!({ "mine": server.entry() }));
    let host = Host::start(&env);
    let status = host.must("mcp.status", json!({ "costs": true }));
    let record = |name: &str| {
        let servers = status["servers"].as_array().expect("servers");
        let found = servers.iter().find(|server| server["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {status}")).clone()
    };
    let switched_off = record("srv");
    assert_eq!(
        (&switched_off["state"], &switched_off["tokens"]),
        (&json!("disabled"), tokens)
    );
    assert_eq!(
        switched_off["costs"],
        json!([{ "tool": "read", "tokens": tokens }])
    );
    let untrusted = record("mine");
    assert_eq!(untrusted["state"], "needs_trust");
    assert_eq!(
        untrusted["costs"].as_array().map(Vec::len),
        Some(2),
        "{untrusted}"
    );
    assert_eq!(record("other").get("tokens"), None);
    assert_eq!(
        host.must("mcp.status", json!({}))["servers"][0].get("costs"),
        None
    );
    assert_eq!(server.log.requests("initialize").len(), 1);
    assert!(other.log.lines().is_empty());

    let said = |args: &[&str]| {
        let output = env
            .command()
            .args(["tools", "--cost"])
            .args(args)
            .output()
            .expect("the binary runs");
        let stream = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (stream(&output.stdout), stream(&output.stderr))
    };
    let (table, hint) = said(&[]);
    assert!(table.contains("other   stopped      ?      ?"), "{table}");
    assert!(hint.contains("never seen"), "{hint}");
    let (table, sum) = said(&["srv"]);
    assert!(table.contains("read") && !table.contains("drop"), "{table}");
    assert!(
        sum.contains(&format!("srv: 1 tools, about {tokens} tokens")),
        "{sum}"
    );
    assert!(said(&["other"]).1.contains("`pillion test other`"));
    assert_eq!(server.log.requests("initialize").len(), 1);
}

fn a_test_says_what_it_costs() {
    let env = TestEnv::new();
    let (host, server) = start(&env, said(""), json!({}));
    let offer = host.must("mcp.model.tools", json!({}));
    let result = host.must("mcp.test", json!({ "server": "srv" }));
    assert_eq!(result["tokens"], offer["servers"][0]["tokens"]);
    assert_eq!(result["tools"][0]["tokens"], offer["tools"][0]["tokens"]);
    let denied = json!({ "server": "srv", "set": { "tools": { "deny": ["big"] } } });
    let result = host.must("mcp.test", denied);
    assert_eq!(
        (&result["tokens"], result["tools"][0].get("tokens")),
        (&json!(0), None)
    );
    drop(server);
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn call(host: &Host, name: &str, arguments: Value) -> Value {
    host.must("mcp.model.call", json!({ "name": name, "arguments": arguments }))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {result}"))
}

fn what_fits_is_whole() {
    for (length, spills) in [(1999, false), (2000, false), (2001, true)] {
        let env = TestEnv::new();
        let (host, _server) = start(&env, said(&"ä".repeat(length)), json!({ "maxResultChars": 2000 }));
        let result = call(&host, "mcp__srv__big", json!({}));
        assert_eq!(result.get("spilled").is_some(), spills, "{length}");
        assert!(text(&result).chars().count() <= 2000);
        assert!(result["tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    }
}

fn what_is_larger_is_a_preview() {
    let env = TestEnv::new();
    let whole: String = (0..1000).map(|n| format!("line {n:04}\n")).collect();
    let (host, _server) = start(&env, said(&whole), json!({ "maxResultChars": 4000 }));
    let result = call(&host, "mcp__srv__big", json!({}));
    assert!(text(&result).starts_with("line 0000\nline 0001\n"));
    let spilled = &result["spilled"][0];
    assert_eq!(
        (&spilled["block"], &spilled["bytes"], &spilled["mimeType"]),
        (&json!(0), &json!(10_000), &json!("text/plain"))
    );
    let path = spilled["path"].as_str().expect("a path");
    assert_eq!(std::fs::read_to_string(path).expect("the file is there"), whole);
    assert_eq!(
        std::fs::metadata(path)
            .expect("the file is there")
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert!(
        text(&result).contains("9000 more characters") && text(&result).contains("mcp_resource_read"),
        "{}",
        text(&result)
    );
}

fn it_is_read_on() {
    let env = TestEnv::new();
    let whole: String = (0..1000).map(|n| format!("line {n:04}\n")).collect();
    let (host, _server) = start(&env, said(&whole), json!({ "maxResultChars": 4000 }));
    let names = |offer: Value| {
        offer["tools"]
            .as_array()
            .expect("tools")
            .iter()
            .map(|tool| tool["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(host.must("mcp.model.tools", json!({}))), ["mcp__srv__big"]);
    let result = call(&host, "mcp__srv__big", json!({}));
    assert_eq!(
        names(host.must("mcp.model.tools", json!({}))),
        ["mcp_resource_read", "mcp__srv__big"]
    );
    let uri = &result["spilled"][0]["uri"];
    let mut read = String::new();
    loop {
        let offset = read.chars().count();
        let result = call(
            &host,
            "mcp_resource_read",
            json!({ "server": "pillion", "uri": uri, "offset": offset }),
        );
        assert!(text(&result).chars().count() <= 4000);
        let part = text(&result).split("\n[").next().unwrap_or_default();
        read.push_str(part);
        if !text(&result).contains("more characters") {
            break;
        }
    }
    assert_eq!(read, whole);
    let beyond = call(
        &host,
        "mcp_resource_read",
        json!({ "server": "pillion", "uri": uri, "offset": 10_000 }),
    );
    assert_eq!(text(&beyond), "[the text ends at 10000 characters]");
}

fn it_ends_with_its_session() {
    let env = TestEnv::new();
    let (host, _server) = start(&env, said(&"a".repeat(2000)), json!({ "maxResultChars": 1000 }));
    let result = host.must(
        "mcp.model.call",
        json!({ "name": "mcp__srv__big", "session": "one" }),
    );
    let spilled = &result["spilled"][0];
    let read = |session: &str| {
        let arguments = json!({ "server": "pillion", "uri": spilled["uri"] });
        host.must(
            "mcp.model.call",
            json!({ "name": "mcp_resource_read", "arguments": arguments, "session": session }),
        )["outcome"]
            .clone()
    };
    assert_eq!((read("one"), read("two")), (json!("ok"), json!("tool_error")));
    host.request("mcp.session.end", json!({ "session": "one" }))
        .expect("ended");
    assert_eq!(read("one"), "tool_error");
    assert!(!std::path::Path::new(spilled["path"].as_str().expect("a path")).exists());
}

fn it_ends_with_the_connection() {
    let env = TestEnv::new();
    let (host, _server) = start(&env, said(&"a".repeat(2000)), json!({ "maxResultChars": 1000 }));
    let result = call(&host, "mcp__srv__big", json!({}));
    let path = result["spilled"][0]["path"].as_str().expect("a path").to_owned();
    assert!(std::path::Path::new(&path).exists());
    drop(host);
    assert!(!std::path::Path::new(&path).exists());
}

fn pictures_become_files() {
    let env = TestEnv::new();
    let picture = json!({ "type": "image", "data": "AAEC".repeat(1000), "mimeType": "image/png" });
    let (host, _server) = start(
        &env,
        json!({ "content": [picture, { "type": "text", "text": "done" }] }),
        json!({ "maxResultChars": 1000 }),
    );
    let result = call(&host, "mcp__srv__big", json!({}));
    assert!(
        text(&result).starts_with("[image/png, 3000 bytes, kept as the file "),
        "{result}"
    );
    assert_eq!(result["content"][1]["text"], "done");
    assert!(!result.to_string().contains("AAECAAEC"));
    assert_eq!(
        (&result["spilled"][0]["bytes"], &result["spilled"][0]["mimeType"]),
        (&json!(3000), &json!("image/png"))
    );
}

fn large_structure_is_not_doubled() {
    let env = TestEnv::new();
    let structured = json!({ "items": vec!["item"; 500] });
    let (host, _server) = start(
        &env,
        json!({ "content": [{ "type": "text", "text": structured.to_string() }], "structuredContent": structured }),
        json!({ "maxResultChars": 1000 }),
    );
    let result = call(&host, "mcp__srv__big", json!({}));
    assert_eq!(
        (
            result.get("structuredContent"),
            result["spilled"].as_array().map(Vec::len)
        ),
        (None, Some(1)),
        "{result}"
    );
    assert!(
        result["issues"][0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("structured content")),
        "{result}"
    );
}

fn without_a_tool_to_read() {
    let env = TestEnv::new();
    let (host, _server) = start(
        &env,
        said(&"a".repeat(2000)),
        json!({ "maxResultChars": 1000, "resourceTools": "none" }),
    );
    let result = call(&host, "mcp__srv__big", json!({}));
    assert!(text(&result).contains("the whole is in the file /"), "{result}");
    assert_eq!(
        host.must("mcp.model.tools", json!({}))["tools"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

fn servers_may_sleep() {
    let env = TestEnv::new();
    let mut mail = tool("send");
    mail["description"] = json!("Send a mail to somebody");
    let server = env.plain_server(
        "mail",
        json!({ "tools/list": { "tools": [mail, tool("other")] } }),
    );
    env.write_config(&json!({ "mail": server.entry() }));
    let host = Host::start(&env);
    host.must("mcp.tools.list", json!({}));
    drop(host);
    let host = Host::start(&env);
    let found = host.must("mcp.tools.search", json!({ "query": "mailing people" }));
    assert_eq!(
        (&found["hits"][0]["name"], &found["searched"]),
        (&json!("mcp__mail__send"), &json!(2))
    );
    assert_eq!(found["hits"][0]["inputSchema"], json!({ "type": "object" }));
    let offer = host.must("mcp.model.tools", json!({ "load": "search" }));
    assert_eq!(
        (
            offer["tools"].as_array().map(Vec::len),
            &offer["servers"][1]["tools"]
        ),
        (Some(2), &json!(2))
    );
    assert_eq!(
        (server.log.starts().len(), &host.status("mail")["state"]),
        (1, &json!("stopped"))
    );
    // The call wakes it.
    assert_eq!(call(&host, "mcp__mail__send", json!({}))["outcome"], "ok");
    assert_eq!(server.log.starts().len(), 2);
}

fn only_unseen_servers_are_asked() {
    let env = TestEnv::new();
    let seen = env.plain_server("seen", json!({ "tools/list": { "tools": [tool("find")] } }));
    let unseen = env.plain_server("unseen", json!({ "tools/list": { "tools": [tool("find")] } }));
    env.write_config(&json!({ "seen": seen.entry(), "unseen": unseen.entry() }));
    let host = Host::start(&env);
    host.must("mcp.tools.list", json!({ "server": "seen" }));
    let known = host.must("mcp.tools.search", json!({ "query": "find", "discover": false }));
    assert_eq!(
        (known["hits"].as_array().map(Vec::len), unseen.log.starts().len()),
        (Some(1), 0)
    );
    assert_eq!(known["issues"][0]["server"], "unseen");
    let all = host.must("mcp.tools.search", json!({ "query": "find" }));
    assert_eq!(all["hits"].as_array().map(Vec::len), Some(2));
    let only = host.must(
        "mcp.tools.search",
        json!({ "query": "find", "servers": ["seen"], "schemas": false }),
    );
    assert_eq!(
        (
            only["hits"].as_array().map(Vec::len),
            only["hits"][0].get("inputSchema")
        ),
        (Some(1), None)
    );
}

fn a_search_has_a_limit() {
    let env = TestEnv::new();
    let tools: Vec<Value> = (0..101).map(|n| tool(&format!("find_{n}"))).collect();
    let server = env.plain_server("srv", json!({ "tools/list": { "tools": tools } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let hits = |params: Value| {
        host.must("mcp.tools.search", params)["hits"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(hits(json!({ "query": "find" })), Some(10));
    assert_eq!(hits(json!({ "query": "find", "limit": 99 })), Some(99));
    assert_eq!(hits(json!({ "query": "find", "limit": 100 })), Some(100));
    let error = host
        .ask("mcp.tools.search", json!({ "query": "find", "limit": 101 }))
        .expect_err("too many");
    assert_eq!(error.kind(), "invalid_params");
    assert_eq!(hits(json!({ "query": "zebra" })), Some(0));
}

fn in_the_terminal() {
    let env = TestEnv::new();
    let mut mail = tool("send");
    mail["description"] = json!("Send a mail to somebody");
    let server = env.plain_server(
        "mail",
        json!({ "tools/list": { "tools": [mail, tool("other")] } }),
    );
    env.write_config(&json!({ "mail": server.entry() }));
    let run = |args: &[&str]| {
        let output = env.command().args(args).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["tools", "--model"]);
    assert_eq!(code, Some(0), "{stderr}");
    let line = stdout
        .lines()
        .find(|line| line.starts_with("mcp__mail__send "))
        .expect("the tool");
    assert!(
        line.contains("auto") && line.ends_with("Send a mail to somebody"),
        "{stdout}"
    );
    assert!(stderr.contains("mail: 2 tools, about "), "{stderr}");
    let (code, stdout, _) = run(&["search-tools", "mailing", "people"]);
    assert_eq!(code, Some(0));
    assert!(
        stdout
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("mail ") && line.contains("send")),
        "{stdout}"
    );
    assert_eq!(server.log.starts().len(), 1);
    let (code, stdout, stderr) = run(&["search-tools", "zebra"]);
    assert_eq!(
        (code, stdout.as_str(), stderr.as_str()),
        (Some(0), "", "None of 2 tools fits\n")
    );
    assert_eq!(run(&["tools", "--dialect", "openai"]).0, Some(2));
    let (_, stdout, _) = run(&["tools", "--model", "--dialect", "gemini", "--json"]);
    let result: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(result["tools"].as_array().map(Vec::len), Some(2));
}
