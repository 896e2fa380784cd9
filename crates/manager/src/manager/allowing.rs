//! Whether a model may call a tool: lists, grants, and the person, in this order.

use std::sync::Arc;

use protocol::{
    ApprovalQuestion, ClosedReason, Dir, Error, ErrorKind, Grant, GrantDecision, GrantScope, McpGrants,
    McpGrantsResult, ModelApproval, Question, QuestionId, Raw, Remember, ToolApproval, ToolItem,
};
use serde_json::value::RawValue;

use super::Manager;
use super::configuring::blocking;
use crate::calls::Call;
use crate::catalog::items;
use crate::config::{file, secret};
use crate::consent::audit;
use crate::consent::grants::{Remembered, Wanted};
use crate::env;
use crate::model::definition;
use crate::question::queue::{Asking, Outcome};
use crate::server::Server;
use crate::sink::RequestContext;

/// Whether somebody would be asked before a model's call of this tool, grants apart.
pub(super) fn approval(server: &Server, tool: &str) -> ModelApproval {
    let entry = server.entry();
    let lists = entry.tools.as_ref();
    let is_listed = |list: Option<&Vec<String>>| {
        list.is_some_and(|patterns| patterns.iter().any(|pattern| items::matches(pattern, tool)))
    };
    if is_listed(lists.and_then(|lists| lists.ask.as_ref())) {
        return ModelApproval::Ask;
    }
    // What a project says of itself loosens nothing.
    let is_auto = !server.is_of_project() && is_listed(lists.and_then(|lists| lists.auto.as_ref()));
    if is_auto || server.core.settings().tool_approval != ToolApproval::Ask {
        ModelApproval::Auto
    } else {
        ModelApproval::Ask
    }
}

impl Manager {
    /// Lets a model's call pass, or says why not. The lists of what is denied were looked at before.
    pub(super) async fn allow(
        &self,
        directory: &Dir,
        tool: &ToolItem,
        arguments: Option<&Raw>,
        call: &Call,
    ) -> Result<(), Error> {
        let server = self.server(directory, &tool.server)?;
        let root = self.core.root(directory);
        let definition = definition::canonical(tool.raw.get()).to_string();
        let known = Remembered {
            grant: Grant {
                id: format!("g{}", self.core.questions.fresh_id()),
                server: tool.server.clone(),
                tool: tool.name.clone(),
                decision: GrantDecision::Allow,
                scope: GrantScope::Session,
                directory: None,
                created_at: env::now(),
            },
            launch: server.digest.clone(),
            definition: file::strong_digest(definition.as_bytes()),
            root: Some(root.clone()),
            session: call.session.clone(),
        };
        let (core, looked_for) = (Arc::clone(&self.core), known.clone());
        let granted = blocking(move || {
            Ok(core.grants.find(&Wanted {
                server: &looked_for.grant.server,
                tool: &looked_for.grant.tool,
                launch: &looked_for.launch,
                definition: &looked_for.definition,
                root: looked_for.root.as_deref().unwrap_or(std::path::Path::new("")),
                session: looked_for.session.as_ref(),
            }))
        })
        .await?;
        let outcome = match granted {
            Some(GrantDecision::Allow) => return self.decided(directory, tool, "allow", "grant"),
            Some(GrantDecision::Deny) => {
                self.decided(directory, tool, "deny", "grant")?;
                return Err(denied(tool, "a person said no before", "grant"));
            }
            None if approval(&server, &tool.name) == ModelApproval::Auto => return Ok(()),
            None => self.ask_person(directory, &server, tool, arguments, call).await,
        };
        let (is_yes, remember) = match outcome {
            Ok(answered) => answered,
            Err(error) => {
                self.decided(directory, tool, error.kind.as_str(), "nobody")?;
                return Err(error);
            }
        };
        if let Some(scope) = remember {
            let directory_of = match scope {
                GrantScope::Always => None,
                GrantScope::Directory | GrantScope::Session => Some(directory.clone()),
            };
            let mut remembered = known;
            remembered.grant.scope = scope;
            remembered.grant.directory = directory_of;
            remembered.grant.decision = if is_yes {
                GrantDecision::Allow
            } else {
                GrantDecision::Deny
            };
            if scope == GrantScope::Always {
                remembered.root = None;
            }
            let core = Arc::clone(&self.core);
            // The decision holds for this call, whether or not it could be kept.
            if let Err(error) = blocking(move || core.grants.remember(remembered)).await {
                tracing::warn!(%error, "a decision could not be remembered");
            }
        }
        if is_yes {
            return self.decided(directory, tool, "allow", "person");
        }
        self.decided(directory, tool, "deny", "person")?;
        Err(denied(tool, "declined by the person", "person"))
    }

    fn decided(&self, directory: &Dir, tool: &ToolItem, outcome: &str, by: &str) -> Result<(), Error> {
        self.core.audit(&audit::Event::Approval {
            directory,
            server: &tool.server,
            tool: &tool.name,
            outcome,
            by,
        });
        Ok(())
    }

