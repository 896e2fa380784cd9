//! What a `server.json` may say to the program that fetches and runs its package, `runtimeArguments`.
//!
//! A word there may be more than an option: one that is none takes the place of the package, and an option at the end may
//! swallow its name. So only words that are known stay as they are; others stay, with a warning, where they can shift
//! nothing, and what names another package is left out.

use protocol::Need;

use super::shown;

/// The options of one program that are known, by what they take.
struct Runner {
    /// They take nothing, and nobody needs to be told of them.
    flags: &'static [&'static str],
    /// They take a word, and nobody needs to be told of them.
    words: &'static [&'static str],
    /// Flags that a person is told of.
    told_flags: &'static [&'static str],
    /// Options with a value that a person is told of; others of them stay as one word only.
    told_words: &'static [&'static str],
    /// They say what is run instead of the package, shortened spellings too.
    instead: &'static [&'static str],
}

const NPX: Runner = Runner {
    flags: &[
        "-y",
        "--yes",
        "-q",
        "--quiet",
        "-s",
        "--silent",
        "--offline",
        "--prefer-offline",
        "--prefer-online",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
    ],
    words: &["--loglevel"],
    told_flags: &[],
    told_words: &[],
    instead: &["--package", "--call"],
};

const BUNX: Runner = Runner {
    flags: &["-y", "--yes", "--bun", "--silent", "--verbose", "--no-install"],
    words: &[],
    ..NPX
};

const UVX: Runner = Runner {
    flags: &[
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "-n",
        "--no-cache",
        "--offline",
        "--isolated",
        "--refresh",
        "--upgrade",
        "-U",
        "--no-progress",
        "--no-config",
        "--managed-python",
        "--no-managed-python",
        "--no-python-downloads",
        "--compile-bytecode",
    ],
    words: &[
        "-p",
        "--python",
        "--python-preference",
        "--prerelease",
        "--link-mode",
        "--color",
    ],
    told_flags: &[],
    told_words: &[],
    instead: &["--from"],
};

const DNX: Runner = Runner {
    flags: &["-y", "--yes", "--prerelease", "--allow-roll-forward"],
    words: &["-v", "--verbosity"],
    told_flags: &[],
    told_words: &[],
    instead: &[],
};

const CONTAINER: Runner = Runner {
    flags: &[
        "-i",
        "--interactive",
        "-t",
        "--tty",
        "-it",
        "-ti",
        "--rm",
        "--init",
    ],
    words: &["-e", "--env", "--name", "--pull"],
    told_flags: &[
        "-d",
        "--detach",
        "-P",
        "--publish-all",
        "--privileged",
        "--read-only",
    ],
    told_words: &[
        "--mount",
        "-v",
        "--volume",
        "--network",
        "--net",
        "-p",
        "--publish",
        "-w",
        "--workdir",
        "-u",
        "--user",
        "-m",
        "--memory",
        "--env-file",
        "--add-host",
        "--entrypoint",
        "--platform",
        "--cpus",
        "-h",
        "--hostname",
        "-l",
        "--label",
        "--tmpfs",
        "--device",
        "--cap-add",
        "--cap-drop",
        "--security-opt",
        "--gpus",
        "--shm-size",
        "--ulimit",
        "--dns",
        "--ipc",
        "--pid",
        "--volumes-from",
        "--restart",
    ],
    instead: &[],
};

/// What became of the words that a description has for a program.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub words: Vec<String>,
    pub needs: Vec<Need>,
    pub warnings: Vec<String>,
}

/// Keeps of `words`, which stand from `/args/FIRST` on, what leaves the package the one that is named.
pub(super) fn kept(command: &str, words: Vec<String>, needs: Vec<Need>, first: usize) -> Kept {
    let runner = match command {
        "npx" => NPX,
        "bunx" => BUNX,
        "uvx" => UVX,
        "dnx" => DNX,
        _ => CONTAINER,
    };
    let is_container = matches!(command, "docker" | "podman");
    let told = |words: &str| match is_container {
        true => format!("the container is started with `{}`", shown(words)),
        false => format!("`{command}` is started with `{}`", shown(words)),
    };
    let mut kept = Kept::default();
    // Where each word stands now; words that are left out stand nowhere.
    let mut places: Vec<Option<(usize, bool)>> = Vec::with_capacity(words.len());
    let mut rest = words.into_iter().peekable();
    while let Some(word) = rest.next() {
        let next = first + kept.words.len();
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word.as_str(), None),
        };
        let is_long = option.starts_with("--") && option.len() > 2;
        let is_instead = is_long && runner.instead.iter().any(|instead| instead.starts_with(option));
        let is = |options: &[&str]| options.contains(&option);
        // Whether the word behind it belongs to it.
        let has_value = value.is_none() && rest.peek().is_some_and(|next| !next.starts_with('-'));
        match value {
            Some(value) if is_long && !is_instead => {
                if !(is(runner.words) && (is_container || is_plain(option, value))) && !is(runner.flags) {
                    kept.warnings.push(told(&word));
                }
                places.push(Some((next, true)));
                kept.words.push(word);
            }
            None if is(runner.flags) || is(runner.told_flags) => {
                if is(runner.told_flags) {
                    kept.warnings.push(told(&word));
                }
                places.push(Some((next, false)));
                kept.words.push(word);
            }
            None if has_value && (is(runner.words) || is(runner.told_words)) => {
                let value = rest.next().unwrap_or_default();
                if is(runner.told_words) || !(is_container || is_plain(option, &value)) {
                    kept.warnings.push(told(&format!("{option} {value}")));
                }
                places.extend([Some((next, false)), Some((next + 1, false))]);
                kept.words.extend([word, value]);
            }
            // In one word its value stays its own, whatever the option is.
            None if has_value && is_long && !is_instead => {
                let value = rest.next().unwrap_or_default();
                let whole = format!("{word}={value}");
                kept.warnings.push(told(&whole));
                places.extend([Some((next, true)); 2]);
                kept.words.push(whole);
            }
            _ => {
                kept.warnings.push(format!(
                    "`{}` is left out: behind `{command}` it could name something else than the package",
                    shown(&word)
                ));
                places.push(None);
                if is_instead && has_value {
                    rest.next();
                    places.push(None);
                }
            }
        }
    }
    for mut need in needs {
        let index = need
            .at
            .strip_prefix("/args/")
            .and_then(|at| at.parse::<usize>().ok());
        let Some(index) = index.and_then(|index| index.checked_sub(first)) else {
            kept.needs.push(need);
            continue;
        };
        match places.get(index) {
            // What has no hole in it would be replaced whole, its option too.
            Some(Some((_, true))) if need.default.is_some() => {}
            Some(Some((at, _))) => {
                need.at = format!("/args/{at}").into();
                kept.needs.push(need);
            }
            Some(None) | None => {}
        }
    }
    kept
}

/// A value that is a plain word: no path, no address. Which Python it is may be said in versions only.
fn is_plain(option: &str, value: &str) -> bool {
    // A person fills it in.
    if value.starts_with("${input:") && value.ends_with('}') {
        return true;
    }
    let is_word = !value.is_empty()
        && value
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || ".-_+<>=!~*,@".contains(one));
    let version = value
        .trim_start_matches("cpython")
        .trim_start_matches("pypy")
        .trim_start_matches(['@', '-', '<', '>', '=', '!', '~']);
    let is_python = matches!(option, "--python" | "-p");
    is_word && (!is_python || version.starts_with(|one: char| one.is_ascii_digit()))
}
