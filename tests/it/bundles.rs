//! Bundles (`.mcpb`, `.dxt`) made here: unpacked without leaving their folder, asked for what they need, removed again.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::stories;
use crate::support::{Host, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("bundles":
        added_started_and_removed, what_it_needs, an_older_extension, hostile_archives, what_does_not_fit,
        a_newer_one_replaces, in_the_terminal,
    )
}

/// A zip file of ours: names, modes and texts.
pub fn packed(path: &Path, files: &[(&str, u32, &[u8])]) -> PathBuf {
    let file = fs::File::create(path).expect("a file");
    let mut zip = ZipWriter::new(file);
    for (name, mode, bytes) in files {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .unix_permissions(*mode);
        zip.start_file(*name, options).expect("a name");
        zip.write_all(bytes).expect("bytes");
    }
    zip.finish().expect("an end");
    path.to_owned()
}

fn manifest(change: Value) -> Vec<u8> {
    let mut manifest = json!({
        "manifest_version": "0.3", "name": "acme-files", "display_name": "Acme Files", "version": "1.0.0",
        "description": "x", "author": { "name": "Acme" },
        "server": {
            "type": "binary", "entry_point": "server/run",
            "mcp_config": { "command": "server/run", "args": ["${user_config.folders}"], "env": { "ACME_KEY": "${user_config.key}" } },
        },
        "user_config": {
            "folders": { "type": "directory", "title": "Folders", "multiple": true, "default": ["${HOME}/a", "${HOME}/b"] },
            "key": { "type": "string", "title": "API key", "sensitive": true, "required": true },
        },
    });
    for (name, value) in change.as_object().into_iter().flatten() {
        manifest[name] = value.clone();
    }
    manifest.to_string().into_bytes()
}

/// A bundle whose program is a scripted server; what it was started with stands in `seen`.
pub fn bundle(env: &TestEnv, name: &str, change: Value) -> PathBuf {
    let server = env.plain_server("bundled", json!({}));
    let command = server.entry()["command"].as_str().expect("a command").to_owned();
    let seen = env.tmp().join("seen");
    let program = format!(
        "#!/bin/sh\necho \"$ACME_KEY|$*|$PWD\" > '{}'\nexec '{command}'\n",
        seen.display()
    );
    packed(
        &env.tmp().join(name),
        &[
            ("manifest.json", 0o644, &manifest(change)),
            // Without the right to be run, as archives made on Windows are.
            ("server/run", 0o644, program.as_bytes()),
            ("server/data/note.txt", 0o644, b"a note"),
        ],
    )
}

fn unpacked(env: &TestEnv) -> Vec<PathBuf> {
    let folders = fs::read_dir(env.data().join("bundles"))
        .into_iter()
        .flatten()
        .flatten();
    folders.map(|entry| entry.path()).collect()
}

fn added_started_and_removed() {
    let env = TestEnv::new();
    let file = bundle(&env, "acme.mcpb", json!({}));
    let sha256 = Sha256::digest(fs::read(&file).expect("the bundle"));
    let sha256: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    let host = Host::start(&env);
    let wrong = host
        .ask(
            "mcp.import",
            json!({ "source": file, "sha256": "00".repeat(32), "values": { "key": "k-1" } }),
        )
        .expect_err("another hash");
    assert!(format!("{wrong:?}").contains(&sha256), "{wrong:?}");
    assert!(unpacked(&env).is_empty());
    let imported = host.must(
        "mcp.import",
        json!({ "source": file, "sha256": sha256, "values": { "key": "k-1" } }),
    );
    let result = &imported["results"][0];
    assert_eq!(
        (&result["status"], &result["savedAs"], &result["name"]),
        (&json!("added"), &json!("acme-files"), &json!("Acme Files")),
        "{imported}"
    );
    let folder = unpacked(&env).pop().expect("it is unpacked");
    assert!(folder.join("server/data/note.txt").is_file());
    host.start_server("acme-files");
    let seen = fs::read_to_string(env.tmp().join("seen")).expect("it was started");
    let home = env.home().display().to_string();
    assert_eq!(seen.trim(), format!("k-1|{home}/a {home}/b|{}", folder.display()));
    host.must("mcp.remove", json!({ "server": "acme-files" }));
    assert!(unpacked(&env).is_empty(), "nothing stays");
}

