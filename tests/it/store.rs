//! The files: edits of members, several writers, crashes and full disks, modes and links.

use std::os::unix::fs::PermissionsExt as _;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("store":
        edits_merge_and_keep_secrets, an_edited_server_runs_again, edits_check_the_revision, renamed, faults_have_a_place,
        two_processes_lose_nothing, a_crash_leaves_the_old_or_the_new, a_full_disk_loses_nothing, modes_are_repaired,
        links_stay_links, hand_edits_are_noticed, config_shows_every_layer, a_read_only_folder_is_said,
    )
}

fn file(env: &TestEnv) -> std::path::PathBuf {
    env.data().join("mcp.json")
}

fn read(env: &TestEnv) -> Value {
    let text = std::fs::read_to_string(file(env)).expect("the file");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}

fn edits_merge_and_keep_secrets() {
    let env = TestEnv::new();
    env.write_config(&json!({ "gh": {
        "command": "npx", "args": ["--token", "t-1", "x"], "own": { "kept": true },
        "env": { "GITHUB_TOKEN": "gh-1", "OLD": "o", "TOOLSETS": "all" },
    } }));
    let host = Host::start(&env);
    let edit = json!({
        "server": "gh",
        "set": { "env": { "TOOLSETS": "repos", "GITHUB_TOKEN": "" }, "args": ["--token", "********", "y"], "label": "GitHub" },
        "unset": ["/env/OLD"],
    });
    let mut dry = edit.clone();
    dry["dryRun"] = json!(true);
    let shown = host.must("mcp.edit", dry);
    assert_eq!((&shown["written"], shown.get("server")), (&json!(false), None));
    assert_eq!(read(&env)["servers"]["gh"]["env"]["OLD"], "o");
    let written = host.must("mcp.edit", edit);
    for text in [&shown, &written] {
        let text = text["text"].as_str().expect("a text");
        assert!(!text.contains("gh-1") && !text.contains("t-1"), "{text}");
    }
    let entry = read(&env)["servers"]["gh"].clone();
    assert_eq!(
        entry["env"],
        json!({ "GITHUB_TOKEN": "gh-1", "TOOLSETS": "repos" })
    );
    assert_eq!(
        (&entry["args"], &entry["own"], &entry["label"]),
        (
            &json!(["--token", "t-1", "y"]),
            &json!({ "kept": true }),
            &json!("GitHub")
        )
    );
    // A mask that stands for nothing, and an empty text that is meant.
    let error = host
        .ask(
            "mcp.edit",
            json!({ "server": "gh", "set": { "cwd": "********" } }),
        )
        .expect_err("a mask");
    assert_eq!(
        (error.kind(), &error.data["path"]),
        ("invalid_params", &json!("/set/cwd"))
    );
    host.must(
        "mcp.edit",
        json!({ "server": "gh", "set": { "env": { "GITHUB_TOKEN": "" } }, "unset": ["/env/GITHUB_TOKEN"] }),
    );
    assert_eq!(read(&env)["servers"]["gh"]["env"]["GITHUB_TOKEN"], "");
}

fn an_edited_server_runs_again() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    // What launches nothing disturbs nothing.
    host.must(
        "mcp.edit",
        json!({ "server": "srv", "set": { "timeoutMs": 5000 } }),
    );
    assert_eq!(host.status("srv")["state"], "ready");
    host.must("mcp.edit", json!({ "server": "srv", "set": { "args": ["new"] } }));
    clock::eventually("it to run again", || {
        (host.status("srv")["state"] == "ready" && server.log.starts().len() == 2).then_some(())
    });
    let args = server.log.starts()[1]["args"].to_string();
    assert!(args.contains("new"), "{args}");
}

fn edits_check_the_revision() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "one" } }));
    let host = Host::start(&env);
    let revision = host.must("mcp.config", json!({}))["servers"][0]["revision"].clone();
    env.write_config(&json!({ "srv": { "command": "two" } }));
    let edit = json!({ "server": "srv", "set": { "label": "x" }, "revision": revision });
    let error = host.ask("mcp.edit", edit).expect_err("stale");
    assert_eq!((error.code, error.kind()), (-32053, "stale_revision"));
    let edit = json!({ "server": "srv", "set": { "label": "x" }, "revision": error.data["revision"] });
    host.must("mcp.edit", edit);
    assert_eq!(read(&env)["servers"]["srv"]["command"], "two");
}

