//! How each program writes its servers: one table of words.

use super::Dialect;

/// What a configuration is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// JSON, with comments where there are some.
    Json,
    Toml,
    Yaml,
}

/// What a program fills in when it starts a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum References {
    /// `${NAME}` and `${NAME:-default}`, as here.
    Own,
    /// `${NAME}`.
    Braces,
    /// `${NAME}`, and `$NAME` too.
    Shell,
    /// `${env:NAME}`.
    Env,
    /// `{env:NAME}`.
    Opencode,
    /// `${{ secrets.NAME }}`.
    Secrets,
    /// Nothing.
    None,
}

/// How a program says that a server is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    /// Not at all.
    Never,
    /// `disabled: true`.
    Disabled,
    /// `enabled: false`.
    Enabled,
    /// The same, and `enabled: true` for the others.
    EnabledAlways,
}

/// How a value is written that is one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Same,
    /// Milliseconds as seconds.
    Seconds,
    /// Words with blanks between them as a list.
    Words,
}

/// The member that says how a server is reached, and its words; an empty one is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub member: &'static str,
    pub local: &'static str,
    pub http: &'static str,
    pub sse: &'static str,
}

/// A form in which servers are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// Who reads it.
    pub title: &'static str,
    pub dialect: Dialect,
    pub syntax: Syntax,
    /// The member of the document that holds the servers. A dot in it is part of the name.
    pub container: &'static str,
    /// A list with the names inside instead of a map.
    pub is_list: bool,
    /// A server repeats its name inside.
    pub is_named: bool,
    pub kind: Kind,
    pub command: &'static str,
    /// The command and its arguments are one list.
    pub is_one_list: bool,
    pub env: &'static str,
    /// Variables that are passed on under their own name, as a list of names.
    pub env_names: &'static str,
    /// Variables and headers are lists of names and values.
    pub are_pairs: bool,
    /// Where the address stands, by transport; empty: it runs programs only.
    pub url: [&'static str; 2],
    /// Where the headers stand; a dot goes one level down.
    pub headers: &'static str,
    /// Headers that consist of one reference name its variable in members of their own.
    pub has_header_names: bool,
    /// Other members: ours, theirs, how. A dot goes one level down.
    pub members: &'static [(&'static str, &'static str, Manner)],
    pub off: Off,
    pub references: References,
    /// It fills in headers only.
    pub only_headers: bool,
    /// The whole of `oauth`, as here.
    pub has_own_oauth: bool,
    /// `oauth: false` is understood.
    pub has_oauth_off: bool,
    /// What must stand in each server: every tool.
    pub names_every_tool: bool,
    /// It asks its person for values, `${input:id}`.
    pub has_inputs: bool,
    /// What must stand before the servers.
    pub preamble: &'static [(&'static str, &'static str)],
}

use Manner::{Same, Seconds, Words};

const NO_WORDS: Kind = Kind {
    member: "type",
    local: "",
    http: "",
    sse: "",
};
const REMOTE_WORDS: Kind = Kind {
    http: "http",
    sse: "sse",
    ..NO_WORDS
};
const ALL_WORDS: Kind = Kind {
    local: "stdio",
    ..REMOTE_WORDS
};

/// The map that most programs read.
pub(crate) const SHARED: Form = Form {
    title: "the form",
    dialect: Dialect::Common,
    syntax: Syntax::Json,
    container: "mcpServers",
    is_list: false,
    is_named: false,
    kind: REMOTE_WORDS,
    command: "command",
    is_one_list: false,
    env: "env",
    env_names: "",
    are_pairs: false,
    url: ["url", "url"],
    headers: "headers",
    has_header_names: false,
    members: &[
        ("cwd", "cwd", Same),
        ("envFile", "envFile", Same),
        ("timeoutMs", "timeout", Same),
    ],
    off: Off::Disabled,
    references: References::Own,
    only_headers: false,
    has_own_oauth: true,
    has_oauth_off: true,
    names_every_tool: false,
    has_inputs: false,
    preamble: &[],
};

/// The same without what only some of them understand.
const PLAIN: Form = Form {
    members: &[],
    off: Off::Never,
    references: References::None,
    has_own_oauth: false,
    has_oauth_off: false,
    ..SHARED
};

