//! YAML: read as JSON from the parser's events, written, and changed in place, line by line.
//!
//! Aliases are refused: they could be made to grow without end.

use std::fmt::Write as _;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::document::{Fault, fault_at};
use super::edit::Target;
use crate::config::syntax::Place;

/// Levels of a text, as for JSON.
const DEPTH: usize = 64;

/// A value and the lines that it stands on; lines count from 0.
#[derive(Debug)]
struct Node {
    inside: Inside,
    line: usize,
    column: usize,
    last: usize,
    /// Column behind its last character, for a scalar on one line.
    end: usize,
    /// In brackets or braces.
    is_flow: bool,
}

#[derive(Debug)]
enum Inside {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Member>),
}

#[derive(Debug)]
struct Member {
    name: String,
    line: usize,
    column: usize,
    node: Node,
}

enum Open {
    List(Vec<Node>, (usize, usize), bool),
    /// The members so far, and a name that waits for its value.
    Map(Vec<Member>, Option<(String, usize, usize)>, (usize, usize), bool),
}

/// The first document of a text.
pub(crate) fn read(text: &str) -> Result<Value, Fault> {
    Ok(parse(text)?.0.map_or(Value::Null, |node| node.value()))
}

fn fault(line: usize, column: usize, message: String) -> Fault {
    let place = Some(Place { line, column });
    Fault { message, place }
}

/// The first document, and whether another one follows.
fn parse(text: &str) -> Result<(Option<Node>, bool), Fault> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = error.marker();
            let message = format!("no YAML: {}", error.info());
            // The parser sees a line end behind the last line, and is at its other side where something is missing.
            if at.line() > text.matches('\n').count() + 1 {
                return fault_at(text, text.len(), message);
            }
            // It counts some characters more than once, in a directive for one.
            let end = lines
                .get(at.line().saturating_sub(1))
                .map_or(0, |line| line.chars().count());
            fault(at.line(), at.col().min(end) + 1, message)
        })?;
        let (line, column) = (span.start.line().saturating_sub(1), span.start.col());
        let last = span.end.line().saturating_sub(1);
        let is_flow = || {
            let first = lines.get(line).and_then(|line| line.chars().nth(column));
            matches!(first, Some('[' | '{'))
        };
        let done = match event {
            Event::Alias(_) => {
                let message = "an alias of YAML is not read: write its value out".to_owned();
                return Err(fault(line + 1, column + 1, message));
            }
            Event::DocumentStart(_) if whole.is_some() => return Ok((whole, true)),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new(), (line, column), is_flow()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(Vec::new(), None, (line, column), is_flow()));
                None
            }
            Event::Scalar(text, style, ..) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                // A block ends where the next thing begins; blank lines between are not its own.
                let mut last = if is_block && last > line { last - 1 } else { last };
                while is_block && last > line && lines.get(last).is_none_or(|line| line.trim().is_empty()) {
                    last -= 1;
                }
                Some(Node {
                    inside: Inside::Scalar(scalar(&text, style == ScalarStyle::Plain)),
                    line,
                    column,
                    last,
                    end: span.end.col(),
                    is_flow: false,
                })
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|whole| whole.close(last, &lines)),
            _ => None,
        };
        if open.len() > DEPTH {
            let message = format!("nested more than {DEPTH} levels deep");
            return Err(fault(line + 1, column + 1, message));
        }
        let Some(node) = done else { continue };
        match open.last_mut() {
            None => whole = Some(node),
            Some(Open::List(items, ..)) => items.push(node),
            Some(Open::Map(members, name, ..)) => match name.take() {
                Some((name, line, column)) => members.push(Member {
                    name,
                    line,
                    column,
                    node,
                }),
                None => {
                    let text = match node.value() {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    *name = Some((text, line, column));
                }
            },
        }
    }
    Ok((whole, false))
}

