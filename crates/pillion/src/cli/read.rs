//! `pillion read`: the content of a resource, as it is.

use protocol::{CallId, McpResourceRead, methods};

use super::content;
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};

/// Print a resource
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    /// The resource's address
    uri: String,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpResourceRead {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        uri: args.uri.as_str().into(),
        call: Some(CallId::from("read")),
        work_done_token: session.token(),
        ..Default::default()
    };
    let work = session
        .manager
        .resource_read(&session.request, checked::<methods::ResourceRead>(params)?);
    let result = session
        .work(&format!("{} {}", args.server, args.uri), work)
        .await?;
    if session.json {
        output::json(&result)?;
    } else {
        session.warn(&result.issues);
        content::print_resource(result.result.get(), session.terminal)?;
    }
    Ok(Exit::Done)
}
