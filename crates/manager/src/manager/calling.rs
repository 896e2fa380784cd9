//! Calls: of tools, and the one way that every request takes which may ask questions, be cancelled and report progress.

use std::sync::Arc;
use std::time::Duration;

use mcp::{CallOptions, Connection};
use protocol::{
    CallId, CatalogItem, Category, ClosedReason, Dir, Error, ErrorKind, HiddenReason, Issue, IssueKind,
    McpCallCancel, McpCallCancelResult, McpToolCall, McpToolCallResult, Raw, Session, Token,
};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::CancellationToken;

use super::{Manager, near};
use crate::calls::{Call, CallGuard, NewCall};
use crate::catalog::items::{self, Item, List, Tool};
use crate::consent::audit;
use crate::limits;
use crate::progress::Work;
use crate::server::Server;
use crate::sink::RequestContext;

/// JSON-RPC code of 2026-07-28: headers and body of a request do not agree. Nothing was carried out.
const HEADER_MISMATCH: i64 = -32020;

/// The common part of all calls.
pub(super) struct Wish<'a> {
    pub directory: &'a Dir,
    pub server: &'a str,
    pub call: Option<&'a CallId>,
    pub session: Option<&'a Session>,
    pub timeout_ms: Option<u64>,
    pub token: Option<&'a Token>,
    pub title: String,
    pub tool: Option<&'a str>,
    /// The request of the host that this is a part of.
    pub within: Option<&'a Call>,
}

macro_rules! wish {
    ($params:expr, $title:expr, $tool:expr) => {
        Wish {
            directory: &$params.directory,
            server: &$params.server,
            call: $params.call.as_ref(),
            session: $params.session.as_ref(),
            timeout_ms: $params.timeout_ms,
            token: $params.work_done_token.as_ref(),
            title: $title,
            tool: $tool,
            within: None,
        }
    };
}
pub(super) use wish;

/// What is sent to the server, once it runs.
pub(super) struct Sent {
    pub method: &'static str,
    pub params: Box<RawValue>,
    /// For a call of a tool: the list that has it, and where it stands there.
    pub tool: Option<(Arc<List>, usize)>,
}

impl Sent {
    fn tool(&self) -> Option<&Tool> {
        let (list, index) = self.tool.as_ref()?;
        list.items.get(*index)?.tool.as_ref()
    }
}

impl Manager {
    /// `mcp.tool.call`: a person's call. Nobody is asked, but the allow and deny lists of the entry hold.
    pub async fn tool_call(
        &self,
        request: &RequestContext,
        params: McpToolCall,
    ) -> Result<McpToolCallResult, Error> {
        let wish = wish!(params, format!("Calling {}", params.name), Some(&params.name));
        let (result, issues) = self
            .use_tool(request, &wish, &params.name, params.arguments.as_ref())
            .await?;
        Ok(McpToolCallResult {
            result: Raw(result),
            issues,
        })
    }

    /// The one way to a tool, whoever asks: what the lists of the entry exclude is not called.
    pub(super) async fn use_tool(
        &self,
        request: &RequestContext,
        wish: &Wish<'_>,
        name: &str,
        arguments: Option<&Raw>,
    ) -> Result<(Box<RawValue>, Vec<Issue>), Error> {
        self.call(request, wish, async |server, connection| {
            let (name, tool) = find_tool(server, connection, name).await?;
            let name = to_raw_value(&name).map_err(internal)?;
            let text = match arguments {
                Some(arguments) => {
                    format!("{{\"name\":{},\"arguments\":{}}}", name.get(), arguments.get())
                }
                None => format!("{{\"name\":{}}}", name.get()),
            };
            Ok(Sent {
                method: "tools/call",
                params: RawValue::from_string(text).map_err(internal)?,
                tool,
            })
        })
        .await
    }

    /// `mcp.call.cancel`.
    pub async fn call_cancel(
        &self,
        _: &RequestContext,
        params: McpCallCancel,
    ) -> Result<McpCallCancelResult, Error> {
        Ok(McpCallCancelResult {
            cancelled: self.core.calls.cancel(&params.call),
        })
    }

