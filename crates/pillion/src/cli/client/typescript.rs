//! A client in TypeScript, for Node: what is written between the runtime and the end of the file.

use std::collections::HashSet;

use serde_json::Value;

use super::shape::{Object, Shape};
use super::words::{camel, free, lines, literal, pascal};
use super::{Server, Tool};

const RUNTIME: &str = include_str!("runtime.ts");
/// Names of the runtime, and of the language's own types that generated ones would hide.
const TAKEN: [&str; 13] = [
    "Pillion",
    "PillionError",
    "ToolError",
    "Result",
    "Block",
    "Options",
    "Promise",
    "Record",
    "Array",
    "Error",
    "Buffer",
    "Map",
    "Object",
];
/// Members with a meaning of their own.
const MEMBERS: [&str; 2] = ["constructor", "then"];

pub fn client(servers: &[Server]) -> String {
    let mut text = RUNTIME.to_owned();
    let mut taken: HashSet<String> = TAKEN.map(str::to_owned).into();
    for server in servers {
        let class = free(pascal(&server.name), &mut taken);
        let mut types = String::new();
        let mut methods = String::new();
        let mut members: HashSet<String> = MEMBERS.map(str::to_owned).into();
        for tool in &server.tools {
            let base = pascal(&format!("{} {}", server.name, tool.shown));
            types.push_str(&method(
                server,
                tool,
                &base,
                &mut taken,
                &mut members,
                &mut methods,
            ));
        }
        text.push_str(&types);
        text.push_str(&format!(
            "\n/** The tools of the server {}. */\nexport class {class} {{\n  readonly #pillion: Pillion;\n\n  constructor(pillion: Pillion) {{\n    this.#pillion = pillion;\n  }}\n{methods}}}\n",
            comment(&quoted(&server.name)),
        ));
    }
    text
}

/// Adds the method of a tool and answers with the types it needs.
fn method(
    server: &Server,
    tool: &Tool,
    base: &str,
    taken: &mut HashSet<String>,
    members: &mut HashSet<String>,
    methods: &mut String,
) -> String {
    let input = free(format!("{base}Arguments"), taken);
    let mut types = format!("\nexport type {input} = {};\n", shape(&tool.input, 0));
    let output = tool.output.as_ref().map(|output| {
        let name = free(format!("{base}Result"), taken);
        types.push_str(&format!("\nexport type {name} = {};\n", shape(output, 0)));
        name
    });
    let default = if tool.input.may_be_empty() { " = {}" } else { "" };
    methods.push('\n');
    methods.push_str(&doc(&tool.description, 1));
    methods.push_str(&format!(
        "  {}(args: {input}{default}): Promise<Result<{}>> {{\n    return this.#pillion.call({}, {}, args);\n  }}\n",
        free(camel(&tool.shown), members),
        output.as_deref().unwrap_or("unknown"),
        quoted(&server.name),
        quoted(&tool.name),
    ));
    types
}

fn shape(shape: &Shape, depth: usize) -> String {
    match shape {
        Shape::Any => "unknown".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer | Shape::Number => "number".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Literal(Value::String(text)) => quoted(text),
        Shape::Literal(value) => value.to_string(),
        Shape::List(item) => format!("Array<{}>", self::shape(item, depth)),
        Shape::Object(object) => self::object(object, depth),
        Shape::Union(branches) => {
            let branches: Vec<String> = branches.iter().map(|branch| self::shape(branch, depth)).collect();
            branches.join(" | ")
        }
    }
}

fn object(object: &Object, depth: usize) -> String {
    let margin = "  ".repeat(depth);
    if object.fields.is_empty() {
        return match &object.rest {
            Some(rest) => format!("Record<string, {}>", shape(rest, depth)),
            None => "Record<string, never>".to_owned(),
        };
    }
    let mut text = String::from("{\n");
    for field in &object.fields {
        text.push_str(&doc(&field.description, depth + 1));
        let optional = if field.required { "" } else { "?" };
        let inner = shape(&field.shape, depth + 1);
        text.push_str(&format!(
            "{margin}  {}{optional}: {inner};\n",
            quoted(&field.name)
        ));
    }
    if object.rest.is_some() {
        // A narrower type would have to hold for the named members too.
        text.push_str(&format!("{margin}  [member: string]: unknown;\n"));
    }
    text.push_str(&margin);
    text.push('}');
    text
}

fn doc(description: &str, depth: usize) -> String {
    let margin = "  ".repeat(depth);
    let lines: Vec<String> = lines(description).iter().map(|line| comment(line)).collect();
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{margin}/** {line} */\n"),
        lines => {
            let lines: Vec<String> = lines
                .iter()
                .map(|line| format!("{margin} * {line}").trim_end().to_owned())
                .collect();
            format!("{margin}/**\n{}\n{margin} */\n", lines.join("\n"))
        }
    }
}

/// A text that ends no comment.
fn comment(text: &str) -> String {
    text.replace("*/", "* /")
}

fn quoted(text: &str) -> String {
    literal(text, |code| format!("\\u{{{code:x}}}"))
}
