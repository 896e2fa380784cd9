//! `pillion add`: what is typed or asked for becomes one entry as it stands, and starts nothing.

use std::net::TcpListener;
use std::process::Output;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};
use crate::terminal::Terminal;

pub fn stories() -> Vec<Trial> {
    stories!("adding":
        an_entry_is_written_as_typed, a_login_is_described_and_not_begun, a_dry_run_writes_nothing,
        what_is_there_is_not_overwritten, what_does_not_go_together, a_replaced_server_is_another_one,
        what_was_done_is_said, the_wizard_for_a_program, the_wizard_for_a_service, the_wizard_asks_for_the_rest,
        the_wizard_can_be_left, nothing_is_added_unseen, a_script_of_this_folder, words_at_the_wrong_place,
    )
}

fn run(env: &TestEnv, args: &[&str]) -> Output {
    env.command().args(args).output().expect("the binary runs")
}

#[track_caller]
fn runs(env: &TestEnv, args: &[&str]) -> Output {
    let output = run(env, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    output
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(env: &TestEnv) -> String {
    std::fs::read_to_string(env.data().join("mcp.json")).unwrap_or_default()
}

fn entry(env: &TestEnv, name: &str) -> Value {
    let file: Value = serde_json::from_str(&text(env)).unwrap_or_default();
    file["servers"][name].clone()
}

fn in_terminal(env: &TestEnv, args: &[&str]) -> Terminal {
    let mut command = env.command();
    // Words stand together without colours between them.
    command.args(args).env("NO_COLOR", "1");
    Terminal::run(command)
}

const ENTER: &str = "\r";
const DOWN: &str = "\x1b[B";
const ESCAPE: &str = "\x1b";
const CONTROL_C: &str = "\x03";
const BACKSPACE: &str = "\x7f";

/// Nothing is expanded, the rest of the file stays, and who else may read the file does not change.
fn an_entry_is_written_as_typed() {
    let mut env = TestEnv::new();
    env.set("MY_TOKEN", "tk-1-secret");
    env.write_config_text(
        "// mine\n{\n  \"own\": 1.10,\n  \"servers\": {\n    \"b\": { \"command\": \"two\", \"mine\": true }, // kept\n  },\n}\n",
    );
    runs(
        &env,
        &[
            "add",
            "a",
            "--env",
            "TOKEN=${MY_TOKEN}",
            "--env",
            "MODE=${MODE:-fast}",
            "--",
            "npx",
            "-y",
            "${PKG}",
            "a b",
        ],
    );
    let after = text(&env);
    for kept in [
        "// mine",
        "\"own\": 1.10",
        "\"mine\": true }, // kept",
        "\"${MY_TOKEN}\"",
        "\"${MODE:-fast}\"",
        "\"${PKG}\"",
        "\"a b\"",
    ] {
        assert!(after.contains(kept), "{kept} in {after}");
    }
    assert!(!after.contains("tk-1-secret"), "{after}");
    runs(
        &env,
        &[
            "add",
            "ours",
            "--project",
            "--header",
            "X-Key: ${MY_TOKEN}",
            "--url",
            "https://h.example/${PATH_OF_IT}",
        ],
    );
    let shared =
        std::fs::read_to_string(env.project().join(".pillion/mcp.json")).expect("the project's file");
    assert!(
        shared.contains("\"${MY_TOKEN}\"") && shared.contains("/${PATH_OF_IT}\""),
        "{shared}"
    );
    assert!(!text(&env).contains("ours"), "one file only");
}

/// The settings of a login are stored; nobody is asked for one, and the server is not even reached.
fn a_login_is_described_and_not_begun() {
    let mut env = TestEnv::new();
    env.set("DOCS_SECRET", "cs-1-secret");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it can wait for nobody");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let back = "http://127.0.0.1:19876/mcp/oauth/callback?from=docs";
    runs(
        &env,
        &[
            "add",
            "docs",
            "--url",
            &url,
            "--client-id",
            "abc",
            "--client-secret-env",
            "DOCS_SECRET",
            "--scope",
            "read",
            "--callback-port",
            "19876",
            "--redirect-uri",
            back,
        ],
    );
    assert_eq!(
        entry(&env, "docs")["oauth"],
        json!({ "clientId": "abc", "clientSecret": "${DOCS_SECRET}", "scope": "read", "callbackPort": 19876, "redirectUri": back })
    );
    assert!(!text(&env).contains("cs-1-secret"), "{}", text(&env));
    runs(&env, &["add", "plain", "--url", &url, "--no-oauth"]);
    assert_eq!(entry(&env, "plain")["oauth"], json!(false));
    assert!(listener.accept().is_err(), "nobody came");
    assert!(!env.data().join("mcp-auth.json").exists());
    assert!(env.opened().is_empty());
    let status: Value = serde_json::from_str(&out(&runs(&env, &["status", "docs", "--json"]))).expect("JSON");
    assert_eq!(
        (&status["servers"][0]["auth"], &status["servers"][0]["authStored"]),
        (&json!("none"), &json!(false)),
        "{status}"
    );
}

/// What would be written is shown with its secrets masked, in every way to add.
fn a_dry_run_writes_nothing() {
    let env = TestEnv::new();
    env.write_config(&json!({ "a": { "command": "one" } }));
    let before = text(&env);
    for args in [
        &[
            "add",
            "b",
            "--dry-run",
            "--env",
            "API_KEY=k-1-secret",
            "--",
            "seen",
        ][..],
        &["add", "a", "--dry-run", "--replace", "--", "seen"],
        &["add", "b", "--dry-run", "--project", "--", "seen"],
        &["add", "b", "--dry-run", "--test", "--", "seen"],
        &["add", "--dry-run", "--paste", "seen --api-key k-1-secret"],
        &[
            "add",
            "b",
            "--dry-run",
            "--url",
            "https://h.example/seen?token=k-1-secret",
        ],
    ] {
        let shown = runs(&env, args);
        assert!(
            out(&shown).contains("seen") && err(&shown).ends_with("Nothing was written\n"),
            "{shown:?}"
        );
        assert!(!format!("{shown:?}").contains("k-1-secret"), "{shown:?}");
        let shown = run(&env, &[&["add", "--json"], &args[1..]].concat());
        let document: Value = serde_json::from_str(&out(&shown)).expect("one document");
        assert_eq!(document["written"], json!(false), "{document}");
    }
    let mut terminal = in_terminal(&env, &["add", "b", "--dry-run"]);
    terminal.when("What is it?", ENTER);
    terminal.when("Program:", &format!("seen{ENTER}"));
    terminal.when("Argument:", ENTER);
    terminal.when("Variable:", ENTER);
    terminal.when("For whom?", ENTER);
    let (code, screen) = terminal.end();
    assert!(
        code == Some(0) && screen.contains("Nothing was written"),
        "{screen}"
    );
    assert_eq!(text(&env), before);
    assert!(!env.project().join(".pillion").exists());
    // What could not be written is refused all the same.
    assert_eq!(
        run(&env, &["add", "a", "--dry-run", "--", "x"]).status.code(),
        Some(1)
    );
}

fn what_is_there_is_not_overwritten() {
    let env = TestEnv::new();
    env.write_config(&json!({ "a": { "command": "one", "label": "Mine" }, "b": { "command": "two" } }));
    let before = text(&env);
    let refused = run(&env, &["add", "a", "--", "other"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        err(&refused).contains("error: \"a\" is already used by \"Mine\"")
            && err(&refused).contains("add `--replace`"),
        "{refused:?}"
    );
    assert_eq!(text(&env), before);
    runs(&env, &["add", "a", "--replace", "--", "other"]);
    assert_eq!(
        (
            &entry(&env, "a")["command"],
            entry(&env, "a").get("label"),
            &entry(&env, "b")["command"]
        ),
        (&json!("other"), None, &json!("two")),
        "replaced as a whole"
    );
    for file in [
        env.data().join("mcp.json"),
        env.project().join(".pillion/mcp.json"),
    ] {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let broken = "{\n  \"servers\": {\n    \"a\": }\n";
        std::fs::write(&file, broken).expect("a file");
        let scope = if file.starts_with(env.project()) {
            "--project"
        } else {
            "--replace"
        };
        let refused = run(&env, &["add", "c", scope, "--", "x"]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(err(&refused).contains("line 3, column 10"), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), broken);
    }
}

/// Each in the words of the command line.
fn what_does_not_go_together() {
    let env = TestEnv::new();
    let url = ["--url", "https://h.example/mcp"];
    let local = ["--", "x"];
    let rows: &[(&[&str], &[&str], &str)] = &[
        (
            &url,
            &["--no-oauth", "--callback-port", "1"],
            "'--no-oauth' cannot be used with '--callback-port",
        ),
        (
            &url,
            &["--no-oauth", "--redirect-uri", "http://h/"],
            "'--no-oauth' cannot be used with '--redirect-uri",
        ),
        (
            &url,
            &["--no-oauth", "--client-id", "a"],
            "'--no-oauth' cannot be used with '--client-id",
        ),
        (
            &url,
            &["--no-oauth", "--scope", "a"],
            "'--no-oauth' cannot be used with '--scope",
        ),
        (&url, &["--client-secret-env", "A"], "--client-id <ID>"),
        (
            &url,
            &["--client-id", "a", "--client-secret-env", "not a name"],
            "write the name of a variable",
        ),
        (&url, &["--callback-port", "0"], "0 is not in 1..=65535"),
        (&url, &["--callback-port", "65536"], "65536 is not in 1..=65535"),
        (
            &url,
            &["--redirect-uri", "nonsense"],
            "`oauth.redirectUri` is no URL",
        ),
        (
            &url,
            &["--redirect-uri", "ftp://h/cb"],
            "`oauth.redirectUri` must be http or https",
        ),
        (
            &url,
            &["--redirect-uri", "http://me:pw-secret@h/cb"],
            "`oauth.redirectUri` must not name a user",
        ),
        (
            &url,
            &["--redirect-uri", "https://h/cb#part"],
            "`oauth.redirectUri` must not have a fragment",
        ),
        (
            &url,
            &["--header", "X: 1", "--header", "x: 2"],
            "`--header` names `x` twice",
        ),
        (
            &url,
            &["--env", "A=1"],
            "`env` belongs to a server with `command`",
        ),
        (&["--url", "nonsense"], &[], "`url` lacks the `https://` in front"),
        (
            &local,
            &["--callback-port", "1"],
            "`--callback-port` belongs to a remote server",
        ),
        (
            &local,
            &["--redirect-uri", "http://h/"],
            "`--redirect-uri` belongs to a remote server",
        ),
        (&local, &["--no-oauth"], "`--no-oauth` belongs to a remote server"),
        (
            &local,
            &["--client-id", "a"],
            "`--client-id` belongs to a remote server",
        ),
        (&local, &["--scope", "a"], "`--scope` belongs to a remote server"),
        (
            &local,
            &["--transport", "sse"],
            "`--transport` belongs to a remote server",
        ),
        (
            &local,
            &["--header", "X: 1"],
            "`--header` belongs to a remote server",
        ),
        (
            &local,
            &["--env", "A=1", "--env", "A=2"],
            "`--env` names `A` twice",
        ),
        (&local, &["--env", "A"], "write KEY=VALUE"),
    ];
    for (what, options, said) in rows {
        let args = [&["add", "n"], *options, *what].concat();
        let refused = run(&env, &args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {refused:?}");
        assert!(err(&refused).contains(said), "{args:?}: {refused:?}");
        assert!(!err(&refused).contains("pw-secret"), "{refused:?}");
    }
    for (args, said) in [
        (&["add"][..], "and under which name?"),
        (&["add", "n"], "what is to be added?"),
        (&["add", "--", "x"], "the name is missing"),
        (&["add", "n", "x", "y"], "pillion add n -- x y"),
        (&["add", "a b", "--", "x"], "`a b` is no name"),
        (
            &["edit", "n", "--env", "A=1", "--env", "A=2"],
            "`--env` names `A` twice",
        ),
    ] {
        let refused = run(&env, args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {refused:?}");
        assert!(err(&refused).contains(said), "{args:?}: {refused:?}");
    }
    assert!(!env.data().join("mcp.json").exists());
}

/// A host that runs beside it takes over what a terminal replaced: nobody has to restart anything.
fn a_replaced_server_is_another_one() {
    let env = TestEnv::new();
    let (one, two) = (
        env.plain_server("one", json!({})),
        env.plain_server("two", json!({})),
    );
    env.write_config(&json!({ "srv": one.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    runs(&env, &["add", "srv", "--replace", "--", &two.command]);
    host.wait_notification("mcp.changed", |params| {
        params["server"] == "srv"
            && params["status"]["command"]
                .as_str()
                .is_some_and(|said| said.contains("two"))
    });
    host.call("srv", "echo", json!({})).expect("the new one");
    assert_eq!((one.log.starts().len(), two.log.starts().len()), (1, 1));
}

/// "Starts it" is said of what starts.
fn what_was_done_is_said() {
    let mut env = TestEnv::new();
    let policy = env.tmp().join("policy.json");
    std::fs::write(
        &policy,
        json!({ "deny": [{ "command": "npx", "reason": "not reviewed" }] }).to_string(),
    )
    .expect("a file");
    env.set("PILLION_POLICY", &policy.to_string_lossy());
    runs(&env, &["add", "hidden", "--project", "--", "x"]);
    for (args, said, is_ready) in [
        (
            &["add", "good", "--", "x"][..],
            "`pillion tools good` starts it",
            true,
        ),
        (
            &["add", "off", "--disabled", "--", "x"],
            "`pillion enable off` switches it on",
            false,
        ),
        (
            &["add", "no", "--", "npx", "y"],
            "may not start: forbidden: not reviewed",
            false,
        ),
        (
            &["add", "hidden", "--", "x"],
            "another entry of that name goes first",
            false,
        ),
    ] {
        let added = err(&runs(&env, args));
        assert!(
            added.contains("Added `") && added.contains(said),
            "{args:?}: {added}"
        );
        assert_eq!(added.contains("starts it"), is_ready, "{args:?}: {added}");
    }
}

/// What does not fit is told at its question, so that no answer is lost.
fn the_wizard_for_a_program() {
    let env = TestEnv::new();
    env.write_config(&json!({ "notes": { "command": "true" } }));
    let mut terminal = in_terminal(&env, &["add"]);
    terminal.when("Name:", &format!("x y{ENTER}"));
    terminal.when(
        "`x y` is no name",
        &format!("{}notes{ENTER}", BACKSPACE.repeat(3)),
    );
    terminal.when(
        "\"notes\" is already used by \"notes\"",
        &format!("{}memory{ENTER}", BACKSPACE.repeat(5)),
    );
    terminal.when("What is it?", ENTER);
    terminal.when("Program:", &format!("npx -y{ENTER}"));
    terminal.when(
        "only the program belongs here",
        &format!("{}{ENTER}", BACKSPACE.repeat(3)),
    );
    terminal.when("Argument:", &format!("-y{ENTER}"));
    terminal.when("Argument: -y", &format!("a b{ENTER}"));
    terminal.when("Argument: a b", ENTER);
    terminal.when("Variable:", &format!("API_KEY=k{ENTER}"));
    terminal.when(
        "its value is asked for next",
        &format!("{}{ENTER}", BACKSPACE.repeat(2)),
    );
    terminal.when("Value:", &format!("k-1{ENTER}"));
    terminal.when("***", ENTER);
    terminal.when("For whom?", ENTER);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("k-1"), "{screen}");
    assert!(screen.contains("`pillion tools memory` starts it"), "{screen}");
    let written = entry(&env, "memory");
    assert_eq!(
        (&written["command"], &written["args"], &written["env"]),
        (&json!("npx"), &json!(["-y", "a b"]), &json!({ "API_KEY": "k-1" }))
    );
    assert!(env.server_processes().is_empty());
}

fn the_wizard_for_a_service() {
    let env = TestEnv::new();
    let mut terminal = in_terminal(&env, &["add", "docs"]);
    terminal.when("What is it?", &format!("{DOWN}{ENTER}"));
    terminal.when("Address:", &format!("h.example/mcp{ENTER}"));
    terminal.when(
        "lacks the `https://` in front",
        &format!("{}https://h.example/mcp{ENTER}", BACKSPACE.repeat(13)),
    );
    terminal.when("Header:", &format!("X-Api-Key: k{ENTER}"));
    terminal.when(
        "its value is asked for next",
        &format!("{}{ENTER}", BACKSPACE.repeat(3)),
    );
    terminal.when("Value:", &format!("${{DOCS_KEY}}{ENTER}"));
    terminal.when("***", ENTER);
    terminal.when("Log in?", &format!("{DOWN}{ENTER}"));
    terminal.when("For whom?", &format!("{DOWN}{ENTER}"));
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("Name:"), "it was given: {screen}");
    assert_eq!(text(&env), "");
    let shared =
        std::fs::read_to_string(env.project().join(".pillion/mcp.json")).expect("the project's file");
    let shared: Value = serde_json::from_str(&shared).expect("JSON");
    let written = &shared["servers"]["docs"];
    assert_eq!(
        (&written["url"], &written["headers"], &written["oauth"]),
        (
            &json!("https://h.example/mcp"),
            &json!({ "X-Api-Key": "${DOCS_KEY}" }),
            &json!(false)
        )
    );
}

/// What was given is not asked for again, and not forgotten.
fn the_wizard_asks_for_the_rest() {
    let env = TestEnv::new();
    let mut terminal = in_terminal(
        &env,
        &["add", "srv", "--project", "--disabled", "--env", "MODE=fast"],
    );
    terminal.when("Program:", &format!("x{ENTER}"));
    terminal.when("Argument:", ENTER);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    for asked in ["Name:", "What is it?", "Variable:", "For whom?"] {
        assert!(!screen.contains(asked), "{asked}: {screen}");
    }
    let shared =
        std::fs::read_to_string(env.project().join(".pillion/mcp.json")).expect("the project's file");
    let shared: Value = serde_json::from_str(&shared).expect("JSON");
    let written = &shared["servers"]["srv"];
    assert_eq!(
        (&written["command"], &written["enabled"], &written["env"]),
        (&json!("x"), &json!(false), &json!({ "MODE": "fast" }))
    );
    // What is taken is said before anything is asked.
    let (code, screen) = in_terminal(&env, &["add", "srv"]).end();
    assert_eq!(code, Some(2), "{screen}");
    assert!(screen.contains("\"srv\" is already used by \"srv\""), "{screen}");
}

/// At each question: Esc leaves it with nothing written, Ctrl-C ends it at once.
fn the_wizard_can_be_left() {
    let env = TestEnv::new();
    let path = [
        ("Name:", "srv\r"),
        ("What is it?", "\r"),
        ("Program:", "x\r"),
        ("Argument:", "\r"),
        ("Variable:", "K\r"),
        ("Value:", "v\r"),
    ];
    for (key, code, said) in [
        (ESCAPE, 4, "Nothing was written"),
        (CONTROL_C, 130, "interrupted"),
    ] {
        for last in 0..path.len() {
            let mut terminal = in_terminal(&env, &["add"]);
            for (question, answer) in &path[..last] {
                terminal.when(question, answer);
            }
            terminal.when(path[last].0, key);
            let (ended, screen) = terminal.end();
            assert_eq!(ended, Some(code), "{}: {screen}", path[last].0);
            assert!(screen.contains(said), "{}: {screen}", path[last].0);
        }
    }
    assert!(!env.data().join("mcp.json").exists());
}

/// What somebody else wrote is shown whole first; a no writes nothing and starts nothing.
fn nothing_is_added_unseen() {
    let env = TestEnv::new();
    let server = env.plain_server("theirs", json!({}));
    let pasted = format!("{} --token k-1-secret", server.command);
    let paste = ["add", "mine", "--paste", &pasted];
    let gallery = ["add", "mine", "--from", "memory"];
    for (args, shown) in [
        (&paste[..], server.command.as_str()),
        (&gallery[..], "server-memory"),
    ] {
        for (keys, code) in [
            (format!("{DOWN}{DOWN}{ENTER}"), 4),
            (ESCAPE.to_owned(), 4),
            (CONTROL_C.to_owned(), 130),
        ] {
            let mut terminal = in_terminal(&env, args);
            terminal.when("Add `mine`?", &keys);
            let (ended, screen) = terminal.end();
            assert_eq!(ended, Some(code), "{screen}");
            let before = screen.split("Add `mine`?").next().unwrap_or_default();
            assert!(before.contains(shown), "shown before it is asked: {screen}");
            assert!(!screen.contains("k-1-secret"), "{screen}");
        }
        // With one document to print, the look comes before the question all the same.
        let mut terminal = in_terminal(&env, &[args, &["--json"]].concat());
        terminal.when("Add `mine`?", ESCAPE);
        let (_, screen) = terminal.end();
        let before = screen.split("Add `mine`?").next().unwrap_or_default();
        assert!(before.contains(shown), "{screen}");
    }
    assert!(!env.data().join("mcp.json").exists());
    assert!(server.log.starts().is_empty());
    let mut terminal = in_terminal(&env, &paste);
    terminal.when("Add `mine`?", ENTER);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(entry(&env, "mine")["command"], json!(server.command));
    assert!(server.log.starts().is_empty(), "adding starts nothing");
}

/// A server starts in the home folder, or in its project: what lies in the folder one types in is not there.
fn a_script_of_this_folder() {
    let env = TestEnv::new();
    std::fs::write(env.project().join("srv.py"), "").expect("a file");
    let add = |args: &[&str]| {
        let mut command = env.command();
        command
            .current_dir(env.project())
            .args(["add", "--replace", "srv"])
            .args(args);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let warned = add(&["--", "python3", "srv.py"]);
    let folder = env.project().display().to_string();
    assert!(
        warned.contains("`srv.py` is in this folder, and `srv` does not start here")
            && warned.contains(&format!("pillion edit srv --cwd '{folder}'")),
        "{warned}"
    );
    for args in [
        &["--cwd", &folder, "--", "python3", "srv.py"][..],
        &["--project", "--", "python3", "srv.py"],
        &["--", "python3", &format!("{folder}/srv.py")],
        &["--", "python3", "other.py"],
    ] {
        let said = add(args);
        assert!(!said.contains("is in this folder"), "{args:?}: {said}");
    }
}

/// The hint is the command that was probably meant.
fn words_at_the_wrong_place() {
    let env = TestEnv::new();
    for (args, hint) in [
        ("add n cat -", "pillion add n -- cat -"),
        (
            "add n https://h.example/mcp",
            "pillion add n --url https://h.example/mcp",
        ),
        ("add n A=1 -- cat -x", "pillion add n --env A=1 -- cat -x"),
        ("add n B -- cat", "pillion add n -- B cat"),
        ("add npx -y some-server", "pillion add NAME -- npx -y some-server"),
    ] {
        let output = env.command().args(args.split(' ')).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.ends_with(&format!("hint: {hint}\n")), "{args}: {said}");
        assert_eq!(output.status.code(), Some(2), "{args}");
    }
    env.write_config(&json!({ "srv": { "command": "x", "env": { "FOO": "1" } } }));
    let output = env
        .command()
        .args(["edit", "srv", "--unset", "FOO"])
        .output()
        .expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("`--unset /env/FOO` takes it away"), "{said}");
}
