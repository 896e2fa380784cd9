//! Texts with a bound: names, paths and opaque tokens, each a type of its own so that none is taken for another.
//!
//! The bounds stand in the schema only; whoever reads params checks them against it before serde sees them.
//! Lengths count Unicode scalar values, as JSON Schema does.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
pub type Time = u64;

macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident { $($keyword:literal: $value:tt),* $(,)? })+) => { $(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl std::ops::Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": crate::word::paragraph(&[$($doc),+]),
                    "type": "string",
                    $($keyword: $value),*
                })
            }
        }
    )+ };
}

texts! {
    /// An absolute path of a folder or file, never a `file:` URI.
    /// Directories are compared by real path; what Pillion sends repeats the spelling that the host used first.
    Dir { "minLength": 1, "maxLength": 4096 }
    /// The name of a server: the key of its entry.
    ServerName { "minLength": 1, "maxLength": 200 }
    /// The name of a server that is to be written; `pillion` is reserved for spilled results and built-in tools.
    NewName { "minLength": 1, "maxLength": 32, "pattern": "^[A-Za-z0-9_-]{1,32}$", "not": { "const": "pillion" } }
    /// The name of a profile, a set of servers.
    ProfileName { "minLength": 1, "maxLength": 64 }
    /// A URI (RFC 3986) or, for templates, a URI template (RFC 6570).
    Uri { "minLength": 1, "maxLength": 8192 }
    /// A digest of what was shown; opaque.
    Revision { "minLength": 1, "maxLength": 128 }
    /// Where a list goes on; opaque, and bound to one method, its other parameters and one state of the catalog.
    Cursor { "minLength": 1, "maxLength": 1024 }
    /// Pillion's id of a question or a sampling request; never used twice, not even by a later process.
    QuestionId { "minLength": 1, "maxLength": 64 }
    /// The host's name for a call; unique among its open requests.
    CallId { "minLength": 1, "maxLength": 64 }
    /// The host's name for a chat or a run; absent means the connection itself.
    Session { "minLength": 1, "maxLength": 128 }
    /// A JSON Pointer (RFC 6901) into an entry, for instance `/env/GITHUB_TOKEN`.
    Pointer { "minLength": 1, "maxLength": 512 }
}

/// Names a piece of work for `$/progress`; unique among the open requests of a connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Token {
    /// A whole number up to 2^53 − 1.
    Number(u64),
    /// A text of 1 to 128 characters.
    Text(String),
}

impl JsonSchema for Token {
    fn schema_name() -> Cow<'static, str> {
        "Token".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Names a piece of work for `$/progress`; unique among the open requests of a connection.",
            "anyOf": [
                { "title": "TextToken", "type": "string", "minLength": 1, "maxLength": 128 },
                { "title": "NumberToken", "type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64 },
            ]
        })
    }
}

/// Schema of a text of `MIN` to `MAX` characters: `#[schemars(with = "Text<1, 64>")]` on a `String`.
#[derive(Debug)]
pub struct Text<const MIN: u32, const MAX: u32>;

/// Schema of a whole number from `MIN` to `MAX`.
#[derive(Debug)]
pub struct Int<const MIN: u64, const MAX: u64>;

/// Schema of a list of at most `MAX` items.
#[derive(Debug)]
pub struct List<T, const MAX: u32>(PhantomData<T>);

/// Schema of a map of at most `MAX` entries.
#[derive(Debug)]
pub struct Dict<T, const MAX: u32>(PhantomData<T>);

macro_rules! inline_schema {
    ([$($generics:tt)*] $name:ty, $id:expr, |$generator:ident| $schema:expr) => {
        impl<$($generics)*> JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $id.into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

inline_schema!([const MIN: u32, const MAX: u32] Text<MIN, MAX>, format!("Text_{MIN}_{MAX}"), |_generator| {
    let mut schema = json_schema!({ "type": "string" });
    if MIN > 0 {
        schema.insert("minLength".into(), MIN.into());
    }
    schema.insert("maxLength".into(), MAX.into());
    schema
});
inline_schema!([const MIN: u64, const MAX: u64] Int<MIN, MAX>, format!("Int_{MIN}_{MAX}"), |_generator| {
    json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
});
inline_schema!([T: JsonSchema, const MAX: u32] List<T, MAX>, format!("List_{}_{MAX}", T::schema_name()), |generator| {
    json_schema!({ "type": "array", "items": generator.subschema_for::<T>(), "maxItems": MAX })
});
inline_schema!([T: JsonSchema, const MAX: u32] Dict<T, MAX>, format!("Dict_{}_{MAX}", T::schema_name()), |generator| {
    json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>(), "maxProperties": MAX })
});
