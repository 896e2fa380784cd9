//! What servers offer, over all of them: each list isolated by server and category, waiting no longer than asked.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::{
    CatalogItem, CatalogServer, Category, Cursor, Dir, Error, ErrorKind, Issue, IssueKind, McpCatalog,
    McpCatalogResult, McpPromptsList, McpPromptsListResult, McpResourcesList, McpResourcesListResult,
    McpToolsList, McpToolsListResult, Raw, ResourceOrTemplate, ServerName, State as Name, Tier, Token,
};
use tokio::time::Instant;

use super::Manager;
use crate::catalog::items::List;
use crate::catalog::page::{self, Page};
use crate::limits;
use crate::progress::Work;
use crate::server::Server;
use crate::sink::RequestContext;

/// What a list method asks for.
struct Wish {
    method: &'static str,
    categories: &'static [Category],
    directory: Dir,
    server: Option<ServerName>,
    cursor: Option<Cursor>,
    limit: Option<u32>,
    reach: Reach,
    token: Option<Token>,
}

macro_rules! wish {
    ($method:literal, $categories:expr, $params:expr) => {
        Wish {
            method: $method,
            categories: $categories,
            directory: $params.directory,
            server: $params.server,
            cursor: $params.cursor,
            limit: $params.limit,
            reach: Reach {
                reload: $params.reload == Some(true),
                discover: $params.discover != Some(false),
                wait: Duration::from_millis($params.wait_ms.unwrap_or(limits::LIST_WAIT_MS)),
            },
            token: $params.work_done_token,
        }
    };
}

/// What one server gave.
pub(super) struct Part {
    pub server: Arc<Server>,
    pub lists: Vec<Arc<List>>,
    /// Why there is nothing, or not everything.
    pub issue: Option<Issue>,
}

impl Part {
    /// Everything there is to say about it.
    pub fn issues(&self) -> impl Iterator<Item = &Issue> {
        self.issue
            .iter()
            .chain(self.lists.iter().flat_map(|list| &list.issues))
    }
}

/// How far a list may go to find out what servers offer.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    pub reload: bool,
    /// Whether servers may be started and asked.
    pub discover: bool,
    pub wait: Duration,
}

/// What all servers gave.
struct Gathered {
    page: Page,
    issues: Vec<Issue>,
    servers: Vec<Arc<Server>>,
}

impl Manager {
    /// `mcp.tools.list`.
    pub async fn tools_list(
        &self,
        request: &RequestContext,
        params: McpToolsList,
    ) -> Result<McpToolsListResult, Error> {
        let gathered = self
            .gather(request, wish!("mcp.tools.list", &[Category::Tools], params))
            .await?;
        let items = gathered.page.items.into_iter().filter_map(|item| match item {
            CatalogItem::Tool(tool) => Some(tool),
            _ => None,
        });
        Ok(McpToolsListResult {
            items: items.collect(),
            issues: gathered.issues,
            next_cursor: gathered.page.next,
        })
    }

    /// `mcp.resources.list`: resources and templates.
    pub async fn resources_list(
        &self,
        request: &RequestContext,
        params: McpResourcesList,
    ) -> Result<McpResourcesListResult, Error> {
        let wish = wish!(
            "mcp.resources.list",
            &[Category::Resources, Category::Templates],
            params
        );
        let gathered = self.gather(request, wish).await?;
        let items = gathered.page.items.into_iter().filter_map(|item| match item {
            CatalogItem::Resource(resource) => Some(ResourceOrTemplate::Resource(resource)),
            CatalogItem::Template(template) => Some(ResourceOrTemplate::Template(template)),
            _ => None,
        });
        Ok(McpResourcesListResult {
            items: items.collect(),
            issues: gathered.issues,
            next_cursor: gathered.page.next,
        })
    }

    /// `mcp.prompts.list`.
    pub async fn prompts_list(
        &self,
        request: &RequestContext,
        params: McpPromptsList,
    ) -> Result<McpPromptsListResult, Error> {
        let gathered = self
            .gather(request, wish!("mcp.prompts.list", &[Category::Prompts], params))
            .await?;
        let items = gathered.page.items.into_iter().filter_map(|item| match item {
            CatalogItem::Prompt(prompt) => Some(prompt),
            _ => None,
        });
        Ok(McpPromptsListResult {
            items: items.collect(),
            issues: gathered.issues,
            next_cursor: gathered.page.next,
        })
    }

