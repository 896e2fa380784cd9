//! Changes to the configuration that a person orders: they act at once. What others ask for goes to `gating`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonc_parser::cst::CstObject;
use protocol::{
    Dir, Error, ErrorKind, Layer, McpAdd, McpConfig, McpConfigResult, McpEdit, McpEnable, McpReload,
    McpReloadResult, McpRemove, McpRemoveResult, McpServerEntry, PendingStatus, Pointer, Scope, ServerEntry,
    ServerName, Tier, Written,
};

use serde_json::Value;

use super::Manager;
use super::consenting::{agreed, project_key};
use super::editing::{Change, Changed, check_entry, check_looked_at, revision};
use crate::config::layers::{project_file, user_file};
use crate::config::store::{self, Readers};
use crate::config::{merge, profiles, secret};
use crate::consent::Gate;
use crate::consent::agreed::Agreed;
use crate::consent::ledger::{self, Action, Place};
use crate::consent::review;
use crate::env;
use crate::find::github;
use crate::server::Server;
use crate::sink::RequestContext;

/// A file that entries are written to.
pub(super) struct Home {
    pub path: PathBuf,
    pub readers: Readers,
    pub place: Place,
}

impl Manager {
    /// Where an entry of this name stands or would stand.
    pub(super) fn home(&self, root: &Path, layer: Layer, name: &str) -> Home {
        let name = name.to_owned();
        match layer {
            Layer::Project => Home {
                path: project_file(root),
                readers: Readers::Everyone,
                place: Place {
                    layer,
                    root: Some(root.to_owned()),
                    name,
                },
            },
            _ => Home {
                path: user_file(&self.core),
                readers: Readers::Person,
                place: Place::user(&name),
            },
        }
    }

    /// `mcp.add`: writes an entry, and starts it unless told otherwise.
    pub async fn add(&self, request: &RequestContext, params: McpAdd) -> Result<Written, Error> {
        let root = self.root(&params.directory)?;
        let mut entry = params.entry;
        check_entry(&entry, "/entry")?;
        merge::check_no_mask(&entry)?;
        check_looked_at(&entry, params.accept_unverified)?;
        if let Some(source) = &mut entry.source {
            *source = github::confirmed_source(source).to_owned();
        }
        self.layers.freshen(&self.core);
        let layer = match params.scope {
            Some(Scope::Project) => Layer::Project,
            Some(Scope::User) | None => Layer::User,
        };
        let home = self.home(&root, layer, &params.name);
        let old = self.layers.in_layer(&root, &params.name, layer);
        let replace = params.replace == Some(true);
        // A tombstone is no entry: its name may be asked for again.
        let taken = old
            .as_ref()
            .filter(|old| !old.is_empty || old.gate() != Gate::Refused);
        if let Some(taken) = taken.filter(|_| !replace) {
            let label = taken.entry().label.clone();
            return Err(name_taken(&params.name, label.as_deref(), layer, "/name"));
        }
        if let Some(old) = &old {
            // A variable or header that was a secret is one in the new entry, too.
            let is_there = |mark: &str| serde_json::json!(entry).pointer(mark).is_some();
            let marks = old.entry().secrets.clone().unwrap_or_default();
            let marks = marks.iter().map(ToString::to_string);
            let marks: Vec<String> = marks
                .filter(|mark| !mark.starts_with("/args/") && is_there(mark))
                .collect();
            secret::mark(&mut entry, marks);
        }
        let now = env::now();
        entry.created_at.get_or_insert(now);
        entry.updated_at = Some(now);
        if params.dry_run == Some(true) {
            return Ok(shown(&home, &entry, false));
        }
        if is_gated(request) || params.gate == Some(true) {
            let action = Action::Write(Box::new(entry));
            return self
                .ask_for(request, &params.directory, vec![(home.place, action)])
                .await;
        }
        let value = serde_json::to_value(&entry).unwrap_or_default();
        let (name, place) = (params.name.to_string(), home.place.clone());
        let written = shown(&home, &entry, true);
        self.write(&home, move |whole| {
            // Another process may have been quicker.
            if let Some(known) = store::get(whole, &["servers", &name]).filter(|_| !replace) {
                return Err(name_taken(&name, label_of(&known), layer, "/name"));
            }
            store::set(whole, &["servers", &name], Some(&value));
            if layer == Layer::User {
                // The person wrote all of it.
                ledger::clear(whole, &place);
            }
            Ok(())
        })
        .await?;
        self.keep_trust(&home.place, &root, &entry).await?;
        // A person ordered it: the replaced server ends at once.
        if let Some(old) = old {
            old.stop().await;
        }
        let start = params.start != Some(false);
        self.settled(&params.directory, &home.place, start, written).await
    }

