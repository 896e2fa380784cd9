//! A review as text: what would run or be reached, whole, and what a person should know before saying yes.

use std::fmt::Write as _;

use protocol::{Pointer, Review, ReviewReason, Target};

use super::auth_list::left;
use super::terminal::{Paint, plain};

/// The review, line by line.
pub fn text(review: &Review, paint: Paint) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "  {:<12} {}", format!("{label}:"), plain(value));
    };
    let why = match review.why {
        ReviewReason::Request => match &review.requested_by {
            Some(by) => format!("asked for by a {by}"),
            None => "changed since it was approved".to_owned(),
        },
        ReviewReason::Project => "comes with the project".to_owned(),
        ReviewReason::ProjectChanged => "comes with the project, and is new or changed".to_owned(),
    };
    line("why", &why);
    line("layer", review.layer.as_str());
    let before = review.before.as_ref().map(target);
    let now = target(&review.target);
    for gone in before.iter().flatten().filter(|line| !now.contains(line)) {
        line(&format!("- {}", gone.0), &gone.1);
    }
    for shown in &now {
        let is_new = before.as_ref().is_some_and(|before| !before.contains(shown));
        let mark = if is_new { "+ " } else { "" };
        line(&format!("{mark}{}", shown.0), &shown.1);
    }
    if !review.changed.is_empty() {
        line("changed", &members(&review.changed));
    }
    if !review.reads.is_empty() {
        line("reads", &review.reads.join(", "));
    }
    if !review.keeps.is_empty() {
        line("is given", &format!("stored secrets: {}", members(&review.keeps)));
    }
    for relaxed in &review.relaxes {
        line("loosens", relaxed);
    }
    if !review.enabled {
        line("enabled", "no");
    }
    if let Some(left) = review.expires_at.and_then(left) {
        line("lapses", &format!("in {left}"));
    }
    // Trust is in a project as a whole, under a revision of its own.
    if review.why == ReviewReason::Request {
        line("revision", &review.revision);
    }
    for warning in &review.warnings {
        let _ = writeln!(text, "  {} {}", paint.yellow("warning:"), plain(warning));
    }
    format!("{}\n{text}", paint.bold(&plain(&review.server)))
}

/// Members of an entry in the words of these lines.
fn members(pointers: &[Pointer]) -> String {
    let word = |pointer: &Pointer| {
        let path = pointer.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let rest = rest.replace("~1", "/").replace("~0", "~");
        match (first, &*rest) {
            ("args", "") => "arguments".to_owned(),
            ("args", index) => index.parse::<usize>().map_or_else(
                |_| "arguments".to_owned(),
                |index| format!("argument {}", index + 1),
            ),
            ("cwd", _) => "folder".to_owned(),
            ("env", name) => format!("variable {name}"),
            ("headers", name) => format!("header {name}"),
            ("envFile", _) => "file of variables".to_owned(),
            ("headersHelper", _) => "helper".to_owned(),
            ("oauth", "clientSecret") => "client secret".to_owned(),
            ("oauth", _) => "login".to_owned(),
            ("tls", _) => "certificates".to_owned(),
            ("tools", "deny") => "tools that are kept away".to_owned(),
            ("tools", "allow") => "tools that are allowed".to_owned(),
            ("tools", "ask") => "tools that are asked about".to_owned(),
            ("tools", "auto") => "tools that nobody is asked about".to_owned(),
            ("tools", _) => "names and words of its tools".to_owned(),
            ("timeoutMs", _) => "time limit".to_owned(),
            ("startTimeoutMs", _) => "time limit of a start".to_owned(),
            ("idleStopMs", _) => "idle time".to_owned(),
            ("failOnStartupError", _) => "what a failed start is".to_owned(),
            ("inputs", _) => "what you are asked for".to_owned(),
            ("secrets", _) => "what is masked".to_owned(),
            (first, "") => first.to_owned(),
            (first, rest) => format!("{first} {rest}"),
        }
    };
    let words: Vec<String> = pointers.iter().map(word).collect();
    words.join(", ")
}

pub fn target(target: &Target) -> Vec<(&'static str, String)> {
    match target {
        Target::Local(local) => {
            if local.command.is_empty() {
                return vec![("command", "none; nothing would run".to_owned())];
            }
            let mut lines = vec![("command", local.command.clone())];
            // An array, so that a blank in an argument cannot pass for two arguments.
            let argv = serde_json::to_string(&local.argv).unwrap_or_default();
            lines.push(("arguments", argv));
            if !local.env_names.is_empty() {
                lines.push(("variables", local.env_names.join(", ")));
            }
            lines.push(("folder", local.cwd.clone()));
            lines
        }
        Target::Remote(remote) => {
            let mut lines = vec![
                ("url", remote.url.clone()),
                ("transport", remote.transport.to_string()),
            ];
            if !remote.header_names.is_empty() {
                lines.push(("headers", remote.header_names.join(", ")));
            }
            if let Some(words) = &remote.headers_helper {
                let words = serde_json::to_string(words).unwrap_or_default();
                lines.push(("helper", words));
            }
            if remote.oauth {
                lines.push(("login", "the server may ask for one".to_owned()));
            }
            for (member, address) in remote.login_addresses.iter().flatten() {
                let what = match member.as_str() {
                    "issuer" => "is given by",
                    "authorizationEndpoint" => "takes place at",
                    "tokenEndpoint" => "gets its tokens from",
                    "clientMetadataUrl" => "presents the client of",
                    "redirectUri" => "is answered to",
                    "enterprise.tokenEndpoint" => "proves who you are with",
                    "enterprise.issuer" => "knows you by",
                    _ => "contacts",
                };
                lines.push(("login", format!("{what} {address}")));
            }
            lines
        }
    }
}
