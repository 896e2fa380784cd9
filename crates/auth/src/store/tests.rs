//! The store at rest: what is written, kept, set aside and never shown.

use std::fs;
use std::path::Path;

use super::*;

fn key(url: &str) -> Key {
    Key::new(&url.parse().unwrap(), None)
}

fn store(folder: &Path) -> Store {
    Store::new(folder.join("data/mcp-auth.json"))
}

fn set(record: &mut Record, token: &str) {
    record.access_token = Some(Secret::new(token));
}

#[test]
fn one_process_sees_what_another_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (store(folder.path()), store(folder.path()));
    let (a, b) = (key("https://a/mcp"), key("https://b/mcp"));
    assert!(one.read(&a).is_none());
    one.change_now(&a, |record| set(record, "t-1")).unwrap();
    other.change_now(&b, |record| set(record, "t-2")).unwrap();
    let token = |store: &Store, key: &Key| store.read(key).and_then(|record| record.access_token);
    assert_eq!(token(&one, &b), Some(Secret::new("t-2")));
    assert_eq!(token(&other, &a), Some(Secret::new("t-1")));
    one.change_now(&a, Record::drop_tokens).unwrap();
    assert!(other.read(&a).is_none());
    assert_eq!(other.all().len(), 1);
}

#[cfg(unix)]
#[test]
fn the_file_is_private_and_nothing_of_it_is_shown() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let record = store
        .change_now(&key("https://a/mcp"), |record| set(record, "s3cr3t"))
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&store.path), mode(store.path.parent().unwrap())),
        (0o600, 0o700)
    );
    assert!(!format!("{record:?}").contains("s3cr3t"));
    assert!(fs::read_to_string(&store.path).unwrap().contains("s3cr3t"));
}

#[test]
fn a_broken_file_counts_as_empty_and_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    fs::create_dir(folder.path().join("data")).unwrap();
    for broken in ["{\"servers\": {", "[]", "{\"servers\": []}"] {
        fs::write(&store.path, broken).unwrap();
        assert!(store.all().is_empty());
    }
    store
        .change_now(&key("https://a/mcp"), |record| set(record, "t"))
        .unwrap();
    let copies = fs::read_dir(folder.path().join("data")).unwrap();
    let copies: Vec<String> = copies
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".corrupt-"))
        .collect();
    assert!(!copies.is_empty());
    assert_eq!(store.all().len(), 1);
}

#[test]
fn what_other_versions_wrote_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    fs::create_dir(folder.path().join("data")).unwrap();
    let before = json!({
        "version": 7,
        "more": true,
        "servers": {
            "https://a/mcp": {"accessToken": "t", "new": 1},
            "https://odd/": 5,
        },
    });
    fs::write(&store.path, before.to_string()).unwrap();
    store
        .change_now(&key("https://a/mcp"), |record| set(record, "u"))
        .unwrap();
    let after: Value = serde_json::from_str(&fs::read_to_string(&store.path).unwrap()).unwrap();
    let mut expected = before;
    expected["servers"]["https://a/mcp"]["accessToken"] = json!("u");
    assert_eq!(after, expected);
}

#[cfg(unix)]
#[test]
fn a_token_that_cannot_be_written_is_used_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let a = key("https://a/mcp");
    store.change_now(&a, |record| set(record, "old")).unwrap();
    // A folder in place of the lock: nobody can take it, whoever runs the test.
    let lock = folder.path().join("data/mcp-auth.json.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    assert!(store.change_now(&a, |record| set(record, "new")).is_err());
    assert_eq!(store.read(&a).unwrap().access_token, Some(Secret::new("new")));
    fs::remove_dir(&lock).unwrap();
    store.change_now(&a, |_| ()).unwrap();
    assert!(fs::read_to_string(&store.path).unwrap().contains("\"new\""));
}

#[test]
fn two_accounts_are_two_logins() {
    let url = "https://u:p@a/mcp?tenant=1".parse().unwrap();
    let (one, other) = (Key::new(&url, None), Key::new(&url, Some("work")));
    assert_ne!(one, other);
    assert_eq!(one.as_str(), "https://a/mcp?tenant=1");
    assert_eq!(
        other.shown(),
        ("https://a/mcp".to_owned(), Some("work".to_owned()))
    );
    assert!(!format!("{other:?}").contains("tenant"));
}
