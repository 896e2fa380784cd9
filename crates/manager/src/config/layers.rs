//! The layers and what they come to: which servers there are, and which of several with the same name counts where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use protocol::{ChangeReason, HostLayer, Layer, ServerName, TrustState};
use tokio::sync::Notify;

use super::book::{Book, Project, TrustItem, Wanted};
use super::file::{self, ConfigFile};
use super::members::Unknown;
use super::packages::Packages;
use super::profiles::Choice;
use super::remembered::Remembered;
use crate::consent::ledger::{Ledger, Place};
use crate::consent::policy::Policy;
use crate::consent::trust::{self, TrustFile, Trusted};
use crate::consent::{Gate, pending};
use crate::core::Core;
use crate::env::{self, Env};
use crate::limits;
use crate::server::{NewServer, Server};

/// All configured servers, by layer, directory and name.
pub(crate) struct Layers {
    book: Mutex<Book>,
    news: Arc<Notify>,
}

/// What a reload did.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reloaded {
    pub added: Vec<ServerName>,
    pub removed: Vec<ServerName>,
    pub changed: Vec<ServerName>,
    pub unchanged: Vec<ServerName>,
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
                remembered: Remembered::new(core.env.data_dir()),
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
            news: Arc::new(Notify::new()),
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
        keep_private(&core.env);
        book.user = ConfigFile::read(&user_file(core)).after(&book.user);
        book.remembered.sync(&mut book.user);
        book.ledger = Ledger::read(&book.user.beside);
        book.packages = Packages::read(&core.env.data_dir().join("packages"), None).after(&book.packages);
        book.trust = TrustFile::read(&trust_file(core));
        book.projects = core
            .real_directories()
            .into_iter()
            .map(|(root, directory)| {
                let mut project = Project::read(root, directory);
                let mut before = book.projects.iter();
                if let Some(before) = before.find(|before| before.root == project.root) {
                    project = project.after(before);
                }
                project.bound();
                project.hold(&core.env);
                project
            })
            .collect();
        book.host_files = book
            .host
            .iter()
            .filter_map(|layer| layer.file.as_ref())
            .map(|path| {
                let file = ConfigFile::read(&core.env.expand_tilde(path));
                let before = book.host_files.iter().find(|before| before.path == file.path);
                match before {
                    Some(before) => file.after(before),
                    None => file,
                }
            })
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
        self.news.notify_one();
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
            || book.held().any(|held| held.outdated())
            || book.next_end().is_some_and(|end| end <= env::now())
    }

    /// When a request lapses next.
    pub fn next_end(&self) -> Option<u64> {
        self.book().next_end()
    }

    /// The files and folders whose change concerns us. Not all exist.
    pub fn watched(&self, core: &Core) -> Vec<PathBuf> {
        let book = self.book();
        let mut paths = vec![user_file(core), trust_file(core)];
        // Where there is none yet, every start of a program is told in the folder above, `/etc`.
        let policies = core.policy_files().into_iter();
        paths.extend(policies.filter(|file| file.parent().is_some_and(Path::is_dir)));
        paths.extend(book.host_files.iter().map(|file| file.path.clone()));
        paths.extend(book.packages.watched());
        for project in &book.projects {
            paths.push(project.file.path.clone());
            paths.extend(project.packages.watched());
        }
        paths.extend(book.held().map(|held| held.path().to_owned()));
        paths
    }

    /// Told when something may have changed: by whoever watches the files, and after each reload, which may bring
    /// others to watch.
    pub fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.news)
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

    /// The server that counts under a name where an entry of this layer does not.
    pub fn below(&self, root: &Path, name: &str, layer: Layer) -> Option<Arc<Server>> {
        let visible = self.visible(root);
        let is_below =
            |other: &Server| rank(other.layer) > rank(layer) && !other.is_empty && !other.needs_trust();
        first(&visible, name, is_below).cloned()
    }

    /// The files of a directory, with their layers; a project's come last.
    pub fn files(&self, root: &Path) -> Vec<(Layer, ConfigFile)> {
        let book = self.book();
        let mut files = vec![(Layer::User, book.user.clone())];
        let of_packages = |packages: &Packages, layer| -> Vec<(Layer, ConfigFile)> {
            let list = packages.list.iter().filter(|package| package.file.exists);
            list.map(|package| (layer, package.file.clone())).collect()
        };
        files.extend(of_packages(&book.packages, Layer::UserPackage));
        files.extend(book.host_files.iter().map(|file| (Layer::Host, file.clone())));
        for project in book.projects.iter().filter(|project| project.root == root) {
            files.push((Layer::Project, project.file.clone()));
            files.extend(of_packages(&project.packages, Layer::ProjectPackage));
        }
        files
    }

    /// Members of an entry that we do not know.
    pub fn unknown(&self, server: &Server) -> Vec<Unknown> {
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
        let (entry, held) = ((!server.is_empty).then(|| server.entry()), server.held());
        let entry = entry.as_deref().map(|entry| (entry, held.as_ref()));
        let modified = book.modified(server.layer, server.file.as_deref(), now);
        pending::gate(&book.ledger, &server.place(), entry, modified, now)
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

/// Takes the rights of others on the data folder and on the person's files away. What was found is told, for people.
/// Blocks on the disk.
pub fn keep_private(env: &Env) -> Vec<String> {
    let folder = env.data_dir();
    let files = [
        folder.to_owned(),
        folder.join("mcp.json"),
        folder.join("trust.json"),
    ];
    files.iter().filter_map(|path| file::keep_private(path)).collect()
}

/// The `mcp.json` of a project.
pub(crate) fn project_file(root: &Path) -> PathBuf {
    root.join(".pillion/mcp.json")
}

pub(super) fn rank(layer: Layer) -> usize {
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
                let gate = (wanted.gate, wanted.held);
                server.update(wanted.entry, wanted.reading, wanted.enabled, gate);
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
                    reading,
                    enabled,
                    gate,
                    held,
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
                        reading,
                        base,
                        enabled,
                        gate,
                        held,
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
