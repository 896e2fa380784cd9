//! Changing `mcp.json`: lock, read, change, replace. Comments, order and unknown members stay.

use std::io;
use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use protocol::{Error, ErrorKind};
use serde_json::Value;

use super::file;
use super::syntax;
use crate::limits;

/// Changes the `servers` object of a file.
///
/// `change` sees the object that holds the entries. Nothing is written when it fails.
/// Blocks on the lock and on the disk: call it from a blocking thread.
pub(crate) fn edit(path: &Path, change: impl FnOnce(&CstObject) -> Result<(), Error>) -> Result<(), Error> {
    let failed = |error: io::Error| write_failed(path, &error);
    if let Some(folder) = path.parent() {
        files::create_private_dir(folder).map_err(failed)?;
    }
    let _lock = files::Lock::take(path, limits::LOCK_WAIT).map_err(failed)?;
    let text = file::read_text(path).map_err(failed)?.unwrap_or_default();
    let had_bom = text.starts_with('\u{feff}');
    let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let source = if body.trim().is_empty() {
        "{\n  \"servers\": {}\n}\n"
    } else {
        body
    };
    let root =
        CstRootNode::parse(source, &syntax::options()).map_err(|error| broken(path, source, &error))?;
    let servers = root
        .object_value()
        .and_then(|object| object.object_value_or_create("servers"));
    let Some(servers) = servers else {
        return Err(Error::new(
            ErrorKind::ConfigBroken,
            format!("`{}` holds no object of `servers`", path.display()),
        )
        .hint("the file must look like {\"servers\": {…}}")
        .file(path.display().to_string()));
    };
    change(&servers)?;
    let mut changed = root.to_string();
    if had_bom {
        changed.insert(0, '\u{feff}');
    }
    if changed != text {
        files::write_private(path, changed.as_bytes()).map_err(failed)?;
    }
    Ok(())
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

fn broken(path: &Path, text: &str, error: &jsonc_parser::errors::ParseError) -> Error {
    let (line, column) = match syntax::Document::parse(text) {
        Err(fault) => (fault.place.line, fault.place.column),
        Ok(_) => (error.line_display(), error.column_display()),
    };
    Error::new(
        ErrorKind::ConfigBroken,
        format!(
            "`{}` line {line}, column {column}: {}",
            path.display(),
            error.kind()
        ),
    )
    .hint(format!("mend line {line} and try again; nothing was changed"))
    .file(path.display().to_string())
    .line(line as u32)
    .column(column as u32)
}

fn write_failed(path: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::WriteFailed,
        format!("cannot write `{}`: {error}", path.display()),
    )
    .hint("check that the folder exists and may be written; nothing was changed")
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
        edit(&path, |servers| {
            servers.append("b", input(&json!({"url": "https://h/mcp"})));
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
    fn a_broken_file_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, "{\n \"servers\": oops }").unwrap();
        let error = edit(&path, |_| Ok(())).unwrap_err();
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
        edit(&link, |servers| {
            servers.append("a", input(&json!({"command": "x"})));
            Ok(())
        })
        .unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&target).unwrap().contains("\"a\""));
    }
}
