//! The loopback endpoint for other local programs: JSON-RPC by POST and WebSocket, and the REST routes, on one port.
//!
//! The token is the tier. It is checked once, in front of everything, together with `Host` and `Origin`: a web page
//! that found the port gets no further. Peers are never asked anything; they may hear `mcp.changed`.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE,
};
use hyper::service::service_fn;
use hyper::{Method as Verb, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonrpsee::Methods;
use manager::{Env, Manager};
use protocol::{Error, ErrorKind, McpChanged, Tier};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use self::file::Tokens;
use self::rpc::Carrier;
use super::{limits, registry, rest};

mod file;
mod rpc;
mod websocket;

pub type HttpBody = Full<Bytes>;
pub type HttpResponse = hyper::Response<HttpBody>;

/// Keeps the endpoint open, and its tokens in `peers.json`, until it is dropped.
pub struct Peers {
    file: PathBuf,
    address: SocketAddr,
    stop: CancellationToken,
}

/// Opens the endpoint, at a loopback address.
pub async fn listen(
    address: SocketAddr,
    env: &Env,
    manager: Manager,
    news: broadcast::Sender<McpChanged>,
) -> std::io::Result<Peers> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let tokens = Tokens::new()?;
    let file = env.data_dir().join("peers.json");
    file::publish(&file, Some(address), Some(&tokens))?;
    let stop = CancellationToken::new();
    let door = Arc::new(Door {
        methods: registry::for_peers(manager.clone(), news),
        manager,
        address,
        tokens,
        stop: stop.clone(),
        full: Bucket::new(),
        read_only: Bucket::new(),
        strangers: Bucket::new(),
    });
    tokio::spawn(accept(listener, door, stop.clone()));
    Ok(Peers { file, address, stop })
}

/// Takes out of `peers.json` what a killed process left there, beside everything else.
pub fn tidy(env: &Env) {
    let file = env.data_dir().join("peers.json");
    tokio::task::spawn_blocking(move || {
        if file.exists()
            && let Err(error) = file::publish(&file, None, None)
        {
            tracing::warn!(%error, "`peers.json` could not be tidied up");
        }
    });
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Err(error) = file::publish(&self.file, Some(self.address), None) {
            tracing::warn!(%error, "the tokens of the endpoint could not be taken out of `peers.json`");
        }
    }
}

async fn accept(listener: TcpListener, door: Arc<Door>, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(limits::PEER_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, mostly: others may free some.
                    tracing::warn!(%error, "a peer could not be let in");
                    tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = stop.cancelled() => return,
        };
        let (door, stop) = (Arc::clone(&door), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = serve(stream, door) => {}
                () = stop.cancelled() => {}
            }
            drop(place);
        });
    }
}

async fn serve(stream: TcpStream, door: Arc<Door>) {
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::PEER_HEADER)
        .max_buf_size(limits::PEER_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a peer's connection broke");
    }
}

struct Door {
    methods: Methods,
    manager: Manager,
    address: SocketAddr,
    tokens: Tokens,
    /// Cancelled when the endpoint closes.
    stop: CancellationToken,
    full: Bucket,
    read_only: Bucket,
    strangers: Bucket,
}

impl Door {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> HttpResponse {
        let tier = match self.admit(&request) {
            Ok(tier) => tier,
            Err(refused) => return *refused,
        };
        let path = request.uri().path().to_owned();
        if path == "/" && request.headers().contains_key(UPGRADE) {
            return websocket::accept(&self, tier, request);
        }
        let verb = request.method().clone();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let body = match Limited::new(request.into_body(), limits::PEER_BODY_BYTES)
            .collect()
            .await
        {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => return too_large(),
            Err(_) => {
                return refusal(
                    StatusCode::BAD_REQUEST,
                    &Error::new(ErrorKind::ParseError, "the body broke off"),
                );
            }
        };
        if path == "/" && verb == Verb::POST {
            return match rpc::answer(&self.methods, tier, &body, Carrier::Post).await {
                Some(answer) => raw(StatusCode::OK, answer.text),
                // A notification: taken, and nothing is said to it.
                None => raw(StatusCode::ACCEPTED, String::new()),
            };
        }
        if let Some(refused) = rest::wrong_verb(&verb, &path) {
            return refused;
        }
        match rest::answer(&self.manager, tier, &verb, &path, &query, &body).await {
            Ok((status, body)) => response(status, &body),
            Err(error) => rest::refused(&error),
        }
    }

