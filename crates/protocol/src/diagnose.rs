//! Looking for what keeps a server from working.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, List, Text};
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
    /// Only what concerns this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Tries every enabled server on a connection of its own, at most 20 s; without it no server is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<bool>,
    /// Repairs to carry out, by the `id` that an earlier answer gave them; one that is no longer due is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 8192>, 200>>")]
    pub repair: Option<Vec<String>>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.doctor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpDoctorResult {
    /// What was looked at, by area; those of level `ok` only say what is there.
    pub checks: Vec<Finding>,
}

/// One thing that the doctor looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Its stable code, for instance `command_missing`.
    pub id: String,
    /// What it is about.
    pub area: Area,
    /// The server it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// How it turned out.
    pub level: CheckLevel,
    /// One sentence for people.
    pub message: String,
    /// What shows it: paths, versions, last lines; no secret is in it.
    #[schemars(with = "List<String, 100>")]
    pub evidence: Vec<String>,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What could be done about it at once and safely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// The repair that was asked for: whether it was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired: Option<bool>,
}

/// A repair that can be asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// Names it in `repair` of `mcp.doctor`.
    pub id: String,
    /// What it does, in one sentence.
    pub message: String,
}

open_words! {
    /// What a finding is about.
    pub enum Area {
        /// Programs that start servers, and the `PATH`.
        Runtime = "runtime",
        /// Caches of packages, and room on the disk.
        Cache = "cache",
        /// Ports, proxies, other sidecars.
        Network = "network",
        /// Files and folders of Pillion.
        File = "file",
        /// The clock of this machine.
        Clock = "clock",
        /// Entries and the servers they start.
        Server = "server",
        /// What servers offer.
        Tool = "tool",
        /// Stored logins.
        Login = "login",
    }
}
