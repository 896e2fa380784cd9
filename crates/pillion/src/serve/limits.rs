//! The bounds of a session, each with its reason.

use std::time::Duration;

/// One message of the host, unless `maxMessageBytes` says otherwise: a tool's arguments may hold a file.
pub const MESSAGE_BYTES: usize = 64 << 20;

/// Bodies of requests in flight, all together: one message of the default limit.
pub const BODIES_BYTES: usize = 64 << 20;

/// Requests in flight. Hundreds may wait for a person; a host with thousands has lost count.
pub const REQUESTS: usize = 4096;

/// When a refused request is worth sending again.
pub const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What may wait to be written: two of the biggest results.
pub const OUTBOX_BYTES: usize = 128 << 20;

/// What the reader and the manager, who never wait, may queue beyond that.
pub const OUTBOX_OVERDRAFT: usize = 16 << 20;

/// Enough to empty a burst in one system call; no system takes more than 1024 slices.
pub const FRAMES_PER_WRITE: usize = 64;

/// Parameters above this are checked on a blocking thread: a tree of them takes milliseconds to build.
pub const CHECK_INLINE_BYTES: usize = 1 << 20;

/// A body that is too big, or was announced too long, is given up when nothing more comes for this long.
pub const STALL: Duration = Duration::from_millis(100);

/// `window/showDocument` may ask the person first; after this nobody waits for the answer.
pub const SHOW_DOCUMENT: Duration = Duration::from_secs(60);

/// Stopping all children, of the five seconds in which the process ends.
pub const SHUTDOWN: Duration = Duration::from_secs(4);

/// Writing the last answers, of the same five seconds.
pub const FLUSH: Duration = Duration::from_millis(250);

/// When the process ends whatever still runs.
pub const LAST_RESORT: Duration = Duration::from_millis(4_750);

/// `shutdown` is answered by then, whatever is still in flight; hosts give up after half a second.
pub const SHUTDOWN_ANSWER: Duration = Duration::from_millis(150);

/// Without a message for this long (at most twice as long), the session is quiet.
pub const QUIET: Duration = Duration::from_millis(500);

/// Peers at a time: a handful of programs of one person.
pub const PEER_CONNECTIONS: usize = 64;

/// A body of a peer: an entry has a few kilobytes.
pub const PEER_BODY_BYTES: usize = 1 << 20;

/// The head of a peer's request, and how long it may take to come.
pub const PEER_HEADER_BYTES: usize = 16 << 10;
pub const PEER_HEADER: Duration = Duration::from_secs(10);

/// Requests a second of all peers of one tier, and of those without a token.
pub const PEER_REQUESTS_PER_SECOND: f64 = 100.0;

/// Subscriptions of one connection: one per directory.
pub const PEER_SUBSCRIPTIONS: usize = 64;

/// Requests of one connection at a time, and news that waits for a slow peer; then it misses some, and is told so by the connection's end.
pub const PEER_MESSAGES: usize = 256;

/// After a failed accept.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An endpoint that is there takes a connection at once; on loopback one that is not refuses as quickly.
pub const PEER_ANSWERS: Duration = Duration::from_millis(200);

/// How long the lock of `peers.json` is waited for.
pub const PEER_FILE_WAIT: Duration = Duration::from_secs(2);
