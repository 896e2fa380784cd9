//! A draft of an entry, wherever it comes from: shown as a review, filled in, tried if wanted, and written.

use std::path::Path;

use inquire::{Password, PasswordDisplayMode, Select, Text};
use protocol::{Draft, McpAdd, McpTest, Need, Scope, ServerEntry, State, Target, Written, methods};

use super::exit::Exit;
use super::failure::{Failure, warn};
use super::session::{Session, checked};
use super::terminal::{one_line, plain};
use super::{asking, output, review};

/// How to go about it.
pub struct Wanted<'a> {
    pub name: Option<&'a str>,
    pub project: bool,
    pub disabled: bool,
    pub replace: bool,
    pub dry_run: bool,
    /// Nothing is asked that is not missing.
    pub yes: bool,
    pub accept_unverified: bool,
    /// Tried before it is written.
    pub test: bool,
    pub values: Values<'a>,
    /// Without a terminal, whether a draft with holes is refused or written with a warning.
    pub refuses_holes: bool,
}

/// What was given on the command line.
#[derive(Default)]
pub struct Values<'a> {
    pub env: &'a [(String, String)],
    pub header: &'a [(String, String)],
    pub set: &'a [(String, String)],
    pub args: &'a [String],
}

/// Carries a draft all the way. `None`: the person did not want it.
pub async fn add(draft: &Draft, wanted: &Wanted<'_>, session: &Session) -> Result<Option<Written>, Failure> {
    let name = wanted.name.unwrap_or(&draft.name);
    let (mut entry, mut open) = given(draft, &wanted.values)?;
    let asks = session.terminal.asks && !wanted.dry_run;
    if !session.json || asks {
        show(name, draft, &entry, &open, session);
    }
    if !session.terminal.asks && !wanted.yes && !wanted.dry_run {
        let question = question(name, &entry, wanted.accept_unverified);
        let needed: Vec<String> = ways(&open).into_iter().filter(|_| wanted.refuses_holes).collect();
        let also = match needed.is_empty() {
            true => String::new(),
            false => format!("; give also: {}", needed.join(" ")),
        };
        let instead = format!("`--yes` adds what is shown above{also}");
        return Err(asking::unasked(&question, instead));
    }
    if asks {
        while let Some(need) = open.first() {
            let Some(value) = ask(need, session).await? else {
                eprintln!("`{name}` was not added");
                return Ok(None);
            };
            let value = if need.at.starts_with("/args/") && !need.secret {
                here(&value)
            } else {
                value
            };
            match manager::fill(&entry, need, &value) {
                Ok(filled) => {
                    entry = filled;
                    open.remove(0);
                }
                Err(reason) => warn(session.terminal.on_stderr(), &reason, None),
            }
        }
    } else if !open.is_empty() && wanted.refuses_holes {
        return Err(missing(&open));
    }
    let mut accepted = wanted.accept_unverified;
    let mut tries = wanted.test;
    if asks && !wanted.yes {
        let choice = choose(&question(name, &entry, accepted), session).await?;
        match choice {
            None | Some(Choice::Leave) => {
                eprintln!("`{name}` was not added");
                return Ok(None);
            }
            Some(Choice::Try) => tries = true,
            Some(Choice::Add) => {}
        }
        // The question named it.
        accepted = true;
    }
    if wanted.disabled {
        entry.enabled = Some(false);
    }
    if tries && !wanted.dry_run && !tried(name, &entry, accepted, asks && !wanted.yes, session).await? {
        eprintln!("`{name}` was not added");
        return Ok(None);
    }
    write(name, entry, accepted, draft.scope, wanted, session)
        .await
        .map(Some)
}

fn is_unverified(entry: &ServerEntry) -> bool {
    entry
        .source
        .as_deref()
        .is_some_and(|source| source.starts_with("unverified:"))
}

