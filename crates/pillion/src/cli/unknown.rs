//! Words that other programs have commands for: what to type here instead.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The word, and the command that does it; `SERVER` and `NAME` stand for what follows the word.
const WORDS: [(&str, &str, &str); 16] = [
    ("rename", "pillion edit SERVER --rename NAME", "renames a server"),
    ("mv", "pillion edit SERVER --rename NAME", "renames a server"),
    ("set", "pillion edit SERVER", "changes members of an entry"),
    ("list", "pillion status", "lists the servers"),
    ("ls", "pillion status", "lists the servers"),
    ("get", "pillion config SERVER", "shows an entry"),
    ("show", "pillion config SERVER", "shows an entry"),
    ("delete", "pillion remove SERVER", "removes a server"),
    ("rm", "pillion remove SERVER", "removes a server"),
    ("login", "pillion auth SERVER", "logs in to a server"),
    (
        "start",
        "pillion tools SERVER",
        "starts a server and lists its tools",
    ),
    (
        "run",
        "pillion tools SERVER",
        "starts a server and lists its tools",
    ),
    ("stop", "pillion disable SERVER", "switches a server off"),
    (
        "install",
        "pillion add --from SERVER",
        "adds a server of the gallery, the registry or GitHub",
    ),
    ("find", "pillion search SERVER", "finds servers"),
    (
        "check",
        "pillion doctor SERVER",
        "says what keeps a server from working",
    ),
];

/// Says what is wrong with a command line, or what was asked about it, and ends the process.
pub fn end(error: &clap::Error) -> ! {
    // There is nobody to tell that stderr is closed.
    let _ = error.print();
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
    {
        let words = std::env::args().skip(1);
        let further: Vec<String> = words.skip_while(|one| one != word).skip(1).collect();
        if let Some(hint) = hint(word, &further) {
            eprintln!("\nhint: {hint}");
        }
    }
    std::process::exit(error.exit_code())
}

fn hint(word: &str, further: &[String]) -> Option<String> {
    let (_, command, does) = WORDS.iter().find(|(known, ..)| *known == word)?;
    let mut command = (*command).to_owned();
    let is_plain = |text: &&String| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte) || byte == b'-')
            && !text.starts_with('-')
    };
    for (hole, given) in ["SERVER", "NAME"].iter().zip(further.iter().take_while(is_plain)) {
        command = command.replace(hole, given);
    }
    Some(format!("`{command}` {does}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn every_hint_names_a_command_that_exists() {
        let cli = super::super::Cli::command();
        for (word, command, _) in WORDS {
            assert!(cli.find_subcommand(word).is_none(), "{word}");
            let name = command.split(' ').nth(1).expect("a command");
            assert!(cli.find_subcommand(name).is_some(), "{command}");
        }
    }

    #[test]
    fn what_was_typed_is_filled_in() {
        let given = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            hint("rename", &given(&["a", "b"])).as_deref(),
            Some("`pillion edit a --rename b` renames a server")
        );
        assert_eq!(
            hint("rename", &given(&["a b"])).as_deref(),
            Some("`pillion edit SERVER --rename NAME` renames a server")
        );
        assert_eq!(hint("frobnicate", &[]), None);
    }
}
