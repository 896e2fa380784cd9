//! Runs one case: its steps, each by the one adapter to the protocol's own method names, and then the
//! expectations.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::login::{self, Logins};
use super::world::{OTHER, World};
use super::{Case, expect, keys, question};
use crate::support::host::Outcome;
use crate::support::{Host, clock, processes};

/// What came out of the steps.
#[derive(Default)]
pub struct Trace {
    pub states: Vec<String>,
    pub calls: Vec<Outcome>,
    /// Errors as the host would show them.
    pub errors: Vec<Value>,
    pub issues: Vec<Value>,
    pub questions: Vec<Value>,
    pub logins: Logins,
    pub elapsed: Duration,
    pub resident_before: u64,
}

pub fn run(case: &Case, kits: &Value) -> Result<(), String> {
    keys::check(case)?;
    let world = World::build(case, kits)?;
    let trace = Mutex::new(Trace {
        resident_before: resident(&world),
        ..Trace::default()
    });
    let started = Instant::now();
    if world.servers.contains_key(OTHER) {
        step_connect(&world, &world.sidecars[0], &[OTHER.to_owned()], &Mutex::default());
    }
    for step in steps(&world.input) {
        play(&world, &world.sidecars[0], &step, &trace)?;
        let mut trace = trace.lock().expect("no panic while held");
        trace
            .logins
            .stored_after_first
            .get_or_insert_with(|| login::stored(&world));
    }
    let mut trace = trace.into_inner().expect("no panic while held");
    trace.elapsed = started.elapsed();
    let verdict = expect::check(&world, &trace);
    for sidecar in &world.sidecars {
        sidecar.check();
    }
    verdict
}

pub fn resident(world: &World) -> u64 {
    world
        .sidecars
        .iter()
        .map(|sidecar| processes::resident(sidecar.pid))
        .sum()
}

fn steps(input: &Value) -> Vec<Value> {
    if let Some(steps) = input["steps"].as_array() {
        return steps.clone();
    }
    let mut steps = vec![json!("connect")];
    if input["while_idle"] == true {
        steps.push(json!("ask_idle"));
    } else if input.get("request").is_some() || input.get("call_error").is_some() {
        let n_calls = input["calls"].as_u64().or(input["repeat"].as_u64()).unwrap_or(1);
        steps.extend((0..n_calls).map(|_| json!({ "call": "echo" })));
    }
    steps
}

fn play(world: &World, host: &Host, step: &Value, trace: &Mutex<Trace>) -> Result<(), String> {
    match step {
        Value::String(name) => named(world, host, name, trace),
        Value::Object(members) => {
            if let Some(steps) = members.get("parallel").and_then(Value::as_array) {
                return thread::scope(|scope| {
                    let threads: Vec<_> = steps
                        .iter()
                        .map(|step| scope.spawn(move || play(world, host, step, trace)))
                        .collect();
                    threads.into_iter().try_for_each(|thread| {
                        thread
                            .join()
                            .unwrap_or_else(|_| Err("a parallel step panicked".to_owned()))
                    })
                });
            }
            if let Some(number) = members.get("process").and_then(Value::as_u64) {
                let index = usize::try_from(number).unwrap_or_default().saturating_sub(1);
                let host = world
                    .sidecars
                    .get(index)
                    .ok_or_else(|| format!("there is no process {number}"))?;
                return play(world, host, &step["do"], trace);
            }
            with_value(world, host, members, trace)
        }
        other => Err(format!("not a step: {other}")),
    }
}

fn named(world: &World, host: &Host, name: &str, trace: &Mutex<Trace>) -> Result<(), String> {
    match name {
        "connect" => {
            step_connect(world, host, &world.names, trace);
            note_state(world, host, trace);
        }
        "stop" => {
            for server in &world.names {
                note(trace, host.ask("mcp.stop", json!({ "server": server })));
            }
            note_state(world, host, trace);
        }
        "reload" => {
            note(trace, host.ask("mcp.reload", json!({})));
            note_state(world, host, trace);
        }
        "catalog" => note(trace, host.ask("mcp.catalog", json!({}))),
        "list" => note(trace, host.ask("mcp.tools.list", json!({}))),
        "ask_idle" => ask_idle(world)?,
        other => return Err(format!("this runner does not know step `{other}`")),
    }
    Ok(())
}

fn step_connect(world: &World, host: &Host, names: &[String], trace: &Mutex<Trace>) {
    let mut pending = Vec::new();
    for name in names {
        pending.push(host.send_here("mcp.start", json!({ "server": name })));
    }
    for one in pending {
        let outcome = one.wait();
        if let Ok(result) = &outcome
            && let Some(fault) = result["server"].get("error")
        {
            trace
                .lock()
                .expect("no panic while held")
                .errors
                .push(fault.clone());
        }
        note(trace, outcome);
    }
    debug_assert!(!world.names.is_empty());
}

