//! A prompt with its mentions and its command carried out: all of it, or the draft stays.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::mentions::offers;
use crate::stories;
use crate::support::{Host, RpcError, StdioServer, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("prompt_expand":
        plain_text_stays, in_the_terminal, a_resource_is_read_once, a_missing_one_stops_everything, an_ambiguous_one_stops_everything,
        sixteen_mentions, characters_in_all, binary_is_named, a_template_makes_a_resource, a_prompt_is_a_command, arguments_in_order,
        a_missing_argument_keeps_the_draft, extra_text_is_appended, other_media_are_left_out, own_commands_win,
        an_unknown_command, a_server_may_ask, it_can_be_cancelled,
    )
}

fn start(env: &TestEnv, mut mcp: Value) -> (Host, StdioServer) {
    let resources: Vec<Value> = (0..20)
        .map(|n| json!({ "uri": format!("x:{n}"), "name": format!("r{n}"), "mimeType": "text/plain" }))
        .chain([
            json!({ "uri": "y:1", "name": "twice" }),
            json!({ "uri": "y:2", "name": "twice" }),
        ])
        .collect();
    let prompts = json!([
        { "name": "review", "arguments": [{ "name": "path", "required": true }, { "name": "focus" }] },
        { "name": "plain" },
    ]);
    let mut all = offers(json!(resources), prompts);
    all["resources/read"] = json!({ "contents": [{ "uri": "x:0", "text": "content" }] });
    all["resources/templates/list"] =
        json!({ "resourceTemplates": [{ "uriTemplate": "note://{id}", "name": "note" }] });
    all["prompts/get"] = json!({ "messages": [
        { "role": "user", "content": { "type": "text", "text": "Review it." } },
        { "role": "assistant", "content": { "type": "text", "text": "Yes." } },
    ] });
    if let (Some(all), Some(mcp)) = (all.as_object_mut(), mcp.as_object_mut()) {
        all.append(mcp);
    }
    let server = env.plain_server("docs", all);
    env.write_config(&json!({ "docs": server.entry() }));
    (Host::start(env), server)
}

fn expand(host: &Host, text: &str) -> Value {
    host.must("mcp.prompt.expand", json!({ "text": text }))
}

fn refused(host: &Host, text: &str) -> RpcError {
    host.ask("mcp.prompt.expand", json!({ "text": text }))
        .expect_err(text)
}

fn plain_text_stays() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    for text in [
        "",
        "hello",
        "mail me@docs:r1",
        "@media:print and /usr/bin: x",
        "/help docs:plain",
        "@docs",
    ] {
        assert_eq!(
            expand(&host, text)["parts"],
            json!([{ "type": "text", "text": text }])
        );
    }
    // Nothing of it needed a server.
    assert_eq!(server.log.starts().len(), 0);
}

fn a_resource_is_read_once() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let text = "Compare @docs:r1 with (@docs:r2), then @docs:x:1 and @docs:r1.";
    let result = expand(&host, text);
    let part = |n: usize| json!({ "type": "resource", "mention": format!("@docs:r{n}"), "server": "docs", "uri": format!("x:{n}"), "mimeType": "text/plain", "text": "content" });
    assert_eq!(
        result["parts"],
        json!([{ "type": "text", "text": text }, part(1), part(2)])
    );
    assert_eq!(server.log.requests("resources/read").len(), 2);
    assert_eq!(result.get("prompt"), None);
}

fn a_missing_one_stops_everything() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let error = refused(&host, "@docs:r1 and @docs:r99");
    assert_eq!(
        (error.code, error.kind(), &error.data["names"]),
        (-32058, "mention_unresolved", &json!(["@docs:r99"]))
    );
    assert!(
        error.data["candidates"]
            .as_array()
            .is_some_and(|names| !names.is_empty()),
        "{}",
        error.data
    );
    assert_eq!(server.log.requests("resources/read").len(), 0);
}

