//! Everything a host can want from its MCP servers: configuration, lifecycle, calls, questions, and what servers offer.
//!
//! [`Manager`] has one method per method of the protocol. It knows no stdio, no framing and no command line:
//! whoever drives it implements [`HostSink`] and gets news through that.

mod bundle;
mod calls;
mod catalog;
mod changes;
mod compose;
mod config;
mod consent;
mod core;
mod doctor;
mod env;
mod error;
mod exchange;
mod find;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod install;
pub mod limits;
mod manager;
mod model;
mod progress;
mod question;
mod sampling;
mod server;
mod sink;
mod spelling;

pub use config::layers::keep_private;
pub use config::validate::remote_url;
pub use env::{Env, WatchdogHook};
pub use exchange::fill::{fill, is_open};
pub use manager::Manager;
pub use sink::{HostSink, RequestContext};
pub use spelling::{nearest, variable_name};
