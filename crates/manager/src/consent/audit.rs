//! The log of calls and decisions: `<dataDir>/audit.jsonl`, one line each, only ever added to.
//!
//! It is off until the file exists: who wants it makes the file. Names only; arguments, results and secrets are never
//! in it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use protocol::{Dir, Layer, Tier};
use serde::Serialize;

use crate::env;

/// What is written down.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub(crate) enum Event<'a> {
    /// A tool was called.
    Call {
        directory: &'a Dir,
        server: &'a str,
        tool: &'a str,
        by: Tier,
        /// `ok`, or the kind of the error.
        outcome: &'a str,
    },
    /// What waited for a person was decided.
    Decision {
        server: &'a str,
        layer: Layer,
        /// `entry`: a request. `tools`: changed definitions of its tools.
        subject: &'a str,
        decision: &'a str,
    },
    /// Trust in a project was granted or revoked.
    Trust { directory: &'a Dir, action: &'a str },
    /// A remembered answer about a model's calls was taken back.
    Grant {
        directory: &'a Dir,
        server: &'a str,
        tool: &'a str,
        action: &'a str,
    },
    /// A model's call of a tool was allowed or refused.
    Approval {
        directory: &'a Dir,
        server: &'a str,
        tool: &'a str,
        /// `allow`, `deny`, or why nobody decided.
        outcome: &'a str,
        /// What decided: a grant, a person, nobody.
        by: &'a str,
    },
}

#[derive(Serialize)]
struct Line<'a> {
    at: u64,
    pid: u32,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// Adds a line, where somebody wants the log. One write, so that lines of several processes do not mix.
pub(crate) fn write(data_dir: &Path, event: &Event<'_>) {
    let path = data_dir.join("audit.jsonl");
    let Ok(mut file) = OpenOptions::new().append(true).open(&path) else {
        return;
    };
    let line = Line {
        at: env::now(),
        pid: std::process::id(),
        event,
    };
    let Ok(mut text) = serde_json::to_vec(&line) else {
        return;
    };
    text.push(b'\n');
    if let Err(error) = file.write_all(&text) {
        tracing::warn!(path = %path.display(), %error, "the audit log cannot be written");
    }
}
