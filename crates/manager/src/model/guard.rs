//! Puts the guard against changed definitions where every list of tools comes in, so that no call can pass it by.

use std::sync::Arc;

use protocol::{CatalogItem, Category, HiddenReason, Issue, IssueKind, LogLevel, LogSource};
use serde_json::Value;

use super::pins::{self, Book};
use super::{definition, offer};
use crate::catalog::items::List;
use crate::server::Server;
use crate::server::in_host::is_in_host;

/// Compares a fresh list with what was accepted and hides what is held.
pub(crate) async fn compare(server: &Arc<Server>, instructions: Option<String>, list: &mut List) {
    // What the host itself offers is its own word, as is whether anybody is asked.
    if is_in_host(&server.entry()) {
        return;
    }
    let tools: Vec<(String, String)> = list
        .items
        .iter()
        .filter_map(|item| match &item.shown {
            CatalogItem::Tool(tool) => Some((tool.name.clone(), tool.raw.get().to_owned())),
            _ => None,
        })
        .collect();
    let core = Arc::clone(&server.core);
    let lineage = server.lineage();
    let _turn = server.core.disk.lock().await;
    let work = tokio::task::spawn_blocking(move || {
        let tools: Vec<(String, Value)> = tools
            .into_iter()
            .map(|(name, raw)| (name, definition::canonical(&raw)))
            .collect();
        let (book, is_first) = core.pins.compare(&lineage, &tools, instructions.as_deref());
        let suspicious: Vec<(String, Vec<String>)> = tools
            .iter()
            .filter(|_| is_first)
            .map(|(name, definition)| (name.clone(), pins::warnings(definition, &[])))
            .filter(|(_, warnings)| !warnings.is_empty())
            .collect();
        (book, suspicious)
    });
    let Ok((book, suspicious)) = work.await else {
        // Only a panic gets here. Nothing was compared, so nothing is offered.
        hide(list, |_| true);
        return;
    };
    let known = list.issues.len();
    for (tool, warnings) in suspicious {
        let message = format!(
            "the definition of `{tool}` is suspicious: {}",
            warnings.join("; ")
        );
        list.issues.push(issue(server, Some(tool), message));
    }
    mark(server, &book, list);
    for issue in &list.issues[known..] {
        server.log(LogSource::Pillion, LogLevel::Warning, &issue.message);
    }
}

/// Compares the list that this process knows, should another process have seen another one meanwhile. Blocks on the disk.
pub(crate) fn compare_again(server: &Server) {
    let Some(list) = server
        .catalog
        .known(Category::Tools)
        .filter(|_| server.connected().is_some() && !is_in_host(&server.entry()))
    else {
        return;
    };
    let tools: Vec<(String, Value)> = offer::tools(&list)
        .map(|(_, tool)| (tool.name.clone(), definition::canonical(tool.raw.get())))
        .collect();
    let instructions = server
        .connected()
        .and_then(|connection| connection.info().instructions.clone());
    // A list that could not be read says nothing.
    if !tools.is_empty() {
        server
            .core
            .pins
            .compare(&server.lineage(), &tools, instructions.as_deref());
    }
}

/// Hides what is held in a list that was kept from earlier.
pub(crate) fn mark(server: &Server, book: &Book, list: &mut List) {
    hide(list, |tool| book.holds(tool));
    for change in book.changes(&[]).into_iter().filter(|change| change.held) {
        let message = match &change.tool {
            Some(tool) => format!("`{tool}` is held: its definition is not the one that was accepted"),
            None => "the server's instructions are held: they are not those that were accepted".to_owned(),
        };
        list.issues.push(issue(server, change.tool, message));
    }
}

fn hide(list: &mut List, is_held: impl Fn(&str) -> bool) {
    for item in &mut list.items {
        if let CatalogItem::Tool(tool) = &mut item.shown
            && tool.hidden.is_none()
            && is_held(&tool.name)
        {
            tool.hidden = Some(HiddenReason::Held);
        }
    }
}

fn issue(server: &Server, item: Option<String>, message: String) -> Issue {
    Issue {
        server: Some(server.name.clone()),
        category: Some(Category::Tools),
        item,
        hint: Some("`mcp.tools.review` shows it, `mcp.decide` with subject `tools` decides".to_owned()),
        ..Issue::new(IssueKind::Note, message)
    }
}