    /// Asks, with all arguments; answers whether it may be, and for how long that holds.
    async fn ask_person(
        &self,
        directory: &Dir,
        server: &Server,
        tool: &ToolItem,
        arguments: Option<&Raw>,
        call: &Call,
    ) -> Result<(bool, Option<GrantScope>), Error> {
        let cannot = |message: &str| {
            Error::new(ErrorKind::CannotAsk, message.to_owned())
                .hint("declare `questions`, or `toolApproval: \"host\"` if the host asks")
                .server(tool.server.clone())
        };
        if self.core.settings().capabilities.questions != Some(true) {
            return Err(cannot("the call needs a person's yes, and nobody can be asked"));
        }
        let raw: serde_json::Value = serde_json::from_str(tool.raw.get()).unwrap_or_default();
        let label = secret::label(&server.entry(), &server.name);
        let verbatim = |text: &str| RawValue::from_string(text.to_owned()).ok().map(Raw);
        let empty =
            || Raw(RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()));
        let question = Question::Approval(ApprovalQuestion {
            id: QuestionId::from(""),
            directory: directory.clone(),
            server: tool.server.clone(),
            session: call.session.clone(),
            call: call.id.clone(),
            calls: None,
            title: format!("{} wants to run {}", label, tool.name),
            message: format!(
                "May the model call `{}` with these arguments? {}",
                tool.name,
                risk(&raw["annotations"])
            ),
            asked_at: env::now(),
            tool: tool.name.clone(),
            exposed: tool.exposed.clone(),
            arguments: arguments.cloned().unwrap_or_else(empty),
            description: tool.description.clone(),
            annotations: raw
                .get("annotations")
                .filter(|annotations| annotations.is_object())
                .and_then(|annotations| verbatim(&annotations.to_string())),
            remember: vec![
                Remember::Once,
                Remember::Session,
                Remember::Directory,
                Remember::Always,
            ],
        });
        let remembered = Arc::new(std::sync::OnceLock::new());
        let asking = Asking {
            question,
            fields: None,
            tags: vec![call.tag],
            why_gone: Box::new(|| ClosedReason::CallEnded),
            remembered: Some(Arc::clone(&remembered)),
        };
        let outcome = tokio::select! {
            outcome = self.core.questions.ask(asking) => outcome,
            () = call.cancel.cancelled() => Ok(Outcome::Cancel),
        };
        let scope = remembered.get().and_then(|remember| match remember {
            Remember::Once => None,
            Remember::Session => Some(GrantScope::Session),
            Remember::Directory => Some(GrantScope::Directory),
            Remember::Always => Some(GrantScope::Always),
        });
        match outcome {
            Ok(Outcome::Accept(_)) => Ok((true, scope)),
            Ok(Outcome::Decline) => Ok((false, scope)),
            Ok(Outcome::Cancel) => {
                let message = "nobody decided: the host closed the question, or its answer did not fit";
                Err(denied(tool, message, "person"))
            }
            Err(_) => Err(cannot(
                "the call needs a person's yes, and too many questions wait already",
            )),
        }
    }

    /// `mcp.grants`.
    pub async fn grants(&self, _: &RequestContext, params: McpGrants) -> Result<McpGrantsResult, Error> {
        let root = self.root(&params.directory)?;
        let core = Arc::clone(&self.core);
        blocking(move || {
            if let Some(ids) = &params.revoke {
                let known = core.grants.list(&root);
                core.grants.revoke(ids)?;
                for grant in known.iter().filter(|grant| ids.contains(&grant.id)) {
                    core.audit(&audit::Event::Grant {
                        directory: &params.directory,
                        server: &grant.server,
                        tool: &grant.tool,
                        action: "revoke",
                    });
                }
            }
            Ok(McpGrantsResult {
                grants: core.grants.list(&root),
            })
        })
        .await
    }
}

/// What a call may do, by the server's own hints. Where it says nothing the worst holds, as MCP has it
/// (2025-03-26, `ToolAnnotations`).
fn risk(hints: &serde_json::Value) -> String {
    let hint = |name: &str| hints[name].as_bool();
    let change = match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => "says that it changes nothing",
        (_, Some(false)) => "says that it may add, but neither overwrites nor deletes",
        (_, Some(true)) => "says that it may overwrite or delete",
        (_, None) => "does not rule out that it overwrites or deletes",
    };
    let reach = match hint("openWorldHint") {
        Some(true) => " It says that it reaches other systems.",
        Some(false) | None => "",
    };
    format!("Its server {change}.{reach}")
}

fn denied(tool: &ToolItem, message: &str, by: &str) -> Error {
    Error::new(ErrorKind::Denied, message.to_owned())
        .by(by)
        .server(tool.server.clone())
}
