//! Reading and writing entries: add, edit, remove, enable, list, test, paste, import, export.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, List};
use crate::word::words;
use crate::{
    ConfigFile, Dir, Fault, McpServerStatus, NewName, PendingStatus, Pointer, ProfileEntry, Raw, Review,
    Revision, ServerEntry, ServerName, Token,
};

words! {
    /// Where a host writes.
    pub enum Scope {
        /// The user's `mcp.json`.
        User = "user",
        /// The project's `.pillion/mcp.json`.
        Project = "project",
    }
}

words! {
    /// Where an entry stands; a name is looked up in the order project, projectPackage, user, userPackage, host.
    pub enum Layer {
        User = "user",
        UserPackage = "userPackage",
        Project = "project",
        ProjectPackage = "projectPackage",
        Host = "host",
    }
}

/// Params of `mcp.add`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpAdd {
    /// The directory.
    pub directory: Dir,
    /// The name of the new entry.
    pub name: NewName,
    /// The entry.
    pub entry: ServerEntry,
    /// Where to write it; default `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Overwrite an entry of the same name; else `name_taken`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Only say what would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Send it through the approval gate, as a peer's request is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
    /// Start it afterwards; default `true` for the local host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<bool>,
    /// Write it although what it names could not be verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_unverified: Option<bool>,
}

/// Answer of the methods that write an entry; peers get `server` and `written` only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// The server as it stands; absent on `dryRun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<McpServerStatus>,
    /// It became a request that waits for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// The file that was or would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Dir>,
    /// The entry as it stands in the file, masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether something was written.
    pub written: bool,
}

/// Params of `mcp.edit`: `unset` is applied first, then `set`; maps merge key by key, lists replace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpEdit {
    /// The directory.
    pub directory: Dir,
    /// The entry to change.
    pub server: ServerName,
    /// Members to set; a mask or an empty text keeps a stored secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<ServerEntry>,
    /// Members to remove.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Pointer, 512>>")]
    pub unset: Option<Vec<Pointer>>,
    /// The layer of the entry; default the one that shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Its new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rename: Option<NewName>,
    /// The revision it was read at; checked if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Only say what would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// Params of `mcp.remove`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpRemove {
    /// The directory.
    pub directory: Dir,
    /// The entry to remove.
    pub server: ServerName,
    /// The layer of the entry; default the one that shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Drop its credentials too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget: Option<bool>,
}

/// Answer of `mcp.remove`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpRemoveResult {
    /// The lower layer's entry of the same name that now shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<McpServerStatus>,
}

/// Params of `mcp.enable`; outside the user layer the switch is personal and the shared file stays as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpEnable {
    /// The directory.
    pub directory: Dir,
    /// The entry to switch.
    pub server: ServerName,
    /// On or off.
    pub enabled: bool,
    /// The layer of the entry; default the one that shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
}

/// Params of `mcp.config`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpConfig {
    /// The directory.
    pub directory: Dir,
    /// Only entries of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
}

/// Answer of `mcp.config`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpConfigResult {
    /// The entries, one per layer, shadowed ones too.
    #[schemars(with = "List<McpServerEntry, 5000>")]
    pub servers: Vec<McpServerEntry>,
    /// The files that were read.
    pub files: Vec<ConfigFile>,
    /// The profiles that they name; absent without any, and where one server was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ProfileEntry, 200>>")]
    pub profiles: Option<Vec<ProfileEntry>>,
}

/// An entry as it stands in one layer; secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerEntry {
    /// Its name.
    pub name: ServerName,
    /// Its layer.
    pub layer: Layer,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Dir>,
    /// The digest of the entry.
    pub revision: Revision,
    /// The entry, masked.
    pub entry: ServerEntry,
    /// Members whose value is masked.
    pub masked: Vec<Pointer>,
    /// Members that Pillion does not know and leaves alone.
    pub unknown: Vec<Pointer>,
    /// Not editable here.
    pub read_only: bool,
    /// The layer that hides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowed_by: Option<Layer>,
    /// It is a request that waits for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingStatus>,
}

/// Params of `mcp.reload`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpReload {
    /// The directory.
    pub directory: Dir,
}

/// Answer of `mcp.reload`: what differs from before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpReloadResult {
    /// New entries.
    pub added: Vec<ServerName>,
    /// Entries that are gone.
    pub removed: Vec<ServerName>,
    /// Entries that differ.
    pub changed: Vec<ServerName>,
    /// Entries as before.
    pub unchanged: Vec<ServerName>,
}

/// Params of `mcp.test`: an `entry`, or a `server` with changes (blank secrets are the stored ones).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpTest {
    /// The directory.
    pub directory: Dir,
    /// The entry to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<ServerEntry>,
    /// The stored entry to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Members to set for the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<ServerEntry>,
    /// Members to leave out for the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Pointer, 512>>")]
    pub unset: Option<Vec<Pointer>>,
    /// Try it although what it names could not be verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_unverified: Option<bool>,
    /// Time limit in milliseconds; default 20,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1000, 60_000>>")]
    pub timeout_ms: Option<u64>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.test`; a failed test is a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// Whether it worked.
    pub ok: bool,
    /// One sentence for people.
    pub message: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// The tools that were found.
    pub tools: Vec<TestedTool>,
    /// How many tokens their definitions would take in a model's context, roughly.
    pub tokens: u32,
    /// How many resources were found.
    pub resources: u32,
    /// How many prompts were found.
    pub prompts: u32,
    /// The server's `serverInfo`, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Raw>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A tool that a test found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestedTool {
    /// Its name.
    pub name: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it says it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many tokens its definition would take; absent if no model would be offered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
}
