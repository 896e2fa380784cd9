//! Servers as they stand: records, faults, issues, and the methods that start, stop and watch them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, Int, List, Text};
use crate::word::{open_words, words};
use crate::{Auth, Dir, ErrorKind, Layer, Revision, ServerName, Time, Token, TrustState};

words! {
    /// The state of a server.
    pub enum State {
        /// Switched off.
        Disabled = "disabled",
        /// An entry of a project that is not trusted; it causes nothing.
        NeedsTrust = "needs_trust",
        /// A request that waits for a decision.
        Pending = "pending",
        /// Not running; it starts on first use.
        Stopped = "stopped",
        /// Starting, or starting again after a crash.
        Connecting = "connecting",
        /// Running.
        Ready = "ready",
        /// It wants a login.
        NeedsAuth = "needs_auth",
        /// A login is under way.
        Authorizing = "authorizing",
        /// It failed; `error` says how.
        Error = "error",
    }
}

/// One server as it stands. While a request is pending only name, label, layer, source, state, effective, pending, readOnly and seq are there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatus {
    /// The key of its entry.
    pub name: ServerName,
    /// What people are shown.
    pub label: String,
    /// The directory it belongs to; absent for a server of the whole sidecar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Dir>,
    /// The layer of its entry.
    pub layer: Layer,
    /// Where the entry came from, for instance `manual`, `catalog:<id>`, `package:<folder>`.
    pub source: String,
    /// Its state.
    pub state: State,
    /// The quoted command, or the URL without query and credentials; masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<0, 65536>>")]
    pub command: Option<String>,
    /// No higher layer hides it.
    pub effective: bool,
    /// How it is connected, while it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionStatus>,
    /// `remote` for servers reached by URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Remote>,
    /// How its login stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Credentials are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_stored: Option<bool>,
    /// When the stored access token expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_expires_at: Option<Time>,
    /// Its project is not trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_trust: Option<bool>,
    /// The request that waits for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingStatus>,
    /// How many tools; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<u32>,
    /// How many resources; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u32>,
    /// How many resource templates; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<u32>,
    /// How many prompts; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<u32>,
    /// What is not quite right.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Issue, 100>>")]
    pub issues: Option<Vec<Issue>>,
    /// Why it is in state `error` or `needs_auth`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Not editable here; `mcp.enable` works all the same.
    pub read_only: bool,
    /// The time limit of its calls, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The part of exposed tool names that stands for this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The category of its entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The id of its process; not shown to read-only peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When it became ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Grows with each record of this name on this connection; a lower one is old news.
    pub seq: u64,
    /// Changes when any of its lists did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Revision>,
    /// The next attempt, while `connecting` after a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// How a server is connected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionStatus {
    /// The transport in use.
    pub transport: TransportName,
    /// The revision of MCP that was agreed on.
    pub protocol_version: String,
    /// Whether that revision is stateless (`modern`) or has the `initialize` handshake (`legacy`).
    pub era: EraName,
}

/// A request that waits for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingStatus {
    /// When it lapses.
    pub expires_at: Time,
}

/// The next attempt after a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it is made.
    pub at: Time,
}

words! {
    /// The two eras of MCP.
    pub enum EraName {
        /// With the `initialize` handshake.
        Legacy = "legacy",
        /// Stateless requests.
        Modern = "modern",
    }
}

words! {
    /// The transport in use.
    pub enum TransportName {
        Stdio = "stdio",
        StreamableHttp = "streamable-http",
        Sse = "sse",
    }
}

words! {
    /// Marks servers reached by URL.
    pub enum Remote {
        Remote = "remote",
    }
}

/// Something that went wrong, as a part of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// What went wrong.
    pub kind: ErrorKind,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The exit code of the server's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the server's process, for instance `SIGSEGV`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The last lines the server wrote to stderr; not shown to read-only peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<0, 8192>>")]
    pub stderr_tail: Option<String>,
    /// The HTTP status the server answered with (RFC 9110 §15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
}

impl Fault {
    /// A fault that says its kind and message only.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            at: None,
            exit_code: None,
            signal: None,
            stderr_tail: None,
            http_status: None,
        }
    }
}

impl From<&crate::Error> for Fault {
    fn from(error: &crate::Error) -> Self {
        Self {
            kind: error.kind.clone(),
            message: error.message.clone(),
            hint: error.data.hint.clone(),
            at: None,
            exit_code: error.data.exit_code,
            signal: error.data.signal.clone(),
            stderr_tail: error.data.stderr_tail.clone(),
            http_status: error.data.http_status,
        }
    }
}

/// Something worth knowing that did not stop the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    /// What it is.
    pub kind: IssueKind,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The server it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// The list it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The name or URI of the item it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

impl Issue {
    /// An issue that says its kind and message only.
    pub fn new(kind: impl Into<IssueKind>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            hint: None,
            server: None,
            category: None,
            item: None,
        }
    }
}

/// What an issue is: a word of its own, or the kind of an error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueKind {
    /// An item of a list was left out, since it breaks the protocol.
    ItemSkipped,
    /// A schema was changed for the model's service.
    SchemaRewritten,
    /// A setting of another program has no counterpart here.
    NotImported,
    /// A question was declined without being shown.
    DeclinedUnseen,
    /// Worth knowing, nothing more.
    Note,
    /// What would be an error if it were the whole answer.
    #[serde(untagged)]
    Error(ErrorKind),
}

