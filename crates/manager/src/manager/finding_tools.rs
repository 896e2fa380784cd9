//! Finding tools by words, and reviewing those whose definitions changed.

use std::sync::Arc;

use protocol::{
    Category, Decision, Error, Issue, McpToolsReview, McpToolsReviewResult, McpToolsSearch,
    McpToolsSearchResult, Raw, Revision, ToolHit, ToolItem,
};
use tokio::task::spawn_blocking;

use super::Manager;
use super::listing::Part;
use super::modelling::internal;
use crate::catalog::items::List;
use crate::limits;
use crate::model::search::{self, Document};
use crate::model::{guard, offer};
use crate::server::Server;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.tools.search`.
    pub async fn tools_search(
        &self,
        request: &RequestContext,
        params: McpToolsSearch,
    ) -> Result<McpToolsSearchResult, Error> {
        let mut servers = self.enabled_servers(&params.directory)?;
        if let Some(names) = &params.servers {
            servers.retain(|server| names.contains(&server.name));
        }
        let mut lists = Vec::new();
        let mut unseen = Vec::new();
        for server in servers {
            match server.catalog.seen_tools(&server).await {
                Some(list) => lists.push(list),
                None => unseen.push(server),
            }
        }
        // Only who was never seen is started: the others may sleep.
        let discover = params.discover != Some(false);
        let wait = params.wait_ms.unwrap_or(limits::LIST_WAIT_MS);
        let parts = self
            .parts(request, &unseen, &[Category::Tools], discover, wait)
            .await?;
        let issues: Vec<Issue> = parts.iter().flat_map(Part::issues).cloned().collect();
        lists.extend(parts.into_iter().flat_map(|part| part.lists));
        let limit = params.limit.map_or(limits::SEARCH_HITS, |limit| limit as usize);
        let with_schemas = params.schemas != Some(false);
        let query = params.query;
        let work = spawn_blocking(move || find(&lists, &query, limit, with_schemas));
        let (hits, searched) = work.await.map_err(|error| internal(&error))?;
        Ok(McpToolsSearchResult {
            hits,
            searched,
            issues,
        })
    }

    /// `mcp.tools.review`: starts nothing.
    pub async fn tools_review(
        &self,
        _: &RequestContext,
        params: McpToolsReview,
    ) -> Result<McpToolsReviewResult, Error> {
        let servers = match &params.server {
            Some(name) => vec![self.server(&params.directory, name)?],
            None => self.enabled_servers(&params.directory)?,
        };
        let names: Vec<String> = self
            .enabled_servers(&params.directory)?
            .iter()
            .map(|server| server.name.to_string())
            .collect();
        let work = spawn_blocking(move || {
            let reviews = servers.iter().filter_map(|server| {
                let others: Vec<String> = names
                    .iter()
                    .filter(|name| **name != *server.name)
                    .cloned()
                    .collect();
                guard::compare_again(server);
                server.core.pins.review(&server.lineage(), &others)
            });
            reviews.collect()
        });
        Ok(McpToolsReviewResult {
            reviews: work.await.map_err(|error| internal(&error))?,
        })
    }

    /// A person's decision about definitions that differ from what was accepted.
    pub(super) async fn decide_tools(
        &self,
        server: &Arc<Server>,
        revision: &Revision,
        decision: Decision,
    ) -> Result<(), Error> {
        let decided = Arc::clone(server);
        let revision = revision.clone();
        let work = spawn_blocking(move || {
            guard::compare_again(&decided);
            decided.core.pins.decide(&decided.lineage(), &revision, decision)
        });
        work.await
            .map_err(|error| internal(&error))?
            .map_err(|error| error.server(server.name.clone()))?;
        server.catalog.invalidate(mcp::ListKind::Tools);
        server.changed(protocol::ChangeReason::Tools);
        if let Some(connection) = server.connected() {
            server.catalog.refresh(server, &connection).await;
        }
        Ok(())
    }
}

/// The tools of all lists that fit a query.
fn find(lists: &[Arc<List>], query: &str, limit: usize, with_schemas: bool) -> (Vec<ToolHit>, u32) {
    let tools: Vec<(&ToolItem, Raw)> = lists
        .iter()
        .flat_map(|list| offer::tools(list))
        .filter(|(_, tool)| tool.hidden.is_none())
        .map(|(_, tool)| (tool, offer::input_schema(tool)))
        .collect();
    let documents: Vec<Document> = tools
        .iter()
        .map(|(tool, schema)| {
            let schema = serde_json::from_str(schema.get()).unwrap_or_default();
            Document::new(
                &tool.server,
                tool.renamed.as_deref().unwrap_or(&tool.name),
                tool.title.as_deref(),
                tool.description.as_deref(),
                &schema,
            )
        })
        .collect();
    let hits = search::search(&documents, query, limit);
    let hits = hits.into_iter().map(|(index, score)| {
        let (tool, schema) = &tools[index];
        ToolHit {
            name: tool.exposed.clone(),
            server: tool.server.clone(),
            tool: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: with_schemas.then(|| schema.clone()),
            score,
            tokens: offer::tokens_of(tool, schema),
        }
    });
    (hits.collect(), tools.len() as u32)
}
