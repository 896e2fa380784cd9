//! `pillion test`: tries a server without writing anything.

use std::time::Duration;

use protocol::{EntryTransport, Error, McpTest, ServerEntry, TestResult, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::hint;
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// Try a server without saving it: pillion test NAME, pillion test -- COMMAND ARGS…, or pillion test --url URL
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name of a configured server
    #[arg(conflicts_with_all = ["command", "url"], required_unless_present_any = ["command", "url"])]
    server: Option<String>,
    /// The program and its arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A remote server's address instead of a command
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// An environment variable of the server, KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::add::key_value)]
    env: Vec<(String, String)>,
    /// A header of every request, 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER", value_parser = super::add::header)]
    header: Vec<(String, String)>,
    /// The transport of a remote server; both are tried without it
    #[arg(long, requires = "url")]
    transport: Option<super::add::Transport>,
    /// Give up after so many seconds (1 to 60)
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let changes = entry(args);
    let has_changes = changes != ServerEntry::default();
    let params = McpTest {
        directory: session.directory.clone(),
        server: args.server.as_deref().map(Into::into),
        entry: args.server.is_none().then(|| changes.clone()),
        set: (args.server.is_some() && has_changes).then_some(changes),
        timeout_ms: Some(Duration::from_secs(args.timeout).as_millis() as u64),
        work_done_token: session.token(),
        ..Default::default()
    };
    let work = session
        .manager
        .test(&session.request, checked::<methods::Test>(params)?);
    let result = session.work("Testing", work).await?;
    if session.json {
        output::json(&result)?;
    }
    show(result, args.server.as_deref(), session)
}

/// Says how a test went; a failed one fails the command.
fn show(result: TestResult, server: Option<&str>, session: &Session) -> Result<Exit, Failure> {
    if result.fault.is_some() {
        return Err(failed(result, server, session.json));
    }
    if session.json {
        return Ok(Exit::Done);
    }
    let mut rows = Rows::new(session.terminal, &["TOOL", "TOKENS", "DESCRIPTION"]);
    for tool in &result.tools {
        let described = tool.description.as_deref().or(tool.title.as_deref());
        let first = described.unwrap_or_default().lines().next().unwrap_or_default();
        let tokens = tool.tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
        rows.add([&tool.name, &tokens, first]);
    }
    rows.print_unless_empty("It offers no tools")?;
    eprintln!("{}", result.message);
    if result.tokens > 0 {
        eprintln!("A model's context would hold about {} tokens more", result.tokens);
    }
    Ok(Exit::Done)
}

/// A test that failed, as what is said about it. `server` is the entry that was tried, if it is one.
pub fn failed(result: TestResult, server: Option<&str>, printed: bool) -> Failure {
    let Some(fault) = result.fault else {
        return Failure::new(result.message).already_printed(printed);
    };
    let mut error = Error::new(fault.kind, result.message);
    error.data.hint = fault.hint;
    error.data.stderr_tail = fault.stderr_tail;
    error.data.http_status = fault.http_status;
    let tried = match server {
        Some(_) => None,
        None => error.data.hint.as_deref().map(hint::tried),
    };
    error.data.server = server.map(Into::into);
    let failure = Failure::from(error).already_printed(printed);
    match tried {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn entry(args: &Args) -> ServerEntry {
    let map = |pairs: &[(String, String)]| (!pairs.is_empty()).then(|| pairs.iter().cloned().collect());
    let (command, rest) = match args.command.split_first() {
        Some((command, rest)) => (Some(super::add::program(command)), rest),
        None => (None, &[][..]),
    };
    ServerEntry {
        command,
        args: (!rest.is_empty()).then(|| rest.to_vec()),
        env: map(&args.env),
        url: args.url.as_deref().map(Into::into),
        headers: map(&args.header),
        transport: args.transport.map(EntryTransport::from),
        ..Default::default()
    }
}
