//! Entries from elsewhere and for elsewhere: paste, import, export.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, List, Text};
use crate::word::{open_words, union, words};
use crate::{AnswerValue, Dir, Issue, Json, NewName, Pointer, Scope, ServerEntry, ServerName};

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
crate::word::debug_name_only!(McpParse);

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

/// Something to fill in: where the text at `at` holds `${input:LABEL}` with this label, the value takes that place;
/// otherwise it is the whole of what stands at `at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Need {
    /// Where in the entry, for instance `/env/GITHUB_TOKEN`.
    pub at: Pointer,
    /// What to ask for.
    pub label: String,
    /// Whether it is a secret.
    pub secret: bool,
    /// Whether the server needs it.
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
    /// The program that prints more of them, with its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers_helper: Option<Vec<String>>,
    /// Whether a login may follow.
    pub oauth: bool,
    /// The addresses that a login of the entry contacts or gives secrets to, beside what the server names, by their members
    /// of `oauth` (`issuer`, `tokenEndpoint`, `enterprise.tokenEndpoint`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<Text<0, 8192>, 16>>")]
    pub login_addresses: Option<BTreeMap<String, String>>,
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
    /// The id of a source that `mcp.import.detect` found, or the absolute path of a file; a bundle ends in `.mcpb` or `.dxt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 4096>>")]
    pub source: Option<String>,
    /// Of a bundle: the SHA-256 it must have, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<64, 64>>")]
    pub sha256: Option<String>,
    /// Of a bundle: answers to what it asks for, by the last part of `at` of a need.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<AnswerValue, 64>>")]
    pub values: Option<BTreeMap<String, AnswerValue>>,
    /// Where to write; default `user`, and never the project for a bundle.
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
crate::word::debug_name_only!(McpImport);

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
    /// Settings that have no counterpart here, and what a person should know of what was taken over.
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
    /// Where it stood: `project:<directory>` where the source keeps it for one directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Of a bundle: what its entry would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
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
    #[schemars(with = "Text<1, 4096>")]
    pub id: String,
    /// The program.
    pub client: String,
    /// What `mcp.export` and `mcp.sync` call it.
    pub format: ExportFormat,
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
    /// What becomes of secrets; default `reference`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<ExportSecrets>,
}

words! {
    /// The form of an exported text: one of ours, or that of another program.
    pub enum ExportFormat {
        /// As `mcp.json` has it.
        Store = "store",
        /// A list of entries with their names.
        List = "list",
        /// The map that most other programs read.
        McpServers = "mcpServers",
        ClaudeDesktop = "claude-desktop",
        ClaudeCode = "claude-code",
        Vscode = "vscode",
        Cursor = "cursor",
        Windsurf = "windsurf",
        Antigravity = "antigravity",
        Zed = "zed",
        Opencode = "opencode",
        Codex = "codex",
        Gemini = "gemini",
        Continue = "continue",
        Goose = "goose",
        McpHub = "mcp-hub",
        Cline = "cline",
        Roo = "roo",
        Amp = "amp",
        LmStudio = "lm-studio",
        Kiro = "kiro",
        Trae = "trae",
        Kimi = "kimi",
        Factory = "factory",
        Vibe = "vibe",
        Crush = "crush",
        Eca = "eca",
        Mcpproxy = "mcpproxy",
        Mcporter = "mcporter",
        Copilot = "copilot",
        Junie = "junie",
        /// The list that an agent is given in `session/new` of the Agent Client Protocol.
        Acp = "acp",
    }
}

words! {
    /// What an export does with secrets.
    pub enum ExportSecrets {
        /// Variables stand for them, and the warnings name those.
        Reference = "reference",
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
    /// What the form cannot say, by entry; `item` names the member.
    pub not_exported: Vec<Issue>,
    /// What a person should know first.
    pub warnings: Vec<String>,
}

/// Params of `mcp.sync`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpSync {
    /// The directory.
    pub directory: Dir,
    /// The other program.
    pub client: ExportFormat,
    /// Which of its files, the person's or the project's; default `user`. Without `servers`, our entries of that scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Whose servers are written where; default `to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<SyncDirection>,
    /// Only these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ServerName, 500>>")]
    pub servers: Option<Vec<ServerName>>,
    /// What becomes of our secrets; default `reference`, and `mask` is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<ExportSecrets>,
    /// Overwrite servers of the same name that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Only say what would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

words! {
    /// Whose servers are written where.
    pub enum SyncDirection {
        /// Ours into the other program's file.
        To = "to",
        /// What stands there and not here, into ours.
        From = "from",
    }
}

/// Answer of `mcp.sync`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Synced {
    /// The other program's file.
    pub file: Dir,
    /// What became of each server.
    pub results: Vec<SyncOutcome>,
    /// How many were written.
    pub written: u32,
    /// A copy of the file as it was before it was written, in the data folder: it may hold secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Dir>,
    /// What the receiving side cannot say, by server; `item` names the member.
    pub left_out: Vec<Issue>,
    /// What a person should know first.
    pub warnings: Vec<String>,
}

/// What became of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncOutcome {
    /// Its name here.
    pub server: ServerName,
    /// Its name in the other program.
    pub name: ServerName,
    /// What became of it.
    pub status: SyncStatus,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Members that are not the same on both sides, secrets masked.
    pub changes: Vec<SyncChange>,
}

words! {
    /// What became of a server that was to be written.
    pub enum SyncStatus {
        Added = "added",
        Replaced = "replaced",
        /// It is the same on both sides.
        Unchanged = "unchanged",
        /// It is another one there, and was not overwritten.
        Differs = "differs",
        Skipped = "skipped",
        Failed = "failed",
    }
}

/// A member of an entry on both sides, in our words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncChange {
    /// The member, for instance `args` or `tools.deny`.
    pub member: String,
    /// What it is here; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<Json>,
    /// What it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub there: Option<Json>,
}
