//! The host as the manager sees it: notifications on their way out, and the one request we send.
//!
//! A table of our own, not tower-lsp's `Client`: ids are integers from 1,000,001 up, since Vim takes any message with
//! an id of its own pending requests as their answer, and no slot outlives its request.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use manager::HostSink;
use protocol::{McpChanged, Notification, NotificationName};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, oneshot};

use super::envelope::Id;
use super::frame::Frame;
use super::limits;
use super::outbox::{Outbox, Weight};

const FIRST_ID: u64 = 1_000_001;

#[derive(Clone, Debug)]
pub struct Host(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    outbox: Outbox,
    /// For peers that subscribed.
    news: broadcast::Sender<McpChanged>,
    wishes: OnceLock<Wishes>,
    asked: Mutex<Asked>,
}

/// What the host said of itself in `initialize`.
#[derive(Debug, Default)]
pub struct Wishes {
    /// Notifications it does not want.
    pub opt_out: Vec<NotificationName>,
    /// It answers `window/showDocument`.
    pub opens_urls: bool,
}

#[derive(Debug, Default)]
struct Asked {
    count: u64,
    waiting: HashMap<u64, oneshot::Sender<bool>>,
}

impl Host {
    pub fn new(outbox: Outbox) -> Host {
        Host(Arc::new(Shared {
            outbox,
            news: broadcast::Sender::new(limits::PEER_MESSAGES),
            wishes: OnceLock::new(),
            asked: Mutex::default(),
        }))
    }

    /// What peers may hear.
    pub fn news(&self) -> broadcast::Sender<McpChanged> {
        self.0.news.clone()
    }

    /// Once, while `initialize` is answered.
    pub fn wishes(&self, wishes: Wishes) {
        if self.0.wishes.set(wishes).is_err() {
            tracing::warn!("`initialize` was carried out twice");
        }
    }

    /// The host answered a request; not ours, or no longer waited for: ignored.
    pub fn answered(&self, id: &Id, result: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Shown {
            success: bool,
        }
        let waiting = id
            .text()
            .parse()
            .ok()
            .and_then(|id: u64| self.asked().waiting.remove(&id));
        let Some(waiting) = waiting else { return };
        let shown = result.and_then(|result| serde_json::from_str::<Shown>(result.get()).ok());
        // The receiver may just have given up.
        let _ = waiting.send(shown.is_some_and(|shown| shown.success));
    }

    /// The connection ended: no answer will come.
    pub fn end(&self) {
        self.asked().waiting.clear();
    }

    async fn ask_to_show(self, uri: String) -> bool {
        let opens_urls = self.0.wishes.get().is_some_and(|wishes| wishes.opens_urls);
        if !opens_urls || self.0.outbox.is_holding() {
            return false;
        }
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut asked = self.asked();
            let id = FIRST_ID + asked.count;
            asked.count += 1;
            asked.waiting.insert(id, sender);
            id
        };
        let _leave = Leave { host: &self, id };
        let params = json!({"uri": uri, "external": true, "takeFocus": true});
        self.0
            .outbox
            .news(Frame::request(id, "window/showDocument", &params), Weight::Needed);
        matches!(
            tokio::time::timeout(limits::SHOW_DOCUMENT, receiver).await,
            Ok(Ok(true))
        )
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        // Nothing panics while it holds the lock.
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostSink for Host {
    fn notify(&self, notification: Notification) {
        if let Notification::Changed(changed) = &notification
            && self.0.news.receiver_count() > 0
        {
            // Nobody may listen any more.
            let _ = self.0.news.send(changed.clone());
        }
        if self
            .0
            .wishes
            .get()
            .is_some_and(|wishes| wishes.opt_out.contains(&notification.name()))
        {
            return;
        }
        let weight = weight(&notification);
        // Progress is worth nothing later, and must not come after its request's answer.
        if matches!(notification, Notification::Progress(_)) && self.0.outbox.is_holding() {
            return;
        }
        self.0.outbox.news(Frame::notification(&notification), weight);
    }

    /// For a server that the host implements. Whoever wants none of that brings no such server: it cannot be opted out of.
    fn deliver(&self, notification: Notification) -> bool {
        self.0.outbox.deliver(Frame::notification(&notification))
    }

    fn show_document(&self, uri: String) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(self.clone().ask_to_show(uri))
    }
}

/// Takes the slot away however the request ends.
struct Leave<'a> {
    host: &'a Host,
    id: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.host.asked().waiting.remove(&self.id);
    }
}

fn weight(notification: &Notification) -> Weight {
    match notification {
        Notification::Changed(_)
        | Notification::Question(_)
        | Notification::QuestionClosed(_)
        | Notification::Sample(_)
        | Notification::ResourceUpdated(_)
        | Notification::HostSend(_) => Weight::Needed,
        Notification::Log(_) | Notification::LogMessage(_) => Weight::Spare,
        Notification::Progress(progress) => match progress.value {
            protocol::ProgressValue::Report(_) => Weight::Spare,
            protocol::ProgressValue::Begin(_) | protocol::ProgressValue::End(_) => Weight::Needed,
        },
    }
}
