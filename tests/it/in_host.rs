//! Servers that the host implements in its own process, and entries that it changes while the session runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::calls::oddities;
use crate::stories;
use crate::support::scripted::plain::{Incoming, Plain, Step};
use crate::support::{Host, HostOptions, TestEnv, frames, matching};

pub fn stories() -> Vec<Trial> {
    stories!("in_host":
        a_legacy_server, a_modern_server, its_questions_reach_the_person, progress_and_cancelling,
        results_and_arguments_are_verbatim, stopped_and_started_again, it_ends_and_comes_back, one_that_never_answers,
        what_cannot_be_used_is_told, a_large_answer, its_definitions_are_its_own_word, two_of_them_keep_apart,
        no_file_may_hold_one, layers_change_while_it_runs, the_switch_works, layers_that_do_not_read,
    )
}

/// A script for what the host plays, as [`Plain`] takes it.
fn script(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn layers(names: &[&str]) -> Value {
    let entries: Map<String, Value> = names
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                json!({ "transport": "host", "label": format!("The {name}") }),
            )
        })
        .collect();
    json!([{ "label": "editor", "entries": entries }])
}

fn host_with(env: &TestEnv, layers: &Value) -> Host {
    let initialization = json!({ "capabilities": { "questions": true }, "layers": layers });
    Host::start_with(
        env,
        HostOptions {
            initialization,
            ..Default::default()
        },
    )
}

/// What the servers in the host were told, as text.
#[derive(Default)]
struct Told {
    messages: Mutex<Vec<(u64, Option<String>)>>,
}

impl Told {
    fn all(&self) -> Vec<(u64, Option<String>)> {
        self.messages.lock().expect("no panic while held").clone()
    }

    fn texts(&self) -> Vec<String> {
        self.all().into_iter().filter_map(|(_, text)| text).collect()
    }
}

#[derive(serde::Deserialize)]
struct Sent {
    server: String,
    connection: u64,
    message: Option<Box<RawValue>>,
}

/// One connection of a server in the host.
struct Played {
    plain: Plain,
    steps: VecDeque<Step>,
    asked: HashSet<String>,
}

fn say(host: &Host, server: &str, connection: u64, message: &str) {
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"mcp.host.message\",\"params\":{{\"server\":{},\"connection\":{connection},\"message\":{message}}}}}",
        json!(server)
    );
    host.write(&frames::encode(&body));
}

fn end(host: &Host, server: &str, connection: u64) {
    host.notify(
        "mcp.host.message",
        json!({ "server": server, "connection": connection }),
    );
}

impl Played {
    /// Goes on until a question is open.
    fn play(&mut self, host: &Host, server: &str, connection: u64) {
        while self.asked.is_empty() {
            let Some(step) = self.steps.pop_front() else {
                return;
            };
            match step {
                Step::Send(text) | Step::Answer(text) | Step::Unknown { answer: text, .. } => {
                    say(host, server, connection, &text);
                }
                Step::Ask(requests) => {
                    for request in requests {
                        self.asked.insert(request["id"].to_string());
                        say(host, server, connection, &request.to_string());
                    }
                }
                Step::Exit(_) => end(host, server, connection),
                Step::Pause(_) | Step::StderrBytes(_) | Step::Actions(_) => {
                    panic!("not a step of a server in the host")
                }
            }
        }
    }
}

