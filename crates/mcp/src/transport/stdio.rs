//! The carrier to a server that is our child process.
//!
//! One task writes whatever has been queued since its last write, one reads lines and hands them straight to the engine, one drains
//! stderr, and one watches over the process and ends it step by step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::child::{self, Child, Pipes};
use super::line::{Line, LineReader};
use super::stderr::StderrLines;
use super::{Inbox, Link, LinkLimits, OutKind, Outgoing, TransportError};
use crate::error::{CloseReason, Closed, ConnectError};
use crate::limits::{DRAIN, EXIT_AFTER_EOF, KEEP_BUFFER, KILL_WAIT, READ_BUFFER, WRITE_BACKLOG};
use crate::target::StdioTarget;

pub(crate) struct StdioLink {
    shared: Arc<Shared>,
    inbox: Weak<dyn Inbox>,
    pid: u32,
    backlog: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    queued: Notify,
    /// We want the process to end.
    ordered: CancellationToken,
    /// Writing failed.
    broken: CancellationToken,
    /// Nothing is left.
    gone: CancellationToken,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    closed: bool,
}

impl StdioLink {
    pub(crate) fn open(
        target: &StdioTarget,
        inbox: Weak<dyn Inbox>,
        limits: LinkLimits,
    ) -> Result<Arc<StdioLink>, ConnectError> {
        let (child, pipes) = child::spawn(target)?;
        let Pipes {
            stdin,
            stdout,
            stderr,
        } = pipes;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            queued: Notify::new(),
            ordered: CancellationToken::new(),
            broken: CancellationToken::new(),
            gone: CancellationToken::new(),
        });
        let pid = child.pid();
        tokio::spawn(write(stdin, shared.clone()));
        let reader = tokio::spawn(read(stdout, inbox.clone(), limits.max_message_bytes));
        let errors = tokio::spawn(read_stderr(stderr, inbox.clone()));
        tokio::spawn(watch_over(Watch {
            child,
            shared: shared.clone(),
            inbox: inbox.clone(),
            reader,
            errors,
            grace: limits.stop_grace,
        }));
        Ok(Arc::new(StdioLink {
            shared,
            inbox,
            pid,
            backlog: limits.max_message_bytes.saturating_add(WRITE_BACKLOG),
        }))
    }

    fn enqueue(&self, text: &[u8]) -> Result<(), TransportError> {
        let mut queue = lock(&self.shared.queue);
        if queue.closed {
            return Err(TransportError::Closed);
        }
        if queue.bytes.len().saturating_add(text.len()) > self.backlog {
            return Err(TransportError::Overloaded);
        }
        queue.bytes.reserve(text.len() + 1);
        let start = queue.bytes.len();
        queue.bytes.extend_from_slice(text);
        // A host may write its arguments over several lines. Between the tokens of JSON a blank says the same,
        // and inside a string no line break can stand.
        while let Some(at) = memchr::memchr2(b'\n', b'\r', &queue.bytes[start..]) {
            queue.bytes[start + at] = b' ';
        }
        queue.bytes.push(b'\n');
        drop(queue);
        self.shared.queued.notify_one();
        Ok(())
    }
}

impl Link for StdioLink {
    fn send(&self, out: Outgoing) {
        let Err(error) = self.enqueue(&out.text) else {
            return;
        };
        let Some(inbox) = self.inbox.upgrade() else {
            return;
        };
        match out.kind {
            OutKind::Request(id) => inbox.failed(id, error),
            OutKind::Notification | OutKind::Response => {
                inbox.note("the server does not read its input, a message to it was dropped".into());
            }
        }
    }

    fn deliver(&self, out: Outgoing) -> BoxFuture<'static, Result<(), TransportError>> {
        std::future::ready(self.enqueue(&out.text)).boxed()
    }

    fn cancel(&self, _id: u64) {}

    fn negotiated(&self, _protocol_version: &str) {}

    fn listen(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.shared.ordered.cancel();
        let gone = self.shared.gone.clone();
        async move { gone.cancelled().await }.boxed()
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.shared.ordered.cancel();
    }
}

/// Writes until the process shall end, then closes its stdin.
async fn write(stdin: pipe::Sender, shared: Arc<Shared>) {
    let work = async {
        let mut batch = Vec::new();
        loop {
            shared.queued.notified().await;
            std::mem::swap(&mut batch, &mut lock(&shared.queue).bytes);
            if !write_all(&stdin, &batch).await {
                shared.broken.cancel();
                return;
            }
            batch.clear();
            if batch.capacity() > KEEP_BUFFER {
                batch = Vec::new();
            }
        }
    };
    tokio::select! {
        biased;
        () = shared.ordered.cancelled() => {}
        () = work => {}
        () = shared.gone.cancelled() => {}
    }
    let mut queue = lock(&shared.queue);
    queue.closed = true;
    // What was said last, such as a cancellation, goes out if the pipe takes it at once.
    let _ = stdin.try_write(&queue.bytes);
    queue.bytes = Vec::new();
}

