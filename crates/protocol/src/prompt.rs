//! Composing a prompt: mentions of resources and calls of prompts inside a text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, List, Text};
use crate::word::union;
use crate::{CallId, Dir, Issue, PromptItem, ResourceItem, ServerName, Session, Token, Uri};

/// Params of `mcp.mentions.list`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpMentionsList {
    /// The directory.
    pub directory: Dir,
    /// What is typed so far, with `@` or `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<0, 256>>")]
    pub prefix: Option<String>,
    /// At most this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 1000>>")]
    pub limit: Option<u32>,
    /// How long to wait for servers, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 60_000>>")]
    pub wait_ms: Option<u64>,
    /// The host's own commands, with the leading `/`: a prompt of the same name is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 256>, 1000>>")]
    pub reserved: Option<Vec<String>>,
}

/// Answer of `mcp.mentions.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpMentionsListResult {
    /// Resources to mention.
    pub resources: Vec<ResourceItem>,
    /// Prompts to call.
    pub prompts: Vec<PromptItem>,
    /// What is missing, and why.
    pub issues: Vec<Issue>,
}

/// Params of `mcp.prompt.expand`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPromptExpand {
    /// The directory.
    pub directory: Dir,
    /// The text, with mentions `@server:resource` or a leading `/server:prompt args`.
    #[schemars(with = "Text<0, 262_144>")]
    pub text: String,
    /// The host's own commands, with the leading `/`: they win over a prompt of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 256>, 1000>>")]
    pub reserved: Option<Vec<String>>,
    /// The host's name for this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The chat or run it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Idle time limit in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1000, 600_000>>")]
    pub timeout_ms: Option<u64>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.prompt.expand`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptExpandResult {
    /// The text, and what it mentions.
    pub parts: Vec<PromptPart>,
    /// The prompt it called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptCalled>,
    /// What was left out, and why.
    #[schemars(with = "List<Issue, 100>")]
    pub issues: Vec<Issue>,
}

union! {
    /// A piece of an expanded text.
    pub enum PromptPart by "type" {
        Text(TextPart) = "text",
        Resource(ResourcePart) = "resource",
    }
}

/// Plain text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "text", rename_all = "camelCase")]
#[schemars(rename = "TextPart", transform = crate::word::Tag("type", "text"))]
pub struct TextPart {
    /// The text.
    pub text: String,
}

/// A resource that was mentioned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "resource", rename_all = "camelCase")]
#[schemars(rename = "ResourcePart", transform = crate::word::Tag("type", "resource"))]
pub struct ResourcePart {
    /// How it was mentioned.
    pub mention: String,
    /// Whose it is.
    pub server: ServerName,
    /// Its URI.
    pub uri: Uri,
    /// Its media type (RFC 2046).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its content.
    pub text: String,
}

/// The prompt that a text called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptCalled {
    /// Whose it is.
    pub server: ServerName,
    /// Its name there.
    pub name: String,
}
