//! What a person should know of an entry before saying yes, beside what would run or be reached.

use std::path::{Path, PathBuf};

use protocol::{Layer, ServerEntry};
use serde_json::json;

use super::login;
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
    warnings.extend(login::warnings(entry));
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
        let cwd = match entry.cwd.as_deref() {
            Some(cwd) if cwd.starts_with('~') => PathBuf::from(cwd),
            Some(cwd) => base.join(cwd),
            None => base.to_owned(),
        };
        let own: Vec<String> = entry.command.iter().chain(args).cloned().collect();
        let in_project = [(&own, cwd.as_path())].into_iter();
        let in_project = in_project.chain(programs.iter().map(|words| (words, base)));
        let runners = in_project.filter(|(_, folder)| plain(folder).starts_with(&root));
        for runner in runners.filter_map(|(words, _)| runner(words)) {
            warnings.push(format!(
                "`{runner}` takes code from the folder it starts in, which is the project's: what it runs changes with the project"
            ));
        }
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

/// What of these words takes packages, modules or tasks from the folder it is started in, by name.
fn runner(words: &[String]) -> Option<String> {
    let (command, args) = words.split_first()?;
    let has = |options: &[&str]| args.iter().any(|one| options.contains(&one.as_str()));
    let first = args.iter().find(|one| !one.starts_with('-')).map(String::as_str);
    let program = secret::program(command);
    let name = program.trim_end_matches(".cmd");
    let takes = match name {
        "npx" | "bunx" | "pnpx" | "make" | "just" | "rake" | "cargo" | "poetry" | "pipenv" | "pdm"
        | "hatch" | "nox" | "tox" | "bundle" | "gradle" | "mvn" | "dotnet" => true,
        "npm" | "pnpm" | "yarn" | "bun" => first.is_some(),
        "deno" => matches!(first, Some("task" | "run" | "x")),
        "go" => first == Some("run"),
        "uv" => first == Some("run") || args.iter().any(|one| is_local(one)),
        "uvx" | "pipx" => args.iter().any(|one| is_local(one)),
        // The folder is the first place where a module is looked for.
        "python" | "py" | "pypy" => has(&["-m", "-c"]) && !has(&["-I"]),
        "node" | "tsx" | "ts-node" => args.iter().any(|one| {
            const LOADS: [&str; 9] = [
                "-e",
                "-p",
                "-pe",
                "-r",
                "--eval",
                "--print",
                "--require",
                "--import",
                "--loader",
            ];
            LOADS.contains(&one.split('=').next().unwrap_or(one))
        }),
        _ => false,
    };
    if takes {
        return Some(name.to_owned());
    }
    // `env A=1 npx …`, `cmd /c npx …`
    let starts = secret::starts_others(command) || program == "cmd";
    let mut rest = (1..words.len()).filter(|_| starts);
    rest.find_map(|at| runner(&words[at..]))
}

fn is_local(word: &str) -> bool {
    let path = word.split_once('=').map_or(word, |(_, value)| value);
    path.starts_with(['.', '/', '~']) || path.starts_with("file:") || path.ends_with(".whl")
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
