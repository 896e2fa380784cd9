//! What is a secret in an entry, and how it looks from outside.

mod decide;
mod text;

use protocol::ServerEntry;
use serde_json::{Value, json};

pub(crate) use self::decide::{is_shell, masked_to_decide, program, runs_code, shown_words, starts_others};
pub(crate) use self::text::{Piece, replaced};
use crate::find::gallery;

/// Stands for a secret in everything that leaves the process.
pub(crate) const MASK: &str = "********";

/// Members that one entry may call secret; its schema says the same.
const MARKS: usize = 64;

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
    const NAMES: [&str; 26] = [
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "PYTHONUSERBASE",
        "PERL5LIB",
        "PERL5OPT",
        "PERLLIB",
        "PERL5DB",
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
    let begins = |beginning: &&str| upper.starts_with(beginning);
    ["LD_", "DYLD_", "BASH_FUNC_"].iter().any(begins) || NAMES.contains(&upper.as_str())
}

/// Whether a variable of this name decides which programs and packages are found, or from where they are fetched.
///
/// A server of a project inherits them from the person: a file of the project must not choose others.
pub(crate) fn is_finder_name(name: &str) -> bool {
    const NAMES: [&str; 24] = [
        "PATH",
        "PATHEXT",
        "COMSPEC",
        "HOME",
        "USERPROFILE",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "GEM_HOME",
        "GEM_PATH",
        "GOROOT",
        "GIT_EXEC_PATH",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "CARGO_HOME",
        "DOCKER_HOST",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NODE_EXTRA_CA_CERTS",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
    ];
    const BEGINNINGS: [&str; 7] = [
        "NPM_CONFIG_",
        "YARN_",
        "BUN_",
        "DENO_",
        "UV_",
        "PIP_",
        "GIT_CONFIG_",
    ];
    let upper = name.to_ascii_uppercase();
    NAMES.contains(&upper.as_str()) || BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning))
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
    masked_at(entry, found(entry))
}

