//! Questions that come in answers: the input requests of the modern era, and the pages to visit of 2025-11-25.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Inner;
use super::call::{Call, Hold};
use super::core::Core;
use super::envelope::RpcError;
use super::inbound::input_kind;
use super::members;
use crate::error::CallError;
use crate::host::{InputKind, InputReply, InputRequest};
use crate::limits::{MAX_QUESTIONS_PER_ROUND, MAX_URL_ROUNDS, URL_RETRY, URL_WAIT};
use crate::target::Elicitation;

impl Core {
    /// Asks everything in an `inputRequests` object at once, except what `answered` says was answered before. The answers are the
    /// inside of an `inputResponses` object: the same keys, letter by letter.
    pub(super) async fn ask_all(
        &self,
        requests: &str,
        call: &Arc<Call>,
        answered: &HashSet<String>,
    ) -> Result<Answers, CallError> {
        let tag = call.tag.ok_or_else(|| {
            CallError::Protocol("the server asks for input, which nobody can give in this request".into())
        })?;
        let mut keys = Vec::new();
        let mut questions = Vec::new();
        for entry in members::members(requests) {
            if answered.contains(entry.key) || keys.contains(&entry.key) {
                continue;
            }
            let method = members::member(entry.value, "method")
                .and_then(members::string)
                .unwrap_or_default();
            let kind = input_kind(&method)
                .filter(|kind| self.can_answer(*kind))
                .ok_or_else(|| {
                    CallError::Protocol(format!(
                        "the server asks for `{method}`, which was not offered to it"
                    ))
                })?;
            let params = members::member(entry.value, "params").filter(|params| members::is_object(params));
            keys.push(entry.key);
            questions.push(InputRequest {
                kind,
                params: members::raw(params.unwrap_or("{}")),
                calls: vec![tag],
            });
        }
        if questions.len() > MAX_QUESTIONS_PER_ROUND {
            return Err(CallError::Protocol(format!(
                "the server asks {} questions at once",
                questions.len()
            )));
        }
        let _held = Hold::on(vec![call.clone()]);
        // The first refusal drops the other questions.
        let replies = try_join_all(questions.into_iter().map(|question| async {
            match self.host.input(question).await {
                InputReply::Result(result) => Ok(result),
                InputReply::Error { code, message } => Err(CallError::Refused { code, message }),
            }
        }))
        .await?;
        let mut answers = Answers::default();
        for (key, reply) in keys.into_iter().zip(replies) {
            if !answers.text.is_empty() {
                answers.text.push(',');
            }
            answers.text.push_str(key);
            answers.text.push(':');
            answers.text.push_str(reply.get());
            answers.keys.push(key.to_owned());
        }
        Ok(answers)
    }
}

#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The inside of an object.
    pub text: String,
    /// As they stand in it, with quotes.
    pub keys: Vec<String>,
}

/// Pages that one call has sent the person to.
#[derive(Default)]
pub(super) struct Visits {
    asked: HashSet<String>,
    rounds: usize,
    deadline: Option<Instant>,
}

impl Inner {
    /// Asks the person to visit the pages that a `-32042` names, and waits until the call is worth repeating. `false`: it is not, the
    /// error stands.
    pub(super) async fn visit(&self, call: &Arc<Call>, error: &RpcError, visits: &mut Visits) -> bool {
        let (Some(tag), Some(data), Elicitation::FormAndUrl) =
            (call.tag, &error.data, self.core.capabilities.elicitation)
        else {
            return false;
        };
        let Some(pages) = members::member(data.get(), "elicitations").and_then(pages) else {
            return false;
        };
        let _held = Hold::on(vec![call.clone()]);
        let fresh: Vec<&Page<'_>> = pages
            .iter()
            .filter(|page| !visits.asked.contains(&page.id))
            .collect();
        // Known before the person is asked: the notice may come while the question is still open.
        let waiters = Browsers::wait_for(&self.core, &fresh);
        if !fresh.is_empty() {
            visits.rounds += 1;
            if visits.rounds > MAX_URL_ROUNDS {
                return false;
            }
        }
        for page in fresh {
            let request = InputRequest {
                kind: InputKind::Elicit,
                params: members::raw(page.text),
                calls: vec![tag],
            };
            let InputReply::Result(reply) = self.core.host.input(request).await else {
                return false;
            };
            if members::member(reply.get(), "action") != Some(r#""accept""#) {
                return false;
            }
            visits.asked.insert(page.id.clone());
        }
        let now = Instant::now();
        let deadline = *visits.deadline.get_or_insert(now + URL_WAIT);
        if now >= deadline {
            return false;
        }
        waiters.all_done().await;
        true
    }
}

struct Page<'a> {
    id: String,
    text: &'a str,
}

/// The pages of an error; `None` if any of them is something else.
fn pages(list: &str) -> Option<Vec<Page<'_>>> {
    let mut pages = Vec::new();
    for text in members::elements(list)? {
        let text_of = |name| members::member(text, name).and_then(members::string);
        if text_of("mode").is_some_and(|mode| mode != "url") {
            return None;
        }
        let url = text_of("url")?;
        pages.push(Page {
            id: text_of("elicitationId").unwrap_or(url).into_owned(),
            text,
        });
    }
    (!pages.is_empty() && pages.len() <= MAX_QUESTIONS_PER_ROUND).then_some(pages)
}

/// Waits for `notifications/elicitation/complete`.
struct Browsers<'a> {
    core: &'a Core,
    waiting: Vec<(String, Arc<Notify>)>,
}

impl<'a> Browsers<'a> {
    fn wait_for(core: &'a Core, pages: &[&Page<'_>]) -> Browsers<'a> {
        let waiting: Vec<_> = pages
            .iter()
            .map(|page| (page.id.clone(), Arc::new(Notify::new())))
            .collect();
        core.state().browsers.extend(waiting.iter().cloned());
        Browsers { core, waiting }
    }

    /// The notices may never come, and for pages visited before none is awaited: then the call is tried again after a while.
    async fn all_done(&self) {
        if self.waiting.is_empty() {
            return tokio::time::sleep(URL_RETRY).await;
        }
        let all = join_all(self.waiting.iter().map(|(_, done)| done.notified()));
        let _ = tokio::time::timeout(URL_RETRY, all).await;
    }
}

impl Drop for Browsers<'_> {
    fn drop(&mut self) {
        let mut state = self.core.state();
        for (id, _) in &self.waiting {
            state.browsers.remove(id);
        }
    }
}
