//! Tool calls: the same over every transport, verbatim in both directions, cancelled, timed out.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::handshake::options;
use crate::stories;
use crate::support::{Host, HttpHost, TestEnv, matching};

pub fn stories() -> Vec<Trial> {
    stories!("calls":
        story_over_stdio, story_over_streamable_http, story_over_old_sse,
        progress_has_a_beginning_and_an_end, progress_is_never_late, progress_is_not_sent_without_a_token,
        cancelled_by_request_id, cancelled_by_call_id, silence_times_out, progress_resets_the_clock,
        progress_does_not_last_for_ever, results_are_verbatim, arguments_are_verbatim,
        one_result_too_large, server_errors_pass_whole, tool_errors_are_results, unknown_tool_names_near_ones,
        denied_by_list, one_call_id_at_a_time, slow_calls_block_nothing, hundreds_at_once,
    )
}

/// What a host sees must not depend on the carrier.
fn the_story(env: &TestEnv, entry: &Value, transport: &str, received: &dyn Fn() -> Vec<Value>) {
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(env);
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["connection"]["transport"]),
        (&json!("ready"), &json!(transport)),
        "{record}"
    );
    let tools = host.must("mcp.tools.list", json!({ "server": "srv" }));
    let names: Vec<&Value> = tools["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| &item["name"])
        .collect();
    assert_eq!(names, ["echo", "ask", "long", "never"]);
    assert_eq!(tools["issues"], json!([]));
    // A call.
    let answer = host.call("srv", "echo", json!({ "a": 1.0 })).expect("a result");
    assert_eq!(
        answer,
        json!({ "result": { "content": [{ "type": "text", "text": "ok" }] }, "issues": [] })
    );
    // A question.
    let call = host.send_here(
        "mcp.tool.call",
        json!({ "server": "srv", "name": "ask", "call": "c1" }),
    );
    let question = host.wait_question(0);
    assert_eq!(
        (&question["type"], &question["call"], &question["tool"]),
        (&json!("form"), &json!("c1"), &json!("ask"))
    );
    assert_eq!(
        host.answer(&question, "accept", Some(json!({ "n": "42" })))
            .expect("an answer")["sent"],
        "accept"
    );
    assert!(call.wait().is_ok());
    let reply = crate::support::clock::eventually("the reply", || {
        received()
            .into_iter()
            .find(|message| message["id"] == "ask-1" && message.get("method").is_none())
    });
    assert_eq!(
        reply["result"],
        json!({ "action": "accept", "content": { "n": 42 } })
    );
    // Progress.
    let params = json!({ "server": "srv", "name": "long", "workDoneToken": "t1" });
    assert!(host.ask("mcp.tool.call", params).is_ok());
    let kinds: Vec<Value> = host
        .notifications("$/progress")
        .iter()
        .map(|one| one["value"]["kind"].clone())
        .collect();
    assert_eq!(
        (kinds.first(), kinds.last()),
        (Some(&json!("begin")), Some(&json!("end"))),
        "{kinds:?}"
    );
    assert!(kinds.contains(&json!("report")), "{kinds:?}");
    // A cancel reaches the server.
    let call = host.send_call("srv", "never", json!({}));
    let request = crate::support::clock::eventually("the call", || {
        received()
            .into_iter()
            .find(|message| message["params"]["name"] == "never")
    });
    call.cancel();
    assert_eq!(call.wait().expect_err("cancelled").code, -32800);
    let cancelled = crate::support::clock::eventually("the cancel", || {
        received()
            .into_iter()
            .find(|message| message["method"] == "notifications/cancelled")
    });
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(
        host.must("mcp.stop", json!({ "server": "srv" }))["server"]["state"],
        "stopped"
    );
}

fn story_server() -> Value {
    let schema = json!({ "type": "object" });
    let tool = |name: &str| json!({ "name": name, "inputSchema": schema });
    let question = json!({ "message": "how many?", "requestedSchema": {
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
    } });
    json!({
        "tools/list": { "tools": [tool("echo"), tool("ask"), tool("long"), tool("never")] },
        "tools/call:ask": { "$ask": [{ "method": "elicitation/create", "params": question }] },
        "tools/call:long": { "$progress": [{ "progress": 1, "total": 2, "message": "half" }, { "progress": 2, "total": 2 }] },
        "tools/call:never": { "$none": true },
    })
}

