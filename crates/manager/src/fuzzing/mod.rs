//! What must hold for whatever somebody else wrote: the entry points of `tests/fuzz`, one for each reader.
//!
//! Built for fuzzing and for tests only. Each takes bytes, and panics when a promise is broken.

mod bundle;
mod config;
mod exchange;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use bundle::bundle;
pub use config::config;
pub use exchange::{import, paste, server_json};
#[cfg(test)]
pub(crate) use exchange::{is_harmless, reads_back, sets_one};

use crate::config::syntax::Place;

/// Stands for a secret in the seeds; no message may hold it.
const SECRET: &str = "sk-s3cr3t0fn0b0dy";

/// Members that hold secrets, in the words of all programs.
const HOLDERS: [&str; 7] = [
    "env",
    "envs",
    "environment",
    "headers",
    "http_headers",
    "requestOptions",
    "oauth",
];

/// The first byte, which chooses, and the text behind it.
fn choice_and_text(data: &[u8]) -> Option<(usize, String)> {
    let (choice, text) = data.split_first()?;
    Some((usize::from(*choice), String::from_utf8_lossy(text).into_owned()))
}

/// Whether the secret stands nowhere but where secrets are written.
fn is_kept_secret(value: &Value, is_inside: bool) -> bool {
    match value {
        Value::String(text) => is_inside || !text.contains(SECRET),
        Value::Array(items) => items.iter().all(|item| is_kept_secret(item, is_inside)),
        Value::Object(members) => members.iter().all(|(name, member)| {
            !name.contains(SECRET) && is_kept_secret(member, is_inside || HOLDERS.contains(&name.as_str()))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[track_caller]
fn says_no_secret(message: &str) {
    assert!(!message.contains(SECRET), "a message holds a secret: {message}");
}

#[track_caller]
fn is_inside(place: Place, text: &str) {
    let lines = text.matches('\n').count() + 1;
    let longest = text.split('\n').map(|line| line.chars().count()).max();
    assert!(
        (1..=lines).contains(&place.line) && (1..=longest.unwrap_or_default() + 1).contains(&place.column),
        "{place:?} is outside of the text"
    );
}