fn renamed() {
    let env = TestEnv::new();
    env.write_config(&json!({ "old": { "command": "x" }, "other": { "command": "y" } }));
    let host = Host::start(&env);
    let error = host
        .ask("mcp.edit", json!({ "server": "old", "rename": "other" }))
        .expect_err("taken");
    assert_eq!(error.kind(), "name_taken");
    let written = host.must("mcp.edit", json!({ "server": "old", "rename": "new" }));
    assert_eq!(written["server"]["name"], "new");
    assert_eq!(host.status("old"), Value::Null);
    assert!(read(&env)["servers"].get("old").is_none());
}

fn faults_have_a_place() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x" } }));
    let host = Host::start(&env);
    for (set, path) in [
        (json!({ "url": "https://h/mcp" }), "/set/url"),
        (json!({ "headers": { "a": "b" } }), "/set/headers"),
        (json!({ "timeoutMs": 5 }), "/set/timeoutMs"),
        (json!({ "protocol": "yesterday" }), "/set/protocol"),
    ] {
        let error = host
            .ask("mcp.edit", json!({ "server": "srv", "set": set }))
            .expect_err(path);
        assert_eq!(
            (error.kind(), &error.data["path"]),
            ("invalid_params", &json!(path))
        );
    }
    std::fs::write(file(&env), "{\n  \"servers\": {,}\n}").expect("a file");
    let error = host
        .ask("mcp.add", json!({ "name": "n", "entry": { "command": "x" } }))
        .expect_err("broken");
    assert_eq!((error.kind(), &error.data["line"]), ("config_broken", &json!(2)));
    assert_eq!(
        std::fs::read_to_string(file(&env)).expect("the file"),
        "{\n  \"servers\": {,}\n}"
    );
}

/// `PILLION_EDITS=10000` makes it as many.
///
/// Each process owns one entry and writes its variables in turn, so that the file stays small: after every edit the
/// last ones of this process must all stand in the file, whatever the other one did meanwhile.
fn two_processes_lose_nothing() {
    const RING: usize = 20;
    let env = TestEnv::new();
    let n_edits: usize = std::env::var("PILLION_EDITS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(80);
    let hosts = [Host::start(&env), Host::start(&env)];
    std::thread::scope(|scope| {
        for (index, host) in hosts.iter().enumerate() {
            let env = &env;
            scope.spawn(move || {
                let server = format!("p{index}");
                let mut expected = serde_json::Map::new();
                for n in 0..n_edits / 2 {
                    let name = format!("V{}", n % RING);
                    let value = json!(n.to_string());
                    let variables = json!({ name.clone(): value });
                    expected.insert(name, value);
                    if n == 0 {
                        let entry = json!({ "command": "x", "env": variables });
                        let add = json!({ "name": server, "entry": entry, "start": false });
                        host.must("mcp.add", add);
                    } else {
                        let edit = json!({ "server": server, "set": { "env": variables } });
                        host.must("mcp.edit", edit);
                    }
                    let written = &read(env)["servers"][&server]["env"];
                    assert_eq!(written.as_object(), Some(&expected), "{server} after {n} edits");
                }
            });
        }
    });
}

/// Every kind of change of each of the files, by the words of the command line.
const CHANGES: [&[&str]; 7] = [
    &["add", "new", "--", "y"],
    &["edit", "old", "--label", "Old"],
    &["disable", "old"],
    &["remove", "old", "--yes"],
    &["disable", "shared"],
    &["edit", "shared", "--env", "MODE=1"],
    &["add", "new", "--project", "--", "y"],
];
/// Where a write may end, in this order.
const POINTS: [&str; 6] = ["create", "write", "half", "sync", "rename", "folder"];

fn with_a_trusted_project() -> TestEnv {
    let env = TestEnv::new();
    env.write_config(&json!({ "old": { "command": "x", "env": { "API_KEY": "kept" } } }));
    crate::trust::write_project(&env, &json!({ "shared": { "command": "p" } }));
    crate::trust::trust(&Host::start(&env));
    env
}

/// The files that changes are written to, byte by byte but for the place of the project.
fn contents(env: &TestEnv) -> Vec<Option<String>> {
    let files = [
        file(env),
        env.data().join("trust.json"),
        env.project().join(".pillion/mcp.json"),
    ];
    let project = env.project().display().to_string();
    let read = |path| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.replace(&project, "[PROJECT]"))
    };
    files.iter().map(read).collect()
}

