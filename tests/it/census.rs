//! What nobody trusted or approved starts no process and opens no connection, whatever is called on it, and no peer gets
//! past the person.
//!
//! Every method of the table is called with parameters made from its schema, and processes and sockets are counted
//! after each: a method that is added is tried by itself.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libtest_mimic::Trial;
use protocol::{Method, Tier};
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, PeerClient, StdioServer, TestEnv, filling};
use crate::trust::write_project;

pub fn stories() -> Vec<Trial> {
    stories!("census": every_method_on_a_hostile_repository, every_method_on_what_waits, every_method_of_a_peer)
}

/// Ways of filling the parameters of a method in: enough for each word of each enumeration and each branch of a union.
const SEEDS: usize = 6;

/// Look something up outside because a person asked them to: a registry, the person's own proxy. What they do with a
/// hostile repository is counted by the story in `hostile`, without a proxy in the way.
const OUTSIDE: [&str; 2] = ["mcp.search", "mcp.doctor"];

/// A port that counts who comes.
fn trap() -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let visits = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&visits);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, visits)
}

/// The sockets that a process has open, by inode.
fn sockets(pid: i32) -> BTreeSet<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    open.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.starts_with("socket:"))
        .collect()
}

/// A repository with everything in it that could make something start.
fn plant(env: &TestEnv, server: &StdioServer, port: u16) {
    let _ = std::fs::remove_dir_all(env.project().join(".pillion"));
    for file in ["mcp.json", "trust.json", "grants.json", "mcp-pending-budget.json"] {
        let _ = std::fs::remove_file(env.data().join(file));
    }
    let mut local = server.entry();
    local["autostart"] = json!(true);
    local["required"] = json!(true);
    local["envFile"] = json!("variables");
    let remote = json!({ "url": format!("http://127.0.0.1:{port}/mcp"), "autostart": true });
    let older = json!({ "url": format!("http://127.0.0.1:{port}/sse"), "transport": "sse", "oauth": { "clientId": "x" } });
    write_project(env, &json!({ "local": local, "remote": remote, "older": older }));
    // What belongs to a person's own file counts for nothing here.
    let file = env.project().join(".pillion/mcp.json");
    let mut whole: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("a file")).expect("JSON");
    whole["switches"] = json!([{ "layer": "project", "name": "local", "enabled": true }]);
    whole["approved"] = json!({ "local": "x" });
    whole["trusted"] = json!(true);
    std::fs::write(&file, whole.to_string()).expect("a file");
    let package = env.project().join(".pillion/packages/p");
    std::fs::create_dir_all(&package).expect("a folder");
    let packed = json!({ "servers": { "packed": local } });
    std::fs::write(package.join("mcp.json"), packed.to_string()).expect("a file");
    std::fs::write(env.project().join("variables"), "A=1\n").expect("a file");
}

fn every_method_on_a_hostile_repository() {
    let mut env = TestEnv::new();
    let server = env.plain_server("evil", json!({}));
    let (port, visits) = trap();
    // Whoever went anywhere else would come by here.
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        env.set(variable, &format!("http://127.0.0.1:{port}"));
    }
    plant(&env, &server, port);
    let names = ["local", "remote", "older", "packed"];
    let initialization = json!({
        "start": "eager", "toolApproval": "ask",
        "capabilities": { "questions": true, "urlQuestions": true, "openUrl": true, "sampling": true, "roots": true },
    });
    let host = Host::start_with(
        &env,
        HostOptions {
            initialization,
            ..Default::default()
        },
    );
    host.must("mcp.status", json!({}));
    let (processes, open) = (env.processes(), sockets(host.pid));
    let mut token = 0;
    let mut tried = 0;
    for method in Method::ALL {
        if OUTSIDE.contains(&method.name()) {
            continue;
        }
        let schema = protocol::schema::params_schema(*method);
        for seed in 0..SEEDS {
            for full in [false, true] {
                let name = names[seed % names.len()];
                token += 1;
                let unique = format!("{token}");
                let meaning = |member: &str| meaning(member, name, seed, host.directory(), &unique);
                let params = filling::fill(&schema, full, seed, &meaning);
                let pending = host.send(method.name(), params.clone());
                let answer = pending
                    .wait_within(Duration::from_secs(30))
                    .unwrap_or_else(|| panic!("{method} is not answered: {params}"));
                tried += usize::from(answer.is_ok());
            }
        }
        let status = host.must("mcp.status", json!({}));
        for record in status["servers"].as_array().into_iter().flatten() {
            // An entry that a person put in the place of one of them is theirs.
            let command = record["command"].as_str().unwrap_or_default();
            let is_hostile = command.contains("evil") || command.contains(&port.to_string());
            assert!(
                !is_hostile || record["state"] == "needs_trust",
                "{method}: {record}"
            );
        }
        assert_eq!(server.log.starts().len(), 0, "{method}");
        assert_eq!(visits.load(Ordering::Relaxed), 0, "{method}");
        assert_eq!(env.processes(), processes, "{method}");
        let more: Vec<String> = sockets(host.pid).difference(&open).cloned().collect();
        assert!(more.is_empty(), "{method} opened {more:?}");
        plant(&env, &server, port);
        host.must("mcp.reload", json!({}));
    }
    // The parameters are such that most of it is carried out rather than refused as unreadable.
    assert!(tried > 100, "{tried} requests were carried out");
    assert!(env.opened().is_empty());
}

