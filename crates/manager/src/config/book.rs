//! What the files and the host say at one moment, and the entries that come of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use protocol::{ChangeReason, Dir, HostLayer, Layer, ServerEntry, TrustState};

use super::file::{ConfigFile, Fault, FileEntry};
use super::layers::{project_file, rank};
use super::members::Unknown;
use super::packages::{Package, Packages};
use super::profiles::Choice;
use super::remembered::Remembered;
use super::validate;
use crate::consent::held::Held;
use crate::consent::ledger::{Ledger, Place, Request};
use crate::consent::trust::TrustFile;
use crate::consent::{Gate, pending, review};
use crate::core::Core;
use crate::env::{self, Env};
use crate::limits;
use crate::server::{Reading, Server};

pub(super) struct Book {
    pub(super) user: ConfigFile,
    pub(super) remembered: Remembered,
    pub(super) ledger: Ledger,
    pub(super) packages: Packages,
    pub(super) projects: Vec<Project>,
    pub(super) host: Vec<HostLayer>,
    pub(super) host_files: Vec<ConfigFile>,
    pub(super) trust: TrustFile,
    /// The profile that the host chose.
    pub(super) profile: Option<String>,
    /// In the order in which they are shown.
    pub(super) servers: Vec<Arc<Server>>,
    pub(super) checked: Option<Instant>,
}

/// What an open directory brings.
pub(super) struct Project {
    pub(super) root: PathBuf,
    pub(super) directory: Dir,
    pub(super) file: ConfigFile,
    pub(super) packages: Packages,
    /// What its entries read of its own files, by their keys in `trust.json`.
    pub(super) held: BTreeMap<String, Held>,
}

/// One entry of a project, as trust sees it.
#[derive(Clone)]
pub(crate) struct TrustItem {
    /// Known by this in `trust.json`.
    pub key: String,
    pub layer: Layer,
    pub name: String,
    pub base: PathBuf,
    pub entry: ServerEntry,
    pub held: Option<Held>,
    pub digest: String,
    /// Why it would not start as it stands.
    pub faults: Vec<String>,
}

/// What is told of the whole rather than of one server.
pub(super) struct State {
    pub(super) fault: Option<Fault>,
    pub(super) requests: BTreeMap<Place, Request>,
    pub(super) projects: BTreeMap<PathBuf, (Option<Fault>, TrustState)>,
}

impl State {
    /// Why it must be told; directories that were opened or closed meanwhile are no news.
    pub(super) fn differs(&self, before: &State) -> Vec<ChangeReason> {
        let mut reasons = Vec::new();
        let both = self
            .projects
            .iter()
            .filter_map(|(root, now)| Some((now, before.projects.get(root)?)));
        let (mut faults, mut trust) = (self.fault != before.fault, false);
        for (now, before) in both {
            faults |= now.0 != before.0;
            trust |= now.1 != before.1;
        }
        if faults {
            reasons.push(ChangeReason::Config);
        }
        if trust {
            reasons.push(ChangeReason::Trust);
        }
        if self.requests != before.requests {
            reasons.push(ChangeReason::Pending);
        }
        reasons
    }
}

/// One entry as a layer wants it.
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) directory: Option<Dir>,
    pub(super) file: Option<PathBuf>,
    pub(super) base: PathBuf,
    pub(super) entry: ServerEntry,
    pub(super) reading: Reading,
    pub(super) enabled: bool,
    pub(super) gate: Gate,
    pub(super) held: Option<Held>,
    /// There is no entry, only a request or a tombstone.
    pub(super) is_empty: bool,
}

impl Project {
    pub(super) fn read(root: PathBuf, directory: Dir) -> Project {
        Project {
            file: ConfigFile::read_shared(&project_file(&root), &root),
            packages: Packages::read(&root.join(".pillion/packages"), Some(&root)),
            root,
            directory,
            held: BTreeMap::new(),
        }
    }

    /// This project, with what its files held `before` where they are broken now.
    pub(super) fn after(self, before: &Project) -> Project {
        Project {
            file: self.file.after(&before.file),
            packages: self.packages.after(&before.packages),
            ..self
        }
    }

