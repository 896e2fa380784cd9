//! `pillion trust`: shows what a project would run, and trusts it as it stands.

use protocol::{McpTrust, TrustAction, TrustState, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::session::{Common, Session, checked};
use super::{output, review};

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
        return Ok(Exit::Done);
    }
    match action {
        TrustAction::Grant => eprintln!("The project is trusted as it stands"),
        TrustAction::Revoke => match was {
            Some(TrustState::Untrusted) => eprintln!("The project was not trusted"),
            _ => eprintln!("The project is not trusted any more"),
        },
        TrustAction::Review => {
            if result.state == TrustState::NothingToTrust {
                eprintln!("The project brings no servers");
                return Ok(Exit::Done);
            }
            let needs = result.state != TrustState::Trusted;
            for shown in &result.reviews {
                if session.terminal.asks && needs {
                    eprintln!("{}", review::text(shown, session.terminal.on_stderr()));
                } else {
                    output::line(&review::text(shown, session.terminal.on_stdout()))?;
                }
            }
            if !needs {
                eprintln!("All of this is trusted");
            } else if session.terminal.asks {
                let question = "Trust these servers as they stand?".to_owned();
                if review::confirm(question).await? == Some(true) {
                    trust(session, TrustAction::Grant, Some(&result.revision)).await?;
                    eprintln!("The project is trusted as it stands");
                }
            } else {
                eprintln!(
                    "Not trusted; `pillion trust --revision {}` trusts it",
                    &*result.revision
                );
            }
        }
    }
    Ok(Exit::Done)
}

async fn trust(
    session: &Session,
    action: TrustAction,
    revision: Option<&str>,
) -> Result<protocol::McpTrustResult, Failure> {
    let params = McpTrust {
        directory: session.directory.clone(),
        action: Some(action),
        revision: revision.map(Into::into),
    };
    let params = checked::<methods::Trust>(params)?;
    Ok(session.manager.trust(&session.request, params).await?)
}
