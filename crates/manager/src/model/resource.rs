//! What a resource says, as text: for the model, and for a prompt that mentions it.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The members of a `resources/read` result.
#[derive(Deserialize)]
struct Read {
    contents: Vec<Content>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
    #[serde(default, rename = "mimeType")]
    mime_type: Option<String>,
}

/// The text of a resource; what is binary is named by type and size.
pub(crate) fn text(result: &RawValue) -> Result<String, String> {
    let read: Read = serde_json::from_str(result.get())
        .map_err(|error| format!("the server's answer cannot be read: {error}"))?;
    let parts = read
        .contents
        .into_iter()
        .map(|content| match (content.text, content.blob) {
            (Some(text), _) => text,
            (None, Some(blob)) => label(content.mime_type.as_deref(), decoded(&blob)),
            (None, None) => label(content.mime_type.as_deref(), 0),
        });
    Ok(parts.collect::<Vec<_>>().join("\n"))
}

/// What stands for binary content.
pub(crate) fn label(mime_type: Option<&str>, bytes: u64) -> String {
    format!(
        "[binary content: {}, {bytes} bytes]",
        mime_type.unwrap_or("application/octet-stream")
    )
}

/// How many bytes a base64 text stands for.
fn decoded(blob: &str) -> u64 {
    let digits = blob
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=')
        .count() as u64;
    digits * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_content_is_named() {
        let check = |result: &str, expected: Result<&str, ()>| {
            let raw = RawValue::from_string(result.to_owned()).unwrap();
            assert_eq!(text(&raw).as_deref().map_err(|_| ()), expected, "{result}");
        };
        check(
            r#"{"contents":[{"uri":"a","text":"one"},{"uri":"b","text":"two"}]}"#,
            Ok("one\ntwo"),
        );
        check(
            r#"{"contents":[{"uri":"a","mimeType":"image/png","blob":"AAECAwQ="}]}"#,
            Ok("[binary content: image/png, 5 bytes]"),
        );
        check(
            r#"{"contents":[{"uri":"a","blob":""}]}"#,
            Ok("[binary content: application/octet-stream, 0 bytes]"),
        );
        check(r#"{"contents":[]}"#, Ok(""));
        check("{}", Err(()));
    }
}
