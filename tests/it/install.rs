//! Packages fetched once and locked: stand-ins of npm and uv do what the real ones do, without a network.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::doctor::script;
use crate::stories;
use crate::support::scripted::StdioServer;
use crate::support::{Host, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("install":
        fetched_once_and_started_without_a_download, python_packages, what_is_no_plain_call, failures_leave_nothing,
        a_lock_holds_what_differs, a_locked_content_must_come, locked_tools, a_broken_lock, a_project_travels,
        a_cold_start_says_that_it_downloads,
        a_download_has_time, in_the_terminal,
    )
}

/// A registry in small: what npm and uv of this test fetch. A file `version` says which version is the newest.
struct Registry {
    server: StdioServer,
    folder: PathBuf,
}

impl Registry {
    fn new(env: &mut TestEnv) -> Registry {
        let server = env.plain_server("fetched", json!({}));
        let registry = Registry {
            server,
            folder: env.tmp(),
        };
        registry.publish("1.2.3", "one");
        env.set("REGISTRY", &registry.folder.display().to_string());
        // `npm install … -- SPEC` in a folder: a tree with one program, and a lock that names version and integrity.
        script(
            &env.bin().join("npm"),
            r#"for spec in "$@"; do :; done
echo "npm $spec" >> "$REGISTRY/asked"
test -e "$REGISTRY/offline" && { echo "npm error code ENOTFOUND" >&2; exit 1; }
version=$(cat "$REGISTRY/version")
case "$spec" in *@[0-9]*) version=${spec##*@};; esac
integrity=$(cat "$REGISTRY/integrity-$version")
mkdir -p node_modules/@acme/files node_modules/.bin
printf '{"bin": {"files": "x.js"}}' > node_modules/@acme/files/package.json
printf '#!/bin/sh\nexec "$REGISTRY/server" "$@"\n' > node_modules/.bin/files
chmod +x node_modules/.bin/files
printf '{"packages": {"node_modules/@acme/files": {"version": "%s", "integrity": "sha512-%s"}}}' "$version" "$integrity" > package-lock.json
echo "added 1 package" >&2"#,
        );
        script(
            &env.bin().join("npx"),
            "echo npx >> \"$REGISTRY/asked\"; echo fetching >&2; sleep 30",
        );
        script(
            &env.bin().join("uv"),
            r#"echo "uv $1 $2" >> "$REGISTRY/asked"
version=$(cat "$REGISTRY/version")
case "$1 $2" in
"pip compile") read spec; case "$spec" in *==*) version=${spec##*==};; esac
  echo "$version" > compiled
  printf 'acme-time==%s \\\n    --hash=sha256:%s\nother==1 \\\n    --hash=sha256:ff\n' "$version" "$(cat "$REGISTRY/integrity-$version")";;
"venv --quiet") mkdir -p venv/bin;;
"pip install") grep -q require-hashes <<END || exit 1
$*
END
  printf '#!/bin/sh\nexec "$REGISTRY/server" "$@"\n' > venv/bin/acme-time; chmod +x venv/bin/acme-time;;
