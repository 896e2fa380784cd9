//! What a person pastes: a command, an address, an install link, or a configuration, maybe inside Markdown.

use protocol::{ErrorKind, Issue, IssueKind, PasteForm, Scope, ServerEntry};

use super::server_json::ServerJson;
use super::{Dialect, Input, Outcome, command, container, links};

/// A pasted text, taken apart.
#[derive(Debug)]
pub(crate) struct Pasted {
    pub form: PasteForm,
    pub servers: Vec<PastedServer>,
    pub problems: Vec<Issue>,
    pub inputs: Vec<Input>,
    /// Servers that the text describes rather than configures.
    pub described: Vec<ServerJson>,
}

/// One server of it.
#[derive(Debug)]
pub(crate) struct PastedServer {
    /// Empty where the text names none.
    pub name: String,
    pub scope: Option<Scope>,
    pub entry: ServerEntry,
    /// Variables that a person must give a value.
    pub needs: Vec<String>,
    pub warnings: Vec<String>,
}

impl From<command::Commanded> for PastedServer {
    fn from(one: command::Commanded) -> PastedServer {
        PastedServer {
            name: one.name,
            scope: one.scope,
            entry: one.entry,
            needs: one.needs,
            warnings: one.warnings,
        }
    }
}

/// Takes a text apart. What cannot be used is a problem, never an error.
pub(crate) fn read(text: &str) -> Pasted {
    let text = text.trim_start_matches('\u{feff}').trim();
    let fences = fences(text);
    if fences.is_empty() {
        return one(text);
    }
    let mut first = None;
    for fence in fences {
        let pasted = one(&fence);
        if !pasted.servers.is_empty() || !pasted.described.is_empty() {
            return pasted;
        }
        first.get_or_insert(pasted);
    }
    first.unwrap_or_else(|| refused(PasteForm::None, "the text holds nothing"))
}

/// The contents of Markdown's code blocks.
fn fences(text: &str) -> Vec<String> {
    let mut fences = Vec::new();
    let mut open: Option<(String, Vec<&str>)> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let mark: String = bare
            .chars()
            .take_while(|one| *one == '`' || *one == '~')
            .collect();
        match &mut open {
            Some((fence, lines)) => {
                if mark.starts_with(fence.as_str()) && bare.trim_end() == mark {
                    fences.push(lines.join("\n"));
                    open = None;
                } else {
                    lines.push(line);
                }
            }
            None if mark.len() >= 3 && (mark.starts_with("```") || mark.starts_with("~~~")) => {
                open = Some((mark, Vec::new()));
            }
            None => {}
        }
    }
    // People miss the last line when they copy.
    fences.extend(open.map(|(_, lines)| lines.join("\n")));
    fences
}

fn one(text: &str) -> Pasted {
    let text = unwrapped(text);
    if text.is_empty() {
        return refused(PasteForm::None, "the text holds nothing");
    }
    if let Some(link) = links::read(text) {
        return commanded(PasteForm::Link, link);
    }
    if is_url(text) {
        let entry = ServerEntry {
            url: Some(text.into()),
            ..Default::default()
        };
        let problems = crate::config::validate::problems(&serde_json::to_value(&entry).unwrap_or_default());
        if let Some(problem) = problems.first() {
            return refused(PasteForm::Url, &problem.message);
        }
        return commanded(
            PasteForm::Url,
            Ok(command::Commanded {
                entry,
                ..Default::default()
            }),
        );
    }
    if is_configuration(text) {
        return configuration(text);
    }
    commands(text)
}

/// Without blanks, quotes of Markdown and angle brackets around.
fn unwrapped(text: &str) -> &str {
    let mut text = text.trim();
    for (before, after) in [("<", ">"), ("`", "`")] {
        if let Some(inside) = text
            .strip_prefix(before)
            .and_then(|text| text.strip_suffix(after))
            && !inside.contains(before)
            && !inside.contains(after)
        {
            text = inside.trim();
        }
    }
    // `[title](address)`
    if text.starts_with('[')
        && let Some((title, address)) = text.split_once("](")
        && !title.contains('\n')
        && let Some(address) = address.strip_suffix(')')
        && !address.contains(char::is_whitespace)
    {
        return address;
    }
    text
}

