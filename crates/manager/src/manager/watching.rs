//! How servers stand, their start and stop, their logs, and the questions that are open.

use std::sync::Arc;

use protocol::{
    Answer, Answered, ClosedReason, ConfigFile, Dir, Error, ErrorKind, FileFault, Layer, McpLogs,
    McpLogsResult, McpQuestions, McpQuestionsResult, McpRestart, McpRestartResult, McpSampleAnswer,
    McpSampleAnswerResult, McpServerStatus, McpSessionEnd, McpSessionEndResult, McpStart, McpStartResult,
    McpStatus, McpStop, McpStopResult, Revision, Sent, Status, Tier,
};

use super::Manager;
use crate::config::file;
use crate::limits;
use crate::progress::Work;
use crate::server::Server;
use crate::sink::RequestContext;

/// Lines of a log, when the host does not say.
const LOG_LINES: u32 = 200;

impl Manager {
    /// The record of a server as it stands now, as seen from a directory.
    pub(super) fn record(&self, server: &Server, directory: &Dir) -> McpServerStatus {
        let root = self.core.root(directory);
        let shown = self.layers.shown(&root, &server.name);
        let counts = shown.is_some_and(|shown| std::ptr::eq(&*shown, server));
        server.status(self.core.next_sequence(&server.name), counts)
    }

    /// `mcp.status`: starts nothing.
    pub async fn status(&self, _: &RequestContext, params: McpStatus) -> Result<Status, Error> {
        let root = self.root(&params.directory)?;
        self.layers.freshen(&self.core);
        let wanted = |server: &Arc<Server>| params.server.as_ref().is_none_or(|name| *name == server.name);
        let mut servers = self.layers.visible(&root);
        servers.retain(wanted);
        let left_out = keep_own(&mut servers, limits::SHOWN_SERVERS);
        // What a server costs can be known before it is switched on: from the last time it ran.
        for server in &servers {
            server.catalog.seen_tools(server).await;
        }
        let with_costs = params.costs == Some(true);
        let servers = servers
            .iter()
            .map(|server| {
                let mut record = self.record(server, &params.directory);
                if with_costs && record.tokens.is_some() {
                    record.costs = server.catalog.seen_costs().map(|costs| costs.to_vec());
                }
                record
            })
            .collect();
        Ok(Status {
            servers,
            left_out: (left_out > 0).then_some(left_out as u32),
            trust: self.layers.trust_state(&root),
            files: self.files(&root),
            profile: self.chosen_profile(&root),
            pending: self.reviews(&params.directory).len() as u32,
            questions: self.core.questions.count(),
        })
    }

    /// The configuration files with what is wrong with them.
    pub(super) fn files(&self, root: &std::path::Path) -> Vec<ConfigFile> {
        self.layers
            .files(root)
            .into_iter()
            .take(limits::SHOWN_FILES)
            .map(|(layer, file)| shown_file(layer, file))
            .collect()
    }

    /// `mcp.start`: answers when the start is settled.
    pub async fn start(&self, request: &RequestContext, params: McpStart) -> Result<McpStartResult, Error> {
        let server = self.server(&params.directory, &params.server)?;
        let title = format!("Starting {}", server.name);
        let _work = Work::begin(
            &self.core.calls,
            &self.core.sink,
            params.work_done_token.as_ref(),
            &title,
            true,
        )?;
        self.start_and_record(request, &server, &params.directory)
            .await
            .map(|server| McpStartResult { server })
    }

