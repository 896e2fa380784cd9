//! `mcp.test`: an entry is tried before it is written, or a stored one with changes.

use std::time::Duration;

use protocol::{Error, ErrorKind, McpTest, ServerEntry, ServerName, TestResult};

use super::Manager;
use super::editing::{check_entry, check_looked_at};
use crate::config::{members, merge};
use crate::consent::Gate;
use crate::limits;
use crate::progress::Work;
use crate::server::launch::Origin;
use crate::server::trial::{self, Trial};
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.test`. Writes nothing, and leaves a running server of that name alone.
    pub async fn test(&self, request: &RequestContext, params: McpTest) -> Result<TestResult, Error> {
        let limit = params.timeout_ms.map_or(limits::TRIAL, Duration::from_millis);
        let token = params.work_done_token.clone();
        let trial = self.trial(params)?;
        let title = format!("Testing {}", trial.name);
        let work = Work::begin(&self.core.calls, &self.core.sink, token.as_ref(), &title, true)?;
        tokio::select! {
            result = trial::run(&self.core, &trial, limit, &work) => Ok(result),
            () = request.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "cancelled by the host")),
        }
    }

    fn trial(&self, params: McpTest) -> Result<Trial, Error> {
        self.root(&params.directory)?;
        let Some(name) = &params.server else {
            let Some(entry) = params.entry else {
                return Err(Error::new(ErrorKind::InvalidParams, "nothing to test is named")
                    .path("/entry")
                    .expected("`entry`, or `server` with changes"));
            };
            check_entry(&entry, "/entry")?;
            merge::check_no_mask(&entry)?;
            check_looked_at(&entry, params.accept_unverified)?;
            return Ok(Trial {
                name: ServerName::from("the server"),
                entry,
                is_saved: false,
                origin: Origin {
                    base: self.core.env.home().to_owned(),
                    root: None,
                    held: None,
                },
            });
        };
        if params.entry.is_some() {
            return Err(Error::new(
                ErrorKind::InvalidParams,
                "`entry` and `server` exclude each other",
            )
            .path("/entry")
            .expected("a stored server is changed with `set` and `unset`"));
        }
        let server = self.server(&params.directory, name)?;
        // A switch that is off, or a profile, is no reason not to try; what nobody agreed to yet is.
        if !matches!(server.gate(), Gate::Open | Gate::Outside { .. })
            && let Some(refusal) = server.refusal()
        {
            return Err(refusal);
        }
        let stored = serde_json::to_value(&*server.entry()).unwrap_or_default();
        let unset = params.unset.unwrap_or_default();
        let merged = merge::merged(&stored, params.set.as_ref(), &unset)?;
        let (known, _) = members::known_members(&merged);
        let entry: ServerEntry = serde_json::from_value(known)
            .map_err(|error| Error::new(ErrorKind::InvalidParams, error.to_string()).path("/set"))?;
        check_entry(&entry, "/set")?;
        let held = self.held_after(Some(&server), &server.place(), &entry);
        Ok(Trial {
            name: server.name.clone(),
            entry,
            is_saved: true,
            origin: Origin {
                held,
                ..server.origin()
            },
        })
    }
}
