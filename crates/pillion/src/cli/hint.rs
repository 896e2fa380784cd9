//! The manager's hints are written for hosts; here they are put into the words of the command line.

use protocol::Method;

/// What is said otherwise than by naming another command. `SERVER` stands for the server's name.
const PHRASES: [(&str, &str); 16] = [
    (
        "raise `startTimeoutMs` of the entry",
        "allow more with `pillion edit SERVER --timeout SECONDS`",
    ),
    (
        "choose another profile with `mcp.profile`, or name the server in the profile in `mcp.json`",
        "choose another profile with `--profile NAME`, or name the server in the profile in `mcp.json`",
    ),
    (
        "`mcp.lock` with action `update`",
        "`pillion lock SERVER --update`",
    ),
    ("`mcp.lock` with action `write`", "`pillion lock SERVER`"),
    (
        "`mcp.decide` with subject `tools`",
        "`pillion pin SERVER --accept REVISION`",
    ),
    ("`mcp.auth` or `pillion auth`", "`pillion auth SERVER`"),
    ("`mcp.pending`, or `pillion approve`", "`pillion approve`"),
    (
        "`mcp.changed` says when it is; then list again",
        "`pillion test SERVER` shows how far it gets, `pillion logs SERVER` what it says",
    ),
    ("set `replace: true`", "add `--replace`"),
    (
        "write the absolute path as `command`",
        "write its absolute path with `pillion edit SERVER -- PATH ARGS…`",
    ),
    (
        "`mcp.import.detect` finds",
        "`pillion import` without a file finds",
    ),
    ("set `acceptUnverified: true`", "add `--accept-unverified`"),
    (
        "`mcp.enable` switches it off",
        "`pillion disable SERVER` switches it off",
    ),
    ("give these in `args`", "give these as key=value"),
    (
        "raise `timeoutMs` of the call or of the entry",
        "allow more with `--timeout SECONDS`, or for each call with `pillion edit SERVER --timeout SECONDS`",
    ),
    (
        "`maxMessageBytes` in the handshake",
        "`maxMessageBytes` in the settings",
    ),
];

/// The command that does what a method does.
const fn command(method: Method) -> &'static str {
    match method {
        Method::Status | Method::Reload => "pillion status",
        Method::Start | Method::ToolsList | Method::Catalog => "pillion tools SERVER",
        Method::Restart => "pillion restart SERVER",
        Method::Stop => "pillion disable SERVER",
        Method::Logs => "pillion logs SERVER",
        Method::Debug => "pillion debug SERVER",
        Method::Prefetch => "pillion prefetch SERVER",
        Method::Lock => "pillion lock SERVER --check",
        Method::Doctor => "pillion doctor SERVER",
        Method::Add => "pillion add",
        Method::Edit => "pillion edit SERVER",
        Method::Remove => "pillion remove SERVER",
        Method::Enable => "pillion enable SERVER",
        Method::Config => "pillion config SERVER",
        Method::Profile => "pillion config",
        Method::Test => "pillion test SERVER",
        Method::Parse => "pillion add --paste",
        Method::Import | Method::ImportDetect => "pillion import",
        Method::Export => "pillion export",
        Method::Sync => "pillion sync",
        Method::Pending | Method::Decide => "pillion approve",
        Method::Trust => "pillion trust",
        Method::Grants => "pillion grants",
        Method::Gallery => "pillion gallery",
        Method::Search => "pillion search",
        Method::Auth => "pillion auth SERVER",
        Method::AuthList => "pillion auth list",
        Method::ToolsSearch => "pillion search-tools",
        Method::ToolsReview => "pillion pin SERVER",
        Method::ToolCall | Method::CallCancel => "pillion call SERVER",
        Method::ResourcesList | Method::ResourceSubscribe | Method::ResourceUnsubscribe => {
            "pillion resources SERVER"
        }
        Method::ResourceRead => "pillion read SERVER",
        Method::PromptsList | Method::Complete => "pillion prompts SERVER",
        Method::PromptGet => "pillion prompt SERVER",
        Method::MentionsList | Method::PromptExpand => "pillion expand",
        Method::ModelTools | Method::ModelCall => "pillion tools --model",
        // A question is asked where the command runs, and a session is the command itself.
        Method::Questions | Method::Answer | Method::SampleAnswer | Method::SessionEnd => {
            "pillion call SERVER"
        }
    }
}

pub fn typed(hint: &str, server: Option<&str>) -> String {
    let mut hint = hint.to_owned();
    for (host, person) in PHRASES {
        hint = hint.replace(host, person);
    }
    if hint.contains("`mcp.") {
        for method in Method::ALL {
            hint = hint.replace(
                &format!("`{}`", method.name()),
                &format!("`{}`", command(*method)),
            );
        }
    }
    match server {
        Some(server) => hint.replace("SERVER", server),
        None => hint,
    }
}

/// The same for what was tried and is written nowhere: there is no entry to look at or to change.
pub fn tried(hint: &str) -> String {
    let phrases = [
        (
            "the log of the server (`mcp.logs`) says more",
            "run the command in a terminal to see what it says",
        ),
        (
            "`mcp.logs` may say more",
            "run the command in a terminal to see what it says",
        ),
        ("write the absolute path as `command`", "write its absolute path"),
        (
            "log in with `mcp.auth`, or put a token into `headers` of the entry",
            "add it, then log in with `pillion auth`; or give a token with `--header`",
        ),
    ];
    let mut hint = hint.to_owned();
    for (host, person) in phrases {
        hint = hint.replace(host, person);
    }
    typed(&hint, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_to_type() {
        assert_eq!(
            typed("the log of the server (`mcp.logs`) says more", Some("notes")),
            "the log of the server (`pillion logs notes`) says more"
        );
        assert_eq!(typed("see `mcp.tools.list`", None), "see `pillion tools SERVER`");
        assert_eq!(
            typed("choose another name, or set `replace: true`", None),
            "choose another name, or add `--replace`"
        );
        assert_eq!(
            typed("look at `mcp.trust` again and decide again", None),
            "look at `pillion trust` again and decide again"
        );
    }

    #[test]
    fn every_method_has_a_command_that_exists() {
        let cli = <super::super::Cli as clap::CommandFactory>::command();
        for method in Method::ALL.iter().filter(|method| method.available()) {
            let name = command(*method).split(' ').nth(1).expect("a command");
            assert!(cli.find_subcommand(name).is_some(), "{}: {name}", method.name());
        }
    }
}
