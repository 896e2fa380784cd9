//! What the fuzzer once found, and a sample of its seeds, in every run of the tests.

use std::path::Path;

fn replay(name: &str, target: fn(&[u8])) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz");
    let mut files = 0;
    for folder in [fuzz.join("seeds").join(name), fuzz.join("corpus").join(name)] {
        for file in std::fs::read_dir(folder).into_iter().flatten() {
            target(&std::fs::read(file.unwrap().path()).unwrap());
            files += 1;
        }
    }
    assert!(files > 0, "there are no seeds for {name}");
}

#[test]
fn config() {
    replay("config", super::config);
}

#[test]
fn paste() {
    replay("paste", super::paste);
}

#[test]
fn import() {
    replay("import", super::import);
}

#[test]
fn server_json() {
    replay("server_json", super::server_json);
}

#[test]
fn bundle() {
    replay("bundle", super::bundle);
}

#[test]
fn what_could_not_be_added_is_no_draft() {
    let read = crate::exchange::paste::read("claude mcp add --transport http s https://%");
    assert!(read.servers.is_empty());
    assert_eq!(
        read.problems[0].message,
        "`url` is no URL: invalid international domain name"
    );
}

#[test]
fn a_fault_at_the_end_is_on_the_last_line() {
    let fault = crate::exchange::document::read("a: { b: c").unwrap_err();
    assert_eq!(
        fault.place,
        Some(crate::config::syntax::Place { line: 1, column: 10 })
    );
}

#[test]
fn a_header_without_a_name_is_not_repeated() {
    for text in [
        "claude mcp add s -t http https://h/mcp -H 'Bearer sk-hidden'",
        "claude mcp add s -t http https://h/mcp --header='Bearer sk-hidden'",
    ] {
        let read = crate::exchange::paste::read(text);
        assert_eq!(
            read.problems[0].message, "what is given for a variable or a header must be `Name: value`",
            "{text}"
        );
    }
}