    /// `mcp.edit`.
    pub async fn edit(&self, request: &RequestContext, params: McpEdit) -> Result<Written, Error> {
        let root = self.root(&params.directory)?;
        let server = self.server_in(&params.directory, &params.server, params.layer)?;
        editable(&server)?;
        let home = self.home(&root, server.layer, &params.server);
        let undecided = self.layers.undecided(&server);
        let is_open = undecided.is_open();
        // Who changes a part has not decided about the whole.
        if !is_gated(request)
            && (matches!(undecided, Gate::Pending { .. }) || !is_open && params.rename.is_some())
        {
            return Err(self.refused(&server, &undecided));
        }
        let unset = params.unset.unwrap_or_default();
        let is_switched = params.set.as_ref().is_some_and(|set| set.enabled.is_some())
            || unset.iter().any(|pointer| **pointer == *"/enabled");
        let change = Change {
            name: params.server.to_string(),
            set: params.set,
            unset,
            revision: params.revision,
            held: server.held(),
        };
        let gated = is_gated(request);
        if params.dry_run == Some(true) || gated {
            let path = home.path.clone();
            let entry = blocking(move || {
                store::look(&path, |whole| change.entry(whole).map(|changed| changed.entry))
            })
            .await?;
            if params.dry_run == Some(true) {
                return Ok(shown(&home, &entry, false));
            }
            if params.rename.is_some() {
                return Err(
                    Error::new(ErrorKind::Forbidden, "a request cannot rename an entry")
                        .hint("ask for a new entry, and for the removal of the old one"),
                );
            }
            let action = Action::Write(Box::new(entry));
            return self
                .ask_for(request, &params.directory, vec![(home.place, action)])
                .await;
        }
        let (was_running, was_enabled) = (server.connected().is_some(), server.is_enabled());
        let place = Place {
            name: params
                .rename
                .as_ref()
                .map_or_else(|| params.server.to_string(), ToString::to_string),
            ..home.place.clone()
        };
        if place != home.place && self.layers.ledger().requests.contains_key(&place) {
            return Err(name_taken(&place.name, None, place.layer, "/rename").hint(ANOTHER_NAME));
        }
        let (from, to) = (home.place.clone(), place.clone());
        let late = self.refused(&server, &Gate::Pending { expires_at: 0 });
        let base = self.base(&place);
        let manager = Manager {
            core: Arc::clone(&self.core),
            layers: Arc::clone(&self.layers),
        };
        let stored = Arc::clone(&server);
        let Changed { before, entry, .. } = self
            .write(&home, move |whole| {
                let changed = change.entry(whole)?;
                if to != from {
                    if let Some(known) = store::get(whole, &["servers", &to.name]) {
                        let taken = name_taken(&to.name, label_of(&known), to.layer, "/rename");
                        return Err(taken.hint(ANOTHER_NAME));
                    }
                    store::set(whole, &["servers", &from.name], None);
                    profiles::rename(whole, &from.name, &to.name);
                }
                store::set(whole, &["servers", &to.name], Some(&changed.value));
                if to.layer == Layer::User {
                    // Another process may have asked, or changed it, since it was looked at.
                    if is_open && ledger::is_undecided(whole, &from, &changed.before) {
                        return Err(late);
                    }
                    let held = manager.held_after(Some(&stored), &to, &changed.entry);
                    let agreed = agreed(&changed.entry, &base, held.as_ref());
                    ledger::follow(whole, (&from, &to), &agreed, is_open, is_switched);
                }
                if to != from {
                    // Before anybody can read the new name.
                    manager.core.pins.lineages.rename(&from, &to);
                }
                Ok(changed)
            })
            .await?;
        if place.layer == Layer::Project {
            let held = self.held_after(Some(&server), &place, &entry);
            let approval = self.approval(&place, &entry, held.as_ref());
            self.follow(&home.place, &place, approval, is_open, is_switched)
                .await?;
            // Who changes a label has not agreed to the command beside it.
            let entry = agreed(&entry, &root, held.as_ref());
            self.follow_trust(&root, (&home.place.name, &place.name), before, entry)
                .await?;
        }
        let differs = crate::server::launch::digest(&entry) != server.digest;
        if differs || place.name != *server.name || entry.enabled == Some(false) {
            server.stop().await;
        }
        let start = was_running || (!was_enabled && entry.enabled != Some(false));
        self.settled(&params.directory, &place, start, shown(&home, &entry, true))
            .await
    }

