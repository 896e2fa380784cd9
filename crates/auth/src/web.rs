//! Exchanges with authorization servers: bounded in size, time and redirects, and never further than allowed.
//!
//! No cookies, no credentials but those of the request itself. Bodies of failures stay here: they are for nobody's eyes but
//! the one who looks for a fault.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use crate::error::{AuthError, shown_url};
use crate::guard::{PrivateAddress, PublicResolver, Reach, Span};
use crate::limits::{BODY_BYTES, EXCHANGE, REDIRECTS};

/// Makes the builder of an HTTP client: proxies, certificates, user agent.
pub type ClientFactory = Arc<dyn Fn() -> reqwest::ClientBuilder + Send + Sync>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const REVISION: HeaderValue = HeaderValue::from_static("2025-11-25");
/// A nonce for the next proof (RFC 9449 §8).
pub(crate) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The way to authorization servers.
pub(crate) struct Web {
    factory: ClientFactory,
    proxies: Vec<String>,
    any: OnceLock<reqwest::Client>,
    public: OnceLock<reqwest::Client>,
}

/// What was answered.
pub(crate) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub fn dpop_nonce(&self) -> Option<&str> {
        self.headers.get(DPOP_NONCE)?.to_str().ok()
    }

    /// The values of `WWW-Authenticate`.
    pub fn challenges(&self) -> Vec<String> {
        let values = self.headers.get_all(WWW_AUTHENTICATE).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    }
}

impl Web {
    pub fn new(factory: ClientFactory, proxies: Vec<String>) -> Web {
        Web {
            factory,
            proxies,
            any: OnceLock::new(),
            public: OnceLock::new(),
        }
    }

    /// A document that a URL names.
    pub async fn get(&self, what: &'static str, url: &Url, reach: &Reach) -> Result<Answer, AuthError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let headers = HeaderMap::from_iter([(ACCEPT, JSON), (PROTOCOL_VERSION, REVISION)]);
            let answer = self
                .exchange(what, Method::GET, &url, headers, None, reach, EXCHANGE)
                .await?;
            let redirects = matches!(answer.status, 301..=303 | 307 | 308);
            let Some(location) = answer.headers.get(LOCATION).filter(|_| redirects) else {
                return Ok(answer);
            };
            let next = std::str::from_utf8(location.as_bytes())
                .ok()
                .and_then(|location| url.join(location).ok());
            let Some(next) = next else {
                return Err(bad(&url, "it redirects to nowhere"));
            };
            if url.scheme() == "https" && next.scheme() == "http" {
                return Err(AuthError::Insecure {
                    what,
                    url: shown_url(next.as_str()),
                });
            }
            url = next;
        }
        Err(bad(&url, "it redirects too often"))
    }

    /// A form for an endpoint. Redirects are not followed: the form may hold secrets.
    pub async fn post_form(
        &self,
        what: &'static str,
        url: &Url,
        form: &[(&str, &str)],
        mut headers: HeaderMap,
        reach: &Reach,
    ) -> Result<Answer, AuthError> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        headers.insert(ACCEPT, JSON);
        headers.insert(CONTENT_TYPE, FORM);
        self.exchange(what, Method::POST, url, headers, Some(body), reach, EXCHANGE)
            .await
    }

    /// A JSON document for an endpoint.
    pub async fn post_json(
        &self,
        what: &'static str,
        url: &Url,
        body: &serde_json::Value,
        mut headers: HeaderMap,
        reach: &Reach,
        limit: Duration,
    ) -> Result<Answer, AuthError> {
        headers.entry(ACCEPT).or_insert(JSON);
        headers.insert(CONTENT_TYPE, JSON);
        self.exchange(
            what,
            Method::POST,
            url,
            headers,
            Some(body.to_string()),
            reach,
            limit,
        )
        .await
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the three functions above are its interface"
    )]
    async fn exchange(
        &self,
        what: &'static str,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<String>,
        reach: &Reach,
        limit: Duration,
    ) -> Result<Answer, AuthError> {
        let span = reach.check(what, url)?;
        let client = match (reach.network(url), span) {
            (Some((network, is_own)), span) => network.client(is_own, span, &self.proxies),
            (None, Span::Any) => self.any(),
            (None, Span::Public) => self.public(),
        };
        let mut request = client.request(method, url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let exchange = async {
            let mut response = request.send().await.map_err(|error| failed(what, url, error))?;
            let status = response.status().as_u16();
            let headers = std::mem::take(response.headers_mut());
            let mut body = Vec::new();
            // An event stream never ends by itself; its head is all that is wanted of it.
            let is_stream = headers
                .get(CONTENT_TYPE)
                .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
            while !is_stream
                && let Some(piece) = response.chunk().await.map_err(|error| failed(what, url, error))?
            {
                if body.len() + piece.len() > BODY_BYTES {
                    return Err(bad(url, "it is too large"));
                }
                body.extend_from_slice(&piece);
            }
            Ok(Answer {
                status,
                headers,
                body,
            })
        };
        tokio::time::timeout(limit, exchange).await.unwrap_or_else(|_| {
            Err(AuthError::Unreachable {
                url: shown_url(url.as_str()),
                reason: format!("no answer within {} s", limit.as_secs()),
            })
        })
    }

    fn any(&self) -> &reqwest::Client {
        self.any.get_or_init(|| client(&self.factory, None))
    }

    fn public(&self) -> &reqwest::Client {
        self.public.get_or_init(|| {
            let proxies = self.proxies.clone();
            client(&self.factory, Some(Arc::new(PublicResolver { proxies })))
        })
    }
}

/// A client that follows no redirect by itself.
pub(crate) fn client(factory: &ClientFactory, resolver: Option<Arc<PublicResolver>>) -> reqwest::Client {
    let builder = || {
        let builder = factory().redirect(reqwest::redirect::Policy::none());
        match &resolver {
            Some(resolver) => builder.dns_resolver(Arc::clone(resolver)),
            None => builder,
        }
    };
    builder().build().unwrap_or_else(|error| {
        // A bare container has no certificates at all. Servers on this machine are reached without.
        tracing::warn!("no certificates of certification authorities were found, https will fail: {error}");
        builder()
            .tls_certs_only([])
            .build()
            .expect("a client without certificates has nothing to load")
    })
}

fn bad(url: &Url, reason: &str) -> AuthError {
    AuthError::BadMetadata {
        url: shown_url(url.as_str()),
        reason: reason.to_owned(),
    }
}

fn failed(what: &'static str, url: &Url, error: reqwest::Error) -> AuthError {
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    while let Some(cause) = next {
        if cause.is::<PrivateAddress>() {
            return AuthError::Blocked {
                what,
                url: shown_url(url.as_str()),
                reason: "its name leads to an address of a private network",
            };
        }
        reason = cause.to_string();
        next = cause.source();
    }
    AuthError::Unreachable {
        url: shown_url(url.as_str()),
        reason,
    }
}
