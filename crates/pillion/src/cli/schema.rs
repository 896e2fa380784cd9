//! `pillion schema`: the JSON Schema of the protocol, for generators of clients and for looking things up.

use protocol::Method;
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::output;

/// Print the JSON Schema of the protocol, or of one method: its parameters and its result
#[derive(Debug, clap::Args)]
pub struct Args {
    /// For example mcp.tool.call; without it the whole bundle
    method: Option<String>,
    /// Print on one line
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let file = match &args.method {
        None => "pillion.schema.json".to_owned(),
        Some(name) => {
            let method = Method::from_name(name).ok_or_else(|| unknown(name))?;
            format!("methods/{method}.json")
        }
    };
    // The very text of the files in `schema/`.
    let found = protocol::generated_files()
        .into_iter()
        .find(|(path, _)| path.ends_with(&file));
    let (_, text) = found.ok_or_else(|| Failure::new(format!("there is no schema `{file}`")))?;
    if !args.json {
        output::raw(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let document: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new("the schema is not JSON").cause(error.to_string()))?;
    output::json(&document)?;
    Ok(Exit::Done)
}

fn unknown(name: &str) -> Failure {
    let near: Vec<&str> = Method::ALL
        .iter()
        .map(|method| method.name())
        .filter(|n| n.contains(name))
        .collect();
    let failure = Failure::usage(format!("there is no method `{name}`"));
    if near.is_empty() {
        let names: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
        failure.hint(format!("the methods are {}", names.join(", ")))
    } else {
        failure.hint(format!("did you mean {}?", near.join(" or ")))
    }
}
