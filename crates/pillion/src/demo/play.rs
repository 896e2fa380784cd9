//! The play: what a host does with Pillion, step by step, each with the outcome it must have.

use std::path::PathBuf;
use std::time::Duration;

use protocol::{
    CatalogItem, Dir, ErrorKind, McpAdd, McpCatalog, McpPromptGet, McpResourceRead, McpServerStatus,
    McpStart, McpStatus, ServerCapabilitiesMcp, ServerEntry, State, methods,
};
use serde_json::{Value, json};
use tokio::process::Child;

use super::Args;
use super::home::Home;
use super::host::{Host, HostError};
use super::notes::CRASH_CODE;
use super::player::{Player, Problem, expect, read, wrong};
use super::servers::HttpServer;
use super::stage::Stage;
use super::trace::{self, Trace};
use crate::cli::failure::Failure;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, output};

/// A server that ended is started again within a few seconds.
const RECOVERY: Duration = Duration::from_secs(30);

/// Plays, and takes everything down again however it ended.
pub async fn run(args: &Args, terminal: Terminal) -> Result<Exit, Failure> {
    let cannot = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| Failure::new(format!("cannot {what}")).cause(error.to_string())
    };
    let home = Home::create().map_err(cannot("make a temporary folder"))?;
    let program = std::env::current_exe().map_err(cannot("find this program's file"))?;
    let stage = Stage::new(args.json, terminal);
    let weather = HttpServer::start(&program, "http", Trace::off())
        .await
        .map_err(cannot("start the weather server"))?;
    let calendar = HttpServer::start(&program, "login", trace_to(args, &stage))
        .await
        .map_err(cannot("start the calendar server"))?;
    stage.open()?;
    let (host, news, mut pillion) = Host::spawn(&program, &home.data_dir(), trace_to(args, &stage))
        .map_err(cannot("start `pillion serve`"))?;
    let directory = Dir::from(home.workspace().to_string_lossy().into_owned());
    let player = Player::new(host, news, stage, directory);
    let mut play = Play {
        player,
        program,
        weather: weather.address.clone(),
        calendar: calendar.address.clone(),
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
            let _ = play.player.host.leave(&mut pillion).await;
            Err(failure)
        }
    };
    weather.end().await;
    calendar.end().await;
    drop(home);
    ended
        .and_then(|()| play.player.stage.close())
        .map(|()| Exit::Done)
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

