//! `pillion restart`: a server is started anew wherever it runs.

use protocol::State;

use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output;
use super::session::{Common, Session};

/// Restart a server in every editor and agent host that has it running
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let name = args.server.as_str().into();
    let server = session.manager.order_restart(&session.directory, &name).await?;
    if session.json {
        output::json(&server)?;
        return Ok(Exit::Done);
    }
    let name = &args.server;
    let obstacle = match server.state {
        State::Disabled => Some((
            "is switched off, and runs nowhere",
            format!("`pillion enable {name}`"),
        )),
        State::NeedsTrust => Some((
            "is not trusted, and runs nowhere",
            "`pillion trust` shows what it would run, and asks".to_owned(),
        )),
        State::Pending => Some((
            "waits for your decision, and runs nowhere",
            format!("`pillion approve {name}` shows what it would run, and asks"),
        )),
        _ => None,
    };
    match obstacle {
        None => eprintln!("Every host that has `{name}` running restarts it"),
        Some((why, hint)) => warn(
            session.terminal.on_stderr(),
            &format!("`{name}` {why}"),
            Some(&hint),
        ),
    }
    Ok(Exit::Done)
}
