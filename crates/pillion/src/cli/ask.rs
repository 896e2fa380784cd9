//! Questions of MCP servers, asked in the terminal.
//!
//! The rules are the manager's: what does not fit comes back with its problem, and that field is asked again.
//! Prompting blocks, so it happens on a thread of its own.

use std::collections::BTreeMap;

use inquire::error::InquireError;
use manager::{Manager, RequestContext};
use protocol::{
    Answer, AnswerAction, AnswerValue, FormQuestion, OnInvalid, Question, QuestionField, QuestionId,
};

use super::form;
use super::terminal::{Paint, harmless};

pub type Content = BTreeMap<String, AnswerValue>;

/// What the person did.
#[derive(Debug, PartialEq)]
pub enum Reply {
    Accept(Content),
    Decline,
    Cancel,
    /// Ctrl-C: not only the question, all of it is to end.
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Answered,
    Interrupted,
}

/// Asks, sends the answer, and asks again for what did not fit.
pub async fn answer(manager: &Manager, request: &RequestContext, question: Question, paint: Paint) -> Ended {
    let mut earlier = None;
    loop {
        let asked = question.clone();
        let reply = tokio::task::spawn_blocking(move || ask(&asked, earlier, paint)).await;
        let reply = reply.unwrap_or(Reply::Cancel);
        let params = to_answer(question.id(), &reply);
        // The question may be over by now; its call says so.
        let Ok(answered) = manager.answer(request, params).await else {
            return Ended::Answered;
        };
        match reply {
            Reply::Interrupted => return Ended::Interrupted,
            Reply::Accept(mut content) if !answered.problems.is_empty() => {
                for problem in &answered.problems {
                    eprintln!(
                        "{} {}: {}",
                        paint.yellow("!"),
                        problem.field,
                        harmless(&problem.message)
                    );
                    content.remove(&problem.field);
                }
                earlier = Some(content);
            }
            Reply::Accept(_) | Reply::Decline | Reply::Cancel => return Ended::Answered,
        }
    }
}

/// The answer as the protocol wants it; what does not fit keeps the question open.
pub fn to_answer(question: &QuestionId, reply: &Reply) -> Answer {
    let (action, content) = match reply {
        Reply::Accept(content) => (AnswerAction::Accept, Some(content.clone())),
        Reply::Decline => (AnswerAction::Decline, None),
        Reply::Cancel | Reply::Interrupted => (AnswerAction::Cancel, None),
    };
    Answer {
        question: question.clone(),
        action,
        content,
        remember: None,
        check: None,
        on_invalid: Some(OnInvalid::Keep),
    }
}

/// Asks at the terminal; `earlier` holds answers that stand already.
pub fn ask(question: &Question, earlier: Option<Content>, paint: Paint) -> Reply {
    let replied = match question {
        Question::Form(form) => form::form(form, earlier, paint),
        Question::Url(url) => form::url(url, paint),
        // Only asked for a model's calls, and the command line makes none.
        Question::Approval(_) => Ok(Reply::Decline),
    };
    match replied {
        Ok(reply) => reply,
        Err(InquireError::OperationInterrupted) => Reply::Interrupted,
        Err(_) => Reply::Cancel,
    }
}

/// What a form is answered with when nobody is there to ask: its defaults. `None` if one is missing.
pub fn defaults(form: &FormQuestion) -> Option<Content> {
    let mut content = Content::new();
    for field in &form.fields {
        let default = match field {
            QuestionField::Text(field) => field.default.clone().map(AnswerValue::Text),
            QuestionField::Number(field) => field.default.clone().map(AnswerValue::Number),
            QuestionField::Integer(field) => field.default.clone().map(AnswerValue::Number),
            QuestionField::Boolean(field) => field.default.map(AnswerValue::Boolean),
            QuestionField::Choice(field) => field.default.clone().map(AnswerValue::Text),
            QuestionField::Multi(field) => field.default.clone().map(AnswerValue::Texts),
        };
        match default {
            Some(value) => {
                content.insert(field.name().to_owned(), value);
            }
            None if field.required() => return None,
            None => {}
        }
    }
    Some(content)
}
