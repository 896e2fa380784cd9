//! Change notices of the modern era: they only come on a stream that was asked for, `subscriptions/listen`.
//!
//! One stream at a time carries everything wanted. When it breaks it is opened again, and whatever it covers counts as changed, because
//! nothing is repeated that was said meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Inner;
use super::core::{Answer, Core, Header, Message};
use super::envelope::quoted;
use super::failure::Failure;
use super::members;
use crate::error::CallError;
use crate::host::{Event, ListKind};
use crate::limits::{LISTEN_ACK, LISTEN_BACKOFF, LISTEN_BACKOFF_MAX};
use crate::target::Era;

const METHOD: &str = "subscriptions/listen";

/// The stream that is open now; dropping its guard closes it.
#[derive(Default)]
pub(crate) struct Listening(tokio::sync::Mutex<Option<DropGuard>>);

struct Listener {
    core: Arc<Core>,
    params: String,
    headers: Vec<Header>,
    lists: Vec<ListKind>,
    uris: Vec<String>,
    stop: CancellationToken,
    /// Told once whether the first stream stands.
    first: Option<oneshot::Sender<Result<(), CallError>>>,
}

impl Inner {
    /// Listens for what the server announces, from the start and in the background.
    pub(crate) fn listen_at_start(&self) {
        let Some((listener, stop)) = self.listener(&[], None) else {
            return;
        };
        if let Ok(mut current) = self.listening.0.try_lock() {
            *current = Some(stop);
        }
        tokio::spawn(listener.run());
    }

    /// Listens for these resources too: the new stream stands before the old one goes.
    pub(super) async fn subscribe_modern(&self, uris: &[String]) -> Result<(), CallError> {
        let mut current = self.listening.0.lock().await;
        let (sender, first) = oneshot::channel();
        let Some((listener, stop)) = self.listener(uris, Some(sender)) else {
            *current = None;
            return Ok(());
        };
        tokio::spawn(listener.run());
        first
            .await
            .unwrap_or_else(|_| Err(CallError::Closed(self.core.end())))?;
        *current = Some(stop);
        Ok(())
    }

    /// `None` where there is nothing to listen for.
    fn listener(
        &self,
        uris: &[String],
        first: Option<oneshot::Sender<Result<(), CallError>>>,
    ) -> Option<(Listener, DropGuard)> {
        let announces = |pointer| {
            self.info
                .capabilities
                .pointer(pointer)
                .and_then(serde_json::Value::as_bool)
                == Some(true)
        };
        let mut filter = Vec::new();
        let mut lists = Vec::new();
        for (pointer, member, kind) in [
            ("/tools/listChanged", "toolsListChanged", ListKind::Tools),
            ("/prompts/listChanged", "promptsListChanged", ListKind::Prompts),
            (
                "/resources/listChanged",
                "resourcesListChanged",
                ListKind::Resources,
            ),
        ] {
            if announces(pointer) {
                filter.push(format!(r#""{member}":true"#));
                lists.push(kind);
            }
        }
        if !uris.is_empty() {
            let quoted: Vec<String> = uris.iter().map(|uri| quoted(uri)).collect();
            filter.push(format!(r#""resourceSubscriptions":[{}]"#, quoted.join(",")));
        }
        if filter.is_empty() {
            return None;
        }
        let params = format!(r#"{{"notifications":{{{}}}}}"#, filter.join(","));
        let headers = if self.core.is_http {
            self.modern.headers(METHOD, &members::raw(&params))
        } else {
            Vec::new()
        };
        let stop = CancellationToken::new();
        let listener = Listener {
            core: self.core.clone(),
            params: self.modern.own_params(&params),
            headers,
            lists,
            uris: uris.to_vec(),
            stop: stop.clone(),
            first,
        };
        Some((listener, stop.drop_guard()))
    }
}

/// How one stream ended.
enum End {
    Stopped,
    /// By the server, in good order.
    Finished,
    Refused(Failure),
    Lost(Failure),
}

impl Listener {
    async fn run(mut self) {
        let mut backoff = LISTEN_BACKOFF;
        let mut is_reopened = false;
        loop {
            let opened = Instant::now();
            let end = self.stream(is_reopened).await;
            match end {
                End::Stopped => return,
                End::Finished => {
                    self.settle(Ok(()));
                    self.note("the server ended the subscription; changes are no longer announced".into());
                    return;
                }
                End::Refused(failure) => {
                    let error = CallError::from(failure);
                    self.note(format!("the server announces no changes: {error}"));
                    self.settle(Err(error));
                    return;
                }
                // Whoever waits for the first stream may try again.
                End::Lost(failure) if self.first.is_some() => {
                    self.settle(Err(failure.into()));
                    return;
                }
                End::Lost(_) => {}
            }
            if opened.elapsed() > LISTEN_BACKOFF_MAX {
                backoff = LISTEN_BACKOFF;
            }
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = self.stop.cancelled() => return,
                () = self.core.gone.cancelled() => return,
            }
            backoff = (backoff * 2).min(LISTEN_BACKOFF_MAX);
            is_reopened = true;
        }
    }

    /// One stream from its opening to its end.
    async fn stream(&mut self, is_reopened: bool) -> End {
        let core = self.core.clone();
        let id = core.next_id();
        let (sender, mut acknowledged) = oneshot::channel();
        core.state().subscriptions.insert(id, Some(sender));
        let _forget = Forget { core: &core, id };
        let (mut answer, pending) = core.begin(Message {
            id,
            method: METHOD,
            params: &[&self.params],
            headers: self.headers.clone(),
            era: Era::Modern,
            call: None,
            opens_session: false,
        });
        let stop = self.stop.clone();
        let ended = |answer: Result<Answer, _>| answer.map_or(End::Stopped, End::of);
        let early = tokio::select! {
            biased;
            () = stop.cancelled() => Some(End::Stopped),
            ended_early = &mut answer => Some(ended(ended_early)),
            _ = &mut acknowledged => None,
            () = tokio::time::sleep(LISTEN_ACK) => {
                self.note("the server does not acknowledge the subscription".into());
                None
            }
        };
        if let Some(end) = early {
            return end;
        }
        self.settle(Ok(()));
        if is_reopened {
            self.all_changed();
        }
        let end = tokio::select! {
            biased;
            () = stop.cancelled() => return End::Stopped,
            answer = &mut answer => ended(answer),
        };
        pending.done();
        end
    }

    fn settle(&mut self, outcome: Result<(), CallError>) {
        if let Some(first) = self.first.take() {
            let _ = first.send(outcome);
        }
    }

    fn all_changed(&self) {
        for kind in &self.lists {
            self.core.event(Event::ListChanged(*kind));
        }
        for uri in &self.uris {
            self.core.event(Event::ResourceUpdated(uri.clone()));
        }
    }

    fn note(&self, text: String) {
        self.core.event(Event::Protocol(text));
    }
}

impl End {
    fn of(answer: Answer) -> End {
        match answer {
            Ok(_) => End::Finished,
            Err(failure @ Failure::Rpc { .. }) => End::Refused(failure),
            Err(Failure::Closed(_)) => End::Stopped,
            // Authorization and the like are for the next real request to report.
            Err(failure)
                if failure
                    .status()
                    .is_some_and(|status| (400..500).contains(&status)) =>
            {
                End::Refused(failure)
            }
            Err(failure) => End::Lost(failure),
        }
    }
}

struct Forget<'a> {
    core: &'a Core,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.core.state().subscriptions.remove(&self.id);
    }
}

/// How long subscribing may take in all.
pub(super) const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(30);
