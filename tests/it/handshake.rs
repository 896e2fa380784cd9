//! From `initialize` to the first requests: what may be said, in which form, and what is refused.

use std::time::Duration;

use libtest_mimic::Trial;
use protocol::Method;
use serde_json::{Value, json};

use crate::stories;
use crate::support::host::{Outcome, outcome};
use crate::support::{Host, HostOptions, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("handshake":
        says_what_it_can, absent_methods_say_so, params_in_every_form, ids_come_back_as_they_were,
        one_id_at_a_time, unknown_messages, nothing_before_initialize, nothing_of_its_own_before_initialized,
        options_are_strict, the_rest_is_not, opted_out_notifications_stay_away, folders_from_everywhere,
        broken_file_is_reported_with_its_place, lengths_and_types_are_checked,
    )
}

pub fn options(initialization: Value) -> HostOptions {
    HostOptions {
        initialization,
        ..HostOptions::default()
    }
}

fn says_what_it_can() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let ours = host.capabilities();
    let available: Vec<&str> = Method::ALL
        .iter()
        .filter(|one| one.available())
        .map(|one| one.name())
        .collect();
    assert_eq!(ours["methods"], json!(available));
    assert_eq!(ours["files"]["user"], json!(env.data().join("mcp.json")));
    assert_eq!(ours["defaultDirectory"], json!(env.project()));
    let version = ours["protocolVersion"].as_str().expect("a version");
    assert!(version.split_once('.').is_some(), "{version}");
    let revisions = ours["mcpRevisions"].as_array().expect("a list");
    for revision in [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ] {
        assert!(
            revisions.contains(&json!(revision)),
            "{revision} in {revisions:?}"
        );
    }
}

fn absent_methods_say_so() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    for method in Method::ALL.iter().filter(|method| !method.available()) {
        let error = host.ask(method.name(), json!({})).expect_err(method.name());
        assert_eq!(
            (error.code, error.kind()),
            (-32601, "invalid_command"),
            "{}",
            method.name()
        );
        assert!(error.data["hint"].is_string(), "{} has no hint", method.name());
    }
}

/// Neovim leaves `params` out, Emacs sends null, a careless Lua table is `[]`.
fn params_in_every_form() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    for params in ["", "null", "{}", "[]"] {
        let id = json!(format!("q{params}"));
        let answer = host
            .send_as(id, "mcp.questions", params)
            .wait()
            .expect("no member is required");
        assert_eq!(answer, json!({ "open": [], "waiting": 0 }), "{params:?}");
    }
    // `null` for an optional member, `1.0` for an integer, `[]` for an object.
    let params = json!({ "server": null, "cursor": null, "limit": 1.0, "waitMs": 5000 });
    let page = host.must("mcp.tools.list", params);
    assert_eq!(page["items"][0]["name"], "echo");
    let params = json!({ "server": "srv", "name": "echo", "arguments": [] });
    host.must("mcp.tool.call", params);
    assert_eq!(
        server.log.wait_request("tools/call")["params"]["arguments"],
        json!({})
    );
    host.must(
        "mcp.tool.call",
        json!({ "server": "srv", "name": "echo", "arguments": null }),
    );
    // What is inside `arguments` belongs to the server.
    let inner = json!({ "a": null, "b": [], "c": 1.0 });
    host.must(
        "mcp.tool.call",
        json!({ "server": "srv", "name": "echo", "arguments": inner }),
    );
    let last = server.log.requests("tools/call").pop().expect("a call");
    assert_eq!(last["params"]["arguments"].to_string(), inner.to_string());
}

fn ids_come_back_as_they_were() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    for id in [
        json!("a"),
        json!(""),
        json!("7"),
        json!(7),
        json!(0),
        json!(-3),
        json!(9_007_199_254_740_991_i64),
    ] {
        let received = host.send_as(id.clone(), "mcp.questions", "{}").wait_raw();
        assert_eq!(received.message.id, Some(id));
        assert!(outcome(&received).is_ok());
    }
}

