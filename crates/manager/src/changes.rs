//! `mcp.changed`: at most one per name in 50 ms, the newest record, the reasons joined.
//!
//! A name is looked up for each open directory when it is sent: another server may show under it there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use protocol::{ChangeReason, Dir, McpChanged, Notification, ServerName};

use crate::core::Core;
use crate::limits;
use crate::server::Server;

/// Finds the server that shows under a name in a directory, and whether it counts there.
pub(crate) type Lookup = Box<dyn Fn(&Dir, &str) -> Option<(Arc<Server>, bool)> + Send + Sync>;

#[derive(Default)]
pub(crate) struct Changes {
    lookup: OnceLock<Lookup>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    by_name: BTreeMap<ServerName, Change>,
    /// The whole directory, not one server.
    everything: BTreeSet<ChangeReason>,
    scheduled: bool,
}

#[derive(Default)]
struct Change {
    /// Servers whose own record changed: told where they show.
    servers: Vec<Arc<Server>>,
    /// Servers that came or went: whatever shows under the name now is told where they could show.
    came_or_went: Vec<Arc<Server>>,
    reasons: BTreeSet<ChangeReason>,
}

impl Changes {
    pub fn set_lookup(&self, lookup: Lookup) {
        // A manager sets it once.
        let _ = self.lookup.set(lookup);
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server changed.
    pub fn mark(&self, core: &Arc<Core>, server: &Arc<Server>, reason: ChangeReason) {
        let mut pending = self.pending();
        let change = pending.by_name.entry(server.name.clone()).or_default();
        if !change.servers.iter().any(|known| Arc::ptr_eq(known, server)) {
            change.servers.push(Arc::clone(server));
        }
        change.reasons.insert(reason);
        schedule(core, &mut pending);
    }

    /// A server came or went.
    pub fn mark_name(&self, core: &Arc<Core>, server: &Arc<Server>, reason: ChangeReason) {
        let mut pending = self.pending();
        let change = pending.by_name.entry(server.name.clone()).or_default();
        change.came_or_went.push(Arc::clone(server));
        change.reasons.insert(reason);
        schedule(core, &mut pending);
    }

    /// Something about the whole directory changed, such as a broken file.
    pub fn mark_all(&self, core: &Arc<Core>, reason: ChangeReason) {
        let mut pending = self.pending();
        pending.everything.insert(reason);
        schedule(core, &mut pending);
    }

    fn flush(&self, core: &Core) {
        let (by_name, everything) = {
            let mut pending = self.pending();
            pending.scheduled = false;
            (
                std::mem::take(&mut pending.by_name),
                std::mem::take(&mut pending.everything),
            )
        };
        let directories = core.open_directories();
        for (name, change) in by_name {
            for directory in &directories {
                let shown = self.lookup.get().and_then(|lookup| lookup(directory, &name));
                let is_changed = shown
                    .as_ref()
                    .is_some_and(|(shown, _)| change.servers.iter().any(|server| Arc::ptr_eq(server, shown)));
                let is_structural = change
                    .came_or_went
                    .iter()
                    .any(|server| server.directory.as_ref().is_none_or(|own| own == directory));
                if !is_changed && !is_structural {
                    continue;
                }
                core.sink.notify(Notification::Changed(McpChanged {
                    directory: directory.clone(),
                    server: Some(name.clone()),
                    status: shown.map(|(server, counts)| server.status(core.next_sequence(&name), counts)),
                    reasons: change.reasons.iter().cloned().collect(),
                }));
            }
        }
        if !everything.is_empty() {
            for directory in directories {
                let reasons = everything.iter().cloned().collect();
                core.sink.notify(Notification::Changed(McpChanged {
                    directory,
                    server: None,
                    status: None,
                    reasons,
                }));
            }
        }
    }
}

fn schedule(core: &Arc<Core>, pending: &mut Pending) {
    if pending.scheduled || core.closing.is_cancelled() {
        return;
    }
    pending.scheduled = true;
    let core = Arc::clone(core);
    tokio::spawn(async move {
        tokio::time::sleep(limits::CHANGED_DEBOUNCE).await;
        core.changes.flush(&core);
    });
}
