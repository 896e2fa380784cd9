//! `pillion auth`: log in to a server. The address is shown and copied; the person opens it, wherever the browser is.

use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use inquire::Select;
use protocol::{Auth, AuthAck, AuthAction, ErrorKind, McpAuth, McpServerStatus, McpStart, State, methods};

use super::auth_list;
use super::exit::Exit;
use super::failure::Failure;
use super::session::{Common, Session, checked};
use super::typing::{Typed, Typing};
use super::{asking, output};

/// Log in to a server that wants it
///
/// Prints the address to open in a browser, on this machine or another one, and waits until the login is done.
/// Where the browser cannot reach this machine, paste the address it ends on.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    pub what: Option<What>,
    /// The server's name; without it there is a choice
    server: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, clap::Subcommand)]
pub enum What {
    List(auth_list::Args),
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let asks = session.terminal.asks && !session.json;
    let name = match &args.server {
        Some(name) => name.clone(),
        None => choose(session).await?,
    };
    let status = start(session, &name).await?;
    if status.state == State::Ready && status.auth == Some(Auth::Authorized) {
        if session.json {
            output::json(&status)?;
        } else {
            eprintln!("`{name}` is authorized already; `pillion logout {name}` forgets that");
        }
        return Ok(Exit::Done);
    }
    let mut changes = session.watcher.changes();
    let ack = auth(session, &name, AuthAction::Start, None).await?;
    show(session, &name, &ack, asks)?;
    // The terminal is given back when this is dropped.
    let mut typing = Typing::new(asks);
    loop {
        tokio::select! {
            // Whatever changed: the record says how the login stands.
            _ = changes.changed() => {
                if let Some(outcome) = settled(session, &name).await? {
                    return outcome;
                }
            }
            typed = typing.next() => match typed {
                Typed::Copy => copy(&ack),
                Typed::Text(text) => {
                    match auth(session, &name, AuthAction::Complete, Some(text)).await {
                        Ok(_) => {}
                        // A slip of the hand: the login still waits.
                        Err(failure) if is_slip(session, &name).await => {
                            failure.report(session.terminal.on_stderr(), false);
                            eprintln!("Still waiting for the login to `{name}`; paste again, or Ctrl-C to give up");
                        }
                        Err(failure) => return Err(failure),
                    }
                }
            },
            () = session.request.cancel.cancelled() => {
                // The listener of this process ends with it all the same.
                let _ = auth(session, &name, AuthAction::Cancel, None).await;
                return Err(Failure::interrupted());
            }
        }
    }
}

/// How the login ended, once it did.
async fn settled(session: &Session, name: &str) -> Result<Option<Result<Exit, Failure>>, Failure> {
    let status = record(session, name).await?;
    if matches!(status.state, State::Authorizing | State::Connecting) {
        return Ok(None);
    }
    match (&status.error, status.auth) {
        (_, Some(Auth::Authorized)) if status.state == State::Ready => {
            if !session.json {
                let tools = super::tools::list(session, Some(name)).await?.items.len();
                let tools = if tools == 1 {
                    "1 tool".to_owned()
                } else {
                    format!("{tools} tools")
                };
                eprintln!("`{name}` is authorized and ready, with {tools}");
            }
            Ok(Some(Ok(Exit::Done)))
        }
        // What the login began with.
        (Some(fault), _) if fault.kind == ErrorKind::NeedsAuth => Ok(None),
        (Some(fault), _) => Ok(Some(Err(Failure::of(fault, name).already_printed(session.json)))),
        (None, _) => Ok(None),
    }
}

async fn is_slip(session: &Session, name: &str) -> bool {
    record(session, name)
        .await
        .is_ok_and(|status| status.state == State::Authorizing)
}

async fn start(session: &Session, name: &str) -> Result<McpServerStatus, Failure> {
    let params = McpStart {
        directory: session.directory.clone(),
        server: name.into(),
        work_done_token: session.token(),
    };
    let start = session
        .manager
        .start(&session.request, checked::<methods::Start>(params)?);
    let started = session.work(&format!("Asking {name}"), start).await?;
    Ok(started.server)
}

pub async fn record(session: &Session, name: &str) -> Result<McpServerStatus, Failure> {
    let status = session.status(Some(name)).await?;
    match status.servers.into_iter().next() {
        Some(server) => Ok(server),
        None => Err(super::status::unknown(name, session).await),
    }
}