/// The same without the times that every run has its own of.
fn timeless(contents: &[Option<String>]) -> Vec<Option<String>> {
    let without = |text: &String| {
        let lines = text.lines().filter(|line| !line.contains("At\":"));
        lines
            .map(|line| line.trim_end_matches(','))
            .collect::<Vec<_>>()
            .join("\n")
    };
    contents.iter().map(|text| text.as_ref().map(without)).collect()
}

fn run(env: &TestEnv, args: &[&str]) -> std::process::Output {
    env.command().args(args).output().expect("the binary runs")
}

fn a_crash_leaves_the_old_or_the_new() {
    for change in CHANGES {
        let mut env = with_a_trusted_project();
        let before = contents(&env);
        assert!(run(&env, change).status.success(), "{change:?}");
        let after = contents(&env);
        let n_writes = before
            .iter()
            .zip(&after)
            .filter(|(before, after)| before != after)
            .count();
        assert!(n_writes > 0, "{change:?} changes nothing");
        for point in POINTS {
            for nth in 1..=n_writes {
                env = with_a_trusted_project();
                let before = contents(&env);
                env.set("PILLION_FAULT", &format!("crash:{point}:{nth}"));
                let output = run(&env, change);
                assert!(!output.status.success(), "{change:?} {point} {nth}: {output:?}");
                let now = contents(&env);
                let (is_old, is_new) = (
                    |index: usize| now[index] == before[index],
                    |index: usize| timeless(&now)[index] == timeless(&after)[index],
                );
                let written = (0..now.len()).filter(|index| !is_old(*index)).count();
                assert!(
                    (0..now.len()).all(|index| is_old(index) || is_new(index)),
                    "{change:?} {point} {nth}: {now:?}"
                );
                let n_expected = if point == "folder" { nth } else { nth - 1 };
                assert_eq!(written, n_expected, "{change:?} {point} {nth}: {now:?}");
                // The lock went with the process, and nothing is in the way of the next one.
                env.set("PILLION_FAULT", "");
                let output = run(&env, &["add", "next", "--", "z"]);
                assert!(output.status.success(), "{change:?} {point}: {output:?}");
            }
        }
    }
}

fn a_full_disk_loses_nothing() {
    for change in CHANGES {
        for point in &POINTS[..5] {
            let mut env = with_a_trusted_project();
            let before = contents(&env);
            env.set("PILLION_FAULT", &format!("full:{point}:1"));
            let output = run(&env, change);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{change:?}: {said}");
            assert!(
                said.contains("make room on the disk") && said.contains("cannot write `"),
                "{change:?}: {said}"
            );
            assert!(!said.contains(".tmp"), "{said}");
            assert_eq!(contents(&env), before, "{change:?} {point}");
            for folder in [env.data(), env.project().join(".pillion")] {
                let listed = std::fs::read_dir(folder).expect("the folder").flatten();
                let mut names = listed.map(|entry| entry.file_name().to_string_lossy().into_owned());
                assert_eq!(
                    names.find(|name| name.ends_with(".tmp")),
                    None,
                    "{change:?} {point}"
                );
            }
        }
    }
}

