//! Which era a server spoke last time, so that its next start need not find out again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp::Era;
use serde::{Deserialize, Serialize};

use crate::config::file;
use crate::core::Core;
use crate::env;
use crate::limits;

/// The remembered verdicts of one data folder, by digest of what is launched.
pub(crate) struct EraCache {
    path: PathBuf,
    verdicts: OnceLock<Mutex<BTreeMap<String, Verdict>>>,
    unwritten: AtomicBool,
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
            unwritten: AtomicBool::new(false),
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

    /// Remembers a verdict. The file follows in a moment, once for all servers that started together.
    pub fn put(core: &Arc<Core>, digest: &str, era: Era) {
        let cache = &core.eras;
        let modern = era == Era::Modern;
        {
            let mut verdicts = cache.verdicts().lock().unwrap_or_else(PoisonError::into_inner);
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
        }
        if !cache.unwritten.swap(true, Ordering::Relaxed) {
            let core = Arc::clone(core);
            tokio::spawn(async move {
                tokio::time::sleep(limits::CACHE_DEBOUNCE).await;
                let _turn = core.caches.lock().await;
                core.eras.flush().await;
            });
        }
    }

    /// Writes what is not written yet.
    pub async fn flush(&self) {
        if !self.unwritten.swap(false, Ordering::Relaxed) {
            return;
        }
        let text = {
            let verdicts = self.verdicts().lock().unwrap_or_else(PoisonError::into_inner);
            serde_json::to_string(&*verdicts).unwrap_or_default()
        };
        let path = self.path.clone();
        let written = tokio::task::spawn_blocking(move || {
            let folder = path.parent().map(files::create_private_dir).transpose();
            folder.and_then(|_| files::write_cache(&path, text.as_bytes()))
        });
        if let Ok(Err(error)) = written.await {
            tracing::debug!(%error, "the eras of servers could not be kept");
        }
    }
}
