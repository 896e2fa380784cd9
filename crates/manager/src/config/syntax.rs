//! JSON with comments: reading it, and saying where in the text something stands.

use jsonc_parser::ast::{ObjectPropName, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

/// A place in a text. Lines and columns count from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub line: usize,
    pub column: usize,
}

/// A text that is no JSONC.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxFault {
    pub message: String,
    pub place: Place,
}

/// A parsed text that still knows its places.
pub(crate) struct Document<'a> {
    text: &'a str,
    root: Option<Node<'a>>,
}

/// What we accept beside plain JSON: comments and trailing commas, as editors write them.
pub(crate) fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

impl<'a> Document<'a> {
    pub fn parse(text: &'a str) -> Result<Document<'a>, SyntaxFault> {
        if let Some(offset) = too_deep(text) {
            return Err(SyntaxFault {
                message: format!("nested more than {DEPTH} levels deep"),
                place: place(text, offset),
            });
        }
        match parse_to_ast(text, &CollectOptions::default(), &options()) {
            Ok(parsed) => Ok(Document {
                text,
                root: parsed.value,
            }),
            Err(error) => Err(SyntaxFault {
                message: lower_first(&error.kind().to_string()),
                place: place(text, error.range().start),
            }),
        }
    }

    /// The same for JSON5 ([json5.org](https://json5.org)), which some other programs read.
    pub fn parse_json5(text: &'a str) -> Result<Document<'a>, SyntaxFault> {
        // Its strings may stand in other quotes: brackets in them count too, which is more than there are.
        let mut depth = 0_usize;
        for (offset, byte) in text.bytes().enumerate() {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH {
                return Err(SyntaxFault {
                    message: format!("nested more than {DEPTH} levels deep"),
                    place: place(text, offset),
                });
            }
        }
        let options = ParseOptions {
            allow_loose_object_property_names: true,
            allow_single_quoted_strings: true,
            allow_hexadecimal_numbers: true,
            allow_unary_plus_numbers: true,
            allow_bare_decimal_point_numbers: true,
            allow_extended_string_escapes: true,
            ..options()
        };
        match parse_to_ast(text, &CollectOptions::default(), &options) {
            Ok(parsed) => Ok(Document {
                text,
                root: parsed.value,
            }),
            Err(error) => Err(SyntaxFault {
                message: lower_first(&error.kind().to_string()),
                place: place(text, error.range().start),
            }),
        }
    }

    /// The whole value; `null` for an empty text. Of a name that occurs twice the last one counts.
    pub fn value(&self) -> Value {
        self.root.as_ref().map_or(Value::Null, to_value)
    }

    /// Where the value at this path begins, or as near above it as the text goes.
    pub fn place<S: AsRef<str>>(&self, path: &[S]) -> Place {
        let mut node = self.root.as_ref();
        let mut start = node.map_or(0, |node| node.range().start);
        for step in path {
            let step = step.as_ref();
            let next = match node {
                Some(Node::Object(object)) => object
                    .properties
                    .iter()
                    .rev()
                    .find(|property| property.name.as_str() == step)
                    .map(|property| &property.value),
                Some(Node::Array(array)) => step
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| array.elements.get(index)),
                _ => None,
            };
            let Some(found) = next else { break };
            start = found.range().start;
            node = Some(found);
        }
        place(self.text, start)
    }

    /// Where the name of this member stands.
    pub fn place_of_name<S: AsRef<str>>(&self, path: &[S], name: &str) -> Place {
        let mut node = self.root.as_ref();
        for step in path {
            node = match node {
                Some(Node::Object(object)) => object
                    .properties
                    .iter()
                    .rev()
                    .find(|property| property.name.as_str() == step.as_ref())
                    .map(|property| &property.value),
                _ => None,
            };
        }
        let Some(Node::Object(object)) = node else {
            return self.place(path);
        };
        let property = object
            .properties
            .iter()
            .rev()
            .find(|property| property.name.as_str() == name);
        property.map_or_else(
            || self.place(path),
            |property| place(self.text, property.range.start),
        )
    }

    /// Names that occur more than once in the object at this path.
    pub fn repeated_names(&self, path: &[&str]) -> Vec<String> {
        let mut node = self.root.as_ref();
        for step in path {
            node = match node {
                Some(Node::Object(object)) => object
                    .properties
                    .iter()
                    .find(|property| property.name.as_str() == *step)
                    .map(|property| &property.value),
                _ => None,
            };
        }
        let Some(Node::Object(object)) = node else {
            return Vec::new();
        };
        let mut seen = std::collections::BTreeMap::<&str, usize>::new();
        for property in &object.properties {
            *seen.entry(name_of(&property.name)).or_default() += 1;
        }
        seen.into_iter()
            .filter(|(_, count)| *count > 1)
            .map(|(name, _)| name.to_owned())
            .collect()
    }
}

fn name_of<'n>(name: &'n ObjectPropName<'_>) -> &'n str {
    name.as_str()
}

fn to_value(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(literal) => Value::String(literal.value.to_string()),
        Node::NumberLit(literal) => serde_json::from_str(literal.value).unwrap_or(Value::Null),
        Node::BooleanLit(literal) => Value::Bool(literal.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => Value::Array(array.elements.iter().map(to_value).collect()),
        Node::Object(object) => {
            let members = object
                .properties
                .iter()
                .map(|property| (name_of(&property.name).to_owned(), to_value(&property.value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// Levels of a text. The parser recurses: without a bound a hostile file would end the process.
const DEPTH: usize = 64;

/// Where a text is nested too deeply. Brackets in texts and comments do not count.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((offset, byte)) = bytes.next() {
        match byte {
            b'"' => {
                while let Some((_, inside)) = bytes.next() {
                    match inside {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b'/' => match bytes.peek().map(|(_, next)| *next) {
                Some(b'/') => drop(bytes.find(|(_, inside)| *inside == b'\n')),
                Some(b'*') => {
                    bytes.next();
                    let mut before = 0;
                    for (_, inside) in bytes.by_ref() {
                        if before == b'*' && inside == b'/' {
                            break;
                        }
                        before = inside;
                    }
                }
                _ => {}
            },
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH {
                    return Some(offset);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The parser begins its sentences with a capital; ours go on after a place.
pub(crate) fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

/// Line and column of a byte offset.
/// The place of a byte of a text.
pub(crate) fn place(text: &str, offset: usize) -> Place {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_an_editor_shows() {
        let text = "{\n  // servers\n  \"servers\": {\n    \"a\": { \"args\": [\"x\", 5,] },\n  },\n}\n";
        let document = Document::parse(text).ok().unwrap();
        assert_eq!(
            document.place(&["servers", "a", "args", "1"]),
            Place { line: 4, column: 26 }
        );
        assert_eq!(
            document.place_of_name(&["servers", "a"], "args"),
            Place { line: 4, column: 12 }
        );
        assert_eq!(document.value()["servers"]["a"]["args"][0], "x");
    }

    #[test]
    fn a_fault_names_its_place() {
        let fault = Document::parse("{\n  \"servers\": {\n    \"a\": oops\n  }\n}")
            .err()
            .unwrap();
        assert_eq!(fault.place, Place { line: 3, column: 10 });
    }

    #[test]
    fn repeated_names_are_found() {
        let document = Document::parse(r#"{"servers":{"a":{},"b":{},"a":{}}}"#)
            .ok()
            .unwrap();
        assert_eq!(document.repeated_names(&["servers"]), ["a"]);
    }
}
