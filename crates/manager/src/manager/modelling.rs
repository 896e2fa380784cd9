//! The model's side: the tools it is offered, and its calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::{
    CatalogItem, Category, Dialect, Dir, Error, ErrorKind, Fault, Issue, McpModelCall, McpModelTools,
    McpModelToolsResult, ModelOutcome, ModelResult, ModelServer, ModelTool, Raw, ResourceTools, Revision,
    ServerName, Session, ToolItem, ToolLoad,
};
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;

use super::allowing::approval;
use super::calling::{Wish, refused};
use super::listing::{Part, Reach, collect};
use super::{Manager, check_directory, near};
use crate::calls::{Call, NewCall};
use crate::catalog::items::{self, List};
use crate::config::file::digest;
use crate::limits;
use crate::model::answer::{self, Budget, Fitted, Parts};
use crate::model::builtin::{self, Builtin, Reading};
use crate::model::{offer, tokens};
use crate::progress::Work;
use crate::server::Server;
use crate::sink::RequestContext;

/// Tools come with resources, since the resource tools depend on them.
const OFFERED: [Category; 3] = [Category::Tools, Category::Resources, Category::Templates];

/// What a model gets back from a call, before it is made to fit.
pub(super) enum Outcome {
    /// The result of a server's tool.
    Result(Box<RawValue>),
    /// The text of a built-in tool; `fits`: it keeps to the budget already.
    Text { text: String, fits: bool },
    /// A built-in tool could not do it: the model may try otherwise.
    ToolError(String),
}

impl Manager {
    /// `mcp.model.tools`: what to offer the model.
    pub async fn model_tools(
        &self,
        request: &RequestContext,
        params: McpModelTools,
    ) -> Result<McpModelToolsResult, Error> {
        let mut issues = Vec::new();
        let mut servers = self.enabled_servers(&params.directory)?;
        if let Some(names) = &params.servers {
            for name in names {
                if !servers.iter().any(|server| server.name == *name) {
                    let mut issue = Issue::new(
                        ErrorKind::TargetMismatch,
                        format!("there is no server `{name}` to use"),
                    );
                    issue.server = Some(name.clone());
                    issues.push(issue);
                }
            }
            servers.retain(|server| names.contains(&server.name));
        }
        let load = params.load.unwrap_or(ToolLoad::All);
        let mut asleep = Vec::new();
        if load == ToolLoad::Search {
            // Only who was never seen is started: the others may sleep until they are called.
            let mut asked = Vec::new();
            for server in servers {
                match server.catalog.seen_tools(&server).await {
                    Some(list) if server.connected().is_none() => asleep.push(Part {
                        server,
                        lists: vec![list],
                        issue: None,
                    }),
                    _ => asked.push(server),
                }
            }
            servers = asked;
        }
        let wait = params.wait_ms.unwrap_or(limits::LIST_WAIT_MS);
        let mut parts = self.parts(request, &servers, &OFFERED, true, wait).await?;
        parts.extend(asleep);
        issues.extend(parts.iter().flat_map(Part::issues).cloned());

        let settings = self.core.settings();
        let dialect = params.dialect.unwrap_or(settings.dialect);
        let style = params.resource_tools.unwrap_or(settings.resource_tools);
        let mut tools: Vec<ModelTool> = Vec::new();
        let mut shown = Vec::new();
        for builtin in self.builtins(&parts, style, load, params.session.as_ref()) {
            tools.push(builtin.offer());
        }
        shown.extend(model_server(ServerName::from(builtin::SERVER), &tools, None));
        let offered: Vec<(Arc<Server>, Arc<List>)> = parts
            .into_iter()
            .filter_map(|part| Some((part.server, part.lists.into_iter().next()?)))
            .collect();
        let made = spawn_blocking(move || make(offered, dialect));
        let made = made.await.map_err(|error| internal(&error))?;
        for (server, offer) in made {
            issues.extend(offer.issues);
            shown.extend(model_server(
                server.name.clone(),
                &offer.tools,
                server.instructions(),
            ));
            if load == ToolLoad::All {
                tools.extend(offer.tools);
            }
        }
        if tools.len() > limits::MODEL_TOOLS {
            let more = tools.len() - limits::MODEL_TOOLS;
            issues.push(Issue::new(
                ErrorKind::TooLarge,
                format!(
                    "{more} tools are left out: no more than {} are offered",
                    limits::MODEL_TOOLS
                ),
            ));
            tools.truncate(limits::MODEL_TOOLS);
        }
        let text = serde_json::to_string(&(&tools, &shown)).map_err(|error| internal(&error))?;
        let revision = Revision::from(digest(text.as_bytes()));
        let unchanged = params.known.as_ref() == Some(&revision);
        if unchanged {
            tools.clear();
        }
        Ok(McpModelToolsResult {
            revision,
            unchanged,
            tools,
            servers: shown,
            issues,
        })
    }

