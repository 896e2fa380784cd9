//! What a person is shown before saying yes, when the one who asks would rather not have it seen.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};
use crate::trust::{trust, write_project};

pub fn stories() -> Vec<Trial> {
    stories!("reviews":
        nothing_hides_behind_the_name_of_a_secret, secrets_of_arguments_are_masked, files_of_the_project_are_named,
        a_value_is_one_line, what_nobody_sees_is_told, a_host_is_named_as_it_is_reached,
    )
}

/// What trust in a project with this entry would be asked about, and the same in the terminal.
fn asked(env: &TestEnv, entry: &Value) -> (Value, String) {
    write_project(env, &json!({ "srv": entry }));
    let review = Host::start(env).must("mcp.trust", json!({}))["reviews"][0].clone();
    let output = env.command().arg("trust").output().expect("it runs");
    (review, String::from_utf8(output.stdout).expect("text"))
}

fn nothing_hides_behind_the_name_of_a_secret() {
    let env = TestEnv::new();
    let marker = env.tmp().join("marker");
    let marker = marker.display();
    for (command, args) in [
        ("bash", json!(["-c", format!("API_TOKEN=x; touch {marker}")])),
        ("sh", json!(["-c", format!(": \"token\": \"$(touch {marker})\"")])),
        ("env", json!(["-S", format!("AUTH_TOKEN=x touch {marker}")])),
        ("env", json!(["--token", format!("touch {marker}")])),
        ("git", json!(["-c", format!("credential.helper={marker}")])),
        ("x", json!(["--password-command", "./evil"])),
    ] {
        let (review, text) = asked(&env, &json!({ "command": command, "args": args }));
        assert_eq!(review["target"]["argv"], args, "{review}");
        assert!(text.contains(&args.to_string()), "{text}");
    }
    let line = format!("env -S 'AUTH_TOKEN=x touch {marker}'");
    let program = format!("env -S AUTH_TOKEN=x touch {marker}");
    for entry in [
        json!({ "command": "x", "env": { "A": format!("${{cmd:{line}}}") } }),
        json!({ "url": "https://h.example/mcp", "headersHelper": ["env", "-S", format!("AUTH_TOKEN=x touch {marker}")] }),
    ] {
        let (review, text) = asked(&env, &entry);
        assert!(review["warnings"].to_string().contains(&program), "{review}");
        assert!(text.contains(&program), "{text}");
    }
}

/// What a secret is, and can be nothing else, is still not shown.
fn secrets_of_arguments_are_masked() {
    let env = TestEnv::new();
    let entry = json!({
        "command": "npx",
        "args": ["-y", "pkg", "--token=tk-1", "--api-key", "k$2&3", "DB_PASSWORD=pw-4", "https://u:pw-5@h.example/?api_key=k-6"],
    });
    let (review, text) = asked(&env, &entry);
    let shown = "********";
    let address = "https://u:********@h.example/?api_key=********";
    assert_eq!(
        review["target"]["argv"],
        json!([
            "-y",
            "pkg",
            "--token=********",
            "--api-key",
            shown,
            "DB_PASSWORD=********",
            address
        ])
    );
    for secret in ["tk-1", "k$2", "pw-4", "pw-5", "k-6"] {
        assert!(
            !text.contains(secret) && !review.to_string().contains(secret),
            "{text}"
        );
    }
}

fn files_of_the_project_are_named() {
    let env = TestEnv::new();
    let root = env.project();
    std::fs::create_dir_all(root.join("scripts")).expect("a folder");
    for file in ["server.js", "scripts/run.sh", "README"] {
        std::fs::write(root.join(file), "").expect("a file");
    }
    let absolute = root.join("scripts/run.sh");
    let absolute = absolute.to_str().expect("text");
    for (entry, named) in [
        (
            json!({ "command": "node", "args": ["server.js"] }),
            Some("server.js"),
        ),
        (json!({ "command": "node", "args": ["."] }), Some(".")),
        (
            json!({ "command": "python3", "args": ["-u", "later.py"] }),
            Some("later.py"),
        ),
        (json!({ "command": "scripts/run.sh" }), Some("scripts/run.sh")),
        (json!({ "command": absolute }), Some(absolute)),
        (
            json!({ "command": "node", "args": ["--require=./hook.cjs", "/opt/x.js"] }),
            Some("./hook.cjs"),
        ),
        (
            json!({ "command": "node", "args": ["run.sh"], "cwd": "scripts" }),
            Some("run.sh"),
        ),
        (
            json!({ "url": "https://h.example/mcp", "headersHelper": ["sh", "scripts/run.sh"] }),
            Some("scripts/run.sh"),
        ),
        (
            json!({ "command": "x", "env": { "A": "${cmd:node server.js}" } }),
            Some("server.js"),
        ),
        (
            json!({ "command": "npx", "args": ["-y", "@scope/server", "."] }),
            None,
        ),
        (
            json!({ "command": "uvx", "args": ["pkg", "--mode", "fast", "https://h.example/a.js"] }),
            None,
        ),
        (
            json!({ "command": "/usr/bin/server", "args": ["/etc/x.js"] }),
            None,
        ),
    ] {
        let (review, text) = asked(&env, &entry);
        let expected = named
            .map(|file| format!("`{file}` is a file of the project: what it does changes with the project"));
        let warnings = review["warnings"].as_array().expect("a list");
        let found = warnings
            .iter()
            .filter_map(Value::as_str)
            .find(|warning| warning.contains("file of the project"));
        assert_eq!(found, expected.as_deref(), "{entry}");
        assert_eq!(text.contains("file of the project"), named.is_some(), "{text}");
    }
}

/// No value makes a line that looks like one of ours.
fn a_value_is_one_line() {
    let env = TestEnv::new();
    for entry in [
        json!({ "command": "a\n  arguments:   []\n  folder:      /", "args": ["x\ny"] }),
        json!({ "command": "a", "cwd": "x\n  command:     b" }),
        json!({ "command": "a", "env": { "A": "${cmd:touch 'x\n  warning: none'}" } }),
        json!({ "command": "a\u{2028}  command:     b" }),
    ] {
        let (_, text) = asked(&env, &entry);
        for label in ["  command:", "  arguments:", "  folder:"] {
            let lines = text.lines().filter(|line| line.starts_with(label)).count();
            assert_eq!(lines, 1, "{text}");
        }
        assert!(
            !text
                .lines()
                .any(|line| line.contains("warning: none") && line.starts_with("  warning: none")),
            "{text}"
        );
        assert!(!text.contains('\u{2028}'), "{text}");
    }
}

fn what_nobody_sees_is_told() {
    let env = TestEnv::new();
    let (review, text) = asked(&env, &json!({ "command": "no\u{200b}de", "args": ["a\u{ad}b"] }));
    assert_eq!(
        review["warnings"],
        json!([
            "`command` holds characters that nobody sees (U+200B)",
            "`args` holds characters that nobody sees (U+00AD)",
        ])
    );
    assert!(
        text.contains("no\\u{200b}de") && text.contains("a\\u{ad}b"),
        "{text}"
    );
}

fn a_host_is_named_as_it_is_reached() {
    let env = TestEnv::new();
    // The second letter is Cyrillic.
    let (review, _) = asked(&env, &json!({ "url": "https://g\u{43e}od.example/mcp" }));
    assert_eq!(
        review["warnings"],
        json!(["the host of the address is `xn--god-sed.example`"])
    );
    let (review, _) = asked(&env, &json!({ "url": "https://Good.example/mcp" }));
    assert_eq!(review["warnings"], json!([]));
    let host = Host::start(&env);
    trust(&host);
}
