//! `pillion status`: what is configured; starts nothing.

use manager::nearest;
use protocol::{ErrorKind, Issue, IssueKind, McpServerStatus, Status};

use super::auth_list::left;
use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output::{self, Rows};
use super::session::{Common, Session};

/// List the configured servers; starts nothing
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this server
    server: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let server = args.server.as_deref();
    let status = session.status(server).await?;
    if let (Some(server), true) = (server, status.servers.is_empty()) {
        if !session.json {
            warn_of_files(&status, session);
        }
        return Err(unknown(server, session).await);
    }
    if session.json {
        output::json(&status)?;
        return Ok(Exit::Done);
    }
    warn_of_files(&status, session);
    if let Some(profile) = &status.profile {
        session.warn(profile.issues.as_deref().unwrap_or_default());
        eprintln!("Profile: {}", profile.name);
    }
    let mut rows = Rows::new(session.terminal, &["NAME", "STATE", "LAYER", "COMMAND"]);
    for server in &status.servers {
        let command = server.command.as_deref().unwrap_or_default();
        rows.add([&server.name, &state(server), server.layer.as_str(), command]);
    }
    let is_whole = status.files.iter().all(|file| file.fault.is_none());
    rows.print_unless_empty(match is_whole {
        true => "No servers are configured; `pillion add NAME -- COMMAND` adds one",
        false => "No servers can be told",
    })?;
    if let Some(left_out) = status.left_out {
        warn(
            session.terminal.on_stderr(),
            &format!("{left_out} more servers are not shown"),
            Some("`pillion status NAME` shows one"),
        );
    }
    for server in &status.servers {
        let is_told = |issue: &&Issue| server.left_out_by.is_some() || Some(*issue) == forbidden(server);
        let issues = server.issues.iter().flatten().filter(|issue| !is_told(issue));
        let of_server = |issue: &Issue| Issue {
            server: Some(server.name.clone()),
            ..issue.clone()
        };
        session.warn(&issues.map(of_server).collect::<Vec<_>>());
    }
    Ok(Exit::Done)
}

/// Files that cannot be used: what is missing may stand in one of them.
pub fn warn_of_files(status: &Status, session: &Session) {
    for file in &status.files {
        let Some(fault) = &file.fault else { continue };
        let place = match (fault.line, fault.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", file.path),
            _ => file.path.to_string(),
        };
        warn(
            session.terminal.on_stderr(),
            &format!("{place}: {}", fault.message),
            fault.hint.as_deref(),
        );
    }
}

/// That a name is nobody's, with the one that was probably meant.
pub async fn unknown(name: &str, session: &Session) -> Failure {
    let names: Vec<String> = match session.status(None).await {
        Ok(status) => status
            .servers
            .iter()
            .map(|server| server.name.to_string())
            .collect(),
        Err(_) => Vec::new(),
    };
    let near = nearest(name, names.iter().map(String::as_str));
    let failure = Failure::new(format!("no server is called `{name}`"));
    match near {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`pillion status` lists the servers"),
    }
}

/// What the administrator's file says against it.
pub fn forbidden(server: &McpServerStatus) -> Option<&Issue> {
    let mut issues = server.issues.iter().flatten();
    issues.find(|issue| issue.kind == IssueKind::from(ErrorKind::Denied))
}

/// The state in words, with what stands in the way.
pub fn state(server: &McpServerStatus) -> String {
    let state = server.state.as_str().replace('_', " ");
    match &server.error {
        Some(fault) => format!("{state}: {}", fault.message),
        None if let Some(issue) = forbidden(server) => format!("{state}: {}", issue.message),
        None if let Some(left) = server
            .pending
            .as_ref()
            .and_then(|pending| left(pending.expires_at)) =>
        {
            format!("{state}: lapses in {left}")
        }
        None if let Some(profile) = &server.left_out_by => format!("{state}: not in profile `{profile}`"),
        None if !server.effective => format!("{state} (hidden by a higher layer)"),
        None => state,
    }
}
