//! Generated clients: what strangers wrote stays in its place, and programs can use the file.

use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::TestEnv;

pub fn stories() -> Vec<Trial> {
    stories!("client_code":
        types_come_from_schemas, hostile_names_stay_in_their_place, a_python_program_calls, hidden_tools_are_left_out,
        one_server_must_be_there,
    )
}

fn generate(env: &TestEnv, args: &[&str]) -> String {
    let output = env
        .command()
        .arg("client")
        .args(args)
        .output()
        .expect("the binary runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn add() -> Value {
    json!({
        "name": "add-note",
        "description": "Adds a note.\nKeeps it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "What it is called" },
                "tags": { "type": "array", "items": { "enum": ["work", "home"] } },
                "where": { "type": "object", "properties": { "line": { "type": ["integer", "null"] } }, "required": ["line"] },
            },
            "required": ["title"],
        },
        "outputSchema": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] },
    })
}

fn types_come_from_schemas() {
    let env = TestEnv::new();
    let none = json!({ "name": "list", "inputSchema": { "type": "object" } });
    let server = env.plain_server("srv", json!({ "tools/list": { "tools": [add(), none] } }));
    env.write_config(&json!({ "my-notes": server.entry() }));
    let typescript = generate(&env, &["--lang", "typescript"]);
    for part in [
        "export type MyNotesAddNoteArguments = {\n  /** What it is called */\n  \"title\": string;\n  \"tags\"?: Array<\"work\" | \"home\">;\n  \"where\"?: {\n    \"line\": number | null;\n  };\n};",
        "export type MyNotesAddNoteResult = {\n  \"id\": number;\n};",
        "export class MyNotes {",
        "  /**\n   * Adds a note.\n   * Keeps it.\n   */\n  addNote(args: MyNotesAddNoteArguments): Promise<Result<MyNotesAddNoteResult>> {\n    return this.#pillion.call(\"my-notes\", \"add-note\", args);",
        "  list(args: MyNotesListArguments = {}): Promise<Result<unknown>> {",
    ] {
        assert!(typescript.contains(part), "{part}\nin\n{typescript}");
    }
    let python = generate(&env, &["my-notes", "--lang", "python"]);
    for part in [
        "\"line\": Union[int, None],",
        "        # What it is called\n        \"title\": str,\n        \"tags\": NotRequired[list[Union[Literal[\"work\"], Literal[\"home\"]]]],\n        \"where\": NotRequired[MyNotesAddNoteArgumentsWhere],",
        "class MyNotes:",
        "    def add_note(self, arguments: MyNotesAddNoteArguments) -> Result[MyNotesAddNoteResult]:\n        \"\"\"Adds a note.\n        Keeps it.\n        \"\"\"",
        "    def list(self, arguments: Union[MyNotesListArguments, None] = None) -> Result[Any]:",
    ] {
        assert!(python.contains(part), "{part}\nin\n{python}");
    }
}

/// Names and texts that would end a comment, a text or a class, were they let.
fn hostile() -> Value {
    let evil =
        "*/ throw 1; /* \"\"\" \\\"\"\" ${x} ` \\\nimport os\r__import__('os')\u{2028}#\u{202e}\u{0}'; end";
    let mut properties =
        json!({ "__proto__": {}, "constructor": { "description": evil }, "a\nb": { "const": evil }, "": {} });
    properties[evil] = json!({ "type": "string", "enum": [evil, "\\", "\u{1f600}"], "description": evil });
    let tool = |name: &str| json!({ "name": name, "description": evil, "inputSchema": { "type": "object", "properties": properties, "required": [evil] } });
    let names = [
        "constructor",
        "then",
        "__init__",
        "class",
        "del",
        "Result",
        "日本",
        "a b",
        "a-b",
        "aB",
        evil,
    ];
    let mut tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    let circle = json!({ "type": "object", "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" }, "c": { "$ref": "#/nowhere" } } });
    tools.push(json!({ "name": "circle", "inputSchema": circle, "outputSchema": circle }));
    tools.push(json!({ "name": "odd", "inputSchema": { "anyOf": [{ "type": "object", "properties": {} }, { "type": "object", "required": ["x"], "properties": { "x": { "enum": [1e300, 1] } } }] } }));
    json!({ "tools/list": { "tools": tools } })
}

