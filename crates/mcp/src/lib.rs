//! One connection to one MCP server, of either era and over any transport.
//!
//! This crate speaks JSON-RPC with a server that runs as a child process (stdio) or answers over HTTP, decides which
//! era of the protocol it speaks, and gives the layer above one kind of request and one kind of question.
//! It reads no files and no configuration, and knows nothing of the protocol between host and sidecar.
//!
//! What a server sends stays the server's own text: results travel as [`serde_json::value::RawValue`] from the wire to the caller.

mod authorization;
mod connection;
pub mod error;
mod headers;
pub mod host;
mod limits;
pub mod target;
mod transport;

pub use authorization::{Attempts, Refusal, TokenSource};
pub use connection::connect::connect;
pub use connection::{CallOptions, Connection, ListLimits, Listed, Progress, ProgressSink, ServerInfo};
pub use error::{CallError, CloseReason, Closed, ConnectError, SpawnFailure};
pub use headers::ToolHeaders;
pub use host::{CallTag, ConnectionHost, Event, InputKind, InputReply, InputRequest, ListKind, LogLevel};
pub use target::{
    ClientCapabilities, Elicitation, Era, Flavour, HttpTarget, Options, ProtocolChoice, StdioTarget, Target,
    Transport,
};
pub use transport::http::{ClientOptions, client, client_builder, is_reserved_header};
pub use transport::program::{ProgramError, run_program};
pub use transport::relay::{Line, Mailbox, Relay};