fn an_ambiguous_one_stops_everything() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let error = refused(&host, "see @docs:twice");
    assert_eq!(
        (error.kind(), &error.data["candidates"]),
        ("mention_unresolved", &json!(["@docs:y:1", "@docs:y:2"]))
    );
    assert_eq!(server.log.requests("resources/read").len(), 0);
    assert_eq!(expand(&host, "see @docs:y:2")["parts"][1]["uri"], "y:2");
}

fn sixteen_mentions() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let text = |n: usize| {
        (0..n)
            .map(|n| format!("@docs:r{n}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for n in [15, 16] {
        assert_eq!(
            expand(&host, &text(n))["parts"].as_array().map(Vec::len),
            Some(n + 1)
        );
    }
    // The same ones again do not count.
    assert_eq!(
        expand(&host, &format!("{} @docs:r0", text(16)))["parts"]
            .as_array()
            .map(Vec::len),
        Some(17)
    );
    let n_read = server.log.requests("resources/read").len();
    let error = refused(&host, &text(17));
    assert_eq!((error.kind(), &error.data["limit"]), ("too_large", &json!(16)));
    assert_eq!(server.log.requests("resources/read").len(), n_read);
}

fn characters_in_all() {
    for (second, fits) in [(27_999, true), (28_000, true), (28_001, false)] {
        let env = TestEnv::new();
        let read = |text: String| json!({ "contents": [{ "uri": "x", "text": text }] });
        let (host, _server) = start(
            &env,
            json!({ "resources/read:x:1": read("ä".repeat(100_000)), "resources/read:x:2": read("b".repeat(second)) }),
        );
        let outcome = host.ask("mcp.prompt.expand", json!({ "text": "@docs:r1 @docs:r2" }));
        match outcome {
            Ok(result) => assert!(
                fits && result["parts"].as_array().map(Vec::len) == Some(3),
                "{second}"
            ),
            Err(error) => {
                assert!(!fits, "{error}");
                assert_eq!(
                    (error.kind(), &error.data["limit"]),
                    ("too_large", &json!(128_000))
                );
            }
        }
    }
}

fn binary_is_named() {
    let env = TestEnv::new();
    let (host, _server) = start(
        &env,
        json!({ "resources/read": { "contents": [{ "uri": "x", "blob": "AAECAwQ=", "mimeType": "image/png" }] } }),
    );
    assert_eq!(
        expand(&host, "@docs:r1")["parts"][1]["text"],
        "[binary content: image/png, 5 bytes]"
    );
}

fn a_template_makes_a_resource() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let result = expand(&host, "see @docs:note://7, please");
    assert_eq!(
        (&result["parts"][1]["mention"], &result["parts"][1]["uri"]),
        (&json!("@docs:note://7"), &json!("note://7"))
    );
    assert_eq!(
        server.log.wait_request("resources/read")["params"]["uri"],
        "note://7"
    );
}

fn a_prompt_is_a_command() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let result = expand(&host, "/docs:review @docs:r1");
    assert_eq!(
        result["parts"][0],
        json!({ "type": "text", "text": "Review it.\n\nYes." })
    );
    assert_eq!(result["parts"][1]["mention"], "@docs:r1");
    assert_eq!(result["prompt"], json!({ "server": "docs", "name": "review" }));
    assert_eq!(
        server.log.wait_request("prompts/get")["params"]["arguments"],
        json!({ "path": "@docs:r1" })
    );
}

fn arguments_in_order() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    expand(&host, "/docs:review \"my file.rs\" all of 'it all'");
    assert_eq!(
        server.log.wait_request("prompts/get")["params"]["arguments"],
        json!({ "path": "my file.rs", "focus": "all of it all" })
    );
}

fn a_missing_argument_keeps_the_draft() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let error = refused(&host, "/docs:review");
    assert_eq!(
        (error.code, error.kind(), &error.data["names"]),
        (-32058, "argument_missing", &json!(["path"]))
    );
    assert_eq!(server.log.requests("prompts/get").len(), 0);
}

