//! Streams that stand open: the old HTTP+SSE transport, the GET stream of a session, a listen
//! request of the newest revision.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::http::{State, accepted, stream_response};
use super::plain::{Incoming, Step, response};
use super::rules::Seen;

type Piece = Result<Bytes, std::io::Error>;

#[derive(Default)]
pub(super) struct Streams {
    open: Mutex<Vec<Open>>,
}

struct Open {
    rule: usize,
    /// The path whose POSTs are answered on this stream.
    post: Option<String>,
    sender: mpsc::UnboundedSender<String>,
    /// What a notification must carry to belong to this listen request.
    subscription: Option<Value>,
}

impl Streams {
    pub(super) fn takes(&self, rule: usize, path: &str) -> bool {
        let open = self.open.lock().expect("no panic while held");
        open.iter()
            .any(|stream| stream.rule == rule && stream.post.as_deref() == Some(path))
    }

    pub(super) fn send(&self, message: &str) {
        let mut open = self.open.lock().expect("no panic while held");
        open.retain(|stream| {
            let text = match (&stream.subscription, serde_json::from_str::<Value>(message)) {
                (Some(id), Ok(mut message)) => {
                    message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] = id.clone();
                    message.to_string()
                }
                _ => message.to_owned(),
            };
            stream.sender.send(event(&text)).is_ok()
        });
    }

    /// On the stream that was opened last for this rule.
    fn answer(&self, rule: usize, message: &str) {
        let open = self.open.lock().expect("no panic while held");
        if let Some(stream) = open.iter().rev().find(|stream| stream.rule == rule) {
            let _ = stream.sender.send(event(message));
        }
    }

    pub(super) fn count(&self) -> usize {
        let mut open = self.open.lock().expect("no panic while held");
        open.retain(|stream| !stream.sender.is_closed());
        open.len()
    }

    pub(super) fn clear(&self) {
        self.open.lock().expect("no panic while held").clear();
    }

    fn open(
        &self,
        rule: usize,
        post: Option<String>,
        subscription: Option<Value>,
        first: Vec<String>,
    ) -> Response<Body> {
        let (sender, mut texts) = mpsc::unbounded_channel::<String>();
        for text in first {
            let _ = sender.send(text);
        }
        self.open.lock().expect("no panic while held").push(Open {
            rule,
            post,
            sender,
            subscription,
        });
        let (pieces, receiver) = mpsc::channel::<Piece>(1);
        tokio::spawn(async move {
            loop {
                let text = tokio::select! {
                    text = texts.recv() => text,
                    () = pieces.closed() => None,
                };
                let Some(text) = text else { return };
                let _ = pieces.send(Ok(Bytes::from(text))).await;
            }
        });
        stream_response(receiver)
    }
}

pub(super) fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}

impl State {
    pub(super) fn open_legacy(
        &self,
        rule: usize,
        options: &Map<String, Value>,
        seen: &Seen,
    ) -> Response<Body> {
        let endpoint = options
            .get("endpoint")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let first = match options.get("raw").and_then(Value::as_str) {
            Some(raw) => raw.to_owned(),
            None => format!("event: endpoint\ndata: {endpoint}\n\n"),
        };
        let post = match options.get("post").and_then(Value::as_str) {
            Some(path) => path.to_owned(),
            None => resolve(&seen.path, endpoint),
        };
        self.streams.open(rule, Some(post), None, vec![first])
    }

    pub(super) fn open_stream(&self, rule: usize) -> Response<Body> {
        self.streams.open(rule, None, None, vec![": open\n\n".to_owned()])
    }

    /// The long request of the newest revision: acknowledged, then open until somebody ends it.
    pub(super) fn listen(&self, message: &Incoming) -> Response<Body> {
        let id = message.id.clone().unwrap_or_default();
        let acknowledged = json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "notifications": message.params()["notifications"],
                "_meta": { "io.modelcontextprotocol/subscriptionId": id },
            },
        });
        self.streams
            .open(usize::MAX, None, Some(id), vec![event(&acknowledged.to_string())])
    }

    /// A POST of the old transport: 202 at once, the answer comes on the stream.
    pub(super) fn post_to_stream(self: &Arc<Self>, rule: usize, seen: &Seen) -> Response<Body> {
        if let Some(message) = Incoming::parse(&seen.body) {
            if message.is_response() {
                self.reply(&message);
            } else {
                let steps = self.plain_steps(&message);
                let state = self.clone();
                tokio::spawn(async move { state.play_on_stream(rule, &message, steps).await });
            }
        }
        accepted()
    }

    async fn play_on_stream(&self, rule: usize, message: &Incoming, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Send(text) | Step::Answer(text) => self.streams.answer(rule, &text),
                Step::Unknown { .. } => {
                    let id = message.id.clone().unwrap_or_default();
                    let error = json!({ "code": -32601, "message": "Method not found" });
                    self.streams
                        .answer(rule, &response(&id, "error", &error.to_string()));
                }
                Step::Pause(pause) => tokio::time::sleep(Duration::from_millis(pause)).await,
                Step::Ask(requests) => {
                    for request in &requests {
                        self.streams.answer(rule, &request.to_string());
                    }
                    for request in &requests {
                        self.replied(&request["id"].to_string()).await;
                    }
                }
                Step::StderrBytes(_) | Step::Actions(_) => {}
                Step::Exit(_) => self.streams.clear(),
            }
        }
    }
}

/// Enough of RFC 3986 for the endpoint forms that servers send.
fn resolve(base: &str, endpoint: &str) -> String {
    let base = url::Url::parse(&format!("http://host{base}")).expect("a path");
    base.join(endpoint)
        .map_or_else(|_| endpoint.to_owned(), |url| url.path().to_owned())
}
