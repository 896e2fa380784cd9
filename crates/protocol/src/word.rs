//! Words: enums that are strings on the wire, closed lists and open ones, and unions told apart by one member.
//!
//! Their schemas are written here rather than derived, so that every generator of clients gets a name for each.

use schemars::{Schema, transform::Transform};
use serde_json::json;

/// The doc lines of an item as one paragraph.
pub(crate) fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The description of a list of words: its own paragraph, then one line per word that has something to say.
pub(crate) fn describe(lines: &[&str], words: &[(&str, &[&str])]) -> String {
    let mut text = paragraph(lines);
    for (word, docs) in words {
        let said = paragraph(docs);
        if !said.is_empty() {
            text.push_str(&format!("\n- `{word}`: {said}"));
        }
    }
    text
}

/// Gives the schema of a variant the member that tells it apart, as serde writes it: first, with one value.
#[derive(Debug, Clone)]
pub(crate) struct Tag(pub &'static str, pub &'static str);

impl Transform for Tag {
    fn transform(&mut self, schema: &mut Schema) {
        let Tag(member, word) = *self;
        let object = schema.ensure_object();
        let mut properties = serde_json::Map::new();
        properties.insert(member.into(), json!({ "type": "string", "const": word }));
        if let Some(serde_json::Value::Object(rest)) = object.shift_remove("properties") {
            properties.extend(rest);
        }
        object.insert("properties".into(), properties.into());
        let mut required = vec![json!(member)];
        if let Some(serde_json::Value::Array(rest)) = object.shift_remove("required") {
            required.extend(rest);
        }
        object.insert("required".into(), required.into());
    }
}

/// A closed list of words.
macro_rules! words {
    ($(#[doc = $doc:literal])+ pub enum $name:ident { $($(#[doc = $said:literal])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[doc = $said])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word of the list.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word as it stands on the wire.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": crate::word::describe(&[$($doc),+], &[$(($word, &[$($said),*])),+]),
                    "type": "string",
                    "enum": [$($word),+],
                })
            }
        }
    };
}
pub(crate) use words;

/// A list of words that a later minor version may lengthen; readers keep what they do not know.
macro_rules! open_words {
    ($(#[doc = $doc:literal])+ pub enum $name:ident { $($(#[doc = $said:literal])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[doc = $said])* #[serde(rename = $word)] $variant,)+
            /// A word of a later version.
            #[serde(untagged)]
            Other(String),
        }

        impl $name {
            /// The words of this version.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $word,)+
                    $name::Other(word) => word,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": crate::word::describe(&[$($doc),+], &[$(($word, &[$($said),*])),+]),
                    "anyOf": [
                        { "title": concat!("Known", stringify!($name)), "type": "string", "enum": [$($word),+] },
                        { "type": "string" },
                    ],
                })
            }
        }
    };
}
pub(crate) use open_words;

/// A union told apart by one member, which the variants' structs write themselves (`#[serde(tag = …, rename = …)]`).
///
/// Serde's own reading of such unions buffers the members, which a [`crate::Raw`] does not survive;
/// so the text is kept, the member looked up, and the variant read from the text.
macro_rules! union {
    ($(#[doc = $doc:literal])+ pub enum $name:ident by $member:literal {
        $($(#[doc = $said:literal])* $variant:ident($inner:ty) = $word:literal),+ $(,)?
    }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum $name {
            $($(#[doc = $said])* $variant($inner),)+
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                struct Head {
                    #[serde(rename = $member)]
                    word: String,
                }
                let text = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
                let head: Head = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
                match head.word.as_str() {
                    $($word => serde_json::from_str(text.get()).map($name::$variant),)+
                    other => return Err(serde::de::Error::unknown_variant(other, &[$($word),+])),
                }
                .map_err(serde::de::Error::custom)
            }
        }

        $(impl From<$inner> for $name {
            fn from(inner: $inner) -> Self {
                $name::$variant(inner)
            }
        })+

        crate::word::union_schema!($name, [$($doc),+], $member, [$($inner),+]);
    };
}
pub(crate) use union;

/// The schema of a union: references to the variants and the member that tells them apart.
macro_rules! union_schema {
    ($name:ident, [$($doc:literal),+], $member:literal, [$($inner:ty),+]) => {
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": crate::word::paragraph(&[$($doc),+]),
                    "oneOf": [$(generator.subschema_for::<$inner>()),+],
                    "discriminator": { "propertyName": $member },
                })
            }
        }
    };
}
pub(crate) use union_schema;

/// A `Debug` that shows the name only, for params whose texts may hold secrets.
macro_rules! debug_name_only {
    ($name:ident) => {
        /// The name only: the texts may hold secrets.
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use debug_name_only;
