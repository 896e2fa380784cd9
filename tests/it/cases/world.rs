//! Everything a case sets up before it runs: folders, scripted hosts and servers, the entry in the
//! user's file, the sidecars.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::place::Places;
use super::{Case, login};
use crate::support::scripted::stdio::child_script;
use crate::support::{Host, HttpHost, StdioServer, TestEnv};

pub struct World {
    // Sidecars first: they end before what they stand on.
    pub sidecars: Vec<Host>,
    pub input: Value,
    pub expect: Value,
    /// Entry names that `connect` starts, the main one first.
    pub names: Vec<String>,
    pub servers: BTreeMap<String, StdioServer>,
    pub marker: StdioServer,
    pub hosts: BTreeMap<String, HttpHost>,
    pub entries: Mutex<Map<String, Value>>,
    /// Whether probes with `server/discover` are part of what the case speaks of.
    pub probes_count: bool,
    pub env: TestEnv,
    _places: Places,
}

/// Names of hosts that a case may mention without rules of their own.
const HOSTS: &[&str] = &["rs", "as", "as2", "rs2", "evil", "proxy"];
pub const OTHER: &str = "other";

impl World {
    pub fn build(case: &Case, kits: &Value) -> Result<World, String> {
        let mut env = TestEnv::new();
        let hosts = hosts(case, kits);
        let mut places = Places::new(known(&env, &hosts));
        let input = places.fill(&case.input);
        let expect = places.fill(&case.expect);
        let probes_count = case.input.to_string().contains("server/discover");

        let mcp = mcp(&input);
        serve(&case.input, kits, &hosts, &mut places, &mcp, probes_count)?;
        let (names, mut entries, mut servers) = entries(&input, &env, &mcp, &hosts);
        let marker = env.plain_server("marker", json!({}));
        if input["other_server"] == true {
            let other = env.plain_server(OTHER, json!({}));
            entries.insert(OTHER.to_owned(), other.entry());
            servers.insert(OTHER.to_owned(), other);
        }
        prepare_files(&input, &env)?;
        set_environment(&input, &mut env);
        env.write_config(&Value::Object(entries.clone()));
        if let Some(store) = input.get("store") {
            let origin = hosts
                .get("as")
                .map(|host| host.origin.as_str())
                .unwrap_or_default();
            login::preset(store, &input["server"], origin, &env);
        }

        let n_sidecars = input["processes"].as_u64().unwrap_or(1);
        let sidecars = (0..n_sidecars).map(|_| Host::start(&env)).collect();
        let entries = Mutex::new(entries);
        Ok(World {
            sidecars,
            input,
            expect,
            names,
            servers,
            marker,
            hosts,
            entries,
            probes_count,
            env,
            _places: places,
        })
    }

    pub fn main(&self) -> &str {
        &self.names[0]
    }

    /// Messages that plain servers received, whichever carrier brought them.
    pub fn received(&self) -> Vec<Value> {
        let mut messages: Vec<Value> = Vec::new();
        for (name, server) in &self.servers {
            if name != OTHER {
                messages.extend(server.log.received());
            }
        }
        messages.extend(self.hosts.values().flat_map(HttpHost::received));
        messages.retain(|message| self.probes_count || message["method"] != "server/discover");
        messages
    }

    /// Writes the user's file as another process would.
    pub fn rewrite(&self, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut entries = self.entries.lock().expect("no panic while held");
        change(&mut entries);
        self.env.write_config(&Value::Object(entries.clone()));
    }
}

fn hosts(case: &Case, kits: &Value) -> BTreeMap<String, HttpHost> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    names.extend(
        case.input["hosts"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .cloned(),
    );
    for kit in case.input["kits"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let (name, host) = kit_host(kit, kits);
        names.insert(host.unwrap_or(name));
    }
    let text = format!("{}{}", case.input, case.expect);
    names.extend(
        HOSTS
            .iter()
            .filter(|name| text.contains(&format!("{{{name}}}")))
            .map(|name| (*name).to_owned()),
    );
    names.into_iter().map(|name| (name, HttpHost::bind())).collect()
}

/// The kit's name and the host it goes to.
fn kit_host(kit: &str, kits: &Value) -> (String, Option<String>) {
    match kit.split_once('@') {
        Some((name, host)) => (name.to_owned(), Some(host.to_owned())),
        None => (kit.to_owned(), kits[kit]["host"].as_str().map(str::to_owned)),
    }
}

fn known(env: &TestEnv, hosts: &BTreeMap<String, HttpHost>) -> BTreeMap<String, String> {
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let mut known: BTreeMap<String, String> = hosts
        .iter()
        .map(|(name, host)| (name.clone(), host.origin.clone()))
        .collect();
    known.insert("tmp".to_owned(), text(env.tmp()));
    known.insert("path".to_owned(), env.path_variable());
    known.insert("child".to_owned(), text(env.bin().join("child")));
    known.insert("wrapper".to_owned(), text(env.bin().join("child-wrapper")));
    known.insert("marker".to_owned(), text(env.bin().join("marker")));
    known
}