/// The entry with what the command line says, and what is still missing then.
fn given(draft: &Draft, values: &Values<'_>) -> Result<(ServerEntry, Vec<Need>), Failure> {
    let mut entry = draft.entry.clone();
    let mut needs = draft.needs.clone();
    for (maps, member) in [(values.env, "env"), (values.header, "headers")] {
        for (key, value) in maps {
            let at = format!("/{member}/{key}");
            let index = needs
                .iter()
                .position(|need| need.at.eq_ignore_ascii_case(&at) || need.label == *key);
            match index {
                Some(index) => {
                    let need = needs.remove(index);
                    entry = manager::fill(&entry, &need, value).map_err(Failure::usage)?;
                }
                None if member == "env" => {
                    entry
                        .env
                        .get_or_insert_default()
                        .insert(key.clone(), value.clone());
                }
                None => {
                    entry
                        .headers
                        .get_or_insert_default()
                        .insert(key.clone(), value.clone());
                }
            }
        }
    }
    for (label, value) in values.set {
        let Some(index) = needs
            .iter()
            .position(|need| need.label.eq_ignore_ascii_case(label))
        else {
            let known: Vec<&str> = draft.needs.iter().map(|need| need.label.as_str()).collect();
            let failure = Failure::usage(format!("it asks for no `{label}`"));
            return Err(if known.is_empty() {
                failure
            } else {
                failure.hint(format!("it asks for: {}", known.join(", ")))
            });
        };
        let need = needs.remove(index);
        entry = manager::fill(&entry, &need, value).map_err(Failure::usage)?;
    }
    for value in values.args {
        let open = |need: &Need| need.at.starts_with("/args/") && manager::is_open(&entry, need);
        match needs.iter().position(open) {
            Some(index) => {
                let need = needs.remove(index);
                entry = manager::fill(&entry, &need, &here(value)).map_err(Failure::usage)?;
            }
            None => entry.args.get_or_insert_default().push(value.clone()),
        }
    }
    let open = needs.into_iter().filter(|need| manager::is_open(&entry, need));
    let open = open.collect();
    Ok((entry, open))
}

/// A path that was typed here means here; the server will start elsewhere.
fn here(value: &str) -> String {
    let is_path = value.starts_with("./") || value.starts_with("../") || std::path::Path::new(value).exists();
    if is_path {
        super::add::absolute(value)
    } else {
        value.to_owned()
    }
}

/// All that is missing, and how each is given.
fn missing(open: &[Need]) -> Failure {
    let names: Vec<&str> = open.iter().map(|need| need.label.as_str()).collect();
    Failure::usage(format!("still to be given: {}", names.join(", ")))
        .hint(format!("give {}", ways(open).join(" ")))
}

/// What to type for all of them; arguments of the server come last, in their order.
fn ways(open: &[Need]) -> Vec<String> {
    let (args, others): (Vec<&Need>, Vec<&Need>) = open
        .iter()
        .partition(|need| need.at.starts_with("/args/") && !need.secret);
    let mut ways: Vec<String> = others.into_iter().map(way).collect();
    if !args.is_empty() {
        ways.push("--".to_owned());
        ways.extend(
            args.iter()
                .map(|need| need.label.to_uppercase().replace(' ', "_")),
        );
    }
    ways
}

/// What to type for a value. A secret is named, not written: the command line is seen by others.
fn way(need: &Need) -> String {
    let label = &need.label;
    let reference = manager::variable_name(label);
    let value = if need.secret {
        format!("${{{reference}}}")
    } else {
        "…".to_owned()
    };
    if let Some(name) = need.at.strip_prefix("/env/").filter(|name| name == label) {
        format!("--env '{name}={value}'")
    } else if let Some(name) = need.at.strip_prefix("/headers/").filter(|name| name == label) {
        format!("--header '{name}: {value}'")
    } else {
        format!("--set '{label}={value}'")
    }
}