esac"#,
        );
        script(
            &env.bin().join("uvx"),
            "echo uvx >> \"$REGISTRY/asked\"; sleep 30",
        );
        let entry = registry.server.entry();
        let command = entry["command"].as_str().expect("a command");
        script(
            &registry.folder.join("server"),
            &format!("echo \"started $*\" >> \"$REGISTRY/asked\"\nexec '{command}'"),
        );
        registry
    }

    fn publish(&self, version: &str, integrity: &str) {
        fs::write(self.folder.join("version"), version).expect("a file");
        fs::write(self.folder.join(format!("integrity-{version}")), integrity).expect("a file");
    }

    fn offline(&self) {
        fs::write(self.folder.join("offline"), "").expect("a file");
    }

    /// Who was asked since the last look.
    fn asked(&self) -> Vec<String> {
        let file = self.folder.join("asked");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

fn files() -> Value {
    json!({ "command": "npx", "args": ["-y", "@acme/files", "--root", "."] })
}

fn row(result: &Value) -> &Value {
    &result["servers"][0]
}

#[track_caller]
fn refused(host: &Host, said: &str) {
    let error = host.ask("mcp.start", json!({ "server": "files" }));
    let text = match error {
        Ok(result) => {
            assert_eq!(
                result["server"]["error"]["kind"],
                json!("lock_mismatch"),
                "{result}"
            );
            result["server"]["error"]["message"].to_string()
        }
        Err(error) => {
            assert_eq!(error.kind(), "lock_mismatch", "{error:?}");
            format!("{error:?}")
        }
    };
    assert!(text.contains(said), "{text}");
}

fn fetched_once_and_started_without_a_download() {
    let mut env = TestEnv::new();
    let registry = Registry::new(&mut env);
    env.write_config(&json!({ "files": files() }));
    let host = Host::start(&env);
    let result = host.must("mcp.prefetch", json!({}));
    assert_eq!(row(&result)["status"], json!("fetched"), "{result}");
    assert_eq!(
        row(&result)["package"],
        json!({ "manager": "npm", "name": "@acme/files", "version": "1.2.3", "integrity": "sha512-one" })
    );
    assert_eq!(registry.asked(), ["npm @acme/files"]);
    assert!(env.server_processes().is_empty(), "fetching starts nothing");
    registry.offline();
    host.start_server("files");
    assert_eq!(
        registry.asked(),
        ["started --root ."],
        "the server's own arguments are kept"
    );
    let again = host.must("mcp.prefetch", json!({}));
    assert_eq!(row(&again)["status"], json!("present"));
    let test = host.must("mcp.test", json!({ "server": "files" }));
    assert_eq!(test["ok"], json!(true), "{test}");
    assert!(
        !registry.asked().iter().any(|line| line.starts_with("np")),
        "nobody was asked"
    );
}

fn python_packages() {
    let mut env = TestEnv::new();
    let registry = Registry::new(&mut env);
    env.write_config(&json!({ "time": { "command": "uvx", "args": ["acme-time", "--tz", "UTC"] } }));
    let host = Host::start(&env);
    let result = host.must("mcp.prefetch", json!({}));
    assert_eq!(row(&result)["status"], json!("fetched"), "{result}");
    assert_eq!(row(&result)["package"]["integrity"], json!("sha256:one"));
    assert_eq!(
        registry.asked(),
        ["uv pip compile", "uv venv --quiet", "uv pip install"]
    );
    host.start_server("time");
    assert_eq!(registry.asked(), ["started --tz UTC"]);
}

fn what_is_no_plain_call() {
    let mut env = TestEnv::new();
    let registry = Registry::new(&mut env);
    env.write_config(&json!({
        "code": { "command": "npx", "args": ["-c", "files"] },
        "repository": { "command": "npx", "args": ["-y", "github:acme/files"] },
        "web": { "url": "http://127.0.0.1:9/mcp" },
        "off": { "command": "npx", "args": ["-y", "@acme/files"], "enabled": false },
    }));
    let host = Host::start(&env);
    assert_eq!(host.must("mcp.prefetch", json!({}))["servers"], json!([]));
    assert_eq!(
        host.must("mcp.lock", json!({ "action": "write" }))["servers"],
        json!([])
    );
    let named = host.must("mcp.prefetch", json!({ "servers": ["code"] }));
    assert_eq!(row(&named)["status"], json!("not_needed"), "{named}");
    assert!(registry.asked().is_empty());
    // What a project brings is not fetched before it is trusted: packages may run code while they are installed.
    fs::create_dir(env.project().join(".pillion")).expect("a folder");
    let text = json!({ "servers": { "files": files() } }).to_string();
    fs::write(env.project().join(".pillion/mcp.json"), text).expect("a file");
    assert_eq!(host.must("mcp.prefetch", json!({}))["servers"], json!([]));
    assert!(host.ask("mcp.prefetch", json!({ "servers": ["files"] })).is_err());
    assert!(registry.asked().is_empty());
}

fn failures_leave_nothing() {
    let mut env = TestEnv::new();
    let registry = Registry::new(&mut env);
    registry.offline();
    env.write_config(&json!({ "files": files() }));
    let host = Host::start(&env);
    let result = host.must("mcp.prefetch", json!({}));
    assert_eq!(row(&result)["status"], json!("failed"), "{result}");
    assert!(
        row(&result)["message"].to_string().contains("ENOTFOUND"),
        "{result}"
    );
    let kinds = fs::read_dir(env.data().join("install/npm")).expect("a folder");
    for kind in kinds.flatten() {
        let folders = fs::read_dir(kind.path()).expect("a folder").flatten();
        assert!(
            !folders.into_iter().any(|entry| entry.path().is_dir()),
            "half an installation stays"
        );
    }
}

fn a_lock_holds_what_differs() {
    let mut env = TestEnv::new();
    let registry = Registry::new(&mut env);
    env.write_config(&json!({ "files": files() }));
    let host = Host::start(&env);
    let check = || host.must("mcp.lock", json!({}));
    assert_eq!(row(&check())["status"], json!("unlocked"));
    let written = host.must("mcp.lock", json!({ "action": "write" }));
    assert_eq!(row(&written)["status"], json!("locked"), "{written}");
    let file = env.data().join("mcp.lock.json");
    assert_eq!(written["written"], json!([file]));
    let text = fs::read_to_string(&file).expect("the lock");
    let lock: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        lock,
        json!({ "version": 1, "servers": { "files": {
            "manager": "npm", "package": "@acme/files", "spec": "@acme/files", "version": "1.2.3", "integrity": "sha512-one",
        } } }),
        "nothing of this machine is in it"
    );
    host.start_server("files");
    host.must("mcp.stop", json!({ "server": "files" }));
    // A newer version is out: nothing moves until that is asked for.
    registry.publish("1.3.0", "newer");
    assert_eq!(
        row(&host.must("mcp.prefetch", json!({ "update": true })))["status"],
        json!("present")
    );
    assert_eq!(row(&check())["status"], json!("locked"));
    let updated = host.must("mcp.lock", json!({ "action": "update" }));
    assert_eq!(
        row(&updated)["message"],
        json!("@acme/files 1.3.0 instead of 1.2.3")
    );
    // Somebody puts the old lock back: what is fetched here is another version.
    fs::write(&file, &text).expect("a file");
    assert_eq!(row(&check())["status"], json!("drifted"));
    refused(&host, "1.2.3");
    host.must("mcp.prefetch", json!({}));
    host.start_server("files");
    // The entry asks for something else.
    host.must(
        "mcp.edit",
        json!({ "server": "files", "set": { "args": ["-y", "@acme/files@2.0.0"] } }),
    );
    let drifted = check();
    assert_eq!(row(&drifted)["status"], json!("drifted"), "{drifted}");
    host.must("mcp.stop", json!({ "server": "files" }));
    refused(&host, "@acme/files@2.0.0");
}

