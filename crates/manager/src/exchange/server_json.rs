//! `server.json`, as the official registry and repositories have it: how to run or reach the server it describes.
//!
//! Read as the schema of 2025-12-11 says, the older spelling with underscores too. Its texts are data: an argument stays one
//! argument, a program is one of a short list, and a text that would read a variable of this machine is refused.
//! What a person must fill in stands as `${input:LABEL}` where it belongs, and in `needs`.

use std::collections::BTreeMap;

use protocol::{EntryTransport, Need, Pointer, ServerEntry};
use serde_json::{Map, Value};

use super::{declared, names};
use crate::config::{secret, validate};

mod input;
mod package;
mod runner;
#[cfg(test)]
mod tests;

use input::Inputs;

/// Ways to one server that are looked at.
const WAYS: usize = 32;
/// Characters of a text that is only shown.
const SHOWN: usize = 500;

/// What a `server.json` says.
#[derive(Debug, Default)]
pub(crate) struct ServerJson {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub version: Option<String>,
    /// Its page, else its repository.
    pub page: Option<String>,
    /// Best first.
    pub ways: Vec<Way>,
    /// Why other ways cannot be gone.
    pub refused: Vec<String>,
}

/// One way to run or reach it.
#[derive(Debug)]
pub(crate) struct Way {
    /// `npm`, `pypi`, `oci`, `nuget` or `remote`.
    pub kind: &'static str,
    pub entry: ServerEntry,
    pub needs: Vec<Need>,
    pub warnings: Vec<String>,
    /// What is put to work most easily comes first.
    rank: u8,
}

/// The description inside of a document: bare, or as the registry answers it.
pub(crate) fn inside(value: &Value) -> Option<&Value> {
    let bare = |value: &Value| {
        value["name"].as_str().is_some_and(|name| name.contains('/'))
            && (value["packages"].is_array() || value["remotes"].is_array())
            // An entry of a client's configuration may have members of these names too.
            && !super::entry::is_server(value)
    };
    if bare(value) {
        return Some(value);
    }
    value.get("server").filter(|server| bare(server))
}

/// Reads a description. What cannot be used is said in `refused`, never an error.
pub(crate) fn read(value: &Value) -> ServerJson {
    let shown_text = |name: &str| {
        member(value, name)
            .as_str()
            .map(shown)
            .filter(|text| !text.is_empty())
    };
    let mut read = ServerJson {
        name: shown_text("name").unwrap_or_default(),
        title: shown_text("title"),
        description: shown_text("description").unwrap_or_default(),
        version: shown_text("version")
            .or_else(|| member(value, "versionDetail")["version"].as_str().map(shown)),
        page: [&value["websiteUrl"], &value["repository"]["url"]]
            .into_iter()
            .filter_map(Value::as_str)
            .find(|url| url.starts_with("https://"))
            .map(shown),
        ..Default::default()
    };
    for remote in list(value, "remotes").iter().take(WAYS) {
        read.way(remote_way(remote));
    }
    for package in list(value, "packages").iter().take(WAYS) {
        read.way(package::way(package));
    }
    if read.ways.is_empty() && read.refused.is_empty() {
        read.refused
            .push("its description names neither a package nor an address".to_owned());
    }
    // Stable: what its publisher names first stays first.
    read.ways
        .sort_by_key(|way| (way.rank, way.needs.iter().filter(|need| need.required).count()));
    read
}

impl ServerJson {
    fn way(&mut self, way: Result<Way, String>) {
        match way.and_then(checked) {
            Ok(mut way) => {
                way.entry.source =
                    Some(format!("registry:{}", self.name)).filter(|source| source.len() <= 256);
                declared::remember(&mut way.entry, &way.needs);
                way.entry.label = self.title.clone().filter(|title| title.chars().count() <= 200);
                self.ways.push(way);
            }
            Err(reason) => self.refused.push(reason),
        }
    }

    /// What to call its entry.
    pub fn short_name(&self) -> String {
        let (namespace, name) = self.name.split_once('/').unwrap_or(("", &self.name));
        let short = names::short(name);
        let is_empty_word = ["mcp", "server", "mcp-server", "mcp_server"].contains(&short.as_str());
        match namespace.rsplit('.').next() {
            Some(publisher) if is_empty_word && !publisher.is_empty() => names::fitting(publisher),
            _ => names::fitting(&short),
        }
    }
}

