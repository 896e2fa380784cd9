//! The layers and what they come to: which servers there are, and which of two with the same name counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{HostLayer, Layer, ServerEntry, ServerName};

use super::file::ConfigFile;
use super::validate;
use crate::core::Core;
use crate::server::{NewServer, Server};

/// All configured servers, by layer and name.
pub(crate) struct Layers {
    book: Mutex<Book>,
}

struct Book {
    user: ConfigFile,
    host: Vec<HostLayer>,
    host_files: Vec<ConfigFile>,
    /// In the order in which they are shown.
    servers: Vec<Arc<Server>>,
}

/// What a reload did.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reloaded {
    pub added: Vec<ServerName>,
    pub removed: Vec<ServerName>,
    pub changed: Vec<ServerName>,
    pub unchanged: Vec<ServerName>,
}

/// One entry as a layer wants it.
struct Wanted {
    name: ServerName,
    layer: Layer,
    entry: ServerEntry,
    faults: Vec<String>,
}

/// Layers in the order in which a name is looked up.
const ORDER: [Layer; 2] = [Layer::User, Layer::Host];

impl Layers {
    pub fn new(core: &Core) -> Layers {
        let user = ConfigFile {
            path: user_file(core),
            ..ConfigFile::default()
        };
        Layers {
            book: Mutex::new(Book {
                user,
                host: Vec::new(),
                host_files: Vec::new(),
                servers: Vec::new(),
            }),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the entries that the host brings.
    pub fn set_host(&self, layers: Vec<HostLayer>) {
        self.book().host = layers;
    }

    /// Reads every file again and brings the servers in line. Nothing unchanged is touched.
    pub fn reload(&self, core: &Arc<Core>) -> Reloaded {
        let mut book = self.book();
        let before = book.user.fault.clone();
        book.user = ConfigFile::read(&user_file(core));
        if book.user.fault != before {
            core.changes.mark_all(core, protocol::ChangeReason::Config);
        }
        book.host_files = book
            .host
            .iter()
            .filter_map(|layer| layer.file.as_ref())
            .map(|path| ConfigFile::read(&core.env.expand_tilde(path)))
            .collect();
        let wanted = book.wanted();
        let reloaded = reconcile(core, &mut book.servers, wanted);
        drop(book);
        reloaded
    }

    /// Reads the files again if one of them may have changed.
    pub fn freshen(&self, core: &Arc<Core>) {
        let outdated = {
            let book = self.book();
            book.user.outdated() || book.host_files.iter().any(ConfigFile::outdated)
        };
        if outdated {
            self.reload(core);
        }
    }

    /// All servers, shadowed ones too, in the order they are shown.
    pub fn all(&self) -> Vec<Arc<Server>> {
        self.book().servers.clone()
    }

    /// The servers that count: one per name.
    pub fn effective(&self) -> Vec<Arc<Server>> {
        self.book()
            .servers
            .iter()
            .filter(|server| server.is_effective())
            .cloned()
            .collect()
    }

    /// The server that counts under a name.
    pub fn find(&self, name: &str) -> Option<Arc<Server>> {
        self.book()
            .servers
            .iter()
            .find(|server| &*server.name == name && server.is_effective())
            .cloned()
    }

    /// The server of a name in one layer.
    pub fn in_layer(&self, name: &str, layer: Layer) -> Option<Arc<Server>> {
        self.book()
            .servers
            .iter()
            .find(|server| &*server.name == name && server.layer == layer)
            .cloned()
    }

    /// The user's file as it was read last.
    pub fn user(&self) -> ConfigFile {
        self.book().user.clone()
    }

    /// Every file, with its layer.
    pub fn files(&self) -> Vec<(Layer, ConfigFile)> {
        let book = self.book();
        let host = book.host_files.iter().map(|file| (Layer::Host, file.clone()));
        std::iter::once((Layer::User, book.user.clone()))
            .chain(host)
            .collect()
    }
}

/// The user's `mcp.json`.
pub(crate) fn user_file(core: &Core) -> PathBuf {
    core.env.data_dir().join("mcp.json")
}

impl Book {
    fn wanted(&self) -> Vec<Wanted> {
        let mut wanted: Vec<Wanted> = from_file(&self.user, Layer::User).collect();
        for layer in &self.host {
            for (name, entry) in layer.entries.iter().flatten() {
                let value = serde_json::to_value(entry).unwrap_or_default();
                let faults = validate::problems(&value)
                    .into_iter()
                    .map(|problem| problem.message)
                    .collect();
                let source = entry
                    .source
                    .clone()
                    .or_else(|| Some(format!("host:{}", layer.label)));
                let entry = ServerEntry {
                    source,
                    ..entry.clone()
                };
                wanted.push(Wanted {
                    name: ServerName::from(name.as_str()),
                    layer: Layer::Host,
                    entry,
                    faults,
                });
            }
        }
        for file in &self.host_files {
            wanted.extend(from_file(file, Layer::Host));
        }
        wanted
    }
}

fn from_file(file: &ConfigFile, layer: Layer) -> impl Iterator<Item = Wanted> {
    file.entries.iter().map(move |entry| {
        let faults = entry.faults.iter().map(|fault| match fault.place {
            Some(place) => format!("{} (line {}, column {})", fault.message, place.line, place.column),
            None => fault.message.clone(),
        });
        Wanted {
            name: ServerName::from(entry.name.as_str()),
            layer,
            entry: entry.entry.clone(),
            faults: faults.collect(),
        }
    })
}

/// Brings the servers in line with what is wanted: what launches the same thing is kept, whatever else changed in it.
fn reconcile(core: &Arc<Core>, servers: &mut Vec<Arc<Server>>, wanted: Vec<Wanted>) -> Reloaded {
    let mut reloaded = Reloaded::default();
    let mut old: BTreeMap<(ServerName, Layer), Arc<Server>> = servers
        .drain(..)
        .map(|server| ((server.name.clone(), server.layer), server))
        .collect();
    for wanted in wanted {
        let key = (wanted.name.clone(), wanted.layer);
        // The first of two host layers with the same name counts.
        if servers
            .iter()
            .any(|server| server.name == key.0 && server.layer == key.1)
        {
            continue;
        }
        let digest = crate::server::launch::digest(&wanted.entry);
        match old.remove(&key) {
            Some(server) if server.digest == digest => {
                reloaded.unchanged.push(wanted.name);
                server.update_entry(wanted.entry, wanted.faults);
                servers.push(server);
            }
            known => {
                let is_new = known.is_none();
                if let Some(server) = known {
                    server.set_effective(false);
                    server.retire();
                }
                let base = core.env.home().to_owned();
                let Wanted {
                    name,
                    layer,
                    entry,
                    faults,
                } = wanted;
                let server = Server::new(
                    core,
                    NewServer {
                        name: name.clone(),
                        layer,
                        entry,
                        faults,
                        base,
                    },
                );
                if is_new {
                    reloaded.added.push(name)
                } else {
                    reloaded.changed.push(name)
                }
                servers.push(server);
            }
        }
    }
    for ((name, _), server) in old {
        server.set_effective(false);
        server.retire();
        reloaded.removed.push(name);
    }
    settle_precedence(servers);
    for name in reloaded.added.iter().chain(&reloaded.changed) {
        if let Some(server) = servers
            .iter()
            .find(|server| server.name == *name && server.is_effective())
        {
            server.changed(protocol::ChangeReason::Config);
        }
    }
    for name in &reloaded.removed {
        match servers
            .iter()
            .find(|server| server.name == *name && server.is_effective())
        {
            Some(lower) => lower.changed(protocol::ChangeReason::Config),
            None => core.changes.mark_gone(core, name),
        }
    }
    reloaded
}

/// Of several entries with one name the highest layer counts, a disabled one too.
fn settle_precedence(servers: &[Arc<Server>]) {
    for server in servers {
        let rank = |layer: Layer| ORDER.iter().position(|other| *other == layer);
        let is_hidden = servers
            .iter()
            .any(|other| other.name == server.name && rank(other.layer) < rank(server.layer));
        server.set_effective(!is_hidden);
    }
}
