//! `pillion config`: the entries as they stand in their files, secrets masked.

use protocol::{McpConfig, methods};

use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output;
use super::session::{Common, Session, checked};
use super::status;

/// Show entries as they stand in their files; secrets are masked
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this server
    server: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpConfig {
        directory: session.directory.clone(),
        server: args.server.as_deref().map(Into::into),
    };
    let config = session
        .manager
        .config(&session.request, checked::<methods::Config>(params)?)
        .await?;
    if let (Some(server), true) = (&args.server, config.servers.is_empty()) {
        return Err(status::unknown(server, session).await);
    }
    if session.json {
        output::json(&config)?;
        return Ok(Exit::Done);
    }
    for entry in &config.servers {
        let place = entry
            .file
            .as_ref()
            .map_or_else(|| entry.layer.to_string(), ToString::to_string);
        let hidden = entry
            .shadowed_by
            .map(|layer| format!(" (hidden by layer {layer})"))
            .unwrap_or_default();
        eprintln!("{place}{hidden}");
        let text = serde_json::json!({ entry.name.to_string(): entry.entry });
        output::line(&serde_json::to_string_pretty(&text).unwrap_or_default())?;
    }
    for profile in config.profiles.iter().flatten() {
        eprintln!("{}, profile", profile.file);
        let text = serde_json::json!({ profile.name.to_string(): {
            "servers": profile.servers,
            "description": profile.description,
        } });
        output::line(&serde_json::to_string_pretty(&text).unwrap_or_default())?;
        for name in profile.unknown.iter().flatten() {
            warn(
                session.terminal.on_stderr(),
                &format!(
                    "profile `{}` names `{name}`, which does not exist here",
                    profile.name
                ),
                Some("correct the name in the profile, or add the server"),
            );
        }
    }
    Ok(Exit::Done)
}