    /// `mcp.remove`.
    pub async fn remove(
        &self,
        request: &RequestContext,
        params: McpRemove,
    ) -> Result<McpRemoveResult, Error> {
        let root = self.root(&params.directory)?;
        let server = self.server_in(&params.directory, &params.server, params.layer)?;
        editable(&server)?;
        let home = self.home(&root, server.layer, &params.server);
        if is_gated(request) {
            let written = self
                .ask_for(request, &params.directory, vec![(home.place, Action::Remove)])
                .await?;
            return Ok(McpRemoveResult {
                server: written.server,
            });
        }
        let bundle = crate::bundle::folder_of(&self.core, &server);
        let name = params.server.to_string();
        if !server.is_empty {
            self.write(&home, move |whole| {
                store::set(whole, &["servers", &name], None);
                Ok(())
            })
            .await?;
        }
        self.forget(&home.place).await?;
        if home.place.layer == Layer::Project {
            self.forget_trust(&root, &home.place.name).await?;
        }
        server.stop().await;
        self.layers.reload(&self.core);
        if let Some(bundle) = bundle {
            self.discard_bundle(bundle).await;
        }
        self.forget_definitions(&server).await;
        Ok(McpRemoveResult {
            server: self
                .layers
                .shown(&root, &params.server)
                .map(|lower| self.record(&lower, &params.directory)),
        })
    }

    /// `mcp.enable`: writes the user's own entry; elsewhere the switch is personal and kept beside it.
    pub async fn enable(&self, request: &RequestContext, params: McpEnable) -> Result<Written, Error> {
        let server = self.server_in(&params.directory, &params.server, params.layer)?;
        let place = server.place();
        if is_gated(request) {
            let action = Action::Switch(params.enabled);
            return self
                .ask_for(request, &params.directory, vec![(place, action)])
                .await;
        }
        let undecided = self.layers.undecided(&server);
        match undecided {
            Gate::Refused if !server.is_empty => {}
            Gate::Pending { .. } | Gate::Refused => return Err(self.refused(&server, &undecided)),
            _ => {}
        }
        // What is not what was approved is not switched on unseen.
        let approved = self.layers.ledger().approved.remove(&place);
        if params.enabled
            && approved.is_some_and(|approved| {
                approved.digest != review::digest(&server.entry(), server.held().as_ref())
            })
        {
            return self
                .ask_for(request, &params.directory, vec![(place, Action::Switch(true))])
                .await;
        }
        let home = self.home(Path::new("/"), Layer::User, &params.server);
        let (enabled, switched) = (params.enabled, place.clone());
        let late = self.refused(&server, &Gate::Pending { expires_at: 0 });
        self.write(&home, move |whole| {
            // Another process may have asked since it was looked at.
            if ledger::is_asked(whole, &switched) {
                return Err(late);
            }
            switch(whole, &switched, enabled);
            // The person decided: what was refused counts again.
            if enabled {
                ledger::reopen(whole, &switched);
            }
            Ok(())
        })
        .await?;
        if !params.enabled {
            server.stop().await;
        }
        let written = Written {
            server: None,
            review: None,
            file: Some(dir(&home.path)),
            text: None,
            written: true,
        };
        self.settled(&params.directory, &place, params.enabled, written)
            .await
    }

