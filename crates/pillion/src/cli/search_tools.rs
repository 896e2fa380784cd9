//! `pillion search-tools`: tools found by words, also of servers that do not run.

use protocol::{McpToolsSearch, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::listing::{WAIT_MS, description};
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// Find tools by what they do; only servers that were never seen are started
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the tool should do
    #[arg(required = true)]
    words: Vec<String>,
    /// At most so many (1 to 100)
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpToolsSearch {
        directory: session.directory.clone(),
        query: args.words.join(" "),
        limit: Some(args.limit),
        wait_ms: Some(WAIT_MS),
        schemas: Some(session.json),
        ..Default::default()
    };
    let work = session
        .manager
        .tools_search(&session.request, checked::<methods::ToolsSearch>(params)?);
    let result = session.work("Searching tools", work).await?;
    if session.json {
        output::json(&result)?;
        return Ok(Exit::Done);
    }
    session.warn(&result.issues);
    let mut rows = Rows::new(session.terminal, &["SERVER", "TOOL", "TOKENS", "DESCRIPTION"]);
    for hit in &result.hits {
        let tokens = hit.tokens.to_string();
        rows.add([
            &hit.server,
            &hit.tool,
            &tokens,
            description(&hit.description, &hit.title),
        ]);
    }
    rows.print_unless_empty(&format!("None of {} tools fits", result.searched))?;
    Ok(Exit::Done)
}
