//! The entries of one file: which of its members they are, and what is wrong with each, by its place.

use protocol::ServerEntry;
use serde_json::{Map, Value};

use super::file::{Fault, FileEntry};
use super::members::known_members;
use super::syntax::Document;
use super::validate::{NEITHER, problems};
use crate::spelling::nearest;

/// Names that a *new* entry may have are shorter; a file may hold names up to this many characters.
const NAME_CHARS: usize = 200;
/// The members of a file.
const BESIDE: [&str; 8] = [
    "servers",
    "profiles",
    "defaultProfile",
    "packages",
    "switches",
    "pending",
    "tombstones",
    "approved",
];

/// Entries of one file. More than any person keeps; without a bound a hostile file makes every list endless.
const ENTRIES: usize = 500;

/// The object of entries, if there is one. An error means that the file as a whole holds no entries.
pub(super) fn servers<'v>(
    document: &Document<'_>,
    root: &'v Value,
) -> Result<Option<&'v Map<String, Value>>, Fault> {
    let members = match root {
        Value::Null => return Ok(None),
        Value::Object(members) => members,
        _ => {
            return Err(Fault {
                message: "the file must hold an object with `servers`".to_owned(),
                place: Some(document.place::<&str>(&[])),
            });
        }
    };
    if document.repeated_names(&[]).iter().any(|name| name == "servers") {
        return Err(Fault {
            message: "`servers` occurs twice".to_owned(),
            place: Some(document.place_of_name::<&str>(&[], "servers")),
        });
    }
    match members.get("servers") {
        None | Some(Value::Null) if members.contains_key("mcpServers") => Err(Fault {
            message: "`mcpServers` is another program's format: rename it to `servers`".to_owned(),
            place: Some(document.place_of_name::<&str>(&[], "mcpServers")),
        }),
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(servers)) => Ok(Some(servers)),
        Some(_) => Err(Fault {
            message: "`servers` must be an object of entries by name".to_owned(),
            place: Some(document.place(&["servers"])),
        }),
    }
}

/// The entries of a file, in its order, and what was left out. An error means that the file as a whole holds no entries.
pub(crate) fn entries(document: &Document<'_>) -> Result<(Vec<FileEntry>, Option<Fault>), Fault> {
    let root = document.value();
    let servers = servers(document, &root)?;
    let slip = root
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter(|name| !BESIDE.contains(&name.as_str()))
        .find_map(|name| {
            let meant = nearest(name, BESIDE)?;
            Some(Fault {
                message: cut(format!("`{name}` is not known; did you mean `{meant}`?")),
                place: Some(document.place_of_name::<&str>(&[], name)),
            })
        });
    let Some(servers) = servers else {
        return Ok((Vec::new(), slip));
    };
    let repeated = document.repeated_names(&["servers"]);
    let mut left_out = None;
    let mut named = Vec::with_capacity(servers.len().min(ENTRIES));
    for (name, value) in servers {
        let problem = if name.is_empty() || name.chars().count() > NAME_CHARS {
            format!("an entry was left out: a name has 1 to {NAME_CHARS} characters")
        } else if name.chars().any(char::is_control) {
            "an entry was left out: its name holds control characters".to_owned()
        } else if named.len() == ENTRIES {
            format!("only the first {ENTRIES} entries are read")
        } else {
            named.push((name, value));
            continue;
        };
        left_out.get_or_insert_with(|| Fault {
            message: problem,
            place: Some(document.place_of_name(&["servers"], name)),
        });
    }
    let entries = named.into_iter().map(|(name, value)| {
        let mut entry = one(document, name, value);
        if repeated.contains(name) {
            let place = document.place_of_name(&["servers"], name);
            entry.faults.push(Fault {
                message: format!("`{name}` occurs twice"),
                place: Some(place),
            });
        }
        entry
    });
    Ok((entries.collect(), left_out.or(slip)))
}

fn one(document: &Document<'_>, name: &str, value: &Value) -> FileEntry {
    let (known, unknown) = known_members(value);
    let problems = problems(&known);
    // What does not fit is not even shown: it may be of any size.
    let mut fitting = known.clone();
    if let Some(members) = fitting.as_object_mut() {
        members.retain(|name, _| !problems.iter().any(|problem| problem.path.first() == Some(name)));
    }
    let faults = problems.into_iter().map(|mut problem| {
        if problem.message == NEITHER
            && let Some(strange) = unknown
                .iter()
                .find(|unknown| unknown.meant.is_some())
                .or(unknown.first())
        {
            problem.message = format!("{NEITHER}; {}", strange.said());
        }
        let mut path = vec!["servers".to_owned(), name.to_owned()];
        path.extend(problem.path.iter().cloned());
        Fault {
            message: cut(problem.message),
            place: Some(document.place(&path)),
        }
    });
    let faults: Vec<Fault> = faults.collect();
    let entry = serde_json::from_value(fitting.clone()).unwrap_or_else(|_| shown_part(&fitting));
    FileEntry {
        name: name.to_owned(),
        entry,
        faults,
        unknown: unknown
            .into_iter()
            .filter(|unknown| unknown.pointer.chars().count() <= 512)
            .collect(),
    }
}

/// A message may name a member that is as long as a file.
pub(super) fn cut(message: String) -> String {
    match message.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// What can be shown of an entry that does not fit: its members that fit one by one.
fn shown_part(value: &Value) -> ServerEntry {
    let mut fitting = Map::new();
    for (name, member) in value.as_object().into_iter().flatten() {
        let mut with = fitting.clone();
        with.insert(name.clone(), member.clone());
        if serde_json::from_value::<ServerEntry>(Value::Object(with.clone())).is_ok() {
            fitting = with;
        }
    }
    serde_json::from_value(Value::Object(fitting)).unwrap_or_default()
}
