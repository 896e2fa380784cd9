//! A spinner and a bar on stderr for work that takes a while, on a terminal only; and the news the manager has.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use manager::HostSink;
use protocol::{McpLog, Notification, ProgressValue, Question, State};
use tokio::sync::{mpsc, watch};

use super::terminal::{Terminal, one_line};

/// Work shorter than this shows nothing.
pub const PATIENCE: Duration = Duration::from_millis(400);
const TICK: Duration = Duration::from_millis(100);
/// As many as the manager lets wait for one connection.
const MAX_QUESTIONS: usize = 256;
/// Batches of log lines that may wait to be printed; further ones are counted by the manager's own ring.
const MAX_LOGS: usize = 1024;

/// The host of the manager when nobody but this terminal looks on.
pub struct Watcher {
    terminal: Terminal,
    questions: mpsc::Sender<Question>,
    logs: mpsc::Sender<McpLog>,
    /// Counts the changes of servers.
    changes: watch::Sender<u64>,
    view: Mutex<View>,
}

#[derive(Default)]
struct View {
    bar: Option<ProgressBar>,
    /// A question is on the screen; nothing else may draw.
    asking: bool,
    title: String,
    message: String,
    /// Done and, where known, total.
    measure: Option<(f64, Option<f64>)>,
    /// Servers that are on their way.
    connecting: BTreeSet<String>,
}

impl Watcher {
    pub fn new(terminal: Terminal) -> (Watcher, mpsc::Receiver<Question>, mpsc::Receiver<McpLog>) {
        let (questions, asked) = mpsc::channel(MAX_QUESTIONS);
        let (logs, logged) = mpsc::channel(MAX_LOGS);
        (
            Watcher {
                terminal,
                questions,
                logs,
                changes: watch::Sender::new(0),
                view: Mutex::default(),
            },
            asked,
            logged,
        )
    }

    /// Tells that some server changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Names the work at hand.
    pub fn begin(&self, title: &str) {
        let mut view = self.lock();
        view.title = one_line(title);
        view.draw();
    }

    /// The work is over; the line is clear for its result.
    pub fn end(&self) {
        self.lock().title.clear();
        self.hide();
    }

    /// The work takes long enough to be shown.
    pub fn show(&self) {
        let mut view = self.lock();
        if self.terminal.stderr && view.bar.is_none() && !view.asking && !view.title.is_empty() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
            view.bar = Some(bar);
            view.draw();
        }
    }

    fn hide(&self) {
        if let Some(bar) = self.lock().bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Keeps the line clear while a question is asked.
    pub fn asking(&self, asking: bool) {
        self.lock().asking = asking;
        if asking {
            self.hide();
        } else {
            self.show();
        }
    }

    pub fn is_asking(&self) -> bool {
        self.lock().asking
    }

    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View {
    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        let mut text = self.title.clone();
        if !self.message.is_empty() {
            text = format!("{text}: {}", self.message);
        } else if !self.connecting.is_empty() {
            let names: Vec<&str> = self.connecting.iter().map(String::as_str).collect();
            text = format!("{text}: waiting for {}", names.join(", "));
        }
        let (template, position, length) = match self.measure {
            Some((done, Some(total))) if total > 0.0 => {
                // The bar counts in whole steps; a thousand of them is finer than any terminal.
                let share = (done / total).clamp(0.0, 1.0);
                (
                    "{spinner} {msg} [{bar:20}] {percent}%",
                    (share * 1000.0) as u64,
                    1000,
                )
            }
            _ => ("{spinner} {msg}", 0, 0),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_length(length);
        bar.set_position(position);
        bar.set_message(text);
    }
}

impl HostSink for Watcher {
    fn notify(&self, notification: Notification) {
        match notification {
            Notification::Question(question) => {
                // A full line of questions: the manager's own bound was met before this one.
                let _ = self.questions.try_send(question);
            }
            Notification::Progress(progress) => {
                let mut view = self.lock();
                match progress.value {
                    ProgressValue::Begin(begin) => {
                        view.message = one_line(&begin.message.unwrap_or_default())
                    }
                    ProgressValue::Report(report) => {
                        if let Some(message) = report.message {
                            view.message = one_line(&message);
                        }
                        let number = |n: Option<serde_json::Number>| n.and_then(|n| n.as_f64());
                        view.measure = number(report.progress).map(|done| (done, number(report.total)));
                    }
                    ProgressValue::End(_) => {
                        view.message.clear();
                        view.measure = None;
                    }
                }
                view.draw();
            }
            Notification::Changed(changed) => {
                self.changes.send_modify(|count| *count += 1);
                let Some(status) = changed.status else { return };
                let mut view = self.lock();
                if status.state == State::Connecting {
                    view.connecting.insert(status.name.to_string());
                } else {
                    view.connecting.remove(&*status.name);
                }
                view.draw();
            }
            Notification::Log(log) => {
                let _ = self.logs.try_send(log);
            }
            Notification::QuestionClosed(_)
            | Notification::Sample(_)
            | Notification::ResourceUpdated(_)
            | Notification::HostSend(_)
            | Notification::LogMessage(_) => {}
        }
    }

    /// Never: the command line shows an address and leaves the opening to the person.
    fn show_document(&self, _uri: String) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(std::future::ready(false))
    }
}
