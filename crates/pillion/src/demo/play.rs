//! The play: what a host does with Pillion, step by step, each with the outcome it must have.

use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use protocol::{
    CallId, CatalogItem, Dir, ErrorKind, McpAdd, McpCatalog, McpPromptGet, McpResourceRead, McpServerStatus,
    McpStart, McpStatus, McpToolCall, ProgressValue, Question, Raw, ServerCapabilitiesMcp, ServerEntry,
    State, Token, methods,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::Args;
use super::home::Home;
use super::host::{Host, HostError, News};
use super::notes::CRASH_CODE;
use super::stage::Stage;
use super::trace::{self, Trace};
use crate::cli::ask::{self, Earlier, Reply};
use crate::cli::failure::Failure;
use crate::cli::{Exit, output};

/// A server that ended is started again within a few seconds.
const RECOVERY: Duration = Duration::from_secs(30);
/// The demo waits for a person, but for nothing else as long as this.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: u64 = 1;

/// Plays, and takes everything down again however it ended.
pub async fn run(args: &Args) -> Result<Exit, Failure> {
    let cannot = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| Failure::new(format!("cannot {what}")).cause(error.to_string())
    };
    let home = Home::create().map_err(cannot("make a temporary folder"))?;
    let program = std::env::current_exe().map_err(cannot("find this program's file"))?;
    let (mut weather, address) = start_weather(&program)
        .await
        .map_err(cannot("start the weather server"))?;
    let stage = Stage::new(args.json);
    stage.open()?;
    let (host, news, mut pillion) = Host::spawn(&program, &home.data_dir(), trace_to(args, &stage))
        .map_err(cannot("start `pillion serve`"))?;
    let directory = Dir::from(home.workspace().to_string_lossy().into_owned());
    let mut play = Play {
        host,
        news,
        stage,
        directory,
        program,
        address,
        bar: None,
        progress: Vec::new(),
        pids: Vec::new(),
    };

    let played = tokio::select! {
        played = play.all() => played,
        _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
    };
    let ended = match played {
        Ok(()) => play.leave(&mut pillion).await,
        Err(failure) => {
            // Whatever went wrong, nothing may stay: an orderly end first, `kill_on_drop` if that fails too.
            let _ = play.host.leave(&mut pillion).await;
            Err(failure)
        }
    };
    // Its stdin ends with the handle.
    drop(weather.stdin.take());
    let _ = tokio::time::timeout(Duration::from_secs(2), weather.wait()).await;
    drop(home);
    ended.and_then(|()| play.stage.close()).map(|()| Exit::Done)
}

fn trace_to(args: &Args, stage: &Stage) -> Trace {
    if !args.trace {
        return Trace::off();
    }
    let paint = stage.terminal.on_stdout();
    Trace::to(move |line| {
        // A reader that left is noticed by the steps themselves.
        let _ = output::line(&trace::paint(paint, line));
    })
}

