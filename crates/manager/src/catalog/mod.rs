//! What one server offers, read on demand and kept until the server says that it changed.

pub(crate) mod items;
pub(crate) mod names;
pub(crate) mod page;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp::{CallError, CallOptions, Connection, Era, ListKind, ListLimits, Transport};
use protocol::{Category, ChangeReason, ErrorKind, Issue, ServerName, ToolCost};

use crate::limits;
use crate::model::{guard, manifest};
use crate::server::Server;
use items::{List, Reader};

/// One reading of a list.
struct Reading {
    list: List,
    /// The outcome may be kept.
    keep: bool,
    stale_at: Option<Instant>,
}

/// The categories in the order of a catalog.
pub(crate) const CATEGORIES: [Category; 4] = [
    Category::Tools,
    Category::Resources,
    Category::Templates,
    Category::Prompts,
];

/// The lists of one server.
pub(crate) struct Catalog {
    server: ServerName,
    slots: [Slot; 4],
    /// The tools as they were kept on the disk, once somebody asked for them.
    kept: Mutex<Option<Arc<List>>>,
    /// Counts the changes a host could see.
    changes: AtomicU64,
}

#[derive(Default)]
struct Slot {
    /// Only one request for the same list at a time; the others wait for its outcome.
    reading: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    list: Option<Arc<List>>,
    /// Digest of the last list, kept when the list is dropped: an unchanged list is no news.
    digest: Option<String>,
    /// Grows when the list is dropped, so that an answer that was under way is not kept as fresh.
    generation: u64,
    /// Somebody has asked for this list since the connection began.
    wanted: bool,
    /// When the list is no longer fresh (2026-07-28, `ttlMs`); `None`: the server says when it changed.
    stale_at: Option<Instant>,
}

