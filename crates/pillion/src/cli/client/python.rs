//! A client in Python 3.11 or later: what is written between the runtime and the end of the file.

use std::collections::HashSet;

use serde_json::Value;

use super::shape::{Object, Shape};
use super::words::{free, lines, literal, pascal, snake};
use super::{Server, Tool};

const RUNTIME: &str = include_str!("runtime.py");
/// Names of the runtime.
const TAKEN: [&str; 12] = [
    "Pillion",
    "PillionError",
    "ToolError",
    "Result",
    "Any",
    "Generic",
    "Literal",
    "NotRequired",
    "TypedDict",
    "TypeVar",
    "Union",
    "T",
];
/// The keywords that a name in small letters can meet.
const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

pub fn client(servers: &[Server]) -> String {
    let mut names = Names {
        taken: TAKEN.map(str::to_owned).into(),
        types: String::new(),
    };
    let mut classes = String::new();
    for server in servers {
        let class = free(pascal(&server.name), &mut names.taken);
        classes.push_str(&format!(
            "\n\nclass {class}:\n    {}\n\n    def __init__(self, pillion: Pillion) -> None:\n        self._pillion = pillion\n",
            docstring(&[format!("The tools of the server {}.", quoted(&server.name))], 1),
        ));
        let mut members: HashSet<String> = KEYWORDS.map(str::to_owned).into();
        for tool in &server.tools {
            classes.push_str(&names.method(server, tool, &mut members));
        }
    }
    format!("{RUNTIME}{}{classes}", names.types)
}

struct Names {
    taken: HashSet<String>,
    /// Definitions, each before its use.
    types: String,
}

impl Names {
    fn method(&mut self, server: &Server, tool: &Tool, members: &mut HashSet<String>) -> String {
        let base = pascal(&format!("{} {}", server.name, tool.shown));
        let input = self.alias(&format!("{base}Arguments"), &tool.input);
        let output = match &tool.output {
            Some(output) => self.alias(&format!("{base}Result"), output),
            None => "Any".to_owned(),
        };
        let (given, arguments) = if tool.input.may_be_empty() {
            (format!("Union[{input}, None] = None"), "arguments or {}")
        } else {
            (input, "arguments")
        };
        let doc = lines(&tool.description);
        let doc = if doc.is_empty() {
            String::new()
        } else {
            format!("        {}\n", docstring(&doc, 2))
        };
        format!(
            "\n    def {}(self, arguments: {given}) -> Result[{output}]:\n{doc}        return self._pillion.call({}, {}, {arguments})\n",
            free(snake(&tool.shown), members),
            quoted(&server.name),
            quoted(&tool.name),
        )
    }

    /// A name for a type. A class keeps its own, so that nothing a person reads is in between.
    fn alias(&mut self, wanted: &str, shape: &Shape) -> String {
        if let Shape::Object(object) = shape
            && !object.fields.is_empty()
        {
            return self.object(wanted, object);
        }
        let meaning = self.shape(wanted, shape);
        let name = free(wanted.to_owned(), &mut self.taken);
        self.types.push_str(&format!("\n{name} = {meaning}\n"));
        name
    }

    fn shape(&mut self, base: &str, shape: &Shape) -> String {
        match shape {
            Shape::Any => "Any".to_owned(),
            Shape::Null | Shape::Literal(Value::Null) => "None".to_owned(),
            Shape::Boolean => "bool".to_owned(),
            Shape::Integer => "int".to_owned(),
            Shape::Number => "float".to_owned(),
            Shape::Text => "str".to_owned(),
            Shape::Literal(value) => format!("Literal[{}]", literal_of(value)),
            Shape::List(item) => format!("list[{}]", self.shape(&format!("{base}Item"), item)),
            Shape::Object(object) if object.fields.is_empty() => match &object.rest {
                Some(rest) => format!("dict[str, {}]", self.shape(&format!("{base}Member"), rest)),
                None => "dict[str, Any]".to_owned(),
            },
            Shape::Object(object) => self.object(base, object),
            Shape::Union(branches) => {
                let branches: Vec<String> = branches.iter().map(|branch| self.shape(base, branch)).collect();
                format!("Union[{}]", branches.join(", "))
            }
        }
    }

    /// Defines a class and answers with its name. Members that are not named have no place in it.
    fn object(&mut self, wanted: &str, object: &Object) -> String {
        let mut members = String::new();
        for field in &object.fields {
            let kind = self.shape(&format!("{wanted}{}", pascal(&field.name)), &field.shape);
            let kind = if field.required {
                kind
            } else {
                format!("NotRequired[{kind}]")
            };
            for line in lines(&field.description) {
                members.push_str(format!("        # {line}").trim_end());
                members.push('\n');
            }
            members.push_str(&format!("        {}: {kind},\n", quoted(&field.name)));
        }
        let name = free(wanted.to_owned(), &mut self.taken);
        self.types.push_str(&format!(
            "\n{name} = TypedDict(\n    \"{name}\",\n    {{\n{members}    }},\n)\n"
        ));
        name
    }
}

fn literal_of(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

/// Lines between three quotes that none of them ends.
fn docstring(lines: &[String], depth: usize) -> String {
    let margin = "    ".repeat(depth);
    let lines: Vec<String> = lines
        .iter()
        .map(|line| line.replace('\\', "\\\\").replace('"', "\\\""))
        .collect();
    match lines.as_slice() {
        [line] => format!("\"\"\"{line}\"\"\""),
        lines => {
            let rest: String = lines[1..]
                .iter()
                .map(|line| format!("{margin}{line}").trim_end().to_owned() + "\n")
                .collect();
            format!("\"\"\"{}\n{rest}{margin}\"\"\"", lines[0])
        }
    }
}

fn quoted(text: &str) -> String {
    literal(text, |code| format!("\\U{code:08x}"))
}
