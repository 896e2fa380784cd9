//! From an entry to what is started: references, environment, working folder, command, URL.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp::{Flavour, HttpTarget, StdioTarget, Target};
use protocol::{Error, ErrorKind, ServerEntry, ServerName};
use serde_json::json;

use super::helper::Helper;
use super::network::{self, Network};
use super::veil::Veil;
use super::{env_file, in_host, login_shell};
use crate::config::expand::Expander;
use crate::config::{file, inside, secret, validate};
use crate::consent::held::{self, Held};
use crate::core::Core;
use crate::env::Env;

/// What decides whether a running server is still the configured one, and what its era is remembered by.
pub(crate) fn digest(entry: &ServerEntry) -> String {
    file::digest(relevant(entry).to_string().as_bytes())
}

/// The same for an entry under its name: of what the host implements itself, the name is all that is known.
pub(crate) fn digest_of(core: &Core, name: &str, entry: &ServerEntry) -> String {
    if in_host::is_in_host(entry) {
        let of_host = json!([
            core.settings().client_name,
            entry.source,
            name,
            entry.protocol,
            entry.elicitation
        ]);
        return file::digest(of_host.to_string().as_bytes());
    }
    digest(entry)
}

/// The members that decide what is launched.
pub(crate) fn relevant(entry: &ServerEntry) -> serde_json::Value {
    let mut relevant = json!([
        entry.command,
        entry.args,
        entry.env,
        entry.env_file,
        entry.cwd,
        entry.url,
        entry.headers,
        entry.transport,
        entry.oauth,
        entry.protocol,
        entry.elicitation,
    ]);
    // Digests stand in files: one more member must not make other ones of the entries that do not have it.
    let more = [
        ("headersHelper", json!(entry.headers_helper)),
        ("tls", json!(entry.tls)),
        ("account", json!(entry.account)),
    ];
    let more = more.into_iter().filter(|(_, value)| !value.is_null());
    if let Some(list) = relevant.as_array_mut() {
        list.extend(more.map(|(name, value)| json!({ name: value })));
    }
    relevant
}

/// What is started or reached, and how.
pub(crate) struct Prepared {
    pub target: Target,
    /// What was done with the environment.
    pub notes: Vec<String>,
    /// The address of a remote server as it is configured, references filled in.
    pub address: Option<String>,
    /// Prints headers for it.
    pub helper: Option<Arc<Helper>>,
    /// Takes out of a text what was filled in.
    pub veil: Veil,
}

/// How much of Pillion's environment a server gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inherit {
    All,
    /// No credentials, and nothing that loads code, unless the entry's own `env` lists it.
    Guarded,
}

/// Where an entry comes from.
#[derive(Clone)]
pub(crate) struct Origin {
    /// From where relative paths of the entry are taken.
    pub base: PathBuf,
    /// The project that brings it.
    pub root: Option<PathBuf>,
    /// What was agreed to of its `envFile`, where that is a project's file.
    pub held: Option<Held>,
}

impl Origin {
    pub fn inherit(&self) -> Inherit {
        match self.root {
            Some(_) => Inherit::Guarded,
            None => Inherit::All,
        }
    }

    /// An entry of a project is shown with its paths: one that is written as inside of the project must be there.
    pub fn check_inside(&self, env: &Env, member: &str, path: &Path) -> Result<(), Error> {
        let astray = self
            .root
            .as_deref()
            .filter(|root| held::is_astray(env, path, root));
        if astray.is_none() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::StartFailed,
            format!("`{member}`: {}", inside::told(path)),
        )
        .hint("remove the link, or write the path that it leads to; nothing was started")
        .file(path.display().to_string()))
    }

    /// Whether a file of variables is what was agreed to.
    fn check_held(&self, env: &Env, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let counts = |root: &PathBuf| held::is_of(env, path, root);
        let is_agreed = match &self.held {
            Some(held) => held.is(path, bytes),
            None => !self.root.as_ref().is_some_and(counts),
        };
        if is_agreed {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::StartFailed,
            format!("envFile `{}` is not what was agreed to", path.display()),
        )
        .hint("look at what changed, then decide again: `pillion trust`, or `pillion approve`")
        .file(path.display().to_string()))
    }
}