    /// Lists of these servers, waiting no longer than asked.
    pub(super) async fn parts(
        &self,
        request: &RequestContext,
        servers: &[Arc<Server>],
        categories: &'static [Category],
        discover: bool,
        wait_ms: u64,
    ) -> Result<Vec<Part>, Error> {
        let reach = Reach {
            reload: false,
            discover,
            wait: Duration::from_millis(wait_ms),
        };
        let work = Work::begin(&self.core.calls, &self.core.sink, None, "", true)?;
        tokio::select! {
            parts = collect(servers, categories, reach, request.tier, &work) => Ok(parts),
            () = request.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "cancelled by the host")),
        }
    }

    /// The built-in tools that are of use now.
    fn builtins(
        &self,
        parts: &[Part],
        style: ResourceTools,
        load: ToolLoad,
        session: Option<&Session>,
    ) -> Vec<Builtin> {
        let offers = |builtin: Builtin| {
            parts.iter().any(|part| {
                let has_some =
                    part.lists.iter().flat_map(|list| &list.items).any(|item| {
                        matches!(item.shown, CatalogItem::Resource(_) | CatalogItem::Template(_))
                    });
                has_some && !is_denied(&part.server, builtin)
            })
        };
        let mut builtins = match style {
            ResourceTools::None => Vec::new(),
            ResourceTools::Pillion => [Builtin::List, Builtin::Read]
                .into_iter()
                .filter(|builtin| {
                    offers(*builtin) || *builtin == Builtin::Read && self.core.spills.any(session)
                })
                .collect(),
            // Always there: a host that ships them has them in its prompts. Only a rule takes one away.
            ResourceTools::Shared => [
                Builtin::SharedResources,
                Builtin::SharedTemplates,
                Builtin::SharedRead,
            ]
            .into_iter()
            .filter(|builtin| parts.is_empty() || parts.iter().any(|part| !is_denied(&part.server, *builtin)))
            .collect(),
        };
        if load == ToolLoad::Search {
            builtins.extend([Builtin::SearchTools, Builtin::CallTool]);
        }
        builtins
    }

    /// `mcp.model.call`: whatever a model can use is a result.
    pub async fn model_call(
        &self,
        request: &RequestContext,
        params: McpModelCall,
    ) -> Result<ModelResult, Error> {
        let started = Instant::now();
        let directory = self.open(check_directory(&params.directory)?);
        let nobody = ServerName::from(builtin::SERVER);
        let new = NewCall {
            id: params.call.as_ref(),
            session: params.session.as_ref(),
            directory: &directory,
            server: &nobody,
            tool: Some(&params.name),
            within: None,
        };
        let guard = self.core.calls.begin(request, &self.core.questions, &new)?;
        let whole = Arc::clone(&guard.call);
        let outcome = tokio::select! {
            outcome = self.carry_out(request, &params, &whole) => outcome,
            // What runs at a server is cancelled there first, and says so itself.
            () = async {
                whole.cancel.cancelled().await;
                tokio::time::sleep(limits::STOP_GRACE).await;
            } => Err(whole.cancelled_error(request)),
        };
        drop(guard);
        let elapsed_ms = started.elapsed().as_millis() as u64;
        match outcome {
            Ok((outcome, issues)) => self.model_result(&params, outcome, issues, elapsed_ms).await,
            Err(error) if is_the_requests_own(&error) => Err(error),
            Err(_) if request.cancel.is_cancelled() => Err(whole.cancelled_error(request)),
            Err(error) => Ok(failed(&error, elapsed_ms)),
        }
    }

    async fn carry_out(
        &self,
        request: &RequestContext,
        params: &McpModelCall,
        whole: &Call,
    ) -> Result<(Outcome, Vec<Issue>), Error> {
        let arguments = params.arguments.as_ref();
        match Builtin::from_name(&params.name) {
            Some(Builtin::CallTool) => {
                let (name, arguments) = called(arguments)?;
                if Builtin::from_name(&name).is_some() {
                    return Ok((
                        Outcome::ToolError(format!("`{name}` is called directly, not through a search")),
                        Vec::new(),
                    ));
                }
                self.call_exposed(request, params, &name, arguments.as_ref(), whole)
                    .await
            }
            Some(builtin) => {
                let outcome = self.call_builtin(request, params, builtin, whole).await?;
                Ok((outcome, Vec::new()))
            }
            None => {
                self.call_exposed(request, params, &params.name, arguments, whole)
                    .await
            }
        }
    }

    async fn call_exposed(
        &self,
        request: &RequestContext,
        params: &McpModelCall,
        exposed: &str,
        arguments: Option<&Raw>,
        whole: &Call,
    ) -> Result<(Outcome, Vec<Issue>), Error> {
        let tool = self.resolve(request, &params.directory, exposed).await?;
        // Nobody is asked about a call that cannot be.
        let server = self.server(&params.directory, &tool.server)?;
        refused(&server, &tool)?;
        self.allow(&params.directory, &tool, arguments, whole).await?;
        let wish = Wish {
            directory: &params.directory,
            server: &tool.server,
            call: params.call.as_ref(),
            session: params.session.as_ref(),
            timeout_ms: params.timeout_ms,
            token: params.work_done_token.as_ref(),
            title: format!("Calling {}", tool.name),
            tool: Some(&tool.name),
            within: Some(whole),
        };
        let (result, issues) = self.use_tool(request, &wish, &tool.name, arguments).await?;
        Ok((Outcome::Result(result), issues))
    }

    /// The tool of an exposed name; servers are started only if no known list has it.
    async fn resolve(
        &self,
        request: &RequestContext,
        directory: &Dir,
        exposed: &str,
    ) -> Result<ToolItem, Error> {
        let servers = self.enabled_servers(directory)?;
        let mut known = Vec::new();
        for server in &servers {
            known.extend(server.catalog.seen_tools(server).await);
        }
        let mut found = offer::find(&known, exposed).cloned();
        if found.is_none() {
            let parts = self
                .parts(request, &servers, &[Category::Tools], true, limits::LIST_WAIT_MS)
                .await?;
            known = parts.into_iter().flat_map(|part| part.lists).collect();
            found = offer::find(&known, exposed).cloned();
        }
        match found {
            Some(tool) if !offer::is_hidden(&tool) => Ok(tool),
            _ => {
                let names = known.iter().flat_map(|list| offer::tools(list));
                let names = names.filter(|(_, tool)| tool.hidden.is_none());
                let names = names.map(|(_, tool)| tool.exposed.clone()).collect();
                Err(
                    Error::new(ErrorKind::NotFound, format!("there is no tool `{exposed}`"))
                        .what("tool")
                        .candidates(near(exposed, names)),
                )
            }
        }
    }

    async fn model_result(
        &self,
        params: &McpModelCall,
        outcome: Outcome,
        mut issues: Vec<Issue>,
        elapsed_ms: u64,
    ) -> Result<ModelResult, Error> {
        let (parts, how, fits) = match outcome {
            Outcome::ToolError(text) => {
                return Ok(said(ModelOutcome::ToolError, &text, issues, elapsed_ms));
            }
            Outcome::Text { text, fits } => {
                let parts = Parts {
                    content: vec![answer::text(&text)],
                    structured: None,
                    is_error: false,
                };
                (Some(parts), None, fits)
            }
            Outcome::Result(result) => (None, Some(result), false),
        };
        let settings = self.core.settings();
        let core = Arc::clone(&self.core);
        let session = params.session.clone();
        let chars = if fits { usize::MAX } else { settings.result_chars };
        let reading = Reading::of(settings.resource_tools);
        // Even to look into a large result takes a while.
        let work = spawn_blocking(move || {
            let parts = parts.or_else(|| how.map(|result| Parts::of(&result)));
            let parts = parts.unwrap_or_else(|| Parts {
                content: Vec::new(),
                structured: None,
                is_error: false,
            });
            let is_error = parts.is_error;
            let budget = Budget {
                chars,
                spills: &core.spills,
                session: session.as_ref(),
                reading,
            };
            let fitted = budget.fit(parts);
            let tokens = fitted
                .content
                .iter()
                .map(|block| tokens::estimate(block.get()))
                .sum::<u32>();
            (fitted, is_error, tokens)
        });
        let (fitted, is_error, tokens) = work.await.map_err(|error| internal(&error))?;
        let Fitted {
            content,
            structured,
            spilled,
            issues: more,
        } = fitted;
        issues.extend(more);
        issues.truncate(limits::ISSUES);
        Ok(ModelResult {
            outcome: if is_error {
                ModelOutcome::ToolError
            } else {
                ModelOutcome::Ok
            },
            is_error,
            content,
            structured_content: structured.map(protocol::Json),
            failure: None,
            issues,
            spilled: (!spilled.is_empty()).then_some(spilled),
            tokens,
            elapsed_ms,
        })
    }
}

