//! `mcp.lock.json`, beside the `mcp.json` it belongs to: which version of each package may start, and with which tools.
//!
//! It holds nothing of this machine, so that it travels with a repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::{Error, ErrorKind, ExactPackage, Layer, PackageManager, ToolDrift};
use serde::{Deserialize, Serialize};

use super::{Installed, Wish, installed, same, wish};
use crate::config::store::Readers;
use crate::limits;
use crate::server::Server;

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockFile {
    version: u32,
    #[serde(default)]
    pub servers: BTreeMap<String, Locked>,
}

/// One server's lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Locked {
    pub manager: PackageManager,
    pub package: String,
    /// What the entry asked for when it was locked.
    pub spec: String,
    pub version: String,
    pub integrity: String,
    /// Fingerprints of tools, where they were known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, String>>,
}

impl Locked {
    pub fn new(wish: &Wish, package: &ExactPackage, tools: Option<BTreeMap<String, String>>) -> Locked {
        Locked {
            manager: package.manager,
            package: package.name.clone(),
            spec: wish.spec.clone(),
            version: package.version.clone(),
            integrity: package.integrity.clone(),
            tools,
        }
    }

    pub fn exact(&self) -> ExactPackage {
        ExactPackage {
            manager: self.manager,
            name: self.package.clone(),
            version: self.version.clone(),
            integrity: self.integrity.clone(),
        }
    }

    /// Whether the entry still asks for what was locked.
    pub fn fits(&self, wish: &Wish) -> bool {
        self.manager == wish.manager && self.package == wish.name && self.spec == wish.spec
    }

    /// How the tools that are known differ from those that were locked.
    pub fn drift(&self, known: Option<&BTreeMap<String, String>>) -> BTreeMap<String, ToolDrift> {
        let (Some(locked), Some(known)) = (&self.tools, known) else {
            return BTreeMap::new();
        };
        let mut drift = BTreeMap::new();
        for (name, fingerprint) in known {
            match locked.get(name) {
                None => drift.insert(name.clone(), ToolDrift::Added),
                Some(old) if old != fingerprint => drift.insert(name.clone(), ToolDrift::Changed),
                Some(_) => None,
            };
        }
        for name in locked.keys().filter(|name| !known.contains_key(*name)) {
            drift.insert(name.clone(), ToolDrift::Removed);
        }
        drift
    }
}

/// The lock file of a server's entry; entries of hosts and packages have none.
pub(crate) fn path(server: &Server) -> Option<PathBuf> {
    let is_own = matches!(server.layer, Layer::User | Layer::Project);
    let file = server.file.as_deref().filter(|_| is_own)?;
    Some(file.with_file_name("mcp.lock.json"))
}

/// Reads a lock file; one that is not there locks nothing, one that cannot be read is an error.
pub(crate) fn read(path: &Path, root: Option<&Path>) -> Result<LockFile, Error> {
    let broken = |why: String| {
        mismatch(format!("the lock `{}` cannot be read: {why}", path.display()))
            .file(path.display().to_string())
            .hint("restore it from your repository, or delete it and lock again with `mcp.lock`")
    };
    if root.is_some_and(|root| files::leads_out(path, root)) {
        return Err(broken("it is a link that leads out of the project".to_owned()));
    }
    match files::read_text(path, limits::LOCK_FILE_BYTES) {
        Ok(None) => Ok(LockFile::default()),
        Ok(Some(text)) => match serde_json::from_str::<LockFile>(&text) {
            Ok(file) if file.version > 1 => Err(broken(format!(
                "it is of version {}, which this Pillion does not know",
                file.version
            ))),
            Ok(file) => Ok(file),
            Err(error) => Err(broken(error.to_string())),
        },
        Err(error) => Err(broken(error.to_string())),
    }
}

/// Changes a lock file under its lock. Blocks.
pub(crate) fn change(
    path: &Path,
    root: Option<&Path>,
    readers: Readers,
    change: impl FnOnce(&mut LockFile),
) -> Result<(), Error> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::WriteFailed, format!("`{}`: {error}", path.display()))
            .file(path.display().to_string())
    };
    let _lock = files::Lock::take(path, limits::LOCK_WAIT).map_err(failed)?;
    let mut file = read(path, root)?;
    let before = file.clone();
    change(&mut file);
    if file == before {
        return Ok(());
    }
    file.version = 1;
    let text = serde_json::to_string_pretty(&file).unwrap_or_default() + "\n";
    match readers {
        Readers::Person => files::write_private(path, text.as_bytes()),
        Readers::Everyone => files::write_shared(path, text.as_bytes()),
    }
    .map_err(failed)
}

/// How a start finds its package.
pub(crate) enum Prepared {
    /// As the entry says.
    Plain,
    /// From our own folder.
    Installed(Wish, Installed),
    /// `npx` or `uvx` may have to fetch it first.
    Cold(Wish),
}

/// Looks how a server starts; what is locked and differs does not start at all. Blocks on the disk.
pub(crate) fn prepare(server: &Server) -> Result<Prepared, Error> {
    let wished = wish(&server.entry());
    let locked = match path(server) {
        Some(path) => read(&path, server.root.as_deref()),
        None => Ok(LockFile::default()),
    };
    let Some(wished) = wished else {
        // A broken lock is no matter of servers that it could not name.
        let is_locked = locked.is_ok_and(|locked| locked.servers.contains_key(&*server.name));
        return match is_locked {
            true => Err(changed("is not started with `npx` or `uvx` any more")),
            false => Ok(Prepared::Plain),
        };
    };
    let here = installed(&server.core, &wished);
    let locked = locked?;
    let Some(locked) = locked.servers.get(&*server.name) else {
        return Ok(match here {
            Some(here) => Prepared::Installed(wished, here),
            None => Prepared::Cold(wished),
        });
    };
    if !locked.fits(&wished) {
        let what = format!("asks for `{}`, and `{}` is locked", wished.spec, locked.spec);
        return Err(changed(&what));
    }
    let exact = locked.exact();
    let Some(here) = here.filter(|here| here.package.version == exact.version) else {
        return Err(mismatch(format!(
            "the lock names `{} {}`, which is not fetched here",
            exact.name, exact.version
        ))
        .hint("`mcp.prefetch` fetches it"));
    };
    if !same(&here.package, &exact) {
        return Err(mismatch(format!(
            "what is fetched of `{} {}` has another integrity than the lock names",
            exact.name, exact.version
        ))
        .hint("`mcp.lock` shows the difference, `mcp.prefetch` fetches it again"));
    }
    let drift = locked.drift(server.core.pins.book(&server.digest).fingerprints().as_ref());
    let changed: Vec<&str> = drift
        .iter()
        .filter(|(_, drift)| **drift == ToolDrift::Changed)
        .map(|(name, _)| name.as_str())
        .collect();
    if !changed.is_empty() {
        return Err(mismatch(format!(
            "its tools are not those that were locked: {}",
            changed.join(", ")
        ))
        .hint("`mcp.tools.review` shows tools that changed; `mcp.lock` with action `update` locks them as they are"));
    }
    Ok(Prepared::Installed(wished, here))
}

fn changed(what: &str) -> Error {
    mismatch(format!("the entry {what}")).hint("`mcp.lock` with action `update` locks the entry as it is")
}

fn mismatch(message: String) -> Error {
    Error::new(ErrorKind::LockMismatch, message)
}
