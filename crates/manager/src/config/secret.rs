//! What is a secret in an entry, and how it looks from outside.

mod text;

use protocol::{OauthSetting, ServerEntry};

pub(crate) use self::text::{Piece, replaced};
use crate::find::gallery;

/// Stands for a secret in everything that leaves the process.
pub(crate) const MASK: &str = "********";

const SECRET_WORDS: [&str; 9] = [
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "authorization",
    "cookie",
];

/// Whether the value under this name of `env`, `headers`, an option or a query is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    const ENDINGS: [&str; 3] = ["_pat", "_pwd", "_creds"];
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_WORDS.iter().any(|word| name.contains(word)) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether a variable of this name is kept from servers of a project, unless their entry lists it.
///
/// The words of [`is_secret_name`], and the names under which clouds and agents find their credentials.
pub(crate) fn is_credential_name(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "KUBECONFIG",
        "DOCKER_CONFIG",
        "DOCKER_AUTH_CONFIG",
        "NETRC",
        "PGPASSFILE",
        "AWS_PROFILE",
        "DATABASE_URL",
        "REDIS_URL",
        "MONGODB_URI",
    ];
    const ENDINGS: [&str; 2] = ["_DSN", "_AUTH"];
    let upper = name.to_ascii_uppercase();
    is_secret_name(name)
        || NAMES.contains(&upper.as_str())
        || ENDINGS.iter().any(|ending| upper.ends_with(ending))
}

/// Whether a variable of this name makes programs load code.
pub(crate) fn is_loader_name(name: &str) -> bool {
    const NAMES: [&str; 24] = [
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "PERL5LIB",
        "PERL5OPT",
        "PERLLIB",
        "RUBYLIB",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "CLASSPATH",
        "BASH_ENV",
        "ENV",
        "ZDOTDIR",
        "SHELLOPTS",
        "PROMPT_COMMAND",
        "GCONV_PATH",
        "IFS",
        "DOTNET_STARTUP_HOOKS",
        "COR_PROFILER_PATH",
    ];
    let upper = name.to_ascii_uppercase();
    upper.starts_with("LD_") || upper.starts_with("DYLD_") || NAMES.contains(&upper.as_str())
}

/// A value that consists of references only holds no secret itself.
fn is_literal(value: &str) -> bool {
    let mut rest = value;
    while let Some((_, after)) = rest.strip_prefix("${").and_then(|inside| inside.split_once('}')) {
        rest = after;
    }
    !rest.is_empty()
}

/// Where an entry holds secrets in one of its texts.
pub(crate) struct Found {
    /// A JSON Pointer into the entry.
    pub pointer: String,
    /// In their order; one without a word is the whole text.
    pub pieces: Vec<Piece>,
}

/// An entry as it may leave the process, with pointers to what is masked.
pub(crate) fn masked(entry: &ServerEntry) -> (ServerEntry, Vec<String>) {
    let found = found(entry);
    if found.is_empty() {
        return (entry.clone(), Vec::new());
    }
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    for found in &found {
        if let Some(slot) = value.pointer_mut(&found.pointer) {
            let text = slot.as_str().unwrap_or_default();
            *slot = text::replaced(text, &found.pieces, |_| MASK.to_owned()).into();
        }
    }
    let pointers = found.into_iter().map(|found| found.pointer).collect();
    // Only texts changed, so it fits as before; should it not, nothing is shown rather than a secret.
    (serde_json::from_value(value).unwrap_or_default(), pointers)
}

