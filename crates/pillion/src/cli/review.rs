//! A review as text: what would run or be reached, whole, and what a person should know before saying yes.

use std::fmt::Write as _;

use protocol::{Review, ReviewReason, Target};

use super::terminal::{Paint, harmless, one_line};

/// The review, line by line.
pub fn text(review: &Review, paint: Paint) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "  {:<12} {}", format!("{label}:"), harmless(value));
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
    if let Some(before) = &review.before {
        for (label, value) in target(before) {
            line(&format!("- {label}"), &value);
        }
    }
    let mark = if review.before.is_some() { "+ " } else { "" };
    for (label, value) in target(&review.target) {
        line(&format!("{mark}{label}"), &value);
    }
    if !review.reads.is_empty() {
        line("reads", &review.reads.join(", "));
    }
    if !review.keeps.is_empty() {
        let keeps: Vec<&str> = review.keeps.iter().map(|pointer| &**pointer).collect();
        line("is given", &format!("stored secrets: {}", keeps.join(", ")));
    }
    for relaxed in &review.relaxes {
        line("loosens", relaxed);
    }
    if !review.enabled {
        line("enabled", "no");
    }
    // Trust is in a project as a whole, under a revision of its own.
    if review.why == ReviewReason::Request {
        line("revision", &review.revision);
    }
    for warning in &review.warnings {
        let _ = writeln!(text, "  {} {}", paint.yellow("warning:"), harmless(warning));
    }
    format!("{}\n{text}", paint.bold(&one_line(&review.server)))
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
            lines
        }
    }
}
