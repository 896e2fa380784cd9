//! Where other programs keep their servers on this machine and in this project.

use std::path::{Path, PathBuf};

use protocol::Scope;

/// A file that may be there.
pub(crate) struct Place {
    pub client: &'static str,
    pub path: PathBuf,
    pub scope: Scope,
}

/// Files below the person's home folder.
const HOME: [(&str, &str); 20] = [
    ("Claude Code", ".claude.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("Windsurf", ".codeium/windsurf/mcp_config.json"),
    ("Windsurf", ".codeium/mcp_config.json"),
    ("Antigravity", ".gemini/antigravity/mcp_config.json"),
    ("Gemini CLI", ".gemini/settings.json"),
    ("Codex", ".codex/config.toml"),
    ("Continue", ".continue/config.yaml"),
    ("Copilot", ".copilot/mcp-config.json"),
    ("LM Studio", ".lmstudio/mcp.json"),
    ("LM Studio", ".cache/lm-studio/mcp.json"),
    ("Kiro", ".kiro/settings/mcp.json"),
    ("Kimi", ".kimi/mcp.json"),
    ("Factory", ".factory/mcp.json"),
    ("Mistral Vibe", ".vibe/config.toml"),
    (
        "Claude Desktop",
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
    ("VS Code", "Library/Application Support/Code/User/mcp.json"),
    (
        "Claude Desktop",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    ("VS Code", "AppData/Roaming/Code/User/mcp.json"),
    ("Goose", "AppData/Roaming/Block/goose/config/config.yaml"),
];

/// Files below the folder of configurations, `~/.config` unless told otherwise.
const CONFIG: [(&str, &str); 11] = [
    ("Claude Desktop", "Claude/claude_desktop_config.json"),
    ("VS Code", "Code/User/mcp.json"),
    ("VS Code", "Code/User/settings.json"),
    (
        "Cline",
        "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    (
        "Roo",
        "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    ),
    ("Zed", "zed/settings.json"),
    ("opencode", "opencode/opencode.json"),
    ("opencode", "opencode/opencode.jsonc"),
    ("Goose", "goose/config.yaml"),
    ("mcp-hub", "mcphub/servers.json"),
    ("ECA", "eca/config.json"),
];

/// Files below a project.
const PROJECT: [(&str, &str); 10] = [
    ("Claude Code", ".mcp.json"),
    ("VS Code", ".vscode/mcp.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("Zed", ".zed/settings.json"),
    ("opencode", "opencode.json"),
    ("opencode", "opencode.jsonc"),
    ("Codex", ".codex/config.toml"),
    ("Gemini CLI", ".gemini/settings.json"),
    ("Roo", ".roo/mcp.json"),
    ("mcp-hub", ".mcphub/servers.json"),
];

/// Every file worth a look.
pub(crate) fn places(home: &Path, config: &Path, project: &Path) -> Vec<Place> {
    let under = |base: &Path, files: &[(&'static str, &str)], scope: Scope| -> Vec<Place> {
        let place = |(client, file): &(&'static str, &str)| Place {
            client,
            path: base.join(file),
            scope,
        };
        files.iter().map(place).collect()
    };
    let mut places = under(project, &PROJECT, Scope::Project);
    places.extend(under(home, &HOME, Scope::User));
    places.extend(under(config, &CONFIG, Scope::User));
    let mut seen = std::collections::BTreeSet::new();
    places.retain(|place| seen.insert(place.path.clone()));
    places
}
