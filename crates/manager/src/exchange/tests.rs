//! What holds for every text: nothing panics, and what was written for others reads back the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::{ExportFormat, ExportSecrets, OauthSetting, ServerEntry, ToolLists};

use super::stand_ins::StandIns;
use super::{Dialect, harvest, paste, programs, write};
use crate::fuzzing;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 ./:@=${}_é\"'\\\\#,&*!|>%-]{1,20}",
        "[a-z]{0,4}\\$\\{[A-Z]{1,3}(:-[a-z ]{0,3})?\\}[a-z ]{0,3}",
        prop_oneof![
            Just("true"),
            Just("null"),
            Just("1.5"),
            Just("no"),
            Just("- a"),
            Just("a: b"),
            Just("~")
        ]
        .prop_map(str::to_owned),
        "[\\x01-\\x7f\u{85}\u{2028}]{1,4}",
    ]
}

fn map() -> impl Strategy<Value = Option<BTreeMap<String, String>>> {
    prop::option::of(prop::collection::btree_map("[A-Z_]{1,8}", text(), 1..3))
}

fn entry() -> impl Strategy<Value = ServerEntry> {
    let args = prop::option::of(prop::collection::vec(text(), 1..4));
    let local = (text(), args, map(), any::<[bool; 2]>()).prop_map(|(command, args, env, has)| ServerEntry {
        command: Some(format!("c{command}")),
        args,
        env,
        cwd: has[0].then(|| "~/w".into()),
        env_file: has[1].then(|| ".env".into()),
        ..Default::default()
    });
    let value = prop_oneof![
        "[a-z0-9 ]{1,9}",
        Just("${A}".to_owned()),
        Just("Bearer ${A}".to_owned())
    ];
    let headers = prop::option::of(prop::collection::btree_map(
        prop_oneof!["[A-Za-z-]{1,8}", Just("Authorization".to_owned())],
        value,
        1..3,
    ));
    let oauth = prop_oneof![
        3 => Just(None),
        1 => Just(Some(OauthSetting::Off(protocol::False))),
        1 => ("[a-z]{1,4}( [a-z]{1,3})?", any::<[bool; 3]>()).prop_map(|(scope, has)| {
            Some(OauthSetting::On(protocol::OAuth {
                client_id: Some("c".to_owned()),
                client_secret: has[0].then(|| "${S}".to_owned()),
                scope: has[1].then_some(scope),
                callback_port: has[2].then_some(8080),
                ..Default::default()
            }))
        }),
    ];
    let remote = ("[a-z]{1,9}", headers, any::<bool>(), oauth).prop_map(|(path, headers, is_sse, oauth)| {
        ServerEntry {
            url: Some(format!("https://h.example/{path}").into()),
            headers,
            oauth,
            transport: is_sse.then_some(protocol::EntryTransport::Sse),
            ..Default::default()
        }
    });
    let time = || prop::option::of(prop_oneof![1000..600_000_u64, Just(5000)]);
    let lists = prop::option::of(prop::collection::vec("[a-z_]{1,8}", 1..3));
    let common = (any::<[bool; 3]>(), time(), time(), lists.clone(), lists);
    (prop_oneof![local, remote], common).prop_map(
        |(entry, ([is_off, is_required, has_label], timeout_ms, start_timeout_ms, allow, deny))| {
            ServerEntry {
                enabled: is_off.then_some(false),
                required: is_required.then_some(true),
                label: has_label.then(|| "A label".to_owned()),
                tools: (allow.is_some() || deny.is_some()).then(|| ToolLists {
                    allow,
                    deny,
                    ..Default::default()
                }),
                timeout_ms,
                start_timeout_ms,
                ..entry
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_exported_reads_back(entries in prop::collection::btree_map("[a-z]{1,8}", entry(), 1..4)) {
        for format in ExportFormat::ALL.iter().copied() {
            fuzzing::reads_back(&entries, format);
        }
    }

    #[test]
    fn a_server_is_set_and_nothing_else(
        old in prop::collection::btree_map("[a-z]{1,4}", entry(), 0..4), name in "[a-z]{1,2}", new in entry(),
    ) {
        for format in ExportFormat::ALL.iter().copied() {
            let Some(form) = programs::form(format) else { continue };
            let written = write::write(&old, format, ExportSecrets::Include);
            let is_sayable = write::render(&name, &new, &form, ExportSecrets::Include, &mut StandIns::default()).is_ok();
            let set = fuzzing::sets_one(&written.text, format, &name, &new);
            prop_assert!(set.is_some() || !is_sayable, "{format}: refused in {}", written.text);
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