fn what_it_needs() {
    let env = TestEnv::new();
    let file = bundle(&env, "acme.mcpb", json!({}));
    let host = Host::start(&env);
    let looked = host.must("mcp.import", json!({ "source": file, "dryRun": true }));
    assert!(
        unpacked(&env).is_empty() && !env.data().join("mcp.json").exists(),
        "looking writes nothing"
    );
    let home = env.home().display().to_string();
    let needs: Vec<(&Value, &Value, &Value, &Value)> = looked["needs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|need| (&need["at"], &need["secret"], &need["required"], &need["default"]))
        .collect();
    let default = json!(format!("{home}/a,{home}/b"));
    assert_eq!(
        needs,
        [
            (&json!("/values/folders"), &json!(false), &json!(false), &default),
            (&json!("/values/key"), &json!(true), &json!(true), &Value::Null),
        ],
        "{looked}"
    );
    assert_eq!(looked["results"][0]["target"]["type"], json!("local"));
    let failed = host.must("mcp.import", json!({ "source": file }));
    assert_eq!(
        failed["results"][0]["reason"],
        json!("it needs API key"),
        "{failed}"
    );
    let failed = host.must(
        "mcp.import",
        json!({ "source": file, "values": { "nope": "x", "key": "k" } }),
    );
    assert!(
        failed["results"][0]["reason"].to_string().contains("nope"),
        "{failed}"
    );
    assert!(unpacked(&env).is_empty());
    let project = host.ask(
        "mcp.import",
        json!({ "source": file, "scope": "project", "values": { "key": "k" } }),
    );
    assert_eq!(project.expect_err("not into a project").kind(), "invalid_params");
}

fn an_older_extension() {
    let env = TestEnv::new();
    let file = bundle(
        &env,
        "acme.dxt",
        json!({ "manifest_version": null, "dxt_version": "0.1", "user_config": {}, "server": { "type": "binary", "entry_point": "server/run" } }),
    );
    let host = Host::start(&env);
    let imported = host.must("mcp.import", json!({ "source": file }));
    assert_eq!(imported["added"], json!(1), "{imported}");
    host.start_server("acme-files");
}

fn hostile_archives() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let plain = manifest(json!({ "user_config": {} }));
    let refused = |file: PathBuf, said: &str| {
        let answer = host.ask("mcp.import", json!({ "source": file }));
        let text = format!("{:?}", answer.expect_err(said));
        assert!(text.contains(said), "{said}: {text}");
        assert!(unpacked(&env).is_empty(), "{said}: something stays");
        assert!(
            !env.data().join("mcp.json").exists(),
            "{said}: an entry was written"
        );
    };
    let with = |name: &str, files: &[(&str, u32, &[u8])]| {
        let mut all: Vec<(&str, u32, &[u8])> = vec![("manifest.json", 0o644, &plain)];
        all.extend(files);
        packed(&env.tmp().join(name), &all)
    };
    refused(with("up.mcpb", &[("../../escaped", 0o644, b"x")]), "outside");
    refused(with("root.mcpb", &[("/tmp/escaped", 0o644, b"x")]), "outside");
    refused(with("back.mcpb", &[("a\\..\\..\\x", 0o644, b"x")]), "outside");
    refused(
        with("twice.mcpb", &[("a/X", 0o644, b"x"), ("a/x", 0o644, b"y")]),
        "twice",
    );
    refused(
        with("bomb.mcpb", &[("zeros", 0o644, &vec![0; 64 << 20])]),
        "more than a bundle may",
    );
    let link = env.tmp().join("link.mcpb");
    let mut zip = ZipWriter::new(fs::File::create(&link).expect("a file"));
    zip.start_file("manifest.json", SimpleFileOptions::default())
        .expect("a name");
    zip.write_all(&plain).expect("bytes");
    zip.add_symlink("server/run", "/bin/sh", SimpleFileOptions::default())
        .expect("a link");
    zip.finish().expect("an end");
    refused(link, "link");
    let text = env.tmp().join("text.mcpb");
    fs::write(&text, "no zip at all").expect("a file");
    refused(text, "no zip file");
    refused(
        packed(&env.tmp().join("none.mcpb"), &[("other.json", 0o644, b"{}")]),
        "no `manifest.json`",
    );
    let cut = with("cut.mcpb", &[("server/run", 0o755, b"#!/bin/sh\n")]);
    let bytes = fs::read(&cut).expect("it");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("a file");
    refused(cut, "no zip file");
    assert!(!env.tmp().join("escaped").exists() && !env.data().join("escaped").exists());
}

