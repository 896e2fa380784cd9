//! The secrets of a record in the credential store instead of the file, in builds that have one.
//!
//! The file then holds everything else and a mark. Secrets are kept there first: a process that dies between the two writes
//! leaves new tokens with an old expiry, and loses none. Where the credential store cannot be used, the file holds all, as in
//! other builds.

use serde_json::{Map, Value, json};

use crate::secret::Secret;
use crate::settings::Key;
use crate::vault::{self, VaultError};

/// The credential store's service of our tokens.
const SERVICE: &str = "pillion-login";
/// The mark: it changes with the secrets, so that other processes notice.
const MARK: &str = "inCredentialStore";
/// Where a record holds secrets.
const SECRETS: [&str; 4] = ["/accessToken", "/refreshToken", "/dpopKey", "/client/secret"];

/// Whether the secrets of this record are elsewhere.
pub(super) fn is_sealed(record: &Value) -> bool {
    record.get(MARK).is_some()
}

/// Moves the secrets of a record into the credential store, and what is left back into the record. On failure the record
/// stays whole.
pub(super) fn seal(key: &Key, record: &mut Value) -> Result<(), VaultError> {
    let mut sealed = record.clone();
    let mut secrets = Map::new();
    for pointer in SECRETS {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(members)) = sealed.pointer_mut(parent)
            && let Some(secret) = members.shift_remove(name)
        {
            secrets.insert(pointer.to_owned(), secret);
        }
    }
    if secrets.is_empty() {
        return vault::delete(SERVICE, key.as_str());
    }
    let text = Value::Object(secrets).to_string();
    vault::write(SERVICE, key.as_str(), &Secret::new(text.as_str()))?;
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let mark = digest.as_ref()[..8]
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    sealed[MARK] = json!(mark);
    *record = sealed;
    Ok(())
}

/// Puts the secrets back into a record. Without them it counts as one without tokens.
pub(super) fn unseal(key: &Key, record: &mut Value) {
    if !is_sealed(record) {
        return;
    }
    let secrets = match vault::read(SERVICE, key.as_str()) {
        Ok(secrets) => secrets,
        Err(error) => {
            tracing::warn!("tokens are out of reach: {error}");
            return;
        }
    };
    let secrets = secrets.and_then(|text| serde_json::from_str::<Map<String, Value>>(text.expose()).ok());
    if let Some(members) = record.as_object_mut() {
        members.shift_remove(MARK);
    }
    for (pointer, secret) in secrets.into_iter().flatten() {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(members)) = record.pointer_mut(parent) {
            members.insert(name.to_owned(), secret);
        }
    }
}

/// Drops what is kept of a record.
pub(super) fn forget(key: &Key) {
    if let Err(error) = vault::delete(SERVICE, key.as_str()) {
        tracing::warn!("tokens could not be dropped from the credential store: {error}");
    }
}

/// Why secrets are in the file, where a build could keep them elsewhere.
pub(crate) fn problem() -> Option<String> {
    match vault::read(SERVICE, "a look whether it answers") {
        Err(error @ VaultError::Unusable(_)) => Some(error.to_string()),
        Ok(_) | Err(VaultError::NotBuilt) => None,
    }
}
