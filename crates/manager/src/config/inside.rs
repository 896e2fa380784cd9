//! Paths of a project, as they are written and as they are told: links may lead anywhere.

use std::path::{Component, Path, PathBuf};

/// What is told of a path that leads out of its project.
pub(crate) fn told(path: &Path) -> String {
    format!("`{}` is a link that leads out of the project", path.display())
}

/// The path without `.` and `..`, as it is written.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