pub async fn auth(
    session: &Session,
    name: &str,
    action: AuthAction,
    redirect: Option<String>,
) -> Result<AuthAck, Failure> {
    let title = match action {
        AuthAction::Complete => format!("Logging in to {name}"),
        AuthAction::Forget => format!("Logging out of {name}"),
        _ => format!("Looking for the login of {name}"),
    };
    let params = McpAuth {
        directory: session.directory.clone(),
        server: name.into(),
        action: Some(action),
        redirect,
    };
    let auth = session
        .manager
        .auth(&session.request, checked::<methods::Auth>(params)?);
    Ok(session.work(&title, auth).await?)
}

fn show(session: &Session, name: &str, ack: &AuthAck, asks: bool) -> Result<(), Failure> {
    if session.json {
        return output::json(ack);
    }
    let Some(url) = &ack.url else { return Ok(()) };
    let place = match session.terminal.remote {
        true => "in the browser of your own machine",
        false => "in a browser",
    };
    let deadline = match ack.expires_at.and_then(left) {
        Some(left) => format!(" within {left}"),
        None => String::new(),
    };
    eprintln!("Open this address {place}{deadline} to log in to `{name}`:");
    output::line(url)?;
    if let Some(code) = &ack.user_code {
        eprintln!("and type this code there: {code}");
    }
    if session.terminal.stderr {
        copy(ack);
    }
    if let Some(redirect_uri) = &ack.redirect_uri {
        for line in way_back(redirect_uri, session.terminal.remote, asks) {
            eprintln!("{line}");
        }
    }
    Ok(())
}

/// How the answer of the browser gets here.
fn way_back(redirect_uri: &str, remote: bool, asks: bool) -> Vec<String> {
    match (remote, asks) {
        (true, true) => vec![
            "You are here over SSH, so the browser cannot get back by itself.".to_owned(),
            format!("It ends on a page that it cannot open, {redirect_uri}?…"),
            "Copy the whole address of that page from the browser, and paste the address here.".to_owned(),
            "`c` copies the address to open again, Ctrl-C gives up.".to_owned(),
        ],
        (true, false) => vec![format!(
            "You are here over SSH: the browser must reach {redirect_uri} of this machine, or run this in a terminal and paste there where it ends."
        )],
        (false, true) => vec![
            "`c` copies it again, Ctrl-C gives up.".to_owned(),
            "If the browser is on another machine, it ends on a page that it cannot open: paste the address of that page here.".to_owned(),
        ],
        (false, false) => Vec::new(),
    }
}

/// Puts the address on the clipboard of the terminal, wherever that is (OSC 52).
fn copy(ack: &AuthAck) {
    let Some(url) = &ack.url else { return };
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // Nobody is left to tell when the terminal is gone.
        let _ = write!(stderr, "\x1b]52;c;{}\x07", STANDARD.encode(url));
        eprintln!("auth URL copied");
    }
}

/// The time until then in whole minutes, rounded up.
fn left(at: u64) -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(at).checked_sub(now)?;
    Some(match left.as_millis().div_ceil(60_000) {
        1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    })
}

async fn choose(session: &Session) -> Result<String, Failure> {
    let status = session.status(None).await?;
    let names: Vec<String> = status
        .servers
        .into_iter()
        .filter(|server| server.effective && server.auth_stored.is_some() && server.state != State::Disabled)
        .map(|server| server.name.to_string())
        .collect();
    pick("Log in to which server?", names, session).await
}

/// The only name there is, or the one that the person chooses.
pub async fn pick(
    question: &'static str,
    mut names: Vec<String>,
    session: &Session,
) -> Result<String, Failure> {
    if names.len() == 1 {
        return Ok(names.remove(0));
    }
    if names.is_empty() {
        return Err(Failure::new("no configured server has a login")
            .hint("`pillion add NAME --url URL` adds a server"));
    }
    let instead = format!("name it: {}", names.join(", "));
    if session.json {
        return Err(asking::unasked(question, instead));
    }
    let chosen = session
        .prompt(question, instead, move || Select::new(question, names).prompt())
        .await?;
    chosen.ok_or_else(|| Failure::new("no server was chosen").exit(Exit::Denied))
}