fn show(name: &str, draft: &Draft, entry: &ServerEntry, open: &[Need], session: &Session) {
    eprintln!("{}", session.terminal.on_stderr().bold(&one_line(name)));
    for (label, value) in review::target(&filled(draft, entry)) {
        eprintln!("  {:<12} {}", format!("{label}:"), plain(&value));
    }
    for need in &draft.needs {
        let is_open = open
            .iter()
            .any(|open| open.at == need.at && open.label == need.label);
        let described = need.description.as_deref().unwrap_or_default();
        let mark = match (is_open, need.required) {
            (true, _) => "needs",
            (false, true) => continue,
            (false, false) => "takes",
        };
        let text = if described.is_empty() {
            need.label.clone()
        } else {
            format!("{}: {described}", need.label)
        };
        eprintln!("  {:<12} {}", format!("{mark}:"), one_line(&text));
    }
    for warning in &draft.warnings {
        warn(session.terminal.on_stderr(), warning, None);
    }
}

/// What would run, with the arguments that were given; those that may be secrets stay as the draft has them.
fn filled(draft: &Draft, entry: &ServerEntry) -> Target {
    let mut target = draft.target.clone();
    let is_secret = |index: usize| {
        let at = format!("/args/{index}");
        draft.needs.iter().any(|need| need.secret && *need.at == *at)
    };
    if let Target::Local(local) = &mut target {
        for (index, given) in entry.args.iter().flatten().enumerate() {
            let was = draft.entry.args.as_ref().and_then(|args| args.get(index));
            if was == Some(given) || is_secret(index) {
                continue;
            }
            match local.argv.get_mut(index) {
                Some(shown) => shown.clone_from(given),
                None => local.argv.push(given.clone()),
            }
        }
    }
    target
}

/// Asks for one value; `None` when the person left.
async fn ask(need: &Need, session: &Session) -> Result<Option<String>, Failure> {
    let label = format!("{}:", one_line(&need.label));
    let (asked, need, instead) = (label.clone(), need.clone(), way(need));
    let prompt = move || {
        let label = asked;
        loop {
            let described = one_line(need.description.as_deref().unwrap_or_default());
            let value = if let Some(choices) = need.choices.clone().filter(|choices| !choices.is_empty()) {
                Select::new(&label, choices).prompt()?
            } else if need.secret {
                let help = if described.is_empty() {
                    "not shown; ${NAME} reads a variable when the server starts".to_owned()
                } else {
                    format!("{described}; not shown; ${{NAME}} reads a variable when the server starts")
                };
                Password::new(&label)
                    .without_confirmation()
                    .with_display_mode(PasswordDisplayMode::Masked)
                    .with_help_message(&help)
                    .prompt()?
            } else {
                let mut text = Text::new(&label);
                if !described.is_empty() {
                    text = text.with_help_message(&described);
                }
                if let Some(default) = &need.default {
                    text = text.with_default(default);
                }
                text.prompt()?
            };
            if !value.trim().is_empty() {
                return Ok(value);
            }
        }
    };
    session.prompt(&label, instead, prompt).await
}

#[derive(Clone, Copy, PartialEq)]
enum Choice {
    Add,
    Try,
    Leave,
}

/// What is asked about a draft that is shown whole.
fn question(name: &str, entry: &ServerEntry, accepted: bool) -> String {
    if is_unverified(entry) && !accepted {
        format!("`{name}` is unverified: is this its command?")
    } else {
        format!("Add `{name}`?")
    }
}

async fn choose(question: &str, session: &Session) -> Result<Option<Choice>, Failure> {
    let asked = question.to_owned();
    let (add, attempt, leave) = ("add it", "try it, then add it", "leave it");
    let prompt = move || Select::new(&asked, vec![add, attempt, leave]).prompt();
    let chosen = session.prompt(question, "`--yes` adds it", prompt).await?;
    Ok(chosen.map(|chosen| match chosen {
        "add it" => Choice::Add,
        "leave it" => Choice::Leave,
        _ => Choice::Try,
    }))
}