fn what_does_not_fit() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let refused = |change: Value, said: &str| {
        let file = bundle(&env, "acme.mcpb", change);
        let text = format!(
            "{:?}",
            host.ask("mcp.import", json!({ "source": file })).expect_err(said)
        );
        assert!(text.contains(said), "{text}");
    };
    refused(json!({ "manifest_version": "7.0" }), "7.0");
    refused(
        json!({ "compatibility": { "platforms": ["win32"] } }),
        "it is for win32",
    );
    refused(
        json!({ "server": { "type": "node", "entry_point": "../x.js" } }),
        "outside",
    );
    let missing = host.ask("mcp.import", json!({ "source": env.tmp().join("gone.mcpb") }));
    assert_eq!(missing.expect_err("no file").kind(), "not_found");
}

fn a_newer_one_replaces() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let open = json!({ "user_config": {}, "server": { "type": "binary", "entry_point": "server/run" } });
    let old = bundle(&env, "old.mcpb", open.clone());
    host.must("mcp.import", json!({ "source": old }));
    let first = unpacked(&env);
    let mut newer = open;
    newer["version"] = json!("2.0.0");
    let newer = bundle(&env, "new.mcpb", newer);
    let skipped = host.must("mcp.import", json!({ "source": newer }));
    assert_eq!(skipped["results"][0]["status"], json!("skipped"), "{skipped}");
    assert_eq!(unpacked(&env), first);
    let replaced = host.must("mcp.import", json!({ "source": newer, "replace": true }));
    assert_eq!(replaced["results"][0]["status"], json!("replaced"), "{replaced}");
    let second = unpacked(&env);
    assert_eq!(second.len(), 1, "{second:?}");
    assert_ne!(first, second);
    assert_eq!(
        host.status("acme-files")["source"],
        json!("bundle:acme-files@2.0.0")
    );
}

fn in_the_terminal() {
    let env = TestEnv::new();
    bundle(&env, "acme.mcpb", json!({}));
    let file = env.tmp().join("acme.mcpb").display().to_string();
    let run = |args: &[&str]| {
        let output = env.command().args(args).output().expect("the binary starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, stderr) = run(&["add", &file, "--dry-run"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("It needs API key: `--set key=VALUE`"), "{stderr}");
    assert!(
        stderr.contains("command:"),
        "what it would run is shown: {stderr}"
    );
    let (code, _, stderr) = run(&["add", &file]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("--yes"), "{stderr}");
    let (code, _, stderr) = run(&["add", &file, "--yes"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("hint: give it with `--set key=VALUE`"),
        "{stderr}"
    );
    let (code, stdout, stderr) = run(&[
        "add",
        &file,
        "--yes",
        "--set",
        "key=k-2",
        "--set",
        "folders=/x",
        "--set",
        "folders=/y",
    ]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("Added `acme-files`"), "{stderr}");
    assert!(!stderr.contains("k-2"), "a secret is not shown");
    assert_eq!(run(&["tools", "acme-files"]).0, Some(0));
    let seen = fs::read_to_string(env.tmp().join("seen")).expect("it was started");
    assert!(seen.starts_with("k-2|/x /y|"), "{seen}");
    assert_eq!(run(&["remove", "acme-files", "--yes"]).0, Some(0));
    assert!(unpacked(&env).is_empty());
}
