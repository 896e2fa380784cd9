//! What holds for every text: nothing panics, and what was written for others reads back the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::{ExportFormat, ExportSecrets, Issue, OauthSetting, ServerEntry, ToolLists};

use super::{Dialect, Outcome, edit, harvest, paste, programs, write};

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

fn dialect(format: ExportFormat) -> Dialect {
    programs::form(format).map_or(Dialect::Common, |form| form.dialect)
}

/// What was not said of an entry of this name.
fn left_out(issues: &[Issue], name: &str) -> Vec<String> {
    let of = issues
        .iter()
        .filter(|issue| issue.server.as_deref() == Some(name));
    of.filter_map(|issue| issue.item.clone()).collect()
}

fn differs_unsaid(name: &str, entry: &ServerEntry, back: &ServerEntry, issues: &[Issue]) -> Vec<String> {
    let said = left_out(issues, name);
    let mut differ = write::differences(&write::bare(entry), &write::bare(back));
    differ.retain(|member| {
        !said.iter().any(|said| {
            said == member
                || said.starts_with(&format!("{member}."))
                || member.starts_with(&format!("{said}."))
        })
    });
    differ
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_exported_reads_back(entries in prop::collection::btree_map("[a-z]{1,8}", entry(), 1..4)) {
        for format in ExportFormat::ALL.iter().copied() {
            let written = write::write(&entries, format, ExportSecrets::Include);
            let (read, _) = match harvest(&written.text, dialect(format)) {
                Ok(read) => read,
                Err(fault) => panic!("{format}: {fault} in {}", written.text),
            };
            let mut back = BTreeMap::new();
            for found in read.found {
                let Outcome::Entry(mut entry) = found.outcome else {
                    panic!("{format}: {:?} in {}", found.outcome, written.text)
                };
                // The list gives every server a label.
                if format == ExportFormat::List && entry.label.as_ref() == Some(&found.name) {
                    entry.label = None;
                }
                back.insert(found.name, *entry);
            }
            for (name, entry) in &entries {
                let Some(back) = back.get(name) else {
                    prop_assert!(left_out(&written.left_out, name).contains(name), "{format}: {name} is gone");
                    continue;
                };
                let differ = differs_unsaid(name, entry, back, &written.left_out);
                prop_assert!(differ.is_empty(), "{format}: {differ:?} of {name} in {}", written.text);
            }
        }
    }

    #[test]
    fn a_server_is_set_and_nothing_else(
        old in prop::collection::btree_map("[a-z]{1,4}", entry(), 0..4), name in "[a-z]{1,2}", new in entry(),
    ) {
        for format in ExportFormat::ALL.iter().copied() {
            let Some(form) = programs::form(format) else { continue };
            let written = write::write(&old, format, ExportSecrets::Include);
            let Ok(rendered) = write::render(&name, &new, &form, ExportSecrets::Include) else { continue };
            let set = edit::set(&written.text, &form, &name, &rendered.value);
            let text = set.unwrap_or_else(|fault| panic!("{format}: {fault} in {}", written.text));
            let again = edit::set(&text, &form, &name, &rendered.value);
            prop_assert_eq!(again.ok(), Some(text), "the same again changes nothing");
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
