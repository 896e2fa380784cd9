//! What comes from elsewhere: pasted texts, other programs' configurations, descriptions of the registry.

use std::collections::BTreeMap;

use protocol::{ExportFormat, ExportSecrets, Issue, ServerEntry};
use serde_json::Value;

use super::{SECRET, choice_and_text, is_inside, is_kept_secret, says_no_secret};
use crate::config::{expand, validate};
use crate::exchange::server_json::{self, ServerJson};
use crate::exchange::stand_ins::StandIns;
use crate::exchange::{
    Dialect, Outcome, difference, document, edit, harvest, paste as pasted, programs, write,
};

/// Entries of one text that are looked at closely.
const ENTRIES: usize = 4;

/// A pasted text.
pub fn paste(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = pasted::read(&text);
    assert_eq!(
        format!("{read:?}"),
        format!("{:?}", pasted::read(&text)),
        "reading is not repeatable"
    );
    for server in &read.servers {
        is_valid(&server.entry);
    }
    read.described.iter().for_each(is_harmless);
    if is_secret_assigned(&text) {
        for problem in &read.problems {
            says_no_secret(&problem.message);
        }
    }
}

/// The first byte chooses the program, the second the one that is exported to; the rest is a configuration.
pub fn import(data: &[u8]) {
    let Some((to, data)) = data.split_first() else {
        return;
    };
    let Some((from, text)) = choice_and_text(data) else {
        return;
    };
    let format = |choice: usize| ExportFormat::ALL[choice % ExportFormat::ALL.len()];
    let (from, to) = (format(from), format(usize::from(*to)));
    let dialect = dialect(from);
    let read = harvest(&text, dialect);
    assert_eq!(
        format!("{read:?}"),
        format!("{:?}", harvest(&text, dialect)),
        "reading is not repeatable"
    );
    let read = match read {
        Ok((read, _)) => read,
        Err(fault) => {
            says_no_secret(&fault.message);
            return fault.place.into_iter().for_each(|place| is_inside(place, &text));
        }
    };
    let is_kept = document::read(&text).is_ok_and(|value| is_kept_secret(&value, false));
    let mut entries = BTreeMap::new();
    for found in read.found {
        match found.outcome {
            Outcome::Entry(entry) => {
                is_valid(&entry);
                if entries.len() < ENTRIES && !found.name.is_empty() {
                    entries.insert(found.name, *entry);
                }
            }
            Outcome::Skipped(reason) | Outcome::Failed(reason) if is_kept => says_no_secret(&reason),
            Outcome::Skipped(_) | Outcome::Failed(_) => {}
        }
    }
    for note in read.notes.iter().filter(|_| is_kept) {
        says_no_secret(&note.message);
    }
    read.described.iter().for_each(is_harmless);
    reads_back(&entries, to);
    if let Some((name, entry)) = entries.first_key_value() {
        sets_one(&text, from, name, entry);
    }
}

/// A `server.json` of the registry.
pub fn server_json(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let description = server_json::inside(&value).unwrap_or(&value);
    let read = server_json::read(description);
    assert_eq!(
        format!("{read:?}"),
        format!("{:?}", server_json::read(description)),
        "reading is not repeatable"
    );
    is_harmless(&read);
}

#[track_caller]
fn is_valid(entry: &ServerEntry) {
    let value = serde_json::to_value(entry).expect("an entry is JSON");
    let problems = validate::problems(&value);
    assert!(problems.is_empty(), "{problems:?} of {value}");
}

/// Whether the secret is always the value of something.
fn is_secret_assigned(text: &str) -> bool {
    text.match_indices(SECRET)
        .all(|(at, _)| text[..at].ends_with(['=', ' ']))
}

