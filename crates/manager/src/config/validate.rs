//! What a good entry is: the published schema, and the rules between members that no schema says.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use protocol::{ServerEntry, ToolOverride};
use serde_json::Value;

use crate::server::in_host;

/// Revisions of MCP that `protocol` may pin, besides `auto` and `legacy`.
pub(crate) const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// What is said of an entry that names nothing to run or to reach.
pub(super) const NEITHER: &str = "an entry needs `command` (a local server) or `url` (a remote one)";

/// What a login says itself, so that no configuration can loosen it.
const OAUTH_PARAMETERS: [&str; 9] = [
    "response_type",
    "response_mode",
    "client_id",
    "redirect_uri",
    "code_challenge",
    "code_challenge_method",
    "state",
    "scope",
    "resource",
];

/// Something wrong in an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Steps from the entry to the member.
    pub path: Vec<String>,
    pub message: String,
}

impl Problem {
    fn at(path: &[&str], message: impl Into<String>) -> Problem {
        Problem {
            path: path.iter().map(|step| (*step).to_owned()).collect(),
            message: message.into(),
        }
    }

    /// The path as a JSON Pointer (RFC 6901).
    pub fn pointer(&self) -> String {
        pointer(&self.path)
    }
}

/// Steps as a JSON Pointer (RFC 6901).
pub(crate) fn pointer<S: AsRef<str>>(path: &[S]) -> String {
    path.iter()
        .map(|step| format!("/{}", step.as_ref().replace('~', "~0").replace('/', "~1")))
        .collect()
}

pub(super) static SCHEMA: LazyLock<Value> = LazyLock::new(protocol::schema::standalone::<ServerEntry>);
static VALIDATOR: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    jsonschema::validator_for(&SCHEMA).expect("the published schema of an entry is a valid schema")
});

/// What is wrong with an entry of known members.
pub(crate) fn problems(entry: &Value) -> Vec<Problem> {
    check(entry, false)
}

/// The same for an entry that the host brings: it may be the server itself.
pub(crate) fn problems_of_host(entry: &Value) -> Vec<Problem> {
    check(entry, true)
}

fn check(entry: &Value, from_host: bool) -> Vec<Problem> {
    let mut problems: Vec<Problem> = VALIDATOR
        .iter_errors(entry)
        .map(|error| schema_problem(innermost(&error)))
        .collect();
    if problems.is_empty()
        && let Ok(entry) = serde_json::from_value::<ServerEntry>(entry.clone())
    {
        problems = rules(&entry, from_host);
    }
    problems
}

/// What is wrong inside a member that may also be `null`, or be of one of several kinds: the fault of the kind it is.
fn innermost<'e, 'v: 'e>(error: &'e jsonschema::ValidationError<'v>) -> &'e jsonschema::ValidationError<'e> {
    use jsonschema::error::ValidationErrorKind as Kind;
    let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = error.kind() else {
        return error;
    };
    let here = error.instance_path();
    let of_kind = context.iter().find(|faults| {
        !faults.iter().any(|fault| {
            let wrong_kind = matches!(
                fault.kind(),
                Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. }
            );
            wrong_kind && fault.instance_path() == here
        })
    });
    of_kind.and_then(|faults| faults.first()).map_or(error, innermost)
}

pub(super) fn schema_problem(error: &jsonschema::ValidationError<'_>) -> Problem {
    let path: Vec<String> = error
        .instance_path()
        .as_str()
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect();
    let member = path.last().cloned();
    let said = error.to_string();
    // The library quotes the value, which may be a secret: what is said names the member and the rule only.
    let value = error.instance().to_string();
    let rule = said
        .strip_prefix(value.as_str())
        .unwrap_or(&said)
        .trim()
        .to_owned();
    let rule = match error.kind() {
        jsonschema::error::ValidationErrorKind::Required { property } => {
            format!("needs `{}`", property.as_str().unwrap_or_default())
        }
        _ => rule,
    };
    let rule = match rule.strip_prefix("is not of type") {
        Some(types) => format!("must be {}, not {}", kinds(types), a_kind(error.instance())),
        None => rule,
    };
    let rule = if rule.contains(&value) && value.len() > 2 {
        "does not fit the schema".to_owned()
    } else {
        rule
    };
    let message = member.map_or_else(
        || format!("the entry {rule}"),
        |member| format!("`{member}` {rule}"),
    );
    Problem { path, message }
}

