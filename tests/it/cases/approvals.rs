//! The area `approvals`: entries that others bring, reviews, decisions. It has a world of its own, since its entries
//! come through the gate or a project's file and not from the user.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Case;
use crate::approval::rewrite_times;
use crate::peers::{self, Peer};
use crate::support::host::Outcome;
use crate::support::matching::{lacks, matches, mentions};
use crate::support::{Host, HttpHost, StdioServer, TestEnv, clock};

const HOUR: u64 = 60 * 60 * 1000;

struct World {
    host: Host,
    peer: Peer,
    from_peer: bool,
    names: Vec<String>,
    marker: StdioServer,
    hosts: BTreeMap<String, HttpHost>,
    env: TestEnv,
    /// Revisions by the name a step gave them.
    revisions: BTreeMap<String, String>,
    shown: String,
    listed: String,
    calls: Vec<Outcome>,
    approve: Option<Outcome>,
    accepted: usize,
    refused: usize,
    after_clock: Option<usize>,
}

pub fn run(case: &Case) -> Result<(), String> {
    let env = TestEnv::new();
    let marker = env.plain_server("marker", json!({}));
    let hosts: BTreeMap<String, HttpHost> = ["rs", "evil"]
        .iter()
        .map(|name| ((*name).to_owned(), HttpHost::plain(&json!({}))))
        .collect();
    let fill = |value: &Value| -> Value {
        let mut text = value.to_string().replace("{marker}", &marker.command);
        for (name, host) in &hosts {
            text = text.replace(&format!("{{{name}}}"), &host.origin);
        }
        serde_json::from_str(&text).unwrap_or_default()
    };
    let (input, expect) = (fill(&case.input), fill(&case.expect));
    known(
        &input,
        &["entries", "steps", "from", "hosts", "trusted", "lower_layer"],
    )?;
    let lower = &input["lower_layer"];
    if let Some(entries) = lower.as_object() {
        let folder = env.data().join("packages/lower");
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let entries: Map<String, Value> = match lower["name"].as_str() {
            Some(name) => [(name.to_owned(), entry(lower))].into_iter().collect(),
            None => entries.clone(),
        };
        std::fs::write(folder.join("mcp.json"), json!({ "servers": entries }).to_string())
            .map_err(|error| error.to_string())?;
    }
    let entries = input["entries"].as_array().cloned().unwrap_or_default();
    let of = |scope: &str| -> Map<String, Value> {
        let scoped = entries.iter().filter(|one| one["scope"] == scope);
        scoped.map(|one| (text(&one["name"]), entry(one))).collect()
    };
    env.write_config(&Value::Object(of("user")));
    if !of("project").is_empty() {
        crate::trust::write_project(&env, &Value::Object(of("project")));
    }
    let (host, peer, _) = peers::start(&env);
    if input["trusted"] == true {
        crate::trust::trust(&host);
    }
    let mut world = World {
        host,
        peer,
        from_peer: input["from"] == "peer",
        names: entries.iter().map(|one| text(&one["name"])).collect(),
        marker,
        hosts,
        env,
        revisions: BTreeMap::new(),
        shown: String::new(),
        listed: String::new(),
        calls: Vec::new(),
        approve: None,
        accepted: 0,
        refused: 0,
        after_clock: None,
    };
    for one in entries.iter().filter(|one| one.get("scope").is_none()) {
        world.propose(one, false);
    }
    for step in input["steps"].as_array().into_iter().flatten() {
        world.play(step)?;
    }
    for (key, wanted) in expect.as_object().into_iter().flatten() {
        world
            .check(key, wanted)
            .map_err(|reason| format!("{key}: {reason}"))?;
    }
    world.host.check();
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The entry as the file has it.
fn entry(described: &Value) -> Value {
    let mut entry = described.clone();
    if let Some(members) = entry.as_object_mut() {
        members.remove("name");
        members.remove("scope");
    }
    entry
}

fn known(value: &Value, names: &[&str]) -> Result<(), String> {
    let unknown = value.as_object().into_iter().flat_map(Map::keys);
    match unknown.into_iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => Err(format!("this runner does not know `{name}`")),
        None => Ok(()),
    }
}

impl World {
    fn propose(&mut self, described: &Value, replace: bool) {
        let (name, entry) = (text(&described["name"]), entry(described));
        let accepted = if self.from_peer {
            let body = json!({ "name": name, "entry": entry, "replace": replace });
            self.peer.send("POST", "/mcp", &[], &body.to_string()).0 == 202
        } else {
            let params = json!({ "name": name, "entry": entry, "replace": replace, "gate": true });
            self.host.ask("mcp.add", params).is_ok()
        };
        if accepted {
            self.accepted += 1;
        } else {
            self.refused += 1;
        }
    }

