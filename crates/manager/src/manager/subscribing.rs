//! Subscriptions to resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use protocol::{
    Error, ErrorKind, McpResourceSubscribe, McpResourceSubscribeResult, McpResourceUnsubscribe,
    McpResourceUnsubscribeResult, Tier,
};

use super::Manager;
use crate::server::Server;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.resource.subscribe`: twice is once; outlives reconnects.
    pub async fn resource_subscribe(
        &self,
        _: &RequestContext,
        params: McpResourceSubscribe,
    ) -> Result<McpResourceSubscribeResult, Error> {
        let server = self.server(&params.directory, &params.server)?;
        self.subscriptions(&server, |uris| uris.insert(params.uri.to_string()))
            .await?;
        Ok(McpResourceSubscribeResult {})
    }

    /// `mcp.resource.unsubscribe`.
    pub async fn resource_unsubscribe(
        &self,
        _: &RequestContext,
        params: McpResourceUnsubscribe,
    ) -> Result<McpResourceUnsubscribeResult, Error> {
        let server = self.server(&params.directory, &params.server)?;
        self.subscriptions(&server, |uris| uris.remove(&*params.uri))
            .await?;
        Ok(McpResourceUnsubscribeResult {})
    }

    async fn subscriptions(
        &self,
        server: &Arc<Server>,
        change: impl FnOnce(&mut BTreeSet<String>) -> bool,
    ) -> Result<(), Error> {
        let _use = server.in_use();
        let connection = server.connection(Tier::Local).await?;
        let offers = connection.info().capabilities["resources"]["subscribe"].as_bool() == Some(true);
        if !offers {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("`{}` offers no subscriptions", server.name),
            )
            .what("resource")
            .server(server.name.clone()));
        }
        let _turn = server.subscribing.lock().await;
        let before = server
            .subscriptions
            .lock()
            .map(|uris| uris.clone())
            .unwrap_or_default();
        let mut wanted = before.clone();
        if !change(&mut wanted) {
            return Ok(());
        }
        if let Ok(mut uris) = server.subscriptions.lock() {
            uris.clone_from(&wanted);
        }
        let outcome = connection.subscribe(wanted.into_iter().collect()).await;
        if let Err(error) = outcome {
            if let Ok(mut uris) = server.subscriptions.lock() {
                *uris = before;
            }
            return Err(server.call_error(error));
        }
        Ok(())
    }
}
