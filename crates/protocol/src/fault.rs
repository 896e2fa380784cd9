//! Faults and issues: what went wrong or is not quite right, as a part of a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::Text;
use crate::word::words;
use crate::{ErrorKind, ServerName, Time};

/// Something that went wrong, as a part of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// What went wrong.
    pub kind: ErrorKind,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The exit code of the server's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the server's process, for instance `SIGSEGV`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The last lines the server wrote to stderr; not shown to read-only peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<0, 8192>>")]
    pub stderr_tail: Option<String>,
    /// The HTTP status the server answered with (RFC 9110 §15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
}

impl Fault {
    /// A fault that says its kind and message only.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            at: None,
            exit_code: None,
            signal: None,
            stderr_tail: None,
            http_status: None,
        }
    }
}

impl From<&crate::Error> for Fault {
    fn from(error: &crate::Error) -> Self {
        Self {
            kind: error.kind.clone(),
            message: error.message.clone(),
            hint: error.data.hint.clone(),
            at: None,
            exit_code: error.data.exit_code,
            signal: error.data.signal.clone(),
            stderr_tail: error.data.stderr_tail.clone(),
            http_status: error.data.http_status,
        }
    }
}

/// Something worth knowing that did not stop the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    /// What it is.
    pub kind: IssueKind,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The server it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// The list it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The name or URI of the item it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

impl Issue {
    /// An issue that says its kind and message only.
    pub fn new(kind: impl Into<IssueKind>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            hint: None,
            server: None,
            category: None,
            item: None,
        }
    }
}

/// What an issue is: a word of its own, or the kind of an error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueKind {
    /// An item of a list was left out, since it breaks the protocol.
    ItemSkipped,
    /// A schema was changed for the model's service.
    SchemaRewritten,
    /// A setting of another program has no counterpart here.
    NotImported,
    /// A setting of ours has no counterpart in another program.
    NotExported,
    /// A question was declined without being shown.
    DeclinedUnseen,
    /// Worth knowing, nothing more.
    Note,
    /// What would be an error if it were the whole answer.
    #[serde(untagged)]
    Error(ErrorKind),
}

impl IssueKind {
    /// The words that are not kinds of errors.
    pub const WORDS: &'static [&'static str] = &[
        "item_skipped",
        "schema_rewritten",
        "not_imported",
        "not_exported",
        "declined_unseen",
        "note",
    ];

    /// The word as it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            IssueKind::ItemSkipped => "item_skipped",
            IssueKind::SchemaRewritten => "schema_rewritten",
            IssueKind::NotImported => "not_imported",
            IssueKind::NotExported => "not_exported",
            IssueKind::DeclinedUnseen => "declined_unseen",
            IssueKind::Note => "note",
            IssueKind::Error(kind) => kind.as_str(),
        }
    }
}

impl From<ErrorKind> for IssueKind {
    fn from(kind: ErrorKind) -> Self {
        IssueKind::Error(kind)
    }
}

impl JsonSchema for IssueKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IssueKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words: Vec<&str> = IssueKind::WORDS.iter().chain(ErrorKind::WORDS).copied().collect();
        schemars::json_schema!({
            "description": crate::word::describe(
                &["What an issue is: a word of its own, or the kind of an error."],
                &[
                    ("item_skipped", &["An item of a list was left out, since it breaks the protocol."]),
                    ("schema_rewritten", &["A schema was changed for the model's service."]),
                    ("not_imported", &["A setting of another program has no counterpart here."]),
                    ("not_exported", &["A setting of ours has no counterpart in another program."]),
                    ("declined_unseen", &["A question was declined without being shown."]),
                    ("note", &["Worth knowing, nothing more."]),
                ],
            ),
            "anyOf": [{ "title": "KnownIssueKind", "type": "string", "enum": words }, { "type": "string" }],
        })
    }
}

words! {
    /// What a catalog holds.
    pub enum Category {
        Tools = "tools",
        Resources = "resources",
        Templates = "templates",
        Prompts = "prompts",
    }
}