    fn reviews(&self) -> Vec<Value> {
        let pending = self.host.must("mcp.pending", json!({}));
        pending["reviews"].as_array().cloned().unwrap_or_default()
    }

    fn decide(&mut self, name: &str, revision: &str, decision: &str) -> Outcome {
        let params = json!({ "server": name, "revision": revision, "decision": decision });
        self.host.ask("mcp.decide", params)
    }

    /// The revision that a step names, else the one that is shown now.
    fn revision(&self, step: &Value, name: &str) -> String {
        let named = step["revision"]
            .as_str()
            .and_then(|revision| self.revisions.get(revision));
        named.cloned().unwrap_or_else(|| {
            let reviews = self.reviews();
            let found = reviews.iter().find(|review| review["server"] == name);
            found.map(|review| text(&review["revision"])).unwrap_or_default()
        })
    }

    fn play(&mut self, step: &Value) -> Result<(), String> {
        if let Some(name) = step.as_str() {
            match name {
                "list" => {
                    for method in ["mcp.status", "mcp.config", "mcp.tools.list"] {
                        self.listed += &self.host.must(method, json!({})).to_string();
                    }
                    for path in ["/mcp", "/config"] {
                        self.listed += &self.peer.send("GET", path, &[], "").1.to_string();
                    }
                }
                "catalog" => self.listed += &self.host.must("mcp.catalog", json!({})).to_string(),
                "reload" => drop(self.host.must("mcp.reload", json!({}))),
                "connect" => {
                    for name in &self.names {
                        // What may not start says so; the states tell.
                        let _ = self.host.ask("mcp.start", json!({ "server": name }));
                    }
                }
                "approve_all" => {
                    for review in self.reviews() {
                        let outcome =
                            self.decide(&text(&review["server"]), &text(&review["revision"]), "approve");
                        self.approve = Some(outcome);
                    }
                }
                other => return Err(format!("this runner does not know step `{other}`")),
            }
            return Ok(());
        }
        let Some((key, value)) = step.as_object().and_then(|members| members.iter().next()) else {
            return Err(format!("not a step: {step}"));
        };
        match key.as_str() {
            "review" => {
                let reviews = self.reviews();
                let found = reviews.iter().find(|review| review["server"] == *value);
                let review = found.ok_or_else(|| format!("no review of {value}"))?;
                self.shown += &format!("{review}\n");
                if let Some(name) = step["as"].as_str() {
                    self.revisions.insert(name.to_owned(), text(&review["revision"]));
                }
            }
            "approve" => {
                let revision = self.revision(step, &text(value));
                self.approve = Some(self.decide(&text(value), &revision, "approve"));
            }
            "reject" => {
                let revision = self.revision(step, &text(value));
                self.decide(&text(value), &revision, "reject")
                    .map_err(|error| format!("rejection: {error}"))?;
            }
            "replace" => self.propose(value, true),
            "peer_patch" => {
                let body = match value.get("servers") {
                    Some(_) => value.clone(),
                    None => json!({ "servers": value }),
                };
                let status = self
                    .peer
                    .send("PATCH", "/global/config", &[], &body.to_string())
                    .0;
                if status == 202 {
                    self.accepted += 1;
                } else {
                    self.refused += 1;
                }
            }
            "propose_many" => {
                for n in 0..value.as_u64().unwrap_or_default() {
                    self.propose(&json!({ "name": format!("many-{n}"), "command": "x" }), false);
                }
            }
            "clock_h" => {
                let hours = value.as_u64().unwrap_or_default();
                rewrite_times(&self.env, |at| at - hours * HOUR);
                self.host.must("mcp.reload", json!({}));
                self.after_clock = Some(self.reviews().len());
            }
            "call" => {
                let outcome = self.host.call(&text(&value[0]), &text(&value[1]), json!({}));
                self.calls.push(outcome);
            }
            "authorize" => {
                // Whatever it answers: nothing may be contacted.
                let _ = self.host.ask("mcp.auth", json!({ "server": value }));
            }
            "edit_file" => self.edit_file(value),
            other => return Err(format!("this runner does not know step `{other}`")),
        }
        Ok(())
    }