/// Requests of others, of every kind of server; one replaces what a person had.
fn ask(env: &TestEnv, host: &Host, server: &StdioServer, port: u16) {
    let _ = std::fs::remove_dir_all(env.project().join(".pillion"));
    for file in ["trust.json", "mcp-pending-budget.json"] {
        let _ = std::fs::remove_file(env.data().join(file));
    }
    env.write_config(&json!({ "older": { "command": server.command, "enabled": false } }));
    host.must("mcp.reload", json!({}));
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    for (name, scope, entry) in [
        (
            "local",
            "user",
            json!({ "command": server.command, "autostart": true }),
        ),
        ("remote", "user", json!({ "url": url("mcp"), "autostart": true })),
        (
            "older",
            "user",
            json!({ "url": url("sse"), "transport": "sse", "oauth": { "clientId": "x" } }),
        ),
        (
            "packed",
            "project",
            json!({ "command": server.command, "required": true }),
        ),
    ] {
        let params = json!({ "name": name, "entry": entry, "scope": scope, "gate": true, "replace": true });
        host.must("mcp.add", params);
    }
}

/// What waits for a person waits, whatever their own host calls; only the decision itself is left out.
fn every_method_on_what_waits() {
    let mut env = TestEnv::new();
    let server = env.plain_server("evil", json!({}));
    let (port, visits) = trap();
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        env.set(variable, &format!("http://127.0.0.1:{port}"));
    }
    let host = Host::start(&env);
    let names = ["local", "remote", "older", "packed"];
    ask(&env, &host, &server, port);
    let open = sockets(host.pid);
    let mut token = 0;
    for method in Method::ALL {
        if OUTSIDE.contains(&method.name()) {
            continue;
        }
        let schema = protocol::schema::params_schema(*method);
        for seed in 0..SEEDS {
            for full in [false, true] {
                token += 1;
                let unique = format!("{token}");
                let name = names[seed % names.len()];
                let meaning = |member: &str| meaning(member, name, seed, host.directory(), &unique);
                let params = filling::fill(&schema, full, seed, &meaning);
                let pending = host.send(method.name(), params.clone());
                // An error is an answer too.
                let _ = pending
                    .wait_within(Duration::from_secs(30))
                    .unwrap_or_else(|| panic!("{method} is not answered: {params}"));
            }
        }
        let status = host.must("mcp.status", json!({}));
        for record in status["servers"].as_array().into_iter().flatten() {
            let command = record["command"].as_str().unwrap_or_default();
            // The person's own switch brings back what was replaced; what was asked for shows nowhere.
            assert!(!command.contains(&port.to_string()), "{method}: {record}");
        }
        assert_eq!(server.log.starts().len(), 0, "{method}");
        assert_eq!(visits.load(Ordering::Relaxed), 0, "{method}");
        let more: Vec<String> = sockets(host.pid).difference(&open).cloned().collect();
        assert!(more.is_empty(), "{method} opened {more:?}");
        ask(&env, &host, &server, port);
    }
    assert!(env.opened().is_empty());
}

