//! `${VAR}` and `${VAR:-default}`, replaced when a server is started and never on the disk.

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

/// The names that a text refers to, those inside a default too.
pub(crate) fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let after = &rest[start + 2..];
        if let Some((name, _, _)) = reference(after) {
            names.push(name.to_owned());
        }
        rest = after;
    }
    names
}

/// Name, default and length of the reference that begins after `${`.
fn reference(text: &str) -> Option<(&str, Option<&str>, usize)> {
    let end = text.find('}')?;
    let inside = &text[..end];
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
    }
}
