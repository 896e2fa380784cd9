//! `pillion client`: a typed client of servers' tools, as one file of a program.
//!
//! The file brings its own small runtime, which starts `pillion serve` and speaks the protocol with it; for a shell,
//! `pillion call` is that client already.

mod python;
mod shape;
mod typescript;
mod words;

use std::path::PathBuf;

use protocol::ToolItem;
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::listing::named_server_failed;
use super::output;
use super::session::{Common, Session};
use super::tools;
use shape::{Object, Shape};

/// Generate a typed client of servers' tools, in TypeScript or Python
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these servers; default all
    server: Vec<String>,
    /// The language
    #[arg(long, value_enum)]
    lang: Language,
    /// The file to write; default stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Language {
    /// For Node 20 and later
    #[value(alias = "ts")]
    Typescript,
    /// For Python 3.11 and later
    #[value(alias = "py")]
    Python,
}

/// A server with the tools that can be called.
struct Server {
    name: String,
    tools: Vec<Tool>,
}

struct Tool {
    /// The server's own name, by which it is called.
    name: String,
    /// The name that its method is made of.
    shown: String,
    description: String,
    input: Shape,
    output: Option<Shape>,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let mut servers: Vec<Server> = Vec::new();
    for name in wanted(args) {
        let listed = tools::list(session, name).await?;
        if let Some(failure) = named_server_failed(name, listed.items.is_empty(), &listed.issues) {
            return Err(failure);
        }
        session.warn(&listed.issues);
        for item in listed.items.iter().filter(|item| item.hidden.is_none()) {
            match servers.iter_mut().find(|server| server.name == *item.server) {
                Some(server) => server.tools.push(tool(item)),
                None => servers.push(Server {
                    name: item.server.to_string(),
                    tools: vec![tool(item)],
                }),
            }
        }
    }
    if servers.is_empty() {
        return Err(Failure::new("there are no tools to call").hint("`pillion tools` lists them"));
    }
    let text = match args.lang {
        Language::Typescript => typescript::client(&servers),
        Language::Python => python::client(&servers),
    };
    let n_tools: usize = servers.iter().map(|server| server.tools.len()).sum();
    match &args.output {
        Some(path) => {
            files::write_shared(path, text.as_bytes())
                .map_err(|error| Failure::new(format!("cannot write `{}`: {error}", path.display())))?;
            eprintln!(
                "Wrote {n_tools} tools of {} servers to {}",
                servers.len(),
                path.display()
            );
        }
        None if session.json => output::json(&serde_json::json!({ "text": text }))?,
        None => output::raw(text.as_bytes())?,
    }
    Ok(Exit::Done)
}

/// Each named server once; none named means all at once.
fn wanted(args: &Args) -> Vec<Option<&str>> {
    if args.server.is_empty() {
        return vec![None];
    }
    let mut names: Vec<Option<&str>> = Vec::new();
    for name in &args.server {
        if !names.contains(&Some(name.as_str())) {
            names.push(Some(name));
        }
    }
    names
}

fn tool(item: &ToolItem) -> Tool {
    let raw: Value = serde_json::from_str(item.raw.get()).unwrap_or_default();
    // Arguments are an object, whatever a schema leaves open (MCP, Tools).
    let input = match Shape::of(&raw["inputSchema"]) {
        shape @ (Shape::Object(_) | Shape::Union(_)) => shape,
        _ => Shape::Object(Object {
            fields: Vec::new(),
            rest: Some(Box::new(Shape::Any)),
        }),
    };
    Tool {
        name: item.name.clone(),
        shown: item.renamed.clone().unwrap_or_else(|| item.name.clone()),
        description: item
            .description
            .clone()
            .or_else(|| item.title.clone())
            .unwrap_or_default(),
        input,
        output: raw["outputSchema"]
            .is_object()
            .then(|| Shape::of(&raw["outputSchema"])),
    }
}
