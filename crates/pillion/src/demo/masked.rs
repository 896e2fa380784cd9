//! What the calendar and its authorization server see and say, as lines for `--trace`. No secret is in them.

use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use serde_json::Value;
use url::form_urlencoded;

use super::modern::{Answer, Asked, header};

/// Values that nobody else may know.
const SECRETS: [&str; 6] = [
    "access_token",
    "refresh_token",
    "token",
    "code",
    "code_verifier",
    "state",
];
const MASK: &str = "•••";
/// From Pillion to the server, and back.
const QUESTION: char = '⇢';
const REPLY: char = '⇠';

/// What was asked, and what was answered; nothing where the protocol goes on.
pub fn report(asked: &Asked, answer: Option<&Answer>) {
    println!("{QUESTION} {}", question(asked));
    if let Some(answer) = answer {
        println!("{REPLY} {}", reply(answer));
    }
}

fn question(asked: &Asked) -> String {
    let mut text = format!("{} {}", asked.method, asked.path);
    if !asked.query.is_empty() {
        text = format!("{text}?{}", form(&asked.query));
    }
    if let Some(method) = header(&asked.headers, "mcp-method") {
        text = format!("{text} {method}");
    }
    if asked.headers.contains_key(AUTHORIZATION) {
        text = format!("{text} Authorization: Bearer {MASK}");
    }
    let media_type = header(&asked.headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    let body = String::from_utf8_lossy(&asked.body);
    match (&asked.method, media_type) {
        (&Method::POST, "application/x-www-form-urlencoded") => format!("{text} {}", form(&body)),
        (&Method::POST, "application/json") if asked.path != "/mcp" => format!("{text} {}", document(&body)),
        _ => text,
    }
}

fn reply(answer: &Answer) -> String {
    let mut text = answer.status.as_u16().to_string();
    for (name, value) in &answer.headers {
        if *name == WWW_AUTHENTICATE {
            text = format!("{text} WWW-Authenticate: {value}");
        }
        if *name == LOCATION {
            let (address, query) = value.split_once('?').unwrap_or((value, ""));
            text = format!("{text} Location: {address}?{}", form(query));
        }
        if *name == CONTENT_TYPE && value == "application/json" {
            text = format!("{text} {}", document(&answer.body));
        }
    }
    text
}

fn form(text: &str) -> String {
    let pairs = form_urlencoded::parse(text.as_bytes());
    let masked = pairs.map(|(name, value)| match SECRETS.contains(&&*name) {
        true => format!("{name}={MASK}"),
        false => format!("{name}={value}"),
    });
    masked.collect::<Vec<_>>().join("&")
}

fn document(text: &str) -> String {
    let mut document = serde_json::from_str::<Value>(text).unwrap_or_default();
    for (name, value) in document.as_object_mut().into_iter().flatten() {
        if SECRETS.contains(&name.as_str()) {
            *value = MASK.into();
        }
    }
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        assert_eq!(
            form("grant_type=refresh_token&refresh_token=r%2D1"),
            "grant_type=refresh_token&refresh_token=•••"
        );
        assert_eq!(
            document(r#"{"access_token":"a-1","expires_in":60}"#),
            r#"{"access_token":"•••","expires_in":60}"#
        );
    }
}
