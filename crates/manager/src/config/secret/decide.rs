//! An entry as a person decides about it: nobody hides a program, an address or a file by giving it the name of a secret.

use protocol::ServerEntry;
use serde_json::{Value, json};

use super::text::{self, Piece};
use super::{Found, MASK, found, in_arguments, masked_at};

/// The entry without its secrets. `stored` is what stands there now, and what is a secret in it stays one; a mark of the new
/// entry alone hides nothing that would run or be reached.
pub(crate) fn masked_to_decide(
    entry: &ServerEntry,
    stored: Option<&ServerEntry>,
) -> (ServerEntry, Vec<String>) {
    let stored = stored.map(|stored| (found(stored), json!(stored)));
    let whole = json!(entry);
    let is_known = |pointer: &str| {
        stored.as_ref().is_some_and(|(found, value)| {
            value.pointer(pointer) == whole.pointer(pointer)
                && found.iter().any(|found| found.pointer == pointer)
        })
    };
    let mut entry = entry.clone();
    if let Some(marks) = &mut entry.secrets {
        marks.retain(|mark| mark.starts_with("/env/") || mark.starts_with("/headers/") || is_known(mark));
    }
    let mut found = found(&entry);
    let words = |member: &str| -> Vec<String> {
        let items = whole[member].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (args, helper) = (words("args"), words("headersHelper"));
    let command = entry.command.as_deref().unwrap_or_default();
    let arguments = Arguments::new(command, &args);
    let helper = Arguments::new(
        helper.first().map_or("", String::as_str),
        helper.get(1..).unwrap_or_default(),
    );
    for Found { pointer, pieces } in &mut found {
        if is_known(pointer) {
            continue;
        }
        let (member, index) = pointer[1..].split_once('/').unwrap_or((&pointer[1..], ""));
        let index = index.parse::<usize>().ok();
        match member {
            "args" => pieces.retain(|piece| arguments.may_hide(index, piece)),
            "headersHelper" => {
                let index = index.and_then(|index| index.checked_sub(1));
                pieces.retain(|piece| helper.may_hide(index, piece));
            }
            // Paths, which only look like addresses.
            "command" | "cwd" | "envFile" | "tls" => pieces.clear(),
            _ => {}
        }
    }
    found.retain(|found| !found.pieces.is_empty());
    masked_at(&entry, found)
}

/// The words of a command line that somebody asks for, as they may be shown.
pub(crate) fn shown_words(words: &[String]) -> Vec<String> {
    let Some((command, args)) = words.split_first() else {
        return Vec::new();
    };
    let arguments = Arguments::new(command, args);
    let mut shown = words.to_vec();
    for (index, mut pieces) in in_arguments(args, |_| false) {
        pieces.retain(|piece| arguments.may_hide(Some(index), piece));
        shown[index + 1] = text::replaced(&args[index], &pieces, |_| MASK.to_owned());
    }
    shown
}

/// The arguments of one program.
struct Arguments<'a> {
    args: &'a [String],
    /// Whether an argument of this program may itself be a program.
    runs: bool,
}

