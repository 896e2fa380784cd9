//! Finding servers to add.

pub(crate) mod gallery;
