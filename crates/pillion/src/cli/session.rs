//! One command's use of the manager: set up in this process, driven to its end, taken down with all its servers.
//!
//! The commands call the same methods as a host does over the wire. Ctrl-C cancels the call at the server first.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use manager::{Env, Manager, RequestContext};
use protocol::{
    Dir, ErrorKind, HostCapabilities, InitializationOptions, Issue, IssueKind, McpLog, McpProfile, McpStatus,
    MethodSpec, ProfileName, Question, State, Status, Token, methods,
};
use tokio::sync::{Mutex, mpsc};

use super::ask;
use super::exit::Exit;
use super::failure::{Failure, warn};
use super::hint;
use super::progress::{PATIENCE, Watcher};
use super::screen::Screen;
use super::status;
use super::terminal::Terminal;

/// How long a cancelled call may take to come back before it is left behind.
const GRACE: Duration = Duration::from_secs(2);

/// Options of every command that looks at servers.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Print the protocol's result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Act for the workspace DIR instead of the current directory
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Use only the servers of the profile NAME of mcp.json; `all` uses every server
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    pub profile: Option<String>,
}

pub struct Session {
    pub manager: Manager,
    pub directory: Dir,
    pub request: RequestContext,
    pub terminal: Terminal,
    pub watcher: Arc<Watcher>,
    pub json: bool,
    logs: Mutex<mpsc::Receiver<McpLog>>,
}

impl Session {
    /// Carries a command out and leaves nothing behind.
    pub async fn with(
        common: &Common,
        terminal: Terminal,
        command: impl AsyncFnOnce(&Session) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        let directory = workspace(common.directory.as_deref())?;
        let (watcher, questions, logs) = Watcher::new(terminal);
        let watcher = Arc::new(watcher);
        let env = env();
        for told in manager::keep_private(&env) {
            warn(terminal.on_stderr(), &told, None);
        }
        let manager = Manager::new(env, Arc::clone(&watcher) as Arc<_>);
        let options = InitializationOptions {
            server_profile: common.profile.as_deref().map(ProfileName::from),
            ..options(terminal)
        };
        manager.initialize(options, vec![directory.clone()]);
        let session = Session {
            manager,
            directory,
            request: RequestContext::local(),
            terminal,
            watcher,
            json: common.json,
            logs: Mutex::new(logs),
        };
        session.check_profile(common).await?;
        let saved = Screen::save();
        let outcome = session.drive(command(&session), questions).await;
        session.watcher.end();
        if session.watcher.is_asking() {
            saved.restore();
        }
        let outcome = match outcome {
            Err(failure) => Err(session.explained(failure).await),
            outcome => outcome,
        };
        session.manager.shutdown().await;
        match outcome {
            Err(_) if session.request.cancel.is_cancelled() => Err(Failure::interrupted()),
            outcome => outcome,
        }
    }

    /// A profile that does not exist ends the command; nothing has started, since it holds no server.
    async fn check_profile(&self, common: &Common) -> Result<(), Failure> {
        if let Some(name) = &common.profile {
            let params = McpProfile {
                directory: self.directory.clone(),
                profile: Some(ProfileName::from(name.as_str())),
            };
            self.manager.profile(&self.request, params).await?;
        }
        Ok(())
    }

    /// `mcp.status` of all servers of the workspace, or of one.
    pub async fn status(&self, server: Option<&str>) -> Result<Status, Failure> {
        let params = McpStatus {
            directory: self.directory.clone(),
            server: server.map(Into::into),
            ..Default::default()
        };
        let params = checked::<methods::Status>(params)?;
        Ok(self.manager.status(&self.request, params).await?)
    }

    /// What a project brings is unknown until it is trusted; a person is told how.
    async fn explained(&self, failure: Failure) -> Failure {
        let Some(name) = failure.unknown_server() else {
            return failure;
        };
        let Ok(status) = self.status(None).await else {
            return failure;
        };
        let known = status.servers.iter().find(|server| *server.name == *name);
        match known.map(|server| server.state) {
            Some(State::NeedsTrust) => failure.hint(format!(
                "the project brings `{name}`: `pillion trust` shows what it would run, and trusts it"
            )),
            Some(State::Pending) => failure.hint(format!(
                "`pillion approve {name}` shows who asked for it, and asks"
            )),
            _ => {
                if !self.json {
                    status::warn_of_files(&status, self);
                }
                failure
            }
        }
    }

    async fn drive(
        &self,
        command: impl Future<Output = Result<Exit, Failure>>,
        mut questions: mpsc::Receiver<Question>,
    ) -> Result<Exit, Failure> {
        let mut command = pin!(command);
        let mut interrupted = pin!(self.interrupted());
        loop {
            tokio::select! {
                outcome = &mut command => return outcome,
                () = &mut interrupted => return Err(Failure::interrupted()),
                Some(question) = questions.recv() => self.ask(question),
            }
        }
    }

