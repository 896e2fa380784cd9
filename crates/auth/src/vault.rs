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