    /// Its entries, with their keys in `trust.json` and the folders that their paths are relative to.
    fn entries(&self) -> impl Iterator<Item = (String, Layer, &Path, &FileEntry)> {
        let own = self.file.entries.iter().map(|entry| {
            let key = format!("project:{}", entry.name);
            (key, Layer::Project, self.root.as_path(), entry)
        });
        let of_packages = self.packages.list.iter().flat_map(|package| {
            package.file.entries.iter().map(move |entry| {
                let key = format!("package:{}:{}", package.folder, entry.name);
                (key, Layer::ProjectPackage, package.path.as_path(), entry)
            })
        });
        own.chain(of_packages)
    }

    /// Reads what its entries read of its own files.
    pub(super) fn hold(&mut self, env: &Env) {
        let held = self.entries().filter_map(|(key, _, base, entry)| {
            let held = Held::read(env, &entry.entry, base, &self.root)?;
            Some((key, held))
        });
        self.held = held.collect();
    }

    /// Keeps what a person can be asked about: so many entries, none of them endless.
    pub(super) fn bound(&mut self) {
        let mut room = limits::PROJECT_ENTRIES;
        keep_shown(&mut self.file, Layer::Project, &self.root, &mut room);
        for package in &mut self.packages.list {
            keep_shown(&mut package.file, Layer::ProjectPackage, &package.path, &mut room);
        }
    }
}

impl Book {
    /// What `mcp.status` says of the whole: a change of it is told.
    pub(super) fn state(&self) -> State {
        let projects = self.projects.iter().map(|project| {
            let items = self.trust_items(&project.root);
            let pairs = items.iter().map(|item| (item.key.as_str(), item.digest.as_str()));
            let trust = self.trust.state(&project.root, pairs);
            (project.root.clone(), (project.file.fault.clone(), trust))
        });
        State {
            fault: self.user.fault.clone(),
            requests: self.ledger.requests.clone(),
            projects: projects.collect(),
        }
    }

    /// The profile of that name, else the one in use.
    pub(super) fn profile<'b>(&'b self, name: Option<&'b str>) -> Option<Choice<'b>> {
        let projects = self.projects.iter();
        let projects = projects.map(|project| (project.root.as_path(), &project.file));
        Choice::new(name.or(self.profile.as_deref()), &self.user, projects.collect())
    }

    /// What is agreed to of files of projects.
    pub(super) fn held(&self) -> impl Iterator<Item = Held> {
        let of_projects = self.projects.iter().flat_map(|project| project.held.values());
        let of_servers = self.servers.iter().filter(|server| !server.is_of_project());
        of_projects
            .cloned()
            .chain(of_servers.filter_map(|server| server.held()))
    }

    pub(super) fn next_end(&self) -> Option<u64> {
        let of_servers = self.servers.iter().filter_map(|server| match server.gate() {
            Gate::Pending { expires_at } => Some(expires_at),
            _ => None,
        });
        of_servers.chain(self.ledger.next_end()).min()
    }

    /// The entries of a project that need trust. What a request put there has been seen by a person already.
    pub(super) fn trust_items(&self, root: &Path) -> Vec<TrustItem> {
        let Some(project) = self.projects.iter().find(|project| project.root == root) else {
            return Vec::new();
        };
        let items = project.entries().map(|(key, layer, base, entry)| {
            let held = project.held.get(&key).cloned();
            TrustItem {
                digest: review::digest(&entry.entry, held.as_ref()),
                key,
                layer,
                name: entry.name.clone(),
                base: base.to_owned(),
                entry: entry.entry.clone(),
                held,
                faults: faults_of(entry),
            }
        });
        items.collect()
    }

