//! The store on a disk that others use too: formats that stay, texts that break, links, files replaced meanwhile.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, TestEnv, clock};
use crate::trust::{trust, write_project};

pub fn stories() -> Vec<Trial> {
    stories!("store_files":
        formats_stay, what_cannot_be_read_is_not_written, a_slip_ends_nothing, half_of_a_write_is_waited_for,
        broken_from_the_start, a_conflict_in_a_project_ends_nothing, replaced_by_others, links_lead_to_the_file,
    )
}

fn file(env: &TestEnv) -> PathBuf {
    env.data().join("mcp.json")
}

fn text(env: &TestEnv) -> String {
    std::fs::read_to_string(file(env)).expect("a text")
}

/// The copies of broken texts.
fn copies(env: &TestEnv) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(env.data()).expect("the folder").flatten();
    listed
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains(".corrupt-"))
        .collect()
}

fn fault(host: &Host) -> Value {
    host.must("mcp.status", json!({}))["files"][0]["fault"].clone()
}

/// A byte order mark, the kind of line ends, the last line end, indentation, comments, order and strange members stay
/// through every kind of edit.
fn formats_stay() {
    let plain = "// top\n{\n  \"editor\": 1.10, // mine\n  \"servers\": {\n    // first\n    \"a\": {\n      \"command\": \"x\", // why\n      \"own\": [1,  2],\n      \"env\": { \"OLD\": \"o\", /* kept */ \"NEW\": \"n\" }\n    },\n    \"z\": { \"command\": \"y\" }\n  },\n  \"last\": null\n}\n// end";
    let cases = [
        ("plain", format!("{plain}\n")),
        ("no last line end", plain.to_owned()),
        ("a byte order mark", format!("\u{feff}{plain}\n")),
        ("other line ends", format!("{plain}\n").replace('\n', "\r\n")),
        ("tabs", format!("{plain}\n").replace("  ", "\t")),
        (
            "trailing commas",
            format!("{plain}\n").replace("\"last\": null", "\"last\": null,"),
        ),
    ];
    for (name, before) in cases {
        let env = TestEnv::new();
        env.write_config_text(&before);
        let host = Host::start(&env);
        let edits = [
            ("mcp.enable", json!({ "server": "a", "enabled": false })),
            (
                "mcp.edit",
                json!({ "server": "a", "set": { "args": ["1"], "env": { "NEW": "m" } }, "unset": ["/env/OLD"] }),
            ),
            (
                "mcp.add",
                json!({ "name": "b", "entry": { "command": "x" }, "start": false }),
            ),
            ("mcp.edit", json!({ "server": "b", "rename": "c" })),
            ("mcp.remove", json!({ "server": "c" })),
            ("mcp.remove", json!({ "server": "z" })),
        ];
        for (method, params) in edits {
            host.must(method, params);
            let now = text(&env);
            assert_eq!(
                now.starts_with('\u{feff}'),
                before.starts_with('\u{feff}'),
                "{name}: {now:?}"
            );
            assert_eq!(now.ends_with('\n'), before.ends_with('\n'), "{name}: {now:?}");
            if before.contains('\r') {
                assert_eq!(
                    now.matches('\n').count(),
                    now.matches("\r\n").count(),
                    "{name}: {now:?}"
                );
            }
            if before.contains('\t') {
                assert!(now.lines().all(|line| !line.starts_with(' ')), "{name}: {now}");
            }
            let mut rest = now.as_str();
            for kept in [
                "// top",
                "\"editor\": 1.10, // mine",
                "// first",
                "\"a\"",
                "// why",
                "\"own\": [1,",
                "/* kept */",
                "\"last\": null",
                "// end",
            ] {
                let at = rest
                    .find(kept)
                    .unwrap_or_else(|| panic!("{name}: {method} lost {kept} or its place: {now}"));
                rest = &rest[at..];
            }
            assert_eq!(fault(&host), Value::Null, "{name}: {now}");
        }
    }
    // What is there and holds nothing is written like what is not there.
    for before in [
        "",
        " \n",
        "\u{feff}",
        "// mine\n",
        "null",
        "{\"servers\": null}",
        "/* mine */ {}",
    ] {
        let env = TestEnv::new();
        env.write_config_text(before);
        let host = Host::start(&env);
        host.must(
            "mcp.add",
            json!({ "name": "b", "entry": { "command": "x" }, "start": false }),
        );
        let now = text(&env);
        assert_eq!(now.contains("mine"), before.contains("mine"), "{now:?}");
        assert_eq!(
            (fault(&host), &host.status("b")["state"]),
            (Value::Null, &json!("stopped")),
            "{now:?}"
        );
    }
}

/// A text, what is said of it and where, and whether a copy is kept.
type Case<'c> = (&'c [u8], &'c str, (u64, u64), bool);

