//! One `mcp.json`, as it stands on the disk: entries in file order, and everything that is wrong with them.

use std::io;
use std::path::{Path, PathBuf};

use protocol::ServerEntry;
use sha2::{Digest, Sha256};

use super::syntax::{Document, Place};
use super::validate;
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
    /// Members we do not know: JSON Pointers into the entry. They stay in the file.
    pub unknown: Vec<String>,
}

/// A file as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFile {
    pub path: PathBuf,
    pub exists: bool,
    /// Digest of the text.
    pub revision: Option<String>,
    pub entries: Vec<FileEntry>,
    /// The whole file cannot be used.
    pub fault: Option<Fault>,
    /// Where a copy of a broken text was put.
    pub set_aside: Option<PathBuf>,
    pub stamp: Option<files::Stamp>,
}

impl ConfigFile {
    /// Reads a file. A missing one is empty; a broken one has a fault and a copy set aside.
    pub fn read(path: &Path) -> ConfigFile {
        let stamp = files::stamp(path);
        let mut file = ConfigFile {
            path: path.to_owned(),
            exists: stamp.is_some(),
            stamp,
            ..ConfigFile::default()
        };
        let text = match read_text(path) {
            Ok(Some(text)) => text,
            Ok(None) => {
                file.exists = false;
                return file;
            }
            Err(error) => {
                file.fault = Some(Fault {
                    message: error.to_string(),
                    place: None,
                });
                return file;
            }
        };
        file.revision = Some(digest(text.as_bytes()));
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        match Document::parse(text) {
            Ok(document) => match validate::entries(&document) {
                Ok(entries) => file.entries = entries,
                Err(fault) => file.fault = Some(fault),
            },
            Err(fault) => {
                file.fault = Some(Fault {
                    message: fault.message,
                    place: Some(fault.place),
                });
                file.set_aside = files::set_aside(path, text.as_bytes(), env::now());
            }
        }
        file
    }

    /// Whether the file on the disk may differ from what was read.
    pub fn outdated(&self) -> bool {
        files::stamp(&self.path) != self.stamp
    }
}

/// The text of a file, `None` when it does not exist.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    files::read_text(path, limits::CONFIG_FILE_BYTES)
}

/// A digest of 16 hexadecimal digits, as used for revisions.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
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
        assert_eq!(file.entries[2].unknown, ["/colour"]);
        assert_eq!(file.entries[2].faults, []);
    }
}
