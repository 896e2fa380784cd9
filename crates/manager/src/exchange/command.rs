//! A command line as a person copies it: the server's own, or the one that adds it to another program.

use std::collections::BTreeMap;

use protocol::{Scope, ServerEntry};

use super::words::{is_name, split};
use super::{Dialect, Input, Outcome, container, wrapped};

/// One server of a command line.
#[derive(Debug, Default)]
pub(crate) struct Commanded {
    /// Empty where the command names none.
    pub name: String,
    pub scope: Option<Scope>,
    pub entry: ServerEntry,
    /// Variables that a person must give a value.
    pub needs: Vec<String>,
    pub warnings: Vec<String>,
    /// Values that a person is asked for.
    pub inputs: Vec<Input>,
}

/// Programs with a command `mcp add`.
const ADDING: [&str; 6] = ["claude", "gemini", "codex", "qwen", "amp", "droid"];

/// Reads one command line.
pub(crate) fn read(text: &str) -> Result<Commanded, String> {
    // A page's typography makes these of plain quotes.
    let text = &text.replace(['“', '”', '„'], "\"");
    let words = split(&powershell_assignments(text)).map_err(|reason| chained(text).unwrap_or(reason))?;
    let (env, words) = assignments(words);
    let Some(program) = words.first() else {
        return Err("there is no command".to_owned());
    };
    let rest = &words[1..];
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name
        .strip_suffix(".exe")
        .or(name.strip_suffix(".cmd"))
        .unwrap_or(name);
    let second = |at: usize| rest.get(at).map(String::as_str);
    let mut commanded = match (name, second(0), second(1)) {
        (name, Some("mcp"), Some("add")) if ADDING.contains(&name) => adding(&rest[2..])?,
        (name, Some("mcp"), Some("add-json")) if ADDING.contains(&name) => adding_json(&rest[2..])?,
        ("code" | "code-insiders" | "codium" | "cursor" | "windsurf", Some("--add-mcp"), Some(json)) => {
            of_json(json, "")?
        }
        (
            "npm" | "pnpm" | "yarn" | "pip" | "pip3" | "brew" | "apt" | "cargo" | "go",
            Some("install" | "i" | "add"),
            _,
        ) => {
            return Err(format!(
                "`{name} {}` only installs: paste the command that runs the server",
                second(0).unwrap_or_default()
            ));
        }
        ("npx" | "bunx", ..) if let Some(installer) = installer(rest) => {
            return Err(format!(
                "`{installer}` installs a server into another program: paste what starts the server itself"
            ));
        }
        ("set", Some(assignment), _) if assignment.contains('=') => {
            let variable = assignment.split('=').next().unwrap_or_default();
            return Err(format!(
                "`set` is no command of a server: write `{variable}=…` before the command"
            ));
        }
        ("sudo" | "cd" | "export" | "source" | "git" | "curl" | "wget" | "mkdir" | "cp", ..) => {
            return Err(format!(
                "`{name}` is not how a server is started: paste only the command of the server"
            ));
        }
        _ => plain(program, rest),
    };
    if is_prose(program, rest) {
        commanded.warnings.push(format!(
            "this reads like a sentence: `{program}` would be run as a program"
        ));
    }
    if !env.is_empty() {
        commanded.entry.env.get_or_insert_default().extend(env);
    }
    Ok(commanded)
}

/// Whether a command may be a sentence: several words of letters only, and nothing that is started by name alone.
fn is_prose(program: &str, rest: &[String]) -> bool {
    const RUNNERS: [&str; 10] = [
        "npx", "bunx", "uvx", "uv", "docker", "podman", "node", "deno", "python", "dotnet",
    ];
    let is_word = |word: &str| {
        let bare = word.trim_end_matches(['.', ',', '!', '?', ':', ';']);
        !bare.is_empty() && bare.chars().all(|one| one.is_alphabetic() || one == '\'')
    };
    rest.len() >= 3
        && !RUNNERS.contains(&program)
        && is_word(program)
        && rest.iter().all(|word| is_word(word))
}

/// What to do about `set A=b && command` and `export A=b && command`.
fn chained(text: &str) -> Option<String> {
    let (first, _) = text.split_once("&&")?;
    let (shell, rest) = first.trim().split_once(' ')?;
    let (variable, _) = rest.split_once('=')?;
    (["set", "export"].contains(&shell) && is_name(variable.trim())).then(|| {
        format!(
            "`&&` joins commands, and no shell is started: write `{}=…` before the command, without `{shell}` and `&&`",
            variable.trim()
        )
    })
}

/// The package of a command that writes into the configuration of other programs.
fn installer(args: &[String]) -> Option<&str> {
    let mut words = args.iter().filter(|word| !word.starts_with('-'));
    let package = words.next()?;
    let (bare, _) = match package.rsplit_once('@') {
        Some((bare, version)) if !bare.is_empty() => (bare, version),
        _ => (package.as_str(), ""),
    };
    let is_one = ["add-mcp", "install-mcp"].contains(&bare)
        || (["@smithery/cli", "mcp-get"].contains(&bare)
            && words
                .next()
                .is_some_and(|word| word == "install" || word == "mcp"));
    is_one.then_some(bare)
}

