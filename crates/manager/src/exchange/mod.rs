//! Entries from elsewhere and for elsewhere: pasted texts, other programs' configurations, exports.
//!
//! Texts in, entries out. Nothing here reads a file, starts anything, or replaces a reference.

mod command;
mod container;
pub(crate) mod declared;
mod dialect;
pub(crate) mod difference;
pub(crate) mod document;
pub(crate) mod edit;
pub(crate) mod entry;
pub(crate) mod fill;
mod forms;
mod links;
mod markup;
pub(crate) mod names;
pub(crate) mod paste;
pub(crate) mod programs;
mod references;
pub(crate) mod server_json;
pub(crate) mod stand_ins;
#[cfg(test)]
mod tests;
pub(crate) mod toml;
pub(crate) mod words;
mod wrapped;
pub(crate) mod write;
mod yaml;

use protocol::{Issue, IssueKind, ServerEntry, ServerName};

pub(crate) use container::harvest;
pub(crate) use dialect::{Dialect, meant_in};
pub(crate) use document::Fault;
pub(crate) use forms::{Form, Off};

/// What a text holds.
#[derive(Debug, Default)]
pub(crate) struct Harvest {
    pub found: Vec<Found>,
    /// Settings that have no counterpart here, and what is worth knowing.
    pub notes: Vec<Issue>,
    pub inputs: Vec<Input>,
    /// The text is another program's, by what it looks like: our references mean nothing in it.
    pub is_foreign: bool,
    /// Servers that the text describes rather than configures.
    pub described: Vec<server_json::ServerJson>,
}

/// One server of a text.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its name in the text; empty where it has none.
    pub name: String,
    /// Where the text says that it belongs: `user`, `project`, `project:<directory>`.
    pub scope: Option<String>,
    pub outcome: Outcome,
}

/// What became of a server of a text.
#[derive(Debug)]
pub(crate) enum Outcome {
    Entry(Box<ServerEntry>),
    /// It is not ours to take over.
    Skipped(String),
    Failed(String),
}

/// A value that the other program asks its user for, written `${input:id}`.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub id: String,
    pub secret: bool,
    pub description: Option<String>,
    pub default: Option<String>,
    pub choices: Option<Vec<String>>,
}

fn note(kind: IssueKind, server: &str, message: String) -> Issue {
    let mut issue = Issue::new(kind, message);
    if !server.is_empty() {
        issue.server = Some(ServerName::from(server));
    }
    issue
}
