//! What a person pastes: a command, an address, an install link, or a configuration, maybe inside Markdown.

use protocol::{ErrorKind, Issue, IssueKind, PasteForm, Scope, ServerEntry};

use super::server_json::ServerJson;
use super::{Dialect, Input, Outcome, command, container, links, markup, wrapped};
use crate::config::validate;

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
    let mut pasted = found(text.trim_start_matches('\u{feff}').trim());
    for server in &mut pasted.servers {
        server.warnings.extend(wrapped::unwrap(&mut server.entry));
    }
    pasted
}

fn found(text: &str) -> Pasted {
    let fences = markup::fences(text);
    if fences.is_empty() {
        return linked(text).unwrap_or_else(|| one(text));
    }
    let mut blocks: Vec<Pasted> = fences.iter().map(|fence| one(fence)).collect();
    // Beside blocks that configure servers, a mere command is one that builds or tries something.
    let is_named = |block: &Pasted| {
        !block.described.is_empty() || block.servers.iter().any(|server| !server.name.is_empty())
    };
    let first = blocks
        .iter()
        .position(is_named)
        .or(blocks.iter().position(|block| !block.servers.is_empty()));
    let Some(first) = first else {
        return linked(text).unwrap_or_else(|| blocks.swap_remove(0));
    };
    let rest = blocks.split_off(first + 1);
    let mut pasted = blocks.swap_remove(first);
    if is_named(&pasted) {
        rest.into_iter()
            .filter(is_named)
            .for_each(|block| pasted.join(block));
    }
    pasted
}

/// The servers of the install links among badges and other markup.
fn linked(text: &str) -> Option<Pasted> {
    let mut links = markup::addresses(text)
        .into_iter()
        .filter_map(|address| links::read(&address))
        .map(|link| commanded(PasteForm::Link, link));
    let mut pasted = links.next()?;
    links.for_each(|link| pasted.join(link));
    Some(pasted)
}

impl Pasted {
    /// Takes over the servers that have other names: pages say for several programs how the same server is added.
    fn join(&mut self, other: Pasted) {
        for server in other.servers {
            if self.servers.iter().all(|known| known.name != server.name) {
                self.servers.push(server);
                self.form = PasteForm::List;
            }
        }
        for described in other.described {
            if self.described.iter().all(|known| known.name != described.name) {
                self.described.push(described);
            }
        }
        self.inputs.extend(other.inputs);
        self.problems.extend(other.problems);
    }
}

fn one(text: &str) -> Pasted {
    let text = unwrapped(text);
    if text.is_empty() {
        return refused(PasteForm::None, "the text holds nothing");
    }
    let straight = markup::straightened(text);
    if is_configuration(&straight) {
        // Where the text is whole as it is, its quotes and blanks are meant.
        return configuration(if container::harvest(text, Dialect::Common).is_ok() {
            text
        } else {
            &straight
        });
    }
    let text = after_label(straight.trim());
    if let Some(link) = links::read(text) {
        return commanded(PasteForm::Link, link);
    }
    if let Some(repository) = repository(text) {
        let reason = format!("this is the page of a repository, not the address of a server: {repository}");
        return refused(PasteForm::Url, &reason);
    }
    if is_url(text) {
        let entry = ServerEntry {
            url: Some(text.into()),
            ..Default::default()
        };
        return commanded(
            PasteForm::Url,
            Ok(command::Commanded {
                entry,
                ..Default::default()
            }),
        );
    }
    commands(text)
}

/// The address of `Server URL: https://…`.
fn after_label(text: &str) -> &str {
    match text.split_once(": ") {
        Some((label, address))
            if is_url(address.trim()) && label.chars().all(|one| one.is_alphabetic() || one == ' ') =>
        {
            address.trim()
        }
        _ => text,
    }
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

/// What to do about the address of a repository's page.
fn repository(text: &str) -> Option<String> {
    let url = url::Url::parse(text).ok().filter(|_| is_url(text))?;
    let host = url.host_str()?;
    let parts: Vec<&str> = url.path_segments()?.filter(|part| !part.is_empty()).collect();
    match (host.trim_start_matches("www."), parts.as_slice()) {
        ("github.com", [owner, name, ..]) => Some(format!(
            "`pillion add --from github:{owner}/{}` looks at it",
            name.trim_end_matches(".git")
        )),
        ("gitlab.com" | "bitbucket.org" | "codeberg.org", [_, _, ..]) => {
            Some("its text says how the server is started".to_owned())
        }
        _ => None,
    }
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
        return commanded(PasteForm::Command, command::read(&with_exports(&lines)));
    }
    let mut pasted = Pasted {
        form: PasteForm::List,
        servers: Vec::new(),
        problems: Vec::new(),
        inputs: Vec::new(),
        described: Vec::new(),
    };
    for line in lines {
        match command::read(line).and_then(valid) {
            Ok(mut one) => {
                pasted.inputs.append(&mut one.inputs);
                pasted.servers.push(one.into());
            }
            Err(reason) => pasted.problems.push(Issue::new(ErrorKind::InvalidParams, reason)),
        }
    }
    pasted
}

/// The lines as one command, variables that a shell is told on lines of their own before it.
fn with_exports(lines: &[&str]) -> String {
    let exported = |line: &&&str| {
        line.trim()
            .strip_prefix("export ")
            .is_some_and(|rest| !rest.contains(['&', ';', '|']))
    };
    let n_exports = lines.iter().take_while(exported).count();
    if n_exports == lines.len() {
        return lines.join("\n");
    }
    let exports = lines[..n_exports]
        .iter()
        .map(|line| format!("{} ", line.trim().trim_start_matches("export ")));
    exports.collect::<String>() + &lines[n_exports..].join("\n")
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
    match outcome.and_then(valid) {
        Ok(mut one) => Pasted {
            form,
            inputs: std::mem::take(&mut one.inputs),
            servers: vec![one.into()],
            problems: Vec::new(),
            described: Vec::new(),
        },
        Err(reason) => refused(form, &reason),
    }
}

/// A draft that could not be added is refused at once, with the reason.
fn valid(one: command::Commanded) -> Result<command::Commanded, String> {
    let entry = serde_json::to_value(&one.entry).map_err(|error| error.to_string())?;
    match validate::problems(&entry).into_iter().next() {
        None => Ok(one),
        Some(problem) => Err(problem.message),
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