/// Plays the servers of the host while the story runs.
fn played<T>(host: &Host, scripts: &[(&str, Value)], story: impl FnOnce(&Told) -> T) -> T {
    struct Over(Arc<AtomicBool>);
    impl Drop for Over {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let told = Told::default();
    let over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (told, ended) = (&told, Arc::clone(&over));
        scope.spawn(move || {
            let mut connections: HashMap<u64, Played> = HashMap::new();
            let mut seen = 0;
            while !ended.load(Ordering::Relaxed) {
                let fresh = host.wait_within(Duration::from_millis(20), |messages| {
                    (messages.len() > seen).then(|| messages[seen..].to_vec())
                });
                for received in fresh.into_iter().flatten() {
                    seen += 1;
                    if received.message.method.as_deref() != Some("mcp.host.send") {
                        continue;
                    }
                    let params = received.message.params.as_ref().expect("params");
                    let sent: Sent = serde_json::from_str(params.get()).expect("as declared");
                    let text = sent.message.as_ref().map(|message| message.get().to_owned());
                    told.messages
                        .lock()
                        .expect("no panic while held")
                        .push((sent.connection, text.clone()));
                    let Some(text) = text else {
                        connections.remove(&sent.connection);
                        continue;
                    };
                    let played = connections.entry(sent.connection).or_insert_with(|| {
                        let found = scripts.iter().find(|(name, _)| *name == sent.server);
                        Played {
                            plain: Plain::new(script(
                                found.map(|(_, script)| script.clone()).unwrap_or_default(),
                            )),
                            steps: VecDeque::new(),
                            asked: HashSet::new(),
                        }
                    });
                    let incoming = Incoming::parse(&text).expect("a message");
                    if incoming.is_response() {
                        played.asked.remove(&incoming.id.unwrap_or_default().to_string());
                    } else {
                        let steps = played.plain.steps(&incoming, &Map::new());
                        played.steps.extend(steps);
                    }
                    played.play(host, &sent.server, sent.connection);
                }
            }
        });
        let _over = Over(over);
        story(told)
    })
}

/// Start, list, call, catalog, stop: as of any other server.
fn the_story(script: Value, era: &str) {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    let status = host.status("srv");
    assert_eq!(
        (
            &status["layer"],
            &status["state"],
            &status["readOnly"],
            &status["source"]
        ),
        (
            &json!("host"),
            &json!("stopped"),
            &json!(true),
            &json!("host:editor")
        ),
        "{status}"
    );
    played(&host, &[("srv", script)], |told| {
        let record = host.start_server("srv");
        assert_eq!(record["state"], "ready", "{record}");
        assert_eq!(
            (&record["connection"]["transport"], &record["connection"]["era"]),
            (&json!("host"), &json!(era)),
            "{record}"
        );
        assert_eq!(
            (&record["label"], &record["pid"]),
            (&json!("The srv"), &Value::Null)
        );
        let answer = host.call("srv", "echo", json!({ "a": 1 })).expect("a result");
        assert_eq!(answer["result"]["content"][0]["text"], "ok");
        let tools = host.must("mcp.model.tools", json!({}));
        assert!(tools.to_string().contains("mcp__srv__echo"), "{tools}");
        let call = json!({ "name": "mcp__srv__echo", "arguments": {} });
        assert_eq!(host.must("mcp.model.call", call)["outcome"], "ok");
        let catalog = host.must("mcp.catalog", json!({ "server": "srv" }));
        assert!(
            catalog["items"].as_array().is_some_and(|items| !items.is_empty()),
            "{catalog}"
        );
        let stopped = host.must("mcp.stop", json!({ "server": "srv" }));
        assert_eq!(stopped["server"]["state"], "stopped");
        crate::support::clock::eventually("the end to be told", || {
            told.all()
                .last()
                .filter(|(_, message)| message.is_none())
                .map(drop)
        });
    });
    assert!(env.server_processes().is_empty());
}

fn a_legacy_server() {
    the_story(json!({}), "legacy");
}

fn a_modern_server() {
    the_story(json!({ "server/discover": {} }), "modern");
}

fn its_questions_reach_the_person() {
    let ask = json!({ "method": "elicitation/create", "params": {
        "message": "How many?", "requestedSchema": { "type": "object", "properties": { "n": { "type": "integer" } } },
    } });
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    played(
        &host,
        &[("srv", json!({ "tools/call": { "$ask": [ask] } }))],
        |told| {
            let call = host.send_call("srv", "echo", json!({}));
            let question = host.wait_question(0);
            assert_eq!(question["title"], "The srv asks for input");
            let answered = host.answer(&question, "accept", Some(json!({ "n": 3 })));
            assert_eq!(answered.expect("an answer")["sent"], "accept");
            call.wait().expect("a result");
            assert!(
                told.texts()
                    .iter()
                    .any(|text| text.contains("\"content\":{\"n\":3}")),
                "{:?}",
                told.texts()
            );
        },
    );
}

