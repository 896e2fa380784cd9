//! A host: it spawns the real binary and speaks the protocol over its pipes.
//!
//! Whatever comes out is checked on the way in: it must be a frame, a JSON-RPC message, as the
//! published schema says, nothing undeclared, and in the promised order. What breaks that fails the
//! test, whether or not the test looks at that message.

use std::io::{BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::clock::{self, PATIENCE};
use super::frames::{self, Message};
pub use super::inbox::Received;
use super::inbox::{Asked, Inbox};
use super::matching::cut;
use super::{TestEnv, processes};

/// What a JSON-RPC error said.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl RpcError {
    pub fn kind(&self) -> &str {
        self.data["kind"].as_str().unwrap_or("(no kind)")
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.code, self.kind(), self.message)
    }
}

impl std::error::Error for RpcError {}

pub type Outcome = Result<Value, RpcError>;

/// How a host presents itself.
pub struct HostOptions {
    pub initialization: Value,
    /// Further arguments after `serve`.
    pub args: Vec<String>,
    /// `processId` of `initialize`.
    pub process_id: Option<u32>,
}

impl Default for HostOptions {
    fn default() -> Self {
        HostOptions {
            initialization: json!({ "capabilities": { "questions": true } }),
            args: Vec::new(),
            process_id: None,
        }
    }
}

struct Shared {
    inbox: Mutex<Inbox>,
    news: Condvar,
    input: Mutex<Option<ChildStdin>>,
    stderr: Mutex<Vec<u8>>,
}

pub struct Host {
    pub pid: i32,
    /// The result of `initialize`.
    pub initialized: Value,
    directory: String,
    child: Mutex<Child>,
    shared: Arc<Shared>,
    next_id: AtomicI64,
}

impl Host {
    /// A host that can show questions, with the test's project open.
    pub fn start(env: &TestEnv) -> Host {
        Host::start_with(env, HostOptions::default())
    }

    pub fn start_with(env: &TestEnv, options: HostOptions) -> Host {
        let mut host = Host::spawn(env, &options.args);
        let params = host.initialize_params(options.initialization, options.process_id);
        let result = host.request("initialize", params);
        host.initialized = result.unwrap_or_else(|error| panic!("initialize failed: {error}"));
        host.notify("initialized", json!({}));
        host
    }

    pub fn initialize_params(&self, initialization: Value, process_id: Option<u32>) -> Value {
        json!({
            "processId": process_id,
            "clientInfo": { "name": "tests", "version": "1" },
            "rootUri": format!("file://{}", self.directory),
            "capabilities": {},
            "initializationOptions": initialization,
        })
    }

