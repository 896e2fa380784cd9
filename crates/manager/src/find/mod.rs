//! Finding servers to add.

mod date;
pub(crate) mod gallery;
pub(crate) mod github;
mod mirror;
pub(crate) mod registry;
mod web;