/// Prepares an entry for its start, once its secrets are found out. Reads `envFile` and certificates, may ask the login
/// shell, runs the helper for headers; starts nothing of the server.
pub(crate) async fn prepare(
    core: &Arc<Core>,
    entry: &ServerEntry,
    name: &ServerName,
    origin: &Origin,
) -> Result<Prepared, Error> {
    let mut veil = Veil::of(core, entry, &origin.base);
    let prepared = filled(core, entry, name, origin, &mut veil).await;
    prepared.map_err(|error| veil.error(error))
}

/// The same, with errors that name what references stood for.
async fn filled(
    core: &Arc<Core>,
    entry: &ServerEntry,
    name: &ServerName,
    origin: &Origin,
    veil: &mut Veil,
) -> Result<Prepared, Error> {
    let plain = |target: Target, notes: Vec<String>, veil: &Veil| Prepared {
        target,
        notes,
        address: None,
        helper: None,
        veil: veil.clone(),
    };
    if let Some(target) = in_host::target(core, name, entry) {
        return Ok(plain(target, Vec::new(), veil));
    }
    match (&entry.command, &entry.url) {
        (Some(command), None) => {
            let (target, notes) = local(core, entry, command, origin, veil).await?;
            Ok(plain(Target::Stdio(target), notes, veil))
        }
        (None, Some(url)) => remote(core, entry, name, url, origin, veil).await,
        _ => Err(Error::new(
            ErrorKind::StartFailed,
            "an entry needs `command` or `url`",
        )),
    }
}

async fn local(
    core: &Core,
    entry: &ServerEntry,
    command: &str,
    origin: &Origin,
    veil: &mut Veil,
) -> Result<(StdioTarget, Vec<String>), Error> {
    let (env, base, inherit) = (&core.env, origin.base.as_path(), origin.inherit());
    let process = |name: &str| core.reference(base, name);
    let mut expander = Expander::new(&process);
    let env_file = entry
        .env_file
        .as_ref()
        .map(|path| base.join(env.expand_tilde(&expander.text(path))));
    unset(expander)?;
    let from_file = match &env_file {
        Some(path) => {
            origin.check_inside(env, "envFile", path)?;
            let text = env_file::text(path).await?;
            origin.check_held(env, path, text.as_bytes())?;
            env_file::variables(path, &text)?
        }
        None => BTreeMap::new(),
    };

    // References see the variables of `envFile` too: it belongs to the entry.
    let both = |name: &str| {
        let own = from_file.get(name).cloned();
        own.or_else(|| core.reference(base, name))
    };
    *veil = Veil::new(entry, &both);
    let mut expander = Expander::new(&both);
    let command = expander.text(command);
    let args: Vec<OsString> = entry
        .args
        .iter()
        .flatten()
        .map(|argument| expander.text(argument).into())
        .collect();
    let own: Vec<(String, String)> = entry
        .env
        .iter()
        .flatten()
        .map(|(name, value)| (name.clone(), expander.text(value)))
        .collect();
    let cwd = entry
        .cwd
        .as_ref()
        .map(|cwd| base.join(env.expand_tilde(&expander.text(cwd))));
    unset(expander)?;
    if let Some(cwd) = &cwd {
        origin.check_inside(env, "cwd", cwd)?;
    }

    let cwd = match cwd {
        Some(cwd) if cwd.is_dir() => cwd,
        Some(cwd) => {
            return Err(Error::new(
                ErrorKind::StartFailed,
                format!("the working folder `{}` does not exist", cwd.display()),
            )
            .hint("create it, or correct `cwd` of the entry"));
        }
        // A home folder that does not exist (containers, service accounts) is no reason to start nothing.
        None if base.is_dir() => base.to_owned(),
        None => PathBuf::from("/"),
    };
    let mut notes = Vec::new();
    let mut variables: BTreeMap<OsString, OsString> = env.variables().iter().cloned().collect();
    if inherit == Inherit::Guarded {
        notes = withhold(&mut variables, &from_file, &own);
    }
    variables.extend(
        from_file
            .into_iter()
            .filter(|(name, _)| inherit == Inherit::All || !is_reviewed_only(name))
            .map(|(name, value)| (name.into(), value.into())),
    );
    variables.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));

    let command = resolve(&command, &cwd, env, &mut variables).await?;
    let target = StdioTarget {
        command,
        args,
        env: variables.into_iter().collect(),
        cwd,
        watchdog: env.watchdog(),
    };
    Ok((target, notes))
}