fn hostile_names_stay_in_their_place() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", hostile());
    env.write_config(&json!({ "class */ \"\"\" x": server.entry(), "Pillion": server.entry() }));
    let path = env.tmp().join("client.py");
    generate(&env, &["--lang", "python", "--output", &path.to_string_lossy()]);
    python(&["-m", "py_compile"], &path);
    // Its import runs nothing and defines only what belongs there.
    let names = python(
        &[
            "-c",
            "import runpy, sys; print(sorted(n for n in runpy.run_path(sys.argv[1]) if n[0].islower()))",
        ],
        &path,
    );
    assert_eq!(names.trim(), "[]");
    let typescript = generate(&env, &["--lang", "ts"]);
    let comments = typescript
        .lines()
        .filter(|line| line.trim_start().starts_with('*'));
    assert!(
        comments.into_iter().all(|line| !line.contains("*/ throw")),
        "{typescript}"
    );
    for hidden in ['\u{202e}', '\u{2028}', '\0', '\r'] {
        assert!(!typescript.contains(hidden), "{hidden:?}");
    }
    assert!(typescript.contains("  constructor2(args: "), "{typescript}");
    assert!(typescript.contains("export class Pillion2 {"), "{typescript}");
}

fn python(args: &[&str], path: &Path) -> String {
    let output = Command::new("python3")
        .args(args)
        .arg(path)
        .output()
        .expect("Python runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn a_python_program_calls() {
    let env = TestEnv::new();
    env.write_config(
        &json!({ "notes": { "command": env!("CARGO_BIN_EXE_pillion"), "args": ["demo-server", "stdio"] } }),
    );
    let folder = env.tmp();
    generate(
        &env,
        &[
            "notes",
            "--lang",
            "python",
            "-o",
            &folder.join("client.py").to_string_lossy(),
        ],
    );
    let program = folder.join("program.py");
    let text = "import sys\nfrom client import Notes, Pillion, ToolError\nwith Pillion(sys.argv[2]) as pillion:\n    notes = Notes(pillion)\n    print(notes.list_notes().text)\n    print(notes.import_notes({\"count\": 1}).text)\n    try:\n        pillion.call(\"notes\", \"import_notes\", {\"count\": \"many\"})\n    except ToolError as error:\n        print(\"no:\", error)\n";
    std::fs::write(&program, text).expect("a file");
    let mut command = env.command();
    let given: Vec<(std::ffi::OsString, std::ffi::OsString)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    command = Command::new("python3");
    let output = command
        .envs(given)
        .arg(&program)
        .arg("-")
        .arg(env!("CARGO_BIN_EXE_pillion"))
        .current_dir(env.project())
        .output()
        .expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        said.contains("welcome") && said.contains("Imported 1 notes") && said.contains("no: `count`"),
        "{said}"
    );
    env.assert_nothing_left(std::time::Duration::from_secs(10));
}

fn hidden_tools_are_left_out() {
    let env = TestEnv::new();
    let server = env.plain_server(
        "srv",
        json!({ "tools/list": { "tools": [add(), crate::model::tool("drop")] } }),
    );
    let mut entry = server.entry();
    entry["tools"] = json!({ "deny": ["drop"], "overrides": { "add-note": { "name": "remember" } } });
    env.write_config(&json!({ "srv": entry }));
    let text = generate(&env, &["--lang", "ts"]);
    assert!(!text.contains("\"drop\""), "{text}");
    assert!(text.contains("  remember(args: SrvRememberArguments)"), "{text}");
    assert!(text.contains(".call(\"srv\", \"add-note\", args)"), "{text}");
}

fn one_server_must_be_there() {
    let env = TestEnv::new();
    let path = env.tmp().join("client.ts");
    let mut command = env.command();
    let output = command
        .args(["client", "gone", "--lang", "ts", "-o"])
        .arg(&path)
        .output()
        .expect("the binary runs");
    assert!(!output.status.success() && !path.exists());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("gone"), "{said}");
}
