//! One call of the layer above, through all the messages it may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use crate::headers::ToolHeaders;
use crate::host::CallTag;

/// How a call is made.
#[derive(Clone)]
pub struct CallOptions {
    /// Without a sign of life from the server the call fails after this time. Progress counts as one; time a person takes to answer
    /// a question does not count, and afterwards the clock is full again.
    pub timeout: Duration,
    /// The call ends after this time whatever the server says, not counting open questions.
    pub hard_limit: Duration,
    pub cancel: CancellationToken,
    /// A call with a tag may ask questions and may become a task.
    pub tag: Option<CallTag>,
    pub progress: Option<ProgressSink>,
    /// What of the arguments this tool wants to see in headers (modern HTTP).
    pub tool: Option<Arc<ToolHeaders>>,
    /// This tool can only be called as a task (`execution.taskSupport: "required"` of 2025-11-25).
    pub as_task: bool,
}

/// Called in wire order, before the answer of the call; must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

impl CallOptions {
    /// A request that asks nobody anything.
    pub fn new(timeout: Duration) -> CallOptions {
        CallOptions {
            timeout,
            hard_limit: timeout.saturating_mul(10),
            cancel: CancellationToken::new(),
            tag: None,
            progress: None,
            tool: None,
            as_task: false,
        }
    }
}

/// What the engine knows of a call that is under way.
pub(crate) struct Call {
    pub tag: Option<CallTag>,
    pub clock: Clock,
    progress: Option<ProgressSink>,
    /// The last value: progress has to increase.
    reached: Mutex<f64>,
    ended: AtomicBool,
    end: Notify,
    /// The task the call has become: questions may name it.
    task: Mutex<Option<String>>,
    /// Told to the server with a cancellation.
    reason: Mutex<&'static str>,
}

impl Call {
    pub(crate) fn new(options: &CallOptions) -> Arc<Call> {
        Arc::new(Call {
            tag: options.tag,
            clock: Clock::new(options.timeout, options.hard_limit),
            progress: options.progress.clone(),
            reached: Mutex::new(f64::NEG_INFINITY),
            ended: AtomicBool::new(false),
            end: Notify::new(),
            task: Mutex::new(None),
            reason: Mutex::new("the request was given up"),
        })
    }

    /// Whether the server shall report progress.
    pub(crate) fn wants_progress(&self) -> bool {
        self.tag.is_some() || self.progress.is_some()
    }

    /// The server reports progress: a sign of life in any case, and news if it has increased.
    pub(crate) fn progressed(&self, progress: Progress) {
        self.clock.touch();
        {
            let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
            if progress.progress <= *reached || progress.progress.is_nan() {
                return;
            }
            *reached = progress.progress;
        }
        if let Some(sink) = &self.progress {
            sink(progress);
        }
    }

    /// A new request of the same call counts anew.
    pub(crate) fn restart_progress(&self) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = f64::NEG_INFINITY;
    }

    pub(crate) fn finish(&self) {
        self.ended.store(true, Ordering::Release);
        self.end.notify_waiters();
    }

    /// Returns when the call is over.
    pub(crate) async fn finished(&self) {
        let end = self.end.notified();
        if !self.ended.load(Ordering::Acquire) {
            end.await;
        }
    }

    pub(crate) fn set_task(&self, id: &str) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.to_owned());
    }

    pub(crate) fn is_task(&self, id: &str) -> bool {
        self.task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_deref()
            == Some(id)
    }

    pub(crate) fn set_reason(&self, reason: &'static str) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    pub(crate) fn reason(&self) -> &'static str {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the clocks of calls stand still while it lives.
pub(crate) struct Hold(Vec<Arc<Call>>);

impl Hold {
    pub(crate) fn on(calls: Vec<Arc<Call>>) -> Hold {
        for call in &calls {
            call.clock.hold();
        }
        Hold(calls)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for call in &self.0 {
            call.clock.release();
        }
    }
}
