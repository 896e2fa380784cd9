//! `pillion approve`: shows what others asked for, whole, and carries the person's decision out.

use protocol::{Decision, McpDecide, McpPending, Review, State, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::session::{Common, Session, checked};
use super::{asking, output, review};

/// Decide about servers that a host or another program asked for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In a terminal each request is shown and asked about. Elsewhere they are listed; --revision decides about the one that
was shown.")]
pub struct Args {
    /// Only this server
    server: Option<String>,
    /// Decide without being asked, about the request that was shown with this revision
    #[arg(long, requires = "server")]
    revision: Option<String>,
    /// Say no instead of yes; with --revision
    #[arg(long, requires = "revision")]
    reject: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    if let (Some(server), Some(revision)) = (&args.server, &args.revision) {
        let decision = if args.reject {
            Decision::Reject
        } else {
            Decision::Approve
        };
        return decide(session, server, revision, decision).await;
    }
    let params = McpPending {
        directory: session.directory.clone(),
    };
    let mut pending = session
        .manager
        .pending(&session.request, checked::<methods::Pending>(params)?)
        .await?;
    if let Some(server) = &args.server {
        pending.reviews.retain(|review| *review.server == **server);
        if pending.reviews.is_empty() {
            // A name that nobody has is no news that nothing waits.
            super::auth::record(session, server).await?;
        }
    }
    if session.json {
        output::json(&pending)?;
    }
    if pending.reviews.is_empty() {
        match &args.server {
            _ if session.json => {}
            Some(server) => eprintln!("`{server}` waits for no decision"),
            None => eprintln!("Nothing waits for a decision"),
        }
        return Ok(Exit::Done);
    }
    if session.terminal.asks && !session.json {
        let mut exit = Exit::Done;
        for review in &pending.reviews {
            if !ask(session, review).await? {
                exit = asking::left(&format!("`{}` still waits", review.server));
            }
        }
        return Ok(exit);
    }
    let mut names = Vec::new();
    for review in &pending.reviews {
        names.push(format!("`{}`", review.server));
        if !session.json {
            output::line(&review::text(review, session.terminal.on_stdout()))?;
        }
    }
    let question = format!("Approve what is asked for {}?", names.join(", "));
    let instead = "decide with `pillion approve NAME --revision REVISION`, or the same with `--reject`";
    Err(asking::undecided(&question, instead).already_printed(session.json))
}

/// Whether the person decided.
async fn ask(session: &Session, shown: &Review) -> Result<bool, Failure> {
    eprintln!("{}", review::text(shown, session.terminal.on_stderr()));
    let name = shown.server.to_string();
    let question = format!("Approve what is asked for `{name}`?");
    let instead = format!("`pillion approve {name} --revision {}`", &*shown.revision);
    let decision = match session.confirm(&question, instead).await? {
        Some(true) => Decision::Approve,
        Some(false) => Decision::Reject,
        None => return Ok(false),
    };
    decide(session, &name, &shown.revision, decision).await?;
    Ok(true)
}

async fn decide(
    session: &Session,
    server: &str,
    revision: &str,
    decision: Decision,
) -> Result<Exit, Failure> {
    let params = McpDecide {
        directory: session.directory.clone(),
        server: server.into(),
        subject: None,
        revision: revision.into(),
        decision,
    };
    let decided = session
        .manager
        .decide(&session.request, checked::<methods::Decide>(params)?)
        .await?;
    if session.json {
        output::json(&decided)?;
        return Ok(Exit::Done);
    }
    let state = decided.server.as_ref().map(|server| server.state);
    match (decision, state) {
        (Decision::Approve, None) => eprintln!("Approved: `{server}` is removed"),
        (Decision::Approve, Some(State::Disabled)) => eprintln!("Approved: `{server}` is switched off"),
        (Decision::Approve, Some(_)) => eprintln!("Approved `{server}`; it starts with its first use"),
        (Decision::Reject, _) => {
            eprintln!("Rejected `{server}`");
            let stood = decided.server.filter(|server| server.command.is_some());
            if state == Some(State::Disabled) && stood.is_some() {
                let hint = session.terminal.on_stderr().cyan("hint:");
                eprintln!("{hint} what stood there is off; `pillion enable {server}` switches it on again");
            }
        }
    }
    Ok(Exit::Done)
}
