//! The loopback endpoint for other local programs: JSON-RPC by POST and WebSocket, and the REST routes, on one port.
//!
//! The token is the tier. It is checked once, in front of everything, together with `Host` and `Origin`: a web page
//! that found the port gets no further. Peers are never asked anything; they may hear `mcp.changed`.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE,
};
use hyper::service::service_fn;
use hyper::{Method as Verb, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonrpsee::Methods;
use jsonrpsee::core::middleware::{Batch, Notification as RpcNotification, RpcServiceBuilder, RpcServiceT};
use jsonrpsee::server::{
    HttpBody, HttpResponse, MethodResponse, ServerConfig, ServerHandle, StopHandle, stop_channel,
};
use jsonrpsee::types::{Id, Request as RpcRequest};
use manager::{Env, Manager};
use protocol::{Error, ErrorKind, McpChanged, Method, Tier};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::{limits, registry, rest};

/// Keeps the endpoint open, and its tokens in `peers.json`, until it is dropped.
pub struct Peers {
    file: PathBuf,
    address: SocketAddr,
    stop: CancellationToken,
    _websockets: ServerHandle,
}

/// Opens the endpoint. Loopback only.
pub async fn listen(
    address: SocketAddr,
    env: &Env,
    manager: Manager,
    news: broadcast::Sender<McpChanged>,
) -> std::io::Result<Peers> {
    if !address.ip().is_loopback() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            format!("`{address}` is no loopback address; peers are programs of this machine"),
        ));
    }
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let tokens = Tokens::new()?;
    let file = env.data_dir().join("peers.json");
    publish(&file, address, Some(&tokens))?;
    let (stop_handle, websockets) = stop_channel();
    let stop = CancellationToken::new();
    let door = Arc::new(Door {
        methods: registry::for_peers(manager.clone(), news),
        manager,
        address,
        tokens,
        stop_handle,
        full: Bucket::new(),
        read_only: Bucket::new(),
        strangers: Bucket::new(),
    });
    tokio::spawn(accept(listener, door, stop.clone()));
    Ok(Peers {
        file,
        address,
        stop,
        _websockets: websockets,
    })
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Err(error) = publish(&self.file, self.address, None) {
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
    stop_handle: StopHandle,
    full: Bucket,
    read_only: Bucket,
    strangers: Bucket,
}

impl Door {
    async fn answer(&self, mut request: Request<Incoming>) -> HttpResponse {
        let tier = match self.admit(&request) {
            Ok(tier) => tier,
            Err(refused) => return *refused,
        };
        let path = request.uri().path().to_owned();
        if path == "/" && request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(tier);
            return self.websocket(request).await;
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
            return self.json_rpc(tier, &body).await;
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
        let bucket = match tier {
            Some(Tier::Full) => &self.full,
            Some(Tier::ReadOnly) => &self.read_only,
            Some(Tier::Local) | None => &self.strangers,
        };
        if !bucket.take() {
            let error = Error::new(ErrorKind::Overloaded, "too many requests in one second")
                .retry_after_ms(1000u64)
                .hint("send it again later");
            let mut refused = refusal(StatusCode::TOO_MANY_REQUESTS, &error);
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

    /// A name that leads here; a page that had its own name point at this machine does not have one.
    fn is_own(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else {
            return false;
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        port.parse() == Ok(self.address.port())
            && (name.eq_ignore_ascii_case("localhost") || name.parse() == Ok::<IpAddr, _>(self.address.ip()))
    }

    async fn json_rpc(&self, tier: Tier, body: &Bytes) -> HttpResponse {
        let text = match std::str::from_utf8(body) {
            Ok(text) => text.trim_ascii(),
            Err(_) => return rpc_error(&Error::new(ErrorKind::ParseError, "the body is not UTF-8")),
        };
        if text.starts_with('[') {
            return rpc_error(&batch());
        }
        let method = match serde_json::from_str::<RpcRequest<'_>>(text) {
            Ok(request) => request.method.into_owned(),
            Err(error) if error.is_data() => {
                return rpc_error(&Error::new(
                    ErrorKind::InvalidRequest,
                    format!("no JSON-RPC request: {error}"),
                ));
            }
            Err(error) => return rpc_error(&Error::new(ErrorKind::ParseError, error.to_string())),
        };
        if let Some(error) = unknown(&method) {
            let id: Value = serde_json::from_str::<Value>(text)
                .map(|request| request["id"].clone())
                .unwrap_or_default();
            return response(
                StatusCode::OK,
                &json!({"jsonrpc": "2.0", "id": id, "error": registry::object(error)}),
            );
        }
        if method == registry::SUBSCRIBE || method == registry::UNSUBSCRIBE {
            return rpc_error(
                &Error::new(
                    ErrorKind::InvalidCommand,
                    "news needs a connection that stays open",
                )
                .hint("subscribe over a WebSocket"),
            );
        }
        let mut methods = self.methods.clone();
        methods.extensions_mut().insert(tier);
        match methods.raw_json_request(text, 1).await {
            Ok((answer, _)) => raw(StatusCode::OK, answer.get().to_owned()),
            Err(error) => rpc_error(&Error::new(ErrorKind::InvalidRequest, error.to_string())),
        }
    }

    async fn websocket(&self, request: Request<Incoming>) -> HttpResponse {
        let config = ServerConfig::builder()
            .ws_only()
            .max_connections(limits::PEER_CONNECTIONS as u32)
            .max_request_body_size(limits::PEER_BODY_BYTES as u32)
            .max_response_body_size(u32::MAX)
            .max_subscriptions_per_connection(limits::PEER_SUBSCRIPTIONS)
            .set_message_buffer_capacity(limits::PEER_MESSAGES)
            .build();
        let mut service = jsonrpsee::server::Server::builder()
            .set_config(config)
            .set_rpc_middleware(RpcServiceBuilder::new().layer_fn(OwnErrors))
            .to_service_builder()
            .build(self.methods.clone(), self.stop_handle.clone());
        match service.call(request).await {
            Ok(response) => response,
            Err(error) => refusal(
                StatusCode::BAD_REQUEST,
                &Error::new(ErrorKind::InvalidRequest, error.to_string()),
            ),
        }
    }
}

/// Says what we do not have in our words, before jsonrpsee does in its own.
#[derive(Clone)]
struct OwnErrors<S>(S);

impl<S> RpcServiceT for OwnErrors<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: RpcRequest<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let inner = self.0.clone();
        async move {
            match unknown(&request.method) {
                Some(error) => MethodResponse::error(request.id, registry::object(error)),
                None => inner.call(request).await,
            }
        }
    }