/// Whether several lines of this kind make sense together.
pub(crate) fn is_adding(text: &str) -> bool {
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some(name), Some("mcp")) => ADDING.contains(&name),
        (Some(name), Some("--add-mcp")) => ["code", "cursor"].contains(&name),
        _ => false,
    }
}

/// `$env:A = "b";` before a command of PowerShell, as the assignments of other shells.
fn powershell_assignments(text: &str) -> String {
    let mut rest = text.trim();
    let mut out = String::new();
    while let Some(after) = rest.strip_prefix("$env:") {
        let Some((name, after)) = after.split_once('=') else {
            break;
        };
        let Some((value, after)) = after.split_once([';', '\n']) else {
            break;
        };
        if !is_name(name.trim()) {
            break;
        }
        out.push_str(&format!("{}={} ", name.trim(), value.trim()));
        rest = after.trim_start();
    }
    format!("{out}{rest}")
}

/// Assignments before the command, also behind `env`.
fn assignments(words: Vec<String>) -> (BTreeMap<String, String>, Vec<String>) {
    let mut env = BTreeMap::new();
    let mut words = words.into_iter().peekable();
    let is_assignment =
        |word: &String| word.split_once('=').is_some_and(|(name, _)| is_name(name)) || word == "env";
    while let Some(word) = words.next_if(is_assignment) {
        if let Some((name, value)) = word.split_once('=') {
            env.insert(name.to_owned(), value.to_owned());
        }
    }
    (env, words.collect())
}

fn plain(program: &str, args: &[String]) -> Commanded {
    let mut commanded = Commanded {
        entry: ServerEntry {
            command: Some(program.to_owned()),
            args: (!args.is_empty()).then(|| args.to_vec()),
            ..Default::default()
        },
        ..Default::default()
    };
    if ["docker", "podman"]
        .iter()
        .any(|docker| program.ends_with(docker))
    {
        commanded.needs = passed_on(args);
        let is_run = args.iter().any(|word| word == "run");
        let is_open = args.iter().any(|word| {
            word == "--interactive"
                || (word.starts_with('-') && !word.starts_with("--") && word.contains('i'))
        });
        if is_run && !is_open {
            commanded
                .warnings
                .push("`docker run` without `-i` gives the server no input".to_owned());
        }
    }
    commanded
}

/// Variables that a container is given by name only: they must be in its environment.
fn passed_on(args: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let name = match word.as_str() {
            "-e" | "--env" => words.next().map(String::as_str),
            word => word.strip_prefix("--env="),
        };
        names.extend(name.filter(|name| is_name(name)).map(str::to_owned));
    }
    names
}

/// What follows `claude mcp add` and its likes.
fn adding(words: &[String]) -> Result<Commanded, String> {
    let mut commanded = Commanded::default();
    let mut operands: Vec<String> = Vec::new();
    let mut options = Options::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if word == "--" {
            // Everything behind it belongs to the server.
            operands.extend_from_slice(&words[at..]);
            break;
        }
        // Behind a command that is no address, everything belongs to the server, too.
        let is_command = operands.len() >= 2
            && !is_address(&operands[1])
            && !options.is_remote()
            && wrapped::in_one_text(&operands[1]).is_none();
        if is_command || !word.starts_with('-') {
            operands.push(word.clone());
            continue;
        }
        at += options.take(word, &words[at..], &mut commanded)?;
    }
    let address = options.url.clone().or_else(|| operands.get(1).cloned());
    let Some(name) = operands.first() else {
        return Err("it names no server".to_owned());
    };
    commanded.name.clone_from(name);
    let Some(target) = address else {
        return Err(format!("it says neither a command nor an address for `{name}`"));
    };
    let entry = &mut commanded.entry;
    if is_address(&target) || options.is_remote() {
        entry.url = Some(target.into());
        if options.transport.as_deref() == Some("sse") {
            entry.transport = Some(protocol::EntryTransport::Sse);
        }
        entry.headers = (!options.headers.is_empty()).then_some(options.headers);
        if options.without_oauth {
            entry.oauth = Some(protocol::OauthSetting::Off(protocol::False));
        } else if options.oauth != protocol::OAuth::default() {
            entry.oauth = Some(protocol::OauthSetting::On(options.oauth));
        }
    } else {
        let inner = plain(&target, operands.get(2..).unwrap_or_default());
        entry.command = inner.entry.command;
        entry.args = inner.entry.args;
        commanded.needs = inner.needs;
        commanded.warnings.extend(inner.warnings);
    }
    if !options.env.is_empty() {
        entry.env = Some(options.env);
    }
    Ok(commanded)
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

#[derive(Default)]
struct Options {
    transport: Option<String>,
    url: Option<String>,
    env: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    oauth: protocol::OAuth,
    without_oauth: bool,
}

