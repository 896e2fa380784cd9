//! Paste, import and export through the protocol: from another program's text to a running server and back.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("exchange": pasted_and_run, found_and_imported, a_description_names_one_package, dry_runs_and_taken_names, exported_and_imported)
}

fn pasted_and_run() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let host = Host::start(&env);
    let text = format!("```sh\n$ API_TOKEN=\"s3cret\" {} --flag\n```", server.command);
    let parsed = host.must("mcp.parse", json!({ "text": text }));
    let draft = &parsed["drafts"][0];
    assert_eq!(draft["target"]["command"], json!(server.command));
    assert_eq!(draft["target"]["envNames"], json!(["API_TOKEN"]));
    assert!(!draft["target"].to_string().contains("s3cret"), "{draft}");
    host.must(
        "mcp.add",
        json!({ "name": draft["name"], "entry": draft["entry"] }),
    );
    host.wait_state(draft["name"].as_str().expect("a name"), "ready");
    let parsed = host.must("mcp.parse", json!({ "text": text }));
    assert_eq!(parsed["drafts"][0]["nameTaken"], true);
}

fn found_and_imported() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let file = env.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    let text =
        json!({ "mcpServers": { "my srv": { "command": server.command }, "off": { "disabled": true } } });
    std::fs::write(&file, text.to_string()).expect("written");
    let host = Host::start(&env);
    let found = host.must("mcp.import.detect", json!({}));
    let source = &found["sources"][0];
    assert_eq!(
        (&source["client"], &source["servers"]),
        (&json!("Cursor"), &json!(["my srv"]))
    );
    assert_eq!(source["problems"][0]["item"], "off");
    let imported = host.must("mcp.import", json!({ "source": source["id"] }));
    assert_eq!((&imported["added"], &imported["failed"]), (&json!(1), &json!(1)));
    assert_eq!(
        host.status("my_srv")["state"],
        "stopped",
        "an import starts nothing"
    );
    assert_eq!(host.status("my_srv")["label"], "my srv");
    host.must("mcp.start", json!({ "server": "my_srv" }));
    host.wait_state("my_srv", "ready");
}

fn dry_runs_and_taken_names() {
    let env = TestEnv::new();
    env.write_config(&json!({ "a": { "command": "one" } }));
    let host = Host::start(&env);
    let text =
        json!({ "mcpServers": { "a": { "command": "two" }, "b": { "command": "three" } } }).to_string();
    let file = env.data().join("mcp.json");
    let before = std::fs::read_to_string(&file).expect("the file");
    let dry = host.must(
        "mcp.import",
        json!({ "text": text, "replace": true, "dryRun": true }),
    );
    assert_eq!(dry["results"][0]["status"], "replaced");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), before);
    let imported = host.must("mcp.import", json!({ "text": text }));
    let status = |at: usize| imported["results"][at]["status"].clone();
    assert_eq!((status(0), status(1)), (json!("skipped"), json!("added")));
    for params in [json!({}), json!({ "text": "{" }), json!({ "source": "mcp.json" })] {
        let error = host.ask("mcp.import", params).expect_err("refused");
        assert_eq!(error.kind(), "invalid_params");
    }
    let error = host
        .ask("mcp.import", json!({ "source": "/nowhere/mcp.json" }))
        .expect_err("refused");
    assert_eq!(error.kind(), "not_found");
}

fn exported_and_imported() {
    let entries = json!({
        "local": { "command": "npx", "args": ["-y", "p", "${X:-d e}"], "env": { "API_TOKEN": "s3cret", "A": "1" },
            "enabled": false, "timeoutMs": 5000 },
        "remote": { "url": "https://h.example/mcp", "transport": "sse", "headers": { "Authorization": "Bearer s3cret" } },
    });
    let stored = |env: &TestEnv| -> Value {
        let text = std::fs::read_to_string(env.data().join("mcp.json")).expect("the file");
        let mut servers = serde_json::from_str::<Value>(&text).expect("JSON")["servers"].take();
        for entry in servers
            .as_object_mut()
            .into_iter()
            .flat_map(|map| map.values_mut())
        {
            for member in ["createdAt", "updatedAt", "source", "label"] {
                entry.as_object_mut().expect("an entry").remove(member);
            }
        }
        servers
    };
    for format in ["store", "list", "mcpServers"] {
        let env = TestEnv::new();
        env.write_config(&entries);
        let host = Host::start(&env);
        let plain = host.must("mcp.export", json!({ "format": format }));
        let text = plain["text"].as_str().expect("a text");
        assert!(
            !text.contains("s3cret") && text.contains("${API_TOKEN}"),
            "{text}"
        );
        assert!(
            plain["warnings"]
                .to_string()
                .contains("`REMOTE_HEADERS_AUTHORIZATION`"),
            "{plain}"
        );
        let masked = host.must("mcp.export", json!({ "format": format, "secrets": "mask" }));
        assert!(
            masked["text"].as_str().expect("a text").contains("********"),
            "{masked}"
        );
        let whole = host.must("mcp.export", json!({ "format": format, "secrets": "include" }));
        let other = TestEnv::new();
        let host = Host::start(&other);
        host.must("mcp.import", json!({ "text": whole["text"] }));
        assert_eq!(stored(&other), entries, "{format}");
    }
}

/// What a registry's description says to `npx` brings no other package, and what is not harmless is said.
fn a_description_names_one_package() {
    let env = TestEnv::new();
    let host = Host::start(&env);
    let words = [
        "--registry",
        "http://evil.example",
        "-c",
        "touch x",
        "other-package",
        "--package=other",
    ];
    let words = words.map(|word| json!({ "type": "positional", "value": word }));
    let text = json!({ "name": "io.github.me/good", "packages": [{ "registryType": "npm", "identifier": "good",
        "version": "1.0.0", "runtimeArguments": words }] });
    let parsed = host.must("mcp.parse", json!({ "text": text.to_string() }));
    let draft = &parsed["drafts"][0];
    assert_eq!(
        draft["entry"]["args"],
        json!(["-y", "--registry=http://evil.example", "good@1.0.0"])
    );
    let warnings = draft["warnings"].to_string();
    for said in [
        "`npx` is started with `--registry=http://evil.example`",
        "`touch x` is left out",
        "`other-package` is left out",
        "`--package=other` is left out",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
}
