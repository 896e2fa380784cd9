//! What a person is shown before saying yes, when the one who asks would rather not have it seen.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};
use crate::trust::{trust, write_project};

pub fn stories() -> Vec<Trial> {
    stories!("reviews":
        nothing_hides_behind_the_name_of_a_secret, secrets_of_arguments_are_masked, files_of_the_project_are_named,
        a_value_is_one_line, what_nobody_sees_is_told, a_host_is_named_as_it_is_reached, a_guard_that_goes_away_is_told,
        a_guard_of_a_project_is_trusted_with_it, an_entry_that_hides_another_is_told, every_address_of_a_login_is_shown, code_of_the_projects_folder_is_told,
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

/// What the person put in the way of a server does not go with a request for another label.
fn a_guard_that_goes_away_is_told() {
    let env = TestEnv::new();
    let guarded = json!({
        "command": "x", "elicitation": false, "parallel": false,
        "tools": { "deny": ["delete_*", "drop"], "ask": ["*"], "allow": ["read*", "delete_*"] },
        "inputs": { "q": { "description": "Which one?" } }
    });
    let remote =
        json!({ "url": "https://h.example/mcp", "oauth": { "issuer": "https://h.example", "dpop": true } });
    env.write_config(
        &json!({ "gd": guarded, "far": remote, "none": { "url": "https://h.example/mcp", "oauth": false } }),
    );
    let (host, peer, _) = crate::peers::start(&env);
    let asked = |name: &str, set: Value, unset: Value| {
        let body = json!({ "servers": { name: { "set": set, "unset": unset } } });
        let (status, answer) = peer.send("PATCH", "/config", &[], &body.to_string());
        assert_eq!(status, 202, "{answer}");
        let pending = host.must("mcp.pending", json!({}))["reviews"].clone();
        let found = pending
            .as_array()
            .into_iter()
            .flatten()
            .find(|review| review["server"] == name);
        let review = found.cloned().expect("a review");
        let text = env.command().args(["approve"]).output().expect("it runs");
        let decision = json!({ "server": name, "revision": review["revision"], "decision": "reject" });
        host.must("mcp.decide", decision);
        host.must("mcp.enable", json!({ "server": name, "enabled": true }));
        (review, String::from_utf8(text.stdout).expect("text"))
    };
    let (review, text) = asked(
        "gd",
        json!({ "label": "GD", "tools": { "deny": ["drop"], "ask": [] }, "inputs": { "q": { "description": "Password?", "secret": false } } }),
        json!(["/elicitation", "/parallel", "/tools/allow", "/tools/ask"]),
    );
    let told = [
        "tools.deny: `delete_*` is not kept away any more",
        "tools.ask: nobody is asked before `*` any more",
        "tools.allow: every tool is allowed",
        "elicitation: the server may ask you questions",
        "parallel: the server gets several calls at a time",
        "inputs: what is typed for `q` may be seen",
    ];
    assert_eq!(review["relaxes"], json!(told), "{review}");
    for line in told {
        assert!(text.contains(&format!("  loosens:     {line}\n")), "{text}");
    }
    for member in [
        "/label",
        "/tools/deny",
        "/tools/ask",
        "/tools/allow",
        "/elicitation",
        "/parallel",
        "/inputs",
    ] {
        let changed = review["changed"].as_array().expect("a list");
        assert!(changed.contains(&json!(member)), "{member}: {review}");
    }
    assert!(
        text.contains("tools that are kept away") && text.contains("label"),
        "{text}"
    );
    let (review, _) = asked(
        "gd",
        json!({ "tools": { "allow": ["read*", "delete_*", "write"] } }),
        json!([]),
    );
    assert_eq!(review["relaxes"], json!(["tools.allow: `write` is allowed, too"]));
    // What guards more, or has nothing to do with it, loosens nothing.
    let set =
        json!({ "timeoutMs": 5000, "tools": { "deny": ["delete_*", "drop", "x"], "allow": ["read*"] } });
    let (review, text) = asked("gd", set, json!([]));
    assert_eq!(review["relaxes"], json!([]), "{review}");
    assert!(!text.contains("loosens") && !text.contains("timeoutMs"), "{text}");
    let (review, _) = asked("far", json!({ "label": "F" }), json!(["/oauth"]));
    assert_eq!(
        review["relaxes"],
        json!([
            "oauth.issuer: the client is shown to whichever authorization server is named",
            "oauth.dpop: tokens are not bound to a key"
        ])
    );
    let (review, _) = asked("none", json!({ "label": "N" }), json!(["/oauth"]));
    assert_eq!(
        review["relaxes"],
        json!(["oauth: the server may ask for a login"])
    );
}

/// A pull that takes a guard away, or changes what a person would be asked for, is asked about again.
fn a_guard_of_a_project_is_trusted_with_it() {
    let env = TestEnv::new();
    let entry = json!({
        "command": "x", "args": ["${input:q}"],
        "tools": { "deny": ["delete_*"], "ask": ["*"] }, "inputs": { "q": { "description": "Which one?" } }
    });
    write_project(&env, &json!({ "srv": entry }));
    let host = Host::start(&env);
    trust(&host);
    for (member, value) in [
        ("/tools/deny", json!([])),
        ("/tools/ask", json!(["read"])),
        ("/inputs/q/description", json!("Your GitHub password?")),
    ] {
        let mut changed = entry.clone();
        *changed.pointer_mut(member).expect("a member") = value;
        write_project(&env, &json!({ "srv": changed }));
        let review = host.must("mcp.trust", json!({}));
        assert_eq!(review["state"], "changed", "{member}");
        let named = review["reviews"][0]["changed"][0].as_str().expect("a member");
        assert!(member.starts_with(named), "{member}: {review}");
    }
    // What nobody is asked about counts for nothing in a project.
    let mut changed = entry.clone();
    changed["tools"]["auto"] = json!(["*"]);
    write_project(&env, &json!({ "srv": changed }));
    assert_eq!(host.must("mcp.trust", json!({}))["state"], "trusted");
}

/// A guard goes away, too, with another entry under its name.
fn an_entry_that_hides_another_is_told() {
    let env = TestEnv::new();
    env.write_config(&json!({
        "gd": { "command": "x", "tools": { "deny": ["a"], "ask": ["*"] } }, "plain": { "command": "x" }
    }));
    let package = env.data().join("packages/pack");
    std::fs::create_dir_all(&package).expect("a folder");
    let text = json!({ "servers": { "gd": { "command": "y" } } }).to_string();
    std::fs::write(package.join("mcp.json"), text).expect("a file");
    write_project(
        &env,
        &json!({ "gd": { "command": "z", "tools": { "ask": ["*"] } }, "other": { "command": "z" } }),
    );
    let (host, peer, _) = crate::peers::start(&env);
    let warnings = |reviews: &Value, name: &str| {
        let mut reviews = reviews.as_array().into_iter().flatten();
        let review = reviews.find(|review| review["server"] == name).expect("a review");
        review["warnings"].clone()
    };
    let reviews = host.must("mcp.trust", json!({}))["reviews"].clone();
    let hidden = "the server of this name in the layer `user` is hidden by it";
    assert_eq!(
        warnings(&reviews, "gd"),
        json!([format!("{hidden}, and guards go away: tools.deny")])
    );
    assert_eq!(warnings(&reviews, "other"), json!([]));
    let shown = env.command().arg("trust").output().expect("it runs");
    assert!(String::from_utf8_lossy(&shown.stdout).contains(hidden));
    // The same asked for by a peer, and by taking the entry away.
    let add = json!({ "name": "plain", "scope": "project", "entry": { "command": "z" }, "gate": true });
    host.must("mcp.add", add);
    let body = json!({ "servers": { "gd": { "remove": true } } }).to_string();
    assert_eq!(peer.send("PATCH", "/config", &[], &body).0, 202);
    let reviews = host.must("mcp.pending", json!({}))["reviews"].clone();
    assert_eq!(warnings(&reviews, "plain"), json!([hidden]));
    assert_eq!(
        warnings(&reviews, "gd"),
        json!([
            "the entry would be removed",
            "the server of this name in the layer `userPackage` takes its place, and guards go away: tools.ask, tools.deny"
        ])
    );
}

/// The addresses that get the secrets of a login are all there, and those elsewhere are warned of.
fn every_address_of_a_login_is_shown() {
    let env = TestEnv::new();
    let entry = json!({
        "url": "https://good.example/mcp",
        "oauth": {
            "grant": "enterprise", "clientId": "c", "clientSecret": "${GITHUB_TOKEN}",
            "issuer": "https://good.example", "authorizationEndpoint": "https://a.example/a",
            "tokenEndpoint": "https://t.example/t?api_key=k-1", "redirectUri": "https://r.example/back",
            "enterprise": { "tokenEndpoint": "https://\u{435}vil.example/t", "clientId": "e", "subjectToken": "${cmd:gcloud auth print-identity-token}" }
        }
    });
    let (review, text) = asked(&env, &entry);
    assert_eq!(
        review["target"]["loginAddresses"],
        json!({
            "issuer": "https://good.example",
            "authorizationEndpoint": "https://a.example/a",
            "tokenEndpoint": "https://t.example/t?api_key=********",
            "redirectUri": "https://r.example/back",
            "enterprise.tokenEndpoint": "https://\u{435}vil.example/t",
        }),
        "{review}"
    );
    for line in [
        "login:       is given by https://good.example",
        "login:       takes place at https://a.example/a",
        "login:       gets its tokens from https://t.example/t?api_key=********",
        "login:       is answered to https://r.example/back",
        "login:       proves who you are with https://\u{435}vil.example/t",
        "warning: you would log in at `a.example`, which is not the host of the address",
        "warning: its tokens come from, and its secrets go to, `t.example`, which is not the host of the address",
        "warning: the answer to a login goes to `r.example`, which is not the host of the address",
        "warning: your identity is proven to, and its secrets go to, `xn--vil-qdd.example`, which is not the host of the address",
    ] {
        assert!(text.contains(&format!("  {line}\n")), "{line} in {text}");
    }
    assert!(
        !text.contains("`good.example`, which") && !text.contains("k-1"),
        "{text}"
    );
    // A way back to this machine is nobody's address; what a reference decides is nobody's host.
    let entry = json!({
        "url": "https://good.example/mcp",
        "oauth": { "clientId": "c", "redirectUri": "http://127.0.0.1:7777/back", "issuer": "${ISSUER}" }
    });
    let (review, text) = asked(&env, &entry);
    assert_eq!(
        review["target"]["loginAddresses"],
        json!({ "issuer": "${ISSUER}" })
    );
    assert!(text.contains("warning: the login trusts `${ISSUER}`"), "{text}");
    let (review, _) = asked(&env, &json!({ "url": "https://good.example/mcp" }));
    assert_eq!(review["target"].get("loginAddresses"), None);
    // Another address is another login.
    let host = Host::start(&env);
    trust(&host);
    let mut moved = entry.clone();
    moved["url"] = json!("https://good.example/mcp");
    moved["oauth"]["issuer"] = json!("https://evil.example");
    write_project(&env, &json!({ "srv": moved }));
    let review = host.must("mcp.trust", json!({}))["reviews"][0].clone();
    assert_eq!(
        review["target"]["loginAddresses"]["issuer"],
        "https://evil.example"
    );
    assert_eq!(review["changed"], json!(["/oauth"]));
}

/// Runners look into the folder they start in before they look anywhere else.
fn code_of_the_projects_folder_is_told() {
    let env = TestEnv::new();
    for (entry, named) in [
        (json!({ "command": "npx", "args": ["-y", "good@1"] }), Some("npx")),
        (
            json!({ "command": "/usr/bin/npm", "args": ["exec", "good"] }),
            Some("npm"),
        ),
        (
            json!({ "command": "bunx", "args": ["good"], "cwd": "sub" }),
            Some("bunx"),
        ),
        (
            json!({ "command": "uvx", "args": ["--from", "./pkg", "good"] }),
            Some("uvx"),
        ),
        (json!({ "command": "uv", "args": ["run", "good"] }), Some("uv")),
        (
            json!({ "command": "python3.12", "args": ["-u", "-m", "good"] }),
            Some("python"),
        ),
        (
            json!({ "command": "node", "args": ["--require=good", "/opt/x.js"] }),
            Some("node"),
        ),
        (
            json!({ "command": "node", "args": ["-e", "require('good')"] }),
            Some("node"),
        ),
        (
            json!({ "command": "env", "args": ["A=1", "npx", "good"] }),
            Some("npx"),
        ),
        (
            json!({ "command": "cmd", "args": ["/c", "npx", "good"] }),
            Some("npx"),
        ),
        (
            json!({ "url": "https://h.example/mcp", "headersHelper": ["npx", "good"] }),
            Some("npx"),
        ),
        (
            json!({ "command": "/opt/x", "env": { "A": "${cmd:python -m good}" } }),
            Some("python"),
        ),
        (
            json!({ "command": "npx", "args": ["-y", "good"], "cwd": "/" }),
            None,
        ),
        (
            json!({ "command": "npx", "args": ["-y", "good"], "cwd": "~/x" }),
            None,
        ),
        (json!({ "command": "uvx", "args": ["good@1.0"] }), None),
        (
            json!({ "command": "python3", "args": ["-I", "-m", "good"] }),
            None,
        ),
        (json!({ "command": "node", "args": ["/opt/x.js"] }), None),
        (json!({ "command": "docker", "args": ["run", "-i", "img"] }), None),
    ] {
        let (review, text) = asked(&env, &entry);
        let expected = named.map(|runner| {
            format!("`{runner}` takes code from the folder it starts in, which is the project's: what it runs changes with the project")
        });
        let warnings = review["warnings"].as_array().expect("a list");
        let found = warnings
            .iter()
            .filter_map(Value::as_str)
            .find(|warning| warning.contains("takes code"));
        assert_eq!(found, expected.as_deref(), "{entry}");
        assert_eq!(
            text.contains("takes code from the folder"),
            named.is_some(),
            "{text}"
        );
    }
}
