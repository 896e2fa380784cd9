//! `pillion add`: writes one entry into the user's `mcp.json`, as given and unexpanded; starts nothing.

use std::collections::BTreeMap;

use protocol::{EntryTransport, OAuth, OauthSetting, ServerEntry};

use super::draft::{self, Values};
use super::exit::Exit;
use super::failure::Failure;
use super::fields::Fields;
use super::session::{Common, Session};
use super::wizard::{self, Wanted};
use super::{asking, bundle, from, output, paste};

/// Add a server: pillion add NAME -- COMMAND ARGS…, pillion add NAME --url URL, or pillion add --from ID
#[derive(Debug, clap::Args)]
#[command(after_help = "\
${VAR} and ${VAR:-default} in any value stay as they are and are filled in when the server starts.
Quote them for the shell: --env 'TOKEN=${MY_TOKEN}'")]
pub struct Args {
    /// The new name: letters, digits, _ and -, at most 32; a terminal asks for what is not given. Or a bundle: a file
    /// that ends in .mcpb or .dxt
    name: Option<String>,
    /// Words that should stand after --.
    #[arg(hide = true)]
    stray: Vec<String>,
    /// The program and its arguments, after --; with --from, what the server is given
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A server of the gallery, the registry or GitHub, as `pillion search` names it
    #[arg(long, value_name = "ID", conflicts_with_all = ["url", "paste", "cwd"])]
    from: Option<String>,
    /// How to have it, where there are several ways: npx, uvx, docker, dnx or remote
    #[arg(long, requires = "from", value_name = "WAY")]
    way: Option<String>,
    /// The SHA-256 that a bundle must have
    #[arg(long, value_name = "HASH", conflicts_with_all = ["from", "url", "paste", "command"])]
    sha256: Option<String>,
    /// What the server of --from or of a bundle asks for, by the label it has in the review; may be repeated
    #[arg(long, conflicts_with_all = ["url", "paste"], value_name = "LABEL=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    /// Take a command that is only a guess from a repository's name
    #[arg(long, requires = "from")]
    accept_unverified: bool,
    /// Try it before it is added
    #[arg(long)]
    test: bool,
    /// A remote server's address instead of a command
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// An environment variable of the server, KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    env: Vec<(String, String)>,
    /// The server's working directory
    #[arg(long, value_name = "DIR", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    cwd: Option<String>,
    /// A header of every request, 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,
    #[command(flatten)]
    fields: Fields,
    /// The transport of a remote server; both are tried without it
    #[arg(long, requires = "url")]
    transport: Option<Transport>,
    /// The client id to log in with
    #[arg(long, requires = "url", conflicts_with = "no_oauth", value_name = "ID")]
    client_id: Option<String>,
    /// The variable that holds the client's secret; only its name is written
    #[arg(long, requires = "client_id", conflicts_with = "no_oauth", value_name = "VAR", value_parser = variable)]
    client_secret_env: Option<String>,
    /// The scope to ask for
    #[arg(long, requires = "url", conflicts_with = "no_oauth")]
    scope: Option<String>,
    /// The fixed loopback port of the login's way back
    #[arg(long, requires = "url", conflicts_with = "no_oauth", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    callback_port: Option<u16>,
    /// The whole address of the login's way back, where one is registered
    #[arg(long, requires = "url", conflicts_with = "no_oauth", value_name = "URI")]
    redirect_uri: Option<String>,
    /// This server never asks for a login
    #[arg(long, requires = "url")]
    no_oauth: bool,
    /// What was copied from elsewhere: a command, an address, an install link or a configuration; - for stdin
    #[arg(long, conflicts_with_all = ["command", "url", "env", "cwd"], value_name = "TEXT")]
    paste: Option<String>,
    /// Do not ask before it is added
    #[arg(long, short)]
    yes: bool,
    /// Write it into the project's .pillion/mcp.json, for everyone who works on it
    #[arg(long)]
    project: bool,
    /// Add it switched off
    #[arg(long)]
    disabled: bool,
    /// Replace an entry of the same name
    #[arg(long)]
    replace: bool,
    /// Show what would be written and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Transport {
    Http,
    Sse,
}