fn with_value(
    world: &World,
    host: &Host,
    members: &Map<String, Value>,
    trace: &Mutex<Trace>,
) -> Result<(), String> {
    let Some((key, value)) = members.iter().next().filter(|_| members.len() == 1) else {
        return Err(format!("not a step: {}", Value::Object(members.clone())));
    };
    match key.as_str() {
        "call" => {
            let (server, tool) = match value {
                Value::Array(pair) => (text(&pair[0]), text(&pair[1])),
                one => (world.main().to_owned(), text(one)),
            };
            call(world, host, &server, &tool, trace)?;
            note_state_after_call(world, host, trace);
            Ok(())
        }
        "authorize" => login::authorize(world, host, value, trace),
        "probe" => login::probe(value, trace),
        "call_exposed_for" => {
            let exposed = exposed_name(world, host, &text(value))?;
            call(world, host, world.main(), &exposed, trace)
        }
        "wait_ms" => {
            thread::sleep(Duration::from_millis(
                value.as_u64().ok_or("wait_ms takes a number")?,
            ));
            Ok(())
        }
        "edit" => {
            let mut entry = world.entries.lock().expect("no panic while held")[world.main()].clone();
            for (name, member) in value.as_object().into_iter().flatten() {
                entry[name] = member.clone();
            }
            let params = json!({ "name": world.main(), "entry": entry, "replace": true });
            note(trace, host.ask("mcp.add", params));
            note_state(world, host, trace);
            Ok(())
        }
        "edit_file" => {
            world.rewrite(|entries| entries.extend(value.as_object().cloned().unwrap_or_default()));
            Ok(())
        }
        other => Err(format!("this runner does not know step `{other}`")),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// One call, with the person answering whatever is asked meanwhile.
fn call(world: &World, host: &Host, server: &str, tool: &str, trace: &Mutex<Trace>) -> Result<(), String> {
    let n_before = host.notifications("mcp.question").len();
    let pending = host.send_call(server, tool, json!({}));
    let mut n_answered = n_before;
    let outcome = loop {
        if let Some(outcome) = pending.try_get() {
            break outcome;
        }
        let questions = host.notifications("mcp.question");
        if let Some(question) = questions.get(n_answered) {
            let mut locked = trace.lock().expect("no panic while held");
            let index = locked.questions.len();
            locked.questions.push(question.clone());
            drop(locked);
            n_answered += 1;
            question::answer(host, &world.input["user"], question, index)?;
            continue;
        }
        let news = host.wait_within(clock::PATIENCE, |messages| {
            let n_questions = messages
                .iter()
                .filter(|one| one.message.method.as_deref() == Some("mcp.question"))
                .count();
            let answered = messages
                .iter()
                .any(|one| one.message.method.is_none() && one.message.id.as_ref() == Some(&pending.id));
            (answered || n_questions > n_answered).then_some(())
        });
        news.ok_or("the call was never answered")?;
    };
    let mut locked = trace.lock().expect("no panic while held");
    if let Ok(result) = &outcome {
        locked
            .issues
            .extend(result["issues"].as_array().cloned().unwrap_or_default());
    }
    if let Err(error) = &outcome {
        locked
            .errors
            .push(json!({ "message": error.message, "data": error.data }));
    }
    locked.calls.push(outcome);
    Ok(())
}

/// The server asks on its own while nobody calls it.
fn ask_idle(world: &World) -> Result<(), String> {
    let request = json!({
        "jsonrpc": "2.0",
        "id": "ask-1",
        "method": "elicitation/create",
        "params": world.input["request"],
    });
    if world.input.get("hosts").is_some() {
        world.hosts.values().for_each(|host| host.push(&request));
    } else {
        world.servers[world.main()].push(&request);
    }
    let replied = || {
        world
            .received()
            .into_iter()
            .find(|message| message["id"] == "ask-1")
    };
    clock::poll(Duration::from_secs(5), replied)
        .map(|_| ())
        .ok_or_else(|| "the server got no reply".to_owned())
}

pub fn exposed_name(world: &World, host: &Host, tool: &str) -> Result<String, String> {
    let tools = items(host, "mcp.tools.list", world.main())?;
    let found = tools.iter().find(|item| item["name"] == tool);
    let exposed = found.and_then(|item| item["exposed"].as_str());
    exposed
        .map(str::to_owned)
        .ok_or_else(|| format!("no exposed name for `{tool}`"))
}

/// All pages of a list of one server.
pub fn items(host: &Host, method: &str, server: &str) -> Result<Vec<Value>, String> {
    let mut items = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut params = json!({ "server": server });
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let page = host
            .ask(method, params)
            .map_err(|error| format!("{method}: {error}"))?;
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return Ok(items);
        }
    }
}

pub fn note(trace: &Mutex<Trace>, outcome: Outcome) {
    let mut trace = trace.lock().expect("no panic while held");
    match outcome {
        Ok(result) => trace
            .issues
            .extend(result["issues"].as_array().cloned().unwrap_or_default()),
        Err(error) => trace
            .errors
            .push(json!({ "message": error.message, "data": error.data })),
    }
}

pub fn note_state(world: &World, host: &Host, trace: &Mutex<Trace>) {
    let state = state(host, world.main());
    trace.lock().expect("no panic while held").states.push(state);
}

/// A call of a server that wants a login may change its state.
fn note_state_after_call(world: &World, host: &Host, trace: &Mutex<Trace>) {
    if !world.input["steps"].to_string().contains("authorize") {
        return;
    }
    let state = state(host, world.main());
    let mut trace = trace.lock().expect("no panic while held");
    if trace.states.last() != Some(&state) {
        trace.states.push(state);
    }
}

/// The state in the words of the cases.
pub fn state(host: &Host, server: &str) -> String {
    let record = host.status(server);
    match record["state"].as_str().unwrap_or("unknown") {
        "ready" => "connected".to_owned(),
        "error" => "failed".to_owned(),
        other => other.to_owned(),
    }
}
