//! Diagnostics of Pillion itself: to stderr, never to stdout, and never in the way.
//!
//! Secrets do not reach a log because nothing here formats parameters, results or environments. Other crates do (some
//! log whole messages), so theirs have a ceiling of `warn` that no setting lifts.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Lines that may wait for a host that does not read our stderr; more are dropped, so that it cannot block us.
const WAITING_LINES: usize = 1024;

/// How long the last lines may take when the process ends.
const LAST_LINES: Duration = Duration::from_millis(100);

/// The crates of this workspace.
const OWN: [&str; 5] = ["pillion", "manager", "mcp", "auth", "protocol"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// Starts logging. Once, before anything else runs.
pub fn start(level: Level, format: Format) {
    let level = LevelFilter::from(level);
    let targets = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_targets(OWN.map(|target| (target, level)));
    let layer = fmt::layer().with_writer(|| Line(Vec::new()));
    let layer = match format {
        Format::Json => layer.json().with_ansi(false).with_filter(targets).boxed(),
        Format::Text => layer
            .with_ansi(io::stderr().is_terminal())
            .with_filter(targets)
            .boxed(),
    };
    tracing_subscriber::registry().with(layer).init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

/// Waits a little for lines on their way; for the end of the process.
pub fn finish() {
    let Some(lines) = lines().take() else { return };
    let (done, finished) = sync_channel(1);
    if lines.try_send(Entry::End(done)).is_ok() {
        let _ = finished.recv_timeout(LAST_LINES);
    }
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> LevelFilter {
        match level {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        }
    }
}

enum Entry {
    Line(Vec<u8>),
    End(SyncSender<()>),
}

/// The way to the writing thread, which is there from the first line on.
static LINES: Mutex<Option<SyncSender<Entry>>> = Mutex::new(None);

fn lines() -> std::sync::MutexGuard<'static, Option<SyncSender<Entry>>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One event, passed on when it is complete.
struct Line(Vec<u8>);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.0.is_empty() {
            return;
        }
        let mut lines = lines();
        if lines.is_none() {
            *lines = writing_thread().ok();
        }
        if let Some(lines) = &*lines {
            // Full: the host does not read. The line is lost, the session is not.
            let _ = lines.try_send(Entry::Line(std::mem::take(&mut self.0)));
        }
    }
}

fn writing_thread() -> io::Result<SyncSender<Entry>> {
    let (sender, receiver) = sync_channel(WAITING_LINES);
    let work = move || {
        for entry in receiver {
            match entry {
                Entry::Line(line) => {
                    // Nobody is left to tell when this fails.
                    let _ = io::stderr().write_all(&line);
                }
                Entry::End(done) => {
                    let _ = done.send(());
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("log".to_owned())
        .stack_size(64 * 1024)
        .spawn(work)?;
    Ok(sender)
}
