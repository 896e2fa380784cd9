//! Pillion killed with SIGKILL can clean up nothing itself; still no server survives by more than a
//! second, wherever it hides.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::json;

use crate::stories;
use crate::support::{Host, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("orphans": killed_outright, server_that_died_took_its_children)
}

fn killed_outright() {
    let env = TestEnv::new();
    // Deaf to end of input and SIGTERM, behind launchers, and one that left the process group.
    let stubborn = json!({ "start": [{ "ignore": ["eof", "SIGTERM"] }], "rest": "plain" });
    let deaf = env.scripted_server("deaf", stubborn);
    let spawning =
        json!({ "start": [{ "ignore": ["eof"] }, { "spawn": "exec setsid sleep 600" }], "rest": "plain" });
    let spawning = env.scripted_server("spawning", spawning);
    env.write_config(
        &json!({ "deaf": { "command": deaf.wrapper }, "spawning": { "command": spawning.wrapper } }),
    );
    let host = Host::start(&env);
    assert_eq!(host.start_server("deaf")["state"], "ready");
    assert_eq!(host.start_server("spawning")["state"], "ready");
    clock::eventually("the runaway", || {
        let processes = env.processes();
        processes
            .iter()
            .any(|process| process.command == ["sleep", "600"])
            .then_some(())
    });
    host.signal(libc::SIGKILL);
    host.wait_exit(Duration::from_secs(1));
    env.assert_nothing_left(Duration::from_millis(1200));
}

/// SIGKILL of the launcher alone would orphan the server.
fn server_that_died_took_its_children() {
    let env = TestEnv::new();
    let script = json!({ "start": [{ "ignore": ["eof", "SIGTERM"] }], "rest": "plain" });
    let server = env.scripted_server("srv", script);
    env.write_config(&json!({ "srv": { "command": server.wrapper, "reconnect": { "enabled": false } } }));
    let host = Host::start(&env);
    assert_eq!(host.start_server("srv")["state"], "ready");
    let launcher = server
        .log
        .starts()
        .iter()
        .find(|start| start["role"] == "wrapper")
        .expect("it started")["pid"]
        .clone();
    crate::support::processes::signal(
        i32::try_from(launcher.as_i64().expect("a pid")).expect("a pid"),
        libc::SIGKILL,
    );
    clock::eventually("the server to follow its launcher", || {
        env.server_processes().is_empty().then_some(())
    });
    host.wait_state("srv", "error");
}