/// What belongs to the request as such and not to the call.
fn is_the_requests_own(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::InUse | ErrorKind::InvalidParams | ErrorKind::Cancelled | ErrorKind::Overloaded
    )
}

pub(super) fn internal(error: &impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}

/// Whether the entry of a server keeps a built-in tool away from it.
pub(super) fn is_denied(server: &Server, builtin: Builtin) -> bool {
    let entry = server.entry();
    let deny = entry.tools.as_ref().and_then(|lists| lists.deny.as_ref());
    deny.is_some_and(|patterns| {
        patterns
            .iter()
            .any(|pattern| items::matches(pattern, builtin.name()))
    })
}

fn make(mut offered: Vec<(Arc<Server>, Arc<List>)>, dialect: Dialect) -> Vec<(Arc<Server>, offer::Offer)> {
    let mut taken = HashSet::new();
    offered.sort_by_key(|(server, _)| server.is_of_project());
    let offers = offered.into_iter().map(|(server, list)| {
        let offer = offer::offer(&list, dialect, |tool| approval(&server, tool), &mut taken);
        (server, offer)
    });
    offers.collect()
}

fn model_server(
    server: ServerName,
    tools: &[ModelTool],
    instructions: Option<String>,
) -> Option<ModelServer> {
    (!tools.is_empty() || instructions.is_some()).then(|| ModelServer {
        server,
        tools: tools.len() as u32,
        tokens: tools.iter().map(|tool| tool.tokens).sum(),
        instructions,
    })
}

