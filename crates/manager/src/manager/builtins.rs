//! Pillion's own tools, carried out: lists of resources, reading one, and the model's search for tools.

use std::sync::Arc;

use protocol::{CatalogItem, Category, Error, ErrorKind, McpModelCall, McpToolsSearch, Raw};
use serde::Deserialize;

use super::calling::Wish;
use super::modelling::{Outcome, is_denied};
use super::{Manager, listing::Part};
use crate::calls::Call;
use crate::limits;
use crate::model::builtin::{self, Builtin};
use crate::model::resource;
use crate::model::spill::Entry;
use crate::sink::RequestContext;

/// Arguments of the built-in tools, all optional: what is missing is told in the answer.
#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    offset: Option<f64>,
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    limit: Option<f64>,
}

impl Manager {
    pub(super) async fn call_builtin(
        &self,
        request: &RequestContext,
        params: &McpModelCall,
        builtin: Builtin,
        whole: &Call,
    ) -> Result<Outcome, Error> {
        let text = params.arguments.as_ref().map_or("{}", Raw::get);
        let arguments: Arguments = match serde_json::from_str(text) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Outcome::ToolError(format!("the arguments do not fit: {error}"))),
        };
        let server = arguments.server.filter(|server| !server.is_empty());
        match builtin {
            Builtin::List => {
                self.list_for_model(request, params, builtin, server, true, true)
                    .await
            }
            Builtin::SharedResources => {
                self.list_for_model(request, params, builtin, server, true, false)
                    .await
            }
            Builtin::SharedTemplates => {
                self.list_for_model(request, params, builtin, server, false, true)
                    .await
            }
            Builtin::Read | Builtin::SharedRead => {
                let (Some(server), Some(uri)) = (server, arguments.uri.filter(|uri| !uri.is_empty())) else {
                    return Ok(Outcome::ToolError(
                        "`server` and `uri` are both needed".to_owned(),
                    ));
                };
                let offset = arguments.offset.unwrap_or_default().max(0.0) as usize;
                if server == builtin::SERVER {
                    return self.read_spilled(params, builtin, &uri, offset).await;
                }
                self.read_for_model(request, params, builtin, &server, &uri, offset, whole)
                    .await
            }
            Builtin::SearchTools => {
                let Some(query) = arguments.query.filter(|query| !query.trim().is_empty()) else {
                    return Ok(Outcome::ToolError("`query` is needed".to_owned()));
                };
                let limit = arguments
                    .limit
                    .map_or(limits::MODEL_HITS, |limit| limit.clamp(1.0, 20.0) as usize);
                self.search_for_model(request, params, query, limit).await
            }
            Builtin::CallTool => Err(Error::new(ErrorKind::Internal, "a call is carried out elsewhere")),
        }
    }

    /// Every resource and template as a line.
    async fn list_for_model(
        &self,
        request: &RequestContext,
        params: &McpModelCall,
        builtin: Builtin,
        only: Option<String>,
        resources: bool,
        templates: bool,
    ) -> Result<Outcome, Error> {
        let servers = self.enabled_servers(&params.directory)?;
        let is_known = only
            .as_ref()
            .is_none_or(|only| servers.iter().any(|server| *server.name == **only));
        // To say who has some, all of them are asked.
        let parts = self
            .parts(
                request,
                &servers,
                &[Category::Resources, Category::Templates],
                true,
                limits::LIST_WAIT_MS,
            )
            .await?;
        let wanted = |item: &CatalogItem| match item {
            CatalogItem::Resource(_) => resources,
            CatalogItem::Template(_) => templates,
            CatalogItem::Tool(_) | CatalogItem::Prompt(_) => false,
        };
        let open: Vec<&Part> = parts
            .iter()
            .filter(|part| !is_denied(&part.server, builtin))
            .collect();
        let chosen = |part: &&&Part| only.as_ref().is_none_or(|only| *part.server.name == **only);
        if let Some(only) = &only
            && is_known
            && !open.iter().any(|part| *part.server.name == **only)
        {
            return Err(denied(builtin, only));
        }
        if open.is_empty() && !parts.is_empty() {
            return Err(denied(builtin, "all servers"));
        }
        let lines: Vec<String> = open
            .iter()
            .filter(chosen)
            .flat_map(|part| &part.lists)
            .flat_map(|list| &list.items)
            .filter(|item| wanted(&item.shown))
            .filter_map(|item| shown_line(&item.shown))
            .collect();
        let issues: Vec<String> = open
            .iter()
            .filter(chosen)
            .flat_map(|part| part.issues().map(|issue| (&part.server.name, issue)))
            .map(|(server, issue)| builtin::issue_line(server, &issue.message))
            .collect();
        let what = match (resources, templates) {
            (true, false) => "resources",
            (false, true) => "resource templates",
            _ => "resources",
        };
        let mut text = if lines.is_empty() {
            let having: Vec<&str> = open
                .iter()
                .filter(|part| {
                    let mut items = part.lists.iter().flat_map(|list| &list.items);
                    items.any(|item| wanted(&item.shown))
                })
                .map(|part| &*part.server.name)
                .collect();
            none(only.as_deref(), is_known, what, &having)
        } else {
            builtin::lines(lines)
        };
        if !is_known {
            return Ok(Outcome::ToolError(text));
        }
        if !issues.is_empty() {
            text = format!("{text}\n\n{}", builtin::lines(issues));
        }
        Ok(Outcome::Text { text, fits: false })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the terms of the call and of the reading are two things"
    )]
    async fn read_for_model(
        &self,
        request: &RequestContext,
        params: &McpModelCall,
        builtin: Builtin,
        name: &str,
        uri: &str,
        offset: usize,
        whole: &Call,
    ) -> Result<Outcome, Error> {
        let servers = self.enabled_servers(&params.directory)?;
        let Some(server) = servers.iter().find(|server| *server.name == *name) else {
            let having = self.having_resources(request, &servers).await?;
            let having: Vec<&str> = having.iter().map(String::as_str).collect();
            return Ok(Outcome::ToolError(none(Some(name), false, "resources", &having)));
        };
        if is_denied(server, builtin) {
            return Err(denied(builtin, name));
        }
        let wish = Wish {
            directory: &params.directory,
            server: name,
            call: params.call.as_ref(),
            session: params.session.as_ref(),
            timeout_ms: params.timeout_ms,
            token: params.work_done_token.as_ref(),
            title: format!("Reading {uri}"),
            tool: None,
            within: Some(whole),
        };
        let result = match self.read(request, &wish, uri).await {
            Ok((result, _)) => result,
            // How the call ended is the host's to know, not the model's.
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::CallCancelled | ErrorKind::Cancelled | ErrorKind::InUse
                ) =>
            {
                return Err(error);
            }
            Err(error) => {
                return Ok(Outcome::ToolError(format!(
                    "`{uri}` could not be read: {}",
                    error.message
                )));
            }
        };
        let text = match resource::text(&result) {
            Ok(text) => text,
            Err(why) => return Ok(Outcome::ToolError(format!("`{uri}` could not be read: {why}"))),
        };
        Ok(Outcome::Text {
            text: if offset == 0 {
                text
            } else {
                text.chars().skip(offset).collect()
            },
            fits: false,
        })
    }

    async fn having_resources(
        &self,
        request: &RequestContext,
        servers: &[Arc<crate::server::Server>],
    ) -> Result<Vec<String>, Error> {
        let parts = self
            .parts(
                request,
                servers,
                &[Category::Resources, Category::Templates],
                true,
                limits::LIST_WAIT_MS,
            )
            .await?;
        let having = parts
            .iter()
            .filter(|part| part.lists.iter().any(|list| !list.items.is_empty()));
        Ok(having.map(|part| part.server.name.to_string()).collect())
    }

    /// A part of a spilled result, no longer than the budget.
    async fn read_spilled(
        &self,
        params: &McpModelCall,
        builtin: Builtin,
        uri: &str,
        offset: usize,
    ) -> Result<Outcome, Error> {
        let Some(entry) = self.core.spills.find(params.session.as_ref(), uri) else {
            return Ok(Outcome::ToolError(format!(
                "`{uri}` is not kept, or not any more"
            )));
        };
        let room = self
            .core
            .settings()
            .result_chars
            .saturating_sub(limits::PREVIEW_NOTE_CHARS);
        let Entry {
            path,
            mime_type,
            bytes,
            ..
        } = entry;
        let work = tokio::task::spawn_blocking(move || files::read_text(&path, limits::SPILLED_BYTES));
        let read = work
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        let text = match read {
            Ok(Some(text)) if mime_type.starts_with("text/") || mime_type == "application/json" => text,
            Ok(Some(_)) => {
                return Ok(Outcome::Text {
                    text: resource::label(Some(&mime_type), bytes),
                    fits: true,
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Ok(Outcome::Text {
                    text: resource::label(Some(&mime_type), bytes),
                    fits: true,
                });
            }
            Ok(None) | Err(_) => return Ok(Outcome::ToolError(format!("`{uri}` is not there any more"))),
        };
        let total = text.chars().count();
        let mut shown: String = text.chars().skip(offset).take(room).collect();
        let end = offset.saturating_add(room).min(total);
        if offset >= total {
            shown = format!("[the text ends at {total} characters]");
        } else if end < total {
            shown = format!(
                "{shown}\n[{} more characters: call {} again with offset {end}]",
                total - end,
                builtin.name()
            );
        }
        Ok(Outcome::Text {
            text: shown,
            fits: true,
        })
    }

    async fn search_for_model(
        &self,
        request: &RequestContext,
        params: &McpModelCall,
        query: String,
        limit: usize,
    ) -> Result<Outcome, Error> {
        let found = self
            .tools_search(
                request,
                McpToolsSearch {
                    directory: params.directory.clone(),
                    query,
                    limit: Some(limit as u32),
                    ..McpToolsSearch::default()
                },
            )
            .await?;
        if found.hits.is_empty() {
            let text = format!("None of {} tools fits. Try other words.", found.searched);
            return Ok(Outcome::Text { text, fits: true });
        }
        let hits = found.hits.iter().map(|hit| {
            let schema = hit.input_schema.as_ref().map_or("{}", Raw::get);
            let description = hit
                .description
                .as_deref()
                .or(hit.title.as_deref())
                .unwrap_or_default();
            format!("{}\n{description}\narguments: {schema}", hit.name)
        });
        Ok(Outcome::Text {
            text: hits.collect::<Vec<_>>().join("\n\n"),
            fits: false,
        })
    }
}

fn denied(builtin: Builtin, where_: &str) -> Error {
    Error::new(
        ErrorKind::Denied,
        format!("the tool `{}` is not allowed for {where_}", builtin.name()),
    )
    .by("list")
    .hint("`tools.deny` of the entry decides")
}

/// What to say where there is nothing.
fn none(only: Option<&str>, is_known: bool, what: &str, having: &[&str]) -> String {
    let first = match only {
        Some(only) if is_known => format!("`{only}` has no {what}."),
        Some(only) => format!("There is no server `{only}` to read from."),
        None => return format!("No server has {what}."),
    };
    if having.is_empty() {
        format!("{first} No other server has any.")
    } else {
        format!("{first} Servers that have some: {}.", having.join(", "))
    }
}

fn shown_line(item: &CatalogItem) -> Option<String> {
    match item {
        CatalogItem::Resource(item) => Some(builtin::line(
            &item.server,
            &item.uri,
            &item.name,
            item.mime_type.as_deref(),
            item.description.as_deref().or(item.title.as_deref()),
        )),
        CatalogItem::Template(item) => Some(builtin::line(
            &item.server,
            &item.uri_template,
            &item.name,
            item.mime_type.as_deref(),
            item.description.as_deref().or(item.title.as_deref()),
        )),
        CatalogItem::Tool(_) | CatalogItem::Prompt(_) => None,
    }
}
