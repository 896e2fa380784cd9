//! What comes up from a connection: its log, its news, and the questions of its server.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use mcp::{ConnectionHost, Event, InputKind, InputReply, InputRequest, ListKind};
use protocol::{
    CallId, ClosedReason, FormQuestion, Issue, IssueKind, LogLevel, LogSource, McpResourceUpdated, McpSample,
    Notification, Question, QuestionId, Raw, Session, Tier, Uri, UrlQuestion,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::Server;
use super::runner::Order;
use crate::calls::Call;
use crate::config::secret;
use crate::env;
use crate::question::form;
use crate::question::queue::{Asking, Outcome, Refused};
use crate::sampling;

/// JSON-RPC codes of the answers to questions that cannot be asked.
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The manager's side of one connection of a server.
pub(super) struct Host {
    server: Weak<Server>,
    /// Which start of the server this is.
    generation: u64,
}

impl Host {
    pub fn new(server: &Arc<Server>, generation: u64) -> Host {
        Host {
            server: Arc::downgrade(server),
            generation,
        }
    }
}

impl ConnectionHost for Host {
    fn event(&self, event: Event) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        match event {
            Event::Stderr(line) => server.log(LogSource::Stderr, LogLevel::Info, &line),
            Event::Noise(line) => server.log(
                LogSource::Protocol,
                LogLevel::Warning,
                &format!("not JSON-RPC on stdout: {line}"),
            ),
            Event::Protocol(text) => server.log(LogSource::Protocol, LogLevel::Warning, &text),
            Event::Log { level, logger, data } => {
                let text = match serde_json::from_str::<String>(data.get()) {
                    Ok(text) => text,
                    Err(_) => data.get().to_owned(),
                };
                let text = logger.map_or(text.clone(), |logger| format!("{logger}: {text}"));
                server.log(LogSource::Server, log_level(level), &text);
            }
            Event::ListChanged(kind) => list_changed(&server, kind),
            Event::ResourceUpdated(uri) => {
                for directory in server.directories() {
                    let updated = McpResourceUpdated {
                        directory,
                        server: server.name.clone(),
                        uri: Uri::from(uri.as_str()),
                    };
                    server.core.sink.notify(Notification::ResourceUpdated(updated));
                }
            }
            Event::Closed(closed) => {
                // A server that is gone has no task left to tell.
                let _ = server.orders.send(Order::Closed {
                    generation: self.generation,
                    closed,
                });
            }
        }
    }

    fn input(&self, input: InputRequest) -> BoxFuture<'static, InputReply> {
        let server = self.server.upgrade();
        Box::pin(async move {
            let Some(server) = server else {
                return InputReply::Error {
                    code: METHOD_NOT_FOUND,
                    message: "gone".to_owned(),
                };
            };
            let calls: Vec<Arc<Call>> = input
                .calls
                .iter()
                .filter_map(|tag| server.core.calls.get(*tag))
                .collect();
            match input.kind {
                InputKind::Elicit => elicit(&server, &calls, &input.params).await,
                InputKind::Sample => sample(&server, &calls, input.params).await,
                InputKind::Roots => roots(&server),
            }
        })
    }
}

fn log_level(level: mcp::LogLevel) -> LogLevel {
    match level {
        mcp::LogLevel::Debug => LogLevel::Debug,
        mcp::LogLevel::Info | mcp::LogLevel::Notice => LogLevel::Info,
        mcp::LogLevel::Warning => LogLevel::Warning,
        mcp::LogLevel::Error | mcp::LogLevel::Critical | mcp::LogLevel::Alert | mcp::LogLevel::Emergency => {
            LogLevel::Error
        }
    }
}

/// Drops the cached list, and reads it again after the storm.
fn list_changed(server: &Arc<Server>, kind: ListKind) {
    if !server.catalog.invalidate(kind) {
        return;
    }
    let server = Arc::clone(server);
    tokio::spawn(async move {
        tokio::time::sleep(crate::limits::LIST_CHANGED_DEBOUNCE).await;
        if let Some(connection) = server.connected() {
            server.catalog.refresh(&server, &connection).await;
        }
    });
}

