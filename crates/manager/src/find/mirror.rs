//! The copy of the registry's list in the cache folder: one file of lines, a head and one line per server.
//!
//! It is read for each search and not kept in memory: a search is rare, and the list is large.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::date;
use crate::config::file;
use crate::limits;

/// What is known about the copy as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    version: u32,
    /// When the list was asked for that stands here; changes are asked for since then. Epoch ms.
    pub begun: u64,
    /// When it was last known to be whole; 0 before the first time.
    pub whole_at: u64,
    /// Where the first reading goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// One server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    /// Why it should not be taken any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<u64>,
    /// Its `server.json`, without what is never shown.
    pub server: Box<RawValue>,
}

#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub head: Head,
    pub records: BTreeMap<String, Record>,
    bytes: usize,
    /// There was no place for all.
    pub is_full: bool,
}

const VERSION: u32 = 1;

/// Where the copy of a registry lies.
pub(super) fn path(data_dir: &Path, base: &str) -> PathBuf {
    let digest = file::digest(base.as_bytes());
    data_dir.join(format!("cache/registry-{digest}.jsonl"))
}

impl Mirror {
    /// What lies on the disk; empty where nothing usable does. Blocks.
    pub fn load(path: &Path) -> Mirror {
        let text = match files::read_text(path, limits::MIRROR_FILE_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return Mirror::default(),
            Err(error) => {
                tracing::warn!(%error, "the copy of the registry's list cannot be read, and is made anew");
                return Mirror::default();
            }
        };
        let mut lines = text.lines();
        let head = lines
            .next()
            .and_then(|line| serde_json::from_str::<Head>(line).ok());
        let Some(head) = head.filter(|head| head.version == VERSION) else {
            return Mirror::default();
        };
        let mut mirror = Mirror {
            head,
            ..Default::default()
        };
        for line in lines {
            if let Ok(record) = serde_json::from_str::<Record>(line) {
                mirror.bytes += line.len();
                mirror.records.insert(record.name.clone(), record);
            }
        }
        mirror
    }

    /// Blocks.
    pub fn save(&mut self, path: &Path) -> std::io::Result<()> {
        self.head.version = VERSION;
        let mut text = serde_json::to_string(&self.head)?;
        for record in self.records.values() {
            text.push('\n');
            text.push_str(&serde_json::to_string(record)?);
        }
        text.push('\n');
        if let Some(folder) = path.parent() {
            files::create_private_dir(folder)?;
        }
        files::write_cache(path, text.as_bytes())
    }

    /// Takes over one element of the registry's answer. What does not fit is left out: one bad entry of a public list
    /// must not hide the others.
    pub fn take(&mut self, listed: Value) {
        let official = &listed["_meta"]["io.modelcontextprotocol.registry/official"];
        let server = listed.get("server").unwrap_or(&listed);
        let status = official["status"]
            .as_str()
            .or(server["status"].as_str())
            .unwrap_or("active");
        let Some(name) = server["name"]
            .as_str()
            .filter(|name| name.len() <= 256 && !name.is_empty())
        else {
            return;
        };
        if status == "deleted" {
            if let Some(old) = self.records.remove(name) {
                self.bytes = self.bytes.saturating_sub(old.server.get().len());
            }
            return;
        }
        if official["isLatest"] == Value::Bool(false) {
            return;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let deprecated =
            (status == "deprecated").then(|| text(&official["statusMessage"]).unwrap_or_default());
        let updated_at = official["updatedAt"]
            .as_str()
            .or(official["publishedAt"].as_str());
        let mut kept = server.clone();
        if let Some(members) = kept.as_object_mut() {
            for unused in ["_meta", "icons", "$schema"] {
                members.remove(unused);
            }
        }
        let Ok(kept) = serde_json::value::to_raw_value(&kept) else {
            return;
        };
        if kept.get().len() > limits::MIRROR_RECORD_BYTES {
            return;
        }
        let is_new = !self.records.contains_key(name);
        if is_new
            && (self.records.len() >= limits::MIRROR_RECORDS
                || self.bytes + kept.get().len() > limits::MIRROR_BYTES)
        {
            self.is_full = true;
            return;
        }
        self.bytes += kept.get().len();
        let record = Record {
            name: name.to_owned(),
            title: text(&server["title"]),
            description: text(&server["description"]).unwrap_or_default(),
            deprecated,
            updated_at: updated_at.and_then(date::epoch_ms),
            server: kept,
        };
        self.records.insert(record.name.clone(), record);
    }

    /// Stands for this state of the list.
    pub fn state(&self) -> String {
        format!(
            "{} {} {}",
            self.head.begun,
            self.head.whole_at,
            self.records.len()
        )
    }
}
