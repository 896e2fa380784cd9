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

#[cfg(feature = "keyring")]
#[test]
fn secrets_are_in_the_credential_store_and_in_the_file_only_where_that_fails() {
    use crate::vault;
    let folder = tempfile::tempdir().unwrap();
    let sealing = || Store {
        seals: true,
        ..store(folder.path())
    };
    let (one, other) = (sealing(), sealing());
    let text = || fs::read_to_string(&one.path).unwrap();
    let (a, b) = (key("https://sealed.example/mcp"), key("https://open.example/mcp"));

    // Nothing answers yet: the file has all, and it is said why.
    one.change_now(&b, |record| set(record, "in-the-file")).unwrap();
    assert!(text().contains("in-the-file") && !one.is_sealed(&b));
    assert!(sealed::problem().is_some());

    keyring_core::set_default_store(keyring_core::mock::Store::new().unwrap());
    assert_eq!(sealed::problem(), None);
    one.change_now(&a, |record| {
        set(record, "s3cr3t-1");
        record.refresh_token = Some(Secret::new("s3cr3t-2"));
        record.expires_at = Some(5);
    })
    .unwrap();
    assert!(!text().contains("s3cr3t") && text().contains("in-the-file"));
    assert!(one.is_sealed(&a) && !one.is_sealed(&b));
    let read = other.read(&a).unwrap();
    assert_eq!(
        (read.access_token, read.refresh_token, read.expires_at),
        (
            Some(Secret::new("s3cr3t-1")),
            Some(Secret::new("s3cr3t-2")),
            Some(5)
        )
    );
    // A change elsewhere leaves it as it is; one of its own is noticed by others.
    other.change_now(&b, |record| set(record, "moved")).unwrap();
    assert!(other.is_sealed(&b) && !text().contains("moved"));
    other.change_now(&a, |record| set(record, "s3cr3t-3")).unwrap();
    assert_eq!(one.read(&a).unwrap().access_token, Some(Secret::new("s3cr3t-3")));
    one.change_now(&a, |record| *record = Record::default()).unwrap();
    assert!(other.read(&a).is_none());
    assert_eq!(vault::read("pillion-login", a.as_str()).unwrap(), None);
}
