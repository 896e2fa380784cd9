//! `pillion prompts`: what servers have ready to say.

use protocol::{McpPromptsList, McpPromptsListResult, PromptItem, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::listing::{Page, WAIT_MS, description, named_server_failed, pages};
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// List the prompts of all servers, or of one
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this server
    server: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let server = args.server.as_deref();
    let fetch = async |cursor| {
        let params = McpPromptsList {
            directory: session.directory.clone(),
            server: server.map(Into::into),
            cursor,
            wait_ms: Some(WAIT_MS),
            ..Default::default()
        };
        let page = session
            .manager
            .prompts_list(&session.request, checked::<methods::PromptsList>(params)?)
            .await?;
        Ok(Page {
            items: page.items,
            issues: page.issues,
            next: page.next_cursor,
        })
    };
    let (items, issues) = session.work("Listing prompts", pages(fetch)).await?;
    let result = McpPromptsListResult {
        items,
        issues,
        next_cursor: None,
    };
    if session.json {
        output::json(&result)?;
    }
    if let Some(failure) = named_server_failed(server, result.items.is_empty(), &result.issues) {
        return Err(failure.already_printed(session.json));
    }
    if !session.json {
        session.warn(&result.issues);
        table(session, &result.items).print_unless_empty("No prompts")?;
    }
    Ok(Exit::Done)
}

fn table(session: &Session, items: &[PromptItem]) -> Rows {
    let mut rows = Rows::new(
        session.terminal,
        &["SERVER", "PROMPT", "ARGUMENTS", "DESCRIPTION"],
    );
    for item in items {
        let description = description(&item.description, &item.title);
        rows.add([&item.server, &item.name, &signature(item), description]);
    }
    rows
}

fn signature(prompt: &PromptItem) -> String {
    let shown = prompt.arguments.iter().map(|argument| {
        if argument.required {
            argument.name.clone()
        } else {
            format!("[{}]", argument.name)
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}
