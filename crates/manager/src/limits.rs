//! Every bound of the manager, once, with its reason.

use std::time::Duration;

/// Bytes of a configuration file; a larger one is refused rather than read into memory.
pub const CONFIG_FILE_BYTES: u64 = 16 << 20;
/// Bytes of another program's file; some keep their whole state in it.
pub const FOREIGN_FILE_BYTES: u64 = 16 << 20;
/// Bytes of an `envFile`.
pub const ENV_FILE_BYTES: u64 = 1 << 20;

/// The longest time a list is believed to be fresh, whatever the server says.
pub const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Milliseconds a call may be silent, when its entry does not say.
pub const CALL_TIMEOUT_MS: u64 = 60_000;
/// A call that reports progress may run this many times its timeout in all.
pub const CALL_HARD_FACTOR: u32 = 10;
/// How long lists wait for servers that are still starting, when the host does not say.
pub const LIST_WAIT_MS: u64 = 10_000;
/// Silence after which a server is taken for one that does not know `server/discover`.
/// A cold `npx` takes longer than that to answer anything, and is then asked the old way on the same pipe.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a verdict "speaks only the older revisions" is believed: an upgraded server still answers the old handshake.
pub const LEGACY_VERDICT_MS: u64 = 24 * 60 * 60 * 1000;

/// Servers that start at the same moment. Generous, since a start mostly waits; a bound, so that a list of
/// hundreds cannot exhaust processes. The queue is fair: who is asked for first starts first.
pub const SIMULTANEOUS_STARTS: usize = 64;
/// Requests in flight to one server.
pub const IN_FLIGHT_PER_SERVER: usize = 512;

/// Pause before the first restart after a crash; it doubles with each further crash.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(500);
/// The longest pause between two restarts.
pub const BACKOFF_LONGEST: Duration = Duration::from_secs(30);
/// Crashes in a row after which a server stays in `error` until a person acts.
pub const CRASHES_IN_A_ROW: u32 = 5;
/// A server that ran this long has recovered: the count of crashes begins again.
pub const RECOVERED_AFTER: Duration = Duration::from_secs(60);
/// A server that failed to start is tried again by a list or a call only after this pause,
/// so that one dead command does not slow every list down.
pub const RETRY_FAILED_AFTER: Duration = Duration::from_secs(30);

/// Wait between the steps of stopping a process: end of input, SIGTERM, SIGKILL.
pub const STOP_GRACE: Duration = Duration::from_millis(1_500);
/// The whole of leaving: after it, what still runs is killed by the watchdog.
pub const SHUTDOWN: Duration = Duration::from_secs(4);

/// A test of an entry, in all: a person looks on and waits.
pub const TRIAL: Duration = Duration::from_secs(20);
/// The part of a test that is kept for taking its connection down.
pub const TRIAL_DISPOSAL: Duration = Duration::from_secs(1);
/// Wait between the steps of stopping the process of a test: nobody has work in it.
pub const TRIAL_GRACE: Duration = Duration::from_millis(400);

/// List-changed notifications of one server are gathered for this long before the list is read again.
pub const LIST_CHANGED_DEBOUNCE: Duration = Duration::from_millis(200);
/// What caches have to write is gathered for this long.
pub const CACHE_DEBOUNCE: Duration = Duration::from_millis(300);
/// `mcp.changed` is sent at most once per name in this time.
pub const CHANGED_DEBOUNCE: Duration = Duration::from_millis(50);
/// At most ten progress reports a second reach the host for one token.
pub const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

/// Items of a page, when the host does not say.
pub const PAGE_ITEMS: usize = 200;
/// Bytes after which a page ends.
pub const PAGE_BYTES: usize = 4 << 20;
/// Issues in one answer.
pub const ISSUES: usize = 100;
/// Bytes of one resource as read for the host.
pub const RESOURCE_BYTES: usize = 1 << 20;
/// Bytes of one prompt.
pub const PROMPT_BYTES: usize = 256 << 10;
/// Bytes of one message of an MCP server, unless the host sets another bound.
pub const MESSAGE_BYTES: usize = 64 << 20;
/// A result with an output schema is checked against it up to this size; nothing larger is unfolded on the hot path.
pub const CHECKED_RESULT_BYTES: usize = 1 << 20;
/// Values of one completion.
pub const COMPLETION_VALUES: usize = 100;

/// Log lines kept per server.
pub const LOG_LINES: usize = 2_000;
/// Bytes of log text kept per server.
pub const LOG_BYTES: usize = 512 << 10;
/// Characters of one log line.
pub const LOG_LINE_CHARS: usize = 16_384;
/// Log lines in one `mcp.log`.
pub const LOG_BATCH: usize = 500;

/// Questions that wait in one session.
pub const QUESTIONS_PER_SESSION: usize = 64;
/// Questions that wait on the whole connection.
pub const QUESTIONS_IN_ALL: usize = 256;
/// Questions one server may ask in a minute.
pub const QUESTIONS_PER_MINUTE: usize = 10;
/// Fields of one form.
pub const FORM_FIELDS: usize = 64;
/// Options of one field.
pub const FIELD_OPTIONS: usize = 1_000;
/// Options above which a host asks for text instead of showing them all.
pub const SHOWN_OPTIONS: usize = 9;
/// How long a request to the host's model may take.
pub const SAMPLE_WAIT: Duration = Duration::from_secs(600);

