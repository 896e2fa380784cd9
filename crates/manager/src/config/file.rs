//! One `mcp.json`, as it stands on the disk: entries in file order, and everything that is wrong with them.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use protocol::ServerEntry;
use sha2::{Digest, Sha256};

use super::syntax::{Document, Place};
use super::validate;
use crate::env;
use crate::limits;

/// What makes a change of a file likely, without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

/// The stamp of a file as it is now; `None` when there is none.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some(Stamp {
        modified: metadata.modified().ok(),
        length: metadata.len(),
        inode,
    })
}

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
    pub stamp: Option<Stamp>,
}

impl ConfigFile {
    /// Reads a file. A missing one is empty; a broken one has a fault and a copy set aside.
    pub fn read(path: &Path) -> ConfigFile {
        let stamp = stamp(path);
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
                file.set_aside = set_aside(path, text);
            }
        }
        file
    }

    /// Whether the file on the disk may differ from what was read.
    pub fn outdated(&self) -> bool {
        stamp(&self.path) != self.stamp
    }
}

/// The text of a file, `None` when it does not exist.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(limits::CONFIG_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits::CONFIG_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {} bytes", limits::CONFIG_FILE_BYTES),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8 at byte {at}"))
    })?;
    Ok(Some(text))
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

/// Puts one copy of a broken text beside its file, unless the same text lies there already.
fn set_aside(path: &Path, text: &str) -> Option<PathBuf> {
    let folder = path.parent()?;
    let prefix = format!("{}.corrupt-", path.file_name()?.to_str()?);
    for sibling in fs::read_dir(folder).ok()?.flatten() {
        let is_copy = sibling
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(&prefix));
        if is_copy && fs::read_to_string(sibling.path()).is_ok_and(|copy| copy == text) {
            return Some(sibling.path());
        }
    }
    let copy = folder.join(format!("{prefix}{}", env::now()));
    super::store::write_private(&copy, text.as_bytes()).ok()?;
    Some(copy)
}

#[cfg(test)]
mod tests {
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