/// What an `envFile` of a project cannot set: it would choose what runs, and a review does not show its lines.
fn is_reviewed_only(name: &str) -> bool {
    secret::is_loader_name(name) || secret::is_finder_name(name)
}

/// Takes from the environment of a project's server what a project may not have unasked; says what, by name.
pub(super) fn withhold(
    variables: &mut BTreeMap<OsString, OsString>,
    from_file: &BTreeMap<String, String>,
    own: &[(String, String)],
) -> Vec<String> {
    let is_guarded = |name: &str| secret::is_credential_name(name) || secret::is_loader_name(name);
    let listed = |name: &str| own.iter().any(|(own, _)| own == name);
    let mut withheld: Vec<String> = Vec::new();
    variables.retain(|name, _| {
        let name = name.to_string_lossy();
        let kept = !is_guarded(&name);
        if !kept && !listed(&name) {
            withheld.push(name.into_owned());
        }
        kept
    });
    let refused = from_file
        .keys()
        .filter(|name| is_reviewed_only(name) && !listed(name));
    withheld.extend(refused.cloned());
    let passed: Vec<String> = own
        .iter()
        .map(|(name, _)| name.clone())
        .chain(from_file.keys().filter(|name| !is_reviewed_only(name)).cloned())
        .filter(|name| is_guarded(name))
        .collect();
    [
        ("withheld from its environment", withheld),
        ("passed on, since the entry lists it", passed),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(what, names)| format!("{what}: {}", names.join(", ")))
    .collect()
}

pub(super) fn unset(expander: Expander<'_>) -> Result<(), Error> {
    let names = expander.unset();
    if names.is_empty() {
        return Ok(());
    }
    let list = names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    // What has a source of its own, as `input:key`, is no variable.
    let variable = names
        .iter()
        .find(|name| !name.contains(':'))
        .map_or("NAME", String::as_str);
    let hint = format!("set it before Pillion starts, or write `${{{variable}:-default}}`");
    Err(Error::new(
        ErrorKind::UnsetVariable,
        format!("the variable {list} is not set"),
    )
    .hint(hint)
    .names(names))
}

/// The program to run, as an absolute path.
pub(super) async fn resolve(
    command: &str,
    cwd: &Path,
    env: &Env,
    variables: &mut BTreeMap<OsString, OsString>,
) -> Result<PathBuf, Error> {
    if command.contains('/') || (cfg!(windows) && command.contains('\\')) || command.starts_with('~') {
        let path = cwd.join(env.expand_tilde(command));
        if is_program(&path) {
            return Ok(path);
        }
        let problem = if path.is_dir() {
            "is a folder"
        } else if path.exists() {
            "is not executable"
        } else {
            "command not found: there is no such file"
        };
        return Err(Error::new(
            ErrorKind::CommandNotFound,
            format!("`{}` {problem}", path.display()),
        )
        .hint("correct `command` of the entry, or make the file executable"));
    }
    let key = OsString::from("PATH");
    let path = variables.get(&key).cloned().unwrap_or_default();
    if let Some(found) = search(command, &path) {
        return Ok(found);
    }
    // A host started from a desktop does not have the `PATH` that a person has in a terminal.
    if let Some(login) = login_shell::path(env).await
        && let Some(found) = search(command, &login)
    {
        tracing::info!("a command was found on the login shell's PATH");
        variables.insert(key, login);
        return Ok(found);
    }
    Err(not_found(command, &path, env))
}

fn not_found(command: &str, path: &std::ffi::OsStr, env: &Env) -> Error {
    let mut looked: Vec<String> = Vec::new();
    for folder in std::env::split_paths(path) {
        let folder = folder.display().to_string();
        if !looked.contains(&folder) {
            looked.push(folder);
        }
    }
    let proposed = version_manager_folders(env)
        .into_iter()
        .map(|folder| folder.join(command))
        .find(|path| is_program(path));
    let hint = match &proposed {
        None if command.contains(char::is_whitespace) => {
            "the command holds blanks: it is the program alone, and arguments belong into `args`".to_owned()
        }
        Some(path) => format!("write the absolute path as `command`: {}", path.display()),
        None => match command {
            "npx" | "node" | "npm" => "install Node.js, or write the absolute path as `command`".to_owned(),
            "uvx" | "uv" => "install uv, or write the absolute path as `command`".to_owned(),
            _ => "install it, or write the absolute path as `command`".to_owned(),
        },
    };
    let mut candidates: Vec<String> = proposed
        .into_iter()
        .map(|path| path.display().to_string())
        .collect();
    candidates.extend(looked.iter().cloned());
    let message = format!("command not found: `{command}` (looked in {})", looked.join(", "));
    Error::new(ErrorKind::CommandNotFound, message)
        .hint(hint)
        .candidates(candidates)
}

