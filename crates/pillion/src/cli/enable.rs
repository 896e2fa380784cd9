//! `pillion enable` and `pillion disable`: the switch of an entry, in whatever layer it stands.

use protocol::{McpEnable, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};

/// Which server to switch
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    #[command(flatten)]
    pub common: Common,
}

pub async fn on(args: &Args, session: &Session) -> Result<Exit, Failure> {
    switch(args, true, session).await
}

pub async fn off(args: &Args, session: &Session) -> Result<Exit, Failure> {
    switch(args, false, session).await
}

async fn switch(args: &Args, enabled: bool, session: &Session) -> Result<Exit, Failure> {
    let params = McpEnable {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        enabled,
        ..Default::default()
    };
    let written = session
        .manager
        .enable(&session.request, checked::<methods::Enable>(params)?)
        .await?;
    if session.json {
        output::json(&written)?;
    } else {
        eprintln!(
            "{} `{}`",
            if enabled { "Enabled" } else { "Disabled" },
            args.server
        );
    }
    Ok(Exit::Done)
}