impl Open {
    /// A block ends with the last thing in it, what stands in brackets where they close.
    fn close(self, closed: usize, lines: &[&str]) -> Node {
        let (inside, (line, column), is_flow, inner) = match self {
            Open::List(items, at, is_flow) => {
                let inner = items.iter().map(|item| item.last).max();
                // The dash of its first item, which may stand as far left as the name of the list.
                let dash = items.first().filter(|_| !is_flow).and_then(|first| {
                    let before: Vec<char> = lines.get(first.line)?.chars().take(first.column).collect();
                    Some((first.line, before.iter().rposition(|one| *one == '-')?))
                });
                (Inside::List(items), dash.unwrap_or(at), is_flow, inner)
            }
            Open::Map(members, _, at, is_flow) => {
                let inner = members
                    .iter()
                    .map(|member| member.node.last.max(member.line))
                    .max();
                (Inside::Map(members), at, is_flow, inner)
            }
        };
        let last = match inner {
            Some(inner) if !is_flow => inner,
            _ => closed,
        };
        Node {
            inside,
            line,
            column,
            last,
            end: 0,
            is_flow,
        }
    }
}

impl Node {
    fn value(&self) -> Value {
        match &self.inside {
            Inside::Scalar(value) => value.clone(),
            Inside::List(items) => items.iter().map(Node::value).collect(),
            Inside::Map(members) => Value::Object(
                members
                    .iter()
                    .map(|member| (member.name.clone(), member.node.value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    fn is_empty(&self) -> bool {
        match &self.inside {
            Inside::Scalar(value) => value.is_null(),
            Inside::List(items) => items.is_empty(),
            Inside::Map(members) => members.is_empty(),
        }
    }
}

/// Plain words of the core schema; anything else is text.
fn scalar(text: &str, is_plain: bool) -> Value {
    if !is_plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => match serde_json::from_str::<serde_json::Number>(text) {
            Ok(number) => Value::Number(number),
            Err(_) => text.into(),
        },
    }
}

/// Writes a document.
pub(crate) fn write(whole: &Value) -> String {
    let mut out = String::new();
    block(whole, 0, &mut out);
    out
}

/// A value on lines of its own.
fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let _ = write!(out, "{:indent$}", "");
                member(name, value, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for value in items {
                item(value, indent, out);
            }
        }
        other => {
            let _ = writeln!(out, "{:indent$}{}", "", inline(other));
        }
    }
}

/// `name: value`, where the indent is written already.
fn member(name: &str, value: &Value, indent: usize, out: &mut String) {
    let name = text(name);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let _ = writeln!(out, "{name}:");
            block(value, indent + 2, out);
        }
        Value::Array(items) if !items.is_empty() => {
            let _ = writeln!(out, "{name}:");
            block(value, indent + 2, out);
        }
        other => {
            let _ = writeln!(out, "{name}: {}", inline(other));
        }
    }
}

