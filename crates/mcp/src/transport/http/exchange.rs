//! One HTTP exchange: which headers go out, which redirects are followed, what a refusal tells.
//!
//! Used by both remote transports. It knows nothing of JSON-RPC.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, TRANSFER_ENCODING,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Response;
use url::Url;

use crate::authorization::{Attempts, Refusal, TokenSource};
use crate::limits::{ERROR_BODY, ERROR_BODY_WAIT, MAX_REDIRECTS};
use crate::target::HttpTarget;
use crate::transport::TransportError;

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Whether a header is set by the protocol: where a user configured it, it is ignored.
pub fn is_reserved_header(name: &HeaderName) -> bool {
    [
        ACCEPT,
        CONTENT_TYPE,
        CONTENT_LENGTH,
        TRANSFER_ENCODING,
        CONNECTION,
        SESSION_ID,
        PROTOCOL_VERSION,
        LAST_EVENT_ID,
    ]
    .contains(name)
        || matches!(name.as_str(), "mcp-method" | "mcp-name")
        || name.as_str().starts_with("mcp-param-")
}

/// An address and all that is sent along with every request to it.
pub(crate) struct Endpoint {
    client: reqwest::Client,
    headers: HeaderMap,
    tokens: Option<Arc<dyn TokenSource>>,
    /// Where the requests go: the configured address, or the one it was redirected to.
    url: Mutex<Url>,
}

impl Endpoint {
    pub fn new(target: HttpTarget) -> Endpoint {
        let mut headers = HeaderMap::with_capacity(target.headers.len());
        for (name, value) in &target.headers {
            if !is_reserved_header(name) {
                headers.append(name, value.clone());
            }
        }
        Endpoint {
            client: target.client,
            headers,
            tokens: target.tokens,
            url: Mutex::new(target.url),
        }
    }

    /// The same headers for another address of the same origin.
    pub fn at(&self, url: Url) -> Endpoint {
        Endpoint {
            client: self.client.clone(),
            headers: self.headers.clone(),
            tokens: self.tokens.clone(),
            url: Mutex::new(url),
        }
    }

    pub fn url(&self) -> Url {
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request and returns what was answered, whatever its status. A refused one is repeated as long as that may help;
    /// `hold` makes something that stops the clock of the request meanwhile.
    pub async fn send(
        &self,
        method: Method,
        own: HeaderMap,
        body: Option<Bytes>,
        hold: &(dyn Fn() -> Box<dyn Send + Sync> + Sync),
    ) -> Result<Response, TransportError> {
        let mut headers = self.headers.clone();
        headers.extend(own);
        let mut attempts = Attempts::default();
        loop {
            let Sent {
                response,
                url,
                authorization,
            } = self.follow(&method, &headers, body.as_ref()).await?;
            let Some(tokens) = &self.tokens else {
                return Ok(response);
            };
            let status = response.status().as_u16();
            let nonce = response
                .headers()
                .get(DPOP_NONCE)
                .and_then(|nonce| nonce.to_str().ok());
            // DELETE is a courtesy: nobody is asked for it.
            if !matches!(status, 401 | 403) || method == Method::DELETE {
                if let Some(nonce) = nonce {
                    tokens.nonce(&url, nonce);
                }
                return Ok(response);
            }
            let refusal = Refusal {
                url: &url,
                status,
                challenges: &challenges(&response),
                sent: authorization.as_ref(),
                nonce,
            };
            let _hold = hold();
            if !tokens.refused(refusal, &mut attempts).await {
                return Ok(response);
            }
        }
    }

    /// Sends a request once, and again where a harmless redirect leads.
    async fn follow(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Sent, TransportError> {
        let mut url = self.url();
        let mut hops = 0;
        loop {
            let mut headers = headers.clone();
            let mut authorization = headers.get(AUTHORIZATION).cloned();
            if let Some(tokens) = &self.tokens {
                let own = tokens.headers(method, &url).await;
                // Each replaces the user's header of its name.
                for (name, value) in &own.map_err(TransportError::Authorization)? {
                    headers.insert(name, value.clone());
                    if name == AUTHORIZATION {
                        authorization = Some(value.clone());
                    }
                }
            }
            let mut request = self.client.request(method.clone(), url.clone()).headers(headers);
            if let Some(body) = body {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(not_answered)?;
            let Some(location) = redirect_of(&response, method) else {
                if hops > 0 && response.status().is_success() {
                    *self.url.lock().unwrap_or_else(PoisonError::into_inner) = url.clone();
                }
                return Ok(Sent {
                    response,
                    url,
                    authorization,
                });
            };
            hops += 1;
            let target = url
                .join(&location)
                .map_err(|_| TransportError::Redirect("no valid address".to_owned()))?;
            if hops > MAX_REDIRECTS || !is_followed(&response, method, &url, &target) {
                return Err(TransportError::Redirect(shown(&target)));
            }
            url = keep_userinfo(&url, target);
        }
    }
}

/// For messages no call waits for: there is no clock to stop.
pub(crate) fn no_hold() -> Box<dyn Send + Sync> {
    Box::new(())
}

/// A request that was answered.
struct Sent {
    response: Response,
    url: Url,
    authorization: Option<HeaderValue>,
}

/// The status and the text of a refusal.
pub(crate) async fn refusal(response: Response) -> TransportError {
    let status = response.status().as_u16();
    let content_type = content_type(&response);
    let challenges = challenges(&response);
    TransportError::Status {
        status,
        content_type,
        body: beginning(response).await,
        challenges,
    }
}

fn challenges(response: &Response) -> Vec<String> {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

/// A success that carries nothing we can use.
pub(crate) async fn bad_media(response: Response) -> TransportError {
    TransportError::BadMedia {
        status: response.status().as_u16(),
        content_type: content_type(&response),
        body: beginning(response).await,
    }
}

/// What kind of body a response has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    EventStream,
    Other,
}

pub(crate) fn media(response: &Response) -> Media {
    let Some(value) = response.headers().get(CONTENT_TYPE) else {
        return Media::Other;
    };
    let essence = value
        .as_bytes()
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Media::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Media::EventStream
    } else {
        Media::Other
    }
}

pub(crate) fn content_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The whole body, as long as it is not larger than `limit`.
pub(crate) async fn whole_body(mut response: Response, limit: usize) -> Result<Bytes, TransportError> {
    let announced = usize::try_from(response.content_length().unwrap_or_default()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(TransportError::TooLarge { limit });
    }
    let Some(first) = next_chunk(&mut response).await? else {
        return Ok(Bytes::new());
    };
    // The usual small answer is one piece and is not copied.
    let Some(second) = next_chunk(&mut response).await? else {
        return if first.len() > limit {
            Err(TransportError::TooLarge { limit })
        } else {
            Ok(first)
        };
    };
    let mut body = BytesMut::with_capacity(announced.max(first.len() + second.len()));
    body.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(piece) = next {
        if body.len() + piece.len() > limit {
            return Err(TransportError::TooLarge { limit });
        }
        body.extend_from_slice(&piece);
        next = next_chunk(&mut response).await?;
    }
    Ok(body.freeze())
}

/// The next piece of a body; `None` at its proper end.
pub(crate) async fn next_chunk(response: &mut Response) -> Result<Option<Bytes>, TransportError> {
    response.chunk().await.map_err(|error| {
        tracing::debug!("a response was cut short: {}", reason(error));
        TransportError::StreamEnded
    })
}

/// The text a body begins with, for people.
async fn beginning(mut response: Response) -> String {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let missing = ERROR_BODY - body.len();
            body.extend_from_slice(&piece[..piece.len().min(missing)]);
            if body.len() == ERROR_BODY {
                break;
            }
        }
    };
    // What came until then is enough.
    let _ = tokio::time::timeout(ERROR_BODY_WAIT, read).await;
    String::from_utf8_lossy(&body).into_owned()
}

