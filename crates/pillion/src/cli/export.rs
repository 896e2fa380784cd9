//! `pillion export`: entries as a text for other programs, or for another machine.

use protocol::{ExportFormat, ExportSecrets, McpExport, Scope, methods};

use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output;
use super::session::{Common, Session, checked};

/// Print entries for another program or machine; secrets become variables
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these servers
    server: Vec<String>,
    /// The form of the text
    #[arg(long, value_enum, default_value = "store")]
    format: Format,
    /// What becomes of secrets
    #[arg(long, value_enum, default_value = "reference")]
    secrets: Secrets,
    /// Only the project's own entries
    #[arg(long)]
    project: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// As mcp.json has it
    Store,
    /// A list, as mcp-servers.json has it
    List,
    /// The map that most other programs read
    #[value(name = "mcpServers")]
    McpServers,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Secrets {
    /// Variables stand for them
    Reference,
    Mask,
    /// As they are: the text is then a secret itself
    Include,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpExport {
        directory: session.directory.clone(),
        scope: args.project.then_some(Scope::Project),
        servers: (!args.server.is_empty())
            .then(|| args.server.iter().map(|name| name.as_str().into()).collect()),
        format: Some(match args.format {
            Format::Store => ExportFormat::Store,
            Format::List => ExportFormat::List,
            Format::McpServers => ExportFormat::McpServers,
        }),
        secrets: Some(match args.secrets {
            Secrets::Reference => ExportSecrets::Reference,
            Secrets::Mask => ExportSecrets::Mask,
            Secrets::Include => ExportSecrets::Include,
        }),
    };
    let exported = session
        .manager
        .export(&session.request, checked::<methods::Export>(params)?)
        .await?;
    if session.json {
        output::json(&exported)?;
        return Ok(Exit::Done);
    }
    output::line(&exported.text)?;
    for warning in &exported.warnings {
        warn(session.terminal.on_stderr(), warning, None);
    }
    Ok(Exit::Done)
}