impl From<Transport> for EntryTransport {
    fn from(transport: Transport) -> EntryTransport {
        match transport {
            Transport::Http => EntryTransport::Http,
            Transport::Sse => EntryTransport::Sse,
        }
    }
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    if let Some(name) = &args.name
        && !args.stray.is_empty()
    {
        return Err(Failure::usage("what is started stands after `--`").hint(meant(name, args)));
    }
    let is_plain = args.from.is_none() && args.paste.is_none();
    if !is_plain && !args.fields.is_empty() {
        return Err(Failure::usage(
            "a label, a timeout, reconnecting and lists of tools belong to `-- COMMAND` and to `--url`",
        )
        .hint("add it, then use `pillion edit`"));
    }
    let is_alone =
        args.command.is_empty() && args.url.is_none() && args.from.is_none() && args.paste.is_none();
    if let Some(file) = args
        .name
        .as_deref()
        .filter(|name| is_alone && bundle::is_bundle(name))
    {
        if args.project || args.disabled || args.test || !args.fields.is_empty() {
            return Err(Failure::usage(
                "a bundle takes no `--project`, `--disabled`, `--test` and no fields of an entry",
            )
            .hint("add it, then use `pillion disable`, `pillion test` or `pillion edit`"));
        }
        let wanted = bundle::Wanted {
            file,
            sha256: args.sha256.as_deref(),
            values: &args.set,
            replace: args.replace,
            dry_run: args.dry_run,
            yes: args.yes,
        };
        return bundle::run(&wanted, session).await;
    }
    if args.sha256.is_some() || (!args.set.is_empty() && args.from.is_none()) {
        return Err(
            Failure::usage("`--set` and `--sha256` belong to a bundle or to `--from`")
                .hint("pillion add FILE.mcpb, or pillion add --from ID"),
        );
    }
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    let drafting = draft::Wanted {
        name: args.name.as_deref(),
        project: args.project,
        disabled: args.disabled,
        replace: args.replace,
        dry_run: args.dry_run,
        yes: args.yes,
        accept_unverified: args.accept_unverified,
        test: args.test,
        values: Values {
            env: &args.env,
            header: &args.header,
            set: &args.set,
            args: &args.command,
        },
        refuses_holes: args.from.is_some(),
    };
    if let Some(id) = &args.from {
        return from::run(id, args.way.as_deref(), &drafting, session).await;
    }
    if let Some(text) = &args.paste {
        return paste::run(text, &drafting, session).await;
    }
    if args.url.is_none()
        && let Some(option) = of_remote(args)
    {
        let failure = Failure::usage(format!("`{option}` belongs to a remote server"));
        return Err(match args.scope.as_deref() {
            Some("project") => failure.hint("`--project` writes it into the project's file"),
            _ => failure.hint("give its address with `--url URL`"),
        });
    }
    for (option, pairs) in [("--env", &args.env), ("--header", &args.header)] {
        check_once(option, pairs)?;
    }
    let is_given = args.url.is_some() || !args.command.is_empty();
    let wanted = match &args.name {
        Some(name) if is_given => Wanted {
            name: name.clone(),
            entry: entry(args),
            project: args.project,
        },
        None if is_given => {
            return Err(Failure::usage("the name is missing").hint(WAYS));
        }
        _ => {
            let taken = if args.replace || !session.terminal.asks {
                Vec::new()
            } else {
                taken(session).await?
            };
            if let Some(used) = args.name.as_ref().and_then(|name| used(name, &taken)) {
                return Err(Failure::usage(used).hint("choose another name, or add `--replace`"));
            }
            let begun = wizard::Begun {
                name: args.name.clone(),
                entry: entry(args),
                project: args.project,
                taken,
            };
            match wizard::ask(begun, session).await? {
                Some(wanted) => wanted,
                None => return Ok(asking::left("Nothing was written")),
            }
        }
    };
    if args.test && !args.dry_run {
        draft::tried(&wanted.name, &wanted.entry, false, false, session).await?;
    }
    let drafting = draft::Wanted {
        project: wanted.project || args.project,
        ..drafting
    };
    let written = draft::write(&wanted.name, wanted.entry, false, None, &drafting, session).await?;
    if session.json {
        output::json(&written)?;
    }
    Ok(Exit::Done)
}

/// The command that words at the wrong place probably stand for.
fn meant(name: &str, args: &Args) -> String {
    let stray = args.stray.join(" ");
    const PROGRAMS: [&str; 10] = [
        "npx", "bunx", "uvx", "docker", "podman", "node", "deno", "bun", "python", "python3",
    ];
    if PROGRAMS.contains(&name) {
        // `-y` is an option of ours as well.
        let yes = if args.yes { " -y" } else { "" };
        return format!("pillion add NAME -- {name}{yes} {stray}");
    }
    let is_pair = |word: &String| key_value(word).is_ok() && !word.starts_with('-');
    match &*args.stray {
        [address] if address.starts_with("http://") || address.starts_with("https://") => {
            format!("pillion add {name} --url {address}")
        }
        pairs if !args.command.is_empty() && pairs.iter().all(is_pair) => format!(
            "pillion add {name} --env {} -- {}",
            pairs.join(" --env "),
            args.command.join(" ")
        ),
        _ => format!(
            "pillion add {name} -- {}",
            [&[stray], &*args.command].concat().join(" ")
        ),
    }
}

