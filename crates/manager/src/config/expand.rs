//! `${VAR}` and `${VAR:-default}`, replaced when a server is started and never on the disk.
//!
//! Three further sources are written the same way: `${keyring:SERVICE/ACCOUNT}`, `${cmd:PROGRAM ARGUMENTS}` and
//! `${input:ID}`. What they stand for is found out before (`server::secrets`); here they are names like any other.

use std::collections::BTreeSet;

/// Replaces references in many texts and gathers the names that are not set.
pub(crate) struct Expander<'a> {
    lookup: &'a (dyn Fn(&str) -> Option<String> + Sync),
    unset: BTreeSet<String>,
}

impl<'a> Expander<'a> {
    pub fn new(lookup: &'a (dyn Fn(&str) -> Option<String> + Sync)) -> Expander<'a> {
        Expander {
            lookup,
            unset: BTreeSet::new(),
        }
    }

    /// The text with its references replaced. What is no reference stays as it is.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            out.push_str(&rest[..start]);
            let after = &rest[start + 2..];
            let Some((name, default, length)) = reference(after) else {
                out.push_str("${");
                rest = after;
                continue;
            };
            match ((self.lookup)(name), default) {
                (Some(value), Some(default)) if value.is_empty() => out.push_str(default),
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => {
                    self.unset.insert(name.to_owned());
                }
            }
            rest = &after[length..];
        }
        out.push_str(rest);
        out
    }

    /// Names without value or default, in order.
    pub fn unset(self) -> Vec<String> {
        self.unset.into_iter().collect()
    }
}

/// Calls back with every text inside a value.
pub(crate) fn texts(value: &serde_json::Value, each: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => each(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| texts(item, each)),
        serde_json::Value::Object(members) => members.values().for_each(|member| texts(member, each)),
        _ => {}
    }
}

/// Where the value of a reference that is no variable comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// The platform's credential store, by service and account.
    Keyring(&'a str),
    /// What a program prints.
    Command(&'a str),
    /// What a person is asked for.
    Input(&'a str),
}

/// The source that a name belongs to; `None` for variables.
pub(crate) fn source(name: &str) -> Option<Source<'_>> {
    let (kind, rest) = name.split_once(':')?;
    match kind {
        "keyring" => Some(Source::Keyring(rest)),
        "cmd" => Some(Source::Command(rest)),
        "input" => Some(Source::Input(rest)),
        _ => None,
    }
}

/// The references of a text with their defaults, those inside a default too.
pub(crate) fn references(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let after = &rest[start + 2..];
        if let Some((name, default, _)) = reference(after) {
            found.push((name, default));
        }
        rest = after;
    }
    found
}

/// Name, default and length of the reference that begins after `${`.
pub(crate) fn reference(text: &str) -> Option<(&str, Option<&str>, usize)> {
    let end = text.find('}')?;
    let inside = &text[..end];
    match source(inside) {
        // Whatever stands in a command belongs to it.
        Some(Source::Command(_)) => return Some((inside, None, end + 1)),
        Some(Source::Keyring(_) | Source::Input(_)) => {
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            return Some((name, default, end + 1));
        }
        None => {}
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let mut characters = name.chars();
    let first = characters.next()?;
    let is_name = (first.is_ascii_alphabetic() || first == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, default, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str, unset: &[&str]) {
        let lookup = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let mut expander = Expander::new(&lookup);
        assert_eq!(expander.text(text), expected);
        assert_eq!(expander.unset(), unset);
    }

    #[test]
    fn references_are_replaced() {
        check("x${A}y${A}", "x1y1", &[]);
        check("${B:-two}", "two", &[]);
        check("${EMPTY:-two}", "two", &[]);
        check("${EMPTY}", "", &[]);
        check("${B} ${C}", " ", &["B", "C"]);
        check("$A ${} ${1} ${A", "$A ${} ${1} ${A", &[]);
        check("${B:-}", "", &[]);
        check("é${A}é", "é1é", &[]);
        check("${keyring:a/b:-c}", "c", &[]);
        check("${cmd:a b:-c} ${input:x}", " ", &["cmd:a b:-c", "input:x"]);
        check("${env:A}", "${env:A}", &[]);
    }
}
