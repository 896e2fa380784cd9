//! The reference server `everything` over stdio, streamable HTTP and HTTP+SSE: the same play on each.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Place, Target, contains};
use crate::checks::Checks;
use crate::host::{self, Host, Setup};
use crate::listening::Listening;

pub fn all_transports(checks: &mut Checks, binary: &Path, place: &Place) {
    let program = place.npm.join("node_modules/.bin/mcp-server-everything");
    // The HTTP servers must live until the last check.
    let mut listening = Vec::new();
    for (transport, mode) in [
        ("stdio", "stdio"),
        ("streamable-http", "streamableHttp"),
        ("sse", "sse"),
    ] {
        let home = place.home.join(format!("everything-{transport}"));
        let mut open = None;
        checks.check(&format!("everything over {transport}: starts"), || {
            std::fs::create_dir_all(&home)?;
            let entry = if transport == "stdio" {
                json!({ "command": program, "args": ["stdio"] })
            } else {
                let server = Listening::start(Command::new(&program).arg(mode), &home.join("server.log"))?;
                let path = if transport == "sse" { "sse" } else { "mcp" };
                let url = format!("http://127.0.0.1:{}/{path}", server.port);
                listening.push(server);
                json!({ "url": url })
            };
            host::write_servers(&home, json!({ "everything": entry }))?;
            let mut host = Host::open(&Setup {
                arguments: &[],
                binary,
                home: &home,
                environment: Vec::new(),
            })?;
            let status = Target {
                host: &mut host,
                home: &home,
                server: "everything",
            }
            .started()?;
            ensure!(
                status["connection"]["transport"] == transport,
                "another transport: {status}"
            );
            ensure!(status["connection"]["era"] == "legacy", "another era: {status}");
            open = Some(host);
            Ok(())
        });
        let Some(mut host) = open else { continue };
        for (what, work) in PLAY {
            checks.check(&format!("everything over {transport}: {what}"), || {
                work(&mut Target {
                    host: &mut host,
                    home: &home,
                    server: "everything",
                })
            });
        }
        checks.check(&format!("everything over {transport}: ends"), || host.close());
    }
}

type Work = fn(&mut Target) -> Result<()>;

const PLAY: [(&str, Work); 13] = [
    ("lists tools", tools),
    ("a text through and back", echo),
    ("structured content and an image", content),
    ("progress", progress),
    ("a form with defaults", form),
    ("a form declined", declined),
    ("a page to open", page),
    ("a sampled message", sample),
    ("roots", roots),
    ("resources, read and subscribed", resources),
    ("prompts and completion", prompts),
    ("a task that asks", task),
    ("a wrong argument is the tool's error", wrong),
];

fn tools(target: &mut Target) -> Result<()> {
    let page = target.request("mcp.tools.list", json!({}))?;
    let names: Vec<&str> = page["items"]
        .as_array()
        .context("items")?
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect();
    // The last three are offered only to clients that declare elicitation, sampling and roots.
    for name in [
        "echo",
        "get-sum",
        "trigger-elicitation-request",
        "trigger-sampling-request",
        "get-roots-list",
    ] {
        ensure!(names.contains(&name), "{name} is not among {names:?}");
    }
    Ok(())
}

fn echo(target: &mut Target) -> Result<()> {
    target.says(
        "echo",
        json!({ "message": "grüße ✓ \u{1F6F5}" }),
        &["Echo: grüße ✓ \u{1F6F5}"],
    )?;
    target.says(
        "get-sum",
        json!({ "a": 2, "b": 3.5 }),
        &["The sum of 2 and 3.5 is 5.5."],
    )
}

