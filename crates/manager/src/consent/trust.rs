//! `trust.json`: which entries of which project were trusted, by digest. It lies outside the projects it speaks of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::{Error, ErrorKind, TrustState};
use serde::{Deserialize, Serialize};

use super::agreed::Agreed;
use crate::config::file;
use crate::{env, limits};

/// One trusted directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trusted {
    pub granted_at: u64,
    /// By layer (and package) and name.
    pub entries: BTreeMap<String, Agreed>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Text {
    version: u32,
    directories: BTreeMap<PathBuf, Trusted>,
}

/// The file as it was read last.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustFile {
    path: PathBuf,
    stamp: Option<files::Stamp>,
    directories: BTreeMap<PathBuf, Trusted>,
}

impl TrustFile {
    /// Reads the file. What does not parse trusts nothing.
    pub fn read(path: &Path) -> TrustFile {
        let stamp = files::stamp(path);
        let directories = read(path).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the file does not read; nothing is trusted");
            BTreeMap::new()
        });
        TrustFile {
            path: path.to_owned(),
            stamp,
            directories,
        }
    }

    pub fn outdated(&self) -> bool {
        files::stamp(&self.path) != self.stamp
    }

    /// What of a directory was trusted.
    pub fn of(&self, root: &Path) -> Option<&Trusted> {
        self.directories.get(root)
    }

    /// Whether an entry may run as it stands.
    pub fn trusts(&self, root: &Path, key: &str, digest: &str) -> bool {
        self.of(root)
            .and_then(|trusted| trusted.entries.get(key))
            .is_some_and(|entry| entry.digest == digest)
    }

    /// How trust in a directory stands that has these entries now, by key and digest.
    pub fn state<'k>(
        &self,
        root: &Path,
        entries: impl IntoIterator<Item = (&'k str, &'k str)>,
    ) -> TrustState {
        let mut entries = entries.into_iter().peekable();
        if entries.peek().is_none() {
            return TrustState::NothingToTrust;
        }
        if self.of(root).is_none() {
            return TrustState::Untrusted;
        }
        if entries.all(|(key, digest)| self.trusts(root, key, digest)) {
            TrustState::Trusted
        } else {
            TrustState::Changed
        }
    }
}

fn read(path: &Path) -> std::io::Result<BTreeMap<PathBuf, Trusted>> {
    let Some(text) = files::read_text(path, limits::CONFIG_FILE_BYTES)? else {
        return Ok(BTreeMap::new());
    };
    match serde_json::from_str::<Text>(&text) {
        Ok(text) => Ok(text.directories),
        Err(error) => {
            files::set_aside(path, text.as_bytes(), env::now());
            Err(error.into())
        }
    }
}

/// Changes what is trusted of a directory. Blocks on the lock and on the disk.
pub(crate) fn change(
    path: &Path,
    root: &Path,
    change: impl FnOnce(Option<Trusted>) -> Option<Trusted>,
) -> Result<(), Error> {
    let write = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            files::create_private_dir(folder)?;
        }
        let _lock = files::Lock::take(path, limits::LOCK_WAIT)?;
        // A file that does not read is set aside by now, and trusted nothing.
        let mut directories = read(path).unwrap_or_default();
        let before = directories.remove(root);
        if let Some(trusted) = change(before) {
            directories.insert(root.to_owned(), trusted);
        }
        let text = Text {
            version: 1,
            directories,
        };
        files::write_private(path, &serde_json::to_vec_pretty(&text)?)
    };
    write().map_err(|error| {
        Error::new(
            ErrorKind::WriteFailed,
            format!("cannot write `{}`: {error}", path.display()),
        )
        .hint("check that the folder exists and may be written; nothing was changed")
        .file(path.display().to_string())
    })
}

/// The digest of everything there is to trust in a directory.
pub(crate) fn revision<'k>(entries: impl IntoIterator<Item = (&'k str, &'k str)>) -> String {
    let list: Vec<_> = entries.into_iter().collect();
    file::strong_digest(serde_json::json!(list).to_string().as_bytes())
}
