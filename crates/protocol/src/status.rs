//! Servers as they stand: records, faults, issues, and the methods that start, stop and watch them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{List, Text};
use crate::word::words;
use crate::{
    Auth, ChosenProfile, Dir, ErrorKind, Fault, Issue, Layer, ProfileName, Revision, ServerName, Time, Token,
    TrustState,
};

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
    /// How many tokens the definitions of its tools take in a model's context, roughly; of a server that does not run,
    /// by its tools as they were seen last. Absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// The same for each tool that a model would be offered; only where `mcp.status` was asked for `costs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ToolCost, 10_000>>")]
    pub costs: Option<Vec<ToolCost>>,
    /// How many resources; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u32>,
    /// How many resource templates; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<u32>,
    /// How many prompts; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<u32>,
    /// The profile in use, which does not hold this server: it counts as switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_by: Option<ProfileName>,
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

/// What one tool takes of a model's context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCost {
    /// The server's own name of the tool.
    pub tool: String,
    /// How many tokens its definition takes, roughly.
    pub tokens: u32,
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
        Host = "host",
    }
}

words! {
    /// Marks servers reached by URL.
    pub enum Remote {
        Remote = "remote",
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
    /// Say what each tool costs, as far as it is known; still starts nothing. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<bool>,
}

/// Everything that shows in a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// One record per server.
    #[schemars(with = "List<McpServerStatus, 1000>")]
    pub servers: Vec<McpServerStatus>,
    /// How many more there are than fit; a project's go first. Absent when all are here. `server` shows one by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u32>,
    /// Whether the directory's own entries are trusted.
    pub trust: TrustState,
    /// The files that were read.
    #[schemars(with = "List<ConfigFile, 200>")]
    pub files: Vec<ConfigFile>,
    /// The profile in use; absent while nobody chose one, which means every server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ChosenProfile>,
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