/// `- value`.
fn item(value: &Value, indent: usize, out: &mut String) {
    let mut inner = String::new();
    block(value, indent + 2, &mut inner);
    let _ = write!(out, "{:indent$}- {}", "", inner.trim_start());
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text_of) => text(text_of),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// A text that reads back as itself: as it is where nothing in it means something, else in double quotes.
fn text(text: &str) -> String {
    let is_word = |one: char| one.is_ascii_alphanumeric() || "_-./@".contains(one);
    let is_plain = text.starts_with(|one: char| one.is_ascii_alphabetic() || "_./".contains(one))
        && text.chars().all(is_word)
        && text != "."
        && scalar(text, true).is_string()
        // What YAML 1.1 took for something else.
        && !["yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str())
        && !text.starts_with(|one: char| one == '.' && text.len() > 1 && text[1..].starts_with(|next: char| next.is_ascii_alphanumeric()));
    if is_plain {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for one in text.chars() {
        match one {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            one if one.is_control() || ('\u{2028}'..='\u{2029}').contains(&one) || one == '\u{feff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(one));
            }
            one => out.push(one),
        }
    }
    out.push('"');
    out
}

/// A change of whole lines: those from `from` up to but without `to` become `by`.
struct Change {
    from: usize,
    to: usize,
    by: String,
}

/// Sets one server and leaves the rest of the text as it is.
pub(crate) fn set(whole: &str, target: &Target<'_>) -> Result<String, Fault> {
    let (root, has_more) = parse(whole)?;
    if has_more {
        return Err(Fault::new(
            "it holds several documents, and which one counts is not known",
        ));
    }
    let lines: Vec<&str> = whole
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    let end = lines.len() - usize::from(lines.last().is_some_and(|line| line.is_empty()));
    let mut changes = Vec::new();
    let new = |indent: usize| {
        let mut out = String::new();
        if target.is_list {
            item(target.value, indent, &mut out);
        } else {
            let _ = write!(out, "{:indent$}", "");
            member(target.name, target.value, indent, &mut out);
        }
        out
    };
    let in_braces = || {
        Fault::new(format!(
            "`{}` stands in braces: write it on lines of its own",
            target.container
        ))
    };
    let members = match root.as_ref().map(|root| (&root.inside, root.is_flow)) {
        None => &[][..],
        Some((Inside::Scalar(Value::Null), _)) => &[][..],
        Some((Inside::Map(members), false)) => members.as_slice(),
        Some(_) => return Err(Fault::new("it is no map of members on lines of their own")),
    };
    match members.iter().find(|member| member.name == target.container) {
        None => changes.push(Change {
            from: end,
            to: end,
            by: format!("{}:\n{}", text(target.container), new(2)),
        }),
        Some(servers) if servers.node.is_empty() => {
            let line = lines.get(servers.line).copied().unwrap_or_default();
            let bare = line.replacen("{}", "", 1).replacen("[]", "", 1);
            changes.push(Change {
                from: servers.line,
                to: servers.line + 1,
                by: format!("{}\n{}", bare.trim_end(), new(servers.column + 2)),
            });
        }
        Some(servers) if servers.node.is_flow => return Err(in_braces()),
        Some(servers) => {
            let at = servers.node.last + 1;
            match (&servers.node.inside, target.is_list) {
                (Inside::Map(entries), false) => {
                    match entries.iter().find(|entry| entry.name == target.name) {
                        Some(entry) => replace(entry, target.value, &lines, &mut changes),
                        None => changes.push(Change {
                            from: at,
                            to: at,
                            by: new(servers.node.column),
                        }),
                    }
                }
                (Inside::List(items), true) => {
                    let known = items.iter().find(|item| item.value()["name"] == target.name);
                    match known {
                        Some(item) => {
                            update(item, target.value, &lines, &mut changes).map_err(|()| in_braces())?
                        }
                        None => changes.push(Change {
                            from: at,
                            to: at,
                            by: new(servers.node.column),
                        }),
                    }
                }
                _ => {
                    return Err(Fault::new(format!(
                        "`{}` has another form than expected",
                        target.container
                    )));
                }
            }
        }
    }
    Ok(changed(whole, &lines, end, changes))
}

fn changed(whole: &str, lines: &[&str], end: usize, mut changes: Vec<Change>) -> String {
    let line_end = if whole.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out: Vec<String> = lines[..end].iter().map(|line| (*line).to_owned()).collect();
    changes.sort_by_key(|change| change.from);
    for change in changes.into_iter().rev() {
        let by = change.by.lines().map(str::to_owned);
        out.splice(change.from.min(end)..change.to.min(end), by);
    }
    let mut text = out.join(line_end);
    text.push_str(line_end);
    text
}

/// Gives the members of a map other values; an error where its form does not allow that.
fn update(node: &Node, value: &Value, lines: &[&str], changes: &mut Vec<Change>) -> Result<(), ()> {
    let (Inside::Map(members), Value::Object(wanted), false) = (&node.inside, value, node.is_flow) else {
        return Err(());
    };
    let is_first_of_item = |member: &Member| {
        let before: String = lines[member.line].chars().take(member.column).collect();
        !before.trim().is_empty()
    };
    for member in members {
        match wanted.get(&member.name) {
            Some(wanted) => replace(member, wanted, lines, changes),
            // The dash before it belongs to the whole.
            None if is_first_of_item(member) => return Err(()),
            None => changes.push(Change {
                from: member.line,
                to: member.node.last.max(member.line) + 1,
                by: String::new(),
            }),
        }
    }
    let mut by = String::new();
    for (name, value) in wanted {
        if !members.iter().any(|member| member.name == *name) {
            let _ = write!(by, "{:indent$}", "", indent = node.column);
            self::member(name, value, node.column, &mut by);
        }
    }
    if !by.is_empty() {
        let at = node.last + 1;
        changes.push(Change { from: at, to: at, by });
    }
    Ok(())
}

/// Gives a member another value; what stays the same inside keeps its lines.
fn replace(member: &Member, value: &Value, lines: &[&str], changes: &mut Vec<Change>) {
    if member.node.value() == *value {
        return;
    }
    let mut inner = Vec::new();
    if value.as_object().is_some_and(|members| !members.is_empty())
        && update(&member.node, value, lines, &mut inner).is_ok()
    {
        changes.extend(inner);
        return;
    }
    let line = lines[member.line];
    let mut by: String = line.chars().take(member.column).collect();
    self::member(&member.name, value, member.column, &mut by);
    // A comment behind a value on one line stays there.
    if matches!(member.node.inside, Inside::Scalar(_)) && member.node.last == member.line {
        let behind: String = line.chars().skip(member.node.end).collect();
        if behind.trim_start().starts_with('#') && by.lines().count() == 1 {
            by = format!("{}{}\n", by.trim_end(), behind);
        }
    }
    changes.push(Change {
        from: member.line,
        to: member.node.last.max(member.line) + 1,
        by,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, is_list: bool, name: &str, value: &Value, expected: &str) {
        let target = Target {
            container: "s",
            is_list,
            name,
            value,
        };
        let set = set(text, &target).map_err(|fault| fault.to_string());
        assert_eq!(set.as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn one_server_is_set_and_the_lines_of_others_stay() {
        let value = json!({"name": "b", "cmd": "x y"});
        check(
            "",
            false,
            "b",
            &value,
            "s:\n  b:\n    name: b\n    cmd: \"x y\"\n",
        );
        check(
            "a: 1 # one\ns: {}  # none\n# end\n",
            false,
            "b",
            &value,
            "a: 1 # one\ns:   # none\n  b:\n    name: b\n    cmd: \"x y\"\n# end\n",
        );
        check(
            "s:\n    a:\n        k: |\n            text\n\n# end\nz: 1",
            false,
            "b",
            &value,
            "s:\n    a:\n        k: |\n            text\n    b:\n      name: b\n      cmd: \"x y\"\n\n# end\nz: 1\n",
        );
        check(
            "s:\n- name: a\n  k: 1\n# end\n",
            true,
            "b",
            &value,
            "s:\n- name: a\n  k: 1\n- name: b\n  cmd: \"x y\"\n# end\n",
        );
    }

    #[test]
    fn a_known_server_keeps_its_comments_and_order() {
        check(
            "s:\r\n  - cmd: old # why\r\n    # mine\r\n    gone: 1\r\n    name: b\r\n    env: {A: 1}\r\n",
            true,
            "b",
            &json!({"name": "b", "cmd": "new", "env": {"A": 2}, "args": ["1"]}),
            "s:\r\n  - cmd: new # why\r\n    # mine\r\n    name: b\r\n    env:\r\n      A: 2\r\n    args:\r\n      - \"1\"\r\n",
        );
        check(
            "s:\n  b:\n    env:\n      # first\n      A: 1\n      B: 2\n",
            false,
            "b",
            &json!({"env": {"A": 1, "B": 3}}),
            "s:\n  b:\n    env:\n      # first\n      A: 1\n      B: 3\n",
        );
    }

    #[test]
    fn what_cannot_be_changed_line_by_line_is_refused() {
        let target = Target {
            container: "s",
            is_list: false,
            name: "b",
            value: &json!({}),
        };
        for text in [
            "s: {a: {}}\n",
            "- 1\n",
            "s: 1\n---\ns: 2\n",
            "s: &a {}\nb: *a\n",
            "s: 5\n",
        ] {
            assert!(set(text, &target).is_err(), "{text}");
        }
    }
}