/// The last look at an entry: it must be one that a file may hold.
fn checked(way: Way) -> Result<Way, String> {
    let value = serde_json::to_value(&way.entry).map_err(|error| error.to_string())?;
    match validate::problems(&value).first() {
        None => Ok(way),
        Some(problem) => Err(format!(
            "its way through {} cannot be used: {}",
            way.kind, problem.message
        )),
    }
}

fn remote_way(remote: &Value) -> Result<Way, String> {
    let kind = [member(remote, "type"), member(remote, "transportType")]
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or("streamable-http");
    let transport = match kind {
        "streamable-http" | "streamable" | "http" => None,
        "sse" => Some(EntryTransport::Sse),
        other => return Err(format!("there is no transport `{}` here", shown(other))),
    };
    let template = remote["url"].as_str().unwrap_or_default();
    let mut inputs = Inputs::default();
    let url = inputs.template(template, member(remote, "variables"), "/url", false)?;
    let Some(url) = url else {
        return Err("its address needs a value that it does not ask for".to_owned());
    };
    let parsed =
        url::Url::parse(&inputs.sample(&url)).map_err(|error| format!("its address is no URL: {error}"))?;
    let is_local = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if is_local {
        return Err("its address is on this machine, and nothing says what runs there".to_owned());
    }
    if parsed.scheme() != "https" && parsed.scheme() != "http" {
        return Err(format!("its address begins with `{}:`", parsed.scheme()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("its address names a user".to_owned());
    }
    let mut headers = BTreeMap::new();
    for header in list(remote, "headers") {
        inputs.named_value("headers", header, &mut headers)?;
    }
    let mut warnings = inputs.warnings();
    if parsed.scheme() == "http" {
        warnings.push("the connection is not encrypted".to_owned());
    }
    Ok(Way {
        kind: "remote",
        entry: ServerEntry {
            url: Some(url.into()),
            transport,
            headers: (!headers.is_empty()).then_some(headers),
            ..Default::default()
        },
        needs: inputs.needs,
        warnings,
        rank: u8::from(transport.is_some()),
    })
}

/// A member by its name of today, else by the older one: `runtimeHint`, `runtime_hint`.
fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    if let Some(found) = value.get(name) {
        return found;
    }
    let mut older = String::with_capacity(name.len() + 4);
    for one in name.chars() {
        if one.is_ascii_uppercase() {
            older.push('_');
        }
        older.push(one.to_ascii_lowercase());
    }
    &value[older.as_str()]
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    member(value, name).as_array().map_or(&[], Vec::as_slice)
}

fn variables(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|map| !map.is_empty())
}

/// A text that is only shown: short, and on one line.
fn shown(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|one: char| one.is_whitespace() || one.is_control())
        .collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(SHOWN).collect()
}

fn need(at: &str, label: &str, input: &Value, secret: bool, required: bool) -> Need {
    let text = |name: &str| {
        member(input, name)
            .as_str()
            .map(shown)
            .filter(|text| !text.is_empty())
    };
    let described = match (text("description"), text("placeholder")) {
        (Some(description), Some(example)) => Some(format!("{description} (for instance {example})")),
        (Some(description), None) => Some(description),
        (None, Some(example)) => Some(format!("for instance {example}")),
        (None, None) => None,
    };
    let choices = list(input, "choices").iter().filter_map(Value::as_str).map(shown);
    let choices: Vec<String> = choices.take(100).collect();
    Need {
        at: Pointer::from(at.to_owned()),
        label: label.to_owned(),
        secret,
        required,
        description: described,
        default: plain(member(input, "default")).filter(|default| !secret && !default.contains("${")),
        choices: (!choices.is_empty() && !secret).then_some(choices),
    }
}

/// Texts, and numbers and truths that were written without quotes.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        _ => None,
    }
}

fn is_secret(input: &Value, name: &str) -> bool {
    member(input, "isSecret") == &Value::Bool(true) || secret::is_secret_name(name)
}

fn is_required(input: &Value) -> bool {
    member(input, "isRequired") == &Value::Bool(true)
}
