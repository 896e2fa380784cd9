//! `pillion resources`: what can be read, and the templates of addresses.

use protocol::{McpResourcesList, McpResourcesListResult, ResourceOrTemplate, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::listing::{Page, WAIT_MS, named_server_failed, pages};
use super::output::{self, Rows, size};
use super::session::{Common, Session, checked};

/// List the resources and resource templates of all servers, or of one
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this server
    server: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let server = args.server.as_deref();
    let fetch = async |cursor| {
        let params = McpResourcesList {
            directory: session.directory.clone(),
            server: server.map(Into::into),
            cursor,
            wait_ms: Some(WAIT_MS),
            ..Default::default()
        };
        let page = session
            .manager
            .resources_list(&session.request, checked::<methods::ResourcesList>(params)?)
            .await?;
        Ok(Page {
            items: page.items,
            issues: page.issues,
            next: page.next_cursor,
        })
    };
    let (items, issues) = session.work("Listing resources", pages(fetch)).await?;
    let result = McpResourcesListResult {
        items,
        issues,
        next_cursor: None,
    };
    if session.json {
        output::json(&result)?;
    }
    if let Some(failure) = named_server_failed(server, result.items.is_empty(), &result.issues) {
        return Err(failure.already_printed(session.json));
    }
    if !session.json {
        session.warn(&result.issues);
        table(session, &result.items).print_unless_empty("No resources")?;
    }
    Ok(Exit::Done)
}

fn table(session: &Session, items: &[ResourceOrTemplate]) -> Rows {
    let mut rows = Rows::new(session.terminal, &["SERVER", "URI", "NAME", "TYPE", "SIZE"]);
    for item in items {
        match item {
            ResourceOrTemplate::Resource(item) => {
                let mime_type = item.mime_type.as_deref().unwrap_or_default();
                let size = item.size.map(size).unwrap_or_default();
                rows.add([&item.server, &item.uri, &item.name, mime_type, &size]);
            }
            ResourceOrTemplate::Template(item) => {
                let mime_type = item.mime_type.as_deref().unwrap_or_default();
                rows.add([
                    &item.server,
                    &item.uri_template,
                    &item.name,
                    mime_type,
                    "template",
                ]);
            }
        }
    }
    rows
}