/// Every secret that stands in an entry itself.
pub(crate) fn found(entry: &ServerEntry) -> Vec<Found> {
    let mut found = Vec::new();
    let mut add = |pointer: String, pieces: Vec<Piece>| {
        if !pieces.is_empty() {
            found.push(Found { pointer, pieces });
        }
    };
    let marked = marked(entry);
    for (member, map) in [("env", &entry.env), ("headers", &entry.headers)] {
        for (name, value) in map.iter().flatten() {
            let pointer = super::validate::pointer(&[member, name]);
            let is_secret = is_secret_name(name) || marked.contains(&&*pointer);
            let pieces = match is_secret {
                // `Bearer ${TOKEN}` shows its reference; a literal beside it would be a secret.
                true if is_literal(value) && !is_scheme_and_reference(value) => whole(value),
                true => Vec::new(),
                false => text::pieces(value),
            };
            add(pointer, pieces);
        }
    }
    if let Some(OauthSetting::On(oauth)) = &entry.oauth {
        let mut secrets = vec![
            ("/oauth/clientSecret", oauth.client_secret.as_ref()),
            ("/oauth/privateKey", oauth.private_key.as_ref()),
            ("/oauth/assertion", oauth.assertion.as_ref()),
        ];
        if let Some(enterprise) = &oauth.enterprise {
            secrets.push((
                "/oauth/enterprise/clientSecret",
                enterprise.client_secret.as_ref(),
            ));
            secrets.push(("/oauth/enterprise/subjectToken", Some(&enterprise.subject_token)));
        }
        for (pointer, secret) in secrets {
            if let Some(secret) = secret.filter(|secret| is_literal(secret)) {
                add(pointer.to_owned(), whole(secret));
            }
        }
    }
    for (member, words) in [("args", &entry.args), ("headersHelper", &entry.headers_helper)] {
        for (index, pieces) in in_arguments(words.as_deref().unwrap_or_default()) {
            add(format!("/{member}/{index}"), pieces);
        }
    }
    if let Some(url) = &entry.url {
        let pieces = if marked.contains(&"/url") && is_literal(url) {
            whole(url)
        } else {
            text::pieces(url)
        };
        add("/url".to_owned(), pieces);
    }
    let others = [
        ("command", &entry.command),
        ("label", &entry.label),
        ("source", &entry.source),
    ];
    for (member, value) in others {
        if let Some(value) = value {
            add(format!("/{member}"), text::pieces_of_addresses(value));
        }
    }
    found
}

/// Members that the list an entry was made from calls secret, whatever their names.
fn marked(entry: &ServerEntry) -> Vec<&'static str> {
    let source = entry.source.as_deref().unwrap_or_default();
    let listed = source.strip_prefix("catalog:").and_then(gallery::listed);
    let needs = listed.into_iter().flat_map(|listed| &listed.needs);
    needs.filter(|need| need.secret).map(|need| &*need.at).collect()
}

fn whole(text: &str) -> Vec<Piece> {
    vec![Piece {
        range: 0..text.len(),
        word: String::new(),
    }]
}

fn is_scheme_and_reference(value: &str) -> bool {
    value.split_once(' ').is_some_and(|(scheme, rest)| {
        scheme.chars().all(|character| character.is_ascii_alphabetic()) && !is_literal(rest.trim())
    })
}

/// Arguments that hold a secret: `--token=x`, `--token x`, `API_KEY=x`, an address with a password.
fn in_arguments(args: &[String]) -> Vec<(usize, Vec<Piece>)> {
    let mut found = Vec::new();
    let mut value_of_secret = false;
    for (index, argument) in args.iter().enumerate() {
        let is_value = value_of_secret && !argument.starts_with('-');
        value_of_secret = !is_value
            && argument.starts_with('-')
            && !argument.contains('=')
            && text::is_secret_word(argument);
        let pieces = match is_value {
            true if is_literal(argument) => whole(argument),
            true => Vec::new(),
            false => text::pieces(argument),
        };
        if !pieces.is_empty() {
            found.push((index, pieces));
        }
    }
    found
}

/// The arguments of a command line as they may be shown.
pub(crate) fn shown_arguments(args: &[String]) -> Vec<String> {
    let mut shown = args.to_vec();
    for (index, pieces) in in_arguments(args) {
        shown[index] = text::replaced(&args[index], &pieces, |_| MASK.to_owned());
    }
    shown
}

