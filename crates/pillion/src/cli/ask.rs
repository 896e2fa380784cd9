//! Questions of MCP servers, asked in the terminal.
//!
//! The rules are the manager's: what does not fit comes back with its problem, and that field is asked again.
//! Prompting blocks, so it happens on a thread of its own.

use std::collections::BTreeMap;

use inquire::error::InquireError;
use manager::{Manager, RequestContext};
use protocol::{
    Answer, AnswerAction, AnswerProblem, AnswerValue, FormQuestion, OnInvalid, Question, QuestionId,
};

use super::form;
use super::terminal::{Paint, one_line};

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

/// What was answered before, when something of it did not fit.
#[derive(Debug)]
pub struct Earlier {
    pub content: Content,
    /// The fields to ask for again.
    pub wrong: Vec<String>,
}

impl Earlier {
    pub fn new(content: Content, problems: &[AnswerProblem]) -> Earlier {
        Earlier {
            content,
            wrong: problems.iter().map(|problem| problem.field.clone()).collect(),
        }
    }
}

/// Asks, sends the answer, and asks again for what did not fit.
pub async fn answer(manager: &Manager, request: &RequestContext, question: Question, paint: Paint) -> Ended {
    let mut earlier = None;
    loop {
        let asked = question.clone();
        let reply = tokio::task::spawn_blocking(move || ask(&asked, earlier, paint)).await;
        let reply = reply.unwrap_or(Reply::Cancel);
        // The end of its call ends the question; an answer could let the call come to a result first.
        if reply == Reply::Interrupted {
            return Ended::Interrupted;
        }
        // The question may be over by now; its call says so.
        let Ok(answered) = manager.answer(request, to_answer(question.id(), &reply)).await else {
            return Ended::Answered;
        };
        let Reply::Accept(content) = reply else {
            return Ended::Answered;
        };
        if answered.problems.is_empty() {
            return Ended::Answered;
        }
        for problem in &answered.problems {
            eprintln!("{} {}", paint.yellow("!"), complaint(&question, problem));
        }
        earlier = Some(Earlier::new(content, &answered.problems));
    }
}

/// `Count: …`: the problem beside the label that the person saw.
pub fn complaint(question: &Question, problem: &AnswerProblem) -> String {
    let label = match question {
        Question::Form(form) => form
            .fields
            .iter()
            .find(|field| field.name() == problem.field)
            .map(form::label),
        Question::Url(_) | Question::Approval(_) => None,
    };
    one_line(&format!(
        "{}: {}",
        label.unwrap_or(&problem.field),
        problem.message
    ))
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

/// Asks at the terminal; `earlier` says what to ask for again.
pub fn ask(question: &Question, earlier: Option<Earlier>, paint: Paint) -> Reply {
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
pub fn defaults(question: &FormQuestion) -> Option<Content> {
    let mut content = Content::new();
    for field in &question.fields {
        match form::default(field) {
            Some(value) => {
                content.insert(field.name().to_owned(), value);
            }
            None if field.required() => return None,
            None => {}
        }
    }
    Some(content)
}
