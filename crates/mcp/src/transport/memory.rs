//! A link to a server that is a function, for tests.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Inbox, Link, OutKind, Outgoing, TransportError};
use crate::error::{CloseReason, Closed};

/// Says what the server does with a message.
pub(crate) type Script = Box<dyn FnMut(&Value) -> Vec<Act> + Send>;

pub(crate) enum Act {
    /// A message of the server; `$id` stands for the id of the request.
    Say(String),
    /// The request fails in the carrier.
    Fail(TransportError),
    Wait(std::time::Duration),
    Exit,
}

pub(crate) fn say(text: impl Into<String>) -> Vec<Act> {
    vec![Act::Say(text.into())]
}

/// An answer with this result.
pub(crate) fn result(text: &str) -> Vec<Act> {
    say(format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{text}}}"#))
}

pub(crate) fn error(text: &str) -> Vec<Act> {
    say(format!(r#"{{"jsonrpc":"2.0","id":$id,"error":{text}}}"#))
}

/// The far end.
#[derive(Clone)]
pub(crate) struct Far {
    acts: mpsc::UnboundedSender<(Option<u64>, Act)>,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Far {
    /// What the server says by itself.
    pub(crate) fn say(&self, text: &str) {
        let _ = self.acts.send((None, Act::Say(text.into())));
    }

    pub(crate) fn exit(&self) {
        let _ = self.acts.send((None, Act::Exit));
    }

    /// Every message it got, as text.
    pub(crate) fn got(&self) -> Vec<String> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every message of this method, parsed.
    pub(crate) fn got_method(&self, method: &str) -> Vec<Value> {
        let all = self.got();
        let parsed = all.iter().map(|text| value_of(text));
        parsed.filter(|message| message["method"] == method).collect()
    }
}

pub(crate) struct MemoryLink {
    script: Mutex<Script>,
    far: Far,
    inbox: Weak<dyn Inbox>,
}

impl MemoryLink {
    pub(crate) fn open(script: Script, inbox: Weak<dyn Inbox>) -> (Arc<MemoryLink>, Far) {
        let (acts, receiver) = mpsc::unbounded_channel();
        tokio::spawn(act(receiver, inbox.clone()));
        let far = Far {
            acts,
            sent: Arc::default(),
        };
        (
            Arc::new(MemoryLink {
                script: Mutex::new(script),
                far: far.clone(),
                inbox,
            }),
            far,
        )
    }
}

async fn act(mut acts: mpsc::UnboundedReceiver<(Option<u64>, Act)>, inbox: Weak<dyn Inbox>) {
    while let Some((id, act)) = acts.recv().await {
        if let Act::Wait(time) = act {
            tokio::time::sleep(time).await;
            continue;
        }
        let Some(inbox) = inbox.upgrade() else {
            return;
        };
        match (act, id) {
            (Act::Say(text), _) => inbox.message(text.as_bytes(), None),
            (Act::Fail(error), Some(id)) => inbox.failed(id, error),
            (Act::Exit, _) => inbox.closed(Closed::new(CloseReason::ServerExited, "the server exited")),
            (Act::Fail(_) | Act::Wait(_), _) => {}
        }
    }
}

/// For looking at: what no value can hold is replaced.
fn value_of(text: &str) -> Value {
    let text = text.replace(r"\ud", r"\u0").replace("1e400", "1e40");
    serde_json::from_str(&text).expect("we write JSON")
}

impl Link for MemoryLink {
    fn send(&self, out: Outgoing) {
        let text = String::from_utf8(out.text.to_vec()).expect("we write UTF-8");
        let message = value_of(&text);
        self.far
            .sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(text);
        let id = match out.kind {
            OutKind::Request(id) => Some(id),
            OutKind::Notification | OutKind::Response => None,
        };
        let acts = (self.script.lock().unwrap_or_else(PoisonError::into_inner))(&message);
        for act in acts {
            let act = match act {
                Act::Say(text) => Act::Say(text.replace("$id", &message["id"].to_string())),
                act => act,
            };
            let _ = self.far.acts.send((id, act));
        }
    }

    fn deliver(&self, out: Outgoing) -> BoxFuture<'static, Result<(), TransportError>> {
        self.send(out);
        std::future::ready(Ok(())).boxed()
    }

    fn cancel(&self, _id: u64) {}

    fn negotiated(&self, _protocol_version: &str) {}

    fn listen(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.closed(Closed::new(CloseReason::Ordered, "closed"));
        }
        std::future::ready(()).boxed()
    }
}
