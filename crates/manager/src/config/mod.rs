//! Configuration: the files, their layers, and how an entry becomes what is started.

pub(crate) mod book;
pub(crate) mod entries;
pub(crate) mod expand;
pub(crate) mod file;
pub(crate) mod inside;
pub(crate) mod layers;
pub(crate) mod members;
pub(crate) mod merge;
pub(crate) mod packages;
pub(crate) mod profiles;
mod remembered;
pub(crate) mod secret;
pub(crate) mod store;
pub(crate) mod syntax;
pub(crate) mod validate;