    /// Runs one request that may ask questions, be cancelled and report progress.
    pub(super) async fn call(
        &self,
        request: &RequestContext,
        wish: &Wish<'_>,
        prepare: impl AsyncFnOnce(&Arc<Server>, &Connection) -> Result<Sent, Error>,
    ) -> Result<(Box<RawValue>, Vec<Issue>), Error> {
        let server = self.server(wish.directory, wish.server)?;
        let directory = self.open(wish.directory);
        let new = NewCall {
            id: wish.call,
            session: wish.session,
            directory: &directory,
            server: &server.name,
            tool: wish.tool,
            within: wish.within,
        };
        let mut guard = self.core.calls.begin(request, &self.core.questions, &new)?;
        let work = Work::begin(&self.core.calls, &self.core.sink, wish.token, &wish.title, true)?;
        let call = Arc::clone(&guard.call);
        let outcome = self.run(&server, &guard, &work, wish, prepare).await;
        // What belongs to the call is sent before its answer: questions are closed, progress ends.
        guard.reason = match &outcome {
            _ if call.cancel.is_cancelled() => ClosedReason::CallCancelled,
            Err(error) if error.kind == ErrorKind::Exited => ClosedReason::ServerGone,
            _ => ClosedReason::CallEnded,
        };
        drop(work);
        drop(guard);
        if let Some(tool) = wish.tool {
            self.core.audit(&audit::Event::Call {
                directory: &directory,
                server: &server.name,
                tool,
                by: request.tier,
                outcome: outcome
                    .as_ref()
                    .map_or_else(|error| error.kind.as_str(), |_| "ok"),
            });
        }
        match outcome {
            Ok((result, mut issues)) => {
                issues.extend(call.take_issues());
                Ok((result, issues))
            }
            Err(_) if call.cancel.is_cancelled() => Err(call.cancelled_error(request)),
            Err(error) if error.kind == ErrorKind::CallCancelled && self.core.closing.is_cancelled() => {
                Err(error.by("shutdown"))
            }
            Err(error) => Err(error),
        }
    }

    async fn run(
        &self,
        server: &Arc<Server>,
        guard: &CallGuard<'_>,
        work: &Work<'_>,
        wish: &Wish<'_>,
        prepare: impl AsyncFnOnce(&Arc<Server>, &Connection) -> Result<Sent, Error>,
    ) -> Result<(Box<RawValue>, Vec<Issue>), Error> {
        let _use = server.in_use();
        let cancel = &guard.call.cancel;
        let cancelled = || Error::new(ErrorKind::CallCancelled, "the call was cancelled").by("host");
        let _turn = if server.entry().parallel == Some(false) {
            tokio::select! {
                turn = server.turn.lock() => Some(turn),
                () = cancel.cancelled() => return Err(cancelled()),
            }
        } else {
            None
        };
        let ready = async {
            let connection = server.connection(guard.call.tier).await?;
            let sent = prepare(server, &connection).await?;
            Ok::<_, Error>((connection, sent))
        };
        let (connection, sent) = tokio::select! {
            ready = ready => ready?,
            () = cancel.cancelled() => return Err(cancelled()),
        };
        let timeout = wish
            .timeout_ms
            .map_or_else(|| server.call_timeout(), Duration::from_millis);
        let options = self.options(timeout, cancel, guard.call.tag, work, sent.tool());
        let has_schema = sent.tool.is_some();
        let mut sent = sent;
        let mut outcome = connection
            .request(sent.method, sent.params.clone(), options)
            .await;
        if sent.tool.is_some()
            && matches!(
                outcome,
                Err(mcp::CallError::Rpc {
                    code: HEADER_MISMATCH,
                    ..
                })
            )
        {
            // The server wants other arguments repeated in headers than its list said: read the list again, once.
            server.catalog.invalidate(mcp::ListKind::Tools);
            sent.tool = find_tool(server, &connection, wish.tool.unwrap_or_default())
                .await?
                .1;
            let options = self.options(timeout, cancel, guard.call.tag, work, sent.tool());
            outcome = connection
                .request(sent.method, sent.params.clone(), options)
                .await;
        }
        let result = outcome.map_err(|error| server.call_error(error))?;
        let mut issues = Vec::new();
        if has_schema && let Some(tool) = sent.tool() {
            issues.extend(check_structure(
                server,
                wish.tool.unwrap_or_default(),
                tool,
                &result,
            ));
        }
        Ok((result, issues))
    }

    fn options(
        &self,
        timeout: Duration,
        cancel: &CancellationToken,
        tag: u64,
        work: &Work<'_>,
        tool: Option<&Tool>,
    ) -> CallOptions {
        let mut options = CallOptions::new(timeout);
        options.cancel = cancel.clone();
        options.as_task = tool.is_some_and(|tool| tool.only_as_task);
        options.hard_limit = timeout * limits::CALL_HARD_FACTOR;
        options.tag = Some(tag);
        options.tool = tool.and_then(|tool| tool.headers.clone());
        options.progress = work.reporter().map(|reporter| {
            let report: Arc<dyn Fn(mcp::Progress) + Send + Sync> =
                Arc::new(move |progress: mcp::Progress| {
                    reporter.server(progress.progress, progress.total, progress.message)
                });
            report
        });
        options
    }
}

pub(super) fn internal(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}

fn tools_of(list: &List) -> impl Iterator<Item = (usize, &protocol::ToolItem)> {
    list.items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| match item {
            Item {
                shown: CatalogItem::Tool(tool),
                ..
            } => Some((index, tool)),
            _ => None,
        })
}

