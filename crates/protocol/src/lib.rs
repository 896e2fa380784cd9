//! Everything that passes between a host and Pillion: types, the method table, error codes, the schema.
//!
//! Data only: no IO, no tasks, no clock.
//! Params are closed (an unknown member is an error), results and notifications are open (a reader ignores what it does not know).

mod method;

mod in_host;
mod initialize;
mod install;
mod lsp;

mod diagnose;
mod fault;
mod fields;
mod log;
mod status;

mod config;
mod consent;
mod entry;
mod exchange;
mod find;
mod profile;

mod auth;

mod call;
mod catalog;
mod model;
mod prompt;
mod tools;

mod answer;
mod question;

mod notification;

mod error;

mod bounded;
mod raw;
mod rest;
mod word;

pub mod openapi;
pub mod openrpc;
pub mod schema;

pub use answer::*;
pub use auth::*;
pub use bounded::{
    CallId, Cursor, Dir, NewName, Pointer, ProfileName, QuestionId, Revision, ServerName, Session, Time,
    Token, Uri,
};
pub use call::*;
pub use catalog::*;
pub use config::*;
pub use consent::*;
pub use diagnose::*;
pub use entry::*;
pub use error::{Error, ErrorData, ErrorKind, McpFault};
pub use exchange::*;
pub use fault::*;
pub use find::*;
pub use in_host::*;
pub use initialize::*;
pub use install::*;
pub use log::*;
pub use lsp::*;
pub use method::{Method, MethodSpec, Tier, methods};
pub use model::*;
pub use notification::*;
pub use profile::*;
pub use prompt::*;
pub use question::*;
pub use raw::{Json, Raw};
pub use rest::*;
pub use schema::generated_files;
pub use status::*;
pub use tools::*;

#[cfg(test)]
mod tests;