impl IssueKind {
    /// The words that are not kinds of errors.
    pub const WORDS: &'static [&'static str] = &[
        "item_skipped",
        "schema_rewritten",
        "not_imported",
        "declined_unseen",
        "note",
    ];

    /// The word as it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            IssueKind::ItemSkipped => "item_skipped",
            IssueKind::SchemaRewritten => "schema_rewritten",
            IssueKind::NotImported => "not_imported",
            IssueKind::DeclinedUnseen => "declined_unseen",
            IssueKind::Note => "note",
            IssueKind::Error(kind) => kind.as_str(),
        }
    }
}

impl From<ErrorKind> for IssueKind {
    fn from(kind: ErrorKind) -> Self {
        IssueKind::Error(kind)
    }
}

impl JsonSchema for IssueKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IssueKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words: Vec<&str> = IssueKind::WORDS.iter().chain(ErrorKind::WORDS).copied().collect();
        schemars::json_schema!({
            "description": crate::word::describe(
                &["What an issue is: a word of its own, or the kind of an error."],
                &[
                    ("item_skipped", &["An item of a list was left out, since it breaks the protocol."]),
                    ("schema_rewritten", &["A schema was changed for the model's service."]),
                    ("not_imported", &["A setting of another program has no counterpart here."]),
                    ("declined_unseen", &["A question was declined without being shown."]),
                    ("note", &["Worth knowing, nothing more."]),
                ],
            ),
            "anyOf": [{ "type": "string", "enum": words }, { "type": "string" }],
        })
    }
}

words! {
    /// What a catalog holds.
    pub enum Category {
        Tools = "tools",
        Resources = "resources",
        Templates = "templates",
        Prompts = "prompts",
    }
}

/// Params of `mcp.status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpStatus {
    /// The directory.
    pub directory: Dir,
    /// Only this server; unknown means an empty list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
}

/// Everything that shows in a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// One record per server.
    #[schemars(with = "List<McpServerStatus, 1000>")]
    pub servers: Vec<McpServerStatus>,
    /// Whether the directory's own entries are trusted.
    pub trust: TrustState,
    /// The files that were read.
    #[schemars(with = "List<ConfigFile, 200>")]
    pub files: Vec<ConfigFile>,
    /// How many requests wait for a decision.
    pub pending: u32,
    /// How many questions are open or wait.
    pub questions: u32,
}

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigFile {
    /// Its path.
    pub path: Dir,
    /// Its layer.
    pub layer: Layer,
    /// Whether it is there.
    pub exists: bool,
    /// The digest of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<FileFault>,
    /// Where a copy of the broken file is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<Dir>,
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileFault {
    /// What went wrong.
    pub kind: ErrorKind,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it was noticed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Line of the fault, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column of the fault, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// Params of `mcp.start`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpStart {
    /// The directory.
    pub directory: Dir,
    /// The server to start.
    pub server: ServerName,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.start`, given when the server has settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpStartResult {
    /// The server as it stands: `ready`, `needs_auth` or `error`.
    pub server: McpServerStatus,
}

/// Params of `mcp.stop`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpStop {
    /// The directory.
    pub directory: Dir,
    /// The server to stop; its running calls end with `call_cancelled`.
    pub server: ServerName,
}

/// Answer of `mcp.stop`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpStopResult {
    /// The server as it stands.
    pub server: McpServerStatus,
}

/// Params of `mcp.restart`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpRestart {
    /// The directory.
    pub directory: Dir,
    /// The server to stop and start again.
    pub server: ServerName,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.restart`, given when the server has settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpRestartResult {
    /// The server as it stands.
    pub server: McpServerStatus,
}

/// Params of `mcp.logs`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpLogs {
    /// The directory.
    pub directory: Dir,
    /// The server.
    pub server: ServerName,
    /// At most this many lines, the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 5000>>")]
    pub limit: Option<u32>,
    /// Turns `mcp.log` on or off for this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<bool>,
}

/// Answer of `mcp.logs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpLogsResult {
    /// The lines, oldest first.
    pub lines: Vec<LogLine>,
    /// How many lines before them are gone.
    pub dropped: u64,
}

/// One line of a server's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// When it came.
    pub at: Time,
    /// Who said it.
    pub source: LogSource,
    /// How grave it is.
    pub level: LogLevel,
    /// The line, without its end.
    #[schemars(with = "Text<0, 16384>")]
    pub text: String,
}

words! {
    /// Who wrote a line of the log.
    pub enum LogSource {
        /// The server's stderr.
        Stderr = "stderr",
        /// The server's `notifications/message` (MCP, Logging).
        Server = "server",
        /// What Pillion noticed on the wire.
        Protocol = "protocol",
        /// Pillion's own doing.
        Pillion = "pillion",
    }
}

open_words! {
    /// How grave a line of the log is.
    pub enum LogLevel {
        Debug = "debug",
        Info = "info",
        Warning = "warning",
        Error = "error",
    }
}

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
