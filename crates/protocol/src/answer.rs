//! Answers to questions, and the end of a session.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::bounded::{Dict, List};
use crate::word::{open_words, words};
use crate::{Question, QuestionId, Raw, Remember, Session};

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
