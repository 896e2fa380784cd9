//! The layers and what they come to: which servers there are, and which of several with the same name counts where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use protocol::{ChangeReason, Dir, HostLayer, Layer, ServerEntry, ServerName, TrustState};

use super::file::{ConfigFile, Fault, FileEntry};
use super::packages::{Package, Packages};
use super::profiles::Choice;
use super::validate;
use crate::consent::ledger::{Ledger, Place, Request};
use crate::consent::policy::Policy;
use crate::consent::trust::{self, TrustFile, Trusted};
use crate::consent::{Gate, pending, review};
use crate::core::Core;
use crate::env;
use crate::limits;
use crate::server::{NewServer, Server};

/// All configured servers, by layer, directory and name.
pub(crate) struct Layers {
    book: Mutex<Book>,
}

struct Book {
    user: ConfigFile,
    ledger: Ledger,
    packages: Packages,
    projects: Vec<Project>,
    host: Vec<HostLayer>,
    host_files: Vec<ConfigFile>,
    trust: TrustFile,
    /// The profile that the host chose.
    profile: Option<String>,
    /// In the order in which they are shown.
    servers: Vec<Arc<Server>>,
    checked: Option<Instant>,
}

/// What an open directory brings.
struct Project {
    root: PathBuf,
    directory: Dir,
    file: ConfigFile,
    packages: Packages,
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
    pub digest: String,
    /// Why it would not start as it stands.
    pub faults: Vec<String>,
}

/// What is told of the whole rather than of one server.
struct State {
    fault: Option<Fault>,
    requests: BTreeMap<Place, Request>,
    projects: BTreeMap<PathBuf, (Option<Fault>, TrustState)>,
}

