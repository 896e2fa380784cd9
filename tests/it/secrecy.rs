//! What is a secret in an entry stays inside, wherever it stands and whatever it is called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::bundles::packed;
use crate::stories;
use crate::support::{Host, HostOptions, HttpHost, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("secrecy":
        addresses_keep_their_secrets, what_a_bundle_declares, what_a_list_declares, what_another_program_declares,
        nobody_hides_what_runs, what_goes_wrong_is_told_as_configured, addresses_of_logins_are_told_as_configured,
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

/// What marks the values that must not come out again.
const MARK: &str = "zqx";

/// Ways to write a value: what stands in the entry, and whether its member is called a secret.
struct Values {
    env: TestEnv,
    count: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Command,
    Variable,
    Marked,
}

impl Values {
    fn new() -> Values {
        let env = TestEnv::new();
        let program = env.bin().join("mark");
        fs::write(&program, format!("#!/bin/sh\necho {MARK}-$1-hidden\n")).expect("a small file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("mode can be set");
        Values { env, count: 0 }
    }

    /// A value, and what is written for it.
    fn next(&mut self, way: Way) -> (String, String) {
        self.count += 1;
        let value = format!("{MARK}-{}-hidden", self.count);
        let written = match way {
            Way::Command => format!("${{cmd:mark {}}}", self.count),
            Way::Variable => {
                self.env.set(&format!("VALUE_{}", self.count), &value);
                format!("${{VALUE_{}}}", self.count)
            }
            Way::Marked => value.clone(),
        };
        (value, written)
    }
}

/// Starts, tries, looks at and logs in to every server, as a host and in a terminal; everything that came out.
fn everything_told(env: &TestEnv, names: &[String]) -> Vec<String> {
    let options = HostOptions {
        args: vec!["--log-level".to_owned(), "trace".to_owned()],
        ..HostOptions::default()
    };
    let host = Host::start_with(env, options);
    for name in names {
        host.must("mcp.logs", json!({ "server": name, "follow": true }));
        for (method, params) in [
            ("mcp.start", json!({ "server": name })),
            ("mcp.test", json!({ "server": name })),
            ("mcp.tool.call", json!({ "server": name, "name": "echo" })),
            ("mcp.debug", json!({ "server": name })),
            ("mcp.auth", json!({ "server": name })),
            (
                "mcp.auth",
                json!({ "server": name, "action": "complete", "redirect": "code" }),
            ),
            ("mcp.auth", json!({ "server": name, "action": "forget" })),
            ("mcp.start", json!({ "server": name })),
            ("mcp.prefetch", json!({ "servers": [name] })),
            ("mcp.logs", json!({ "server": name })),
        ] {
            let _ = host.ask(method, params);
        }
    }
    for method in [
        "mcp.status",
        "mcp.config",
        "mcp.tools.list",
        "mcp.model.tools",
        "mcp.catalog",
        "mcp.doctor",
        "mcp.auth.list",
        "mcp.lock",
    ] {
        let _ = host.ask(method, json!({}));
    }
    let _ = host.ask("mcp.doctor", json!({ "start": true }));
    let mut told: Vec<String> = host.messages().iter().map(|one| one.text.clone()).collect();
    told.push(host.stderr());
    drop(host);
    for name in names {
        for command in ["test", "debug", "auth"] {
            told.push(said(env, &[command, name]));
        }
    }
    told.push(said(env, &["status"]));
    told.push(said(env, &["doctor"]));
    told
}

#[track_caller]
fn check_untold(told: &[String]) {
    for text in told {
        let at = text.find(MARK);
        let around = at.map(|at| {
            let around = text.char_indices().filter(|(index, _)| index.abs_diff(at) < 400);
            around.map(|(_, one)| one).collect::<String>()
        });
        assert_eq!(around, None);
    }
}

fn what_goes_wrong_is_told_as_configured() {
    let mut values = Values::new();
    let closed = "http://127.0.0.1:9";
    let mut entries = serde_json::Map::new();
    for way in [Way::Command, Way::Variable, Way::Marked] {
        // The member that holds the value, and the rest of its entry.
        let table: [(&str, &str, Value); 22] = [
            ("/command", "nope-@", json!({})),
            ("/command", "/nowhere/@/x", json!({})),
            ("/command", "~/@", json!({})),
            ("/cwd", "/nowhere/@", json!({ "command": "true" })),
            ("/envFile", "/nowhere/@", json!({ "command": "true" })),
            ("/args/0", "@", json!({ "command": "/nowhere/x", "args": ["x"] })),
            ("/args/0", "@", json!({ "command": "false", "args": ["x"] })),
            (
                "/env/PATH",
                "/nowhere/@",
                json!({ "command": "no-such-program", "env": {} }),
            ),
            ("/url", &format!("{closed}/www/@"), json!({})),
            ("/url", &format!("{closed}/mcp?k=@"), json!({ "oauth": false })),
            ("/url", "http://[@/x", json!({})),
            ("/headers/x-a", "@\u{7f}", json!({ "url": closed, "headers": {} })),
            ("/tls/ca", "/nowhere/@", json!({ "url": closed, "tls": {} })),
            (
                "/tls/cert",
                "/nowhere/@",
                json!({ "url": closed, "tls": { "key": "/nowhere/k" } }),
            ),
            (
                "/tls/key",
                "/nowhere/@",
                json!({ "url": closed, "tls": { "cert": "/dev/null" } }),
            ),
            (
                "/headersHelper/0",
                "nope-@",
                json!({ "url": closed, "headersHelper": ["x"] }),
            ),
            (
                "/headersHelper/0",
                "/nowhere/@",
                json!({ "url": closed, "headersHelper": ["x"] }),
            ),
            ("/oauth/redirectUri", "@", json!({ "url": closed, "oauth": {} })),
            (
                "/oauth/issuer",
                &format!("{closed}/@"),
                json!({ "url": closed, "oauth": {} }),
            ),
            (
                "/oauth/clientMetadataUrl",
                "@",
                json!({ "url": closed, "oauth": {} }),
            ),
            (
                "/oauth/resource",
                &format!("{closed}/@"),
                json!({ "url": closed, "oauth": {} }),
            ),
            (
                "/oauth/enterprise/tokenEndpoint",
                "@",
                json!({ "url": closed, "oauth": { "grant": "enterprise", "clientId": "c", "enterprise": {
                    "clientId": "c", "subjectToken": "x" } } }),
            ),
        ];
        for (member, text, mut entry) in table {
            // What runs, and where a login goes, cannot be called a secret.
            let may_be_marked = ["/args/", "/env/", "/headers/", "/url"];
            if way == Way::Marked && !may_be_marked.iter().any(|begin| member.starts_with(begin)) {
                continue;
            }
            let (_, written) = values.next(way);
            let (parent, last) = member.rsplit_once('/').expect("a pointer");
            let slot = entry.pointer_mut(parent).expect("the parent");
            let text = Value::from(text.replace('@', &written));
            match slot {
                Value::Array(items) => items[0] = text,
                other => other[last] = text,
            }
            if way == Way::Marked {
                entry["secrets"] = json!([member]);
            }
            entries.insert(format!("s{}", values.count), entry);
        }
    }
    // Variables that a program for a secret is called with.
    values.env.set("VALUE_OF_PROGRAM", &format!("{MARK}-0-hidden"));
    for (name, line) in [
        ("p1", "nope-$VALUE_OF_PROGRAM"),
        ("p2", "/nowhere/${VALUE_OF_PROGRAM:-x}"),
    ] {
        entries.insert(
            name.to_owned(),
            json!({ "command": "true", "args": [format!("${{cmd:{line}}}")] }),
        );
    }
    let names: Vec<String> = entries.keys().cloned().collect();
    values.env.write_config(&Value::Object(entries));
    let host = Host::start(&values.env);
    // They fail, and say so with the text as it is configured.
    for (name, said) in [("s1", "nope-${cmd:mark 1}"), ("s23", "nope-${VALUE_23}")] {
        let record = host.start_server(name);
        let message = record["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(said), "{record}");
    }
    drop(host);
    check_untold(&everything_told(&values.env, &names));
}

/// Addresses are taken apart and put together again on the way to a login.
fn addresses_of_logins_are_told_as_configured() {
    let mut values = Values::new();
    let mut entries = serde_json::Map::new();
    let server = HttpHost::bind();
    let origin = server.origin.clone();
    let mut rules = Vec::new();
    let found = "/.well-known/oauth-protected-resource";
    for way in [Way::Command, Way::Variable, Way::Marked] {
        // What the server does: nothing is said about logins, another resource is named, an issuer that is not there, an
        // error, a redirect.
        for case in 0..6 {
            let (value, written) = values.next(way);
            let path = format!("/www/{value}");
            let answer = match case {
                4 => json!({ "status": 500, "text": "no" }),
                5 => {
                    json!({ "status": 302, "text": "", "headers": { "location": format!("{origin}{path}/on") } })
                }
                _ => json!({ "status": 401, "text": "" }),
            };
            rules.push(json!({ "match": format!("POST {path}"), "respond": answer }));
            let metadata = match case {
                1 => {
                    Some(json!({ "resource": format!("{origin}/other"), "authorization_servers": [origin] }))
                }
                2 => Some(
                    json!({ "resource": format!("{origin}{path}"), "authorization_servers": [format!("{origin}{path}")] }),
                ),
                _ => None,
            };
            if let Some(metadata) = metadata {
                rules.push(json!({ "match": format!("GET {found}{path}"), "respond": { "json": metadata } }));
            }
            let mut entry = json!({ "url": format!("{origin}/www/{written}") });
            if case == 3 && way != Way::Marked {
                entry["oauth"] = json!({
                    "clientId": "c", "issuer": format!("{origin}/as/{written}"),
                    "authorizationEndpoint": format!("{origin}/as/{written}/a"),
                    "tokenEndpoint": format!("{origin}/as/{written}/t"),
                });
            }
            if way == Way::Marked {
                entry["secrets"] = json!(["/url"]);
            }
            entries.insert(format!("s{}", values.count), entry);
        }
    }
    server.serve_rules(&Value::Array(rules), &json!({}));
    let names: Vec<String> = entries.keys().cloned().collect();
    values.env.write_config(&Value::Object(entries));
    let host = Host::start(&values.env);
    for (name, said) in [
        ("s1", "/www/${cmd:mark 1}"),
        ("s7", "/www/${VALUE_7}"),
        ("s13", "********"),
    ] {
        host.start_server(name);
        let refused = host
            .ask("mcp.auth", json!({ "server": name }))
            .expect_err("no metadata");
        assert!(refused.message.contains(said), "{}", refused.message);
        let report = host.must("mcp.debug", json!({ "server": name }));
        assert!(
            report["url"].as_str().unwrap_or_default().ends_with(said),
            "{report}"
        );
    }
    drop(host);
    // The address of a login that is under way is the person's to open.
    let told = everything_told(&values.env, &names);
    check_untold(&told);
}
