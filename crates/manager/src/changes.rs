//! `mcp.changed`: at most one per name in 50 ms, the newest record, the reasons joined.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{ChangeReason, McpChanged, Notification, ServerName};

use crate::core::Core;
use crate::limits;
use crate::server::Server;

#[derive(Default)]
pub(crate) struct Changes {
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    by_name: BTreeMap<ServerName, Change>,
    /// The whole directory, not one server.
    everything: BTreeSet<ChangeReason>,
    scheduled: bool,
}

struct Change {
    /// `None`: the name is gone.
    server: Option<Arc<Server>>,
    reasons: BTreeSet<ChangeReason>,
}

impl Changes {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server changed.
    pub fn mark(&self, core: &Arc<Core>, server: &Arc<Server>, reason: ChangeReason) {
        if !server.is_effective() {
            return;
        }
        let mut pending = self.pending();
        let change = pending
            .by_name
            .entry(server.name.clone())
            .or_insert_with(|| Change {
                server: None,
                reasons: BTreeSet::new(),
            });
        change.server = Some(Arc::clone(server));
        change.reasons.insert(reason);
        schedule(core, &mut pending);
    }

    /// A name is gone.
    pub fn mark_gone(&self, core: &Arc<Core>, name: &ServerName) {
        let mut pending = self.pending();
        pending.by_name.insert(
            name.clone(),
            Change {
                server: None,
                reasons: BTreeSet::from([ChangeReason::Config]),
            },
        );
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
            let status = change
                .server
                .map(|server| server.status(core.next_sequence(&name), true));
            for directory in &directories {
                core.sink.notify(Notification::Changed(McpChanged {
                    directory: directory.clone(),
                    server: Some(name.clone()),
                    status: status.clone(),
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
