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

/// The members that differ between two entries, of those that decide what is started.
pub(crate) fn changed(before: &ServerEntry, after: &ServerEntry) -> Vec<Pointer> {
    differing(&members(before, None), &members(after, None))
}

fn differing(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<Pointer> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differ = |name: &&&String| before.get(**name) != after.get(**name);
    let pointers = names.iter().filter(differ);
    pointers.map(|name| Pointer::from(name.as_str())).collect()
}

/// What [`review::digest`] covers, member by member; variables and headers one by one.
fn members(entry: &ServerEntry, held: Option<&Held>) -> BTreeMap<String, String> {
    const WHOLE: [&str; 12] = [
        "command",
        "args",
        "envFile",
        "cwd",
        "url",
        "transport",
        "oauth",
        "protocol",
        "elicitation",
        "headersHelper",
        "tls",
        "account",
    ];
    let mut entry = json!(entry);
    if let Some(held) = held {
        entry["envFile"] = json!([entry["envFile"], held.digest()]);
    }
    let whole = WHOLE.iter().map(|name| (format!("/{name}"), &entry[*name]));
    let each = ["env", "headers"].into_iter().flat_map(|name| {
        let values = entry[name].as_object().into_iter().flatten();
        values.map(move |(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            (format!("/{name}/{key}"), value)
        })
    });
    let overrides = ("/tools/overrides".to_owned(), &entry["tools"]["overrides"]);
    let all = whole.chain(each).chain([overrides]);
    all.filter(|(_, value)| **value != Value::Null)
        .map(|(name, value)| (name, file::digest(value.to_string().as_bytes())))
        .collect()
}
