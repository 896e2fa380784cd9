//! `pillion trust`: shows what a project would run, and trusts it as it stands.

use protocol::{McpTrust, McpTrustResult, TrustAction, TrustState, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::session::{Common, Session, checked};
use super::{asking, output, review};

/// Look at the servers a project brings, and trust them as they stand
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In a terminal the servers are shown and asked about. Elsewhere they are listed; --revision trusts what was shown.")]
pub struct Args {
    /// Trust without being asked what was shown with this revision
    #[arg(long, conflicts_with = "revoke")]
    revision: Option<String>,
    /// Trust the project no more
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let action = match (&args.revision, args.revoke) {
        (Some(_), _) => TrustAction::Grant,
        (None, true) => TrustAction::Revoke,
        (None, false) => TrustAction::Review,
    };
    let was = match action {
        TrustAction::Revoke => Some(trust(session, TrustAction::Review, None).await?.state),
        _ => None,
    };
    let result = trust(session, action, args.revision.as_deref()).await?;
    if session.json {
        output::json(&result)?;
    }
    match action {
        _ if session.json && action != TrustAction::Review => Ok(Exit::Done),
        TrustAction::Grant => {
            eprintln!("The project is trusted as it stands");
            Ok(Exit::Done)
        }
        TrustAction::Revoke => {
            match was {
                Some(TrustState::NothingToTrust) => {
                    eprintln!("The project brings no servers, and nothing of it is trusted")
                }
                Some(TrustState::Untrusted) => {
                    eprintln!("The project was not trusted")
                }
                _ => eprintln!("The project is not trusted any more"),
            }
            Ok(Exit::Done)
        }
        TrustAction::Review => reviewed(&result, session).await,
    }
}

/// Shows what is new or changed, and asks for trust in it.
async fn reviewed(result: &McpTrustResult, session: &Session) -> Result<Exit, Failure> {
    if result.state == TrustState::NothingToTrust {
        if !session.json {
            super::status::warn_of_files(&session.status(None).await?, session);
            eprintln!("The project {} brings no servers", &*session.directory);
        }
        return Ok(Exit::Done);
    }
    let needs = result.state != TrustState::Trusted;
    let asks = needs && session.terminal.asks && !session.json;
    for shown in result.reviews.iter().filter(|_| !session.json) {
        if asks {
            eprintln!("{}", review::text(shown, session.terminal.on_stderr()));
        } else {
            output::line(&review::text(shown, session.terminal.on_stdout()))?;
        }
    }
    if !needs {
        if !session.json {
            eprintln!("All of this is trusted, as revision {}", &*result.revision);
        }
        return Ok(Exit::Done);
    }
    let question = "Trust these servers as they stand?";
    let instead = format!(
        "`pillion trust --revision {}` trusts what is shown",
        &*result.revision
    );
    if !asks {
        return Err(asking::undecided(question, instead).already_printed(session.json));
    }
    if session.confirm(question, instead).await? != Some(true) {
        return Ok(asking::left("The project is not trusted"));
    }
    trust(session, TrustAction::Grant, Some(&result.revision)).await?;
    eprintln!("The project is trusted as it stands");
    Ok(Exit::Done)
}

async fn trust(
    session: &Session,
    action: TrustAction,
    revision: Option<&str>,
) -> Result<McpTrustResult, Failure> {
    let params = McpTrust {
        directory: session.directory.clone(),
        action: Some(action),
        revision: revision.map(Into::into),
    };
    let params = checked::<methods::Trust>(params)?;
    Ok(session.manager.trust(&session.request, params).await?)
}