    pub(super) fn wanted(&self, core: &Core) -> Vec<Wanted> {
        let now = env::now();
        let home = core.env.home();
        let mut wanted = Vec::new();
        let of_file = |file: &ConfigFile, layer, base: &Path, source: Option<String>| -> Vec<Wanted> {
            file.entries
                .iter()
                .map(|entry| from_file(file, entry, layer, base, source.clone()))
                .collect()
        };
        for project in &self.projects {
            let mut own = of_file(&project.file, Layer::Project, &project.root, None);
            for wanted in &mut own {
                let key = format!("project:{}", wanted.place.name);
                self.needs_trust(project, &key, wanted);
            }
            for package in self.enabled_packages(&project.packages) {
                let source = Some(package.source());
                let mut brought = of_file(&package.file, Layer::ProjectPackage, &package.path, source);
                for wanted in &mut brought {
                    let key = format!("package:{}:{}", package.folder, wanted.place.name);
                    self.needs_trust(project, &key, wanted);
                }
                own.extend(brought);
            }
            wanted.extend(own);
        }
        wanted.extend(of_file(&self.user, Layer::User, home, None));
        for package in self.enabled_packages(&self.packages) {
            wanted.extend(of_file(
                &package.file,
                Layer::UserPackage,
                &package.path,
                Some(package.source()),
            ));
        }
        wanted.extend(self.of_host(home));
        for wanted in &mut wanted {
            self.decide(&core.env, wanted, now);
        }
        self.add_empty(&mut wanted, home, now);
        wanted.sort_by_key(|wanted| rank(wanted.place.layer));
        wanted
    }

    fn enabled_packages<'p>(&self, packages: &'p Packages) -> impl Iterator<Item = &'p Package> {
        let off = &self.ledger.packages_off;
        packages
            .list
            .iter()
            .filter(move |package| !off.contains(&package.folder))
    }

    fn of_host(&self, home: &Path) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for layer in &self.host {
            for (name, entry) in layer.entries.iter().flatten() {
                let value = serde_json::to_value(entry).unwrap_or_default();
                let faults = validate::problems_of_host(&value).into_iter();
                let faults = faults.map(|problem| problem.message).collect();
                let source = entry
                    .source
                    .clone()
                    .or_else(|| Some(format!("host:{}", layer.label)));
                wanted.push(Wanted {
                    place: Place {
                        layer: Layer::Host,
                        root: None,
                        name: name.clone(),
                    },
                    directory: None,
                    file: None,
                    base: home.to_owned(),
                    enabled: entry.enabled != Some(false),
                    entry: ServerEntry {
                        source,
                        ..entry.clone()
                    },
                    reading: Reading {
                        faults,
                        ..Reading::default()
                    },
                    gate: Gate::Open,
                    held: None,
                    is_empty: false,
                });
            }
        }
        for file in &self.host_files {
            for entry in &file.entries {
                wanted.push(from_file(file, entry, Layer::Host, home, None));
            }
        }
        wanted
    }

    fn needs_trust(&self, project: &Project, key: &str, wanted: &mut Wanted) {
        wanted.directory = Some(project.directory.clone());
        wanted.place.root = Some(project.root.clone());
        wanted.held = project.held.get(key).cloned();
        let digest = review::digest(&wanted.entry, wanted.held.as_ref());
        if !self.trust.trusts(&project.root, key, &digest) {
            wanted.gate = Gate::NeedsTrust;
        }
    }

    /// Personal switches, requests, tombstones.
    fn decide(&self, env: &Env, wanted: &mut Wanted, now: u64) {
        if let Some(enabled) = self.ledger.switches.get(&wanted.place) {
            wanted.enabled = *enabled;
        }
        let approved = self.ledger.approved.get(&wanted.place);
        if let Some(root) = approved.and_then(|approved| approved.root.as_ref())
            && wanted.held.is_none()
        {
            wanted.held = Held::read(env, &wanted.entry, &wanted.base, root);
        }
        let modified = self.modified(wanted.place.layer, wanted.file.as_deref(), now);
        let entry = Some((&wanted.entry, wanted.held.as_ref()));
        let gate = pending::gate(&self.ledger, &wanted.place, entry, modified, now);
        if !gate.is_open() {
            wanted.gate = gate;
        }
    }

    /// When the file of an entry was written; now, where nobody noted it.
    pub(super) fn modified(&self, layer: Layer, file: Option<&Path>, now: u64) -> u64 {
        if layer == Layer::User {
            return self.user.modified;
        }
        let mut projects = self.projects.iter().map(|project| &project.file);
        projects
            .find(|known| Some(known.path.as_path()) == file)
            .map_or(now, |known| known.modified)
    }

    /// Requests and tombstones for names that have no entry.
    fn add_empty(&self, wanted: &mut Vec<Wanted>, home: &Path, now: u64) {
        let places = self.ledger.requests.keys().chain(self.ledger.tombstones.keys());
        for place in places {
            if wanted.iter().any(|known| known.place == *place) {
                continue;
            }
            let directory = match &place.root {
                None => None,
                Some(root) => match self.projects.iter().find(|project| project.root == *root) {
                    Some(project) => Some(project.directory.clone()),
                    None => continue,
                },
            };
            let gate = pending::gate(&self.ledger, place, None, now, now);
            let source = match gate {
                Gate::Pending { .. } => "request",
                _ => "refused",
            };
            wanted.push(Wanted {
                place: place.clone(),
                directory,
                file: None,
                base: place.root.clone().unwrap_or_else(|| home.to_owned()),
                entry: ServerEntry {
                    enabled: Some(false),
                    source: Some(source.to_owned()),
                    ..ServerEntry::default()
                },
                reading: Reading::default(),
                enabled: false,
                gate,
                held: None,
                is_empty: true,
            });
        }
    }
}

