//! Scripted MCP servers. One engine ([`plain`]) decides what is answered; two carriers bring it to
//! the wire: [`stdio`], a process of this very test binary, and [`http`], a listener in this one.

pub mod http;
mod http_mcp;
pub mod legacy_sse;
pub mod log;
pub mod plain;
pub mod rules;
pub mod stdio;
pub mod stdio_play;

pub use stdio::StdioServer;
