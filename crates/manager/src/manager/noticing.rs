//! Noticing what others wrote: a watch on the folders as a hint, a look at the stamps as the truth.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::Manager;
use crate::config::layers::{Layers, user_file};
use crate::consent::pending;
use crate::core::Core;
use crate::{env, limits};

impl Manager {
    /// Keeps the servers in line with the files while the connection lasts.
    pub(super) fn notice_changes(&self) {
        let (core, layers) = (Arc::downgrade(&self.core), Arc::downgrade(&self.layers));
        let closing = self.core.closing.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = notice(core, layers) => {}
            }
        });
    }
}

async fn notice(core: Weak<Core>, layers: Weak<Layers>) {
    let mut watch = Watch::new();
    let mut logins = core.upgrade().and_then(|core| core.authorizer().stamp());
    loop {
        let pause = {
            let (Some(core), Some(layers)) = (core.upgrade(), layers.upgrade()) else {
                return;
            };
            watch.follow(layers.watched(&core));
            let to_end = layers
                .next_end()
                .map(|end| Duration::from_millis(end.saturating_sub(env::now()) + 1));
            to_end.map_or(limits::WATCH_PAUSE, |to_end| to_end.min(limits::WATCH_PAUSE))
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = watch.news.notified() => tokio::time::sleep(limits::WATCH_DEBOUNCE).await,
        }
        let (Some(core), Some(layers)) = (core.upgrade(), layers.upgrade()) else {
            return;
        };
        let stamp = core.authorizer().stamp();
        if stamp != logins {
            logins = stamp;
            let manager = Manager {
                core: Arc::clone(&core),
                layers: Arc::clone(&layers),
            };
            manager.notice_logins();
        }
        let look = tokio::task::spawn_blocking(move || layers.is_outdated(&core).then_some((core, layers)));
        // Servers are made on the runtime, since each has a task.
        if let Ok(Some((core, layers))) = look.await {
            layers.reload(&core);
            drop_lapsed(&core, &layers).await;
        }
    }
}

/// What was asked for and lapsed is not kept.
async fn drop_lapsed(core: &Arc<Core>, layers: &Arc<Layers>) {
    let now = env::now();
    if !layers
        .ledger()
        .requests
        .values()
        .any(|request| request.is_over(now))
    {
        return;
    }
    let file = user_file(core);
    let dropped = tokio::task::spawn_blocking(move || pending::change(&file, now, |_, _| Ok(())));
    match dropped.await {
        Ok(Ok(())) => drop(layers.reload(core)),
        Ok(Err(error)) => tracing::warn!(%error, "a request that lapsed could not be dropped"),
        // The process ends.
        Err(_) => {}
    }
}

/// The watch of the operating system; without one (few instances, network mounts) the stamps alone must do.
struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: Vec<PathBuf>,
    news: Arc<Notify>,
}

impl Watch {
    fn new() -> Watch {
        let news = Arc::new(Notify::new());
        let told = Arc::clone(&news);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading is no change: without this our own look at a file would be news.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                told.notify_one();
            }
        });
        Watch {
            watcher: watcher
                .inspect_err(|error| tracing::info!(%error, "files cannot be watched; they are looked at"))
                .ok(),
            folders: Vec::new(),
            news,
        }
    }

    fn follow(&mut self, wanted: Vec<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.folders.iter().filter(|folder| !wanted.contains(folder)) {
            // It may not exist any more.
            let _ = watcher.unwatch(gone);
        }
        let mut followed = Vec::with_capacity(wanted.len());
        for folder in wanted {
            if self.folders.contains(&folder) || watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok() {
                followed.push(folder);
            }
        }
        self.folders = followed;
    }
}
