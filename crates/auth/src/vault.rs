//! The platform's credential store: Keychain, Secret Service, Credential Manager.
//!
//! Builds without the feature `keyring` have none, and neither has a machine on which nothing answers.
//! Everything here blocks; what answers may ask the person first.

use crate::secret::Secret;

/// Why the credential store is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("this build of Pillion has no access to the credential store")]
    NotBuilt,
    #[error("the credential store cannot be used: {0}")]
    Unusable(String),
}

pub use back_end::{delete, read, write};

#[cfg(not(feature = "keyring"))]
mod back_end {
    use super::{Secret, VaultError};

    /// What is kept under a service and an account.
    pub fn read(_service: &str, _account: &str) -> Result<Option<Secret>, VaultError> {
        Err(VaultError::NotBuilt)
    }

    /// Keeps a secret, in place of an earlier one.
    pub fn write(_service: &str, _account: &str, _secret: &Secret) -> Result<(), VaultError> {
        Err(VaultError::NotBuilt)
    }

    /// Drops what is kept.
    pub fn delete(_service: &str, _account: &str) -> Result<(), VaultError> {
        Err(VaultError::NotBuilt)
    }
}

#[cfg(feature = "keyring")]
mod back_end {
    use keyring_core::{Entry, Error, get_default_store};

    use super::{Secret, VaultError};

    fn entry(service: &str, account: &str) -> Result<Entry, VaultError> {
        // Tests bring a store of their own.
        if get_default_store().is_none()
            && let Err(error) = keyring::Entry::store_status()
        {
            return Err(unusable(error));
        }
        Entry::new(service, account).map_err(|error| unusable(&error))
    }

    /// What is kept under a service and an account.
    pub fn read(service: &str, account: &str) -> Result<Option<Secret>, VaultError> {
        match entry(service, account)?.get_password() {
            Ok(secret) => Ok(Some(Secret::new(secret))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(unusable(&error)),
        }
    }

    /// Keeps a secret, in place of an earlier one.
    pub fn write(service: &str, account: &str, secret: &Secret) -> Result<(), VaultError> {
        entry(service, account)?
            .set_password(secret.expose())
            .map_err(|error| unusable(&error))
    }

    /// Drops what is kept.
    pub fn delete(service: &str, account: &str) -> Result<(), VaultError> {
        match entry(service, account)?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(unusable(&error)),
        }
    }

    fn unusable(error: &Error) -> VaultError {
        VaultError::Unusable(match error {
            // Its text would quote the secret.
            Error::BadEncoding(_) => "the entry holds no text".to_owned(),
            error => error.to_string(),
        })
    }
}
