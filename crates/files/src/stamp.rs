//! Noticing that a file has changed without reading it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// What makes a change of a file likely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

/// The stamp of a file as it is now; `None` when there is none.
pub fn stamp(path: &Path) -> Option<Stamp> {
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