fn story_over_stdio() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", story_server());
    the_story(&env, &server.entry(), "stdio", &|| server.log.received());
}

fn story_over_streamable_http() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&story_server());
    the_story(&env, &server.entry(), "streamable-http", &|| server.received());
}

fn story_over_old_sse() {
    let env = TestEnv::new();
    let server = HttpHost::bind();
    let rules =
        json!([{ "match": "GET /sse", "respond": { "legacy_sse": { "endpoint": "/messages?sid=1" } } }]);
    server.serve_rules(&rules, &story_server());
    let entry = json!({ "url": format!("{}/sse", server.origin), "transport": "sse" });
    the_story(&env, &entry, "sse", &|| server.received());
}

fn one(env: &TestEnv, mcp: Value) -> (Host, crate::support::StdioServer) {
    let server = env.plain_server("srv", mcp);
    env.write_config(&json!({ "srv": server.entry() }));
    (Host::start(env), server)
}

fn progress_has_a_beginning_and_an_end() {
    let env = TestEnv::new();
    let reports = json!([
        { "progress": 0.25, "total": 1, "message": "quarter" },
        { "$pause_ms": 150 },
        { "progress": 0.5, "total": 1 },
        { "$pause_ms": 150 },
        { "progress": 7 },
    ]);
    let (host, _server) = one(&env, json!({ "tools/call": { "$progress": reports } }));
    host.start_server("srv");
    let params = json!({ "server": "srv", "name": "echo", "workDoneToken": 5 });
    let call = host.send_here("mcp.tool.call", params);
    let id = call.id.clone();
    assert!(call.wait().is_ok());
    let progress = host.notifications("$/progress");
    let values: Vec<&Value> = progress.iter().map(|one| &one["value"]).collect();
    assert!(progress.iter().all(|one| one["token"] == 5), "{progress:?}");
    assert_eq!(
        (&values[0]["kind"], &values[0]["cancellable"]),
        (&json!("begin"), &json!(true))
    );
    assert_eq!(values.last().expect("an end")["kind"], "end");
    let quarter = values
        .iter()
        .find(|value| value["message"] == "quarter")
        .expect("the first report");
    assert_eq!(
        (&quarter["kind"], &quarter["progress"], &quarter["percentage"]),
        (&json!("report"), &json!(0.25), &json!(25))
    );
    let open = values
        .iter()
        .find(|value| value["progress"].as_f64() == Some(7.0))
        .expect("the last report");
    assert_eq!(open.get("percentage"), None, "no total, no percentage: {open}");
    // `end` comes before the answer.
    let messages = host.messages();
    let answer = messages
        .iter()
        .position(|one| one.message.method.is_none() && one.message.id == Some(id.clone()));
    let end = messages
        .iter()
        .rposition(|one| one.message.method.as_deref() == Some("$/progress"));
    assert!(end < answer);
}

/// Reports that come at once: the first is sent, the newest follows while the server works on, and what is newest when
/// the result comes goes before it.
fn progress_is_never_late() {
    let env = TestEnv::new();
    let reports: Vec<Value> = (1..=9).map(|n| json!({ "progress": n, "total": 10 })).collect();
    let (host, _server) = one(
        &env,
        json!({
            "tools/list": { "tools": [{ "name": "long", "inputSchema": {} }, { "name": "quick", "inputSchema": {} }] },
            "tools/call:long": { "$progress": reports, "$none": true },
            "tools/call:quick": { "$progress": reports },
        }),
    );
    let send = |name: &str| {
        let params = json!({ "server": "srv", "name": name, "workDoneToken": name });
        host.send_here("mcp.tool.call", params)
    };
    let of = |name: &str| -> Vec<Value> {
        let all = host.notifications("$/progress");
        all.into_iter()
            .filter(|one| one["token"] == name)
            .map(|one| one["value"].clone())
            .collect()
    };
    let call = send("long");
    host.wait_notification("$/progress", |params| params["value"]["percentage"] == 90);
    assert!(call.try_get().is_none(), "the server works on");
    call.cancel();
    assert!(call.wait().is_err());

    let call = send("quick");
    let id = call.id.clone();
    assert!(call.wait().is_ok());
    let values = of("quick");
    let n = values.len();
    assert_eq!(
        (&values[n - 1]["kind"], &values[n - 2]["progress"]),
        (&json!("end"), &json!(9)),
        "{values:?}"
    );
    assert!(n <= 5, "at most ten a second: {values:?}");
    let messages = host.messages();
    let at = |is: &dyn Fn(&crate::support::inbox::Received) -> bool| messages.iter().rposition(|one| is(one));
    let last = at(&|one| one.message.method.as_deref() == Some("$/progress"));
    let answer = at(&|one| one.message.method.is_none() && one.message.id == Some(id.clone()));
    assert!(last < answer);
}

