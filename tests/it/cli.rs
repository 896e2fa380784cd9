//! The command line as a person or script meets it: exit code, stdout and stderr of each command.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{TestEnv, clock, processes};

pub fn stories() -> Vec<Trial> {
    stories!("cli":
        usage, status, broken_file, entries, lists, one_failing_server, calls, typed_arguments, arguments_from_files,
        tool_errors, verbatim_json, errors_as_json, reading, prompts, logs, nobody_to_ask, login_needed, denied,
        deadline, interrupted, quiet_when_the_reader_left, schema, completions,
    )
}

/// A place with the demo's own notes server, which ships inside the binary.
fn with_notes() -> TestEnv {
    let env = TestEnv::new();
    env.write_config(&json!({ "notes": notes() }));
    env
}

fn notes() -> Value {
    json!({ "command": env!("CARGO_BIN_EXE_pillion"), "args": ["demo-server", "stdio"] })
}

fn said(env: &TestEnv, line: &str) -> String {
    said_with(env, line, "")
}

/// What a command did, with what differs between runs replaced.
fn said_with(env: &TestEnv, line: &str, stdin: &str) -> String {
    let mut child = command(env, line).spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(stdin.as_bytes()).expect("stdin is read or small");
    drop(pipe);
    let output = child.wait_with_output().expect("an end");
    let mut text = format!("exit {}", output.status.code().unwrap_or(-1));
    for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        let stream = String::from_utf8(bytes).expect("UTF-8");
        if !stream.is_empty() {
            text.push_str(&format!("\n--- {name}\n{}", stream.trim_end_matches('\n')));
        }
    }
    let text = without_time(&text);
    text.replace(env!("CARGO_BIN_EXE_pillion"), "[PILLION]")
        .replace(&*env.data().to_string_lossy(), "[DATA]")
        .replace(&*env.project().to_string_lossy(), "[PROJECT]")
        .replace(&*env.bin().to_string_lossy(), "[BIN]")
}

/// The time in the name of a file that was set aside.
fn without_time(text: &str) -> String {
    let Some((head, tail)) = text.split_once(".corrupt-") else {
        return text.to_owned();
    };
    format!(
        "{head}.corrupt-[TIME]{}",
        tail.trim_start_matches(|c: char| c.is_ascii_digit())
    )
}