/// Whatever is wrong with the file as a whole: it is said with its place, kept, and never written.
fn what_cannot_be_read_is_not_written() {
    let utf16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: [Case<'_>; 9] = [
        (
            b"{\n \"servers\": {\"a\": {\"command\": \"caf\xe9\"}}}",
            "save the file as UTF-8",
            (2, 35),
            true,
        ),
        (&utf16, "saved as UTF-16", (1, 1), true),
        (
            b"\xef\xbb\xbf{\n \"servers\": {,}\n}",
            "unexpected token",
            (2, 14),
            true,
        ),
        (b"{\"servers\": {\"a\": {\"comm", "unterminated", (1, 20), true),
        (b"\0\0\0\0\0\0", "unexpected token", (1, 1), true),
        (b"[]", "must hold an object", (1, 1), false),
        (
            b"{\"servers\": []}",
            "`servers` must be an object",
            (1, 13),
            false,
        ),
        (
            b"{\"servers\": {},\n\"servers\": {}}",
            "`servers` occurs twice",
            (2, 1),
            false,
        ),
        (
            b"{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
            "rename it to `servers`",
            (1, 2),
            false,
        ),
    ];
    for (bytes, message, place, is_copied) in cases {
        let env = TestEnv::new();
        std::fs::write(file(&env), bytes).expect("a file");
        let host = Host::start(&env);
        let shown = fault(&host);
        let at = [&shown["line"], &shown["column"]].map(|number| number.as_u64().unwrap_or_default());
        assert!(
            shown["message"]
                .as_str()
                .is_some_and(|said| said.contains(message)),
            "{shown}"
        );
        assert_eq!((at[0], at[1]), place, "{shown}");
        for (method, params) in [
            (
                "mcp.add",
                json!({ "name": "n", "entry": { "command": "x" }, "start": false }),
            ),
            (
                "mcp.import",
                json!({ "text": "{\"mcpServers\": {\"i\": {\"command\": \"x\"}}}" }),
            ),
        ] {
            let outcome = host.ask(method, params);
            let told = match &outcome {
                Ok(result) => result.to_string(),
                Err(error) => format!("{error} {}", error.data),
            };
            assert!(
                told.contains("config_broken") && told.contains(message),
                "{method}: {told}"
            );
        }
        assert_eq!(std::fs::read(file(&env)).expect("the file"), bytes, "{message}");
        let copies = copies(&env);
        assert_eq!(copies.len(), usize::from(is_copied), "{message}: {copies:?}");
        for copy in copies {
            assert_eq!(std::fs::read(&copy).expect("the copy"), bytes, "{message}");
            assert_eq!(std::fs::metadata(&copy).expect("the copy").mode() & 0o777, 0o600);
        }
    }
    // What is no file is neither waited for nor replaced.
    let env = TestEnv::new();
    std::fs::create_dir(file(&env)).expect("a folder");
    let mut command = env.command();
    let output = command
        .args(["add", "n", "--", "x"])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("it cannot be read: not a file") && said.contains("nothing was changed"),
        "{said}"
    );
    assert!(file(&env).is_dir());
}

/// The user's file with a server, a package that is switched off, a server of the host that is, and a profile.
struct Place {
    env: TestEnv,
    good: Value,
    layers: Value,
}

impl Place {
    fn new() -> Place {
        let env = TestEnv::new();
        let [own, package, off, host] =
            ["own", "package", "off", "host"].map(|name| env.plain_server(name, json!({})).entry());
        for (folder, entry) in [("kept", package), ("away", off)] {
            let path = env.data().join("packages").join(folder);
            std::fs::create_dir_all(&path).expect("a folder");
            let entries = json!({ "servers": { folder: entry } });
            std::fs::write(path.join("mcp.json"), entries.to_string()).expect("a file");
        }
        let good = json!({
            "servers": { "own": own },
            "packages": { "away": { "enabled": false } },
            "switches": { "host": { "brought": false } },
        });
        let layers = json!([{ "label": "editor", "entries": { "brought": host.clone(), "other": host } }]);
        env.write_config_text(&good.to_string());
        Place { env, good, layers }
    }

    fn host(&self) -> Host {
        let initialization = json!({ "capabilities": { "questions": true }, "layers": self.layers });
        Host::start_with(
            &self.env,
            HostOptions {
                initialization,
                ..HostOptions::default()
            },
        )
    }
}

