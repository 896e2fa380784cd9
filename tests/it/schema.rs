//! The published schema is what the binary was built from.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::stories;

pub fn stories() -> Vec<Trial> {
    stories!("schema": files_are_fresh, nothing_stale_lies_about, the_bundle_is_a_schema)
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
