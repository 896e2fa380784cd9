//! The gate: what others asked for waits here for a person, and what was refused stays refused.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstObject;
use protocol::{Error, ErrorKind, ServerEntry};
use serde_json::{Value, json};

use super::Gate;
use super::held::Held;
use super::ledger::{self, Action, Ledger, Place, Request};
use super::review;
use crate::config::members;
use crate::config::store::{self, Readers};
use crate::limits;

/// What stands between a place and its start, trust apart. `modified`: when its file was written.
pub(crate) fn gate(
    ledger: &Ledger,
    place: &Place,
    entry: Option<(&ServerEntry, Option<&Held>)>,
    modified: u64,
    now: u64,
) -> Gate {
    if let Some(request) = ledger.requests.get(place) {
        return if request.is_over(now) {
            Gate::Refused
        } else {
            Gate::Pending {
                expires_at: request.expires_at,
            }
        };
    }
    if ledger.tombstones.contains_key(place) {
        return Gate::Refused;
    }
    // Somebody changed in a file what a person had approved.
    if let (Some(approved), Some((entry, held))) = (ledger.approved.get(place), entry)
        && approved.digest != review::digest(entry, held)
    {
        let expires_at = modified + limits::REQUEST_LIFE_MS;
        return if now < expires_at {
            Gate::Pending { expires_at }
        } else {
            Gate::Refused
        };
    }
    Gate::Open
}

/// The file that counts the requests of all processes.
fn budget_file(user_file: &Path) -> PathBuf {
    user_file.with_file_name("mcp-pending-budget.json")
}

fn budget_failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::WriteFailed,
        format!("cannot write `{}`: {error}", path.display()),
    )
    .hint("check that the folder exists and may be written; nothing was changed")
    .file(path.display().to_string())
}

/// Changes the ledger while no other process does, lapsed requests turned into tombstones, and counts what is left.
///
/// Blocks on locks and on the disk.
pub(crate) fn change<T>(
    user_file: &Path,
    now: u64,
    change: impl FnOnce(&CstObject, &Ledger) -> Result<T, Error>,
) -> Result<T, Error> {
    let budget = budget_file(user_file);
    let failed = |error: std::io::Error| budget_failed(&budget, &error);
    if let Some(folder) = user_file.parent() {
        files::create_private_dir(folder).map_err(failed)?;
    }
    let _lock = files::Lock::take(&budget, limits::LOCK_WAIT).map_err(failed)?;
    let (outcome, after) = store::edit(user_file, Readers::Person, |whole| {
        for (place, request) in Ledger::of(whole).requests {
            if request.is_over(now) {
                ledger::put_request(whole, &place, None);
                ledger::put_tombstone(whole, &place, Some(now));
            }
        }
        let outcome = change(whole, &Ledger::of(whole))?;
        Ok((outcome, Ledger::of(whole)))
    })?;
    let requests: Vec<Value> = after
        .requests
        .iter()
        .map(|(place, request)| json!({"layer": place.layer, "name": place.name, "expiresAt": request.expires_at}))
        .collect();
    let text = json!({"version": 1, "limit": limits::REQUESTS, "requests": requests});
    files::write_private(&budget, text.to_string().as_bytes()).map_err(failed)?;
    Ok(outcome)
}

/// Requests that are put at once: all of them or none.
pub(crate) fn submit(user_file: &Path, now: u64, requests: &[(Place, Request)]) -> Result<(), Error> {
    for (place, request) in requests {
        let text = serde_json::to_string(request).unwrap_or_default();
        if text.len() > limits::REQUEST_BYTES {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "the request for `{}` is larger than a person can review",
                    place.name
                ),
            )
            .limit(limits::REQUEST_BYTES as u64));
        }
    }
    change(user_file, now, |whole, ledger| {
        let others = ledger
            .requests
            .keys()
            .filter(|place| !requests.iter().any(|(wanted, _)| wanted == *place))
            .count();
        if others + requests.len() > limits::REQUESTS {
            return Err(Error::new(
                ErrorKind::TooManyPending,
                format!("{} requests wait for a decision already", ledger.requests.len()),
            )
            .limit(limits::REQUESTS as u64)
            .hint("ask the person to decide: `mcp.pending`, or `pillion approve`"));
        }
        for (place, request) in requests {
            ledger::put_request(whole, place, Some(request));
        }
        Ok(())
    })
}

/// A request as it is kept.
pub(crate) fn request(action: Action, requested_by: &str, now: u64) -> Request {
    Request {
        action,
        requested_by: Some(requested_by.to_owned()),
        requested_at: now,
        expires_at: now + limits::REQUEST_LIFE_MS,
    }
}

/// The entry of a name as it stands in a file that is about to be changed.
pub(crate) fn stored(whole: &CstObject, name: &str) -> Option<ServerEntry> {
    let value = store::get(whole, &["servers", name])?;
    let (known, _) = members::known_members(&value);
    serde_json::from_value(known).ok()
}

/// The entry that an action would leave; `None` when there would be none.
pub(crate) fn proposed(action: &Action, stored: Option<&ServerEntry>) -> Option<ServerEntry> {
    match action {
        Action::Write(entry) => Some((**entry).clone()),
        Action::Remove => stored.cloned(),
        Action::Switch(enabled) => stored.map(|stored| ServerEntry {
            enabled: Some(*enabled),
            ..stored.clone()
        }),
    }
}

/// The error of a decision about something that is not there any more, or not like this.
pub(crate) fn stale(name: &str) -> Error {
    Error::new(
        ErrorKind::StaleReview,
        format!("the request for `{name}` is not the one that was shown"),
    )
    .hint("look at `mcp.pending` again and decide again")
    .server(name)
}