impl Slot {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index(category: Category) -> usize {
    match category {
        Category::Tools => 0,
        Category::Resources => 1,
        Category::Templates => 2,
        Category::Prompts => 3,
    }
}

fn kind(category: Category) -> ListKind {
    match category {
        Category::Tools => ListKind::Tools,
        Category::Resources => ListKind::Resources,
        Category::Templates => ListKind::ResourceTemplates,
        Category::Prompts => ListKind::Prompts,
    }
}

fn reason(category: Category) -> ChangeReason {
    match category {
        Category::Tools => ChangeReason::Tools,
        Category::Resources => ChangeReason::Resources,
        Category::Templates => ChangeReason::Templates,
        Category::Prompts => ChangeReason::Prompts,
    }
}

impl Catalog {
    pub fn new(server: ServerName) -> Catalog {
        Catalog {
            server,
            slots: Default::default(),
            kept: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// A new connection: what the last one listed may no longer hold.
    pub fn connected(&self) {
        self.forget_items();
    }

    /// Drops every list; the next use reads it again.
    pub fn forget_items(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        for slot in &self.slots {
            let mut known = slot.known();
            known.list = None;
            known.generation += 1;
        }
    }

    /// Drops the lists that a notification speaks of. `false`: they were dropped already, a reading is due anyway.
    pub fn invalidate(&self, changed: ListKind) -> bool {
        let categories: &[Category] = match changed {
            ListKind::Tools => &[Category::Tools],
            ListKind::Prompts => &[Category::Prompts],
            // Servers announce both with one notification.
            ListKind::Resources | ListKind::ResourceTemplates => &[Category::Resources, Category::Templates],
        };
        let mut dropped = false;
        for category in categories {
            let mut known = self.slots[index(*category)].known();
            dropped |= known.list.take().is_some();
            known.generation += 1;
        }
        dropped
    }

    /// What is known of a category, without asking.
    pub fn known(&self, category: Category) -> Option<Arc<List>> {
        self.slots[index(category)].known().list.clone()
    }

    /// What is known of a category, as long as it is fresh.
    pub fn fresh(&self, category: Category) -> Option<Arc<List>> {
        let known = self.slots[index(category)].known();
        let is_stale = known.stale_at.is_some_and(|at| at <= Instant::now());
        known.list.clone().filter(|_| !is_stale)
    }

    /// Numbers of items that are known, in the order of [`CATEGORIES`].
    pub fn counts(&self) -> [Option<u32>; 4] {
        CATEGORIES.map(|category| self.known(category).map(|list| list.items.len() as u32))
    }

    /// What there is to say about the lists that are known.
    pub fn issues(&self) -> Vec<Issue> {
        CATEGORIES
            .iter()
            .filter_map(|category| self.known(*category))
            .flat_map(|list| list.issues.clone())
            .collect()
    }

    /// Changes with every change of a list.
    pub fn revision(&self) -> Option<String> {
        let changes = self.changes.load(Ordering::Relaxed);
        (changes > 0).then(|| changes.to_string())
    }

    /// The tools, read now only if they are not known: a call needs no fresher list than the one it was chosen from.
    pub async fn tools(&self, server: &Arc<Server>, connection: &Connection) -> Arc<List> {
        match self.known(Category::Tools) {
            Some(list) => list,
            None => self.list(server, connection, Category::Tools).await,
        }
    }

    /// What the tools would take of a model's context, by the list that is known or was kept, without asking anybody.
    pub fn seen_costs(&self) -> Option<Arc<[ToolCost]>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(self.known(Category::Tools).or_else(kept)?.costs())
    }

    /// The tools as they were seen last: by this connection, or before by any process. `None`: never.
    pub async fn seen_tools(&self, server: &Arc<Server>) -> Option<Arc<List>> {
        if let Some(list) = self.known(Category::Tools) {
            return Some(list);
        }
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = kept().clone() {
            return Some(list);
        }
        let list = Arc::new(manifest::load(server).await?);
        *kept() = Some(Arc::clone(&list));
        Some(list)
    }

    /// One list, read now if it is not known. What went wrong is in its issues.
    pub async fn list(&self, server: &Arc<Server>, connection: &Connection, category: Category) -> Arc<List> {
        let slot = &self.slots[index(category)];
        if let Some(list) = self.fresh(category) {
            return list;
        }
        let _reading = slot.reading.lock().await;
        let generation = {
            let mut known = slot.known();
            known.wanted = true;
            let is_fresh = known.stale_at.is_none_or(|at| at > Instant::now());
            if let Some(list) = known.list.as_ref().filter(|_| is_fresh) {
                return Arc::clone(list);
            }
            known.generation
        };
        let Reading { list, keep, stale_at } = self.read(server, connection, category).await;
        let list = Arc::new(list);
        let digest = digest(&list);
        let news = {
            let mut known = slot.known();
            if keep && known.generation == generation {
                self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
                known.list = Some(Arc::clone(&list));
                known.stale_at = stale_at;
            }
            let news = known.digest.as_ref() != Some(&digest);
            known.digest = Some(digest);
            news
        };
        if news {
            self.changes.fetch_add(1, Ordering::Relaxed);
            server.changed(reason(category));
        }
        list
    }

    /// Reads again what had been asked for and was dropped meanwhile.
    pub async fn refresh(&self, server: &Arc<Server>, connection: &Connection) {
        for category in CATEGORIES {
            let due = {
                let known = self.slots[index(category)].known();
                known.wanted && known.list.is_none()
            };
            if due {
                self.list(server, connection, category).await;
            }
        }
    }

    async fn read(&self, server: &Arc<Server>, connection: &Connection, category: Category) -> Reading {
        if !is_advertised(connection, category) {
            let mut list = List::default();
            if category == Category::Tools {
                guard::compare(server, connection.info().instructions.clone(), &mut list).await;
            }
            return Reading {
                list,
                keep: true,
                stale_at: None,
            };
        }
        let info = connection.info();
        let entry = server.entry();
        let naming = &server.core.settings().naming;
        let header_rules = info.era == Era::Modern && info.transport == Transport::StreamableHttp;
        let reader = Reader {
            server: &self.server,
            entry: &entry,
            naming,
            header_rules,
        };
        match connection
            .list(
                kind(category),
                ListLimits::default(),
                CallOptions::new(server.call_timeout()),
            )
            .await
        {
            Ok(listed) => {
                let stale_at = stale_at(connection, category, listed.ttl_ms);
                let mut list = reader.list(category, listed.items, listed.issues);
                if category == Category::Tools {
                    guard::compare(server, connection.info().instructions.clone(), &mut list).await;
                    manifest::keep(server, &list);
                }
                Reading {
                    stale_at,
                    list,
                    keep: true,
                }
            }
            Err(error) => {
                // A refusal will not change by asking again; a lost connection or a time-out may.
                let keep = matches!(error, CallError::Rpc { .. });
                let error = server.call_error(error);
                let mut issue = Issue::new(
                    error.kind.clone(),
                    format!("the {} could not be listed: {}", shown(category), error.message),
                );
                if error.kind == ErrorKind::McpError
                    && error.data.mcp.as_ref().is_some_and(|fault| fault.code == -32601)
                {
                    issue.message =
                        format!("the server announces {} but does not list them", shown(category));
                }
                issue.hint = error.data.hint.clone();
                issue.server = Some(self.server.clone());
                issue.category = Some(category);
                Reading {
                    list: List::failed(issue),
                    keep,
                    stale_at: None,
                }
            }
        }
    }
}

fn shown(category: Category) -> &'static str {
    match category {
        Category::Tools => "tools",
        Category::Resources => "resources",
        Category::Templates => "resource templates",
        Category::Prompts => "prompts",
    }
}

/// The capability that stands for a list.
fn capability(category: Category) -> &'static str {
    match category {
        Category::Tools => "tools",
        Category::Resources | Category::Templates => "resources",
        Category::Prompts => "prompts",
    }
}

/// Whether the server says that it has such a list.
fn is_advertised(connection: &Connection, category: Category) -> bool {
    connection
        .info()
        .capabilities
        .get(capability(category))
        .is_some_and(|value| !value.is_null())
}

/// When a list is to be read again although no change was announced. Servers of the older era give no time.
fn stale_at(connection: &Connection, category: Category, ttl_ms: Option<u64>) -> Option<Instant> {
    if connection.info().era == Era::Legacy {
        return None;
    }
    let announces = connection.info().capabilities[capability(category)]["listChanged"] == true;
    let ttl = match ttl_ms {
        None if announces => return None,
        ttl => Duration::from_millis(ttl.unwrap_or(0)).min(limits::LONGEST_TTL),
    };
    Some(Instant::now() + ttl)
}

fn digest(list: &List) -> String {
    use protocol::CatalogItem;
    let mut text = String::new();
    for item in &list.items {
        if let CatalogItem::Tool(tool) = &item.shown {
            // The names and words of the entry, apart from the server's own.
            text.push_str(&tool.exposed);
            for shown in [&tool.title, &tool.description].into_iter().flatten() {
                text.push_str(shown);
            }
            text.push_str(tool.hidden.as_ref().map_or("", |hidden| hidden.as_str()));
        }
        text.push_str(match &item.shown {
            CatalogItem::Tool(item) => item.raw.get(),
            CatalogItem::Resource(item) => item.raw.get(),
            CatalogItem::Template(item) => item.raw.get(),
            CatalogItem::Prompt(item) => item.raw.get(),
        });
        text.push('\n');
    }
    for issue in &list.issues {
        text.push_str(&issue.message);
        text.push('\n');
    }
    crate::config::file::digest(text.as_bytes())
}