    /// `mcp.config`: every entry of every layer, without secrets.
    pub async fn config(
        &self,
        request: &RequestContext,
        params: McpConfig,
    ) -> Result<McpConfigResult, Error> {
        let root = self.root(&params.directory)?;
        self.layers.freshen(&self.core);
        let servers = self.layers.visible(&root);
        let is_shown = |server: &&Arc<Server>| {
            params.server.as_ref().is_none_or(|name| *name == server.name)
                && !server.is_empty
                && (request.tier == Tier::Local || !matches!(server.gate(), Gate::Pending { .. }))
        };
        let entries = servers.iter().filter(is_shown).map(|server| {
            let (entry, masked) = secret::masked(&server.entry());
            let above = self
                .layers
                .find(&root, &server.name)
                .filter(|other| !Arc::ptr_eq(other, server));
            McpServerEntry {
                name: server.name.clone(),
                layer: server.layer,
                file: server.file.as_deref().map(dir),
                revision: revision(&server.entry()),
                entry,
                masked: masked.into_iter().map(Pointer::from).collect(),
                unknown: self
                    .layers
                    .unknown(server)
                    .into_iter()
                    .map(|unknown| Pointer::from(unknown.pointer))
                    .collect(),
                read_only: server.is_read_only(),
                shadowed_by: above.map(|other| other.layer),
                pending: match server.gate() {
                    Gate::Pending { expires_at } => Some(PendingStatus { expires_at }),
                    _ => None,
                },
            }
        });
        Ok(McpConfigResult {
            servers: entries.collect(),
            files: self.files(&root),
            profiles: Some(self.profiles(&root))
                .filter(|profiles| params.server.is_none() && !profiles.is_empty()),
        })
    }

    /// `mcp.reload`: reads the files again; an unchanged running server is not touched.
    pub async fn reload(&self, _: &RequestContext, params: McpReload) -> Result<McpReloadResult, Error> {
        self.root(&params.directory)?;
        let reloaded = self.layers.reload(&self.core);
        Ok(McpReloadResult {
            added: reloaded.added,
            removed: reloaded.removed,
            changed: reloaded.changed,
            unchanged: reloaded.unchanged,
        })
    }

    /// Runs a change of a file where it may block.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        home: &Home,
        change: impl FnOnce(&CstObject) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (path, readers, place) = (home.path.clone(), home.readers, home.place.clone());
        if let Some(root) = &place.root {
            super::gating::check_inside(&path, root)?;
        }
        blocking(move || store::edit(&path, readers, change)).await
    }

    /// Why an entry about which a person has to decide is not changed by the way.
    fn refused(&self, server: &Server, gate: &Gate) -> Error {
        server
            .refusal_by(gate)
            .unwrap_or_else(|| self.unknown(Path::new("/"), &server.name))
    }

    /// What hangs on an entry of a project follows the person's change of it.
    async fn follow(
        &self,
        from: &Place,
        to: &Place,
        agreed: Agreed,
        is_open: bool,
        is_switched: bool,
    ) -> Result<(), Error> {
        let ledger = self.layers.ledger();
        if !ledger.knows(from) && !ledger.knows(to) {
            return Ok(());
        }
        let (file, from, to) = (user_file(&self.core), from.clone(), to.clone());
        blocking(move || {
            store::edit(&file, Readers::Person, |whole| {
                ledger::follow(whole, (&from, &to), &agreed, is_open, is_switched);
                Ok(())
            })
        })
        .await
    }

    /// Drops requests, tombstones and switches of a place that stands in another file than they do.
    async fn forget(&self, place: &Place) -> Result<(), Error> {
        if !self.layers.ledger().knows(place) {
            return Ok(());
        }
        let (file, place) = (user_file(&self.core), place.clone());
        blocking(move || {
            store::edit(&file, Readers::Person, |whole| {
                ledger::clear(whole, &place);
                ledger::put_switch(whole, &place, None);
                Ok(())
            })
        })
        .await
    }

    /// What the person writes into a project is trusted as it stands; the rest of the project is as trusted as before.
    async fn keep_trust(&self, place: &Place, root: &Path, entry: &ServerEntry) -> Result<(), Error> {
        if place.layer != Layer::Project {
            return Ok(());
        }
        self.forget(place).await?;
        let held = self.held_after(None, place, entry);
        self.trust_entry(
            root,
            &project_key(&place.name),
            agreed(entry, root, held.as_ref()),
        )
        .await
    }

    /// What was accepted of the tools of a removed server; what another entry launches stays accepted for that one.
    pub(super) async fn forget_definitions(&self, removed: &Server) {
        let lineage = removed.lineage();
        let servers = self.layers.all();
        let is_shared = servers.iter().any(|server| server.digest == lineage.launch);
        let core = Arc::clone(&self.core);
        let _turn = self.core.disk.lock().await;
        let forget = move || {
            core.pins.lineages.forget(&lineage.place);
            if is_shared {
                return Ok(());
            }
            core.pins.forget(&lineage.launch)
        };
        let forgotten = tokio::task::spawn_blocking(forget).await;
        if let Ok(Err(error)) = forgotten {
            tracing::warn!(%error, server = &*removed.name, "the accepted definitions of its tools could not be removed");
        }
    }

    /// Brings the servers in line after a change, and answers with the one it was about.
    async fn settled(
        &self,
        directory: &Dir,
        place: &Place,
        start: bool,
        mut written: Written,
    ) -> Result<Written, Error> {
        self.layers.reload(&self.core);
        let root = self.root(directory)?;
        if let Some(server) = self.layers.in_layer(&root, &place.name, place.layer) {
            if start && server.is_enabled() && self.counts(&root, &server) {
                start_behind(&server);
            }
            written.server = Some(self.record(&server, directory));
        }
        Ok(written)
    }

    fn counts(&self, root: &Path, server: &Arc<Server>) -> bool {
        self.layers
            .find(root, &server.name)
            .is_some_and(|found| Arc::ptr_eq(&found, server))
    }
}

