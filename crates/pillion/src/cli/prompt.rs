//! `pillion prompt`: the messages of a prompt with its arguments filled in.

use std::collections::BTreeMap;

use protocol::{CallId, McpPromptGet, methods};

use super::arguments::{self, Word};
use super::call::read_source;
use super::content;
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};

/// Print a prompt with its arguments filled in
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    /// The prompt's name
    name: String,
    /// key=value …, all texts; `@file` reads a file
    arguments: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let hint = format!("`pillion prompts {}` lists the arguments", args.server);
    let pairs = arguments::pairs(&args.arguments, &mut read_source)
        .map_err(|mistake| Failure::usage(mistake.to_string()).hint(&hint))?;
    // A prompt takes texts only (MCP, Prompts), so JSON is sent as the text that was typed.
    let texts: BTreeMap<String, String> = pairs
        .into_iter()
        .map(|pair| match pair.value {
            Word::Text(text) | Word::Json(text) => (pair.name, text),
        })
        .collect();
    let params = McpPromptGet {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        name: args.name.clone(),
        args: Some(texts),
        call: Some(CallId::from("prompt")),
        work_done_token: session.token(),
        ..Default::default()
    };
    let work = session
        .manager
        .prompt_get(&session.request, checked::<methods::PromptGet>(params)?);
    let result = session
        .work(&format!("{} {}", args.server, args.name), work)
        .await?;
    if session.json {
        output::json(&result)?;
    } else {
        session.warn(&result.issues);
        content::print_prompt(result.result.get(), session.terminal)?;
    }
    Ok(Exit::Done)
}
