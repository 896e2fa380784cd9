//! Documents from the registry and GitHub: bounded in size, time and redirects, and from their own address only.

use std::time::Duration;

use http::HeaderMap;
use http::header::LOCATION;
use protocol::{ErrorKind, SearchNotice};
use url::Url;

use crate::env;
use crate::limits;

/// What was answered.
pub(super) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The address that a setting names, without a path's last `/`. `variable` is said when it cannot be used.
pub(super) fn base(set: Option<String>, variable: &str, default: &str) -> Result<Url, SearchNotice> {
    let text = set.filter(|text| !text.trim().is_empty());
    let text = text.as_deref().unwrap_or(default).trim().trim_end_matches('/');
    let url = Url::parse(text).ok();
    let is_local = |url: &Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.filter(|url| {
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_local(url));
        is_safe && url.username().is_empty() && url.password().is_none() && url.query().is_none()
    })
    .ok_or_else(|| {
        let message = format!("`{variable}` is no address of a service");
        notice(
            ErrorKind::Unreachable,
            &message,
            "write an address that begins with `https://`",
        )
    })
}

/// A page below a base.
pub(super) fn below(base: &Url, path: &str) -> Option<Url> {
    Url::parse(&format!("{}{path}", base.as_str().trim_end_matches('/'))).ok()
}

pub(super) fn notice(kind: ErrorKind, message: &str, hint: &str) -> SearchNotice {
    SearchNotice {
        kind,
        message: message.to_owned(),
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
        at: Some(env::now()),
        http_status: None,
        retry_at: None,
    }
}

/// Gets a document. A redirect is followed to the same host only: the request may carry a token. An error says why
/// nothing came, without the address.
pub(super) async fn get(
    client: &reqwest::Client,
    url: &Url,
    headers: &HeaderMap,
    limit: Duration,
) -> Result<Answer, String> {
    let exchange = async {
        let mut url = url.clone();
        for _ in 0..=limits::FIND_REDIRECTS {
            let request = client.get(url.clone()).headers(headers.clone());
            let mut response = request.send().await.map_err(|error| said(&error))?;
            let status = response.status().as_u16();
            let headers = std::mem::take(response.headers_mut());
            if matches!(status, 301 | 302 | 307 | 308) {
                let next = headers.get(LOCATION).and_then(|value| value.to_str().ok());
                let next = next.and_then(|next| url.join(next).ok());
                match next.filter(|next| next.origin() == url.origin()) {
                    Some(next) => url = next,
                    None => return Err("it redirects to another address".to_owned()),
                }
                continue;
            }
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(|error| said(&error))? {
                if body.len() + piece.len() > limits::FIND_BODY_BYTES {
                    return Err(format!("it sends more than {} bytes", limits::FIND_BODY_BYTES));
                }
                body.extend_from_slice(&piece);
            }
            return Ok(Answer {
                status,
                headers,
                body,
            });
        }
        Err("it redirects too often".to_owned())
    };
    match tokio::time::timeout(limit, exchange).await {
        Ok(answered) => answered,
        Err(_) => Err(format!("it did not answer within {} s", limit.as_secs())),
    }
}

/// The innermost cause: the ones around it only repeat that a request failed.
fn said(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    if error.is_connect() {
        format!("no connection: {text}")
    } else {
        text
    }
}