/// Name and arguments inside the arguments of the built-in call.
fn called(arguments: Option<&Raw>) -> Result<(String, Option<Raw>), Error> {
    #[derive(serde::Deserialize)]
    struct Called {
        name: String,
        #[serde(default)]
        arguments: Option<Box<RawValue>>,
    }
    let text = arguments.map_or("{}", |arguments| arguments.get());
    let called: Called = serde_json::from_str(text).map_err(|error| {
        Error::new(
            ErrorKind::NotFound,
            format!("the arguments do not name a tool: {error}"),
        )
        .what("tool")
    })?;
    let arguments = called
        .arguments
        .filter(|arguments| arguments.get().starts_with('{'))
        .map(Raw);
    Ok((called.name, arguments))
}

/// A call that could not be carried out, as a model can use it.
fn failed(error: &Error, elapsed_ms: u64) -> ModelResult {
    let outcome = match error.kind {
        ErrorKind::Denied => ModelOutcome::Denied,
        ErrorKind::CannotAsk => ModelOutcome::CannotAsk,
        _ => ModelOutcome::Failed,
    };
    let mut text = error.message.clone();
    if let Some(candidates) = error.data.candidates.as_ref().filter(|names| !names.is_empty())
        && error.kind == ErrorKind::NotFound
    {
        text = format!("{text}. Near ones: {}", candidates.join(", "));
    }
    let mut result = said(outcome, &text, Vec::new(), elapsed_ms);
    result.failure = Some(Fault::from(error));
    result
}

fn said(outcome: ModelOutcome, text: &str, issues: Vec<Issue>, elapsed_ms: u64) -> ModelResult {
    ModelResult {
        outcome,
        is_error: outcome != ModelOutcome::Ok,
        content: vec![Raw(answer::text(text))],
        structured_content: None,
        failure: None,
        issues,
        spilled: None,
        tokens: tokens::estimate(text),
        elapsed_ms,
    }
}
