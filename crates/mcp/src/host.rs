//! What comes up from a connection: events, and questions that want an answer.

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use crate::error::Closed;

/// Chosen by the caller for each call that may ask questions.
pub type CallTag = u64;

/// Receives everything a connection has to say.
pub trait ConnectionHost: Send + Sync + 'static {
    /// Called in wire order; must not block.
    fn event(&self, event: Event);
    /// A question of the server, of either era. Dropping the future means that the question was withdrawn.
    fn input(&self, input: InputRequest) -> BoxFuture<'static, InputReply>;
}

#[derive(Debug)]
pub enum Event {
    /// One line of the server's stderr, control characters made harmless.
    Stderr(String),
    /// Something on stdout that is not JSON-RPC, such as a banner.
    Noise(String),
    Log {
        level: LogLevel,
        logger: Option<String>,
        data: Box<RawValue>,
    },
    ListChanged(ListKind),
    ResourceUpdated(String),
    /// A remark about the server's protocol, for people who look for a fault.
    Protocol(String),
    /// The last event of a connection.
    Closed(Closed),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// Servers invent levels; what we do not know counts as information.
    pub fn from_name(name: &str) -> LogLevel {
        match name {
            "debug" => LogLevel::Debug,
            "notice" => LogLevel::Notice,
            "warning" | "warn" => LogLevel::Warning,
            "error" => LogLevel::Error,
            "critical" => LogLevel::Critical,
            "alert" => LogLevel::Alert,
            "emergency" => LogLevel::Emergency,
            _ => LogLevel::Info,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }
}

/// The lists a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

#[derive(Debug)]
pub struct InputRequest {
    pub kind: InputKind,
    /// The server's own params, an object (`{}` where it sent none).
    pub params: Box<RawValue>,
    /// The call it belongs to; several where a server on stdio leaves it open; none outside a call.
    pub calls: Vec<CallTag>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    Elicit,
    Sample,
    Roots,
}

#[derive(Debug)]
pub enum InputReply {
    Result(Box<RawValue>),
    /// Becomes the JSON-RPC error of a legacy question; a modern call fails with it.
    Error {
        code: i64,
        message: String,
    },
}
