//! What the person switched, kept for a start at which their `mcp.json` does not read: a slip in it must not switch on
//! what was off.
//!
//! It holds names, digests and times, no entries. While the file reads, only the file counts.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::file::{self, ConfigFile};
use super::profiles::Profiles;
use super::syntax::Document;

/// The members of the user's file that decide about servers of other files.
const MEMBERS: [&str; 6] = [
    "switches",
    "packages",
    "profiles",
    "defaultProfile",
    "tombstones",
    "approved",
];

/// Below the cache folder, since all of it stands in `mcp.json` as well.
pub(super) struct Remembered {
    path: PathBuf,
    /// What lies on the disk, once it was looked at.
    known: Option<Value>,
}

impl Remembered {
    pub fn new(data_dir: &Path) -> Remembered {
        Remembered {
            path: data_dir.join("cache/switches.json"),
            known: None,
        }
    }

    /// Keeps what a good file says, and fills in what a broken one said last. Blocks on the disk.
    pub fn sync(&mut self, file: &mut ConfigFile) {
        if file.is_broken {
            if file.beside.is_null() {
                self.fill_in(file);
            }
            return;
        }
        let members = MEMBERS.into_iter().filter_map(|name| {
            let value = file.beside.get(name)?;
            Some((name.to_owned(), value.clone()))
        });
        let now = Value::Object(members.collect());
        if *self.known() == now {
            return;
        }
        let text = now.to_string();
        let folder = self.path.parent().map_or(Ok(()), files::create_private_dir);
        match folder.and_then(|()| files::write_cache(&self.path, text.as_bytes())) {
            Ok(()) => self.known = Some(now),
            // Without a disk the file itself cannot be changed either.
            Err(error) => tracing::debug!(%error, "what is switched off is not remembered"),
        }
    }

    fn fill_in(&self, file: &mut ConfigFile) {
        let text = file::read_text(&self.path).ok().flatten().unwrap_or_default();
        if let Ok(document) = Document::parse(&text) {
            file.beside = document.value();
            file.profiles = Profiles::read(&document, &file.beside).0;
        }
    }

    fn known(&mut self) -> &Value {
        let path = &self.path;
        self.known.get_or_insert_with(|| {
            let text = file::read_text(path).ok().flatten().unwrap_or_default();
            serde_json::from_str(&text).unwrap_or_else(|_| Value::Object(Map::new()))
        })
    }
}
