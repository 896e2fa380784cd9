//! Whom to connect to and how: what the layer above hands in.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use url::Url;

use crate::authorization::TokenSource;
use crate::transport::relay::Relay;

/// A server to connect to.
#[derive(Clone)]
pub enum Target {
    Stdio(StdioTarget),
    Http(HttpTarget),
    /// A server in the process of whoever uses this crate.
    Relay(Arc<dyn Relay>),
}

/// A server that runs as our child process.
#[derive(Clone)]
pub struct StdioTarget {
    /// Absolute, already resolved; it is started without a shell.
    pub command: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment of the child, nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// Children announce themselves here (`+pid`) between fork and exec, so that a watchdog can end them if we are killed.
    pub watchdog: Option<Arc<OwnedFd>>,
}

/// A server that is reached over HTTP.
#[derive(Clone)]
pub struct HttpTarget {
    pub url: Url,
    /// The user's own headers; those the protocol sets are never taken from here.
    pub headers: HeaderMap,
    pub flavour: Flavour,
    pub client: reqwest::Client,
    pub tokens: Option<Arc<dyn TokenSource>>,
}

/// Which of the HTTP transports to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// Streamable HTTP, and HTTP+SSE where the server does not know it.
    #[default]
    Auto,
    Streamable,
    Sse,
}

/// What this connection shall be like.
#[derive(Clone, Debug)]
pub struct Options {
    pub client_name: String,
    pub client_version: String,
    pub protocol: ProtocolChoice,
    /// The era this server had last time: no need to find out again.
    pub verdict: Option<Era>,
    /// From the spawn to the finished handshake.
    pub start_timeout: Duration,
    /// How long a server may stay silent to the probe before it counts as one of the older era.
    pub probe_timeout: Duration,
    pub capabilities: ClientCapabilities,
    pub max_message_bytes: usize,
    pub max_in_flight: usize,
    /// How long a child may take to end by itself, and again after SIGTERM.
    pub stop_grace: Duration,
}

/// Which protocol to speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProtocolChoice {
    #[default]
    Auto,
    /// `initialize` without a probe.
    Legacy,
    /// Exactly this version, no fallback.
    Pin(String),
}

/// The two eras: with a handshake and a session (up to 2025-11-25), or without (from 2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// What we announce that the host can do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientCapabilities {
    pub elicitation: Elicitation,
    pub sampling: bool,
    pub roots: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Elicitation {
    #[default]
    None,
    Form,
    FormAndUrl,
}

/// The transport a connection ended up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    StreamableHttp,
    Sse,
    Relay,
}
