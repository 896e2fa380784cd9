//! What the `envFile` of an entry holds, where that is a file of a project: it changes with a pull and decides what runs,
//! so it belongs to what a person agrees to.

use std::path::{Path, PathBuf};

use protocol::ServerEntry;

use crate::config::expand::{self, Expander};
use crate::config::file;
use crate::config::inside::plain;
use crate::env::Env;
use crate::limits;

/// The content of one such file, as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The project whose file it is.
    pub root: PathBuf,
    /// The file, as it is written in the entry.
    path: PathBuf,
    digest: String,
    stamp: Option<files::Stamp>,
}

impl Held {
    /// Reads what belongs to an entry; `None` where that is no file of this project. Blocks on the disk.
    pub fn read(env: &Env, entry: &ServerEntry, base: &Path, root: &Path) -> Option<Held> {
        let written = entry.env_file.as_deref()?;
        // What these stand for is known after a start only; a start refuses what was not read here.
        let is_known = |(name, _): &(&str, Option<&str>)| expand::source(name).is_none();
        if !expand::references(written).iter().all(is_known) {
            return None;
        }
        let lookup = |name: &str| env.variable(name);
        let mut expander = Expander::new(&lookup);
        let path = base.join(env.expand_tilde(&expander.text(written)));
        if !expander.unset().is_empty() || !is_of(env, &path, root) {
            return None;
        }
        let stamp = files::stamp(&path);
        let digest = match is_astray(env, &path, root) {
            true => "link".to_owned(),
            false => match files::read_bytes(&path, limits::ENV_FILE_BYTES) {
                Ok(Some(bytes)) => file::strong_digest(&bytes),
                Ok(None) => "missing".to_owned(),
                Err(_) => "unreadable".to_owned(),
            },
        };
        Some(Held {
            root: root.to_owned(),
            path,
            digest,
            stamp,
        })
    }

    /// The same in the first of several projects whose file it is.
    pub fn find<'r>(
        env: &Env,
        entry: &ServerEntry,
        base: &Path,
        roots: impl IntoIterator<Item = &'r PathBuf>,
    ) -> Option<Held> {
        let mut roots = roots.into_iter();
        roots.find_map(|root| Held::read(env, entry, base, root))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether the file on the disk may differ from what was read.
    pub fn outdated(&self) -> bool {
        files::stamp(&self.path) != self.stamp
    }

    /// Whether this is what was read.
    pub fn is(&self, path: &Path, bytes: &[u8]) -> bool {
        self.path == path && self.digest == file::strong_digest(bytes)
    }
}

/// Whether a path is written as a file that changes with this project: in its folder, or in the repository around it.
///
/// The disk is not asked: what is written as outside may be on a network mount.
pub(crate) fn is_of(env: &Env, path: &Path, root: &Path) -> bool {
    written(env, path).starts_with(repository(root))
}

/// Whether a path that is written as inside of a project is not.
pub(crate) fn is_astray(env: &Env, path: &Path, root: &Path) -> bool {
    let written = written(env, path);
    let leads_out = || files::leads_out(&written, root) || !files::target(path).starts_with(root);
    written.starts_with(root) && leads_out()
}

/// A path as it is written, with the home folder's real one, as the folders of projects have it.
fn written(env: &Env, path: &Path) -> PathBuf {
    let home = env.home();
    match path.strip_prefix(home) {
        Ok(rest) => plain(&files::target(home).join(rest)),
        Err(_) => plain(path),
    }
}

/// The folder that a pull changes.
fn repository(root: &Path) -> &Path {
    let mut around = root.ancestors();
    around.find(|folder| folder.join(".git").exists()).unwrap_or(root)
}
