//! A host as an editor is one: spawns `pillion serve`, frames messages, answers what it is asked.
//!
//! Blocking, with one reading thread, for the tools of this crate that do one thing at a time.
//! It knows the wire and nothing of what is driven over it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use crate::browser;
use crate::processes::Marker;

/// What the person in front of the host says to a question; the value is `action` and `content` of `mcp.answer`.
type Person = Box<dyn FnMut(&Value) -> Value>;

pub struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    incoming: Receiver<Value>,
    next_id: u64,
    /// Requests whose answers nobody waits for, such as `mcp.answer`.
    in_passing: Vec<u64>,
    /// Logins that were asked for and not answered yet.
    logins: Vec<u64>,
    person: Person,
    marker: Marker,
    /// Every notification so far, in order.
    pub notifications: Vec<(String, Value)>,
    /// Questions the person was asked.
    pub questions: Vec<Value>,
    /// What went wrong beside the request that was waited for.
    problems: Vec<String>,
}

/// How the sidecar is started.
pub struct Setup<'a> {
    /// Further arguments after `serve`.
    pub arguments: &'a [&'a str],
    pub binary: &'a Path,
    /// A folder of this run alone: home, data folder and working directory, so that no run sees another's state.
    pub home: &'a Path,
    pub environment: Vec<(String, String)>,
}

impl Host {
    pub fn start(setup: &Setup) -> Result<Host> {
        let home = setup.home;
        std::fs::create_dir_all(home)?;
        let marker = Marker::new();
        let stderr = std::fs::File::create(home.join("pillion.stderr"))?;
        let mut command = Command::new(setup.binary);
        command
            .arg("serve")
            .args(setup.arguments)
            .current_dir(home)
            .env("HOME", home)
            .env("PILLION_HOME", data_folder(home))
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env(Marker::VARIABLE, marker.value())
            .envs(setup.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", setup.binary.display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("stdout is piped")?;
        let (sender, incoming) = channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            // Ends with the stream, or with the first thing on it that is no frame; the waiting side then says so.
            while let Ok(Some(message)) = read_frame(&mut stdout) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Host {
            child,
            stdin,
            incoming,
            next_id: 0,
            in_passing: Vec::new(),
            logins: Vec::new(),
            person: Box::new(|_| json!({ "action": "accept", "content": {} })),
            marker,
            notifications: Vec::new(),
            questions: Vec::new(),
            problems: Vec::new(),
        })
    }

    /// Starts the sidecar and shakes hands, declaring everything a host can do.
    pub fn open(setup: &Setup) -> Result<Host> {
        let mut host = Host::start(setup)?;
        host.request(
            "initialize",
            json!({
                "processId": std::process::id(),
                "rootUri": null,
                "capabilities": {},
                "workspaceFolders": [{ "uri": format!("file://{}", setup.home.display()), "name": "run" }],
                "initializationOptions": {
                    "clientName": "xtask",
                    "capabilities": { "questions": true, "urlQuestions": true, "openUrl": true, "sampling": true, "roots": true }
                }
            }),
        )?;
        host.notify("initialized", json!({}))?;
        Ok(host)
    }

