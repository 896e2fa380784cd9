//! `pillion prompts`: what servers have ready to say.

use protocol::PromptItem;

use super::exit::Exit;
use super::failure::Failure;
use super::listing::{self, description};
use super::output::Rows;
use super::session::{Common, Session};

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
    let list = listing::list!(
        session,
        server,
        "Listing prompts",
        McpPromptsList,
        PromptsList,
        prompts_list
    )
    .await?;
    listing::print(
        session,
        server,
        &list,
        |items| table(session, items),
        "No prompts",
    )
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
