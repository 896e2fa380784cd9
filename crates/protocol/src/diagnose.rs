//! Looking for what keeps a server from working.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::Dict;
use crate::word::{open_words, words};
use crate::{Dir, ServerName, Time, Token};

/// Params of `mcp.debug`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpDebug {
    /// The directory.
    pub directory: Dir,
    /// A server reached by URL whose entry does not say `oauth: false`.
    pub server: ServerName,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// What a server and its authorization server say about themselves; no secret is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugReport {
    /// The server's URL.
    pub url: String,
    /// The status of an unauthorized request (RFC 9110 §15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The challenge that came with it (RFC 6750 §3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<Challenge>,
    /// The `resource` of its metadata (RFC 9728 §2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The authorization server (RFC 8414 §2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The authorization server's endpoints, by metadata name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<String, 8>>")]
    pub endpoints: Option<BTreeMap<String, String>>,
    /// How the client is known there.
    pub registration: Registration,
    /// Credentials are stored.
    pub stored: bool,
    /// The stored access token has expired.
    pub expired: bool,
    /// When it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// What was looked at, in order.
    pub steps: Vec<Check>,
}

/// A `WWW-Authenticate` challenge (RFC 9110 §11.6.1, RFC 6750 §3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Challenge {
    /// The authentication scheme.
    pub scheme: String,
    /// The scope it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The error it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

open_words! {
    /// How the client is known to an authorization server.
    pub enum Registration {
        /// By the `clientId` of the entry.
        Configured = "configured",
        /// By a client id metadata document.
        Metadata = "metadata",
        /// By dynamic registration (RFC 7591).
        Dynamic = "dynamic",
        /// Not yet.
        None = "none",
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Its stable name.
    pub id: String,
    /// The server it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// How it turned out.
    pub level: CheckLevel,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

words! {
    /// How a check turned out.
    pub enum CheckLevel {
        Ok = "ok",
        Warning = "warning",
        Error = "error",
    }
}

/// Params of `mcp.doctor`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpDoctor {
    /// The directory.
    pub directory: Dir,
    /// Only this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.doctor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpDoctorResult {
    /// What was looked at, in order.
    pub checks: Vec<Check>,
}
