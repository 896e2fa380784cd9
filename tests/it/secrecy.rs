//! What is a secret in an entry stays inside, wherever it stands and whatever it is called.

use std::fs;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::bundles::packed;
use crate::stories;
use crate::support::{Host, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("secrecy":
        addresses_keep_their_secrets, what_a_bundle_declares, what_a_list_declares, what_another_program_declares,
        nobody_hides_what_runs,
    )
}

/// What the binary prints in a terminal command, errors too.
fn said(env: &TestEnv, args: &[&str]) -> String {
    let output = env.command().args(args).output().expect("the binary runs");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Everything that is told of an entry, to a host and in a terminal.
#[track_caller]
fn check_hidden(env: &TestEnv, server: &str, secrets: &[&str]) {
    let host = Host::start(env);
    let mut told = Vec::new();
    for (method, params) in [
        ("mcp.config", json!({})),
        ("mcp.status", json!({})),
        ("mcp.pending", json!({})),
        ("mcp.doctor", json!({})),
        ("mcp.debug", json!({ "server": server })),
        ("mcp.start", json!({ "server": server })),
        ("mcp.logs", json!({ "server": server })),
        ("mcp.auth", json!({ "server": server, "action": "start" })),
        ("mcp.auth.list", json!({})),
        ("mcp.trust", json!({})),
        (
            "mcp.edit",
            json!({ "server": server, "set": { "timeoutMs": 5000 }, "dryRun": true }),
        ),
    ] {
        let _ = host.ask(method, params);
    }
    for format in [
        "store",
        "list",
        "mcpServers",
        "vscode",
        "zed",
        "codex",
        "goose",
        "continue",
        "gemini",
    ] {
        for secrets in ["reference", "mask"] {
            let _ = host.ask("mcp.export", json!({ "format": format, "secrets": secrets }));
        }
    }
    for client in ["cursor", "vscode", "gemini"] {
        let _ = host.ask("mcp.sync", json!({ "client": client, "dryRun": true }));
    }
    told.extend(host.messages().iter().map(|one| one.text.clone()));
    told.push(host.stderr());
    drop(host);
    for args in [
        ["config", "--json"],
        ["config", server],
        ["status", "--json"],
        ["status", server],
        ["debug", server],
        ["test", server],
        ["auth", server],
        ["export", "--json"],
    ] {
        told.push(said(env, &args));
    }
    told.push(fs::read_to_string(env.data().join("audit.jsonl")).unwrap_or_default());
    for text in &told {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    assert!(told.iter().any(|text| text.contains("********")));
}

fn addresses_keep_their_secrets() {
    let env = TestEnv::new();
    fs::write(env.data().join("audit.jsonl"), "").expect("a file");
    // Nothing listens at port 9 of this machine.
    let address = "http://u:pw-1@127.0.0.1:9/x?api_key=pw-2&sig=pw-3&a=b#access_token=pw-4";
    let entries = json!({
        "web": {
            "url": "http://u:pw-1@127.0.0.1:9/mcp?api_key=pw-2",
            "label": address,
            "oauth": {
                "clientId": "c", "redirectUri": "http://127.0.0.1:9/back?token=pw-2", "resource": address, "issuer": address,
                "authorizationEndpoint": address, "tokenEndpoint": address,
                "authorizationParameters": { "login_hint": address, "id_token_hint": "pw-5" },
            },
        },
        "firm": {
            "url": "http://127.0.0.1:9/mcp",
            "oauth": {
                "grant": "enterprise", "tokenEndpoint": address, "clientMetadataUrl": address,
                "enterprise": { "tokenEndpoint": address, "issuer": address, "clientId": "c", "subjectToken": "pw-6" },
            },
        },
        "local": { "command": "/nowhere/x", "source": address,
            "tools": { "overrides": { "a": { "description": address } } } },
    });
    env.write_config(&entries);
    for server in ["web", "firm", "local"] {
        check_hidden(&env, server, &["pw-"]);
    }
    // A project that is not trusted is reviewed.
    let folder = env.project().join(".pillion");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("mcp.json"), json!({ "servers": entries }).to_string()).expect("a file");
    env.write_config(&json!({}));
    check_hidden(&env, "web", &["pw-"]);
}

/// What stands in the user's file.
fn stored(env: &TestEnv, server: &str) -> Value {
    let text = fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    serde_json::from_str::<Value>(&text).expect("JSON")["servers"][server].take()
}

fn what_a_bundle_declares() {
    let env = TestEnv::new();
    let manifest = json!({
        "manifest_version": "0.3", "name": "acme", "version": "1.0.0", "description": "x", "author": { "name": "Acme" },
        "server": { "type": "binary", "entry_point": "run", "mcp_config": {
            "command": "run", "args": ["--team", "${user_config.team}", "--in=${user_config.place}"],
            "env": { "WORKSPACE": "${user_config.place}", "TEAM": "${user_config.team}" } } },
        "user_config": {
            "place": { "type": "string", "title": "Workspace", "sensitive": true, "required": true },
            "team": { "type": "string", "title": "Team", "required": true },
        },
    });
    let file = packed(
        &env.tmp().join("acme.mcpb"),
        &[
            ("manifest.json", 0o644, manifest.to_string().as_bytes()),
            ("run", 0o755, b"#!/bin/sh\nexit 1\n"),
        ],
    );
    let host = Host::start(&env);
    let values = json!({ "place": "hidden-1", "team": "blue" });
    host.must("mcp.import", json!({ "source": file, "values": values }));
    drop(host);
    check_hidden(&env, "acme", &["hidden-1"]);
    assert!(said(&env, &["config", "acme"]).contains("blue"));
    // Whatever is changed beside it, and whoever forgets to say it again.
    let host = Host::start(&env);
    host.must(
        "mcp.edit",
        json!({ "server": "acme", "set": { "args": ["--first", "--team", "blue", "--in=hidden-1"] , "env": { "WORKSPACE": "" } } }),
    );
    host.must("mcp.edit", json!({ "server": "acme", "unset": ["/secrets"] }));
    drop(host);
    let entry = stored(&env, "acme");
    assert_eq!(
        (&entry["env"]["WORKSPACE"], &entry["args"]),
        (
            &json!("hidden-1"),
            &json!(["--first", "--team", "blue", "--in=hidden-1"])
        ),
        "{entry}"
    );
    check_hidden(&env, "acme", &["hidden-1"]);
    let imported = json!({ "servers": { "acme": { "command": "/x", "env": { "WORKSPACE": "hidden-2" } } } });
    let host = Host::start(&env);
    host.must(
        "mcp.import",
        json!({ "text": imported.to_string(), "replace": true }),
    );
    drop(host);
    assert_eq!(stored(&env, "acme")["env"]["WORKSPACE"], "hidden-2");
    check_hidden(&env, "acme", &["hidden-2"]);
}

fn what_a_list_declares() {
    let env = TestEnv::new();
    let described = json!({
        "name": "io.example/notes", "description": "Notes", "version": "1.0.0",
        "packages": [{ "registryType": "npm", "identifier": "@example/notes", "version": "1.0.0", "transport": { "type": "stdio" },
            "packageArguments": [{ "type": "named", "name": "--place", "isSecret": true, "isRequired": true }],
            "environmentVariables": [{ "name": "WORKSPACE", "isSecret": true, "isRequired": true }, { "name": "MODE" }] }],
    });
    let host = Host::start(&env);
    let parsed = host.must("mcp.parse", json!({ "text": described.to_string() }));
    let draft = &parsed["drafts"][0];
    assert!(draft["target"].to_string().contains("@example/notes"), "{draft}");
    // As a host fills it in.
    let mut entry = draft["entry"].clone();
    entry["env"] = json!({ "WORKSPACE": "hidden-1", "MODE": "fast" });
    let text = entry["args"].to_string();
    assert!(text.contains("${input:place}"), "{entry}");
    entry["args"] = serde_json::from_str(&text.replace("${input:place}", "hidden-2")).expect("JSON");
    host.must(
        "mcp.add",
        json!({ "name": "notes", "entry": entry, "start": false }),
    );
    drop(host);
    check_hidden(&env, "notes", &["hidden-1", "hidden-2"]);
    assert!(said(&env, &["config", "notes"]).contains("fast"));
    // Nothing changes that with the server's own words in an export that holds secrets.
    let whole = said(&env, &["export", "--secrets", "include"]);
    let other = TestEnv::new();
    let start = whole.find('{').expect("JSON");
    let end = whole.rfind('}').expect("JSON");
    let file = other.tmp().join("servers.json");
    fs::write(&file, &whole[start..=end]).expect("a file");
    let host = Host::start(&other);
    host.must("mcp.import", json!({ "source": file }));
    drop(host);
    assert_eq!(stored(&other, "notes")["env"]["WORKSPACE"], "hidden-1");
    check_hidden(&other, "notes", &["hidden-1"]);
}

fn what_another_program_declares() {
    let env = TestEnv::new();
    let inputs = json!([
        { "id": "place", "type": "promptString", "description": "Where your notes are", "password": true },
        { "id": "team", "type": "promptString", "description": "Your team", "password": false, "default": "blue" },
        { "id": "mode", "type": "pickString", "description": "How fast", "options": ["slow", "fast"], "default": "fast" },
    ]);
    let servers = json!({ "notes": { "type": "stdio", "command": "notes-server", "args": ["--mode", "${input:mode}"],
        "env": { "WORKSPACE": "${input:place}", "TEAM": "${input:team}" } } });
    let file = env.tmp().join("mcp.json");
    fs::write(&file, json!({ "inputs": inputs, "servers": servers }).to_string()).expect("a file");
    let host = Host::start(&env);
    host.must("mcp.import", json!({ "source": file }));
    drop(host);
    let host = Host::start(&env);
    let text = host.must("mcp.export", json!({ "format": "vscode" }))["text"].take();
    let exported: Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    let by_id = |inputs: &Value, id: &str| {
        let mut inputs = inputs.as_array().cloned().unwrap_or_default().into_iter();
        inputs.find(|input| input["id"] == id)
    };
    for id in ["place", "team", "mode"] {
        assert_eq!(by_id(&exported["inputs"], id), by_id(&inputs, id), "{exported}");
    }
    assert_eq!(exported["servers"]["notes"]["env"], servers["notes"]["env"]);
    // What stands there then was declared a secret.
    host.must(
        "mcp.edit",
        json!({ "server": "notes", "set": { "args": [], "env": { "WORKSPACE": "hidden-1", "TEAM": "blue" } } }),
    );
    drop(host);
    check_hidden(&env, "notes", &["hidden-1"]);
}

fn nobody_hides_what_runs() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let entry = json!({
        "command": "evil-command", "args": ["evil-argument"], "env": { "A": "hidden-1" }, "cwd": "/evil-folder",
        "secrets": ["/command", "/args/0", "/cwd", "/env/A"],
    });
    host.must(
        "mcp.add",
        json!({ "name": "asked", "entry": entry, "gate": true }),
    );
    let pending = host.must("mcp.pending", json!({})).to_string();
    for shown in ["evil-command", "evil-argument", "/evil-folder"] {
        assert!(pending.contains(shown), "{pending}");
    }
    assert!(!pending.contains("hidden-1"), "{pending}");
    let text = json!({ "servers": { "pasted": entry } }).to_string();
    let draft = host.must("mcp.parse", json!({ "text": text }))["drafts"][0]["target"].to_string();
    assert!(
        draft.contains("evil-argument") && draft.contains("evil-command"),
        "{draft}"
    );
    let far = json!({ "url": "https://evil.example/x/y", "secrets": ["/url"] });
    host.must("mcp.add", json!({ "name": "far", "entry": far, "start": false }));
    let config = host.must("mcp.config", json!({})).to_string();
    assert!(config.contains("https://evil.example/********"), "{config}");
}
