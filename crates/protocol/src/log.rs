//! Logs of servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, Text};
use crate::word::{open_words, words};
use crate::{Dir, ServerName, Time};

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
