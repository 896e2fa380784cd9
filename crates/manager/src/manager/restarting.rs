//! Restarts that a person orders from a terminal: a note in the data folder, followed by every process that runs the server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{Dir, Error, ErrorKind, McpServerStatus, ServerName, State};
use serde::{Deserialize, Serialize};

use super::Manager;
use super::configuring::start_behind;
use crate::consent::ledger::Place;
use crate::core::Core;
use crate::{env, limits};

/// When a restart was ordered last, in epoch ms, by the shelf of a place and its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Orders {
    version: u32,
    ordered: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Orders {
    /// What does not read orders nothing.
    fn read(file: &Path) -> Orders {
        files::read_text(file, limits::CONFIG_FILE_BYTES)
            .ok()
            .flatten()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    fn of(&self, place: &Place) -> Option<u64> {
        self.ordered.get(&place.shelf())?.get(&place.name).copied()
    }
}

/// The file of the orders; it is looked at like any other file that others write.
pub(crate) fn file(core: &Core) -> PathBuf {
    core.env.data_dir().join("restarts.json")
}

/// The orders as this process knows them: only newer ones are followed.
pub(super) struct Known {
    stamp: Option<files::Stamp>,
    orders: Orders,
}

impl Known {
    /// What was ordered before this process began does not concern it.
    pub fn new(core: &Core) -> Known {
        let file = file(core);
        Known {
            stamp: files::stamp(&file),
            orders: Orders::read(&file),
        }
    }
}

impl Manager {
    /// Has every process of this data folder restart a server where it runs; starts nothing here.
    ///
    /// # Errors
    /// The server is not known here, or the note cannot be written.
    pub async fn order_restart(&self, directory: &Dir, name: &ServerName) -> Result<McpServerStatus, Error> {
        let server = self.server(directory, name)?;
        let (place, file) = (server.place(), file(&self.core));
        let written = tokio::task::spawn_blocking(move || {
            file.parent().map(files::create_private_dir).transpose()?;
            let _lock = files::Lock::take(&file, limits::LOCK_WAIT)?;
            let mut orders = Orders::read(&file);
            let before = orders.of(&place);
            let now = env::now();
            // Who runs it has followed by then.
            let forgotten = now.saturating_sub(limits::ORDER_LIFE_MS);
            for shelf in orders.ordered.values_mut() {
                shelf.retain(|_, at| *at > forgotten);
            }
            orders.ordered.retain(|_, shelf| !shelf.is_empty());
            orders.version = 1;
            // Another one than before, whatever the clock says.
            let at = before.map_or(now, |before| now.max(before + 1));
            orders
                .ordered
                .entry(place.shelf())
                .or_default()
                .insert(place.name, at);
            files::write_private(&file, serde_json::to_string(&orders)?.as_bytes())
        });
        match written.await {
            Ok(Ok(())) => Ok(self.record(&server, directory)),
            Ok(Err(error)) => Err(Error::new(
                ErrorKind::WriteFailed,
                format!("the restart could not be ordered: {error}"),
            )
            .hint("see that the data folder can be written")),
            // The process ends.
            Err(_) => Err(Error::new(ErrorKind::Cancelled, "cancelled")),
        }
    }

    /// Restarts what others ordered since the last look.
    pub(super) async fn follow_orders(&self, known: &mut Known) {
        let file = file(&self.core);
        let stamp = files::stamp(&file);
        if stamp == known.stamp {
            return;
        }
        known.stamp = stamp;
        let Ok(orders) = tokio::task::spawn_blocking(move || Orders::read(&file)).await else {
            return;
        };
        for server in self.layers.all() {
            let place = server.place();
            let is_new = orders
                .of(&place)
                .is_some_and(|at| known.orders.of(&place) != Some(at));
            if is_new && is_in_use(server.state_name()) {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    server.stop().await;
                    start_behind(&server);
                });
            }
        }
        known.orders = orders;
    }
}

/// Whether somebody in this process wanted it, with whatever success.
fn is_in_use(state: State) -> bool {
    matches!(
        state,
        State::Connecting | State::Ready | State::NeedsAuth | State::Error
    )
}