/// The servers with their states.
fn states(host: &Host) -> Vec<(String, String)> {
    let status = host.must("mcp.status", json!({}));
    let servers = status["servers"].as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    servers
        .iter()
        .map(|server| (word(&server["name"]), word(&server["state"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, state)| ((*name).to_owned(), (*state).to_owned()))
        .collect()
}

/// A slip in an editor, saved: nothing ends, nothing that was off is on, and it is said until it is mended.
fn a_slip_ends_nothing() {
    let place = Place::new();
    let host = place.host();
    let pid = host.start_server("own")["pid"].clone();
    let before = states(&host);
    assert_eq!(
        before,
        pairs(&[
            ("own", "ready"),
            ("kept", "stopped"),
            ("brought", "disabled"),
            ("other", "stopped")
        ])
    );
    let broken = place.good.to_string().replace("\"switches\":", "\"switches\"");
    place.env.write_config_text(&broken);
    host.wait_notification("mcp.changed", |params| params.get("server").is_none());
    assert_eq!(states(&host), before);
    let shown = fault(&host);
    assert_eq!(shown["kind"], "config_broken", "{shown}");
    assert!(
        shown["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("until then counts what it held before")),
        "{shown}"
    );
    let error = host.call("brought", "echo", json!({})).expect_err("off");
    assert_eq!(error.data["reason"], "disabled");
    host.call("own", "echo", json!({})).expect("it goes on");
    let error = host
        .ask("mcp.enable", json!({ "server": "own", "enabled": false }))
        .expect_err("broken");
    assert_eq!(error.kind(), "config_broken");
    assert_eq!(text(&place.env), broken);
    // Another slip on top of it, and then it is mended with one server less off.
    place.env.write_config_text("{");
    assert_eq!(states(&host), before);
    let mut mended = place.good.clone();
    mended["switches"] = json!({});
    mended["profiles"] = json!({ "day": { "servers": ["own"] } });
    place.env.write_config_text(&mended.to_string());
    host.wait_state("brought", "stopped");
    assert_eq!((fault(&host), &host.status("own")["pid"]), (Value::Null, &pid));
    // The default profile is one of the things that go on.
    mended["defaultProfile"] = json!("day");
    place.env.write_config_text(&mended.to_string());
    host.must("mcp.reload", json!({}));
    place.env.write_config_text(&mended.to_string().replace('}', ""));
    host.must("mcp.reload", json!({}));
    let status = host.must("mcp.status", json!({}));
    assert_eq!(status["profile"], json!({ "name": "day", "chosenBy": "file" }));
    assert_eq!(host.status("kept")["leftOutBy"], "day");
    // Gone is gone, and what is mended without a server has none.
    place.env.write_config_text("{ \"servers\": {} }");
    host.must("mcp.reload", json!({}));
    assert_eq!(host.status("own"), Value::Null);
}

/// Another program empties the file and writes it in steps, as long as it likes.
fn half_of_a_write_is_waited_for() {
    let env = TestEnv::new();
    let server = env.plain_server("own", json!({}));
    env.write_config(&json!({ "own": server.entry() }));
    let host = Host::start(&env);
    let pid = host.start_server("own")["pid"].clone();
    let new = json!({ "servers": { "own": server.entry(), "more": { "command": "x" } } }).to_string();
    let (first, second) = new.split_at(new.len() / 2);
    let mut writer = std::fs::File::create(file(&env)).expect("the file is emptied");
    host.must("mcp.reload", json!({}));
    assert_eq!(
        (&host.status("own")["pid"], &fault(&host)["message"]),
        (&pid, &json!("the file is empty"))
    );
    writer.write_all(first.as_bytes()).expect("written");
    host.must("mcp.reload", json!({}));
    assert_eq!(host.status("own")["pid"], pid);
    writer.write_all(second.as_bytes()).expect("written");
    drop(writer);
    host.wait_state("more", "stopped");
    assert_eq!((&host.status("own")["pid"], fault(&host)), (&pid, Value::Null));
    assert_eq!(server.log.starts().len(), 1);
    // Nothing but the removal of the file, or `{}`, removes every server.
    std::fs::remove_file(file(&env)).expect("it is there");
    host.must("mcp.reload", json!({}));
    assert_eq!(states(&host), []);
}

/// A host that starts while the file is broken: its servers are not known, the other layers work, and what was switched
/// off stays off.
fn broken_from_the_start() {
    let place = Place::new();
    drop(place.host());
    place.env.write_config_text("{ \"servers\": {");
    let host = place.host();
    assert_eq!(
        states(&host),
        pairs(&[("kept", "stopped"), ("brought", "disabled"), ("other", "stopped")])
    );
    host.call("kept", "echo", json!({})).expect("another layer");
    host.call("other", "echo", json!({})).expect("another layer");
    let shown = fault(&host);
    assert!(
        shown["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("your switches count as they stood last")),
        "{shown}"
    );
    // The default profile held before, so it holds.
    let mut chosen = place.good.clone();
    chosen["profiles"] = json!({ "day": { "servers": ["own", "other"] } });
    chosen["defaultProfile"] = json!("day");
    place.env.write_config_text(&chosen.to_string());
    host.must("mcp.reload", json!({}));
    drop(host);
    place.env.write_config_text("{ \"servers\": {");
    let host = place.host();
    assert_eq!(host.must("mcp.status", json!({}))["profile"]["name"], "day");
    assert_eq!(host.status("kept")["state"], "disabled");
    // In a terminal every command is a start.
    let mut call = place.env.command();
    let output = call
        .args(["call", "kept", "echo"])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("not in profile `day`"),
        "{said}"
    );
    // Nothing of an entry is kept beside the file.
    let kept = std::fs::read_to_string(place.env.data().join("cache/switches.json")).expect("it is kept");
    assert!(
        !kept.contains("\"servers\":{") && !kept.contains("command"),
        "{kept}"
    );
}

/// A merge leaves its marks in a project's file: what was trusted goes on, and nothing new is.
fn a_conflict_in_a_project_ends_nothing() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    trust(&host);
    let pid = host.start_server("srv")["pid"].clone();
    let path = env.project().join(".pillion/mcp.json");
    let good = std::fs::read_to_string(&path).expect("the file");
    std::fs::write(
        &path,
        format!("<<<<<<< HEAD\n{good}=======\n{{}}\n>>>>>>> theirs\n"),
    )
    .expect("a file");
    host.must("mcp.reload", json!({}));
    assert_eq!(host.status("srv")["pid"], pid);
    let status = host.must("mcp.status", json!({}));
    assert_eq!(
        (&status["trust"], &status["files"][1]["fault"]["line"]),
        (&json!("trusted"), &json!(1))
    );
    std::fs::write(&path, good.replace("\"srv\"", "\"new\"")).expect("a file");
    host.must("mcp.reload", json!({}));
    assert_eq!(
        (host.status("srv"), &host.status("new")["state"]),
        (Value::Null, &json!("needs_trust"))
    );
    assert_eq!(
        std::fs::read_dir(env.project().join(".pillion"))
            .expect("the folder")
            .count(),
        1
    );
}

/// Editors and sync programs put another file in the place of the old one, or set its times back.
fn replaced_by_others() {
    let env = TestEnv::new();
    env.write_config(&json!({ "one": { "command": "x" } }));
    let host = Host::start(&env);
    for name in ["two", "three"] {
        let new = env.data().join("mcp.json.new");
        std::fs::write(
            &new,
            json!({ "servers": { name: { "command": "x" } } }).to_string(),
        )
        .expect("a file");
        std::fs::rename(&new, file(&env)).expect("renamed");
        host.wait_state(name, "stopped");
    }
    assert_eq!(states(&host), pairs(&[("three", "stopped")]));
    // As long as before, and as old.
    let path = file(&env);
    let times = std::fs::metadata(&path)
        .and_then(|metadata| metadata.modified())
        .expect("a time");
    let changed = text(&env).replace("three", "seven");
    std::fs::write(&path, changed).expect("a file");
    std::fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_modified(times))
        .expect("set back");
    host.wait_state("seven", "stopped");
    std::fs::remove_file(&path).expect("removed");
    clock::eventually("nothing to be left", || states(&host).is_empty().then_some(()));
}

/// A file among others that the person keeps elsewhere: the link stays, also to a place where nothing lies yet.
fn links_lead_to_the_file() {
    let env = TestEnv::new();
    let elsewhere = env.home().join("dotfiles");
    std::fs::create_dir(&elsewhere).expect("a folder");
    symlink("../home/dotfiles/link.json", file(&env)).expect("a link");
    symlink("real.json", elsewhere.join("link.json")).expect("a link");
    let is_link = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let host = Host::start(&env);
    host.must(
        "mcp.add",
        json!({ "name": "one", "entry": { "command": "x" }, "start": false }),
    );
    let real = elsewhere.join("real.json");
    assert!(is_link(&file(&env)) && is_link(&elsewhere.join("link.json")));
    assert_eq!(
        std::fs::metadata(&real).expect("it was made there").mode() & 0o777,
        0o600
    );
    // Who changes it there changes it here.
    let changed = std::fs::read_to_string(&real)
        .expect("the file")
        .replace("\"one\"", "\"two\"");
    std::fs::write(&real, changed).expect("a file");
    host.wait_state("two", "stopped");
    // A link to a folder that does not exist is not replaced by a file.
    std::fs::remove_file(file(&env)).expect("the link");
    symlink("/nowhere/at/all.json", file(&env)).expect("a link");
    let error = host
        .ask(
            "mcp.add",
            json!({ "name": "n", "entry": { "command": "x" }, "start": false }),
        )
        .expect_err("nowhere");
    assert_eq!(error.kind(), "write_failed");
    assert!(is_link(&file(&env)));
}
