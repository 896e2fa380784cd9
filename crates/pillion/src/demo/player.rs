//! What the host of the demo does while it waits: it hears news, answers questions, shows progress.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use protocol::{
    CallId, Dir, McpServerStatus, McpToolCall, MethodSpec, ProgressValue, Question, Raw, Token, methods,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::host::{Host, HostError, News};
use super::stage::Stage;
use crate::cli::ask::{self, Earlier, Reply};
use crate::cli::failure::Failure;

/// The demo waits for a person, but for nothing else as long as this.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: u64 = 1;

pub struct Player {
    pub host: Host,
    pub news: mpsc::Receiver<News>,
    pub stage: Stage,
    pub directory: Dir,
    /// Reports of progress of the last call.
    pub progress: Vec<String>,
    /// The newest record of each server.
    pub latest: HashMap<String, McpServerStatus>,
    bar: Option<ProgressBar>,
}

impl Player {
    pub fn new(host: Host, news: mpsc::Receiver<News>, stage: Stage, directory: Dir) -> Player {
        Player {
            host,
            news,
            stage,
            directory,
            progress: Vec::new(),
            latest: HashMap::new(),
            bar: None,
        }
    }

    /// One of Pillion's methods.
    pub async fn ask<M: MethodSpec>(&mut self, method: M, params: M::Params) -> Result<M::Result, Failure> {
        let host = self.host.clone();
        Ok(self.attend(host.call(method, params)).await?)
    }

    /// A request that is none of Pillion's own, such as `initialize`.
    pub async fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let host = self.host.clone();
        Ok(self.attend(host.request(method, params)).await?)
    }

    /// Calls a tool and gives the text of its result.
    pub async fn call(&mut self, server: &str, tool: &str, arguments: Value) -> Result<String, Failure> {
        Ok(self.try_call(server, tool, arguments).await?)
    }

    pub async fn try_call(&mut self, server: &str, tool: &str, arguments: Value) -> Result<String, Problem> {
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

    /// Waits for an answer and meanwhile does what a host does: listens.
    async fn attend<T>(&mut self, work: impl Future<Output = Result<T, HostError>>) -> Result<T, Problem> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                // What belongs to a request comes before its answer, and is heard before it.
                biased;
                Some(news) = self.news.recv() => self.hear(news).await.map_err(Problem::Failure)?,
                done = &mut work => return done.map_err(Problem::Host),
                () = tokio::time::sleep(PATIENCE) => return Err(Problem::Failure(wrong("an answer in time"))),
            }
        }
    }

    pub async fn hear(&mut self, news: News) -> Result<(), Failure> {
        match news {
            News::Changed(changed) => {
                if let Some(status) = changed.status {
                    self.latest.insert(status.name.to_string(), status);
                }
                Ok(())
            }
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
        self.stage
            .item("answered", &format!("{values} (the defaults; nobody is asked)"))?;
        Ok(Reply::Accept(content))
    }
}

/// Why a call gave no result: Pillion's answer, or something on this side.
pub enum Problem {
    Host(HostError),
    Failure(Failure),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        match problem {
            Problem::Host(error) => error.into(),
            Problem::Failure(failure) => failure,
        }
    }
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

pub fn wrong(what: &str) -> Failure {
    Failure::new(format!("the demo did not come out as expected at {what}"))
        .hint("`pillion demo --trace` shows every message")
}

pub fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(wrong(what)) }
}

pub fn read(raw: &Raw) -> Result<Value, Failure> {
    serde_json::from_str(raw.get()).map_err(|error| wrong("reading a result").cause(error.to_string()))
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(100);
    if let Ok(style) = ProgressStyle::with_template("    progress          [{bar:20}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