    /// As a person with an editor would: the rest of the file stays.
    fn edit_file(&self, entries: &Value) {
        let project = self.env.project().join(".pillion/mcp.json");
        for (name, entry) in entries.as_object().into_iter().flatten() {
            for file in [self.env.data().join("mcp.json"), project.clone()] {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                let mut content: Value = serde_json::from_str(&text).unwrap_or_default();
                if content["servers"].get(name).is_some() {
                    content["servers"][name] = entry.clone();
                    std::fs::write(&file, content.to_string()).expect("a file");
                }
            }
        }
    }

    fn state(&self, name: &str) -> String {
        let status = self.host.must("mcp.status", json!({ "server": name }));
        let servers = status["servers"].as_array().cloned().unwrap_or_default();
        let shown = servers.iter().find(|record| record["effective"] == true);
        match shown
            .or(servers.first())
            .and_then(|record| record["state"].as_str())
        {
            Some("ready") => "connected".to_owned(),
            Some("error") => "failed".to_owned(),
            Some(other) => other.to_owned(),
            None => "unknown".to_owned(),
        }
    }

    fn check(&self, key: &str, wanted: &Value) -> Result<(), String> {
        match key {
            "states" => wanted
                .as_object()
                .into_iter()
                .flatten()
                .try_for_each(|(name, wanted)| {
                    matches(wanted, Some(&json!(self.state(name))))
                        .map_err(|reason| format!("{name}: {reason}"))
                }),
            "spawned" => matches(wanted, Some(&json!(self.marker.log.starts().len()))),
            "unseen" => wanted.as_array().into_iter().flatten().try_for_each(|one| {
                let host = &self.hosts[one["on"].as_str().unwrap_or("rs")];
                let seen = host.log();
                let pattern = one["match"].as_str().unwrap_or("* *");
                let count = seen.iter().filter(|request| request.is(pattern)).count();
                if count == 0 {
                    Ok(())
                } else {
                    Err(format!("seen {count} times"))
                }
            }),
            "calls" if wanted == "refused" => match self.calls.iter().find(|outcome| outcome.is_ok()) {
                Some(outcome) => Err(format!("not refused: {outcome:?}")),
                None => Ok(()),
            },
            "calls" => {
                for (index, wanted) in wanted.as_array().into_iter().flatten().enumerate() {
                    let outcome = self.calls.get(index).ok_or("too few calls")?;
                    match (wanted.as_str(), outcome) {
                        (Some("ok"), Ok(_)) => {}
                        (Some("no such server"), Err(error)) if error.data["reason"] == "unknown" => {}
                        (None, Err(error)) => mentions(&wanted["error_mentions"], &error.to_string())?,
                        _ => return Err(format!("call {index}: {outcome:?}")),
                    }
                }
                Ok(())
            }
            "listing_lacks" => lacks(wanted, &self.listed),
            "review_has" => {
                let missing = wanted
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|text| !self.shown.contains(text.as_str().unwrap_or_default()));
                missing.map_or(Ok(()), |missing| {
                    Err(format!("{missing} is not in {}", self.shown))
                })
            }
            "review_lacks" => lacks(wanted, &self.shown),
            "approve" => match (&self.approve, wanted.as_str()) {
                (Some(Err(_)), Some("refused")) | (Some(Ok(_)), Some("ok")) => Ok(()),
                (outcome, _) => Err(format!("{outcome:?}")),
            },
            "alive" => {
                let names = || -> Vec<String> {
                    let processes = self.env.server_processes();
                    processes
                        .iter()
                        .map(|process| process.command.join(" "))
                        .collect()
                };
                let count = wanted.as_array().map_or(0, Vec::len);
                clock::poll(clock::PATIENCE, || (names().len() == count).then_some(()))
                    .ok_or_else(|| format!("{:?}", names()))
            }
            "accepted" => matches(wanted, Some(&json!(self.accepted))),
            "refused" => matches(wanted, Some(&json!(self.refused))),
            "after_clock" => matches(wanted, Some(&json!(self.after_clock))),
            "rejected_details_kept" => {
                let text = std::fs::read_to_string(self.env.data().join("mcp.json")).unwrap_or_default();
                let status = self.host.must("mcp.status", json!({})).to_string();
                let kept = [&text, &status].iter().any(|text| {
                    text.contains(&self.marker.command)
                        || self.hosts.values().any(|host| text.contains(&host.origin))
                });
                matches(wanted, Some(&json!(kept)))
            }
            other => Err(format!("this runner does not know `{other}`")),
        }
    }
}
