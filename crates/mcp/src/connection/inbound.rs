//! What a server sends by itself: notifications, and in the legacy era requests.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::call::{Call, Hold, Progress};
use super::core::Core;
use super::envelope;
use super::members;
use super::meta;
use crate::host::{Event, InputKind, InputReply, InputRequest, ListKind, LogLevel};
use crate::limits::MAX_OPEN_QUESTIONS;
use crate::target::{Elicitation, Era};

/// Where messages of a task of 2025-11-25 name it.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

const METHOD_NOT_FOUND: i64 = -32601;
const INTERNAL_ERROR: i64 = -32603;

impl Core {
    /// Whether the host can answer this kind of question at all.
    pub(super) fn can_answer(&self, kind: InputKind) -> bool {
        match kind {
            InputKind::Elicit => self.capabilities.elicitation != Elicitation::None,
            InputKind::Sample => self.capabilities.sampling,
            InputKind::Roots => self.capabilities.roots,
        }
    }

    pub(super) fn request(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        origin: Option<u64>,
    ) {
        if self.era() == Some(Era::Modern) {
            // There is no way to answer it: this era has no responses of the client.
            self.event(Event::Protocol(format!(
                "the server sent the request `{method}`, which its era does not have"
            )));
            return;
        }
        if method == "ping" {
            self.respond(envelope::result(id, &members::raw("{}")));
            return;
        }
        let kind = input_kind(method).filter(|kind| self.can_answer(*kind));
        let Some(kind) = kind else {
            self.respond(envelope::error(id, METHOD_NOT_FOUND, "Method not found"));
            return;
        };
        let task = params.and_then(|params| related_task(params.get()));
        let calls = self.calls_behind(origin, task.as_deref());
        self.ask(id, kind, params, calls, task);
    }

    /// Asks the host, and answers the server when the host has answered.
    fn ask(
        &self,
        id: &RawValue,
        kind: InputKind,
        params: Option<&RawValue>,
        calls: Vec<Arc<Call>>,
        task: Option<String>,
    ) {
        let key = id.get().to_owned();
        let mut state = self.state();
        if state.questions.len() >= MAX_OPEN_QUESTIONS || state.questions.contains_key(&key) {
            drop(state);
            self.respond(envelope::error(id, INTERNAL_ERROR, "Too many open questions"));
            return;
        }
        let Some(core) = self.weak().upgrade() else {
            return;
        };
        let request = InputRequest {
            kind,
            params: params.map_or_else(|| members::raw("{}"), ToOwned::to_owned),
            calls: calls.iter().filter_map(|call| call.tag).collect(),
        };
        let id = id.to_owned();
        // Registered before the task can run, and removed by it: see `answered`.
        let task = tokio::spawn(async move {
            let held = Hold::on(calls.clone());
            let reply = tokio::select! {
                biased;
                reply = core.host.input(request) => reply,
                () = all_finished(&calls), if !calls.is_empty() => withdrawn(kind),
            };
            drop(held);
            if core.state().questions.remove(id.get()).is_some() {
                core.respond(match reply {
                    InputReply::Result(result) => envelope::result(&id, &in_task(result, task.as_deref())),
                    InputReply::Error { code, message } => envelope::error(&id, code, &message),
                });
            }
        });
        state.questions.insert(key, task.abort_handle());
    }

