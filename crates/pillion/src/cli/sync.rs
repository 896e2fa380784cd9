//! `pillion sync`: writes entries into another program's own file, or takes over what stands there only.

use protocol::{McpSync, Scope, SyncChange, SyncDirection, SyncStatus, Synced, methods};

use super::exit::Exit;
use super::export::{self, Secrets};
use super::failure::{Failure, warn};
use super::import;
use super::output::{self, Rows};
use super::session::{Common, Session, checked};
use super::terminal::one_line;

/// Write your servers into another program's configuration, or take over what stands there only
///
/// The rest of that file stays as it is, comments too, and a copy of it is kept in the data folder. Without a program, say what
/// is on this machine.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The program, for instance cursor, vscode or codex
    #[arg(value_parser = export::formats(&protocol::ExportFormat::ALL[3..]), hide_possible_values = true)]
    client: Option<String>,
    /// Only these servers
    #[arg(requires = "client")]
    server: Vec<String>,
    /// The other way: take over the servers of the program that are not here
    #[arg(long, requires = "client")]
    from: bool,
    /// The program's file in the project instead of the person's, and the project's own entries
    #[arg(long, requires = "client")]
    project: bool,
    /// Overwrite servers of the same name that differ
    #[arg(long, requires = "client")]
    replace: bool,
    /// Show what would be written and write nothing
    #[arg(long, requires = "client")]
    dry_run: bool,
    /// What becomes of your secrets there
    #[arg(
        long,
        value_enum,
        default_value = "reference",
        requires = "client",
        conflicts_with = "from"
    )]
    secrets: Secrets,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let Some(client) = args.client.as_deref().and_then(export::format) else {
        return import::detect(session).await;
    };
    if args.secrets == Secrets::Mask {
        return Err(Failure::usage("a masked secret is of no use to another program")
            .hint("leave `--secrets` out, and variables stand for them"));
    }
    let params = McpSync {
        directory: session.directory.clone(),
        client,
        scope: args.project.then_some(Scope::Project),
        direction: args.from.then_some(SyncDirection::From),
        servers: (!args.server.is_empty())
            .then(|| args.server.iter().map(|name| name.as_str().into()).collect()),
        secrets: Some(args.secrets.into()),
        replace: args.replace.then_some(true),
        dry_run: args.dry_run.then_some(true),
    };
    let synced = session
        .manager
        .sync(&session.request, checked::<methods::Sync>(params)?)
        .await?;
    let is_short = |status: SyncStatus| matches!(status, SyncStatus::Differs | SyncStatus::Failed);
    let exit = match synced.results.iter().any(|one| is_short(one.status)) {
        true => Exit::Failed,
        false => Exit::Done,
    };
    if session.json {
        output::json(&synced)?;
        return Ok(exit);
    }
    print(args, &synced, session)?;
    Ok(exit)
}

fn print(args: &Args, synced: &Synced, session: &Session) -> Result<(), Failure> {
    let mut rows = Rows::new(session.terminal, &["NAME", "RESULT", "WHY"]);
    for one in &synced.results {
        let name = if *one.name == *one.server {
            one.server.to_string()
        } else {
            format!("{} ({} there)", one.server, one.name)
        };
        rows.add([
            &name,
            one.status.as_str(),
            one.reason.as_deref().unwrap_or_default(),
        ]);
    }
    rows.print_unless_empty("There is nothing to write")?;
    let is_shown = |status: SyncStatus| args.dry_run || status == SyncStatus::Differs;
    for one in synced.results.iter().filter(|one| is_shown(one.status)) {
        if !one.changes.is_empty() {
            output::line(&difference(&one.server, &one.changes, args.from))?;
        }
    }
    session.warn(&synced.left_out);
    for warning in &synced.warnings {
        warn(session.terminal.on_stderr(), warning, None);
    }
    if synced.results.iter().any(|one| one.status == SyncStatus::Differs) {
        let message = "what differs was left as it is";
        warn(
            session.terminal.on_stderr(),
            message,
            Some("look at it with `--dry-run`, then overwrite it with `--replace`"),
        );
    }
    let file = &synced.file;
    if args.dry_run {
        eprintln!(
            "Nothing was written to {}",
            if args.from { "mcp.json" } else { &**file }
        );
    } else if args.from {
        eprintln!(
            "Took over {} from {file}; nothing was started",
            export::servers(synced.written)
        );
    } else if synced.written > 0 {
        eprintln!("Wrote {} to {file}", export::servers(synced.written));
    }
    if let Some(backup) = &synced.backup {
        eprintln!("The file as it was is kept as {backup}");
    }
    Ok(())
}

/// What is lost (`-`) and what comes (`+`), member by member.
fn difference(server: &str, changes: &[SyncChange], is_from: bool) -> String {
    let mut text = one_line(server);
    for change in changes {
        let (old, new) = match is_from {
            true => (&change.here, &change.there),
            false => (&change.there, &change.here),
        };
        for (sign, value) in [("-", old), ("+", new)] {
            if let Some(value) = value {
                let line = format!("{sign} {}: {}", change.member, value.get());
                text.push_str(&format!("\n  {}", one_line(&line)));
            }
        }
    }
    text
}