fn action(name: &str) -> InputReply {
    result(&json!({"action": name}))
}

fn result(value: &Value) -> InputReply {
    match to_raw_value(value) {
        Ok(raw) => InputReply::Result(raw),
        Err(error) => InputReply::Error {
            code: -32603,
            message: error.to_string(),
        },
    }
}

/// The server gets `decline`, the host sees why in the issues of the call.
fn decline(server: &Server, calls: &[Arc<Call>], why: &str) -> InputReply {
    server.log(
        LogSource::Pillion,
        LogLevel::Warning,
        &format!("a question was declined without being shown: {why}"),
    );
    for call in calls {
        let mut issue = Issue::new(IssueKind::DeclinedUnseen, why);
        issue.server = Some(server.name.clone());
        issue.item.clone_from(&call.tool);
        call.note(issue);
    }
    action("decline")
}

async fn elicit(server: &Arc<Server>, calls: &[Arc<Call>], params: &RawValue) -> InputReply {
    let Some(first) = calls.first() else {
        return decline(server, calls, "the server asked while no call to it was running");
    };
    // Which of several calls asks may be open; then the person could be asked in the name of a peer.
    if calls.iter().any(|call| call.tier != Tier::Local) {
        return decline(
            server,
            calls,
            "the call came from a peer, and peers are never asked",
        );
    }
    let capabilities = &server.core.settings().capabilities;
    if capabilities.questions != Some(true) {
        return decline(
            server,
            calls,
            "the host declared no `questions`, so nobody can be asked",
        );
    }
    let Ok(params) = serde_json::from_str::<Value>(params.get()) else {
        return InputReply::Error {
            code: INVALID_PARAMS,
            message: "the question is not readable".to_owned(),
        };
    };
    let entry = server.entry();
    let title = format!("{} asks for input", secret::label(&entry, &server.name));
    let message = params["message"]
        .as_str()
        .filter(|message| !message.trim().is_empty());
    let message = message.unwrap_or("The server asks for input.").to_owned();
    let asked = Asked::of(calls);
    let id = QuestionId::from("");
    let (question, fields) = match params["mode"].as_str() {
        Some("url") => {
            if capabilities.url_questions != Some(true) {
                return decline(
                    server,
                    calls,
                    "the server wants to open a URL, and the host declared no `urlQuestions`",
                );
            }
            let text = params["url"].as_str().unwrap_or_default();
            let url = match url::Url::parse(text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") && url.host_str().is_some() => url,
                _ => {
                    return decline(
                        server,
                        calls,
                        "the server wants to open something that is no http or https URL",
                    );
                }
            };
            let question = UrlQuestion {
                id,
                directory: first.directory.clone(),
                server: server.name.clone(),
                session: asked.session,
                call: asked.call,
                calls: asked.calls,
                title,
                message,
                asked_at: env::now(),
                host: url.host_str().unwrap_or_default().to_owned(),
                warnings: url_warnings(&url),
                // As it was checked and as a browser reads it, not as the server wrote it.
                url: Uri::from(url.to_string()),
            };
            (Question::Url(question), None)
        }
        None | Some("form") => {
            let fields = match form::asked(&message, &params["requestedSchema"]) {
                Ok(fields) => fields,
                Err(refusal) => return decline(server, calls, &refusal.to_string()),
            };
            let question = FormQuestion {
                id,
                directory: first.directory.clone(),
                server: server.name.clone(),
                session: asked.session,
                call: asked.call,
                calls: asked.calls,
                title,
                message,
                asked_at: env::now(),
                tool: first.tool.clone().filter(|_| calls.len() == 1),
                fields: fields.clone(),
            };
            (Question::Form(question), Some(fields))
        }
        Some(other) => {
            return decline(
                server,
                calls,
                &format!("the server asks in the mode `{other}`, which is not known"),
            );
        }
    };
    let is_form = fields.is_some();
    let why_gone = {
        let server = Arc::downgrade(server);
        let calls: Vec<Arc<Call>> = calls.to_vec();
        Box::new(move || match server.upgrade() {
            _ if calls.iter().all(|call| call.cancel.is_cancelled()) => ClosedReason::CallCancelled,
            Some(server) if server.connected().is_some() => ClosedReason::Withdrawn,
            _ => ClosedReason::ServerGone,
        })
    };
    let tags = calls.iter().map(|call| call.tag).collect();
    match server
        .core
        .questions
        .ask(Asking {
            question,
            fields,
            tags,
            why_gone,
            remembered: None,
        })
        .await
    {
        Ok(Outcome::Accept(content)) if is_form => result(&json!({"action": "accept", "content": content})),
        Ok(Outcome::Accept(_)) => action("accept"),
        Ok(Outcome::Decline) => action("decline"),
        Ok(Outcome::Cancel) => action("cancel"),
        Err(refused) => {
            let why = match refused {
                Refused::TooOften => "the server asks too often",
                Refused::TooManyWaiting => "too many questions are waiting",
            };
            server.log(
                LogSource::Pillion,
                LogLevel::Warning,
                &format!("a question was cancelled: {why}"),
            );
            action("cancel")
        }
    }
}

