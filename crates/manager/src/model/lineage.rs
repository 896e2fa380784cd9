//! What each entry launched when its tools were listed last.
//!
//! Accepted definitions belong to what is launched ([`super::pins`]). A new token, another flag or another version is
//! another launch of the same server, though: what was accepted goes on with it, or each change of an entry would accept
//! unseen what its tools say now. Another program, or another host, is another server, and begins anew.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::ServerEntry;
use serde::{Deserialize, Serialize};

use crate::config::file::strong_digest;
use crate::consent::ledger::Place;
use crate::install;
use crate::limits;

/// One entry, and what it launches.
#[derive(Clone, Debug)]
pub(crate) struct Lineage {
    pub place: Place,
    /// Digest of everything that is launched.
    pub launch: String,
    /// What stays the same while it is the same server.
    pub program: String,
}

/// Digest of the program or the host of an entry: its arguments, variables, headers and version may change.
pub(crate) fn program(entry: &ServerEntry) -> String {
    let program = match (&entry.url, install::wish(entry)) {
        (Some(url), _) => url::Url::parse(url)
            .ok()
            .filter(url::Url::has_host)
            .map_or_else(|| url.to_string(), |url| url.origin().ascii_serialization()),
        (None, Some(wish)) => format!("{}:{}", wish.manager.as_str(), wish.name),
        (None, None) => {
            let command = entry.command.as_deref().unwrap_or_default();
            command.rsplit(['/', '\\']).next().unwrap_or(command).to_owned()
        }
    };
    strong_digest(program.as_bytes())
}

/// The file that remembers it, for all processes.
pub(crate) struct Lineages {
    file: PathBuf,
    /// As it was read or written last by this process.
    known: Mutex<Option<Text>>,
}

/// Launches by the shelf of a place and its name.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct Text {
    version: u32,
    entries: BTreeMap<String, BTreeMap<String, Launched>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Launched {
    launch: String,
    program: String,
}

impl Text {
    fn get(&self, place: &Place) -> Option<&Launched> {
        self.entries.get(&place.shelf())?.get(&place.name)
    }

    fn put(&mut self, place: &Place, launched: Option<Launched>) {
        let shelf = self.entries.entry(place.shelf()).or_default();
        match launched {
            Some(launched) => drop(shelf.insert(place.name.clone(), launched)),
            None => drop(shelf.remove(&place.name)),
        }
        self.entries.retain(|_, shelf| !shelf.is_empty());
    }
}

impl Lineages {
    pub fn new(file: PathBuf) -> Lineages {
        Lineages {
            file,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Text>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the same server launched before this. Blocks on the disk.
    pub fn before(&self, wanted: &Lineage) -> Option<String> {
        let text = self.read();
        let launched = text.get(&wanted.place)?;
        (launched.program == wanted.program && launched.launch != wanted.launch)
            .then(|| launched.launch.clone())
    }

    /// Remembers that the tools of a launch were looked at. Blocks on the disk when it is another one than before.
    pub fn note(&self, seen: &Lineage) {
        let launched = Launched {
            launch: seen.launch.clone(),
            program: seen.program.clone(),
        };
        let is_there = |text: &Text| text.get(&seen.place) == Some(&launched);
        if !self.known().as_ref().is_some_and(is_there) {
            self.change(|text| text.put(&seen.place, Some(launched)));
        }
    }

    /// The entry has another name from now on. Blocks on the disk.
    pub fn rename(&self, from: &Place, to: &Place) {
        self.change(|text| {
            let launched = text.get(from).cloned();
            text.put(from, None);
            text.put(to, launched);
        });
    }

    /// The person gave the entry up. Blocks on the disk.
    pub fn forget(&self, place: &Place) {
        self.change(|text| text.put(place, None));
    }

    /// What does not read is no lineage: what is launched then begins anew.
    fn read(&self) -> Text {
        match files::read_text(&self.file, limits::PINS_BYTES) {
            Ok(Some(text)) => serde_json::from_str(&text).unwrap_or_default(),
            Ok(None) => Text::default(),
            // Without a disk, what this process has seen is all there is.
            Err(_) => self.known().clone().unwrap_or_default(),
        }
    }

    /// Reads, changes and writes the file under its lock.
    fn change(&self, change: impl FnOnce(&mut Text)) {
        let ready = self.file.parent().map(files::create_private_dir).transpose();
        let lock = ready.and_then(|_| files::Lock::take(&self.file, limits::LOCK_WAIT));
        let before = self.read();
        let mut text = before.clone();
        text.version = 1;
        change(&mut text);
        if text.entries != before.entries {
            let json = serde_json::to_string(&text).unwrap_or_default();
            let written = lock.and_then(|_lock| files::write_cache(&self.file, json.as_bytes()));
            if let Err(error) = written {
                tracing::warn!(%error, "what an entry launched could not be kept; it holds for this process");
            }
        }
        *self.known() = Some(text);
    }
}
