//! Servers on their way between programs, as a person moves them: import, export, sync and paste in a terminal's words.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};
use crate::terminal::Terminal;

pub fn stories() -> Vec<Trial> {
    stories!("moving":
        exported_to_a_file, unknown_names, found_on_this_machine, imported, broken_files_are_named,
        written_into_another_program, what_differs_is_shown, the_other_way, secrets_in_another_program,
        links_and_broken_files, every_program_there_and_back, pasted_by_a_script, pasted_in_a_terminal,
        secrets_inside_of_texts, what_is_no_command, one_document_for_a_command, variables_of_an_editor,
        switched_off_beside_its_servers, links_out_of_a_project, what_is_not_trusted_stays_here,
        what_means_nothing_there_runs_nothing, what_is_taken_over_is_warned_of,
    )
}

/// Gemini CLI says which servers it starts beside them.
fn switched_off_beside_its_servers() {
    for (mcp, on) in [
        (json!({ "allowed": ["a", "b"], "excluded": ["b"] }), vec!["a"]),
        (json!({ "excluded": ["c"] }), vec!["a", "b"]),
        (json!({ "allowed": [], "excluded": [] }), vec!["a", "b", "c"]),
    ] {
        let env = TestEnv::new();
        let servers = json!({ "a": { "command": "a-server" }, "b": { "command": "b-server" }, "c": { "httpUrl": "https://c.example/mcp" } });
        let folder = env.home().join(".gemini");
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("settings.json");
        fs::write(&file, json!({ "mcp": mcp, "mcpServers": servers }).to_string()).expect("a file");
        let imported = run(&env, &["import", file.to_str().expect("UTF-8")]);
        assert!(imported.status.success(), "{imported:?}");
        let text = fs::read_to_string(env.data().join("mcp.json")).expect("the file");
        let stored: Value = serde_json::from_str(&text).expect("JSON");
        for name in ["a", "b", "c"] {
            let is_on = stored["servers"][name]["enabled"] != false;
            assert_eq!(is_on, on.contains(&name), "{name} with {mcp}");
        }
        let said = err(&imported) + &out(&imported);
        assert_eq!(said.contains("switched off: `mcp."), on.len() < 3, "{said}");
    }
}

fn run(env: &TestEnv, args: &[&str]) -> Output {
    env.command().args(args).output().expect("the binary runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("one document: {output:?}"))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file").permissions().mode() & 0o777
}

fn put(env: &TestEnv, file: &str, text: &str) -> std::path::PathBuf {
    let path = env.home().join(file);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, text).expect("written");
    path
}

fn with_servers() -> TestEnv {
    let env = TestEnv::new();
    env.write_config(&json!({
        "memory": { "command": "npx", "args": ["-y", "p", "${P:-x}"], "env": { "API_TOKEN": "s3cret" } },
        "docs": { "url": "https://h.example/mcp", "headers": { "Authorization": "Bearer ${TOK}" } },
        "off": { "command": "x", "enabled": false },
    }));
    env
}

fn what_is_no_command() {
    let env = TestEnv::new();
    for (text, code, said) in [
        ("", 2, "nothing was pasted"),
        (
            "https://github.com/o/r.git",
            2,
            "`pillion add --from github:o/r` looks at it",
        ),
        (
            "hello world this is text",
            0,
            "this reads like a sentence: `hello` would be run as a program",
        ),
    ] {
        let pasted = run(&env, &["add", "--paste", text, "--dry-run", "--yes"]);
        assert_eq!(pasted.status.code(), Some(code), "{text}: {pasted:?}");
        assert!(err(&pasted).contains(said), "{text}: {pasted:?}");
    }
    let pasted = run(
        &env,
        &[
            "add",
            "q",
            "--paste",
            "“npx” -y p /path/to/repo",
            "--dry-run",
            "--yes",
            "--json",
        ],
    );
    let text = document(&pasted)["text"].as_str().expect("a text").to_owned();
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON")["command"],
        "npx"
    );
    let path = put(&env, "nothing.json", "{\"editor\": {}}");
    let nothing = run(&env, &["import", &path.to_string_lossy()]);
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
}

fn one_document_for_a_command() {
    let env = TestEnv::new();
    let two = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"y\"}}}";
    let added = document(&run(&env, &["add", "--paste", two, "--yes", "--json"]));
    assert_eq!(added.as_array().map(Vec::len), Some(2), "{added}");
    let one = document(&run(&env, &["add", "c", "--json", "--", "z"]));
    assert!(one.is_object(), "{one}");
    assert_eq!(document(&run(&env, &["logout", "--json"])), json!({}));
}

