//! Compares what happened with `expect`. What it does not mention is not checked.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::run::{Trace, items, resident, state};
use super::world::{OTHER, World};
use super::{login, question};
use crate::support::host::Outcome;
use crate::support::matching::{self, cut, lacks, matches, mentions, readable, regex};
use crate::support::processes::Process;
use crate::support::{Host, clock};

/// What is sent without being waited for may be a little late.
const LATE: Duration = Duration::from_secs(3);

pub fn check(world: &World, trace: &Trace) -> Result<(), String> {
    let expect = world.expect.as_object().cloned().unwrap_or_default();
    let mut faults = Vec::new();
    let settled = clock::poll(LATE, || {
        faults = faults_of(world, trace, &expect);
        faults.is_empty().then_some(())
    });
    if settled.is_none() {
        return Err(faults.join("\n"));
    }
    Ok(())
}

fn faults_of(world: &World, trace: &Trace, expect: &Map<String, Value>) -> Vec<String> {
    if let Some(alternatives) = matching::alternatives(expect) {
        let mut all = Vec::new();
        for alternative in alternatives {
            let faults = faults_of(world, trace, alternative.as_object().unwrap_or(&Map::new()));
            if faults.is_empty() {
                return faults;
            }
            all.extend(faults);
        }
        return all;
    }
    let fault = |(key, wanted): (&String, &Value)| {
        let verdict = check_one(world, trace, key, wanted);
        verdict.err().map(|reason| format!("{key}: {reason}"))
    };
    expect.iter().filter_map(fault).collect()
}

fn check_one(world: &World, trace: &Trace, key: &str, wanted: &Value) -> Result<(), String> {
    let host = &world.sidecars[0];
    let main = world.main();
    match key {
        "state" => match wanted {
            Value::Object(by_name) if matching::alternatives(by_name).is_none() => by_name
                .iter()
                .try_for_each(|(name, wanted)| equal(wanted, &json!(state(host, name)))),
            _ => equal(wanted, &json!(state(host, main)))
                .map_err(|reason| format!("{reason}; {}", cut(&host.status(main)["error"].to_string()))),
        },
        "states" => match wanted {
            Value::Object(by_name) => by_name
                .iter()
                .try_for_each(|(name, wanted)| equal(wanted, &json!(state(host, name)))),
            _ => equal(wanted, &json!(trace.states)),
        },
        "states_by_process" => {
            let states: Vec<String> = world
                .sidecars
                .iter()
                .map(|sidecar| state(sidecar, main))
                .collect();
            match wanted.as_object() {
                Some(by_number) => by_number.iter().try_for_each(|(number, wanted)| {
                    let index: usize = number.parse().map_err(|_| "a number of a process")?;
                    matches(wanted, states.get(index - 1).map(|state| json!(state)).as_ref())
                }),
                None => equal(wanted, &json!(states)),
            }
        }
        key if login::EXPECT.contains(&key) => login::check(world, trace, key, wanted),
        "other_server" => equal(wanted, &json!(state(host, OTHER))),
        "transport" => {
            let transport = host.status(main)["connection"]["transport"].clone();
            // The cases call streamable HTTP by its entry value.
            let spelt = if transport == "streamable-http" {
                json!("http")
            } else {
                transport.clone()
            };
            equal(wanted, &transport).or_else(|_| equal(wanted, &spelt))
        }
        "protocol" => equal(wanted, &host.status(main)["connection"]["protocolVersion"]),
        "calls" => calls(wanted, &trace.calls),
        "call" => one_call(wanted, trace.calls.first().ok_or("there was no call")?),
        "within_ms" => {
            let limit = wanted.as_u64().ok_or("within_ms takes a number")?;
            let took = trace.elapsed.as_millis();
            if took <= u128::from(limit) {
                Ok(())
            } else {
                Err(format!("took {took} ms, not {limit}"))
            }
        }
        "rss_growth_below" => {
            let limit = wanted.as_u64().ok_or("a number of bytes")?;
            let growth = resident(world).saturating_sub(trace.resident_before);
            if growth < limit {
                Ok(())
            } else {
                Err(format!("resident memory grew by {growth} bytes"))
            }
        }
        "shown" => {
            let shown = !trace.questions.is_empty() || !host.notifications("mcp.question").is_empty();
            equal(wanted, &json!(shown))
        }
        "form" => {
            let question = trace.questions.first().ok_or("nothing was asked")?;
            equal(wanted, &question::form(question))
        }
        "forms" => {
            let forms: Vec<Value> = trace.questions.iter().map(question::form).collect();
            equal(wanted, &json!(forms))
        }
        "reply" => equal(wanted, replies(world).first().ok_or("the server got no reply")?),
        "replies" => equal(wanted, &json!(replies(world))),
        "replies_without" => {
            let unwanted: Vec<&str> = wanted
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let replies = replies(world);
            let found = replies
                .iter()
                .find(|reply| unwanted.iter().any(|key| reply.get(key).is_some()));
            found.map_or(Ok(()), |reply| Err(format!("{reply} has one of {unwanted:?}")))
        }
        key if is_text(key) => check_text(world, trace, key, wanted),
        key if is_catalog(key) => check_catalog(world, host, key, wanted),
        _ => check_outside(world, key, wanted),
    }
}