    /// `mcp.catalog`: everything, and what each server says of itself.
    pub async fn catalog(
        &self,
        request: &RequestContext,
        params: McpCatalog,
    ) -> Result<McpCatalogResult, Error> {
        let gathered = self
            .gather(request, wish!("mcp.catalog", &crate::catalog::CATEGORIES, params))
            .await?;
        Ok(McpCatalogResult {
            items: gathered.page.items,
            issues: gathered.issues,
            next_cursor: gathered.page.next,
            servers: gathered
                .servers
                .iter()
                .map(|server| catalog_server(server))
                .collect(),
        })
    }

    /// The servers of a directory that may be used.
    pub(super) fn enabled_servers(&self, directory: &Dir) -> Result<Vec<Arc<Server>>, Error> {
        let root = self.root(directory)?;
        self.layers.freshen(&self.core);
        let mut servers = self.layers.effective(&root);
        servers.retain(|server| server.is_enabled());
        servers.sort_by_key(|server| server.is_of_project());
        Ok(servers)
    }

    async fn gather(&self, request: &RequestContext, wish: Wish) -> Result<Gathered, Error> {
        let servers = match &wish.server {
            Some(name) => {
                let server = self.server(&wish.directory, name)?;
                if let Some(refusal) = server.refusal() {
                    return Err(refusal);
                }
                vec![server]
            }
            None => self.enabled_servers(&wish.directory)?,
        };
        let title = match &wish.server {
            Some(name) => format!("Listing {name}"),
            None => format!("Listing {} servers", servers.len()),
        };
        let work = Work::begin(
            &self.core.calls,
            &self.core.sink,
            wish.token.as_ref(),
            &title,
            true,
        )?;
        let parts = tokio::select! {
            parts = collect(&servers, wish.categories, wish.reach, request.tier, &work) => parts,
            () = request.cancel.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "cancelled by the host")),
        };
        drop(work);
        let mut issues: Vec<Issue> = parts.iter().flat_map(Part::issues).cloned().collect();
        issues.truncate(1000);
        // The cursor holds for these lists of these servers only.
        let mut state = format!("{} {:?}", wish.method, wish.server);
        for part in &parts {
            state.push_str(&format!(
                " {}:{:?}:{}",
                part.server.name,
                part.server.catalog.revision(),
                part.lists.len()
            ));
        }
        let items = parts
            .iter()
            .flat_map(|part| &part.lists)
            .flat_map(|list| list.items.iter().map(|item| &item.shown));
        let page = page::cut(items, &state, wish.cursor.as_ref(), wish.limit)?;
        Ok(Gathered {
            page,
            issues,
            servers,
        })
    }
}

/// How far one server is.
enum Asked {
    Known(Part),
    Reading(Arc<Server>, tokio::task::JoinHandle<Part>),
}

/// Asks all servers at once. None waits for another, and all of them together no longer than the wish allows.
pub(super) async fn collect(
    servers: &[Arc<Server>],
    categories: &'static [Category],
    reach: Reach,
    by: Tier,
    work: &Work<'_>,
) -> Vec<Part> {
    let deadline = Instant::now() + reach.wait;
    let tasks: Vec<_> = servers
        .iter()
        .map(|server| {
            if reach.reload {
                server.catalog.forget_items();
            }
            if let Some(lists) = known(server, categories) {
                return Asked::Known(Part {
                    server: Arc::clone(server),
                    lists,
                    issue: None,
                });
            }
            if !reach.discover {
                return Asked::Known(undiscovered(server, categories));
            }
            let server = Arc::clone(server);
            // A task of its own: what is not ready in time goes on, and is there for the next list.
            Asked::Reading(
                Arc::clone(&server),
                tokio::spawn(async move { discover(&server, categories, by).await }),
            )
        })
        .collect();
    let waited_for = Waiting::new(&tasks, work);
    let parts = tasks.into_iter().map(|task| async {
        let (server, mut task) = match task {
            Asked::Known(part) => return part,
            Asked::Reading(server, task) => (server, task),
        };
        // A required server is waited for as long as its start may take.
        let is_required = server.entry().required == Some(true);
        let outcome = if is_required {
            Ok((&mut task).await)
        } else {
            tokio::time::timeout_at(deadline, &mut task).await
        };
        waited_for.done(&server);
        match outcome {
            Ok(Ok(part)) => part,
            Ok(Err(error)) => unready(
                &server,
                categories,
                Issue::new(ErrorKind::Internal, error.to_string()),
            ),
            Err(_) => {
                let state = server.state_name();
                let mut issue = Issue::new(
                    ErrorKind::TimedOut,
                    format!("`{}` is not ready yet ({})", server.name, state.as_str()),
                );
                issue.hint = Some("`mcp.changed` says when it is; then list again".to_owned());
                unready(&server, categories, issue)
            }
        }
    });
    tokio::select! {
        parts = futures_util::future::join_all(parts) => parts,
        never = waited_for.say() => match never {},
    }
}

