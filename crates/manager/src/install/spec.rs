//! What `npx` and `uvx` would fetch, read from the arguments of an entry.

use protocol::{PackageManager, ServerEntry};

/// One package, as an entry asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub manager: PackageManager,
    /// The package without its version.
    pub name: String,
    /// The whole of what was asked for, for instance `some-server@^2`.
    pub spec: String,
    /// The program of it, where the arguments name one.
    pub program: Option<String>,
    /// `--python` of `uvx`.
    pub python: Option<String>,
    /// Arguments from here on are the server's own.
    pub own_from: usize,
}

impl Wish {
    /// What makes two wishes the same.
    pub(super) fn key(&self) -> (&'static str, &str, Option<&str>, Option<&str>) {
        (
            self.manager.as_str(),
            &self.spec,
            self.program.as_deref(),
            self.python.as_deref(),
        )
    }

    /// The same at one version.
    pub(super) fn at(&self, version: &str) -> String {
        match self.manager {
            PackageManager::Npm => format!("{}@{version}", self.name),
            PackageManager::Uv => format!("{}=={version}", self.with_extras()),
        }
    }

    /// A name of PyPI with its extras.
    fn with_extras(&self) -> &str {
        match (self.spec.find('['), self.spec.find(']')) {
            (Some(open), Some(close)) if open == self.name.len() => &self.spec[..=close],
            _ => &self.name,
        }
    }

    /// What to ask the package manager for.
    pub(super) fn requirement(&self, version: Option<&str>) -> String {
        match (version, self.manager) {
            (Some(version), _) => self.at(version),
            (None, PackageManager::Npm) => self.spec.clone(),
            // `uvx` takes `name@1.2` and `name@latest`; a requirement does not.
            (None, PackageManager::Uv) => match self.spec.split_once('@') {
                Some((name, "latest")) => name.to_owned(),
                Some((name, version)) => format!("{name}=={version}"),
                None => self.spec.clone(),
            },
        }
    }
}

/// What an entry fetches when it starts, if that is a package of a registry in a plain call.
pub(crate) fn wish(entry: &ServerEntry) -> Option<Wish> {
    let command = entry.command.as_deref()?;
    let program = command.rsplit(['/', '\\']).next()?;
    let program = program.trim_end_matches(".exe").trim_end_matches(".cmd");
    let args: Vec<&str> = entry.args.iter().flatten().map(String::as_str).collect();
    match program {
        "npx" => npx(&args),
        "uvx" => uvx(&args, 0),
        "uv" if args.first() == Some(&"tool") && args.get(1) == Some(&"run") => uvx(&args, 2),
        _ => None,
    }
}

fn npx(args: &[&str]) -> Option<Wish> {
    let mut package = None;
    let mut index = 0;
    while let Some(arg) = args.get(index) {
        match *arg {
            "-y" | "--yes" | "-q" | "--quiet" | "--prefer-offline" | "--prefer-online" => {}
            "-p" | "--package" if package.is_none() => {
                index += 1;
                package = Some((*args.get(index)?).to_owned());
            }
            "--" => {
                index += 1;
                break;
            }
            arg if arg.starts_with("--package=") && package.is_none() => {
                package = arg.split_once('=').map(|(_, value)| value.to_owned());
            }
            arg if arg.starts_with('-') => return None,
            _ => break,
        }
        index += 1;
    }
    let first = *args.get(index)?;
    let (spec, program) = match package {
        Some(package) => (package, Some(first.to_owned())),
        None => (first.to_owned(), None),
    };
    let name = npm_name(&spec)?;
    Some(Wish {
        manager: PackageManager::Npm,
        name,
        spec,
        program,
        python: None,
        own_from: index + 1,
    })
}

/// The name in `name@range`; nothing for folders, tarballs, repositories and aliases.
fn npm_name(spec: &str) -> Option<String> {
    let at = spec.char_indices().skip(1).find(|(_, one)| *one == '@');
    let (name, range) = match at {
        Some((at, _)) => (&spec[..at], Some(&spec[at + 1..])),
        None => (spec, None),
    };
    let plain = |part: &str| {
        let is_plain = |one: char| one.is_ascii_alphanumeric() || "-._~".contains(one);
        !part.is_empty() && !part.starts_with(['.', '-']) && part.chars().all(is_plain)
    };
    let is_name = match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| plain(scope) && plain(name)),
        None => plain(name),
    };
    let is_range = range.is_none_or(|range| !range.is_empty() && !range.contains([':', '/', '$']));
    (is_name && is_range).then(|| name.to_owned())
}

