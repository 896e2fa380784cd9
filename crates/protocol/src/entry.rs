//! An entry of `mcp.json`: the file's shape, and what hosts send to write one.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, Int, List, Text};
use crate::word::{open_words, words};
use crate::{Dir, Pointer, Time, Uri};

/// One server: a `command` to run or a `url` to reach, and how to treat it.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerEntry {
    /// The program to run; `${VAR}` and `${VAR:-default}` expand at use, here and below.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 4096>>")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<0, 32768>, 256>>")]
    pub args: Option<Vec<String>>,
    /// Variables for its environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<Text<0, 32768>, 256>>")]
    pub env: Option<BTreeMap<String, String>>,
    /// Its working directory; relative ones start at the project root, the package folder, else the home folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Dir>,
    /// A file of variables, read at use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_file: Option<Dir>,
    /// The server's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Uri>,
    /// HTTP headers for each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<Text<0, 32768>, 64>>")]
    pub headers: Option<BTreeMap<String, String>>,
    /// A program and its arguments; it prints more headers as a JSON object of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 4096>, 64>>")]
    pub headers_helper: Option<Vec<String>>,
    /// The transport to use with `url`, default tries both; `host`: the host itself is the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<EntryTransport>,
    /// `false` switches OAuth off, an object sets it up; default as the server asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthSetting>,
    /// Whether it may run; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What people are shown; default the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 200>>")]
    pub label: Option<String>,
    /// Idle time limit of a call in milliseconds; default 60,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1000, 600_000>>")]
    pub timeout_ms: Option<u64>,
    /// Time limit of a start in milliseconds; default `timeoutMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1000, 600_000>>")]
    pub start_timeout_ms: Option<u64>,
    /// `false`: the server may not ask the person anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<bool>,
    /// Whether it is started again after a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<Reconnect>,
    /// `false`: a failed start shows as `stopped`, not as `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on_startup_error: Option<bool>,
    /// `true` starts it at once, `false` only when asked to; default as the host's `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autostart: Option<bool>,
    /// `auto`, `legacy`, or one revision of MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 32>>")]
    pub protocol: Option<String>,
    /// A word to group by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 64>>")]
    pub category: Option<String>,
    /// The model's tools wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// `false`: one call at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// Stop it after so many idle milliseconds; 0 never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<0, 86_400_000>>")]
    pub idle_stop_ms: Option<u64>,
    /// Which of several logins to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 64>>")]
    pub account: Option<String>,
    /// Certificates to trust and to present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Which tools may be used, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLists>,
    /// Members whose value is a secret although no name says so, such as `/env/WORKSPACE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Pointer, 64>>")]
    pub secrets: Option<Vec<Pointer>>,
    /// What a person who is asked for a `${input:ID}` is told, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<EntryInput, 64>>")]
    pub inputs: Option<BTreeMap<String, EntryInput>>,
    /// Where the entry came from: `catalog:<id>`, `registry:<name>`, `github:<repo>`, `manual`, `paste`, `import`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 256>>")]
    pub source: Option<String>,
    /// When it was written first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// When it was written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
}

/// Names of members only: values may be secrets.
impl std::fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerEntry")
            .field("command", &self.command)
            .field(
                "env",
                &self.env.as_ref().map(|env| env.keys().collect::<Vec<_>>()),
            )
            .field(
                "headers",
                &self
                    .headers
                    .as_ref()
                    .map(|headers| headers.keys().collect::<Vec<_>>()),
            )
            .field("transport", &self.transport)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}

words! {
    /// The transport to use with `url`.
    pub enum EntryTransport {
        /// Streamable HTTP.
        Http = "http",
        /// HTTP with server-sent events, as MCP had it before 2025-03-26.
        Sse = "sse",
        /// Without `url`: the host itself is the server (`mcp.host.send`); only in an entry that the host brings.
        Host = "host",
    }
}

/// How a person is asked for the value of a `${input:ID}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryInput {
    /// What the value is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 2048>>")]
    pub description: Option<String>,
    /// `false`: what is typed may be seen; default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<bool>,
    /// The value to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 4096>>")]
    pub default: Option<String>,
    /// The values to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 4096>, 100>>")]
    pub choices: Option<Vec<String>>,
}

/// Whether a server is started again after a crash.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reconnect {
    /// `false`: it stays down.
    pub enabled: bool,
}

/// Certificates, as PEM files (RFC 7468).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    /// Certificates of authorities to trust besides the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<Dir>,
    /// The client certificate to present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<Dir>,
    /// Its private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Dir>,
}

/// Which tools may be used; `*` in a name matches any run of characters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolLists {
    /// Only these are offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 256>, 1000>>")]
    pub allow: Option<Vec<String>>,
    /// These are not offered; goes before all else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 256>, 1000>>")]
    pub deny: Option<Vec<String>>,
    /// The person is asked before each model's call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 256>, 1000>>")]
    pub ask: Option<Vec<String>>,
    /// Nobody is asked; counts for nothing in a project's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 256>, 1000>>")]
    pub auto: Option<Vec<String>>,
    /// How tools are shown, by the server's own name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<ToolOverride, 1000>>")]
    pub overrides: Option<BTreeMap<String, ToolOverride>>,
}

/// How one tool is shown to hosts, people and models; its server is called by its own name, and lists and grants refer to that.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolOverride {
    /// Its other name: letters, digits, `_`, `-` and `.`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 64>>")]
    pub name: Option<String>,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 200>>")]
    pub title: Option<String>,
    /// What it does, in other words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 8192>>")]
    pub description: Option<String>,
}