impl<'a> Arguments<'a> {
    fn new(command: &str, args: &'a [String]) -> Arguments<'a> {
        Arguments {
            args,
            runs: starts_others(command) || has_code(args),
        }
    }

    /// Whether what is called a secret here can be nothing else.
    fn may_hide(&self, index: Option<usize>, piece: &Piece) -> bool {
        let Some((index, text)) = index.and_then(|index| Some((index, self.args.get(index)?))) else {
            return false;
        };
        let value = &text[piece.range.clone()];
        let is_whole = piece.word.is_empty();
        let name = match index.checked_sub(1).filter(|_| is_whole) {
            Some(before) => &self.args[before],
            None => &piece.word,
        };
        let is_option = is_whole || text.starts_with('-');
        let is_word = |one: char| one.is_ascii_alphanumeric() || "_-.~+/=%:@!^*,?#".contains(one);
        let is_plain = match is_option && !self.runs {
            // Signs are in passwords too; nothing interprets them there.
            true => !value.contains(|one: char| one.is_whitespace() || one.is_control()),
            false => value.chars().all(is_word),
        };
        is_plain && !is_path(value) && !names_program(name)
    }
}

/// Whether a program stands in the arguments of an interpreter.
pub(crate) fn runs_code(command: &str, args: &[String]) -> bool {
    starts_others(command) && has_code(args)
}

fn has_code(args: &[String]) -> bool {
    const OPTIONS: [&str; 10] = [
        "-c", "-e", "-p", "-r", "-S", "--eval", "--exec", "--call", "-exec", "-Command",
    ];
    args.iter().any(|argument| OPTIONS.contains(&&**argument))
}

/// Whether all its arguments are a program, one way or another.
pub(crate) fn is_shell(command: &str) -> bool {
    const NAMES: [&str; 10] = [
        "sh",
        "bash",
        "zsh",
        "fish",
        "dash",
        "ksh",
        "cmd",
        "powershell",
        "pwsh",
        "eval",
    ];
    NAMES.contains(&program(command))
}

/// Shells, interpreters, and what starts other programs.
pub(crate) fn starts_others(command: &str) -> bool {
    const NAMES: [&str; 22] = [
        "env",
        "xargs",
        "find",
        "sudo",
        "nohup",
        "timeout",
        "watch",
        "ssh",
        "git",
        "make",
        "node",
        "deno",
        "bun",
        "tsx",
        "python",
        "ruby",
        "perl",
        "php",
        "lua",
        "awk",
        "osascript",
        "busybox",
    ];
    is_shell(command) || NAMES.contains(&program(command))
}

/// The bare name of a program, without its version: `python` for `/usr/bin/python3.12`.
pub(crate) fn program(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.trim_end_matches(|one: char| one.is_ascii_digit() || one == '.')
}

fn is_path(value: &str) -> bool {
    let is_drive = value.as_bytes().get(1) == Some(&b':') && value.as_bytes()[0].is_ascii_alphabetic();
    value.starts_with(['/', '\\', '.', '~']) || is_drive
}

/// `--password-command`, `credential.helper`: what stands there is started.
fn names_program(name: &str) -> bool {
    const WORDS: [&str; 9] = [
        "command", "cmd", "helper", "program", "exec", "script", "hook", "provider", "askpass",
    ];
    let name = name.to_ascii_lowercase();
    name.split(|one: char| !one.is_ascii_alphanumeric())
        .any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_not_hidden_by_the_name_of_a_secret() {
        // What is masked stands between « and ».
        for (command, args) in [
            ("npx", "-y pkg --token=«tk-1» --api-key «k$2&3» API_KEY=«k3»"),
            (
                "npx",
                "https://u:«pw»@h/mcp?api_key=«k» https://u:«pw-5»@h.example/?api_key=«k-6»",
            ),
            ("bash", "-c API_TOKEN=x;touch${IFS}m"),
            ("python3.12", "-c password='a';import/os"),
            ("/usr/bin/env", "-S AUTH_TOKEN=x&m"),
            ("foo", "-c TOKEN=$(touch)"),
            ("foo", "TOKEN=$(touch)"),
            (
                "foo",
                "--password-command ./evil --secret-helper=evil --key ./evil --token=/evil --key-file=~/k",
            ),
            ("git", "-c credential.helper=evil --token «tk»"),
            ("docker", "run -e API_KEY=«k» img sh -c TOKEN=x;y"),
        ] {
            let bare = args.replace(['«', '»'], "");
            let words: Vec<String> = std::iter::once(command)
                .chain(bare.split(' '))
                .map(str::to_owned)
                .collect();
            let mut expected = String::new();
            for (number, part) in args.split(['«', '»']).enumerate() {
                expected.push_str(if number % 2 == 1 { MASK } else { part });
            }
            assert_eq!(shown_words(&words)[1..].join(" "), expected);
        }
        let blank = ["bash", "-c", "API_TOKEN=x; touch m"].map(str::to_owned);
        assert_eq!(shown_words(&blank), blank);
        let quoted = ["bash", "-c", ": \"token\": \"$(m)\""].map(str::to_owned);
        assert_eq!(shown_words(&quoted), quoted);
    }

    #[test]
    fn what_is_stored_stays_hidden() {
        let entry = |value: Value| -> ServerEntry { serde_json::from_value(value).unwrap() };
        let stored = entry(json!({"command": "bash", "args": ["-c", "TOKEN=a b"], "secrets": ["/args/1"]}));
        let (shown, _) = masked_to_decide(&stored, Some(&stored));
        assert_eq!(shown.args.unwrap()[1], MASK);
        let other = entry(json!({"command": "bash", "args": ["-c", "TOKEN=a c"], "secrets": ["/args/1"]}));
        let (shown, _) = masked_to_decide(&other, Some(&stored));
        assert_eq!(shown.args.unwrap()[1], "TOKEN=a c");
        let (shown, pointers) = masked_to_decide(&entry(json!({"command": "x", "cwd": "/a?token=b"})), None);
        assert_eq!((&*shown.cwd.unwrap(), pointers.len()), ("/a?token=b", 0));
    }
}