async fn start_weather(program: &PathBuf) -> std::io::Result<(Child, String)> {
    let mut child = Command::new(program)
        .args(["demo-server", "http"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child
        .stdout
        .take()
        .ok_or_else(|| std::io::Error::other("no stdout"))?;
    let mut address = String::new();
    BufReader::new(stdout).read_line(&mut address).await?;
    Ok((child, address.trim().to_owned()))
}

struct Play {
    host: Host,
    news: mpsc::Receiver<News>,
    stage: Stage,
    directory: Dir,
    program: PathBuf,
    /// Of the weather server.
    address: String,
    bar: Option<ProgressBar>,
    /// Reports of progress of the running call.
    progress: Vec<String>,
    /// Every process of the notes server.
    pids: Vec<u32>,
}

impl Play {
    async fn all(&mut self) -> Result<(), Failure> {
        self.hello().await?;
        self.add().await?;
        self.start().await?;
        self.catalog().await?;
        self.progress().await?;
        self.question("notes", "share_note", json!({ "note": "welcome" }), "Shared \"")
            .await?;
        self.question("weather", "plan_trip", json!({ "city": "Lisbon" }), "Lisbon on ")
            .await?;
        self.resource().await?;
        self.prompt().await?;
        self.crash().await?;
        self.status().await
    }

    async fn hello(&mut self) -> Result<(), Failure> {
        self.stage.step("Say hello", &["initialize", "initialized"])?;
        let params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": "pillion demo", "version": env!("CARGO_PKG_VERSION") },
            "rootUri": null,
            "capabilities": {},
            "initializationOptions": {
                "clientName": "pillion demo",
                "directories": [self.directory],
                "capabilities": { "questions": true },
            },
        });
        let host = self.host.clone();
        let result: Value = self.during(host.request("initialize", &params)).await?;
        let mcp: ServerCapabilitiesMcp =
            serde_json::from_value(result["capabilities"]["experimental"]["mcp"].clone())
                .map_err(|error| wrong("the handshake").cause(error.to_string()))?;
        self.during(host.notify("initialized", &json!({}))).await?;
        let (protocol, count) = (mcp.protocol_version, mcp.methods.len());
        self.stage.say(&format!(
            "pillion {}, protocol {protocol}, {count} methods",
            env!("CARGO_PKG_VERSION")
        ))
    }

    async fn add(&mut self) -> Result<(), Failure> {
        self.stage.step("Add two servers", &["mcp.add"])?;
        let notes = ServerEntry {
            command: Some(self.program.to_string_lossy().into_owned()),
            args: Some(vec!["demo-server".to_owned(), "stdio".to_owned()]),
            ..Default::default()
        };
        let weather = ServerEntry {
            url: Some(self.address.as_str().into()),
            ..Default::default()
        };
        for (name, entry) in [("notes", notes), ("weather", weather)] {
            let params = McpAdd {
                directory: self.directory.clone(),
                name: name.into(),
                entry,
                start: Some(false),
                ..Default::default()
            };
            let host = self.host.clone();
            let written = self.during(host.call(methods::Add, params)).await?;
            expect(written.written, "mcp.add")?;
        }
        self.stage.item(
            "notes",
            "a program of this machine, spoken to over its stdin and stdout",
        )?;
        let text = format!("an address, {}", self.address);
        self.stage.item("weather", &text)
    }

    async fn start(&mut self) -> Result<(), Failure> {
        self.stage.step("Start them", &["mcp.start", "mcp.changed"])?;
        for (name, revision) in [("notes", "2025-11-25"), ("weather", "2026-07-28")] {
            let params = McpStart {
                directory: self.directory.clone(),
                server: name.into(),
                ..Default::default()
            };
            let host = self.host.clone();
            let status = self.during(host.call(methods::Start, params)).await?.server;
            let spoken = status
                .connection
                .as_ref()
                .map(|connection| connection.protocol_version.as_str());
            expect(
                status.state == State::Ready && spoken == Some(revision),
                "mcp.start",
            )?;
            self.pids.extend(status.pid);
            self.stage.item(name, &described(&status))?;
        }
        Ok(())
    }

    async fn catalog(&mut self) -> Result<(), Failure> {
        self.stage.step("See what they offer", &["mcp.catalog"])?;
        let params = McpCatalog {
            directory: self.directory.clone(),
            ..Default::default()
        };
        let host = self.host.clone();
        let catalog = self.during(host.call(methods::Catalog, params)).await?;
        let mut tools = Vec::new();
        let mut resources = Vec::new();
        let mut prompts = Vec::new();
        for item in &catalog.items {
            match item {
                CatalogItem::Tool(tool) => tools.push(format!("{} {}", tool.server, tool.name)),
                CatalogItem::Resource(resource) => resources.push(resource.uri.to_string()),
                CatalogItem::Template(template) => resources.push(template.uri_template.to_string()),
                CatalogItem::Prompt(prompt) => prompts.push(prompt.command.clone()),
            }
        }
        let counts = (tools.len(), resources.len(), prompts.len());
        expect(counts == (6, 3, 1) && catalog.issues.is_empty(), "mcp.catalog")?;
        self.stage.item("tools", &tools.join(", "))?;
        self.stage.item("resources", &resources.join(", "))?;
        self.stage.item("prompts", &prompts.join(", "))
    }

    async fn progress(&mut self) -> Result<(), Failure> {
        self.stage
            .step("Call a tool that takes a while", &["mcp.tool.call", "$/progress"])?;
        let text = self.call("notes", "import_notes", json!({ "count": 5 })).await?;
        expect(
            text == "Imported 5 notes" && !self.progress.is_empty(),
            "the call with progress",
        )?;
        let reports = std::mem::take(&mut self.progress);
        self.stage.item("progress", &reports.join(", "))?;
        self.stage.item("result", &text)
    }

    /// Two eras, one kind of question: the older server sends a request of its own in the middle of the call, the
    /// newer one answers `input_required` and is called again.
    async fn question(
        &mut self,
        server: &str,
        tool: &str,
        arguments: Value,
        begins: &str,
    ) -> Result<(), Failure> {
        let title = match server {
            "notes" => "Answer a question of a server",
            _ => "Answer another; this server speaks a newer revision, a host does not notice",
        };
        self.stage
            .step(title, &["mcp.tool.call", "mcp.question", "mcp.answer"])?;
        let text = self.call(server, tool, arguments).await?;
        // A person at the terminal may say no, and then the server says what it does with that.
        let said_no = self.stage.asks() && (text.starts_with("Kept") || text.starts_with("No trip"));
        expect(text.starts_with(begins) || said_no, "the call with a question")?;
        self.stage.item("result", &text)
    }

    async fn resource(&mut self) -> Result<(), Failure> {
        self.stage.step("Read a resource", &["mcp.resource.read"])?;
        let params = McpResourceRead {
            directory: self.directory.clone(),
            server: "notes".into(),
            uri: "note://ideas".into(),
            ..Default::default()
        };
        let host = self.host.clone();
        let result = self.during(host.call(methods::ResourceRead, params)).await?;
        let result: Value = read(&result.result)?;
        let text = result["contents"][0]["text"].as_str().unwrap_or_default();
        expect(text.contains("sidecar"), "mcp.resource.read")?;
        self.stage.item("note://ideas", text)
    }

    async fn prompt(&mut self) -> Result<(), Failure> {
        self.stage.step("Get a prompt", &["mcp.prompt.get"])?;
        let arguments = [("note", "shopping"), ("style", "one line")];
        let params = McpPromptGet {
            directory: self.directory.clone(),
            server: "notes".into(),
            name: "summarize".to_owned(),
            args: Some(
                arguments
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..Default::default()
        };
        let host = self.host.clone();
        let result = self.during(host.call(methods::PromptGet, params)).await?;
        let result: Value = read(&result.result)?;
        let message = &result["messages"][0];
        let text = message["content"]["text"].as_str().unwrap_or_default();
        expect(
            text.contains("Bread") && text.contains("one line"),
            "mcp.prompt.get",
        )?;
        self.stage
            .item(message["role"].as_str().unwrap_or_default(), text)
    }

    async fn crash(&mut self) -> Result<(), Failure> {
        self.stage
            .step("Survive a crash", &["mcp.tool.call", "mcp.changed"])?;
        let error = match self.try_call("notes", "crash", json!({})).await {
            Err(Problem::Host(HostError::Refused(error))) => error,
            Err(Problem::Host(error)) => return Err(error.into()),
            Err(Problem::Failure(failure)) => return Err(failure),
            Ok(_) => return Err(wrong("the crash")),
        };
        let as_told = error.kind == ErrorKind::Exited && error.data.exit_code == Some(CRASH_CODE);
        expect(as_told, "the crash").map_err(|failure| failure.cause(error.message.clone()))?;
        self.stage
            .item("call", &format!("{} (kind `{}`)", error.message, error.kind))?;
        if let Some(tail) = error.data.stderr_tail.as_deref() {
            self.stage
                .item("stderr", tail.trim_end().lines().last().unwrap_or_default())?;
        }
        let status = self.until_ready("notes").await?;
        self.pids.extend(status.pid);
        self.stage.item("notes", &described(&status))?;
        let text = self.call("notes", "list_notes", json!({})).await?;
        expect(text.contains("welcome"), "the call after the crash")?;
        self.stage.item("list_notes", &text.replace('\n', ", "))
    }

    async fn until_ready(&mut self, server: &str) -> Result<McpServerStatus, Failure> {
        let before = self.pids.clone();
        let ready = async {
            while let Some(news) = self.news.recv().await {
                if let News::Changed(changed) = news
                    && let Some(status) = changed.status
                    && &*status.name == server
                    && status.state == State::Ready
                    && status.pid.is_some_and(|pid| !before.contains(&pid))
                {
                    return Some(status);
                }
            }
            None
        };
        let ready = tokio::time::timeout(RECOVERY, ready).await;
        ready.ok().flatten().ok_or_else(|| wrong("the recovery"))
    }

    async fn status(&mut self) -> Result<(), Failure> {
        self.stage.step("Look at the whole", &["mcp.status"])?;
        let params = McpStatus {
            directory: self.directory.clone(),
            ..Default::default()
        };
        let host = self.host.clone();
        let status = self.during(host.call(methods::Status, params)).await?;
        for server in &status.servers {
            expect(server.state == State::Ready, "mcp.status")?;
            self.stage.item(&server.name, &described(server))?;
        }
        expect(status.servers.len() == 2, "mcp.status")
    }

    async fn leave(&mut self, pillion: &mut Child) -> Result<(), Failure> {
        self.stage.step("Leave", &["shutdown", "exit"])?;
        let status = self.host.leave(pillion).await?;
        expect(status.success(), "exit").map_err(|failure| failure.cause(status.to_string()))?;
        expect(
            !self.pids.iter().any(|pid| is_alive(*pid)),
            "the end of the servers",
        )?;
        self.stage.say("pillion ended, and its servers before it")
    }

    /// Calls a tool and gives the text of its result.
    async fn call(&mut self, server: &str, tool: &str, arguments: Value) -> Result<String, Failure> {
        self.try_call(server, tool, arguments)
            .await
            .map_err(|problem| match problem {
                Problem::Host(error) => error.into(),
                Problem::Failure(failure) => failure,
            })
    }

    async fn try_call(&mut self, server: &str, tool: &str, arguments: Value) -> Result<String, Problem> {
        self.progress.clear();
        let params = McpToolCall {
            directory: self.directory.clone(),
            server: server.into(),
            name: tool.to_owned(),
            arguments: Some(Raw::from(&arguments)),
            call: Some(CallId::from(tool)),
            work_done_token: Some(Token::Number(TOKEN)),
            ..Default::default()
        };
        let host = self.host.clone();
        let called = self.attend(host.call(methods::ToolCall, params)).await;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let result: Value = read(&called?.result).map_err(Problem::Failure)?;
        Ok(result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }

    async fn during<T>(&mut self, work: impl Future<Output = Result<T, HostError>>) -> Result<T, Failure> {
        self.attend(work).await.map_err(|problem| match problem {
            Problem::Host(error) => error.into(),
            Problem::Failure(failure) => failure,
        })
    }

    /// Waits for an answer and meanwhile does what a host does: listens.
    async fn attend<T>(&mut self, work: impl Future<Output = Result<T, HostError>>) -> Result<T, Problem> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done.map_err(Problem::Host),
                Some(news) = self.news.recv() => self.hear(news).await.map_err(Problem::Failure)?,
                () = tokio::time::sleep(PATIENCE) => return Err(Problem::Failure(wrong("an answer in time"))),
            }
        }
    }

    async fn hear(&mut self, news: News) -> Result<(), Failure> {
        match news {
            News::Changed(_) => Ok(()),
            News::Question(question) => self.answer(*question).await,
            News::Progress(progress) => {
                if let ProgressValue::Report(report) = progress.value {
                    let message = report.message.unwrap_or_default();
                    if self.stage.draws() {
                        let bar = self.bar.get_or_insert_with(bar);
                        bar.set_position(report.percentage.unwrap_or_default().into());
                        bar.set_message(message.clone());
                    }
                    self.progress.push(message);
                }
                Ok(())
            }
        }
    }

    /// Asks the person, or takes the form's defaults where nobody is.
    async fn answer(&mut self, question: Question) -> Result<(), Failure> {
        let mut earlier = None;
        loop {
            let reply = if self.stage.asks() {
                let paint = self.stage.terminal.on_stderr();
                let question = question.clone();
                tokio::task::spawn_blocking(move || ask::ask(&question, earlier, paint))
                    .await
                    .unwrap_or(Reply::Cancel)
            } else {
                self.default_reply(&question)?
            };
            if reply == Reply::Interrupted {
                return Err(Failure::interrupted());
            }
            let answer = ask::to_answer(question.id(), &reply);
            let answered = self.host.call(methods::Answer, answer).await?;
            let Reply::Accept(content) = reply else {
                return Ok(());
            };
            if answered.problems.is_empty() {
                return Ok(());
            }
            expect(self.stage.asks(), "mcp.answer")?;
            for problem in &answered.problems {
                self.stage.say(&ask::complaint(&question, problem))?;
            }
            earlier = Some(Earlier::new(content, &answered.problems));
        }
    }

    fn default_reply(&mut self, question: &Question) -> Result<Reply, Failure> {
        let Question::Form(form) = question else {
            return Err(wrong("the question"));
        };
        let content = ask::defaults(form).ok_or_else(|| wrong("the question's defaults"))?;
        self.stage
            .item("asked", &format!("{}: {}", form.title, form.message))?;
        let values = serde_json::to_string(&content).unwrap_or_default();
        self.stage.item(
            "answered",
            &format!("{values} (the defaults; no terminal to ask at)"),
        )?;
        Ok(Reply::Accept(content))
    }
}

