//! What the stories and the shared cases stand on: a host that spawns the real binary, scripted MCP
//! servers of every transport, and a place of its own for each test.
//!
//! Nothing here knows the inside of Pillion; it speaks to the binary through pipes, sockets and files.

pub mod authorization_server;
pub mod browser;
pub mod clock;
pub mod contract;
pub mod env;
pub mod filling;
pub mod frames;
pub mod front;
pub mod host;
pub mod inbox;
pub mod matching;
pub mod peer;
pub mod processes;
pub mod scripted;

pub use authorization_server::AuthorizationServer;
pub use env::TestEnv;
pub use host::{Host, HostOptions, Outcome, RpcError};
pub use peer::PeerClient;
pub use scripted::StdioServer;
pub use scripted::http::HttpHost;
