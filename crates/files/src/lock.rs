//! A lock beside a file. Replacing the file changes its inode, so the lock is a file of its own.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Held until it is dropped, or until the process ends.
pub struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Takes the lock `<path>.lock`, waiting for other holders at most this long.
    pub fn take(path: &Path, wait: Duration) -> io::Result<Lock> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            // Nobody makes a lock a link in good faith: it would put a file somewhere else.
            options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
        }
        let file = options.open(PathBuf::from(name))?;
        let started = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: Some(file) }),
                Err(TryLockError::WouldBlock) if started.elapsed() < wait => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(100));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "another process holds its lock",
                    ));
                }
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    tracing::warn!(%error, "this file system has no locks; going on without one");
                    return Ok(Lock { _file: None });
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}
