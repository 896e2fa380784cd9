//! A sidecar that does only what it must: `Content-Length` frames on stdio in front, MCP stdio servers behind,
//! bodies forwarded as bytes, only envelopes parsed. It marks what the machine allows.
//!
//! `server/add {name, command, args}` answers with the tools once the server is ready,
//! `tools/call {server, name, arguments}` with the server's result, everything else with `{}`.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Add {
    name: String,
    command: String,
    args: Vec<String>,
}

#[derive(Deserialize)]
struct Call<'a> {
    server: &'a str,
    #[serde(borrow)]
    name: &'a RawValue,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

#[derive(Deserialize)]
struct Response<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

type Frames = mpsc::UnboundedSender<Vec<u8>>;

/// Who waits for an answer of a server: a request of the host, by its id, or this program.
enum Waiter {
    Host(String),
    Own(oneshot::Sender<Option<String>>),
}

#[derive(Default)]
struct Pending {
    last: u64,
    waiters: HashMap<u64, Waiter>,
}

struct Server {
    stdin: tokio::sync::Mutex<ChildStdin>,
    pending: Mutex<Pending>,
    _child: Child,
}

impl Server {
    async fn send(&self, waiter: Waiter, method: &str, params: &str) {
        let id = {
            let mut pending = self.pending.lock().unwrap();
            pending.last += 1;
            let id = pending.last;
            pending.waiters.insert(id, waiter);
            id
        };
        let mut line = Vec::with_capacity(256);
        let _ = writeln!(line, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let _ = self.stdin.lock().await.write_all(&line).await;
    }

    async fn ask(&self, method: &str, params: &str) -> Option<String> {
        let (sender, receiver) = oneshot::channel();
        self.send(Waiter::Own(sender), method, params).await;
        receiver.await.ok().flatten()
    }

    /// Reads answers until the server ends; then everyone who waits is told.
    async fn read(self: Arc<Server>, stdout: ChildStdout, frames: Frames) {
        let mut stdout = BufReader::with_capacity(8192, stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            if line.capacity() > 1 << 16 {
                line = Vec::new();
            }
            if stdout.read_until(b'\n', &mut line).await.unwrap_or(0) == 0 {
                for (_, waiter) in self.pending.lock().unwrap().waiters.drain() {
                    if let Waiter::Host(id) = waiter {
                        reply(&frames, &id, "error", r#"{"code":-32000,"message":"server gone"}"#);
                    }
                }
                return;
            }
            let Ok(response) = serde_json::from_slice::<Response>(&line) else { continue };
            let Some(id) = response.id else { continue };
            let waiter = self.pending.lock().unwrap().waiters.remove(&id);
            let (member, body) = match (response.result, response.error) {
                (Some(result), _) => ("result", result.get()),
                (_, Some(error)) => ("error", error.get()),
                _ => continue,
            };
            match waiter {
                Some(Waiter::Host(id)) => reply(&frames, &id, member, body),
                Some(Waiter::Own(sender)) => drop(sender.send((member == "result").then(|| body.to_owned()))),
                None => {}
            }
        }
    }
}

async fn start(add: Add, frames: Frames) -> Option<(Arc<Server>, String)> {
    let mut child = Command::new(&add.command)
        .args(&add.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let (stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
    let server = Arc::new(Server { stdin: stdin.into(), pending: Mutex::default(), _child: child });
    tokio::spawn(server.clone().read(stdout, frames));
    let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"null","version":"0"}}"#;
    server.ask("initialize", hello).await?;
    let initialized = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    server.stdin.lock().await.write_all(initialized).await.ok()?;
    let tools = server.ask("tools/list", "{}").await?;
    Some((server, tools))
}

fn reply(frames: &Frames, id: &str, member: &str, body: &str) {
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":");
    let length = head.len() + body.len() + 1;
    let mut frame = Vec::with_capacity(length + 32);
    let _ = write!(frame, "Content-Length: {length}\r\n\r\n{head}{body}}}");
    let _ = frames.send(frame);
}

/// One complete frame at the front: where its body begins and ends.
fn frame(buffer: &[u8]) -> Option<(usize, usize)> {
    let head = buffer.windows(4).take(512).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&buffer[..head]).ok()?;
    let length: usize = text
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())?;
    (buffer.len() >= head + 4 + length).then_some((head + 4, head + 4 + length))
}

async fn write(mut stdout: pipe::Sender, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(mut bytes) = frames.recv().await {
        // What else waits goes along, so that a burst costs one write.
        while bytes.len() < 1 << 16 {
            match frames.try_recv() {
                Ok(more) => bytes.extend_from_slice(&more),
                Err(_) => break,
            }
        }
        if stdout.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn run(mut stdin: pipe::Receiver, stdout: pipe::Sender) {
    let (frames, receiver) = mpsc::unbounded_channel();
    tokio::spawn(write(stdout, receiver));
    let servers: Arc<Mutex<HashMap<String, Arc<Server>>>> = Arc::default();
    let mut buffer: Vec<u8> = Vec::with_capacity(1 << 16);
    loop {
        let mut done = 0;
        while let Some((from, to)) = frame(&buffer[done..]) {
            let body = &buffer[done + from..done + to];
            done += to;
            let Ok(request) = serde_json::from_slice::<Request>(body) else { continue };
            let Some(id) = request.id.map(|id| id.get().to_owned()) else { continue };
            let params = request.params.map_or("{}", RawValue::get);
            match request.method {
                "server/add" => {
                    let Ok(add) = serde_json::from_str::<Add>(params) else { continue };
                    let (frames, servers) = (frames.clone(), servers.clone());
                    tokio::spawn(async move {
                        let name = add.name.clone();
                        match start(add, frames.clone()).await {
                            Some((server, tools)) => {
                                servers.lock().unwrap().insert(name, server);
                                reply(&frames, &id, "result", &tools);
                            }
                            None => reply(&frames, &id, "error", r#"{"code":-32000,"message":"start failed"}"#),
                        }
                    });
                }
                "tools/call" => {
                    let Ok(call) = serde_json::from_str::<Call>(params) else { continue };
                    let server = servers.lock().unwrap().get(call.server).cloned();
                    let Some(server) = server else {
                        reply(&frames, &id, "error", r#"{"code":-32000,"message":"no such server"}"#);
                        continue;
                    };
                    let (name, arguments) = (call.name.get(), call.arguments.get());
                    let params = format!(r#"{{"name":{name},"arguments":{arguments}}}"#);
                    server.send(Waiter::Host(id), "tools/call", &params).await;
                }
                _ => reply(&frames, &id, "result", "{}"),
            }
        }
        buffer.drain(..done);
        if stdin.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
            std::process::exit(0);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // Safety: nothing else of this program uses its standard streams.
    let (stdin, stdout) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
    let stdin = pipe::Receiver::from_owned_fd(stdin).expect("stdin is a pipe");
    let stdout = pipe::Sender::from_owned_fd(stdout).expect("stdout is a pipe");
    run(stdin, stdout).await;
}
