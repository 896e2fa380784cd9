//! What belongs to an MCP server, kept as the bytes that came.
//!
//! A JSON tree would sort members, change numbers, drop duplicates and fail on what the server may lawfully send.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A JSON object that belongs to an MCP server, verbatim.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw(pub Box<RawValue>);

/// Any JSON value that belongs to an MCP server, verbatim.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Box<RawValue>);

macro_rules! verbatim {
    ($name:ident, $schema:expr) => {
        impl $name {
            /// The text as it came.
            pub fn get(&self) -> &str {
                self.0.get()
            }

            /// Takes a text that is known to be JSON; `None` where it is not.
            pub fn from_text(text: String) -> Option<Self> {
                RawValue::from_string(text).ok().map(Self)
            }
        }

        impl From<Box<RawValue>> for $name {
            fn from(raw: Box<RawValue>) -> Self {
                Self(raw)
            }
        }

        impl From<&serde_json::Value> for $name {
            fn from(value: &serde_json::Value) -> Self {
                Self(RawValue::from_string(value.to_string()).expect("a JSON tree prints as JSON"))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.get() == other.get()
            }
        }

        /// Only the size: arguments and results may hold what no log should.
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({} bytes)", stringify!($name), self.get().len())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

verbatim!(
    Raw,
    json_schema!({
        "description": "A JSON object that belongs to an MCP server, verbatim.",
        "type": "object",
        "additionalProperties": true,
        "x-raw": true,
    })
);
verbatim!(
    Json,
    json_schema!({ "description": "Any JSON value that belongs to an MCP server, verbatim.", "x-raw": true })
);
