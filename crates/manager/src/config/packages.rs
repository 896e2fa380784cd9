//! Packages: folders with an `mcp.json`. They are noticed, never installed.

use std::path::{Path, PathBuf};

use super::file::ConfigFile;
use crate::limits;

/// The packages below one folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packages {
    folder: PathBuf,
    stamp: Option<files::Stamp>,
    pub list: Vec<Package>,
}

#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Its folder's name, by which it is known.
    pub folder: String,
    pub path: PathBuf,
    pub file: ConfigFile,
}

impl Package {
    pub fn source(&self) -> String {
        format!("package:{}", self.folder)
    }
}

impl Packages {
    /// Looks one level deep. `project`: the folder belongs to this project, and nothing outside of it is read.
    pub fn read(folder: &Path, project: Option<&Path>) -> Packages {
        let stamp = files::stamp(folder);
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        paths.sort();
        paths.truncate(limits::PACKAGES);
        let list = paths.into_iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let file = path.join("mcp.json");
            Some(Package {
                file: match project {
                    Some(root) => ConfigFile::read_shared(&file, root),
                    None => ConfigFile::read(&file),
                },
                folder: name,
                path,
            })
        });
        Packages {
            folder: folder.to_owned(),
            stamp,
            list: list.collect(),
        }
    }

    /// These packages, with what their files held `before` where they are broken now.
    pub fn after(mut self, before: &Packages) -> Packages {
        for package in &mut self.list {
            let mut known = before.list.iter();
            if let Some(known) = known.find(|known| known.path == package.path) {
                package.file = std::mem::take(&mut package.file).after(&known.file);
            }
        }
        self
    }

    pub fn outdated(&self) -> bool {
        files::stamp(&self.folder) != self.stamp || self.files().any(ConfigFile::outdated)
    }

    pub fn files(&self) -> impl Iterator<Item = &ConfigFile> {
        self.list.iter().map(|package| &package.file)
    }

    /// The folder and the files in it.
    pub fn watched(&self) -> impl Iterator<Item = PathBuf> {
        std::iter::once(self.folder.clone()).chain(self.files().map(|file| file.path.clone()))
    }
}
