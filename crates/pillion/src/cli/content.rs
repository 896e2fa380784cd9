//! What servers answer, for people: texts as they are, the rest named in brackets.
//!
//! On a terminal control characters are shown instead of obeyed; a pipe or file gets every byte.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::failure::Failure;
use super::output::{self, size};
use super::terminal::{Terminal, harmless, one_line};

/// Whether a tool's result says that the tool failed.
pub fn is_error(result: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(rename = "isError", default)]
        is_error: Option<bool>,
    }
    serde_json::from_str::<Head>(result).is_ok_and(|head| head.is_error == Some(true))
}

pub fn print_tool_result(result: &str, terminal: Terminal) -> Result<(), Failure> {
    let Some(value) = parse(result) else {
        return output::line(result);
    };
    let mut parts: Vec<String> = blocks(&value["content"])
        .map(|block| shown(block, terminal))
        .collect();
    if parts.is_empty()
        && let Some(structured) = value.get("structuredContent")
    {
        parts.push(safe(&format!("{structured:#}"), terminal));
    }
    if parts.is_empty() {
        eprintln!("(empty result)");
        return Ok(());
    }
    output::line(&parts.join("\n"))
}

/// A resource of one part is printed as it is, so that it can be redirected into a file.
pub fn print_resource(result: &str, terminal: Terminal) -> Result<(), Failure> {
    let Some(value) = parse(result) else {
        return output::line(result);
    };
    let parts: Vec<&Value> = blocks(&value["contents"]).collect();
    for part in &parts {
        if parts.len() > 1 {
            eprintln!("{}", one_line(part["uri"].as_str().unwrap_or_default()));
        }
        if let Some(text) = part["text"].as_str() {
            let text = safe(text, terminal);
            let end = if terminal.stdout && !text.ends_with('\n') {
                "\n"
            } else {
                ""
            };
            output::raw(format!("{text}{end}").as_bytes())?;
            continue;
        }
        let bytes = STANDARD.decode(part["blob"].as_str().unwrap_or_default());
        match bytes {
            Ok(bytes) if terminal.stdout => {
                let kind = kind(part);
                output::line(&format!(
                    "[{kind}, {}; redirect it into a file]",
                    size(bytes.len() as u64)
                ))?;
            }
            Ok(bytes) => output::raw(&bytes)?,
            Err(error) => {
                return Err(Failure::new("the resource is not valid Base64").cause(error.to_string()));
            }
        }
    }
    Ok(())
}

pub fn print_prompt(result: &str, terminal: Terminal) -> Result<(), Failure> {
    let Some(value) = parse(result) else {
        return output::line(result);
    };
    for (index, message) in blocks(&value["messages"]).enumerate() {
        if index > 0 {
            output::line("")?;
        }
        let role = one_line(message["role"].as_str().unwrap_or("unknown"));
        output::line(&terminal.on_stdout().bold(&format!("{role}:")))?;
        output::line(&shown(&message["content"], terminal))?;
    }
    Ok(())
}

/// `None` for what is JSON but no text of Unicode, such as a lone surrogate: that is shown as it came.
fn parse(result: &str) -> Option<Value> {
    serde_json::from_str(result).ok()
}

fn blocks(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn shown(block: &Value, terminal: Terminal) -> String {
    let text = |member: &str| one_line(block[member].as_str().unwrap_or_default());
    match block["type"].as_str() {
        Some("text") => safe(block["text"].as_str().unwrap_or_default(), terminal),
        Some(word @ ("image" | "audio")) => {
            let bytes = block["data"].as_str().unwrap_or_default().len() as u64 / 4 * 3;
            format!("[{word} {}, {}]", kind(block), size(bytes))
        }
        Some("resource_link") => format!("[link {}: {}]", text("name"), text("uri")),
        Some("resource") => {
            let resource = &block["resource"];
            let uri = one_line(resource["uri"].as_str().unwrap_or_default());
            match resource["text"].as_str() {
                Some(text) => format!("[resource {uri}]\n{}", safe(text, terminal)),
                None => format!("[resource {uri}, {}]", kind(resource)),
            }
        }
        _ => safe(&block.to_string(), terminal),
    }
}

fn kind(part: &Value) -> String {
    one_line(part["mimeType"].as_str().unwrap_or("of unknown type"))
}

fn safe(text: &str, terminal: Terminal) -> String {
    if terminal.stdout {
        harmless(text).into_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_are_named_or_shown() {
        let terminal = Terminal::test(true);
        let rows = [
            (json!({ "type": "text", "text": "a\u{1b}b" }), "a\\u{1b}b"),
            (
                json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" }),
                "[image image/png, 3 B]",
            ),
            (
                json!({ "type": "resource_link", "name": "x", "uri": "a://b" }),
                "[link x: a://b]",
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "a://b", "text": "hello" } }),
                "[resource a://b]\nhello",
            ),
            (json!({ "type": "new", "x": 1 }), r#"{"type":"new","x":1}"#),
        ];
        for (block, expected) in rows {
            assert_eq!(shown(&block, terminal), expected);
        }
    }

    #[test]
    fn only_true_is_an_error() {
        assert!(is_error(r#"{"content":[],"isError":true}"#));
        assert!(!is_error(r#"{"content":[],"isError":null}"#));
        assert!(!is_error(r#"{"content":[]}"#));
        assert!(!is_error("[]"));
    }
}