/// What a stranger describes is valid, runs nothing but the known programs, and reads nothing of this machine.
#[track_caller]
pub(crate) fn is_harmless(read: &ServerJson) {
    assert!(!read.ways.is_empty() || !read.refused.is_empty());
    for way in &read.ways {
        is_valid(&way.entry);
        if let Some(command) = &way.entry.command {
            assert!(["npx", "bunx", "uvx", "docker", "podman", "dnx"].contains(&command.as_str()));
        }
        let entry = &way.entry;
        let maps = [&entry.env, &entry.headers]
            .into_iter()
            .flatten()
            .flat_map(BTreeMap::values);
        let texts = entry.args.iter().flatten().chain(maps);
        for text in texts.chain(entry.url.iter().map(|url| &url.0)) {
            for (name, _) in expand::references(text) {
                assert!(name.starts_with("input:"), "`{name}` of this machine is read");
            }
        }
        // No secret is prefilled, and what is missing has a place.
        let value = serde_json::to_value(entry).expect("an entry is JSON");
        for need in &way.needs {
            assert!(!need.secret || need.default.is_none());
            let stands = value.pointer(&need.at).and_then(Value::as_str);
            let hole = format!("${{input:{}}}", need.label);
            assert!(!need.secret || stands.is_none_or(|text| text.contains(&hole)));
            let given = need.choices.as_ref().map_or("v", |choices| &choices[0]);
            assert!(crate::exchange::fill::fill(entry, need, given).is_ok());
        }
    }
}

fn dialect(format: ExportFormat) -> Dialect {
    programs::form(format).map_or(Dialect::Common, |form| form.dialect)
}

/// What is written for another program and read again is the same, but for what was said to be left out.
#[track_caller]
pub(crate) fn reads_back(entries: &BTreeMap<String, ServerEntry>, format: ExportFormat) {
    let written = write::write(entries, format, ExportSecrets::Include);
    let read = match harvest(&written.text, dialect(format)) {
        Ok((read, _)) => read,
        Err(_) if entries.is_empty() => return,
        Err(fault) => panic!("{format}: {fault} in {}", written.text),
    };
    let mut back = BTreeMap::new();
    for found in read.found {
        let Outcome::Entry(mut entry) = found.outcome else {
            panic!("{format}: {:?} in {}", found.outcome, written.text)
        };
        // The list gives every server a label.
        if format == ExportFormat::List && entry.label.as_ref() == Some(&found.name) {
            entry.label = None;
        }
        back.insert(found.name, *entry);
    }
    for (name, entry) in entries {
        let Some(back) = back.get(name) else {
            let is_said = left_out(&written.left_out, name).contains(name);
            assert!(is_said, "{format}: {name:?} is gone in {}", written.text);
            continue;
        };
        let differ = differs_unsaid(name, entry, back, &written.left_out);
        assert!(
            differ.is_empty(),
            "{format}: {differ:?} of {name:?} in {}",
            written.text
        );
    }
}

/// A server is set in a text, or that is refused; the same again changes nothing.
#[track_caller]
pub(crate) fn sets_one(text: &str, format: ExportFormat, name: &str, entry: &ServerEntry) -> Option<String> {
    let form = programs::form(format)?;
    let rendered = write::render(
        name,
        entry,
        &form,
        ExportSecrets::Include,
        &mut StandIns::default(),
    )
    .ok()?;
    let set = edit::set(text, &form, name, &rendered.value);
    let set = set.inspect_err(|fault| says_no_secret(&fault.message)).ok()?;
    let again = edit::set(&set, &form, name, &rendered.value);
    assert_eq!(
        again.as_ref(),
        Ok(&set),
        "{format}: the same again changes something"
    );
    Some(set)
}

/// What was not said of an entry of this name.
fn left_out(issues: &[Issue], name: &str) -> Vec<String> {
    let of = issues
        .iter()
        .filter(|issue| issue.server.as_deref() == Some(name));
    of.filter_map(|issue| issue.item.clone()).collect()
}

fn differs_unsaid(name: &str, entry: &ServerEntry, back: &ServerEntry, issues: &[Issue]) -> Vec<String> {
    let said = left_out(issues, name);
    let mut differ = difference::differences(&difference::bare(entry), &difference::bare(back));
    differ.retain(|member| {
        !said.iter().any(|said| {
            said == member
                || said.starts_with(&format!("{member}."))
                || member.starts_with(&format!("{said}."))
        })
    });
    differ
}
