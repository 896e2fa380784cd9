//! Where nobody is to be asked: by `--non-interactive`, by its variable, or for want of a terminal, all the same.

use std::process::Output;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, TestEnv};
use crate::terminal::Terminal;

pub fn stories() -> Vec<Trial> {
    stories!("unattended":
        nothing_is_asked, a_server_gets_no_answer, the_demo_takes_its_defaults, a_no_is_a_code_of_its_own,
        a_job_trusts_what_was_seen_elsewhere, a_host_is_not_asked_either,
    )
}

fn run(env: &TestEnv, args: &[&str]) -> Output {
    env.command().args(args).output().expect("the binary runs")
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The same command in every way that has nobody to ask; answers its exit code and what it wrote, which do not differ.
#[track_caller]
fn everywhere(env: &TestEnv, args: &[&str]) -> (Option<i32>, String) {
    let piped = run(env, args);
    let said = [piped.stdout.as_slice(), &piped.stderr]
        .map(String::from_utf8_lossy)
        .concat();
    for (flags, variable) in [(&["--non-interactive"][..], ""), (&[], "1")] {
        for words in [[flags, args].concat(), [args, flags].concat()] {
            let mut command = env.command();
            command
                .args(&words)
                .env("NO_COLOR", "1")
                .env("PILLION_NON_INTERACTIVE", variable);
            let (code, screen) = Terminal::run(command).end();
            let plain = |text: &str| {
                text.replace('\r', "")
                    .lines()
                    .map(str::trim_end)
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            assert_eq!(
                (code, plain(&screen)),
                (piped.status.code(), plain(&said)),
                "{words:?}"
            );
        }
    }
    (piped.status.code(), said)
}

/// Each command says what it would have asked and what to type instead, and changes nothing.
fn nothing_is_asked() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    crate::trust::write_project(&env, &json!({ "theirs": server.entry() }));
    env.write_config(&json!({
        "mine": server.entry(), "one": { "url": "http://127.0.0.1:9/a" }, "two": { "url": "http://127.0.0.1:9/b" },
    }));
    let host = Host::start(&env);
    host.must(
        "mcp.add",
        json!({ "name": "asked", "entry": server.entry(), "gate": true }),
    );
    drop(host);
    // Something that can be repaired: a file that a crash left behind.
    let leftover = std::fs::File::create(env.data().join(".mcp-x.tmp")).expect("a file");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    leftover.set_modified(old).expect("a time");
    let file = |name: &str| std::fs::read_to_string(env.data().join(name)).unwrap_or_default();
    let before = (file("mcp.json"), file("trust.json"));
    let bundle = crate::bundles::bundle(&env, "acme.mcpb", json!({ "user_config": {} }));
    let bundle = bundle.to_string_lossy();
    let rows: &[(&[&str], i32, &str, &str)] = &[
        (
            &["add"],
            2,
            "what is to be added, and under which name?",
            "pillion add NAME -- COMMAND",
        ),
        (
            &["add", "n"],
            2,
            "what is to be added?",
            "pillion add NAME -- COMMAND",
        ),
        (
            &["add", "--paste", "x"],
            2,
            "Add `x`?",
            "`--yes` adds what is shown above",
        ),
        (
            &["add", "--from", "memory"],
            2,
            "Add `memory`?",
            "`--yes` adds what is shown above",
        ),
        (&["add", &bundle], 2, "Add `acme-files`?", "add it with `--yes`"),
        (&["remove", "mine"], 2, "Remove `mine`?", "`--yes` removes it"),
        (&["doctor", "--fix"], 2, "Do that?", "`--yes` carries it out"),
        (&["auth"], 2, "Log in to which server?", "name it: one, two"),
        (
            &["trust"],
            4,
            "Trust these servers as they stand?",
            "`pillion trust --revision ",
        ),
        (
            &["trust", "--json"],
            4,
            "Trust these servers as they stand?",
            "`pillion trust --revision ",
        ),
        (
            &["approve"],
            4,
            "Approve what is asked for `asked`?",
            "`pillion approve NAME --revision REVISION`",
        ),
        (
            &["approve", "asked", "--json"],
            4,
            "Approve what is asked for `asked`?",
            "`--reject`",
        ),
    ];
    for (args, code, question, instead) in rows {
        let (ended, said) = everywhere(&env, args);
        assert_eq!(ended, Some(*code), "{args:?}: {said}");
        assert!(
            said.contains(&format!("error: nobody can be asked here: {question}")) && said.contains(instead),
            "{args:?}: {said}"
        );
    }
    assert_eq!((file("mcp.json"), file("trust.json")), before);
    assert!(env.opened().is_empty() && server.log.starts().is_empty());
    let refused = run(&env, &["remove", "mine", "--json"]);
    let document: Value = serde_json::from_slice(&refused.stdout).expect("one document");
    assert_eq!(
        (
            &document["error"]["data"]["kind"],
            &document["error"]["data"]["hint"]
        ),
        (&json!("cannot_ask"), &json!("`--yes` removes it")),
        "{document}"
    );
    // Where there is nothing to ask, nothing differs from a terminal.
    for (args, code) in [
        (&["status"][..], 0),
        (&["approve", "mine"], 0),
        (&["approve", "nowhere"], 1),
        (&["remove", "nowhere"], 1),
        (&["call", "mine", "echo"], 0),
        // Nobody types what stdin is to say.
        (&["call", "mine", "echo", "-"], 2),
        (&["add", "--yes", "--paste", "-"], 2),
        (&["import", "-"], 2),
    ] {
        assert_eq!(everywhere(&env, args).0, Some(code), "{args:?}");
    }
}

/// A question of a server is declined unseen, and a secret that only a person knows ends the command.
fn a_server_gets_no_answer() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    let mut secret = server.entry();
    secret["env"] = json!({ "API_KEY": "${input:key}" });
    env.write_config(&json!({
        "notes": { "command": env!("CARGO_BIN_EXE_pillion"), "args": ["demo-server", "stdio"] }, "secret": secret,
    }));
    for (variable, hint) in [
        ("", "run this in a terminal to be asked"),
        (
            "1",
            "without `--non-interactive` and `PILLION_NON_INTERACTIVE`, a terminal asks",
        ),
    ] {
        let mut command = env.command();
        command.env("PILLION_NON_INTERACTIVE", variable);
        let called = command
            .args(["call", "notes", "share_note", "note=ideas"])
            .output()
            .expect("the binary runs");
        assert_eq!(called.status.code(), Some(0), "{called:?}");
        assert!(
            err(&called).contains("nobody can be asked") && err(&called).contains(hint),
            "{called:?}"
        );
    }
    let (code, said) = everywhere(&env, &["call", "secret", "echo"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(server.log.starts().is_empty());
}

fn the_demo_takes_its_defaults() {
    let mut env = TestEnv::new();
    let tmp = env.tmp().to_string_lossy().into_owned();
    env.set("TMPDIR", &tmp);
    let mut command = env.command();
    command.args(["demo", "--non-interactive"]).env("NO_COLOR", "1");
    let (code, screen) = Terminal::run(command).end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("(the defaults; nobody is asked)"), "{screen}");
}

/// A person's no, and leaving without an answer, end with 4: what comes next in a script must not go on.
fn a_no_is_a_code_of_its_own() {
    let env = TestEnv::new();
    let server = env.plain_server("p", json!({}));
    crate::trust::write_project(&env, &json!({ "theirs": server.entry() }));
    env.write_config(&json!({ "mine": server.entry() }));
    let host = Host::start(&env);
    host.must(
        "mcp.add",
        json!({ "name": "asked", "entry": server.entry(), "gate": true }),
    );
    let bundle = crate::bundles::bundle(&env, "acme.mcpb", json!({ "user_config": {} }));
    let bundle = bundle.to_string_lossy();
    let rows: &[(&[&str], &str, &str, &str)] = &[
        (
            &["trust"],
            "Trust these servers as they stand?",
            "n\r",
            "The project is not trusted",
        ),
        (
            &["trust"],
            "Trust these servers as they stand?",
            "\x1b",
            "The project is not trusted",
        ),
        (&["remove", "mine"], "Remove `mine`?", "\r", "Nothing was changed"),
        (
            &["remove", "mine"],
            "Remove `mine`?",
            "\x1b",
            "Nothing was changed",
        ),
        (
            &["approve"],
            "Approve what is asked for `asked`?",
            "\x1b",
            "`asked` still waits",
        ),
        (
            &["add", &bundle],
            "Add `acme-files`?",
            "n\r",
            "Nothing was written",
        ),
    ];
    for (args, question, keys, said) in rows {
        let mut command = env.command();
        // As for other programs, `0` means no.
        command
            .args(*args)
            .env("NO_COLOR", "1")
            .env("PILLION_NON_INTERACTIVE", "0");
        let mut terminal = Terminal::run(command);
        terminal.when(question, keys);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(4), "{args:?}: {screen}");
        assert!(screen.contains(said), "{args:?}: {screen}");
    }
    assert_eq!(host.status("theirs")["state"], "needs_trust");
    assert_eq!(host.status("asked")["state"], "pending");
    assert_eq!(host.status("mine")["state"], "stopped");
    assert_eq!(host.status("acme-files"), Value::Null);
}

