//! Entries as texts for other programs.

use std::collections::BTreeMap;

use protocol::{ExportFormat, ExportSecrets, ServerEntry};
use serde_json::{Map, Value, json};

use crate::config::secret;

/// An exported text, and what a person should know of it.
pub(crate) struct Written {
    pub text: String,
    pub warnings: Vec<String>,
}

/// Members that the map of other programs can say.
const SHARED: [&str; 7] = ["command", "args", "env", "cwd", "envFile", "headers", "oauth"];
/// Members that say nothing about how to run a server.
const BOOKKEEPING: [&str; 3] = ["createdAt", "updatedAt", "source"];

/// Writes entries in a form.
pub(crate) fn write(
    entries: &BTreeMap<String, ServerEntry>,
    format: ExportFormat,
    secrets: ExportSecrets,
) -> Written {
    let mut warnings = Vec::new();
    let mut named = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        let value = with_secrets(name, entry, secrets, &mut warnings);
        named.push((name, value));
    }
    if secrets == ExportSecrets::Include && entries.values().any(|entry| !secret::masked(entry).1.is_empty())
    {
        warnings.push("the text holds secrets: treat it like a password".to_owned());
    }
    let whole = match format {
        ExportFormat::Store => {
            let map: Map<String, Value> = named
                .into_iter()
                .map(|(name, value)| (name.clone(), value))
                .collect();
            json!({ "servers": map })
        }
        ExportFormat::List => {
            let list: Vec<Value> = named
                .into_iter()
                .map(|(name, value)| listed(name, value))
                .collect();
            json!({ "version": 1, "servers": list })
        }
        ExportFormat::McpServers => {
            let map: Map<String, Value> = named
                .into_iter()
                .map(|(name, value)| (name.clone(), shared(name, value, &mut warnings)))
                .collect();
            json!({ "mcpServers": map })
        }
    };
    Written {
        text: serde_json::to_string_pretty(&whole).unwrap_or_default(),
        warnings,
    }
}

fn with_secrets(
    name: &str,
    entry: &ServerEntry,
    secrets: ExportSecrets,
    warnings: &mut Vec<String>,
) -> Value {
    let (masked, pointers) = secret::masked(entry);
    match secrets {
        ExportSecrets::Include => serde_json::to_value(entry).unwrap_or_default(),
        ExportSecrets::Mask => serde_json::to_value(&masked).unwrap_or_default(),
        ExportSecrets::Reference => {
            let mut value = serde_json::to_value(&masked).unwrap_or_default();
            for pointer in pointers {
                let variable = variable(name, &pointer);
                if let Some(slot) = value.pointer_mut(&pointer)
                    && let Some(text) = slot.as_str()
                {
                    *slot = text.replace(secret::MASK, &format!("${{{variable}}}")).into();
                    warnings.push(format!("`{name}`: {pointer} is read from ${{{variable}}}"));
                }
            }
            value
        }
    }
}

/// The variable that stands for a secret: of `env` its own name, else one after server and member.
fn variable(server: &str, pointer: &str) -> String {
    if let Some(name) = pointer.strip_prefix("/env/")
        && super::words::is_name(name)
    {
        return name.to_owned();
    }
    let name: String = format!("{server}{pointer}")
        .chars()
        .map(|one| {
            if one.is_ascii_alphanumeric() {
                one.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

/// As `mcp-servers.json` has it: a list with the name inside.
fn listed(name: &str, mut value: Value) -> Value {
    let transport = match (value.get("url"), value["transport"].as_str()) {
        (None, _) => "stdio",
        (_, Some("sse")) => "sse",
        _ => "streamable-http",
    };
    let label = value["label"].as_str().unwrap_or(name).to_owned();
    let enabled = value["enabled"] != false;
    let mut out = json!({ "serverName": name, "label": label, "enabled": enabled, "transport": transport });
    if let Some(members) = value.as_object_mut() {
        for member in ["label", "enabled", "transport"] {
            members.remove(member);
        }
        for (member, value) in std::mem::take(members) {
            let member = if member == "timeoutMs" {
                "toolCallTimeoutMs".to_owned()
            } else {
                member
            };
            out[member] = value;
        }
    }
    out
}

/// The map that most other programs read; what it cannot say is warned of.
fn shared(name: &str, value: Value, warnings: &mut Vec<String>) -> Value {
    let mut out = Map::new();
    let mut lost = Vec::new();
    if value.get("url").is_some() {
        let kind = value["transport"].as_str().unwrap_or("http");
        out.insert("type".to_owned(), kind.into());
    }
    for (member, value) in value.as_object().into_iter().flatten() {
        match member.as_str() {
            "url" => drop(out.insert("url".to_owned(), value.clone())),
            "transport" => {}
            "enabled" => {
                if value == false {
                    out.insert("disabled".to_owned(), true.into());
                }
            }
            "timeoutMs" => drop(out.insert("timeout".to_owned(), value.clone())),
            shared if SHARED.contains(&shared) => drop(out.insert(shared.to_owned(), value.clone())),
            other if BOOKKEEPING.contains(&other) => {}
            other => lost.push(other.to_owned()),
        }
    }
    if !lost.is_empty() {
        warnings.push(format!("`{name}`: the form cannot say {}", lost.join(", ")));
    }
    Value::Object(out)
}
