//! Which era a server speaks, told from its answer to `server/discover`.
//!
//! Pure decisions: outcome in, verdict out. Nothing is keyed on one error code, because servers of the older era refuse a message they do
//! not know in every way there is: with any code, with an HTTP page, with silence, and by exiting.

use serde_json::value::RawValue;

use super::core::Answer;
use super::failure::Failure;
use super::members;
use super::versions;
use crate::target::Era;
use crate::transport::TransportError;

pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// What became of a probe.
pub(crate) enum Probe {
    Answered(Answer),
    Silent,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Modern {
        version: &'static str,
        discovered: Box<RawValue>,
    },
    /// The server named this version of ours: probe again with it.
    Again(&'static str),
    Legacy(Legacy),
    /// Modern, but of versions we do not speak.
    Incompatible {
        theirs: Vec<String>,
    },
    /// The failure says nothing about the era and is the answer to give.
    Failed(Failure),
}

#[derive(Debug)]
pub(crate) struct Legacy {
    /// The version to open with.
    pub version: &'static str,
    /// The process has ended over the probe: a fresh one is needed.
    pub fresh: bool,
    /// Decided by an answer and not by silence: worth remembering.
    pub settled: bool,
    /// `server/discover` itself is unknown, which a modern server must not say, but may.
    pub unknown_method: bool,
    /// What to report if the handshake fails too, because it was the real reason.
    pub doubt: Option<Failure>,
}

impl Legacy {
    pub(crate) fn new() -> Legacy {
        Legacy {
            version: versions::NEWEST_LEGACY,
            fresh: false,
            settled: true,
            unknown_method: false,
            doubt: None,
        }
    }
}

/// `tried`: the version the probe was sent with; it is asked for again at most once.
pub(crate) fn judge(probe: Probe, is_http: bool, tried: &[&str]) -> Verdict {
    let answer = match probe {
        Probe::Silent => {
            return Verdict::Legacy(Legacy {
                settled: false,
                ..Legacy::new()
            });
        }
        Probe::Answered(answer) => answer,
    };
    match answer {
        Ok(result) => match supported(&result) {
            Some(theirs) => of_list(theirs, result),
            None => Verdict::Legacy(Legacy::new()),
        },
        Err(failure @ Failure::Rpc { .. }) => of_error(failure, tried),
        Err(Failure::Closed(closed)) if is_http => Verdict::Failed(Failure::Closed(closed)),
        Err(Failure::Closed(_)) => Verdict::Legacy(Legacy {
            fresh: true,
            ..Legacy::new()
        }),
        Err(Failure::Transport(error)) => of_transport(error),
    }
}

/// The versions in a DiscoverResult; `None` if it is none.
pub(crate) fn supported(result: &RawValue) -> Option<Vec<String>> {
    members::member(result.get(), "supportedVersions").and_then(versions::listed)
}

fn of_list(theirs: Vec<String>, discovered: Box<RawValue>) -> Verdict {
    if let Some(version) = versions::best(Era::Modern, &theirs) {
        return Verdict::Modern { version, discovered };
    }
    match versions::best(Era::Legacy, &theirs) {
        Some(version) => Verdict::Legacy(Legacy {
            version,
            ..Legacy::new()
        }),
        None => Verdict::Incompatible { theirs },
    }
}

fn of_error(failure: Failure, tried: &[&str]) -> Verdict {
    match failure.code() {
        Some(UNSUPPORTED_VERSION) => {
            let theirs = versions::named_in(&failure);
            if let Some(version) = versions::best(Era::Modern, &theirs) {
                // It may name the very version it has just refused: once more, then it is an error.
                if tried.len() < 2 {
                    return Verdict::Again(version);
                }
                return Verdict::Incompatible { theirs };
            }
            if let Some(version) = versions::best(Era::Legacy, &theirs) {
                return Verdict::Legacy(Legacy {
                    version,
                    ..Legacy::new()
                });
            }
            if theirs.is_empty() {
                return Verdict::Legacy(Legacy::new());
            }
            Verdict::Incompatible { theirs }
        }
        // A server that knows these codes is a modern one; the handshake of the other era would only hide the reason.
        Some(HEADER_MISMATCH | MISSING_CAPABILITY) => Verdict::Failed(failure),
        Some(METHOD_NOT_FOUND) => Verdict::Legacy(Legacy {
            unknown_method: true,
            ..Legacy::new()
        }),
        _ => Verdict::Legacy(Legacy::new()),
    }
}

fn of_transport(error: TransportError) -> Verdict {
    let doubt = |error| {
        Verdict::Legacy(Legacy {
            settled: false,
            doubt: Some(Failure::Transport(error)),
            ..Legacy::new()
        })
    };
    match &error {
        TransportError::Status {
            status: 401 | 403 | 429 | 500..,
            ..
        } => Verdict::Failed(Failure::Transport(error)),
        TransportError::Status {
            status: 400..=499, ..
        }
        | TransportError::SessionGone => Verdict::Legacy(Legacy::new()),
        // Strange, but `initialize` does no harm.
        TransportError::BadMedia { .. } | TransportError::StreamEnded => doubt(error),
        _ => Verdict::Failed(Failure::Transport(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::envelope::RpcError;
    use crate::error::{CloseReason, Closed};

    fn show(probe: Probe, is_http: bool, tried: &[&str]) -> String {
        match judge(probe, is_http, tried) {
            Verdict::Modern { version, .. } => format!("modern {version}"),
            Verdict::Again(version) => format!("again {version}"),
            Verdict::Legacy(legacy) => {
                let mut text = format!("legacy {}", legacy.version);
                for (is, word) in [
                    (legacy.fresh, " fresh"),
                    (!legacy.settled, " unsettled"),
                    (legacy.unknown_method, " unknown method"),
                    (legacy.doubt.is_some(), " in doubt"),
                ] {
                    text.push_str(if is { word } else { "" });
                }
                text
            }
            Verdict::Incompatible { theirs } => format!("incompatible {theirs:?}"),
            Verdict::Failed(_) => "failed".into(),
        }
    }

    #[test]
    fn verdicts() {
        let result = |text: &str| Probe::Answered(Ok(members::raw(text)));
        let rpc = |code, data: Option<&str>| {
            let error = RpcError {
                code,
                message: "m".into(),
                data: data.map(members::raw),
            };
            Probe::Answered(Err(Failure::Rpc { error, status: None }))
        };
        let transport = |error| Probe::Answered(Err(Failure::Transport(error)));
        let status = |status| {
            transport(TransportError::Status {
                status,
                content_type: None,
                body: "<html>".into(),
                challenges: vec![],
            })
        };
        let closed = || Probe::Answered(Err(Failure::Closed(Closed::new(CloseReason::ServerExited, "x"))));
        let check = |probe, expected| assert_eq!(show(probe, true, &["2026-07-28"]), expected);

        check(
            result(r#"{"supportedVersions":["2026-07-28","2025-11-25"]}"#),
            "modern 2026-07-28",
        );
        check(
            result(r#"{"supportedVersions":["2025-06-18","2025-11-25"]}"#),
            "legacy 2025-11-25",
        );
        check(
            result(r#"{"supportedVersions":["2099-01-01"]}"#),
            "incompatible [\"2099-01-01\"]",
        );
        check(result(r#"{"tools":[]}"#), "legacy 2025-11-25");
        check(
            rpc(-32022, Some(r#"{"supported":["2026-07-28"]}"#)),
            "again 2026-07-28",
        );
        check(
            rpc(-32022, Some(r#"{"supported":["2025-03-26"]}"#)),
            "legacy 2025-03-26",
        );
        check(
            rpc(-32022, Some(r#"{"supported":["2099-01-01"]}"#)),
            "incompatible [\"2099-01-01\"]",
        );
        check(rpc(-32022, None), "legacy 2025-11-25");
        check(rpc(-32020, None), "failed");
        check(rpc(-32021, None), "failed");
        check(rpc(-32601, None), "legacy 2025-11-25 unknown method");
        for code in [-32602, -32600, -32000, 0, 17] {
            check(rpc(code, None), "legacy 2025-11-25");
        }
        check(Probe::Silent, "legacy 2025-11-25 unsettled");
        for code in [400, 404, 405, 406, 415] {
            check(status(code), "legacy 2025-11-25");
        }
        for code in [401, 403, 429, 500, 503] {
            check(status(code), "failed");
        }
        check(transport(TransportError::Connect("refused".into())), "failed");
        check(
            transport(TransportError::StreamEnded),
            "legacy 2025-11-25 unsettled in doubt",
        );
        check(closed(), "failed");
        assert_eq!(show(closed(), false, &["2026-07-28"]), "legacy 2025-11-25 fresh");
        let again = rpc(-32022, Some(r#"{"supported":["2026-07-28"]}"#));
        assert_eq!(
            show(again, false, &["2026-07-28", "2026-07-28"]),
            "incompatible [\"2026-07-28\"]"
        );
    }
}
