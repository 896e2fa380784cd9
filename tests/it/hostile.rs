//! A repository that means harm: its files may be anything, and opening it starts and contacts nothing.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HttpHost, TestEnv};
use crate::trust::{trust, write_project};

pub fn stories() -> Vec<Trial> {
    stories!("hostile":
        opening_a_repository_does_nothing, strange_texts_are_survived, links_lead_nowhere, nothing_is_written_beside_them,
        endless_files_are_not_waited_for, writes_do_not_follow_links, paths_of_a_project_stay_in_it,
        nobody_is_crowded_out, programs_are_not_found_in_a_repository, what_nobody_could_read_is_not_trusted,
    )
}

fn write_raw(env: &TestEnv, text: &str) {
    let folder = env.project().join(".pillion");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("mcp.json"), text).expect("a file");
}

/// Every method on every name, with a census of processes and connections.
fn opening_a_repository_does_nothing() {
    let env = TestEnv::new();
    let server = env.plain_server("evil", json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let visits = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&visits);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut local = server.entry();
    local["autostart"] = json!(true);
    local["required"] = json!(true);
    let remote = json!({ "url": format!("http://127.0.0.1:{port}/mcp"), "autostart": true });
    write_project(&env, &json!({ "local": local, "remote": remote }));
    let package = env.project().join(".pillion/packages/p");
    std::fs::create_dir_all(&package).expect("a folder");
    std::fs::write(
        package.join("mcp.json"),
        json!({ "servers": { "packed": local } }).to_string(),
    )
    .expect("a file");
    let host = Host::start_with(
        &env,
        crate::support::HostOptions {
            initialization: json!({ "start": "eager", "capabilities": { "questions": true, "sampling": true, "roots": true } }),
            ..Default::default()
        },
    );
    let methods: Vec<String> = host.capabilities()["methods"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    assert!(methods.len() > 20, "{methods:?}");
    for name in ["local", "remote", "packed"] {
        for method in &methods {
            // What grants something is not what is tried here.
            if [
                "mcp.decide",
                "mcp.trust",
                "mcp.add",
                "mcp.edit",
                "mcp.remove",
                "mcp.session.end",
            ]
            .contains(&method.as_str())
            {
                continue;
            }
            for params in [
                json!({}),
                json!({ "server": name }),
                json!({ "server": name, "name": "echo" }),
                json!({ "server": name, "uri": "x://y" }),
                json!({ "server": name, "enabled": true }),
                json!({ "name": format!("mcp__{name}__echo") }),
                json!({ "text": format!("@{name}:x /{name}:y") }),
                json!({ "server": name, "ref": { "type": "prompt", "name": "x" }, "argument": "a", "value": "" }),
            ] {
                let answer = host
                    .send_here(method, params)
                    .wait_within(Duration::from_secs(30))
                    .unwrap_or_else(|| panic!("{method} is not answered"));
                drop(answer);
            }
        }
        assert_eq!(host.status(name)["state"], "needs_trust", "{name}");
    }
    assert_eq!(server.log.starts().len(), 0);
    assert!(env.server_processes().is_empty());
    assert_eq!(visits.load(Ordering::Relaxed), 0);
    assert!(env.opened().is_empty());
}

fn strange_texts_are_survived() {
    let env = TestEnv::new();
    env.write_config(&json!({ "mine": { "command": "x" } }));
    let host = Host::start(&env);
    let long = "n".repeat(1 << 20);
    let texts = [
        "[".repeat(1 << 20),
        format!("{{\"servers\":{}", "{\"a\":".repeat(200_000)),
        format!("{{\"servers\":{{\"{long}\":{{\"command\":\"x\"}}}}}}"),
        format!("{{\"servers\":{{\"a\":{{\"command\":\"{long}\"}}}}}}"),
        format!("{{\"servers\":{{\"a\":{{\"command\":\"x\",\"env\":{{\"{long}\":5}}}}}}}}"),
        format!("{{\"servers\":{{\"a\":{{\"command\":\"x\",\"{long}\":5}}}}}}"),
        "{\"servers\":{\"a\":{\"command\":\"x\"},\"a\":{\"command\":\"y\"}}}".to_owned(),
        "{\"servers\":{\"a\":{\"command\":\"x\"}},\"servers\":{\"b\":{\"command\":\"y\"}}}".to_owned(),
        "{\"servers\":{\"a\\u0000b\":{\"command\":\"x\"},\"\":{\"command\":\"y\"}}}".to_owned(),
        "{\"servers\":[1,2]}".to_owned(),
        "\u{0}\u{1}\u{2}".to_owned(),
        "{\"servers\":{\"a\":{\"command\":\"x\",\"timeoutMs\":1e400}}}".to_owned(),
        "/*".repeat(100_000),
        "\"".repeat(100_001),
        {
            let many: Vec<String> = (0..5000)
                .map(|n| format!("\"s{n}\":{{\"command\":\"x\"}}"))
                .collect();
            format!("{{\"servers\":{{{}}}}}", many.join(","))
        },
    ];
    for text in texts {
        write_raw(&env, &text);
        let shown: String = text.chars().take(60).collect();
        let status = host.must("mcp.status", json!({}));
        let config = host.must("mcp.config", json!({}));
        let trust = host.must("mcp.trust", json!({}));
        for answer in [&status, &config, &trust] {
            assert!(answer.to_string().len() < 4 << 20, "{shown}");
        }
        let mine = status["servers"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|record| record["name"] == "mine" && record["effective"] == true);
        assert!(mine, "{shown}");
    }
    host.check();
}

/// A link in a repository must not make us read, quote or copy what it points at.
fn links_lead_nowhere() {
    let env = TestEnv::new();
    let secret = env.home().join("id_rsa");
    std::fs::write(&secret, "-----BEGIN SECRET-----\nabcdef\n").expect("a file");
    let folder = env.project().join(".pillion");
    std::fs::create_dir_all(folder.join("packages")).expect("a folder");
    std::os::unix::fs::symlink(&secret, folder.join("mcp.json")).expect("a link");
    std::os::unix::fs::symlink("..", folder.join("packages/cycle")).expect("a link");
    std::os::unix::fs::symlink(env.home(), folder.join("packages/out")).expect("a link");
    let host = Host::start(&env);
    let status = host.must("mcp.status", json!({}));
    assert!(
        status["files"].to_string().contains("leads out of the project"),
        "{status}"
    );
    assert!(!status.to_string().contains("BEGIN SECRET"), "{status}");
    assert_eq!(status["servers"], json!([]));
}

fn nothing_is_written_beside_them() {
    let env = TestEnv::new();
    write_raw(&env, "{ broken");
    let host = Host::start(&env);
    let status = host.must("mcp.status", json!({}));
    assert_eq!(status["files"][1]["fault"]["kind"], "config_broken");
    let names: Vec<_> = std::fs::read_dir(env.project().join(".pillion"))
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["mcp.json"]);
}

