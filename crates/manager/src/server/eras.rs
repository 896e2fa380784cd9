//! Which era a server spoke last time, so that its next start need not find out again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp::Era;
use serde::{Deserialize, Serialize};

use crate::config::file;
use crate::env;
use crate::limits;

/// The remembered verdicts of one data folder, by digest of what is launched.
pub(crate) struct EraCache {
    path: PathBuf,
    verdicts: OnceLock<Mutex<BTreeMap<String, Verdict>>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Verdict {
    modern: bool,
    /// Epoch ms.
    at: u64,
}

impl EraCache {
    pub fn new(path: PathBuf) -> EraCache {
        EraCache {
            path,
            verdicts: OnceLock::new(),
        }
    }

    fn verdicts(&self) -> &Mutex<BTreeMap<String, Verdict>> {
        self.verdicts.get_or_init(|| {
            // A cache that cannot be read is an empty one.
            let text = file::read_text(&self.path).ok().flatten().unwrap_or_default();
            Mutex::new(serde_json::from_str(&text).unwrap_or_default())
        })
    }

    /// The era of last time, as long as it is to be believed.
    pub fn get(&self, digest: &str) -> Option<Era> {
        let verdicts = self.verdicts().lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = verdicts.get(digest)?;
        if verdict.modern {
            return Some(Era::Modern);
        }
        let age = env::now().saturating_sub(verdict.at);
        (age < limits::LEGACY_VERDICT_MS).then_some(Era::Legacy)
    }

    /// Forgets a verdict that did not hold.
    pub fn forget(self: &EraCache, digest: &str) {
        self.verdicts()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(digest);
    }

    /// Remembers a verdict; writes the file when it is news.
    pub fn put(&self, digest: &str, era: Era) {
        let modern = era == Era::Modern;
        let text = {
            let mut verdicts = self.verdicts().lock().unwrap_or_else(PoisonError::into_inner);
            let now = env::now();
            let known = verdicts.get(digest);
            if known.is_some_and(|known| {
                known.modern == modern && (modern || now.saturating_sub(known.at) < limits::LEGACY_VERDICT_MS)
            }) {
                return;
            }
            verdicts.insert(digest.to_owned(), Verdict { modern, at: now });
            verdicts.retain(|_, verdict| {
                verdict.modern || now.saturating_sub(verdict.at) < limits::LEGACY_VERDICT_MS
            });
            Arc::new(serde_json::to_string(&*verdicts).unwrap_or_default())
        };
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || {
            let folder = path.parent().map(files::create_private_dir).transpose();
            if let Err(error) = folder.and_then(|_| files::write_private(&path, text.as_bytes())) {
                tracing::debug!(%error, "the eras of servers could not be kept");
            }
        });
    }
}
