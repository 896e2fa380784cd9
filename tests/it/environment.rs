//! What a server gets of Pillion's environment: a project's has no credentials and no loaders that it did not spell out.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, StdioServer, TestEnv};
use crate::trust::{trust, write_project};

pub fn stories() -> Vec<Trial> {
    stories!("environment":
        credentials_stay_out, every_documented_name_is_withheld, what_an_entry_spells_out,
        a_file_does_not_choose_the_program,
    )
}

fn credentials_stay_out() {
    let mut env = TestEnv::new();
    for (name, value) in [
        ("GITHUB_TOKEN", "gh-1"),
        ("AWS_SECRET_ACCESS_KEY", "aws-2"),
        ("LD_PRELOAD_CHECK", "ld-3"),
        ("NODE_OPTIONS", "--max-old-space-size=4096"),
        ("MY_TOKEN", "my-4"),
        ("PLAIN", "p-5"),
    ] {
        env.set(name, value);
    }
    let (project, user) = (env.plain_server("p", json!({})), env.plain_server("u", json!({})));
    let mut entry = project.entry();
    entry["env"] = json!({ "API_TOKEN": "${MY_TOKEN}", "OWN_KEY": "own-6" });
    write_project(&env, &json!({ "p": entry }));
    env.write_config(&json!({ "u": user.entry() }));
    let host = Host::start(&env);
    trust(&host);
    host.start_server("p");
    host.start_server("u");
    let variables = started_env(&project);
    let get = |name: &str| variables[name].as_str().map(str::to_owned);
    for gone in [
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "LD_PRELOAD_CHECK",
        "NODE_OPTIONS",
        "MY_TOKEN",
    ] {
        assert_eq!(get(gone), None, "{gone}");
    }
    assert_eq!(get("API_TOKEN").as_deref(), Some("my-4"));
    assert_eq!(get("OWN_KEY").as_deref(), Some("own-6"));
    assert_eq!(get("PLAIN").as_deref(), Some("p-5"));
    assert_eq!(
        started_env(&user)["GITHUB_TOKEN"],
        "gh-1",
        "the user's own servers get everything"
    );
    let issues = host.status("p")["issues"].to_string();
    assert!(
        issues.contains("withheld") && issues.contains("GITHUB_TOKEN") && issues.contains("API_TOKEN"),
        "{issues}"
    );
    assert!(!issues.contains("gh-1") && !issues.contains("own-6"), "{issues}");
}

