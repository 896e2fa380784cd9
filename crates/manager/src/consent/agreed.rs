//! What a person agreed to, as it is kept: enough to know it again, and to say what differs from it, but no secret.

use std::collections::BTreeMap;
use std::path::PathBuf;

use protocol::{Pointer, ServerEntry, Target};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::held::Held;
use super::review;
use crate::config::file;

/// One entry as it was when it was trusted or approved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Agreed {
    pub digest: String,
    /// What the person was shown; for the comparison when it is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Digests of the values of its members, which are not shown.
    members: BTreeMap<String, String>,
    /// The project whose file its `envFile` is: the content of that was agreed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
}

/// As it stands in a file.
#[derive(Deserialize)]
struct Text {
    digest: String,
    target: Option<Target>,
    #[serde(default)]
    members: BTreeMap<String, String>,
    root: Option<PathBuf>,
}

impl<'de> Deserialize<'de> for Agreed {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Agreed, D::Error> {
        let text = match Value::deserialize(reader)? {
            // At first there were only digests.
            Value::String(digest) => Text {
                digest,
                target: None,
                members: BTreeMap::new(),
                root: None,
            },
            whole => serde_json::from_value(whole).map_err(D::Error::custom)?,
        };
        Ok(Agreed {
            digest: text.digest,
            target: text.target,
            members: text.members,
            root: text.root,
        })
    }
}

impl Agreed {
    pub fn new(entry: &ServerEntry, target: Option<Target>, held: Option<&Held>) -> Agreed {
        Agreed {
            digest: review::digest(entry, held),
            target,
            members: members(entry, held),
            root: held.map(|held| held.root.clone()),
        }
    }

    /// The members of an entry that are not what was agreed to.
    pub fn changed(&self, entry: &ServerEntry, held: Option<&Held>) -> Vec<Pointer> {
        // Of what was agreed to long ago nothing more is known.
        if self.members.is_empty() {
            return Vec::new();
        }
        differing(&self.members, &members(entry, held))
    }
}

/// The members that differ between two entries, all but when they were written.
pub(crate) fn changed(before: &ServerEntry, after: &ServerEntry) -> Vec<Pointer> {
    const TIMES: [&str; 2] = ["createdAt", "updatedAt"];
    let all = |entry: &ServerEntry| {
        let value = json!(entry);
        let names = value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.filter(|name| !TIMES.contains(name)).collect();
        digests(&value, &names)
    };
    differing(&all(before), &all(after))
}

fn differing(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<Pointer> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differ = |name: &&&String| before.get(**name) != after.get(**name);
    let pointers = names.iter().filter(differ);
    pointers.map(|name| Pointer::from(name.as_str())).collect()
}

/// What [`review::digest`] covers, member by member.
fn members(entry: &ServerEntry, held: Option<&Held>) -> BTreeMap<String, String> {
    const NAMES: [&str; 16] = [
        "command",
        "args",
        "env",
        "envFile",
        "cwd",
        "url",
        "headers",
        "transport",
        "oauth",
        "protocol",
        "elicitation",
        "headersHelper",
        "tls",
        "account",
        "inputs",
        "tools",
    ];
    let mut value = json!(entry);
    if let Some(held) = held {
        value["envFile"] = json!([value["envFile"], held.digest()]);
    }
    let mut members = digests(&value, &NAMES);
    // What nobody is asked about is shown as such, and counts for nothing in a project.
    members.remove("/tools/auto");
    members
}

/// The digests of members; variables, headers and lists of tools one by one.
fn digests(entry: &Value, names: &[&str]) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    let mut put = |pointer: String, value: &Value| {
        if !value.is_null() {
            digests.insert(pointer, file::digest(value.to_string().as_bytes()));
        }
    };
    for name in names {
        match (*name, &entry[*name]) {
            ("env" | "headers" | "tools", Value::Object(values)) => {
                for (key, value) in values {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    put(format!("/{name}/{key}"), value);
                }
            }
            (_, value) => put(format!("/{name}"), value),
        }
    }
    digests
}