/// `false`, or how to log in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "an entry is read once and shared")]
pub enum OauthSetting {
    /// OAuth is switched off.
    Off(False),
    /// OAuth is set up.
    On(OAuth),
}

impl JsonSchema for OauthSetting {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OauthSetting".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<False>(), generator.subschema_for::<OAuth>()] })
    }
}

/// The literal `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct False;

impl TryFrom<bool> for False {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value {
            Err("only `false` stands here")
        } else {
            Ok(False)
        }
    }
}

impl From<False> for bool {
    fn from(_: False) -> Self {
        false
    }
}

impl JsonSchema for False {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "False".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean", "const": false })
    }
}

/// How to log in to a server (OAuth 2.1; MCP, Authorization).
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OAuth {
    /// The registered client's id (RFC 6749 §2.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 2048>>")]
    pub client_id: Option<String>,
    /// Its secret (RFC 6749 §2.3.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 4096>>")]
    pub client_secret: Option<String>,
    /// The scope to ask for (RFC 6749 §3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 4096>>")]
    pub scope: Option<String>,
    /// The loopback port of the redirect URI (RFC 8252 §7.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 65535>>")]
    pub callback_port: Option<u16>,
    /// The whole redirect URI, where one is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<Uri>,
    /// The client id metadata document to present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<Uri>,
    /// The grant to use; default `authorization_code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantType>,
    /// The resource indicator (RFC 8707); `false` sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceSetting>,
    /// Who gave out `clientId` (RFC 8414 §2); it is shown to no other authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Uri>,
    /// Where a person logs in (RFC 6749 §3.1), instead of what the authorization server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<Uri>,
    /// Where tokens come from (RFC 6749 §3.2), instead of what the authorization server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<Uri>,
    /// More parameters for the address a person opens, such as `prompt` or `login_hint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<Text<0, 2048>, 32>>")]
    pub authorization_parameters: Option<BTreeMap<String, String>>,
    /// How the client proves itself (RFC 7591 §2); default what the authorization server lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<TokenEndpointAuthMethod>,
    /// The client's own key as PEM (RFC 7523 §2.2), with the grant `client_credentials`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 16384>>")]
    pub private_key: Option<String>,
    /// What it signs with (RFC 7518 §3.1): `ES256`, `RS256` or `EdDSA`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 16>>")]
    pub signing_algorithm: Option<String>,
    /// The key's name among those of the client (RFC 7515 §4.1.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 256>>")]
    pub key_id: Option<String>,
    /// What somebody signed for this workload (RFC 7523 §2.1), with the grant `jwt_bearer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 16384>>")]
    pub assertion: Option<String>,
    /// The identity provider that vouches for the person, with the grant `enterprise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enterprise: Option<EnterpriseIdentity>,
    /// Binds tokens to a key (RFC 9449) although the server does not demand it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dpop: Option<bool>,
    /// Names of checks to relax for servers that fail them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Text<1, 64>, 16>>")]
    pub tolerate: Option<Vec<String>>,
}

/// Names of members only: the secret is not shown.
impl std::fmt::Debug for OAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuth")
            .field("client_id", &self.client_id)
            .field("scope", &self.scope)
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// An enterprise's identity provider (MCP, Enterprise-Managed Authorization).
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnterpriseIdentity {
    /// Its token endpoint (RFC 8693).
    pub token_endpoint: Uri,
    /// Its name (RFC 8414 §2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Uri>,
    /// Our client id there.
    #[schemars(with = "Text<1, 2048>")]
    pub client_id: String,
    /// Our secret there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 4096>>")]
    pub client_secret: Option<String>,
    /// What it gave when the person logged in there.
    #[schemars(with = "Text<1, 16384>")]
    pub subject_token: String,
    /// What that is (RFC 8693 §3); default an ID token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 256>>")]
    pub subject_token_type: Option<String>,
}
crate::word::debug_name_only!(EnterpriseIdentity);

open_words! {
    /// How a client proves itself at the token endpoint (RFC 7591 §2).
    pub enum TokenEndpointAuthMethod {
        /// It does not.
        None = "none",
        /// Its secret in the header `Authorization`.
        ClientSecretBasic = "client_secret_basic",
        /// Its secret in the form.
        ClientSecretPost = "client_secret_post",
        /// A signature of its own key.
        PrivateKeyJwt = "private_key_jwt",
    }
}

open_words! {
    /// An OAuth grant.
    pub enum GrantType {
        /// A person logs in (RFC 6749 §4.1, RFC 7636).
        AuthorizationCode = "authorization_code",
        /// The client logs in for itself (RFC 6749 §4.4).
        ClientCredentials = "client_credentials",
        /// A person logs in on another device (RFC 8628).
        DeviceCode = "device_code",
        /// A signed assertion (RFC 7523).
        JwtBearer = "jwt_bearer",
        /// Through the enterprise's identity provider.
        Enterprise = "enterprise",
    }
}

/// A resource indicator (RFC 8707), or `false` for none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResourceSetting {
    /// None is sent.
    Off(False),
    /// This one is sent.
    Uri(Uri),
}

impl JsonSchema for ResourceSetting {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ResourceSetting".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<False>(), generator.subschema_for::<Uri>()] })
    }
}
