//! Composing a prompt: what a text mentions and calls. Text in, findings out; nothing here reads a resource.

pub(crate) mod command;
pub(crate) mod mention;
