//! `mcp.sync`: our entries in another program's own file, and what stands there only in ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::{
    Error, ErrorKind, ExportFormat, ExportSecrets, ImportStatus, Issue, Json, Layer, McpImport, McpSync,
    Scope, ServerEntry, ServerName, SyncChange, SyncDirection, SyncOutcome, SyncStatus, Synced,
};
use serde_json::Value;

use super::Manager;
use super::configuring::{blocking, dir};
use super::foreign_files::broken;
use super::gating::check_inside;
use crate::config::secret;
use crate::exchange::programs::{self, Place};
use crate::exchange::stand_ins::StandIns;
use crate::exchange::{
    Dialect, Form, Found, Off, Outcome, difference, edit, entry, harvest, meant_in, names, write,
};
use crate::limits;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.sync`: writes entries into another program's file, or takes over what stands there only.
    pub async fn sync(&self, request: &RequestContext, params: McpSync) -> Result<Synced, Error> {
        let root = self.root(&params.directory)?;
        let scope = params.scope.unwrap_or(Scope::User);
        let place = programs::file_of(&self.places(&root), params.client, scope);
        let (Some(form), Some(place)) = (programs::form(params.client), place) else {
            return Err(no_file(params.client, scope));
        };
        if place.scope == Scope::Project {
            check_inside(&place.path, &root)?;
        }
        if params.secrets == Some(ExportSecrets::Mask) {
            let message = "a masked secret is of no use to another program";
            return Err(Error::new(ErrorKind::InvalidParams, message).path("/secrets"));
        }
        match params.direction.unwrap_or(SyncDirection::To) {
            SyncDirection::To => self.sync_to(&root, params, form, place).await,
            SyncDirection::From => self.sync_from(request, &root, params, form, place).await,
        }
    }

    async fn sync_to(&self, root: &Path, params: McpSync, form: Form, place: Place) -> Result<Synced, Error> {
        // Who names a server wants that one, wherever it is written; else each scope keeps to itself.
        let scope = params.servers.is_none().then_some(place.scope);
        let (entries, warnings) = self.to_export(root, scope, params.servers.as_deref())?;
        let now = self.core.env.now();
        let data = self.core.env.data_dir().to_owned();
        blocking(move || {
            let writing = Writing {
                form,
                place,
                program: params.client,
                data,
                secrets: params.secrets.unwrap_or(ExportSecrets::Reference),
                replace: params.replace == Some(true),
                dry_run: params.dry_run == Some(true),
            };
            writing.run(&entries, warnings, now)
        })
        .await
    }

    async fn sync_from(
        &self,
        request: &RequestContext,
        root: &Path,
        params: McpSync,
        form: Form,
        place: Place,
    ) -> Result<Synced, Error> {
        let path = place.path.clone();
        let text = blocking(move || read(&path)).await?;
        let Some(text) = text else {
            let message = format!("`{}` does not exist", place.path.display());
            return Err(Error::new(ErrorKind::NotFound, message).what("file"));
        };
        let (mut harvest, _) = harvest(&text, Dialect::of_path(&place.path.to_string_lossy()))
            .map_err(|fault| broken(&place.path, &fault))?;
        self.layers.freshen(&self.core);
        let layer = match place.scope {
            Scope::User => Layer::User,
            Scope::Project => Layer::Project,
        };
        let here = format!("project:{}", root.display());
        let mut synced = nothing(&place.path);
        let mut unwanted = Vec::new();
        harvest.found.retain(|found| {
            let name = names::fitting(&found.name);
            let is_asked_for = |wanted: &[ServerName]| {
                wanted
                    .iter()
                    .any(|wanted| **wanted == *name || **wanted == *found.name)
            };
            if found.scope.as_ref().is_some_and(|scope| *scope != here)
                || !params.servers.as_deref().is_none_or(is_asked_for)
            {
                return false;
            }
            let (Outcome::Entry(theirs), Some(ours)) =
                (&found.outcome, self.layers.in_layer(root, &name, layer))
            else {
                return true;
            };
            let ours = ours.entry();
            let is_same = same(&name, &ours, theirs, &form);
            let is_written = !is_same && params.replace == Some(true);
            if !is_written {
                unwanted.push(SyncOutcome {
                    server: ServerName::from(name.as_str()),
                    name: ServerName::from(found.name.as_str()),
                    status: if is_same {
                        SyncStatus::Unchanged
                    } else {
                        SyncStatus::Differs
                    },
                    reason: (!is_same).then(|| "it is another one here".to_owned()),
                    changes: if is_same {
                        Vec::new()
                    } else {
                        changes(Some(&ours), Some(theirs))
                    },
                });
            }
            is_written
        });
        harvest.refuse_strange(meant_in(&place.path));
        for name in params.servers.iter().flatten() {
            let is_there = |found: &Found| *found.name == **name || names::fitting(&found.name) == **name;
            let is_known = harvest.found.iter().any(is_there)
                || unwanted
                    .iter()
                    .any(|one| one.name == *name || one.server == *name);
            if !is_known {
                let message = format!("`{}` holds no server `{name}`", place.path.display());
                return Err(Error::new(ErrorKind::NotFound, message).what("server"));
            }
        }
        let theirs: BTreeMap<String, ServerEntry> = harvest
            .found
            .iter()
            .filter_map(|found| match &found.outcome {
                Outcome::Entry(entry) => Some((found.name.clone(), ServerEntry::clone(entry))),
                _ => None,
            })
            .collect();
        let import = McpImport {
            directory: params.directory,
            scope: params.scope,
            replace: params.replace,
            dry_run: params.dry_run,
            ..Default::default()
        };
        let imported = self.import_found(request, &import, harvest).await?;
        for one in imported.results {
            synced.results.push(SyncOutcome {
                server: one
                    .saved_as
                    .map_or_else(|| one.name.clone(), |name| ServerName::from(&*name)),
                changes: theirs
                    .get(&*one.name)
                    .map_or_else(Vec::new, |theirs| changes(None, Some(theirs))),
                name: one.name,
                status: match one.status {
                    ImportStatus::Added => SyncStatus::Added,
                    ImportStatus::Replaced => SyncStatus::Replaced,
                    ImportStatus::Skipped => SyncStatus::Skipped,
                    ImportStatus::Failed => SyncStatus::Failed,
                },
                reason: one.reason,
            });
        }
        synced.results.extend(unwanted);
        synced.written = imported.added;
        synced.left_out = imported.not_imported;
        synced.warnings = imported
            .needs
            .iter()
            .map(|need| format!("`{}` is still to be filled in", need.label))
            .collect();
        Ok(synced)
    }
}

fn no_file(client: ExportFormat, scope: Scope) -> Error {
    let message = match scope {
        Scope::User => format!("no file of `{client}` is known"),
        Scope::Project => format!("no file of `{client}` in a project is known"),
    };
    Error::new(ErrorKind::InvalidParams, message)
        .path("/client")
        .hint("`mcp.export` gives the text to put there")
}

fn nothing(path: &Path) -> Synced {
    Synced {
        file: dir(path),
        results: Vec::new(),
        written: 0,
        backup: None,
        left_out: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The text of a file; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>, Error> {
    let failed = |why: String| {
        Error::new(
            ErrorKind::ConfigBroken,
            format!("`{}` cannot be read: {why}", path.display()),
        )
        .hint("nothing was changed")
        .file(path.display().to_string())
    };
    let text =
        files::read_text(path, limits::FOREIGN_FILE_BYTES).map_err(|error| failed(error.to_string()))?;
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if text.is_none() && is_link {
        return Err(failed("it is a link to nowhere".to_owned()));
    }
    Ok(text)
}

/// Whether two entries start the same, as far as the other program can say it; a secret may be written as a reference.
fn same(name: &str, ours: &ServerEntry, theirs: &ServerEntry, form: &Form) -> bool {
    let theirs = difference::bare(&unlabelled(theirs));
    // Where another server has a secret of the same name, the longer one stands for it.
    [
        (ExportSecrets::Reference, StandIns::default()),
        (ExportSecrets::Reference, StandIns::long()),
        (ExportSecrets::Include, StandIns::default()),
    ]
    .into_iter()
    .filter_map(|(secrets, mut stand_ins)| write::render(name, ours, form, secrets, &mut stand_ins).ok())
    .filter_map(|rendered| entry::read(&rendered.value, form.dialect).ok())
    .any(|read| difference::bare(&unlabelled(&read.entry)) == theirs)
}

fn unlabelled(entry: &ServerEntry) -> ServerEntry {
    ServerEntry {
        label: None,
        ..entry.clone()
    }
}

/// Members that are not the same, secrets masked.
fn changes(here: Option<&ServerEntry>, there: Option<&ServerEntry>) -> Vec<SyncChange> {
    let shown = |entry: Option<&ServerEntry>| {
        entry.map_or_else(
            || serde_json::json!({}),
            |entry| difference::bare(&secret::masked(&unlabelled(entry)).0),
        )
    };
    let plain = |entry: Option<&ServerEntry>| {
        entry.map_or_else(
            || serde_json::json!({}),
            |entry| difference::bare(&unlabelled(entry)),
        )
    };
    let at = |whole: &Value, member: &str| -> Option<Json> {
        let value = member.split('.').try_fold(whole, |value, step| value.get(step))?;
        Some(Json::from(value))
    };
    let (shown_here, shown_there) = (shown(here), shown(there));
    difference::differences(&plain(here), &plain(there))
        .into_iter()
        .map(|member| SyncChange {
            here: at(&shown_here, &member),
            there: at(&shown_there, &member),
            member,
        })
        .collect()
}

/// How our entries are written into another program's file.
struct Writing {
    form: Form,
    place: Place,
    program: ExportFormat,
    /// Our own folder, with the lock and the copies.
    data: PathBuf,
    secrets: ExportSecrets,
    replace: bool,
    dry_run: bool,
}

impl Writing {
    fn run(
        &self,
        entries: &BTreeMap<String, ServerEntry>,
        warnings: Vec<String>,
        now: u64,
    ) -> Result<Synced, Error> {
        let path = &self.place.path;
        // Other programs know nothing of our locks: this one lies with our own files and keeps two of us apart.
        files::create_private_dir(&self.data).map_err(|error| self.failed(&error))?;
        let lock = self.data.join("sync");
        let _lock = files::Lock::take(&lock, limits::LOCK_WAIT).map_err(|error| self.failed(&error))?;
        let before = read(path)?;
        let mut synced = nothing(path);
        synced.warnings = warnings;
        let mut text = before.clone().unwrap_or_default();
        let mut holds_secrets = false;
        let mut stand_ins = StandIns::default();
        for (name, entry) in entries {
            let is_written = self.one(name, entry, &mut text, &mut stand_ins, &mut synced)?;
            synced.written += u32::from(is_written);
            holds_secrets |=
                is_written && self.secrets == ExportSecrets::Include && !secret::masked(entry).1.is_empty();
        }
        if holds_secrets {
            let warning = format!("`{}` holds secrets: treat it like a password", path.display());
            synced.warnings.push(warning);
        }
        if self.dry_run {
            synced.written = 0;
        } else if synced.written > 0 {
            synced.backup = self.write(before.as_deref(), &text, holds_secrets, now)?;
        }
        Ok(synced)
    }

    /// Sets one server in the text; whether it is another text now.
    fn one(
        &self,
        name: &str,
        ours: &ServerEntry,
        text: &mut String,
        stand_ins: &mut StandIns,
        synced: &mut Synced,
    ) -> Result<bool, Error> {
        let form = &self.form;
        let whole = edit::whole(text, form).map_err(|fault| broken(&self.place.path, &fault))?;
        let theirs_name = name_there(&whole, form, name);
        let mut outcome = SyncOutcome {
            server: ServerName::from(name),
            name: ServerName::from(theirs_name.as_str()),
            status: SyncStatus::Skipped,
            reason: None,
            changes: Vec::new(),
        };
        let rendered = if ours.enabled == Some(false) && form.off == Off::Never {
            Err(format!("it is switched off, and {} would start it", form.title))
        } else {
            write::render(name, ours, form, self.secrets, stand_ins)
        };
        let mut rendered = match rendered {
            Ok(rendered) => rendered,
            Err(reason) => {
                outcome.reason = Some(reason);
                synced.results.push(outcome);
                return Ok(false);
            }
        };
        if form.is_named {
            rendered.value["name"] = theirs_name.as_str().into();
        }
        let old = edit::server(&whole, form, &theirs_name);
        let theirs = old.map(|old| entry::read(old, form.dialect).map(|read| read.entry));
        let new = entry::read(&rendered.value, form.dialect)
            .map(|read| read.entry)
            .ok();
        outcome.status = match &theirs {
            None => SyncStatus::Added,
            Some(Ok(theirs)) if same(name, ours, theirs, form) => SyncStatus::Unchanged,
            Some(_) if self.replace => SyncStatus::Replaced,
            Some(_) => SyncStatus::Differs,
        };
        if outcome.status != SyncStatus::Unchanged {
            let there = theirs.as_ref().and_then(|theirs| theirs.as_ref().ok());
            outcome.changes = changes(new.as_ref(), there);
        }
        outcome.reason = match (outcome.status, &theirs) {
            (SyncStatus::Differs, Some(Err(why))) => Some(format!("it cannot be read there: {why}")),
            (SyncStatus::Differs, _) => Some("it is another one there".to_owned()),
            _ => None,
        };
        let is_written = matches!(outcome.status, SyncStatus::Added | SyncStatus::Replaced);
        if is_written {
            *text = edit::set(text, form, &theirs_name, &rendered.value)
                .and_then(|text| edit::declare(&text, &rendered.inputs))
                .map_err(|fault| broken(&self.place.path, &fault))?;
            let kept: Vec<String> = old
                .map(|old| entry::strangers(old, form.dialect))
                .unwrap_or_default();
            for member in kept
                .into_iter()
                .filter(|member| rendered.value.get(member).is_none())
            {
                let message = format!("`{name}`: `{member}` stays as it is in {}", form.title);
                let mut issue = Issue::new(protocol::IssueKind::Note, message);
                issue.server = Some(ServerName::from(name));
                issue.item = Some(member);
                synced.left_out.push(issue);
            }
            synced.left_out.extend(rendered.issues(name, form));
            synced.warnings.extend(rendered.warnings);
        }
        synced.results.push(outcome);
        Ok(is_written)
    }

    /// Writes the file in one step, after a copy of what it was.
    fn write(
        &self,
        before: Option<&str>,
        text: &str,
        holds_secrets: bool,
        now: u64,
    ) -> Result<Option<protocol::Dir>, Error> {
        let path = &self.place.path;
        let failed = |error: std::io::Error| self.failed(&error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut backup = None;
        if let Some(before) = before {
            backup = Some(dir(&self.keep(before, now).map_err(failed)?));
        }
        if read(path)?.as_deref() != before {
            let message = format!("`{}` was changed by another program meanwhile", path.display());
            return Err(Error::new(ErrorKind::WriteFailed, message)
                .hint("try again; nothing was changed")
                .file(path.display().to_string()));
        }
        let is_new_and_personal = before.is_none() && self.place.scope == Scope::User;
        if holds_secrets || is_new_and_personal {
            files::write_private(path, text.as_bytes()).map_err(failed)?;
        } else {
            files::write_shared(path, text.as_bytes()).map_err(failed)?;
        }
        Ok(backup)
    }

    /// A copy of the file as it was. It may hold secrets, and its folder may be a repository: it lies with our own files.
    fn keep(&self, before: &str, now: u64) -> std::io::Result<PathBuf> {
        let folder = self.data.join("backups");
        files::create_private_dir(&folder)?;
        let file = self.place.path.file_name().unwrap_or_default().to_string_lossy();
        let copy = |at: u64| folder.join(format!("{}-{file}.backup-{at}", self.program));
        let copy = (now..).map(copy).find(|copy| !copy.exists());
        let copy = copy.ok_or(std::io::ErrorKind::AlreadyExists)?;
        files::write_private(&copy, before.as_bytes())?;
        Ok(copy)
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let path = self.place.path.display().to_string();
        Error::new(ErrorKind::WriteFailed, format!("cannot write `{path}`: {error}"))
            .hint("check that the folder may be written; nothing was changed")
            .file(path)
    }
}

/// What a server is called there: our name, or one that became ours when it was imported.
fn name_there(whole: &Value, form: &Form, name: &str) -> String {
    if edit::server(whole, form, name).is_some() {
        return name.to_owned();
    }
    let known = match whole.get(form.container) {
        Some(Value::Object(servers)) => servers.keys().cloned().collect(),
        Some(Value::Array(servers)) => servers
            .iter()
            .filter_map(|server| server["name"].as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    known
        .into_iter()
        .find(|known| names::fitting(known) == name)
        .unwrap_or_else(|| name.to_owned())
}