fn content(target: &mut Target) -> Result<()> {
    let weather = target.tool("get-structured-content", json!({ "location": "Chicago" }))?;
    ensure!(weather["structuredContent"]["temperature"] == 36, "{weather}");
    let image = target.tool("get-tiny-image", json!({}))?;
    let block = image["content"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|block| block["type"] == "image");
    ensure!(
        block.is_some_and(|block| block["mimeType"] == "image/png"),
        "no image: {image}"
    );
    let noted = target.tool("get-annotated-message", json!({ "messageType": "error" }))?;
    ensure!(
        noted["content"][0]["annotations"]["priority"] == 1,
        "annotations lost: {noted}"
    );
    Ok(())
}

fn progress(target: &mut Target) -> Result<()> {
    let token = format!("work-{}", target.server);
    let before = target.host.notifications.len();
    let answer = target.request(
        "mcp.tool.call",
        json!({
            "name": "trigger-long-running-operation",
            "arguments": { "duration": 1.2, "steps": 3 },
            "workDoneToken": token
        }),
    )?;
    contains(
        &answer["result"],
        &["Long running operation completed. Duration: 1.2 seconds, Steps: 3."],
    )?;
    let reports: Vec<&Value> = target.host.notifications[before..]
        .iter()
        .filter(|(method, params)| method == "$/progress" && params["token"] == token)
        .map(|(_, params)| &params["value"])
        .collect();
    let kinds: Vec<&str> = reports
        .iter()
        .filter_map(|value| value["kind"].as_str())
        .collect();
    ensure!(
        kinds.first() == Some(&"begin") && kinds.last() == Some(&"end"),
        "{reports:?}"
    );
    let of_three = reports
        .iter()
        .filter(|value| value["total"] == 3.0 || value["total"] == 3)
        .count();
    ensure!(of_three >= 2, "too few reports of three steps: {reports:?}");
    Ok(())
}

fn form(target: &mut Target) -> Result<()> {
    target
        .host
        .ask(|_| json!({ "action": "accept", "content": { "name": "Ada", "check": true } }));
    let inputs = [
        "- Name: Ada",
        "- Agreed to terms: true",
        "- Favorite Integer: 42",
        "- Favorite Number: 3.14",
    ];
    target.says("trigger-elicitation-request", json!({}), &inputs)?;
    let question = target.host.questions.last().context("a question")?;
    ensure!(question["title"] == "everything asks for input", "{question}");
    let fields = question["fields"].as_array().context("fields")?;
    let types: Vec<&str> = fields.iter().filter_map(|field| field["type"].as_str()).collect();
    let expected = "text boolean text text text text integer number choice multi choice multi choice";
    ensure!(types.join(" ") == expected, "{types:?}");
    let hero = fields
        .iter()
        .find(|field| field["name"] == "titledSingleSelectEnum")
        .context("hero")?;
    ensure!(
        hero["options"][1]["label"] == "Green Lantern" && hero["options"][1]["value"] == "hero-2",
        "{hero}"
    );
    Ok(())
}

fn declined(target: &mut Target) -> Result<()> {
    target.host.ask(|_| json!({ "action": "decline" }));
    target.says("trigger-elicitation-request", json!({}), &["User declined"])?;
    target.host.ask(|_| json!({ "action": "cancel" }));
    target.says("trigger-elicitation-request", json!({}), &["User cancelled"])
}

fn page(target: &mut Target) -> Result<()> {
    target.host.ask(|_| json!({ "action": "accept" }));
    let url = "http://127.0.0.1:9/consent?step=1";
    target.says(
        "trigger-url-elicitation",
        json!({ "url": url }),
        &["User completed the URL elicitation flow", url],
    )?;
    let question = target.host.questions.last().context("a question")?;
    ensure!(question["type"] == "url" && question["url"] == url, "{question}");
    ensure!(
        question["host"]
            .as_str()
            .is_some_and(|host| host.starts_with("127.0.0.1")),
        "{question}"
    );
    // The other way to ask: the call fails with -32042 and is made again once the page was opened.
    let asked = target.host.questions.len();
    target.says(
        "trigger-url-elicitation",
        json!({ "url": url, "errorPath": true }),
        &["User completed"],
    )?;
    ensure!(
        target.host.questions.len() == asked + 2,
        "asked {} times",
        target.host.questions.len() - asked
    );
    Ok(())
}