/// The types that the library quotes, in words.
fn kinds(quoted: &str) -> String {
    let words = quoted
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|name| *name != "null");
    let words: Vec<&str> = words
        .map(|name| match name {
            "string" => "a text",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            _ => "an object",
        })
        .collect();
    words.join(" or ")
}

/// What a value is, without saying which.
pub(crate) fn a_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Rules between members.
fn rules(entry: &ServerEntry, from_host: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    match (&entry.command, &entry.url) {
        (None, None) if in_host::is_in_host(entry) => {
            if !from_host {
                problems.push(Problem::at(
                    &["transport"],
                    "`transport: \"host\"` belongs to an entry that the host brings itself",
                ));
            }
            for (member, is_set) in [
                ("args", entry.args.is_some()),
                ("env", entry.env.is_some()),
                ("cwd", entry.cwd.is_some()),
                ("envFile", entry.env_file.is_some()),
                ("headers", entry.headers.is_some()),
                ("oauth", entry.oauth.is_some()),
                ("tls", entry.tls.is_some()),
            ] {
                if is_set {
                    problems.push(Problem::at(
                        &[member],
                        format!("`{member}` does not belong to a server in the host's own process"),
                    ));
                }
            }
        }
        (None, None) => problems.push(Problem::at(&[], NEITHER)),
        (Some(_), Some(_)) => {
            problems.push(Problem::at(&["url"], "an entry has `command` or `url`, not both"))
        }
        (Some(command), None) => {
            if command.trim().is_empty() {
                problems.push(Problem::at(&["command"], "`command` is empty"));
            }
            for (member, is_set) in [
                ("headers", entry.headers.is_some()),
                ("headersHelper", entry.headers_helper.is_some()),
                ("transport", entry.transport.is_some()),
                ("oauth", entry.oauth.is_some()),
                ("tls", entry.tls.is_some()),
            ] {
                if is_set {
                    problems.push(Problem::at(
                        &[member],
                        format!("`{member}` belongs to a server with `url`"),
                    ));
                }
            }
        }
        (None, Some(url)) => {
            for (member, is_set) in [
                ("args", entry.args.is_some()),
                ("env", entry.env.is_some()),
                ("cwd", entry.cwd.is_some()),
                ("envFile", entry.env_file.is_some()),
            ] {
                if is_set {
                    problems.push(Problem::at(
                        &[member],
                        format!("`{member}` belongs to a server with `command`"),
                    ));
                }
            }
            if in_host::is_in_host(entry) {
                problems.push(Problem::at(
                    &["transport"],
                    "`transport: \"host\"` goes without `url`",
                ));
            }
            if !url.contains("${")
                && let Err(message) = remote_url(url)
            {
                problems.push(Problem::at(&["url"], message));
            }
        }
    }
    if let Some(tls) = &entry.tls {
        if tls.key.is_some() && tls.cert.is_none() {
            problems.push(Problem::at(
                &["tls", "key"],
                "`tls.key` needs `tls.cert`, the certificate it belongs to",
            ));
        }
        if entry.url.as_ref().is_some_and(|url| url.starts_with("unix:")) {
            problems.push(Problem::at(
                &["tls"],
                "`tls` has no use at a socket: what goes through it stays on this machine",
            ));
        }
    }
    if let Some(protocol::OauthSetting::On(oauth)) = &entry.oauth {
        if let Some(uri) = oauth.redirect_uri.as_ref().filter(|uri| !uri.contains("${"))
            && let Err(reason) = auth::redirect_url(uri)
        {
            problems.push(Problem::at(
                &["oauth", "redirectUri"],
                format!("`oauth.redirectUri` {reason}"),
            ));
        }
        for name in oauth
            .authorization_parameters
            .iter()
            .flatten()
            .map(|(name, _)| name)
        {
            if OAUTH_PARAMETERS.contains(&name.as_str()) {
                problems.push(Problem::at(
                    &["oauth", "authorizationParameters", name],
                    format!("`{name}` is set by the login itself"),
                ));
            }
        }
    }
    if entry.headers_helper.as_ref().is_some_and(Vec::is_empty) {
        problems.push(Problem::at(
            &["headersHelper"],
            "`headersHelper` names no program",
        ));
    }
    if let Some(headers) = &entry.headers {
        for name in headers.keys() {
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                problems.push(Problem::at(
                    &["headers", name],
                    format!("`{name}` is no header name"),
                ));
            }
        }
    }
    if let Some(env) = &entry.env {
        for name in env.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                problems.push(Problem::at(
                    &["env", name],
                    format!("`{name}` is no name of a variable"),
                ));
            }
        }
    }
    problems.extend(impossible_characters(entry));
    if let Some(pinned) = &entry.protocol
        && !["auto", "legacy"].contains(&pinned.as_str())
        && !REVISIONS.contains(&pinned.as_str())
    {
        let message = format!(
            "`protocol` is `auto`, `legacy` or one of {}",
            REVISIONS.join(", ")
        );
        problems.push(Problem::at(&["protocol"], message));
    }
    if let Some(overrides) = entry.tools.as_ref().and_then(|tools| tools.overrides.as_ref()) {
        problems.extend(override_problems(overrides));
    }
    problems
}