fn equal(wanted: &Value, found: &Value) -> Result<(), String> {
    matches(wanted, Some(found))
}

fn calls(wanted: &Value, outcomes: &[Outcome]) -> Result<(), String> {
    let Some(list) = wanted.as_array() else {
        return outcomes.iter().try_for_each(|outcome| one_call(wanted, outcome));
    };
    if list.len() != outcomes.len() {
        return Err(format!("{} calls were made, not {}", outcomes.len(), list.len()));
    }
    for (index, (wanted, outcome)) in list.iter().zip(outcomes).enumerate() {
        one_call(wanted, outcome).map_err(|reason| format!("call {index}: {reason}"))?;
    }
    Ok(())
}

fn one_call(wanted: &Value, outcome: &Outcome) -> Result<(), String> {
    let shown = |outcome: &Outcome| match outcome {
        Ok(result) => cut(&result.to_string()),
        Err(error) => format!("error {error}"),
    };
    if wanted == "ok" {
        let good = outcome
            .as_ref()
            .is_ok_and(|answer| answer["result"]["isError"] != true);
        return if good {
            Ok(())
        } else {
            Err(format!("expected ok, got {}", shown(outcome)))
        };
    }
    let members = wanted
        .as_object()
        .ok_or_else(|| format!("unknown expectation {wanted}"))?;
    if let Some(alternatives) = matching::alternatives(members) {
        let fits = alternatives
            .iter()
            .any(|alternative| one_call(alternative, outcome).is_ok());
        return if fits {
            Ok(())
        } else {
            Err(format!("none of {wanted} fits {}", shown(outcome)))
        };
    }
    for (key, value) in members {
        let result = outcome.as_ref().map(|answer| &answer["result"]);
        match (key.as_str(), result) {
            ("error_mentions", Err(error)) => {
                mentions(value, &format!("{}\n{}", error.message, readable(&error.data)))?;
            }
            ("error_mentions", Ok(result)) => {
                return Err(format!("no error but {}", cut(&result.to_string())));
            }
            ("text", Ok(result)) => equal(value, &json!(texts(result)))?,
            ("text_length", Ok(result)) => equal(value, &json!(texts(result).chars().count()))?,
            ("is_error", Ok(result)) => equal(value, &json!(result["isError"].as_bool().unwrap_or(false)))?,
            ("structured", Ok(result)) => matches(value, result.get("structuredContent"))?,
            ("content_types", Ok(result)) => {
                let types: Vec<&Value> = result["content"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|block| &block["type"])
                    .collect();
                equal(value, &json!(types))?;
            }
            ("text" | "text_length" | "is_error" | "structured" | "content_types", Err(error)) => {
                return Err(format!("expected a result, got error {error}"));
            }
            _ => return Err(format!("this runner does not know call expectation `{key}`")),
        }
    }
    Ok(())
}