fn variables_of_an_editor() {
    let env = TestEnv::new();
    let text = json!({ "servers": { "fs": {
        "command": "npx", "args": ["-y", "p", "${workspaceFolder}", "${userHome}/x", "${config:a.b}"],
    } } });
    let path = put(&env, "mcp.json", &text.to_string());
    let imported = run(&env, &["import", &path.to_string_lossy()]);
    assert!(imported.status.success(), "{imported:?}");
    for reference in ["${workspaceFolder}", "${config:a.b}"] {
        let said = format!("nothing here fills in `{reference}`");
        assert!(err(&imported).contains(&said), "{imported:?}");
    }
    assert_eq!(entries(&env)["fs"]["args"][3], "${HOME}/x");
}

/// Secrets stand in addresses, options and headers too; each leaves as a mask or as a variable of its own.
fn secrets_inside_of_texts() {
    let env = TestEnv::new();
    let args = ["args", "env", "headers"];
    env.write_config(&json!({
        "one": {
            "command": "npx",
            "args": ["foo", "postgres://u:pw-1@h/db", "--password=pw-2", "--header", "Authorization: Bearer pw-3"],
            "env": { "DSN": "postgres://u:pw-4@h/db", "API_KEY": "pw-5", "NOTES": "{\"token\": \"pw-6\"}" },
        },
        "two": { "url": "https://u:pw-7@h.example/mcp?api_key=pw-8&x=1" },
        "three": { "command": "y", "env": { "API_KEY": "pw-9" } },
        "four": { "command": "y", "env": { "DSN": "pw-0" }, "source": "catalog:postgres" },
    }));
    for command in [
        &["status"][..],
        &["status", "--json"],
        &["config"],
        &["config", "--json"],
        &["export", "--format", "cursor"],
        &["export", "--format", "vscode"],
        &["export", "--secrets", "mask"],
    ] {
        let shown = run(&env, command);
        assert!(shown.status.success(), "{shown:?}");
        assert!(
            !out(&shown).contains("pw-") && !err(&shown).contains("pw-"),
            "{shown:?}"
        );
    }
    let whole = run(&env, &["export", "--format", "cursor", "--json"]);
    let text = document(&whole)["text"].as_str().expect("a text").to_owned();
    let servers = serde_json::from_str::<Value>(&text).expect("JSON")["mcpServers"].take();
    let of = |name: &str| -> Vec<Value> {
        args.iter()
            .filter_map(|member| servers[name].get(member).cloned())
            .collect()
    };
    assert_eq!(
        of("one"),
        [
            json!([
                "foo",
                "postgres://u:${env:ONE_ARGS_1_PASSWORD}@h/db",
                "--password=${env:ONE_ARGS_2_PASSWORD}",
                "--header",
                "Authorization: ${env:ONE_ARGS_4_AUTHORIZATION}",
            ]),
            json!({
                "API_KEY": "${env:API_KEY}",
                "DSN": "postgres://u:${env:DSN_PASSWORD}@h/db",
                "NOTES": "{\"token\": \"${env:NOTES_TOKEN}\"}",
            }),
        ]
    );
    assert_eq!(
        servers["two"]["url"],
        "https://u:${env:TWO_URL_PASSWORD}@h.example/mcp?api_key=${env:TWO_URL_API_KEY}&x=1"
    );
    assert_eq!(of("three"), [json!({ "API_KEY": "${env:THREE_ENV_API_KEY}" })]);
    assert_eq!(of("four"), [json!({ "DSN": "${env:DSN}" })]);
    let said = err(&run(&env, &["export", "two", "--format", "cursor"]));
    assert!(
        said.contains(
            "`two`: the password in the address was left out: set `TWO_URL_PASSWORD` where Cursor starts"
        ),
        "{said}"
    );
}

fn entries(env: &TestEnv) -> Value {
    let text = fs::read_to_string(env.data().join("mcp.json")).unwrap_or_default();
    serde_json::from_str::<Value>(&text).unwrap_or_default()["servers"].take()
}

