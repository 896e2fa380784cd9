//! The era with a handshake, 2024-11-05 to 2025-11-25: `initialize`, sessions, and calls that ask for a visit in the browser.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use super::Inner;
use super::call::{Call, CallOptions};
use super::core::{Answer, Core, Message};
use super::envelope::quoted;
use super::failure::Failure;
use super::questions::Visits;
use super::{members, meta, versions};
use crate::error::CallError;
use crate::host::Event;
use crate::limits::RENEW_TIMEOUT;
use crate::target::{Elicitation, Era, Options};
use crate::transport::TransportError;

/// A tool of 2025-11-25 that wants a page to be visited first.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// What we say about ourselves in `initialize`.
pub(crate) struct Client {
    implementation: String,
    capabilities: String,
}

/// What the server said about itself.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub version: &'static str,
    pub result: Box<RawValue>,
}

#[derive(Debug)]
pub(crate) enum HandshakeError {
    Failed(Failure),
    /// No common version.
    Version {
        theirs: Vec<String>,
    },
    /// The server speaks this version of the era without a handshake.
    Modern(&'static str),
    Invalid(&'static str),
}

/// What a session over HTTP has to be given again when it is renewed.
#[derive(Default)]
pub(crate) struct Sessions {
    generation: AtomicU64,
    renewing: tokio::sync::Mutex<()>,
    subscribed: Mutex<BTreeSet<String>>,
}

impl Client {
    pub(crate) fn new(options: &Options) -> Client {
        let mut capabilities = Vec::new();
        if options.capabilities.roots {
            capabilities.push(r#""roots":{"listChanged":true}"#);
        }
        if options.capabilities.sampling {
            capabilities.push(r#""sampling":{}"#);
        }
        match options.capabilities.elicitation {
            Elicitation::None => {}
            // Before 2025-11-25 there was but one mode, and no member for it.
            Elicitation::Form => capabilities.push(r#""elicitation":{}"#),
            Elicitation::FormAndUrl => capabilities.push(r#""elicitation":{"form":{},"url":{}}"#),
        }
        Client {
            implementation: implementation(options),
            capabilities: format!("{{{}}}", capabilities.join(",")),
        }
    }

    /// Opens a session, at `version` or at one the server names instead.
    pub(crate) async fn handshake(
        &self,
        core: &Core,
        version: &'static str,
        exact: bool,
    ) -> Result<Handshake, HandshakeError> {
        let mut tried = version;
        let mut answer = self.initialize(core, tried).await;
        if let Err(failure) = &answer {
            let theirs = versions::named_in(failure);
            if let Some(version) = versions::best(Era::Modern, &theirs).filter(|_| !exact) {
                return Err(HandshakeError::Modern(version));
            }
            let other: Vec<String> = theirs.iter().filter(|named| *named != tried).cloned().collect();
            match versions::best(Era::Legacy, &other) {
                Some(version) if !exact => {
                    tried = version;
                    answer = self.initialize(core, tried).await;
                }
                _ if other.is_empty() => {}
                _ => return Err(HandshakeError::Version { theirs }),
            }
        }
        let result = answer.map_err(HandshakeError::Failed)?;
        let Some(version) = members::member(result.get(), "protocolVersion").and_then(members::string) else {
            return Err(HandshakeError::Invalid(
                "the answer to `initialize` names no `protocolVersion`",
            ));
        };
        match versions::known(&version) {
            Some((Era::Legacy, known)) if !exact || known == tried => Ok(Handshake {
                version: known,
                result,
            }),
            Some((Era::Modern, known)) if !exact => Err(HandshakeError::Modern(known)),
            _ => Err(HandshakeError::Version {
                theirs: vec![version.into_owned()],
            }),
        }
    }

    /// What follows a handshake, so that the server may talk: the notice, the standalone stream, the log level.
    pub(crate) async fn open_session(&self, core: &Core, handshake: &Handshake) -> Result<(), Failure> {
        let Some(link) = core.link() else {
            return Ok(());
        };
        link.negotiated(handshake.version);
        match link
            .deliver(Core::notification("notifications/initialized", &[]))
            .await
        {
            Ok(()) => {}
            Err(
                error @ (TransportError::Status {
                    status: 401 | 403, ..
                }
                | TransportError::Closed),
            ) => {
                return Err(Failure::from_transport(error));
            }
            Err(error) => core.event(Event::Protocol(format!(
                "the server did not take `notifications/initialized`: {error}"
            ))),
        }
        link.listen().await;
        let capabilities = members::member(handshake.result.get(), "capabilities").unwrap_or("{}");
        if members::member(capabilities, "logging").is_some_and(members::is_object) {
            core.post(
                "logging/setLevel",
                &[r#"{"level":"info"}"#],
                Era::Legacy,
                Vec::new(),
            );
        }
        Ok(())
    }

    async fn initialize(&self, core: &Core, version: &str) -> Answer {
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{},"clientInfo":{}}}"#,
            self.capabilities, self.implementation
        );
        core.exchange(Message {
            id: core.next_id(),
            method: "initialize",
            params: &[&params],
            headers: Vec::new(),
            era: Era::Legacy,
            call: None,
            opens_session: true,
        })
        .await
    }
}

/// Our `Implementation` object.
pub(crate) fn implementation(options: &Options) -> String {
    format!(
        r#"{{"name":{},"version":{}}}"#,
        quoted(&options.client_name),
        quoted(&options.client_version)
    )
}

impl Inner {
    pub(super) async fn drive_legacy(
        &self,
        method: &str,
        params: &RawValue,
        call: &Arc<Call>,
        options: &CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let is_task = method == "tools/call" && options.as_task && self.takes_tasks();
        let task_params;
        let mut params = params.get();
        if is_task {
            let ttl = options.hard_limit.as_millis();
            task_params = meta::with_members(params, &format!(r#""task":{{"ttl":{ttl}}}"#));
            params = &task_params;
        }
        let mut visits = Visits::default();
        loop {
            let (id, answer) = self.legacy_leg(method, params, call).await;
            match answer {
                Ok(result) if is_task && members::first_member(result.get(), "task").is_some() => {
                    return self.drive_legacy_task(id, &result, call).await;
                }
                Ok(result) => return Ok(result),
                Err(Failure::Rpc { error, status }) => {
                    let is_visit = error.code == URL_ELICITATION_REQUIRED && call.tag.is_some();
                    if !is_visit || !self.visit(call, &error, &mut visits).await {
                        return Err(Failure::Rpc { error, status }.into());
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// One request; on HTTP it is sent once more if the server has forgotten the session meanwhile. The id is that of the last one.
    pub(super) async fn legacy_leg(&self, method: &str, params: &str, call: &Arc<Call>) -> (u64, Answer) {
        let generation = self.session.generation.load(Ordering::Relaxed);
        let (id, answer) = self.legacy_exchange(method, params, call).await;
        let Err(failure) = &answer else {
            return (id, answer);
        };
        if !self.core.is_http || !is_session_lost(failure) || self.renew(generation).await.is_err() {
            return (id, answer);
        }
        self.legacy_exchange(method, params, call).await
    }

    async fn legacy_exchange(&self, method: &str, params: &str, call: &Arc<Call>) -> (u64, Answer) {
        let id = self.core.next_id();
        let message = |params| Message {
            id,
            method,
            params,
            headers: Vec::new(),
            era: Era::Legacy,
            call: Some(call),
            opens_session: false,
        };
        if !call.wants_progress() {
            return (id, self.core.exchange(message(&[params])).await);
        }
        call.restart_progress();
        let token = format!(r#""progressToken":{id}"#);
        let spliced = meta::with_meta(params, &token);
        (id, self.core.exchange(message(&spliced.parts())).await)
    }

    /// Opens a new session, unless another request has done so since `seen`.
    async fn renew(&self, seen: u64) -> Result<(), Failure> {
        let _renewing = self.session.renewing.lock().await;
        if self.session.generation.load(Ordering::Relaxed) != seen {
            return Ok(());
        }
        let lost = || Failure::Transport(TransportError::SessionGone);
        let renewal = async {
            let version =
                versions::known(&self.info.protocol_version).map_or(versions::NEWEST_LEGACY, |known| known.1);
            let handshake = self
                .client
                .handshake(&self.core, version, false)
                .await
                .map_err(|_| lost())?;
            self.client.open_session(&self.core, &handshake).await
        };
        tokio::time::timeout(RENEW_TIMEOUT, renewal)
            .await
            .unwrap_or_else(|_| Err(lost()))?;
        self.session.generation.fetch_add(1, Ordering::Relaxed);
        self.core.event(Event::Protocol(
            "the server had forgotten the session, a new one was opened".into(),
        ));
        let subscribed = self.session.subscribed().clone();
        for uri in subscribed {
            let params = format!(r#"{{"uri":{}}}"#, quoted(&uri));
            self.core
                .post("resources/subscribe", &[&params], Era::Legacy, Vec::new());
        }
        Ok(())
    }

    /// Makes the set of subscribed resources this one.
    pub(super) async fn subscribe_legacy(
        &self,
        wanted: BTreeSet<String>,
        call: &Arc<Call>,
    ) -> Result<(), CallError> {
        let before = self.session.subscribed().clone();
        for uri in before.difference(&wanted) {
            // What the server cannot take back it may go on sending; nobody listens any more.
            let _ = self.subscription_change("resources/unsubscribe", uri, call).await;
            self.session.subscribed().remove(uri);
        }
        for uri in wanted.difference(&before) {
            self.subscription_change("resources/subscribe", uri, call).await?;
            self.session.subscribed().insert(uri.clone());
        }
        Ok(())
    }

    async fn subscription_change(&self, method: &str, uri: &str, call: &Arc<Call>) -> Answer {
        let params = format!(r#"{{"uri":{}}}"#, quoted(uri));
        self.legacy_leg(method, &params, call).await.1
    }

    fn takes_tasks(&self) -> bool {
        self.info
            .capabilities
            .pointer("/tasks/requests/tools/call")
            .is_some_and(serde_json::Value::is_object)
    }
}

impl Sessions {
    fn subscribed(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_session_lost(failure: &Failure) -> bool {
    match failure {
        Failure::Transport(TransportError::SessionGone) => true,
        // A server that was replaced by another version refuses the header.
        _ => {
            failure.status() == Some(400)
                && failure
                    .text()
                    .is_some_and(|text| text.to_ascii_lowercase().contains("protocol version"))
        }
    }
}