fn endless_files_are_not_waited_for() {
    let env = TestEnv::new();
    let folder = env.project().join(".pillion");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = std::ffi::CString::new(folder.join("mcp.json").to_string_lossy().as_bytes()).expect("a path");
    // SAFETY: a plain system call on a path of this test's own.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let host = Host::start(&env);
    let status = host
        .send_here("mcp.status", json!({}))
        .wait_within(Duration::from_secs(10))
        .expect("an answer")
        .expect("a status");
    assert!(status["files"].to_string().contains("not a file"), "{status}");
}

fn writes_do_not_follow_links() {
    let env = TestEnv::new();
    let outside = env.home().join("outside");
    std::fs::create_dir(&outside).expect("a folder");
    std::os::unix::fs::symlink(&outside, env.project().join(".pillion")).expect("a link");
    let host = Host::start(&env);
    let params = json!({ "name": "srv", "scope": "project", "entry": { "command": "x" }, "start": false });
    let error = host.ask("mcp.add", params).expect_err("a link");
    assert_eq!(error.kind(), "write_failed");
    assert_eq!(std::fs::read_dir(&outside).expect("the folder").count(), 0);
    // Nor one of the files in it, be it the lock or where nothing lies yet.
    std::fs::remove_file(env.project().join(".pillion")).expect("the link");
    std::fs::create_dir(env.project().join(".pillion")).expect("a folder");
    for name in ["mcp.json", "mcp.json.lock", "mcp.lock.json"] {
        let link = env.project().join(".pillion").join(name);
        std::os::unix::fs::symlink(outside.join(name), &link).expect("a link");
        let params = json!({ "name": "srv", "scope": "project", "entry": { "command": "npx", "args": ["x"] }, "start": false });
        let written = host.ask("mcp.add", params);
        assert!(written.is_err() || name == "mcp.lock.json", "{name}: {written:?}");
        assert_eq!(
            std::fs::read_dir(&outside).expect("the folder").count(),
            0,
            "{name}"
        );
        std::fs::remove_file(link).expect("the link is still there");
    }
}

