//! One `mcp.json`, as it stands on the disk: entries in file order, and everything that is wrong with them.
//!
//! What a broken text held when it was read last goes on counting while we run ([`ConfigFile::after`]): a slip in an
//! editor, or half of a write, neither ends servers nor switches on what was off.

use std::path::{Path, PathBuf};

use protocol::ServerEntry;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::entries;
use super::members::Unknown;
use super::profiles::Profiles;
use super::syntax::{self, Document, Place};
use crate::env;
use crate::limits;

/// A fault with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub message: String,
    pub place: Option<Place>,
}

/// One entry of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileEntry {
    pub name: String,
    /// What could be read of it. With faults, this is for showing only.
    pub entry: ServerEntry,
    /// Why it cannot be started. Empty for a good entry.
    pub faults: Vec<Fault>,
    /// Members we do not know. They stay in the file.
    pub unknown: Vec<Unknown>,
}

/// A file as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFile {
    pub path: PathBuf,
    pub exists: bool,
    /// Digest of the text.
    pub revision: Option<String>,
    pub entries: Vec<FileEntry>,
    pub profiles: Profiles,
    /// The members beside `servers`.
    pub beside: Value,
    /// When it was written last, in epoch ms.
    pub modified: u64,
    /// Why the whole file cannot be used, or what of it was left out.
    pub fault: Option<Fault>,
    /// Nothing of the text can be used; the fault says why.
    pub is_broken: bool,
    /// It is there and holds nothing at all.
    pub is_empty: bool,
    /// What it holds is what it held before it broke.
    pub is_kept: bool,
    /// Where a copy of a broken text was put.
    pub set_aside: Option<PathBuf>,
    pub stamp: Option<files::Stamp>,
}

impl ConfigFile {
    /// Reads a file of the data folder. A missing one is empty; a broken one has a fault and a copy set aside.
    pub fn read(path: &Path) -> ConfigFile {
        keep_private(path);
        let (mut file, broken) = ConfigFile::parse(path);
        if let Some(bytes) = broken {
            file.set_aside = files::set_aside(path, &bytes, env::now());
        }
        file
    }

    /// This file, with what it held `before` where it is broken now. An empty text is one that somebody is writing.
    pub fn after(mut self, before: &ConfigFile) -> ConfigFile {
        let beside = before
            .beside
            .as_object()
            .is_some_and(|members| !members.is_empty());
        let held_something = !before.entries.is_empty() || beside;
        let is_emptied = self.is_empty && !self.is_broken;
        if before.path != self.path || !held_something || !(self.is_broken || is_emptied) {
            return self;
        }
        if is_emptied {
            self.is_broken = true;
            self.fault = Some(Fault {
                message: "the file is empty".to_owned(),
                place: None,
            });
        }
        self.is_kept = true;
        self.entries = before.entries.clone();
        if self.beside.is_null() {
            self.profiles = before.profiles.clone();
            self.beside = before.beside.clone();
        }
        self.modified = before.modified;
        self
    }

    /// Reads a file of a project: nothing is written beside it, and a link that leads out of the project is not followed,
    /// since what is wrong with a text is shown.
    pub fn read_shared(path: &Path, root: &Path) -> ConfigFile {
        if files::leads_out(path, root) {
            return ConfigFile {
                path: path.to_owned(),
                exists: true,
                stamp: files::stamp(path),
                fault: Some(Fault {
                    message: "it is a link that leads out of the project, and is not read".to_owned(),
                    place: None,
                }),
                ..ConfigFile::default()
            };
        }
        let mut file = ConfigFile::parse(path).0;
        // A project does not choose for the person.
        if file.profiles.default.take().is_some() {
            file.fault.get_or_insert(Fault {
                message: "`defaultProfile` belongs into your own mcp.json; here it does nothing".to_owned(),
                place: None,
            });
        }
        file
    }

    /// The file, and its bytes when they do not parse.
    fn parse(path: &Path) -> (ConfigFile, Option<Vec<u8>>) {
        let stamp = files::stamp(path);
        let mut file = ConfigFile {
            path: path.to_owned(),
            exists: stamp.is_some(),
            stamp,
            modified: modified(path),
            ..ConfigFile::default()
        };
        let text = match read_text(path) {
            Ok(Some(text)) => text,
            Ok(None) => {
                file.exists = false;
                return (file, None);
            }
            Err(unreadable) => {
                file.is_broken = true;
                file.fault = Some(unreadable.fault);
                return (file, unreadable.bytes);
            }
        };
        file.revision = Some(digest(text.as_bytes()));
        let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
        file.is_empty = body.trim().is_empty();
        match Document::parse(body) {
            Ok(document) => {
                match entries::entries(&document) {
                    Ok((entries, left_out)) => {
                        file.entries = entries;
                        file.fault = left_out;
                    }
                    Err(fault) => {
                        file.is_broken = true;
                        file.fault = Some(fault);
                    }
                }
                file.beside = document.value();
                let (profiles, left_out) = Profiles::read(&document, &file.beside);
                file.profiles = profiles;
                file.fault = file.fault.or(left_out);
                if let Some(members) = file.beside.as_object_mut() {
                    members.remove("servers");
                }
            }
            Err(fault) => {
                file.is_broken = true;
                file.fault = Some(Fault {
                    message: fault.message,
                    place: Some(fault.place),
                });
                return (file, Some(text.into_bytes()));
            }
        }
        (file, None)
    }

