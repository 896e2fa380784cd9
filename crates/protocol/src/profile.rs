//! Profiles: named sets of servers, of which a session uses one, or none for all servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{List, Text};
use crate::word::words;
use crate::{Dir, Issue, Layer, ProfileName, ServerName};

/// A named set of servers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    /// The servers that it holds, whatever layer they stand in; all others count as switched off.
    #[schemars(with = "List<ServerName, 500>")]
    pub servers: Vec<ServerName>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 1000>>")]
    pub description: Option<String>,
}

words! {
    /// Who chose a profile.
    pub enum ProfileChoice {
        /// The host, at the handshake or with `mcp.profile`; or who typed a command.
        Host = "host",
        /// `defaultProfile` of the user's `mcp.json`.
        File = "file",
    }
}

/// The profile that a session uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChosenProfile {
    /// Its name; `all` is every server.
    pub name: ProfileName,
    /// Who chose it.
    pub chosen_by: ProfileChoice,
    /// It does not exist, so that no server is used, or it names servers that do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Issue, 100>>")]
    pub issues: Option<Vec<Issue>>,
}

/// A profile as it stands in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileEntry {
    /// Its name.
    pub name: ProfileName,
    /// `user` or `project`.
    pub layer: Layer,
    /// Its file.
    pub file: Dir,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The servers that it holds.
    pub servers: Vec<ServerName>,
    /// Those of them that do not exist in this directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Vec<ServerName>>,
}

/// Params of `mcp.profile`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpProfile {
    /// The directory.
    pub directory: Dir,
    /// The profile to use from now on in the whole session; `all` is every server. Absent: only say what there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileName>,
}

/// Answer of `mcp.profile`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpProfileResult {
    /// The profile in use; absent: every server is used, since nobody chose one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ChosenProfile>,
    /// The profiles of the user's file and of the directory's.
    #[schemars(with = "List<ProfileEntry, 200>")]
    pub profiles: Vec<ProfileEntry>,
}