fn one_id_at_a_time() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$none": true } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    let params = json!({ "directory": host.directory(), "server": "srv", "name": "echo" });
    // Written by hand: for the host's own bookkeeping a second answer to one id would be a fault.
    let write = |body: Value| host.write(&crate::support::frames::encode(&body.to_string()));
    write(json!({ "jsonrpc": "2.0", "id": "x", "method": "mcp.tool.call", "params": params }));
    server.log.wait_request("tools/call");
    write(json!({ "jsonrpc": "2.0", "id": "x", "method": "mcp.questions" }));
    let answer = host.wait_for("the refusal", |messages| {
        messages
            .iter()
            .find(|one| one.message.id == Some(json!("x")))
            .map(|one| outcome(one))
    });
    let answer = answer.expect_err("the id is taken");
    assert_eq!((answer.code, answer.kind()), (-32600, "invalid_request"));
    assert!(host.request("mcp.questions", json!({})).is_ok());
}

fn unknown_messages() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    for method in [
        "mcp.nothing",
        "workspace/executeCommand",
        "$/something",
        "textDocument/hover",
    ] {
        let error = host.request(method, json!({})).expect_err(method);
        assert_eq!(
            (error.code, error.kind()),
            (-32601, "method_not_found"),
            "{method}"
        );
    }
    for method in ["$/setTrace", "$/unknown", "textDocument/didOpen", "mcp.status"] {
        host.notify(method, json!({ "value": "off" }));
    }
    assert!(host.request("mcp.questions", json!({})).is_ok());
}

fn nothing_before_initialize() {
    let env = TestEnv::new();
    let host = Host::spawn(&env, &[]);
    let error = host.request("mcp.questions", json!({})).expect_err("too early");
    assert_eq!((error.code, error.kind()), (-32002, "not_initialized"));
    let params = host.initialize_params(json!({}), None);
    host.request("initialize", params.clone())
        .expect("now it is asked for");
    host.notify("initialized", json!({}));
    let error = host.request("initialize", params).expect_err("once is enough");
    assert_eq!((error.code, error.kind()), (-32600, "invalid_request"));
    assert!(host.request("mcp.questions", json!({})).is_ok());
}

fn nothing_of_its_own_before_initialized() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::spawn(&env, &[]);
    let params = host.initialize_params(json!({ "start": "eager" }), None);
    host.request("initialize", params).expect("a handshake");
    // Time enough for a server to become ready, if it were started.
    assert!(
        host.wait_within(Duration::from_millis(400), |messages| messages.get(1).map(|_| ()))
            .is_none()
    );
    host.notify("initialized", json!({}));
    host.wait_state("srv", "ready");
}

fn options_are_strict() {
    let env = TestEnv::new();
    let host = Host::spawn(&env, &[]);
    let wrong = [
        (json!({ "colour": "red" }), "/initializationOptions/colour"),
        (
            json!({ "capabilities": { "question": true } }),
            "/initializationOptions/capabilities/question",
        ),
        (json!({ "start": "soon" }), "/initializationOptions/start"),
        (
            json!({ "maxMessageBytes": 10 }),
            "/initializationOptions/maxMessageBytes",
        ),
    ];
    for (initialization, path) in wrong {
        let error = host
            .request("initialize", host.initialize_params(initialization, None))
            .expect_err(path);
        assert_eq!((error.code, error.kind()), (-32602, "invalid_params"), "{path}");
        assert_eq!(error.data["path"], path, "{}", error.data);
    }
    // A refused handshake can be tried again.
    host.request(
        "initialize",
        host.initialize_params(json!({ "start": "lazy" }), None),
    )
    .expect("a good one");
}

fn the_rest_is_not() {
    let env = TestEnv::new();
    let host = Host::spawn(&env, &[]);
    let mut params = host.initialize_params(Value::Null, None);
    params["locale"] = json!("de");
    params["capabilities"] =
        json!({ "textDocument": { "hover": {} }, "general": { "positionEncodings": ["utf-8"] } });
    params["workspaceFolders"] = Value::Null;
    params["somethingNew"] = json!([1]);
    host.request("initialize", params).expect("LSP clients send much");
}

