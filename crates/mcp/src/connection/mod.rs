//! A connection as the layer above holds it: requests go in, results come back as the server wrote them.

mod call;
mod clock;
pub(crate) mod connect;
mod core;
mod envelope;
mod era;
mod failure;
mod inbound;
mod legacy;
mod listen;
mod members;
mod meta;
mod modern;
mod pages;
mod questions;
mod tasks;
mod versions;

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::value::RawValue;
use tokio::sync::{Semaphore, SemaphorePermit};

use self::call::Call;
use self::core::Core;
use crate::error::{CallError, CloseReason, Closed};
use crate::target::{Era, Options, Transport};
use crate::transport::Inbox;

pub use self::call::{CallOptions, Progress, ProgressSink};
pub use self::pages::{ListLimits, Listed};

/// A cheap handle. The server ends when the last one is dropped; [`Connection::close`] waits for it.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

/// What the server said about itself.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    pub transport: Transport,
    pub era: Era,
    /// The era was told by an answer: worth remembering. Silence alone does not settle it.
    pub settled: bool,
    pub protocol_version: String,
    pub capabilities: serde_json::Value,
    /// The server's `Implementation` object.
    pub server_info: Option<Box<RawValue>>,
    pub instructions: Option<String>,
}

pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    pub(crate) info: ServerInfo,
    pub(crate) client: legacy::Client,
    pub(crate) modern: modern::Modern,
    pub(crate) session: legacy::Sessions,
    pub(crate) listening: listen::Listening,
    slots: Semaphore,
    max_in_flight: usize,
    queued: AtomicUsize,
}

impl Connection {
    pub(crate) fn new(core: Arc<Core>, info: ServerInfo, options: &Options) -> Connection {
        let max_in_flight = options.max_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Connection(Arc::new(Inner {
            client: legacy::Client::new(options),
            modern: modern::Modern::new(options, &info),
            core,
            info,
            session: legacy::Sessions::default(),
            listening: listen::Listening::default(),
            slots: Semaphore::new(max_in_flight),
            max_in_flight,
            queued: AtomicUsize::new(0),
        }))
    }

    pub fn info(&self) -> &ServerInfo {
        &self.0.info
    }

    pub fn pid(&self) -> Option<u32> {
        self.0.core.link()?.pid()
    }

    /// Sends a request and drives it to its result, whatever it takes: questions, repetitions, tasks. `params` is an object. Dropping
    /// the future cancels the request.
    pub async fn request(
        &self,
        method: &str,
        params: Box<RawValue>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let _slot = self.0.slot(&options).await?;
        let call = Call::new(&options);
        let _finish = Finish(&call);
        let mut expired = pin!(call.clock.expired());
        // Declared last, so that it is dropped first: what it tells the server then needs the rest.
        let mut drive = pin!(self.0.drive(method, &params, &call, &options));
        tokio::select! {
            biased;
            answer = &mut drive => answer,
            () = options.cancel.cancelled() => {
                call.set_reason("the user cancelled the request");
                Err(CallError::Cancelled)
            }
            after = &mut expired => {
                call.set_reason("the request timed out");
                Err(CallError::TimedOut { after })
            }
        }
    }

    /// Makes this the set of resources whose changes are told.
    pub async fn subscribe(&self, uris: Vec<String>) -> Result<(), CallError> {
        let call = Call::new(&CallOptions::new(listen::SUBSCRIBE_TIMEOUT));
        let change = async {
            match self.0.info.era {
                Era::Legacy => self.0.subscribe_legacy(uris.into_iter().collect(), &call).await,
                Era::Modern => self.0.subscribe_modern(&uris).await,
            }
        };
        tokio::time::timeout(listen::SUBSCRIBE_TIMEOUT, change)
            .await
            .unwrap_or(Err(CallError::TimedOut {
                after: listen::SUBSCRIBE_TIMEOUT,
            }))
    }

    /// The folders have changed. Servers of the modern era ask anew each time.
    pub fn roots_changed(&self) {
        if self.0.info.era == Era::Legacy && self.0.core.capabilities.roots {
            self.0
                .core
                .send(Core::notification("notifications/roots/list_changed", &[]));
        }
    }

    pub(crate) fn started(&self) {
        if self.0.info.era == Era::Modern {
            self.0.listen_at_start();
        }
    }

    /// Ends the connection and returns when nothing of it is left: the session is deleted, the process reaped.
    pub async fn close(&self) {
        self.0
            .core
            .give_up(Closed::new(CloseReason::Ordered, "the connection was closed"));
        let Some(link) = self.0.core.link() else {
            return;
        };
        link.close().await;
        self.0
            .core
            .closed(Closed::new(CloseReason::Ordered, "the connection was closed"));
    }

    /// Returns when the connection has ended, whoever ended it.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let gone = self.0.core.gone.clone();
        async move { gone.cancelled().await }
    }
}

impl Inner {
    async fn drive(
        &self,
        method: &str,
        params: &RawValue,
        call: &Arc<Call>,
        options: &CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        match self.info.era {
            Era::Legacy => self.drive_legacy(method, params, call, options).await,
            Era::Modern => self.drive_modern(method, params, call, options).await,
        }
    }

    /// A place among the requests in flight; waits for one, but not in any number.
    async fn slot(&self, options: &CallOptions) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Ok(slot);
        }
        let _queued =
            Queued::enter(&self.queued, self.max_in_flight.saturating_mul(4)).ok_or(CallError::Overloaded)?;
        tokio::select! {
            biased;
            slot = self.slots.acquire() => slot.map_err(|_| CallError::Overloaded),
            () = options.cancel.cancelled() => Err(CallError::Cancelled),
            () = self.core.gone.cancelled() => Err(CallError::Closed(self.core.end())),
            () = tokio::time::sleep(options.timeout) => Err(CallError::Overloaded),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (Some(link), Ok(runtime)) = (self.core.link(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let closing = link.close();
        // Kept until nothing is left, so that the end is told.
        let core = self.core.clone();
        runtime.spawn(async move {
            closing.await;
            drop(core);
        });
    }
}

struct Finish<'a>(&'a Call);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

struct Queued<'a>(&'a AtomicUsize);

impl<'a> Queued<'a> {
    fn enter(count: &'a AtomicUsize, limit: usize) -> Option<Queued<'a>> {
        let queued = Queued(count);
        (count.fetch_add(1, Ordering::Relaxed) < limit).then_some(queued)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