/// A path that is shown as one of the project leads nowhere else, whenever the link came.
fn paths_of_a_project_stay_in_it() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    let root = env.project();
    let outside = env.home().join("outside");
    std::fs::create_dir(&outside).expect("a folder");
    for file in [
        outside.join("pem"),
        outside.join("vars"),
        root.join("pem"),
        root.join("vars"),
    ] {
        std::fs::write(file, "SEEN=secret-1\n").expect("a file");
    }
    std::fs::create_dir(root.join("folder")).expect("a folder");
    let with = |member: &str, value: Value| {
        let mut entry = server.entry();
        entry[member] = value;
        entry
    };
    let tls = |member: &str, path: Value| {
        let mut tls = json!({ member: path });
        if member == "key" {
            tls["cert"] = json!(outside.join("pem"));
        }
        json!({ "url": "https://127.0.0.1:9/mcp", "tls": tls })
    };
    write_project(
        &env,
        &json!({
            "file": with("envFile", json!("vars")),
            "folder": with("cwd", json!("folder")),
            "ca": tls("ca", json!("pem")), "cert": tls("cert", json!("./pem")), "key": tls("key", json!(root.join("pem"))),
            "written": with("cwd", json!("../home/outside")), "named": with("cwd", json!("~/outside")),
            "own": with("envFile", json!(outside.join("vars"))),
        }),
    );
    let host = Host::start(&env);
    trust(&host);
    for (name, target) in [("vars", "vars"), ("pem", "pem"), ("folder", "")] {
        let path = root.join(name);
        std::fs::remove_file(&path)
            .or_else(|_| std::fs::remove_dir(&path))
            .expect("gone");
        std::os::unix::fs::symlink(outside.join(target), path).expect("a link");
    }
    // What a file of variables holds was trusted with it; the others come to light at the start.
    assert_eq!(host.status("file")["state"], "needs_trust");
    trust(&host);
    for name in ["file", "folder", "ca", "cert", "key"] {
        let record = host
            .ask("mcp.start", json!({ "server": name }))
            .expect("an answer");
        let error = record["server"]["error"].to_string();
        assert!(
            error.contains("is a link that leads out of the project"),
            "{name}: {record}"
        );
        assert!(!record.to_string().contains("secret-1"), "{record}");
    }
    assert!(server.log.starts().is_empty());
    // What is shown as outside is what was agreed to.
    for name in ["own", "written", "named"] {
        host.start_server(name);
    }
    assert_eq!(server.log.starts().len(), 3);
}

