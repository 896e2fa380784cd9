//! The client the suite starts: a host that spawns `pillion serve`, adds the suite's server and uses all it offers.
//!
//! It does the same in every scenario. Only the calls differ where the suite's context spells them out.
//! Questions are accepted with empty content, so that it is the sidecar that fills in the defaults.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use crate::host::{self, Host, Setup};

/// The binary to drive.
pub const BINARY: &str = "PILLION_CONFORMANCE_BINARY";
/// The folder of this run.
pub const RUN: &str = "PILLION_CONFORMANCE_RUN";
/// The file in that folder in which the driver says how it ended.
pub const REPORT: &str = "client.txt";
pub const SUCCESS: &str = "ok";

const SERVER: &str = "target";
/// The document that the suite's authorization servers know.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// The suite ends the client after 30 s.
const LOGIN: Duration = Duration::from_secs(20);
const METHOD_NOT_FOUND: i64 = -32601;

pub fn drive(url: &str) -> Result<()> {
    let run = PathBuf::from(std::env::var_os(RUN).context("started by `cargo xtask conformance` only")?);
    let outcome = play(url, run.join("home"));
    let report = match &outcome {
        Ok(()) => SUCCESS.to_owned(),
        Err(error) => format!("{error:#}"),
    };
    std::fs::write(run.join(REPORT), report)?;
    outcome
}

fn play(url: &str, home: PathBuf) -> Result<()> {
    let binary = PathBuf::from(std::env::var_os(BINARY).context(BINARY)?);
    let context = context()?;
    host::write_servers(&home, json!({ SERVER: { "url": url, "oauth": login(&context) } }))?;
    let setup = Setup {
        arguments: &[],
        binary: &binary,
        home: &home,
        environment: Vec::new(),
    };
    let mut host = Host::open(&setup)?;
    let target = json!({ "directory": home, "server": SERVER });
    let started = host.request("mcp.start", target.clone())?;
    if started["server"]["state"] != "ready" {
        settled(&mut host).with_context(|| format!("the server did not start: {started}"))?;
    }

    let tools = list(&mut host, "mcp.tools.list", &target)?;
    let resources = list(&mut host, "mcp.resources.list", &target)?;
    let prompts = list(&mut host, "mcp.prompts.list", &target)?;
    for (name, arguments) in calls(&tools, &context) {
        let params = with(&target, json!({ "name": name, "arguments": arguments }));
        let answer = match host.call("mcp.tool.call", params)? {
            Ok(answer) => answer,
            // One of the suite's servers lists a tool and knows no `tools/call`; its own words came through.
            Err(error) if error["data"]["mcp"]["code"] == METHOD_NOT_FOUND => continue,
            Err(error) => bail!("tool {name}: {error}"),
        };
        ensure!(
            answer["result"]["isError"] != true,
            "tool {name} failed: {answer}"
        );
    }
    for resource in resources.iter().filter(|item| item["type"] == "resource") {
        host.request(
            "mcp.resource.read",
            with(&target, json!({ "uri": resource["uri"] })),
        )?;
    }
    for prompt in &prompts {
        let required = prompt["arguments"].as_array().into_iter().flatten();
        let required = required.filter(|argument| argument["required"] == true);
        let arguments: Map<String, Value> = required
            .filter_map(|argument| Some((argument["name"].as_str()?.to_owned(), json!("text"))))
            .collect();
        host.request(
            "mcp.prompt.get",
            with(&target, json!({ "name": prompt["name"], "args": arguments })),
        )?;
    }
    let status = host.request("mcp.status", target)?;
    ensure!(
        status["servers"][0]["state"] == "ready",
        "the server is not ready at the end: {status}"
    );
    host.close()
}

/// Waits until a login has made the server ready, or was refused.
fn settled(host: &mut Host) -> Result<()> {
    let changed = host.wait_for("settled login", LOGIN, |method, params| {
        let status = &params["status"];
        let is_refused = status["error"].is_object() && status["error"]["kind"] != "needs_auth";
        method == "mcp.changed" && (status["state"] == "ready" || is_refused)
    })?;
    ensure!(
        changed["status"]["state"] == "ready",
        "the login was refused: {}",
        changed["status"]["error"]
    );
    Ok(())
}

/// What a user would configure: the same in every scenario, and what the suite's context hands over.
fn login(context: &Value) -> Value {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let mut login = json!({ "clientMetadataUrl": CLIENT_METADATA });
    let members = [
        ("clientId", "client_id"),
        ("clientSecret", "client_secret"),
        ("issuer", "issuer"),
        ("privateKey", "private_key_pem"),
        ("signingAlgorithm", "signing_algorithm"),
        ("assertion", "valid_jwt"),
    ];
    for (member, name) in members {
        if context[name].is_string() {
            login[member] = context[name].clone();
        }
    }
    let grant = match scenario.as_str() {
        "auth/client-credentials-basic" | "auth/client-credentials-jwt" => "client_credentials",
        "auth/wif-jwt-bearer" => "jwt_bearer",
        "auth/enterprise-managed-authorization" => "enterprise",
        _ => "authorization_code",
    };
    login["grant"] = json!(grant);
    if grant == "enterprise" {
        login["enterprise"] = json!({
            "tokenEndpoint": context["idp_token_endpoint"],
            "issuer": context["idp_issuer"],
            "clientId": context["idp_client_id"],
            "subjectToken": context["idp_id_token"],
        });
    }
    if scenario.starts_with("auth/dpop") {
        login["dpop"] = json!(true);
    }
    login
}

fn context() -> Result<Value> {
    Ok(match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    })
}

/// All pages of a list, without the items that are not to be used.
fn list(host: &mut Host, method: &str, target: &Value) -> Result<Vec<Value>> {
    let mut items = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = host.request(method, with(target, json!({ "cursor": cursor })))?;
        items.extend(page["items"].as_array().context("items")?.iter().cloned());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    items.retain(|item| item["hidden"].is_null());
    Ok(items)
}

/// The calls of the suite's context, else one call of each tool with sensible arguments.
fn calls(tools: &[Value], context: &Value) -> Vec<(String, Value)> {
    let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
    match context["toolCalls"].as_array() {
        Some(calls) => calls
            .iter()
            .map(|call| (name(call), call["arguments"].clone()))
            .collect(),
        None => tools
            .iter()
            .map(|tool| (name(tool), arguments(tool, tools)))
            .collect(),
    }
}

/// What a tool requires, made up from its schema.
fn arguments(tool: &Value, tools: &[Value]) -> Value {
    let schema = &tool["raw"]["inputSchema"];
    let mut arguments = Map::new();
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let property = &schema["properties"][name];
        let value = match property["type"].as_str() {
            Some("number" | "integer") => json!(5),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            // A tool that wants a schema gets one that is at hand: another tool's, as it came.
            Some("object") if name == "schema" => tools
                .iter()
                .find(|other| other["name"] != tool["name"])
                .map_or(json!({}), |other| other["raw"]["inputSchema"].clone()),
            Some("object") => json!({}),
            _ => json!("text"),
        };
        arguments.insert(name.to_owned(), value);
    }
    Value::Object(arguments)
}

/// The members of the second object added to the first.
fn with(target: &Value, members: Value) -> Value {
    let mut params = target.clone();
    for (name, value) in members.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    params
}
