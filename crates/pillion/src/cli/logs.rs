//! `pillion logs`: what a server writes while it starts, and with `--follow` for as long as one looks on.

use protocol::{LogLine, LogSource, McpLogs, McpStart, State, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};
use super::terminal::harmless;

/// Start a server and print its log: stderr, protocol notes, its own messages
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    /// Go on until interrupted
    #[arg(long, short, conflicts_with = "json")]
    follow: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpStart {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        work_done_token: session.token(),
    };
    let start = session
        .manager
        .start(&session.request, checked::<methods::Start>(params)?);
    let started = session
        .work(&format!("Starting {}", args.server), start)
        .await?
        .server;
    let params = McpLogs {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        limit: None,
        follow: args.follow.then_some(true),
    };
    let log = session
        .manager
        .logs(&session.request, checked::<methods::Logs>(params)?)
        .await?;
    if session.json {
        output::json(&log)?;
    } else {
        print(&log.lines, log.dropped)?;
    }
    if let Some(fault) = &started.error
        && started.state != State::Ready
    {
        // The log that most faults point to stands above.
        let mut fault = fault.clone();
        fault.hint = fault.hint.filter(|hint| !hint.contains("`mcp.logs`"));
        return Err(Failure::of(&fault, &args.server).already_printed(session.json));
    }
    if log.lines.is_empty() && !session.json {
        eprintln!("`{}` is ready and has written nothing", args.server);
    }
    if args.follow {
        while let Some(log) = session.log().await {
            print(&log.lines, log.dropped)?;
        }
    }
    Ok(Exit::Done)
}

fn print(lines: &[LogLine], dropped: u64) -> Result<(), Failure> {
    if dropped > 0 {
        output::line(&format!("… {dropped} lines left out"))?;
    }
    for line in lines {
        output::line(&shown(line))?;
    }
    Ok(())
}

/// The server's own stderr stands as it is; what others say about it is marked.
fn shown(line: &LogLine) -> String {
    let text = harmless(&line.text);
    match line.source {
        LogSource::Stderr => text.into_owned(),
        LogSource::Server | LogSource::Protocol | LogSource::Pillion => {
            format!("[{} {}] {text}", line.source.as_str(), line.level.as_str())
        }
    }
}