fn progress_and_cancelling() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    let script = json!({
        "tools/call:echo": { "$progress": [{ "progress": 1, "total": 2, "message": "half" }] },
        "tools/call:never": { "$none": true },
    });
    played(&host, &[("srv", script)], |told| {
        let call = json!({ "server": "srv", "name": "echo", "workDoneToken": "w" });
        host.must("mcp.tool.call", call);
        let kinds: Vec<Value> = host
            .notifications("$/progress")
            .iter()
            .map(|params| params["value"]["kind"].clone())
            .collect();
        assert_eq!(kinds, ["begin", "report", "end"]);
        let call = host.send_call("srv", "never", json!({}));
        crate::support::clock::eventually("the call to arrive", || {
            told.texts()
                .iter()
                .any(|text| text.contains("\"name\":\"never\""))
                .then_some(())
        });
        call.cancel();
        assert_eq!(call.wait().expect_err("cancelled").kind(), "cancelled");
        crate::support::clock::eventually("the server to hear of it", || {
            told.texts()
                .iter()
                .any(|text| text.contains("notifications/cancelled"))
                .then_some(())
        });
    });
}

fn results_and_arguments_are_verbatim() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    played(
        &host,
        &[("srv", json!({ "tools/call": { "$echo": true } }))],
        |told| {
            for (number, odd) in oddities().into_iter().enumerate() {
                let params = format!(
                    "{{\"directory\":{},\"server\":\"srv\",\"name\":\"echo\",\"arguments\":{odd}}}",
                    json!(host.directory())
                );
                let received = host
                    .send_as(json!(format!("odd {number}")), "mcp.tool.call", &params)
                    .wait_raw();
                let wanted = format!("\"echo\":{odd}");
                assert!(
                    received.text.contains(&wanted),
                    "{wanted}: {}",
                    matching::cut(&received.text)
                );
                let wanted = format!("\"arguments\":{odd}");
                assert!(told.texts().iter().any(|text| text.contains(&wanted)), "{wanted}");
            }
        },
    );
}

fn stopped_and_started_again() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    played(
        &host,
        &[("srv", json!({ "tools/call:never": { "$none": true } }))],
        |told| {
            host.start_server("srv");
            let call = host.send_call("srv", "never", json!({}));
            crate::support::clock::eventually("the call to arrive", || {
                told.texts()
                    .iter()
                    .any(|text| text.contains("\"name\":\"never\""))
                    .then_some(())
            });
            host.must("mcp.restart", json!({ "server": "srv" }));
            assert_eq!(call.wait().expect_err("ended").kind(), "call_cancelled");
            assert_eq!(host.status("srv")["state"], "ready");
            let numbers: HashSet<u64> = told.all().iter().map(|(connection, _)| *connection).collect();
            assert_eq!(numbers, HashSet::from([1, 2]));
            // What is said on the first connection reaches nobody now, and is no fault either.
            say(&host, "srv", 1, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
            let told = host.wait_notification("window/logMessage", |params| {
                params["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("is over"))
            });
            assert_eq!(told["type"], 4, "{told}");
            host.call("srv", "echo", json!({})).expect("a result");
        },
    );
}

fn it_ends_and_comes_back() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    played(&host, &[("srv", json!({}))], |told| {
        host.start_server("srv");
        end(&host, "srv", 1);
        // As after a crash: it is started again.
        crate::support::clock::eventually("the second start", || {
            (host.status("srv")["state"] == "ready"
                && told.all().iter().any(|(connection, _)| *connection == 2))
            .then_some(())
        });
        host.call("srv", "echo", json!({})).expect("a result");
        // Nobody is told of an end that it brought itself.
        assert!(!told.all().contains(&(1, None)), "{:?}", told.all());
    });
}

fn one_that_never_answers() {
    let env = TestEnv::new();
    let mut layers = layers(&["srv"]);
    layers[0]["entries"]["srv"]["startTimeoutMs"] = json!(1000);
    let host = host_with(&env, &layers);
    let record = host.start_server("srv");
    assert_eq!(
        (&record["state"], &record["error"]["kind"]),
        (&json!("error"), &json!("timed_out")),
        "{record}"
    );
    let sent = host.notifications("mcp.host.send");
    assert!(
        sent.last().is_some_and(|params| params.get("message").is_none()),
        "{sent:?}"
    );
}

