//! What the layer above decides about the authorization of HTTP requests.

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method};
use url::Url;

/// Authorizes requests, and says what to do when the server refuses one.
pub trait TokenSource: Send + Sync {
    /// The headers that authorize the next request; they replace the user's own. An error is a sentence for people: the request is not sent.
    fn headers<'a>(&'a self, method: &'a Method, url: &'a Url) -> BoxFuture<'a, Result<HeaderMap, String>>;

    /// A request was refused with 401 or 403. `true`: send it again with new headers.
    ///
    /// This may take as long as a person takes; the clock of the call stands still meanwhile.
    fn refused<'a>(&'a self, refusal: Refusal<'a>, attempts: &'a mut Attempts) -> BoxFuture<'a, bool>;

    /// A server sent a nonce for the next proof along with a good answer (RFC 9449 §8.2).
    fn nonce(&self, url: &Url, nonce: &str);
}

/// A request that was refused.
#[derive(Debug)]
pub struct Refusal<'a> {
    pub url: &'a Url,
    pub status: u16,
    /// The values of `WWW-Authenticate`.
    pub challenges: &'a [String],
    /// The `Authorization` header it carried.
    pub sent: Option<&'a HeaderValue>,
    /// The `DPoP-Nonce` of the answer.
    pub nonce: Option<&'a str>,
}

/// What one request has led to so far. It is kept by the transport and written by the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// A new token was got.
    pub renewed: bool,
    /// The server's nonce was taken over.
    pub nonce: bool,
    /// The program that prints headers was run again.
    pub helped: bool,
    /// Times a person was waited for.
    pub logins: u32,
}
