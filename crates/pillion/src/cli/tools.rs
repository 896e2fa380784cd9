//! `pillion tools`: what can be called.

use protocol::{McpToolsList, McpToolsListResult, ToolItem};
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::listing::{Page, WAIT_MS, named_server_failed, pages};
use super::output::{self, Rows};
use super::parameters::parameters;
use super::session::{Common, Session};

/// List the tools of all servers, or of one with their parameters
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this server
    server: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let server = args.server.as_deref();
    let result = list(session, server).await?;
    if session.json {
        output::json(&result)?;
    } else {
        session.warn(&result.issues);
        let (header, width) = match server {
            Some(_) => (["TOOL", "PARAMETERS", "DESCRIPTION"], 0),
            None => (["SERVER", "TOOL", "DESCRIPTION"], 1),
        };
        let mut rows = Rows::new(session.terminal, &header);
        for tool in &result.items {
            let description = tool
                .description
                .as_deref()
                .or(tool.title.as_deref())
                .unwrap_or_default();
            let description = first_sentence(description);
            if width == 0 {
                rows.add([&tool.name, &signature(&schema(tool)), description]);
            } else {
                rows.add([&tool.server, &tool.name, description]);
            }
        }
        rows.print_unless_empty("No tools")?;
    }
    match named_server_failed(server, result.items.is_empty(), &result.issues) {
        Some(failure) => Err(failure),
        None => Ok(Exit::Done),
    }
}

/// Every tool, all pages; starts the servers it needs.
pub async fn list(session: &Session, server: Option<&str>) -> Result<McpToolsListResult, Failure> {
    let fetch = async |cursor| {
        let params = McpToolsList {
            directory: session.directory.clone(),
            server: server.map(Into::into),
            cursor,
            wait_ms: Some(WAIT_MS),
            ..Default::default()
        };
        let page = session.manager.tools_list(&session.request, params).await?;
        Ok(Page {
            items: page.items,
            issues: page.issues,
            next: page.next_cursor,
        })
    };
    let (items, issues) = session.work("Listing tools", pages(fetch)).await?;
    Ok(McpToolsListResult {
        items,
        issues,
        next_cursor: None,
    })
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

/// Enough for a list; descriptions are written for models and can fill pages.
pub fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    line.split_once(". ")
        .map_or(line, |(sentence, _)| sentence)
        .trim_end_matches('.')
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

    #[test]
    fn a_list_shows_the_first_sentence() {
        assert_eq!(first_sentence("Read a file. Handles text.\nMore"), "Read a file");
        assert_eq!(first_sentence("\n Only v1.2 works.\n"), "Only v1.2 works");
    }
}