/// Tries an entry; `false` when it failed and the person leaves it.
pub async fn tried(
    name: &str,
    entry: &ServerEntry,
    accepted: bool,
    asks: bool,
    session: &Session,
) -> Result<bool, Failure> {
    let params = McpTest {
        directory: session.directory.clone(),
        entry: Some(entry.clone()),
        accept_unverified: accepted.then_some(true),
        work_done_token: session.token(),
        ..Default::default()
    };
    let work = session
        .manager
        .test(&session.request, checked::<methods::Test>(params)?);
    let result = session.work("Testing", work).await?;
    if result.ok {
        eprintln!("{}", result.message);
        return Ok(true);
    }
    let failure = super::test::failed(result, None, session.json);
    if !asks {
        return Err(failure);
    }
    eprintln!("{}", failure.text(session.terminal.on_stderr()));
    let question = format!("Add `{name}` all the same?");
    Ok(session.confirm(&question, "leave out `--test`").await? == Some(true))
}

/// A file of the current folder that a server started elsewhere would not find.
fn left_here(entry: &ServerEntry, wanted: &Wanted<'_>) -> Option<String> {
    if wanted.project || entry.cwd.is_some() {
        return None;
    }
    let here = std::env::current_dir().ok()?;
    let start = std::env::home_dir()?;
    let is_left = |word: &&String| {
        let path = Path::new(word.as_str());
        path.is_relative() && here.join(path).is_file() && !start.join(path).exists()
    };
    let command = entry.command.iter().filter(|command| command.contains('/'));
    command.chain(entry.args.iter().flatten()).find(is_left).cloned()
}

/// Writes an entry, and says so. As JSON the caller says it: a command prints one document.
pub async fn write(
    name: &str,
    entry: ServerEntry,
    accepted: bool,
    scope: Option<Scope>,
    wanted: &Wanted<'_>,
    session: &Session,
) -> Result<Written, Failure> {
    let left = left_here(&entry, wanted);
    let params = McpAdd {
        directory: session.directory.clone(),
        name: name.into(),
        entry,
        scope: wanted.project.then_some(Scope::Project).or(scope),
        replace: wanted.replace.then_some(true),
        dry_run: wanted.dry_run.then_some(true),
        accept_unverified: accepted.then_some(true),
        // It would be stopped again when this process ends, a moment later.
        start: Some(false),
        ..Default::default()
    };
    let written = session
        .manager
        .add(&session.request, checked::<methods::Add>(params)?)
        .await?;
    if let Some(file) = left {
        let folder = std::env::current_dir().unwrap_or_default();
        warn(
            session.terminal.on_stderr(),
            &format!("`{file}` is in this folder, and `{name}` does not start here: it would not find it"),
            Some(&format!("pillion edit {name} --cwd '{}'", folder.display())),
        );
    }
    if session.json {
        return Ok(written);
    }
    if wanted.dry_run {
        output::line(written.text.as_deref().unwrap_or_default())?;
        eprintln!("Nothing was written");
        return Ok(written);
    }
    said(name, &written, session);
    Ok(written)
}

/// What was done, and the next step.
fn said(name: &str, written: &Written, session: &Session) {
    let file = written.file.as_deref();
    let file = file.map(|file| format!(" to {file}")).unwrap_or_default();
    eprintln!("Added `{name}`{file}");
    let paint = session.terminal.on_stderr();
    match &written.server {
        Some(server) if server.state == State::Disabled && super::status::forbidden(server).is_none() => {
            eprintln!("{} `pillion enable {name}` switches it on", paint.cyan("hint:"));
        }
        server => match server.as_ref().and_then(super::enable::obstacle) {
            Some((why, hint)) => warn(paint, &format!("`{name}` {why}"), Some(&hint)),
            None => eprintln!(
                "{} `pillion tools {name}` starts it and lists its tools",
                paint.cyan("hint:")
            ),
        },
    }
}

/// How a draft is run or reached, in the word that `--way` takes.
pub fn word(draft: &Draft) -> &str {
    match &draft.target {
        Target::Local(local) => &local.command,
        Target::Remote(_) => "remote",
    }
}

/// The end of a command that adds drafts.
pub fn exit(is_added: bool) -> Exit {
    if is_added { Exit::Done } else { Exit::Denied }
}
