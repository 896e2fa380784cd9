//! Pillion's own files: who can read them, what is broken, what was left over, who holds a lock.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::code::Code;
use super::repair::Fix;
use super::{Found, Ground, caches, shown};
use crate::limits;

/// Files of the data folder that must hold a JSON object.
const DOCUMENTS: [&str; 4] = ["mcp-auth.json", "trust.json", "grants.json", "peers.json"];

pub(super) fn look(ground: &Ground) -> Vec<Found> {
    let mut found = configuration(ground);
    let folder = ground.core.env.data_dir();
    if !folder.is_dir() {
        return found;
    }
    if caches::is_writable(folder) {
        found.push(Found::new(
            Code::DataFolder,
            format!("data folder {}", shown(folder)),
        ));
    } else {
        let message = format!("the data folder `{}` cannot be written", shown(folder));
        found.push(
            Found::new(Code::FolderUnwritable, message)
                .hint("give it back to yourself: nothing that is changed, and no login, can be kept"),
        );
    }
    for name in DOCUMENTS {
        found.extend(document(&folder.join(name)));
    }
    // What is broken now says already where its copy is.
    let copies: BTreeSet<String> = found
        .iter()
        .flat_map(|one| one.finding.evidence.clone())
        .collect();
    for (path, metadata) in listed(folder) {
        found.extend(rights(&path, &metadata));
        if metadata.is_file() {
            found.extend(left(&path, &metadata, &copies));
        }
    }
    found.extend(future(folder));
    found
}

/// The configuration files, as they were read.
fn configuration(ground: &Ground) -> Vec<Found> {
    let faulty = ground.files.iter().filter_map(|file| {
        let fault = file.fault.as_ref()?;
        let place = match fault.place {
            Some(place) => format!("{}:{}:{}", shown(&file.path), place.line, place.column),
            None => shown(&file.path),
        };
        let copy = file.set_aside.as_ref();
        Some(
            Found::new(Code::FileBroken, format!("{place}: {}", fault.message))
                .shown_by(copy.map(|copy| format!("copy: {}", shown(copy))))
                .hint(match file.is_kept {
                    true => "correct the file; until then counts what it held before",
                    false => "correct the file; its servers do not exist until then",
                }),
        )
    });
    faulty.collect()
}

fn document(path: &Path) -> Option<Found> {
    let broken = |why: String| {
        Found::new(Code::FileBroken, format!("{}: {why}", shown(path)))
            .shown_by(copies(path))
            .hint("it counts as empty; correct it, or move it away")
    };
    match files::read_text(path, limits::CONFIG_FILE_BYTES) {
        Ok(None) => None,
        // The text itself may be a secret: only the place is told.
        Ok(Some(text)) => match serde_json::from_str::<serde_json::Map<String, Value>>(&text) {
            Ok(_) => None,
            Err(error) => Some(broken(format!(
                "it is no JSON object (line {}, column {})",
                error.line(),
                error.column()
            ))),
        },
        Err(error) => Some(broken(error.to_string())),
    }
}

/// The copies that were put beside a broken file.
fn copies(path: &Path) -> Vec<String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let prefix = format!("{name}.corrupt-");
    let beside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let copies = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    copies
        .map(|entry| format!("copy: {}", shown(&entry.path())))
        .collect()
}

/// The files of the data folder and of the folders that Pillion keeps there; packages are others' business.
fn listed(folder: &Path) -> Vec<(PathBuf, Metadata)> {
    let mut listed = Vec::new();
    let inside = ["", "pins", "cache", "results", "audit"].map(|name| folder.join(name));
    for folder in inside {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.take(limits::DOCTOR_FILES) {
            // Links are left alone, wherever they lead.
            if let Ok(metadata) = entry.metadata()
                && metadata.is_file()
            {
                listed.push((entry.path(), metadata));
            }
        }
    }
    listed.sort_by(|a, b| a.0.cmp(&b.0));
    listed
}

fn rights(path: &Path, metadata: &Metadata) -> Option<Found> {
    #[cfg(unix)]
    {
        let owner = std::os::unix::fs::MetadataExt::uid(metadata);
        let me = rustix::process::geteuid().as_raw();
        if owner != me {
            let message = format!("`{}` belongs to user {owner}, not to you", shown(path));
            return Some(Found::new(Code::FileOwner, message).hint(format!(
                "was Pillion run with sudo? sudo chown $(id -u) {}",
                shown(path)
            )));
        }
    }
    // What is deleted anyway needs no other mode.
    let is_leftover = path.extension().is_some_and(|extension| extension == "tmp");
    let mode = others_rights(path).filter(|_| metadata.is_file() && !is_leftover)?;
    let message = format!("others can read `{}`", shown(path));
    Some(
        Found::new(Code::FileMode, message)
            .shown_by([format!("mode {mode:o}")])
            .fix(Fix::KeepPrivate(path.to_owned())),
    )
}

/// The mode of a file on which others have rights.
pub(super) fn others_rights(path: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        let permissions = std::fs::metadata(path).ok()?.permissions();
        let mode = std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// What earlier runs left.
fn left(path: &Path, metadata: &Metadata, copies: &BTreeSet<String>) -> Option<Found> {
    let name = path.file_name()?.to_str()?;
    let age = metadata
        .modified()
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified).ok())
        .unwrap_or_default();
    if let Some((whole, _)) = name.split_once(".corrupt-") {
        let is_told = copies.iter().any(|told| told.contains(name));
        return (!is_told).then(|| {
            let message = format!("a copy of a `{whole}` that was broken lies in the data folder");
            Found::new(Code::FileSetAside, message)
                .shown_by([shown(path)])
                .hint("take over what you miss from it, then delete it")
        });
    }
    if name.starts_with(".mcp-") && name.ends_with(".tmp") && age > limits::LEFTOVER_AGE {
        let message = "a write was interrupted and left its file; the old text was kept".to_owned();
        return Some(
            Found::new(Code::FileLeftover, message)
                .shown_by([shown(path)])
                .fix(Fix::Remove(path.to_owned())),
        );
    }
    let locked = name.strip_suffix(".lock")?;
    let held = files::Lock::take(&path.with_file_name(locked), limits::LOCK_LOOK);
    held.is_err_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
        .then(|| {
            let seconds = limits::LOCK_LOOK.as_secs_f32();
            Found::new(
                Code::LockHeld,
                format!("another process has kept the lock of `{locked}` for {seconds} s"),
            )
            .shown_by([shown(path)])
            .hint("find it with `lsof` and end it if it hangs; writes fail meanwhile")
        })
}

/// Files that were written later than now: tokens would seem fresh, or over, when they are not.
fn future(folder: &Path) -> Option<Found> {
    let slack = Duration::from_millis(limits::CLOCK_SLACK_MS);
    let newest = listed(folder)
        .into_iter()
        .filter_map(|(path, metadata)| Some((metadata.modified().ok()?, path)))
        .max()?;
    let ahead = newest.0.duration_since(SystemTime::now() + slack).ok()?;
    let message = "the clock of this machine is behind: a file was written in the future".to_owned();
    Some(
        Found::new(Code::ClockBehind, message)
            .shown_by([format!(
                "{} is {} s ahead",
                shown(&newest.1),
                (ahead + slack).as_secs()
            )])
            .hint("set the clock; the ends of logins are judged by it"),
    )
}
