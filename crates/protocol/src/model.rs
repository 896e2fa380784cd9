//! The model's side: tools to offer it, and its calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, List, Text};
use crate::word::words;
use crate::{
    CallId, Dialect, Dir, Fault, Issue, Json, Raw, ResourceTools, Revision, ServerName, Session, Token, Uri,
};

/// Params of `mcp.model.tools`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpModelTools {
    /// The directory.
    pub directory: Dir,
    /// The chat or run it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// How the model reads resources; default the handshake's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_tools: Option<ResourceTools>,
    /// Only these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ServerName, 500>>")]
    pub servers: Option<Vec<ServerName>>,
    /// How long to wait for servers, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 60_000>>")]
    pub wait_ms: Option<u64>,
    /// The revision the host has; where it still holds, no tools are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Revision>,
    /// How schemas are projected; default the handshake's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// What the model is given at the start; default `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<ToolLoad>,
}

words! {
    /// What the model is given at the start.
    pub enum ToolLoad {
        /// Every tool with its schema.
        All = "all",
        /// Two built-in tools: one that finds tools and shows their schemas, one that calls what was found.
        Search = "search",
    }
}

/// Answer of `mcp.model.tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpModelToolsResult {
    /// The digest of the list.
    pub revision: Revision,
    /// `known` still holds.
    pub unchanged: bool,
    /// The tools; denied ones are absent.
    #[schemars(with = "List<ModelTool, 10_000>")]
    pub tools: Vec<ModelTool>,
    /// The servers behind the tools, with what each costs and what it says about its use.
    pub servers: Vec<ModelServer>,
    /// What is missing or was changed, and why.
    pub issues: Vec<Issue>,
}

/// A server, as the model's side sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelServer {
    /// Its name; `pillion` for the built-in tools.
    pub server: ServerName,
    /// How many of its tools the model may use.
    pub tools: u32,
    /// How many tokens their definitions take together, roughly.
    pub tokens: u32,
    /// What it says about its use: text of a stranger, to be shown to a model as such or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// A tool for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelTool {
    /// Its name for the model.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// Whose it is; `pillion` for the built-in resource tools.
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
    pub input_schema: Raw,
    /// The schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Raw>,
    /// The server's hints about it, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Raw>,
    /// Whether somebody will be asked.
    pub approval: ModelApproval,
    /// How many tokens its definition takes, roughly.
    pub tokens: u32,
}

words! {
    /// Whether somebody is asked before a model's call.
    pub enum ModelApproval {
        Ask = "ask",
        Auto = "auto",
    }
}

/// Params of `mcp.model.call`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpModelCall {
    /// The directory.
    pub directory: Dir,
    /// The tool's name for the model.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// Its arguments, passed on verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Raw>,
    /// The host's name for this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The chat or run it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Idle time limit in milliseconds; default the entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1000, 600_000>>")]
    pub timeout_ms: Option<u64>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.model.call`: everything a model can use is a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelResult {
    /// How it ended.
    pub outcome: ModelOutcome,
    /// Whether the model should take it for an error.
    pub is_error: bool,
    /// Content blocks of the server's result, verbatim, or a text that says what happened.
    #[schemars(with = "List<Raw, 1000>")]
    pub content: Vec<Raw>,
    /// The server's structured result, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    /// Why it was not carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Fault>,
    /// What happened on the way.
    #[schemars(with = "List<Issue, 100>")]
    pub issues: Vec<Issue>,
    /// Blocks that were too large and went to files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<Vec<Spilled>>,
    /// How many tokens the content takes, roughly.
    pub tokens: u32,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

words! {
    /// How a model's call ended.
    pub enum ModelOutcome {
        Ok = "ok",
        /// The tool itself answered with an error.
        ToolError = "tool_error",
        /// A list, a grant or a person said no.
        Denied = "denied",
        /// Nobody could be asked.
        CannotAsk = "cannot_ask",
        /// It could not be carried out.
        Failed = "failed",
    }
}

/// A block that was too large for the model and went to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spilled {
    /// Its place in `content`, from 0.
    pub block: u32,
    /// What the model's resource tool reads it by.
    pub uri: Uri,
    /// The file, mode 0600.
    pub path: Dir,
    /// Its media type (RFC 2046).
    pub mime_type: String,
    /// Its size.
    pub bytes: u64,
}
