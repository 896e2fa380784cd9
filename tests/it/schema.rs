//! The published schema is what the binary was built from.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::stories;

pub fn stories() -> Vec<Trial> {
    stories!("schema": files_are_fresh, nothing_stale_lies_about, the_bundle_is_a_schema, the_security_page_names_real_tests)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files_are_fresh() {
    for (name, text) in protocol::generated_files() {
        let found = fs::read_to_string(workspace().join(&name)).unwrap_or_default();
        assert!(found == text, "{name} is stale; run `cargo xtask codegen`");
    }
}

fn nothing_stale_lies_about() {
    let generated: Vec<PathBuf> = protocol::generated_files()
        .iter()
        .map(|(name, _)| workspace().join(name))
        .collect();
    let mut folders = vec![workspace().join("schema")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("schema/ exists").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                assert!(
                    generated.contains(&path),
                    "{} is not generated; run `cargo xtask codegen`",
                    path.display()
                );
            }
        }
    }
}

fn the_bundle_is_a_schema() {
    let bundle: Value = protocol::schema::bundle();
    jsonschema::draft202012::meta::validate(&bundle).expect("valid under draft 2020-12");
}

/// A promise whose test was renamed or dropped is no promise.
fn the_security_page_names_real_tests() {
    let page = fs::read_to_string(workspace().join("docs/security.md")).expect("the page");
    let names = page.split('`').filter_map(|code| code.split_once("::"));
    let is_word = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte))
    };
    let mut seen = 0;
    for (module, story) in
        names.filter(|(module, story)| !module.is_empty() && is_word(module) && is_word(story))
    {
        let file = workspace().join(format!("tests/it/{module}.rs"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(
            text.contains(&format!("fn {story}")),
            "no test `{module}::{story}`"
        );
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}