/// Sets the switch of an entry where it belongs.
pub(super) fn switch(whole: &CstObject, place: &Place, enabled: bool) {
    if place.layer == Layer::User {
        if store::get(whole, &["servers", &place.name]).is_some() {
            store::set(whole, &["servers", &place.name, "enabled"], Some(&enabled.into()));
        }
    } else {
        ledger::put_switch(whole, place, Some(enabled));
    }
}

/// Whether a request has to wait for the person.
pub(super) fn is_gated(request: &RequestContext) -> bool {
    request.tier != Tier::Local
}

/// What is answered about a change.
fn shown(home: &Home, entry: &ServerEntry, written: bool) -> Written {
    Written {
        server: None,
        review: None,
        file: Some(dir(&home.path)),
        text: Some(serde_json::to_string_pretty(&secret::masked(entry).0).unwrap_or_default()),
        written,
    }
}

/// Starts a server without waiting; its record follows by `mcp.changed`.
pub(super) fn start_behind(server: &Arc<Server>) {
    let server = Arc::clone(server);
    tokio::spawn(async move { drop(server.start(Tier::Local).await) });
}

pub(super) fn dir(path: &Path) -> Dir {
    Dir::from(path.display().to_string())
}

/// A rename replaces nothing.
const ANOTHER_NAME: &str = "choose another name";

/// `label`: what people know the other one by. `at`: the parameter that gives the name.
fn name_taken(name: &str, label: Option<&str>, layer: Layer, at: &str) -> Error {
    let message = format!("\"{name}\" is already used by \"{}\"", label.unwrap_or(name));
    Error::new(ErrorKind::NameTaken, message)
        .by(layer.as_str())
        .path(at)
        .hint("choose another name, or set `replace: true`")
}

/// What people know an entry of a file by, where it says so.
fn label_of(entry: &Value) -> Option<&str> {
    entry["label"].as_str()
}

fn editable(server: &Server) -> Result<(), Error> {
    if !server.is_read_only() {
        return Ok(());
    }
    let whose = match server.layer {
        Layer::Host => "the host",
        _ => "a package",
    };
    Err(Error::new(
        ErrorKind::ReadOnly,
        format!("`{}` comes from {whose} and cannot be changed here", server.name),
    )
    .by(server.layer.as_str())
    .hint("`mcp.enable` switches it off all the same")
    .server(ServerName::clone(&server.name)))
}

/// Runs what blocks on locks and on the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(
            ErrorKind::Internal,
            format!("the change was not made: {error}"),
        ))
    })
}
