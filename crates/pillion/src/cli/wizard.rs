//! `pillion add` without arguments: asks for what an entry needs, local or remote, in a terminal.

use std::collections::BTreeMap;

use inquire::error::InquireResult;
use inquire::validator::{ErrorMessage, Validation};
use inquire::{Password, PasswordDisplayMode, Select, Text};
use protocol::{OauthSetting, ServerEntry};

use super::failure::Failure;
use super::session::Session;

/// What the person wants.
pub struct Wanted {
    pub name: String,
    pub entry: ServerEntry,
    pub project: bool,
}

/// What was given on the command line: it is not asked for again.
pub struct Begun {
    pub name: Option<String>,
    pub entry: ServerEntry,
    pub project: bool,
    /// The names that cannot be chosen.
    pub taken: Vec<(String, String)>,
}

/// Asks; `None` when the person left. What does not fit is told at its question.
pub async fn ask(begun: Begun, session: &Session) -> Result<Option<Wanted>, Failure> {
    let question = match begun.name {
        Some(_) => "what is to be added?",
        None => "what is to be added, and under which name?",
    };
    session
        .prompt(question, super::add::WAYS, move || prompts(begun))
        .await
}

const LOCAL: &str = "a local command";
const REMOTE: &str = "a remote service";
const MINE: &str = "me, everywhere";
const PROJECT: &str = "everyone in this project";

fn prompts(begun: Begun) -> InquireResult<Wanted> {
    let Begun {
        name,
        mut entry,
        project,
        taken,
    } = begun;
    let name = match name {
        Some(name) => name,
        None => Text::new("Name:")
            .with_help_message("letters, digits, _ and -, at most 32")
            .with_validator(move |name: &str| Ok(verdict(super::add::name_fault(name, &taken))))
            .prompt()?,
    };
    let is_local = entry.env.is_some() || entry.cwd.is_some();
    if is_local || Select::new("What is it?", vec![LOCAL, REMOTE]).prompt()? == LOCAL {
        let command = Text::new("Program:")
            .with_help_message("for instance npx, uvx or an absolute path; its arguments are asked for next")
            .with_validator(|program: &str| Ok(verdict(program_fault(program.trim()))))
            .prompt()?;
        entry.command = Some(super::add::program(command.trim()));
        entry.args = more("Argument:")?;
        if entry.env.is_none() {
            entry.env = pairs("Variable:", "Value:", variable_fault)?;
        }
    } else {
        let url = Text::new("Address:")
            .with_placeholder("https://example.com/mcp")
            .with_validator(|url: &str| Ok(verdict(url_fault(url.trim()))))
            .prompt()?;
        entry.url = Some(url.trim().into());
        entry.headers = pairs("Header:", "Value:", header_fault)?;
        let login = ["if it asks for one", "never"];
        if Select::new("Log in?", login.to_vec()).prompt()? == login[1] {
            entry.oauth = Some(OauthSetting::Off(protocol::False));
        }
    }
    let project = project || Select::new("For whom?", vec![MINE, PROJECT]).prompt()? == PROJECT;
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
    if url.contains("${") {
        return None;
    }
    manager::remote_url(url)
        .err()
        .map(|fault| fault.replace("`url`", "the address"))
}

fn variable_fault(name: &str) -> Option<String> {
    name.contains(['=', '\0'])
        .then(|| "only the name belongs here: its value is asked for next".to_owned())
}

fn header_fault(name: &str) -> Option<String> {
    name.contains([':', ' '])
        .then(|| "only the name belongs here, such as X-Api-Key: its value is asked for next".to_owned())
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
fn pairs(
    name: &str,
    value: &str,
    fault: fn(&str) -> Option<String>,
) -> InquireResult<Option<BTreeMap<String, String>>> {
    let mut pairs = BTreeMap::new();
    loop {
        let key = Text::new(name)
            .with_help_message("empty: no more")
            .with_validator(move |name: &str| Ok(verdict(fault(name))))
            .prompt()?;
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