/// Directories of one connection.
pub const DIRECTORIES: usize = 64;
/// What the login shell may take to say its `PATH`.
pub const LOGIN_SHELL: Duration = Duration::from_secs(3);
/// How soon a person must begin a login for a call that waits for it; hosts are told at once that one is needed.
pub const LOGIN_GRACE: Duration = Duration::from_secs(2);
/// What the credential store, or the program of a `${cmd:…}`, may take: it may ask the person for a finger.
pub const SECRET_WAIT: Duration = Duration::from_secs(60);
/// Bytes that a program of an entry prints for a secret or for headers.
pub const SECRET_BYTES: usize = 64 << 10;
/// What a helper for headers may take: a request waits for it.
pub const HELPER_WAIT: Duration = Duration::from_secs(10);
/// How long the value of an `${input:…}` is waited for, as long as for a login.
pub const INPUT_WAIT: Duration = Duration::from_secs(5 * 60);
/// Characters of such a value.
pub const INPUT_CHARS: u64 = 32_768;
/// Bytes of a file of certificates; all authorities of a system take about 250 KiB.
pub const PEM_BYTES: u64 = 4 << 20;
/// How long a lock of a file is waited for.
pub const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How long a request may wait for a decision.
pub const REQUEST_LIFE_MS: u64 = 24 * 60 * 60 * 1000;
/// Clocks of one machine may be this far apart from one moment to the next, without anybody having set them.
pub const CLOCK_SLACK_MS: u64 = 5 * 60 * 1000;
/// Requests that wait at a time, for all sidecars of one data folder.
pub const REQUESTS: usize = 10;
/// Bytes of a request; a review is shown whole, and more than this nobody reads.
pub const REQUEST_BYTES: usize = 64 << 10;
/// Bytes of a review; more than this nobody reads.
pub const REVIEW_BYTES: usize = 64 << 10;
/// Of these, what is kept for what is said of a change.
pub const REVIEW_NOTES_BYTES: usize = 1 << 10;
/// An entry of fewer bytes makes no review that is too long: names are repeated in it, with a sentence each.
pub const SHORT_ENTRY_BYTES: usize = 4 << 10;
/// Packages of one folder.
pub const PACKAGES: usize = 100;
/// Entries of one project, in its file and its packages together: trust in it is one question about all of them.
pub const PROJECT_ENTRIES: usize = 500;
/// How long the files are taken for unchanged after a look at their stamps, where requests come one after the other.
pub const STAMP_LIFE: Duration = Duration::from_millis(200);
/// Events of the file system are gathered for this long: editors write a file in several steps.
pub const WATCH_DEBOUNCE: Duration = Duration::from_millis(100);
/// An ordered restart is remembered for this long, in ms.
pub const ORDER_LIFE_MS: u64 = 60 * 60 * 1000;
/// The stamps are looked at this often all the same: for an administrator's first file, or a link further up that changed.
pub const WATCH_NET: Duration = Duration::from_secs(60);
/// Where not every change is told, the stamps are looked at this often.
pub const WATCH_PAUSE: Duration = Duration::from_secs(5);
/// Records of one `mcp.status`.
pub const SHOWN_SERVERS: usize = 1000;
/// Files of one `mcp.status`.
pub const SHOWN_FILES: usize = 200;

/// Tools of one `mcp.model.tools`.
pub const MODEL_TOOLS: usize = 10_000;
/// Blocks of one result for the model.
pub const MODEL_BLOCKS: usize = 1_000;
/// Lines of a list of resources for the model; more would fill its context with names.
pub const MODEL_LINES: usize = 200;
/// Characters of one result for the model, when the host does not say.
pub const RESULT_CHARS: usize = 100_000;
/// Characters of a preview of what was too large.
pub const PREVIEW_CHARS: usize = 2_000;
/// Characters of the sentence behind a preview.
pub const PREVIEW_NOTE_CHARS: usize = 300;
/// Bytes of all results kept for the model at a time.
pub const SPILLED_BYTES: u64 = 64 << 20;
/// Changes of one schema that are told one by one.
pub const CHANGES_PER_TOOL: usize = 20;
/// Hits of a search for tools, when the host does not say.
pub const SEARCH_HITS: usize = 10;
/// Hits of a search by the model itself, when it does not say.
pub const MODEL_HITS: usize = 5;
/// Bytes of the accepted definitions of one server.
pub const PINS_BYTES: u64 = 16 << 20;
/// Bytes of the list of tools kept of one server.
pub const MANIFEST_BYTES: u64 = 16 << 20;
/// Resources that one text may mention.
pub const MENTIONS: usize = 16;
/// Characters of all resources that one text mentions.
pub const MENTIONED_CHARS: usize = 128_000;
/// Characters of a command line in a record; a review shows all of it.
pub const SHOWN_COMMAND_CHARS: usize = 65_000;
/// Remembered approvals.
pub const GRANTS: usize = 1000;
/// How long the end waits for caches that are being written.
pub const LAST_WRITES: Duration = Duration::from_millis(500);

