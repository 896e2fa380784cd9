//! What instructions put around a server because another program needs it: a shell of Windows, a bridge to a remote
//! server, a command and its arguments in one text.

use protocol::{EntryTransport, OAuth, OauthSetting, ServerEntry};

use super::words::split;

/// Takes off what is not needed here; answers what a person should know about that.
pub(super) fn unwrap(entry: &mut ServerEntry) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(words) = entry.command.as_deref().and_then(in_one_text)
        && entry.args.as_ref().is_none_or(Vec::is_empty)
    {
        start(entry, words);
    }
    if let Some(words) = without_cmd(entry) {
        start(entry, words);
        said.push("`cmd /c` is left out: the command is started without a shell".to_owned());
    }
    if let Some(remote) = bridged(entry) {
        *entry = remote;
        said.push("`mcp-remote` is left out: the server at this address is reached directly".to_owned());
    }
    said
}

fn start(entry: &mut ServerEntry, mut words: Vec<String>) {
    if words.first().is_none_or(|word| word.trim().is_empty()) {
        return;
    }
    let args = words.split_off(1);
    entry.command = words.pop();
    entry.args = (!args.is_empty()).then_some(args);
}

/// The words of `npx -y pkg`; `None` for one program, whose path may hold blanks.
pub(super) fn in_one_text(command: &str) -> Option<Vec<String>> {
    let (program, _) = command.trim().split_once(char::is_whitespace)?;
    let is_plain = program
        .chars()
        .all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one));
    split(command).ok().filter(|words| is_plain && words.len() > 1)
}

/// `cmd /c npx …` as `npx …`, unless only a shell can carry out the rest.
fn without_cmd(entry: &ServerEntry) -> Option<Vec<String>> {
    let is_cmd = |text: &str| text.eq_ignore_ascii_case("cmd") || text.eq_ignore_ascii_case("cmd.exe");
    entry.command.as_deref().filter(|command| is_cmd(command))?;
    let (switch, rest) = entry.args.as_deref()?.split_first()?;
    let needs_shell = rest
        .iter()
        .any(|word| word.contains(['&', '|', '<', '>', '^', '%']));
    (switch.eq_ignore_ascii_case("/c") && !rest.is_empty() && !needs_shell).then_some(())?;
    match rest {
        [line] => in_one_text(line).or_else(|| Some(vec![line.clone()])),
        words => Some(words.to_vec()),
    }
}

/// `npx mcp-remote URL …` as the remote server itself; `None` where an option has no counterpart.
fn bridged(entry: &ServerEntry) -> Option<ServerEntry> {
    let args = entry.args.as_deref()?;
    let mut words = args.iter().map(String::as_str).peekable();
    match entry.command.as_deref()? {
        "npx" | "bunx" => while words.next_if(|word| matches!(*word, "-y" | "--yes")).is_some() {},
        "pnpm" => drop(words.next_if_eq(&"dlx")?),
        _ => return None,
    }
    let package = words.next()?;
    (package == "mcp-remote" || package.starts_with("mcp-remote@")).then_some(())?;
    let url = words.next().filter(|word| word.starts_with("http"))?;
    let mut remote = entry.clone();
    (remote.command, remote.args) = (None, None);
    remote.url = Some(url.into());
    let mut env = remote.env.take().unwrap_or_default();
    let mut headers = std::collections::BTreeMap::new();
    let mut used = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--header" => {
                let (name, value) = words.next()?.split_once(':')?;
                let mut value = value.trim().to_owned();
                // The bridge fills its variables in itself, and some shells break a value at its blank.
                for (variable, given) in &env {
                    let reference = format!("${{{variable}}}");
                    if value.contains(&reference) {
                        value = value.replace(&reference, given);
                        used.push(variable.clone());
                    }
                }
                headers.insert(name.trim().to_owned(), value);
            }
            "--transport" => match words.next()? {
                "sse-only" | "sse-first" => remote.transport = Some(EntryTransport::Sse),
                "http-only" | "http-first" => {}
                _ => return None,
            },
            "--allow-http" | "--debug" => {}
            port => {
                let callback_port = Some(port.parse().ok()?);
                remote.oauth = Some(OauthSetting::On(OAuth {
                    callback_port,
                    ..Default::default()
                }));
            }
        }
    }
    env.retain(|variable, _| !used.contains(variable));
    // What is left would be for the bridge: who sets it means the bridge.
    env.is_empty().then_some(())?;
    remote.headers = (!headers.is_empty()).then_some(headers);
    let value = serde_json::to_value(&remote).ok()?;
    crate::config::validate::problems(&value)
        .is_empty()
        .then_some(remote)
}