    /// The process alone, without a handshake.
    pub fn spawn(env: &TestEnv, args: &[String]) -> Host {
        let mut command = env.command();
        command.arg("serve").args(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary under test starts");
        let stdout = child.stdout.take().expect("piped");
        let mut stderr = child.stderr.take().expect("piped");
        let shared = Arc::new(Shared {
            inbox: Mutex::default(),
            news: Condvar::new(),
            input: Mutex::new(child.stdin.take()),
            stderr: Mutex::default(),
        });
        let reader = shared.clone();
        thread::spawn(move || reader.read_all(BufReader::with_capacity(1 << 16, stdout)));
        let noise = shared.clone();
        thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(n_bytes @ 1..) = stderr.read(&mut block) {
                noise
                    .stderr
                    .lock()
                    .expect("no panic while held")
                    .extend_from_slice(&block[..n_bytes]);
            }
        });
        Host {
            pid: i32::try_from(child.id()).expect("a process id"),
            initialized: Value::Null,
            directory: env.project().to_string_lossy().into_owned(),
            child: Mutex::new(child),
            shared,
            next_id: AtomicI64::new(1),
        }
    }

    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Members that Pillion told about itself.
    pub fn capabilities(&self) -> &Value {
        &self.initialized["capabilities"]["experimental"]["mcp"]
    }

    /// A request whose answer is waited for.
    #[track_caller]
    pub fn request(&self, method: &str, params: Value) -> Outcome {
        self.send(method, params).wait()
    }

    /// The same with the project as `directory`.
    #[track_caller]
    pub fn ask(&self, method: &str, params: Value) -> Outcome {
        self.send_here(method, params).wait()
    }

    /// A request that must succeed.
    #[track_caller]
    pub fn must(&self, method: &str, params: Value) -> Value {
        match self.ask(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method} failed: {error}\n{}", error.data),
        }
    }

    pub fn send_here(&self, method: &str, mut params: Value) -> Pending<'_> {
        params["directory"] = json!(self.directory);
        self.send(method, params)
    }

    pub fn send(&self, method: &str, params: Value) -> Pending<'_> {
        let id = json!(self.next_id.fetch_add(1, Ordering::Relaxed));
        self.send_as(id, method, &params.to_string())
    }

    /// A request with an id and parameters spelt by the test.
    pub fn send_as(&self, id: Value, method: &str, params: &str) -> Pending<'_> {
        let value: Value = serde_json::from_str(params).unwrap_or_default();
        let token = value.get("workDoneToken").cloned();
        let asked = Asked {
            method: method.to_owned(),
            token,
            answered: false,
        };
        self.inbox().asked.insert(id.to_string(), asked);
        let params = if params.is_empty() {
            String::new()
        } else {
            format!(",\"params\":{params}")
        };
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"{params}}}");
        self.write(&frames::encode(&body));
        Pending { host: self, id }
    }

    pub fn notify(&self, method: &str, params: Value) {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(&frames::encode(&body.to_string()));
    }

    /// Bytes as they are. A pipe that is closed already is no fault of the test.
    pub fn write(&self, bytes: &[u8]) {
        let mut input = self.shared.input.lock().expect("no panic while held");
        if let Some(input) = input.as_mut() {
            let _ = input.write_all(bytes).and_then(|()| input.flush());
        }
    }

    pub fn close_stdin(&self) {
        self.shared.input.lock().expect("no panic while held").take();
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.shared.inbox.lock().expect("no panic while held")
    }

    /// Everything so far.
    pub fn messages(&self) -> Vec<Arc<Received>> {
        self.inbox().messages.clone()
    }

    /// Parameters of every notification of this method so far.
    pub fn notifications(&self, method: &str) -> Vec<Value> {
        let messages = self.messages();
        messages
            .iter()
            .filter(|one| one.message.method.as_deref() == Some(method))
            .map(|one| one.params())
            .collect()
    }

    /// Waits until something about all messages holds.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, probe: impl Fn(&[Arc<Received>]) -> Option<T>) -> T {
        self.wait_within(PATIENCE, &probe).unwrap_or_else(|| {
            panic!(
                "waited {} s in vain for {what}; {}",
                PATIENCE.as_secs(),
                self.recent()
            )
        })
    }

    pub fn wait_within<T>(
        &self,
        limit: Duration,
        probe: impl Fn(&[Arc<Received>]) -> Option<T>,
    ) -> Option<T> {
        let end = Instant::now() + limit;
        let mut inbox = self.inbox();
        loop {
            if let Some(found) = probe(&inbox.messages) {
                drop(inbox);
                self.check();
                return Some(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || inbox.ended {
                drop(inbox);
                self.check();
                return None;
            }
            inbox = self
                .shared
                .news
                .wait_timeout(inbox, left)
                .expect("no panic while held")
                .0;
        }
    }

    /// The first notification, before or after now, that the test looks for.
    #[track_caller]
    pub fn wait_notification(&self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(&format!("notification `{method}`"), |messages| {
            let mut candidates = messages
                .iter()
                .filter(|one| one.message.method.as_deref() == Some(method));
            candidates.find_map(|one| Some(one.params()).filter(|params| wanted(params)))
        })
    }

    /// The record of a server once it is in this state, by `mcp.changed`.
    #[track_caller]
    pub fn wait_state(&self, server: &str, state: &str) -> Value {
        let params = self.wait_notification("mcp.changed", |params| {
            params["server"] == server && params["status"]["state"] == state
        });
        params["status"].clone()
    }

    /// The `index`-th question so far, from 0.
    #[track_caller]
    pub fn wait_question(&self, index: usize) -> Value {
        self.wait_for("a question", |messages| {
            let questions = messages
                .iter()
                .filter(|one| one.message.method.as_deref() == Some("mcp.question"));
            questions.map(|one| one.params()).nth(index)
        })
    }

    pub fn answer(&self, question: &Value, action: &str, content: Option<Value>) -> Outcome {
        let mut params = json!({ "question": question["id"], "action": action });
        if let Some(content) = content {
            params["content"] = content;
        }
        self.request("mcp.answer", params)
    }

    /// `mcp.start`: the record once things settled.
    #[track_caller]
    pub fn start_server(&self, server: &str) -> Value {
        self.must("mcp.start", json!({ "server": server }))["server"].clone()
    }

    /// The record of one server now; `null` when there is none.
    #[track_caller]
    pub fn status(&self, server: &str) -> Value {
        self.must("mcp.status", json!({ "server": server }))["servers"][0].clone()
    }

    pub fn call(&self, server: &str, tool: &str, arguments: Value) -> Outcome {
        self.send_call(server, tool, arguments).wait()
    }

    pub fn send_call(&self, server: &str, tool: &str, arguments: Value) -> Pending<'_> {
        self.send_here(
            "mcp.tool.call",
            json!({ "server": server, "name": tool, "arguments": arguments }),
        )
    }

    pub fn signal(&self, signal: i32) {
        processes::signal(self.pid, signal);
    }

    /// The exit status, once there is one.
    #[track_caller]
    pub fn wait_exit(&self, limit: Duration) -> ExitStatus {
        let status = clock::poll(limit, || self.exited());
        status.unwrap_or_else(|| panic!("no exit within {limit:?}; {}", self.recent()))
    }

    pub fn exited(&self) -> Option<ExitStatus> {
        self.child
            .lock()
            .expect("no panic while held")
            .try_wait()
            .expect("our own child")
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.shared.stderr.lock().expect("no panic while held")).into_owned()
    }

    /// Panics when anything came that should not have come.
    #[track_caller]
    pub fn check(&self) {
        let faults = std::mem::take(&mut self.inbox().faults);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    fn recent(&self) -> String {
        let messages = self.messages();
        let recent = messages.iter().rev().take(8).rev();
        let lines: Vec<String> = recent.map(|one| format!("  ← {}", cut(&one.text))).collect();
        format!(
            "last messages:\n{}\nstderr:\n{}",
            lines.join("\n"),
            cut(&self.stderr())
        )
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.close_stdin();
        let ended = clock::poll(Duration::from_secs(7), || self.exited());
        if ended.is_none() {
            let mut child = self.child.lock().expect("no panic while held");
            let _ = child.kill();
            let _ = child.wait();
        }
        if thread::panicking() {
            eprintln!("{}", self.recent());
            return;
        }
        assert!(
            ended.is_some(),
            "Pillion did not end after end of input; {}",
            self.recent()
        );
        self.check();
    }
}

