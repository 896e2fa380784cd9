//! Other programs: which form each reads, and where it keeps its servers on this machine and in a project.

use std::path::{Path, PathBuf};

use protocol::{ExportFormat, Scope};

use super::forms::{self, Form};

/// A file that may be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub client: &'static str,
    pub format: ExportFormat,
    pub path: PathBuf,
    pub scope: Scope,
}

/// The folders that files of programs lie in.
pub(crate) struct Folders<'a> {
    pub home: &'a Path,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub config: &'a Path,
    /// `$CLAUDE_CONFIG_DIR`, where it is set.
    pub claude: Option<&'a Path>,
    pub project: &'a Path,
}

/// The form of a format that another program reads; `None` for our own two.
pub(crate) fn form(format: ExportFormat) -> Option<Form> {
    use ExportFormat as F;
    Some(match format {
        F::Store | F::List => return None,
        F::McpServers => forms::SHARED,
        F::ClaudeDesktop => forms::CLAUDE_DESKTOP,
        F::ClaudeCode => forms::CLAUDE_CODE,
        F::Vscode => forms::VSCODE,
        F::Cursor => forms::CURSOR,
        F::Windsurf => forms::WINDSURF,
        F::Antigravity => forms::ANTIGRAVITY,
        F::Zed => forms::ZED,
        F::Opencode => forms::OPENCODE,
        F::Codex => forms::CODEX,
        F::Gemini => forms::GEMINI,
        F::Continue => forms::CONTINUE,
        F::Goose => forms::GOOSE,
        F::McpHub => forms::MCP_HUB,
        F::Cline => forms::CLINE,
        F::Roo => forms::ROO,
        F::Amp => forms::AMP,
        F::LmStudio => forms::LM_STUDIO,
        F::Kiro => forms::KIRO,
        F::Trae => forms::TRAE,
        F::Kimi => forms::KIMI,
        F::Factory => forms::FACTORY,
        F::Vibe => forms::VIBE,
        F::Crush => forms::CRUSH,
        F::Eca => forms::ECA,
        F::Mcpproxy => forms::MCPPROXY,
        F::Mcporter => forms::MCPORTER,
        F::Copilot => forms::COPILOT,
        F::Junie => forms::JUNIE,
        F::Acp => forms::ACP,
    })
}