/// However much a repository brings, what is the person's own shows, and what is trusted was shown.
fn nobody_is_crowded_out() {
    let env = TestEnv::new();
    let named = |prefix: &str, count: usize| -> Value {
        let entries = (0..count).map(|at| (format!("{prefix}{at}"), json!({ "command": "x" })));
        Value::Object(entries.collect())
    };
    write_project(&env, &named("a", 60));
    for package in 0..40 {
        let folder = env.project().join(format!(".pillion/packages/p{package:02}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let text = json!({ "servers": named(&format!("p{package}-"), 60) }).to_string();
        std::fs::write(folder.join("mcp.json"), text).expect("a file");
    }
    env.write_config(&named("mine", 499));
    let package = env.data().join("packages/own");
    std::fs::create_dir_all(&package).expect("a folder");
    let text = json!({ "servers": named("own", 11) }).to_string();
    std::fs::write(package.join("mcp.json"), text).expect("a file");
    let host = Host::start(&env);
    let status = host.must("mcp.status", json!({}));
    let records = status["servers"].as_array().expect("a list");
    let of = |layers: [&str; 2]| {
        let found = records
            .iter()
            .filter(|record| layers.iter().any(|layer| record["layer"] == *layer));
        found.count()
    };
    assert_eq!(
        (
            of(["user", "userPackage"]),
            of(["project", "projectPackage"]),
            &status["leftOut"]
        ),
        (510, 490, &json!(10))
    );
    let files = status["files"].as_array().expect("a list");
    let cut = files.iter().filter(|file| {
        file["fault"]["message"]
            .as_str()
            .is_some_and(|message| message.contains("only the first 500"))
    });
    assert_eq!(
        cut.count(),
        33,
        "the packages of which something was left out say it"
    );
    let review = host.must("mcp.trust", json!({}));
    assert_eq!(review["reviews"].as_array().map(Vec::len), Some(500));
    host.check();
    let output = env.command().arg("status").output().expect("a run");
    let (shown, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(shown.contains("mine498 ") && shown.contains("own10 "), "{shown}");
    assert!(said.contains("10 more servers are not shown"), "{said}");
}

/// An entry whose review would be endless is none that a yes could be meant for.
fn what_nobody_could_read_is_not_trusted() {
    let env = TestEnv::new();
    let server = env.plain_server("long", json!({}));
    let mut long = server.entry();
    // A review repeats the names, and says something of each.
    let names = (0..256).map(|at| (format!("NPM_CONFIG_{}_{at}", "X".repeat(150)), json!("")));
    long["env"] = Value::Object(names.collect());
    let mut faulty = server.entry();
    faulty["args"] = json!(vec!["a".repeat(1000); 100]);
    write_project(
        &env,
        &json!({ "long": long, "wide": faulty, "good": server.entry() }),
    );
    let host = Host::start(&env);
    let review = host.must("mcp.trust", json!({}));
    for shown in review["reviews"].as_array().expect("a list") {
        assert!(shown.to_string().len() <= 64 << 10, "{}", shown["server"]);
        let is_good = shown["server"] == "good";
        let is_said = shown["warnings"].to_string().contains("too long to be shown");
        assert_ne!(is_good, is_said, "{shown}");
    }
    let grant = json!({ "action": "grant", "revision": review["revision"] });
    assert_eq!(host.must("mcp.trust", grant)["state"], "trusted");
    host.call("good", "echo", json!({})).expect("trusted");
    for name in ["long", "wide"] {
        let record = host.start_server(name);
        assert!(record.to_string().contains("too long to be shown"), "{record}");
    }
    assert_eq!(server.log.starts().len(), 1);
    // Made shorter it is another entry, and asked about.
    write_project(&env, &json!({ "long": server.entry(), "good": server.entry() }));
    assert_eq!(host.must("mcp.status", json!({}))["trust"], "changed");
    assert_eq!(host.status("long")["state"], "needs_trust");
}

/// What Pillion runs by itself is never the repository's, and never starts in it, whatever the `PATH` says.
fn programs_are_not_found_in_a_repository() {
    let github = HttpHost::bind();
    let none = json!([{ "match": "GET /search/repositories", "respond": { "json": { "total_count": 0, "items": [] } } }]);
    github.serve_rules(&none, &json!({}));
    let mut env = TestEnv::new();
    env.set("PILLION_GITHUB_URL", &github.origin);
    env.set("PATH", &format!(".::node_modules/.bin:{}", env.path_variable()));
    let shell = env.bin().join("a-shell");
    env.set("SHELL", &shell.display().to_string());
    let (taken, started) = (env.home().join("taken"), env.home().join("started"));
    let script = |file: &std::path::Path, text: String| {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, format!("#!/bin/sh\n{text}\n")).expect("a file");
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    };
    let names = [
        "gh", "node", "npm", "npx", "uv", "uvx", "python3", "docker", "deno", "bun",
    ];
    for name in names {
        for folder in [env.project(), env.project().join("node_modules/.bin")] {
            script(&folder.join(name), format!("echo {name} >> {}", taken.display()));
        }
        let says = format!("echo {name} \"$(pwd)\" >> {}; echo v30.0.0", started.display());
        script(&env.bin().join(name), says);
    }
    script(
        &shell,
        format!("echo a-shell \"$(pwd)\" >> {}", started.display()),
    );
    for args in [&["search", "rain", "--source", "github"][..], &["doctor"][..]] {
        let output = env.command().args(args).output().expect("a run");
        assert!(!taken.exists(), "{args:?} {output:?}");
    }
    let started = std::fs::read_to_string(started).expect("programs were run");
    for name in ["gh", "node", "a-shell"] {
        assert!(
            started.lines().any(|line| line.starts_with(&format!("{name} "))),
            "{started}"
        );
    }
    assert!(started.lines().all(|line| line.ends_with(" /")), "{started}");
}
