//! Questions to the person: what a server may ask, who is asked when, and what an answer may be.

pub(crate) mod answer;
pub(crate) mod form;
mod letters;
pub(crate) mod queue;
pub(crate) mod words;
