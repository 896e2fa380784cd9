//! What a host brings itself: its entries, changed during the session, and servers that it implements in its own process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, List};
use crate::{HostLayer, Raw, ServerName};

crate::word::words! {
    /// The notifications that a host sends, beyond those of LSP.
    pub enum HostNotification {
        /// A message of a server that the host implements.
        Message = "mcp.host.message",
        /// The host's entries, all of them, in place of those before.
        Layers = "mcp.host.layers",
    }
}

/// Params of `mcp.host.send`: a message for a server that the host implements.
///
/// The first message of a `connection` begins it; messages come in the order in which they have to be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpHostSend {
    /// The server.
    pub server: ServerName,
    /// One start of it: each has a number of its own, and begins a session of MCP of its own.
    #[schemars(with = "Int<1, 9_007_199_254_740_991>")]
    pub connection: u64,
    /// The JSON-RPC message; absent: the connection is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Raw>,
}

/// Params of `mcp.host.message`: a message of a server that the host implements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpHostMessage {
    /// The server.
    pub server: ServerName,
    /// The connection, as `mcp.host.send` numbered it.
    #[schemars(with = "Int<1, 9_007_199_254_740_991>")]
    pub connection: u64,
    /// The JSON-RPC message; absent: the server has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Raw>,
}

/// Params of `mcp.host.layers`: the host's entries from now on, as `initializationOptions.layers` gives them at first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpHostLayers {
    /// All of them: what is missing ends, what launches the same thing goes on undisturbed.
    #[schemars(with = "List<HostLayer, 16>")]
    pub layers: Vec<HostLayer>,
}
