//! Every bound of this crate, with its reason.

use std::time::Duration;

/// A metadata document or an answer of an endpoint. Real ones have a few KiB.
pub(crate) const BODY_BYTES: usize = 1024 * 1024;
/// Redirects of a metadata document.
pub(crate) const REDIRECTS: usize = 5;
/// One exchange with an authorization server.
pub(crate) const EXCHANGE: Duration = Duration::from_secs(20);
/// The unauthenticated request that asks a server for its challenge.
pub(crate) const PROBE: Duration = Duration::from_secs(20);
/// A person may look for a password.
pub(crate) const LOGIN: Duration = Duration::from_secs(5 * 60);
/// A token that expires within this time is refreshed first.
pub(crate) const REFRESH_BEFORE_MS: u64 = 60_000;
/// The lock of the store: reading and writing a small file.
pub(crate) const STORE_LOCK: Duration = Duration::from_secs(5);
/// The lock of a refresh is held during a few exchanges of another process.
pub(crate) const REFRESH_LOCK: Duration = Duration::from_secs(65);
/// The store: one record has about 4 KiB.
pub(crate) const STORE_BYTES: u64 = 16 * 1024 * 1024;
/// Authorization servers of one resource that are tried.
pub(crate) const AUTHORIZATION_SERVERS: usize = 5;
/// Logins that one request may lead to.
pub(crate) const LOGINS_PER_REQUEST: u32 = 3;
/// The head of a request to the loopback listener.
pub(crate) const CALLBACK_HEAD: usize = 16 * 1024;
/// One connection to the loopback listener, up to its request.
pub(crate) const CALLBACK_READ: Duration = Duration::from_secs(10);
/// Connections to the loopback listener at the same time.
pub(crate) const CALLBACK_CONNECTIONS: usize = 16;
/// A browser's page is closed after this, whatever is left of it to send.
pub(crate) const CALLBACK_WRITE: Duration = Duration::from_secs(2);
/// Text of an authorization server that is shown to people.
pub(crate) const SHOWN_TEXT: usize = 300;
/// Lifetime of a signed assertion (RFC 7523 §3 wants it short).
pub(crate) const ASSERTION_SECONDS: u64 = 300;
/// Telling an authorization server that a token is not needed any more.
pub(crate) const REVOKE: Duration = Duration::from_secs(5);
/// The wait between two questions for a device's login where the server names none (RFC 8628 §3.2).
pub(crate) const DEVICE_INTERVAL: Duration = Duration::from_secs(5);
/// The longest wait between two such questions.
pub(crate) const DEVICE_INTERVAL_MAX: Duration = Duration::from_secs(60);
