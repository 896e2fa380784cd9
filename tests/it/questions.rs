//! Questions of servers to the person: shown, checked, answered, lapsed, or declined unseen.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::handshake::options;
use crate::stories;
use crate::support::host::Outcome;
use crate::support::{Host, HttpHost, StdioServer, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("questions":
        every_kind_of_field, checked_while_typing, kept_until_it_fits, what_does_not_fit_is_a_cancel,
        answered_once, one_at_a_time, sessions_side_by_side, listed_after_a_reload, unseen_without_a_channel,
        links_when_declared, links_as_they_were_checked, links_otherwise_declined, ends_with_its_call, ends_with_the_cancel,
        withdrawn_by_the_server, ends_with_its_server, ends_with_the_session, refused_by_the_entry,
        too_many_in_a_minute, credentials_are_not_asked_for, over_the_standing_stream, url_required_error,
    )
}

fn form(properties: Value, required: Value) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "message": "m",
            "requestedSchema": { "type": "object", "properties": properties, "required": required },
        },
    })
}

fn text_form() -> Value {
    form(json!({ "s": { "type": "string" } }), json!(["s"]))
}

fn asking(env: &TestEnv, call: Value) -> (Host, StdioServer) {
    let server = env.plain_server("srv", json!({ "tools/call": call }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(env);
    host.start_server("srv");
    (host, server)
}

/// Whatever letters a server writes it in, and wherever it says what it wants.
fn credentials_are_not_asked_for() {
    let env = TestEnv::new();
    let declined = [
        ("m", json!({ "type": "string", "title": "P\u{200b}assword" })),
        ("m", json!({ "type": "string", "title": "P\u{430}ssword" })),
        ("m", json!({ "type": "string", "title": "API-Schlüssel" })),
        ("m", json!({ "type": "string", "title": "2FA code" })),
        ("m", json!({ "type": "string", "description": "your password" })),
        ("Please enter your GitHub password", json!({ "type": "string" })),
        ("Type the PIN of your card", json!({ "type": "integer" })),
    ];
    let shown = [
        (
            "m",
            json!({ "type": "string", "title": "Postal code", "description": "The name of the token file" }),
        ),
        (
            "Which branch?",
            json!({ "type": "string", "description": "Where the password store lies" }),
        ),
        ("Shall I reset your password?", json!({ "type": "boolean" })),
    ];
    let servers = declined
        .iter()
        .chain(&shown)
        .enumerate()
        .map(|(at, (message, field))| {
            let mut request = form(json!({ "x": field }), json!(["x"]));
            request["params"]["message"] = json!(message);
            let name = format!("s{at}");
            let server = env.plain_server(&name, json!({ "tools/call": { "$ask": [request] } }));
            (name, server.entry())
        });
    env.write_config(&Value::Object(servers.collect()));
    let host = Host::start(&env);
    for (at, (message, field)) in declined.iter().enumerate() {
        let answer = host
            .call(&format!("s{at}"), "echo", json!({}))
            .expect("the call goes on");
        assert_eq!(
            answer["issues"][0]["kind"], "declined_unseen",
            "{message} {field}"
        );
        assert!(
            answer.to_string().contains("credential"),
            "{message} {field} {answer}"
        );
    }
    assert_eq!(host.notifications("mcp.question"), [] as [Value; 0]);
    for (at, (message, _)) in shown.iter().enumerate() {
        let call = host.send_call(&format!("s{}", declined.len() + at), "echo", json!({}));
        let question = host.wait_question(at);
        assert_eq!(question["message"], *message);
        host.answer(&question, "decline", None).expect("declined");
        call.wait().expect("the call goes on");
    }
}

fn every_kind_of_field() {
    let env = TestEnv::new();
    let choice = |count: usize| {
        (0..count)
            .map(|number| json!(format!("o{number}")))
            .collect::<Vec<_>>()
    };
    let request = form(
        json!({
            "z_first": { "type": "string", "title": "First", "description": "d", "minLength": 2, "maxLength": 5, "default": "abc" },
            "mail": { "type": "string", "format": "email" },
            "n": { "type": "number", "minimum": 0.5, "maximum": 1.5 },
            "i": { "type": "integer", "default": 3 },
            "b": { "type": "boolean", "default": true },
            "few": { "type": "string", "enum": choice(3) },
            "many": { "type": "string", "enum": choice(10) },
            "multi": { "type": "array", "items": { "type": "string", "enum": ["x", "y"] }, "maxItems": 1 },
        }),
        json!(["z_first", "b"]),
    );
    let (host, server) = asking(&env, json!({ "$ask": [request] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    assert_eq!(question["title"], "srv asks for input");
    assert_eq!(
        (&question["message"], &question["server"]),
        (&json!("m"), &json!("srv"))
    );
    let fields = question["fields"].as_array().expect("fields");
    let kinds: Vec<(&str, &str)> = fields
        .iter()
        .map(|field| {
            (
                field["name"].as_str().expect("a name"),
                field["type"].as_str().expect("a type"),
            )
        })
        .collect();
    let expected = [
        ("z_first", "text"),
        ("mail", "text"),
        ("n", "number"),
        ("i", "integer"),
        ("b", "boolean"),
        ("few", "choice"),
        ("many", "choice"),
        ("multi", "multi"),
    ];
    assert_eq!(kinds, expected, "the order is the server's");
    let first = json!({
        "type": "text", "name": "z_first", "label": "First", "description": "d", "required": true,
        "default": "abc", "minLength": 2, "maxLength": 5,
    });
    assert_eq!(fields[0], first);
    assert_eq!(fields[1]["format"], "email");
    assert_eq!(
        (&fields[2]["minimum"], &fields[2]["maximum"]),
        (&json!(0.5), &json!(1.5))
    );
    assert_eq!(
        (&fields[5]["typed"], &fields[6]["typed"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(fields[5]["options"][0], json!({ "value": "o0", "label": "o0" }));
    let content =
        json!({ "z_first": "ok", "n": "1", "i": 7, "b": false, "few": "o1", "many": "o9", "multi": ["y"] });
    let answered = host
        .answer(&question, "accept", Some(content))
        .expect("an answer");
    assert_eq!(answered, json!({ "sent": "accept", "problems": [] }));
    assert!(call.wait().is_ok());
    let reply = server.log.wait_reply("ask-1");
    let sent =
        json!({ "z_first": "ok", "n": 1, "i": 7, "b": false, "few": "o1", "many": "o9", "multi": ["y"] });
    assert_eq!(
        (&reply["result"]["action"], &reply["result"]["content"]),
        (&json!("accept"), &sent)
    );
    let closed = host.wait_notification("mcp.question.closed", |_| true);
    assert_eq!(
        (&closed["question"], &closed["reason"]),
        (&question["id"], &json!("answered"))
    );
}

fn number_form() -> Value {
    form(
        json!({ "n": { "type": "integer", "minimum": 0 }, "s": { "type": "string", "maxLength": 3 } }),
        json!(["n"]),
    )
}

fn answer_with(host: &Host, question: &Value, content: Value, more: Value) -> Outcome {
    let mut params = json!({ "question": question["id"], "action": "accept", "content": content });
    for (key, value) in more.as_object().into_iter().flatten() {
        params[key] = value.clone();
    }
    host.request("mcp.answer", params)
}

fn checked_while_typing() {
    let env = TestEnv::new();
    let (host, _server) = asking(&env, json!({ "$ask": [number_form()] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    let check = json!({ "check": true });
    let rules = |content: Value| {
        let answer = answer_with(&host, &question, content, check.clone()).expect("a verdict");
        assert_eq!(answer["sent"], "nothing");
        let problems = answer["problems"].as_array().expect("a list").clone();
        problems
            .iter()
            .map(|one| format!("{}:{}", one["field"], one["rule"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(rules(json!({ "n": "42xyz" })), ["n:type"]);
    assert_eq!(rules(json!({ "n": -1 })), ["n:range"]);
    assert_eq!(rules(json!({ "n": 1.5 })), ["n:type"]);
    assert_eq!(rules(json!({})), ["n:required"]);
    assert_eq!(rules(json!({ "n": 1, "s": "long" })), ["s:length"]);
    assert_eq!(rules(json!({ "n": 1, "other": "x" })), ["other:unknown"]);
    assert_eq!(rules(json!({ "n": "42" })), [] as [&str; 0]);
    let refused = host.request("mcp.questions", json!({ "directory": "/w" }));
    assert!(
        format!("{refused:?}").contains("`directory` is not known; this method takes no parameters"),
        "{refused:?}"
    );
    let open = host.request("mcp.questions", json!({})).expect("a list");
    assert_eq!(open["open"][0]["id"], question["id"], "the question stays");
    host.answer(&question, "decline", None).expect("an answer");
    assert!(call.wait().is_ok());
}

fn kept_until_it_fits() {
    let env = TestEnv::new();
    let (host, server) = asking(&env, json!({ "$ask": [number_form()] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    let keep = json!({ "onInvalid": "keep" });
    let answer = answer_with(&host, &question, json!({ "n": "42xyz" }), keep.clone()).expect("a verdict");
    assert_eq!(
        (&answer["sent"], &answer["problems"][0]["field"]),
        (&json!("nothing"), &json!("n"))
    );
    assert!(
        answer["problems"][0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("42xyz")),
        "{answer}"
    );
    let answer = answer_with(&host, &question, json!({ "n": "42" }), keep).expect("an answer");
    assert_eq!(answer, json!({ "sent": "accept", "problems": [] }));
    assert!(call.wait().is_ok());
    assert_eq!(
        server.log.wait_reply("ask-1")["result"]["content"],
        json!({ "n": 42 })
    );
}

fn what_does_not_fit_is_a_cancel() {
    let env = TestEnv::new();
    let (host, server) = asking(&env, json!({ "$ask": [number_form()] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    let answer = answer_with(&host, &question, json!({ "n": "x" }), json!({})).expect("an answer");
    assert_eq!(
        (&answer["sent"], &answer["problems"][0]["rule"]),
        (&json!("cancel"), &json!("type"))
    );
    assert!(call.wait().is_ok());
    assert_eq!(
        server.log.wait_reply("ask-1")["result"],
        json!({ "action": "cancel" })
    );
}

fn answered_once() {
    let env = TestEnv::new();
    let (host, _server) = asking(&env, json!({ "$ask": [text_form()] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    host.answer(&question, "decline", None).expect("the first");
    let error = host
        .answer(&question, "accept", Some(json!({ "s": "x" })))
        .expect_err("the second");
    assert_eq!(
        (error.code, error.kind(), &error.data["reason"]),
        (-32053, "question_closed", &json!("answered"))
    );
    let error = host
        .answer(&json!({ "id": "no-such" }), "decline", None)
        .expect_err("never asked");
    assert_eq!(error.kind(), "question_closed");
    assert!(call.wait().is_ok());
}

fn one_at_a_time() {
    let env = TestEnv::new();
    let (host, _server) = asking(&env, json!({ "$ask": [text_form()] }));
    let calls: Vec<_> = (0..3).map(|_| host.send_call("srv", "echo", json!({}))).collect();
    host.wait_question(0);
    let waiting = crate::support::clock::eventually("the others to wait", || {
        let list = host.request("mcp.questions", json!({})).expect("a list");
        (list["waiting"] == 2).then_some(list)
    });
    assert_eq!(waiting["open"].as_array().map(Vec::len), Some(1));
    assert_eq!(host.notifications("mcp.question").len(), 1);
    for index in 0..3 {
        let question = host.wait_question(index);
        host.answer(&question, "accept", Some(json!({ "s": "v" })))
            .expect("an answer");
    }
    for call in calls {
        assert!(call.wait().is_ok());
    }
}

fn sessions_side_by_side() {
    let env = TestEnv::new();
    let asks = json!({ "tools/call": { "$ask": [text_form()] } });
    let (one, two) = (
        env.plain_server("one", asks.clone()),
        env.plain_server("two", asks),
    );
    env.write_config(&json!({ "one": one.entry(), "two": two.entry() }));
    let host = Host::start(&env);
    let call = |server: &str, session: &str| {
        host.send_here(
            "mcp.tool.call",
            json!({ "server": server, "name": "echo", "session": session }),
        )
    };
    let calls = [call("one", "s1"), call("two", "s2")];
    let questions = [host.wait_question(0), host.wait_question(1)];
    let mut sessions: Vec<&str> = questions
        .iter()
        .filter_map(|question| question["session"].as_str())
        .collect();
    sessions.sort_unstable();
    assert_eq!(sessions, ["s1", "s2"]);
    for question in &questions {
        host.answer(question, "decline", None).expect("an answer");
    }
    for call in calls {
        assert!(call.wait().is_ok());
    }
}

fn listed_after_a_reload() {
    let env = TestEnv::new();
    let (host, _server) = asking(&env, json!({ "$ask": [text_form()] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    let list = host.request("mcp.questions", json!({})).expect("a list");
    assert_eq!(list, json!({ "open": [question], "waiting": 0 }));
    assert_eq!(host.must("mcp.status", json!({}))["questions"], 1);
    host.answer(&question, "cancel", None).expect("an answer");
    assert!(call.wait().is_ok());
}

fn unseen_without_a_channel() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$ask": [text_form()] } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start_with(&env, options(json!({})));
    let answer = host.call("srv", "echo", json!({})).expect("the call goes on");
    assert_eq!(answer["issues"][0]["kind"], "declined_unseen");
    assert!(answer["issues"][0]["message"].is_string());
    assert_eq!(
        server.log.wait_reply("ask-1")["result"],
        json!({ "action": "decline" })
    );
    assert_eq!(host.notifications("mcp.question"), [] as [Value; 0]);
}

fn link() -> Value {
    json!({ "method": "elicitation/create", "params": {
        "mode": "url", "message": "Sign in", "url": "https://h.example/auth?x=1", "elicitationId": "e-1",
    } })
}

/// What is shown and opened is the address that was checked, however the server spelled it.
fn links_as_they_were_checked() {
    let env = TestEnv::new();
    let cases = [
        ("https://h.example/\n\u{1b}[2J", Some("https://h.example/%1B[2J")),
        (
            "  https://h.example\\@evil.example",
            Some("https://h.example/@evil.example"),
        ),
        (
            "ht\ttps:\\\\H.Example/\u{202e}x",
            Some("https://h.example/%E2%80%AEx"),
        ),
        (
            "https://g\u{43e}od.example/",
            Some("https://xn--god-sed.example/"),
        ),
        ("javascript:alert(1)//https://h.example", None),
        ("file:///etc/passwd", None),
        ("vscode://h.example/x", None),
    ];
    let mut entries = serde_json::Map::new();
    for (index, (written, _)) in cases.iter().enumerate() {
        let mut ask = link();
        ask["params"]["url"] = json!(written);
        let server = env.plain_server(&format!("s{index}"), json!({ "tools/call": { "$ask": [ask] } }));
        entries.insert(format!("s{index}"), server.entry());
    }
    env.write_config(&Value::Object(entries));
    let capabilities = json!({ "questions": true, "urlQuestions": true, "openUrl": true });
    let host = Host::start_with(&env, options(json!({ "capabilities": capabilities })));
    let mut opened = Vec::new();
    for (index, (written, checked)) in cases.iter().enumerate() {
        let call = host.send_call(&format!("s{index}"), "echo", json!({}));
        if let Some(checked) = checked {
            let question = host.wait_question(opened.len());
            assert_eq!(question["url"], *checked, "{written:?}");
            host.answer(&question, "accept", None).expect("an answer");
            opened.push(*checked);
        }
        let _ = call.wait();
    }
    let messages = host.messages();
    let shown: Vec<Value> = messages
        .iter()
        .filter(|one| one.message.method.as_deref() == Some("window/showDocument"))
        .map(|one| one.params()["uri"].take())
        .collect();
    assert_eq!(shown, opened);
    assert_eq!(host.notifications("mcp.question").len(), opened.len());
}

fn links_when_declared() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$ask": [link()] } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let capabilities = json!({ "questions": true, "urlQuestions": true, "openUrl": true });
    let host = Host::start_with(&env, options(json!({ "capabilities": capabilities })));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    assert_eq!(
        (&question["type"], &question["url"], &question["host"]),
        (
            &json!("url"),
            &json!("https://h.example/auth?x=1"),
            &json!("h.example")
        )
    );
    let shown = |host: &Host| {
        let messages = host.messages();
        messages
            .iter()
            .filter(|one| one.message.method.as_deref() == Some("window/showDocument"))
            .map(|one| one.params())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&host),
        [] as [Value; 0],
        "nothing opens before the person agreed"
    );
    host.answer(&question, "accept", None).expect("an answer");
    assert!(call.wait().is_ok());
    assert_eq!(
        shown(&host),
        [json!({ "uri": "https://h.example/auth?x=1", "external": true, "takeFocus": true })]
    );
    assert_eq!(
        server.log.wait_reply("ask-1")["result"],
        json!({ "action": "accept" })
    );
    assert_eq!(env.opened(), [] as [&str; 0]);
    let initialize = server.log.wait_request("initialize");
    assert_eq!(
        initialize["params"]["capabilities"]["elicitation"]["url"],
        json!({})
    );
}

fn links_otherwise_declined() {
    let env = TestEnv::new();
    let (host, server) = asking(&env, json!({ "$ask": [link()] }));
    let answer = host.call("srv", "echo", json!({})).expect("the call goes on");
    assert_eq!(answer["issues"][0]["kind"], "declined_unseen");
    assert_eq!(
        server.log.wait_reply("ask-1")["result"],
        json!({ "action": "decline" })
    );
}

#[track_caller]
fn closed(host: &Host, question: &Value, reason: &str) {
    let closed = host.wait_notification("mcp.question.closed", |closed| {
        closed["question"] == question["id"]
    });
    assert_eq!(closed["reason"], reason);
    let error = host.answer(question, "decline", None).expect_err("it is closed");
    assert_eq!(
        (error.kind(), &error.data["reason"]),
        ("question_closed", &json!(reason))
    );
}

/// The server did not wait for the answer.
fn ends_with_its_call() {
    let env = TestEnv::new();
    let mut request = text_form();
    request["jsonrpc"] = json!("2.0");
    request["id"] = json!("early");
    let before = json!([request, { "$pause_ms": 300 }]);
    let (host, server) = asking(&env, json!({ "$before": before }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    assert!(call.wait().is_ok());
    closed(&host, &question, "call_ended");
    assert_eq!(
        server.log.wait_reply("early")["result"],
        json!({ "action": "cancel" })
    );
}

fn ends_with_the_cancel() {
    let env = TestEnv::new();
    let (host, server) = asking(&env, json!({ "$ask": [text_form()] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    call.cancel();
    assert_eq!(call.wait().expect_err("cancelled").code, -32800);
    closed(&host, &question, "call_cancelled");
    assert_eq!(
        server.log.wait_reply("ask-1")["result"],
        json!({ "action": "cancel" })
    );
}

fn withdrawn_by_the_server() {
    let env = TestEnv::new();
    let withdraw =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "ask-1" } });
    let actions = json!([{ "wait_ms": 200 }, { "out": withdraw.to_string() }, { "wait_ms": 200 }]);
    let (host, _server) = asking(&env, json!({ "$ask": [text_form()], "$while_asking": actions }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    closed(&host, &question, "withdrawn");
    assert!(call.wait().is_ok());
}

fn ends_with_its_server() {
    let env = TestEnv::new();
    let (host, server) = asking(&env, json!({ "$ask": [text_form()] }));
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    server.order(json!([{ "exit": 1 }]));
    assert_eq!(call.wait().expect_err("its server is gone").kind(), "exited");
    closed(&host, &question, "server_gone");
}

fn ends_with_the_session() {
    let env = TestEnv::new();
    let (host, server) = asking(&env, json!({ "$ask": [text_form()] }));
    let call = host.send_here(
        "mcp.tool.call",
        json!({ "server": "srv", "name": "echo", "session": "chat" }),
    );
    let question = host.wait_question(0);
    assert_eq!(question["session"], "chat");
    host.request("mcp.session.end", json!({ "session": "chat" }))
        .expect("ended");
    host.wait_notification("mcp.question.closed", |closed| {
        closed["question"] == question["id"]
    });
    assert_eq!(
        server.log.wait_reply("ask-1")["result"],
        json!({ "action": "cancel" })
    );
    let _ = call.wait();
}

fn refused_by_the_entry() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$ask": [text_form()] } }));
    env.write_config(&json!({ "srv": { "command": server.command, "elicitation": false } }));
    let host = Host::start(&env);
    assert!(host.call("srv", "echo", json!({})).is_ok());
    assert_eq!(server.log.wait_reply("ask-1")["error"]["code"], -32601);
    let capabilities = &server.log.wait_request("initialize")["params"]["capabilities"];
    assert_eq!(capabilities.get("elicitation"), None, "{capabilities}");
}

/// Ten a minute; then the server gets `cancel` and nobody is bothered.
fn too_many_in_a_minute() {
    let env = TestEnv::new();
    let (host, server) = asking(&env, json!({ "$ask": vec![text_form(); 12] }));
    let call = host.send_call("srv", "echo", json!({}));
    for index in 0..10 {
        let question = host.wait_question(index);
        host.answer(&question, "accept", Some(json!({ "s": "v" })))
            .expect("an answer");
    }
    assert!(call.wait().is_ok());
    assert_eq!(host.notifications("mcp.question").len(), 10);
    assert_eq!(
        server.log.wait_reply("ask-12")["result"],
        json!({ "action": "cancel" })
    );
}

/// A session's GET stream may carry the question while the call waits for its own answer.
fn over_the_standing_stream() {
    let env = TestEnv::new();
    let server = HttpHost::bind();
    let rules = json!([
        { "match": "POST /mcp", "respond": { "mcp": { "session": ["s-1"] } } },
        { "match": "GET /mcp", "respond": { "mcp_stream": {} } },
        { "match": "DELETE /mcp", "respond": { "status": 204, "text": "" } },
    ]);
    server.serve_rules(&rules, &json!({ "tools/call": { "$delay_ms": 1500 } }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    assert_eq!(server.n_streams(), 1, "open before the server counts as ready");
    let mut request = text_form();
    request["jsonrpc"] = json!("2.0");
    request["id"] = json!("standing");
    // Nobody called: declined.
    server.push(&request);
    let reply = |count: usize| {
        crate::support::clock::eventually("the reply", || {
            let replies: Vec<Value> = server
                .received()
                .into_iter()
                .filter(|one| one["id"] == "standing")
                .collect();
            replies.get(count - 1).cloned()
        })
    };
    assert_eq!(reply(1)["result"], json!({ "action": "decline" }));
    let call = host.send_call("srv", "echo", json!({}));
    server.wait("the call", |seen| seen.rpc() == Some("tools/call"));
    server.push(&request);
    let question = host.wait_question(0);
    host.answer(&question, "accept", Some(json!({ "s": "v" })))
        .expect("an answer");
    assert_eq!(
        reply(2)["result"],
        json!({ "action": "accept", "content": { "s": "v" } })
    );
    assert!(call.wait().is_ok());
    host.must("mcp.stop", json!({ "server": "srv" }));
    let delete = server.wait("the goodbye", |seen| seen.method == "DELETE");
    assert_eq!(delete.headers["mcp-session-id"], "s-1");
}

/// Error -32042 of revision 2025-11-25: the link first, then the call once more.
fn url_required_error() {
    let env = TestEnv::new();
    let elicitation =
        json!({ "mode": "url", "elicitationId": "e-1", "url": "https://h.example/go", "message": "Sign in" });
    let error = json!({ "code": -32042, "message": "URL elicitation required", "data": { "elicitations": [elicitation] } });
    let server = env.plain_server("srv", json!({ "tools/call": [{ "$error": error }, {}] }));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start_with(
        &env,
        options(json!({ "capabilities": { "questions": true, "urlQuestions": true } })),
    );
    let call = host.send_call("srv", "echo", json!({}));
    let question = host.wait_question(0);
    assert_eq!(
        (&question["type"], &question["url"]),
        (&json!("url"), &json!("https://h.example/go"))
    );
    host.answer(&question, "accept", None).expect("an answer");
    let done = json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": { "elicitationId": "e-1" } });
    host.wait_within(Duration::from_millis(100), |_| None::<()>);
    server.push(&done);
    assert!(call.wait().is_ok());
    assert_eq!(server.log.requests("tools/call").len(), 2);
}
