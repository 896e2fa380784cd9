//! The HTTP client that all connections of a process share.

use std::time::Duration;

use crate::limits::{CONNECT_TIMEOUT, TCP_KEEPALIVE};
use reqwest::redirect::Policy;

/// What the client of this process shall be like.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Named in `User-Agent`.
    pub version: String,
    pub connect_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

/// One pool of connections, the proxies of the environment (`NO_PROXY` included), the certificates of the system.
/// It follows no redirect by itself: whoever sends a request decides which ones are harmless.
pub fn client(options: &ClientOptions) -> reqwest::Client {
    client_builder(options).build().unwrap_or_else(|error| {
        // A bare container has no certificates at all. Servers on this machine are reached without.
        tracing::warn!("no certificates of certification authorities were found, https will fail: {error}");
        client_builder(options)
            .tls_certs_only([])
            .build()
            .expect("a client without certificates has nothing to load")
    })
}

/// The same before it is built, for exchanges that need other rules on top.
pub fn client_builder(options: &ClientOptions) -> reqwest::ClientBuilder {
    // The second one to install a provider is told so; both would be the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(format!("Pillion/{}", options.version))
        .connect_timeout(options.connect_timeout)
        .tcp_keepalive(TCP_KEEPALIVE)
        .redirect(Policy::none())
        .referer(false)
}
