//! Errors of the wire: their kinds, the one table of codes, and what they carry.
//!
//! Hosts that do not know a kind act on the code. Codes from -32050 up to -32060 are Pillion's own;
//! neither JSON-RPC 2.0 §5.1, LSP, MCP nor jsonrpsee uses them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::word::open_words;
use crate::{Dir, Json, Revision, ServerName};

open_words! {
    /// What went wrong, as a stable word.
    pub enum ErrorKind {
        /// The frame is not JSON.
        ParseError = "parse_error",
        /// A batch, an id in use, a `null` id, a second `initialize`.
        InvalidRequest = "invalid_request",
        /// A request after `shutdown`; only `exit` is left.
        ShuttingDown = "shutting_down",
        /// A request before `initialize`.
        NotInitialized = "not_initialized",
        /// No such method.
        MethodNotFound = "method_not_found",
        /// The method is known, but this build does not have it; see `methods` in the handshake.
        InvalidCommand = "invalid_command",
        /// A parameter is unknown, missing or out of bounds (`path`, `expected`).
        InvalidParams = "invalid_params",
        /// A fault of Pillion itself.
        Internal = "internal",
        /// The host sent `$/cancelRequest`; never used otherwise.
        Cancelled = "cancelled",
        /// Too much in flight (`retryAfterMs`).
        Overloaded = "overloaded",
        /// The tier does not allow it (`by`).
        Forbidden = "forbidden",
        /// The named server cannot be the target (`reason`, `candidates`).
        TargetMismatch = "target_mismatch",
        /// No such tool, resource, prompt, template or source (`what`, `candidates`).
        NotFound = "not_found",
        /// The request that was shown changed or lapsed.
        StaleReview = "stale_review",
        /// The entry changed since it was read (`revision`).
        StaleRevision = "stale_revision",
        /// The list changed since the cursor was given.
        StaleCursor = "stale_cursor",
        /// The question is over (`reason`).
        QuestionClosed = "question_closed",
        /// The name is taken (`by`: the layer).
        NameTaken = "name_taken",
        /// The call id or progress token is in use.
        InUse = "in_use",
        /// The configuration file does not parse (`file`, `line`, `column`).
        ConfigBroken = "config_broken",
        /// A variable without default is not set (`names`).
        UnsetVariable = "unset_variable",
        /// The entry cannot be edited here (`by`).
        ReadOnly = "read_only",
        /// Too many requests wait for a decision (`limit`).
        TooManyPending = "too_many_pending",
        /// The file could not be written (`file`).
        WriteFailed = "write_failed",
        /// The server did not start.
        StartFailed = "start_failed",
        /// The command was not found (`candidates`: where was looked, a proposed path).
        CommandNotFound = "command_not_found",
        /// The package, or its tools, are not those that `mcp.lock.json` names.
        LockMismatch = "lock_mismatch",
        /// The server ended (`exitCode`, `signal`, `stderrTail`).
        Exited = "exited",
        /// No connection (`httpStatus`).
        ConnectFailed = "connect_failed",
        /// No protocol revision in common.
        UnsupportedProtocol = "unsupported_protocol",
        /// The server broke the protocol.
        ProtocolError = "protocol_error",
        /// No answer within the time.
        TimedOut = "timed_out",
        /// The answer is larger than allowed (`limit`).
        TooLarge = "too_large",
        /// The call was ended (`by`: `host`, `stop`, `shutdown`).
        CallCancelled = "call_cancelled",
        /// The server's own error, whole in `mcp`.
        McpError = "mcp_error",
        /// The server needs a login.
        NeedsAuth = "needs_auth",
        /// The person or the authorization server said no.
        AuthDenied = "auth_denied",
        /// The login took too long.
        AuthTimedOut = "auth_timed_out",
        /// The login was cancelled.
        AuthCancelled = "auth_cancelled",
        /// The login failed (`oauthError`, RFC 6749 §5.2).
        AuthFailed = "auth_failed",
        /// The `state` of the redirect is not ours (RFC 6749 §10.12).
        StateMismatch = "state_mismatch",
        /// The authorization server wants a registered client (`redirectUris`).
        RegistrationNeeded = "registration_needed",
        /// Another login holds the redirect port (`by`).
        RedirectBusy = "redirect_busy",
        /// Nobody can be asked.
        CannotAsk = "cannot_ask",
        /// Not allowed (`by`: `list`, `grant`, `person`).
        Denied = "denied",
        /// A mention names nothing (`names`, `candidates`).
        MentionUnresolved = "mention_unresolved",
        /// A required argument of a prompt is missing (`names`).
        ArgumentMissing = "argument_missing",
        /// The search service limits requests (`retryAfterMs`).
        RateLimited = "rate_limited",
        /// The search service cannot be reached.
        Unreachable = "unreachable",
    }
}

