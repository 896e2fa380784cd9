//! `mcp.edit`: the entry that a change makes of another, and what is checked of every entry before it is written.

use jsonc_parser::cst::CstObject;
use protocol::{Error, ErrorKind, Pointer, Revision, ServerEntry};
use serde_json::Value;

use crate::config::validate::Problem;
use crate::config::{file, members, merge, store, validate};
use crate::consent::held::Held;
use crate::consent::review;
use crate::env;
use crate::find::github;

/// One `mcp.edit`.
pub(super) struct Change {
    pub name: String,
    pub set: Option<ServerEntry>,
    pub unset: Vec<Pointer>,
    pub revision: Option<Revision>,
    /// What belongs to the entry of a project's file.
    pub held: Option<Held>,
}

/// The entry after the change.
pub(super) struct Changed {
    /// The digest of what stood there, as it would be agreed to.
    pub before: String,
    /// Members we do not know included.
    pub value: Value,
    pub entry: ServerEntry,
}

impl Change {
    pub fn entry(&self, whole: &CstObject) -> Result<Changed, Error> {
        let Some(stored) = store::get(whole, &["servers", &self.name]) else {
            return Err(Error::new(
                ErrorKind::TargetMismatch,
                format!("`{}` does not stand in its file any more", self.name),
            )
            .reason("unknown")
            .server(self.name.as_str()));
        };
        let (known, _) = members::known_members(&stored);
        let current: ServerEntry = serde_json::from_value(known).unwrap_or_default();
        let now = revision(&current);
        if self.revision.as_ref().is_some_and(|wanted| *wanted != now) {
            return Err(Error::new(
                ErrorKind::StaleRevision,
                format!("`{}` was changed since it was read", self.name),
            )
            .hint("read it again with `mcp.config`")
            .revision(now));
        }
        let mut value = merge::merged(&stored, self.set.as_ref(), &self.unset)?;
        value["updatedAt"] = env::now().into();
        let (known, _) = members::known_members(&value);
        check_problems(&validate::problems(&known), "/set")?;
        let entry = serde_json::from_value(known)
            .map_err(|error| Error::new(ErrorKind::InvalidParams, error.to_string()).path("/set"))?;
        Ok(Changed {
            before: review::digest(&current, self.held.as_ref()),
            value,
            entry,
        })
    }
}

/// The digest of an entry as it stands in its file.
pub(super) fn revision(entry: &ServerEntry) -> Revision {
    let text = serde_json::to_string(entry).unwrap_or_default();
    Revision::from(file::digest(text.as_bytes()))
}

/// A command that is only a guess is neither written nor tried before a person said so or changed it.
pub(super) fn check_looked_at(entry: &ServerEntry, accepted: Option<bool>) -> Result<(), Error> {
    match github::guessed_command(entry) {
        Some(command) if accepted != Some(true) => Err(Error::new(
            ErrorKind::InvalidParams,
            format!("`{command}` is a guess from the repository's name and is unverified"),
        )
        .path("/acceptUnverified")
        .hint("compare it with the repository's README, then change the command or set `acceptUnverified: true`")),
        _ => Ok(()),
    }
}

pub(super) fn check_entry(entry: &ServerEntry, at: &str) -> Result<(), Error> {
    let value = serde_json::to_value(entry).unwrap_or_default();
    check_problems(&validate::problems(&value), at)
}

fn check_problems(problems: &[Problem], at: &str) -> Result<(), Error> {
    let Some(problem) = problems.first() else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidParams, problem.message.clone())
        .path(format!("{at}{}", problem.pointer()))
        .expected("an entry as docs/configuration.md describes it"))
}
