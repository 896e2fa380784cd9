//! `pillion gallery`: the bundled list of servers to add.

use protocol::{GalleryItem, McpGallery, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// List well-known servers that can be added
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only those that these words fit
    query: Vec<String>,
    /// Only this category: core, dev, data, search, productivity or cloud
    #[arg(long)]
    category: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let query = (!args.query.is_empty()).then(|| args.query.join(" "));
    let params = McpGallery {
        directory: session.directory.clone(),
        query: query.clone(),
        category: args.category.clone(),
    };
    let params = checked::<methods::Gallery>(params)?;
    let result = session.manager.gallery(&session.request, params).await?;
    if session.json {
        output::json(&result)?;
        return Ok(Exit::Done);
    }
    let mut rows = Rows::new(session.terminal, &["ID", "CATEGORY", "WHAT IT DOES", "FROM"]);
    for item in &result.items {
        rows.add([&item.id, &item.category, &item.description, &origin(item)]);
    }
    rows.print_unless_empty("No server of the gallery fits")?;
    let hint = session.terminal.on_stderr().cyan("hint:");
    if !result.items.is_empty() {
        eprintln!("{hint} `pillion add --from ID` shows one whole and adds it");
    } else if args.category.is_some() {
        eprintln!("{hint} the categories are {}", result.categories.join(", "));
    } else if let Some(query) = &query {
        eprintln!("{hint} `pillion search {query}` looks in the official registry too");
    }
    Ok(Exit::Done)
}

/// `by <publisher> - needs <VAR>`.
fn origin(item: &GalleryItem) -> String {
    let required = item.draft.needs.iter().filter(|need| need.required);
    let names: Vec<&str> = required.map(|need| need.label.as_str()).collect();
    let needs = if names.is_empty() {
        String::new()
    } else {
        format!(" - needs {}", names.join(", "))
    };
    let added = if item.added { " (added)" } else { "" };
    format!("by {}{needs}{added}", item.publisher)
}
