//! `mcp-auth.json`: client registrations and tokens, for this person's eyes only.
//!
//! Several processes share the file. It is changed by lock, read, change and atomic replace; whoever only reads looks at the
//! file's stamp first, so a login in one process reaches all others. A broken file counts as empty, a copy is set aside.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use files::{Lock, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::clock;
use crate::error::AuthError;
use crate::limits::{REFRESH_LOCK, STORE_BYTES, STORE_LOCK};
use crate::secret::{self, Secret};
use crate::settings::Key;

/// What is stored about one server. All of it belongs to one issuer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "secret::write",
        deserialize_with = "secret::read"
    )]
    pub access_token: Option<Secret>,
    /// Epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "secret::write",
        deserialize_with = "secret::read"
    )]
    pub refresh_token: Option<Secret>,
    /// What was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// What was asked for, where that was more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_scope: Option<String>,
    /// The key the tokens are bound to (RFC 9449).
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "secret::write",
        deserialize_with = "secret::read"
    )]
    pub dpop_key: Option<Secret>,
    /// The access token is presented with a proof.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// Members of other versions of this program.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Record {
    /// Drops the tokens; the registration stays.
    pub fn drop_tokens(&mut self) {
        self.access_token = None;
        self.refresh_token = None;
        self.expires_at = None;
        self.scope = None;
        self.asked_scope = None;
        self.dpop_key = None;
        self.bound = false;
    }

    fn is_empty(&self) -> bool {
        self.client.is_none() && self.access_token.is_none() && self.refresh_token.is_none()
    }

    /// Everything that was ever granted or asked for.
    pub fn known_scope(&self) -> String {
        crate::scope::union(
            [self.scope.as_deref(), self.asked_scope.as_deref()]
                .into_iter()
                .flatten(),
        )
    }

    /// Whether the access token is over, or will be within so many milliseconds.
    pub fn expires_within(&self, margin: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= clock::now() + margin)
    }
}

type Servers = BTreeMap<String, Value>;

/// The file, and what was read of it last.
pub(crate) struct Store {
    path: PathBuf,
    /// Secrets go into the credential store where it takes them. A test says so where it means it.
    seals: bool,
    cached: Mutex<Cached>,
}

#[derive(Default)]
struct Cached {
    stamp: Option<Stamp>,
    servers: Servers,
    /// The same as the file has it: without the secrets that are in the credential store.
    on_disk: Servers,
    /// Members beside `servers`.
    rest: Map<String, Value>,
    /// Records that could not be written: a rotated token is all we have, so it is used until the disk takes it.
    unsaved: BTreeMap<String, Value>,
}

impl Store {
    pub fn new(path: PathBuf) -> Store {
        Store {
            path,
            seals: cfg!(all(feature = "keyring", not(test))),
            cached: Mutex::default(),
        }
    }

    /// The stamp of the file: it differs when somebody wrote.
    pub fn stamp(&self) -> Option<Stamp> {
        files::stamp(&self.path)
    }

    /// What is stored now.
    pub fn read(&self, key: &Key) -> Option<Record> {
        let cached = self.fresh();
        let value = cached
            .unsaved
            .get(key.as_str())
            .or_else(|| cached.servers.get(key.as_str()))?;
        Record::deserialize(value).ok()
    }

    /// Whether the secrets of a server are in the credential store, not in the file.
    pub fn is_sealed(&self, key: &Key) -> bool {
        self.fresh()
            .on_disk
            .get(key.as_str())
            .is_some_and(sealed::is_sealed)
    }

    /// All records that can be read.
    pub fn all(&self) -> Vec<(Key, Record)> {
        let cached = self.fresh();
        let records = cached.servers.iter().filter_map(|(key, value)| {
            let value = cached.unsaved.get(key).unwrap_or(value);
            Some((Key::stored(key), Record::deserialize(value).ok()?))
        });
        records.collect()
    }