fn is_url(text: &str) -> bool {
    (text.starts_with("https://") || text.starts_with("http://")) && !text.contains(char::is_whitespace)
}

fn is_configuration(text: &str) -> bool {
    if text.starts_with(['{', '[']) || text.starts_with("//") || text.starts_with("/*") {
        return true;
    }
    // `"name": {…}`, and not a quoted program.
    if let Some(rest) = text.strip_prefix('"')
        && let Some((_, after)) = rest.split_once('"')
        && after.trim_start().starts_with(':')
    {
        return true;
    }
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let line = line.trim();
        let is_yaml = line
            .strip_suffix(':')
            .is_some_and(|key| !key.is_empty() && !key.contains(char::is_whitespace))
            || line.starts_with("- name:");
        let is_toml = text.contains("\n[mcp_servers");
        is_yaml || is_toml
    })
}

fn configuration(text: &str) -> Pasted {
    let (harvest, is_bare) = match container::harvest(text, Dialect::Common) {
        Ok(found) => found,
        Err(reason) => return refused(PasteForm::None, &format!("the text cannot be read: {reason}")),
    };
    let mut pasted = Pasted {
        form: if is_bare {
            PasteForm::Entry
        } else {
            PasteForm::List
        },
        servers: Vec::new(),
        problems: harvest.notes,
        inputs: harvest.inputs,
        described: harvest.described,
    };
    if harvest.found.is_empty() && pasted.described.is_empty() {
        return refused(PasteForm::None, "the text holds no server");
    }
    for one in harvest.found {
        match one.outcome {
            Outcome::Entry(entry) => pasted.servers.push(PastedServer {
                name: one.name,
                scope: None,
                entry: *entry,
                needs: Vec::new(),
                warnings: Vec::new(),
            }),
            Outcome::Skipped(reason) | Outcome::Failed(reason) => {
                let mut issue = Issue::new(ErrorKind::InvalidParams, reason);
                if !one.name.is_empty() {
                    issue.item = Some(one.name);
                }
                pasted.problems.push(issue);
            }
        }
    }
    pasted
}

/// One command, or several that each add a server to another program.
fn commands(text: &str) -> Pasted {
    let lines: Vec<&str> = text
        .lines()
        .map(without_prompt)
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .collect();
    let are_several = lines.len() > 1 && lines.iter().all(|line| command::is_adding(line));
    if !are_several {
        return commanded(PasteForm::Command, command::read(&lines.join("\n")));
    }
    let mut pasted = Pasted {
        form: PasteForm::List,
        servers: Vec::new(),
        problems: Vec::new(),
        inputs: Vec::new(),
        described: Vec::new(),
    };
    for line in lines {
        match command::read(line) {
            Ok(one) => pasted.servers.push(one.into()),
            Err(reason) => pasted.problems.push(Issue::new(ErrorKind::InvalidParams, reason)),
        }
    }
    pasted
}

/// A line without the prompt that was copied with it.
fn without_prompt(line: &str) -> &str {
    let bare = line.trim_start();
    for prompt in ["$ ", "% ", "> "] {
        if let Some(rest) = bare.strip_prefix(prompt) {
            return rest;
        }
    }
    // `PS C:\Users\me> command`, `C:\>command`
    let is_windows = bare.starts_with("PS ") || bare.get(1..3) == Some(":\\");
    match bare.split_once('>') {
        Some((place, rest)) if is_windows && !place.contains('"') && !rest.trim().is_empty() => {
            rest.trim_start()
        }
        _ => line,
    }
}

fn commanded(form: PasteForm, outcome: Result<command::Commanded, String>) -> Pasted {
    match outcome {
        Ok(one) => Pasted {
            form,
            servers: vec![one.into()],
            problems: Vec::new(),
            inputs: Vec::new(),
            described: Vec::new(),
        },
        Err(reason) => refused(form, &reason),
    }
}

fn refused(form: PasteForm, reason: &str) -> Pasted {
    let mut issue = Issue::new(IssueKind::Error(ErrorKind::InvalidParams), reason);
    issue.hint = Some("paste a command, an address, an install link or a configuration".to_owned());
    Pasted {
        form,
        servers: Vec::new(),
        problems: vec![issue],
        inputs: Vec::new(),
        described: Vec::new(),
    }
}
