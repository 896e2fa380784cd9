//! What servers say about authorization.
//!
//! The login itself is not part of this version: a server that asks for one is shown as `needs_auth`, with what it asked for.

pub mod challenge;

pub use challenge::{Challenge, bearer};