/// Servers that a list names while it waits for them; the others are counted.
pub const WAITED_FOR: usize = 5;
/// How often it says so at most.
pub const WAITING_SAID: Duration = Duration::from_millis(250);

/// Hits of a search for servers, when the host does not say.
pub const FOUND_PAGE: usize = 20;
/// Hits of a search for servers in all; nobody reads further.
pub const FOUND: usize = 1000;
/// Connecting to the registry or to GitHub: a network that swallows packets is told within that time.
pub const FIND_CONNECT: Duration = Duration::from_secs(3);
/// One request to the registry or to GitHub.
pub const FIND_EXCHANGE: Duration = Duration::from_secs(10);
/// Bytes of one answer of theirs; a page of the registry is a few hundred kB.
pub const FIND_BODY_BYTES: usize = 8 << 20;
/// Redirects of one request to them.
pub const FIND_REDIRECTS: usize = 3;
/// How long one search reads the registry's list; the next one goes on.
pub const MIRROR_READING: Duration = Duration::from_secs(20);
/// How long a search waits for the registry's first word while there is a copy of its list to search instead.
pub const MIRROR_REFRESH: Duration = Duration::from_secs(2);
/// How old the copy of the registry's list may be before changes are asked for.
pub const MIRROR_FRESH_MS: u64 = 60 * 60 * 1000;
/// Changes are asked for since a little earlier than they were last: clocks differ.
pub const MIRROR_OVERLAP_MS: u64 = 60 * 60 * 1000;
/// Servers of the copy.
pub const MIRROR_RECORDS: usize = 50_000;
/// Bytes of all servers of the copy.
pub const MIRROR_BYTES: usize = 64 << 20;
/// Bytes of the copy's file: the servers, and what stands around them.
pub const MIRROR_FILE_BYTES: u64 = 128 << 20;
/// Bytes of one server; a larger one is nothing that a person looks through.
pub const MIRROR_RECORD_BYTES: usize = 32 << 10;
/// What the GitHub command line may take to say its token.
pub const GH_TOKEN: Duration = Duration::from_secs(3);
/// GitHub shows no more results of one search.
pub const GITHUB_RESULTS: usize = 1000;

/// A look of the doctor at one area; whoever asks waits in front of a terminal.
pub const DOCTOR: Duration = Duration::from_secs(12);
/// What a program may take to say its version: a cold `npx` of a version manager takes seconds.
pub const VERSION: Duration = Duration::from_secs(5);
/// What a proxy may take to accept a connection.
pub const PROXY_CONNECT: Duration = Duration::from_secs(3);
/// How long a lock must be held to be told; a write takes milliseconds.
pub const LOCK_LOOK: Duration = Duration::from_secs(1);
/// A file of an interrupted write is this old before it is called left over.
pub const LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);
/// Less room than this is told: one server of npm may need as much.
pub const ROOM_BYTES: u64 = 200 << 20;
/// Files of one folder that the doctor looks at.
pub const DOCTOR_FILES: usize = 5_000;
/// Pieces of evidence of one finding.
pub const EVIDENCE: usize = 100;
/// Lines of a server's stderr in a finding.
pub const EVIDENCE_LINES: usize = 5;
/// Seconds by which clocks may differ before tokens are judged wrongly.
pub const CLOCK_SKEW_S: u64 = 60;

/// Fetching one package, dependencies and builds included.
pub const PREFETCH: Duration = Duration::from_secs(15 * 60);
/// Packages fetched at a time: the network and the disk are the bottleneck.
pub const SIMULTANEOUS_FETCHES: usize = 3;
/// A start that must download first gets this long, unless its entry says how long.
pub const DOWNLOAD: Duration = Duration::from_secs(5 * 60);
/// Bytes that a package manager may write to one of its outputs.
pub const MANAGER_OUTPUT_BYTES: u64 = 16 << 20;
/// Bytes of the record of one installation.
pub const INSTALLED_BYTES: u64 = 1 << 20;
/// Bytes of a lock file.
pub const LOCK_FILE_BYTES: u64 = 4 << 20;

/// Bytes of a bundle: a server with all of its dependencies has some hundred MB.
pub const BUNDLE_BYTES: u64 = 512 << 20;
/// Bytes of everything in a bundle, unpacked.
pub const BUNDLE_UNPACKED_BYTES: u64 = 2 << 30;
/// Files of a bundle; `node_modules` has tens of thousands.
pub const BUNDLE_FILES: usize = 100_000;
/// Bytes of a manifest.
pub const BUNDLE_MANIFEST_BYTES: u64 = 4 << 20;
/// How many times its packed size a file may unpack to; deflate reaches a thousand with nothing but zeros.
pub const BUNDLE_RATIO: u64 = 100;
/// A file up to this many bytes may unpack from anything.
pub const BUNDLE_RATIO_FROM: u64 = 8 << 20;
