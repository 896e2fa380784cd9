//! `pillion add` without arguments: asks for what an entry needs, local or remote, in a terminal.

use std::collections::BTreeMap;

use inquire::error::{InquireError, InquireResult};
use inquire::validator::{ErrorMessage, Validation};
use inquire::{Password, PasswordDisplayMode, Select, Text};
use protocol::{OauthSetting, ServerEntry};

use super::failure::Failure;

/// What the person wants.
pub struct Wanted {
    pub name: String,
    pub entry: ServerEntry,
    pub project: bool,
}

/// Asks on a thread of its own; `None` when the person left. What does not fit is told at its question: `taken` are the
/// names that cannot be chosen.
pub async fn ask(name: Option<String>, taken: Vec<String>) -> Result<Option<Wanted>, Failure> {
    match tokio::task::spawn_blocking(move || prompts(name, taken)).await {
        Ok(Ok(wanted)) => Ok(Some(wanted)),
        Ok(Err(InquireError::OperationInterrupted)) => Err(Failure::interrupted()),
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

const LOCAL: &str = "a local command";
const REMOTE: &str = "a remote service";
const MINE: &str = "me, everywhere";
const PROJECT: &str = "everyone in this project";

fn prompts(name: Option<String>, taken: Vec<String>) -> InquireResult<Wanted> {
    let name = match name {
        Some(name) => name,
        None => Text::new("Name:")
            .with_help_message("letters, digits, _ and -, at most 32")
            .with_validator(move |name: &str| Ok(verdict(super::add::name_fault(name, &taken))))
            .prompt()?,
    };
    let mut entry = ServerEntry {
        source: Some("manual".to_owned()),
        ..Default::default()
    };
    if Select::new("What is it?", vec![LOCAL, REMOTE]).prompt()? == LOCAL {
        let command = Text::new("Program:")
            .with_help_message("for instance npx, uvx or an absolute path; its arguments are asked for next")
            .with_validator(|program: &str| Ok(verdict(program_fault(program.trim()))))
            .prompt()?;
        entry.command = Some(super::add::program(command.trim()));
        entry.args = more("Argument:")?;
        entry.env = pairs("Variable:", "Value:")?;
    } else {
        let url = Text::new("Address:")
            .with_placeholder("https://example.com/mcp")
            .with_validator(|url: &str| Ok(verdict(url_fault(url.trim()))))
            .prompt()?;
        entry.url = Some(url.trim().into());
        entry.headers = pairs("Header:", "Value:")?;
        let login = ["if it asks for one", "never"];
        if Select::new("Log in?", login.to_vec()).prompt()? == login[1] {
            entry.oauth = Some(OauthSetting::Off(protocol::False));
        }
    }
    let project = Select::new("For whom?", vec![MINE, PROJECT]).prompt()? == PROJECT;
    Ok(Wanted { name, entry, project })
}

fn verdict(fault: Option<String>) -> Validation {
    match fault {
        Some(fault) => Validation::Invalid(ErrorMessage::Custom(fault)),
        None => Validation::Valid,
    }
}

fn program_fault(program: &str) -> Option<String> {
    if program.is_empty() {
        return Some("a program is needed".to_owned());
    }
    let is_line = program.contains(char::is_whitespace) && !std::path::Path::new(program).exists();
    is_line.then(|| "only the program belongs here: its arguments are asked for next".to_owned())
}

fn url_fault(url: &str) -> Option<String> {
    // A reference is filled in when the server starts.
    let is_url = ["https://", "http://", "${"]
        .iter()
        .any(|start| url.starts_with(start));
    (!is_url).then(|| "an address begins with https:// or http://".to_owned())
}

/// One text after the other, until an empty one.
fn more(label: &str) -> InquireResult<Option<Vec<String>>> {
    let mut texts = Vec::new();
    loop {
        let text = Text::new(label).with_help_message("empty: no more").prompt()?;
        if text.is_empty() {
            return Ok((!texts.is_empty()).then_some(texts));
        }
        texts.push(text);
    }
}

/// Names with values. What is typed for a value is not shown: it may be a secret, and `${NAME}` is the better way.
fn pairs(name: &str, value: &str) -> InquireResult<Option<BTreeMap<String, String>>> {
    let mut pairs = BTreeMap::new();
    loop {
        let key = Text::new(name).with_help_message("empty: no more").prompt()?;
        if key.is_empty() {
            return Ok((!pairs.is_empty()).then_some(pairs));
        }
        let text = Password::new(value)
            .without_confirmation()
            .with_display_mode(PasswordDisplayMode::Masked)
            .with_help_message("${NAME} reads a variable when the server starts")
            .prompt()?;
        pairs.insert(key, text);
    }
}
