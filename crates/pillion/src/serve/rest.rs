//! The REST routes for peers: state and configuration as plain documents, and requests for changes.

use std::collections::BTreeMap;

use hyper::{Method as Verb, StatusCode};
use manager::{Manager, RequestContext};
use protocol::{
    Dir, Error, ErrorKind, Layer, McpAdd, McpConfig, McpServerStatus, McpStatus, Method, RestAccepted,
    RestConfig, RestPending, RestPendingStatus, RestServer, RestServers, Tier,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::peers::HttpResponse;
use super::{check, peers, registry};

/// Answers one request; the body is read and within bounds.
pub async fn answer(
    manager: &Manager,
    tier: Tier,
    verb: &Verb,
    path: &str,
    query: &str,
    body: &[u8],
) -> Result<(StatusCode, Value), Error> {
    let request = RequestContext {
        cancel: CancellationToken::new(),
        tier,
    };
    let directory = directory(manager, query)?;
    let here = directory.clone().unwrap_or_else(|| manager.default_directory());
    match (verb, path) {
        (&Verb::GET, "/mcp") => {
            let params = McpStatus {
                directory: here,
                server: None,
                ..Default::default()
            };
            let status = manager.status(&request, params).await?;
            let shown = status
                .servers
                .iter()
                .filter(|record| record.effective && (directory.is_some() || record.layer == Layer::User));
            let servers: BTreeMap<String, RestServer> = shown
                .map(|record| (record.name.to_string(), brief(record)))
                .collect();
            Ok((StatusCode::OK, json!(RestServers(servers))))
        }
        (&Verb::POST, "/mcp") => {
            registry::permit(Method::Add, tier)?;
            let post = check::rest_add(text(body)?)?;
            let name = post.name.to_string();
            let params = McpAdd {
                directory: here,
                name: post.name,
                entry: post.entry,
                replace: post.replace,
                ..McpAdd::default()
            };
            let written = manager.add(&request, params).await?;
            let pending = written.server.and_then(|record| record.pending);
            let expires_at = pending.map(|pending| pending.expires_at);
            Ok(accepted([name], expires_at))
        }
        (&Verb::GET, "/config" | "/global/config") => {
            let of_user = path == "/global/config" || directory.is_none();
            let params = McpConfig {
                directory: here,
                server: None,
            };
            let config = manager.config(&request, params).await?;
            let shown = config
                .servers
                .into_iter()
                .filter(|entry| entry.shadowed_by.is_none() && (!of_user || entry.layer == Layer::User));
            let servers = shown.map(|entry| (entry.name.to_string(), entry.entry)).collect();
            Ok((StatusCode::OK, json!(RestConfig { servers })))
        }
        (&Verb::PATCH, "/config" | "/global/config") => {
            registry::permit(Method::Edit, tier)?;
            let patch = check::rest_patch(text(body)?)?;
            let layer = match &directory {
                Some(_) if path == "/config" => Layer::Project,
                _ => Layer::User,
            };
            let names: Vec<String> = patch.servers.keys().cloned().collect();
            let expires_at = manager.patch(&request, &here, layer, patch.servers).await?;
            Ok(accepted(names, Some(expires_at)))
        }
        _ => Err(Error::new(
            ErrorKind::MethodNotFound,
            format!("there is no route `{verb} {path}`"),
        )
        .hint("docs/protocol.md lists the routes")),
    }
}

fn brief(record: &McpServerStatus) -> RestServer {
    RestServer {
        status: record.state,
        expires_at: record.pending.as_ref().map(|pending| pending.expires_at),
        auth: record.auth,
        tools: record.tools,
    }
}

fn accepted(names: impl IntoIterator<Item = String>, expires_at: Option<u64>) -> (StatusCode, Value) {
    let pending = |name| {
        let pending = RestPending {
            status: RestPendingStatus::Pending,
            expires_at,
        };
        (name, pending)
    };
    let waiting = RestAccepted(names.into_iter().map(pending).collect());
    (StatusCode::ACCEPTED, json!(waiting))
}

/// `?directory=`: one that the host has open.
fn directory(manager: &Manager, query: &str) -> Result<Option<Dir>, Error> {
    let mut directory = None;
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if name != "directory" {
            return Err(
                Error::new(ErrorKind::InvalidParams, format!("`{name}` is not known"))
                    .path("?")
                    .expected("`directory`"),
            );
        }
        if directory.is_some() {
            return Err(Error::new(ErrorKind::InvalidParams, "`directory` stands twice")
                .path("?")
                .expected("one directory"));
        }
        directory = Some(Dir::from(value.into_owned()));
    }
    match directory {
        Some(directory) if !manager.is_open(&directory) => Err(registry::not_open(&directory)),
        directory => Ok(directory),
    }
}

fn text(body: &[u8]) -> Result<&str, Error> {
    let not_json = |problem: String| {
        Error::new(
            ErrorKind::InvalidParams,
            format!("the body does not read: {problem}"),
        )
        .path("")
        .expected("a body as schema/openapi.json describes it")
    };
    let text = std::str::from_utf8(body).map_err(|error| not_json(error.to_string()))?;
    if text.trim_ascii_start().starts_with('{') {
        Ok(text)
    } else {
        Err(not_json("it is no JSON object".to_owned()))
    }
}

/// The answer to a verb that a route does not have; `None` where it is another matter.
pub fn wrong_verb(verb: &Verb, path: &str) -> Option<HttpResponse> {
    let verbs = protocol::openapi::verbs(path);
    if verbs.is_empty() || verbs.iter().any(|known| known == verb.as_str()) {
        return None;
    }
    let error = Error::new(
        ErrorKind::MethodNotFound,
        format!("there is no route `{verb} {path}`"),
    )
    .hint("schema/openapi.json lists the routes");
    let mut refused = peers::refusal(StatusCode::METHOD_NOT_ALLOWED, &error);
    if let Ok(allow) = verbs.join(", ").parse() {
        refused.headers_mut().insert(hyper::header::ALLOW, allow);
    }
    Some(refused)
}

/// An error as its status and body.
pub fn refused(error: &Error) -> HttpResponse {
    let status = match error.kind {
        ErrorKind::InvalidParams | ErrorKind::ParseError | ErrorKind::InvalidRequest => {
            StatusCode::BAD_REQUEST
        }
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::TargetMismatch | ErrorKind::NotFound | ErrorKind::MethodNotFound => StatusCode::NOT_FOUND,
        ErrorKind::StaleReview
        | ErrorKind::StaleRevision
        | ErrorKind::StaleCursor
        | ErrorKind::QuestionClosed
        | ErrorKind::NameTaken
        | ErrorKind::InUse => StatusCode::CONFLICT,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::ConfigBroken => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::TooManyPending | ErrorKind::Overloaded => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    peers::refusal(status, error)
}
