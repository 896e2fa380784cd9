//! What Pillion sends of its own accord: notifications, and the one request to the host.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::bounded::{Int, List};
use crate::word::{open_words, union};
use crate::{
    CallId, Dir, LogLine, McpHostSend, McpServerStatus, Question, QuestionId, Raw, ServerName, Session,
    Token, Uri,
};

/// A notification to the host.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved once or twice, and most are the largest one"
)]
pub enum Notification {
    /// `mcp.changed`
    Changed(McpChanged),
    /// `mcp.question`
    Question(Question),
    /// `mcp.question.closed`
    QuestionClosed(McpQuestionClosed),
    /// `mcp.sample`
    Sample(McpSample),
    /// `mcp.resource.updated`
    ResourceUpdated(McpResourceUpdated),
    /// `mcp.log`
    Log(McpLog),
    /// `mcp.host.send`
    HostSend(McpHostSend),
    /// `$/progress`
    Progress(Progress),
    /// `window/logMessage`
    LogMessage(LogMessage),
}

impl Notification {
    /// Which notification it is.
    pub fn name(&self) -> NotificationName {
        match self {
            Notification::Changed(_) => NotificationName::Changed,
            Notification::Question(_) => NotificationName::Question,
            Notification::QuestionClosed(_) => NotificationName::QuestionClosed,
            Notification::Sample(_) => NotificationName::Sample,
            Notification::ResourceUpdated(_) => NotificationName::ResourceUpdated,
            Notification::Log(_) => NotificationName::Log,
            Notification::HostSend(_) => NotificationName::HostSend,
            Notification::Progress(_) => NotificationName::Progress,
            Notification::LogMessage(_) => NotificationName::LogMessage,
        }
    }

    /// The JSON-RPC method.
    pub fn method(&self) -> &'static str {
        self.name().as_str()
    }

    /// The JSON text of its params.
    pub fn params_json(&self) -> String {
        let text = match self {
            Notification::Changed(params) => serde_json::to_string(params),
            Notification::Question(params) => serde_json::to_string(params),
            Notification::QuestionClosed(params) => serde_json::to_string(params),
            Notification::Sample(params) => serde_json::to_string(params),
            Notification::ResourceUpdated(params) => serde_json::to_string(params),
            Notification::Log(params) => serde_json::to_string(params),
            Notification::HostSend(params) => serde_json::to_string(params),
            Notification::Progress(params) => serde_json::to_string(params),
            Notification::LogMessage(params) => serde_json::to_string(params),
        };
        text.expect("params have text keys only and their writing cannot fail")
    }
}

crate::word::words! {
    /// The notifications to the host.
    pub enum NotificationName {
        /// A server or a directory changed.
        Changed = "mcp.changed",
        /// The next question of its line.
        Question = "mcp.question",
        /// A question is over.
        QuestionClosed = "mcp.question.closed",
        /// A server asks for the host's model.
        Sample = "mcp.sample",
        /// A resource that the host subscribed to changed.
        ResourceUpdated = "mcp.resource.updated",
        /// New lines of a log that the host follows.
        Log = "mcp.log",
        /// A message for a server that the host implements.
        HostSend = "mcp.host.send",
        /// How far a piece of work is.
        Progress = "$/progress",
        /// A line for the host's own log.
        LogMessage = "window/logMessage",
    }
}

/// Params of `mcp.changed`: the newest record of a server, at most one per name in 50 ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpChanged {
    /// The directory in which it shows.
    pub directory: Dir,
    /// The server; absent: the directory as a whole, ask `mcp.status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// Its whole record; absent: the name is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<McpServerStatus>,
    /// What changed.
    pub reasons: Vec<ChangeReason>,
}

open_words! {
    /// What changed.
    pub enum ChangeReason {
        State = "state",
        Auth = "auth",
        Config = "config",
        Trust = "trust",
        Pending = "pending",
        Tools = "tools",
        Resources = "resources",
        Templates = "templates",
        Prompts = "prompts",
    }
}

/// Params of `mcp.question.closed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpQuestionClosed {
    /// The question.
    pub question: QuestionId,
    /// The call it belonged to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Why it is over.
    pub reason: ClosedReason,
}