    /// Who it is, if it may come in at all.
    fn admit(&self, request: &Request<Incoming>) -> Result<Tier, Box<HttpResponse>> {
        let headers = request.headers();
        let forbidden = |what: &str, hint: &str| {
            let error = Error::new(ErrorKind::Forbidden, what).hint(hint);
            Box::new(refusal(StatusCode::FORBIDDEN, &error))
        };
        if headers.contains_key(ORIGIN) {
            return Err(forbidden(
                "web pages are not let in",
                "leave the `Origin` header out",
            ));
        }
        let hosts: Vec<&str> = headers
            .get_all(HOST)
            .iter()
            .filter_map(|host| host.to_str().ok())
            .collect();
        if !matches!(hosts[..], [host] if self.is_own(host)) {
            return Err(forbidden(
                "the `Host` is not this endpoint",
                "use the address of `peers.json`",
            ));
        }
        let token = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let tier = token.and_then(|token| self.tokens.tier(token));
        if !self.bucket(tier).take() {
            let mut refused = refusal(StatusCode::TOO_MANY_REQUESTS, &too_often());
            refused.headers_mut().insert(RETRY_AFTER, 1.into());
            return Err(Box::new(refused));
        }
        let Some(tier) = tier else {
            let error = Error::new(ErrorKind::Forbidden, "no token, or a wrong one")
                .hint("send `Authorization: Bearer …` with a token of `peers.json`");
            let mut refused = refusal(StatusCode::UNAUTHORIZED, &error);
            refused.headers_mut().insert(
                WWW_AUTHENTICATE,
                hyper::header::HeaderValue::from_static("Bearer"),
            );
            return Err(Box::new(refused));
        };
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|length| length > limits::PEER_BODY_BYTES) {
            return Err(Box::new(too_large()));
        }
        Ok(tier)
    }

    /// What those of a tier may still send in this second; strangers have one of their own.
    fn bucket(&self, tier: Option<Tier>) -> &Bucket {
        match tier {
            Some(Tier::Full) => &self.full,
            Some(Tier::ReadOnly) => &self.read_only,
            Some(Tier::Local) | None => &self.strangers,
        }
    }

    /// A name that leads here; a page that had its own name point at this machine does not have one.
    fn is_own(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else {
            return false;
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        port.parse() == Ok(self.address.port())
            && (name.eq_ignore_ascii_case("localhost") || name.parse() == Ok::<IpAddr, _>(self.address.ip()))
    }
}

fn too_often() -> Error {
    Error::new(ErrorKind::Overloaded, "too many requests in one second")
        .retry_after_ms(1000u64)
        .hint("send it again later")
}

fn too_large() -> HttpResponse {
    refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        &rpc::too_large(limits::PEER_BODY_BYTES),
    )
}

/// An error in the form of the REST routes.
pub fn refusal(status: StatusCode, error: &Error) -> HttpResponse {
    let error = registry::object(error.clone());
    response(status, &json!({"error": error}))
}

fn response(status: StatusCode, body: &Value) -> HttpResponse {
    raw(status, body.to_string())
}

fn raw(status: StatusCode, body: String) -> HttpResponse {
    let mut response = HttpResponse::new(HttpBody::from(Bytes::from(body)));
    *response.status_mut() = status;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// So many requests a second, and as many at once.
struct Bucket(Mutex<(f64, Instant)>);

impl Bucket {
    fn new() -> Bucket {
        Bucket(Mutex::new((limits::PEER_REQUESTS_PER_SECOND, Instant::now())))
    }

    fn take(&self) -> bool {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = *bucket;
        let now = Instant::now();
        let filled = left + now.duration_since(at).as_secs_f64() * limits::PEER_REQUESTS_PER_SECOND;
        let left = filled.min(limits::PEER_REQUESTS_PER_SECOND);
        *bucket = (if left >= 1.0 { left - 1.0 } else { left }, now);
        left >= 1.0
    }
}
