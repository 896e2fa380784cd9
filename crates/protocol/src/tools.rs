//! Finding tools without loading them all, and reviewing tools whose definitions changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, List, Text};
use crate::word::open_words;
use crate::{Dir, Issue, Raw, Revision, ServerName};

/// Params of `mcp.tools.search`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpToolsSearch {
    /// The directory.
    pub directory: Dir,
    /// What is wanted, in words.
    #[schemars(with = "Text<1, 1000>")]
    pub query: String,
    /// At most this many hits, default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 100>>")]
    pub limit: Option<u32>,
    /// Only tools of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ServerName, 500>>")]
    pub servers: Option<Vec<ServerName>>,
    /// With the schema of the arguments of each hit; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schemas: Option<bool>,
    /// `false`: a server whose tools were never seen is not started; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discover: Option<bool>,
    /// How long to wait for servers whose tools were never seen, in milliseconds; default 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 60_000>>")]
    pub wait_ms: Option<u64>,
}

/// Answer of `mcp.tools.search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolsSearchResult {
    /// The tools that fit, best first.
    #[schemars(with = "List<ToolHit, 100>")]
    pub hits: Vec<ToolHit>,
    /// How many tools were looked at.
    pub searched: u32,
    /// What is missing, and why.
    #[schemars(with = "List<Issue, 1000>")]
    pub issues: Vec<Issue>,
}

/// A tool that fits a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolHit {
    /// Its name for the model.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// Whose it is.
    pub server: ServerName,
    /// Its name there.
    pub tool: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it says it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Raw>,
    /// How well it fits (BM25); comparable within one answer only.
    pub score: f64,
    /// How many tokens its definition takes, roughly.
    pub tokens: u32,
}

/// Params of `mcp.tools.review`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpToolsReview {
    /// The directory.
    pub directory: Dir,
    /// Only this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
}

/// Answer of `mcp.tools.review`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolsReviewResult {
    /// One for each server whose definitions differ from what was accepted.
    #[schemars(with = "List<ToolsReview, 1000>")]
    pub reviews: Vec<ToolsReview>,
}

/// How the definitions of a server differ from what was accepted; `mcp.decide` with subject `tools` names the revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolsReview {
    /// The server.
    pub server: ServerName,
    /// The digest of what is shown.
    pub revision: Revision,
    /// Each difference.
    pub changes: Vec<DefinitionChange>,
}

/// A definition that differs from what was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionChange {
    /// What happened.
    pub change: DefinitionChangeKind,
    /// The tool; absent for the server's instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The name under which it was accepted, where it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The members that differ.
    pub members: Vec<String>,
    /// The definition that was accepted, in canonical form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Raw>,
    /// The definition as it is now, in canonical form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Raw>,
    /// It is not offered and not called until it is accepted.
    pub held: bool,
    /// A person has refused it.
    pub rejected: bool,
    /// What looks like an attempt to steer a model.
    pub warnings: Vec<String>,
}

open_words! {
    /// What happened to a definition.
    pub enum DefinitionChangeKind {
        /// The tool is new.
        Added = "added",
        /// The tool is no longer listed.
        Removed = "removed",
        /// The tool has another name.
        Renamed = "renamed",
        /// The tool says something else of itself.
        Changed = "changed",
        /// The server says something else about its use.
        Instructions = "instructions",
    }
}
