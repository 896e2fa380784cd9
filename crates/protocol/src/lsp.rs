//! The part of LSP that frames the conversation: what hosts send besides Pillion's methods. Open, as LSP is.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{InitializationOptions, ServerCapabilitiesMcp};

crate::word::words! {
    /// The requests and notifications of LSP that a host sends.
    pub enum LspMethod {
        /// Begins the conversation.
        Initialize = "initialize",
        /// Says that the host has read the answer to `initialize`; nothing is sent to it before.
        Initialized = "initialized",
        /// Ends all work; answers `null` within 250 ms.
        Shutdown = "shutdown",
        /// Ends the process.
        Exit = "exit",
        /// Cancels a request, which then answers `cancelled` (-32800).
        CancelRequest = "$/cancelRequest",
        /// Opens and closes directories.
        DidChangeWorkspaceFolders = "workspace/didChangeWorkspaceFolders",
    }
}

/// Params of `initialize` (LSP 3.17), as far as Pillion reads them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// The host's process; its death ends Pillion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// The folder, for hosts that know one only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_uri: Option<String>,
    /// The folders; they become the open directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_folders: Option<Vec<WorkspaceFolder>>,
    /// Pillion's own part, which is strict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization_options: Option<InitializationOptions>,
}

/// Answer of `initialize` (LSP 3.17), as far as Pillion fills it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    /// What Pillion can do.
    pub capabilities: InitializedCapabilities,
}

/// What Pillion can do, in the place that LSP leaves for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializedCapabilities {
    /// What LSP does not name.
    pub experimental: ExperimentalCapabilities,
}

/// What LSP does not name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalCapabilities {
    /// Pillion's part.
    pub mcp: ServerCapabilitiesMcp,
}

/// A folder (LSP 3.17).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceFolder {
    /// A `file:` URI (RFC 8089).
    pub uri: String,
    /// What people are shown.
    pub name: String,
}

/// Params of `$/cancelRequest` (LSP 3.17).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequest {
    /// The request to cancel.
    pub id: RequestId,
}

/// The id of a request (JSON-RPC 2.0 §4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

impl JsonSchema for RequestId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RequestId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a request (JSON-RPC 2.0 §4).",
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
        })
    }
}

/// Params of `workspace/didChangeWorkspaceFolders` (LSP 3.17).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeWorkspaceFolders {
    /// What changed.
    pub event: WorkspaceFoldersChange,
}

/// What changed among the folders (LSP 3.17).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceFoldersChange {
    /// Folders that were opened.
    pub added: Vec<WorkspaceFolder>,
    /// Folders that were closed.
    pub removed: Vec<WorkspaceFolder>,
}