impl State {
    /// Why it must be told; directories that were opened or closed meanwhile are no news.
    fn differs(&self, before: &State) -> Vec<ChangeReason> {
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
    place: Place,
    directory: Option<Dir>,
    file: Option<PathBuf>,
    base: PathBuf,
    entry: ServerEntry,
    faults: Vec<String>,
    enabled: bool,
    gate: Gate,
    /// There is no entry, only a request or a tombstone.
    is_empty: bool,
}

/// Layers in the order in which a name is looked up.
const ORDER: [Layer; 5] = [
    Layer::Project,
    Layer::ProjectPackage,
    Layer::User,
    Layer::UserPackage,
    Layer::Host,
];

impl Layers {
    pub fn new(core: &Core) -> Layers {
        let user = ConfigFile {
            path: user_file(core),
            ..ConfigFile::default()
        };
        Layers {
            book: Mutex::new(Book {
                user,
                ledger: Ledger::default(),
                packages: Packages::default(),
                projects: Vec::new(),
                host: Vec::new(),
                host_files: Vec::new(),
                trust: TrustFile::default(),
                profile: None,
                servers: Vec::new(),
                checked: None,
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

    /// Takes the profile that the host chose, before anything is read.
    pub fn set_profile(&self, name: Option<&str>) {
        self.book().profile = name.map(str::to_owned);
    }

    /// Another profile, while servers run.
    pub fn choose_profile(&self, core: &Arc<Core>, name: &str) {
        self.set_profile(Some(name));
        self.reload(core);
        core.changes.mark_all(core, ChangeReason::Config);
    }

    /// Looks at the profile in use, or at another one.
    pub fn with_profile<T>(&self, name: Option<&str>, look: impl FnOnce(Option<Choice<'_>>) -> T) -> T {
        let book = self.book();
        look(book.profile(name))
    }

    /// Reads every file again and brings the servers in line. Nothing unchanged is touched.
    pub fn reload(&self, core: &Arc<Core>) -> Reloaded {
        let mut book = self.book();
        let book = &mut *book;
        let before = book.state();
        let policy = Policy::read(&core.env);
        if let Some(mode) = files::keep_private(core.env.data_dir()) {
            tracing::warn!(folder = %core.env.data_dir().display(), "others could read this folder (mode {mode:o}); not any more");
        }
        book.user = ConfigFile::read(&user_file(core));
        book.ledger = Ledger::read(&book.user.beside);
        book.packages = Packages::read(&core.env.data_dir().join("packages"), None);
        book.trust = TrustFile::read(&trust_file(core));
        book.projects = core
            .real_directories()
            .into_iter()
            .map(|(root, directory)| Project::read(root, directory))
            .collect();
        book.host_files = book
            .host
            .iter()
            .filter_map(|layer| layer.file.as_ref())
            .map(|path| ConfigFile::read(&core.env.expand_tilde(path)))
            .collect();
        let mut wanted = book.wanted(core);
        for wanted in &mut wanted {
            if let Some(reason) = policy.forbids(&wanted.place.name, &wanted.entry) {
                wanted.gate = Gate::Forbidden { reason };
            }
        }
        if let Some(choice) = book.profile(None) {
            for wanted in wanted.iter_mut().filter(|wanted| wanted.gate.is_open()) {
                let place = &wanted.place;
                if let Some(reason) = choice.leaves_out(place.root.as_deref(), &place.name) {
                    wanted.gate = Gate::Outside {
                        profile: choice.name.to_owned(),
                        reason,
                    };
                }
            }
        }
        core.set_policy(policy);
        let reloaded = reconcile(core, &mut book.servers, wanted);
        // The first look is no change.
        if book.checked.is_some() {
            for reason in book.state().differs(&before) {
                core.changes.mark_all(core, reason);
            }
        }
        book.checked = Some(Instant::now());
        reloaded
    }

    /// Reads the files again if one of them may have changed.
    pub fn freshen(&self, core: &Arc<Core>) {
        if self.is_outdated(core) {
            self.reload(core);
        }
    }

    /// The same where it is asked many times a second.
    pub fn freshen_soon(&self, core: &Arc<Core>) {
        let is_due = self
            .book()
            .checked
            .is_none_or(|at| at.elapsed() > limits::STAMP_LIFE);
        if is_due {
            self.freshen(core);
        }
    }

    /// Whether a file may have changed, or a request lapsed.
    pub fn is_outdated(&self, core: &Core) -> bool {
        let directories = core.real_directories();
        let mut book = self.book();
        book.checked = Some(Instant::now());
        let open = book.projects.iter().map(|project| &project.root);
        book.user.outdated()
            || book.trust.outdated()
            || core.policy_outdated()
            || book.packages.outdated()
            || book.host_files.iter().any(ConfigFile::outdated)
            || !open.eq(directories.iter().map(|(root, _)| root))
            || book
                .projects
                .iter()
                .any(|project| project.file.outdated() || project.packages.outdated())
            || book.next_end().is_some_and(|end| end <= env::now())
    }

    /// When a request lapses next.
    pub fn next_end(&self) -> Option<u64> {
        self.book().next_end()
    }

    /// The folders in which a change may concern us.
    pub fn watched(&self, core: &Core) -> Vec<PathBuf> {
        let book = self.book();
        let mut folders = vec![
            core.env.data_dir().to_owned(),
            core.env.data_dir().join("packages"),
        ];
        folders.extend(book.packages.folders());
        for project in &book.projects {
            folders.push(project.root.clone());
            folders.push(project.root.join(".pillion"));
            folders.push(project.root.join(".pillion/packages"));
            folders.extend(project.packages.folders());
        }
        folders.retain(|folder| folder.is_dir());
        folders
    }

    /// Every server of every directory.
    pub fn all(&self) -> Vec<Arc<Server>> {
        self.book().servers.clone()
    }

    /// All servers that a directory has, shadowed ones too, in the order they are shown.
    pub fn visible(&self, root: &Path) -> Vec<Arc<Server>> {
        let book = self.book();
        let visible = book.servers.iter().filter(|server| server.is_visible(root));
        visible.cloned().collect()
    }

    /// The servers that count in a directory: one per name.
    pub fn effective(&self, root: &Path) -> Vec<Arc<Server>> {
        let visible = self.visible(root);
        let counts = |server: &&Arc<Server>| {
            first(&visible, &server.name, |other| !other.needs_trust())
                .is_some_and(|first| Arc::ptr_eq(first, server))
        };
        visible.iter().filter(counts).cloned().collect()
    }

    /// The server that counts under a name. An entry of an untrusted project does not exist.
    pub fn find(&self, root: &Path, name: &str) -> Option<Arc<Server>> {
        let book = self.book();
        let visible = book
            .servers
            .iter()
            .filter(|server| &*server.name == name && server.is_visible(root) && !server.needs_trust());
        visible.min_by_key(|server| rank(server.layer)).cloned()
    }

    /// The server that shows under a name: the one that counts, else one that waits for trust.
    pub fn shown(&self, root: &Path, name: &str) -> Option<Arc<Server>> {
        self.find(root, name).or_else(|| {
            let book = self.book();
            let visible = book
                .servers
                .iter()
                .filter(|server| &*server.name == name && server.is_visible(root));
            visible.min_by_key(|server| rank(server.layer)).cloned()
        })
    }

    /// The server of a name in one layer.
    pub fn in_layer(&self, root: &Path, name: &str, layer: Layer) -> Option<Arc<Server>> {
        self.book()
            .servers
            .iter()
            .find(|server| &*server.name == name && server.layer == layer && server.is_visible(root))
            .cloned()
    }

    /// The files of a directory, with their layers.
    pub fn files(&self, root: &Path) -> Vec<(Layer, ConfigFile)> {
        let book = self.book();
        let mut files = vec![(Layer::User, book.user.clone())];
        let of_packages = |packages: &Packages, layer| -> Vec<(Layer, ConfigFile)> {
            let list = packages.list.iter().filter(|package| package.file.exists);
            list.map(|package| (layer, package.file.clone())).collect()
        };
        files.extend(of_packages(&book.packages, Layer::UserPackage));
        for project in book.projects.iter().filter(|project| project.root == root) {
            files.push((Layer::Project, project.file.clone()));
            files.extend(of_packages(&project.packages, Layer::ProjectPackage));
        }
        files.extend(book.host_files.iter().map(|file| (Layer::Host, file.clone())));
        files
    }

    /// Members of an entry that we do not know.
    pub fn unknown(&self, server: &Server) -> Vec<String> {
        let book = self.book();
        let packages = book
            .projects
            .iter()
            .flat_map(|project| std::iter::once(&project.file).chain(project.packages.files()));
        let mut files = std::iter::once(&book.user)
            .chain(book.packages.files())
            .chain(packages)
            .chain(&book.host_files);
        let file = files.find(|file| Some(&file.path) == server.file.as_ref());
        file.into_iter()
            .flat_map(|file| &file.entries)
            .find(|entry| entry.name == *server.name)
            .map(|entry| entry.unknown.clone())
            .unwrap_or_default()
    }

    /// What a person has to decide about an entry, or decided, whatever trust and an administrator say.
    pub fn undecided(&self, server: &Server) -> Gate {
        let (book, now) = (self.book(), env::now());
        let entry = (!server.is_empty).then(|| server.entry());
        let modified = book.modified(server.layer, server.file.as_deref(), now);
        pending::gate(&book.ledger, &server.place(), entry.as_deref(), modified, now)
    }

    /// What was asked for and not decided.
    pub fn ledger(&self) -> Ledger {
        self.book().ledger.clone()
    }

    /// How trust in a directory stands.
    pub fn trust_state(&self, root: &Path) -> TrustState {
        let book = self.book();
        let items = book.trust_items(root);
        book.trust.state(
            root,
            items.iter().map(|item| (item.key.as_str(), item.digest.as_str())),
        )
    }

    /// What there is to trust in a directory, its digest, and what was trusted.
    pub fn to_trust(&self, root: &Path) -> (Vec<TrustItem>, String, Option<Trusted>) {
        let book = self.book();
        let items = book.trust_items(root);
        let revision = trust::revision(items.iter().map(|item| (item.key.as_str(), item.digest.as_str())));
        (items, revision, book.trust.of(root).cloned())
    }
}

/// The user's `mcp.json`.
pub(crate) fn user_file(core: &Core) -> PathBuf {
    core.env.data_dir().join("mcp.json")
}

/// Where trust is kept.
pub(crate) fn trust_file(core: &Core) -> PathBuf {
    core.env.data_dir().join("trust.json")
}

/// The `mcp.json` of a project.
pub(crate) fn project_file(root: &Path) -> PathBuf {
    root.join(".pillion/mcp.json")
}

impl Project {
    fn read(root: PathBuf, directory: Dir) -> Project {
        Project {
            file: ConfigFile::read_shared(&project_file(&root), &root),
            packages: Packages::read(&root.join(".pillion/packages"), Some(&root)),
            root,
            directory,
        }
    }
}

impl Book {
    /// What `mcp.status` says of the whole: a change of it is told.
    fn state(&self) -> State {
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
    fn profile<'b>(&'b self, name: Option<&'b str>) -> Option<Choice<'b>> {
        let projects = self.projects.iter();
        let projects = projects.map(|project| (project.root.as_path(), &project.file));
        Choice::new(name.or(self.profile.as_deref()), &self.user, projects.collect())
    }

    fn next_end(&self) -> Option<u64> {
        let of_servers = self.servers.iter().filter_map(|server| match server.gate() {
            Gate::Pending { expires_at } => Some(expires_at),
            _ => None,
        });
        of_servers.chain(self.ledger.next_end()).min()
    }

    /// The entries of a project that need trust. What a request put there has been seen by a person already.
    fn trust_items(&self, root: &Path) -> Vec<TrustItem> {
        let Some(project) = self.projects.iter().find(|project| project.root == root) else {
            return Vec::new();
        };
        let item = |layer, key: String, base: &Path, entry: &FileEntry| TrustItem {
            key,
            layer,
            name: entry.name.clone(),
            base: base.to_owned(),
            entry: entry.entry.clone(),
            digest: review::digest(&entry.entry),
            faults: faults_of(entry),
        };
        let mut items: Vec<TrustItem> = project
            .file
            .entries
            .iter()
            .map(|entry| item(Layer::Project, format!("project:{}", entry.name), root, entry))
            .collect();
        for package in &project.packages.list {
            for entry in &package.file.entries {
                let key = format!("package:{}:{}", package.folder, entry.name);
                items.push(item(Layer::ProjectPackage, key, &package.path, entry));
            }
        }
        items
    }

    fn wanted(&self, core: &Core) -> Vec<Wanted> {
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
            self.decide(wanted, now);
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
                    faults,
                    gate: Gate::Open,
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
        if !self
            .trust
            .trusts(&project.root, key, &review::digest(&wanted.entry))
        {
            wanted.gate = Gate::NeedsTrust;
        }
    }

    /// Personal switches, requests, tombstones.
    fn decide(&self, wanted: &mut Wanted, now: u64) {
        if let Some(enabled) = self.ledger.switches.get(&wanted.place) {
            wanted.enabled = *enabled;
        }
        let modified = self.modified(wanted.place.layer, wanted.file.as_deref(), now);
        let gate = pending::gate(&self.ledger, &wanted.place, Some(&wanted.entry), modified, now);
        if !gate.is_open() {
            wanted.gate = gate;
        }
    }

    /// When the file of an entry was written; now, where nobody noted it.
    fn modified(&self, layer: Layer, file: Option<&Path>, now: u64) -> u64 {
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
                faults: Vec::new(),
                enabled: false,
                gate,
                is_empty: true,
            });
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
    let faults = faults_of(entry);
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
        faults,
        gate: Gate::Open,
        is_empty: false,
    }
}

/// What is wrong with an entry, with the places.
fn faults_of(entry: &FileEntry) -> Vec<String> {
    let faults = entry.faults.iter().map(|fault| match fault.place {
        Some(place) => format!("{} (line {}, column {})", fault.message, place.line, place.column),
        None => fault.message.clone(),
    });
    faults.collect()
}

fn rank(layer: Layer) -> usize {
    ORDER
        .iter()
        .position(|other| *other == layer)
        .unwrap_or(ORDER.len())
}

/// Of several servers with one name the one of the highest layer, a disabled one too.
fn first<'s>(
    servers: &'s [Arc<Server>],
    name: &str,
    counts: impl Fn(&Server) -> bool,
) -> Option<&'s Arc<Server>> {
    let named = servers
        .iter()
        .filter(|server| &*server.name == name && counts(server));
    named.min_by_key(|server| rank(server.layer))
}

/// Brings the servers in line with what is wanted: what launches the same thing is kept, whatever else changed in it.
fn reconcile(core: &Arc<Core>, servers: &mut Vec<Arc<Server>>, wanted: Vec<Wanted>) -> Reloaded {
    let mut reloaded = Reloaded::default();
    let mut old: BTreeMap<Place, Arc<Server>> =
        servers.drain(..).map(|server| (server.place(), server)).collect();
    let mut touched: Vec<Arc<Server>> = Vec::new();
    for wanted in wanted {
        // The first of two packages or host layers with the same name counts.
        if servers.iter().any(|server| server.place() == wanted.place) {
            continue;
        }
        let name = ServerName::from(wanted.place.name.as_str());
        let digest = crate::server::launch::digest_of(core, &name, &wanted.entry);
        match old.remove(&wanted.place) {
            Some(server) if server.digest == digest && server.is_empty == wanted.is_empty => {
                reloaded.unchanged.push(name);
                server.update(wanted.entry, wanted.faults, wanted.enabled, wanted.gate);
                servers.push(server);
            }
            known => {
                if let Some(server) = &known {
                    server.retire();
                }
                let Wanted {
                    place,
                    directory,
                    file,
                    base,
                    entry,
                    faults,
                    enabled,
                    gate,
                    is_empty,
                } = wanted;
                let server = Server::new(
                    core,
                    NewServer {
                        name: name.clone(),
                        layer: place.layer,
                        root: place.root,
                        directory,
                        file,
                        entry,
                        faults,
                        base,
                        enabled,
                        gate,
                        is_empty,
                    },
                );
                if known.is_some() {
                    reloaded.changed.push(name);
                } else {
                    reloaded.added.push(name);
                }
                touched.push(Arc::clone(&server));
                servers.push(server);
            }
        }
    }
    for server in old.into_values() {
        server.retire();
        reloaded.removed.push(server.name.clone());
        touched.push(server);
    }
    for server in touched {
        core.changes.mark_name(core, &server, ChangeReason::Config);
    }
    reloaded
}