/// The tool by the server's own name, else by the entry's, else by the name it is exposed under. A list that could not be read decides nothing.
async fn find_tool(
    server: &Arc<Server>,
    connection: &Connection,
    name: &str,
) -> Result<(String, Option<(Arc<List>, usize)>), Error> {
    let mut list = server.catalog.tools(server, connection).await;
    let mut found = find(&list, name);
    if found.is_none() && server.catalog.known(Category::Tools).is_some() && !list.items.is_empty() {
        // It may have come with a change that was not announced. A server that lists nothing is asked as it is.
        server.catalog.invalidate(mcp::ListKind::Tools);
        list = server.catalog.tools(server, connection).await;
        found = find(&list, name);
    }
    let Some(index) = found else {
        if list.items.is_empty() {
            check_lists(server, name).await?;
            return Ok((name.to_owned(), None));
        }
        let names = tools_of(&list).map(|(_, tool)| tool.name.clone()).collect();
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("`{}` has no tool `{name}`", server.name),
        )
        .what("tool")
        .candidates(near(name, names))
        .hint("`mcp.tools.list` shows its tools")
        .server(server.name.clone()));
    };
    let (_, tool) = tools_of(&list)
        .find(|(at, _)| *at == index)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the list changed"))?;
    refused(server, tool)?;
    let name = tool.name.clone();
    Ok((name, Some((list, index))))
}

fn find(list: &List, name: &str) -> Option<usize> {
    let by_name = tools_of(list).find(|(_, tool)| tool.name == name);
    by_name
        .or_else(|| tools_of(list).find(|(_, tool)| tool.renamed.as_deref() == Some(name)))
        .or_else(|| tools_of(list).find(|(_, tool)| tool.exposed == name))
        .map(|(index, _)| index)
}

/// The allow and deny lists and what is held, for a tool that the server does not list.
async fn check_lists(server: &Arc<Server>, name: &str) -> Result<(), Error> {
    let known = Arc::clone(server);
    let book = tokio::task::spawn_blocking(move || known.core.pins.accepted(&known.lineage())).await;
    if book.is_ok_and(|book| book.holds(name)) {
        return Err(held(server, name));
    }
    let entry = server.entry();
    let Some(lists) = &entry.tools else { return Ok(()) };
    let fits = |patterns: &Vec<String>| patterns.iter().any(|pattern| items::matches(pattern, name));
    if lists.deny.as_ref().is_some_and(fits) || lists.allow.as_ref().is_some_and(|allow| !fits(allow)) {
        return Err(denied(server, name));
    }
    Ok(())
}

/// Refuses what nobody may call: a tool that a list excludes, or one that is held.
pub(super) fn refused(server: &Server, tool: &protocol::ToolItem) -> Result<(), Error> {
    match tool.hidden {
        Some(HiddenReason::Denied) => Err(denied(server, &tool.name)),
        Some(HiddenReason::Held) => Err(held(server, &tool.name)),
        _ => Ok(()),
    }
}

fn held(server: &Server, tool: &str) -> Error {
    Error::new(
        ErrorKind::Denied,
        format!("the definition of the tool `{tool}` changed and waits for a person's decision"),
    )
    .by("held")
    .hint("`mcp.tools.review` shows the change, `mcp.decide` with subject `tools` accepts it")
    .server(server.name.clone())
}

fn denied(server: &Server, tool: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("the tool `{tool}` is not allowed"))
        .by("list")
        .hint("`tools.allow` and `tools.deny` of the entry decide")
        .server(server.name.clone())
}

/// Whether `structuredContent` keeps what the tool's output schema promised. Reported, never dropped.
fn check_structure(server: &Server, name: &str, tool: &Tool, result: &RawValue) -> Option<Issue> {
    #[derive(serde::Deserialize)]
    struct Seen<'a> {
        #[serde(default, rename = "isError")]
        is_error: Option<bool>,
        #[serde(borrow, default, rename = "structuredContent")]
        structured: Option<&'a RawValue>,
    }
    if result.get().len() > limits::CHECKED_RESULT_BYTES {
        return None;
    }
    let validator = tool.validator()?;
    let seen: Seen<'_> = serde_json::from_str(result.get()).ok()?;
    if seen.is_error == Some(true) {
        return None;
    }
    let message = match seen.structured {
        None => "the tool promises structured content and sent none".to_owned(),
        Some(structured) => {
            let value: Value = serde_json::from_str(structured.get()).ok()?;
            let error = validator.iter_errors(&value).next()?;
            let path = error.instance_path().to_string();
            format!(
                "the structured content does not fit the tool's output schema at `{}`",
                if path.is_empty() { "/" } else { &path }
            )
        }
    };
    Some(Issue {
        server: Some(server.name.clone()),
        item: Some(name.to_owned()),
        ..Issue::new(IssueKind::Note, message)
    })
}
