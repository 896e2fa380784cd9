//! The lines in which questions wait: one is open per session of the host, the first answer wins.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use protocol::{
    Answer, AnswerAction, Answered, ClosedReason, Error, ErrorKind, McpQuestionClosed, McpQuestionsResult,
    Notification, OnInvalid, Question, QuestionField, QuestionId, Remember, Sent, ServerName, Session,
};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::answer;
use crate::env;
use crate::limits;
use crate::sink::HostSink;

/// What the person did.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

/// A question as it is put in its line.
pub(crate) struct Asking {
    /// Everything but the id, which the line gives.
    pub question: Question,
    /// The fields an answer is checked against; `None` for a question without a form.
    pub fields: Option<Vec<QuestionField>>,
    /// The calls that wait for it.
    pub tags: Vec<u64>,
    /// Why the question is over, should its asker go away without an answer.
    pub why_gone: Box<dyn Fn() -> ClosedReason + Send>,
    /// Takes how long the answer is to hold, where that is asked.
    pub remembered: Option<Arc<OnceLock<Remember>>>,
}

/// Why a question was not even put in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    TooManyWaiting,
    TooOften,
}

/// All lines of one connection to a host.
pub(crate) struct Questions {
    sink: Arc<dyn HostSink>,
    prefix: String,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    by_session: HashMap<Option<Session>, VecDeque<Waiting>>,
    /// Questions of each server within the last minute.
    recent: HashMap<ServerName, VecDeque<Instant>>,
    /// The last questions that are over, for the error a late answer gets.
    closed: VecDeque<(QuestionId, ClosedReason)>,
    count: u64,
}

struct Waiting {
    id: QuestionId,
    question: Question,
    fields: Option<Vec<QuestionField>>,
    tags: Vec<u64>,
    why_gone: Box<dyn Fn() -> ClosedReason + Send>,
    remembered: Option<Arc<OnceLock<Remember>>>,
    shown: bool,
    reply: oneshot::Sender<Outcome>,
}

impl Questions {
    pub fn new(sink: Arc<dyn HostSink>) -> Questions {
        // Ids are never used twice, not even by a later process: they hold the moment and the process.
        let prefix = format!("q{:x}-{:x}", env::now(), std::process::id());
        Questions {
            sink,
            prefix,
            lines: Mutex::default(),
        }
    }

