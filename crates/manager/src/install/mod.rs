//! Packages of `npx` and `uvx`, fetched once into a folder of our own, from where they start without a download.
//!
//! One folder per wish (`spec`): what is installed stands in its `installed.json`, which is written last. What an entry
//! would fetch is read from its arguments; whatever is not plain stays with `npx` and `uvx`.

pub(crate) mod lock;
mod npm;
mod run;
mod spec;
mod uv;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp::StdioTarget;
use protocol::{Error, ErrorKind, ExactPackage, PackageManager, ServerEntry};
use serde::{Deserialize, Serialize};

use crate::config::file::digest;
use crate::core::Core;
use crate::limits;
pub(crate) use spec::{Wish, wish};

/// What is installed for a wish.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Installed {
    version: u32,
    pub package: ExactPackage,
    /// The program to start, below the folder of the wish.
    program: PathBuf,
    /// Where the package lies, below the folder of the wish.
    folder: PathBuf,
}

/// Where packages are kept.
fn root(core: &Core) -> PathBuf {
    core.env.data_dir().join("install")
}

fn folder(core: &Core, wish: &Wish) -> PathBuf {
    let name: String = wish
        .name
        .chars()
        .map(|one| {
            if one.is_ascii_alphanumeric() || "._-".contains(one) {
                one
            } else {
                '_'
            }
        })
        .collect();
    let key = digest(format!("{:?}", wish.key()).as_bytes());
    root(core)
        .join(wish.manager.as_str())
        .join(format!("{}-{key}", name.trim_start_matches(['_', '.'])))
}

/// What is installed for a wish, if it is there to the end. Reads the disk.
pub(crate) fn installed(core: &Core, wish: &Wish) -> Option<Installed> {
    let folder = folder(core, wish);
    let text = files::read_text(&folder.join("installed.json"), limits::INSTALLED_BYTES).ok()??;
    let installed: Installed = serde_json::from_str(&text).ok()?;
    let is_inside = |path: &Path| {
        path.components()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    let is_there = is_inside(&installed.program) && folder.join(&installed.program).exists();
    is_there.then_some(installed)
}

/// Starts what is installed instead of `npx` or `uvx`, with the arguments that are the server's own.
pub(crate) fn divert(core: &Core, wish: &Wish, installed: &Installed, target: &mut StdioTarget) {
    target.command = folder(core, wish).join(&installed.program);
    // References are filled in already; what belonged to `npx` or `uvx` came first.
    target.args.drain(..wish.own_from.min(target.args.len()));
}

/// Why a package could not be fetched.
pub(crate) fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::StartFailed, message)
}

/// Fetches what an entry wishes for; `exact`: that version and no other integrity.
///
/// Several sidecars may want the same: one fetches, the others find it there.
pub(crate) async fn fetch(
    core: &Core,
    wish: &Wish,
    tools: &StdioTarget,
    exact: Option<&ExactPackage>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Installed, Error> {
    let folder = folder(core, wish);
    let at = folder.clone();
    let lock = tokio::task::spawn_blocking(move || {
        files::create_private_dir(&at)?;
        files::Lock::take(&at.join("installed.json"), limits::PREFETCH)
    });
    let io = |error: std::io::Error| failed(format!("`{}`: {error}", folder.display()));
    let _lock = lock
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(io)?;
    if let (Some(exact), Some(installed)) = (exact, installed(core, wish))
        && same(&installed.package, exact)
    {
        return Ok(installed);
    }
    // The old one stays until the new one is complete, and while a server may run from it.
    let name = format!("{:x}", crate::env::now());
    let place = folder.join(&name);
    let version = exact.map(|exact| exact.version.as_str());
    let outcome = match wish.manager {
        PackageManager::Npm => npm::install(wish, tools, &place, version, say).await,
        PackageManager::Uv => uv::install(wish, tools, &place, version, say).await,
    };
    let outcome = outcome.and_then(|(package, program)| match exact {
        Some(exact) if !same(&package, exact) => Err(failed(format!(
            "`{} {}` has another integrity than the lock names: {} instead of {}",
            package.name, package.version, package.integrity, exact.integrity
        ))
        .hint(
            "what the registry offers was changed since it was locked: do not start it before you know why",
        )),
        _ => Ok((package, program)),
    });
    let place_of_failure = place.clone();
    let (package, program) = match outcome {
        Ok(done) => done,
        Err(error) => {
            // Half an installation is of no use to anybody.
            let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(place_of_failure)).await;
            return Err(error);
        }
    };
    let installed = Installed {
        version: 1,
        package,
        program: Path::new(&name).join(program),
        folder: PathBuf::from(&name),
    };
    let written = installed.clone();
    let at = folder.clone();
    let write = tokio::task::spawn_blocking(move || {
        let before: Option<Installed> = files::read_text(&at.join("installed.json"), limits::INSTALLED_BYTES)
            .ok()
            .flatten()
            .and_then(|text| serde_json::from_str(&text).ok());
        let text = serde_json::to_vec_pretty(&written)?;
        files::write_private(&at.join("installed.json"), &text)?;
        prune(&at, [Some(written.folder), before.map(|before| before.folder)]);
        Ok(())
    });
    write
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(io)?;
    Ok(installed)
}

