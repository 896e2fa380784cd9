//! What others write is noticed where it is written, without anybody asking: each change here is made at once after the
//! last answer, and no request follows it.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::host::HostOptions;
use crate::support::{Host, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("watching":
        a_file_where_no_folder_was, through_a_link, a_folder_made_anew, a_package_in_two_steps, a_file_of_the_host,
        a_folder_opened_later, a_restart_from_a_terminal,
    )
}

fn write(path: &Path, servers: &Value) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    fs::write(path, json!({ "servers": servers }).to_string()).expect("a small file");
}

fn noticed(host: &Host, server: &str) {
    host.wait_notification("mcp.changed", |params| params["server"] == server);
}

fn a_file_where_no_folder_was() {
    let env = TestEnv::new();
    fs::remove_dir(env.data()).expect("an empty folder");
    let host = Host::start(&env);
    host.must("mcp.status", json!({}));
    write(
        &env.data().join("mcp.json"),
        &json!({ "one": { "command": "x" } }),
    );
    noticed(&host, "one");
    write(
        &env.project().join(".pillion/mcp.json"),
        &json!({ "two": { "command": "x" } }),
    );
    noticed(&host, "two");
}

/// The link stays as it is; what it leads to is written in place, then replaced.
fn through_a_link() {
    let env = TestEnv::new();
    let real = env.tmp().join("dotfiles/mcp.json");
    write(&real, &json!({}));
    std::os::unix::fs::symlink(&real, env.data().join("mcp.json")).expect("a link");
    let host = Host::start(&env);
    write(&real, &json!({ "in-place": { "command": "x" } }));
    noticed(&host, "in-place");
    let other = real.with_extension("new");
    write(&other, &json!({ "replaced": { "command": "x" } }));
    fs::rename(&other, &real).expect("a rename");
    noticed(&host, "replaced");
}

fn a_folder_made_anew() {
    let env = TestEnv::new();
    let folder = env.project().join(".pillion");
    write(&folder.join("mcp.json"), &json!({ "old": { "command": "x" } }));
    let host = Host::start(&env);
    fs::remove_dir_all(&folder).expect("it can be removed");
    host.wait_notification("mcp.changed", |params| {
        params["server"] == "old" && params["state"].is_null()
    });
    write(&folder.join("mcp.json"), &json!({ "new": { "command": "x" } }));
    noticed(&host, "new");
    write(&folder.join("mcp.json"), &json!({ "newer": { "command": "x" } }));
    noticed(&host, "newer");
}

fn a_package_in_two_steps() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let folder = env.data().join("packages/tools");
    fs::create_dir_all(&folder).expect("a folder");
    write(
        &env.data().join("mcp.json"),
        &json!({ "mark": { "command": "x" } }),
    );
    noticed(&host, "mark");
    write(&folder.join("mcp.json"), &json!({ "one": { "command": "x" } }));
    noticed(&host, "one");
}

fn a_file_of_the_host() {
    let env = TestEnv::new();
    let file = env.tmp().join("host/servers.json");
    write(&file, &json!({}));
    let host = Host::start_with(
        &env,
        HostOptions {
            initialization: json!({ "layers": [{ "label": "host", "file": file }] }),
            ..HostOptions::default()
        },
    );
    write(&file, &json!({ "one": { "command": "x" } }));
    noticed(&host, "one");
}

fn a_folder_opened_later() {
    let env = TestEnv::new();
    let later = env.tmp().join("later");
    fs::create_dir(&later).expect("a folder");
    let host = Host::start(&env);
    host.request("mcp.status", json!({ "directory": later }))
        .expect("an answer");
    write(
        &later.join(".pillion/mcp.json"),
        &json!({ "one": { "command": "x" } }),
    );
    noticed(&host, "one");
}

/// Whoever has the server running restarts it, once for each order; nobody else does anything.
fn a_restart_from_a_terminal() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry(), "off": { "command": "x", "enabled": false } }));
    let (first, second, idle) = (Host::start(&env), Host::start(&env), Host::start(&env));
    first.start_server("srv");
    second.start_server("srv");
    idle.must("mcp.status", json!({}));
    let order = |name: &str| env.command().args(["restart", name]).output().expect("it runs");
    for round in 1..3 {
        let output = order("srv");
        assert!(output.status.success(), "{output:?}");
        clock::eventually("both have restarted it", || {
            (server.log.starts().len() == 2 + 2 * round).then_some(())
        });
        for host in [&first, &second] {
            clock::eventually("it is ready again", || {
                (host.status("srv")["state"] == "ready").then_some(())
            });
        }
    }
    assert_eq!(idle.status("srv")["state"], "stopped");
    // What was ordered before a process began does not concern it.
    let later = Host::start(&env);
    later.start_server("srv");
    later.must("mcp.reload", json!({}));
    assert_eq!(server.log.starts().len(), 7);
    let unknown = order("nope");
    let text = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        unknown.status.code() == Some(1) && text.contains("there is no server `nope`"),
        "{text}"
    );
    let off = String::from_utf8_lossy(&order("off").stderr).into_owned();
    assert!(off.contains("`off` is switched off, and runs nowhere"), "{off}");
}
