//! The bounds of one connection, each with its reason.

use std::time::Duration;

/// A server that always returns another cursor would be read for ever.
pub const MAX_PAGES: usize = 100;
/// More entries of one kind than any person or model looks at.
pub const MAX_ITEMS: usize = 10_000;

/// Rounds of questions within one call; both official SDKs stop here.
pub const MAX_ROUNDS: usize = 10;
/// How long the server is left alone when it asks for a repetition without a question.
pub const STATE_ONLY_PAUSE: Duration = Duration::from_millis(250);
/// An opaque state that is carried back has to be kept meanwhile.
pub const MAX_REQUEST_STATE: usize = 1024 * 1024;
/// Questions in one round: each opens a dialogue.
pub const MAX_QUESTIONS_PER_ROUND: usize = 32;
/// Open questions of one server on a legacy connection.
pub const MAX_OPEN_QUESTIONS: usize = 64;

/// How often one call may come back with `-32042`, each time with new addresses to visit.
pub const MAX_URL_ROUNDS: usize = 3;
/// The completion notice may never come: then the call is repeated after this time.
pub const URL_RETRY: Duration = Duration::from_secs(10);
/// How long a person may take in the browser.
pub const URL_WAIT: Duration = Duration::from_secs(5 * 60);

/// Bounds of the interval between two looks at a task, and its value where the server names none.
pub const POLL_MIN: Duration = Duration::from_millis(500);
pub const POLL_MAX: Duration = Duration::from_secs(60);
pub const POLL_DEFAULT: Duration = Duration::from_secs(1);

/// No acknowledgement of a subscription within this time means that there is none.
pub const LISTEN_ACK: Duration = Duration::from_secs(10);
/// The first and the longest pause before a lost subscription stream is opened again.
pub const LISTEN_BACKOFF: Duration = Duration::from_secs(1);
pub const LISTEN_BACKOFF_MAX: Duration = Duration::from_secs(60);

/// The handshake of a session that is renewed while calls wait for it.
pub const RENEW_TIMEOUT: Duration = Duration::from_secs(30);

/// What is remembered of stderr.
pub const STDERR_RING: usize = 64 * 1024;
/// What of it goes into an error: the last lines are where the reason stands.
pub const STDERR_TAIL: usize = 4 * 1024;
/// A longer line of stderr is cut into pieces of this size.
pub const STDERR_LINE: usize = 8 * 1024;
/// What of a line that is no message is shown.
pub const NOISE_LINE: usize = 512;

/// What is read at once, and the size to which a buffer returns.
pub const READ_BUFFER: usize = 64 * 1024;
/// Where fewer system calls are worth a bigger buffer.
pub const READ_BUFFER_MAX: usize = 1024 * 1024;
/// A buffer above this size is given back once it is empty.
pub const KEEP_BUFFER: usize = 256 * 1024;
/// From this size on a message is not copied once more: reading it twice costs less than holding it twice.
pub const BIG_MESSAGE: usize = 16 * 1024 * 1024;
/// Pipes hold 64 KiB by default; a bigger one saves wake-ups on big messages.
pub const PIPE_SIZE: usize = 1024 * 1024;
/// Beginning and end of an oversize message that are kept to find its id.
pub const OVERSIZE_EDGE: usize = 512;
/// After so many times the largest message a line counts as endless: nobody's answer will come.
pub const ENDLESS: usize = 8;
/// What may wait for a server that does not read its stdin, beyond one message of full size.
pub const WRITE_BACKLOG: usize = 8 * 1024 * 1024;

/// After the process ended: time for what is still in its pipes.
pub const DRAIN: Duration = Duration::from_millis(500);
/// After stdout was closed: time for the process to end by itself, so that its exit code can be told.
pub const EXIT_AFTER_EOF: Duration = Duration::from_millis(500);
/// After SIGKILL the kernel needs a moment; a process in uninterruptible sleep is not waited for.
pub const KILL_WAIT: Duration = Duration::from_secs(1);

/// Redirects of one request that are followed.
pub const MAX_REDIRECTS: usize = 5;
/// Of an HTTP refusal this much is read, for people and for the JSON-RPC error that may be in it.
pub const ERROR_BODY: usize = 64 * 1024;
/// A refusal whose body does not come is told without it.
pub const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);
/// So much is kept of a JSON body until it turned out to hold the answer.
pub const SHOWN_BODY: usize = 1024;
/// Connecting to a server that is there takes less, even across the world.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A lost peer is noticed on a stream that is silent for hours.
pub const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// A longer event id does not fit into a request header.
pub const EVENT_ID: usize = 4096;
/// How long a server may let the standalone stream of a session wait before it counts as ready without.
pub const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// After its answer a response stream should end by itself; until then the server may have more to say.
pub const AFTER_ANSWER: Duration = Duration::from_secs(5);
/// The first and the longest wait before a lost stream is taken up again, where the server names none.
pub const RESUME_BACKOFF: Duration = Duration::from_secs(1);
pub const RESUME_BACKOFF_MAX: Duration = Duration::from_secs(30);
/// For servers that ask for no wait at all.
pub const RESUME_WAIT_MIN: Duration = Duration::from_millis(100);
/// Tries in a row that brought nothing.
pub const RESUME_TRIES: u32 = 5;
/// A stream that lasted this long was a good one: losing it starts a new count of tries.
pub const STREAM_LASTED: Duration = Duration::from_secs(30);
/// The farewell to a session is a courtesy.
pub const DELETE_WAIT: Duration = Duration::from_secs(2);
/// How long a server of the older remote transport may take to name the address for messages.
pub const ENDPOINT_WAIT: Duration = Duration::from_secs(10);
