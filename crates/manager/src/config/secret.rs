//! What is a secret in an entry, and how it looks from outside.

use protocol::{OauthSetting, ServerEntry};

/// Stands for a secret in everything that leaves the process.
pub(crate) const MASK: &str = "********";

const SECRET_WORDS: [&str; 8] = [
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "credential",
    "authorization",
    "cookie",
];

/// Whether the value under this name of `env`, `headers`, an option or a query is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
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
    const ENDINGS: [&str; 5] = ["_PAT", "_PWD", "_DSN", "_AUTH", "_CREDS"];
    let upper = name.to_ascii_uppercase();
    is_secret_name(name)
        || upper.contains("PASSPHRASE")
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

/// An entry as it may leave the process, with pointers to what is masked.
pub(crate) fn masked(entry: &ServerEntry) -> (ServerEntry, Vec<String>) {
    let mut entry = entry.clone();
    let mut pointers = Vec::new();
    for (member, map) in [("env", &mut entry.env), ("headers", &mut entry.headers)] {
        for (name, value) in map.iter_mut().flatten() {
            // `Bearer ${TOKEN}` shows its reference; a literal beside it would be a secret.
            if is_secret_name(name) && is_literal(value) && !is_scheme_and_reference(value) {
                MASK.clone_into(value);
                pointers.push(super::validate::pointer(&[member, name]));
            }
        }
    }
    if let Some(OauthSetting::On(oauth)) = &mut entry.oauth {
        let mut secrets = vec![
            ("/oauth/clientSecret", oauth.client_secret.as_mut()),
            ("/oauth/privateKey", oauth.private_key.as_mut()),
            ("/oauth/assertion", oauth.assertion.as_mut()),
        ];
        if let Some(enterprise) = &mut oauth.enterprise {
            secrets.push((
                "/oauth/enterprise/clientSecret",
                enterprise.client_secret.as_mut(),
            ));
            secrets.push((
                "/oauth/enterprise/subjectToken",
                Some(&mut enterprise.subject_token),
            ));
        }
        for (pointer, secret) in secrets {
            if let Some(secret) = secret.filter(|secret| is_literal(secret)) {
                MASK.clone_into(secret);
                pointers.push(pointer.to_owned());
            }
        }
    }
    for (member, words) in [
        ("args", &mut entry.args),
        ("headersHelper", &mut entry.headers_helper),
    ] {
        for words in words.iter_mut() {
            for (index, masked) in masked_arguments(words) {
                words[index] = masked;
                pointers.push(format!("/{member}/{index}"));
            }
        }
    }
    if let Some(url) = &mut entry.url {
        let shown = masked_url(url);
        if **url != *shown {
            *url = shown.into();
            pointers.push("/url".to_owned());
        }
    }
    (entry, pointers)
}

fn is_scheme_and_reference(value: &str) -> bool {
    value.split_once(' ').is_some_and(|(scheme, rest)| {
        scheme.chars().all(|character| character.is_ascii_alphabetic()) && !is_literal(rest.trim())
    })
}

/// Arguments whose value is a secret: `--token=x`, `--token x`, `API_KEY=x`.
fn masked_arguments(args: &[String]) -> Vec<(usize, String)> {
    let mut masked = Vec::new();
    let mut value_of_secret = false;
    for (index, argument) in args.iter().enumerate() {
        if value_of_secret && !argument.starts_with('-') {
            if is_literal(argument) {
                masked.push((index, MASK.to_owned()));
            }
            value_of_secret = false;
            continue;
        }
        value_of_secret = false;
        if let Some((name, value)) = argument.split_once('=') {
            let is_option =
                name.starts_with('-') || name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_option && is_secret_name(name) && is_literal(value) {
                masked.push((index, format!("{name}={MASK}")));
            }
        } else if argument.starts_with('-') && is_secret_name(argument) {
            value_of_secret = true;
        }
    }
    masked
}

/// The arguments of a command line as they may be shown.
pub(crate) fn shown_arguments(args: &[String]) -> Vec<String> {
    let mut shown = args.to_vec();
    for (index, masked) in masked_arguments(args) {
        shown[index] = masked;
    }
    shown
}

/// A URL without its password and the values of secret-looking query names; the rest byte for byte, references too.
pub(crate) fn masked_url(text: &str) -> String {
    let (before, fragment) = text
        .split_once('#')
        .map_or((text, None), |(before, fragment)| (before, Some(fragment)));
    let (address, query) = before
        .split_once('?')
        .map_or((before, None), |(address, query)| (address, Some(query)));
    let mut shown = without_password(address);
    if let Some(query) = query {
        let pairs: Vec<String> = query.split('&').map(masked_pair).collect();
        shown = format!("{shown}?{}", pairs.join("&"));
    }
    if let Some(fragment) = fragment {
        shown = format!("{shown}#{fragment}");
    }
    shown
}

fn masked_pair(pair: &str) -> String {
    let Some((name, value)) = pair.split_once('=') else {
        return pair.to_owned();
    };
    // A name may be written `api%5Fkey`.
    let is_secret = url::form_urlencoded::parse(name.as_bytes()).any(|(name, _)| is_secret_name(&name));
    if is_secret && is_literal(value) {
        format!("{name}={MASK}")
    } else {
        pair.to_owned()
    }
}

/// The part before the query with its password masked.
fn without_password(address: &str) -> String {
    let start = address.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = address.split_at(start);
    let end = rest.find(['/', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if start > 0
        && let Some((user, host)) = authority.rsplit_once('@')
        && let Some((user, password)) = user.split_once(':')
    {
        if is_literal(password) {
            return format!("{scheme}{user}:{MASK}@{host}{path}");
        }
        return address.to_owned();
    }
    // Parsers take a `https:/` for a `https://`, too.
    if let Ok(mut url) = url::Url::parse(address)
        && url.password().is_some()
        && url.set_password(Some(MASK)).is_ok()
    {
        return url.to_string();
    }
    address.to_owned()
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
            ("https:/u:p@h/x", "https://u:********@h/x"),
            ("https://h/mcp?token", "https://h/mcp?token"),
            (
                "https://h/mcp?next=https://u:p@h/",
                "https://h/mcp?next=https://u:p@h/",
            ),
        ] {
            assert_eq!(masked_url(url), expected, "{url}");
        }
    }

    #[test]
    fn a_status_shows_the_bare_url() {
        assert_eq!(bare_url("https://u:p@h/mcp?token=1#f"), "https://h/mcp");
        assert_eq!(bare_url("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(bare_url("${BASE}/mcp?x"), "${BASE}/mcp");
    }
}