/// Says which servers a list still waits for.
struct Waiting<'a> {
    names: Mutex<BTreeSet<ServerName>>,
    total: usize,
    work: &'a Work<'a>,
}

impl<'a> Waiting<'a> {
    fn new(tasks: &[Asked], work: &'a Work<'a>) -> Waiting<'a> {
        let names = tasks.iter().filter_map(|task| match task {
            Asked::Known(_) => None,
            Asked::Reading(server, _) => Some(server.name.clone()),
        });
        Waiting {
            names: Mutex::new(names.collect()),
            total: tasks.len(),
            work,
        }
    }

    fn done(&self, server: &Server) {
        self.names().remove(&server.name);
    }

    /// Goes on until it is dropped. Not every server that comes is worth a message: many may come at once.
    async fn say(&self) -> Infallible {
        let mut said = usize::MAX;
        loop {
            tokio::time::sleep(limits::WAITING_SAID).await;
            let names = self.names();
            if names.len() != said {
                said = names.len();
                self.work.message(&self.line(&names));
            }
        }
    }

    fn line(&self, names: &BTreeSet<ServerName>) -> String {
        let shown: Vec<&str> = names
            .iter()
            .take(limits::WAITED_FOR)
            .map(|name| &**name)
            .collect();
        let more = match names.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let done = self.total - names.len();
        format!(
            "{done} of {} servers, waiting for {}{more}",
            self.total,
            shown.join(", ")
        )
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<ServerName>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All the lists, when every one of them is known and its server still runs.
fn known(server: &Server, categories: &[Category]) -> Option<Vec<Arc<List>>> {
    server.connected()?;
    categories
        .iter()
        .map(|category| server.catalog.fresh(*category))
        .collect()
}

fn unready(server: &Arc<Server>, categories: &[Category], mut issue: Issue) -> Part {
    issue.server = Some(server.name.clone());
    let lists = if server.connected().is_some() {
        categories
            .iter()
            .filter_map(|category| server.catalog.known(*category))
            .collect()
    } else {
        Vec::new()
    };
    Part {
        server: Arc::clone(server),
        lists,
        issue: Some(issue),
    }
}

fn undiscovered(server: &Arc<Server>, categories: &[Category]) -> Part {
    let state = server.state_name();
    let issue = Issue::new(
        IssueKind::Note,
        format!("`{}` was not asked ({})", server.name, state.as_str()),
    );
    unready(server, categories, issue)
}

async fn discover(server: &Arc<Server>, categories: &[Category], by: Tier) -> Part {
    let _use = server.in_use();
    let connection = match server.connection(by).await {
        Ok(connection) => connection,
        Err(error) => {
            let mut issue = Issue::new(
                error.kind.clone(),
                format!("`{}`: {}", server.name, error.message),
            );
            issue.hint.clone_from(&error.data.hint);
            return unready(server, categories, issue);
        }
    };
    let lists = categories
        .iter()
        .map(|category| server.catalog.list(server, &connection, *category));
    let lists = futures_util::future::join_all(lists).await;
    Part {
        server: Arc::clone(server),
        lists,
        issue: None,
    }
}

fn catalog_server(server: &Server) -> CatalogServer {
    let connection = server.connected();
    let info = connection.as_ref().map(mcp::Connection::info);
    CatalogServer {
        server: server.name.clone(),
        state: match server.state_name() {
            Name::Ready if info.is_none() => Name::Stopped,
            state => state,
        },
        protocol: info.map(|info| info.protocol_version.clone()),
        instructions: server.instructions(),
        info: info.and_then(|info| info.server_info.clone()).map(Raw),
        capabilities: info.map(|info| Raw::from(&info.capabilities)),
    }
}
