//! What the manager needs from whoever drives it: a place for news, and the terms of one request.

use std::future::Future;
use std::pin::Pin;

use protocol::{Notification, Tier};
use tokio_util::sync::CancellationToken;

/// The host, as the manager sees it.
pub trait HostSink: Send + Sync + 'static {
    /// Passes one notification on. Never blocks.
    fn notify(&self, notification: Notification);

    /// The same for what must not be lost: `false` where there is no room for it.
    fn deliver(&self, notification: Notification) -> bool {
        self.notify(notification);
        true
    }

    /// Asks the host to open a URL (`window/showDocument`); `false` where it cannot or did not.
    fn show_document(&self, uri: String) -> Pin<Box<dyn Future<Output = bool> + Send>>;
}

/// The terms of one request.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// Cancelled when the host sent `$/cancelRequest`, or when its connection ended.
    pub cancel: CancellationToken,
    /// Who asks.
    pub tier: Tier,
}

impl RequestContext {
    /// A request of the local host that nobody cancels.
    pub fn local() -> RequestContext {
        RequestContext {
            cancel: CancellationToken::new(),
            tier: Tier::Local,
        }
    }
}