/// A URL without credentials, query and fragment, as a status shows it.
pub(crate) fn bare_url(text: &str) -> String {
    // Behind a socket the fragment is the path.
    if text.starts_with("unix:") {
        return text.to_owned();
    }
    let Ok(mut url) = url::Url::parse(text) else {
        return text.split(['?', '#']).next().unwrap_or_default().to_owned();
    };
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    let ends_bare = !text.split(['?', '#']).next().unwrap_or_default().ends_with('/');
    let shown = url.to_string();
    if url.path() == "/" && ends_bare {
        shown.trim_end_matches('/').to_owned()
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_and_references_shown() {
        let entry: ServerEntry = serde_json::from_value(json!({
            "command": "x",
            "args": ["--api-key", "s3", "--token=s4", "plain", "ACME_SECRET=s5", "--verbose"],
            "env": {"API_TOKEN": "s1", "REF_TOKEN": "${T}", "PLAIN": "p"},
        }))
        .unwrap();
        let (shown, pointers) = masked(&entry);
        assert_eq!(pointers, ["/env/API_TOKEN", "/args/1", "/args/2", "/args/4"]);
        assert_eq!(
            shown.args.unwrap(),
            [
                "--api-key",
                MASK,
                "--token=********",
                "plain",
                "ACME_SECRET=********",
                "--verbose"
            ]
        );
        assert_eq!(shown.env.as_ref().unwrap()["REF_TOKEN"], "${T}");
        assert_eq!(shown.env.as_ref().unwrap()["PLAIN"], "p");
    }

    #[test]
    fn headers_with_a_reference_stay_readable() {
        let entry: ServerEntry = serde_json::from_value(json!({
            "url": "https://u:pw@h/mcp?api_key=k&x=1",
            "headers": {"Authorization": "Bearer ${T}", "X-Api-Key": "k", "Cookie": "a=b"},
        }))
        .unwrap();
        let (shown, pointers) = masked(&entry);
        assert_eq!(pointers, ["/headers/Cookie", "/headers/X-Api-Key", "/url"]);
        assert_eq!(shown.headers.unwrap()["Authorization"], "Bearer ${T}");
        assert!(!shown.url.unwrap().contains("pw"));
    }

    #[test]
    fn a_literal_between_references_is_a_secret() {
        for (value, literal) in [
            ("${A}", false),
            ("${A}${B:-x}", false),
            ("${A}s3${B}", true),
            ("", false),
            ("${A", true),
        ] {
            assert_eq!(is_literal(value), literal, "{value}");
        }
    }

    #[test]
    fn of_a_url_only_its_secrets_are_masked() {
        for (url, expected) in [
            ("https://h/mcp?x=1#f", "https://h/mcp?x=1#f"),
            (
                "https://h/mcp?region=${REGION}&api_key=k&q=a%20b+c&flag",
                "https://h/mcp?region=${REGION}&api_key=********&q=a%20b+c&flag",
            ),
            ("https://h/mcp?api%5Fkey=k", "https://h/mcp?api%5Fkey=********"),
            (
                "https://h/mcp?token=${T}&token=k",
                "https://h/mcp?token=${T}&token=********",
            ),
            (
                "https://${HOST}/${PATH}?token=k",
                "https://${HOST}/${PATH}?token=********",
            ),
            ("https://u:p@${HOST}/a@b", "https://u:********@${HOST}/a@b"),
            ("https://u:${PW}@H:443/mcp", "https://u:${PW}@H:443/mcp"),
            ("https://u:p@q@H", "https://u:********@H"),
            ("https:/u:p@h/x", "https:/u:********@h/x"),
            ("https://h/mcp?token", "https://h/mcp?token"),
            (
                "https://h/mcp?next=https://u:p@h/",
                "https://h/mcp?next=https://u:********@h/",
            ),
        ] {
            let shown = replaced(url, &text::pieces(url), |_| MASK.to_owned());
            assert_eq!(shown, expected, "{url}");
        }
    }

    #[test]
    fn a_status_shows_the_bare_url() {
        assert_eq!(bare_url("https://u:p@h/mcp?token=1#f"), "https://h/mcp");
        assert_eq!(bare_url("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(bare_url("${BASE}/mcp?x"), "${BASE}/mcp");
    }
}
