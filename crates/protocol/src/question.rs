//! Questions to the person, and answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::bounded::{List, Text};
use crate::word::{open_words, union, words};
use crate::{CallId, Dir, QuestionId, Raw, ServerName, Session, Time, Uri};

union! {
    /// A question to the person. There is no time limit of Pillion's own.
    pub enum Question by "type" {
        /// A form (MCP, Elicitation); without fields a plain yes or no.
        Form(FormQuestion) = "form",
        /// A page to open (MCP, Elicitation, URL mode).
        Url(UrlQuestion) = "url",
        /// Whether the model may call a tool.
        Approval(ApprovalQuestion) = "approval",
    }
}

impl Question {
    /// The id that an answer names.
    pub fn id(&self) -> &QuestionId {
        match self {
            Question::Form(question) => &question.id,
            Question::Url(question) => &question.id,
            Question::Approval(question) => &question.id,
        }
    }
}

/// A form; names and order of its fields are the server's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "form", rename_all = "camelCase")]
#[schemars(rename = "FormQuestion", transform = crate::word::Tag("type", "form"))]
pub struct FormQuestion {
    /// What the answer names.
    pub id: QuestionId,
    /// The directory.
    pub directory: Dir,
    /// Who asks.
    pub server: ServerName,
    /// The chat or run of the call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The calls it may belong to, where the server leaves that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<CallId>>,
    /// `<label or name> asks for input`.
    pub title: String,
    /// The server's words.
    pub message: String,
    /// When it was asked.
    pub asked_at: Time,
    /// The tool whose call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The fields; none means a plain yes or no.
    #[schemars(with = "List<QuestionField, 64>")]
    pub fields: Vec<QuestionField>,
}

/// A page that the person is asked to open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "url", rename_all = "camelCase")]
#[schemars(rename = "UrlQuestion", transform = crate::word::Tag("type", "url"))]
pub struct UrlQuestion {
    /// What the answer names.
    pub id: QuestionId,
    /// The directory.
    pub directory: Dir,
    /// Who asks.
    pub server: ServerName,
    /// The chat or run of the call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The calls it may belong to, where the server leaves that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<CallId>>,
    /// `<label or name> asks for input`.
    pub title: String,
    /// The server's words.
    pub message: String,
    /// When it was asked.
    pub asked_at: Time,
    /// The address.
    pub url: Uri,
    /// Its host, to be shown on its own.
    pub host: String,
    /// What is odd about the address.
    pub warnings: Vec<String>,
}

/// Whether the model may call a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "approval", rename_all = "camelCase")]
#[schemars(rename = "ApprovalQuestion", transform = crate::word::Tag("type", "approval"))]
pub struct ApprovalQuestion {
    /// What the answer names.
    pub id: QuestionId,
    /// The directory.
    pub directory: Dir,
    /// Whose tool it is.
    pub server: ServerName,
    /// The chat or run of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Not used here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<CallId>>,
    /// What is asked, in short.
    pub title: String,
    /// What is asked.
    pub message: String,
    /// When it was asked.
    pub asked_at: Time,
    /// The tool's name at its server.
    pub tool: String,
    /// Its name for the model.
    pub exposed: String,
    /// The arguments of the call, verbatim.
    pub arguments: Raw,
    /// What the tool says it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The server's hints about it, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Raw>,
    /// How long the answer may hold.
    pub remember: Vec<Remember>,
}

words! {
    /// How long an approval or refusal holds.
    pub enum Remember {
        /// For this call.
        Once = "once",
        /// Until the session or connection ends.
        Session = "session",
        /// In this directory.
        Directory = "directory",
        /// Everywhere.
        Always = "always",
    }
}

union! {
    /// A field of a form.
    pub enum QuestionField by "type" {
        Text(TextField) = "text",
        Number(NumberField) = "number",
        Integer(IntegerField) = "integer",
        Boolean(BooleanField) = "boolean",
        Choice(ChoiceField) = "choice",
        Multi(MultiField) = "multi",
    }
}

impl QuestionField {
    /// The key of its value in an answer.
    pub fn name(&self) -> &str {
        match self {
            QuestionField::Text(field) => &field.name,
            QuestionField::Number(field) => &field.name,
            QuestionField::Integer(field) => &field.name,
            QuestionField::Boolean(field) => &field.name,
            QuestionField::Choice(field) => &field.name,
            QuestionField::Multi(field) => &field.name,
        }
    }

    /// Whether an answer must have it.
    pub fn required(&self) -> bool {
        match self {
            QuestionField::Text(field) => field.required,
            QuestionField::Number(field) => field.required,
            QuestionField::Integer(field) => field.required,
            QuestionField::Boolean(field) => field.required,
            QuestionField::Choice(field) => field.required,
            QuestionField::Multi(field) => field.required,
        }
    }
}

/// A field for text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "text", rename_all = "camelCase")]
#[schemars(rename = "TextField", transform = crate::word::Tag("type", "text"))]
pub struct TextField {
    /// The key of its value in the answer.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// What to ask for.
    pub label: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be left out.
    pub required: bool,
    /// What to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// At least so many characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// At most so many characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// What the text must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<TextFormat>,
    /// Do not show what is typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<bool>,
}

open_words! {
    /// What a text must be (JSON Schema Validation §7.3).
    pub enum TextFormat {
        Email = "email",
        Uri = "uri",
        Date = "date",
        DateTime = "date-time",
    }
}

/// A field for a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "number", rename_all = "camelCase")]
#[schemars(rename = "NumberField", transform = crate::word::Tag("type", "number"))]
pub struct NumberField {
    /// The key of its value in the answer.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// What to ask for.
    pub label: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be left out.
    pub required: bool,
    /// What to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Number>,
    /// At least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// At most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
}

/// A field for a whole number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "integer", rename_all = "camelCase")]
#[schemars(rename = "IntegerField", transform = crate::word::Tag("type", "integer"))]
pub struct IntegerField {
    /// The key of its value in the answer.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// What to ask for.
    pub label: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be left out.
    pub required: bool,
    /// What to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Number>,
    /// At least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// At most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
}

/// A field for yes or no.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "boolean", rename_all = "camelCase")]
#[schemars(rename = "BooleanField", transform = crate::word::Tag("type", "boolean"))]
pub struct BooleanField {
    /// The key of its value in the answer.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// What to ask for.
    pub label: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be left out.
    pub required: bool,
    /// What to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// A field for one of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "choice", rename_all = "camelCase")]
#[schemars(rename = "ChoiceField", transform = crate::word::Tag("type", "choice"))]
pub struct ChoiceField {
    /// The key of its value in the answer.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// What to ask for.
    pub label: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be left out.
    pub required: bool,
    /// The value to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What to choose from.
    #[schemars(with = "List<Choice, 1000>")]
    pub options: Vec<Choice>,
    /// Above nine options: ask for text; a typed value or label is accepted.
    pub typed: bool,
}

/// A field for any of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "multi", rename_all = "camelCase")]
#[schemars(rename = "MultiField", transform = crate::word::Tag("type", "multi"))]
pub struct MultiField {
    /// The key of its value in the answer.
    #[schemars(with = "Text<1, 256>")]
    pub name: String,
    /// What to ask for.
    pub label: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be left out.
    pub required: bool,
    /// The values to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
    /// What to choose from.
    #[schemars(with = "List<Choice, 1000>")]
    pub options: Vec<Choice>,
    /// Above nine options: ask for text; typed values or labels are accepted, separated by commas.
    pub typed: bool,
    /// At least so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
}

/// One of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    /// What is sent to the server.
    pub value: String,
    /// What people are shown.
    pub label: String,
}