open_words! {
    /// Why a question is over.
    pub enum ClosedReason {
        Answered = "answered",
        /// Its call ended without it.
        CallEnded = "call_ended",
        CallCancelled = "call_cancelled",
        /// The server took it back.
        Withdrawn = "withdrawn",
        /// The server is gone.
        ServerGone = "server_gone",
        Shutdown = "shutdown",
    }
}

/// Params of `mcp.sample`: a server asks for the host's model; answered by `mcp.sample.answer`, given up after ten minutes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpSample {
    /// The directory.
    pub directory: Dir,
    /// Who asks.
    pub server: ServerName,
    /// What the answer names.
    pub sample: QuestionId,
    /// The chat or run of the call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The request (MCP, Sampling), verbatim.
    pub request: Raw,
}

/// Params of `mcp.resource.updated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceUpdated {
    /// The directory.
    pub directory: Dir,
    /// Whose resource it is.
    pub server: ServerName,
    /// Its URI.
    pub uri: Uri,
}

/// Params of `mcp.log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpLog {
    /// The directory.
    pub directory: Dir,
    /// Whose log it is.
    pub server: ServerName,
    /// The new lines.
    #[schemars(with = "List<LogLine, 500>")]
    pub lines: Vec<LogLine>,
    /// How many lines before them are gone.
    pub dropped: u64,
}

/// Params of `$/progress` (LSP 3.17, Work Done Progress).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The request's `workDoneToken`.
    pub token: Token,
    /// How far it is.
    pub value: ProgressValue,
}

union! {
    /// How far a piece of work is: one begin, some reports, one end, then the answer.
    pub enum ProgressValue by "kind" {
        Begin(ProgressBegin) = "begin",
        Report(ProgressReport) = "report",
        End(ProgressEnd) = "end",
    }
}

/// The work begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "begin", rename_all = "camelCase")]
#[schemars(rename = "ProgressBegin", transform = crate::word::Tag("kind", "begin"))]
pub struct ProgressBegin {
    /// What is done.
    pub title: String,
    /// Whether `$/cancelRequest` or `mcp.call.cancel` ends it.
    pub cancellable: bool,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The work goes on; at most ten reports a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "report", rename_all = "camelCase")]
#[schemars(rename = "ProgressReport", transform = crate::word::Tag("kind", "report"))]
pub struct ProgressReport {
    /// What happens now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How much is done; only where the server's `total` is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 100>>")]
    pub percentage: Option<u32>,
    /// The server's own count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Number>,
    /// What the server counts to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
}

/// The work is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "end", rename_all = "camelCase")]
#[schemars(rename = "ProgressEnd", transform = crate::word::Tag("kind", "end"))]
pub struct ProgressEnd {
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Params of `window/logMessage` (LSP 3.17).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogMessage {
    /// How grave it is.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// The line.
    pub message: String,
}

/// How grave a message is (LSP 3.17, `MessageType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum MessageType {
    Error = 1,
    Warning = 2,
    Info = 3,
    Log = 4,
}

impl TryFrom<u8> for MessageType {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, &'static str> {
        match number {
            1 => Ok(MessageType::Error),
            2 => Ok(MessageType::Warning),
            3 => Ok(MessageType::Info),
            4 => Ok(MessageType::Log),
            _ => Err("a message type is 1, 2, 3 or 4"),
        }
    }
}

impl From<MessageType> for u8 {
    fn from(kind: MessageType) -> Self {
        kind as u8
    }
}

impl JsonSchema for MessageType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MessageType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How grave a message is (LSP 3.17): 1 error, 2 warning, 3 info, 4 log.",
            "type": "integer",
            "enum": [1, 2, 3, 4],
        })
    }
}

/// Params of `window/showDocument` (LSP 3.17): asks the host to open a page, after a person agreed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShowDocument {
    /// The page.
    pub uri: Uri,
    /// Always `true`: in the browser.
    pub external: bool,
    /// Always `true`.
    pub take_focus: bool,
}

/// The host's answer to `window/showDocument`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShowDocumentResult {
    /// Whether it was opened.
    pub success: bool,
}