/// Copies of files as they were.
fn backups(env: &TestEnv) -> Vec<std::path::PathBuf> {
    let folder = fs::read_dir(env.data().join("backups"));
    folder
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

/// A project's files of other programs that lead into the person's own.
fn links_out_of_a_project() {
    for (program, file, leads_to) in [
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
        ("cursor", ".cursor", ".cursor"),
        ("kiro", ".kiro", ".elsewhere"),
        ("codex", ".codex/config.toml", ".codex/nothing.toml"),
    ] {
        let env = with_servers();
        put(&env, ".elsewhere/x", "");
        put(&env, ".codex/x", "");
        let own = put(
            &env,
            ".cursor/mcp.json",
            "{\"mcpServers\": {\"mine\": {\"command\": \"m\", \"env\": {\"K\": \"marker-1\"}}}}",
        );
        let before = fs::read_to_string(&own).expect("the file");
        crate::trust::write_project(&env, &json!({ "evil": { "command": "evil-program" } }));
        trusted(&env);
        let link = env.project().join(file);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        std::os::unix::fs::symlink(env.home().join(leads_to), &link).expect("a link");
        let listed = tree(&env.home());
        let path = env.project().join(".cursor/mcp.json");
        let mut refused = vec![
            run(&env, &["sync", program, "--project"]),
            run(&env, &["sync", program, "--project", "--from"]),
        ];
        if program == "cursor" {
            refused.push(run(&env, &["import", &path.to_string_lossy(), "--project"]));
            let found = run(&env, &["import"]);
            let said = out(&found) + &err(&found);
            assert!(said.contains("leads out of the project"), "{file}: {found:?}");
        }
        for refused in refused {
            assert_eq!(refused.status.code(), Some(1), "{file}: {refused:?}");
            let said = err(&refused);
            assert!(
                said.contains("is a link that leads out of the project") && said.contains("hint: "),
                "{file}: {refused:?}"
            );
        }
        assert_eq!(fs::read_to_string(&own).expect("the file"), before);
        assert_eq!(tree(&env.home()), listed, "{file}");
        let project = fs::read_to_string(env.project().join(".pillion/mcp.json")).expect("the file");
        assert!(!project.contains("marker-1"), "{project}");
    }
    // Within the project a link is the project's own business.
    let env = with_servers();
    let real = env.project().join("config");
    fs::create_dir_all(&real).expect("a folder");
    std::os::unix::fs::symlink(&real, env.project().join(".cursor")).expect("a link");
    assert!(
        run(&env, &["sync", "cursor", "--project", "docs"])
            .status
            .success()
    );
    assert!(real.join("mcp.json").is_file());
    // So is a file that is named as one outside of it.
    let outside = put(
        &env,
        "theirs.json",
        "{\"mcpServers\": {\"theirs\": {\"command\": \"t\"}}}",
    );
    let beside = env.project().parent().expect("a folder").join("beside.json");
    fs::copy(&outside, &beside).expect("a copy");
    let named = format!("{}/../beside.json", env.project().display());
    let imported = run(&env, &["import", &named]);
    assert!(imported.status.success(), "{imported:?}");
}

fn trusted(env: &TestEnv) {
    let review = document(&run(env, &["trust", "--json"]));
    let revision = review["revision"].as_str().expect("a revision");
    assert!(run(env, &["trust", "--revision", revision]).status.success());
}

/// The names of all files below a folder.
fn tree(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if entry.file_type().expect("a type").is_dir() {
            found.extend(tree(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

/// Another program runs what its file holds, so nothing gets there that may not run here.
fn what_is_not_trusted_stays_here() {
    let env = with_servers();
    crate::trust::write_project(&env, &json!({ "evil": { "command": "evil-program" } }));
    let file = env.project().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(&file, "{\"mcpServers\": {}, \"note\": \"marker-2\"}").expect("written");
    for args in [
        &["sync", "cursor", "--project"][..],
        &["sync", "cursor", "evil"],
        &["export", "--format", "cursor"],
        &["export", "--project"],
    ] {
        let kept = run(&env, args);
        assert!(kept.status.success(), "{kept:?}");
        assert!(
            err(&kept).contains("`evil` is left out: its project is not trusted"),
            "{kept:?}"
        );
        assert!(!out(&kept).contains("evil-program"), "{kept:?}");
    }
    assert!(!fs::read_to_string(&file).expect("the file").contains("evil"));
    trusted(&env);
    let written = run(&env, &["sync", "cursor", "--project"]);
    assert!(written.status.success(), "{written:?}");
    assert!(
        fs::read_to_string(&file)
            .expect("the file")
            .contains("evil-program")
    );
    // The copy of the file as it was lies with our own files, for the person only.
    let copies = backups(&env);
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert!(
        fs::read_to_string(&copies[0])
            .expect("the copy")
            .contains("marker-2")
    );
    assert_eq!(mode(&copies[0]), 0o600);
    let names: Vec<_> = fs::read_dir(file.parent().expect("a folder"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["mcp.json"]);
}

fn exported_to_a_file() {
    let env = with_servers();
    let file = env.home().join("out.json");
    let path = file.to_string_lossy().into_owned();
    let export = [
        "export",
        "memory",
        "--format",
        "cursor",
        "--output",
        path.as_str(),
    ];
    let written = run(&env, &export);
    assert!(
        written.status.success() && out(&written).is_empty(),
        "{written:?}"
    );
    assert!(
        err(&written).contains("`API_TOKEN` was left out: set `API_TOKEN` where Cursor starts"),
        "{written:?}"
    );
    assert!(
        err(&written).contains("Cursor knows no default for `P`"),
        "{written:?}"
    );
    let text = fs::read_to_string(&file).expect("the file");
    assert!(
        text.contains("${env:API_TOKEN}") && !text.contains("s3cret"),
        "{text}"
    );
    assert_eq!(mode(&file), 0o600);
    let again = run(&env, &export);
    assert_eq!(again.status.code(), Some(1), "a file is not overwritten");
    assert_eq!(fs::read_to_string(&file).expect("the file"), text);

    let whole = run(&env, &["export", "--format", "codex", "--secrets", "include"]);
    assert!(out(&whole).contains("s3cret"), "{whole:?}");
    assert!(err(&whole).contains("treat it like a password"), "{whole:?}");
    let masked = run(&env, &["export", "--format", "goose", "--secrets", "mask"]);
    assert!(
        out(&masked).contains("********") && !out(&masked).contains("s3cret"),
        "{masked:?}"
    );

    let said = document(&run(&env, &["export", "--format", "claude-desktop", "--json"]));
    let lost: Vec<(&str, &str)> = said["notExported"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|issue| Some((issue["server"].as_str()?, issue["item"].as_str()?)))
        .collect();
    assert!(lost.contains(&("docs", "docs")), "it runs programs only: {said}");
    assert!(
        lost.contains(&("off", "enabled")) && lost.contains(&("memory", "env")),
        "{said}"
    );
    assert_eq!(said["count"], 2);
    let usage = run(&env, &["export", "--format", "curser"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
    assert!(err(&usage).contains("cursor"), "{usage:?}");
}

fn unknown_names() {
    let env = with_servers();
    for args in [
        &["export", "memry"][..],
        &["status", "memry"],
        &["config", "memry"],
        &["sync", "cursor", "memry"],
    ] {
        let failed = run(&env, args);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        assert!(
            err(&failed).contains("memry") && err(&failed).contains("memory"),
            "{failed:?}"
        );
        let failed = run(&env, &[args, &["--json"]].concat());
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        assert!(document(&failed)["error"]["message"].is_string(), "{failed:?}");
    }
}

fn found_on_this_machine() {
    let env = TestEnv::new();
    let nothing = run(&env, &["import"]);
    assert!(
        nothing.status.success() && err(&nothing).contains("No configuration"),
        "{nothing:?}"
    );
    let json = json!({ "mcpServers": { "a": { "command": "x" } } }).to_string();
    for file in [
        ".cursor/mcp.json",
        ".kiro/settings/mcp.json",
        ".claude.json",
        ".config/Claude/claude_desktop_config.json",
    ] {
        put(&env, file, &json);
    }
    put(&env, ".codex/config.toml", "[mcp_servers.c]\ncommand = \"x\"\n");
    put(
        &env,
        ".config/goose/config.yaml",
        "extensions:\n  g:\n    type: stdio\n    cmd: x\n",
    );
    put(&env, ".config/zed/settings.json", "{ \"theme\": \"One\" }");
    put(&env, ".gemini/settings.json", "{ oops");
    fs::create_dir_all(env.project().join(".vscode")).expect("a folder");
    fs::write(
        env.project().join(".vscode/mcp.json"),
        "{\"servers\": {\"v\": {\"command\": \"x\"}}}",
    )
    .expect("written");
    let found = run(&env, &["import"]);
    for words in [
        "Cursor",
        "Kiro",
        "Claude Code",
        "Claude Desktop",
        "Codex",
        "Goose",
        "VS Code",
        "project",
    ] {
        assert!(out(&found).contains(words), "{words}: {found:?}");
    }
    assert!(!out(&found).contains("Zed"), "it has no servers: {found:?}");
    assert!(
        err(&found).contains(".gemini/settings.json`: line 1"),
        "{found:?}"
    );
    let sources = document(&run(&env, &["sync", "--json"]))["sources"].take();
    let formats: Vec<&str> = sources
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["format"].as_str())
        .collect();
    assert!(
        formats.contains(&"claude-desktop") && formats.contains(&"goose"),
        "{formats:?}"
    );
}

fn imported() {
    let env = TestEnv::new();
    let file = put(
        &env,
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"memory\": {\"command\": \"npx\", \"args\": [\"${env:P}\"], \"autoApprove\": []},\n\
         \"my docs\": {\"url\": \"https://h.example/mcp\"}, \"broken\": {}}}",
    );
    let path = file.to_string_lossy().into_owned();
    let dry = run(&env, &["import", &path, "--dry-run"]);
    assert!(
        err(&dry).contains("Nothing was written") && entries(&env).is_null(),
        "{dry:?}"
    );
    let done = run(&env, &["import", &path]);
    assert_eq!(done.status.code(), Some(1), "one failed: {done:?}");
    assert_eq!(
        out(&done).lines().map(str::trim_end).collect::<Vec<_>>(),
        [
            "NAME     RESULT  SAVED AS  WHY",
            "memory   added   memory",
            "my docs  added   my_docs",
            "broken   failed            it has no command and no address",
        ]
    );
    assert!(
        err(&done).contains("`autoApprove`") && err(&done).contains("Imported 2"),
        "{done:?}"
    );
    assert_eq!(entries(&env)["memory"]["args"], json!(["${P}"]));
    let again = document(&run(&env, &["import", &path, "--json", "--server", "memory"]));
    assert_eq!(again["results"][0]["status"], "skipped");
    let replaced = run(&env, &["import", &path, "--replace", "--server", "memory"]);
    assert!(out(&replaced).contains("replaced"), "{replaced:?}");
    let mut piped = env.command();
    let piped = piped
        .args(["import", "-", "--project"])
        .stdin(fs::File::open(&file).expect("the file"));
    let piped = piped.output().expect("the binary runs");
    assert!(out(&piped).contains("my_docs"), "{piped:?}");
    assert!(env.project().join(".pillion/mcp.json").is_file());
}

fn broken_files_are_named() {
    let env = TestEnv::new();
    for (file, text, place) in [
        ("a.json", "{\n  \"mcpServers\": {\n    \"a\": }", "line 3"),
        ("b.toml", "a = 1\n[mcp_servers.x\n", "line 2"),
        ("c.yaml", "extensions:\n  a: [\n", "line 2"),
        ("d.yaml", "extensions: &e {}\nother: *e\n", "line 2"),
        ("e.json", "", "no text"),
    ] {
        let path = put(&env, file, text).to_string_lossy().into_owned();
        let failed = run(&env, &["import", &path]);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        assert!(
            err(&failed).contains(&path) && err(&failed).contains(place),
            "{failed:?}"
        );
        assert!(err(&failed).contains("hint:"), "{failed:?}");
    }
    let failed = run(&env, &["import", "/nowhere/mcp.json"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(err(&failed).contains("/nowhere/mcp.json"), "{failed:?}");
}

fn written_into_another_program() {
    let env = with_servers();
    let before = "// mine\n{\n  \"theme\": \"One\", // ui\n  \"context_servers\": {\n    \"ext\": { \"settings\": {} }, // theirs\n  },\n}\n";
    let file = put(&env, ".config/zed/settings.json", before);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("mode can be set");
    let dry = run(&env, &["sync", "zed", "--dry-run"]);
    assert!(
        dry.status.success() && out(&dry).contains("+ command: \"npx\""),
        "{dry:?}"
    );
    assert!(
        !out(&dry).contains("s3cret") && !err(&dry).contains("s3cret"),
        "{dry:?}"
    );
    assert_eq!(fs::read_to_string(&file).expect("the file"), before);
    assert!(backups(&env).is_empty());
    let done = run(&env, &["sync", "zed"]);
    assert!(
        done.status.success() && err(&done).contains("Wrote 3 servers"),
        "{done:?}"
    );
    let text = fs::read_to_string(&file).expect("the file");
    for kept in [
        "// mine",
        "\"theme\": \"One\", // ui",
        "\"ext\": { \"settings\": {} }, // theirs",
    ] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(
        text.contains("\"enabled\": false") && !text.contains("s3cret"),
        "{text}"
    );
    assert_eq!(mode(&file), 0o640, "the mode is the other program's");
    let copies = backups(&env);
    assert_eq!(copies.len(), 1);
    assert_eq!(fs::read_to_string(&copies[0]).expect("the copy"), before);
    let again = document(&run(&env, &["sync", "zed", "--json"]));
    assert_eq!(
        (&again["written"], &again["results"][0]["status"]),
        (&json!(0), &json!("unchanged"))
    );
    assert_eq!(backups(&env).len(), 1, "nothing changed");
    assert_eq!(fs::read_to_string(&file).expect("the file"), text);

    let new = run(&env, &["sync", "vscode", "--project", "memory"]);
    assert!(new.status.success(), "{new:?}");
    let text = fs::read_to_string(env.project().join(".vscode/mcp.json")).expect("the file");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        written["servers"]["memory"]["env"]["API_TOKEN"],
        "${input:memory-API_TOKEN}"
    );
    assert_eq!(written["inputs"][0]["password"], true);
    let usage = run(&env, &["sync", "acp"]);
    assert_eq!(usage.status.code(), Some(2), "it has no file: {usage:?}");
    assert!(err(&usage).contains("pillion export"), "{usage:?}");
}

fn what_differs_is_shown() {
    let env = with_servers();
    let before = "{\"mcpServers\": {\"memory\": {\"command\": \"npx\", \"args\": [\"old\"], \"env\": {\"API_TOKEN\": \"theirs\"}, \"own\": 1}}}";
    let file = put(&env, ".cursor/mcp.json", before);
    let shown = run(&env, &["sync", "cursor", "memory"]);
    assert_eq!(shown.status.code(), Some(1), "{shown:?}");
    assert!(out(&shown).contains("- args: [\"old\"]"), "{shown:?}");
    assert!(err(&shown).contains("--replace"), "{shown:?}");
    assert!(!out(&shown).contains("theirs"), "a secret is masked: {shown:?}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), before);
    let replaced = run(&env, &["sync", "cursor", "memory", "--replace"]);
    assert!(replaced.status.success(), "{replaced:?}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).expect("the file")).expect("JSON");
    assert_eq!(
        written["mcpServers"]["memory"]["own"], 1,
        "what only they know stays"
    );
    assert_eq!(written["mcpServers"]["memory"]["args"][0], "-y");
    let skipped = document(&run(&env, &["sync", "cursor", "off", "--json"]));
    assert_eq!(
        skipped["results"][0]["status"], "skipped",
        "it would be started there: {skipped}"
    );
}

fn the_other_way() {
    let env = with_servers();
    let file = put(
        &env,
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"my notes\": {\"command\": \"n\"}, \"memory\": {\"command\": \"other\"},\n\
         \"docs\": {\"url\": \"https://h.example/mcp\", \"headers\": {\"Authorization\": \"Bearer ${env:TOK}\"}}}}",
    );
    let before = fs::read_to_string(&file).expect("the file");
    let dry = run(&env, &["sync", "cursor", "--from", "--dry-run"]);
    assert!(out(&dry).contains("my_notes (my notes there)  added"), "{dry:?}");
    assert_eq!(entries(&env).get("my_notes"), None);
    let taken = document(&run(&env, &["sync", "cursor", "--from", "--json"]));
    let status = |name: &str| {
        let results = taken["results"].as_array().into_iter().flatten();
        results
            .filter(|one| one["server"] == name)
            .map(|one| one["status"].clone())
            .next()
    };
    assert_eq!(
        (status("my_notes"), status("memory"), status("docs")),
        (
            Some(json!("added")),
            Some(json!("differs")),
            Some(json!("unchanged"))
        )
    );
    assert_eq!(entries(&env)["my_notes"]["command"], "n");
    assert_eq!(entries(&env)["memory"]["command"], "npx");
    assert_eq!(fs::read_to_string(&file).expect("the file"), before);
    // There and back again: what came from there keeps its name there.
    let back = document(&run(&env, &["sync", "cursor", "my_notes", "--json"]));
    assert_eq!(
        (&back["results"][0]["status"], &back["results"][0]["name"]),
        (&json!("unchanged"), &json!("my notes"))
    );
}

fn secrets_in_another_program() {
    let env = with_servers();
    let file = put(&env, ".cursor/mcp.json", "{}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("mode can be set");
    let host = Host::start(&env);
    let refused = host
        .ask("mcp.sync", json!({ "client": "cursor", "secrets": "mask" }))
        .expect_err("refused");
    assert_eq!(refused.kind(), "invalid_params");
    let synced = host.must("mcp.sync", json!({ "client": "cursor", "servers": ["memory"] }));
    assert_eq!(
        (&synced["written"], &synced["results"][0]["status"]),
        (&json!(1), &json!("added"))
    );
    assert!(!fs::read_to_string(&file).expect("the file").contains("s3cret"));
    assert_eq!(mode(&file), 0o644);
    let done = run(
        &env,
        &["sync", "cursor", "memory", "--secrets", "include", "--replace"],
    );
    assert!(err(&done).is_empty() || done.status.success(), "{done:?}");
    fs::write(&file, "{}").expect("written");
    let done = run(&env, &["sync", "cursor", "memory", "--secrets", "include"]);
    assert!(err(&done).contains("treat it like a password"), "{done:?}");
    assert!(fs::read_to_string(&file).expect("the file").contains("s3cret"));
    assert_eq!(mode(&file), 0o600, "a file with secrets is the person's only");
}

fn links_and_broken_files() {
    let env = with_servers();
    let real = put(&env, "dotfiles/mcp.json", "{}");
    let link = env.home().join(".cursor/mcp.json");
    fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    assert!(run(&env, &["sync", "cursor", "docs"]).status.success());
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert!(fs::read_to_string(&real).expect("the file").contains("docs"));
    fs::remove_file(&real).expect("removed");
    let nowhere = run(&env, &["sync", "cursor", "docs"]);
    assert_eq!(nowhere.status.code(), Some(1), "{nowhere:?}");
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    let copies = backups(&env).len();
    for (client, file, text) in [
        ("kiro", ".kiro/settings/mcp.json", "{\n \"mcpServers\": oops }"),
        (
            "kiro",
            ".kiro/settings/mcp.json",
            "{\"mcpServers\": {\"a\": {}, \"a\": {}}}",
        ),
        ("kiro", ".kiro/settings/mcp.json", "{\"mcpServers\": []}"),
        ("codex", ".codex/config.toml", "a = \n"),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions: {a: {cmd: x}}\n",
        ),
    ] {
        let path = put(&env, file, text);
        let failed = run(&env, &["sync", client]);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        assert!(err(&failed).contains(&*path.to_string_lossy()), "{failed:?}");
        assert_eq!(fs::read_to_string(&path).expect("the file"), text);
        assert_eq!(backups(&env).len(), copies);
    }
}

fn every_program_there_and_back() {
    let env = TestEnv::new();
    env.write_config(&json!({ "one": { "command": "npx", "args": ["-y", "p"], "env": { "A": "1 2" } } }));
    let host = Host::start(&env);
    let mut written = 0;
    for client in [
        "claude-desktop",
        "claude-code",
        "vscode",
        "cursor",
        "windsurf",
        "antigravity",
        "zed",
        "opencode",
        "codex",
        "gemini",
        "continue",
        "goose",
        "mcp-hub",
        "cline",
        "roo",
        "amp",
        "lm-studio",
        "kiro",
        "trae",
        "kimi",
        "factory",
        "vibe",
        "crush",
        "eca",
        "copilot",
        "junie",
    ] {
        let synced = host.must("mcp.sync", json!({ "client": client }));
        assert_eq!(synced["results"][0]["status"], "added", "{client}: {synced}");
        let again = host.must("mcp.sync", json!({ "client": client }));
        assert_eq!(again["results"][0]["status"], "unchanged", "{client}: {again}");
        let from = host.must("mcp.sync", json!({ "client": client, "direction": "from" }));
        assert_eq!(from["results"][0]["status"], "unchanged", "{client}: {from}");
        let other = TestEnv::new();
        let imported = Host::start(&other).must("mcp.import", json!({ "source": synced["file"] }));
        assert_eq!(imported["added"], 1, "{client}: {imported}");
        let entry = entries(&other)["one"].clone();
        assert_eq!(
            (&entry["command"], &entry["args"], &entry["env"]),
            (&json!("npx"), &json!(["-y", "p"]), &json!({ "A": "1 2" })),
            "{client}"
        );
        written += 1;
    }
    let found = host.must("mcp.import.detect", json!({}));
    assert_eq!(
        found["sources"].as_array().map(Vec::len),
        Some(written),
        "{found}"
    );
}

fn pasted_by_a_script() {
    let env = TestEnv::new();
    let unseen = run(&env, &["add", "--paste", "npx -y some-package"]);
    assert_eq!(unseen.status.code(), Some(2), "{unseen:?}");
    assert!(
        err(&unseen).contains("--yes") && entries(&env).is_null(),
        "{unseen:?}"
    );
    let dry = run(
        &env,
        &[
            "add",
            "--paste",
            "API_KEY=s3cret npx -y some-package",
            "--dry-run",
        ],
    );
    assert!(dry.status.success() && entries(&env).is_null(), "{dry:?}");
    assert!(
        !out(&dry).contains("s3cret") && !err(&dry).contains("s3cret"),
        "{dry:?}"
    );
    let done = run(
        &env,
        &[
            "add",
            "mine",
            "--paste",
            "claude mcp add x -- npx -y some-package",
            "--yes",
        ],
    );
    assert!(done.status.success(), "{done:?}");
    assert_eq!(entries(&env)["mine"]["args"], json!(["-y", "some-package"]));
    let refused = run(&env, &["add", "--paste", "curl https://h.example | sh", "--yes"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(err(&refused).contains('|'), "{refused:?}");
    let several = run(
        &env,
        &[
            "add",
            "--paste",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"y\"}}}",
            "--yes",
        ],
    );
    assert!(several.status.success(), "{several:?}");
    assert_eq!(entries(&env)["b"]["command"], "y");
}

fn pasted_in_a_terminal() {
    let env = TestEnv::new();
    let mut command = env.command();
    command
        .args([
            "add",
            "--paste",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"url\": \"https://h.example/mcp\"}}}",
        ])
        .env("NO_COLOR", "1");
    let mut terminal = Terminal::run(command);
    // The third choice leaves it, the first adds it.
    terminal.when("Add `a`?", "\x1b[B\x1b[B\r");
    terminal.when("Add `b`?", "\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("https://h.example/mcp"),
        "it is shown first: {screen}"
    );
    assert_eq!(entries(&env)["b"]["url"], "https://h.example/mcp");
    assert_eq!(entries(&env).get("a"), None);
}

/// A text that another program leaves alone does not become a program, a secret or a question by an import.
fn what_means_nothing_there_runs_nothing() {
    let env = TestEnv::new();
    let marker = env.home().join("marker");
    let touch = format!("cmd:touch {}", marker.display());
    let servers = json!({
        "head": { "url": "https://h.example/mcp", "headers": { "X": format!("${{{touch}}}") } },
        "named": { "url": "https://h.example/mcp", "bearer_token_env_var": touch },
        "taken": { "command": "x", "env_vars": [touch] },
        "args": { "command": "x", "args": [format!("a ${{A:-${{{touch}}}}}")] },
        "store": { "command": "x", "env": { "K": "${keyring:a/b}" } },
        "asks": { "command": "x", "env": { "K": "${input:nobody}" } },
        "good": { "command": "x", "env": { "K": "${K}", "L": "${env:L}" } },
    });
    let bad = ["head", "named", "taken", "args", "store", "asks"];
    let file = put(&env, "some.json", &json!({ "mcpServers": servers }).to_string());
    let known = put(
        &env,
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
    let ours_in_theirs = env.project().join(".vscode/mcp.json");
    fs::create_dir_all(env.project().join(".vscode")).expect("a folder");
    fs::write(&ours_in_theirs, json!({ "servers": servers }).to_string()).expect("a file");
    let path = |path: &Path| path.display().to_string();
    for args in [
        vec!["import".to_owned(), path(&file)],
        vec!["import".to_owned(), path(&known)],
        vec!["import".to_owned(), path(&ours_in_theirs)],
        vec!["sync".to_owned(), "cursor".to_owned(), "--from".to_owned()],
    ] {
        fs::remove_file(env.data().join("mcp.json")).ok();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let taken = run(&env, &args);
        assert_eq!(taken.status.code(), Some(1), "{args:?} {taken:?}");
        let stored = entries(&env);
        assert!(stored.get("good").is_some(), "{args:?} {taken:?}");
        for name in bad {
            assert_eq!(stored.get(name), None, "{args:?} {taken:?}");
            let row = out(&taken)
                .lines()
                .find(|line| line.starts_with(name))
                .map(str::to_owned);
            assert!(
                row.is_some_and(|row| row.contains("means nothing in that file")),
                "{args:?} {taken:?}"
            );
        }
    }
    run(&env, &["tools"]);
    assert!(!marker.exists());
    // What VS Code asks for is declared in its file.
    let declared = json!({ "servers": { "asks": { "command": "x", "env": { "K": "${input:k}" } } },
        "inputs": [{ "id": "k", "type": "promptString", "password": true }] });
    fs::write(&ours_in_theirs, declared.to_string()).expect("a file");
    let taken = run(&env, &["import", &path(&ours_in_theirs)]);
    assert!(
        taken.status.success() && err(&taken).contains("still to be filled in"),
        "{taken:?}"
    );
}

/// An import and `sync --from` say of a server what a paste says.
fn what_is_taken_over_is_warned_of() {
    let env = TestEnv::new();
    let servers = json!({
        "one": { "command": "bash", "args": ["-c", "true"] },
        "helper": { "url": "https://h.example/mcp", "headersHelper": ["print-headers", "--all"] },
        "plain": { "url": "http://h.example/mcp" },
        "path": { "command": "x", "env": { "PATH": "/elsewhere" } },
    });
    let said = [
        "one: the command is a shell",
        "helper: runs `print-headers --all` at each start",
        "plain: the connection is not encrypted",
        "path: `PATH` decides which programs",
    ];
    put(
        &env,
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
    let file = env.home().join(".cursor/mcp.json").display().to_string();
    for args in [
        &["import", &file, "--dry-run"][..],
        &["sync", "cursor", "--from", "--dry-run"],
        &["import", &file],
    ] {
        let taken = run(&env, args);
        for said in said {
            assert_eq!(err(&taken).matches(said).count(), 1, "{said} {taken:?}");
        }
    }
    // In a file in our form a reference means what it says, and a person is told so.
    let own = put(
        &env,
        "own.json",
        &json!({ "servers": { "own": { "url": "https://h.example/mcp",
        "headers": { "X": "${cmd:vault read x}" } } } })
        .to_string(),
    );
    let taken = run(&env, &["import", &own.display().to_string()]);
    assert!(
        taken.status.success() && err(&taken).contains("own: runs `vault read x` at each start"),
        "{taken:?}"
    );
    assert_eq!(entries(&env)["own"]["headers"]["X"], "${cmd:vault read x}");
}