/// Keeps of a project's file what there is `room` for, and of an entry that no review could show only its name.
fn keep_shown(file: &mut ConfigFile, layer: Layer, base: &Path, room: &mut usize) {
    if file.entries.len() > *room {
        file.entries.truncate(*room);
        file.fault.get_or_insert_with(|| Fault {
            message: format!(
                "only the first {} entries of a project are read, those of its packages included",
                limits::PROJECT_ENTRIES
            ),
            place: None,
        });
    }
    *room -= file.entries.len();
    for entry in &mut file.entries {
        let faults = entry.faults.iter().map(|fault| fault.message.len() + 64).sum();
        if review::is_too_long(&entry.name, &entry.entry, faults, (layer, base)) {
            entry.entry = ServerEntry::default();
            entry.faults = vec![Fault {
                message: format!(
                    "it is too long to be shown to a person ({} KiB): shorten it",
                    limits::REVIEW_BYTES >> 10
                ),
                place: None,
            }];
        }
    }
}

fn from_file(
    file: &ConfigFile,
    entry: &FileEntry,
    layer: Layer,
    base: &Path,
    source: Option<String>,
) -> Wanted {
    let reading = Reading {
        faults: faults_of(entry),
        slips: slips_of(entry),
    };
    let mut wanted = entry.entry.clone();
    if source.is_some() {
        wanted.source = source;
    }
    Wanted {
        place: Place {
            layer,
            root: None,
            name: entry.name.clone(),
        },
        directory: None,
        file: Some(file.path.clone()),
        base: base.to_owned(),
        enabled: wanted.enabled != Some(false),
        entry: wanted,
        reading,
        gate: Gate::Open,
        held: None,
        is_empty: false,
    }
}

/// Members that are a slip away from one that there is.
fn slips_of(entry: &FileEntry) -> Vec<String> {
    let slips = entry.unknown.iter().filter(|unknown| unknown.meant.is_some());
    let is_said = |slip: &String| entry.faults.iter().any(|fault| fault.message.contains(slip));
    slips.map(Unknown::said).filter(|slip| !is_said(slip)).collect()
}

/// What is wrong with an entry, with the places.
fn faults_of(entry: &FileEntry) -> Vec<String> {
    let faults = entry.faults.iter().map(|fault| match fault.place {
        Some(place) => format!("{} (line {}, column {})", fault.message, place.line, place.column),
        None => fault.message.clone(),
    });
    faults.collect()
}