/// Why a call gave no result: Pillion's answer, or something on this side.
enum Problem {
    Host(HostError),
    Failure(Failure),
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        match error {
            HostError::Refused(error) => error.into(),
            other => {
                let failure = Failure::new(other.to_string());
                match std::error::Error::source(&other) {
                    Some(source) => failure.cause(source.to_string()),
                    None => failure,
                }
            }
        }
    }
}

fn wrong(what: &str) -> Failure {
    Failure::new(format!("the demo did not come out as expected at {what}"))
        .hint("`pillion demo --trace` shows every message")
}

fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(wrong(what)) }
}

fn read(raw: &Raw) -> Result<Value, Failure> {
    serde_json::from_str(raw.get()).map_err(|error| wrong("reading a result").cause(error.to_string()))
}

/// `ready, stdio, 2025-11-25, 4 tools`.
fn described(server: &McpServerStatus) -> String {
    let mut parts = vec![server.state.as_str().to_owned()];
    if let Some(connection) = &server.connection {
        parts.push(connection.transport.as_str().to_owned());
        parts.push(format!("revision {}", connection.protocol_version));
    }
    if let Some(pid) = server.pid {
        parts.push(format!("process {pid}"));
    }
    parts.join(", ")
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(100);
    if let Ok(style) = ProgressStyle::with_template("    progress    [{bar:20}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    false
}
