//! What holds for every text: nothing panics, and what was written for others reads back the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::{ExportFormat, ExportSecrets, ServerEntry};

use super::{Dialect, Outcome, harvest, paste, write};

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 ./:@=${}_é\"'\\\\-]{1,20}"
}

fn entry() -> impl Strategy<Value = ServerEntry> {
    let map = || prop::option::of(prop::collection::btree_map("[A-Z_]{1,8}", text(), 1..3));
    let local = (
        text(),
        prop::option::of(prop::collection::vec(text(), 1..4)),
        map(),
    )
        .prop_map(|(command, args, env)| ServerEntry {
            command: Some(format!("c{command}")),
            args,
            env,
            ..Default::default()
        });
    let headers = prop::option::of(prop::collection::btree_map(
        "[A-Za-z-]{1,8}",
        "[a-z0-9 ]{1,9}",
        1..3,
    ));
    let remote = ("[a-z]{1,9}", headers, any::<bool>()).prop_map(|(path, headers, is_sse)| ServerEntry {
        url: Some(format!("https://h.example/{path}").into()),
        headers,
        transport: is_sse.then_some(protocol::EntryTransport::Sse),
        ..Default::default()
    });
    let common = (any::<bool>(), prop::option::of(1000..600_000_u64));
    (prop_oneof![local, remote], common).prop_map(|(entry, (is_off, timeout_ms))| ServerEntry {
        enabled: is_off.then_some(false),
        timeout_ms,
        ..entry
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_was_exported_reads_back(entries in prop::collection::btree_map("[a-z]{1,8}", entry(), 1..4)) {
        for format in [ExportFormat::Store, ExportFormat::List, ExportFormat::McpServers] {
            let written = write::write(&entries, format, ExportSecrets::Include);
            let (read, _) = harvest(&written.text, Dialect::Common).expect("our own text");
            let mut back = BTreeMap::new();
            for found in read.found {
                let Outcome::Entry(mut entry) = found.outcome else {
                    panic!("{:?} in {}", found.outcome, written.text)
                };
                // The list gives every server a label.
                entry.label = None;
                back.insert(found.name, *entry);
            }
            prop_assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&entries).unwrap());
        }
    }

    #[test]
    fn no_text_ends_the_process(text in "\\PC{0,200}", words in "[ \\n\"'\\\\$`{}()\\[\\]:,=%|&;<>a-zA-Z./@-]{0,120}") {
        for text in [&text, &words] {
            for before in ["", "claude mcp add ", "code --add-mcp ", "cursor://x/mcp/install?name=a&config=", "{\"mcpServers\":", "[mcp_servers.a]\n", "a:\n  - ", "vscode:mcp/install?", "```\n", "$env:A="] {
                drop(paste::read(&format!("{before}{text}")));
                drop(harvest(&format!("{before}{text}"), Dialect::Gemini));
            }
        }
    }
}