fn masked_at(entry: &ServerEntry, found: Vec<Found>) -> (ServerEntry, Vec<String>) {
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
///
/// Every text of it is looked at, so that a member that is added one day is not forgotten.
pub(crate) fn found(entry: &ServerEntry) -> Vec<Found> {
    let marked = marked(entry);
    let mut found = Vec::new();
    look(&json!(entry), &mut Vec::new(), &marked, &mut found);
    found
}

fn look(value: &Value, path: &mut Vec<String>, marked: &[&str], found: &mut Vec<Found>) {
    match value {
        Value::String(text) => {
            let pointer = super::validate::pointer(path);
            let pieces = pieces_of_member(path, text, marked.contains(&&*pointer));
            if !pieces.is_empty() {
                found.push(Found { pointer, pieces });
            }
        }
        Value::Array(items) if matches!(&**path, [member] if ["args", "headersHelper"].contains(&&**member)) =>
        {
            let words: Vec<String> = items
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let pointer = |index: usize| format!("/{}/{index}", path[0]);
            for (index, pieces) in in_arguments(&words, |index| marked.contains(&&*pointer(index))) {
                let pointer = pointer(index);
                found.push(Found { pointer, pieces });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                look(item, path, marked, found);
                path.pop();
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                path.push(name.clone());
                look(member, path, marked, found);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The secrets of one text of an entry; lists of arguments are looked at as a whole instead.
fn pieces_of_member(path: &[String], text: &str, is_marked: bool) -> Vec<Piece> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match &*path {
        ["oauth", "clientSecret" | "privateKey" | "assertion"]
        | ["oauth", "enterprise", "clientSecret" | "subjectToken"] => match is_literal(text) {
            true => whole(text),
            false => Vec::new(),
        },
        ["env" | "headers", name]
        | ["oauth", "authorizationParameters", name]
        | ["inputs", name, "default"]
            if is_marked || is_secret_name(name) =>
        {
            secret_value(text)
        }
        // Where it leads stays to be seen.
        ["url"] if is_marked => text::pieces_behind_host(text),
        ["env" | "headers", _] | ["oauth", "authorizationParameters", _] | ["url"] => text::pieces(text),
        _ => text::pieces_of_addresses(text),
    }
}

/// The value under the name of a secret.
fn secret_value(text: &str) -> Vec<Piece> {
    // `Bearer ${TOKEN}` shows its reference; a literal beside it would be a secret.
    match is_literal(text) && !is_scheme_and_reference(text) {
        true => whole(text),
        false => Vec::new(),
    }
}

/// What people call an entry: its label, which holds no secret of an address, else its name.
pub(crate) fn label(entry: &ServerEntry, name: &str) -> String {
    entry.label.as_deref().map_or_else(
        || name.to_owned(),
        |label| text::replaced(label, &text::pieces_of_addresses(label), |_| MASK.to_owned()),
    )
}

/// Remembers in an entry that these members are secrets; where the name says it, nothing needs to be remembered.
pub(crate) fn mark(entry: &mut ServerEntry, pointers: impl IntoIterator<Item = String>) {
    let mut marks = entry.secrets.take().unwrap_or_default();
    for pointer in pointers {
        let is_said = ["/env/", "/headers/"]
            .iter()
            .any(|map| pointer.strip_prefix(map).is_some_and(is_secret_name));
        let fits = pointer.starts_with('/') && pointer.chars().count() <= 512 && marks.len() < MARKS;
        if !is_said && fits && !marks.iter().any(|mark| **mark == *pointer) {
            marks.push(pointer.into());
        }
    }
    entry.secrets = (!marks.is_empty()).then_some(marks);
}

/// Members that the entry itself, or the list it was made from, calls secret, whatever their names.
///
/// They count for `env`, `headers`, single arguments and what stands behind the host of `url`: nobody hides a program or an
/// address by calling it a secret.
fn marked(entry: &ServerEntry) -> Vec<&str> {
    let own = entry.secrets.iter().flatten().map(|mark| &**mark);
    let source = entry.source.as_deref().unwrap_or_default();
    let listed = source.strip_prefix("catalog:").and_then(gallery::listed);
    let needs = listed.into_iter().flat_map(|listed| &listed.needs);
    own.chain(needs.filter(|need| need.secret).map(|need| &*need.at))
        .collect()
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
fn in_arguments(args: &[String], is_marked: impl Fn(usize) -> bool) -> Vec<(usize, Vec<Piece>)> {
    let mut found = Vec::new();
    let mut value_of_secret = false;
    for (index, argument) in args.iter().enumerate() {
        let is_value = value_of_secret && !argument.starts_with('-');
        value_of_secret = !is_value
            && argument.starts_with('-')
            && !argument.contains('=')
            && text::is_secret_word(argument);
        let pieces = match (is_value, is_marked(index)) {
            (true, _) if is_literal(argument) => whole(argument),
            (true, _) => Vec::new(),
            (false, true) => text::value_of_option(argument),
            (false, false) => text::pieces(argument),
        };
        if !pieces.is_empty() {
            found.push((index, pieces));
        }
    }
    found
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

    #[test]
    fn secrets_are_masked_and_references_shown() {
        let entry: ServerEntry = serde_json::from_value(json!({
            "command": "x",
            "args": ["--api-key", "s3", "--token=s4", "plain", "ACME_SECRET=s5", "--verbose"],
            "env": {"API_TOKEN": "s1", "REF_TOKEN": "${T}", "PLAIN": "p"},
        }))
        .unwrap();
        let (shown, pointers) = masked(&entry);
        assert_eq!(pointers, ["/args/1", "/args/2", "/args/4", "/env/API_TOKEN"]);
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
        assert_eq!(pointers, ["/url", "/headers/Cookie", "/headers/X-Api-Key"]);
        assert_eq!(shown.headers.unwrap()["Authorization"], "Bearer ${T}");
        assert!(!shown.url.unwrap().contains("pw"));
    }

    #[test]
    fn no_member_with_an_address_is_left_out() {
        let address = "https://u:pw-1@h/x?api_key=pw-2&a=b#access_token=pw-3";
        let entry: ServerEntry = serde_json::from_value(json!({
            "url": address,
            "label": address,
            "source": address,
            "cwd": address,
            "envFile": address,
            "tls": {"ca": address, "cert": address, "key": address},
            "oauth": {
                "clientId": address, "redirectUri": address, "clientMetadataUrl": address, "resource": address,
                "issuer": address, "authorizationEndpoint": address, "tokenEndpoint": address,
                "authorizationParameters": {"login_hint": address, "id_token_hint": "pw-4"},
                "enterprise": {
                    "tokenEndpoint": address, "issuer": address, "clientId": address, "subjectToken": "pw-5",
                },
            },
            "tools": {"overrides": {"a": {"title": address, "description": address}}},
        }))
        .unwrap();
        let (shown, pointers) = masked(&entry);
        let shown = serde_json::to_string(&shown).unwrap();
        assert!(!shown.contains("pw-"), "{shown}");
        assert_eq!(pointers.len(), 23, "{pointers:?}");
        assert!(shown.contains("https://u:********@h/x?api_key=********&a=b#access_token=********"));
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
