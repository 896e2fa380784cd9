//! `pillion resources`: what can be read, and the templates of addresses.

use protocol::ResourceOrTemplate;

use super::exit::Exit;
use super::failure::Failure;
use super::listing;
use super::output::{Rows, size};
use super::session::{Common, Session};

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
    let list = listing::list!(
        session,
        server,
        "Listing resources",
        McpResourcesList,
        ResourcesList,
        resources_list
    )
    .await?;
    listing::print(
        session,
        server,
        &list,
        |items| table(session, items),
        "No resources",
    )
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