/// The words of a line, which hold no blanks themselves.
fn command(env: &TestEnv, line: &str) -> Command {
    let mut command = env.command();
    command
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn usage() {
    let env = TestEnv::new();
    assert!(said(&env, "--help").contains("130  interrupted"));
    for line in ["", "nope", "call", "add x", "add x --url http://a/ -- b"] {
        assert!(said(&env, line).starts_with("exit 2\n--- stderr\n"), "{line}");
    }
    assert_snapshot!(said(&env, "status --directory nowhere"), @r"
    exit 2
    --- stderr
    error: `nowhere` is not a directory
    ");
}

fn status() {
    let env = TestEnv::new();
    assert_snapshot!(said(&env, "status"), @r"
    exit 0
    --- stderr
    No servers are configured; `pillion add NAME -- COMMAND` adds one
    ");
    env.write_config(&json!({
        "notes": notes(), "off": { "command": "x", "enabled": false }, "web": { "url": "https://example.com/mcp?key=1" },
    }));
    assert_snapshot!(said(&env, "status"), @r"
    exit 0
    --- stdout
    NAME   STATE     LAYER  COMMAND
    notes  stopped   user   [PILLION] demo-server stdio
    off    disabled  user   x
    web    stopped   user   https://example.com/mcp
    ");
    assert_snapshot!(said(&env, "status off"), @r"
    exit 0
    --- stdout
    NAME  STATE     LAYER  COMMAND
    off   disabled  user   x
    ");
    assert_snapshot!(said(&env, "status nope"), @r"
    exit 1
    --- stderr
    error: no server is called `nope`
    hint: `pillion status` lists the servers
    ");
    let said = said(&env, "status --json");
    let document: Value =
        serde_json::from_str(said.trim_start_matches("exit 0\n--- stdout\n")).expect("one document");
    assert_eq!(document["servers"].as_array().map(Vec::len), Some(3));
}

fn broken_file() {
    let env = TestEnv::new();
    env.write_config_text("{\n  \"servers\": {\n    \"a\": }\n");
    assert_snapshot!(said(&env, "status"), @r"
    exit 0
    --- stderr
    warning: [DATA]/mcp.json:3:10: unexpected close brace
    hint: mend line 3; a copy of the text is kept as [DATA]/mcp.json.corrupt-[TIME]; until then its servers do not exist, and your switches count as they stood last
    No servers can be told
    ");
    assert_snapshot!(said(&env, "tools a"), @r"
    exit 1
    --- stderr
    warning: [DATA]/mcp.json:3:10: unexpected close brace
    hint: mend line 3; a copy of the text is kept as [DATA]/mcp.json.corrupt-[TIME]; until then its servers do not exist, and your switches count as they stood last
    error: there is no server `a`
    hint: `pillion status` lists the servers
    ");
    assert_snapshot!(said(&env, "add x -- y"), @r"
    exit 1
    --- stderr
    error: `[DATA]/mcp.json` line 3, column 10: unexpected close brace
    hint: mend line 3 and try again; nothing was changed
    ");
}

fn entries() {
    let env = TestEnv::new();
    assert_snapshot!(said(&env, "add docs --url https://example.com/mcp"), @r"
    exit 0
    --- stderr
    Added `docs` to [DATA]/mcp.json
    hint: `pillion tools docs` starts it and lists its tools
    ");
    assert_snapshot!(said(&env, "add docs -- other"), @r#"
    exit 1
    --- stderr
    error: "docs" is already used by "docs"
    hint: choose another name, or add `--replace`
    "#);
    assert_snapshot!(said(&env, "add docs --replace --env TOKEN=${MY_TOKEN} --cwd . -- npx -y docs"), @r"
    exit 0
    --- stderr
    Added `docs` to [DATA]/mcp.json
    hint: `pillion tools docs` starts it and lists its tools
    ");
    assert_snapshot!(said(&env, "add bad.name -- x"), @r"
    exit 2
    --- stderr
    error: `bad.name` is no name: letters, digits, `_` and `-` are, at most 32
    ");
    assert_snapshot!(said(&env, "disable docs"), @r"
    exit 0
    --- stderr
    Disabled `docs`
    ");
    let text = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    let entry = &serde_json::from_str::<Value>(&text).expect("JSON")["servers"]["docs"];
    let expected = json!({ "TOKEN": "${MY_TOKEN}" });
    assert_eq!(
        (&entry["command"], &entry["env"], &entry["enabled"]),
        (&json!("npx"), &expected, &json!(false))
    );
    assert_snapshot!(said(&env, "status"), @r"
    exit 0
    --- stdout
    NAME  STATE     LAYER  COMMAND
    docs  disabled  user   npx -y docs
    ");
    assert_snapshot!(said(&env, "enable docs"), @r"
    exit 0
    --- stderr
    Enabled `docs`
    ");
    assert_snapshot!(said(&env, "remove docs --yes"), @r"
    exit 0
    --- stderr
    Removed `docs`
    ");
    assert_snapshot!(said(&env, "remove docs --yes"), @r"
    exit 1
    --- stderr
    error: there is no server `docs`
    hint: `pillion status` lists the servers
    ");
    let dry = said(
        &env,
        "add new --dry-run --header X-Key:${KEY} --url https://example.com/",
    );
    assert!(
        dry.starts_with("exit 0") && dry.contains("\"X-Key\"") && dry.ends_with("Nothing was written"),
        "{dry}"
    );
    assert_snapshot!(said(&env, "status"), @r"
    exit 0
    --- stderr
    No servers are configured; `pillion add NAME -- COMMAND` adds one
    ");
}

fn lists() {
    let env = with_notes();
    assert_snapshot!(said(&env, "tools"), @r"
    exit 0
    --- stdout
    SERVER  TOOL          DESCRIPTION
    notes   list_notes    Name every note
    notes   import_notes  Import notes one by one, with progress
    notes   share_note    Share a note; asks how
    notes   crash         End the server's process on purpose
    ");
    assert_snapshot!(said(&env, "tools notes"), @r"
    exit 0
    --- stdout
    TOOL          PARAMETERS        DESCRIPTION
    list_notes                      Name every note
    import_notes  [count: integer]  Import notes one by one, with progress
    share_note    note: string      Share a note; asks how
    crash                           End the server's process on purpose
    ");
    assert_snapshot!(said(&env, "resources"), @r"
    exit 0
    --- stdout
    SERVER  URI              NAME      TYPE           SIZE
    notes   note://welcome   welcome   text/markdown  62 B
    notes   note://shopping  shopping  text/markdown  22 B
    notes   note://ideas     ideas     text/markdown  51 B
    ");
    assert_snapshot!(said(&env, "prompts notes"), @r"
    exit 0
    --- stdout
    SERVER  PROMPT     ARGUMENTS      DESCRIPTION
    notes   summarize  note, [style]  Ask for a summary of one note
    ");
    let json = said(&env, "tools --json");
    let document: Value =
        serde_json::from_str(json.trim_start_matches("exit 0\n--- stdout\n")).expect("one document");
    assert_eq!(
        (
            document["items"].as_array().map(Vec::len),
            document["issues"].as_array().map(Vec::len)
        ),
        (Some(4), Some(0))
    );
}

/// One of many is a warning; the one that was named is a failure.
fn one_failing_server() {
    let env = TestEnv::new();
    let crash = env.scripted_server(
        "crash",
        json!({ "start": [{ "err": "no licence" }, { "exit": 7 }] }),
    );
    env.write_config(&json!({ "notes": notes(), "crash": crash.entry() }));
    assert_snapshot!(said(&env, "prompts"), @r"
    exit 0
    --- stdout
    SERVER  PROMPT     ARGUMENTS      DESCRIPTION
    notes   summarize  note, [style]  Ask for a summary of one note
    --- stderr
    warning: `crash`: the server ended during its start with exit code 7: no licence
    hint: the log of the server (`pillion logs crash`) says more
    ");
    assert_snapshot!(said(&env, "prompts crash"), @r"
    exit 1
    --- stderr
    error: `crash`: the server ended during its start with exit code 7: no licence
    hint: the log of the server (`pillion logs crash`) says more
    ");
    assert_snapshot!(said(&env, "tools nope"), @r"
    exit 1
    --- stderr
    error: there is no server `nope`
    hint: `pillion status` lists the servers
    Known names: notes
    ");
}

fn calls() {
    let env = with_notes();
    assert_snapshot!(said(&env, "call notes list_notes"), @r"
    exit 0
    --- stdout
    welcome
    shopping
    ideas
    ");
    assert_snapshot!(said(&env, "call notes import_notes count=2"), @r"
    exit 0
    --- stdout
    Imported 2 notes
    ");
    assert_snapshot!(said(&env, r#"call notes import_notes {"count":1}"#), @r"
    exit 0
    --- stdout
    Imported 1 notes
    ");
    assert_snapshot!(said(&env, "call notes nope"), @r"
    exit 1
    --- stderr
    error: `notes` has no tool `nope`
    hint: `pillion tools notes` shows its tools
    Known names: crash, list_notes, share_note, import_notes
    ");
    assert_snapshot!(said(&env, "call nope list_notes"), @r"
    exit 1
    --- stderr
    error: there is no server `nope`
    hint: `pillion status` lists the servers
    Known names: notes
    ");
    assert_snapshot!(said(&env, "call notes crash"), @r"
    exit 1
    --- stderr
    error: the server ended while the call ran with exit code 3: notes: crashing on purpose
    hint: the log of the server (`pillion logs notes`) says more
    ");
}

fn typed_arguments() {
    let env = with_notes();
    assert_snapshot!(said(&env, "call notes import_notes count=many"), @r"
    exit 2
    --- stderr
    error: `count`: `many` is not a whole number
    hint: `pillion tools notes` lists the parameters
    Parameters of `import_notes`:
      count: integer  How many notes
    ");
    assert_snapshot!(said(&env, "call notes import_notes cuont=2"), @r"
    exit 2
    --- stderr
    error: there is no parameter `cuont`; did you mean `count`?
    hint: `pillion tools notes` lists the parameters
    Parameters of `import_notes`:
      count: integer  How many notes
    ");
    assert_snapshot!(said(&env, "call notes share_note"), @r"
    exit 2
    --- stderr
    error: `note` is missing
    hint: `pillion tools notes` lists the parameters
    Parameters of `share_note`:
      note: string (required)  Name of the note
    ");
    assert_snapshot!(said(&env, "call notes share_note welcome"), @r"
    exit 2
    --- stderr
    error: `welcome` is neither `key=value` nor a JSON object
    hint: `pillion tools notes` lists the parameters
    ");
    assert_snapshot!(said(&env, "call notes share_note {"), @r"
    exit 2
    --- stderr
    error: the argument is not JSON: EOF while parsing an object at line 1 column 1
    hint: `pillion tools notes` lists the parameters
    ");
}

fn arguments_from_files() {
    let env = TestEnv::new();
    let server = env.plain_server("echo", json!({ "tools/call": { "$echo": true } }));
    env.write_config(&json!({ "echo": server.entry() }));
    std::fs::write(env.project().join("note.json"), "{ \"z\": 1.10, \"a\": [] }").expect("a small file");
    let echoed = |argument: &str, stdin: &str| {
        let said = said_with(&env, &format!("call echo echo --json {argument}"), stdin);
        said.split_once("\"echo\":")
            .map(|(_, rest)| rest.split_once('}').map_or("", |(head, _)| head).to_owned() + "}")
    };
    let expected = Some("{ \"z\": 1.10, \"a\": [] }".to_owned());
    assert_eq!(echoed("@note.json", ""), expected);
    assert_eq!(echoed("-", "{ \"z\": 1.10, \"a\": [] }\n"), expected);
    assert_snapshot!(said(&env, "call echo echo @nowhere.json"), @r"
    exit 2
    --- stderr
    error: cannot read `nowhere.json`: No such file or directory (os error 2)
    hint: `pillion tools echo` lists the parameters
    ");
}

fn tool_errors() {
    let env = with_notes();
    assert_snapshot!(said(&env, "call notes share_note note=nowhere"), @r"
    exit 6
    --- stdout
    No note is called `nowhere`
    --- stderr
    error: the tool `share_note` answered with an error
    ");
    assert_snapshot!(said(&env, "call notes share_note note=nowhere --json"), @r#"
    exit 6
    --- stdout
    {"result":{"content":[{"type":"text","text":"No note is called `nowhere`"}],"isError":true},"issues":[]}
    --- stderr
    error: the tool `share_note` answered with an error
    "#);
}

/// What the server wrote is what the script gets: order, numbers, unknown members.
fn verbatim_json() {
    let env = TestEnv::new();
    let raw = r#"{"zz":1.10,"content":[{"type":"new","x":12345678901234567890}],"aa":null}"#;
    let server = env.plain_server("srv", json!({ "tools/call": { "$raw": raw } }));
    env.write_config(&json!({ "srv": server.entry() }));
    assert_eq!(
        said(&env, "call srv echo {} --json"),
        format!("exit 0\n--- stdout\n{{\"result\":{raw},\"issues\":[]}}")
    );
}

fn errors_as_json() {
    let env = with_notes();
    assert_snapshot!(said(&env, "call notes nope --json"), @r#"
    exit 1
    --- stdout
    {"error":{"code":-32052,"message":"`notes` has no tool `nope`","data":{"kind":"not_found","hint":"`mcp.tools.list` shows its tools","server":"notes","what":"tool","candidates":["crash","list_notes","share_note","import_notes"]}}}
    --- stderr
    error: `notes` has no tool `nope`
    hint: `pillion tools notes` shows its tools
    Known names: crash, list_notes, share_note, import_notes
    "#);
    assert_snapshot!(said(&env, "call notes share_note --json"), @r#"
    exit 2
    --- stdout
    {"error":{"message":"`note` is missing","data":{"hint":"`pillion tools notes` lists the parameters"}}}
    --- stderr
    error: `note` is missing
    hint: `pillion tools notes` lists the parameters
    Parameters of `share_note`:
      note: string (required)  Name of the note
    "#);
}

fn reading() {
    let env = with_notes();
    assert_snapshot!(said(&env, "read notes note://ideas"), @r"
    exit 0
    --- stdout
    A sidecar sits behind the rider and does not steer.
    ");
    assert_snapshot!(said(&env, "read notes note://nowhere"), @r"
    exit 1
    --- stderr
    error: Resource not found: note://nowhere
    ");
    let blob = json!({ "contents": [{ "uri": "x://1", "mimeType": "application/octet-stream", "blob": "YWIA/w==" }] });
    let server = env.plain_server("srv", json!({ "resources/read": blob }));
    env.write_config(&json!({ "srv": server.entry() }));
    let output = command(&env, "read srv x://1").output().expect("an end");
    assert_eq!(output.stdout, b"ab\0\xff");
}

fn prompts() {
    let env = with_notes();
    assert_snapshot!(said(&env, "prompt notes summarize note=ideas style=haiku"), @r"
    exit 0
    --- stdout
    user:
    Summarize this note in haiku: A sidecar sits behind the rider and does not steer.
    ");
    assert_snapshot!(said(&env, "prompt notes summarize"), @r"
    exit 2
    --- stderr
    error: the prompt `summarize` needs note
    hint: give these as key=value
    ");
}

fn logs() {
    let env = TestEnv::new();
    let chatty = env.scripted_server(
        "chatty",
        json!({ "start": [{ "err": "hello" }], "rest": "plain" }),
    );
    let crash = env.scripted_server(
        "crash",
        json!({ "start": [{ "err": "no licence" }, { "exit": 7 }] }),
    );
    env.write_config(&json!({ "chatty": chatty.entry(), "crash": crash.entry(), "notes": notes() }));
    assert!(said(&env, "logs chatty").starts_with("exit 0\n--- stdout\nhello"));
    assert_snapshot!(said(&env, "logs notes"), @r"
    exit 0
    --- stderr
    `notes` is ready and has written nothing
    ");
    let crashed = said(&env, "logs crash");
    assert!(
        crashed.starts_with("exit 1\n") && crashed.contains("no licence"),
        "{crashed}"
    );
}

fn nobody_to_ask() {
    let env = with_notes();
    assert_snapshot!(said(&env, "call notes share_note note=ideas"), @r"
    exit 0
    --- stdout
    Kept `ideas` private
    --- stderr
    warning: notes: the host declared no `questions`, so nobody can be asked
    hint: run this in a terminal to be asked
    ");
}

fn login_needed() {
    let env = TestEnv::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    env.write_config(&json!({ "docs": { "url": url } }));
    let said = said(&env, "call docs x {}");
    assert!(said.starts_with("exit 3\n--- stderr\nerror: "), "{said}");
}

fn denied() {
    let env = TestEnv::new();
    let mut entry = notes();
    entry["tools"] = json!({ "deny": ["crash"] });
    env.write_config(&json!({ "notes": entry }));
    assert_snapshot!(said(&env, "call notes crash"), @r"
    exit 4
    --- stderr
    error: the tool `crash` is not allowed
    hint: `tools.allow` and `tools.deny` of the entry decide
    ");
    assert_snapshot!(said(&env, "tools notes"), @r"
    exit 0
    --- stdout
    TOOL            PARAMETERS        DESCRIPTION
    list_notes                        Name every note
    import_notes    [count: integer]  Import notes one by one, with progress
    share_note      note: string      Share a note; asks how
    crash (denied)                    End the server's process on purpose
    ");
}

fn deadline() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({ "tools/call": { "$none": true } }));
    env.write_config(&json!({ "srv": server.entry() }));
    assert_snapshot!(said(&env, "call srv echo {} --timeout 1"), @r"
    exit 5
    --- stderr
    error: no answer within 1 s
    hint: allow more with `--timeout SECONDS`, or for each call with `pillion edit srv --timeout SECONDS`
    ");
}

fn interrupted() {
    let env = with_notes();
    let mut child = command(&env, "call notes import_notes count=20")
        .spawn()
        .expect("the binary starts");
    clock::eventually("the server", || {
        let is_server =
            |process: &processes::Process| process.command.iter().any(|part| part == "demo-server");
        env.processes().iter().any(is_server).then_some(())
    });
    processes::signal(i32::try_from(child.id()).expect("a small id"), libc::SIGINT);
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
    env.assert_nothing_left(Duration::from_secs(1));
}

fn quiet_when_the_reader_left() {
    let env = TestEnv::new();
    let mut child = command(&env, "schema").spawn().expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}

fn schema() {
    let env = TestEnv::new();
    let file = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../schema/methods/mcp.tool.call.json"
    ));
    let output = command(&env, "schema mcp.tool.call").output().expect("an end");
    assert_eq!(
        String::from_utf8(output.stdout).expect("UTF-8"),
        file.expect("the published schema")
    );
    assert_snapshot!(said(&env, "schema resource.subscribe"), @r"
    exit 2
    --- stderr
    error: there is no method `resource.subscribe`
    hint: did you mean mcp.resource.subscribe?
    ");
}

fn completions() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = said(&env, &format!("completions {shell}"));
        assert!(
            script.starts_with("exit 0") && script.contains("pillion"),
            "{shell}"
        );
    }
}
