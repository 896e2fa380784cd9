//! `mcp.json`: what is read of it, and that an edit changes what it should and nothing else.

use std::path::Path;

use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use serde_json::{Value, json};

use super::{choice_and_text, is_inside, is_kept_secret, says_no_secret};
use crate::config::syntax::Document;
use crate::config::{entries, store, syntax, validate};

/// The first byte chooses the entry that is edited; the rest is the file.
pub fn config(data: &[u8]) {
    let Some((choice, text)) = choice_and_text(data) else {
        return;
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(fault) => {
            says_no_secret(&fault.message);
            is_inside(fault.place, text);
            assert_eq!(
                edited(text, "a", Some(&json!({}))),
                None,
                "a broken file was edited"
            );
            return;
        }
    };
    let value = document.value();
    reads(text, &document, &value);
    crate::consent::ledger::Ledger::read(&value);
    if !document.repeated_names(&["servers"]).is_empty() {
        return;
    }
    let names: Vec<&String> = value["servers"]
        .as_object()
        .into_iter()
        .flat_map(|servers| servers.keys())
        .collect();
    let name = match choice % (names.len() + 1) {
        0 => "a new one",
        index => names[index - 1],
    };
    sets(text, &value, name);
    removes(text, &value, name);
}

fn reads(text: &str, document: &Document<'_>, value: &Value) {
    let read = entries::entries(document);
    assert_eq!(read, entries::entries(document), "reading is not repeatable");
    let is_kept = is_kept_secret(value, false);
    let check = |fault: &crate::config::file::Fault| {
        fault.place.into_iter().for_each(|place| is_inside(place, text));
        if is_kept {
            says_no_secret(&fault.message);
        }
    };
    match &read {
        Err(fault) => check(fault),
        Ok((entries, left_out)) => {
            left_out.iter().for_each(check);
            for entry in entries {
                assert!((1..=200).contains(&entry.name.chars().count()));
                entry.faults.iter().for_each(check);
                let value = serde_json::to_value(&entry.entry).expect("an entry is JSON");
                let problems = validate::problems(&value);
                assert!(!entry.faults.is_empty() || problems.is_empty(), "{problems:?}");
            }
        }
    }
}

fn sets(text: &str, before: &Value, name: &str) {
    let new = json!({"command": "x", "args": ["a\n", "é"], "timeoutMs": 5000});
    let Some(changed) = edited(text, name, Some(&new)) else {
        return;
    };
    let mut expected = before.clone();
    expected["servers"][name] = new.clone();
    same(&changed, &expected);
    assert_eq!(
        edited(&changed, name, Some(&new)).as_deref(),
        Some(&*changed),
        "the same again changes something"
    );
    match place(text, name) {
        Some(range) => {
            assert!(
                changed.starts_with(&text[..range.start]),
                "text before it changed"
            );
            assert!(changed.ends_with(&text[range.end..]), "text behind it changed");
        }
        None => {
            // Apart from commas and blanks, something was put in and nothing taken away.
            let [old, new] = [text, &changed].map(|text| {
                let is_kept = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b',';
                text.bytes().filter(is_kept).collect::<Vec<u8>>()
            });
            let alike =
                |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(a, b)| a == b).count();
            let start = alike(&mut old.iter().zip(&new));
            let end = alike(&mut old.iter().rev().zip(new.iter().rev()));
            assert!(start + end >= old.len(), "text beside it changed: {changed}");
        }
    }
}

fn removes(text: &str, before: &Value, name: &str) {
    let Some(changed) = edited(text, name, None) else {
        return;
    };
    let mut expected = before.clone();
    match expected.get_mut("servers").and_then(Value::as_object_mut) {
        Some(servers) => drop(servers.shift_remove(name)),
        None => expected["servers"] = json!({}),
    }
    same(&changed, &expected);
}

/// The same members; those of the file and the entries in the same order.
#[track_caller]
fn same(text: &str, expected: &Value) {
    let after = match Document::parse(text) {
        Ok(document) => document.value(),
        Err(fault) => panic!("an edit broke the file: {} in {text}", fault.message),
    };
    assert_eq!(after, *expected, "in {text}");
    for pointer in ["", "/servers"] {
        let names = |value: &Value| -> Vec<String> {
            let members = value.pointer(pointer).and_then(Value::as_object);
            members
                .into_iter()
                .flat_map(|members| members.keys().cloned())
                .collect()
        };
        assert_eq!(names(&after), names(expected), "in {text}");
    }
}

fn edited(text: &str, name: &str, value: Option<&Value>) -> Option<String> {
    let change = |whole: &jsonc_parser::cst::CstObject| {
        store::set(whole, &["servers", name], value);
        Ok(whole.root_node().map(|root| root.to_string()))
    };
    store::look_at(Path::new("/mcp.json"), text, change)
        .ok()
        .flatten()
}

/// Where the value of an entry stands.
fn place(text: &str, name: &str) -> Option<Range> {
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &syntax::options()).ok()?;
    let mut node = &parsed.value?;
    for step in ["servers", name] {
        let ast::Value::Object(object) = node else {
            return None;
        };
        let property = object
            .properties
            .iter()
            .find(|property| property.name.as_str() == step)?;
        node = &property.value;
    }
    Some(node.range())
}
