//! Remembered approvals of tools: for a session in memory, for a directory or always in `grants.json`.
//!
//! A grant holds for one launch of one server and one definition of one tool. When either changes it is void.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::{Error, ErrorKind, Grant, GrantDecision, GrantScope, Session};
use serde::{Deserialize, Serialize};

use crate::limits;

/// A grant, and what it holds for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub grant: Grant,
    /// Digest of what is launched.
    pub launch: String,
    /// Digest of the tool's definition.
    pub definition: String,
    /// The real path of its directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    #[serde(skip)]
    pub session: Option<Session>,
}

/// What is about to be called.
pub(crate) struct Wanted<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub launch: &'a str,
    pub definition: &'a str,
    pub root: &'a Path,
    pub session: Option<&'a Session>,
}

impl Remembered {
    fn fits(&self, wanted: &Wanted<'_>) -> bool {
        *self.grant.server == *wanted.server
            && self.grant.tool == wanted.tool
            && self.launch == wanted.launch
            && self.definition == wanted.definition
            && match self.grant.scope {
                GrantScope::Always => true,
                GrantScope::Directory => self.root.as_deref() == Some(wanted.root),
                GrantScope::Session => {
                    self.session.as_ref() == wanted.session && self.root.as_deref() == Some(wanted.root)
                }
            }
    }

    /// Whether it shows in a directory.
    fn concerns(&self, root: &Path) -> bool {
        self.root.as_deref().is_none_or(|own| own == root)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Text {
    version: u32,
    grants: Vec<Remembered>,
}

/// All grants. Reads and writes of the file block: call from a blocking thread.
pub(crate) struct Grants {
    file: PathBuf,
    of_sessions: Mutex<Vec<Remembered>>,
}

impl Grants {
    pub fn new(file: PathBuf) -> Grants {
        Grants {
            file,
            of_sessions: Mutex::default(),
        }
    }

    fn of_sessions(&self) -> MutexGuard<'_, Vec<Remembered>> {
        self.of_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was decided before. A no outweighs a yes.
    pub fn find(&self, wanted: &Wanted<'_>) -> Option<GrantDecision> {
        let mut decision = None;
        for remembered in self.of_sessions().iter().cloned().chain(self.read()) {
            if remembered.fits(wanted) {
                if remembered.grant.decision == GrantDecision::Deny {
                    return Some(GrantDecision::Deny);
                }
                decision = Some(GrantDecision::Allow);
            }
        }
        decision
    }

    pub fn remember(&self, remembered: Remembered) -> Result<(), Error> {
        if remembered.grant.scope == GrantScope::Session {
            self.of_sessions().push(remembered);
            return Ok(());
        }
        self.change(|grants| {
            grants.push(remembered);
            // The oldest go first; nobody looks through more.
            let too_many = grants.len().saturating_sub(limits::GRANTS);
            grants.drain(..too_many);
        })
    }

    /// Those that concern a directory.
    pub fn list(&self, root: &Path) -> Vec<Grant> {
        let sessions = self.of_sessions().clone();
        let all = self.read().into_iter().chain(sessions);
        let mut grants: Vec<Grant> = all
            .filter(|remembered| remembered.concerns(root))
            .map(|remembered| remembered.grant)
            .collect();
        grants.truncate(limits::GRANTS);
        grants
    }

    pub fn revoke(&self, ids: &[String]) -> Result<(), Error> {
        let is_kept = |remembered: &Remembered| !ids.contains(&remembered.grant.id);
        self.of_sessions().retain(is_kept);
        if self.read().iter().all(is_kept) {
            return Ok(());
        }
        self.change(|grants| grants.retain(is_kept))
    }

    pub fn end_session(&self, session: &Session) {
        self.of_sessions()
            .retain(|remembered| remembered.session.as_ref() != Some(session));
    }

    /// What does not read grants nothing.
    fn read(&self) -> Vec<Remembered> {
        let text = files::read_text(&self.file, limits::CONFIG_FILE_BYTES)
            .ok()
            .flatten();
        text.and_then(|text| serde_json::from_str::<Text>(&text).ok())
            .map(|text| text.grants)
            .unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Remembered>)) -> Result<(), Error> {
        let write = || -> std::io::Result<()> {
            if let Some(folder) = self.file.parent() {
                files::create_private_dir(folder)?;
            }
            let _lock = files::Lock::take(&self.file, limits::LOCK_WAIT)?;
            let mut grants = self.read();
            change(&mut grants);
            let text = Text { version: 1, grants };
            files::write_private(&self.file, &serde_json::to_vec_pretty(&text)?)
        };
        write().map_err(|error| {
            Error::new(
                ErrorKind::WriteFailed,
                format!("cannot write `{}`: {error}", self.file.display()),
            )
            .hint("check that the folder exists and may be written")
            .file(self.file.display().to_string())
        })
    }
}