fn a_locked_content_must_come() {
    let mut env = TestEnv::new();
    let registry = Registry::new(&mut env);
    env.write_config(&json!({ "files": files() }));
    let host = Host::start(&env);
    host.must("mcp.lock", json!({ "action": "write" }));
    fs::remove_dir_all(env.data().join("install")).expect("it was there");
    assert_eq!(
        row(&host.must("mcp.lock", json!({})))["status"],
        json!("not_installed")
    );
    refused(&host, "not fetched here");
    // The same version with another content.
    registry.publish("1.2.3", "swapped");
    let result = host.must("mcp.prefetch", json!({}));
    assert_eq!(row(&result)["status"], json!("failed"), "{result}");
    assert!(
        row(&result)["message"].to_string().contains("another integrity"),
        "{result}"
    );
    refused(&host, "not fetched here");
    registry.publish("1.2.3", "one");
    registry.publish("9.9.9", "newest");
    let result = host.must("mcp.prefetch", json!({}));
    assert_eq!(row(&result)["package"]["version"], json!("1.2.3"), "{result}");
    host.start_server("files");
}

fn locked_tools() {
    let mut env = TestEnv::new();
    Registry::new(&mut env);
    env.write_config(&json!({ "files": files() }));
    let host = Host::start(&env);
    host.must("mcp.lock", json!({ "action": "write" }));
    host.start_server("files");
    let listed = host.must("mcp.tools.list", json!({ "server": "files" }));
    let tool = listed["items"][0]["name"].as_str().expect("a tool").to_owned();
    host.must("mcp.lock", json!({ "action": "write" }));
    let file = env.data().join("mcp.lock.json");
    let mut lock: Value = serde_json::from_str(&fs::read_to_string(&file).expect("the lock")).expect("JSON");
    let tools = &mut lock["servers"]["files"]["tools"];
    assert!(
        tools[&tool].is_string(),
        "tools are added once they are known: {tools}"
    );
    tools[&tool] = json!("of-another-definition");
    fs::write(&file, lock.to_string()).expect("a file");
    let check = host.must("mcp.lock", json!({}));
    assert_eq!(row(&check)["tools"], json!({ &tool: "changed" }), "{check}");
    host.must("mcp.stop", json!({ "server": "files" }));
    refused(&host, &tool);
    host.must("mcp.lock", json!({ "action": "update" }));
    host.start_server("files");
}

fn a_broken_lock() {
    let mut env = TestEnv::new();
    Registry::new(&mut env);
    let plain = env.plain_server("plain", json!({}));
    env.write_config(&json!({ "files": files(), "plain": plain.entry() }));
    fs::write(env.data().join("mcp.lock.json"), "{ broken").expect("a file");
    let host = Host::start(&env);
    refused(&host, "cannot be read");
    host.start_server("plain");
    let error = host
        .ask("mcp.lock", json!({ "action": "write" }))
        .expect_err("it is not overwritten");
    assert_eq!(error.kind(), "lock_mismatch");
    assert_eq!(
        fs::read_to_string(env.data().join("mcp.lock.json")).expect("it is there"),
        "{ broken"
    );
}

