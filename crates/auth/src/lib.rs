//! Logging in to MCP servers that want it: OAuth 2.1 as the MCP specification uses it, from a server's challenge to tokens
//! that are kept, refreshed and forgotten.
//!
//! This crate knows neither hosts nor MCP connections. It opens no browser: whoever starts a login gets an address to show.

mod authorize;
mod authorizer;
mod callback;
pub mod challenge;
mod client;
mod clock;
mod discovery;
mod dpop;
mod error;
mod flow;
mod grants;
mod guard;
mod jwt;
mod limits;
mod network;
mod pkce;
mod probe;
mod refresh;
mod registration;
mod scope;
mod secret;
mod settings;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod token;
pub mod vault;
mod web;

pub use authorizer::{Authorizer, Starter, Stored};
pub use callback::redirect::redirect_url;
pub use challenge::{Challenge, bearer};
pub use client::ClientKind;
pub use discovery::Step;
pub use error::AuthError;
pub use flow::Started;
pub use network::Network;
pub use probe::Report;
pub use secret::Secret;
pub use settings::{AuthMethod, Enterprise, Grant, Key, Resource, Settings, SigningSettings};
pub use source::{Attempts, Refusal, ServerTokens, Verdict};
pub use web::ClientFactory;