fn what_cannot_be_used_is_told() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    let odd = [
        (
            json!({ "server": "nobody", "connection": 9, "message": {} }),
            "never opened",
        ),
        (json!({ "server": "srv", "connection": 9 }), "never opened"),
        (
            json!({ "server": "srv", "connection": "1", "message": {} }),
            "`connection` must be",
        ),
        (
            json!({ "server": "srv", "connection": 1, "message": "x" }),
            "`message` must be",
        ),
        (
            json!({ "server": "srv", "connection": 1, "message": {}, "more": 1 }),
            "`more` is not known",
        ),
        (json!({ "server": "srv" }), "`connection` is missing"),
    ];
    for (index, (params, said)) in odd.into_iter().enumerate() {
        host.notify("mcp.host.message", params.clone());
        let told = host.wait_for("a word about it", |messages| {
            let mut told = messages
                .iter()
                .filter(|one| one.message.method.as_deref() == Some("window/logMessage"));
            told.nth(index).map(|one| one.params())
        });
        assert_eq!(told["type"], 2, "{told}");
        assert!(
            told["message"].as_str().is_some_and(|text| text.contains(said)),
            "{params}: {told}"
        );
    }
    // What is no JSON-RPC inside harms nobody either.
    played(&host, &[("srv", json!({}))], |_| {
        host.start_server("srv");
        for odd in [
            "{}",
            "{\"id\":{}}",
            "{\"jsonrpc\":\"1.0\",\"id\":77,\"result\":5}",
            "{\"method\":7}",
        ] {
            say(&host, "srv", 1, odd);
        }
        host.call("srv", "echo", json!({})).expect("a result");
    });
}

fn a_large_answer() {
    let env = TestEnv::new();
    let initialization = json!({ "layers": layers(&["srv"]), "maxMessageBytes": 65_536 });
    let options = HostOptions {
        initialization,
        ..Default::default()
    };
    let host = Host::start_with(&env, options);
    let script =
        json!({ "tools/call:big": { "content": [{ "type": "text", "text": "x".repeat(100_000) }] } });
    played(&host, &[("srv", script)], |_| {
        let small = host.send_call("srv", "echo", json!({}));
        let error = host.call("srv", "big", json!({})).expect_err("too large");
        assert_eq!(error.kind(), "too_large", "{error}");
        small.wait().expect("a result");
    });
}

/// A plug-in that is worked on changes its tools all the time; nobody is asked to accept what the host itself says.
fn its_definitions_are_its_own_word() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    let tool = |description: &str| json!({ "tools": [{ "name": "echo", "description": description, "inputSchema": { "type": "object" } }] });
    played(&host, &[("srv", json!({ "tools/list": tool("before") }))], |_| {
        host.must("mcp.tools.list", json!({ "server": "srv" }));
    });
    drop(host);
    let host = host_with(&env, &layers(&["srv"]));
    played(&host, &[("srv", json!({ "tools/list": tool("after") }))], |_| {
        let tools = host.must("mcp.tools.list", json!({ "server": "srv" }));
        assert_eq!(tools["items"][0]["description"], "after");
        assert_eq!(tools["items"][0].get("hidden"), None, "{tools}");
        host.call("srv", "echo", json!({})).expect("a result");
    });
}

fn two_of_them_keep_apart() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["a", "b"]));
    let answer = |text: &str| json!({ "tools/call": { "content": [{ "type": "text", "text": text }] } });
    played(&host, &[("a", answer("of a")), ("b", answer("of b"))], |_| {
        for name in ["a", "b"] {
            let result = host.call(name, "echo", json!({})).expect("a result");
            assert_eq!(result["result"]["content"][0]["text"], format!("of {name}"));
        }
        // A server speaks on its own connections only.
        say(
            &host,
            "a",
            2,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        );
        host.wait_notification("window/logMessage", |params| {
            params["message"]
                .as_str()
                .is_some_and(|text| text.contains("`a`"))
        });
    });
}

fn no_file_may_hold_one() {
    let env = TestEnv::new();
    env.write_config(&json!({ "filed": { "transport": "host" } }));
    let host = Host::start(&env);
    let record = host
        .ask("mcp.start", json!({ "server": "filed" }))
        .expect("a record");
    assert!(
        record
            .to_string()
            .contains("belongs to an entry that the host brings"),
        "{record}"
    );
    let add = json!({ "name": "added", "entry": { "transport": "host" } });
    let error = host.ask("mcp.add", add).expect_err("refused");
    assert_eq!(
        (error.kind(), &error.data["path"]),
        ("invalid_params", &json!("/entry/transport"))
    );
    assert!(host.notifications("mcp.host.send").is_empty());
}