    async fn start_and_record(
        &self,
        request: &RequestContext,
        server: &Arc<Server>,
        directory: &Dir,
    ) -> Result<McpServerStatus, Error> {
        let outcome = tokio::select! {
            outcome = server.start(request.tier) => outcome,
            () = request.cancel.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "cancelled by the host")),
        };
        match outcome {
            // A server that did not start is a result: its record says why.
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::TargetMismatch | ErrorKind::CallCancelled | ErrorKind::Denied
                ) =>
            {
                Err(error)
            }
            // What is refused to another program is nothing that happened to the server.
            Err(error) if request.tier != Tier::Local && error.kind == ErrorKind::CannotAsk => Err(error),
            _ => Ok(self.record(server, directory)),
        }
    }

    /// `mcp.stop`: calls in flight end with `call_cancelled`.
    pub async fn stop(&self, _: &RequestContext, params: McpStop) -> Result<McpStopResult, Error> {
        let server = self.server(&params.directory, &params.server)?;
        server.stop().await;
        Ok(McpStopResult {
            server: self.record(&server, &params.directory),
        })
    }

    /// `mcp.restart`.
    pub async fn restart(
        &self,
        request: &RequestContext,
        params: McpRestart,
    ) -> Result<McpRestartResult, Error> {
        let server = self.server(&params.directory, &params.server)?;
        let title = format!("Restarting {}", server.name);
        let _work = Work::begin(
            &self.core.calls,
            &self.core.sink,
            params.work_done_token.as_ref(),
            &title,
            true,
        )?;
        server.stop().await;
        self.start_and_record(request, &server, &params.directory)
            .await
            .map(|server| McpRestartResult { server })
    }

    /// `mcp.logs`.
    pub async fn logs(&self, _: &RequestContext, params: McpLogs) -> Result<McpLogsResult, Error> {
        let server = self.server(&params.directory, &params.server)?;
        if let Some(follow) = params.follow {
            server.follow(follow);
        }
        let (lines, dropped) = server.log_lines(params.limit.unwrap_or(LOG_LINES) as usize);
        Ok(McpLogsResult { lines, dropped })
    }

    /// `mcp.questions`.
    pub async fn questions(&self, _: &RequestContext, _: McpQuestions) -> Result<McpQuestionsResult, Error> {
        Ok(self.core.questions.list())
    }

    /// `mcp.answer`.
    pub async fn answer(&self, _: &RequestContext, params: Answer) -> Result<Answered, Error> {
        let url = self.core.questions.url_of(&params.question);
        let answered = self.core.questions.answer(&params)?;
        // The person agreed: only now may the host open it.
        if let (Some(url), Sent::Accept) = (url, answered.sent) {
            let shown = self.core.sink.show_document(url);
            tokio::spawn(async move {
                if !shown.await {
                    tracing::debug!("the host did not open the URL of a question; the person has it");
                }
            });
        }
        Ok(answered)
    }

    /// `mcp.sample.answer`.
    pub async fn sample_answer(
        &self,
        _: &RequestContext,
        params: McpSampleAnswer,
    ) -> Result<McpSampleAnswerResult, Error> {
        self.core.samples.answer(params)?;
        Ok(McpSampleAnswerResult {})
    }

    /// `mcp.session.end`.
    pub async fn session_end(
        &self,
        _: &RequestContext,
        params: McpSessionEnd,
    ) -> Result<McpSessionEndResult, Error> {
        self.core
            .questions
            .end(Some(&params.session), &ClosedReason::CallEnded);
        self.core.calls.end_session(&params.session);
        self.core.grants.end_session(&params.session);
        let core = Arc::clone(&self.core);
        let ended = tokio::task::spawn_blocking(move || core.spills.end_session(&params.session));
        // Only a panic could keep files, and the end of the connection removes them too.
        let _ = ended.await;
        Ok(McpSessionEndResult {})
    }
}

fn shown_file(layer: Layer, file: file::ConfigFile) -> ConfigFile {
    let fault = file.fault.as_ref().map(|fault| FileFault {
        kind: ErrorKind::ConfigBroken,
        hint: Some(hint(layer, &file, fault)),
        at: None,
        line: fault.place.map(|place| place.line as u32),
        column: fault.place.map(|place| place.column as u32),
        message: fault.message.clone(),
    });
    ConfigFile {
        path: Dir::from(file.path.display().to_string()),
        layer,
        exists: file.exists,
        revision: file.revision.map(Revision::from),
        fault,
        set_aside: file.set_aside.map(|path| Dir::from(path.display().to_string())),
    }
}

/// What to do about a fault, and what counts until then.
fn hint(layer: Layer, file: &file::ConfigFile, fault: &file::Fault) -> String {
    let mut steps = vec![match fault.place {
        Some(place) => format!("mend line {}", place.line),
        None if file.is_empty => "write `{}` to remove every server".to_owned(),
        None if !file.is_broken && !file.entries.is_empty() => "the other entries are used".to_owned(),
        None => "check that it is a file of yours that may be read".to_owned(),
    }];
    if let Some(copy) = &file.set_aside {
        steps.push(format!("a copy of the text is kept as {}", copy.display()));
    }
    if file.is_kept {
        steps.push("until then counts what it held before".to_owned());
    } else if file.is_broken && layer == Layer::User {
        steps.push(
            "until then its servers do not exist, and your switches count as they stood last".to_owned(),
        );
    } else if file.is_broken {
        steps.push("until then its servers do not exist".to_owned());
    }
    steps.join("; ")
}

/// Leaves so many servers, in their order, those of projects only where there is room. Returns how many went.
fn keep_own(servers: &mut Vec<Arc<Server>>, most: usize) -> usize {
    let all = servers.len();
    let is_own = |server: &Server| !server.is_of_project();
    let own = servers.iter().filter(|server| is_own(server)).count();
    let (mut own_left, mut other_left) = (most, most.saturating_sub(own));
    servers.retain(|server| {
        let left = if is_own(server) {
            &mut own_left
        } else {
            &mut other_left
        };
        let is_kept = *left > 0;
        *left = left.saturating_sub(1);
        is_kept
    });
    all - servers.len()
}
