//! The handshake: `initializationOptions` and Pillion's part of the capabilities.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, Int, List, Text};
use crate::word::words;
use crate::{Dir, NotificationName, ProfileName, ServerEntry, Uri};

/// The version of this protocol, `<major>.<minor>`.
pub const PROTOCOL_VERSION: &str = "1.0";

/// `initializationOptions` of `initialize` (LSP 3.17, Server lifecycle); strict, unlike the rest of `initialize`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InitializationOptions {
    /// Where Pillion keeps its files; default `$PILLION_HOME`, else the platform's data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<Dir>,
    /// The open directories; default `workspaceFolders`, then `rootUri`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Dir, 64>>")]
    pub directories: Option<Vec<Dir>>,
    /// When servers start; default `lazy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartPolicy>,
    /// The name that MCP servers get as `clientInfo.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 100>>")]
    pub client_name: Option<String>,
    /// Notifications that the host does not want.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<NotificationName, 16>>")]
    pub opt_out: Option<Vec<NotificationName>>,
    /// What the host can do; absent members count as `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<HostCapabilities>,
    /// How tools are named for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_names: Option<ToolNames>,
    /// Entries that the host brings itself, the lowest layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<HostLayer, 16>>")]
    pub layers: Option<Vec<HostLayer>>,
    /// Who asks before a model's tool call; default `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_approval: Option<ToolApproval>,
    /// Characters of one model result before it is spilled; default 100,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1000, 10_000_000>>")]
    pub max_result_chars: Option<u32>,
    /// Bytes of one message; default 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<65_536, 268_435_456>>")]
    pub max_message_bytes: Option<u64>,
    /// How the model reads resources; default `pillion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_tools: Option<ResourceTools>,
    /// How tool schemas are projected; default `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// The client id metadata document to log in with (OAuth Client ID Metadata Document).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<Uri>,
    /// The set of servers that this session uses, by its name in `mcp.json`; `all` is every server. Without it
    /// `defaultProfile` of the user's file counts. A name that nobody knows leaves every server out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_profile: Option<ProfileName>,
    /// Keeps the logins of this host apart from those of others: each is stored under `account~profile`. Not a set of
    /// servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 64>>")]
    pub profile: Option<String>,
}

/// What the host can do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostCapabilities {
    /// It shows `mcp.question` and answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<bool>,
    /// It answers `window/showDocument`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_url: Option<bool>,
    /// It shows questions of type `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_questions: Option<bool>,
    /// It answers `mcp.sample`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<bool>,
    /// Servers may ask for roots; they are answered from the open directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<bool>,
}

/// How tools are named for the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolNames {
    /// Holds `{tool}`, and `{server}` unless one server is all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<6, 64>>")]
    pub template: Option<String>,
    /// Characters of a name; longer ones are shortened and keep a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<16, 256>>")]
    pub max_length: Option<u32>,
}

/// Entries that the host brings itself: given here or read from a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostLayer {
    /// What people are shown as the source.
    #[schemars(with = "Text<1, 100>")]
    pub label: String,
    /// The entries by name; either this or `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<ServerEntry, 200>>")]
    pub entries: Option<BTreeMap<String, ServerEntry>>,
    /// A file of the shape of `mcp.json`; either this or `entries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Dir>,
}

words! {
    /// When servers start.
    pub enum StartPolicy {
        /// On first use.
        Lazy = "lazy",
        /// At once.
        Eager = "eager",
    }
}

words! {
    /// Who asks before `mcp.model.call` runs a tool.
    pub enum ToolApproval {
        /// The host itself.
        Host = "host",
        /// Pillion, through questions.
        Ask = "ask",
    }
}

words! {
    /// How the model reads resources.
    pub enum ResourceTools {
        /// Two built-in tools over all servers.
        Pillion = "pillion",
        /// The names that other hosts use for the same tools.
        Shared = "shared",
        /// Not at all.
        None = "none",
    }
}

words! {
    /// The dialect of JSON Schema that tool schemas are projected to.
    pub enum Dialect {
        /// Verbatim.
        None = "none",
        /// What every model service takes.
        Portable = "portable",
        /// What OpenAI's service takes.
        Openai = "openai",
        /// What Anthropic's service takes.
        Anthropic = "anthropic",
        /// What Gemini's service takes.
        Gemini = "gemini",
    }
}

/// Pillion's part of the handshake's answer: `result.capabilities.experimental.mcp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilitiesMcp {
    /// The version of this protocol, `<major>.<minor>`.
    pub protocol_version: String,
    /// The methods of this build.
    pub methods: Vec<String>,
    /// The notifications of this build.
    pub notifications: Vec<String>,
    /// The revisions of MCP that it speaks.
    pub mcp_revisions: Vec<String>,
    /// Serves hosts without a folder: the first open directory, else the home folder.
    pub default_directory: Dir,
    /// Where things are kept.
    pub files: KnownFiles,
}

/// Where things are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownFiles {
    /// The data folder.
    pub data_dir: Dir,
    /// The user's `mcp.json`.
    pub user: Dir,
    /// Client registrations and tokens.
    pub auth: Dir,
    /// Trusted directories.
    pub trust: Dir,
}
