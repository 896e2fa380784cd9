//! `envFile`: a file of variables, read at each start.

use std::collections::BTreeMap;
use std::path::Path;

use protocol::{Error, ErrorKind};

use crate::limits;

fn bad(path: &Path, what: &str) -> Error {
    Error::new(
        ErrorKind::StartFailed,
        format!("envFile `{}`: {what}", path.display()),
    )
    .hint("correct the file or `envFile` of the entry")
    .file(path.display().to_string())
}

/// The text of a file of variables. What is no file is not waited for.
pub(super) async fn text(path: &Path) -> Result<String, Error> {
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || files::read_text(&owned, limits::ENV_FILE_BYTES)).await;
    match read {
        Ok(Ok(Some(text))) => Ok(text),
        Ok(Ok(None)) => Err(bad(path, "there is no such file")),
        Ok(Err(error)) => Err(bad(path, &error.to_string())),
        Err(error) => Err(bad(path, &error.to_string())),
    }
}

/// What stands in it.
pub(super) fn variables(path: &Path, text: &str) -> Result<BTreeMap<String, String>, Error> {
    parse(text).map_err(|line| bad(path, &format!("line {line} is no `NAME=value`")))
}

/// `NAME=value` lines; `#` comments, `export`, and quotes as in a shell's file of variables.
fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut variables = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(index + 1);
        }
        let value = value.trim();
        let quoted = ['"', '\'']
            .iter()
            .find(|quote| value.len() >= 2 && value.starts_with(**quote) && value.ends_with(**quote));
        let value = match quoted {
            Some('"') => value[1..value.len() - 1]
                .replace("\\n", "\n")
                .replace("\\\"", "\""),
            Some(_) => value[1..value.len() - 1].to_owned(),
            None => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
        };
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_env_file_reads_as_people_write_it() {
        let text = "# keys\nexport A=1\nB = \"two words\"\nC='x # y'\nD=z # note\n\nE=\n";
        let variables = parse(text).unwrap();
        let read: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                ("A", "1"),
                ("B", "two words"),
                ("C", "x # y"),
                ("D", "z"),
                ("E", "")
            ]
        );
        assert_eq!(parse("A=1\noops"), Err(2));
    }
}
