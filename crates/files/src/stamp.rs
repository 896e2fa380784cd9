//! Noticing that a file has changed without reading it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// What makes a change of a file likely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    /// When anything about it changed, in seconds and nanoseconds: `modified` can be set back.
    changed: (i64, i64),
    length: u64,
    inode: u64,
}

/// The stamp of a file as it is now; `None` when there is none.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let (inode, changed) = {
        use std::os::unix::fs::MetadataExt as _;
        (metadata.ino(), (metadata.ctime(), metadata.ctime_nsec()))
    };
    #[cfg(not(unix))]
    let (inode, changed) = (0, (0, 0));
    Some(Stamp {
        modified: metadata.modified().ok(),
        changed,
        length: metadata.len(),
        inode,
    })
}
