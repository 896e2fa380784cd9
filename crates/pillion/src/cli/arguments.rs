//! Arguments of a tool or prompt as typed on a command line: `{…}`, `@file`, `-`, `key=value`, `key:=json`.
//!
//! Text in, JSON text out. Numbers are kept as typed (`1.10` stays `1.10`), files and stdin come through a function.

use std::fmt;
use std::io;

use manager::nearest;
use serde_json::Value;
use serde_json::value::RawValue;

use super::parameters::{Kinds, Parameter, parameters, property};

/// Where text that is not on the command line comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Source<'a> {
    Stdin,
    File(&'a str),
}

/// What was typed, before the schema of the tool is known.
#[derive(Debug)]
pub enum Given {
    /// The whole arguments, an object.
    Whole(Box<RawValue>),
    Pairs(Vec<Pair>),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Pair {
    pub name: String,
    pub value: Word,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    /// `key=value`: the schema says what it becomes.
    Text(String),
    /// `key:=json`: what it is already, checked to be JSON.
    Json(String),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Mistake(pub String);

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn mistake<T>(message: impl Into<String>) -> Result<T, Mistake> {
    Err(Mistake(message.into()))
}

type Read<'a> = &'a mut dyn FnMut(Source<'_>) -> io::Result<String>;

/// Reads what was typed; `read` fetches files and stdin.
pub fn parse(words: &[String], read: Read<'_>) -> Result<Given, Mistake> {
    let [word] = words else {
        return pairs(words, read).map(Given::Pairs);
    };
    if word == "-" {
        return whole(&fetch(Source::Stdin, read)?, "stdin");
    }
    if word.trim_start().starts_with('{') {
        return whole(word, "the argument");
    }
    if let Some(path) = word.strip_prefix('@')
        && !word.contains('=')
    {
        return whole(&fetch(Source::File(path), read)?, path);
    }
    pairs(words, read).map(Given::Pairs)
}

/// `key=value` and `key:=json`, each key once.
pub fn pairs(words: &[String], read: Read<'_>) -> Result<Vec<Pair>, Mistake> {
    let mut pairs: Vec<Pair> = Vec::with_capacity(words.len());
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return mistake(format!("`{word}` is neither `key=value` nor a JSON object"));
        };
        let (name, json) = match name.strip_suffix(':') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.is_empty() {
            return mistake(format!("`{word}` has no key before the `=`"));
        }
        if pairs.iter().any(|pair| pair.name == name) {
            return mistake(format!("`{name}` is given twice"));
        }
        let text = match value.strip_prefix('@') {
            None => value.to_owned(),
            // `@@` is a plain `@`, for values that begin with one.
            Some(rest) if rest.starts_with('@') => rest.to_owned(),
            Some("-") => fetch(Source::Stdin, read)?,
            Some(path) => fetch(Source::File(path), read)?,
        };
        let value = if json {
            match serde_json::from_str::<&RawValue>(&text) {
                Ok(value) => Word::Json(value.get().to_owned()),
                Err(error) => return mistake(format!("`{name}` is not JSON: {error}")),
            }
        } else {
            Word::Text(text)
        };
        pairs.push(Pair {
            name: name.to_owned(),
            value,
        });
    }
    Ok(pairs)
}

/// The arguments object, each value as the tool's `inputSchema` wants it.
pub fn typed(pairs: &[Pair], schema: &Value) -> Result<Box<RawValue>, Mistake> {
    let known = parameters(schema);
    let mut members = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let schema = property(schema, &pair.name);
        if schema.is_none() && !known.is_empty() {
            return mistake(unknown(&pair.name, &known));
        }
        let kinds = schema.map(|property| Kinds::of(&property)).unwrap_or_default();
        let value = match &pair.value {
            Word::Json(json) => json.clone(),
            Word::Text(text) => kinds
                .read(text)
                .ok_or_else(|| Mistake(format!("`{}`: `{text}` is not {}", pair.name, kinds.expected())))?,
        };
        if !kinds.allows(&value) {
            return mistake(format!(
                "`{}`: {value} is not one of {}",
                pair.name,
                kinds.choices()
            ));
        }
        members.push(format!("{}:{value}", Value::from(pair.name.as_str())));
    }
    let given = |parameter: &&Parameter| pairs.iter().any(|pair| pair.name == parameter.name);
    if let Some(missing) = known
        .iter()
        .filter(|parameter| parameter.required)
        .find(|known| !given(known))
    {
        return mistake(format!("`{}` is missing", missing.name));
    }
    RawValue::from_string(format!("{{{}}}", members.join(",")))
        .map_err(|error| Mistake(format!("the arguments are not JSON: {error}")))
}

fn unknown(name: &str, known: &[Parameter]) -> String {
    let names = known.iter().map(|parameter| parameter.name.as_str());
    match nearest(name, names) {
        Some(near) => format!("there is no parameter `{name}`; did you mean `{near}`?"),
        None => format!("there is no parameter `{name}`"),
    }
}

