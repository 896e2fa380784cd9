//! `pillion expand`: a prompt as a model would get it, with its mentions and its command carried out.

use protocol::{CallId, McpPromptExpand, PromptPart, methods};

use super::arguments::Source;
use super::call::read_source;
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};
use super::terminal::harmless;

/// Carry out the mentions (@server:resource) and the command (/server:prompt) of a text
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The text; several words are joined, `-` reads stdin
    #[arg(required = true)]
    text: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let text = match args.text.as_slice() {
        [word] if word == "-" => read_source(Source::Stdin)
            .map_err(|error| Failure::new("cannot read stdin").cause(error.to_string()))?,
        words => words.join(" "),
    };
    let params = McpPromptExpand {
        directory: session.directory.clone(),
        text,
        call: Some(CallId::from("expand")),
        work_done_token: session.token(),
        ..Default::default()
    };
    let work = session
        .manager
        .prompt_expand(&session.request, checked::<methods::PromptExpand>(params)?);
    let result = session.work("Expanding the prompt", work).await?;
    if session.json {
        output::json(&result)?;
        return Ok(Exit::Done);
    }
    session.warn(&result.issues);
    for part in &result.parts {
        match part {
            PromptPart::Text(part) => output::line(&harmless(&part.text))?,
            PromptPart::Resource(part) => {
                let heading = format!("--- {} ({})", part.mention, part.uri);
                let heading = session.terminal.on_stdout().bold(&harmless(&heading));
                output::line(&format!("\n{heading}\n{}", harmless(&part.text)))?;
            }
        }
    }
    Ok(Exit::Done)
}