    fn batch<'a>(&self, _: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        std::future::ready(MethodResponse::error(Id::Null, registry::object(batch())))
    }

    fn notification<'a>(
        &self,
        notification: RpcNotification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.0.notification(notification)
    }
}

/// The error of a method that peers cannot find.
fn unknown(method: &str) -> Option<Error> {
    if method == registry::SUBSCRIBE || method == registry::UNSUBSCRIBE {
        return None;
    }
    match Method::from_name(method) {
        Some(method) if method.available() => None,
        Some(method) => Some(registry::absent(method)),
        None => Some(
            Error::new(
                ErrorKind::MethodNotFound,
                format!("there is no method `{method}`"),
            )
            .hint("docs/protocol.md lists all"),
        ),
    }
}

fn batch() -> Error {
    Error::new(ErrorKind::InvalidRequest, "batches are not taken").hint("one request per message")
}

fn rpc_error(error: &Error) -> HttpResponse {
    let error = registry::object(error.clone());
    response(
        StatusCode::OK,
        &json!({"jsonrpc": "2.0", "id": null, "error": error}),
    )
}

fn too_large() -> HttpResponse {
    let error =
        Error::new(ErrorKind::TooLarge, "the body is too large").limit(limits::PEER_BODY_BYTES as u64);
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &error)
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
    let mut response = HttpResponse::new(HttpBody::from(body));
    *response.status_mut() = status;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// One secret per tier, made anew each time.
struct Tokens {
    full: String,
    read_only: String,
}

impl Tokens {
    fn new() -> std::io::Result<Tokens> {
        let token = || {
            let mut bytes = [0u8; 32];
            fill_random(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        };
        Ok(Tokens {
            full: token()?,
            read_only: token()?,
        })
    }

    fn tier(&self, given: &str) -> Option<Tier> {
        // Both are compared whatever the first says: how long it takes tells nothing.
        let (full, read_only) = (same(given, &self.full), same(given, &self.read_only));
        match (full, read_only) {
            (true, _) => Some(Tier::Full),
            (false, true) => Some(Tier::ReadOnly),
            (false, false) => None,
        }
    }
}

fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    use std::io::Read as _;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

/// Takes the same time wherever the difference is. The length of a token is no secret.
fn same(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    given.len() == token.len()
        && std::hint::black_box(given.iter().zip(token).fold(0u8, |all, (a, b)| all | (a ^ b))) == 0
}

/// Writes an endpoint into `peers.json`, or takes it out again; the last one takes the file along.
fn publish(file: &Path, address: SocketAddr, tokens: Option<&Tokens>) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        files::create_private_dir(folder)?;
    }
    let _lock = files::Lock::take(file, limits::PEER_FILE_WAIT)?;
    let text = files::read_text(file, limits::PEER_BODY_BYTES as u64)?.unwrap_or_default();
    let known: Value = serde_json::from_str(&text).unwrap_or_default();
    let is_other = |endpoint: &&Value| {
        let pid = endpoint["pid"].as_u64().unwrap_or_default();
        endpoint["address"] != address.to_string() && Path::new(&format!("/proc/{pid}")).exists()
    };
    let mut endpoints: Vec<Value> = known["endpoints"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(is_other)
        .cloned()
        .collect();
    if let Some(tokens) = tokens {
        endpoints.push(json!({
            "address": address.to_string(),
            "pid": std::process::id(),
            "tokens": {"full": tokens.full, "readOnly": tokens.read_only},
        }));
    }
    if endpoints.is_empty() {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let text = serde_json::to_vec_pretty(&json!({"endpoints": endpoints}))?;
    files::write_private(file, &text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_apart() {
        let tokens = Tokens::new().unwrap();
        assert_eq!(tokens.tier(&tokens.full), Some(Tier::Full));
        assert_eq!(tokens.tier(&tokens.read_only), Some(Tier::ReadOnly));
        assert_eq!(tokens.tier(""), None);
        assert_eq!(tokens.tier(&tokens.full[1..]), None);
        assert_ne!(tokens.full, Tokens::new().unwrap().full);
    }
}