    fn fresh(&self) -> MutexGuard<'_, Cached> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = files::stamp(&self.path);
        if stamp != cached.stamp {
            let unsaved = std::mem::take(&mut cached.unsaved);
            *cached = self.load(stamp);
            cached.unsaved = unsaved;
        }
        cached
    }

    /// Reads the file. `stamp` was taken before, so that a write in between is noticed next time.
    fn load(&self, stamp: Option<Stamp>) -> Cached {
        let empty = Cached {
            stamp: stamp.clone(),
            ..Cached::default()
        };
        match files::keep_private(&self.path) {
            Ok(None) => {}
            Ok(Some(mode)) => tracing::warn!(
                "others could read `{}` (mode {mode:o}); now only you can",
                self.path.display()
            ),
            Err(error) => tracing::warn!(
                "others can read `{}`, and that cannot be changed: {error}",
                self.path.display()
            ),
        }
        let text = match files::read_text(&self.path, STORE_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return empty,
            Err(error) => {
                tracing::warn!("`{}` cannot be read: {error}", self.path.display());
                return empty;
            }
        };
        let document = serde_json::from_str::<Map<String, Value>>(&text).ok();
        let parts = document.and_then(|mut document| {
            let servers = match document.remove("servers") {
                None => Servers::new(),
                Some(servers) => serde_json::from_value(servers).ok()?,
            };
            Some((servers, document))
        });
        let Some((servers, rest)) = parts else {
            let copy = files::set_aside(&self.path, text.as_bytes(), clock::now());
            let copy = copy.map(|copy| copy.display().to_string()).unwrap_or_default();
            tracing::warn!(
                "`{}` is broken and counts as empty; copy: {copy}",
                self.path.display()
            );
            return empty;
        };
        let on_disk = servers.clone();
        let mut servers = servers;
        for (key, record) in &mut servers {
            sealed::unseal(&Key::stored(key), record);
        }
        Cached {
            stamp,
            servers,
            on_disk,
            rest,
            unsaved: BTreeMap::new(),
        }
    }

    /// Changes one record under the lock, on top of what is on the disk at that moment. Blocks.
    fn change_now(&self, key: &Key, change: impl FnOnce(&mut Record)) -> Result<Record, AuthError> {
        let failed = |error: std::io::Error| AuthError::Store {
            path: self.path.display().to_string(),
            reason: error.to_string(),
        };
        if let Some(folder) = self.path.parent() {
            files::create_private_dir(folder).map_err(failed)?;
        }
        let lock = Lock::take(&self.path, STORE_LOCK);
        let mut on_disk = self.load(files::stamp(&self.path));
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        on_disk.unsaved = std::mem::take(&mut cached.unsaved);
        let value = on_disk
            .unsaved
            .get(key.as_str())
            .or_else(|| on_disk.servers.get(key.as_str()));
        let mut record = value
            .and_then(|value| Record::deserialize(value).ok())
            .unwrap_or_default();
        change(&mut record);
        let value = (!record.is_empty()).then(|| json!(record));
        let before = on_disk.servers.get(key.as_str()).cloned();
        match &value {
            Some(value) => on_disk.servers.insert(key.as_str().to_owned(), value.clone()),
            None => on_disk.servers.remove(key.as_str()),
        };
        let written = lock.and_then(|_lock| {
            if before == value {
                return Ok(());
            }
            match &value {
                Some(value) => {
                    let mut written = value.clone();
                    if self.seals
                        && let Err(error) = sealed::seal(key, &mut written)
                    {
                        tracing::warn!("tokens are kept in `{}`: {error}", self.path.display());
                    }
                    on_disk.on_disk.insert(key.as_str().to_owned(), written);
                }
                None => {
                    if self.seals {
                        sealed::forget(key);
                    }
                    on_disk.on_disk.remove(key.as_str());
                }
            }
            let mut document = on_disk.rest.clone();
            document.entry("version").or_insert(json!(1));
            document.insert("servers".to_owned(), json!(on_disk.on_disk));
            let text = serde_json::to_string_pretty(&document)?;
            files::write_private(&self.path, text.as_bytes())?;
            on_disk.stamp = files::stamp(&self.path);
            Ok(())
        });
        let outcome = match written {
            Ok(()) => {
                on_disk.unsaved.remove(key.as_str());
                Ok(record)
            }
            Err(error) => {
                on_disk
                    .unsaved
                    .insert(key.as_str().to_owned(), value.unwrap_or_default());
                Err(failed(error))
            }
        };
        *cached = on_disk;
        outcome
    }

    /// As [`Store::change_now`], off the runtime's thread.
    pub async fn change(
        self: &Arc<Self>,
        key: &Key,
        change: impl FnOnce(&mut Record) + Send + 'static,
    ) -> Result<Record, AuthError> {
        let (store, key) = (Arc::clone(self), key.clone());
        blocking(self.path.clone(), move || store.change_now(&key, change)).await
    }

    /// Waits until no other process refreshes the tokens of this server.
    pub async fn refresh_lock(self: &Arc<Self>, key: &Key) -> Result<Lock, AuthError> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}", &key.handle()[1..]));
        let path = PathBuf::from(name);
        blocking(path.clone(), move || {
            Lock::take(&path, REFRESH_LOCK).map_err(|error| AuthError::Store {
                path: path.display().to_string(),
                reason: error.to_string(),
            })
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> Result<T, AuthError> + Send + 'static,
) -> Result<T, AuthError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(AuthError::Store {
            path: path.display().to_string(),
            reason: error.to_string(),
        })
    })
}

pub(crate) mod sealed;
#[cfg(test)]
mod tests;