fn modes_are_repaired() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x" } }));
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode can be set");
    };
    set(&file(&env), 0o644);
    set(&env.data(), 0o755);
    let host = Host::start(&env);
    host.must("mcp.status", json!({}));
    assert_eq!(mode(&file(&env)), 0o600);
    assert_eq!(mode(&env.data()), 0o700);
    for path in [file(&env), env.data()] {
        let told = format!("others could read `{}`", path.display());
        // The line and the answer come by different ways.
        clock::eventually(&told, || host.stderr().contains(&told).then_some(()));
    }
    // Whoever looks in a terminal is told as well, and only once.
    set(&file(&env), 0o640);
    let said = |output: std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let told = said(run(&env, &["status"]));
    let expected = format!(
        "warning: others could read `{}` (mode 640); now only you can",
        file(&env).display()
    );
    assert!(told.contains(&expected), "{told}");
    assert_eq!(said(run(&env, &["status"])), "");
}

fn links_stay_links() {
    let env = TestEnv::new();
    let real = env.tmp().join("dotfiles.json");
    std::fs::write(&real, "{ \"servers\": {} }").expect("a file");
    std::os::unix::fs::symlink(&real, file(&env)).expect("a link");
    let host = Host::start(&env);
    host.must(
        "mcp.add",
        json!({ "name": "srv", "entry": { "command": "x" }, "start": false }),
    );
    assert!(
        std::fs::symlink_metadata(file(&env))
            .expect("it exists")
            .is_symlink()
    );
    assert!(std::fs::read_to_string(&real).expect("the file").contains("srv"));
}

/// Another program's edit arrives without anybody asking; equal content is no event.
fn hand_edits_are_noticed() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x" } }));
    let host = Host::start(&env);
    env.write_config(&json!({ "srv": { "command": "x" }, "more": { "command": "y" } }));
    host.wait_state("more", "stopped");
    let n_before = host.notifications("mcp.changed").len();
    env.write_config(&json!({ "srv": { "command": "x" }, "more": { "command": "y" } }));
    host.must("mcp.status", json!({}));
    assert_eq!(host.notifications("mcp.changed").len(), n_before);
    std::fs::write(file(&env), "{ broken").expect("a file");
    host.wait_notification("mcp.changed", |params| params.get("server").is_none());
    let status = host.must("mcp.status", json!({}));
    assert_eq!(status["files"][0]["fault"]["kind"], "config_broken");
}

fn config_shows_every_layer() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x", "colour": 1 } }));
    crate::trust::write_project(
        &env,
        &json!({ "srv": { "command": "p", "env": { "API_KEY": "k-1" } } }),
    );
    let host = Host::start(&env);
    let config = host.must("mcp.config", json!({}));
    let layers: Vec<&Value> = config["servers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| &entry["layer"])
        .collect();
    assert_eq!(layers, ["project", "user"]);
    let project = &config["servers"][0];
    assert_eq!(
        (&project["masked"], &project["entry"]["env"]["API_KEY"]),
        (&json!(["/env/API_KEY"]), &json!("********"))
    );
    assert!(
        project["file"]
            .as_str()
            .is_some_and(|file| file.ends_with(".pillion/mcp.json"))
    );
    assert_eq!(config["servers"][1]["unknown"], json!(["/colour"]));
    assert_eq!(
        config["files"].as_array().map(Vec::len),
        Some(2),
        "{}",
        config["files"]
    );
}

/// Everything that only reads works; every change is refused, and says why.
fn a_read_only_folder_is_said() {
    let mut env = with_a_trusted_project();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "old": { "command": "x" }, "srv": server.entry() }));
    env.without_rights_of_root();
    let before = contents(&env);
    let folders = [env.data(), env.project().join(".pillion")];
    let set = |mode| {
        for folder in &folders {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).expect("mode can be set");
        }
    };
    set(0o500);
    let host = Host::start(&env);
    host.call("srv", "echo", json!({}))
        .expect("a call writes nothing");
    let error = host
        .ask("mcp.edit", json!({ "server": "srv", "set": { "label": "y" } }))
        .expect_err("read-only");
    assert_eq!(
        (error.kind(), error.data["file"].is_string()),
        ("write_failed", true)
    );
    for change in CHANGES.into_iter().chain([&["trust", "--revoke"][..]]) {
        let output = run(&env, change);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{change:?}: {said}");
        assert!(
            said.contains("hint: check that the folder exists and may be written"),
            "{change:?}: {said}"
        );
    }
    assert_eq!(contents(&env), before);
    drop(host);
    set(0o700);
}