impl Options {
    fn is_remote(&self) -> bool {
        self.url.is_some()
            || matches!(
                self.transport.as_deref(),
                Some("http" | "sse" | "streamable-http")
            )
    }

    /// Takes an option and its values; answers how many words those were.
    fn take(&mut self, word: &str, rest: &[String], commanded: &mut Commanded) -> Result<usize, String> {
        let (option, inline) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (word, None),
        };
        match option {
            "--client-secret" => {
                commanded
                    .warnings
                    .push("the client's secret is still to be given".to_owned());
                return Ok(0);
            }
            "--no-oauth" => {
                self.without_oauth = true;
                return Ok(0);
            }
            // What it allows, the other program asks for.
            "--trust" => return Ok(0),
            _ => {}
        }
        let (value, taken) = match (inline, rest.first()) {
            (Some(value), _) => (value, 0),
            (None, Some(value)) => (value.as_str(), 1),
            (None, None) => return Err(format!("`{word}` has no value")),
        };
        match option {
            "-s" | "--scope" => commanded.scope = scope(value, &mut commanded.warnings),
            "--description" => {}
            "-t" | "--transport" | "--type" => self.transport = Some(value.to_owned()),
            "--url" => self.url = Some(value.to_owned()),
            "--bearer-token-env-var" => {
                let bearer = format!("Bearer ${{{value}}}");
                self.headers.insert("Authorization".to_owned(), bearer);
            }
            "--client-id" => self.oauth.client_id = Some(value.to_owned()),
            "--callback-port" => {
                let port = value.parse().map_err(|_| format!("`{value}` is no port"))?;
                self.oauth.callback_port = Some(port);
            }
            // Both take several values.
            "-e" | "--env" => {
                return self.several("`NAME=value`", inline, rest, |options, word| {
                    let (name, value) = word.split_once('=').filter(|(name, _)| is_name(name))?;
                    options.env.insert(name.to_owned(), value.to_owned());
                    Some(())
                });
            }
            "-H" | "--header" => {
                return self.several("`Name: value`", inline, rest, |options, word| {
                    let (name, value) = word.split_once(':').filter(|(name, _)| !name.contains('/'))?;
                    if is_address(word) {
                        return None;
                    }
                    options
                        .headers
                        .insert(name.trim().to_owned(), value.trim().to_owned());
                    Some(())
                });
            }
            other => return Err(format!("the option `{other}` is not known")),
        }
        Ok(taken)
    }

    /// What is not of the `form` may be a secret whose name was forgotten: it is not repeated.
    fn several(
        &mut self,
        form: &str,
        inline: Option<&str>,
        rest: &[String],
        mut take: impl FnMut(&mut Options, &str) -> Option<()>,
    ) -> Result<usize, String> {
        let misfit = || format!("what is given for a variable or a header must be {form}");
        if let Some(value) = inline {
            return take(self, value).map(|()| 0).ok_or_else(misfit);
        }
        let mut taken = 0;
        while rest.get(taken).is_some_and(|word| take(self, word).is_some()) {
            taken += 1;
        }
        match (taken, rest.first()) {
            (0, Some(_)) => Err(misfit()),
            _ => Ok(taken),
        }
    }
}

fn scope(word: &str, warnings: &mut Vec<String>) -> Option<Scope> {
    match word {
        "user" | "global" => Some(Scope::User),
        "project" => Some(Scope::Project),
        other => {
            warnings.push(format!("the scope `{other}` does not exist here"));
            None
        }
    }
}

/// `claude mcp add-json NAME JSON`, options anywhere.
fn adding_json(words: &[String]) -> Result<Commanded, String> {
    let mut operands = Vec::new();
    let mut options = Options::default();
    let mut head = Commanded::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if word.starts_with('-') {
            at += options.take(word, &words[at..], &mut head)?;
        } else {
            operands.push(word);
        }
    }
    let [name, json] = operands.as_slice() else {
        return Err("it must give a name and one JSON text in single quotes".to_owned());
    };
    let mut commanded = of_json(json, name)?;
    commanded.scope = head.scope;
    commanded.warnings.extend(head.warnings);
    Ok(commanded)
}

/// One server as JSON, named by its own `name` unless told.
pub(crate) fn of_json(json: &str, name: &str) -> Result<Commanded, String> {
    let (harvest, _) = container::harvest(json, Dialect::Common).map_err(|fault| fault.to_string())?;
    let inputs = harvest.inputs;
    let warnings = harvest.notes.iter().map(|issue| issue.message.clone()).collect();
    let mut found = harvest.found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => match one.outcome {
            Outcome::Entry(entry) => Ok(Commanded {
                name: if name.is_empty() {
                    one.name
                } else {
                    name.to_owned()
                },
                entry: *entry,
                warnings,
                inputs,
                ..Default::default()
            }),
            Outcome::Skipped(reason) | Outcome::Failed(reason) => Err(reason),
        },
        _ => Err("it must hold one server".to_owned()),
    }
}
