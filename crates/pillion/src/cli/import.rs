//! `pillion import`: takes over the servers of other programs; starts none.

use std::io::Read as _;

use protocol::{ImportStatus, McpImport, McpImportDetect, Scope, methods};

use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// Import the servers of another program's configuration; without a file, say what is on this machine
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file, or - for stdin
    file: Option<String>,
    /// Only this server; may be repeated
    #[arg(long, value_name = "NAME", requires = "file")]
    server: Vec<String>,
    /// Write into the project's .pillion/mcp.json, for everyone who works on it
    #[arg(long, requires = "file")]
    project: bool,
    /// Replace entries of the same name
    #[arg(long, requires = "file")]
    replace: bool,
    /// Show what would be written and write nothing
    #[arg(long, requires = "file")]
    dry_run: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let Some(file) = &args.file else {
        return detect(session).await;
    };
    let mut params = McpImport {
        directory: session.directory.clone(),
        scope: args.project.then_some(Scope::Project),
        names: (!args.server.is_empty())
            .then(|| args.server.iter().map(|name| name.as_str().into()).collect()),
        replace: args.replace.then_some(true),
        dry_run: args.dry_run.then_some(true),
        ..Default::default()
    };
    if file == "-" {
        params.text = Some(stdin()?);
    } else {
        let path = std::path::absolute(file).map_err(|error| Failure::usage(error.to_string()))?;
        params.source = Some(path.display().to_string());
    }
    let imported = session
        .manager
        .import(&session.request, checked::<methods::Import>(params)?)
        .await?;
    let exit = if imported.failed > 0 || imported.results.is_empty() {
        Exit::Failed
    } else {
        Exit::Done
    };
    if session.json {
        output::json(&imported)?;
        return Ok(exit);
    }
    let mut rows = Rows::new(session.terminal, &["NAME", "RESULT", "SAVED AS", "WHY"]);
    for one in &imported.results {
        let saved = one.saved_as.as_deref().unwrap_or_default();
        rows.add([
            &*one.name,
            one.status.as_str(),
            saved,
            one.reason.as_deref().unwrap_or_default(),
        ]);
    }
    rows.print_unless_empty(&format!("No server was found in `{file}`"))?;
    if imported.results.is_empty() {
        let hint = session.terminal.on_stderr().cyan("hint:");
        eprintln!("{hint} servers stand under `mcpServers`, `servers` or the key that their program uses");
    }
    session.warn(&imported.not_imported);
    for need in &imported.needs {
        let names: Vec<&str> = need.servers.iter().map(|name| &**name).collect();
        let message = format!("`{}` is still to be filled in: {}", need.label, names.join(", "));
        warn(
            session.terminal.on_stderr(),
            &message,
            Some("`pillion edit` changes an entry"),
        );
    }
    let is_any = imported
        .results
        .iter()
        .any(|one| matches!(one.status, ImportStatus::Added | ImportStatus::Replaced));
    if args.dry_run {
        eprintln!("Nothing was written");
    } else if is_any {
        eprintln!("Imported {}; nothing was started", imported.added);
    }
    Ok(exit)
}

pub fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(1 << 20)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
    Ok(text)
}

/// What is on this machine and in the project.
pub async fn detect(session: &Session) -> Result<Exit, Failure> {
    let params = McpImportDetect {
        directory: session.directory.clone(),
    };
    let found = session
        .manager
        .import_detect(&session.request, checked::<methods::ImportDetect>(params)?)
        .await?;
    if session.json {
        output::json(&found)?;
        return Ok(Exit::Done);
    }
    let mut rows = Rows::new(session.terminal, &["PROGRAM", "WORD", "SCOPE", "SERVERS", "FILE"]);
    for source in &found.sources {
        let names: Vec<&str> = source.servers.iter().map(|name| &**name).collect();
        rows.add([
            &*source.client,
            source.format.as_str(),
            source.scope.as_str(),
            &names.join(", "),
            &*source.path,
        ]);
    }
    rows.print_unless_empty("No configuration of another program was found")?;
    for source in &found.sources {
        session.warn(&source.problems);
    }
    Ok(Exit::Done)
}