fn uvx(args: &[&str], skip: usize) -> Option<Wish> {
    let mut from = None;
    let mut python = None;
    let mut index = skip;
    while let Some(arg) = args.get(index) {
        match *arg {
            "-q" | "--quiet" | "--isolated" | "--no-progress" => {}
            "--from" if from.is_none() => {
                index += 1;
                from = Some((*args.get(index)?).to_owned());
            }
            "--python" | "-p" if python.is_none() => {
                index += 1;
                python = Some((*args.get(index)?).to_owned());
            }
            arg if arg.starts_with("--from=") && from.is_none() => {
                from = arg.split_once('=').map(|(_, value)| value.to_owned());
            }
            arg if arg.starts_with("--python=") && python.is_none() => {
                python = arg.split_once('=').map(|(_, value)| value.to_owned());
            }
            arg if arg.starts_with('-') => return None,
            _ => break,
        }
        index += 1;
    }
    let first = *args.get(index)?;
    let (spec, program) = match from {
        Some(from) => (from, Some(first.to_owned())),
        None => (first.to_owned(), None),
    };
    let name = pypi_name(&spec)?;
    Some(Wish {
        manager: PackageManager::Uv,
        name,
        spec,
        program,
        python,
        own_from: index + 1,
    })
}

/// The name in `name`, `name[extra]`, `name==1.2`, `name>=1,<2` and `name@1.2`; nothing for addresses and folders.
fn pypi_name(spec: &str) -> Option<String> {
    if spec.contains(['/', '\\', ':', ';', ' ', '$']) || spec.starts_with(['.', '-']) {
        return None;
    }
    let end = spec
        .find(|one: char| !(one.is_ascii_alphanumeric() || "-._".contains(one)))
        .unwrap_or(spec.len());
    let name = &spec[..end];
    let rest = &spec[end..];
    let is_known = rest.is_empty() || rest.starts_with(['[', '=', '>', '<', '~', '!', '@']);
    (!name.is_empty() && is_known).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, &str, Option<&str>, usize)>) {
        let mut words = line.split(' ').map(str::to_owned);
        let entry = ServerEntry {
            command: words.next(),
            args: Some(words.collect()),
            ..ServerEntry::default()
        };
        let wish = wish(&entry);
        let got = wish
            .as_ref()
            .map(|wish| (&*wish.name, &*wish.spec, wish.program.as_deref(), wish.own_from));
        assert_eq!(got, expected, "{line}");
    }

    #[test]
    fn what_is_fetched_is_read_from_the_arguments() {
        check("npx -y @a/b@1.2 --port 1", Some(("@a/b", "@a/b@1.2", None, 2)));
        check("/usr/bin/npx b", Some(("b", "b", None, 1)));
        check(
            "npx -y --package=@a/b run x",
            Some(("@a/b", "@a/b", Some("run"), 3)),
        );
        check("npx -p b@^2 run", Some(("b", "b@^2", Some("run"), 3)));
        check("npx -y -- b", Some(("b", "b", None, 3)));
        check("npx --call x", None);
        check("npx -y github:a/b", None);
        check("npx -y a/b", None);
        check("npx ./here", None);
        check("npx b@npm:c", None);
        check("npx b@${VERSION}", None);
        check("uvx a==${VERSION}", None);
        check(
            "uvx mcp-server-time --tz UTC",
            Some(("mcp-server-time", "mcp-server-time", None, 1)),
        );
        check(
            "uvx --from a[x]>=2 a-run",
            Some(("a", "a[x]>=2", Some("a-run"), 3)),
        );
        check("uv tool run a@1.2", Some(("a", "a@1.2", None, 3)));
        check("uvx --with other a", None);
        check("uvx git+https://h/r", None);
        check("node x.js", None);
    }

    #[test]
    fn a_version_replaces_what_was_asked_for() {
        let wish = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            super::wish(&ServerEntry {
                command: words.next(),
                args: Some(words.collect()),
                ..ServerEntry::default()
            })
            .unwrap()
        };
        assert_eq!(wish("npx b@^2").requirement(Some("2.1.0")), "b@2.1.0");
        assert_eq!(wish("uvx --from a[x]>=2 a").requirement(Some("2.1")), "a[x]==2.1");
        assert_eq!(wish("uvx a@latest").requirement(None), "a");
        assert_eq!(wish("uvx a@1.2").requirement(None), "a==1.2");
    }
}
