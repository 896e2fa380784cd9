//! The era without a handshake, from 2026-07-28: every request says all about itself, and questions come in answers.

use std::collections::HashSet;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use serde_json::value::RawValue;

use super::call::{Call, CallOptions};
use super::core::{Answer, Core, Header, Message};
use super::era::UNSUPPORTED_VERSION;
use super::legacy::implementation;
use super::{Inner, ServerInfo, members, meta, versions};
use crate::error::CallError;
use crate::headers;
use crate::limits::{MAX_REQUEST_STATE, MAX_ROUNDS, STATE_ONLY_PAUSE};
use crate::target::{Elicitation, Era, Options};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// What every request carries in its `_meta`: the inside of an object.
pub(crate) struct Modern {
    version: &'static str,
    /// For calls that may ask questions and become tasks, and for everything that is no call.
    full: String,
    /// For calls that must not.
    bare: String,
}

impl Modern {
    pub(crate) fn new(options: &Options, info: &ServerInfo) -> Modern {
        let version =
            versions::known(&info.protocol_version).map_or(versions::NEWEST_MODERN, |known| known.1);
        let mut full = request_meta(options, version, &capabilities(options));
        if info.capabilities.get("logging").is_some() {
            full.push_str(r#","io.modelcontextprotocol/logLevel":"info""#);
        }
        Modern {
            version,
            full,
            bare: request_meta(options, version, "{}"),
        }
    }

    /// For requests that are no call of the layer above, such as a subscription.
    pub(super) fn own_params(&self, params: &str) -> String {
        meta::with_meta(params, &self.full).parts().concat()
    }

    /// The headers of a request over HTTP.
    pub(super) fn headers(&self, method: &str, params: &RawValue) -> Vec<Header> {
        request_headers(self.version, method, params)
    }
}

/// Asks the server what it is.
pub(crate) fn discover(
    core: &Core,
    options: &Options,
    version: &'static str,
    id: u64,
) -> impl Future<Output = Answer> {
    probe(core, options, version, id, "server/discover")
}

/// A modern request before the era is settled.
pub(crate) async fn probe(
    core: &Core,
    options: &Options,
    version: &'static str,
    id: u64,
    method: &str,
) -> Answer {
    let params = format!(
        r#"{{"_meta":{{{}}}}}"#,
        request_meta(options, version, &capabilities(options))
    );
    let headers = if core.is_http {
        request_headers(version, method, RawValue::NULL)
    } else {
        Vec::new()
    };
    core.exchange(Message {
        id,
        method,
        params: &[&params],
        headers,
        era: Era::Modern,
        call: None,
        opens_session: false,
    })
    .await
}

fn request_headers(version: &'static str, method: &str, params: &RawValue) -> Vec<Header> {
    let mut headers = headers::standard(method, params);
    headers.push((PROTOCOL_VERSION, HeaderValue::from_static(version)));
    headers
}

fn request_meta(options: &Options, version: &str, capabilities: &str) -> String {
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{capabilities}"#,
        implementation(options)
    )
}