fn layers_change_while_it_runs() {
    let env = TestEnv::new();
    let (kept, gone) = (
        env.plain_server("kept", json!({})),
        env.plain_server("gone", json!({})),
    );
    let (changed, fresh) = (
        env.plain_server("changed", json!({})),
        env.plain_server("fresh", json!({})),
    );
    let entries = |entries: Value| json!([{ "label": "plug-ins", "entries": entries }]);
    let first = json!({ "kept": kept.entry(), "gone": gone.entry(), "changed": changed.entry() });
    let host = host_with(&env, &entries(first));
    for name in ["kept", "gone", "changed"] {
        assert_eq!(host.start_server(name)["state"], "ready");
    }
    let pid = host.status("kept")["pid"].clone();
    let mut other = changed.entry();
    other["env"] = json!({ "OTHER": "1" });
    let mut labelled = kept.entry();
    labelled["label"] = json!("Kept");
    let second = json!({ "kept": labelled, "changed": other, "fresh": fresh.entry(), "mine": { "transport": "host" } });
    host.notify("mcp.host.layers", json!({ "layers": entries(second) }));
    // The name is gone, and its process with it.
    host.wait_notification("mcp.changed", |params| {
        params["server"] == "gone" && params.get("status").is_none()
    });
    host.wait_notification("mcp.changed", |params| params["server"] == "fresh");
    assert_eq!(host.status("gone"), Value::Null);
    let record = host.status("kept");
    assert_eq!(
        (&record["pid"], &record["label"], &record["state"]),
        (&pid, &json!("Kept"), &json!("ready"))
    );
    assert_eq!(kept.log.starts().len(), 1);
    crate::support::clock::eventually("the processes of the others to end", || {
        (env.server_processes().len() == 1).then_some(())
    });
    // Lazily, as after any reload.
    host.call("changed", "echo", json!({})).expect("a result");
    assert_eq!(changed.log.starts().len(), 2);
    assert_eq!(
        (&host.status("mine")["layer"], fresh.log.starts().len()),
        (&json!("host"), 0)
    );
    host.notify("mcp.host.layers", json!({ "layers": [] }));
    host.wait_notification("mcp.changed", |params| {
        params["server"] == "kept" && params.get("status").is_none()
    });
    assert_eq!(host.must("mcp.status", json!({}))["servers"], json!([]));
}

fn the_switch_works() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    played(&host, &[("srv", json!({}))], |_| {
        host.start_server("srv");
        for (method, params) in [
            ("mcp.edit", json!({ "server": "srv", "set": { "label": "x" } })),
            ("mcp.remove", json!({ "server": "srv" })),
        ] {
            assert_eq!(
                host.ask(method, params).expect_err("not here").kind(),
                "read_only",
                "{method}"
            );
        }
        host.must("mcp.enable", json!({ "server": "srv", "enabled": false }));
        host.wait_state("srv", "disabled");
        let error = host.call("srv", "echo", json!({})).expect_err("disabled");
        assert_eq!(error.data["reason"], "disabled");
        // The person's switch outlives what the host says of its entries.
        host.notify("mcp.host.layers", json!({ "layers": layers(&["srv", "more"]) }));
        host.wait_notification("mcp.changed", |params| params["server"] == "more");
        assert_eq!(host.status("srv")["state"], "disabled");
        host.must("mcp.enable", json!({ "server": "srv", "enabled": true }));
        host.call("srv", "echo", json!({})).expect("a result");
    });
}

fn layers_that_do_not_read() {
    let env = TestEnv::new();
    let host = host_with(&env, &layers(&["srv"]));
    for params in [
        json!({}),
        json!({ "layers": [{ "label": "x", "entries": { "a": { "cmd": 1 } } }] }),
        json!({ "layers": 5 }),
    ] {
        host.notify("mcp.host.layers", params);
    }
    host.wait_for("three words about them", |messages| {
        let told = messages
            .iter()
            .filter(|one| one.message.method.as_deref() == Some("window/logMessage"));
        (told.count() == 3).then_some(())
    });
    // What was there before still is.
    assert_eq!(host.status("srv")["layer"], "host");
}