    pub(super) fn notified(&self, method: &str, params: Option<&RawValue>) {
        let params = params.map_or("{}", RawValue::get);
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/message" => self.logged(params),
            "notifications/tools/list_changed" => self.event(Event::ListChanged(ListKind::Tools)),
            "notifications/prompts/list_changed" => self.event(Event::ListChanged(ListKind::Prompts)),
            "notifications/resources/list_changed" => self.event(Event::ListChanged(ListKind::Resources)),
            "notifications/resources/updated" => {
                if let Some(uri) = members::member(params, "uri").and_then(members::string) {
                    self.event(Event::ResourceUpdated(uri.into_owned()));
                }
            }
            "notifications/cancelled" => self.cancelled_by_server(params),
            "notifications/elicitation/complete" => {
                let id = members::member(params, "elicitationId").and_then(members::string);
                if let Some(waiter) = id.and_then(|id| self.state().browsers.get(&*id).cloned()) {
                    waiter.notify_one();
                }
            }
            "notifications/subscriptions/acknowledged" => {
                let subscription = members::member(params, "_meta")
                    .and_then(|meta| members::member(meta, "io.modelcontextprotocol/subscriptionId"))
                    .and_then(|id| envelope::our_id(&members::raw(id)));
                let waiter = subscription.and_then(|id| self.state().subscriptions.get_mut(&id)?.take());
                if let Some(waiter) = waiter {
                    let _ = waiter.send(());
                }
            }
            // Extensions and later revisions have more of them.
            _ => {}
        }
    }

    fn progressed(&self, params: &str) {
        let token =
            members::member(params, "progressToken").and_then(|token| envelope::our_id(&members::raw(token)));
        let Some(call) = token.and_then(|token| self.call_of_token(token)) else {
            return;
        };
        let number = |name| members::member(params, name).and_then(|value| value.parse::<f64>().ok());
        let Some(progress) = number("progress") else {
            return;
        };
        let message = members::member(params, "message").and_then(members::string);
        call.progressed(Progress {
            progress,
            total: number("total"),
            message: message.map(Into::into),
        });
    }

    fn logged(&self, params: &str) {
        let Some(data) = members::member(params, "data") else {
            return;
        };
        let level = members::member(params, "level").and_then(members::string);
        let logger = members::member(params, "logger").and_then(members::string);
        self.event(Event::Log {
            level: level.map_or(LogLevel::Info, |level| LogLevel::from_name(&level)),
            logger: logger.map(Into::into),
            data: members::raw(data),
        });
    }

    /// Legacy: the server takes back a question. Modern: it ends a subscription.
    fn cancelled_by_server(&self, params: &str) {
        let Some(id) = members::member(params, "requestId") else {
            return;
        };
        if self.era() != Some(Era::Modern) {
            let question = self.state().questions.remove(id);
            if let Some(question) = question {
                question.abort();
            }
            return;
        }
        let ours = envelope::our_id(&members::raw(id));
        if let Some(id) = ours.filter(|id| self.state().subscriptions.contains_key(id)) {
            self.answer(id, Ok(members::raw("{}")));
        }
    }
}

pub(super) fn input_kind(method: &str) -> Option<InputKind> {
    match method {
        "elicitation/create" => Some(InputKind::Elicit),
        "sampling/createMessage" => Some(InputKind::Sample),
        "roots/list" => Some(InputKind::Roots),
        _ => None,
    }
}

async fn all_finished(calls: &[Arc<Call>]) {
    for call in calls {
        call.finished().await;
    }
}

/// What the server is told when the calls its question belongs to are over before anybody answered.
fn withdrawn(kind: InputKind) -> InputReply {
    match kind {
        InputKind::Elicit => InputReply::Result(members::raw(r#"{"action":"cancel"}"#)),
        InputKind::Sample | InputKind::Roots => InputReply::Error {
            code: INTERNAL_ERROR,
            message: "The request it belongs to is over".into(),
        },
    }
}

/// The answer to a question of a task names the task as the question did.
fn in_task(result: Box<RawValue>, task: Option<&str>) -> Box<RawValue> {
    let Some(task) = task.filter(|_| members::is_object(result.get())) else {
        return result;
    };
    let related = format!(r#""{RELATED_TASK}":{{"taskId":{}}}"#, envelope::quoted(task));
    members::raw(&meta::with_meta(result.get(), &related).parts().concat())
}

fn related_task(params: &str) -> Option<String> {
    let meta = members::member(params, "_meta")?;
    let task = members::member(meta, RELATED_TASK)?;
    members::string(members::member(task, "taskId")?).map(Into::into)
}
