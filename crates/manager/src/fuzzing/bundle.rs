//! `.mcpb` files: their manifest, and that nothing leaves the folder they are unpacked to.

use std::io::{Cursor, Write as _};
use std::path::Path;

use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::choice_and_text;
use crate::bundle::{Manifest, Values, unpack};
use crate::env::Env;

/// The first byte chooses what the rest is: a manifest, a zip file, or lines that a zip file is made of.
pub fn bundle(data: &[u8]) {
    let Some((choice, text)) = choice_and_text(data) else {
        return;
    };
    match choice % 3 {
        0 => manifest(&text),
        1 => unpacks(&data[1..]),
        _ => unpacks(&zipped(&text).unwrap_or_default()),
    }
}

fn manifest(text: &str) {
    let Ok(manifest) = Manifest::read(text) else {
        return;
    };
    let env = Env::from_process();
    let folder = Path::new("/bundles/x");
    let questions = manifest.questions(&env, folder);
    let values: Values = questions
        .iter()
        .filter(|question| question.is_open(&Values::new()))
        .map(|question| (question.key.clone(), Value::from("7")))
        .collect();
    for question in &questions {
        assert!(!question.secret || question.default_text().is_none());
    }
    let entry = manifest.entry(&env, folder, &values);
    assert_eq!(
        entry,
        manifest.entry(&env, folder, &values),
        "reading is not repeatable"
    );
    if let Ok(entry) = entry {
        assert_eq!(entry.cwd.as_deref(), folder.to_str());
        assert!(entry.command.is_some());
        assert!(entry.label.is_none_or(|label| label.chars().count() <= 200));
    }
}

/// Whatever the zip file says, only files and folders below its folder are made, and nothing without end.
fn unpacks(bytes: &[u8]) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let path = place.path().join("x.mcpb");
    std::fs::write(&path, bytes).expect("a file of our own");
    let folder = place.path().join("unpacked");
    std::fs::create_dir(&folder).expect("a folder of our own");
    if let Ok(text) = unpack::manifest(&path) {
        manifest(&text);
    }
    let digest = unpack::unpack(&path, &folder);
    let mut files = 0;
    let total = measured(&folder, &mut files);
    assert!(total <= 64 << 20, "{total} bytes came out of {}", bytes.len());
    let beside = std::fs::read_dir(place.path())
        .expect("a folder of our own")
        .count();
    assert_eq!(beside, 2, "something was written beside the folder");
    if let Ok(digest) = digest {
        let again = place.path().join("again");
        std::fs::create_dir(&again).expect("a folder of our own");
        assert_eq!(
            unpack::unpack(&path, &again),
            Ok(digest),
            "unpacking is not repeatable"
        );
        let mut files_again = 0;
        assert_eq!((measured(&again, &mut files_again), files_again), (total, files));
    }
}

/// Bytes of the files below a folder.
fn measured(folder: &Path, files: &mut usize) -> u64 {
    let mut total = 0;
    for item in std::fs::read_dir(folder).expect("a folder of our own") {
        let path = item.expect("an item of our own").path();
        let metadata = std::fs::symlink_metadata(&path).expect("an item of our own");
        assert!(
            metadata.is_dir() || metadata.is_file(),
            "{path:?} is neither file nor folder"
        );
        if metadata.is_dir() {
            total += measured(&path, files);
        } else {
            *files += 1;
            total += metadata.len();
        }
    }
    total
}

/// Lines of `mode|name|content`: bytes alone seldom make a zip file whose checksums fit.
fn zipped(text: &str) -> Option<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for line in text.lines().take(64) {
        let mut parts = line.splitn(3, '|');
        let (mode, name, content) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
        let options = SimpleFileOptions::default();
        if mode == "link" {
            writer.add_symlink(name, content, options).ok()?;
            continue;
        }
        let options = match u32::from_str_radix(mode, 8) {
            Ok(mode) => options.unix_permissions(mode),
            Err(_) => options,
        };
        writer.start_file(name, options).ok()?;
        writer.write_all(content.as_bytes()).ok()?;
    }
    Some(writer.finish().ok()?.into_inner())
}
