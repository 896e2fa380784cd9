//! Questions to the person, and answers.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::bounded::{Dict, List, Text};
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

/// Params of `mcp.questions`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpQuestions {}

/// Answer of `mcp.questions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpQuestionsResult {
    /// The questions that can be answered now.
    #[schemars(with = "List<Question, 256>")]
    pub open: Vec<Question>,
    /// How many wait in line.
    pub waiting: u32,
}

/// Params of `mcp.answer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// The question.
    pub question: QuestionId,
    /// What the person did.
    pub action: AnswerAction,
    /// With `accept`: the values by field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Dict<AnswerValue, 64>>")]
    pub content: Option<BTreeMap<String, AnswerValue>>,
    /// For an approval: how long it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    /// Validate only: nothing is sent, the question stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<bool>,
    /// What happens to an answer that does not fit; default `cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_invalid: Option<OnInvalid>,
}

words! {
    /// What the person did with a question.
    pub enum AnswerAction {
        /// Answered it.
        Accept = "accept",
        /// Said no.
        Decline = "decline",
        /// Dismissed it.
        Cancel = "cancel",
    }
}

words! {
    /// What happens to an answer that does not fit.
    pub enum OnInvalid {
        /// The server gets `cancel`.
        Cancel = "cancel",
        /// The question stays open, nothing is sent.
        Keep = "keep",
    }
}

/// The value of a field, in its own type or as the text that was typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnswerValue {
    Text(String),
    Number(Number),
    Boolean(bool),
    Texts(Vec<String>),
}

impl JsonSchema for AnswerValue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AnswerValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The value of a field, in its own type or as the text that was typed.",
            "anyOf": [
                { "type": "string" },
                { "type": "number" },
                { "type": "boolean" },
                { "type": "array", "items": { "type": "string" } },
            ],
        })
    }
}

/// Answer of `mcp.answer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// What the server got.
    pub sent: Sent,
    /// What did not fit.
    pub problems: Vec<AnswerProblem>,
}

words! {
    /// What the server got.
    pub enum Sent {
        Accept = "accept",
        Decline = "decline",
        Cancel = "cancel",
        /// Nothing; the question stays open.
        Nothing = "nothing",
    }
}

/// A value that did not fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerProblem {
    /// The field.
    pub field: String,
    /// The rule it broke.
    pub rule: AnswerRule,
    /// One sentence for people.
    pub message: String,
}

open_words! {
    /// A rule that a value can break.
    pub enum AnswerRule {
        /// It is missing.
        Required = "required",
        /// It is of another type.
        Type = "type",
        /// It is too short or too long.
        Length = "length",
        /// It is too small or too large.
        Range = "range",
        /// It has another form.
        Format = "format",
        /// It is none of the options.
        Option = "option",
        /// They are too few or too many.
        Items = "items",
        /// There is no such field.
        Unknown = "unknown",
    }
}

/// Params of `mcp.sample.answer`: `result` or `refused`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpSampleAnswer {
    /// The request that is answered.
    pub sample: QuestionId,
    /// The result (MCP, Sampling), passed on verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Raw>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
}

/// Why a sampling request was not carried out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// One sentence, for the server.
    pub message: String,
}

/// Answer of `mcp.sample.answer`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpSampleAnswerResult {}

/// Params of `mcp.session.end`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpSessionEnd {
    /// The session; its grants, questions and spilled results end.
    pub session: Session,
}

/// Answer of `mcp.session.end`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpSessionEndResult {}