fn sample(target: &mut Target) -> Result<()> {
    target.says(
        "trigger-sampling-request",
        json!({ "prompt": "Who steers?" }),
        &["A sampled answer"],
    )
}

fn roots(target: &mut Target) -> Result<()> {
    let home = format!("file://{}", target.home.display());
    target.says(
        "get-roots-list",
        json!({}),
        &["Current MCP Roots (1 total)", &home],
    )
}

fn resources(target: &mut Target) -> Result<()> {
    let page = target.request("mcp.resources.list", json!({}))?;
    let items = page["items"].as_array().context("items")?;
    ensure!(
        items
            .iter()
            .any(|item| item["uriTemplate"] == "demo://resource/dynamic/text/{resourceId}"),
        "{page}"
    );
    ensure!(
        items
            .iter()
            .any(|item| item["type"] == "resource" && item["mimeType"] == "text/markdown"),
        "{page}"
    );
    let uri = "demo://resource/dynamic/text/7";
    let read = target.request("mcp.resource.read", json!({ "uri": uri }))?;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_default();
    ensure!(text.contains("Resource 7"), "{read}");

    target.request("mcp.resource.subscribe", json!({ "uri": uri }))?;
    target.says(
        "toggle-subscriber-updates",
        json!({}),
        &["Started simulated resource"],
    )?;
    target.host.wait_for(
        "mcp.resource.updated",
        Duration::from_secs(8),
        |method, params| method == "mcp.resource.updated" && params["uri"] == uri,
    )?;
    target.says(
        "toggle-subscriber-updates",
        json!({}),
        &["Stopped simulated resource"],
    )?;
    target.request("mcp.resource.unsubscribe", json!({ "uri": uri }))?;
    Ok(())
}

fn prompts(target: &mut Target) -> Result<()> {
    let listed = target.request("mcp.prompts.list", json!({}))?;
    let items = listed["items"].as_array().context("items")?;
    let prompt = items
        .iter()
        .find(|item| item["name"] == "args-prompt")
        .context("args-prompt")?;
    ensure!(prompt["arguments"][0]["required"] == true, "{prompt}");
    let got = target.request(
        "mcp.prompt.get",
        json!({ "name": "args-prompt", "args": { "city": "Oslo" } }),
    )?;
    ensure!(
        got["result"]["messages"][0]["content"]["text"] == "What's weather in Oslo?",
        "{got}"
    );
    let reference = json!({ "type": "prompt", "name": "completable-prompt" });
    let completed = target.request(
        "mcp.complete",
        json!({ "ref": reference, "argument": "name", "value": "D", "args": { "department": "Sales" } }),
    )?;
    ensure!(completed["values"] == json!(["David"]), "{completed}");
    Ok(())
}

/// The server makes a task of this call and asks while it runs; the host sees one call and one question.
fn task(target: &mut Target) -> Result<()> {
    target.host.ask(|question| {
        let field = question["fields"][0]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        json!({ "action": "accept", "content": { field: "snake" } })
    });
    let query = json!({ "topic": "python", "ambiguous": true });
    target.says(
        "simulate-research-query",
        query,
        &["# Research Report: python (snake)", "Generating report ✓"],
    )
}

fn wrong(target: &mut Target) -> Result<()> {
    let call = target.params(json!({ "name": "get-sum", "arguments": { "a": "two" } }));
    let text = match target.host.call("mcp.tool.call", call)? {
        Ok(answer) => {
            ensure!(answer["result"]["isError"] == true, "no error: {answer}");
            answer.to_string()
        }
        Err(error) => {
            ensure!(error["data"]["kind"] == "mcp_error", "another kind: {error}");
            error.to_string()
        }
    };
    ensure!(
        text.contains("expected number"),
        "the server's own words are lost: {text}"
    );
    Ok(())
}