fn not_answered(error: reqwest::Error) -> TransportError {
    if error.is_connect() || error.is_builder() {
        return TransportError::Connect(reason(error));
    }
    let reason = reason(error);
    // In TLS 1.3 a server looks at our certificate when the handshake is over for us. It took nothing of the request.
    if let Some((_, alert)) = reason.split_once("received fatal alert: ")
        && ["Certificate", "UnknownCA", "AccessDenied"]
            .iter()
            .any(|about| alert.contains(about))
    {
        return TransportError::Connect(reason);
    }
    // The request was on its way: nobody knows whether the server took it.
    tracing::debug!("no response: {reason}");
    TransportError::StreamEnded
}

/// The causes of an error without the library's own layers and without the address, whose query may be a secret.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut causes = Vec::new();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !text.starts_with("client error") && causes.last() != Some(&text) {
            causes.push(text);
        }
        next = cause.source();
    }
    if causes.is_empty() {
        error.to_string()
    } else {
        causes.join(": ")
    }
}

fn redirect_of(response: &Response, method: &Method) -> Option<String> {
    let redirects = matches!(response.status().as_u16(), 301..=303 | 307 | 308);
    // DELETE is a courtesy: it is not carried anywhere else.
    if !redirects || method == Method::DELETE {
        return None;
    }
    let location = response.headers().get(LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// A POST is carried on only where the status keeps it one.
fn is_followed(response: &Response, method: &Method, from: &Url, to: &Url) -> bool {
    let keeps_method = matches!(
        response.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    (keeps_method || method == Method::GET) && is_harmless(from, to)
}

/// Whether the headers may go there too: within the origin, or from http to https on the default ports, and with no other
/// user named in the address.
pub(super) fn is_harmless(from: &Url, to: &Url) -> bool {
    let names_user = !to.username().is_empty() || to.password().is_some();
    let same_user = to.username() == from.username() && to.password() == from.password();
    (!names_user || same_user) && (is_same_origin(from, to) || is_upgrade(from, to))
}

pub(crate) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

fn is_upgrade(from: &Url, to: &Url) -> bool {
    from.scheme() == "http"
        && to.scheme() == "https"
        && from.host() == to.host()
        && from.port().is_none()
        && to.port().is_none()
}

fn keep_userinfo(from: &Url, mut to: Url) -> Url {
    // Both succeed: an http address has a host.
    let _ = to.set_username(from.username());
    let _ = to.set_password(from.password());
    to
}

/// An address as it may be shown: without what could be a secret.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}
