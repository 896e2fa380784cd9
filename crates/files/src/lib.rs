//! Files that several processes read and write: locks beside them, writes in one step, copies of what is broken.
//!
//! Everything here blocks on the disk: call it from a blocking thread.
//! It knows nothing of what the files hold.

mod fault;
mod lock;
mod stamp;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

pub use lock::Lock;
pub use stamp::{Stamp, stamp};

/// The bytes of a file, `None` when it does not exist. Larger than `limit` bytes is an error, and so is what is no file:
/// a pipe or a device would be waited for without end.
pub fn read_bytes(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // With room for all of it, one read finds the text and one its end.
    let length = file.metadata().map_or(0, |metadata| metadata.len().min(limit));
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {limit} bytes"),
        ));
    }
    Ok(Some(bytes))
}

/// The same as text; what is not UTF-8 is an error.
pub fn read_text(path: &Path, limit: u64) -> io::Result<Option<String>> {
    let Some(bytes) = read_bytes(path, limit)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8 at byte {at}"))
    })?;
    Ok(Some(text))
}

/// Writes a file for the person's eyes only, in one step: either the old text is there or the new one.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, 0o600, Durability::Synced)
}

/// The same for what can be found out again: in one step too, but a power cut may lose it.
pub fn write_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, 0o600, Durability::Loose)
}

/// Writes a file that others share, in one step. An old one keeps its mode.
pub fn write_shared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    let mode = fs::metadata(path).map_or(0o644, |metadata| {
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
    });
    #[cfg(not(unix))]
    let mode = 0o644;
    write(path, bytes, mode, Durability::Synced)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durability {
    Synced,
    Loose,
}

fn write(path: &Path, bytes: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    // A file that is a link stays one: what it points at is replaced.
    let target = target(path);
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mcp-").suffix(".tmp");
    fault::point("create")?;
    let mut file = builder.tempfile_in(folder).map_err(without_path)?;
    fault::point("write")?;
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.as_file_mut().write_all(first)?;
    fault::point("half")?;
    file.as_file_mut().write_all(second)?;
    #[cfg(unix)]
    file.as_file()
        .set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    #[cfg(not(unix))]
    let _ = mode;
    fault::point("sync")?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    fault::point("rename")?;
    file.persist(&target).map_err(|error| error.error)?;
    fault::point("folder")?;
    #[cfg(unix)]
    if durability == Durability::Synced
        && let Ok(folder) = File::open(folder)
    {
        // Best effort: some file systems refuse to sync a folder.
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Where a path leads in the end, also when nothing lies there yet.
pub fn target(path: &Path) -> PathBuf {
    /// As many as Linux follows.
    const LINKS: usize = 40;
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let mut target = path.to_owned();
    for _ in 0..LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("/")).join(next);
    }
    let folder = target.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, target.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => target,
    }
}

/// Whether a path below `root` (itself without links) leads out of it by a link, also when nothing lies there yet.
pub fn leads_out(path: &Path, root: &Path) -> bool {
    let mut below = path
        .ancestors()
        .take_while(|step| step.starts_with(root) && *step != root);
    !target(path).starts_with(root) || below.any(|step| !target(step).starts_with(root))
}

/// The error as the system gave it: the name of the file that lies there for a moment helps nobody.
fn without_path(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.source());
    let code = inner.and_then(|inner| inner.downcast_ref::<io::Error>()?.raw_os_error());
    code.map_or(error, io::Error::from_raw_os_error)
}

/// Takes the rights of others on a file or folder away; the old mode, where there was something to take.
pub fn keep_private(path: &Path) -> io::Result<Option<u32>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let Ok(metadata) = fs::metadata(path) else {
            return Ok(None);
        };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 == 0 {
            return Ok(None);
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
        Ok(Some(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        Ok(None)
    }
}

/// Creates a folder for the person only.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Puts one copy of a broken file's bytes beside it, unless the same bytes lie there already. `now` (epoch ms) names the copy.
pub fn set_aside(path: &Path, bytes: &[u8], now: u64) -> Option<PathBuf> {
    let folder = path.parent()?;
    let prefix = format!("{}.corrupt-", path.file_name()?.to_str()?);
    for sibling in fs::read_dir(folder).ok()?.flatten() {
        let is_copy = sibling
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(&prefix));
        if is_copy && fs::read(sibling.path()).is_ok_and(|copy| copy == bytes) {
            return Some(sibling.path());
        }
    }
    let copy = folder.join(format!("{prefix}{now}"));
    write_private(&copy, bytes).ok()?;
    Some(copy)
}