impl ErrorKind {
    /// The JSON-RPC error code of the kind.
    pub fn code(&self) -> i32 {
        use ErrorKind::*;
        match self {
            ParseError => -32700,
            InvalidRequest | ShuttingDown => -32600,
            NotInitialized => -32002,
            MethodNotFound | InvalidCommand => -32601,
            InvalidParams => -32602,
            Internal | Other(_) => -32603,
            Cancelled => -32800,
            Overloaded => -32060,
            Forbidden => -32050,
            TargetMismatch => -32051,
            NotFound => -32052,
            StaleReview | StaleRevision | StaleCursor | QuestionClosed | NameTaken | InUse => -32053,
            ConfigBroken | UnsetVariable | ReadOnly | TooManyPending | WriteFailed => -32054,
            StartFailed | CommandNotFound | LockMismatch | Exited | ConnectFailed | UnsupportedProtocol
            | ProtocolError | TimedOut | TooLarge | CallCancelled | McpError => -32055,
            NeedsAuth | AuthDenied | AuthTimedOut | AuthCancelled | AuthFailed | StateMismatch
            | RegistrationNeeded | RedirectBusy => -32056,
            Denied | CannotAsk => -32057,
            MentionUnresolved | ArgumentMissing => -32058,
            RateLimited | Unreachable => -32059,
        }
    }
}

/// Why a request could not be carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// One sentence for people, without a full stop.
    pub message: String,
    /// What a host or a person can do with; boxed, since errors travel in many results.
    pub data: Box<ErrorData>,
}

/// The `data` of an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// What went wrong; the same word as the error's kind.
    pub kind: ErrorKind,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The server it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// The member of the params at fault, as a JSON Pointer (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What would have been accepted there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// A finer word, for instance `unknown` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was not found: `tool`, `resource`, `prompt`, `template`, `source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Names that are near, places that were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<String>>,
    /// The names at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// The revision that holds now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Who or what stood in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When to try again, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The bound that was met, in its own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The file at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Dir>,
    /// Line of the fault in that file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column of the fault in that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The exit code of the server's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the server's process, for instance `SIGSEGV`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The last lines the server wrote to stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
    /// The HTTP status the server answered with (RFC 9110 §15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The `error` of the authorization server (RFC 6749 §5.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_error: Option<String>,
    /// The redirect URIs to register.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uris: Option<Vec<String>>,
    /// The MCP server's own error, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpFault>,
}

/// A JSON-RPC error as the MCP server sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpFault {
    /// The server's code.
    pub code: i64,
    /// The server's message.
    pub message: String,
    /// The server's data, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

impl Error {
    /// An error that carries nothing but its kind yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            data: Box::new(ErrorData::new(kind.clone())),
            kind,
            message: message.into(),
        }
    }

    /// The JSON-RPC error code.
    pub fn code(&self) -> i32 {
        self.kind.code()
    }
}

impl ErrorData {
    /// Data that say the kind only.
    pub fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            hint: None,
            server: None,
            path: None,
            expected: None,
            reason: None,
            what: None,
            candidates: None,
            names: None,
            revision: None,
            by: None,
            retry_after_ms: None,
            limit: None,
            file: None,
            line: None,
            column: None,
            exit_code: None,
            signal: None,
            stderr_tail: None,
            http_status: None,
            oauth_error: None,
            redirect_uris: None,
            mcp: None,
        }
    }
}

macro_rules! builders {
    ($($member:ident: $kind:ty),+ $(,)?) => {
        impl Error {
            $(
                #[doc = concat!("Adds `", stringify!($member), "`.")]
                pub fn $member(mut self, $member: impl Into<$kind>) -> Self {
                    self.data.$member = Some($member.into());
                    self
                }
            )+
        }
    };
}

builders! {
    hint: String, server: ServerName, path: String, expected: String, reason: String, what: String,
    candidates: Vec<String>, names: Vec<String>, revision: Revision, by: String, retry_after_ms: u64, limit: u64,
    file: Dir, line: u32, column: u32, exit_code: i32, signal: String, stderr_tail: String, http_status: u16,
    oauth_error: String, redirect_uris: Vec<String>, mcp: McpFault,
}

/// The error object of JSON-RPC 2.0 §5.1, with Pillion's data.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ErrorObject {
    /// The JSON-RPC error code; the table of codes gives each kind its own.
    code: i32,
    /// One sentence for people.
    message: String,
    /// What a host or a person can do with.
    data: ErrorData,
}

impl Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("Error", 3)?;
        object.serialize_field("code", &self.code())?;
        object.serialize_field("message", &self.message)?;
        object.serialize_field("data", &self.data)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = ErrorObject::deserialize(deserializer)?;
        Ok(Self {
            kind: object.data.kind.clone(),
            message: object.message,
            data: Box::new(object.data),
        })
    }
}
