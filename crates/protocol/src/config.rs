//! Reading and writing entries: add, edit, remove, enable, list, test, paste, import, export.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, List, Text};
use crate::word::{open_words, union, words};
use crate::{
    ConfigFile, Dir, Fault, Issue, McpServerStatus, NewName, PendingStatus, Pointer, Raw, Review, Revision,
    ServerEntry, ServerName, Token,
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
}

/// Params of `mcp.parse`.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpParse {
    /// The directory.
    pub directory: Dir,
    /// What was pasted: a command, a URL, an entry, a list, a link.
    #[schemars(with = "Text<1, 1_048_576>")]
    pub text: String,
}

/// Answer of `mcp.parse`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpParseResult {
    /// What the text was taken for.
    pub form: PasteForm,
    /// The entries it makes.
    #[schemars(with = "List<Draft, 500>")]
    pub drafts: Vec<Draft>,
    /// What could not be used.
    pub problems: Vec<Issue>,
}

open_words! {
    /// What a pasted text was taken for.
    pub enum PasteForm {
        Command = "command",
        Url = "url",
        Entry = "entry",
        List = "list",
        Link = "link",
        /// Nothing that is known.
        None = "none",
    }
}

/// An entry that is not written yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    /// The name it would get.
    pub name: NewName,
    /// An entry of that name exists.
    pub name_taken: bool,
    /// Where it would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The entry.
    pub entry: ServerEntry,
    /// What it would run or reach.
    pub target: Target,
    /// What is still to be filled in.
    pub needs: Vec<Need>,
    /// What a person should know first.
    pub warnings: Vec<String>,
}

/// Something to fill in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Need {
    /// Where in the entry, for instance `/env/GITHUB_TOKEN`.
    pub at: Pointer,
    /// What to ask for.
    pub label: String,
    /// Whether it is a secret.
    pub secret: bool,
    /// Whether it can be left out.
    pub required: bool,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
}

union! {
    /// What an entry would run or reach; values of variables and headers are not in it.
    pub enum Target by "type" {
        Local(LocalTarget) = "local",
        Remote(RemoteTarget) = "remote",
    }
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "local", rename_all = "camelCase")]
#[schemars(rename = "LocalTarget", transform = crate::word::Tag("type", "local"))]
pub struct LocalTarget {
    /// The program.
    pub command: String,
    /// Its arguments; secret-looking values are masked.
    pub argv: Vec<String>,
    /// The names of the variables it is given.
    pub env_names: Vec<String>,
    /// Its working directory.
    pub cwd: String,
}

/// A URL to reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "remote", rename_all = "camelCase")]
#[schemars(rename = "RemoteTarget", transform = crate::word::Tag("type", "remote"))]
pub struct RemoteTarget {
    /// The URL; credentials and token-like query values are masked.
    pub url: String,
    /// The transport to use.
    pub transport: RemoteTransport,
    /// The names of the headers it is sent.
    pub header_names: Vec<String>,
    /// Whether a login may follow.
    pub oauth: bool,
}

words! {
    /// The transport to a remote target.
    pub enum RemoteTransport {
        Http = "http",
        Sse = "sse",
        /// Both are tried.
        Auto = "auto",
    }
}

/// Params of `mcp.import`: `text` or `source`.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpImport {
    /// The directory.
    pub directory: Dir,
    /// The text of another program's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 1_048_576>>")]
    pub text: Option<String>,
    /// The id of a source that `mcp.import.detect` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 256>>")]
    pub source: Option<String>,
    /// Where to write; default `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Only these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ServerName, 500>>")]
    pub names: Option<Vec<ServerName>>,
    /// Overwrite entries of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Only say what would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// Answer of `mcp.import`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// What became of each entry.
    pub results: Vec<ImportOutcome>,
    /// How many were written.
    pub added: u32,
    /// How many failed.
    pub failed: u32,
    /// Settings that have no counterpart here.
    pub not_imported: Vec<Issue>,
    /// What is still to be filled in.
    pub needs: Vec<ImportNeed>,
}

/// What became of one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportOutcome {
    /// Its name in the source.
    pub name: ServerName,
    /// What became of it.
    pub status: ImportStatus,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name it was written under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_as: Option<NewName>,
}

words! {
    /// What became of an imported entry.
    pub enum ImportStatus {
        Added = "added",
        Replaced = "replaced",
        Skipped = "skipped",
        Failed = "failed",
    }
}

/// Something to fill in, and for which entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportNeed {
    /// Where in the entry, for instance `/env/GITHUB_TOKEN`.
    pub at: Pointer,
    /// What to ask for.
    pub label: String,
    /// Whether it is a secret.
    pub secret: bool,
    /// Whether it can be left out.
    pub required: bool,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// The entries that need it.
    pub servers: Vec<ServerName>,
}

/// Params of `mcp.import.detect`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpImportDetect {
    /// The directory.
    pub directory: Dir,
}

/// Answer of `mcp.import.detect`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpImportDetectResult {
    /// The configurations of other programs that were found.
    pub sources: Vec<ImportSource>,
}

/// A configuration of another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportSource {
    /// What `mcp.import` takes as `source`.
    #[schemars(with = "Text<1, 256>")]
    pub id: String,
    /// The program.
    pub client: String,
    /// The file.
    pub path: Dir,
    /// Whether it is the person's or the project's.
    pub scope: Scope,
    /// The servers in it.
    pub servers: Vec<ServerName>,
    /// What could not be read.
    pub problems: Vec<Issue>,
}

/// Params of `mcp.export`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpExport {
    /// The directory.
    pub directory: Dir,
    /// Only this scope; default both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Only these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ServerName, 500>>")]
    pub servers: Option<Vec<ServerName>>,
    /// The form of the text; default `store`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ExportFormat>,
    /// Whether secrets are masked; default `mask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<ExportSecrets>,
}

words! {
    /// The form of an exported text.
    pub enum ExportFormat {
        /// As `mcp.json` has it.
        Store = "store",
        /// A list of entries with their names.
        List = "list",
        /// The map that most other programs read.
        McpServers = "mcpServers",
    }
}

words! {
    /// What an export does with secrets.
    pub enum ExportSecrets {
        Mask = "mask",
        Include = "include",
    }
}

/// Answer of `mcp.export`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpExportResult {
    /// The exported text.
    pub text: String,
    /// How many entries it holds.
    pub count: u32,
    /// What a person should know first.
    pub warnings: Vec<String>,
}