/// Files below the person's home folder.
const HOME: [(ExportFormat, &str); 25] = [
    (ExportFormat::ClaudeCode, ".claude.json"),
    (ExportFormat::Cursor, ".cursor/mcp.json"),
    (ExportFormat::Windsurf, ".codeium/windsurf/mcp_config.json"),
    (ExportFormat::Windsurf, ".codeium/mcp_config.json"),
    (ExportFormat::Antigravity, ".gemini/antigravity/mcp_config.json"),
    (ExportFormat::Gemini, ".gemini/settings.json"),
    (ExportFormat::Codex, ".codex/config.toml"),
    (ExportFormat::Continue, ".continue/config.yaml"),
    (ExportFormat::Copilot, ".copilot/mcp-config.json"),
    (ExportFormat::LmStudio, ".lmstudio/mcp.json"),
    (ExportFormat::LmStudio, ".cache/lm-studio/mcp.json"),
    (ExportFormat::Kiro, ".kiro/settings/mcp.json"),
    (ExportFormat::Kimi, ".kimi/mcp.json"),
    (ExportFormat::Factory, ".factory/mcp.json"),
    (ExportFormat::Vibe, ".vibe/config.toml"),
    (ExportFormat::Junie, ".junie/mcp/mcp.json"),
    (
        ExportFormat::ClaudeDesktop,
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
    (
        ExportFormat::Vscode,
        "Library/Application Support/Code/User/mcp.json",
    ),
    (
        ExportFormat::Trae,
        "Library/Application Support/Trae/User/mcp.json",
    ),
    (
        ExportFormat::Cline,
        "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    (
        ExportFormat::Roo,
        "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    ),
    (
        ExportFormat::ClaudeDesktop,
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    (ExportFormat::Vscode, "AppData/Roaming/Code/User/mcp.json"),
    (ExportFormat::Zed, "AppData/Roaming/Zed/settings.json"),
    (
        ExportFormat::Goose,
        "AppData/Roaming/Block/goose/config/config.yaml",
    ),
];

/// Files below the folder of configurations.
const CONFIG: [(ExportFormat, &str); 15] = [
    (ExportFormat::ClaudeDesktop, "Claude/claude_desktop_config.json"),
    (ExportFormat::Vscode, "Code/User/mcp.json"),
    (ExportFormat::Vscode, "Code/User/settings.json"),
    (
        ExportFormat::Cline,
        "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    (
        ExportFormat::Roo,
        "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    ),
    (ExportFormat::Trae, "Trae/User/mcp.json"),
    (ExportFormat::Zed, "zed/settings.json"),
    (ExportFormat::Opencode, "opencode/opencode.json"),
    (ExportFormat::Opencode, "opencode/opencode.jsonc"),
    (ExportFormat::Goose, "goose/config.yaml"),
    (ExportFormat::McpHub, "mcphub/servers.json"),
    (ExportFormat::Eca, "eca/config.json"),
    (ExportFormat::Amp, "amp/settings.json"),
    (ExportFormat::Amp, "amp/settings.jsonc"),
    (ExportFormat::Crush, "crush/crush.json"),
];

/// Files below a project.
const PROJECT: [(ExportFormat, &str); 18] = [
    (ExportFormat::ClaudeCode, ".mcp.json"),
    (ExportFormat::Vscode, ".vscode/mcp.json"),
    (ExportFormat::Cursor, ".cursor/mcp.json"),
    (ExportFormat::Zed, ".zed/settings.json"),
    (ExportFormat::Opencode, "opencode.json"),
    (ExportFormat::Opencode, "opencode.jsonc"),
    (ExportFormat::Codex, ".codex/config.toml"),
    (ExportFormat::Gemini, ".gemini/settings.json"),
    (ExportFormat::Roo, ".roo/mcp.json"),
    (ExportFormat::McpHub, ".mcphub/servers.json"),
    (ExportFormat::Kiro, ".kiro/settings/mcp.json"),
    (ExportFormat::Amp, ".amp/settings.json"),
    (ExportFormat::Amp, ".amp/settings.jsonc"),
    (ExportFormat::Junie, ".junie/mcp/mcp.json"),
    (ExportFormat::Eca, ".eca/config.json"),
    (ExportFormat::Crush, ".crush.json"),
    (ExportFormat::Crush, "crush.json"),
    (ExportFormat::Factory, ".factory/mcp.json"),
];

/// Every file worth a look, those of a program in the order in which one of them is taken.
pub(crate) fn places(folders: &Folders<'_>) -> Vec<Place> {
    let under = |base: &Path, files: &[(ExportFormat, &str)], scope: Scope| -> Vec<Place> {
        let place = |(format, file): &(ExportFormat, &str)| Place {
            client: form(*format).map_or("Pillion", |form| form.title),
            format: *format,
            path: base.join(file),
            scope,
        };
        files.iter().map(place).collect()
    };
    let mut places = under(folders.project, &PROJECT, Scope::Project);
    if let Some(claude) = folders.claude {
        places.extend(under(claude, &HOME[..1], Scope::User));
    }
    let other_platforms = |file: &str| {
        (file.starts_with("Library/") && !cfg!(target_os = "macos"))
            || (file.starts_with("AppData/") && !cfg!(windows))
    };
    let (others, own): (Vec<_>, Vec<_>) = HOME.iter().copied().partition(|(_, file)| other_platforms(file));
    places.extend(under(folders.home, &own, Scope::User));
    places.extend(under(folders.config, &CONFIG, Scope::User));
    // A home folder may be shared between machines: what is there is found.
    places.extend(under(folders.home, &others, Scope::User));
    let mut seen = std::collections::BTreeSet::new();
    places.retain(|place| seen.insert(place.path.clone()));
    places
}

/// The file in which a program keeps its servers: the first that is there, else the first that it would look for.
pub(crate) fn file_of(places: &[Place], format: ExportFormat, scope: Scope) -> Option<Place> {
    let mut own = places
        .iter()
        .filter(|place| place.format == format && place.scope == scope)
        // Servers stood among the settings once; new ones belong beside them.
        .filter(|place| !place.path.ends_with("Code/User/settings.json"));
    let first = own.clone().next();
    own.find(|place| place.path.is_file()).or(first).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_form_and_its_files_their_program() {
        for format in ExportFormat::ALL {
            let is_ours = matches!(format, ExportFormat::Store | ExportFormat::List);
            assert_eq!(form(*format).is_none(), is_ours, "{format}");
        }
        let folders = Folders {
            home: Path::new("/home/me"),
            config: Path::new("/home/me/.config"),
            claude: Some(Path::new("/elsewhere")),
            project: Path::new("/work"),
        };
        let places = places(&folders);
        let file = |format, scope| file_of(&places, format, scope).map(|place| place.path);
        assert_eq!(
            file(ExportFormat::Cursor, Scope::Project),
            Some(PathBuf::from("/work/.cursor/mcp.json"))
        );
        assert_eq!(
            file(ExportFormat::ClaudeCode, Scope::User),
            Some(PathBuf::from("/elsewhere/.claude.json"))
        );
        assert_eq!(file(ExportFormat::Acp, Scope::User), None);
    }
}