/// The first option that only a remote server has. Where there is a command, the parser lets them pass.
fn of_remote(args: &Args) -> Option<&'static str> {
    [
        ("--header", !args.header.is_empty()),
        ("--transport", args.transport.is_some()),
        ("--client-id", args.client_id.is_some()),
        ("--client-secret-env", args.client_secret_env.is_some()),
        ("--scope", args.scope.is_some()),
        ("--callback-port", args.callback_port.is_some()),
        ("--redirect-uri", args.redirect_uri.is_some()),
        ("--no-oauth", args.no_oauth),
    ]
    .into_iter()
    .find_map(|(option, is_given)| is_given.then_some(option))
}

/// A name that is given twice has one value too many. Names of headers are the same in any case (RFC 9110, section 5.1).
pub fn check_once(option: &str, pairs: &[(String, String)]) -> Result<(), Failure> {
    let is_same = |one: &str, other: &str| match option {
        "--header" => one.eq_ignore_ascii_case(other),
        _ => one == other,
    };
    let again = |index: usize| {
        pairs[..index]
            .iter()
            .any(|(other, _)| is_same(other, &pairs[index].0))
    };
    match (0..pairs.len()).find(|index| again(*index)) {
        Some(index) => Err(Failure::usage(format!(
            "`{option}` names `{}` twice",
            pairs[index].0
        ))),
        None => Ok(()),
    }
}

/// What can be typed.
pub const WAYS: &str = "pillion add NAME -- COMMAND ARGS…, pillion add NAME --url URL, or pillion add --from ID; \
    `pillion search WORDS` finds ids";

/// The names of the entries there are, with what people know them by.
async fn taken(session: &Session) -> Result<Vec<(String, String)>, Failure> {
    let status = session.status(None).await?;
    Ok(status
        .servers
        .into_iter()
        .map(|server| (server.name.to_string(), server.label))
        .collect())
}

/// That an entry has the name already.
fn used(name: &str, taken: &[(String, String)]) -> Option<String> {
    let (_, label) = taken.iter().find(|(taken, _)| taken == name)?;
    Some(format!("\"{name}\" is already used by \"{label}\""))
}

/// Why a new entry cannot be called so.
pub fn name_fault(name: &str, taken: &[(String, String)]) -> Option<String> {
    let is_name = (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !is_name {
        return Some(format!(
            "`{name}` is no name: letters, digits, `_` and `-` are, at most 32"
        ));
    }
    used(name, taken)
}

/// A name as the manager takes it; whether it is used is found out when it is written.
pub fn check_name(name: &str) -> Result<(), Failure> {
    name_fault(name, &[]).map_or(Ok(()), |fault| Err(Failure::usage(fault)))
}

fn entry(args: &Args) -> ServerEntry {
    let (command, rest) = match args.command.split_first() {
        Some((command, rest)) => (Some(program(command)), rest),
        None => (None, &[][..]),
    };
    let map = |pairs: &[(String, String)]| -> Option<BTreeMap<String, String>> {
        (!pairs.is_empty()).then(|| pairs.iter().cloned().collect())
    };
    args.fields.of(ServerEntry {
        command,
        args: (!rest.is_empty()).then(|| rest.to_vec()),
        env: map(&args.env),
        cwd: args.cwd.as_deref().map(|cwd| absolute(cwd).into()),
        url: args.url.as_deref().map(Into::into),
        headers: map(&args.header),
        transport: args.transport.map(EntryTransport::from),
        oauth: oauth(args),
        enabled: args.disabled.then_some(false),
        source: Some("manual".to_owned()),
        ..Default::default()
    })
}

fn oauth(args: &Args) -> Option<OauthSetting> {
    if args.no_oauth {
        return Some(OauthSetting::Off(protocol::False));
    }
    let oauth = OAuth {
        client_id: args.client_id.clone(),
        client_secret: args.client_secret_env.as_ref().map(|name| format!("${{{name}}}")),
        scope: args.scope.clone(),
        callback_port: args.callback_port,
        redirect_uri: args.redirect_uri.as_deref().map(Into::into),
        ..Default::default()
    };
    (oauth != OAuth::default()).then_some(OauthSetting::On(oauth))
}

fn variable(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("write the name of a variable".to_owned())
    }
}

/// A path that was typed here means here; the server will start elsewhere.
pub fn program(command: &str) -> String {
    if command.contains('/') {
        absolute(command)
    } else {
        command.to_owned()
    }
}

pub fn absolute(path: &str) -> String {
    if path.starts_with(['~', '$']) {
        return path.to_owned();
    }
    let absolute = std::path::absolute(path)
        .ok()
        .and_then(|path| path.into_os_string().into_string().ok());
    absolute.unwrap_or_else(|| path.to_owned())
}

pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write 'Name: value'".to_owned()),
    }
}