fn whole(text: &str, what: &str) -> Result<Given, Mistake> {
    match serde_json::from_str::<Box<RawValue>>(text.trim()) {
        Ok(value) if value.get().starts_with('{') => Ok(Given::Whole(value)),
        Ok(_) => mistake(format!("{what} is not a JSON object")),
        Err(error) => mistake(format!("{what} is not JSON: {error}")),
    }
}

fn fetch(source: Source<'_>, read: Read<'_>) -> Result<String, Mistake> {
    let name = match source {
        Source::Stdin => "stdin".to_owned(),
        Source::File(path) => format!("`{path}`"),
    };
    read(source).map_err(|error| Mistake(format!("cannot read {name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        serde_json::json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "count": { "type": "integer" },
                "ratio": { "type": ["number", "null"] },
                "urgent": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "where": { "$ref": "#/$defs/Place" },
                "size": { "enum": ["small", "large", 3] },
                "level": { "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] },
                "loose": {},
                "id": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
            },
            "$defs": { "Place": { "type": "object" } },
        })
    }

    fn read(source: Source<'_>) -> io::Result<String> {
        match source {
            Source::Stdin => Ok("{\"from\": \"stdin\"}\n".to_owned()),
            Source::File("note.md") => Ok("a \"note\"\n".to_owned()),
            Source::File("object.json") => Ok("{ \"z\": 1.10, \"a\": 2 }".to_owned()),
            Source::File(_) => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    }

    fn arguments(words: &str) -> String {
        let words: Vec<String> = words
            .split('|')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        let given = parse(&words, &mut read);
        let typed = given.and_then(|given| match given {
            Given::Whole(whole) => Ok(whole),
            Given::Pairs(pairs) => typed(&pairs, &schema()),
        });
        match typed {
            Ok(value) => value.get().to_owned(),
            Err(mistake) => mistake.to_string(),
        }
    }

    #[track_caller]
    fn check(words: &str, expected: &str) {
        assert_eq!(arguments(words), expected, "{words}");
    }

    #[test]
    fn values_become_what_the_schema_wants() {
        check("", "{}");
        check("name=42", r#"{"name":"42"}"#);
        check("name=a=b", r#"{"name":"a=b"}"#);
        check("name=", r#"{"name":""}"#);
        check(
            "count=12345678901234567890|urgent=true",
            r#"{"count":12345678901234567890,"urgent":true}"#,
        );
        check("ratio=1.10", r#"{"ratio":1.10}"#);
        check("ratio=null", r#"{"ratio":null}"#);
        check("tags=[\"a\", \"b\"]", r#"{"tags":["a", "b"]}"#);
        check("where={\"x\":1}", r#"{"where":{"x":1}}"#);
        check("size=3|level=b", r#"{"size":3,"level":"b"}"#);
        check("size=small", r#"{"size":"small"}"#);
        check("loose=1.0", r#"{"loose":1.0}"#);
        check("loose=some text", r#"{"loose":"some text"}"#);
        check("id=7", r#"{"id":"7"}"#);
        check("id:=7", r#"{"id":7}"#);
    }

    #[test]
    fn files_and_stdin_stand_in_for_values() {
        check("name=@note.md", r#"{"name":"a \"note\"\n"}"#);
        check("name=@@home", r#"{"name":"@home"}"#);
        check("where=@-", "{\"where\":{\"from\": \"stdin\"}}");
        check("-", r#"{"from": "stdin"}"#);
        check("@object.json", r#"{ "z": 1.10, "a": 2 }"#);
        check("{\"any\":[1]}", r#"{"any":[1]}"#);
    }

    #[test]
    fn mistakes_name_the_argument() {
        check("count=many", "`count`: `many` is not a whole number");
        check("count=1.5", "`count`: `1.5` is not a whole number");
        check("urgent=yes", "`urgent`: `yes` is not true or false");
        check("ratio=1,5", "`ratio`: `1,5` is not a number or null");
        check("tags=a,b", "`tags`: `a,b` is not a JSON array");
        check("where=[]", "`where`: `[]` is not a JSON object");
        check(
            "size=medium",
            r#"`size`: "medium" is not one of "small", "large", 3"#,
        );
        check("nmae=x", "there is no parameter `nmae`; did you mean `name`?");
        check("something=x", "there is no parameter `something`");
        check("name=a|name=b", "`name` is given twice");
        check("name", "`name` is neither `key=value` nor a JSON object");
        check("=x", "`=x` has no key before the `=`");
        check(
            "count:={",
            "`count` is not JSON: EOF while parsing an object at line 1 column 1",
        );
        check(
            "{\"a\":",
            "the argument is not JSON: EOF while parsing a value at line 1 column 5",
        );
        check("@nowhere", "cannot read `nowhere`: no such file");
        check("name=@nowhere", "cannot read `nowhere`: no such file");
    }

    #[test]
    fn what_is_required_must_be_there() {
        let mut schema = schema();
        schema["required"] = serde_json::json!(["name", "count"]);
        let pairs = pairs(&["name=x".to_owned()], &mut read).expect("well formed");
        assert_eq!(
            typed(&pairs, &schema).map(|_| ()),
            Err(Mistake("`count` is missing".to_owned()))
        );
    }
}