/// What no system can pass on: a NUL in a word of a command or in a variable (exec(3)), a line end in a header (RFC 9110,
/// section 5.5).
fn impossible_characters(entry: &ServerEntry) -> Vec<Problem> {
    let mut words: Vec<(Vec<String>, &str)> = Vec::new();
    for (member, text) in [
        ("command", entry.command.as_deref()),
        ("cwd", entry.cwd.as_deref()),
        ("envFile", entry.env_file.as_deref()),
    ] {
        words.extend(text.map(|text| (vec![member.to_owned()], text)));
    }
    for (member, list) in [("args", &entry.args), ("headersHelper", &entry.headers_helper)] {
        let items = list.iter().flatten().enumerate();
        words.extend(items.map(|(index, text)| (vec![member.to_owned(), index.to_string()], &**text)));
    }
    let members = entry.env.iter().flatten();
    words.extend(members.map(|(name, text)| (vec!["env".to_owned(), name.clone()], &**text)));
    let in_words = words
        .into_iter()
        .filter(|(_, text)| text.contains('\0'))
        .map(|(path, _)| (path, "a NUL character"));
    let headers = entry.headers.iter().flatten();
    let in_headers = headers
        .filter(|(_, text)| text.contains(['\0', '\r', '\n']))
        .map(|(name, _)| {
            (
                vec!["headers".to_owned(), name.clone()],
                "a line end or a NUL character",
            )
        });
    let problem = |(path, what): (Vec<String>, &str)| Problem {
        message: format!("`{}` holds {what}, which cannot be passed on", path.join(".")),
        path,
    };
    in_words.chain(in_headers).map(problem).collect()
}

/// Other names of tools: legal in MCP (Tools, Tool Names), and no two the same.
fn override_problems(overrides: &BTreeMap<String, ToolOverride>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut given: HashMap<&str, &str> = HashMap::new();
    for (tool, shown) in overrides {
        let Some(name) = &shown.name else { continue };
        let path = ["tools", "overrides", tool, "name"];
        if !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        {
            let message =
                format!("`{name}` is no name of a tool: letters, digits, `_`, `-` and `.` are allowed");
            problems.push(Problem::at(&path, message));
        } else if let Some(other) = given.insert(name, tool) {
            let message = format!("`{other}` and `{tool}` cannot both be named `{name}`");
            problems.push(Problem::at(&path, message));
        }
    }
    problems
}

