//! The model's side: what a model is offered, what it costs, and what is kept from it.
//!
//! Values in, values out, but for the three stores: accepted definitions ([`pins`], [`lineage`]), results that were too large
//! ([`spill`]), and lists of servers that do not run ([`manifest`]).

pub(crate) mod answer;
pub(crate) mod builtin;
pub(crate) mod definition;
pub(crate) mod guard;
pub(crate) mod lineage;
pub(crate) mod manifest;
pub(crate) mod offer;
pub(crate) mod pins;
pub(crate) mod poison;
pub(crate) mod project;
pub(crate) mod resource;
pub(crate) mod search;
pub(crate) mod spill;
pub(crate) mod tokens;
