//! The shared cases: any folder of JSON files in the format of `tests/cases/README.md`, run against
//! the real binary, one test per case, named `cases::<area>::<id>`.
//!
//! `PILLION_CASES=DIR cargo test cases` runs another folder. A case that uses a key this runner does
//! not know fails, so that no expectation is passed over in silence; a case of an area whose feature
//! is not there yet is listed as ignored, by id.

mod approvals;
mod exchange;
mod expect;
mod keys;
mod login;
mod place;
mod question;
mod run;
mod world;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::support::clock;

/// One case of a file.
#[derive(Debug, Clone)]
pub struct Case {
    pub id: String,
    pub area: String,
    pub input: Value,
    pub expect: Value,
}

/// What this runner can do so far.
const AREAS: &[&str] = &[
    "stdio",
    "http",
    "sse",
    "protocol",
    "elicitation",
    "oauth-discovery",
    "oauth-registration",
    "oauth-flow",
    "oauth-tokens",
];

pub fn trials() -> Vec<Trial> {
    let folder = folder();
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("cases in {}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let kits = kits(&folder);
    files
        .iter()
        .flat_map(|file| read(file))
        .map(|case| trial(case, kits.clone()))
        .collect()
}

fn trial(case: Case, kits: Value) -> Trial {
    let name = format!("cases::{}::{}", case.area, case.id);
    if case.area == "approvals" {
        return Trial::test(name, move || approvals::run(&case).map_err(Failed::from));
    }
    if ["paste", "import"].contains(&case.area.as_str()) {
        return Trial::test(name, move || exchange::run(&case).map_err(Failed::from));
    }
    let missing = if AREAS.contains(&case.area.as_str()) {
        keys::not_yet(&case)
    } else {
        Some(format!("the area `{}` is not runnable yet", case.area))
    };
    match missing {
        Some(reason) => Trial::test(name, move || Err(Failed::from(reason))).with_ignored_flag(true),
        None => {
            let watched = name.clone();
            let run = move || clock::watched(&watched, || run::run(&case, &kits)).map_err(Failed::from);
            Trial::test(name, run)
        }
    }
}

fn read(file: &Path) -> Vec<Case> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let list: Vec<Value> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let text = |case: &Value, key: &str| case[key].as_str().unwrap_or("unnamed").to_owned();
    list.iter()
        .map(|case| Case {
            id: text(case, "id"),
            area: text(case, "area"),
            input: case["input"].clone(),
            expect: case["expect"].clone(),
        })
        .collect()
}

/// Relative to the current folder, else to the workspace: `cargo test` changes the former.
fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Some(given) = std::env::var_os("PILLION_CASES") else {
        return root.join("tests/cases");
    };
    let given = PathBuf::from(given);
    if given.is_dir() { given } else { root.join(given) }
}

fn kits(folder: &Path) -> Value {
    let own = folder.join("kits/http.json");
    let file = if own.exists() {
        own
    } else {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/kits/http.json")
    };
    fs::read_to_string(file)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}