    /// An id that is never used twice.
    pub fn fresh_id(&self) -> String {
        let mut lines = self.lines();
        lines.count += 1;
        format!("{}-{}", self.prefix, lines.count)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a question in the line of its session and waits for the answer. Dropping the future withdraws it.
    pub async fn ask(&self, asking: Asking) -> Result<Outcome, Refused> {
        let (reply, answer) = oneshot::channel();
        let id = self.enqueue(asking, reply)?;
        let withdraw = Withdraw { questions: self, id };
        // The sender is dropped only together with the whole line.
        let outcome = answer.await.unwrap_or(Outcome::Cancel);
        std::mem::forget(withdraw);
        Ok(outcome)
    }

    fn enqueue(&self, mut asking: Asking, reply: oneshot::Sender<Outcome>) -> Result<QuestionId, Refused> {
        let asked = asked(&asking.question);
        let (session, server) = (asked.0.cloned(), asked.1.clone());
        // Approvals are ours: a server cannot make them come.
        let is_of_server = !matches!(asking.question, Question::Approval(_));
        let mut lines = self.lines();
        let recent = lines.recent.entry(server).or_default();
        let now = Instant::now();
        while recent
            .front()
            .is_some_and(|at| now.duration_since(*at) > Duration::from_secs(60))
        {
            recent.pop_front();
        }
        if is_of_server {
            if recent.len() >= limits::QUESTIONS_PER_MINUTE {
                return Err(Refused::TooOften);
            }
            recent.push_back(now);
        }
        let in_all: usize = lines.by_session.values().map(VecDeque::len).sum();
        let waiting = lines.by_session.get(&session).map_or(0, VecDeque::len);
        if in_all >= limits::QUESTIONS_IN_ALL || waiting > limits::QUESTIONS_PER_SESSION {
            return Err(Refused::TooManyWaiting);
        }
        lines.count += 1;
        let id = QuestionId::from(format!("{}-{}", self.prefix, lines.count));
        set_id(&mut asking.question, id.clone());
        let Asking {
            question,
            fields,
            tags,
            why_gone,
            remembered,
        } = asking;
        let line = lines.by_session.entry(session).or_default();
        line.push_back(Waiting {
            id: id.clone(),
            question,
            fields,
            tags,
            why_gone,
            remembered,
            shown: false,
            reply,
        });
        self.show_first(line);
        Ok(id)
    }

    /// Shows the question at the head of a line, if it is not shown yet.
    fn show_first(&self, line: &mut VecDeque<Waiting>) {
        if let Some(first) = line.front_mut()
            && !first.shown
        {
            first.shown = true;
            self.sink.notify(Notification::Question(first.question.clone()));
        }
    }

    /// `mcp.answer`.
    pub fn answer(&self, answer: &Answer) -> Result<Answered, Error> {
        let mut lines = self.lines();
        let Some((session, position)) = lines.find(&answer.question) else {
            let reason = lines
                .closed
                .iter()
                .find(|(id, _)| *id == answer.question)
                .map(|(_, reason)| reason.as_str().to_owned());
            let error = Error::new(ErrorKind::QuestionClosed, "this question is not open")
                .hint("`mcp.questions` lists the open ones")
                .reason(reason.unwrap_or_else(|| "unknown".to_owned()));
            return Err(error);
        };
        let waiting = &lines.by_session[&session][position];
        let nothing = |problems| {
            Ok(Answered {
                sent: Sent::Nothing,
                problems,
            })
        };
        let (outcome, sent, problems) = match answer.action {
            AnswerAction::Decline => (Outcome::Decline, Sent::Decline, Vec::new()),
            AnswerAction::Cancel => (Outcome::Cancel, Sent::Cancel, Vec::new()),
            AnswerAction::Accept => {
                let given = answer.content.clone().unwrap_or_default();
                match answer::content(waiting.fields.as_deref().unwrap_or_default(), &given) {
                    Ok(content) => (Outcome::Accept(content), Sent::Accept, Vec::new()),
                    Err(problems) if answer.on_invalid == Some(OnInvalid::Keep) => return nothing(problems),
                    Err(problems) => (Outcome::Cancel, Sent::Cancel, problems),
                }
            }
        };
        if answer.check == Some(true) {
            return nothing(problems);
        }
        if let (Some(slot), Some(remember)) = (&waiting.remembered, answer.remember) {
            // The first answer closes the question, so this is the only one.
            let _ = slot.set(remember);
        }
        self.close(&mut lines, &session, position, ClosedReason::Answered, outcome);
        Ok(Answered { sent, problems })
    }

    /// Takes a question out of its line, tells the host, and lets the next one forward.
    fn close(
        &self,
        lines: &mut Lines,
        session: &Option<Session>,
        position: usize,
        reason: ClosedReason,
        outcome: Outcome,
    ) {
        let Some(line) = lines.by_session.get_mut(session) else {
            return;
        };
        let Some(waiting) = line.remove(position) else {
            return;
        };
        // The asker may be gone already; then nobody needs the outcome.
        let _ = waiting.reply.send(outcome);
        if waiting.shown {
            let call = asked(&waiting.question).2.cloned();
            self.sink.notify(Notification::QuestionClosed(McpQuestionClosed {
                question: waiting.id.clone(),
                call,
                reason: reason.clone(),
            }));
        }
        self.show_first(line);
        if line.is_empty() {
            lines.by_session.remove(session);
        }
        lines.closed.push_back((waiting.id, reason));
        if lines.closed.len() > limits::QUESTIONS_IN_ALL {
            lines.closed.pop_front();
        }
    }

    /// Ends every question that waits for this call. Called before the call's answer is sent.
    pub fn call_over(&self, tag: u64, reason: &ClosedReason) {
        self.close_where(|waiting| waiting.tags == [tag], || reason.clone());
        // A question that may belong to several calls goes on for the others.
        for line in self.lines().by_session.values_mut() {
            for waiting in line.iter_mut() {
                waiting.tags.retain(|other| *other != tag);
            }
        }
    }

    /// Ends every question of a session, or all of them.
    pub fn end(&self, session: Option<&Session>, reason: &ClosedReason) {
        self.close_where(
            |waiting| session.is_none() || asked(&waiting.question).0 == session,
            || reason.clone(),
        );
    }

    fn close_where(&self, matches: impl Fn(&Waiting) -> bool, reason: impl Fn() -> ClosedReason) {
        let mut lines = self.lines();
        let sessions: Vec<Option<Session>> = lines.by_session.keys().cloned().collect();
        for session in sessions {
            // From the back, so that nothing is shown only to be closed at once.
            let mut position = lines.by_session[&session].len();
            while position > 0 {
                position -= 1;
                if lines
                    .by_session
                    .get(&session)
                    .and_then(|line| line.get(position))
                    .is_some_and(&matches)
                {
                    self.close(&mut lines, &session, position, reason(), Outcome::Cancel);
                }
            }
        }
    }

    /// `mcp.questions`.
    pub fn list(&self) -> McpQuestionsResult {
        let lines = self.lines();
        let mut open: Vec<&Waiting> = lines
            .by_session
            .values()
            .flatten()
            .filter(|waiting| waiting.shown)
            .collect();
        open.sort_by_key(|waiting| asked(&waiting.question).3);
        let waiting = lines
            .by_session
            .values()
            .flatten()
            .filter(|waiting| !waiting.shown)
            .count();
        McpQuestionsResult {
            open: open.into_iter().map(|waiting| waiting.question.clone()).collect(),
            waiting: waiting as u32,
        }
    }

    /// How many questions wait for an answer.
    pub fn count(&self) -> u32 {
        self.lines()
            .by_session
            .values()
            .map(|line| line.len() as u32)
            .sum()
    }

    /// Whether this URL question was accepted, looked up by id before it is closed.
    pub fn url_of(&self, id: &QuestionId) -> Option<String> {
        let lines = self.lines();
        let (session, position) = lines.find(id)?;
        match &lines.by_session[&session][position].question {
            Question::Url(question) => Some(question.url.to_string()),
            _ => None,
        }
    }
}

impl Lines {
    fn find(&self, id: &QuestionId) -> Option<(Option<Session>, usize)> {
        self.by_session.iter().find_map(|(session, line)| {
            let position = line.iter().position(|waiting| waiting.id == *id)?;
            Some((session.clone(), position))
        })
    }
}

/// Closes a question whose asker went away.
struct Withdraw<'a> {
    questions: &'a Questions,
    id: QuestionId,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let mut lines = self.questions.lines();
        if let Some((session, position)) = lines.find(&self.id) {
            let reason = (lines.by_session[&session][position].why_gone)();
            self.questions
                .close(&mut lines, &session, position, reason, Outcome::Cancel);
        }
    }
}

/// Session, server, call and time of a question.
fn asked(question: &Question) -> (Option<&Session>, &ServerName, Option<&protocol::CallId>, u64) {
    match question {
        Question::Form(question) => (
            question.session.as_ref(),
            &question.server,
            question.call.as_ref(),
            question.asked_at,
        ),
        Question::Url(question) => (
            question.session.as_ref(),
            &question.server,
            question.call.as_ref(),
            question.asked_at,
        ),
        Question::Approval(question) => (
            question.session.as_ref(),
            &question.server,
            question.call.as_ref(),
            question.asked_at,
        ),
    }
}

fn set_id(question: &mut Question, id: QuestionId) {
    match question {
        Question::Form(question) => question.id = id,
        Question::Url(question) => question.id = id,
        Question::Approval(question) => question.id = id,
    }
}
