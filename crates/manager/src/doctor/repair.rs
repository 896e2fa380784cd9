//! Repairs: small, reversible in effect, and of our own files only.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::limits;

#[derive(Clone, Debug)]
pub(super) enum Fix {
    /// Takes the rights of others away.
    KeepPrivate(PathBuf),
    /// Deletes a file of ours that nobody needs.
    Remove(PathBuf),
    /// Takes processes that are gone out of `peers.json`.
    ForgetPeers(PathBuf),
}

impl Fix {
    pub fn path(&self) -> &Path {
        match self {
            Fix::KeepPrivate(path) | Fix::Remove(path) | Fix::ForgetPeers(path) => path,
        }
    }

    pub fn message(&self) -> String {
        let path = self.path().display();
        match self {
            Fix::KeepPrivate(_) => format!("take the rights of others on `{path}` away"),
            Fix::Remove(_) => format!("delete `{path}`"),
            Fix::ForgetPeers(_) => format!("take what is gone out of `{path}`"),
        }
    }

    /// Blocks on the disk.
    pub fn apply(&self) -> io::Result<()> {
        match self {
            Fix::KeepPrivate(path) => {
                files::keep_private(path)?;
                match super::own_files::others_rights(path) {
                    None => Ok(()),
                    Some(mode) => Err(io::Error::other(format!("its mode is still {mode:o}"))),
                }
            }
            Fix::Remove(path) => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Fix::ForgetPeers(path) => {
                let _lock = files::Lock::take(path, limits::LOCK_WAIT)?;
                let text = files::read_text(path, limits::CONFIG_FILE_BYTES)?.unwrap_or_default();
                let mut document: Value = serde_json::from_str(&text)?;
                if let Some(endpoints) = document["endpoints"].as_array_mut() {
                    endpoints.retain(|endpoint| !super::network::is_gone(endpoint));
                    if endpoints.is_empty() {
                        return std::fs::remove_file(path);
                    }
                }
                files::write_private(path, &serde_json::to_vec_pretty(&document)?)
            }
        }
    }
}
