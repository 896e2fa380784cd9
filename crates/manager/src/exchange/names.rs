//! Names for entries that come from elsewhere: what a name may hold, and what to call a server that brings none.

use protocol::ServerEntry;

/// Longest name of a new entry.
const LONGEST: usize = 32;

/// The nearest name that a new entry may have.
pub(crate) fn fitting(name: &str) -> String {
    let mut fitting: String = name
        .trim()
        .chars()
        .map(|one| {
            if one.is_ascii_alphanumeric() || one == '-' {
                one
            } else {
                '_'
            }
        })
        .take(LONGEST)
        .collect();
    if fitting.chars().all(|one| one == '_') {
        "server".clone_into(&mut fitting);
    }
    // Reserved for our own tools and files.
    if fitting == "pillion" {
        fitting.push('_');
    }
    fitting
}

/// The name, or the name with the first number that makes it free.
pub(crate) fn free(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(name) {
        return name.to_owned();
    }
    (2..)
        .map(|number| {
            let end = format!("_{number}");
            let start: String = name.chars().take(LONGEST - end.len()).collect();
            format!("{start}{end}")
        })
        .find(|name| !is_taken(name))
        .unwrap_or_default()
}

/// What to call a server: by its package, image, file or host.
pub(crate) fn guessed(entry: &ServerEntry) -> String {
    let guess = match &entry.url {
        Some(url) => of_url(url),
        None => of_command(
            entry.command.as_deref().unwrap_or_default(),
            entry.args.as_deref().unwrap_or_default(),
        ),
    };
    fitting(&guess)
}

fn of_url(url: &str) -> String {
    let host = url::Url::parse(url)
        .ok()
        .and_then(|url| url.host().map(|host| host.to_owned()));
    match host {
        Some(url::Host::Domain(domain)) => {
            let parts: Vec<&str> = domain
                .split('.')
                .filter(|part| !["mcp", "api", "www", "app"].contains(part))
                .collect();
            match parts.as_slice() {
                [.., name, _] => (*name).to_owned(),
                [name] => (*name).to_owned(),
                [] => "remote".to_owned(),
            }
        }
        Some(address) => address.to_string(),
        None => "remote".to_owned(),
    }
}

fn of_command(command: &str, args: &[String]) -> String {
    let program = base(command);
    let operands = || {
        args.iter()
            .filter(|word| !word.starts_with('-') && !word.contains('='))
    };
    let subject = match program {
        "docker" | "podman" => args
            .iter()
            .rev()
            .find(|word| !word.starts_with('-') && word.contains('/') && !word.contains('='))
            .or_else(|| args.last()),
        "npx" | "bunx" | "uvx" | "pnpm" | "yarn" | "bun" | "deno" | "uv" | "pipx" | "cmd" => {
            operands().find(|word| !["run", "dlx", "exec", "x", "tool", "/c", "npx"].contains(&word.as_str()))
        }
        "python" | "python3" | "node" | "tsx" | "ruby" | "java" => operands().next(),
        _ => None,
    };
    subject.map_or_else(|| short(program), |subject| short(base(subject)))
}

fn base(path: &str) -> &str {
    path.trim_end_matches(['/', '\\'])
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(path)
}

/// `@scope/server-memory@1.2` is `memory`, `mcp_server_git.py` is `git`.
pub(crate) fn short(name: &str) -> String {
    let name = name
        .split(['@', ':'])
        .find(|part| !part.is_empty())
        .unwrap_or(name);
    let mut short = name;
    for end in [".py", ".js", ".mjs", ".ts", ".jar", ".exe", ".git"] {
        short = short.strip_suffix(end).unwrap_or(short);
    }
    for part in ["mcp-server-", "mcp_server_", "server-", "mcp-"] {
        short = short.strip_prefix(part).unwrap_or(short);
    }
    for part in ["-mcp-server", "-server", "-mcp", "_mcp"] {
        short = short.strip_suffix(part).unwrap_or(short);
    }
    if short.is_empty() {
        name.to_owned()
    } else {
        short.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_to_fit() {
        assert_eq!(fitting("github.com/up/c7"), "github_com_up_c7");
        assert_eq!(fitting("my srv"), "my_srv");
        assert_eq!(fitting("pillion"), "pillion_");
        assert_eq!(fitting("über"), "_ber");
        assert_eq!(fitting(""), "server");
        assert_eq!(free("a", |name| name == "a" || name == "a_2"), "a_3");
    }

    #[test]
    fn a_server_is_called_after_what_it_is() {
        let name = |entry: serde_json::Value| guessed(&serde_json::from_value(entry).unwrap());
        let command =
            |command: &str, args: &[&str]| name(serde_json::json!({"command": command, "args": args}));
        assert_eq!(
            command("npx", &["-y", "@modelcontextprotocol/server-memory@1"]),
            "memory"
        );
        assert_eq!(command("uvx", &["mcp-server-git", "--repository", "."]), "git");
        assert_eq!(
            command("docker", &["run", "-e", "A=1", "ghcr.io/x/github-mcp-server"]),
            "github"
        );
        assert_eq!(command("C:\\srv\\s.exe", &[]), "s");
        assert_eq!(
            name(serde_json::json!({"url": "https://mcp.linear.app/sse"})),
            "linear"
        );
        assert_eq!(name(serde_json::json!({"url": "https://h.example/mcp"})), "h");
    }
}
