//! `pillion pin`: definitions of tools that differ from what was accepted, and the decision about them.

use protocol::{
    Decision, DecisionSubject, DefinitionChange, McpDecide, McpToolsReview, Raw, ToolsReview, methods,
};

use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};
use super::terminal::harmless;

/// Review tools whose definitions changed, and accept or refuse the change
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this server
    server: Option<String>,
    /// Accept what was shown under this revision; the changed tools can be used again
    #[arg(long, value_name = "REVISION", requires = "server")]
    accept: Option<String>,
    /// Refuse what was shown under this revision; the changed tools stay held
    #[arg(long, value_name = "REVISION", requires = "server", conflicts_with = "accept")]
    reject: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let decided = match (&args.accept, &args.reject) {
        (Some(revision), _) => Some((revision, Decision::Approve)),
        (None, Some(revision)) => Some((revision, Decision::Reject)),
        (None, None) => None,
    };
    if let (Some((revision, decision)), Some(server)) = (decided, &args.server) {
        let params = McpDecide {
            directory: session.directory.clone(),
            server: server.as_str().into(),
            subject: Some(DecisionSubject::Tools),
            revision: revision.as_str().into(),
            decision,
        };
        let params = checked::<methods::Decide>(params)?;
        let result = session.manager.decide(&session.request, params).await?;
        if session.json {
            output::json(&result)?;
        } else {
            let done = if decision == Decision::Approve {
                "accepted"
            } else {
                "refused"
            };
            eprintln!("The changes of `{server}` are {done}");
        }
        return Ok(Exit::Done);
    }
    let params = McpToolsReview {
        directory: session.directory.clone(),
        server: args.server.as_deref().map(Into::into),
    };
    let params = checked::<methods::ToolsReview>(params)?;
    let result = session.manager.tools_review(&session.request, params).await?;
    if session.json {
        output::json(&result)?;
        return Ok(Exit::Done);
    }
    if result.reviews.is_empty() {
        eprintln!("Nothing changed");
    }
    for review in &result.reviews {
        output::line(&harmless(&text(review)))?;
    }
    Ok(Exit::Done)
}

fn text(review: &ToolsReview) -> String {
    let mut text = format!("{}\n", review.server);
    for change in &review.changes {
        text.push_str(&shown(change));
    }
    text.push_str(&format!(
        "  accept with `pillion pin {} --accept {}`\n",
        review.server, review.revision
    ));
    text
}

fn shown(change: &DefinitionChange) -> String {
    let name = match (&change.tool, &change.was) {
        (Some(tool), Some(was)) => format!("{was} -> {tool}"),
        (Some(tool), None) => tool.clone(),
        (None, _) => "(the server itself)".to_owned(),
    };
    let held = match (change.held, change.rejected) {
        (true, true) => ", held, refused",
        (true, false) => ", held",
        (false, _) => "",
    };
    let mut text = format!("  {name}: {}{held}\n", change.change.as_str());
    for warning in &change.warnings {
        text.push_str(&format!("    ! {warning}\n"));
    }
    for member in &change.members {
        for (sign, side) in [("-", &change.before), ("+", &change.after)] {
            if let Some(value) = side.as_ref().and_then(|side| of(side, member)) {
                text.push_str(&format!("    {sign} {member}: {value}\n"));
            }
        }
    }
    text
}

/// One member of a definition, a text without its quotes.
fn of(definition: &Raw, member: &str) -> Option<String> {
    let definition: serde_json::Value = serde_json::from_str(definition.get()).ok()?;
    let value = definition.get(member)?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
