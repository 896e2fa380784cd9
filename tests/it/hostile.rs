//! A repository that means harm: its files may be anything, and opening it starts and contacts nothing.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};
use crate::trust::{trust, write_project};

pub fn stories() -> Vec<Trial> {
    stories!("hostile":
        opening_a_repository_does_nothing, strange_texts_are_survived, links_lead_nowhere, nothing_is_written_beside_them,
        endless_files_are_not_waited_for, writes_do_not_follow_links, paths_of_a_project_stay_in_it,
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