/// Changes to the plain server, the question of an elicitation case among them.
fn mcp(input: &Value) -> Map<String, Value> {
    let mut mcp = input["mcp"].as_object().cloned().unwrap_or_default();
    if let Some(error) = input.get("call_error") {
        mcp.insert("tools/call".to_owned(), json!({ "$error": error }));
    } else if let Some(request) = input.get("request").filter(|_| input["while_idle"] != true) {
        let mut call = json!({ "$ask": [{ "method": "elicitation/create", "params": request }] });
        if let Some(delay) = input.get("then_result_after_ms") {
            call["$after_reply_ms"] = delay.clone();
        }
        if let Some(then) = input.get("server_then") {
            call["$while_asking"] = then.as_array().map_or_else(|| json!([then]), |_| then.clone());
        }
        mcp.insert("tools/call".to_owned(), call);
    }
    mcp
}

fn serve(
    input: &Value,
    kits: &Value,
    hosts: &BTreeMap<String, HttpHost>,
    places: &mut Places,
    mcp: &Map<String, Value>,
    probes_count: bool,
) -> Result<(), String> {
    let mut rules: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, own) in input["hosts"].as_object().into_iter().flatten() {
        let own = places.fill(own);
        rules
            .entry(name.clone())
            .or_default()
            .extend(own.as_array().cloned().unwrap_or_default());
    }
    for kit in input["kits"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let (name, host) = kit_host(kit, kits);
        let list = kits[&name]["rules"]
            .as_array()
            .ok_or_else(|| format!("there is no kit `{name}`"))?;
        let host = host.ok_or_else(|| format!("kit `{name}` names no host"))?;
        let list = Value::Array(list.clone());
        let filled = if kit.contains('@') {
            places.with("as", &hosts[&host].origin).fill(&list)
        } else {
            places.fill(&list)
        };
        rules
            .entry(host)
            .or_default()
            .extend(filled.as_array().cloned().unwrap_or_default());
    }
    for (name, host) in hosts {
        let rules = rules.remove(name).unwrap_or_default();
        for rule in &rules {
            crate::support::scripted::rules::check(rule)?;
        }
        host.serve(rules, mcp.clone(), probes_count);
    }
    Ok(())
}

type Entries = (Vec<String>, Map<String, Value>, BTreeMap<String, StdioServer>);

fn entries(
    input: &Value,
    env: &TestEnv,
    mcp: &Map<String, Value>,
    hosts: &BTreeMap<String, HttpHost>,
) -> Entries {
    let mut entries = Map::new();
    let mut servers = BTreeMap::new();
    let mut names = Vec::new();
    if let Some(several) = input["servers"].as_object() {
        for (name, spec) in several {
            let structured = ["server", "child", "mcp"]
                .iter()
                .any(|key| spec.get(key).is_some());
            let mcp = if structured {
                spec["mcp"].clone()
            } else {
                spec.clone()
            };
            let server = scripted(spec, env, name, mcp.as_object().unwrap_or(&Map::new()));
            let entry = spec.get("server").cloned().unwrap_or_else(|| server.entry());
            entries.insert(name.clone(), limited(entry, input));
            servers.insert(name.clone(), server);
            names.push(name.clone());
        }
        return (names, entries, servers);
    }
    let name = input["name"].as_str().unwrap_or("srv").to_owned();
    let server = scripted(input, env, "child", mcp);
    let default = hosts.get("rs").map_or_else(|| server.entry(), HttpHost::entry);
    let entry = input.get("server").cloned().unwrap_or(default);
    entries.insert(name.clone(), limited(entry, input));
    servers.insert(name.clone(), server);
    (vec![name], entries, servers)
}

fn scripted(input: &Value, env: &TestEnv, name: &str, mcp: &Map<String, Value>) -> StdioServer {
    let child = input["child"].as_array().cloned().unwrap_or_default();
    // Without a script of its own it is a plain server.
    let rest = match input["child_rest"].as_str() {
        None if input.get("child").is_none() => Some("plain"),
        given => given,
    };
    let line_end = input["child_line_end"].as_str().unwrap_or("\n");
    env.scripted_server(name, child_script(&child, rest, line_end, mcp))
}

fn limited(mut entry: Value, input: &Value) -> Value {
    // `{port:…}` is filled in as text.
    let port = entry.pointer("/oauth/callbackPort").and_then(Value::as_str);
    if let Some(port) = port.and_then(|port| port.parse::<u16>().ok()) {
        entry["oauth"]["callbackPort"] = json!(port);
    }
    if let Some(limit) = input.get("call_timeout_ms") {
        entry["timeoutMs"] = limit.clone();
    }
    entry
}

fn prepare_files(input: &Value, env: &TestEnv) -> Result<(), String> {
    let fault = |error: std::io::Error| error.to_string();
    for dir in input["dirs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        fs::create_dir_all(env.tmp().join(dir)).map_err(fault)?;
    }
    for (path, text) in input["files"].as_object().into_iter().flatten() {
        let path = env.tmp().join(path);
        fs::create_dir_all(path.parent().ok_or("a file has a folder")?).map_err(fault)?;
        fs::write(
            path,
            text.as_str().map_or_else(|| text.to_string(), str::to_owned),
        )
        .map_err(fault)?;
    }
    Ok(())
}

fn set_environment(input: &Value, env: &mut TestEnv) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(vars) = input["parent_env"].as_object() {
        env.replace_vars(
            vars.iter()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
        );
    }
    for (name, value) in input["env"].as_object().into_iter().flatten() {
        env.set(name, &text(value));
    }
}