    /// Replaces the person, who otherwise accepts everything with empty content.
    pub fn ask(&mut self, person: impl FnMut(&Value) -> Value + 'static) {
        self.person = Box::new(person);
    }

    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// A request whose error is a failure of the run.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.call(method, params)?
            .map_err(|error| anyhow!("{method}: {error}"))
    }

    /// A request whose error is of interest: the inner `Err` is the JSON-RPC error object.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>> {
        let id = self.send(method, params)?;
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let message = self
                .receive(deadline)?
                .with_context(|| format!("{method}: no answer within 90 s"))?;
            if message.get("method").is_none() && message["id"] == id {
                return Ok(match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                });
            }
            self.handle(message)?;
        }
    }

    /// Waits until a notification passes the test; those that came before count.
    pub fn wait_for(
        &mut self,
        what: &str,
        limit: Duration,
        test: impl Fn(&str, &Value) -> bool,
    ) -> Result<Value> {
        let deadline = Instant::now() + limit;
        let mut seen = 0;
        loop {
            while seen < self.notifications.len() {
                let (method, params) = &self.notifications[seen];
                if test(method, params) {
                    return Ok(params.clone());
                }
                seen += 1;
            }
            let message = self
                .receive(deadline)?
                .with_context(|| format!("no {what} within {} s", limit.as_secs()))?;
            self.handle(message)?;
        }
    }

    pub fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Ends the session as an editor does, and sees that nothing stays behind.
    pub fn close(mut self) -> Result<()> {
        self.request("shutdown", Value::Null)?;
        self.notify("exit", Value::Null)?;
        let status = self.wait_exit(Duration::from_secs(6))?;
        ensure!(status.success(), "pillion ended with {status}");
        let left = self.marker.gone_within(Duration::from_secs(1));
        ensure!(left.is_empty(), "processes left after exit: {left:?}");
        ensure!(self.problems.is_empty(), "{}", self.problems.join("; "));
        Ok(())
    }

    /// What the machine does when memory runs out: no signal that could be caught.
    pub fn kill(mut self) -> Result<Marker> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.marker.clone())
    }

    fn wait_exit(&mut self, limit: Duration) -> Result<std::process::ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(
                Instant::now() < deadline,
                "pillion did not end within {} s",
                limit.as_secs()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn send(&mut self, method: &str, params: Value) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let body = serde_json::to_string(message)?;
        let stdin = self.stdin.as_mut().context("stdin is open until the end")?;
        write!(stdin, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        Ok(stdin.flush()?)
    }

    fn receive(&mut self, deadline: Instant) -> Result<Option<Value>> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.incoming.recv_timeout(left) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("pillion closed its output or sent something that is no frame")
            }
        }
    }

    fn handle(&mut self, message: Value) -> Result<()> {
        let Some(method) = message["method"].as_str() else {
            if let Some(place) = self.logins.iter().position(|id| message["id"] == *id) {
                self.logins.remove(place);
                // A refused login shows in the server's status.
                if let Some(url) = message["result"]["url"].as_str() {
                    browser::open(url);
                }
                return Ok(());
            }
            let known = self.in_passing.iter().position(|id| message["id"] == *id);
            match known {
                Some(place) => drop(self.in_passing.remove(place)),
                None => self.problems.push(format!("answer to nothing: {message}")),
            }
            if let Some(error) = message.get("error") {
                self.problems.push(format!("refused in passing: {error}"));
            }
            return Ok(());
        };
        let method = method.to_owned();
        if message.get("id").is_some() {
            // The only request to a host is `window/showDocument`: the page counts as opened.
            return self
                .write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "success": true } }));
        }
        let params = message["params"].clone();
        match method.as_str() {
            "mcp.question" => {
                let mut answer = (self.person)(&params);
                answer["question"] = params["id"].clone();
                self.questions.push(params.clone());
                let id = self.send("mcp.answer", answer)?;
                self.in_passing.push(id);
            }
            "mcp.sample" => {
                let text = json!({ "type": "text", "text": "A sampled answer" });
                let result =
                    json!({ "role": "assistant", "content": text, "model": "none", "stopReason": "endTurn" });
                let id = self.send(
                    "mcp.sample.answer",
                    json!({ "sample": params["sample"], "result": result }),
                )?;
                self.in_passing.push(id);
            }
            // A person who logs in whenever a server wants it, but tries again nothing that was refused.
            "mcp.changed"
                if params["status"]["state"] == "needs_auth"
                    && params["status"]["error"]["kind"] == "needs_auth"
                    && self.logins.is_empty() =>
            {
                let target = json!({ "directory": params["directory"], "server": params["server"] });
                let id = self.send("mcp.auth", target)?;
                self.logins.push(id);
            }
            _ => {}
        }
        self.notifications.push((method, params));
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // After an error: end of input ends the sidecar and its servers; only what ignores that is killed.
        if self.wait_exit(Duration::from_secs(6)).is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Where the sidecar of a run keeps its data.
pub fn data_folder(home: &Path) -> PathBuf {
    home.join("pillion")
}

/// Writes the user layer of a run.
pub fn write_servers(home: &Path, servers: Value) -> Result<()> {
    let folder = data_folder(home);
    std::fs::create_dir_all(&folder)?;
    let text = serde_json::to_string_pretty(&json!({ "servers": servers }))?;
    Ok(std::fs::write(folder.join("mcp.json"), text)?)
}

fn read_frame(reader: &mut impl BufRead) -> Result<Option<Value>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').context("a header line")?;
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse::<usize>()?);
        }
    }
    let mut body = vec![0; length.context("Content-Length")?];
    reader.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}
