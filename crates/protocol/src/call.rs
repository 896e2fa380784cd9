//! Using what servers offer: calls, resources, prompts, completion.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, Int, List, Text};
use crate::word::union_schema;
use crate::{CallId, Dir, Issue, Raw, ServerName, Session, Token, Uri};

/// Params of `mcp.tool.call`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpToolCall {
    /// The directory.
    pub directory: Dir,
    /// Whose tool it is.
    pub server: ServerName,
    /// The tool's name there.
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

/// Answer of `mcp.tool.call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallResult {
    /// The server's own result, verbatim.
    pub result: Raw,
    /// What happened on the way.
    pub issues: Vec<Issue>,
}

/// Params of `mcp.call.cancel`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpCallCancel {
    /// The call to end; it answers `call_cancelled`.
    pub call: CallId,
}

/// Answer of `mcp.call.cancel`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpCallCancelResult {
    /// `false`: there is no such call any more.
    pub cancelled: bool,
}

/// Params of `mcp.resource.read`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpResourceRead {
    /// The directory.
    pub directory: Dir,
    /// Whose resource it is.
    pub server: ServerName,
    /// Its URI.
    pub uri: Uri,
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

/// Answer of `mcp.resource.read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadResult {
    /// The server's own result, verbatim; at most 1 MiB.
    pub result: Raw,
    /// What happened on the way.
    pub issues: Vec<Issue>,
}

/// Params of `mcp.resource.subscribe`; twice is once, and it outlives reconnects.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpResourceSubscribe {
    /// The directory.
    pub directory: Dir,
    /// Whose resource it is.
    pub server: ServerName,
    /// Its URI.
    pub uri: Uri,
}

/// Answer of `mcp.resource.subscribe`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceSubscribeResult {}

/// Params of `mcp.resource.unsubscribe`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpResourceUnsubscribe {
    /// The directory.
    pub directory: Dir,
    /// Whose resource it is.
    pub server: ServerName,
    /// Its URI.
    pub uri: Uri,
}

/// Answer of `mcp.resource.unsubscribe`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceUnsubscribeResult {}

/// Params of `mcp.prompt.get`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPromptGet {
    /// The directory.
    pub directory: Dir,
    /// Whose prompt it is.
    pub server: ServerName,
    /// Its name there.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<Text<0, 65536>, 64>>")]
    pub args: Option<BTreeMap<String, String>>,
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

/// Answer of `mcp.prompt.get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptGetResult {
    /// The server's own result, verbatim; at most 256 KiB.
    pub result: Raw,
    /// What happened on the way.
    pub issues: Vec<Issue>,
}

/// Params of `mcp.complete` (MCP, Completion).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpComplete {
    /// The directory.
    pub directory: Dir,
    /// The server to ask.
    pub server: ServerName,
    /// What is being filled in.
    #[serde(rename = "ref")]
    pub reference: CompletionRef,
    /// The argument being typed.
    #[schemars(with = "Text<1, 256>")]
    pub argument: String,
    /// What is typed so far.
    #[schemars(with = "Text<0, 8192>")]
    pub value: String,
    /// The arguments that are filled in already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<Text<0, 65536>, 64>>")]
    pub args: Option<BTreeMap<String, String>>,
}

/// What is being filled in: a prompt's argument or a template's variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CompletionRef {
    /// A prompt's argument.
    Prompt(PromptRef),
    /// A template's variable.
    Template(TemplateRef),
}

union_schema!(
    CompletionRef,
    ["What is being filled in: a prompt's argument or a template's variable."],
    "type",
    [PromptRef, TemplateRef]
);

/// A prompt whose argument is being filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = crate::word::Tag("type", "prompt"))]
pub struct PromptRef {
    /// The prompt's name.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
}

/// A template whose variable is being filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = crate::word::Tag("type", "template"))]
pub struct TemplateRef {
    /// The URI template (RFC 6570).
    pub uri_template: Uri,
}

/// Answer of `mcp.complete`; empty where the server offers none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpCompleteResult {
    /// What could stand there.
    #[schemars(with = "List<String, 100>")]
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// There are more than these.
    pub more: bool,
}
