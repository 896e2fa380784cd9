//! What a rule's `mcp` does: the plain server on one streamable HTTP request, as JSON or as an event
//! stream, with sessions.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::http::{Piece, State, encode, encoding, in_pieces, plain_response, receive, with_headers};
use super::legacy_sse::event;
use super::plain::{Incoming, Step};
use super::rules::Seen;

impl State {
    pub(super) async fn mcp(
        self: Arc<Self>,
        options: &Map<String, Value>,
        headers: &Value,
        seen: Seen,
    ) -> Response<Body> {
        let Some(message) = Incoming::parse(&seen.body) else {
            return plain_response(400, None, String::new());
        };
        let mut extra = json!({ "headers": headers });
        if let Err(status) = self.session(options, &message, &seen, &mut extra["headers"]) {
            return plain_response(status, None, String::new());
        }
        if message.is_response() || message.id.is_none() {
            if message.is_response() {
                self.reply(&message);
            }
            return with_headers(202, None, Body::empty(), &extra, None);
        }
        let (steps, modern) = {
            let mut plain = self.plain.lock().expect("no panic while held");
            let plain = plain.as_mut().expect("served");
            (plain.steps(&message, options), plain.is_modern())
        };
        if modern && message.method.as_deref() == Some("subscriptions/listen") {
            return self.listen(&message);
        }
        if let [Step::Unknown { status, answer }] = steps.as_slice() {
            let (kind, body) = match status {
                404 => (Some("application/json"), answer.clone()),
                _ => (None, String::new()),
            };
            return with_headers(u64::from(*status), kind, Body::from(body), &extra, None);
        }
        let simple = steps
            .iter()
            .all(|step| matches!(step, Step::Answer(_) | Step::Pause(_)));
        let as_stream = options.get("as") == Some(&json!("sse"));
        if simple && !as_stream && steps.iter().any(|step| matches!(step, Step::Answer(_))) {
            return self.as_json(steps, options, &extra, &seen).await;
        }
        self.as_stream(steps, options, &extra, seen)
    }

    /// Hands out session ids and demands them afterwards.
    fn session(
        &self,
        options: &Map<String, Value>,
        message: &Incoming,
        seen: &Seen,
        headers: &mut Value,
    ) -> Result<(), u64> {
        let mut sessions = self.sessions.lock().expect("no panic while held");
        let method = message.method.as_deref();
        if method == Some("initialize") {
            if let Some(list) = options.get("session").and_then(Value::as_array) {
                let id = list
                    .get(sessions.n_given.min(list.len().saturating_sub(1)))
                    .and_then(Value::as_str);
                sessions.current = id.map(str::to_owned);
                sessions.n_given += 1;
                if headers.is_null() {
                    *headers = json!({});
                }
                headers["mcp-session-id"] = json!(id);
            }
            return Ok(());
        }
        let Some(current) = &sessions.current else {
            return Ok(());
        };
        match seen.headers.get("mcp-session-id").and_then(Value::as_str) {
            Some(id) if id == current => Ok(()),
            Some(_) => Err(404),
            None => Err(400),
        }
    }

    async fn as_json(
        &self,
        steps: Vec<Step>,
        options: &Map<String, Value>,
        extra: &Value,
        seen: &Seen,
    ) -> Response<Body> {
        let mut text = String::new();
        for step in steps {
            match step {
                Step::Pause(pause) => tokio::time::sleep(Duration::from_millis(pause)).await,
                Step::Answer(answer) => text = answer,
                _ => {}
            }
        }
        let kind = options
            .get("content_type")
            .and_then(Value::as_str)
            .unwrap_or("application/json");
        let encoded = options.get("encode").and_then(|option| encoding(option, seen));
        let body = match &encoded {
            Some(name) => Body::from(encode(name, text.as_bytes())),
            None if options.get("split") == Some(&json!("every_byte")) => {
                in_pieces(text.bytes().map(|byte| vec![byte]).collect(), false)
            }
            None => Body::from(text),
        };
        with_headers(200, Some(kind), body, extra, encoded.as_deref())
    }

    fn as_stream(
        self: Arc<Self>,
        steps: Vec<Step>,
        options: &Map<String, Value>,
        extra: &Value,
        seen: Seen,
    ) -> Response<Body> {
        let kind = options
            .get("content_type")
            .and_then(Value::as_str)
            .unwrap_or("text/event-stream")
            .to_owned();
        let every_byte = options.get("split") == Some(&json!("every_byte"));
        let (sender, receiver) = mpsc::channel::<Piece>(1);
        tokio::spawn(async move {
            let gone = sender.clone();
            let ended = tokio::select! {
                // First, since `play` notices it too.
                biased;
                () = gone.closed() => false,
                () = self.play(steps, &sender, every_byte) => true,
            };
            if !ended {
                self.dropped.lock().expect("no panic while held").push(seen);
            }
        });
        with_headers(
            200,
            Some(&kind),
            Body::from_stream(receive(receiver)),
            extra,
            None,
        )
    }

    async fn play(&self, steps: Vec<Step>, sender: &mpsc::Sender<Piece>, every_byte: bool) {
        let answers = steps.iter().any(|step| matches!(step, Step::Answer(_)));
        for step in steps {
            match step {
                Step::Send(text) | Step::Answer(text) | Step::Unknown { answer: text, .. } => {
                    let bytes = event(&text).into_bytes();
                    let pieces = if every_byte {
                        bytes.chunks(1).map(<[u8]>::to_vec).collect()
                    } else {
                        vec![bytes]
                    };
                    for piece in pieces {
                        let _ = sender.send(Ok(Bytes::from(piece))).await;
                    }
                }
                Step::Pause(pause) => tokio::time::sleep(Duration::from_millis(pause)).await,
                Step::Ask(requests) => {
                    for request in &requests {
                        let _ = sender.send(Ok(Bytes::from(event(&request.to_string())))).await;
                    }
                    for request in &requests {
                        self.replied(&request["id"].to_string()).await;
                    }
                }
                Step::StderrBytes(_) | Step::Actions(_) => {}
                Step::Exit(_) => {
                    let _ = sender
                        .send(Err(std::io::Error::other("gone as the script says")))
                        .await;
                    return;
                }
            }
        }
        if !answers {
            // An answer that never comes keeps its stream open.
            sender.closed().await;
        }
    }

    pub(super) fn reply(&self, message: &Incoming) {
        let id = message.id.clone().unwrap_or_default().to_string();
        self.replies.lock().expect("no panic while held").push(id);
        self.replied.notify_waiters();
    }

    pub(super) async fn replied(&self, id: &str) {
        loop {
            let next = self.replied.notified();
            if self
                .replies
                .lock()
                .expect("no panic while held")
                .iter()
                .any(|reply| reply == id)
            {
                return;
            }
            next.await;
        }
    }

    pub(super) fn plain_steps(&self, message: &Incoming) -> Vec<Step> {
        let mut plain = self.plain.lock().expect("no panic while held");
        plain.as_mut().expect("served").steps(message, &Map::new())
    }
}