fn texts(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// What the server got for its questions, in their order.
fn replies(world: &World) -> Vec<Value> {
    let is_reply = |message: &Value| {
        message.get("method").is_none() && message["id"].as_str().is_some_and(|id| id.starts_with("ask-"))
    };
    let received = world.received();
    let replies = received.iter().filter(|message| is_reply(message));
    replies
        .map(|message| message.get("result").unwrap_or(message).clone())
        .collect()
}

fn is_text(key: &str) -> bool {
    key.starts_with("error_") || key.starts_with("diagnostics") || key.starts_with("issues")
}

fn check_text(world: &World, trace: &Trace, key: &str, wanted: &Value) -> Result<(), String> {
    let host = &world.sidecars[0];
    let main = world.main();
    let text = if key.starts_with("error") {
        let now = host.status(main)["error"].clone();
        trace.errors.iter().chain([&now]).map(readable).collect()
    } else if key.starts_with("diagnostics") {
        let lines = host.ask("mcp.logs", json!({ "server": main, "limit": 5000 }));
        let lines = lines.map_err(|error| format!("mcp.logs: {error}"))?;
        readable(&lines["lines"])
    } else {
        let mut issues = trace.issues.clone();
        issues.extend(
            host.status(main)["issues"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
        );
        for method in ["mcp.tools.list", "mcp.catalog"] {
            let list = host.ask(method, json!({ "server": main }));
            issues.extend(
                list.ok()
                    .and_then(|list| list["issues"].as_array().cloned())
                    .unwrap_or_default(),
            );
        }
        if key == "issues" {
            return equal(wanted, &Value::Array(issues));
        }
        readable(&Value::Array(issues))
    };
    match key.rsplit('_').next() {
        Some("mention" | "mentions") => mentions(wanted, &text),
        Some("lacks") => lacks(wanted, &text),
        _ => equal(wanted, &json!(text.lines().collect::<Vec<_>>())),
    }
}

fn is_catalog(key: &str) -> bool {
    ["tools", "resources", "prompts", "exposed"]
        .iter()
        .any(|list| key.starts_with(list))
}

fn check_catalog(world: &World, host: &Host, key: &str, wanted: &Value) -> Result<(), String> {
    let main = world.main();
    let list = key.split('_').next().unwrap_or(key);
    let names = |method: &str, member: &str| {
        let items = items(host, method, main)?;
        let text = |item: &Value| item[member].as_str().map(str::to_owned);
        Ok::<_, String>(items.iter().filter_map(text).collect::<Vec<_>>())
    };
    let names = match list {
        "tools" => names("mcp.tools.list", "name")?,
        // The cases tell resources apart by their address.
        "resources" => names("mcp.resources.list", "uri")?,
        "prompts" => names("mcp.prompts.list", "name")?,
        _ => names("mcp.tools.list", "exposed")?,
    };
    match key {
        "tools" | "resources" | "prompts" | "exposed" => equal(wanted, &json!(names)),
        "tools_count" => equal(wanted, &json!(names.len())),
        "tools_include" | "resources_include" | "prompts_include" => {
            let missing: Vec<&Value> = list_of(wanted)
                .iter()
                .filter(|name| !includes(&names, name))
                .collect();
            if missing.is_empty() {
                Ok(())
            } else {
                Err(format!("{missing:?} not in {names:?}"))
            }
        }
        "tools_exclude" => {
            let extra: Vec<&Value> = list_of(wanted)
                .iter()
                .filter(|name| includes(&names, name))
                .collect();
            if extra.is_empty() {
                Ok(())
            } else {
                Err(format!("{extra:?} in {names:?}"))
            }
        }
        "exposed_pattern" => {
            let pattern = wanted.as_str().ok_or("a pattern")?;
            for name in &names {
                if !regex(pattern, name)? {
                    return Err(format!("`{name}` is not like {pattern}"));
                }
            }
            Ok(())
        }
        "exposed_unique" => {
            let mut unique = names.clone();
            unique.sort();
            unique.dedup();
            equal(wanted, &json!(unique.len() == names.len()))
        }
        "exposed_stable_over_reconnect" => {
            host.ask("mcp.restart", json!({ "server": main }))
                .map_err(|error| error.to_string())?;
            let after = items(host, "mcp.tools.list", main)?;
            let after: Vec<&str> = after.iter().filter_map(|item| item["exposed"].as_str()).collect();
            equal(wanted, &json!(after == names))
        }
        other => Err(format!("this runner does not know `{other}`")),
    }
}

fn list_of(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn includes(names: &[String], wanted: &Value) -> bool {
    names
        .iter()
        .any(|name| matches(wanted, Some(&json!(name))).is_ok())
}

/// Seen from outside: requests, processes, files.
fn check_outside(world: &World, key: &str, wanted: &Value) -> Result<(), String> {
    let host = &world.sidecars[0];
    let server = &world.servers[world.main()];
    match key {
        "called" => {
            let received = world.received();
            let calls = received
                .iter()
                .filter(|message| message["method"] == "tools/call");
            equal(
                wanted,
                &calls.map(|call| call["params"]["name"].clone()).collect(),
            )
        }
        "requests_count" => {
            let received = world.received();
            for (method, count) in wanted.as_object().into_iter().flatten() {
                let found = received
                    .iter()
                    .filter(|message| message["method"] == method.as_str())
                    .count();
                equal(count, &json!(found)).map_err(|reason| format!("{method}: {reason}"))?;
            }
            Ok(())
        }
        "client_sent" => {
            let received = world.received();
            let mut rest = received.iter();
            for message in list_of(wanted) {
                if !rest.any(|found| equal(message, found).is_ok()) {
                    return Err(format!(
                        "{message} was not sent (in this order); the server got {}",
                        cut(&json!(received).to_string())
                    ));
                }
            }
            Ok(())
        }
        "seen" => list_of(wanted).iter().try_for_each(|one| seen(world, one, false)),
        "unseen" => list_of(wanted).iter().try_for_each(|one| seen(world, one, true)),
        "order" => order(world, list_of(wanted)),
        "child_env" => matches(
            wanted,
            server.log.starts().last().and_then(|start| start.get("env")),
        ),
        "child_args" => matches(
            wanted,
            server.log.starts().last().and_then(|start| start.get("args")),
        ),
        "child_cwd" => {
            let starts = server.log.starts();
            let cwd = starts
                .last()
                .and_then(|start| start["cwd"].as_str())
                .ok_or("nothing was started")?;
            let real = |path: &str| std::fs::canonicalize(path).map_err(|error| format!("{path}: {error}"));
            let wanted = wanted.as_str().ok_or("a path")?;
            if real(cwd)? == real(wanted)? {
                Ok(())
            } else {
                Err(format!("it runs in {cwd}, not {wanted}"))
            }
        }
        "spawned" => {
            let n_starts = server.log.starts().len() + world.marker.log.starts().len();
            equal(wanted, &json!(n_starts))
        }
        "restarts" => {
            for (name, count) in wanted.as_object().into_iter().flatten() {
                let server = world
                    .servers
                    .get(name)
                    .ok_or_else(|| format!("there is no server `{name}`"))?;
                equal(count, &json!(server.log.starts().len().saturating_sub(1)))?;
            }
            if wanted.is_object() {
                return Ok(());
            }
            equal(wanted, &json!(server.log.starts().len().saturating_sub(1)))
        }
        "alive_after_ms" => {
            for (after, wanted) in wanted.as_object().into_iter().flatten() {
                let limit = Duration::from_millis(after.parse().map_err(|_| "a number of milliseconds")?);
                alive(world, limit, wanted)?;
            }
            Ok(())
        }
        "signals_order" => {
            let mut ends = server.log.ends();
            // Only this one leaves no trace of its own: it is gone and said no goodbye.
            let gone = server
                .log
                .last_pid()
                .is_some_and(|pid| !crate::support::processes::is_alive(pid));
            if gone && server.log.exits().is_empty() {
                ends.push("SIGKILL".to_owned());
            }
            equal(wanted, &json!(ends))
        }
        "opened" => {
            let shown = host.messages();
            let shown = shown
                .iter()
                .filter(|one| one.message.method.as_deref() == Some("window/showDocument"));
            let mut opened: Vec<String> = shown
                .map(|one| one.params()["uri"].as_str().unwrap_or_default().to_owned())
                .collect();
            opened.extend(world.env.opened());
            equal(wanted, &json!(opened))
        }
        "opened_files" => equal(wanted, &json!(world.env.opened())),
        other => Err(format!("this runner does not know `{other}`")),
    }
}

/// Roles of what still lives, once that is as wanted or the time is over.
fn alive(world: &World, limit: Duration, wanted: &Value) -> Result<(), String> {
    let role = |process: &Process| {
        let command = &process.command;
        let at = command
            .iter()
            .position(|part| part == crate::support::scripted::stdio::PLAY);
        at.and_then(|at| command.get(at + 1))
            .cloned()
            .unwrap_or_else(|| "other".to_owned())
    };
    let start = Instant::now();
    let mut last = Value::Null;
    let fits = clock::poll(limit, || {
        let processes = world.env.server_processes();
        last = processes.iter().map(role).collect();
        equal(wanted, &last).ok()
    });
    fits.ok_or_else(|| {
        format!(
            "after {} ms {last} is alive, not {wanted}",
            start.elapsed().as_millis()
        )
    })
}

fn seen(world: &World, wanted: &Value, unseen: bool) -> Result<(), String> {
    for key in wanted.as_object().into_iter().flat_map(Map::keys) {
        if !["on", "match", "count", "with"].contains(&key.as_str()) {
            return Err(format!("this runner does not know `{key}` of a log expectation"));
        }
    }
    let name = wanted["on"].as_str().unwrap_or("rs");
    let host = world
        .hosts
        .get(name)
        .ok_or_else(|| format!("there is no host `{name}`"))?;
    let with = wanted["with"].as_object().cloned().unwrap_or_default();
    let log = host.log();
    let mut found = 0;
    for request in log
        .iter()
        .filter(|request| world.probes_count || request.rpc() != Some("server/discover"))
    {
        if request.is(wanted["match"].as_str().unwrap_or("* *")) && request.fits(&with).is_ok() {
            found += 1;
        }
    }
    let count = if unseen {
        json!(0)
    } else {
        wanted
            .get("count")
            .cloned()
            .unwrap_or_else(|| json!({ "min": 1 }))
    };
    equal(&count, &json!(found)).map_err(|reason| {
        let lines: Vec<String> = log
            .iter()
            .map(|one| format!("{} {} {}", one.method, one.path, one.rpc().unwrap_or("")))
            .collect();
        format!("{wanted}: {reason}; the log: {lines:?}")
    })
}

fn order(world: &World, wanted: &[Value]) -> Result<(), String> {
    let mut all: Vec<(u64, String)> = Vec::new();
    for (name, host) in &world.hosts {
        all.extend(
            host.log()
                .iter()
                .map(|one| (one.order, format!("{name} {} {}", one.method, one.path))),
        );
    }
    all.sort();
    let mut rest = all.iter();
    for step in wanted {
        if !rest.any(|(_, line)| equal(step, &json!(line)).is_ok()) {
            return Err(format!("{step} is not in its place; the log: {all:?}"));
        }
    }
    Ok(())
}
