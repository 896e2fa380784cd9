//! `pillion grants`: remembered approvals of tools, and taking them back.

use protocol::{McpGrants, McpGrantsResult, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// List remembered answers about a model's calls, or take some back
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id of one to take back; may be repeated
    #[arg(long, value_name = "ID")]
    revoke: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let mut left = grants(None, session).await?;
    if !args.revoke.is_empty() {
        let is_known = |id: &String| left.grants.iter().any(|grant| grant.id == **id);
        if let Some(unknown) = args.revoke.iter().find(|id| !is_known(id)) {
            return Err(Failure::new(format!("no answer is remembered as `{unknown}`"))
                .hint("`pillion grants` lists them"));
        }
        left = grants(Some(args.revoke.clone()), session).await?;
    }
    if session.json {
        output::json(&left)?;
        return Ok(Exit::Done);
    }
    let mut rows = Rows::new(session.terminal, &["ID", "SERVER", "TOOL", "ANSWER", "FOR"]);
    for grant in &left.grants {
        rows.add([
            grant.id.as_str(),
            &grant.server,
            &grant.tool,
            grant.decision.as_str(),
            grant.scope.as_str(),
        ]);
    }
    rows.print_unless_empty("No answers are remembered")?;
    Ok(Exit::Done)
}

/// What is remembered, after taking some of it back.
async fn grants(revoke: Option<Vec<String>>, session: &Session) -> Result<McpGrantsResult, Failure> {
    let params = McpGrants {
        directory: session.directory.clone(),
        revoke,
    };
    let params = checked::<methods::Grants>(params)?;
    Ok(session.manager.grants(&session.request, params).await?)
}
