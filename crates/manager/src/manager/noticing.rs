//! Noticing what others wrote: a watch on the folders as a hint, a look at the stamps as the truth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::Manager;
use super::restarting::Known;
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
    let Some(news) = layers.upgrade().map(|layers| layers.news()) else {
        return;
    };
    let mut watch = Watch::new(Arc::clone(&news));
    let Some((mut logins, mut orders)) = core
        .upgrade()
        .map(|core| (core.authorizer().stamp(), Known::new(&core)))
    else {
        return;
    };
    loop {
        let pause = {
            let (Some(core), Some(layers)) = (core.upgrade(), layers.upgrade()) else {
                return;
            };
            let is_new = watch.follow(&layers.watched(&core));
            let to_end = layers
                .next_end()
                .map(|end| Duration::from_millis(end.saturating_sub(env::now()) + 1));
            match to_end {
                // What was changed before the watch began was not told.
                _ if is_new => limits::WATCH_DEBOUNCE,
                // The clock may be set meanwhile.
                Some(to_end) => to_end.min(limits::WATCH_PAUSE),
                None if watch.suffices => limits::WATCH_NET,
                None => limits::WATCH_PAUSE,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = news.notified() => tokio::time::sleep(limits::WATCH_DEBOUNCE).await,
        }
        let (Some(core), Some(layers)) = (core.upgrade(), layers.upgrade()) else {
            return;
        };
        let manager = Manager {
            core: Arc::clone(&core),
            layers: Arc::clone(&layers),
        };
        let stamp = core.authorizer().stamp();
        if stamp != logins {
            logins = stamp;
            manager.notice_logins();
        }
        manager.follow_orders(&mut orders).await;
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

/// The watch of the operating system.
struct Watch {
    watcher: Option<RecommendedWatcher>,
    /// With the device and inode that each had when its watch began: the watch is on them, not on the name.
    folders: BTreeMap<PathBuf, (u64, u64)>,
    /// Whether it tells of every change. Where not (few instances, network mounts) the stamps are looked at as well.
    suffices: bool,
}

impl Watch {
    fn new(news: Arc<Notify>) -> Watch {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading is no change: without this our own look at a file would be news.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                news.notify_one();
            }
        });
        Watch {
            watcher: watcher
                .inspect_err(|error| tracing::info!(%error, "files cannot be watched; they are looked at"))
                .ok(),
            folders: BTreeMap::new(),
            suffices: false,
        }
    }

    /// Watches these paths and no others; whether a folder is watched that was not before.
    fn follow(&mut self, paths: &[PathBuf]) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let wanted: BTreeMap<PathBuf, (u64, u64)> = paths
            .iter()
            .flat_map(|path| around(path))
            .filter_map(|folder| Some((identity(&folder)?, folder)))
            .map(|(identity, folder)| (folder, identity))
            .collect();
        self.folders.retain(|folder, identity| {
            let stays = wanted.get(folder) == Some(identity);
            if !stays {
                // It may not exist any more.
                let _ = watcher.unwatch(folder);
            }
            stays
        });
        let before = self.folders.len();
        self.suffices = wanted.keys().all(|folder| tells_all(folder));
        for (folder, identity) in wanted {
            if self.folders.contains_key(&folder) {
                continue;
            }
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => drop(self.folders.insert(folder, identity)),
                Err(_) => self.suffices = false,
            }
        }
        self.folders.len() > before
    }
}

/// The folders in which a change of this path shows: its own where it is one, the one it is in or will be in, and where a
/// link leads.
fn around(path: &Path) -> Vec<PathBuf> {
    let parent = path
        .ancestors()
        .skip(1)
        .find(|folder| folder.is_dir())
        .map(Path::to_owned);
    let target = path
        .is_symlink()
        .then(|| files::target(path).parent().map(Path::to_owned))
        .flatten();
    let own = path.is_dir().then(|| path.to_owned());
    [parent, target, own].into_iter().flatten().collect()
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(folder).ok()?;
    #[cfg(unix)]
    return Some((
        std::os::unix::fs::MetadataExt::dev(&metadata),
        std::os::unix::fs::MetadataExt::ino(&metadata),
    ));
    #[cfg(not(unix))]
    return Some((0, 0));
}

/// Whether every change in a folder comes through this kernel: file systems of this machine, not of a network or a host of
/// virtual machines.
#[cfg(target_os = "linux")]
fn tells_all(folder: &Path) -> bool {
    // `statfs(2)`: ext2 to ext4, XFS, Btrfs, F2FS, ZFS, bcachefs, tmpfs, ramfs and overlays of containers.
    const LOCAL: [u32; 9] = [
        0xEF53,
        0x5846_5342,
        0x9123_683E,
        0xF2F5_2010,
        0x2FC1_2FC1,
        0xCA45_1A4E,
        0x0102_1994,
        0x8584_58F6,
        0x794C_7630,
    ];
    rustix::fs::statfs(folder).is_ok_and(|system| LOCAL.contains(&(system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn tells_all(_: &Path) -> bool {
    false
}