/// The revision of a project is the same on every machine: it can stand in the job's own text, and nothing else passes.
fn a_job_trusts_what_was_seen_elsewhere() {
    let (here, job) = (TestEnv::new(), TestEnv::new());
    let servers = json!({ "srv": { "command": "p", "args": ["--mode", "fast"], "cwd": "." } });
    let server = job.plain_server("p", json!({}));
    crate::trust::write_project(&here, &servers);
    crate::trust::write_project(&job, &servers);
    let review: Value = serde_json::from_slice(&run(&here, &["trust", "--json"]).stdout).expect("JSON");
    let revision = review["revision"].as_str().expect("a revision");
    assert_eq!(
        run(&job, &["call", "srv", "echo", "--non-interactive"])
            .status
            .code(),
        Some(1)
    );
    let trusted = run(&job, &["trust", "--revision", revision, "--non-interactive"]);
    assert_eq!(trusted.status.code(), Some(0), "{trusted:?}");
    assert_eq!(run(&job, &["trust", "--non-interactive"]).status.code(), Some(0));
    let called = run(&job, &["call", "srv", "echo", "--non-interactive"]);
    assert_eq!(called.status.code(), Some(0), "{called:?}");
    // A commit that changes what would run is not what was seen.
    let mut changed = servers;
    changed["srv"]["args"] = json!(["--evil"]);
    crate::trust::write_project(&job, &changed);
    let refused = run(&job, &["trust", "--revision", revision, "--non-interactive"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        err(&refused).contains("the project is not as it was shown"),
        "{refused:?}"
    );
    assert_eq!(
        run(&job, &["call", "srv", "echo", "--non-interactive"])
            .status
            .code(),
        Some(1)
    );
    assert_eq!(server.log.starts().len(), 1);
}

/// An agent's job: what was allowed before goes on, and nobody is asked whatever the host declares.
fn a_host_is_not_asked_either() {
    let mut env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let mut free = server.entry();
    free["tools"] = json!({ "auto": ["*"] });
    env.write_config(&json!({ "srv": server.entry(), "free": free }));
    let start = |env: &TestEnv| {
        let initialization =
            json!({ "toolApproval": "ask", "capabilities": { "questions": true, "openUrl": true } });
        Host::start_with(
            env,
            HostOptions {
                initialization,
                ..Default::default()
            },
        )
    };
    let call =
        |server: &str| json!({ "name": format!("mcp__{server}__echo"), "arguments": {}, "session": "job" });
    env.set("PILLION_NON_INTERACTIVE", "1");
    let host = start(&env);
    assert_eq!(host.must("mcp.model.call", call("free"))["outcome"], "ok");
    let refused = host.must("mcp.model.call", call("srv"));
    assert_eq!(
        (&refused["outcome"], &refused["failure"]["kind"]),
        (&json!("cannot_ask"), &json!("cannot_ask")),
        "{refused}"
    );
    assert!(host.notifications("mcp.question").is_empty());
    // A yes that a person gave once is a yes in the job.
    env.set("PILLION_NON_INTERACTIVE", "");
    let attended = start(&env);
    let pending = attended.send_here("mcp.model.call", call("srv"));
    let question = attended.wait_question(0);
    attended
        .request(
            "mcp.answer",
            json!({ "question": question["id"], "action": "accept", "remember": "always" }),
        )
        .expect("an answer");
    assert_eq!(pending.wait().expect("a result")["outcome"], "ok");
    assert_eq!(host.must("mcp.model.call", call("srv"))["outcome"], "ok");
}
