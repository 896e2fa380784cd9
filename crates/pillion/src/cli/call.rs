//! `pillion call`: one tool call; questions of the server are asked in the terminal.

use protocol::{CallId, McpToolCall, Raw, methods};
use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments::{self, Given, Mistake};
use super::content;
use super::exit::Exit;
use super::failure::Failure;
use super::listing::{first_sentence, named_server_failed};
use super::output;
use super::parameters::parameters;
use super::session::{Common, Session, checked};
use super::tools;

/// The one call of this process, by which a question names it.
const CALL: &str = "call";

/// Call a tool; asks the server's questions in the terminal
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Arguments:
  key=value     typed by the tool's schema: text, number, true or false, JSON for arrays and objects
  key:=json     JSON as it stands, whatever the schema says
  key=@file     the content of a file (`@-`: stdin; `@@` for a value that begins with @)
  '{…}'         all arguments as one JSON object; `@file` or `-` read it from a file or stdin")]
pub struct Args {
    /// The server's name
    server: String,
    /// The tool's name
    tool: String,
    /// A JSON object, or key=value …
    arguments: Vec<String>,
    /// Give up after SECONDS without an answer or progress (1 to 600)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: Option<u64>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let given =
        arguments::parse(&args.arguments, &mut read_source).map_err(|mistake| usage(mistake, args))?;
    let arguments = match given {
        Given::Whole(arguments) => arguments,
        Given::Pairs(pairs) => {
            let schema = schema(args, session).await?;
            arguments::typed(&pairs, &schema).map_err(|mistake| {
                let failure = usage(mistake, args);
                match describe(&schema) {
                    Some(list) => failure.note(format!("Parameters of `{}`:\n{list}", args.tool)),
                    None => failure,
                }
            })?
        }
    };
    let result = call(args, session, arguments).await?;
    let is_error = content::is_error(result.result.get());
    if session.json {
        output::json(&result)?;
    } else {
        session.warn(&result.issues);
        content::print_tool_result(result.result.get(), session.terminal)?;
    }
    if is_error {
        let failure = Failure::new(format!("the tool `{}` answered with an error", args.tool));
        return Err(failure.exit(Exit::ToolError).already_printed(session.json));
    }
    Ok(Exit::Done)
}

async fn call(
    args: &Args,
    session: &Session,
    arguments: Box<RawValue>,
) -> Result<protocol::McpToolCallResult, Failure> {
    let params = McpToolCall {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        name: args.tool.clone(),
        arguments: Some(Raw(arguments)),
        call: Some(CallId::from(CALL)),
        timeout_ms: args.timeout.map(|seconds| seconds * 1000),
        work_done_token: session.token(),
        ..Default::default()
    };
    let title = format!("{} {}", args.server, args.tool);
    Ok(session
        .work(
            &title,
            session
                .manager
                .tool_call(&session.request, checked::<methods::ToolCall>(params)?),
        )
        .await?)
}

/// The tool's schema; open where the server does not list the tool, which the call itself will answer for.
async fn schema(args: &Args, session: &Session) -> Result<Value, Failure> {
    let list = tools::list(session, Some(&args.server)).await?;
    if let Some(failure) = named_server_failed(Some(&args.server), list.items.is_empty(), &list.issues) {
        return Err(failure);
    }
    let named = |name: &str| name == args.tool;
    let own = list.items.iter().find(|tool| named(&tool.name));
    let tool = own.or_else(|| {
        list.items
            .iter()
            .find(|tool| tool.renamed.as_deref().is_some_and(named))
    });
    Ok(tool.map(tools::schema).unwrap_or_default())
}

fn usage(mistake: Mistake, args: &Args) -> Failure {
    Failure::usage(mistake.to_string()).hint(format!("`pillion tools {}` lists the parameters", args.server))
}

fn describe(schema: &Value) -> Option<String> {
    let parameters = parameters(schema);
    let lines = parameters.iter().map(|parameter| {
        let mark = if parameter.required { " (required)" } else { "" };
        let description = first_sentence(&parameter.description);
        let description = if description.is_empty() {
            String::new()
        } else {
            format!("  {description}")
        };
        format!("  {}: {}{mark}{description}", parameter.name, parameter.kind)
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Files and stdin behind `@` and `-`.
pub fn read_source(source: arguments::Source<'_>) -> std::io::Result<String> {
    match source {
        arguments::Source::Stdin => std::io::read_to_string(std::io::stdin().lock()),
        arguments::Source::File(path) => std::fs::read_to_string(path),
    }
}