fn progress_is_not_sent_without_a_token() {
    let env = TestEnv::new();
    let (host, _server) = one(
        &env,
        json!({ "tools/call": { "$progress": [{ "progress": 1 }] } }),
    );
    assert!(host.call("srv", "echo", json!({})).is_ok());
    assert_eq!(host.notifications("$/progress"), [] as [Value; 0]);
}

fn cancelled_by_request_id() {
    let env = TestEnv::new();
    let (host, server) = one(&env, json!({ "tools/call": { "$none": true } }));
    let call = host.send_call("srv", "echo", json!({}));
    let request = server.log.wait_request("tools/call");
    call.cancel();
    let error = call.wait().expect_err("cancelled");
    assert_eq!((error.code, error.kind()), (-32800, "cancelled"));
    let cancelled = server.log.wait_request("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    // Unknown ids are nobody's business.
    host.notify("$/cancelRequest", json!({ "id": "never used" }));
    assert_eq!(host.status("srv")["state"], "ready");
}

fn cancelled_by_call_id() {
    let env = TestEnv::new();
    let (host, server) = one(&env, json!({ "tools/call": { "$none": true } }));
    let call = host.send_here(
        "mcp.tool.call",
        json!({ "server": "srv", "name": "echo", "call": "c" }),
    );
    server.log.wait_request("tools/call");
    assert_eq!(
        host.request("mcp.call.cancel", json!({ "call": "other" })),
        Ok(json!({ "cancelled": false }))
    );
    assert_eq!(
        host.request("mcp.call.cancel", json!({ "call": "c" })),
        Ok(json!({ "cancelled": true }))
    );
    let error = call.wait().expect_err("cancelled");
    assert_eq!(
        (error.code, error.kind(), &error.data["by"]),
        (-32055, "call_cancelled", &json!("host"))
    );
    server.log.wait_request("notifications/cancelled");
    assert_eq!(
        host.request("mcp.call.cancel", json!({ "call": "c" })),
        Ok(json!({ "cancelled": false }))
    );
}

fn silence_times_out() {
    let env = TestEnv::new();
    let (host, server) = one(&env, json!({ "tools/call:never": { "$none": true } }));
    host.start_server("srv");
    let start = Instant::now();
    let params = json!({ "server": "srv", "name": "echo", "timeoutMs": 1000, "arguments": {} });
    assert!(host.ask("mcp.tool.call", params).is_ok());
    let never = json!({ "server": "srv", "name": "never", "timeoutMs": 1000 });
    let error = host.ask("mcp.tool.call", never).expect_err("silence");
    assert_eq!((error.code, error.kind()), (-32055, "timed_out"));
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    server.log.wait_request("notifications/cancelled");
    assert!(host.call("srv", "echo", json!({})).is_ok());
}

fn progress_resets_the_clock() {
    let env = TestEnv::new();
    let mut reports = Vec::new();
    for step in 1..=4 {
        reports.push(json!({ "$pause_ms": 600 }));
        reports.push(json!({ "progress": step }));
    }
    let (host, _server) = one(&env, json!({ "tools/call": { "$progress": reports } }));
    host.start_server("srv");
    // Also without a token of the host's own.
    let params = json!({ "server": "srv", "name": "echo", "timeoutMs": 1000 });
    let answer = host.ask("mcp.tool.call", params);
    assert!(answer.is_ok(), "{answer:?}");
}

/// Ten times the timeout in all.
fn progress_does_not_last_for_ever() {
    let env = TestEnv::new();
    let mut reports = Vec::new();
    for step in 1..=30 {
        reports.push(json!({ "$pause_ms": 500 }));
        reports.push(json!({ "progress": step }));
    }
    let (host, _server) = one(&env, json!({ "tools/call": { "$progress": reports } }));
    host.start_server("srv");
    let start = Instant::now();
    let error = host.ask(
        "mcp.tool.call",
        json!({ "server": "srv", "name": "echo", "timeoutMs": 1000 }),
    );
    assert_eq!(error.expect_err("it is enough").kind(), "timed_out");
    let took = start.elapsed();
    assert!(
        (Duration::from_secs(9)..Duration::from_secs(13)).contains(&took),
        "{took:?}"
    );
}

/// What JSON allows and parsers lose: order of members, spelling of numbers, doubles, depth, surrogates.
pub fn oddities() -> Vec<String> {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    vec![
        "{\"z\":1,\"a\":2,\"m\":{\"y\":1,\"b\":2}}".to_owned(),
        "{\"n\":[1.10,1e400,-0,1E+2,0.1e-7,12345678901234567890123,9007199254740993]}".to_owned(),
        "{\"s\":\"\\ud800 \\udfff \\u0000 \\/ \\u00e9 é 😀\"}".to_owned(),
        "{\"d\":1,\"d\":2,\"d\":{\"e\":1,\"e\":1}}".to_owned(),
        format!("{{\"deep\":{deep}}}"),
        "{\"resultType\":\"complete\",\"_meta\":{\"x/y\":null},\"unknown\":[{\"type\":\"hologram\"}]}"
            .to_owned(),
    ]
}

fn results_are_verbatim() {
    let env = TestEnv::new();
    let mut mcp = serde_json::Map::new();
    for (number, odd) in oddities().iter().enumerate() {
        let raw = format!("{{\"content\":[],\"odd\":{odd}}}");
        mcp.insert(format!("tools/call:t{number}"), json!({ "$raw": raw }));
    }
    let (host, _server) = one(&env, Value::Object(mcp));
    for (number, odd) in oddities().iter().enumerate() {
        let received = host.send_call("srv", &format!("t{number}"), json!({})).wait_raw();
        let wanted = format!("\"result\":{{\"content\":[],\"odd\":{odd}}}");
        assert!(
            received.text.contains(&wanted),
            "wanted {wanted}, got {}",
            matching::cut(&received.text)
        );
    }
}

fn arguments_are_verbatim() {
    let env = TestEnv::new();
    let (host, server) = one(&env, json!({ "tools/call": { "$echo": true } }));
    for (number, odd) in oddities().into_iter().enumerate() {
        let params = format!(
            "{{\"directory\":{},\"server\":\"srv\",\"name\":\"echo\",\"arguments\":{odd}}}",
            json!(host.directory())
        );
        let received = host
            .send_as(json!(format!("odd {number}")), "mcp.tool.call", &params)
            .wait_raw();
        assert!(
            received.text.contains(&format!("\"echo\":{odd}")),
            "wanted {odd}, got {}",
            matching::cut(&received.text)
        );
        let line = server
            .log
            .lines()
            .into_iter()
            .rfind(|line| line.contains("tools/call"))
            .expect("it arrived");
        assert!(line.contains(&format!("\"arguments\":{odd}")), "{line}");
    }
    // Lines end at a newline, so white space between values may not hold one.
    let params = format!(
        "{{\"directory\":{},\"server\":\"srv\",\"name\":\"echo\",\"arguments\":{{\n  \"a\": 1,\r\n  \"b\": \"x\\ny\"\n}}}}",
        json!(host.directory())
    );
    let received = host.send_as(json!("lines"), "mcp.tool.call", &params).wait();
    assert_eq!(
        received.expect("one message")["result"]["echo"],
        json!({ "a": 1, "b": "x\ny" })
    );
}

fn one_result_too_large() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({
            "tools/call:big": { "content": [{ "type": "text", "text": "x".repeat(100_000) }] },
            "tools/call:slow": { "$delay_ms": 600 },
        }),
    );
    let http = HttpHost::plain(
        &json!({ "tools/call:big": { "content": [{ "type": "text", "text": "x".repeat(100_000) }] } }),
    );
    env.write_config(&json!({ "srv": server.entry(), "web": http.entry() }));
    let host = Host::start_with(&env, options(json!({ "maxMessageBytes": 65536 })));
    host.start_server("srv");
    let slow = host.send_call("srv", "slow", json!({}));
    for name in ["srv", "web"] {
        let error = host.call(name, "big", json!({})).expect_err("over the limit");
        assert_eq!(
            (error.code, error.kind(), &error.data["limit"]),
            (-32055, "too_large", &json!(65536)),
            "{name}"
        );
        assert!(
            host.call(name, "echo", json!({})).is_ok(),
            "{name}: only that call"
        );
    }
    assert!(slow.wait().is_ok(), "others in flight go on");
    assert_eq!(server.log.starts().len(), 1);
}

