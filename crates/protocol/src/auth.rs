//! Logging in to servers that want it (OAuth 2.1; MCP, Authorization).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::Text;
use crate::word::words;
use crate::{Dir, McpServerStatus, ServerName, Time};

words! {
    /// How a server's login stands.
    pub enum Auth {
        /// None is needed, or OAuth is off.
        None = "none",
        /// One is needed.
        NeedsAuth = "needs_auth",
        /// One is under way.
        Pending = "pending",
        /// There is one.
        Authorized = "authorized",
    }
}

/// Params of `mcp.auth`.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpAuth {
    /// The directory.
    pub directory: Dir,
    /// The server; with `forget` also a handle that `mcp.auth.list` gave.
    pub server: ServerName,
    /// What to do; default `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<AuthAction>,
    /// With `complete`: the address the browser ended on, or the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 8192>>")]
    pub redirect: Option<String>,
}
crate::word::debug_name_only!(McpAuth);

words! {
    /// What to do about a login.
    pub enum AuthAction {
        /// Begin one.
        Start = "start",
        /// End the one under way.
        Cancel = "cancel",
        /// Drop what is stored.
        Forget = "forget",
        /// Finish one with the pasted address or code.
        Complete = "complete",
    }
}

/// Answer of `mcp.auth`: `start` gives the URL, `forget` and `complete` the server, `cancel` nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthAck {
    /// The address to open in a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When the login lapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Where the browser will end (RFC 6749 §3.1.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The code to type there (RFC 8628 §3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_code: Option<String>,
    /// The server as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<McpServerStatus>,
}

/// Params of `mcp.auth.list`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpAuthList {
    /// The directory; absent means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Dir>,
}

/// Answer of `mcp.auth.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpAuthListResult {
    /// What is stored; no token is in it.
    pub credentials: Vec<Credential>,
    /// Why tokens are in the file, where they could be in the credential store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

words! {
    /// Where the secrets of a login are kept.
    pub enum KeptIn {
        /// In `mcp-auth.json`.
        File = "file",
        /// In the platform's credential store.
        CredentialStore = "credentialStore",
    }
}

/// Stored credentials of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credential {
    /// The server; where its entry is gone, a handle that `forget` takes.
    pub server: ServerName,
    /// The server's URL.
    pub url: String,
    /// Which of several logins at the server it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The authorization server (RFC 8414 §2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// `false`: the entry is gone.
    pub configured: bool,
    /// Where its secrets are kept.
    pub kept_in: KeptIn,
    /// The access token has expired.
    pub expired: bool,
    /// When it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The scope that was granted (RFC 6749 §3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}
