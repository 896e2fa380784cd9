//! What servers offer: tools, resources, templates, prompts, and using them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, List, Text};
use crate::word::{open_words, union};
use crate::{Cursor, Dir, Issue, Raw, ServerName, State, Token, Uri};

union! {
    /// Something that a server offers.
    pub enum CatalogItem by "type" {
        Tool(ToolItem) = "tool",
        Resource(ResourceItem) = "resource",
        Template(TemplateItem) = "template",
        Prompt(PromptItem) = "prompt",
    }
}

union! {
    /// A resource or a template of resources.
    pub enum ResourceOrTemplate by "type" {
        Resource(ResourceItem) = "resource",
        Template(TemplateItem) = "template",
    }
}

/// A tool (MCP, Tools).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "tool", rename_all = "camelCase")]
#[schemars(rename = "ToolItem", transform = crate::word::Tag("type", "tool"))]
pub struct ToolItem {
    /// Whose it is.
    pub server: ServerName,
    /// Its name there.
    pub name: String,
    /// Its other name, where the entry gives it one (`tools.overrides`); it can be called by both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 64>>")]
    pub renamed: Option<String>,
    /// Its title, the entry's where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it says it does, or what the entry says instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The server's own definition, verbatim.
    pub raw: Raw,
    /// Its name for the model.
    #[schemars(with = "Text<1, 256>")]
    pub exposed: String,
    /// Why the model does not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<HiddenReason>,
}

open_words! {
    /// Why the model does not see a tool.
    pub enum HiddenReason {
        /// A list of the entry excludes it.
        Denied = "denied",
        /// The server means it for its own interface only.
        AppOnly = "app_only",
        /// Its definition breaks the protocol.
        Invalid = "invalid",
        /// Its definition changed and waits for a decision.
        Held = "held",
    }
}

/// A resource (MCP, Resources).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "resource", rename_all = "camelCase")]
#[schemars(rename = "ResourceItem", transform = crate::word::Tag("type", "resource"))]
pub struct ResourceItem {
    /// Whose it is.
    pub server: ServerName,
    /// Its name there.
    pub name: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The server's own definition, verbatim.
    pub raw: Raw,
    /// Its URI.
    pub uri: Uri,
    /// Its media type (RFC 2046).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How a text mentions it, for instance `@docs:read_me`.
    pub mention: String,
    /// Another resource is mentioned the same way: only `@server:` with its whole URI tells them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ambiguous: Option<bool>,
}

/// A template of resources (MCP, Resources).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "template", rename_all = "camelCase")]
#[schemars(rename = "TemplateItem", transform = crate::word::Tag("type", "template"))]
pub struct TemplateItem {
    /// Whose it is.
    pub server: ServerName,
    /// Its name there.
    pub name: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The server's own definition, verbatim.
    pub raw: Raw,
    /// The URI template (RFC 6570).
    pub uri_template: Uri,
    /// The media type of what it makes (RFC 2046).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A prompt (MCP, Prompts).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "prompt", rename_all = "camelCase")]
#[schemars(rename = "PromptItem", transform = crate::word::Tag("type", "prompt"))]
pub struct PromptItem {
    /// Whose it is.
    pub server: ServerName,
    /// Its name there.
    pub name: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The server's own definition, verbatim.
    pub raw: Raw,
    /// How a text calls it, for instance `/docs:review`.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// Another prompt is called the same way, so that a text can call neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ambiguous: Option<bool>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be left out.
    pub required: bool,
}

/// Params of `mcp.catalog`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpCatalog {
    /// The directory.
    pub directory: Dir,
    /// Only this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// At most this many items, default 200; a page also ends at 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 1000>>")]
    pub limit: Option<u32>,
    /// Ask the servers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<bool>,
    /// `false`: only what is known, nothing starts; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discover: Option<bool>,
    /// How long to wait for servers, in milliseconds; default 10,000. Who is not ready by then is an issue, and `mcp.changed` follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 60_000>>")]
    pub wait_ms: Option<u64>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.catalog`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpCatalogResult {
    /// The items.
    #[schemars(with = "List<CatalogItem, 1000>")]
    pub items: Vec<CatalogItem>,
    /// What is missing, and why.
    #[schemars(with = "List<Issue, 1000>")]
    pub issues: Vec<Issue>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// The servers behind the items.
    pub servers: Vec<CatalogServer>,
}

/// A server, as a catalog shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogServer {
    /// Its name.
    pub server: ServerName,
    /// Its state.
    pub state: State,
    /// The revision of MCP that was agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// What it says about its use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its `serverInfo`, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Raw>,
    /// Its capabilities, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Raw>,
}

/// Params of `mcp.tools.list`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpToolsList {
    /// The directory.
    pub directory: Dir,
    /// Only this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// At most this many items, default 200; a page also ends at 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 1000>>")]
    pub limit: Option<u32>,
    /// Ask the servers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<bool>,
    /// `false`: only what is known, nothing starts; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discover: Option<bool>,
    /// How long to wait for servers, in milliseconds; default 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 60_000>>")]
    pub wait_ms: Option<u64>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.tools.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolsListResult {
    /// The tools.
    #[schemars(with = "List<ToolItem, 1000>")]
    pub items: Vec<ToolItem>,
    /// What is missing, and why.
    #[schemars(with = "List<Issue, 1000>")]
    pub issues: Vec<Issue>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
}

/// Params of `mcp.resources.list`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpResourcesList {
    /// The directory.
    pub directory: Dir,
    /// Only this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// At most this many items, default 200; a page also ends at 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 1000>>")]
    pub limit: Option<u32>,
    /// Ask the servers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<bool>,
    /// `false`: only what is known, nothing starts; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discover: Option<bool>,
    /// How long to wait for servers, in milliseconds; default 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 60_000>>")]
    pub wait_ms: Option<u64>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.resources.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourcesListResult {
    /// The resources and templates.
    #[schemars(with = "List<ResourceOrTemplate, 1000>")]
    pub items: Vec<ResourceOrTemplate>,
    /// What is missing, and why.
    #[schemars(with = "List<Issue, 1000>")]
    pub issues: Vec<Issue>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
}

/// Params of `mcp.prompts.list`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPromptsList {
    /// The directory.
    pub directory: Dir,
    /// Only this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// At most this many items, default 200; a page also ends at 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 1000>>")]
    pub limit: Option<u32>,
    /// Ask the servers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<bool>,
    /// `false`: only what is known, nothing starts; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discover: Option<bool>,
    /// How long to wait for servers, in milliseconds; default 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 60_000>>")]
    pub wait_ms: Option<u64>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.prompts.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptsListResult {
    /// The prompts.
    #[schemars(with = "List<PromptItem, 1000>")]
    pub items: Vec<PromptItem>,
    /// What is missing, and why.
    #[schemars(with = "List<Issue, 1000>")]
    pub issues: Vec<Issue>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
}
