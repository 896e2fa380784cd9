//! Changing `mcp.json`: lock, read, change, replace. Comments, order and unknown members stay.

use std::io;
use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use protocol::{Error, ErrorKind};
use serde_json::Value;

use super::file::{self, Fault};
use super::{entries, syntax};
use crate::limits;

/// Who else reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The person only.
    Person,
    /// Everyone who shares the project.
    Everyone,
}

/// Changes a file.
///
/// `change` sees the object that holds everything. Nothing is written when it fails.
/// Blocks on the lock and on the disk: call it from a blocking thread.
pub(crate) fn edit<T>(
    path: &Path,
    readers: Readers,
    change: impl FnOnce(&CstObject) -> Result<T, Error>,
) -> Result<T, Error> {
    let failed = |error: io::Error| write_failed(path, &error);
    if let Some(folder) = path.parent() {
        match readers {
            Readers::Person => files::create_private_dir(folder),
            Readers::Everyone => std::fs::create_dir_all(folder),
        }
        .map_err(failed)?;
    }
    let _lock = files::Lock::take(path, limits::LOCK_WAIT).map_err(failed)?;
    let text = text(path)?;
    let had_bom = text.starts_with('\u{feff}');
    let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let source = if body.trim().is_empty() {
        "{\n  \"servers\": {}\n}\n"
    } else {
        body
    };
    let (root, whole) = read(path, source)?;
    let outcome = change(&whole)?;
    let mut changed = root.to_string();
    if had_bom {
        changed.insert(0, '\u{feff}');
    }
    if changed != text {
        match readers {
            Readers::Person => files::write_private(path, changed.as_bytes()),
            Readers::Everyone => files::write_shared(path, changed.as_bytes()),
        }
        .map_err(failed)?;
    }
    Ok(outcome)
}

/// Looks at a file as a change would see it, and changes nothing. Blocks on the disk.
pub(crate) fn look<T>(path: &Path, look: impl FnOnce(&CstObject) -> Result<T, Error>) -> Result<T, Error> {
    look_at(path, &text(path)?, look)
}

/// The same of a text.
pub(crate) fn look_at<T>(
    path: &Path,
    text: &str,
    look: impl FnOnce(&CstObject) -> Result<T, Error>,
) -> Result<T, Error> {
    let (_root, whole) = read(path, text.strip_prefix('\u{feff}').unwrap_or(text))?;
    look(&whole)
}

fn text(path: &Path) -> Result<String, Error> {
    let text = file::read_text(path).map_err(|unreadable| broken(path, &unreadable.fault))?;
    Ok(text.unwrap_or_default())
}

fn read(path: &Path, source: &str) -> Result<(CstRootNode, CstObject), Error> {
    let faulty = |message, place| {
        let place = Some(place);
        broken(path, &Fault { message, place })
    };
    let document = syntax::Document::parse(source).map_err(|fault| faulty(fault.message, fault.place))?;
    let value = document.value();
    entries::servers(&document, &value).map_err(|fault| broken(path, &fault))?;
    if let Some(name) = document.repeated_names(&[]).into_iter().next() {
        let place = document.place_of_name::<&str>(&[], &name);
        return Err(faulty(format!("`{name}` occurs twice"), place));
    }
    let root = CstRootNode::parse(source, &syntax::options())
        .map_err(|error| write_failed(path, &io::Error::other(error.to_string())))?;
    // What was checked above is an object, `null` or not there.
    let whole = root.object_value_or_set();
    whole.object_value_or_set("servers");
    Ok((root, whole))
}

/// The value at a path of member names, if there is one.
pub(crate) fn get(whole: &CstObject, path: &[&str]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let mut object = whole.clone();
    for step in above {
        object = object.object_value(step)?;
    }
    object.get(last)?.value()?.to_serde_value()
}

/// Sets the value at a path, making the objects above it; `None` removes it, and what is empty above it.
pub(crate) fn set(whole: &CstObject, path: &[&str], value: Option<&Value>) {
    let Some((last, above)) = path.split_last() else {
        return;
    };
    let mut chain = vec![whole.clone()];
    for step in above {
        let parent = &chain[chain.len() - 1];
        let next = match value {
            Some(_) => parent.object_value_or_set(step),
            None => match parent.object_value(step) {
                Some(next) => next,
                None => return,
            },
        };
        chain.push(next);
    }
    let object = &chain[chain.len() - 1];
    let mut properties = object.properties();
    properties.retain(|property| property.decoded_name().as_deref() == Some(*last));
    // Of a name that occurs twice the last one counted.
    let property = properties.pop();
    properties.into_iter().for_each(CstObjectProp::remove);
    match (value, property) {
        (Some(value), Some(property)) => update(&property, value),
        (Some(value), None) => drop(object.append(last, input(value))),
        (None, Some(property)) => {
            property.remove();
            for (index, step) in above.iter().enumerate().rev() {
                if *step == "servers" || !chain[index + 1].properties().is_empty() {
                    break;
                }
                if let Some(empty) = chain[index].get(step) {
                    empty.remove();
                }
            }
        }
        (None, None) => {}
    }
}

