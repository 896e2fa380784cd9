//! Results that were too large for a model: files for the person only, until their session or the connection ends.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::Session;

use crate::{env, limits};

/// The scheme and host of what the model reads a spilled result by.
const URI: &str = "pillion://result/";

/// The spilled results of one connection.
pub(crate) struct Spills {
    /// Holds one folder per process, each beside the lock of its owner.
    root: PathBuf,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    folder: Option<Folder>,
    entries: VecDeque<Entry>,
    bytes: u64,
    count: u64,
}

struct Folder {
    path: PathBuf,
    /// Held as long as the process lives: who can take it knows that the owner is gone.
    _lock: files::Lock,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub uri: String,
    pub path: PathBuf,
    pub mime_type: String,
    pub bytes: u64,
    session: Option<Session>,
}

impl Spills {
    pub fn new(root: PathBuf) -> Spills {
        Spills {
            root,
            book: Mutex::default(),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this session has results to read.
    pub fn any(&self, session: Option<&Session>) -> bool {
        self.book()
            .entries
            .iter()
            .any(|entry| entry.session.as_ref() == session)
    }

    /// Keeps a result; the oldest ones go when there are too many bytes. Blocks on the disk.
    pub fn keep(&self, session: Option<&Session>, bytes: &[u8], mime_type: &str) -> io::Result<Entry> {
        let size = bytes.len() as u64;
        if size > limits::SPILLED_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("larger than {} bytes", limits::SPILLED_BYTES),
            ));
        }
        let mut book = self.book();
        let folder = match &book.folder {
            Some(folder) => folder.path.clone(),
            None => {
                let folder = self.open()?;
                let path = folder.path.clone();
                book.folder = Some(folder);
                path
            }
        };
        while book.bytes + size > limits::SPILLED_BYTES {
            let Some(oldest) = book.entries.pop_front() else {
                break;
            };
            book.bytes -= oldest.bytes;
            // Gone is gone, whoever removed it.
            let _ = fs::remove_file(&oldest.path);
        }
        book.count += 1;
        let name = format!("{}.{}", book.count, extension(mime_type));
        let path = folder.join(&name);
        files::write_private(&path, bytes)?;
        let owner = folder
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let entry = Entry {
            uri: format!("{URI}{owner}/{name}"),
            path,
            mime_type: mime_type.to_owned(),
            bytes: size,
            session: session.cloned(),
        };
        book.bytes += size;
        book.entries.push_back(entry.clone());
        Ok(entry)
    }

    fn open(&self) -> io::Result<Folder> {
        files::create_private_dir(&self.root)?;
        self.sweep();
        let path = self
            .root
            .join(format!("{:x}-{:x}", env::now(), std::process::id()));
        let lock = files::Lock::take(&path, limits::LOCK_WAIT)?;
        files::create_private_dir(&path)?;
        Ok(Folder { path, _lock: lock })
    }

    /// Removes what processes left behind that ended without a word.
    fn sweep(&self) {
        for file in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let path = file.path();
            if path.is_dir() && files::Lock::take(&path, std::time::Duration::ZERO).is_ok() {
                let _ = fs::remove_dir_all(&path);
                let _ = fs::remove_file(path.with_extension("lock"));
            }
        }
    }

    /// The result of a URI, as far as this session may read it.
    pub fn find(&self, session: Option<&Session>, uri: &str) -> Option<Entry> {
        let book = self.book();
        let mut entries = book.entries.iter();
        entries
            .find(|entry| entry.uri == uri && entry.session.as_ref() == session)
            .cloned()
    }

    /// Drops the results of a session.
    pub fn end_session(&self, session: &Session) {
        let mut book = self.book();
        let (gone, kept) = std::mem::take(&mut book.entries)
            .into_iter()
            .partition::<VecDeque<_>, _>(|entry| entry.session.as_ref() == Some(session));
        book.entries = kept;
        for entry in gone {
            book.bytes -= entry.bytes;
            let _ = fs::remove_file(&entry.path);
        }
    }

    /// Drops everything: the connection ends.
    pub fn end(&self) {
        let mut book = self.book();
        book.entries.clear();
        book.bytes = 0;
        if let Some(folder) = book.folder.take() {
            let _ = fs::remove_dir_all(&folder.path);
            let _ = fs::remove_file(folder.path.with_extension("lock"));
        }
    }
}

fn extension(mime_type: &str) -> &str {
    match mime_type {
        "application/json" => "json",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        "application/pdf" => "pdf",
        mime_type if mime_type.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_live_as_long_as_their_session() {
        let folder = tempfile::tempdir().unwrap();
        let spills = Spills::new(folder.path().join("results"));
        let one = Session::from("one");
        let a = spills.keep(Some(&one), b"aaa", "text/plain").unwrap();
        let b = spills.keep(None, b"bbb", "image/png").unwrap();
        assert!(spills.find(None, &a.uri).is_none());
        assert_eq!(spills.find(Some(&one), &a.uri).unwrap().bytes, 3);
        spills.end_session(&one);
        assert!(!a.path.exists() && b.path.exists());
        // Another process neither takes what is in use …
        let other = Spills::new(folder.path().join("results"));
        other.keep(None, b"c", "text/plain").unwrap();
        assert!(b.path.exists());
        spills.end();
        other.end();
        assert_eq!(fs::read_dir(folder.path().join("results")).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_process_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("results/1-1");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("1.txt"), "x").unwrap();
        let spills = Spills::new(folder.path().join("results"));
        spills.keep(None, b"a", "text/plain").unwrap();
        assert!(!left.exists());
    }
}
