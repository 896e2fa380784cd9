//! `$/progress` of one request: a beginning, at most ten reports a second, an end before the answer.
//!
//! A report that comes too soon is sent when its time has come, or with the end: the newest is never lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Number;
use tokio::runtime::Handle;

use protocol::{
    Error, Notification, Progress, ProgressBegin, ProgressEnd, ProgressReport, ProgressValue, Token,
};

use crate::calls::Calls;
use crate::limits;
use crate::sink::HostSink;

/// The progress of one request; without a token it says nothing.
pub(crate) struct Work<'a> {
    calls: &'a Calls,
    reporter: Option<Arc<Reporter>>,
}

/// Sends reports; handed to whoever makes progress.
pub(crate) struct Reporter {
    sink: Arc<dyn HostSink>,
    token: Token,
    /// Servers report from threads of their own, too.
    runtime: Handle,
    last: Mutex<Last>,
}

struct Last {
    sent: Option<Instant>,
    /// A report that came too soon after another; only the newest is kept.
    held: Option<ProgressReport>,
    over: bool,
}

impl Last {
    /// How long the next report has to wait.
    fn wait(&self) -> Duration {
        self.sent.map_or(Duration::ZERO, |sent| {
            limits::PROGRESS_PAUSE.saturating_sub(sent.elapsed())
        })
    }
}

impl<'a> Work<'a> {
    pub fn begin(
        calls: &'a Calls,
        sink: &Arc<dyn HostSink>,
        token: Option<&Token>,
        title: &str,
        cancellable: bool,
    ) -> Result<Work<'a>, Error> {
        let Some(token) = token else {
            return Ok(Work {
                calls,
                reporter: None,
            });
        };
        calls.take_token(token)?;
        let last = Mutex::new(Last {
            sent: None,
            held: None,
            over: false,
        });
        let reporter = Arc::new(Reporter {
            sink: Arc::clone(sink),
            token: token.clone(),
            runtime: Handle::current(),
            last,
        });
        reporter.send(ProgressValue::Begin(ProgressBegin {
            title: title.to_owned(),
            cancellable,
            message: None,
        }));
        Ok(Work {
            calls,
            reporter: Some(reporter),
        })
    }

    pub fn reporter(&self) -> Option<Arc<Reporter>> {
        self.reporter.clone()
    }

    /// A report of our own, such as `2 of 5 servers are ready`.
    pub fn message(&self, message: &str) {
        if let Some(reporter) = &self.reporter {
            reporter.report(ProgressReport {
                message: Some(message.to_owned()),
                percentage: None,
                progress: None,
                total: None,
            });
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if let Some(reporter) = &self.reporter {
            reporter.end();
            self.calls.free_token(&reporter.token);
        }
    }
}

impl Reporter {
    fn send(&self, value: ProgressValue) {
        self.sink.notify(Notification::Progress(Progress {
            token: self.token.clone(),
            value,
        }));
    }

    /// Sends a report now, or as soon as the last one is old enough.
    pub fn report(self: &Arc<Self>, report: ProgressReport) {
        let mut last = self.last();
        if last.over {
            return;
        }
        let wait = last.wait();
        if wait.is_zero() {
            last.held = None;
            self.send_report(&mut last, report);
        } else if last.held.replace(report).is_none() {
            let reporter = Arc::downgrade(self);
            self.runtime.spawn(async move {
                tokio::time::sleep(wait).await;
                if let Some(reporter) = reporter.upgrade() {
                    reporter.catch_up();
                }
            });
        }
    }

    /// Sends what was held. A report that was held after another one had been sent has a timer of its own.
    fn catch_up(&self) {
        let mut last = self.last();
        if last.wait().is_zero()
            && let Some(held) = last.held.take()
        {
            self.send_report(&mut last, held);
        }
    }

    fn send_report(&self, last: &mut Last, report: ProgressReport) {
        last.sent = Some(Instant::now());
        self.send(ProgressValue::Report(report));
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a server reported, with a percentage where it says of how much.
    pub fn server(self: &Arc<Self>, progress: f64, total: Option<f64>, message: Option<String>) {
        let percentage = total
            .filter(|total| *total > 0.0)
            .map(|total| (progress / total * 100.0).clamp(0.0, 100.0) as u32);
        self.report(ProgressReport {
            message,
            percentage,
            progress: number(progress),
            total: total.and_then(number),
        });
    }

    fn end(&self) {
        let mut last = self.last();
        last.over = true;
        if let Some(held) = last.held.take() {
            self.send(ProgressValue::Report(held));
        }
        drop(last);
        self.send(ProgressValue::End(ProgressEnd { message: None }));
    }
}

/// A whole number as one, as servers mostly send them.
fn number(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}