fn a_project_travels() {
    let mut env = TestEnv::new();
    Registry::new(&mut env);
    let host = Host::start(&env);
    host.must(
        "mcp.add",
        json!({ "name": "files", "entry": files(), "scope": "project", "start": false }),
    );
    let locked = host.must("mcp.lock", json!({ "action": "write" }));
    let file = env.project().join(".pillion/mcp.lock.json");
    assert_eq!(locked["written"].as_array().map(Vec::len), Some(1), "{locked}");
    let text = fs::read_to_string(&file).expect("the lock lies in the project");
    assert!(!text.contains("home") && !text.contains("tmp"), "{text}");
    assert_eq!(
        fs::metadata(&file).expect("it").permissions().mode() & 0o777,
        0o644
    );
    host.start_server("files");
    host.must("mcp.remove", json!({ "server": "files" }));
    let left = host.must("mcp.lock", json!({}));
    assert_eq!(row(&left)["status"], json!("unused"), "{left}");
}

fn a_cold_start_says_that_it_downloads() {
    let mut env = TestEnv::new();
    Registry::new(&mut env);
    let mut entry = files();
    entry["startTimeoutMs"] = json!(1500);
    env.write_config(&json!({ "files": entry }));
    let host = Host::start(&env);
    let result = host.must("mcp.test", json!({ "server": "files", "timeoutMs": 2000 }));
    assert!(
        result["fault"]["hint"].to_string().contains("mcp.prefetch"),
        "{result}"
    );
    let started = host.must("mcp.start", json!({ "server": "files" }));
    let error = &started["server"]["error"];
    assert_eq!(error["kind"], json!("timed_out"), "{started}");
    assert!(error["hint"].to_string().contains("mcp.prefetch"), "{started}");
    let issues = started["server"]["issues"].to_string();
    assert!(issues.contains("downloads `@acme/files`"), "{issues}");
}

/// What is certainly a download may take longer than the entry gives its calls; what is in the cache may not.
fn a_download_has_time() {
    for (program, package, cache) in [
        (
            "npx",
            "@acme/files",
            ".npm/_npx/1f/node_modules/@acme/files/package.json",
        ),
        (
            "uvx",
            "Acme_Time",
            ".cache/uv/wheels-v8/pypi/acme-time/1.2.3-py3-none-any/x",
        ),
        ("uvx", "Acme_Time", ".local/share/uv/tools/acme-time/x"),
    ] {
        for is_cached in [false, true] {
            let mut env = TestEnv::new();
            let registry = Registry::new(&mut env);
            script(
                &env.bin().join(program),
                &format!(
                    "echo fetching >&2\nsleep 3\nexec '{}'",
                    registry.folder.join("server").display()
                ),
            );
            // What uv only looked at is not there.
            let looked_at = env
                .home()
                .join(".cache/uv/wheels-v8/pypi/acme-time/1.2.3-py3-none-any.msgpack");
            for file in [Some(looked_at), is_cached.then(|| env.home().join(cache))]
                .into_iter()
                .flatten()
            {
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                fs::write(file, "").expect("a file");
            }
            env.write_config(
                &json!({ "cold": { "command": program, "args": [package], "timeoutMs": 1000 } }),
            );
            let host = Host::start(&env);
            let started = host.must("mcp.start", json!({ "server": "cold" }));
            let wanted = if is_cached { "error" } else { "ready" };
            assert_eq!(
                started["server"]["state"],
                json!(wanted),
                "{program} {cache}: {started}"
            );
        }
    }
}

fn in_the_terminal() {
    let mut env = TestEnv::new();
    let registry = Registry::new(&mut env);
    env.write_config(&json!({ "files": files() }));
    let run = |args: &[&str]| {
        let output = env.command().args(args).output().expect("the binary starts");
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&*env.data().to_string_lossy(), "[DATA]");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, stderr) = run(&["lock", "--check"]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(
        stderr.contains("hint: files: `pillion lock files` locks it"),
        "{stderr}"
    );
    let (code, stdout, stderr) = run(&["lock"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(stdout, "NAME   STATE   WHAT\nfiles  locked  @acme/files 1.2.3\n");
    assert_eq!(stderr, "Wrote [DATA]/mcp.lock.json\n");
    assert_eq!(run(&["lock", "--check"]).0, Some(0));
    let (code, stdout, _) = run(&["prefetch"]);
    assert_eq!(
        (code, &*stdout),
        (
            Some(0),
            "NAME   RESULT   PACKAGE            WHY\nfiles  present  @acme/files 1.2.3\n"
        )
    );
    registry.offline();
    assert_eq!(run(&["tools", "files"]).0, Some(0));
    fs::remove_dir_all(env.data().join("install")).expect("it was there");
    let (code, _, stderr) = run(&["tools", "files"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("hint: `pillion prefetch files` fetches it"),
        "{stderr}"
    );
    let (code, stdout, stderr) = run(&["prefetch"]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
}
