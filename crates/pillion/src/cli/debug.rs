//! `pillion debug`: what a server and its authorization server say about logging in. Nothing is registered or refreshed.

use protocol::{CheckLevel, DebugReport, McpDebug, methods};

use super::auth_list::left;
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Common, Session, checked};
use super::terminal::harmless;

/// Ask a server without a token, and show what it and its authorization server say about logging in
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server's name
    server: String,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let params = McpDebug {
        directory: session.directory.clone(),
        server: args.server.as_str().into(),
        work_done_token: session.token(),
    };
    let debug = session
        .manager
        .debug(&session.request, checked::<methods::Debug>(params)?);
    let report = session
        .work(&format!("Looking at {}", args.server), debug)
        .await?;
    let exit = match report.steps.iter().any(|step| step.level == CheckLevel::Error) {
        true => Exit::Failed,
        false => Exit::Done,
    };
    if session.json {
        output::json(&report)?;
        return Ok(exit);
    }
    for (name, value) in lines(&report) {
        output::line(&format!("{:<14}{}", format!("{name}:"), harmless(&value)))?;
    }
    for step in &report.steps {
        let mark = match step.level {
            CheckLevel::Ok => "ok",
            CheckLevel::Warning => "--",
            CheckLevel::Error => "!!",
        };
        output::line(&format!("  {mark} {}", harmless(&step.message)))?;
        if let Some(hint) = &step.hint {
            output::line(&format!("     hint: {}", harmless(hint)))?;
        }
    }
    Ok(exit)
}

fn lines(report: &DebugReport) -> Vec<(&'static str, String)> {
    let mut lines = vec![("url", report.url.clone())];
    if let Some(status) = report.http_status {
        let meaning = match status {
            200..300 => "no login is asked for",
            401 => "a login is asked for",
            403 => "more rights are asked for",
            _ => "unexpected",
        };
        lines.push(("HTTP status", format!("{status}, {meaning}")));
    }
    if let Some(challenge) = &report.challenge {
        let scope = challenge.scope.as_ref().map(|scope| format!(", scope `{scope}`"));
        let error = challenge.error.as_ref().map(|error| format!(", error `{error}`"));
        let rest: String = [scope, error].into_iter().flatten().collect();
        lines.push(("challenge", format!("{}{rest}", challenge.scheme)));
    }
    lines.extend(report.resource.clone().map(|resource| ("resource", resource)));
    lines.extend(report.issuer.clone().map(|issuer| ("issuer", issuer)));
    for (name, url) in report.endpoints.iter().flatten() {
        let name = match name.as_str() {
            "authorization_endpoint" => "authorize",
            "token_endpoint" => "token",
            "registration_endpoint" => "register",
            "revocation_endpoint" => "revoke",
            _ => "device",
        };
        lines.push((name, url.clone()));
    }
    lines.push(("client", report.registration.as_str().to_owned()));
    let stored = match (report.stored, report.expired, report.expires_at.and_then(left)) {
        (false, ..) => "nothing".to_owned(),
        (true, true, _) => "an expired token".to_owned(),
        (true, false, Some(left)) => format!("a token, expires in {left}"),
        (true, false, None) => "a token".to_owned(),
    };
    lines.push(("stored", stored));
    lines
}