async fn write_all(stdin: &pipe::Sender, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match stdin.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if stdin.writable().await.is_err() {
                    return false;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

/// Reads stdout to its end.
async fn read(stdout: pipe::Receiver, inbox: Weak<dyn Inbox>, limit: usize) {
    let mut lines = LineReader::new(limit);
    let mut told = false;
    let mut enlarged = false;
    loop {
        if stdout.readable().await.is_err() {
            break;
        }
        let room = lines.room();
        match stdout.try_read_buf(room) {
            Ok(0) => break,
            Ok(_) => {
                if !enlarged && room.len() >= READ_BUFFER {
                    // Only for servers that send big messages: the memory of all pipes of a user has a limit.
                    enlarged = true;
                    child::enlarge(&stdout);
                }
                let Some(inbox) = inbox.upgrade() else {
                    return;
                };
                lines.drain(|line| hand_over(&*inbox, line, &mut told));
            }
            Err(error) if would_block(&error) => {}
            Err(_) => break,
        }
    }
    if let Some(inbox) = inbox.upgrade() {
        lines.finish(|line| hand_over(&*inbox, line, &mut told));
    }
}

/// `told`: the call that a too long line belongs to has been failed already.
fn hand_over(inbox: &dyn Inbox, line: Line<'_>, told: &mut bool) {
    match line {
        Line::Message(text) => inbox.message(text, None),
        Line::BigMessage(text) => inbox.big_message(text, None),
        Line::Noise(text) => inbox.noise(&String::from_utf8_lossy(text)),
        Line::TooLong { head } => *told = inbox.oversize(head, None),
        Line::Endless => {
            if !*told {
                *told = true;
                inbox.stuck();
            }
        }
        Line::EndOfTooLong { head, tail } => {
            if !*told {
                inbox.oversize(head, Some(tail));
            }
            *told = false;
        }
    }
}

/// Reads stderr to its end, whether or not anybody wants it: a full pipe would block the server.
async fn read_stderr(stderr: pipe::Receiver, inbox: Weak<dyn Inbox>) {
    let mut lines = StderrLines::default();
    let told = |line: String| {
        if let Some(inbox) = inbox.upgrade() {
            inbox.stderr(line);
        }
    };
    let mut bytes = Vec::with_capacity(4096);
    while stderr.readable().await.is_ok() {
        bytes.clear();
        match stderr.try_read_buf(&mut bytes) {
            Ok(0) => break,
            Ok(_) => lines.feed(&bytes, told),
            Err(error) if would_block(&error) => {}
            Err(_) => break,
        }
    }
    lines.finish(told);
}

fn would_block(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
    )
}

struct Watch {
    child: Child,
    shared: Arc<Shared>,
    inbox: Weak<dyn Inbox>,
    reader: JoinHandle<()>,
    errors: JoinHandle<()>,
    grace: Duration,
}

/// Waits for the end, whoever brings it, and leaves nothing behind.
async fn watch_over(mut watch: Watch) {
    let mut told = false;
    let reason = tokio::select! {
        biased;
        () = watch.shared.ordered.cancelled() => CloseReason::Ordered,
        () = watch.child.ended() => CloseReason::ServerExited,
        _ = &mut watch.reader => CloseReason::StreamEnded,
        () = watch.shared.broken.cancelled() => CloseReason::Failed,
    };
    let ended = match reason {
        CloseReason::Ordered => false,
        CloseReason::ServerExited => true,
        // A server that is about to exit closes its pipes first: its exit code says more.
        CloseReason::StreamEnded | CloseReason::Failed => watch.child.ended_within(EXIT_AFTER_EOF).await,
    };
    let reason = if ended { CloseReason::ServerExited } else { reason };
    if !ended {
        if reason != CloseReason::Ordered {
            // Whoever waits shall not wait for the ladder too.
            told = true;
            watch.tell(reason, None);
        }
        watch.shared.ordered.cancel();
        if !watch.child.ended_within(watch.grace).await {
            watch.child.terminate_group();
            watch.child.ended_within(watch.grace).await;
        }
    }
    watch.child.kill_group();
    watch.child.ended_within(KILL_WAIT).await;
    watch.drain().await;
    let status = watch.child.reap();
    if !told {
        watch.tell(reason, status);
    }
    watch.shared.ordered.cancel();
    watch.shared.gone.cancel();
}

impl Watch {
    /// What the process said before it ended is still in the pipes; a grandchild that left the group may keep them open.
    async fn drain(&mut self) {
        let drained = async {
            if !self.reader.is_finished() {
                let _ = (&mut self.reader).await;
            }
            if !self.errors.is_finished() {
                let _ = (&mut self.errors).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, drained).await;
        self.reader.abort();
        self.errors.abort();
    }

    fn tell(&self, reason: CloseReason, status: Option<std::process::ExitStatus>) {
        let Some(inbox) = self.inbox.upgrade() else {
            return;
        };
        let (exit_code, signal, message) = child::describe(status);
        let message = match reason {
            CloseReason::Ordered => "the connection was closed".to_owned(),
            CloseReason::Failed => "the server closed its input".to_owned(),
            CloseReason::ServerExited | CloseReason::StreamEnded => message,
        };
        inbox.closed(Closed {
            exit_code,
            signal,
            ..Closed::new(reason, message)
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