/// A URL that an entry may name, parsed.
pub fn remote_url(text: &str) -> Result<url::Url, String> {
    let url = url::Url::parse(text).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => "`url` lacks the `https://` in front".to_owned(),
        error => format!("`url` is no URL: {error}"),
    })?;
    match url.scheme() {
        "http" | "https" if url.host().is_some() => Ok(url),
        "unix" if !cfg!(unix) => Err("sockets (`unix:`) are not to be had on this platform".to_owned()),
        "unix" if url.host().is_some() || url.path().len() < 2 => Err(
            "the path of a socket is absolute, with three slashes: `unix:///run/server.sock#/mcp`".to_owned(),
        ),
        "unix" if url.query().is_some() => {
            Err("the path behind a socket stands after `#`: `unix:///run/server.sock#/mcp`".to_owned())
        }
        "unix" => Ok(url),
        scheme => Err(format!(
            "`url` begins with `{scheme}:`; `https:`, `http:` or `unix:` is expected"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::members::known_members;
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(entry: Value, expected: &[&str]) {
        let (known, _) = known_members(&entry);
        let found: Vec<String> = problems(&known).iter().map(Problem::pointer).collect();
        assert_eq!(found, expected, "{:?}", problems(&known));
    }

    #[test]
    fn entries_are_judged_by_schema_and_rules() {
        check(json!({"command": "npx", "args": ["-y"]}), &[]);
        check(json!({"url": "https://h/mcp", "oauth": false}), &[]);
        check(json!({"url": "https://h/mcp", "oauth": {"clientId": "a"}}), &[]);
        check(json!({"url": "${BASE}/mcp"}), &[]);
        check(json!({}), &[""]);
        check(json!({"command": "x", "url": "https://h"}), &["/url"]);
        check(json!({"command": "x", "headers": {}}), &["/headers"]);
        check(json!({"url": "ftp://h"}), &["/url"]);
        check(json!({"url": "https://h", "args": []}), &["/args"]);
        check(json!({"url": "unix:///run/a.sock#/mcp"}), &[]);
        check(json!({"url": "unix://run/a.sock"}), &["/url"]);
        check(
            json!({"url": "unix:///run/a.sock", "tls": {"ca": "/a"}}),
            &["/tls"],
        );
        check(json!({"url": "https://h", "tls": {"key": "/k"}}), &["/tls/key"]);
        check(
            json!({"url": "https://h", "headersHelper": []}),
            &["/headersHelper"],
        );
        check(
            json!({"command": "x", "headersHelper": ["y"]}),
            &["/headersHelper"],
        );
        check(json!({"command": "x", "timeoutMs": 10}), &["/timeoutMs"]);
        check(json!({"command": 5}), &["/command"]);
        check(json!({"command": "x", "env": {"A=B": "1"}}), &["/env/A=B"]);
        check(
            json!({"url": "https://h", "headers": {"a b": "1"}}),
            &["/headers/a b"],
        );
        check(json!({"command": "x", "protocol": "2023-01-01"}), &["/protocol"]);
        let renamed = |names: Value| json!({"command": "x", "tools": {"overrides": names}});
        check(
            renamed(json!({"a": {"name": "b.c-d_1"}, "b": {"title": "B"}})),
            &[],
        );
        check(
            renamed(json!({"a": {"name": "b c"}})),
            &["/tools/overrides/a/name"],
        );
        check(renamed(json!({"a": {"name": ""}})), &["/tools/overrides/a/name"]);
        check(renamed(json!({"a": {"name": "x".repeat(64)}})), &[]);
        check(
            renamed(json!({"a": {"name": "x".repeat(65)}})),
            &["/tools/overrides/a/name"],
        );
        check(
            renamed(json!({"a": {"name": "c"}, "b": {"name": "c"}})),
            &["/tools/overrides/b/name"],
        );
    }

    #[test]
    fn a_way_back_is_an_address_of_its_own() {
        let back = |uri: &str| json!({"url": "https://h", "oauth": {"redirectUri": uri}});
        for good in [
            "http://127.0.0.1:19876/cb",
            "https://h/cb?a=b",
            "http://[::1]/",
            "${BACK}",
        ] {
            check(back(good), &[]);
        }
        for bad in [
            "/cb",
            "nonsense",
            "ftp://h/",
            "http://me:pw@h/",
            "https://h/#part",
            "http://h:99999/",
        ] {
            check(back(bad), &["/oauth/redirectUri"]);
        }
    }

    #[test]
    fn a_login_sets_its_own_parameters() {
        check(
            json!({"url": "https://h", "oauth": {"authorizationParameters": {"prompt": "login", "state": "x"}}}),
            &["/oauth/authorizationParameters/state"],
        );
    }

    #[test]
    fn a_problem_never_quotes_a_value() {
        let (known, _) = known_members(&json!({"url": "https://h", "headers": {"x-token": 5550123}}));
        let said = format!("{:?}", problems(&known));
        assert!(!said.contains("5550123"), "{said}");
    }
}
