//! `pillion tools`: what can be called.

use protocol::{Dialect, McpModelTools, McpStatus, ToolItem, methods};
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::listing::{self, Page, WAIT_MS, description, named_server_failed};
use super::output::{self, Rows};
use super::parameters::parameters;
use super::session::{Common, Session, checked};
use super::status;

/// List the tools of all servers, or of one with their parameters
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this server
    server: Option<String>,
    /// As a model is offered them: names, tokens, and whether somebody is asked
    #[arg(long)]
    model: bool,
    /// What the tools take of a model's context, also of servers that are switched off; starts nothing
    #[arg(long, conflicts_with = "model")]
    cost: bool,
    /// With --model: make schemas fit a model's service
    #[arg(long, value_name = "DIALECT", requires = "model", value_parser = ["none", "portable", "openai", "anthropic", "gemini"])]
    dialect: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    if args.model {
        return for_model(args, session).await;
    }
    if args.cost {
        return costs(args, session).await;
    }
    let server = args.server.as_deref();
    let tools = list(session, server).await?;
    let table = |items: &[ToolItem]| table(session, server.is_some(), items);
    listing::print(session, server, &tools, table, "No tools")
}

/// Tokens by server, or of one server by tool, as its tools were seen last.
async fn costs(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpStatus {
        directory: session.directory.clone(),
        server: args.server.as_deref().map(Into::into),
        costs: Some(true),
    };
    let known = session
        .manager
        .status(&session.request, checked::<methods::Status>(params)?)
        .await?;
    if session.json {
        output::json(&known)?;
        return Ok(Exit::Done);
    }
    let Some(name) = &args.server else {
        let mut rows = Rows::new(session.terminal, &["SERVER", "STATE", "TOOLS", "TOKENS"]);
        for server in &known.servers {
            let shown = |number: Option<usize>| number.map_or_else(|| "?".to_owned(), |n| n.to_string());
            let state = server.state.as_str().replace('_', " ");
            let n_tools = shown(server.costs.as_ref().map(Vec::len));
            rows.add([
                &server.name,
                &state,
                &n_tools,
                &shown(server.tokens.map(|tokens| tokens as usize)),
            ]);
        }
        rows.print_unless_empty("No servers are configured; `pillion add NAME -- COMMAND` adds one")?;
        if known.servers.iter().any(|server| server.tokens.is_none()) {
            eprintln!("? was never seen running; `pillion test NAME` tries it and counts");
        }
        return Ok(Exit::Done);
    };
    let Some(server) = known
        .servers
        .iter()
        .find(|server| server.effective)
        .or(known.servers.first())
    else {
        return Err(status::unknown(name, session).await);
    };
    let (Some(costs), Some(tokens)) = (&server.costs, server.tokens) else {
        return Err(Failure::new(format!("the tools of `{name}` were never seen"))
            .hint(format!("`pillion test {name}` tries it and counts")));
    };
    let mut rows = Rows::new(session.terminal, &["TOOL", "TOKENS"]);
    for cost in costs {
        rows.add([&cost.tool, &cost.tokens.to_string()]);
    }
    rows.print_unless_empty("No tools")?;
    eprintln!("{name}: {} tools, about {tokens} tokens", costs.len());
    Ok(Exit::Done)
}

/// What `mcp.model.tools` offers.
async fn for_model(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpModelTools {
        directory: session.directory.clone(),
        servers: args.server.as_deref().map(|server| vec![server.into()]),
        wait_ms: Some(WAIT_MS),
        dialect: match args.dialect.as_deref() {
            Some("portable") => Some(Dialect::Portable),
            Some("openai") => Some(Dialect::Openai),
            Some("anthropic") => Some(Dialect::Anthropic),
            Some("gemini") => Some(Dialect::Gemini),
            _ => None,
        },
        ..Default::default()
    };
    let work = session
        .manager
        .model_tools(&session.request, checked::<methods::ModelTools>(params)?);
    let result = session.work("Listing tools", work).await?;
    if session.json {
        output::json(&result)?;
    }
    let server = args.server.as_deref();
    if let Some(failure) = named_server_failed(server, result.tools.is_empty(), &result.issues) {
        return Err(failure.already_printed(session.json));
    }
    if session.json {
        return Ok(Exit::Done);
    }
    session.warn(&result.issues);
    let mut rows = Rows::new(session.terminal, &["NAME", "TOKENS", "APPROVAL", "DESCRIPTION"]);
    for tool in &result.tools {
        let tokens = tool.tokens.to_string();
        let description = description(&tool.description, &tool.title);
        rows.add([&tool.name, &tokens, tool.approval.as_str(), description]);
    }
    rows.print_unless_empty("No tools")?;
    for server in &result.servers {
        eprintln!(
            "{}: {} tools, about {} tokens",
            server.server, server.tools, server.tokens
        );
    }
    Ok(Exit::Done)
}

/// Of one server with the parameters, of several with the server.
fn table(session: &Session, one_server: bool, tools: &[ToolItem]) -> Rows {
    let header = if one_server {
        ["TOOL", "PARAMETERS", "DESCRIPTION"]
    } else {
        ["SERVER", "TOOL", "DESCRIPTION"]
    };
    let mut rows = Rows::new(session.terminal, &header);
    for tool in tools {
        let description = description(&tool.description, &tool.title);
        let name = match &tool.renamed {
            Some(name) => format!("{name} (the server's {})", tool.name),
            None => tool.name.clone(),
        };
        let name = match &tool.hidden {
            Some(reason) => format!("{name} ({})", reason.as_str().replace('_', " ")),
            None => name,
        };
        if one_server {
            rows.add([&name, &signature(&schema(tool)), description]);
        } else {
            rows.add([&tool.server, &name, description]);
        }
    }
    rows
}

/// Every tool, all pages; starts the servers it needs.
pub async fn list(session: &Session, server: Option<&str>) -> Result<Page<ToolItem>, Failure> {
    listing::list!(
        session,
        server,
        "Listing tools",
        McpToolsList,
        ToolsList,
        tools_list
    )
    .await
}

/// The tool's `inputSchema`; what is not readable counts as open.
pub fn schema(tool: &ToolItem) -> Value {
    let raw: Value = serde_json::from_str(tool.raw.get()).unwrap_or_default();
    raw["inputSchema"].clone()
}

/// `path: string, [head: integer]`.
fn signature(schema: &Value) -> String {
    let parameters = parameters(schema);
    let shown = parameters.iter().map(|parameter| {
        let text = format!("{}: {}", parameter.name, parameter.kind);
        if parameter.required {
            text
        } else {
            format!("[{text}]")
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_signature_brackets_what_may_be_left_out() {
        let schema = json!({
            "properties": { "path": { "type": "string" }, "head": { "type": "integer" } }, "required": ["path"],
        });
        assert_eq!(signature(&schema), "path: string, [head: integer]");
        assert_eq!(signature(&json!({})), "");
    }
}
