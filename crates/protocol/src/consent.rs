//! What a person decides before something runs: requests, trust, remembered approvals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{List, Text};
use crate::word::words;
use crate::{Dir, Layer, McpServerStatus, Pointer, Revision, ServerName, Target, Time};

words! {
    /// Whether a directory's own entries are trusted.
    pub enum TrustState {
        /// It has none.
        NothingToTrust = "nothing_to_trust",
        /// Never asked, or refused.
        Untrusted = "untrusted",
        /// As they stand now.
        Trusted = "trusted",
        /// Trusted once, different now; what did not change still runs.
        Changed = "changed",
    }
}

/// What a person is shown before an entry may run; never cut, at most 64 KiB: what is longer is not asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The directory.
    pub directory: Dir,
    /// The entry.
    pub server: ServerName,
    /// Its layer.
    pub layer: Layer,
    /// The digest of what is shown; a decision names it.
    pub revision: Revision,
    /// Why it is asked.
    pub why: ReviewReason,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<Time>,
    /// When the request lapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// What would run or be reached.
    pub target: Target,
    /// What is approved or trusted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Target>,
    /// Members that differ from what is approved or trusted now, those too whose values are not shown.
    pub changed: Vec<Pointer>,
    /// Every variable and file that `${…}` and `envFile` would read, also those inside header values.
    pub reads: Vec<String>,
    /// Stored secrets that the new command or URL would receive.
    pub keeps: Vec<Pointer>,
    /// What loosens a guard, for instance `tools.auto`, `oauth.tolerate`, `protocol`.
    pub relaxes: Vec<String>,
    /// Members whose value is masked.
    pub masked: Vec<Pointer>,
    /// Whether the entry would be enabled.
    pub enabled: bool,
    /// What a person should know first.
    pub warnings: Vec<String>,
}

words! {
    /// Why a person is asked about an entry.
    pub enum ReviewReason {
        /// A peer or a host sent it through the gate.
        Request = "request",
        /// It comes from the project.
        Project = "project",
        /// It comes from the project and differs from what was trusted.
        ProjectChanged = "project_changed",
    }
}

/// Params of `mcp.pending`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPending {
    /// The directory.
    pub directory: Dir,
}

/// Answer of `mcp.pending`: all requests of the data folder that concern the directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPendingResult {
    /// The requests.
    #[schemars(with = "List<Review, 10>")]
    pub reviews: Vec<Review>,
    /// How many there can be at a time.
    pub limit: u32,
}

/// Params of `mcp.decide`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpDecide {
    /// The directory.
    pub directory: Dir,
    /// The entry.
    pub server: ServerName,
    /// What is decided; default `entry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<DecisionSubject>,
    /// The revision that was shown; another one is `stale_review`.
    pub revision: Revision,
    /// Yes or no.
    pub decision: Decision,
}

words! {
    /// What is decided.
    pub enum DecisionSubject {
        /// The entry.
        Entry = "entry",
        /// Changed definitions of tools, which are held.
        Tools = "tools",
    }
}

words! {
    /// Yes or no.
    pub enum Decision {
        Approve = "approve",
        Reject = "reject",
    }
}

/// Answer of `mcp.decide`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpDecideResult {
    /// The server as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<McpServerStatus>,
}

/// Params of `mcp.trust`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpTrust {
    /// The directory.
    pub directory: Dir,
    /// What to do; default `review`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<TrustAction>,
    /// The revision that was shown; `grant` needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
}

words! {
    /// What to do about trust.
    pub enum TrustAction {
        /// Show what there is to trust.
        Review = "review",
        /// Trust what was shown.
        Grant = "grant",
        /// Trust nothing any more.
        Revoke = "revoke",
    }
}

/// Answer of `mcp.trust`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpTrustResult {
    /// How trust stands.
    pub state: TrustState,
    /// The digest of what is shown.
    pub revision: Revision,
    /// What there is to trust.
    #[schemars(with = "List<Review, 1000>")]
    pub reviews: Vec<Review>,
}

/// Params of `mcp.grants`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpGrants {
    /// The directory.
    pub directory: Dir,
    /// Ids of grants to take back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 64>, 1000>>")]
    pub revoke: Option<Vec<String>>,
}

/// Answer of `mcp.grants`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpGrantsResult {
    /// What is left.
    #[schemars(with = "List<Grant, 1000>")]
    pub grants: Vec<Grant>,
}

/// A remembered approval or refusal of a tool; void when the launch digest or the tool's definition changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Its id.
    #[schemars(with = "Text<1, 64>")]
    pub id: String,
    /// The server.
    pub server: ServerName,
    /// The tool.
    pub tool: String,
    /// Yes or no.
    pub decision: GrantDecision,
    /// How far it reaches.
    pub scope: GrantScope,
    /// The directory it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Dir>,
    /// When it was made.
    pub created_at: Time,
}

words! {
    /// A remembered yes or no.
    pub enum GrantDecision {
        Allow = "allow",
        Deny = "deny",
    }
}

words! {
    /// How far a grant reaches.
    pub enum GrantScope {
        /// Until the session or connection ends.
        Session = "session",
        /// In its directory.
        Directory = "directory",
        /// Everywhere.
        Always = "always",
    }
}
