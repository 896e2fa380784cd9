//! `pillion edit`: changes members of an entry; what is not named stays, stored secrets too.

use std::collections::BTreeMap;

use protocol::{McpConfig, McpEdit, Pointer, ServerEntry, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::fields::Fields;
use super::output;
use super::session::{Common, Session, checked};

/// Change members of a server's entry; the others stay
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    /// Its new program and arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Its new address
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// An environment variable, KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::add::key_value)]
    env: Vec<(String, String)>,
    /// A header, 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER", value_parser = super::add::header)]
    header: Vec<(String, String)>,
    /// The server's working directory
    #[arg(long, value_name = "DIR", conflicts_with = "url", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    cwd: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// A member to take away, as a JSON Pointer such as /env/NAME; may be repeated
    #[arg(long, value_name = "POINTER")]
    unset: Vec<String>,
    /// Its new name
    #[arg(long, alias = "name", value_name = "NAME")]
    rename: Option<String>,
    /// Show what would be written and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    if let Some(name) = &args.rename {
        super::add::check_name(name)?;
    }
    for (option, pairs) in [("--env", &args.env), ("--header", &args.header)] {
        super::add::check_once(option, pairs)?;
    }
    let map = |pairs: &[(String, String)]| -> Option<BTreeMap<String, String>> {
        (!pairs.is_empty()).then(|| pairs.iter().cloned().collect())
    };
    let mut unset: Vec<Pointer> = args
        .unset
        .iter()
        .map(|pointer| Pointer::from(pointer.as_str()))
        .collect();
    let (command, rest) = match args.command.split_first() {
        Some((command, rest)) => (Some(super::add::program(command)), rest),
        None => (None, &[][..]),
    };
    if command.is_some() {
        // Another program is a whole: the old arguments are not its own.
        unset.extend(["/args", "/url", "/headers", "/transport", "/oauth"].map(Pointer::from));
    } else if args.url.is_some() {
        unset.extend(["/command", "/args", "/env", "/cwd", "/envFile"].map(Pointer::from));
    }
    let set = args.fields.of(ServerEntry {
        command,
        args: (!rest.is_empty()).then(|| rest.to_vec()),
        env: map(&args.env),
        cwd: args.cwd.as_deref().map(|cwd| super::add::absolute(cwd).into()),
        url: args.url.as_deref().map(Into::into),
        headers: map(&args.header),
        ..Default::default()
    });
    let is_set = set != ServerEntry::default();
    if !is_set && unset.is_empty() && args.rename.is_none() {
        return Err(
            Failure::usage("nothing to change is given").hint("`pillion edit --help` lists what can be")
        );
    }
    check_members(args, session).await?;
    let params = McpEdit {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        set: Some(set),
        unset: (!unset.is_empty()).then_some(unset),
        rename: args.rename.as_deref().map(Into::into),
        dry_run: args.dry_run.then_some(true),
        ..Default::default()
    };
    let written = session
        .manager
        .edit(&session.request, checked::<methods::Edit>(params)?)
        .await?;
    if session.json {
        output::json(&written)?;
        return Ok(Exit::Done);
    }
    output::line(written.text.as_deref().unwrap_or_default())?;
    if args.dry_run {
        eprintln!("Nothing was written");
    } else {
        eprintln!("Changed `{}`", args.server);
    }
    Ok(Exit::Done)
}

/// What is taken away must be there, in a layer at least. What is wrong in an entry with faults is not shown, and may go.
async fn check_members(args: &Args, session: &Session) -> Result<(), Failure> {
    if args.unset.is_empty() {
        return Ok(());
    }
    let params = McpConfig {
        directory: session.directory.clone(),
        server: Some(args.server.as_str().into()),
    };
    let params = checked::<methods::Config>(params)?;
    let config = session.manager.config(&session.request, params).await?;
    let shown = config.servers;
    let status = session.status(Some(&args.server)).await?;
    if shown.is_empty() || status.servers.iter().any(|server| server.error.is_some()) {
        return Ok(());
    }
    let has = |pointer: &String| {
        shown.iter().any(|shown| {
            let known = serde_json::to_value(&shown.entry).unwrap_or_default();
            let strange = |unknown: &Pointer| pointer.starts_with(&**unknown);
            known.pointer(pointer).is_some() || shown.unknown.iter().any(strange)
        })
    };
    let Some(absent) = args.unset.iter().find(|pointer| !has(pointer)) else {
        return Ok(());
    };
    let name = absent.trim_start_matches('/');
    let meant = ["/", "/env/", "/headers/"]
        .map(|before| format!("{before}{name}"))
        .into_iter()
        .find(has);
    let failure = Failure::new(format!("`{}` has no `{absent}`", args.server));
    Err(match meant {
        Some(meant) => failure.hint(format!("`--unset {meant}` takes it away")),
        None => failure.hint(format!("`pillion config {}` shows what it has", args.server)),
    })
}