fn server_errors_pass_whole() {
    let env = TestEnv::new();
    let error = json!({ "code": -32099, "message": "quota", "data": { "left": [0, null], "z": 1, "a": 2 } });
    let (host, _server) = one(&env, json!({ "tools/call": { "$error": error } }));
    let found = host
        .call("srv", "echo", json!({}))
        .expect_err("the server says no");
    assert_eq!((found.code, found.kind()), (-32055, "mcp_error"));
    assert_eq!(found.data["mcp"].to_string(), error.to_string());
    assert!(found.message.contains("quota"), "{}", found.message);
}

fn tool_errors_are_results() {
    let env = TestEnv::new();
    let (host, _server) = one(&env, json!({ "tools/call": { "isError": true, "content": [] } }));
    let answer = host
        .call("srv", "echo", json!({}))
        .expect("a tool's own error is a result");
    assert_eq!(
        answer["result"],
        json!({ "isError": true, "content": [] }).clone()
    );
}

fn unknown_tool_names_near_ones() {
    let env = TestEnv::new();
    let (host, _server) = one(
        &env,
        json!({ "tools/call": { "$error": { "code": -32602, "message": "Unknown tool: ecko" } } }),
    );
    host.start_server("srv");
    let error = host.call("srv", "ecko", json!({})).expect_err("no such tool");
    assert_eq!(
        (error.code, error.kind(), &error.data["what"]),
        (-32052, "not_found", &json!("tool"))
    );
    assert_eq!(error.data["candidates"], json!(["echo"]));
}

