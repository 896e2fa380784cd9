//! Calls that the server turns into tasks, in the form of 2025-11-25 and in that of the extension of 2026-07-28: both are looked after
//! until they have a result.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::Inner;
use super::call::{Call, CallOptions};
use super::core::{Answer, Header};
use super::envelope::{RpcError, quoted};
use super::failure::Failure;
use super::members;
use crate::error::CallError;
use crate::limits::{POLL_DEFAULT, POLL_MAX, POLL_MIN};
use crate::target::Era;
use crate::transport::TransportError;

const INVALID_PARAMS: i64 = -32602;

impl Inner {
    /// 2025-11-25: look at the task until it is over or asks, then wait for its result, which brings the questions too.
    pub(super) async fn drive_legacy_task(
        &self,
        id: u64,
        created: &RawValue,
        call: &Arc<Call>,
    ) -> Result<Box<RawValue>, CallError> {
        let task = members::member(created.get(), "task").unwrap_or("{}");
        let task_id = id_of(task)?;
        let params = format!(r#"{{"taskId":{}}}"#, quoted(&task_id));
        call.set_task(&task_id);
        let _token = self.core.keep_as_task(id, call);
        let ending = Ending {
            inner: self,
            era: Era::Legacy,
            params: &params,
            headers: Vec::new(),
            needed: true,
        };
        let mut status = Status::of(task);
        let mut pause = poll_interval(task, "pollInterval");
        loop {
            if status == Status::Working {
                tokio::time::sleep(pause).await;
                let state = self.legacy_leg("tasks/get", &params, call).await.1?;
                call.clock.touch();
                status = Status::of(state.get());
                pause = poll_interval(state.get(), "pollInterval");
                continue;
            }
            let answer = tokio::select! {
                biased;
                (_, answer) = self.legacy_leg("tasks/result", &params, call) => answer,
                never = self.watch_task(&params, pause, call) => match never {},
            };
            if matches!(answer, Err(Failure::Transport(TransportError::StreamEnded))) {
                // Somebody in between cut the long wait: look again.
                status = Status::Working;
                continue;
            }
            ending.not_needed();
            return answer.map_err(CallError::from);
        }
    }

    /// While the result is awaited, the task's state is the sign of life.
    async fn watch_task(&self, params: &str, pause: Duration, call: &Arc<Call>) -> Infallible {
        loop {
            tokio::time::sleep(pause).await;
            if self.legacy_leg("tasks/get", params, call).await.1.is_ok() {
                call.clock.touch();
            }
        }
    }

    /// The extension of 2026-07-28: one method tells everything, questions are answered with another.
    pub(super) async fn drive_modern_task(
        &self,
        created: &RawValue,
        call: &Arc<Call>,
    ) -> Result<Box<RawValue>, CallError> {
        let task_id = id_of(created.get())?;
        let params = members::raw(&format!(r#"{{"taskId":{}}}"#, quoted(&task_id)));
        let own = self.modern.own_params(params.get());
        let headers = self.modern.headers("tasks/cancel", &params);
        let ending = Ending {
            inner: self,
            era: Era::Modern,
            params: &own,
            headers,
            needed: true,
        };
        let mut answered = HashSet::new();
        let mut state: Box<RawValue> = created.to_owned();
        let mut is_new = true;
        loop {
            let text = state.get();
            match Status::of(text) {
                Status::Working => {}
                Status::InputRequired => {
                    let requests = members::member(text, "inputRequests").unwrap_or("{}");
                    self.answer_task(&params, requests, call, &mut answered).await?;
                }
                Status::Completed => {
                    ending.not_needed();
                    let result = members::member(text, "result").filter(|result| *result != "null");
                    return result.map(members::raw).ok_or_else(|| {
                        CallError::Protocol("the task is completed but has no result".into())
                    });
                }
                Status::Failed => {
                    ending.not_needed();
                    let Some(error) =
                        members::member(text, "error").filter(|error| members::is_object(error))
                    else {
                        return Err(CallError::Protocol("the task has failed without an error".into()));
                    };
                    return Err(Failure::Rpc {
                        error: RpcError::parse(&members::raw(error)),
                        status: None,
                    }
                    .into());
                }
                Status::Cancelled => {
                    ending.not_needed();
                    return Err(CallError::Protocol("the server cancelled the task".into()));
                }
            }
            tokio::time::sleep(poll_interval(state.get(), "pollIntervalMs")).await;
            state = match self.ask_task("tasks/get", &params, call).await {
                // Some servers answer before the task is stored.
                Err(failure) if is_new && failure.code() == Some(INVALID_PARAMS) => {
                    tokio::time::sleep(POLL_DEFAULT).await;
                    self.ask_task("tasks/get", &params, call).await?
                }
                answer => answer?,
            };
            is_new = false;
            call.clock.touch();
        }
    }

    async fn answer_task(
        &self,
        params: &RawValue,
        requests: &str,
        call: &Arc<Call>,
        answered: &mut HashSet<String>,
    ) -> Result<(), CallError> {
        let answers = self.core.ask_all(requests, call, answered).await?;
        if answers.keys.is_empty() {
            return Ok(());
        }
        let extra = format!(r#""inputResponses":{{{}}}"#, answers.text);
        let update = members::raw(&super::meta::with_members(params.get(), &extra));
        self.ask_task("tasks/update", &update, call).await?;
        // The server may show a question for a while after it was answered; it is never answered twice.
        answered.extend(answers.keys);
        Ok(())
    }

    async fn ask_task(&self, method: &str, params: &RawValue, call: &Arc<Call>) -> Answer {
        self.modern_leg(method, params, call, &CallOptions::new(Duration::MAX))
            .await
    }
}

/// Cancels the task if the call is given up before the task is over.
struct Ending<'a> {
    inner: &'a Inner,
    era: Era,
    params: &'a str,
    headers: Vec<Header>,
    needed: bool,
}

impl Ending<'_> {
    fn not_needed(mut self) {
        self.needed = false;
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if self.needed {
            let headers = std::mem::take(&mut self.headers);
            self.inner
                .core
                .post("tasks/cancel", &[self.params], self.era, headers);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    fn of(task: &str) -> Status {
        match members::member(task, "status")
            .and_then(members::string)
            .as_deref()
        {
            Some("input_required") => Status::InputRequired,
            Some("completed") => Status::Completed,
            Some("failed") => Status::Failed,
            Some("cancelled") => Status::Cancelled,
            // Later revisions may know more: not over yet.
            _ => Status::Working,
        }
    }
}

fn id_of(task: &str) -> Result<String, CallError> {
    let id = members::member(task, "taskId").and_then(members::string);
    id.map(Into::into)
        .ok_or_else(|| CallError::Protocol("the task has no `taskId`".into()))
}

fn poll_interval(task: &str, name: &str) -> Duration {
    let milliseconds = members::member(task, name).and_then(|value| value.parse::<f64>().ok());
    milliseconds
        .and_then(|number| Duration::try_from_secs_f64(number / 1000.0).ok())
        .map_or(POLL_DEFAULT, |interval| interval.clamp(POLL_MIN, POLL_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        let check = |task, expected| assert_eq!(poll_interval(task, "pollInterval"), expected, "{task}");
        check("{}", POLL_DEFAULT);
        check(r#"{"pollInterval":1500}"#, Duration::from_millis(1500));
        check(r#"{"pollInterval":0}"#, POLL_MIN);
        check(r#"{"pollInterval":-1}"#, POLL_DEFAULT);
        check(r#"{"pollInterval":1e300}"#, POLL_DEFAULT);
        check(r#"{"pollInterval":3600000}"#, POLL_MAX);
        check(r#"{"pollInterval":"x"}"#, POLL_DEFAULT);
    }
}
