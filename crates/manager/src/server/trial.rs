//! One connection that leaves nothing behind: it is opened, its lists are read, and it is closed.
//!
//! It belongs to no server: no state, no log and no cache learns of it, and a running server of that name goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method};
use mcp::{
    CallOptions, Connection, ConnectionHost, Elicitation, Event, InputKind, InputReply, InputRequest,
    ListKind, ListLimits, Target, TokenSource,
};
use protocol::{
    Category, Error, ErrorKind, Fault, OauthSetting, Raw, ServerEntry, ServerName, TestResult, TestedTool,
};
use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::launch::{self, Origin};
use super::veil::Veil;
use super::{helper, login, runner, secrets};
use crate::catalog::items::Reader;
use crate::core::Core;
use crate::error::{auth_error, call_error, start_error};
use crate::install;
use crate::limits;
use crate::progress::Work;

/// What is tried.
pub(crate) struct Trial {
    pub name: ServerName,
    pub entry: ServerEntry,
    /// It is configured under that name.
    pub is_saved: bool,
    pub origin: Origin,
}

/// What a server offers.
struct Offer {
    tools: Vec<TestedTool>,
    resources: u32,
    prompts: u32,
    info: Option<Box<RawValue>>,
}

/// Tries an entry for at most `limit`, disposal included. A failure is a result.
pub(crate) async fn run(core: &Arc<Core>, trial: &Trial, limit: Duration, work: &Work<'_>) -> TestResult {
    let begun = Instant::now();
    let over = CancellationToken::new();
    // What is left is for the disposal.
    let deadline = begun + limit - (limit / 10).min(limits::TRIAL_DISPOSAL);
    let host = Arc::new(Host {
        _over: over.clone().drop_guard(),
    });
    let attempt = async {
        // The same words as in the status: nothing that was filled in.
        let veil = || Veil::of(core, &trial.entry, &trial.origin.base);
        let opened = open(core, trial, host, deadline, work).await;
        let connection = opened.map_err(|error| veil().error(error))?;
        work.message("reading its tools");
        let offer = offer(core, &connection, trial, deadline).await;
        let elapsed = begun.elapsed();
        let _ = tokio::time::timeout(limits::TRIAL_DISPOSAL, connection.close()).await;
        offer
            .map(|offer| (offer, elapsed))
            .map_err(|error| veil().error(error))
    };
    let attempt = tokio::time::timeout_at((deadline + limits::TRIAL_DISPOSAL).into(), attempt);
    let outcome = attempt
        .await
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::TimedOut, "")));
    let elapsed = begun.elapsed();
    // Whatever carried the connection is gone with it; what takes longer ends behind the answer.
    let _ = tokio::time::timeout(limits::TRIAL_DISPOSAL, over.cancelled()).await;
    match outcome {
        Ok((offer, elapsed)) => TestResult {
            ok: true,
            message: connected(elapsed, offer.tools.len()),
            elapsed_ms: millis(elapsed),
            tokens: offer.tools.iter().filter_map(|tool| tool.tokens).sum(),
            tools: offer.tools,
            resources: offer.resources,
            prompts: offer.prompts,
            info: offer.info.map(Raw),
            fault: None,
        },
        Err(error) => failed(&trial.entry, trial.is_saved, error, limit, elapsed),
    }
}

fn connected(elapsed: Duration, tools: usize) -> String {
    let noun = if tools == 1 { "tool" } else { "tools" };
    format!(
        "Connected in {:.1}s - {tools} {noun} discovered.",
        elapsed.as_secs_f64()
    )
}

fn failed(
    entry: &ServerEntry,
    is_saved: bool,
    mut error: Error,
    limit: Duration,
    elapsed: Duration,
) -> TestResult {
    if error.kind == ErrorKind::TimedOut {
        error.message = format!("No tool sync within {}s", limit.as_secs_f64());
        error.data.hint = Some(late_hint(entry, is_saved));
    }
    TestResult {
        ok: false,
        message: format!("Test failed: {}", error.message),
        elapsed_ms: millis(elapsed),
        tools: Vec::new(),
        tokens: 0,
        resources: 0,
        prompts: 0,
        info: None,
        fault: Some(Fault::from(&error)),
    }
}