pub struct Play {
    pub player: Player,
    /// This very program, whose `demo-server` the servers are.
    program: PathBuf,
    /// The address of the weather server.
    weather: String,
    /// That of the calendar, which wants a login.
    pub calendar: String,
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
        self.log_in().await?;
        self.outlive_a_token().await?;
        self.log_out().await?;
        self.status().await
    }

    async fn hello(&mut self) -> Result<(), Failure> {
        self.player
            .stage
            .step("Say hello", &["initialize", "initialized"])?;
        let params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": "pillion demo", "version": env!("CARGO_PKG_VERSION") },
            "rootUri": null,
            "capabilities": {},
            "initializationOptions": {
                "clientName": "pillion demo",
                "directories": [self.player.directory],
                "capabilities": { "questions": true },
            },
        });
        let result: Value = self.player.request("initialize", &params).await?;
        let mcp: ServerCapabilitiesMcp =
            serde_json::from_value(result["capabilities"]["experimental"]["mcp"].clone())
                .map_err(|error| wrong("the handshake").cause(error.to_string()))?;
        self.player.host.notify("initialized", &json!({})).await?;
        let (protocol, count) = (mcp.protocol_version, mcp.methods.len());
        self.player.stage.say(&format!(
            "pillion {}, protocol {protocol}, {count} methods",
            env!("CARGO_PKG_VERSION")
        ))
    }

    async fn add(&mut self) -> Result<(), Failure> {
        self.player.stage.step("Add two servers", &["mcp.add"])?;
        let notes = ServerEntry {
            command: Some(self.program.to_string_lossy().into_owned()),
            args: Some(vec!["demo-server".to_owned(), "stdio".to_owned()]),
            ..Default::default()
        };
        let weather = ServerEntry {
            url: Some(self.weather.as_str().into()),
            ..Default::default()
        };
        for (name, entry) in [("notes", notes), ("weather", weather)] {
            self.write(name, entry).await?;
        }
        self.player.stage.item(
            "notes",
            "a program of this machine, spoken to over its stdin and stdout",
        )?;
        let text = format!("an address, {}", self.weather);
        self.player.stage.item("weather", &text)
    }

    pub async fn write(&mut self, name: &str, entry: ServerEntry) -> Result<(), Failure> {
        let params = McpAdd {
            directory: self.player.directory.clone(),
            name: name.into(),
            entry,
            start: Some(false),
            ..Default::default()
        };
        let written = self.player.ask(methods::Add, params).await?;
        expect(written.written, "mcp.add")
    }

    async fn start(&mut self) -> Result<(), Failure> {
        self.player
            .stage
            .step("Start them", &["mcp.start", "mcp.changed"])?;
        for (name, revision) in [("notes", "2025-11-25"), ("weather", "2026-07-28")] {
            let status = self.begin(name).await?;
            let spoken = status
                .connection
                .as_ref()
                .map(|connection| connection.protocol_version.as_str());
            expect(
                status.state == State::Ready && spoken == Some(revision),
                "mcp.start",
            )?;
            self.pids.extend(status.pid);
            self.player.stage.item(name, &described(&status))?;
        }
        Ok(())
    }

    pub async fn begin(&mut self, server: &str) -> Result<McpServerStatus, Failure> {
        let params = McpStart {
            directory: self.player.directory.clone(),
            server: server.into(),
            ..Default::default()
        };
        Ok(self.player.ask(methods::Start, params).await?.server)
    }

    async fn catalog(&mut self) -> Result<(), Failure> {
        self.player.stage.step("See what they offer", &["mcp.catalog"])?;
        let params = McpCatalog {
            directory: self.player.directory.clone(),
            ..Default::default()
        };
        let catalog = self.player.ask(methods::Catalog, params).await?;
        let mut tools = Vec::new();
        let mut resources = Vec::new();
        let mut prompts = Vec::new();
        for item in &catalog.items {
            match item {
                CatalogItem::Tool(tool) => tools.push(format!("{}/{}", tool.server, tool.name)),
                CatalogItem::Resource(resource) => resources.push(resource.uri.to_string()),
                CatalogItem::Template(template) => resources.push(template.uri_template.to_string()),
                CatalogItem::Prompt(prompt) => prompts.push(prompt.command.clone()),
            }
        }
        let counts = (tools.len(), resources.len(), prompts.len());
        expect(counts == (6, 3, 1) && catalog.issues.is_empty(), "mcp.catalog")?;
        for server in ["notes", "weather"] {
            let own: Vec<&str> = tools
                .iter()
                .filter_map(|tool| tool.strip_prefix(server)?.strip_prefix('/'))
                .collect();
            self.player
                .stage
                .item(&format!("tools of {server}"), &own.join(", "))?;
        }
        self.player.stage.item("resources", &resources.join(", "))?;
        self.player.stage.item("prompts", &prompts.join(", "))
    }

    async fn progress(&mut self) -> Result<(), Failure> {
        self.player
            .stage
            .step("Call a tool that takes a while", &["mcp.tool.call", "$/progress"])?;
        let text = self
            .player
            .call("notes", "import_notes", json!({ "count": 5 }))
            .await?;
        expect(
            text == "Imported 5 notes" && !self.player.progress.is_empty(),
            "the call with progress",
        )?;
        let reports = std::mem::take(&mut self.player.progress);
        self.player.stage.item("progress", &reports.join(", "))?;
        self.player.stage.item("result", &text)
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
            _ => "Answer a question of a server that speaks the newer revision",
        };
        self.player
            .stage
            .step(title, &["mcp.tool.call", "mcp.question", "mcp.answer"])?;
        let text = self.player.call(server, tool, arguments).await?;
        // A person at the terminal may say no, and then the server says what it does with that.
        let said_no = self.player.stage.asks() && (text.starts_with("Kept") || text.starts_with("No trip"));
        expect(text.starts_with(begins) || said_no, "the call with a question")?;
        self.player.stage.item("result", &text)
    }

    async fn resource(&mut self) -> Result<(), Failure> {
        self.player
            .stage
            .step("Read a resource", &["mcp.resource.read"])?;
        let params = McpResourceRead {
            directory: self.player.directory.clone(),
            server: "notes".into(),
            uri: "note://ideas".into(),
            ..Default::default()
        };
        let result = self.player.ask(methods::ResourceRead, params).await?;
        let result: Value = read(&result.result)?;
        let text = result["contents"][0]["text"].as_str().unwrap_or_default();
        expect(text.contains("sidecar"), "mcp.resource.read")?;
        self.player.stage.item("note://ideas", text)
    }

    async fn prompt(&mut self) -> Result<(), Failure> {
        self.player.stage.step("Get a prompt", &["mcp.prompt.get"])?;
        let arguments = [("note", "shopping"), ("style", "one line")];
        let params = McpPromptGet {
            directory: self.player.directory.clone(),
            server: "notes".into(),
            name: "summarize".to_owned(),
            args: Some(
                arguments
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..Default::default()
        };
        let result = self.player.ask(methods::PromptGet, params).await?;
        let result: Value = read(&result.result)?;
        let message = &result["messages"][0];
        let text = message["content"]["text"].as_str().unwrap_or_default();
        expect(
            text.contains("Bread") && text.contains("one line"),
            "mcp.prompt.get",
        )?;
        self.player
            .stage
            .item(message["role"].as_str().unwrap_or_default(), text)
    }

    async fn crash(&mut self) -> Result<(), Failure> {
        self.player
            .stage
            .step("Survive a crash", &["mcp.tool.call", "mcp.changed"])?;
        let error = self.refused("notes", "crash").await?;
        let as_told = error.kind == ErrorKind::Exited && error.data.exit_code == Some(CRASH_CODE);
        expect(as_told, "the crash").map_err(|failure| failure.cause(error.message.clone()))?;
        self.player
            .stage
            .item("call", &format!("{} (kind `{}`)", error.message, error.kind))?;
        let status = self.until_ready("notes").await?;
        self.pids.extend(status.pid);
        self.player.stage.item("notes", &described(&status))?;
        let text = self.player.call("notes", "list_notes", json!({})).await?;
        expect(text.contains("welcome"), "the call after the crash")?;
        self.player.stage.item("list_notes", &text.replace('\n', ", "))
    }

    /// Calls a tool that must fail, and gives Pillion's words for it.
    pub async fn refused(&mut self, server: &str, tool: &str) -> Result<protocol::Error, Failure> {
        match self.player.try_call(server, tool, json!({})).await {
            Err(Problem::Host(HostError::Refused(error))) => Ok(error),
            Err(problem) => Err(problem.into()),
            Ok(_) => Err(wrong(tool)),
        }
    }

    /// Hears the news until the server is ready in a process that is not known yet.
    pub async fn until_ready(&mut self, server: &str) -> Result<McpServerStatus, Failure> {
        let deadline = tokio::time::Instant::now() + RECOVERY;
        loop {
            if let Some(status) = self.player.latest.get(server)
                && status.state == State::Ready
                && status.pid.is_none_or(|pid| !self.pids.contains(&pid))
            {
                return Ok(status.clone());
            }
            let news = tokio::time::timeout_at(deadline, self.player.news.recv()).await;
            let Ok(Some(news)) = news else {
                return Err(wrong("waiting for a server to be ready"));
            };
            self.player.hear(news).await?;
        }
    }

    async fn status(&mut self) -> Result<(), Failure> {
        self.player.stage.step("Look at the whole", &["mcp.status"])?;
        let params = McpStatus {
            directory: self.player.directory.clone(),
            ..Default::default()
        };
        let status = self.player.ask(methods::Status, params).await?;
        for server in &status.servers {
            let state = match &*server.name {
                "calendar" => State::NeedsAuth,
                _ => State::Ready,
            };
            expect(server.state == state, "mcp.status")?;
            self.player.stage.item(&server.name, &described(server))?;
        }
        expect(status.servers.len() == 3, "mcp.status")
    }

    async fn leave(&mut self, pillion: &mut Child) -> Result<(), Failure> {
        self.player.stage.step("Leave", &["shutdown", "exit"])?;
        let status = self.player.host.leave(pillion).await?;
        expect(status.success(), "exit").map_err(|failure| failure.cause(status.to_string()))?;
        expect(
            !self.pids.iter().any(|pid| is_alive(*pid)),
            "the end of the servers",
        )?;
        self.player.stage.say("pillion ended, and its servers before it")
    }
}

/// `ready, stdio, 2025-11-25, 4 tools`.
pub fn described(server: &McpServerStatus) -> String {
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

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    false
}
