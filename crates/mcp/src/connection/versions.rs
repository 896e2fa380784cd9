//! The protocol versions we speak, and what servers say about theirs.

use super::envelope::RpcError;
use super::failure::Failure;
use super::members;
use crate::target::Era;

/// Newest first.
pub(crate) const MODERN: &[&str] = &["2026-07-28"];
/// Newest first.
pub(crate) const LEGACY: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub(crate) const NEWEST_MODERN: &str = MODERN[0];
pub(crate) const NEWEST_LEGACY: &str = LEGACY[0];

pub(crate) fn ours() -> Vec<String> {
    MODERN
        .iter()
        .chain(LEGACY)
        .map(|version| (*version).to_owned())
        .collect()
}

/// The era of a version we speak, and its name in static form.
pub(crate) fn known(version: &str) -> Option<(Era, &'static str)> {
    let find = |list: &[&'static str]| list.iter().copied().find(|known| *known == version);
    find(MODERN)
        .map(|known| (Era::Modern, known))
        .or_else(|| find(LEGACY).map(|known| (Era::Legacy, known)))
}

/// The newest version of one era that both sides speak.
pub(crate) fn best(era: Era, theirs: &[String]) -> Option<&'static str> {
    let list = match era {
        Era::Modern => MODERN,
        Era::Legacy => LEGACY,
    };
    list.iter()
        .copied()
        .find(|ours| theirs.iter().any(|theirs| theirs == ours))
}

/// The versions in a list, which may hold anything.
pub(crate) fn listed(list: &str) -> Option<Vec<String>> {
    let elements = members::elements(list)?;
    Some(elements.filter_map(members::string).map(Into::into).collect())
}

/// The versions that an error about the version names: `data.supported`, or dates in the text of an error that speaks of versions, which
/// is all that servers on older SDKs give.
pub(crate) fn named_in(failure: &Failure) -> Vec<String> {
    if let Failure::Rpc {
        error: RpcError { data: Some(data), .. },
        ..
    } = failure
        && let Some(supported) = members::member(data.get(), "supported").and_then(listed)
        && !supported.is_empty()
    {
        return supported;
    }
    let Some(text) = failure.text() else {
        return Vec::new();
    };
    if !text.to_ascii_lowercase().contains("version") {
        return Vec::new();
    }
    // What stands after "supported" is the list; before it often the version that was refused.
    let from = text.to_ascii_lowercase().rfind("supported versions").unwrap_or(0);
    dates(text.get(from..).unwrap_or(text))
}

fn dates(text: &str) -> Vec<String> {
    let is_date = |word: &&str| {
        word.len() == 10
            && word.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            })
    };
    text.split(|character: char| !character.is_ascii_digit() && character != '-')
        .filter(is_date)
        .map(Into::into)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::TransportError;

    #[test]
    fn versions_in_errors() {
        let check = |failure: Failure, expected: &[&str]| assert_eq!(named_in(&failure), expected);
        let rpc = |message: &str, data: Option<&str>| Failure::Rpc {
            error: RpcError {
                code: -32602,
                message: message.into(),
                data: data.map(members::raw),
            },
            status: None,
        };
        let body = |body: &str| {
            Failure::Transport(TransportError::Status {
                status: 400,
                content_type: None,
                body: body.into(),
                challenges: Vec::new(),
            })
        };
        check(
            rpc("x", Some(r#"{"supported":["2024-11-05",7]}"#)),
            &["2024-11-05"],
        );
        check(rpc("Method not found", None), &[]);
        check(
            body(
                "Bad Request: Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26, 2024-11-05)",
            ),
            &["2025-06-18", "2025-03-26", "2024-11-05"],
        );
        check(
            rpc(
                "Unsupported protocol version 2025-11-25; supported versions: 2025-06-18",
                None,
            ),
            &["2025-06-18"],
        );
        check(body("Something of 2024-01-01"), &[]);
    }

    #[test]
    fn best_version() {
        let theirs = ["1.0".to_owned(), "2025-03-26".to_owned(), "2025-06-18".to_owned()];
        assert_eq!(best(Era::Legacy, &theirs), Some("2025-06-18"));
        assert_eq!(best(Era::Modern, &theirs), None);
    }
}
