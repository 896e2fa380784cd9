//! What a person should know of an entry before saying yes, beside what would run or be reached.

use std::path::{Path, PathBuf};

use protocol::{Layer, ServerEntry};
use serde_json::json;

use crate::config::inside::plain;
use crate::config::{expand, secret};
use crate::exchange::words;
use crate::model::poison;
use crate::server::launch;

/// The programs that are run for a secret of the entry, as their words; a line that is none is one word.
pub(crate) fn programs(entry: &ServerEntry) -> Vec<Vec<String>> {
    let mut programs: Vec<Vec<String>> = entry.headers_helper.iter().cloned().collect();
    expand::texts(&launch::relevant(entry), &mut |text| {
        for (name, _) in expand::references(text) {
            if let Some(expand::Source::Command(line)) = expand::source(name) {
                let words = words::split(line).unwrap_or_else(|_| vec![line.to_owned()]);
                if !programs.contains(&words) {
                    programs.push(words);
                }
            }
        }
    });
    programs
}

/// What to say of an entry; `base` is the folder that its paths are relative to. Looks whether files are there.
pub(crate) fn of(entry: &ServerEntry, layer: Layer, base: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, _) in entry.env.iter().flatten() {
        if secret::is_loader_name(name) {
            warnings.push(format!(
                "`{name}` loads code into every program the server starts"
            ));
        } else if secret::is_finder_name(name) {
            warnings.push(format!(
                "`{name}` decides which programs or packages the server finds"
            ));
        }
    }
    warnings.extend(of_address(entry));
    let args = entry.args.as_deref().unwrap_or_default();
    if let Some(command) = &entry.command {
        if secret::is_shell(command) {
            warnings.push("the command is a shell: its arguments are a program".to_owned());
        } else if secret::runs_code(command, args) {
            warnings.push("its arguments hold a program".to_owned());
        }
    }
    let programs = programs(entry);
    for words in &programs {
        warnings.push(format!(
            "runs `{}` at each start, for a secret",
            secret::shown_words(words).join(" ")
        ));
    }
    if let Some(root) = root(layer, base) {
        let cwd = entry
            .cwd
            .as_ref()
            .map_or_else(|| base.to_owned(), |cwd| base.join(&**cwd));
        let own: Vec<String> = entry.command.iter().chain(args).cloned().collect();
        let file = std::iter::once(&own)
            .chain(&programs)
            .find_map(|words| file_of_project(words, &cwd, &root));
        if let Some(file) = file {
            warnings.push(format!(
                "`{file}` is a file of the project: what it does changes with the project"
            ));
        }
    }
    warnings.extend(hidden(entry));
    warnings
}

fn of_address(entry: &ServerEntry) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(text) = &entry.url else { return warnings };
    let Ok(url) = url::Url::parse(text) else {
        return warnings;
    };
    let is_local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    };
    if url.scheme() == "http" && !is_local {
        warnings.push("the connection is not encrypted".to_owned());
    }
    // A host that a reference names is known at the start only.
    if let Some(host) = url.host_str().filter(|_| !text.contains("${"))
        && !text.to_ascii_lowercase().contains(&host.to_ascii_lowercase())
    {
        warnings.push(format!("the host of the address is `{host}`"));
    }
    warnings
}

/// The folder of the project that brings an entry.
fn root(layer: Layer, base: &Path) -> Option<PathBuf> {
    match layer {
        Layer::Project => Some(base.to_owned()),
        Layer::ProjectPackage => {
            let own = base.ancestors().find(|folder| folder.ends_with(".pillion"));
            Some(own.and_then(Path::parent).unwrap_or(base).to_owned())
        }
        Layer::User | Layer::UserPackage | Layer::Host => None,
    }
}

/// The first word that is a program or a script inside of the project.
fn file_of_project(words: &[String], cwd: &Path, root: &Path) -> Option<String> {
    let (command, args) = words.split_first()?;
    let is_inside = |path: &Path| plain(&cwd.join(path)).starts_with(root);
    // Without a separator it is looked up on the PATH.
    if command.contains(['/', '\\']) && is_inside(Path::new(command)) {
        return Some(command.clone());
    }
    let takes_folders = secret::starts_others(command);
    args.iter()
        .map(|argument| match argument.split_once('=') {
            Some((option, value)) if option.starts_with('-') => value,
            _ => argument,
        })
        .find(|word| {
            let path = Path::new(word);
            !word.is_empty()
                && is_inside(path)
                && match std::fs::metadata(cwd.join(path)) {
                    Ok(found) => found.is_file() || takes_folders,
                    // It may come with the next pull.
                    Err(_) => word.starts_with("./") || word.starts_with("../") || is_script(path),
                }
        })
        .map(str::to_owned)
}

fn is_script(path: &Path) -> bool {
    const ENDINGS: [&str; 14] = [
        "js", "mjs", "cjs", "ts", "mts", "py", "rb", "pl", "php", "lua", "sh", "ps1", "bat", "jar",
    ];
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !path.to_string_lossy().contains("://")
}

/// Members in which stands what nobody sees.
fn hidden(entry: &ServerEntry) -> Vec<String> {
    let value = json!(entry);
    let members = [
        "command",
        "args",
        "env",
        "cwd",
        "envFile",
        "url",
        "headers",
        "headersHelper",
        "oauth",
    ];
    let found = members.into_iter().filter_map(|member| {
        let text = value.get(member)?.to_string();
        let hidden = text.chars().find(|one| poison::is_hidden(*one))?;
        Some(format!(
            "`{member}` holds characters that nobody sees (U+{:04X})",
            u32::from(hidden)
        ))
    });
    found.collect()
}