/// Removes versions that are neither this one nor the one before.
fn prune(folder: &Path, kept: [Option<PathBuf>; 2]) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = PathBuf::from(entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !kept.iter().flatten().any(|kept| *kept == name) {
            // The disk has room for it until next time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether two are the same version with the same content.
///
/// PyPI may gain files for other platforms after a release: those that were locked must still be there.
pub(crate) fn same(one: &ExactPackage, other: &ExactPackage) -> bool {
    let hashes = |package: &ExactPackage| -> Vec<String> {
        package.integrity.split_whitespace().map(str::to_owned).collect()
    };
    let (ours, theirs) = (hashes(one), hashes(other));
    one.manager == other.manager
        && one.name == other.name
        && one.version == other.version
        && (theirs.iter().all(|hash| ours.contains(hash)) || ours.iter().all(|hash| theirs.contains(hash)))
}

/// The entry reduced to what the package manager needs: the call, and the variables that configure the manager.
pub(crate) fn for_manager(entry: &ServerEntry) -> ServerEntry {
    let is_of_manager = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("npm_config_") || name.starts_with("uv_") || name.starts_with("pip_")
    };
    let env = entry.env.iter().flatten();
    let env = env.filter(|(name, _)| is_of_manager(name));
    // An administrator's rules look at the arguments too; those that read variables are the server's own business.
    let is_plain = |argument: &String| !argument.contains("${");
    let args = entry
        .args
        .iter()
        .flatten()
        .take_while(|argument| is_plain(argument));
    ServerEntry {
        command: entry.command.clone(),
        args: Some(args.cloned().collect()),
        env: Some(env.map(|(name, value)| (name.clone(), value.clone())).collect()),
        ..ServerEntry::default()
    }
}

/// The program of that name beside another one, else by the `PATH` that found it.
fn beside(target: &StdioTarget, name: &str) -> Result<PathBuf, Error> {
    let sibling = target.command.with_file_name(name);
    if sibling.is_file() {
        return Ok(sibling);
    }
    let path: OsString = target
        .env
        .iter()
        .find(|(key, _)| key == "PATH")
        .map(|(_, value)| value.clone())
        .unwrap_or_default();
    crate::server::launch::search(name, &path).ok_or_else(|| {
        Error::new(
            ErrorKind::CommandNotFound,
            format!("`{name}` is not beside `{}`", target.command.display()),
        )
        .hint(format!("install `{name}`"))
    })
}

/// Whether `npx` or `uvx` has the package already, so that a start is no download; `None` where that cannot be seen.
/// `target`: what would be started, whose variables say where the cache is.
pub(crate) fn is_cached(core: &Core, wish: &Wish, target: &StdioTarget) -> Option<bool> {
    let folder = |name: &str| {
        let given = target.env.iter().find(|(key, _)| key == name);
        given.map(|(_, value)| PathBuf::from(value))
    };
    match wish.manager {
        PackageManager::Npm => Some(npm::is_cached(core.env.home(), &folder, wish)),
        PackageManager::Uv => uv::is_cached(core.env.home(), &folder, wish),
    }
}
