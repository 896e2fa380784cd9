//! `pillion add FILE.mcpb`: shows what a bundle would run, asks for what it needs, unpacks it and writes its entry.

use std::collections::BTreeMap;

use inquire::error::InquireError;
use inquire::{Password, PasswordDisplayMode, Select, Text};
use protocol::{AnswerValue, ImportNeed, ImportStatus, Imported, McpImport, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::session::{Session, checked};
use super::terminal::{one_line, plain};
use super::{asking, output, review};

/// How to write it.
pub struct Wanted<'a> {
    pub file: &'a str,
    pub sha256: Option<&'a str>,
    pub values: &'a [(String, String)],
    pub replace: bool,
    pub dry_run: bool,
    pub yes: bool,
}

/// Whether a name on the command line is a bundle rather than the name of an entry.
pub fn is_bundle(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".mcpb") || name.ends_with(".dxt")
}

pub async fn run(wanted: &Wanted<'_>, session: &Session) -> Result<Exit, Failure> {
    let path = std::path::absolute(wanted.file).map_err(|error| Failure::usage(error.to_string()))?;
    let mut values: BTreeMap<String, AnswerValue> = BTreeMap::new();
    for (key, value) in wanted.values {
        let value = value.clone();
        // Named twice is a list.
        let value = match values.remove(key) {
            None => AnswerValue::Text(value),
            Some(AnswerValue::Texts(mut texts)) => {
                texts.push(value);
                AnswerValue::Texts(texts)
            }
            Some(AnswerValue::Text(first)) => AnswerValue::Texts(vec![first, value]),
            Some(other) => other,
        };
        values.insert(key.clone(), value);
    }
    let mut params = McpImport {
        directory: session.directory.clone(),
        source: Some(path.display().to_string()),
        sha256: wanted.sha256.map(str::to_owned),
        values: (!values.is_empty()).then_some(values),
        replace: wanted.replace.then_some(true),
        dry_run: Some(true),
        ..Default::default()
    };
    let looked = import(&params, session).await?;
    if !session.json {
        show(&looked, session);
    }
    if failed(&looked) || wanted.dry_run {
        return finish(&looked, wanted, session);
    }
    if !wanted.yes {
        let name = saved_as(&looked);
        let question = format!("Add `{name}`?");
        let instead = "look at it with `--dry-run`, then add it with `--yes`";
        let needs = looked.needs.clone();
        let prompts = move || needs.iter().map(ask).collect::<Result<Vec<_>, _>>();
        let Some(answers) = session.prompt(&question, instead, prompts).await? else {
            return Ok(asking::left("Nothing was written"));
        };
        for (need, answer) in looked.needs.iter().zip(answers) {
            if let Some(answer) = answer {
                let values = params.values.get_or_insert_default();
                values.insert(key(need), AnswerValue::Text(answer));
            }
        }
        if session.confirm(&question, instead).await? != Some(true) {
            return Ok(asking::left("Nothing was written"));
        }
    }
    params.dry_run = None;
    let imported = import(&params, session).await?;
    finish(&imported, wanted, session)
}

async fn import(params: &McpImport, session: &Session) -> Result<Imported, Failure> {
    let params = checked::<methods::Import>(params.clone())?;
    Ok(session.manager.import(&session.request, params).await?)
}

/// The name of an answer: the last part of the pointer.
fn key(need: &ImportNeed) -> String {
    let key = need.at.rsplit('/').next().unwrap_or_default();
    key.replace("~1", "/").replace("~0", "~")
}

/// One question of a bundle; nothing where its default or nothing at all is meant.
fn ask(need: &ImportNeed) -> Result<Option<String>, InquireError> {
    let label = format!("{}:", one_line(&need.label));
    let described = need.description.as_deref().map(one_line);
    let optional = if need.required { "" } else { "empty: leave it out" };
    let help = match described {
        Some(described) if optional.is_empty() => described,
        Some(described) => format!("{described}; {optional}"),
        None => optional.to_owned(),
    };
    let answer = match (&need.choices, need.secret) {
        (Some(choices), _) => Select::new(&label, choices.clone())
            .with_help_message(&help)
            .prompt()?,
        (None, true) => Password::new(&label)
            .without_confirmation()
            .with_display_mode(PasswordDisplayMode::Masked)
            .with_help_message(&help)
            .prompt()?,
        (None, false) => {
            let default = need.default.clone().unwrap_or_default();
            Text::new(&label)
                .with_default(&default)
                .with_help_message(&help)
                .prompt()?
        }
    };
    Ok((!answer.is_empty() && need.default.as_ref() != Some(&answer)).then_some(answer))
}

fn failed(imported: &Imported) -> bool {
    imported
        .results
        .iter()
        .any(|one| matches!(one.status, ImportStatus::Failed | ImportStatus::Skipped))
}

fn saved_as(imported: &Imported) -> String {
    let first = imported.results.first();
    first
        .and_then(|one| one.saved_as.as_ref())
        .map_or_else(String::new, ToString::to_string)
}

fn show(imported: &Imported, session: &Session) {
    for one in &imported.results {
        eprintln!("{}", one_line(&one.name));
        for (label, value) in one.target.iter().flat_map(review::target) {
            eprintln!("  {:<12} {}", format!("{label}:"), plain(&value));
        }
    }
    session.warn(&imported.not_imported);
}

fn finish(imported: &Imported, wanted: &Wanted<'_>, session: &Session) -> Result<Exit, Failure> {
    let name = saved_as(imported);
    if session.json {
        output::json(imported)?;
    }
    if let Some(one) = imported.results.iter().find(|one| one.reason.is_some()) {
        let reason = one.reason.as_deref().unwrap_or_default();
        let failure = Failure::new(format!("`{name}` was not added: {reason}")).already_printed(session.json);
        let is_meant = |key: &str| reason.contains(&format!("`{key}`"));
        let given = wanted.values.iter().find(|(key, _)| is_meant(key));
        return Err(match (one.status, given, imported.needs.first()) {
            (ImportStatus::Skipped, ..) => failure.hint("add `--replace` to replace it"),
            (_, Some((key, _)), _) => failure.hint(format!("correct `--set {key}=VALUE`")),
            (_, None, Some(need)) => failure.hint(format!("give it with `--set {}=VALUE`", key(need))),
            (_, None, None) => failure,
        });
    }
    if session.json {
        return Ok(Exit::Done);
    }
    if wanted.dry_run {
        for need in &imported.needs {
            let must = if need.required { "needs" } else { "takes" };
            eprintln!("It {must} {}: `--set {}=VALUE`", one_line(&need.label), key(need));
        }
        eprintln!("Nothing was written");
    } else {
        eprintln!("Added `{name}`");
        let hint = session.terminal.on_stderr().cyan("hint:");
        eprintln!("{hint} `pillion tools {name}` starts it and lists its tools");
    }
    Ok(Exit::Done)
}