/// A request on its way.
#[must_use = "an answer that nobody waits for is not tested"]
pub struct Pending<'a> {
    host: &'a Host,
    pub id: Value,
}

impl Pending<'_> {
    /// Result or error, parsed.
    #[track_caller]
    pub fn wait(self) -> Outcome {
        let received = self.wait_raw();
        outcome(&received)
    }

    /// The whole message, also one that a `Value` cannot hold.
    #[track_caller]
    pub fn wait_raw(self) -> Arc<Received> {
        let what = format!("the answer to request {}", self.id);
        self.host.wait_for(&what, |messages| response(messages, &self.id))
    }

    pub fn try_get(&self) -> Option<Outcome> {
        response(&self.host.inbox().messages, &self.id).map(|received| outcome(&received))
    }

    pub fn wait_within(&self, limit: Duration) -> Option<Outcome> {
        let received = self
            .host
            .wait_within(limit, |messages| response(messages, &self.id))?;
        Some(outcome(&received))
    }

    /// `$/cancelRequest`.
    pub fn cancel(&self) {
        self.host.notify("$/cancelRequest", json!({ "id": self.id }));
    }
}

fn response(messages: &[Arc<Received>], id: &Value) -> Option<Arc<Received>> {
    let found = messages
        .iter()
        .rev()
        .find(|one| one.message.method.is_none() && one.message.id.as_ref() == Some(id));
    found.cloned()
}

pub fn outcome(received: &Received) -> Outcome {
    if let Some(error) = &received.message.error {
        let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
        return Err(RpcError {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        });
    }
    let result = received
        .message
        .result
        .as_ref()
        .expect("a response has one of the two");
    Ok(serde_json::from_str(result.get())
        .unwrap_or_else(|error| panic!("result is not a plain value: {error}")))
}

impl Shared {
    fn read_all(&self, mut input: impl std::io::BufRead) {
        loop {
            let text = match frames::read(&mut input) {
                Ok(Some(text)) => text,
                Ok(None) => break,
                Err(error) => {
                    self.inbox
                        .lock()
                        .expect("no panic while held")
                        .faults
                        .push(format!("stdout: {error}"));
                    break;
                }
            };
            self.receive(text);
        }
        self.inbox.lock().expect("no panic while held").ended = true;
        self.news.notify_all();
    }

    fn receive(&self, text: String) {
        let message = match serde_json::from_str::<Message>(&text) {
            Ok(message) => message,
            Err(error) => {
                let mut inbox = self.inbox.lock().expect("no panic while held");
                inbox
                    .faults
                    .push(format!("not a message: {error}: {}", cut(&text)));
                self.news.notify_all();
                return;
            }
        };
        if let (Some(method), Some(id)) = (&message.method, &message.id) {
            self.serve(method, id);
        }
        let mut inbox = self.inbox.lock().expect("no panic while held");
        if let Err(fault) = inbox.admit(&message) {
            inbox.faults.push(format!("{fault}: {}", cut(&text)));
        }
        inbox.messages.push(Arc::new(Received { message, text }));
        self.news.notify_all();
    }

    /// Requests to the host: a page is always opened with success.
    fn serve(&self, method: &str, id: &Value) {
        let reply = if method == "window/showDocument" {
            json!({ "jsonrpc": "2.0", "id": id, "result": { "success": true } })
        } else {
            let error = json!({ "code": -32601, "message": "not a request of this host" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        };
        if let Some(input) = self.input.lock().expect("no panic while held").as_mut() {
            let _ = input.write_all(&frames::encode(&reply.to_string()));
        }
    }
}
