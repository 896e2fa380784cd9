//! `pillion auth list`: the logins, of configured servers and of those that are gone; starts nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use protocol::{Auth, Credential, McpAuthList, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// List the servers that may want a login, and what is stored of it
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(_: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpAuthList {
        directory: Some(session.directory.clone()),
    };
    let listed = session
        .manager
        .auth_list(&session.request, checked::<methods::AuthList>(params)?)
        .await?;
    if session.json {
        output::json(&listed)?;
        return Ok(Exit::Done);
    }
    let status = session.status(None).await?;
    let mut rows = Rows::new(session.terminal, &["NAME", "LOGIN", "SCOPE", "URL"]);
    for server in status
        .servers
        .iter()
        .filter(|server| server.auth_stored.is_some())
    {
        if listed.credentials.iter().any(|known| known.server == server.name) {
            continue;
        }
        let login = match server.auth {
            Some(Auth::Pending) => "waiting for the browser",
            Some(Auth::NeedsAuth) => "needed",
            Some(Auth::Authorized | Auth::None) | None => "none",
        };
        let url = server.command.as_deref().unwrap_or_default();
        rows.add([&server.name, login, "", url]);
    }
    for known in &listed.credentials {
        let scope = known.scope.as_deref().unwrap_or_default();
        let name = match &known.account {
            Some(account) => format!("{} ({account})", known.server),
            None => known.server.to_string(),
        };
        rows.add([&name, &login(known), scope, &known.url]);
    }
    rows.print_unless_empty("No configured server has a login; `pillion add NAME --url URL` adds one")?;
    if let Some(note) = &listed.note {
        eprintln!("{note}");
    }
    Ok(Exit::Done)
}

fn login(known: &Credential) -> String {
    let gone = if known.configured {
        ""
    } else {
        ", no longer configured"
    };
    let state = match (known.expired, known.expires_at) {
        (true, _) => "expired".to_owned(),
        (false, None) => "stored".to_owned(),
        (false, Some(at)) => match left(at) {
            Some(left) => format!("stored, expires in {left}"),
            None => "expired".to_owned(),
        },
    };
    format!("{state}{gone}")
}

/// The time until then, in its largest unit.
pub fn left(at: u64) -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(at).checked_sub(now)?.as_secs();
    Some(match left {
        0..120 => format!("{left} s"),
        120..7200 => format!("{} min", left / 60),
        7200..172_800 => format!("{} h", left / 3600),
        _ => format!("{} days", left / 86_400),
    })
}
