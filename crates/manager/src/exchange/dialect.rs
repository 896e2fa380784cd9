//! Programs whose configurations differ in what the same words mean.

use std::path::Path;

use serde_json::Value;

/// Whose words a text uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Nothing is known: the meaning that most programs share.
    Common,
    Zed,
    Opencode,
    Codex,
    Gemini,
    Continue,
    Goose,
    /// Cline and Roo: seconds.
    Cline,
    Crush,
}

impl Dialect {
    /// By the path of its file.
    pub fn of_path(path: &str) -> Dialect {
        let path = path.replace('\\', "/").to_lowercase();
        let ends = |end: &str| path == end || path.ends_with(&format!("/{end}"));
        if ends(".gemini/settings.json") {
            Dialect::Gemini
        } else if ends("cline_mcp_settings.json") || ends(".roo/mcp.json") || path.contains("roo-cline/") {
            Dialect::Cline
        } else if ends("zed/settings.json") {
            Dialect::Zed
        } else if ends("opencode.json") || ends("opencode.jsonc") {
            Dialect::Opencode
        } else if ends(".codex/config.toml") {
            Dialect::Codex
        } else if path.contains("/.continue/") || path.starts_with(".continue/") {
            Dialect::Continue
        } else if ends("goose/config.yaml") || ends("goose/config/config.yaml") {
            Dialect::Goose
        } else if ends("crush.json") || ends(".crush.json") {
            Dialect::Crush
        } else {
            Dialect::Common
        }
    }

    /// By what only one program writes, where no path is known.
    pub fn or_of_key(self, key: &str, entries: &Value) -> Dialect {
        if self != Dialect::Common {
            return self;
        }
        let any = |names: &[&str]| {
            entries
                .as_object()
                .into_iter()
                .flat_map(|entries| entries.values())
                .any(|entry| names.iter().any(|name| entry.get(name).is_some()))
        };
        match key {
            "context_servers" => Dialect::Zed,
            "mcp_servers" => Dialect::Codex,
            "extensions" => Dialect::Goose,
            "mcp" => Dialect::Opencode,
            "mcpServers" if entries.is_array() => Dialect::Continue,
            "mcpServers" if any(&["httpUrl", "trust", "includeTools", "excludeTools"]) => Dialect::Gemini,
            "mcpServers" if any(&["autoApprove", "alwaysAllow"]) => Dialect::Cline,
            _ => Dialect::Common,
        }
    }

    /// Milliseconds in its `timeout`.
    pub fn timeout_unit(self) -> f64 {
        match self {
            Dialect::Cline | Dialect::Zed | Dialect::Goose | Dialect::Crush => 1000.0,
            _ => 1.0,
        }
    }

    /// A text with its references as our own files write them: `${NAME}`, `${NAME:-default}`.
    pub fn references(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        loop {
            let Some(start) = rest.find(['$', '{']) else {
                out.push_str(rest);
                return out;
            };
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            let found = self.reference(rest);
            match found {
                Some((name, length)) => {
                    out.push_str(&format!("${{{name}}}"));
                    rest = &rest[length..];
                }
                None => {
                    // What is no reference of ours or theirs stays whole, so that its inside is not taken for one.
                    let length = if rest.starts_with("${") { 2 } else { 1 };
                    out.push_str(&rest[..length]);
                    rest = &rest[length..];
                }
            }
        }
    }

    /// Name and length of the reference that a text begins with, where it needs other words here.
    fn reference(self, text: &str) -> Option<(&str, usize)> {
        let braced = |before: &str, after: &str| {
            let inside = text.strip_prefix(before)?;
            let end = inside.find(after)?;
            Some((inside[..end].trim(), before.len() + end + after.len()))
        };
        if self == Dialect::Continue
            && let Some((inside, length)) = braced("${{", "}}")
        {
            let name = inside
                .strip_prefix("secrets.")
                .or(inside.strip_prefix("inputs."))?;
            return super::words::is_name(name).then_some((name, length));
        }
        if let Some((name, length)) = braced("${env:", "}") {
            let bare = name.split(":-").next().unwrap_or_default();
            return super::words::is_name(bare).then_some((name, length));
        }
        // What VS Code and its kin fill in.
        if let Some(("userHome", length)) = braced("${", "}") {
            return Some(("HOME", length));
        }
        if self == Dialect::Opencode
            && let Some((name, length)) = braced("{env:", "}")
        {
            return super::words::is_name(name).then_some((name, length));
        }
        if matches!(self, Dialect::Gemini | Dialect::Goose | Dialect::Crush) {
            let name = text.strip_prefix('$')?;
            let end = name
                .find(|one: char| !(one.is_ascii_alphanumeric() || one == '_'))
                .unwrap_or(name.len());
            return super::words::is_name(&name[..end]).then_some((&name[..end], end + 1));
        }
        None
    }
}

/// Kinds of references that the program of this file fills in as we do, beside variables: `${cmd:…}` of mcp-hub.
pub(crate) fn meant_in(path: &Path) -> &'static [&'static str] {
    if path.ends_with("mcphub/servers.json") || path.ends_with(".mcphub/servers.json") {
        &["cmd"]
    } else if path.ends_with(".mcpproxy/mcp_config.json") {
        &["keyring"]
    } else {
        &[]
    }
}

/// References of editors that nothing here fills in, as they stand in a text.
pub(crate) fn of_editors(text: &str) -> Vec<&str> {
    const NAMES: [&str; 8] = [
        "workspaceFolder",
        "workspaceFolderBasename",
        "workspaceRoot",
        "fileDirname",
        "file",
        "pathSeparator",
        "/",
        "execPath",
    ];
    let mut found = Vec::new();
    for (start, _) in text.match_indices("${") {
        let Some(end) = text[start..].find('}') else { break };
        let name = &text[start + 2..start + end];
        let bare = name.split_once(':').map_or(name, |(kind, _)| kind);
        if NAMES.contains(&bare) || (bare != name && ["config", "command"].contains(&bare)) {
            found.push(&text[start..=start + end]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_get_our_spelling() {
        let check =
            |dialect: Dialect, text: &str, expected: &str| assert_eq!(dialect.references(text), expected);
        check(
            Dialect::Common,
            "${env:X} ${X:-d e} $X %X% {{X}}",
            "${X} ${X:-d e} $X %X% {{X}}",
        );
        check(
            Dialect::Common,
            "${input:t}${workspaceFolder}/é",
            "${input:t}${workspaceFolder}/é",
        );
        check(Dialect::Common, "${userHome}/x", "${HOME}/x");
        check(Dialect::Opencode, "Bearer {env:TOK}", "Bearer ${TOK}");
        check(Dialect::Continue, "${{ secrets.X }}", "${X}");
        check(Dialect::Gemini, "$X-${Y}", "${X}-${Y}");
    }
}