/// What docs/security.md lists is what happens, name by name.
fn every_documented_name_is_withheld() {
    let docs = include_str!("../../docs/security.md");
    let list = |title: &str| {
        let (_, after) = docs.split_once(&format!("\n- {title}: ")).expect("the list");
        after.lines().next().expect("a line")
    };
    let quoted =
        |line: &str| -> Vec<String> { line.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let words = list("Credentials").split(';').next().expect("the words");
    let (_, words) = words.split_once("contain ").expect("words");
    let words = words.replace(" or ", ", ");
    let mut names: Vec<String> = words.split(", ").map(|word| format!("my{word}1")).collect();
    names.extend(quoted(list("Credentials")));
    names.extend(quoted(
        list("Loaders").split(" An `envFile`").next().expect("the names"),
    ));
    assert!(names.len() > 50, "{names:?}");
    let mut env = TestEnv::new();
    // An ending, a beginning, and the case of a name stand for many.
    let names: Vec<String> = names
        .into_iter()
        .map(|name| match name.as_str() {
            ending if ending.starts_with('_') && ending != "_JAVA_OPTIONS" => format!("MY{ending}"),
            beginning => beginning.replace('*', "X"),
        })
        .collect();
    for name in &names {
        env.set(name, "1");
    }
    let server = env.plain_server("p", json!({}));
    write_project(&env, &json!({ "p": server.entry() }));
    env.set("PLAIN", "p-5");
    let host = Host::start(&env);
    trust(&host);
    host.start_server("p");
    let variables = started_env(&server);
    assert_eq!(variables["PLAIN"], "p-5");
    let issues = host.status("p")["issues"].to_string();
    for name in &names {
        assert_eq!(variables.get(name), None, "{name}");
        assert!(issues.contains(name.as_str()), "{name} is not told: {issues}");
    }
}

/// A name that the entry spells out is passed on, and a person was told what it does; a file beside it spells out nothing.
fn what_an_entry_spells_out() {
    let mut env = TestEnv::new();
    env.set("NODE_OPTIONS", "--from-outside");
    env.set("GITHUB_TOKEN", "gh-1-secret");
    let server = env.plain_server("p", json!({}));
    let mut entry = server.entry();
    entry["env"] = json!({ "NODE_OPTIONS": "--max-old-space-size=64", "GITHUB_TOKEN": "${GITHUB_TOKEN}" });
    entry["envFile"] = json!("p.env");
    std::fs::write(
        env.project().join("p.env"),
        "LD_PRELOAD=/evil.so\nPYTHONPATH=/evil\nFILE_TOKEN=ft-2-secret\nMODE=fast\n",
    )
    .expect("a file");
    write_project(&env, &json!({ "p": entry }));
    let host = Host::start(&env);
    let review = host.must("mcp.trust", json!({}))["reviews"][0].clone();
    let warnings = review["warnings"].to_string();
    assert!(
        warnings.contains("`NODE_OPTIONS` loads code into every program the server starts")
            && !warnings.contains("GITHUB_TOKEN"),
        "{review}"
    );
    assert_eq!(review["reads"], json!(["${GITHUB_TOKEN}", "p.env"]));
    let shown = env.command().arg("trust").output().expect("the binary runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("warning: `NODE_OPTIONS` loads code"), "{shown}");
    trust(&host);
    host.start_server("p");
    let variables = started_env(&server);
    for (name, value) in [
        ("NODE_OPTIONS", json!("--max-old-space-size=64")),
        ("GITHUB_TOKEN", json!("gh-1-secret")),
        ("FILE_TOKEN", json!("ft-2-secret")),
        ("MODE", json!("fast")),
        ("LD_PRELOAD", Value::Null),
        ("PYTHONPATH", Value::Null),
    ] {
        assert_eq!(variables[name], value, "{name}");
    }
    let issues = host.status("p")["issues"].to_string();
    for told in [
        "withheld from its environment: LD_PRELOAD, PYTHONPATH",
        "passed on, since the entry lists it: GITHUB_TOKEN, NODE_OPTIONS, FILE_TOKEN",
    ] {
        assert!(issues.contains(told), "{told} in {issues}");
    }
    assert!(!issues.contains("-secret"), "{issues}");
    // A reference to what is not set is named, and nothing starts.
    let mut unset = server.entry();
    unset["env"] = json!({ "MODE": "${NOT_SET_ANYWHERE}" });
    write_project(&env, &json!({ "p": unset }));
    trust(&host);
    let error = host
        .ask("mcp.start", json!({ "server": "p" }))
        .expect("an answer");
    assert!(
        error["server"]["error"]["message"]
            .to_string()
            .contains("`NOT_SET_ANYWHERE`"),
        "{error}"
    );
    assert_eq!(server.log.starts().len(), 1);
}

/// An `envFile` changes with each commit and nobody is asked: what was trusted is found where the person has it.
fn a_file_does_not_choose_the_program() {
    let docs = include_str!("../../docs/security.md");
    let (_, after) = docs.split_once("\n- Finders: ").expect("the list");
    let line = after.split(". They decide").next().expect("the names");
    let names: Vec<String> = line
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|name| name.replace('*', "X"))
        .collect();
    assert!(names.len() > 10 && names[0] == "PATH", "{names:?}");
    let env = TestEnv::new();
    let mine = env.plain_server("p", json!({}));
    let theirs = env.project().join("bin");
    std::fs::create_dir(&theirs).expect("a folder");
    let evil = StdioServer::plain(&theirs, "p", json!({}));
    let text: String = names
        .iter()
        .map(|name| format!("{name}={}\n", theirs.display()))
        .collect();
    std::fs::write(env.project().join("p.env"), format!("{text}MODE=fast\n")).expect("a file");
    let entry = json!({ "command": "p", "envFile": "p.env" });
    write_project(&env, &json!({ "p": entry }));
    let host = Host::start(&env);
    trust(&host);
    host.start_server("p");
    assert_eq!((evil.log.starts().len(), mine.log.starts().len()), (0, 1));
    let variables = started_env(&mine);
    assert_eq!(variables["MODE"], "fast");
    let issues = host.status("p")["issues"].to_string();
    for name in &names {
        assert_ne!(variables[name], json!(theirs), "{name}");
        assert!(issues.contains(name.as_str()), "{name} is not told: {issues}");
    }
    // Spelled out where it is reviewed, it counts, and the review says what it does.
    let mut spelled = entry;
    spelled["env"] = json!({ "PATH": format!("{}:/usr/bin:/bin", theirs.display()) });
    write_project(&env, &json!({ "p": spelled.clone() }));
    let review = host.must("mcp.trust", json!({}))["reviews"][0].clone();
    assert!(
        review["warnings"]
            .to_string()
            .contains("`PATH` decides which programs or packages the server finds"),
        "{review}"
    );
    trust(&host);
    host.start_server("p");
    assert_eq!((evil.log.starts().len(), mine.log.starts().len()), (1, 1));
    // The person's own file may choose.
    let own = env.home().join("p.env");
    std::fs::write(&own, format!("PATH={}:/usr/bin:/bin\n", theirs.display())).expect("a file");
    env.write_config(&json!({ "own": { "command": "p", "envFile": own } }));
    host.start_server("own");
    assert_eq!((evil.log.starts().len(), mine.log.starts().len()), (2, 1));
}

/// The environment of the server's last start.
pub fn started_env(server: &StdioServer) -> Value {
    server
        .log
        .starts()
        .last()
        .map(|start| start["env"].clone())
        .unwrap_or_default()
}