/// Gives a member another value; what stays the same inside keeps its place, its comments and its spelling.
fn update(property: &CstObjectProp, value: &Value) {
    let old = property.value().and_then(|node| node.to_serde_value());
    if old.as_ref() == Some(value) {
        return;
    }
    let (Value::Object(members), Some(object)) = (value, property.object_value()) else {
        property.set_value(input(value));
        return;
    };
    for known in object.properties() {
        if known
            .decoded_name()
            .is_some_and(|name| !members.contains_key(&name))
        {
            known.remove();
        }
    }
    for (name, member) in members {
        match object.get(name) {
            Some(known) => update(&known, member),
            None => drop(object.append(name, input(member))),
        }
    }
}

/// A JSON value as the editor's input.
pub(crate) fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), input(value)))
                .collect(),
        ),
    }
}

fn broken(path: &Path, fault: &Fault) -> Error {
    let shown = path.display();
    let error = |message: String, hint: String| {
        Error::new(ErrorKind::ConfigBroken, message)
            .hint(hint)
            .file(shown.to_string())
    };
    let Some(syntax::Place { line, column }) = fault.place else {
        return error(
            format!("`{shown}`: {}", fault.message),
            "check that it is a file of yours that may be read; nothing was changed".to_owned(),
        );
    };
    error(
        format!("`{shown}` line {line}, column {column}: {}", fault.message),
        format!("mend line {line} and try again; nothing was changed"),
    )
    .line(line as u32)
    .column(column as u32)
}

fn write_failed(path: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::WriteFailed,
        format!("cannot write `{}`: {error}", path.display()),
    )
    .hint(match error.kind() {
        io::ErrorKind::StorageFull => "make room on the disk and try again; nothing was changed",
        io::ErrorKind::ReadOnlyFilesystem => "its file system is mounted read-only; nothing was changed",
        io::ErrorKind::TimedOut => "another Pillion is writing it; try again",
        _ => "check that the folder exists and may be written; nothing was changed",
    })
    .file(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use serde_json::json;

    #[test]
    fn an_edit_keeps_comments_order_and_strangers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/mcp.json");
        files::create_private_dir(path.parent().unwrap()).unwrap();
        let before = "{\n  // mine\n  \"other\": 1,\n  \"servers\": {\n    \"a\": { \"command\": \"x\" }, // first\n  }\n}\n";
        fs::write(&path, before).unwrap();
        edit(&path, Readers::Person, |whole| {
            set(whole, &["servers", "b"], Some(&json!({"url": "https://h/mcp"})));
            Ok(())
        })
        .unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("// mine") && text.contains("// first") && text.contains("\"other\": 1"),
            "{text}"
        );
        let read = file::ConfigFile::read(&path);
        assert_eq!(
            read.entries
                .iter()
                .map(|entry| entry.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
    }

    #[test]
    fn members_are_set_and_taken_away_where_they_stand() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(
            &path,
            "{\"servers\": {\n  \"a\": {\n    \"command\": \"x\", // why\n    \"own\": 1\n  }\n}, \"pending\": {\"user\": {\"a\": {}}}}",
        )
        .unwrap();
        edit(&path, Readers::Person, |whole| {
            set(whole, &["servers", "a"], Some(&json!({"command": "y", "own": 1})));
            set(whole, &["pending", "user", "a"], None);
            set(whole, &["switches", "host", "h"], Some(&json!(false)));
            assert_eq!(get(whole, &["servers", "a", "own"]), Some(json!(1)));
            Ok(())
        })
        .unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("\"y\", // why") && !text.contains("pending"),
            "{text}"
        );
        assert_eq!(
            file::ConfigFile::read(&path).beside,
            json!({"switches": {"host": {"h": false}}})
        );
    }

    #[test]
    fn a_broken_file_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, "{\n \"servers\": oops }").unwrap();
        let error = edit(&path, Readers::Person, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::ConfigBroken);
        assert_eq!((error.data.line, error.data.column), (Some(2), Some(13)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n \"servers\": oops }");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_private_and_a_link_stays_a_link() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("real.json");
        fs::write(&target, "{}").unwrap();
        let link = folder.path().join("mcp.json");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        edit(&link, Readers::Person, |whole| {
            set(whole, &["servers", "a"], Some(&json!({"command": "x"})));
            Ok(())
        })
        .unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&target).unwrap().contains("\"a\""));
    }
}