/// Whom a question is attributed to.
struct Asked {
    session: Option<Session>,
    call: Option<CallId>,
    calls: Option<Vec<CallId>>,
}

impl Asked {
    /// One call: its own line. Several: the line of their common session, else the connection's own.
    fn of(calls: &[Arc<Call>]) -> Asked {
        if let [call] = calls {
            return Asked {
                session: call.session.clone(),
                call: call.id.clone(),
                calls: None,
            };
        }
        let first = calls.first().and_then(|call| call.session.clone());
        let is_common = calls.iter().all(|call| call.session == first);
        let ids: Vec<CallId> = calls.iter().filter_map(|call| call.id.clone()).collect();
        Asked {
            session: first.filter(|_| is_common),
            call: None,
            calls: Some(ids),
        }
    }
}

/// What a person should look at before opening a URL.
fn url_warnings(url: &url::Url) -> Vec<String> {
    let mut warnings = Vec::new();
    let host = url.host_str().unwrap_or_default();
    if url.scheme() != "https" {
        warnings.push("the connection is not encrypted (http)".to_owned());
    }
    if host.split('.').any(|label| label.starts_with("xn--")) {
        warnings.push("the host name holds characters that may look like others (Punycode)".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        warnings.push("the address begins with a user name, which may hide the real host".to_owned());
    }
    if matches!(url.host(), Some(url::Host::Ipv4(_) | url::Host::Ipv6(_))) {
        warnings.push("the host is a bare address, not a name".to_owned());
    }
    warnings
}

async fn sample(server: &Arc<Server>, calls: &[Arc<Call>], request: Box<RawValue>) -> InputReply {
    let core = &server.core;
    if core.settings().capabilities.sampling != Some(true) {
        return InputReply::Error {
            code: METHOD_NOT_FOUND,
            message: "sampling is not offered".to_owned(),
        };
    }
    let Some(call) = calls.first() else {
        return sampling::refused("sampling is offered during a call only");
    };
    let id = QuestionId::from(core.questions.fresh_id());
    let notification = Notification::Sample(McpSample {
        directory: call.directory.clone(),
        server: server.name.clone(),
        sample: id.clone(),
        session: call.session.clone(),
        call: call.id.clone(),
        request: Raw(request),
    });
    server.log(
        LogSource::Pillion,
        LogLevel::Info,
        "the server asks the host's model (sampling)",
    );
    core.samples.ask(id, || core.sink.notify(notification)).await
}

fn roots(server: &Server) -> InputReply {
    if server.core.settings().capabilities.roots != Some(true) {
        return InputReply::Error {
            code: METHOD_NOT_FOUND,
            message: "roots are not offered".to_owned(),
        };
    }
    let roots: Vec<Value> = server
        .core
        .open_directories()
        .iter()
        .filter_map(|directory| {
            let uri = url::Url::from_file_path(&**directory).ok()?;
            let name = std::path::Path::new(&**directory)
                .file_name()?
                .to_str()?
                .to_owned();
            Some(json!({"uri": uri.as_str(), "name": name}))
        })
        .collect();
    result(&json!({"roots": roots}))
}
