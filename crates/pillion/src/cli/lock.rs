//! `pillion lock`: which version of each package may start, and with which tools.

use protocol::{LockAction, LockRow, LockStatus, McpLock, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::hint;
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// Lock the packages of servers to their exact version and content, in mcp.lock.json beside the mcp.json
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A locked server starts only as the lock says. Commit the file of a project with the project."
)]
pub struct Args {
    /// Only these servers
    servers: Vec<String>,
    /// Compare only: asks nobody, writes nothing; the exit code is 1 when something differs or is not locked
    #[arg(long)]
    check: bool,
    /// Fetch the newest version that each entry allows, and lock that and the tools of now
    #[arg(long, conflicts_with = "check")]
    update: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let action = match (args.check, args.update) {
        (true, _) => LockAction::Check,
        (_, true) => LockAction::Update,
        _ => LockAction::Write,
    };
    let params = McpLock {
        directory: session.directory.clone(),
        servers: super::prefetch::names(&args.servers),
        action: Some(action),
        work_done_token: session.token(),
    };
    let work = session
        .manager
        .lock(&session.request, checked::<methods::Lock>(params)?);
    let result = session.work("Locking", work).await?;
    let is_good = |row: &LockRow| matches!(row.status, LockStatus::Locked | LockStatus::NotInstalled);
    let exit = match result.servers.iter().all(is_good) {
        true => Exit::Done,
        false => Exit::Failed,
    };
    if session.json {
        output::json(&result)?;
        return Ok(exit);
    }
    let mut rows = Rows::new(session.terminal, &["NAME", "STATE", "WHAT"]);
    for row in &result.servers {
        rows.add([&row.server, &row.status.as_str().replace('_', " "), &row.message]);
    }
    rows.print_unless_empty("No server starts with npx or uvx; there is nothing to lock")?;
    let paint = session.terminal.on_stderr();
    for row in &result.servers {
        if let Some(hint) = &row.hint {
            eprintln!(
                "{} {}: {}",
                paint.cyan("hint:"),
                row.server,
                hint::typed(hint, Some(&row.server))
            );
        }
    }
    for file in &result.written {
        eprintln!("Wrote {file}");
    }
    Ok(exit)
}
