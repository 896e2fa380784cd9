//! `pillion export`: entries as a text for other programs, or for another machine.

use std::path::PathBuf;

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
    /// The form of the text: ours, or that of another program
    #[arg(long, default_value = "store", value_parser = formats(ExportFormat::ALL), hide_possible_values = true)]
    #[arg(long_help = long_help())]
    format: String,
    /// What becomes of secrets
    #[arg(long, value_enum, default_value = "reference")]
    secrets: Secrets,
    /// Write the text into FILE, which must not exist yet, instead of to stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only the project's own entries
    #[arg(long)]
    project: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Secrets {
    /// Variables stand for them
    Reference,
    Mask,
    /// As they are: the text is then a secret itself
    Include,
}

impl From<Secrets> for ExportSecrets {
    fn from(secrets: Secrets) -> ExportSecrets {
        match secrets {
            Secrets::Reference => ExportSecrets::Reference,
            Secrets::Mask => ExportSecrets::Mask,
            Secrets::Include => ExportSecrets::Include,
        }
    }
}

/// The words of formats, as the protocol has them.
pub fn formats(formats: &[ExportFormat]) -> clap::builder::PossibleValuesParser {
    let words: Vec<&'static str> = formats.iter().map(ExportFormat::as_str).collect();
    words.into()
}

pub fn format(word: &str) -> Option<ExportFormat> {
    ExportFormat::ALL
        .iter()
        .copied()
        .find(|format| format.as_str() == word)
}

fn long_help() -> String {
    let others: Vec<&str> = ExportFormat::ALL
        .iter()
        .skip(3)
        .map(ExportFormat::as_str)
        .collect();
    format!(
        "The form of the text: `store` (as mcp.json has it), `list` (as mcp-servers.json has it), `mcpServers` (the \
         map that most programs read), or that of one program: {}",
        others.join(", ")
    )
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpExport {
        directory: session.directory.clone(),
        scope: args.project.then_some(Scope::Project),
        servers: (!args.server.is_empty())
            .then(|| args.server.iter().map(|name| name.as_str().into()).collect()),
        format: format(&args.format),
        secrets: Some(args.secrets.into()),
    };
    let exported = session
        .manager
        .export(&session.request, checked::<methods::Export>(params)?)
        .await?;
    if let Some(file) = &args.output {
        write(file, &exported.text)?;
        eprintln!("Wrote {} to {}", servers(exported.count), file.display());
    }
    if session.json {
        output::json(&exported)?;
        return Ok(Exit::Done);
    }
    if args.output.is_none() {
        output::line(&exported.text)?;
    }
    for warning in &exported.warnings {
        warn(session.terminal.on_stderr(), warning, None);
    }
    session.warn(&exported.not_exported);
    Ok(Exit::Done)
}

/// For the person's eyes only: it may hold secrets, and a configuration says what runs here.
fn write(file: &std::path::Path, text: &str) -> Result<(), Failure> {
    let shown = file.display();
    if file.symlink_metadata().is_ok() {
        return Err(Failure::new(format!("`{shown}` exists already"))
            .hint("name another file; `pillion sync` writes into a configuration that is there"));
    }
    files::write_private(file, format!("{text}\n").as_bytes())
        .map_err(|error| Failure::new(format!("cannot write `{shown}`: {error}")))
}

/// `1 server`, `2 servers`.
pub fn servers(count: u32) -> String {
    match count {
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    }
}
