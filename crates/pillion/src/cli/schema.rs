//! `pillion schema`: the JSON Schema of the protocol, for generators of clients and for looking things up.

use protocol::Method;

use super::exit::Exit;
use super::failure::Failure;
use super::output;

/// Print the JSON Schema of the protocol, or of one method's parameters
#[derive(Debug, clap::Args)]
pub struct Args {
    /// For example mcp.tool.call; without it the whole bundle
    method: Option<String>,
    /// Print on one line
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let schema = match &args.method {
        None => protocol::schema::bundle(),
        Some(name) => {
            let method = Method::from_name(name).ok_or_else(|| unknown(name))?;
            protocol::schema::params_schema(method)
        }
    };
    let text = if args.json {
        Ok(schema.to_string())
    } else {
        serde_json::to_string_pretty(&schema)
    };
    output::line(&text.map_err(|error| Failure::new("cannot print the schema").cause(error.to_string()))?)?;
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
