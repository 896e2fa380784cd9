//! Files in which other programs keep their servers: which of them may be read, and what they hold.

use std::io::Read as _;
use std::path::Path;

use protocol::{Error, ErrorKind, ImportSource, Issue, Scope, ServerName};

use super::configuring::dir;
use super::gating::check_inside;
use crate::config::inside::plain;
use crate::exchange::programs::Place;
use crate::exchange::{Dialect, Fault, Harvest, Outcome, harvest, meant_in};
use crate::limits;

/// Refuses a file of the project that lies somewhere else, however its path is spelled.
pub(super) fn check_source(source: &Path, root: &Path) -> Result<(), Error> {
    // What is written as outside of the project is the person's own wish.
    let written = plain(source);
    let is_root = |step: &&Path| std::fs::canonicalize(step).is_ok_and(|real| real == root);
    let Some(below) = written
        .ancestors()
        .find(is_root)
        .and_then(|base| written.strip_prefix(base).ok())
    else {
        return Ok(());
    };
    check_inside(&root.join(below), root)
        .and_then(|()| check_inside(source, root))
        .map_err(|error| {
            error
                .path("/source")
                .hint("name the file that the link leads to, if its servers are wanted")
        })
}

/// Another program's file.
fn read_file(path: &Path) -> Result<String, Error> {
    let fault = |kind: ErrorKind, why: String| {
        Error::new(kind, format!("`{}` cannot be read: {why}", path.display())).path("/source")
    };
    if !path.is_absolute() {
        return Err(fault(
            ErrorKind::InvalidParams,
            "it is no absolute path".to_owned(),
        ));
    }
    let metadata = std::fs::metadata(path).map_err(|error| {
        fault(ErrorKind::NotFound, error.to_string())
            .hint("`mcp.import.detect` finds the configurations of other programs on this machine")
    })?;
    // A pipe would be waited for without end.
    if !metadata.is_file() {
        let what = if metadata.is_dir() {
            "it is a folder"
        } else {
            "it is no file"
        };
        return Err(fault(ErrorKind::InvalidParams, what.to_owned()));
    }
    let file = std::fs::File::open(path).map_err(|error| fault(ErrorKind::NotFound, error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(limits::FOREIGN_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| fault(ErrorKind::NotFound, error.to_string()))?;
    if bytes.len() as u64 > limits::FOREIGN_FILE_BYTES {
        return Err(fault(
            ErrorKind::InvalidParams,
            format!("it is larger than {} bytes", limits::FOREIGN_FILE_BYTES),
        ));
    }
    String::from_utf8(bytes).map_err(|_| fault(ErrorKind::InvalidParams, "it is no UTF-8".to_owned()))
}

/// The servers of a file; `is_known` says that it is one where another program keeps its own.
pub(super) fn read_servers(path: &Path, is_known: bool) -> Result<Harvest, Error> {
    let text = read_file(path)?;
    let (mut harvest, _) =
        harvest(&text, Dialect::of_path(&path.to_string_lossy())).map_err(|fault| broken(path, &fault))?;
    if is_known || harvest.is_foreign {
        harvest.refuse_strange(meant_in(path));
    }
    Ok(harvest)
}

/// Another program's file that cannot be read.
pub(super) fn broken(path: &Path, fault: &Fault) -> Error {
    let path = path.display().to_string();
    let error = match fault.place {
        Some(_) => Error::new(ErrorKind::ConfigBroken, format!("`{path}`: {fault}")),
        None => Error::new(ErrorKind::ConfigBroken, format!("`{path}`: {fault}")),
    };
    let error = error
        .file(path)
        .hint("mend it and try again; nothing was changed");
    match fault.place {
        Some(place) => error
            .line(u32::try_from(place.line).unwrap_or(u32::MAX))
            .column(u32::try_from(place.column).unwrap_or(u32::MAX)),
        None => error,
    }
}

/// What a file of another program holds; nothing where it is not there or holds no server.
pub(super) fn looked_at(place: &Place, root: &Path) -> Option<ImportSource> {
    if !place.path.is_file() {
        return None;
    }
    let id = place.path.to_str()?.to_owned();
    let mut source = ImportSource {
        client: place.client.to_owned(),
        format: place.format,
        path: dir(&place.path),
        scope: place.scope,
        servers: Vec::new(),
        problems: Vec::new(),
        id: id.clone(),
    };
    let servers = match place.scope {
        Scope::Project => check_inside(&place.path, root).and_then(|()| read_servers(&place.path, true)),
        Scope::User => read_servers(&place.path, true),
    };
    match servers {
        Ok(harvest) if harvest.found.is_empty() => return None,
        Ok(harvest) => {
            for one in harvest.found {
                let name = shortened(if one.name.is_empty() { "unnamed" } else { &one.name });
                if let Outcome::Failed(reason) | Outcome::Skipped(reason) = one.outcome {
                    let mut issue = Issue::new(ErrorKind::InvalidParams, reason);
                    issue.item = Some(name);
                    source.problems.push(issue);
                } else {
                    source.servers.push(ServerName::from(name));
                }
            }
        }
        Err(error) => source
            .problems
            .push(Issue::new(ErrorKind::ConfigBroken, error.message)),
    }
    Some(source)
}

/// A server's name may be longer in other programs.
pub(super) fn shortened(name: &str) -> String {
    name.chars().filter(|one| !one.is_control()).take(200).collect()
}
