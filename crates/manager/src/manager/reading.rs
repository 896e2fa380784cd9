//! Reading what servers offer: resources, prompts, and completion of their arguments.

use std::collections::BTreeMap;

use mcp::CallOptions;
use protocol::{
    CatalogItem, Category, CompletionRef, Error, ErrorKind, Issue, McpComplete, McpCompleteResult,
    McpPromptGet, McpPromptGetResult, McpResourceRead, McpResourceReadResult, Raw,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::calling::{Sent, Wish, internal, wish};
use super::{Manager, near};
use crate::catalog::items::List;
use crate::limits;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.resource.read`.
    pub async fn resource_read(
        &self,
        request: &RequestContext,
        params: McpResourceRead,
    ) -> Result<McpResourceReadResult, Error> {
        let wish = wish!(params, format!("Reading {}", params.uri), None);
        let (result, issues) = self.read(request, &wish, &params.uri).await?;
        Ok(McpResourceReadResult {
            result: Raw(result),
            issues,
        })
    }

    /// Reads one resource, within the bound for resources.
    pub(super) async fn read(
        &self,
        request: &RequestContext,
        wish: &Wish<'_>,
        uri: &str,
    ) -> Result<(Box<RawValue>, Vec<Issue>), Error> {
        let text = json!({"uri": uri});
        let (result, issues) = self
            .call(request, wish, async |_, _| {
                Ok(Sent {
                    method: "resources/read",
                    params: to_raw_value(&text).map_err(internal)?,
                    tool: None,
                })
            })
            .await?;
        bounded(&result, limits::RESOURCE_BYTES, "resource")?;
        Ok((result, issues))
    }

    /// `mcp.prompt.get`.
    pub async fn prompt_get(
        &self,
        request: &RequestContext,
        params: McpPromptGet,
    ) -> Result<McpPromptGetResult, Error> {
        let wish = wish!(params, format!("Getting {}", params.name), None);
        let (result, issues) = self
            .fill_in(request, &wish, &params.name, params.args.as_ref())
            .await?;
        Ok(McpPromptGetResult {
            result: Raw(result),
            issues,
        })
    }

    /// Gets one prompt, within the bound for prompts.
    pub(super) async fn fill_in(
        &self,
        request: &RequestContext,
        wish: &Wish<'_>,
        name: &str,
        args: Option<&BTreeMap<String, String>>,
    ) -> Result<(Box<RawValue>, Vec<Issue>), Error> {
        let mut text = json!({"name": name});
        if let Some(args) = args {
            text["arguments"] = json!(args);
        }
        let given = args.cloned().unwrap_or_default();
        let (result, issues) = self
            .call(request, wish, async |server, connection| {
                let prompts = server.catalog.list(server, connection, Category::Prompts).await;
                check_prompt(&prompts, name, &given)?;
                Ok(Sent {
                    method: "prompts/get",
                    params: to_raw_value(&text).map_err(internal)?,
                    tool: None,
                })
            })
            .await?;
        bounded(&result, limits::PROMPT_BYTES, "prompt")?;
        Ok((result, issues))
    }

    /// `mcp.complete`: nothing where the server offers no completion.
    pub async fn complete(
        &self,
        request: &RequestContext,
        params: McpComplete,
    ) -> Result<McpCompleteResult, Error> {
        let server = self.server(&params.directory, &params.server)?;
        let _use = server.in_use();
        let nothing = McpCompleteResult {
            values: Vec::new(),
            total: None,
            more: false,
        };
        let connection = server.connection(request.tier).await?;
        let info = connection.info();
        // The first revision had no capability for it.
        if info.capabilities.get("completions").is_none() && info.protocol_version != "2024-11-05" {
            return Ok(nothing);
        }
        let reference = match &params.reference {
            CompletionRef::Prompt(prompt) => json!({"type": "ref/prompt", "name": prompt.name}),
            CompletionRef::Template(template) => {
                json!({"type": "ref/resource", "uri": &*template.uri_template})
            }
        };
        let mut text =
            json!({"ref": reference, "argument": {"name": params.argument, "value": params.value}});
        if let Some(args) = &params.args {
            text["context"] = json!({"arguments": args});
        }
        let options = CallOptions {
            cancel: request.cancel.child_token(),
            ..CallOptions::new(server.call_timeout())
        };
        let result = connection
            .request(
                "completion/complete",
                to_raw_value(&text).map_err(internal)?,
                options,
            )
            .await;
        let result = match result {
            Err(mcp::CallError::Rpc { code: -32601, .. }) => return Ok(nothing),
            Err(mcp::CallError::Cancelled) => {
                return Err(Error::new(ErrorKind::Cancelled, "cancelled by the host"));
            }
            other => other.map_err(|error| server.call_error(error))?,
        };
        let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
        let completion = &result["completion"];
        let mut values: Vec<String> = completion["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let more =
            completion["hasMore"].as_bool().unwrap_or(false) || values.len() > limits::COMPLETION_VALUES;
        values.truncate(limits::COMPLETION_VALUES);
        Ok(McpCompleteResult {
            values,
            total: completion["total"].as_u64(),
            more,
        })
    }
}

fn check_prompt(list: &List, name: &str, given: &BTreeMap<String, String>) -> Result<(), Error> {
    let prompts = || {
        list.items.iter().filter_map(|item| match &item.shown {
            CatalogItem::Prompt(prompt) => Some(prompt),
            _ => None,
        })
    };
    let Some(prompt) = prompts().find(|prompt| prompt.name == name) else {
        // A list that could not be read decides nothing.
        if list.items.is_empty() {
            return Ok(());
        }
        let names = prompts().map(|prompt| prompt.name.clone()).collect();
        return Err(
            Error::new(ErrorKind::NotFound, format!("there is no prompt `{name}`"))
                .what("prompt")
                .candidates(near(name, names)),
        );
    };
    if let Some(unknown) = given
        .keys()
        .find(|name| !prompt.arguments.iter().any(|argument| argument.name == **name))
    {
        let names = prompt.arguments.iter().map(|argument| argument.name.clone());
        let error = Error::new(
            ErrorKind::InvalidParams,
            format!("the prompt `{name}` has no argument `{unknown}`"),
        );
        let pointer = unknown.replace('~', "~0").replace('/', "~1");
        return Err(error
            .path(format!("/args/{pointer}"))
            .candidates(near(unknown, names.collect())));
    }
    let missing: Vec<String> = prompt
        .arguments
        .iter()
        .filter(|argument| argument.required && !given.contains_key(&argument.name))
        .map(|argument| argument.name.clone())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::ArgumentMissing,
        format!("the prompt `{name}` needs {}", missing.join(", ")),
    )
    .hint("give these in `args`")
    .names(missing))
}

fn bounded(result: &RawValue, limit: usize, what: &str) -> Result<(), Error> {
    if result.get().len() <= limit {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        format!("the {what} is too large: more than {limit} bytes"),
    )
    .limit(limit as u64))
}
