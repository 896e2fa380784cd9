//! What servers want from the host besides answers to questions: its model, its folders, and time
//! (tasks of both eras). Also what happens when there is too much of everything.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::handshake::options;
use crate::stories;
use crate::support::{Host, StdioServer, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("upward":
        the_hosts_model, the_host_refuses, roots_are_the_open_folders, folders_come_and_go, tasks_of_the_old_era,
        tasks_of_the_new_era, too_many_requests, two_folders_two_answers,
    )
}

fn with(env: &TestEnv, mcp: Value, capabilities: Value) -> (Host, StdioServer) {
    let server = env.plain_server("srv", mcp);
    env.write_config(&json!({ "srv": server.entry() }));
    (
        Host::start_with(env, options(json!({ "capabilities": capabilities }))),
        server,
    )
}

fn sampling() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 7, "zz": 1.10 } })
}

fn the_hosts_model() {
    let env = TestEnv::new();
    let (host, server) = with(
        &env,
        json!({ "tools/call": { "$ask": [sampling()] } }),
        json!({ "sampling": true }),
    );
    let call = host.send_here(
        "mcp.tool.call",
        json!({ "server": "srv", "name": "echo", "call": "c", "session": "s" }),
    );
    let sample = host.wait_notification("mcp.sample", |_| true);
    assert_eq!(
        (&sample["server"], &sample["call"], &sample["session"]),
        (&json!("srv"), &json!("c"), &json!("s"))
    );
    assert_eq!(sample["request"], sampling()["params"]);
    let result = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Hello" }, "own": [1] });
    let answer = json!({ "sample": sample["sample"], "result": result });
    assert_eq!(host.request("mcp.sample.answer", answer.clone()), Ok(json!({})));
    assert!(call.wait().is_ok());
    assert_eq!(server.log.wait_reply("ask-1")["result"], result);
    assert_eq!(
        host.request("mcp.sample.answer", answer)
            .expect_err("once")
            .kind(),
        "question_closed"
    );
    assert!(server.log.wait_request("initialize")["params"]["capabilities"]["sampling"].is_object());
}

fn the_host_refuses() {
    let env = TestEnv::new();
    let (host, server) = with(
        &env,
        json!({ "tools/call": { "$ask": [sampling()] } }),
        json!({ "sampling": true }),
    );
    let call = host.send_call("srv", "echo", json!({}));
    let sample = host.wait_notification("mcp.sample", |_| true);
    let refusal = json!({ "sample": sample["sample"], "refused": { "message": "not today" } });
    host.request("mcp.sample.answer", refusal).expect("taken");
    assert!(call.wait().is_ok());
    let error = &server.log.wait_reply("ask-1")["error"];
    assert_eq!(error["code"], -1, "{error}");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("not today")),
        "{error}"
    );
}

fn roots() -> Value {
    json!({ "method": "roots/list" })
}

fn roots_are_the_open_folders() {
    let env = TestEnv::new();
    let (host, server) = with(
        &env,
        json!({ "tools/call": { "$ask": [roots()] } }),
        json!({ "roots": true }),
    );
    assert!(host.call("srv", "echo", json!({})).is_ok());
    let result = server.log.wait_reply("ask-1")["result"].clone();
    let uri = url::Url::from_file_path(env.project()).expect("absolute");
    assert_eq!(result["roots"][0]["uri"], json!(uri.as_str()));
    assert_eq!(result["roots"].as_array().map(Vec::len), Some(1));
    let capabilities = &server.log.wait_request("initialize")["params"]["capabilities"];
    assert_eq!(capabilities["roots"]["listChanged"], true);
    assert_eq!(capabilities.get("sampling"), None);
}