/// Where version managers and package managers put programs that a desktop's `PATH` lacks.
fn version_manager_folders(env: &Env) -> Vec<PathBuf> {
    let home = env.home();
    let fixed = [
        ".local/bin",
        ".volta/bin",
        ".asdf/shims",
        ".local/share/mise/shims",
        ".bun/bin",
        ".deno/bin",
        ".cargo/bin",
        ".pyenv/shims",
        ".nix-profile/bin",
        ".local/share/pnpm",
        "n/bin",
    ];
    let mut folders: Vec<PathBuf> = fixed.iter().map(|folder| home.join(folder)).collect();
    for (root, inside) in [
        (".nvm/versions/node", "bin"),
        (".local/share/fnm/node-versions", "installation/bin"),
        (".fnm/node-versions", "installation/bin"),
    ] {
        let mut versions: Vec<PathBuf> = std::fs::read_dir(home.join(root))
            .into_iter()
            .flatten()
            .flatten()
            .map(|version| version.path())
            .collect();
        versions.sort();
        folders.extend(versions.into_iter().rev().map(|version| version.join(inside)));
    }
    folders.extend(["/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/snap/bin"].map(PathBuf::from));
    folders
}

/// Where a command is on a `PATH`.
pub(crate) fn search(command: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(command))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else {
        return false;
    };
    #[cfg(unix)]
    let executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let executable = true;
    metadata.is_file() && executable
}

async fn remote(
    core: &Core,
    entry: &ServerEntry,
    name: &str,
    url: &str,
    origin: &Origin,
    veil: &Veil,
) -> Result<Prepared, Error> {
    let base = origin.base.as_path();
    let lookup = |name: &str| core.reference(base, name);
    let mut expander = Expander::new(&lookup);
    let url = expander.text(url);
    let named: Vec<(String, String)> = entry
        .headers
        .iter()
        .flatten()
        .map(|(name, value)| (name.clone(), expander.text(value)))
        .collect();
    let helper: Option<Vec<String>> = entry
        .headers_helper
        .as_ref()
        .map(|words| words.iter().map(|word| expander.text(word)).collect());
    unset(expander)?;
    let configured = validate::remote_url(&url)
        .map_err(|message| Error::new(ErrorKind::StartFailed, message).hint("correct `url` of the entry"))?;
    let (url, socket) = network::address(configured.clone());
    let network = Network::read(entry, socket.as_ref(), &lookup, &core.env, origin).await?;
    let mut headers = HeaderMap::new();
    for (name, value) in named {
        let bad = |what: &str| {
            Error::new(ErrorKind::StartFailed, format!("header `{name}`: {what}"))
                .hint("correct `headers` of the entry")
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("not a header name"))?;
        let mut value = HeaderValue::from_str(value.trim())
            .map_err(|_| bad("its value holds characters that no header may have"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    let flavour = match entry.transport {
        // Only an entry without `url` has the latter.
        None | Some(protocol::EntryTransport::Host) => Flavour::Auto,
        Some(protocol::EntryTransport::Http) => Flavour::Streamable,
        Some(protocol::EntryTransport::Sse) => Flavour::Sse,
    };
    let client = match network.is_usual() {
        true => core.client().clone(),
        false => network.client()?,
    };
    let helper = match helper {
        Some(words) => Some(Helper::start(words, veil, name, &configured, origin, &core.env).await?),
        None => None,
    };
    Ok(Prepared {
        target: Target::Http(HttpTarget {
            url,
            headers,
            flavour,
            client,
            tokens: None,
        }),
        notes: Vec::new(),
        address: Some(configured.to_string()),
        helper,
        veil: veil.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_launched_changes_the_digest() {
        let mut entry: ServerEntry = serde_json::from_value(json!({"command": "x"})).unwrap();
        let before = digest(&entry);
        entry.label = Some("Other".to_owned());
        entry.timeout_ms = Some(5000);
        assert_eq!(digest(&entry), before);
        entry.args = Some(vec!["-y".to_owned()]);
        assert_ne!(digest(&entry), before);
    }
}
