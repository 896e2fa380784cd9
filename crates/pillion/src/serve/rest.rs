//! The REST routes for peers: state and configuration as plain documents, and requests for changes.

use std::collections::BTreeMap;

use hyper::{Method as Verb, StatusCode};
use manager::{EntryChange, Manager, RequestContext};
use protocol::{
    Dir, Error, ErrorKind, Layer, McpAdd, McpConfig, McpServerStatus, McpStatus, Method, ServerEntry, Tier,
    methods,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::peers::HttpResponse;
use super::{check, peers, registry};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Post {
    name: String,
    entry: Value,
    replace: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    servers: BTreeMap<String, EntryChange>,
}

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
            let servers: Map<String, Value> = shown
                .map(|record| (record.name.to_string(), brief(record)))
                .collect();
            Ok((StatusCode::OK, Value::Object(servers)))
        }
        (&Verb::POST, "/mcp") => {
            registry::permit(Method::Add, tier)?;
            let post: Post = read(body)?;
            let params = json!({
                "directory": here, "name": post.name, "entry": post.entry, "replace": post.replace,
            });
            let params: McpAdd = check::params::<methods::Add>(Some(&params.to_string()))?;
            let name = params.name.to_string();
            let written = manager.add(&request, params).await?;
            let expires_at = written
                .server
                .and_then(|record| record.pending)
                .map(|pending| pending.expires_at);
            let pending = json!({ name: {"status": "pending", "expiresAt": expires_at} });
            Ok((StatusCode::ACCEPTED, pending))
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
            let servers: BTreeMap<String, ServerEntry> =
                shown.map(|entry| (entry.name.to_string(), entry.entry)).collect();
            Ok((StatusCode::OK, json!({"servers": servers})))
        }
        (&Verb::PATCH, "/config" | "/global/config") => {
            registry::permit(Method::Edit, tier)?;
            let patch: Patch = read(body)?;
            let layer = match &directory {
                Some(_) if path == "/config" => Layer::Project,
                _ => Layer::User,
            };
            let names: Vec<String> = patch.servers.keys().cloned().collect();
            let expires_at = manager.patch(&request, &here, layer, patch.servers).await?;
            let pending: Map<String, Value> = names
                .into_iter()
                .map(|name| (name, json!({"status": "pending", "expiresAt": expires_at})))
                .collect();
            Ok((StatusCode::ACCEPTED, Value::Object(pending)))
        }
        _ => Err(Error::new(
            ErrorKind::MethodNotFound,
            format!("there is no route `{verb} {path}`"),
        )
        .hint("docs/protocol.md lists the routes")),
    }
}

fn brief(record: &McpServerStatus) -> Value {
    let mut brief = json!({"status": record.state});
    if let Some(pending) = &record.pending {
        brief["expiresAt"] = json!(pending.expires_at);
    }
    if let Some(auth) = &record.auth {
        brief["auth"] = json!(auth);
    }
    if let Some(tools) = record.tools {
        brief["tools"] = json!(tools);
    }
    brief
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
        directory = Some(Dir::from(value.into_owned()));
    }
    match directory {
        Some(directory) if !manager.is_open(&directory) => Err(registry::not_open(&directory)),
        directory => Ok(directory),
    }
}

fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| {
        Error::new(
            ErrorKind::InvalidParams,
            format!("the body does not read: {error}"),
        )
        .path("")
        .expected("a body as docs/protocol.md describes it")
    })
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