fn denied_by_list() {
    let env = TestEnv::new();
    let list = json!({ "tools": [
        { "name": "read_a", "inputSchema": { "type": "object" } },
        { "name": "write_a", "inputSchema": { "type": "object" } },
    ] });
    let server = env.plain_server("srv", json!({ "tools/list": list }));
    env.write_config(&json!({ "srv": { "command": server.command, "tools": { "deny": ["write*"] } } }));
    let host = Host::start(&env);
    let page = host.must("mcp.tools.list", json!({}));
    let hidden: Vec<&Value> = page["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| &item["hidden"])
        .collect();
    assert_eq!(hidden, [&Value::Null, &json!("denied")]);
    assert!(host.call("srv", "read_a", json!({})).is_ok());
    let error = host.call("srv", "write_a", json!({})).expect_err("denied");
    assert_eq!(
        (error.code, error.kind(), &error.data["by"]),
        (-32057, "denied", &json!("list"))
    );
    assert_eq!(server.log.requests("tools/call").len(), 1);
}

fn one_call_id_at_a_time() {
    let env = TestEnv::new();
    let (host, server) = one(&env, json!({ "tools/call": { "$none": true } }));
    let params = json!({ "server": "srv", "name": "echo", "call": "c", "workDoneToken": "t" });
    let first = host.send_here("mcp.tool.call", params);
    server.log.wait_request("tools/call");
    for params in [
        json!({ "server": "srv", "name": "echo", "call": "c" }),
        json!({ "server": "srv", "name": "echo", "workDoneToken": "t" }),
    ] {
        let error = host.ask("mcp.tool.call", params).expect_err("in use");
        assert_eq!((error.code, error.kind()), (-32053, "in_use"));
    }
    first.cancel();
    assert!(first.wait().is_err());
}

fn slow_calls_block_nothing() {
    let env = TestEnv::new();
    let (host, server) = one(&env, json!({ "tools/call:never": { "$none": true } }));
    let pending: Vec<_> = (0..20)
        .map(|_| host.send_call("srv", "never", json!({})))
        .collect();
    crate::support::clock::eventually("all to arrive", || {
        (server.log.requests("tools/call").len() == 20).then_some(())
    });
    assert!(host.call("srv", "echo", json!({})).is_ok());
    for call in &pending {
        call.cancel();
    }
    for call in pending {
        assert_eq!(call.wait().expect_err("cancelled").code, -32800);
    }
}

fn hundreds_at_once() {
    let env = TestEnv::new();
    let (host, _server) = one(&env, json!({ "tools/call": { "$echo": true } }));
    let pending: Vec<_> = (0..300)
        .map(|number| (number, host.send_call("srv", "echo", json!({ "n": number }))))
        .collect();
    for (number, call) in pending {
        assert_eq!(call.wait().expect("a result")["result"]["echo"]["n"], number);
    }
}
