//! `pillion enable` and `pillion disable`: the switch of an entry, in whatever layer it stands.

use protocol::{McpEnable, McpServerStatus, State, methods};

use super::exit::Exit;
use super::failure::{Failure, warn};
use super::session::{Common, Session, checked};
use super::{output, status};

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
        let done = if enabled { "Enabled" } else { "Disabled" };
        let but = enabled
            .then(|| written.server.as_ref().and_then(obstacle))
            .flatten();
        match but {
            None => eprintln!("{done} `{}`", args.server),
            Some((why, hint)) => {
                let said = format!("`{}` {why}", args.server);
                warn(session.terminal.on_stderr(), &said, Some(&hint));
            }
        }
    }
    Ok(Exit::Done)
}

/// Why a server that is switched on does not start all the same, and what helps.
pub fn obstacle(server: &McpServerStatus) -> Option<(String, String)> {
    let name = &server.name;
    match server.state {
        State::NeedsTrust => Some((
            "is switched on, but does not start: its project is not trusted".to_owned(),
            "`pillion trust` shows what it would run, and asks".to_owned(),
        )),
        State::Pending => Some((
            "was changed since it was approved, and waits for your decision".to_owned(),
            format!("`pillion approve {name}` shows what it would run, and asks"),
        )),
        State::Disabled => Some((
            match status::forbidden(server) {
                Some(issue) => format!("is switched on, but may not start: {}", issue.message),
                None => "is switched on, but may not start".to_owned(),
            },
            format!("`pillion doctor {name}` says more"),
        )),
        _ if !server.effective => Some((
            "is switched on, but another entry of that name goes first".to_owned(),
            format!("`pillion config {name}` shows both"),
        )),
        _ => server.error.as_ref().map(|fault| {
            (
                format!("is switched on, but does not start: {}", fault.message),
                format!("`pillion status {name}` says more"),
            )
        }),
    }
}
