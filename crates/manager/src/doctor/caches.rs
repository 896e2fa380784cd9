//! Caches of package managers, and room on the disk.

use std::path::{Path, PathBuf};

use super::code::Code;
use super::{Found, Ground, cache_folder, shown};
use crate::limits;

pub(super) fn look(ground: &Ground) -> Vec<Found> {
    let mut found = Vec::new();
    let env = &ground.core.env;
    let set = |name: &str| env.variable_os(name).map(PathBuf::from);
    let npm = set("npm_config_cache").or_else(|| set("NPM_CONFIG_CACHE"));
    let npm = npm.unwrap_or_else(|| env.home().join(".npm"));
    let uv = set("UV_CACHE_DIR").unwrap_or_else(|| cache_folder(&ground.core).join("uv"));
    for (name, folder) in [("npm", &npm), ("uv", &uv)] {
        if !folder.is_dir() {
            continue;
        }
        // `sudo npm` leaves parts of the cache to root.
        let parts = ["", "_cacache", "_npx", "_logs"].map(|part| folder.join(part));
        let bad: Vec<String> = parts
            .iter()
            .filter(|part| part.is_dir() && !is_writable(part))
            .map(|part| shown(part))
            .collect();
        if bad.is_empty() {
            let fact = Found::new(Code::Cache, format!("{name}: {}", shown(folder)));
            found.push(fact);
        } else {
            let problem = Found::new(
                Code::CacheUnwritable,
                format!("the cache of {name} cannot be written, so it can fetch nothing"),
            );
            found.push(problem.shown_by(bad).hint(format!(
                "give it back to yourself: sudo chown -R $(id -u) {}",
                shown(folder)
            )));
        }
    }
    for folder in [env.data_dir(), &npm, &uv] {
        if let Some(left) = room(folder).filter(|left| *left < limits::ROOM_BYTES) {
            let message = format!("{} MB are left where `{}` is", left >> 20, shown(folder));
            found.push(Found::new(Code::DiskFull, message).hint("make room: packages and files may not fit"));
        }
    }
    found
}

pub(super) fn is_writable(path: &Path) -> bool {
    #[cfg(unix)]
    {
        let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::access(path, wanted).is_ok()
    }
    #[cfg(not(unix))]
    {
        path.exists()
    }
}

/// Bytes that can still be written there.
fn room(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let stat = rustix::fs::statvfs(path).ok()?;
        // Some file systems of containers tell nothing.
        (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