    /// Whether the file on the disk may differ from what was read.
    pub fn outdated(&self) -> bool {
        files::stamp(&self.path) != self.stamp
    }
}

/// A file that cannot be read as text.
pub(crate) struct Unreadable {
    pub fault: Fault,
    /// What stands there, as far as it could be read.
    pub bytes: Option<Vec<u8>>,
}

/// The text of a file, `None` when it does not exist.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, Unreadable> {
    let bytes = files::read_bytes(path, limits::CONFIG_FILE_BYTES).map_err(|error| Unreadable {
        fault: Fault {
            message: format!("it cannot be read: {error}"),
            place: None,
        },
        bytes: None,
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        let message = match is_utf16 {
            true => "it is saved as UTF-16: save it as UTF-8",
            false => "this is no UTF-8: save the file as UTF-8",
        };
        let place = syntax::place(&String::from_utf8_lossy(&bytes[..good]), good);
        Unreadable {
            fault: Fault {
                message: message.to_owned(),
                place: Some(place),
            },
            bytes: Some(bytes),
        }
    })
}

/// Takes the rights of others on a file or folder of the person's away. What there was to take is told and logged.
pub(crate) fn keep_private(path: &Path) -> Option<String> {
    let shown = path.display();
    let told = match files::keep_private(path) {
        Ok(None) => return None,
        Ok(Some(mode)) => format!("others could read `{shown}` (mode {mode:o}); now only you can"),
        Err(error) => format!("others can read `{shown}`, and that cannot be changed: {error}"),
    };
    tracing::warn!("{told}");
    Some(told)
}

/// A digest of 16 hexadecimal digits, as used for revisions.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
}

/// A digest that nobody can make two texts for: what a person agreed to is known by it.
pub(crate) fn strong_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn modified(path: &Path) -> u64 {
    let modified = std::fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok();
    modified
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_millis() as u64)
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::validate;
    use super::*;

    #[test]
    fn a_broken_file_is_kept_and_copied_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, "{ \"servers\": { \"a\": }").unwrap();
        let first = ConfigFile::read(&path);
        assert_eq!(
            first.fault.as_ref().unwrap().place,
            Some(Place { line: 1, column: 21 })
        );
        let second = ConfigFile::read(&path);
        assert_eq!(first.set_aside, second.set_aside);
        assert!(first.set_aside.unwrap().exists());
        assert!(path.exists());
    }

    proptest::proptest! {
        /// Whatever a repository brings: no panic, and nothing that a record could not hold.
        #[test]
        fn any_text_is_survived(text in "(\\PC|[\\[\\]{}:,\"/*\\\\\n0-9]|\"servers\"|\"command\"|\"env\"|true|null){0,200}") {
            check_hostile(&text);
            check_hostile(&format!("{{\"servers\":{text}}}"));
            check_hostile(&format!("{{\"servers\":{{\"a\":{text}}}}}"));
        }
    }

    fn check_hostile(text: &str) {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let path = root.join("mcp.json");
        fs::write(&path, text).unwrap();
        let file = ConfigFile::read_shared(&path, &root);
        for entry in &file.entries {
            assert!(entry.name.chars().count() <= 200);
            let value = serde_json::to_value(&entry.entry).unwrap();
            assert!(!entry.faults.is_empty() || validate::problems(&value).is_empty());
        }
        crate::consent::ledger::Ledger::read(&file.beside);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }

    #[test]
    fn one_bad_entry_leaves_the_others_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(
            &path,
            "\u{feff}{\"servers\": {\n\"good\": {\"command\": \"x\"},\n\"bad\": {\"command\": \"x\", \"timeoutMs\": 5}, \"odd\": {\"url\": \"https://h/mcp\", \"colour\": 1}}}",
        )
        .unwrap();
        let file = ConfigFile::read(&path);
        assert_eq!(file.fault, None);
        assert_eq!(file.entries[0].faults, []);
        assert_eq!(file.entries[1].faults[0].place.unwrap().line, 3);
        assert!(
            file.entries[1].faults[0].message.contains("timeoutMs"),
            "{:?}",
            file.entries[1].faults
        );
        assert_eq!(file.entries[2].unknown[0].pointer, "/colour");
        assert_eq!(file.entries[2].faults, []);
    }
}