/// Programs that fetch what they run, and what their cache is filled with.
fn late_hint(entry: &ServerEntry, is_saved: bool) -> String {
    let Some(command) = &entry.command else {
        return "check that the address is that of an MCP server, or test again with a longer limit"
            .to_owned();
    };
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let program = program.trim_end_matches(".exe").trim_end_matches(".cmd");
    match program {
        "npx" | "uvx" if is_saved && install::wish(entry).is_some() => format!(
            "`{program}` may still have been downloading the package: `mcp.prefetch` fetches it once, then test again"
        ),
        "npx" | "uvx" | "bunx" | "pnpx" | "pipx" | "uv" | "pnpm" | "bun" | "deno" | "yarn" => format!(
            "`{program}` may still have been downloading the package: run the command once in a terminal, so that it is fetched before, then test again"
        ),
        "docker" | "podman" => format!(
            "`{program}` may still have been pulling the image: pull it in a terminal before, then test again"
        ),
        _ => {
            "run the command in a terminal to see what it says, or test again with a longer limit".to_owned()
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

async fn open(
    core: &Arc<Core>,
    trial: &Trial,
    host: Arc<Host>,
    deadline: Instant,
    work: &Work<'_>,
) -> Result<Connection, Error> {
    let entry = &trial.entry;
    let subject = secrets::Subject {
        name: &trial.name,
        label: &trial.name,
        base: &trial.origin.base,
        inherit: trial.origin.inherit(),
        // A test may be of something that nobody has agreed to keep.
        ask_in: None,
    };
    secrets::find(core, entry, &subject, true).await?;
    let mut prepared = launch::prepare(core, entry, &trial.name, &trial.origin).await?;
    if let Target::Http(target) = &mut prepared.target {
        let tokens: Option<Arc<dyn TokenSource>> = match &entry.oauth {
            Some(OauthSetting::Off(_)) => None,
            _ => {
                let settings = login::settings_of(core, entry, &trial.name, &trial.origin).await?;
                Some(Arc::new(Tokens(core.authorizer().source(settings))))
            }
        };
        target.tokens = helper::beneath(prepared.helper.take(), tokens);
    }
    if let Some(reason) = core.forbidden(&trial.name, &prepared) {
        return Err(
            Error::new(ErrorKind::Denied, format!("this is forbidden: {reason}")).by("administrator"),
        );
    }
    if let (Target::Stdio(target), Some(wish)) = (&mut prepared.target, install::wish(entry)) {
        let shared = Arc::clone(core);
        let looked = tokio::task::spawn_blocking(move || {
            install::installed(&shared, &wish).map(|installed| (wish, installed))
        });
        if let Ok(Some((wish, installed))) = looked.await {
            install::divert(core, &wish, &installed, target);
        }
    }
    let _turn = core
        .starts
        .acquire()
        .await
        .map_err(|_| Error::new(ErrorKind::Internal, "no more starts"))?;
    work.message("connecting");
    let left = deadline.saturating_duration_since(Instant::now());
    let mut options = runner::options(core, entry, None, left);
    // Nobody is asked anything for a test; what is offered is the same, so that the server behaves as it will.
    if entry.elicitation != Some(false) {
        options.capabilities.elicitation = Elicitation::Form;
    }
    options.capabilities.sampling = false;
    options.stop_grace = limits::TRIAL_GRACE;
    let veil = prepared.veil;
    mcp::connect(prepared.target, options, host)
        .await
        .map_err(|error| veil.error(start_error(&error)))
}

async fn offer(
    core: &Core,
    connection: &Connection,
    trial: &Trial,
    deadline: Instant,
) -> Result<Offer, Error> {
    let tools = list(connection, trial, ListKind::Tools, "tools", deadline).await?;
    let mut tested: Vec<TestedTool> = tools
        .iter()
        .filter_map(|tool| serde_json::from_str(tool.get()).ok())
        .collect();
    let reader = Reader {
        server: &trial.name,
        entry: &trial.entry,
        naming: &core.settings().naming,
        header_rules: false,
    };
    let costs = reader.list(Category::Tools, tools, Vec::new()).costs();
    for tool in &mut tested {
        let cost = costs.iter().find(|cost| cost.tool == tool.name);
        tool.tokens = cost.map(|cost| cost.tokens);
    }
    // The tools decide. What else a server offers is only counted, and a fault there fails no test.
    let resources = list(connection, trial, ListKind::Resources, "resources", deadline).await;
    let prompts = list(connection, trial, ListKind::Prompts, "prompts", deadline).await;
    let count = |listed: Result<Vec<Box<RawValue>>, Error>| listed.map_or(0, |items| items.len() as u32);
    Ok(Offer {
        tools: tested,
        resources: count(resources),
        prompts: count(prompts),
        info: connection.info().server_info.clone(),
    })
}

async fn list(
    connection: &Connection,
    trial: &Trial,
    kind: ListKind,
    capability: &str,
    deadline: Instant,
) -> Result<Vec<Box<RawValue>>, Error> {
    let offered = connection.info().capabilities.get(capability);
    if offered.is_none_or(serde_json::Value::is_null) {
        return Ok(Vec::new());
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let options = CallOptions {
        hard_limit: left,
        ..CallOptions::new(left)
    };
    let listed = connection
        .list(kind, ListLimits::default(), options)
        .await
        .map_err(|error| call_error(error, &trial.name))?;
    Ok(listed.items)
}

/// Tokens that are stored already; a test logs nobody in.
struct Tokens(auth::ServerTokens);

impl TokenSource for Tokens {
    fn headers<'a>(&'a self, method: &'a Method, url: &'a Url) -> BoxFuture<'a, Result<HeaderMap, String>> {
        async move {
            let headers = self.0.headers(method.as_str(), url).await;
            headers.map_err(|error| auth_error(&error).message)
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        refusal: mcp::Refusal<'a>,
        attempts: &'a mut mcp::Attempts,
    ) -> BoxFuture<'a, bool> {
        async move {
            let mut own = login::own_attempts(attempts);
            let verdict = self.0.refused(&login::own_refusal(&refusal), &mut own).await;
            attempts.renewed = own.renewed;
            attempts.nonce = own.nonce;
            matches!(verdict, auth::Verdict::Retry)
        }
        .boxed()
    }

    fn nonce(&self, url: &Url, nonce: &str) {
        self.0.nonce(url, nonce);
    }
}

/// Hears nothing and answers no question; tells by its end that the connection is gone.
struct Host {
    _over: DropGuard,
}

impl ConnectionHost for Host {
    fn event(&self, _: Event) {}

    fn input(&self, input: InputRequest) -> BoxFuture<'static, InputReply> {
        let reply = match input.kind {
            InputKind::Elicit => {
                to_raw_value(&serde_json::json!({"action": "decline"})).map(InputReply::Result)
            }
            InputKind::Roots => to_raw_value(&serde_json::json!({"roots": []})).map(InputReply::Result),
            InputKind::Sample => Ok(InputReply::Error {
                code: -32601,
                message: "sampling is not offered".to_owned(),
            }),
        };
        let reply = reply.unwrap_or_else(|error| InputReply::Error {
            code: -32603,
            message: error.to_string(),
        });
        std::future::ready(reply).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_fixed() {
        assert_eq!(
            connected(Duration::from_millis(7_312), 9),
            "Connected in 7.3s - 9 tools discovered."
        );
        let entry = ServerEntry {
            command: Some("/usr/bin/npx".to_owned()),
            ..ServerEntry::default()
        };
        let late = Error::new(ErrorKind::TimedOut, "no answer");
        let result = failed(
            &entry,
            false,
            late,
            Duration::from_secs(20),
            Duration::from_secs(19),
        );
        assert_eq!(result.message, "Test failed: No tool sync within 20s");
        let hint = result.fault.and_then(|fault| fault.hint).unwrap_or_default();
        assert!(hint.contains("downloading"), "{hint}");
    }
}
