//! `pillion prefetch`: fetches packages once, so that a start needs no download.

use protocol::{McpPrefetch, PrefetchStatus, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::hint;
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// Fetch the packages of servers that start with npx or uvx, so that a start needs no download; starts none
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these servers
    servers: Vec<String>,
    /// Look for a newer version that the entry allows, where it is not locked
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpPrefetch {
        directory: session.directory.clone(),
        servers: names(&args.servers),
        update: args.update.then_some(true),
        work_done_token: session.token(),
    };
    let work = session
        .manager
        .prefetch(&session.request, checked::<methods::Prefetch>(params)?);
    let result = session.work("Fetching", work).await?;
    let failed = result
        .servers
        .iter()
        .any(|row| row.status == PrefetchStatus::Failed);
    let exit = if failed { Exit::Failed } else { Exit::Done };
    if session.json {
        output::json(&result)?;
        return Ok(exit);
    }
    let mut rows = Rows::new(session.terminal, &["NAME", "RESULT", "PACKAGE", "WHY"]);
    for row in &result.servers {
        let package = row.package.as_ref();
        let package = package.map(|package| format!("{} {}", package.name, package.version));
        rows.add([
            &row.server,
            &row.status.as_str().replace('_', " "),
            package.as_deref().unwrap_or_default(),
            row.message.as_deref().unwrap_or_default(),
        ]);
    }
    rows.print_unless_empty("No server starts with npx or uvx; there is nothing to fetch")?;
    for row in &result.servers {
        if let Some(hint) = &row.hint {
            let typed = hint::typed(hint, Some(&row.server));
            eprintln!(
                "{} {}: {typed}",
                session.terminal.on_stderr().cyan("hint:"),
                row.server
            );
        }
    }
    Ok(exit)
}

pub fn names(names: &[String]) -> Option<Vec<protocol::ServerName>> {
    (!names.is_empty()).then(|| names.iter().map(|name| name.as_str().into()).collect())
}