fn extra_text_is_appended() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let result = expand(&host, "/docs:plain and \"this\" too\nplease");
    assert_eq!(
        result["parts"][0]["text"],
        "Review it.\n\nYes.\n\nand \"this\" too\nplease"
    );
    assert_eq!(
        server.log.wait_request("prompts/get")["params"].get("arguments"),
        None
    );
}

fn other_media_are_left_out() {
    let env = TestEnv::new();
    let image =
        json!({ "role": "user", "content": { "type": "image", "data": "AAAA", "mimeType": "image/png" } });
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Look." } });
    let (host, _server) = start(
        &env,
        json!({ "prompts/get": { "messages": [image, message, image] } }),
    );
    let result = expand(&host, "/docs:plain");
    assert_eq!(result["parts"], json!([{ "type": "text", "text": "Look." }]));
    assert!(
        result["issues"][0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("2 × image")),
        "{result}"
    );
}

fn own_commands_win() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({}));
    let result = host.must(
        "mcp.prompt.expand",
        json!({ "text": "/docs:plain x", "reserved": ["/docs:plain"] }),
    );
    assert_eq!(result["parts"][0]["text"], "/docs:plain x");
    assert_eq!(server.log.requests("prompts/get").len(), 0);
}

fn an_unknown_command() {
    let env = TestEnv::new();
    let (host, _server) = start(&env, json!({}));
    let error = refused(&host, "/docs:reveiw x");
    assert_eq!(
        (error.kind(), &error.data["names"]),
        ("mention_unresolved", &json!(["/docs:reveiw"]))
    );
    assert_eq!(error.data["candidates"][0], "/docs:review");
    assert_eq!(
        expand(&host, "/nobody:review x")["parts"][0]["text"],
        "/nobody:review x"
    );
}

fn a_server_may_ask() {
    let env = TestEnv::new();
    let question = json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": { "type": "object", "properties": {} } } });
    let (host, _server) = start(
        &env,
        json!({ "prompts/get": { "$ask": [question], "messages": [] } }),
    );
    let pending = host.send_here(
        "mcp.prompt.expand",
        json!({ "text": "/docs:plain", "call": "c1", "session": "s1" }),
    );
    let question = host.wait_question(0);
    assert_eq!(
        (&question["call"], &question["session"]),
        (&json!("c1"), &json!("s1"))
    );
    host.answer(&question, "accept", None).expect("answered");
    assert_eq!(pending.wait().expect("expanded")["parts"][0]["text"], "");
}

fn it_can_be_cancelled() {
    let env = TestEnv::new();
    let (host, server) = start(&env, json!({ "resources/read": { "$none": true } }));
    let pending = host.send_here(
        "mcp.prompt.expand",
        json!({ "text": "@docs:r1", "call": "c1", "workDoneToken": 7 }),
    );
    server.log.wait_request("resources/read");
    assert_eq!(
        host.request("mcp.call.cancel", json!({ "call": "c1" }))
            .expect("an answer")["cancelled"],
        true
    );
    assert_eq!(pending.wait().expect_err("cancelled").kind(), "call_cancelled");
}

fn in_the_terminal() {
    let env = TestEnv::new();
    let (host, _server) = start(&env, json!({}));
    drop(host);
    let run = |args: &[&str]| {
        let output = env.command().args(args).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["expand", "see", "@docs:r1"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "see @docs:r1\n\n--- @docs:r1 (x:1)\ncontent\n"),
        "{stderr}"
    );
    let (code, stdout, stderr) = run(&["expand", "see @docs:r99"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(
        stderr.starts_with("error: there is no resource `@docs:r99`"),
        "{stderr}"
    );
    assert_eq!(run(&["expand", "/docs:review"]).0, Some(2));
    let (code, stdout, _) = run(&["expand", "--json", "/docs:plain"]);
    let result: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, &result["prompt"]["name"]), (Some(0), &json!("plain")));
}
