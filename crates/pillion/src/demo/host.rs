//! A host in small: it spawns Pillion and speaks JSON-RPC 2.0 with it, framed as in the Language Server Protocol.
//!
//! Everything a real host needs and no more: one writer, one reader task, a table of open requests, and a channel
//! of what comes unasked. The types are those of the protocol crate.

use std::collections::HashMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::{McpChanged, MethodSpec, Progress, Question};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::trace::{Direction, Trace};

/// Pillion ends within 5 s of `exit`; a little more, and it is ended by force.
const LEAVE: Duration = Duration::from_secs(7);
/// A host that does not listen must not make the channel grow without end.
const MAX_NEWS: usize = 1024;

/// What comes without being asked for.
#[derive(Debug)]
pub enum News {
    Changed(Box<McpChanged>),
    Question(Box<Question>),
    Progress(Box<Progress>),
}

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("{0}")]
    Refused(protocol::Error),
    #[error("pillion ended before it answered `{0}`")]
    Ended(String),
    #[error("the answer to `{method}` does not fit its type")]
    Unreadable {
        method: String,
        source: serde_json::Error,
    },
    #[error("cannot write to pillion")]
    Write(#[source] std::io::Error),
}

type Answer = Result<Box<RawValue>, protocol::Error>;
type Open = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

/// A handle; clones speak over the same pipes.
#[derive(Clone)]
pub struct Host(Arc<Wire>);

struct Wire {
    stdin: tokio::sync::Mutex<ChildStdin>,
    open: Open,
    next_id: AtomicU64,
    trace: Trace,
}

impl Host {
    /// Starts `pillion serve` with its own data folder.
    pub fn spawn(
        program: &Path,
        data_dir: &Path,
        trace: Trace,
    ) -> std::io::Result<(Host, mpsc::Receiver<News>, Child)> {
        let mut child = Command::new(program)
            .arg("serve")
            .env("PILLION_HOME", data_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("pillion was started without pipes"));
        };
        let open = Open::default();
        let (news, heard) = mpsc::channel(MAX_NEWS);
        tokio::spawn(listen(stdout, Arc::clone(&open), news, trace.clone()));
        let stdin = tokio::sync::Mutex::new(stdin);
        let host = Host(Arc::new(Wire {
            stdin,
            open,
            next_id: AtomicU64::new(1),
            trace,
        }));
        Ok((host, heard, child))
    }

    /// Calls one of Pillion's own methods; the method says what it takes and what it answers.
    pub async fn call<M: MethodSpec>(&self, _method: M, params: M::Params) -> Result<M::Result, HostError> {
        self.request(M::METHOD.name(), &params).await
    }

    /// Sends a request and waits for its answer.
    pub async fn request<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, HostError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.0
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, sender);
        self.send(&Request {
            jsonrpc: "2.0",
            id: Some(id),
            method,
            params,
        })
        .await?;
        let answer = answer.await.map_err(|_| HostError::Ended(method.to_owned()))?;
        let result = answer.map_err(HostError::Refused)?;
        serde_json::from_str(result.get()).map_err(|source| HostError::Unreadable {
            method: method.to_owned(),
            source,
        })
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), HostError> {
        self.send(&Request {
            jsonrpc: "2.0",
            id: None,
            method,
            params,
        })
        .await
    }

    /// `shutdown`, `exit`, and the end of the process.
    pub async fn leave(&self, child: &mut Child) -> Result<ExitStatus, HostError> {
        let empty = serde_json::json!({});
        self.request::<serde_json::Value>("shutdown", &empty).await?;
        self.notify("exit", &empty).await?;
        match tokio::time::timeout(LEAVE, child.wait()).await {
            Ok(Ok(status)) => Ok(status),
            _ => Err(HostError::Ended("exit".to_owned())),
        }
    }

    async fn send(&self, message: &impl Serialize) -> Result<(), HostError> {
        let text = serde_json::to_string(message).map_err(|error| HostError::Write(error.into()))?;
        self.0.trace.frame(Direction::Out, &text);
        let frame = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        let mut stdin = self.0.stdin.lock().await;
        stdin.write_all(frame.as_bytes()).await.map_err(HostError::Write)
    }
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

/// A frame as it comes. The result stays text until its type is known.
#[derive(Deserialize)]
struct Incoming {
    id: Option<u64>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<protocol::Error>,
}

/// Reads frames until Pillion closes its stdout; then every request that is still open ends.
async fn listen(stdout: ChildStdout, open: Open, news: mpsc::Sender<News>, trace: Trace) {
    let mut stdout = BufReader::new(stdout);
    while let Some(text) = read_frame(&mut stdout).await {
        trace.frame(Direction::In, &text);
        let Ok(message) = serde_json::from_str::<Incoming>(&text) else {
            continue;
        };
        match (message.method, message.id) {
            (None, Some(id)) => {
                let Some(waiter) = open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) else {
                    continue;
                };
                let null = || RawValue::from_string("null".to_owned()).expect("`null` is JSON");
                let answer = match message.error {
                    Some(error) => Err(error),
                    None => Ok(message.result.unwrap_or_else(null)),
                };
                let _ = waiter.send(answer);
            }
            (Some(method), None) => {
                let params = message.params.as_deref().map_or("{}", RawValue::get);
                if let Some(item) = read_news(&method, params) {
                    let _ = news.try_send(item);
                }
            }
            // This host declares nothing that Pillion could ask it for.
            _ => {}
        }
    }
    open.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

fn read_news(method: &str, params: &str) -> Option<News> {
    match method {
        "mcp.changed" => serde_json::from_str(params).ok().map(News::Changed),
        "mcp.question" => serde_json::from_str(params).ok().map(News::Question),
        "$/progress" => serde_json::from_str(params).ok().map(News::Progress),
        _ => None,
    }
}

/// One `Content-Length` header, an empty line, that many bytes.
async fn read_frame(stdout: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut length = None;
    let mut line = String::new();
    loop {
        line.clear();
        if stdout.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let mut body = vec![0; length?];
    stdout.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_one_by_one() {
        let mut bytes: &[u8] = b"Content-Length: 2\r\n\r\n{}content-length: 4\r\nX: y\r\n\r\nnullCont";
        assert_eq!(read_frame(&mut bytes).await.as_deref(), Some("{}"));
        assert_eq!(read_frame(&mut bytes).await.as_deref(), Some("null"));
        assert_eq!(read_frame(&mut bytes).await, None);
    }
}
