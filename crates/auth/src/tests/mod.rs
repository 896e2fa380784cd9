//! Logins against a scripted authorization server on this machine.

mod grants;
mod logins;
mod refreshes;
mod refusals;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::{Url, form_urlencoded};

use crate::{Authorizer, Settings};

/// An MCP server and its authorization server in one, with answers that a test lays down.
#[derive(Clone)]
struct Scripted(Arc<Inner>);

struct Inner {
    origin: String,
    log: Mutex<Vec<Seen>>,
    /// By `METHOD /path`: the answers in order; the last one is repeated.
    answers: Mutex<HashMap<String, VecDeque<Answer>>>,
}

/// A request that came.
#[derive(Clone, Debug)]
struct Seen {
    what: String,
    headers: HeaderMap,
    parameters: HashMap<String, String>,
    json: Value,
}

#[derive(Clone, Default)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    delay_ms: u64,
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer {
        status,
        body: body.to_string(),
        ..Answer::default()
    }
}

impl Answer {
    fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn after(mut self, delay_ms: u64) -> Answer {
        self.delay_ms = delay_ms;
        self
    }
}

impl Scripted {
    async fn start() -> Scripted {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let scripted = Scripted(Arc::new(Inner {
            origin: format!("http://{}", listener.local_addr().unwrap()),
            log: Mutex::default(),
            answers: Mutex::default(),
        }));
        let origin = &scripted.0.origin;
        scripted.on(
            "GET /.well-known/oauth-protected-resource/mcp",
            [answer(
                200,
                &json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}),
            )],
        );
        scripted.metadata(json!({}));
        scripted.on("POST /register", [answer(201, &json!({"client_id": "c-1"}))]);
        scripted.on("POST /token", [token("at-1", Some("rt-1"), 3600)]);
        let router = Router::new().fallback(serve).with_state(scripted.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        scripted
    }

    /// Lays down answers.
    fn on(&self, what: &str, answers: impl IntoIterator<Item = Answer>) {
        let answers = answers.into_iter().collect();
        self.0.answers.lock().unwrap().insert(what.to_owned(), answers);
    }

    /// The metadata of the authorization server with these members changed (`null` removes one).
    fn metadata(&self, changes: Value) {
        let origin = &self.0.origin;
        let mut document = json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        });
        for (name, value) in changes.as_object().unwrap() {
            document[name] = value.clone();
        }
        self.on(
            "GET /.well-known/oauth-authorization-server",
            [answer(200, &document)],
        );
    }

    fn url(&self, path: &str) -> Url {
        format!("{}{path}", self.0.origin).parse().unwrap()
    }

    fn settings(&self) -> Settings {
        Settings::new(self.url("/mcp"), "Pillion (test)")
    }

    /// The requests to a place.
    fn seen(&self, what: &str) -> Vec<Seen> {
        let log = self.0.log.lock().unwrap();
        log.iter().filter(|seen| seen.what == what).cloned().collect()
    }
}

async fn serve(
    State(scripted): State<Scripted>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let what = format!("{method} {}", uri.path());
    let json = serde_json::from_slice(&body).unwrap_or_default();
    let query = uri.query().unwrap_or_default().as_bytes();
    let parameters: HashMap<String, String> =
        form_urlencoded::parse(if query.is_empty() { &body } else { query })
            .into_owned()
            .collect();
    scripted.0.log.lock().unwrap().push(Seen {
        what: what.clone(),
        headers,
        parameters: parameters.clone(),
        json,
    });
    let scripted_answer = {
        let mut answers = scripted.0.answers.lock().unwrap();
        answers.get_mut(&what).and_then(|answers| match answers.len() {
            0 | 1 => answers.front().cloned(),
            _ => answers.pop_front(),
        })
    };
    let answer = scripted_answer.unwrap_or_else(|| match what.as_str() {
        "GET /authorize" => {
            let back = &parameters["redirect_uri"];
            let glue = if back.contains('?') { '&' } else { '?' };
            Answer {
                status: 302,
                ..Answer::default()
            }
            .header(
                "location",
                &format!("{back}{glue}code=code-1&state={}", parameters["state"]),
            )
        }
        _ => answer(404, &json!({})),
    });
    tokio::time::sleep(std::time::Duration::from_millis(answer.delay_ms)).await;
    let mut response = Response::new(answer.body.into());
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap();
    for (name, value) in answer.headers {
        response
            .headers_mut()
            .append(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    response
}

fn token(access: &str, refresh: Option<&str>, expires_in: u64) -> Answer {
    answer(
        200,
        &json!({"access_token": access, "token_type": "Bearer", "expires_in": expires_in, "refresh_token": refresh}),
    )
}

fn client() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}

/// The logins of a data folder, as one process sees them.
fn process(folder: &Path) -> Authorizer {
    Authorizer::new(folder.join("mcp-auth.json"), Arc::new(client), Vec::new())
}

/// A browser without a person in front of it: it follows every redirect.
async fn browse(url: &str) -> (u16, String) {
    let response = client().build().unwrap().get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Writes a store as an earlier login would have left it.
fn preset(folder: &Path, scripted: &Scripted, members: Value) {
    let origin = &scripted.0.origin;
    let mut record = json!({
        "issuer": origin,
        "resource": format!("{origin}/mcp"),
        "tokenEndpoint": format!("{origin}/token"),
        "client": {"id": "c-0", "kind": "dynamic"},
        "accessToken": "at-0",
        "refreshToken": "rt-0",
    });
    for (name, value) in members.as_object().unwrap() {
        record[name] = value.clone();
    }
    let store = json!({"version": 1, "servers": {(format!("{origin}/mcp")): record}});
    std::fs::write(folder.join("mcp-auth.json"), store.to_string()).unwrap();
}

/// What is stored for the scripted server.
fn stored(folder: &Path, scripted: &Scripted) -> Value {
    let text = std::fs::read_to_string(folder.join("mcp-auth.json")).unwrap();
    let store: Value = serde_json::from_str(&text).unwrap();
    store["servers"][format!("{}/mcp", scripted.0.origin)].clone()
}

async fn authorization(source: &crate::ServerTokens, scripted: &Scripted) -> Option<String> {
    let headers = source.headers("POST", &scripted.url("/mcp")).await.unwrap();
    let value = headers.get("authorization")?;
    Some(value.to_str().unwrap().to_owned())
}