fn folders_come_and_go() {
    let env = TestEnv::new();
    let (host, server) = with(
        &env,
        json!({ "tools/call": { "$ask": [roots()] } }),
        json!({ "roots": true }),
    );
    host.start_server("srv");
    let folder = json!({ "uri": format!("file://{}", env.tmp().display()), "name": "tmp" });
    host.notify(
        "workspace/didChangeWorkspaceFolders",
        json!({ "event": { "added": [folder], "removed": [] } }),
    );
    server.log.wait_request("notifications/roots/list_changed");
    assert!(host.call("srv", "echo", json!({})).is_ok());
    assert_eq!(
        server.log.wait_reply("ask-1")["result"]["roots"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    host.notify(
        "workspace/didChangeWorkspaceFolders",
        json!({ "event": { "added": [], "removed": [folder] } }),
    );
    crate::support::clock::eventually("the second change", || {
        (server.log.requests("notifications/roots/list_changed").len() == 2).then_some(())
    });
}

fn tasks_of_the_old_era() {
    let env = TestEnv::new();
    let task = |status: &str| {
        json!({
            "taskId": "t-1", "status": status, "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:30:00Z", "ttl": null, "pollInterval": 500,
        })
    };
    let tool = json!({ "name": "echo", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "required" } });
    let (host, server) = with(
        &env,
        json!({
            "initialize": { "capabilities": { "tools": {}, "tasks": { "requests": { "tools": { "call": {} } } } } },
            "tools/list": { "tools": [tool] },
            "tools/call": { "$raw": json!({ "task": task("working") }).to_string() },
            "tasks/get": [task("working"), task("completed")],
            "tasks/result": { "$raw": "{\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"n\":1.10}" },
        }),
        json!({}),
    );
    let received = host.send_call("srv", "echo", json!({})).wait_raw();
    assert!(received.text.contains("\"n\":1.10"), "{}", received.text);
    let call = server.log.wait_request("tools/call");
    assert!(call["params"]["task"].is_object(), "{call}");
    assert_eq!(server.log.wait_request("tasks/result")["params"]["taskId"], "t-1");
}

fn tasks_of_the_new_era() {
    let env = TestEnv::new();
    let task = |status: &str, more: &str| {
        format!(
            "{{\"resultType\":\"complete\",\"taskId\":\"t-1\",\"status\":\"{status}\",\"createdAt\":\"2026-07-28T10:30:00Z\",\"lastUpdatedAt\":\"2026-07-28T10:30:00Z\",\"ttlMs\":60000,\"pollIntervalMs\":500{more}}}"
        )
    };
    let created = task("working", "").replace("complete\"", "task\"");
    let done = task("completed", ",\"result\":{\"content\":[],\"n\":1.10}");
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    let (host, server) = with(
        &env,
        json!({
            "server/discover": { "capabilities": { "tools": {}, "extensions": extensions } },
            "tools/call": { "$raw": created },
            "tasks/get": [{ "$raw": task("working", "") }, { "$raw": done }],
        }),
        json!({}),
    );
    let received = host.send_call("srv", "echo", json!({})).wait_raw();
    assert!(received.text.contains("\"n\":1.10"), "{}", received.text);
    let call = server.log.wait_request("tools/call");
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    assert_eq!(declared["io.modelcontextprotocol/tasks"], json!({}), "{call}");
}

/// Refused, told when to come again, and nothing that was taken up is lost.
fn too_many_requests() {
    let env = TestEnv::new();
    let (host, server) = with(&env, json!({ "tools/call": { "$none": true } }), json!({}));
    host.start_server("srv");
    host.must("mcp.tools.list", json!({}));
    let calls: Vec<_> = (0..4600)
        .map(|_| host.send_call("srv", "echo", json!({})))
        .collect();
    let last = calls
        .last()
        .expect("many")
        .wait_within(crate::support::clock::PATIENCE)
        .expect("an answer at once");
    let error = last.expect_err("too many");
    assert_eq!((error.code, error.kind()), (-32060, "overloaded"));
    assert!(error.data["retryAfterMs"].is_i64(), "{}", error.data);
    assert!(server.log.requests("tools/call").len() <= 4096);
    for call in &calls {
        call.cancel();
    }
    for call in calls {
        assert!([-32800, -32060].contains(&call.wait().expect_err("cancelled or refused").code));
    }
    assert!(host.request("mcp.questions", json!({})).is_ok());
}

/// News goes to every open directory, in the spelling the host used.
fn two_folders_two_answers() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let link = env.tmp().join("link");
    std::os::unix::fs::symlink(env.home(), &link).expect("a link");
    let host = Host::start_with(&env, options(json!({ "directories": [env.project(), link] })));
    host.start_server("srv");
    for directory in [env.project(), link.clone()] {
        host.wait_notification("mcp.changed", |params| {
            params["directory"] == json!(directory) && params["status"]["state"] == "ready"
        });
    }
    // The same folder by its real path is the same directory.
    let status = host
        .request("mcp.status", json!({ "directory": env.home() }))
        .expect("it is open");
    assert_eq!(status["servers"][0]["state"], "ready");
    host.request("mcp.stop", json!({ "directory": env.home(), "server": "srv" }))
        .expect("stopped");
    host.wait_notification("mcp.changed", |params| {
        params["status"]["state"] == "stopped" && params["directory"] == json!(link)
    });
    assert!(
        !host
            .notifications("mcp.changed")
            .iter()
            .any(|params| params["directory"] == json!(env.home()))
    );
}