/// A peer may ask, and changes nothing: what is configured, trusted, remembered and decided stays as it is.
fn every_method_of_a_peer() {
    // A read-only peer has few methods, and a full one carries most of its own out.
    for (tier, of, least) in [("full", Tier::Full, 60), ("readOnly", Tier::ReadOnly, 20)] {
        let (open, closed): (Vec<&Method>, Vec<&Method>) =
            Method::ALL.iter().partition(|method| method.allows(of));
        let answered: usize = open.chunks(1).map(|one| peer_asks(one, tier, SEEDS)).sum();
        let refused: usize = closed.chunks(40).map(|some| peer_asks(some, tier, 1)).sum();
        assert_eq!(refused, 0, "{tier}");
        assert!(answered > least, "{tier}: {answered}");
    }
}

/// How many of a peer's requests of some methods were carried out. With a host of its own: requests per second are
/// bounded.
fn peer_asks(methods: &[&Method], tier: &str, seeds: usize) -> usize {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let (port, visits) = trap();
    let (host, ..) = crate::peers::start(&env);
    ask(&env, &host, &server, port);
    let mine = json!({ "name": "mine", "entry": server.entry(), "start": false });
    host.must("mcp.add", mine);
    // All that counts, and what was asked.
    let standing = || {
        let read = |file: std::path::PathBuf| std::fs::read_to_string(file).unwrap_or_default();
        let mut user: Value = serde_json::from_str(&read(env.data().join("mcp.json"))).expect("JSON");
        let asked = user.as_object_mut().expect("an object").remove("pending");
        let files = [
            env.data().join("trust.json"),
            env.data().join("grants.json"),
            env.project().join(".pillion/mcp.json"),
        ];
        ((user, files.map(read)), asked)
    };
    let before = standing();
    let reviews = host.must("mcp.pending", json!({}))["reviews"].clone();
    let peer = PeerClient::by_post(&env, tier);
    let names = ["local", "remote", "older", "packed", "mine"];
    let mut answered = 0;
    let tries = methods
        .iter()
        .flat_map(|method| (0..seeds).map(move |seed| (method, seed)));
    for (method, seed) in tries {
        let schema = protocol::schema::params_schema(**method);
        for full in [false, true] {
            let name = names[seed % names.len()];
            // A decision names what is shown now.
            let mut shown = reviews.as_array().into_iter().flatten();
            let shown = shown.find(|review| review["server"] == name);
            let meaning = |member: &str| match member {
                "revision" => shown.map(|review| review["revision"].clone()),
                "entry" => Some(json!({ "command": server.command, "args": ["--wanted"] })),
                "set" => Some(json!({ "enabled": true })),
                "replace" => Some(json!(true)),
                _ => meaning(member, name, seed, host.directory(), "host's"),
            };
            let params = filling::fill(&schema, full, seed, &meaning);
            answered += usize::from(peer.ask(method.name(), &params).is_ok());
        }
    }
    let after = standing();
    assert_eq!(after.0, before.0, "{tier} {methods:?}");
    if tier == "readOnly" {
        assert_eq!(after.1, before.1, "{methods:?}");
    }
    assert_eq!(visits.load(Ordering::Relaxed), 0, "{tier} {methods:?}");
    // Nor does it speak in the host's name: progress would come there.
    assert!(host.notifications("$/progress").is_empty(), "{tier} {methods:?}");
    answered
}

/// Values that lead to the hostile servers.
fn meaning(member: &str, name: &str, seed: usize, directory: &str, unique: &str) -> Option<Value> {
    Some(match member {
        "directory" => json!(directory),
        "server" => json!(name),
        "servers" | "names" => json!([name]),
        "name" => json!([name.to_owned(), "echo".to_owned(), format!("mcp__{name}__echo")][seed % 3]),
        "uri" | "uriTemplate" => json!("x://y"),
        "text" => json!(format!("@{name}:x /{name}:y {{\"mcpServers\":{{}}}}")),
        "prefix" | "query" => json!(name),
        "workDoneToken" | "call" => json!(unique),
        "timeoutMs" => json!(1000),
        "waitMs" => json!(0),
        // A person may add and try what they like: here it is nothing that exists.
        "entry" => json!({ "command": "/nonexistent/program" }),
        "set" => json!({ "label": "Other", "autostart": true }),
        "unset" => json!(["/envFile"]),
        "redirect" => json!("http://127.0.0.1/callback?code=c&state=s"),
        _ => return None,
    })
}
