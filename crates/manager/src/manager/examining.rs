//! `mcp.doctor`: looks for what could keep servers from working.

use protocol::{Error, McpDoctor, McpDoctorResult};

use super::Manager;
use crate::doctor::{self, Ground};
use crate::progress::Work;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.doctor`. Starts no server unless `start` says so; changes nothing but what `repair` names.
    pub async fn doctor(
        &self,
        request: &RequestContext,
        params: McpDoctor,
    ) -> Result<McpDoctorResult, Error> {
        let root = self.root(&params.directory)?;
        self.layers.reload(&self.core);
        if let Some(name) = &params.server
            && self.layers.shown(&root, name).is_none()
        {
            return Err(self.unknown(&root, name));
        }
        let visible: Vec<_> = self.layers.visible(&root);
        let visible: Vec<_> = visible.into_iter().filter(|server| !server.is_empty).collect();
        let ground = Ground {
            core: std::sync::Arc::clone(&self.core),
            effective: self.layers.effective(&root),
            files: self
                .layers
                .files(&root)
                .into_iter()
                .map(|(_, file)| file)
                .collect(),
            unknown: visible.iter().map(|server| self.layers.unknown(server)).collect(),
            visible,
            only: params.server,
            start: params.start == Some(true),
        };
        let token = params.work_done_token.as_ref();
        let work = Work::begin(&self.core.calls, &self.core.sink, token, "Looking", true)?;
        let repairs = params.repair.unwrap_or_default();
        tokio::select! {
            checks = doctor::examine(ground, &repairs, &work) => Ok(McpDoctorResult { checks }),
            () = request.cancel.cancelled() => {
                Err(Error::new(protocol::ErrorKind::Cancelled, "cancelled by the host"))
            }
        }
    }
}
