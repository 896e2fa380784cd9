//! `pillion remove`: takes an entry out of its file.

use protocol::{McpRemove, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::session::{Common, Session, checked};
use super::{asking, output};

/// Remove a server
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    /// Delete its stored login too
    #[arg(long)]
    forget: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    // What is not there needs no question: the removal says so.
    if !args.yes
        && let Some(source) = source(&args.server, session).await?
    {
        let question = if source.starts_with("bundle:") {
            format!("Remove `{}` and delete its bundle?", args.server)
        } else {
            format!("Remove `{}`? Nothing is uninstalled", args.server)
        };
        if session.confirm(&question, "`--yes` removes it").await? != Some(true) {
            return Ok(asking::left("Nothing was changed"));
        }
    }
    let params = McpRemove {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        forget: args.forget.then_some(true),
        ..Default::default()
    };
    let removed = session
        .manager
        .remove(&session.request, checked::<methods::Remove>(params)?)
        .await?;
    if session.json {
        output::json(&removed)?;
        return Ok(Exit::Done);
    }
    eprintln!("Removed `{}`", args.server);
    if let Some(lower) = &removed.server {
        eprintln!("The entry of layer {} now shows instead", lower.layer);
    }
    Ok(Exit::Done)
}

/// Where its entry comes from; nothing where there is none.
async fn source(server: &str, session: &Session) -> Result<Option<String>, Failure> {
    let status = session.status(Some(server)).await?;
    Ok(status.servers.into_iter().next().map(|server| server.source))
}