pub(crate) const CLAUDE_DESKTOP: Form = Form {
    title: "Claude Desktop",
    url: ["", ""],
    ..PLAIN
};
pub(crate) const CLAUDE_CODE: Form = Form {
    title: "Claude Code",
    kind: ALL_WORDS,
    members: &[
        ("timeoutMs", "timeout", Same),
        ("oauth.clientId", "oauth.clientId", Same),
        ("oauth.callbackPort", "oauth.callbackPort", Same),
        ("oauth.scope", "oauth.scopes", Same),
    ],
    references: References::Own,
    ..PLAIN
};
pub(crate) const VSCODE: Form = Form {
    title: "VS Code",
    container: "servers",
    kind: ALL_WORDS,
    members: &[
        ("cwd", "cwd", Same),
        ("envFile", "envFile", Same),
        ("oauth.clientId", "oauth.clientId", Same),
    ],
    references: References::Env,
    has_inputs: true,
    ..PLAIN
};
pub(crate) const CURSOR: Form = Form {
    title: "Cursor",
    kind: Kind {
        sse: "sse",
        ..NO_WORDS
    },
    members: &[
        ("envFile", "envFile", Same),
        ("oauth.clientId", "auth.CLIENT_ID", Same),
        ("oauth.clientSecret", "auth.CLIENT_SECRET", Same),
        ("oauth.scope", "auth.scopes", Words),
    ],
    references: References::Env,
    ..PLAIN
};
pub(crate) const WINDSURF: Form = Form {
    title: "Windsurf",
    kind: NO_WORDS,
    url: ["serverUrl", "serverUrl"],
    members: &[("tools.deny", "disabledTools", Same)],
    off: Off::Disabled,
    references: References::Env,
    ..PLAIN
};
pub(crate) const ANTIGRAVITY: Form = Form {
    title: "Antigravity",
    references: References::None,
    ..WINDSURF
};
pub(crate) const ZED: Form = Form {
    title: "Zed",
    dialect: Dialect::Zed,
    container: "context_servers",
    kind: NO_WORDS,
    members: &[
        ("timeoutMs", "timeout", Seconds),
        ("oauth.clientId", "oauth.client_id", Same),
        ("oauth.clientSecret", "oauth.client_secret", Same),
    ],
    off: Off::Enabled,
    ..PLAIN
};
pub(crate) const OPENCODE: Form = Form {
    title: "opencode",
    dialect: Dialect::Opencode,
    container: "mcp",
    kind: Kind {
        local: "local",
        http: "remote",
        sse: "remote",
        ..NO_WORDS
    },
    is_one_list: true,
    env: "environment",
    members: &[
        ("timeoutMs", "timeout", Same),
        ("oauth.clientId", "oauth.clientId", Same),
        ("oauth.clientSecret", "oauth.clientSecret", Same),
        ("oauth.scope", "oauth.scope", Same),
        ("oauth.redirectUri", "oauth.redirectUri", Same),
    ],
    off: Off::EnabledAlways,
    references: References::Opencode,
    has_oauth_off: true,
    ..PLAIN
};
pub(crate) const CODEX: Form = Form {
    title: "Codex",
    dialect: Dialect::Codex,
    syntax: Syntax::Toml,
    container: "mcp_servers",
    kind: NO_WORDS,
    env_names: "env_vars",
    headers: "http_headers",
    has_header_names: true,
    members: &[
        ("cwd", "cwd", Same),
        ("startTimeoutMs", "startup_timeout_sec", Seconds),
        ("timeoutMs", "tool_timeout_sec", Seconds),
        ("tools.allow", "enabled_tools", Same),
        ("tools.deny", "disabled_tools", Same),
        ("required", "required", Same),
        ("parallel", "supports_parallel_tool_calls", Same),
        ("oauth.clientId", "oauth.client_id", Same),
        ("oauth.scope", "scopes", Words),
        ("oauth.resource", "oauth_resource", Same),
    ],
    off: Off::Enabled,
    ..PLAIN
};
pub(crate) const GEMINI: Form = Form {
    title: "Gemini CLI",
    dialect: Dialect::Gemini,
    kind: NO_WORDS,
    url: ["httpUrl", "url"],
    members: &[
        ("cwd", "cwd", Same),
        ("timeoutMs", "timeout", Same),
        ("tools.allow", "includeTools", Same),
        ("tools.deny", "excludeTools", Same),
        ("oauth.clientId", "oauth.clientId", Same),
        ("oauth.clientSecret", "oauth.clientSecret", Same),
        ("oauth.redirectUri", "oauth.redirectUri", Same),
        ("oauth.scope", "oauth.scopes", Words),
    ],
    references: References::Shell,
    ..PLAIN
};
pub(crate) const CONTINUE: Form = Form {
    title: "Continue",
    dialect: Dialect::Continue,
    syntax: Syntax::Yaml,
    is_list: true,
    is_named: true,
    kind: Kind {
        local: "stdio",
        http: "streamable-http",
        sse: "sse",
        ..NO_WORDS
    },
    headers: "requestOptions.headers",
    members: &[
        ("cwd", "cwd", Same),
        ("startTimeoutMs", "connectionTimeout", Same),
    ],
    references: References::Secrets,
    preamble: &[("name", "Servers"), ("version", "0.0.1"), ("schema", "v1")],
    ..PLAIN
};
pub(crate) const GOOSE: Form = Form {
    title: "Goose",
    dialect: Dialect::Goose,
    syntax: Syntax::Yaml,
    container: "extensions",
    is_named: true,
    kind: Kind {
        local: "stdio",
        http: "streamable_http",
        sse: "streamable_http",
        ..NO_WORDS
    },
    command: "cmd",
    env: "envs",
    env_names: "env_keys",
    url: ["uri", "uri"],
    members: &[
        ("timeoutMs", "timeout", Seconds),
        ("tools.allow", "available_tools", Same),
    ],
    off: Off::EnabledAlways,
    references: References::Shell,
    only_headers: true,
    ..PLAIN
};
pub(crate) const MCP_HUB: Form = Form {
    title: "mcp-hub",
    kind: NO_WORDS,
    members: &[("cwd", "cwd", Same), ("tools.deny", "disabled_tools", Same)],
    off: Off::Disabled,
    references: References::Braces,
    ..PLAIN
};
pub(crate) const CLINE: Form = Form {
    title: "Cline",
    dialect: Dialect::Cline,
    kind: Kind {
        local: "stdio",
        http: "streamableHttp",
        sse: "sse",
        ..NO_WORDS
    },
    members: &[("cwd", "cwd", Same), ("timeoutMs", "timeout", Seconds)],
    off: Off::Disabled,
    references: References::Env,
    ..PLAIN
};
pub(crate) const ROO: Form = Form {
    title: "Roo",
    kind: Kind {
        http: "streamable-http",
        ..CLINE.kind
    },
    members: &[
        ("cwd", "cwd", Same),
        ("timeoutMs", "timeout", Seconds),
        ("tools.deny", "disabledTools", Same),
    ],
    ..CLINE
};
pub(crate) const AMP: Form = Form {
    title: "Amp",
    container: "amp.mcpServers",
    kind: NO_WORDS,
    ..PLAIN
};
pub(crate) const LM_STUDIO: Form = Form {
    title: "LM Studio",
    kind: NO_WORDS,
    ..PLAIN
};
pub(crate) const KIRO: Form = Form {
    title: "Kiro",
    kind: NO_WORDS,
    members: &[("tools.deny", "disabledTools", Same)],
    off: Off::Disabled,
    references: References::Braces,
    ..PLAIN
};
pub(crate) const TRAE: Form = Form {
    title: "Trae",
    ..PLAIN
};
pub(crate) const KIMI: Form = Form {
    title: "Kimi",
    ..PLAIN
};
pub(crate) const FACTORY: Form = Form {
    title: "Factory",
    kind: ALL_WORDS,
    off: Off::Disabled,
    ..PLAIN
};
pub(crate) const VIBE: Form = Form {
    title: "Mistral Vibe",
    syntax: Syntax::Toml,
    container: "mcp_servers",
    is_list: true,
    is_named: true,
    kind: Kind {
        member: "transport",
        local: "stdio",
        http: "streamable-http",
        sse: "streamable-http",
    },
    ..PLAIN
};
pub(crate) const CRUSH: Form = Form {
    title: "Crush",
    dialect: Dialect::Crush,
    container: "mcp",
    kind: ALL_WORDS,
    members: &[
        ("timeoutMs", "timeout", Seconds),
        ("tools.deny", "disabled_tools", Same),
    ],
    off: Off::Disabled,
    references: References::Shell,
    ..PLAIN
};
pub(crate) const ECA: Form = Form {
    title: "ECA",
    kind: NO_WORDS,
    members: &[
        ("oauth.clientId", "clientId", Same),
        ("oauth.clientSecret", "clientSecret", Same),
        ("oauth.callbackPort", "oauthPort", Same),
        ("oauth.scope", "authScope", Same),
    ],
    off: Off::Disabled,
    references: References::Env,
    ..PLAIN
};
pub(crate) const MCPPROXY: Form = Form {
    title: "mcpproxy",
    is_list: true,
    is_named: true,
    kind: Kind {
        member: "protocol",
        ..ALL_WORDS
    },
    members: &[("cwd", "working_dir", Same)],
    off: Off::EnabledAlways,
    ..PLAIN
};
pub(crate) const MCPORTER: Form = Form {
    title: "mcporter",
    kind: NO_WORDS,
    url: ["baseUrl", "baseUrl"],
    references: References::Own,
    ..PLAIN
};
pub(crate) const COPILOT: Form = Form {
    title: "Copilot",
    kind: Kind {
        local: "local",
        ..REMOTE_WORDS
    },
    members: &[
        ("tools.allow", "tools", Same),
        ("oauth.clientId", "oauth.clientId", Same),
        ("oauth.callbackPort", "oauth.callbackPort", Same),
    ],
    names_every_tool: true,
    ..PLAIN
};
pub(crate) const JUNIE: Form = Form {
    title: "Junie",
    url: ["", ""],
    ..PLAIN
};
pub(crate) const ACP: Form = Form {
    title: "ACP",
    is_list: true,
    is_named: true,
    are_pairs: true,
    ..PLAIN
};
