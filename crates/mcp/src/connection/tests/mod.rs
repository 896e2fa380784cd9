//! Whole conversations with servers that are functions or scripts.

mod calls;
mod eras;
mod http;
mod questions;
mod stdio;
mod subscriptions;
mod tasks;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;

use super::connect::connect_in_memory;
use super::{CallOptions, Connection, members};
use crate::error::ConnectError;
use crate::host::{ConnectionHost, Event, InputReply, InputRequest};
use crate::target::{ClientCapabilities, Elicitation, Options, ProtocolChoice};
use crate::transport::memory::{Act, Far, error, result};

const SECOND: Duration = Duration::from_secs(1);

/// What a host does with a question.
type Answerer = Box<dyn Fn(InputRequest) -> BoxFuture<'static, InputReply> + Send + Sync>;

/// Records events and answers questions.
struct TestHost {
    events: Mutex<Vec<Event>>,
    answerer: Answerer,
}

impl ConnectionHost for TestHost {
    fn event(&self, event: Event) {
        self.events.lock().expect("no panic").push(event);
    }

    fn input(&self, input: InputRequest) -> BoxFuture<'static, InputReply> {
        (self.answerer)(input)
    }
}

impl TestHost {
    fn new(answerer: Answerer) -> Arc<TestHost> {
        Arc::new(TestHost {
            events: Mutex::default(),
            answerer,
        })
    }

    /// Nobody is there to be asked.
    fn silent() -> Arc<TestHost> {
        TestHost::new(Box::new(|_| std::future::pending().boxed()))
    }

    /// Always the same answer.
    fn answering(text: &'static str) -> Arc<TestHost> {
        TestHost::new(Box::new(move |_| {
            std::future::ready(InputReply::Result(members::raw(text))).boxed()
        }))
    }

    fn events(&self) -> Vec<String> {
        self.events
            .lock()
            .expect("no panic")
            .iter()
            .map(|event| format!("{event:?}"))
            .collect()
    }
}

fn options() -> Options {
    Options {
        client_name: "pillion".into(),
        client_version: "1".into(),
        protocol: ProtocolChoice::Auto,
        verdict: None,
        start_timeout: 60 * SECOND,
        probe_timeout: 10 * SECOND,
        capabilities: ClientCapabilities {
            elicitation: Elicitation::FormAndUrl,
            sampling: false,
            roots: false,
        },
        max_message_bytes: 1 << 20,
        max_in_flight: 64,
        stop_grace: Duration::from_millis(300),
    }
}

fn calling(tag: u64) -> CallOptions {
    CallOptions {
        tag: Some(tag),
        ..CallOptions::new(60 * SECOND)
    }
}

const INITIALIZED: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"instructions":"be kind"}"#;

/// A server of the older era whose methods are `serve`.
fn legacy(mut serve: impl FnMut(&Value) -> Vec<Act> + Send + 'static) -> crate::transport::memory::Script {
    Box::new(move |message| match message["method"].as_str() {
        Some("server/discover") => error(r#"{"code":-32601,"message":"Method not found"}"#),
        Some("initialize") => result(INITIALIZED),
        Some("notifications/initialized") => Vec::new(),
        _ => serve(message),
    })
}

/// A server of the newer era.
fn modern(mut serve: impl FnMut(&Value) -> Vec<Act> + Send + 'static) -> crate::transport::memory::Script {
    Box::new(move |message| match message["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        _ => serve(message),
    })
}

async fn connect(
    script: crate::transport::memory::Script,
    host: &Arc<TestHost>,
) -> (Result<Connection, ConnectError>, Far) {
    connect_in_memory(script, false, options(), host.clone()).await
}

async fn connected(script: crate::transport::memory::Script, host: &Arc<TestHost>) -> (Connection, Far) {
    let (connection, far) = connect(script, host).await;
    (
        connection.unwrap_or_else(|error| panic!("no connection: {error}")),
        far,
    )
}

fn raw(text: &str) -> Box<RawValue> {
    members::raw(text)
}

/// Lets everything that is ready run.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
