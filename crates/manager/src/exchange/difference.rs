//! In what two entries differ, whoever wrote them.

use protocol::ServerEntry;
use serde_json::{Map, Value, json};

/// Members that say nothing about how to run a server.
pub(super) const BOOKKEEPING: [&str; 5] = ["createdAt", "updatedAt", "source", "secrets", "inputs"];

/// An entry without what says nothing about how to run it, for comparisons.
pub(crate) fn bare(entry: &ServerEntry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        for member in BOOKKEEPING {
            members.remove(member);
        }
        // Both are tried without the word, and other programs mean the same by it.
        if members
            .get("transport")
            .is_some_and(|transport| transport == "http")
        {
            members.remove("transport");
        }
        if members.get("enabled") == Some(&Value::Bool(true)) {
            members.remove("enabled");
        }
        members.retain(|_, value| !is_blank(value));
    }
    value
}

fn is_blank(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Members in which two entries differ; of `oauth` and `tools` those inside.
pub(crate) fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut differ = Vec::new();
    let names = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    };
    let mut all = names(one);
    all.extend(names(other).into_iter().filter(|name| one.get(name).is_none()));
    for name in all {
        let (one, other) = (one.get(&name), other.get(&name));
        if one == other {
            continue;
        }
        let none = json!({});
        match (one.unwrap_or(&none), other.unwrap_or(&none)) {
            (one @ Value::Object(_), other @ Value::Object(_))
                if ["oauth", "tools", "tls", "reconnect"].contains(&name.as_str()) =>
            {
                let inner = differences(one, other);
                differ.extend(inner.iter().map(|inner| format!("{name}.{inner}")));
            }
            _ => differ.push(name),
        }
    }
    differ
}