    /// The first Ctrl-C cancels at the server; returns when that takes too long or a second one comes.
    async fn interrupted(&self) {
        let cancel = &self.request.cancel;
        tokio::select! {
            _ = tokio::signal::ctrl_c() => cancel.cancel(),
            () = cancel.cancelled() => {}
        }
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
    }

    /// Asks on a thread of its own: the call goes on, and may withdraw the question, while the person thinks.
    fn ask(&self, question: Question) {
        if self.request.cancel.is_cancelled() {
            return;
        }
        let manager = self.manager.clone();
        let request = self.request.clone();
        let watcher = Arc::clone(&self.watcher);
        let paint = self.terminal.on_stderr();
        tokio::spawn(async move {
            watcher.asking(true);
            let answered = ask::answer(&manager, &request, question, paint).await;
            watcher.asking(false);
            if answered == ask::Ended::Interrupted {
                request.cancel.cancel();
            }
        });
    }

    /// Waits for something that may take a while, with a spinner once it does.
    pub async fn work<T>(&self, title: &str, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        self.watcher.begin(title);
        let done = tokio::select! {
            done = &mut work => Some(done),
            () = tokio::time::sleep(PATIENCE) => None,
        };
        let done = match done {
            Some(done) => done,
            None => {
                self.watcher.show();
                work.await
            }
        };
        self.watcher.end();
        done
    }

    /// The token that makes the manager report progress.
    pub fn token(&self) -> Option<Token> {
        self.terminal.stderr.then_some(Token::Number(1))
    }

    /// The next batch of log lines.
    pub async fn log(&self) -> Option<McpLog> {
        self.logs.lock().await.recv().await
    }

    /// What went wrong on the side; a JSON result holds it already.
    pub fn warn(&self, issues: &[Issue]) {
        if self.json {
            return;
        }
        for issue in issues {
            let message = match (&issue.server, &issue.item) {
                (Some(server), _) if !issue.message.contains(&**server) => {
                    format!("{server}: {}", issue.message)
                }
                (None, Some(item)) if !issue.message.contains(&format!("`{item}`")) => {
                    format!("{item}: {}", issue.message)
                }
                _ => issue.message.clone(),
            };
            let hint = match issue.kind {
                IssueKind::DeclinedUnseen if !self.terminal.asks => {
                    Some(self.terminal.way_to_be_asked().to_owned())
                }
                _ => issue
                    .hint
                    .as_deref()
                    .map(|hint| hint::typed(hint, issue.server.as_deref())),
            };
            warn(self.terminal.on_stderr(), &message, hint.as_deref());
        }
    }
}

/// Parameters as a host may send them: the manager is reached through the same schema as over the wire.
pub fn checked<M: MethodSpec>(params: M::Params) -> Result<M::Params, protocol::Error> {
    let text = serde_json::to_string(&params)
        .map_err(|error| protocol::Error::new(ErrorKind::InvalidParams, error.to_string()))?;
    crate::serve::check::params::<M>(Some(&text))
}

/// Even a killed command line leaves no server behind.
fn env() -> Env {
    let env = Env::from_process();
    #[cfg(unix)]
    let env = env.with_watchdog(Arc::new(crate::watchdog::watchdog_fd));
    env
}

fn options(terminal: Terminal) -> InitializationOptions {
    InitializationOptions {
        client_name: Some("pillion".to_owned()),
        capabilities: Some(HostCapabilities {
            questions: Some(terminal.asks),
            // Servers are told the same in a terminal and in a script: some offer other tools to a client that opens
            // no addresses, and a lock made in the one must hold in the other. Nobody there is declined all the same.
            url_questions: Some(true),
            // A server that is told of roots may prefer them to the folders its entry names: the folder a person
            // happens to stand in must not open itself.
            roots: Some(false),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn profile_name(text: &str) -> Result<String, String> {
    match (1..=64).contains(&text.chars().count()) {
        true => Ok(text.to_owned()),
        false => Err("the name of a profile has 1 to 64 characters".to_owned()),
    }
}

/// The workspace as an absolute path, with symbolic links as the person knows them.
fn workspace(directory: Option<&Path>) -> Result<Dir, Failure> {
    let given = directory.unwrap_or(Path::new("."));
    let path = std::path::absolute(given)
        .map_err(|error| Failure::usage("the current directory is gone").cause(error.to_string()))?;
    if !path.is_dir() {
        return Err(Failure::usage(format!(
            "`{}` is not a directory",
            given.display()
        )));
    }
    let text = path
        .to_str()
        .ok_or_else(|| Failure::usage(format!("`{}` is not UTF-8", given.display())))?;
    Ok(Dir::from(text))
}