fn opted_out_notifications_stay_away() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start_with(&env, options(json!({ "optOut": ["mcp.changed"] })));
    host.start_server("srv");
    host.must("mcp.stop", json!({ "server": "srv" }));
    // Changes are gathered for 50 ms; a further one is seen through an answer that came later.
    host.wait_within(Duration::from_millis(200), |_| None::<()>);
    assert_eq!(host.notifications("mcp.changed"), [] as [Value; 0]);
}

fn folders_from_everywhere() {
    let env = TestEnv::new();
    let folder = env.tmp().join("a b é");
    std::fs::create_dir(&folder).expect("a folder");
    let default_directory = |change: &dyn Fn(&mut Value)| -> Outcome {
        let host = Host::spawn(&env, &[]);
        let mut params = host.initialize_params(json!({}), None);
        change(&mut params);
        let result = host.request("initialize", params)?;
        Ok(result["capabilities"]["experimental"]["mcp"]["defaultDirectory"].clone())
    };
    let root = default_directory(&|_| {});
    assert_eq!(root, Ok(json!(env.project())));
    let home = default_directory(&|params| params["rootUri"] = Value::Null);
    assert_eq!(home, Ok(json!(env.home())));
    let uri = url::Url::from_file_path(&folder).expect("absolute").to_string();
    let workspace =
        default_directory(&|params| params["workspaceFolders"] = json!([{ "uri": uri, "name": "w" }]));
    assert_eq!(workspace, Ok(json!(folder)));
    let given =
        default_directory(&|params| params["initializationOptions"] = json!({ "directories": [env.tmp()] }));
    assert_eq!(given, Ok(json!(env.tmp())));
}

fn broken_file_is_reported_with_its_place() {
    let env = TestEnv::new();
    let text = "{\n  \"servers\": {\n    \"a\": { \"command\": }\n  }\n}\n";
    env.write_config_text(text);
    let host = Host::start(&env);
    let status = host.must("mcp.status", json!({}));
    let file = status["files"]
        .as_array()
        .expect("files")
        .iter()
        .find(|file| file["layer"] == "user");
    let fault = &file.expect("the user's file")["fault"];
    assert_eq!(fault["kind"], "config_broken", "{status}");
    assert_eq!(fault["line"], 3, "{fault}");
    assert_eq!(status["servers"], json!([]));
    assert_eq!(
        std::fs::read_to_string(env.data().join("mcp.json")).expect("it stays"),
        text
    );
    let copy = file.expect("the user's file")["setAside"]
        .as_str()
        .expect("a copy is set aside");
    assert_eq!(std::fs::read_to_string(copy).expect("the copy"), text);
    // A write is refused and loses nothing.
    let error = host.ask(
        "mcp.add",
        json!({ "name": "b", "entry": { "command": "x" }, "start": false }),
    );
    assert_eq!(error.expect_err("the file is broken").kind(), "config_broken");
    assert_eq!(
        std::fs::read_to_string(env.data().join("mcp.json")).expect("it stays"),
        text
    );
}

fn lengths_and_types_are_checked() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let here = json!(host.directory());
    let wrong = [
        (json!({}), "/directory"),
        (json!({ "directory": 7 }), "/directory"),
        (json!({ "directory": "" }), "/directory"),
        (json!({ "directory": "x".repeat(4097) }), "/directory"),
        (json!({ "directory": here, "serve": "a" }), "/serve"),
        (json!({ "directory": here, "server": "" }), "/server"),
        (json!({ "directory": here, "server": "é".repeat(201) }), "/server"),
        (json!({ "directory": "relative/path" }), "/directory"),
    ];
    for (params, path) in wrong {
        let error = host.request("mcp.status", params.clone()).expect_err(path);
        assert_eq!((error.code, error.kind()), (-32602, "invalid_params"), "{params}");
        assert_eq!(error.data["path"], path, "{}", error.data);
        assert!(
            error.data["expected"].is_string() || path == "/serve",
            "{}",
            error.data
        );
    }
    // Lengths count characters, not bytes.
    let params = json!({ "directory": here, "server": "é".repeat(200) });
    assert_eq!(
        host.request("mcp.status", params).expect("200 characters")["servers"],
        json!([])
    );
}
