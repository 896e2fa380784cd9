//! `pillion logout`: forget the login of a server, registration and tokens.

use protocol::{AuthAck, AuthAction, McpAuthList, methods};

use super::auth::{auth, pick};
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};

/// Forget the login of a server, and tell its authorization server where it wants to know
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name, or the handle of `pillion auth list`; without it there is a choice
    server: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpAuthList {
        directory: Some(session.directory.clone()),
    };
    let listed = session
        .manager
        .auth_list(&session.request, checked::<methods::AuthList>(params)?)
        .await?;
    let stored: Vec<String> = listed
        .credentials
        .iter()
        .map(|known| known.server.to_string())
        .collect();
    let name = match &args.server {
        Some(name) => name.clone(),
        None if stored.is_empty() => {
            if session.json {
                output::json(&AuthAck::default())?;
            }
            eprintln!("No login is stored");
            return Ok(Exit::Done);
        }
        None => pick("Log out of which server?", stored.clone(), session).await?,
    };
    let ack = auth(session, &name, AuthAction::Forget, None).await?;
    if session.json {
        output::json(&ack)?;
    } else if stored.contains(&name) {
        eprintln!("Forgot the login of `{name}`");
    } else {
        eprintln!("No login of `{name}` was stored");
    }
    Ok(Exit::Done)
}
