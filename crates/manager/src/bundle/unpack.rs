//! Unpacks a zip file that somebody else made: nothing outside of the folder, no links, nothing without end.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, Write as _};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};
use zip::ZipArchive;

use crate::config::file::hex;
use crate::limits;

/// The text of `manifest.json` at the root.
pub(crate) fn manifest(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut archive = open(BufReader::new(file))?;
    let mut entry = archive
        .by_name("manifest.json")
        .map_err(|_| "it has no `manifest.json`, so it is no MCP bundle".to_owned())?;
    let mut text = Vec::new();
    Read::by_ref(&mut entry)
        .take(limits::BUNDLE_MANIFEST_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| format!("`manifest.json`: {error}"))?;
    if text.len() as u64 > limits::BUNDLE_MANIFEST_BYTES {
        return Err("its `manifest.json` is too large".to_owned());
    }
    String::from_utf8(text).map_err(|_| "its `manifest.json` is no UTF-8".to_owned())
}

fn open<R: Read + Seek>(reader: R) -> Result<ZipArchive<R>, String> {
    let archive = ZipArchive::new(reader).map_err(|error| format!("it is no zip file: {error}"))?;
    if archive.len() > limits::BUNDLE_FILES {
        return Err(format!("it holds more than {} files", limits::BUNDLE_FILES));
    }
    Ok(archive)
}

/// Unpacks everything into an empty folder; answers the SHA-256 of the bytes that were unpacked.
pub(crate) fn unpack(path: &Path, folder: &Path) -> Result<String, String> {
    let io = |error: std::io::Error| error.to_string();
    // Read once into memory: what is hashed is what is unpacked.
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(io)?
        .take(limits::BUNDLE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > limits::BUNDLE_BYTES {
        return Err(format!("it is larger than {} MB", limits::BUNDLE_BYTES >> 20));
    }
    let digest = hex(&Sha256::digest(&bytes));
    let mut archive = open(std::io::Cursor::new(&bytes))?;
    let mut left = limits::BUNDLE_UNPACKED_BYTES;
    let mut seen = HashSet::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| error.to_string())?;
        let name = match entry.name() {
            Ok(name) => name.into_owned(),
            Err(error) => return Err(format!("a name in it cannot be read: {error}")),
        };
        let inside = inside(&name).ok_or_else(|| format!("`{name}` would lie outside of its folder"))?;
        let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
        if entry.is_symlink() || !matches!(kind, 0 | 0o100_000 | 0o040_000) {
            return Err(format!("`{name}` is a link or a device, which no bundle needs"));
        }
        if entry.is_dir() || kind == 0o040_000 {
            files::create_private_dir(&folder.join(inside)).map_err(io)?;
            continue;
        }
        // Two names that some file systems take for one would overwrite each other.
        if !seen.insert(inside.to_string_lossy().to_lowercase()) {
            return Err(format!("`{name}` is in it twice"));
        }
        let target = folder.join(&inside);
        if let Some(parent) = target.parent() {
            files::create_private_dir(parent).map_err(io)?;
        }
        let most = entry
            .compressed_size()
            .saturating_mul(limits::BUNDLE_RATIO)
            .max(limits::BUNDLE_RATIO_FROM)
            .min(left);
        let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let written =
            write(&mut entry, &target, most, is_program).map_err(|error| format!("`{name}`: {error}"))?;
        let Some(written) = written else {
            return Err(format!("`{name}` unpacks to more than a bundle may"));
        };
        left -= written;
    }
    Ok(digest)
}

/// Writes at most `most` bytes; `None` when there are more, whatever the headers said.
fn write(entry: &mut impl Read, target: &Path, most: u64, is_program: bool) -> std::io::Result<Option<u64>> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_program { 0o700 } else { 0o600 });
    #[cfg(not(unix))]
    let _ = is_program;
    let mut file = options.open(target)?;
    let written = std::io::copy(&mut entry.take(most.saturating_add(1)), &mut file)?;
    file.flush()?;
    Ok((written <= most).then_some(written))
}

/// A name in a zip file as a path below a folder, if it is one.
fn inside(name: &str) -> Option<PathBuf> {
    if name.contains(['\\', '\0', ':']) || name.starts_with('/') || name.len() > 1024 {
        return None;
    }
    let path = PathBuf::from(name);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_inside && path.components().next().is_some()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        for bad in ["../x", "a/../../x", "/etc/x", "C:/x", "a\\..\\x", "", "a/\0", "."] {
            assert_eq!(inside(bad), None, "{bad:?}");
        }
        assert_eq!(inside("a/b.js"), Some(PathBuf::from("a/b.js")));
        assert_eq!(inside("a/"), Some(PathBuf::from("a/")));
    }
}