fn capabilities(options: &Options) -> String {
    let mut capabilities = Vec::new();
    if options.capabilities.roots {
        capabilities.push(r#""roots":{}"#);
    }
    if options.capabilities.sampling {
        capabilities.push(r#""sampling":{}"#);
    }
    match options.capabilities.elicitation {
        Elicitation::None => {}
        Elicitation::Form => capabilities.push(r#""elicitation":{"form":{}}"#),
        Elicitation::FormAndUrl => capabilities.push(r#""elicitation":{"form":{},"url":{}}"#),
    }
    capabilities.push(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#);
    format!("{{{}}}", capabilities.join(","))
}

impl Inner {
    pub(super) async fn drive_modern(
        &self,
        method: &str,
        params: &RawValue,
        call: &Arc<Call>,
        options: &CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let mut answer = self.modern_leg(method, params, call, options).await?;
        for _ in 0..MAX_ROUNDS {
            match Kind::of(&answer) {
                Kind::Complete => return Ok(answer),
                Kind::InputRequired if may_ask(method) => {}
                Kind::Task if method == "tools/call" && call.tag.is_some() => {
                    return self.drive_modern_task(&answer, call).await;
                }
                Kind::InputRequired => return Err(unexpected("input_required", method)),
                Kind::Task => return Err(unexpected("task", method)),
                Kind::Unknown(kind) => return Err(unexpected(&kind, method)),
            }
            let extra = self.next_round(&answer, call).await?;
            let again = members::raw(&meta::with_members(params.get(), &extra));
            answer = self.modern_leg(method, &again, call, options).await?;
        }
        match Kind::of(&answer) {
            Kind::Complete => Ok(answer),
            _ => Err(CallError::Protocol(format!(
                "the server still asks for input after {MAX_ROUNDS} rounds"
            ))),
        }
    }

    /// Answers one `input_required`: the members to add to the original params.
    async fn next_round(&self, answer: &RawValue, call: &Arc<Call>) -> Result<String, CallError> {
        let present = |name| members::member(answer.get(), name).filter(|value| *value != "null");
        let state = present("requestState");
        let requests = present("inputRequests");
        if state.is_some_and(|state| !state.starts_with('"')) {
            return Err(CallError::Protocol("`requestState` is not a string".into()));
        }
        if state.is_some_and(|state| state.len() > MAX_REQUEST_STATE) {
            return Err(CallError::TooLarge {
                limit: MAX_REQUEST_STATE,
            });
        }
        let mut extra = String::new();
        match (requests, state) {
            (None, None) => {
                return Err(CallError::Protocol(
                    "the server asks for input but names no question".into(),
                ));
            }
            (Some(requests), _) => {
                let answers = self.core.ask_all(requests, call, &HashSet::new()).await?;
                extra = format!(r#""inputResponses":{{{}}}"#, answers.text);
            }
            // The server only wants the request once more, to spread its load.
            (None, Some(_)) => tokio::time::sleep(STATE_ONLY_PAUSE).await,
        }
        if let Some(state) = state {
            let comma = if extra.is_empty() { "" } else { "," };
            // Exactly as it came: it belongs to the server.
            extra.push_str(&format!(r#"{comma}"requestState":{state}"#));
        }
        Ok(extra)
    }

    /// One request, and a second one if the server wants another version of the protocol meanwhile.
    pub(super) async fn modern_leg(
        &self,
        method: &str,
        params: &RawValue,
        call: &Arc<Call>,
        options: &CallOptions,
    ) -> Answer {
        let answer = self.modern_exchange(method, params, call, options).await;
        match &answer {
            Err(failure) if failure.code() == Some(UNSUPPORTED_VERSION) => {
                let theirs = versions::named_in(failure);
                if versions::best(Era::Modern, &theirs) != Some(self.modern.version) {
                    return answer;
                }
                self.modern_exchange(method, params, call, options).await
            }
            _ => answer,
        }
    }

    async fn modern_exchange(
        &self,
        method: &str,
        params: &RawValue,
        call: &Arc<Call>,
        options: &CallOptions,
    ) -> Answer {
        let id = self.core.next_id();
        let reduced = may_ask(method) && call.tag.is_none();
        let mut ours = if reduced {
            self.modern.bare.clone()
        } else {
            self.modern.full.clone()
        };
        if call.wants_progress() {
            ours.push_str(&format!(r#","progressToken":{id}"#));
            call.restart_progress();
        }
        let mut headers = Vec::new();
        if self.core.is_http {
            headers = self.modern.headers(method, params);
            if let Some(tool) = options
                .tool
                .as_deref()
                .filter(|tool| method == "tools/call" && !tool.is_empty())
            {
                let arguments = members::member(params.get(), "arguments").map(members::raw);
                headers.extend(tool.of_arguments(arguments.as_deref()));
            }
        }
        let spliced = meta::with_meta(params.get(), &ours);
        let message = Message {
            id,
            method,
            params: &spliced.parts(),
            headers,
            era: Era::Modern,
            call: Some(call),
            opens_session: false,
        };
        self.core.exchange(message).await
    }
}

/// What `resultType` says; servers that leave it out mean a complete result.
enum Kind {
    Complete,
    InputRequired,
    Task,
    Unknown(String),
}

impl Kind {
    fn of(result: &RawValue) -> Kind {
        let Some(kind) = members::first_member(result.get(), "resultType").filter(|kind| *kind != "null")
        else {
            return Kind::Complete;
        };
        match members::string(kind).as_deref() {
            Some("complete") => Kind::Complete,
            Some("input_required") => Kind::InputRequired,
            Some("task") => Kind::Task,
            _ => Kind::Unknown(kind.to_owned()),
        }
    }
}

/// The methods whose result may be a question.
fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

fn unexpected(kind: &str, method: &str) -> CallError {
    CallError::Protocol(format!(
        "a result of type `{kind}` is not possible for `{method}` here"
    ))
}
