//! `pillion add --paste`: shows what a pasted text would run or reach, asks, and writes it.

use protocol::{Draft, McpAdd, McpParse, Scope, methods};

use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output;
use super::review;
use super::session::{Session, checked};
use super::terminal::one_line;

/// How to write it.
pub struct Wanted<'a> {
    pub text: &'a str,
    pub name: Option<&'a str>,
    pub project: bool,
    pub disabled: bool,
    pub replace: bool,
    pub dry_run: bool,
    pub yes: bool,
}

pub async fn run(wanted: &Wanted<'_>, session: &Session) -> Result<Exit, Failure> {
    let text = if wanted.text == "-" {
        super::import::stdin()?
    } else {
        wanted.text.to_owned()
    };
    let params = McpParse {
        directory: session.directory.clone(),
        text,
    };
    let parsed = session
        .manager
        .parse(&session.request, checked::<methods::Parse>(params)?)
        .await?;
    session.warn(&parsed.problems);
    if parsed.drafts.is_empty() {
        return Err(Failure::usage("nothing in the text can be added"));
    }
    if wanted.name.is_some() && parsed.drafts.len() > 1 {
        return Err(Failure::usage(
            "the text holds several servers, and a name fits one only",
        ));
    }
    if !session.terminal.asks && !wanted.yes && !wanted.dry_run {
        return Err(
            Failure::usage("what was pasted is not added unseen, and nobody can be asked here")
                .hint("look at it with `--dry-run`, then add it with `--yes`"),
        );
    }
    for draft in &parsed.drafts {
        let name = wanted.name.unwrap_or(&draft.name);
        if !session.json {
            show(name, draft, session);
        }
        if session.terminal.asks && !wanted.yes && !wanted.dry_run {
            let question = format!("Add `{name}`?");
            if review::confirm(question).await? != Some(true) {
                eprintln!("`{name}` was not added");
                continue;
            }
        }
        let mut entry = draft.entry.clone();
        if wanted.disabled {
            entry.enabled = Some(false);
        }
        let params = McpAdd {
            directory: session.directory.clone(),
            name: name.into(),
            entry,
            scope: wanted.project.then_some(Scope::Project).or(draft.scope),
            replace: wanted.replace.then_some(true),
            dry_run: wanted.dry_run.then_some(true),
            // It would be stopped again when this process ends, a moment later.
            start: Some(false),
            ..Default::default()
        };
        let written = session
            .manager
            .add(&session.request, checked::<methods::Add>(params)?)
            .await?;
        if session.json {
            output::json(&written)?;
        } else if wanted.dry_run {
            output::line(written.text.as_deref().unwrap_or_default())?;
            eprintln!("Nothing was written");
        } else {
            let file = written
                .file
                .as_deref()
                .map(|file| format!(" to {file}"))
                .unwrap_or_default();
            eprintln!("Added `{name}`{file}");
        }
    }
    Ok(Exit::Done)
}

fn show(name: &str, draft: &Draft, session: &Session) {
    eprintln!("{}", one_line(name));
    for (label, value) in review::target(&draft.target) {
        eprintln!("  {:<12} {}", format!("{label}:"), one_line(&value));
    }
    let paint = session.terminal.on_stderr();
    for warning in &draft.warnings {
        warn(paint, warning, None);
    }
    for need in &draft.needs {
        let message = format!("{} is still to be filled in ({})", need.label, &*need.at);
        warn(paint, &message, Some("`pillion edit` changes an entry"));
    }
}
