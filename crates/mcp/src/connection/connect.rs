//! Opening a connection: which carrier, which era, which version.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use serde_json::value::RawValue;

use super::core::{Answer, Core};
use super::envelope::PROBE;
use super::era::{
    HEADER_MISMATCH, Legacy, METHOD_NOT_FOUND, MISSING_CAPABILITY, Probe, UNSUPPORTED_VERSION, Verdict, judge,
};
use super::failure::Failure;
use super::legacy::{Client, Handshake, HandshakeError};
use super::{Connection, ServerInfo, members, modern, versions};
use crate::error::ConnectError;
use crate::host::{ConnectionHost, Event};
use crate::target::{Era, Flavour, HttpTarget, Options, ProtocolChoice, StdioTarget, Target, Transport};
use crate::transport::relay::{Relay, RelayLink};
use crate::transport::stdio::StdioLink;
use crate::transport::{LinkLimits, http, sse};

/// Starts or reaches the server and settles how to speak with it.
pub async fn connect(
    target: Target,
    options: Options,
    host: Arc<dyn ConnectionHost>,
) -> Result<Connection, ConnectError> {
    let start_timeout = options.start_timeout;
    let attempt = Attempt {
        options,
        host,
        now: Mutex::default(),
    };
    let work = async {
        match target {
            Target::Stdio(target) => attempt.alone(Transport::Stdio, || attempt.spawn(&target)).await,
            Target::Relay(relay) => {
                attempt
                    .alone(Transport::Relay, || Ok(attempt.relay(&*relay)))
                    .await
            }
            Target::Http(target) => attempt.http(&target).await,
        }
    };
    match tokio::time::timeout(start_timeout, work).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let (phase, core) = attempt.now();
            Err(ConnectError::TimedOut {
                phase,
                after: start_timeout,
                stderr_tail: core.as_ref().map(|core| core.stderr_tail()).unwrap_or_default(),
                first_noise: core.and_then(|core| core.first_noise()),
            })
        }
    }
}

struct Attempt {
    options: Options,
    host: Arc<dyn ConnectionHost>,
    /// What is being done and with whom, for the report if time runs out.
    now: Mutex<(&'static str, Option<Arc<Core>>)>,
}

/// How the first words are chosen.
enum Plan {
    /// `server/discover`; `fallback`: the older era will do too.
    Probe { version: &'static str, fallback: bool },
    /// `initialize`; `exact`: at this version only.
    Handshake { version: &'static str, exact: bool },
}

/// Why no connection came about over one carrier.
enum Refusal {
    Final(ConnectError),
    /// The process ended over the probe: a fresh one may open with a handshake.
    Fresh(Legacy),
    /// The server refused the handshake in the way of one that knows only the older remote transport.
    NotStreamable(Failure),
}

impl From<ConnectError> for Refusal {
    fn from(error: ConnectError) -> Refusal {
        Refusal::Final(error)
    }
}

impl Attempt {
    /// A server that nobody else speaks with: it begins with the connection, and may have to begin anew.
    async fn alone(
        &self,
        transport: Transport,
        open: impl Fn() -> Result<Arc<Core>, ConnectError>,
    ) -> Result<Connection, ConnectError> {
        let core = open()?;
        let fresh = match self.negotiate(&core, transport, self.plan()?).await {
            Ok(info) => return self.finish(core, info),
            Err(Refusal::Final(error)) => return Err(error),
            Err(Refusal::NotStreamable(failure)) => return Err(failure.into_connect_error(&core)),
            Err(Refusal::Fresh(legacy)) => legacy,
        };
        core.event(Event::Protocol(
            "the server ended over the first question of the newest revision; it is started once more for an older one"
                .to_owned(),
        ));
        drop(core);
        let core = open()?;
        match self.legacy(&core, transport, fresh, false).await {
            Ok(info) => self.finish(core, info),
            Err(Refusal::Final(error)) => Err(error),
            Err(Refusal::NotStreamable(failure)) => Err(failure.into_connect_error(&core)),
            Err(Refusal::Fresh(_)) => Err(core.exited()),
        }
    }

    async fn http(&self, target: &HttpTarget) -> Result<Connection, ConnectError> {
        if target.flavour == Flavour::Sse {
            return self.sse(target).await.map_err(|failure| failure.0);
        }
        let core = Core::new(self.host.clone(), &self.options, true);
        core.attach(http::open(target.clone(), self.limits(), core.inbox()));
        let first = match self
            .negotiate(&core, Transport::StreamableHttp, self.plan()?)
            .await
        {
            Ok(info) => return self.finish(core, info),
            Err(Refusal::Final(error)) => return Err(error),
            Err(Refusal::NotStreamable(failure)) => failure.into_connect_error(&core),
            Err(Refusal::Fresh(_)) => return Err(core.exited()),
        };
        if target.flavour == Flavour::Streamable || matches!(self.options.protocol, ProtocolChoice::Pin(_)) {
            return Err(first);
        }
        match self.sse(target).await {
            Ok(connection) => Ok(connection),
            Err(Later(error @ ConnectError::Unauthorized { .. }, _)) => Err(error),
            Err(Later(error, Opened(true))) => Err(error),
            // The first reason is the one that helps: the fallback fails on every server that is not that old.
            Err(Later(second, Opened(false))) => Err(with_second(first, &second)),
        }
    }

    async fn sse(&self, target: &HttpTarget) -> Result<Connection, Later> {
        let core = Core::new(self.host.clone(), &self.options, false);
        self.doing("the event stream", &core);
        let link = sse::open(target.clone(), self.limits(), core.inbox())
            .await
            .map_err(|error| {
                Later(
                    Failure::from_transport(error).into_connect_error(&core),
                    Opened(false),
                )
            })?;
        core.attach(link);
        let version = match &self.options.protocol {
            ProtocolChoice::Pin(version) => versions::known(version).filter(|known| known.0 == Era::Legacy),
            _ => Some((Era::Legacy, versions::NEWEST_LEGACY)),
        };
        let Some((_, version)) = version else {
            let theirs = versions::LEGACY
                .iter()
                .map(|version| (*version).to_owned())
                .collect();
            return Err(Later(self.unsupported(theirs), Opened(true)));
        };
        let exact = matches!(self.options.protocol, ProtocolChoice::Pin(_));
        let legacy = Legacy {
            version,
            ..Legacy::new()
        };
        let info = self
            .legacy(&core, Transport::Sse, legacy, exact)
            .await
            .map_err(|refusal| {
                let error = match refusal {
                    Refusal::Final(error) => error,
                    Refusal::NotStreamable(failure) => failure.into_connect_error(&core),
                    Refusal::Fresh(_) => core.exited(),
                };
                Later(error, Opened(true))
            })?;
        self.finish(core, info)
            .map_err(|error| Later(error, Opened(true)))
    }

    fn spawn(&self, target: &StdioTarget) -> Result<Arc<Core>, ConnectError> {
        let core = Core::new(self.host.clone(), &self.options, false);
        self.doing("start", &core);
        core.attach(StdioLink::open(target, core.inbox(), self.limits())?);
        Ok(core)
    }

    fn relay(&self, relay: &dyn Relay) -> Arc<Core> {
        let core = Core::new(self.host.clone(), &self.options, false);
        self.doing("start", &core);
        core.attach(RelayLink::open(relay, core.inbox()));
        core
    }

    fn plan(&self) -> Result<Plan, ConnectError> {
        let probe = Plan::Probe {
            version: versions::NEWEST_MODERN,
            fallback: true,
        };
        let handshake = Plan::Handshake {
            version: versions::NEWEST_LEGACY,
            exact: false,
        };
        Ok(match (&self.options.protocol, self.options.verdict) {
            (ProtocolChoice::Legacy, _) | (ProtocolChoice::Auto, Some(Era::Legacy)) => handshake,
            (ProtocolChoice::Auto, _) => probe,
            (ProtocolChoice::Pin(version), _) => match versions::known(version) {
                Some((Era::Modern, version)) => Plan::Probe {
                    version,
                    fallback: false,
                },
                Some((Era::Legacy, version)) => Plan::Handshake { version, exact: true },
                None => {
                    return Err(ConnectError::UnsupportedVersion {
                        theirs: vec![version.clone()],
                        ours: versions::ours(),
                    });
                }
            },
        })
    }

    async fn negotiate(
        &self,
        core: &Arc<Core>,
        transport: Transport,
        plan: Plan,
    ) -> Result<ServerInfo, Refusal> {
        match plan {
            Plan::Probe { version, fallback } => self.probe(core, transport, version, fallback).await,
            Plan::Handshake { version, exact } => {
                let legacy = Legacy {
                    version,
                    ..Legacy::new()
                };
                let refusal = match self.legacy(core, transport, legacy, exact).await {
                    Ok(info) => return Ok(info),
                    Err(refusal) => refusal,
                };
                // What was remembered of the server may no longer be true.
                let is_remembered = self.options.protocol == ProtocolChoice::Auto;
                if is_remembered
                    && matches!(
                        refusal,
                        Refusal::Final(ConnectError::Rpc { .. }) | Refusal::NotStreamable(_)
                    )
                {
                    let probe = self.discover(core, versions::NEWEST_MODERN, PROBE + 9).await;
                    if let Verdict::Modern { version, discovered } = judge(probe, core.is_http, &[]) {
                        return Ok(self.modern(core, transport, version, Some(discovered)));
                    }
                }
                Err(refusal)
            }
        }
    }

    async fn probe(
        &self,
        core: &Arc<Core>,
        transport: Transport,
        mut version: &'static str,
        fallback: bool,
    ) -> Result<ServerInfo, Refusal> {
        self.doing("server/discover", core);
        let mut tried = Vec::new();
        loop {
            tried.push(version);
            let id = PROBE + tried.len() as u64;
            // Fused: after an answer it is polled once more below.
            let mut answer = Box::pin(modern::discover(core, &self.options, version, id).fuse());
            let probe = match tokio::time::timeout(self.probe_timeout(), &mut answer).await {
                Ok(answer) => Probe::Answered(answer),
                Err(_) => Probe::Silent,
            };
            match judge(probe, core.is_http, &tried) {
                Verdict::Again(named) => version = named,
                Verdict::Modern { version, discovered } => {
                    return Ok(self.modern(core, transport, version, Some(discovered)));
                }
                Verdict::Incompatible { theirs } => return Err(self.unsupported(theirs).into()),
                Verdict::Failed(failure) => return Err(failure.into_connect_error(core).into()),
                Verdict::Legacy(legacy) if !fallback => {
                    let error = match legacy.doubt {
                        Some(failure) => failure.into_connect_error(core),
                        None if legacy.fresh => core.exited(),
                        None => self.unsupported(vec!["an older one".into()]),
                    };
                    return Err(error.into());
                }
                Verdict::Legacy(legacy) if legacy.fresh => return Err(Refusal::Fresh(legacy)),
                Verdict::Legacy(legacy) => {
                    let refusal = match self.legacy(core, transport, legacy, false).await {
                        Ok(info) => return Ok(info),
                        // It answered the probe, and exited over it nevertheless.
                        Err(Refusal::Final(ConnectError::Exited { .. }))
                            if matches!(transport, Transport::Stdio | Transport::Relay) =>
                        {
                            return Err(Refusal::Fresh(Legacy::new()));
                        }
                        Err(refusal) => refusal,
                    };
                    // The server was only slow: its answer came meanwhile, and it is not of the older era.
                    let late = answer
                        .now_or_never()
                        .map(|late| judge(Probe::Answered(late), core.is_http, &tried));
                    if let Some(Verdict::Modern { version, discovered }) = late {
                        return Ok(self.modern(core, transport, version, Some(discovered)));
                    }
                    return Err(refusal);
                }
            }
        }
    }

    /// The handshake has to fit into the time for the start too.
    fn probe_timeout(&self) -> Duration {
        self.options.probe_timeout.min(self.options.start_timeout / 2)
    }

    async fn discover(&self, core: &Core, version: &'static str, id: u64) -> Probe {
        self.probe_with(modern::discover(core, &self.options, version, id))
            .await
    }

    async fn probe_with(&self, answer: impl Future<Output = Answer>) -> Probe {
        match tokio::time::timeout(self.probe_timeout(), answer).await {
            Ok(answer) => Probe::Answered(answer),
            Err(_) => Probe::Silent,
        }
    }

    /// The handshake, and what its failure says about the era after all.
    async fn legacy(
        &self,
        core: &Arc<Core>,
        transport: Transport,
        legacy: Legacy,
        exact: bool,
    ) -> Result<ServerInfo, Refusal> {
        self.doing("initialize", core);
        let client = Client::new(&self.options);
        let error = match client.handshake(core, legacy.version, exact).await {
            Ok(handshake) => {
                core.settle(Era::Legacy);
                if let Err(failure) = client.open_session(core, &handshake).await {
                    return Err(failure.into_connect_error(core).into());
                }
                return Ok(legacy_info(transport, legacy.settled, handshake));
            }
            Err(error) => error,
        };
        let failure = match error {
            HandshakeError::Version { theirs } => return Err(self.unsupported(theirs).into()),
            HandshakeError::Invalid(why) => return Err(ConnectError::Protocol(why.into()).into()),
            HandshakeError::Modern(version) => {
                let probe = self.discover(core, version, PROBE + 8).await;
                return match judge(probe, core.is_http, &[]) {
                    Verdict::Modern { version, discovered } if transport != Transport::Sse => {
                        Ok(self.modern(core, transport, version, Some(discovered)))
                    }
                    _ => Err(self.unsupported(vec![version.into()]).into()),
                };
            }
            HandshakeError::Failed(failure) => failure,
        };
        if legacy.unknown_method && is_modern_refusal(&failure) {
            // Neither greeting is known: a modern server that lacks one method.
            let answer = modern::probe(
                core,
                &self.options,
                versions::NEWEST_MODERN,
                PROBE + 7,
                "tools/list",
            );
            if let Probe::Answered(Ok(_)) = self.probe_with(answer).await {
                return Ok(self.modern(core, transport, versions::NEWEST_MODERN, None));
            }
        }
        if let Some(doubt) = legacy.doubt {
            return Err(doubt.into_connect_error(core).into());
        }
        if transport == Transport::StreamableHttp && matches!(failure.status(), Some(400 | 404 | 405)) {
            return Err(Refusal::NotStreamable(failure));
        }
        Err(failure.into_connect_error(core).into())
    }

    fn modern(
        &self,
        core: &Core,
        transport: Transport,
        version: &str,
        discovered: Option<Box<RawValue>>,
    ) -> ServerInfo {
        core.settle(Era::Modern);
        let text = discovered
            .as_deref()
            .map_or(r#"{"capabilities":{"tools":{}}}"#, RawValue::get);
        let meta = members::member(text, "_meta").unwrap_or("{}");
        ServerInfo {
            transport,
            era: Era::Modern,
            settled: true,
            protocol_version: version.into(),
            capabilities: capabilities(text),
            server_info: members::member(meta, "io.modelcontextprotocol/serverInfo").map(members::raw),
            instructions: instructions(text),
        }
    }

    fn finish(&self, core: Arc<Core>, info: ServerInfo) -> Result<Connection, ConnectError> {
        if !core.announce() {
            return Err(core.exited());
        }
        let connection = Connection::new(core, info, &self.options);
        connection.started();
        Ok(connection)
    }

    fn unsupported(&self, theirs: Vec<String>) -> ConnectError {
        let ours = match &self.options.protocol {
            ProtocolChoice::Auto => versions::ours(),
            ProtocolChoice::Legacy => versions::LEGACY
                .iter()
                .map(|version| (*version).to_owned())
                .collect(),
            ProtocolChoice::Pin(version) => vec![version.clone()],
        };
        ConnectError::UnsupportedVersion { theirs, ours }
    }

    fn limits(&self) -> LinkLimits {
        LinkLimits {
            max_message_bytes: self.options.max_message_bytes,
            stop_grace: self.options.stop_grace,
        }
    }

    fn doing(&self, phase: &'static str, core: &Arc<Core>) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = (phase, Some(core.clone()));
    }

    fn now(&self) -> (&'static str, Option<Arc<Core>>) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The error of a fallback, and whether its carrier stood at all.
struct Later(ConnectError, Opened);

struct Opened(bool);

fn with_second(first: ConnectError, second: &ConnectError) -> ConnectError {
    match first {
        ConnectError::Http { status, body, .. } => ConnectError::Http {
            status,
            body,
            also: Some(second.to_string()),
        },
        other => other,
    }
}

fn is_modern_refusal(failure: &Failure) -> bool {
    matches!(
        failure.code(),
        Some(METHOD_NOT_FOUND | HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
    )
}

fn legacy_info(transport: Transport, settled: bool, handshake: Handshake) -> ServerInfo {
    let text = handshake.result.get();
    ServerInfo {
        transport,
        era: Era::Legacy,
        settled,
        protocol_version: handshake.version.into(),
        capabilities: capabilities(text),
        server_info: members::member(text, "serverInfo")
            .filter(|info| members::is_object(info))
            .map(members::raw),
        instructions: instructions(text),
    }
}

fn capabilities(result: &str) -> Value {
    let capabilities =
        members::member(result, "capabilities").and_then(|text| serde_json::from_str(text).ok());
    capabilities
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

fn instructions(result: &str) -> Option<String> {
    members::member(result, "instructions")
        .and_then(members::string)
        .map(Into::into)
}

/// Connects to a server that is a function.
#[cfg(test)]
pub(crate) async fn connect_in_memory(
    script: crate::transport::memory::Script,
    is_http: bool,
    options: Options,
    host: Arc<dyn ConnectionHost>,
) -> (Result<Connection, ConnectError>, crate::transport::memory::Far) {
    use crate::transport::memory::MemoryLink;

    let attempt = Attempt {
        options,
        host,
        now: Mutex::default(),
    };
    let core = Core::new(attempt.host.clone(), &attempt.options, is_http);
    let (link, far) = MemoryLink::open(script, core.inbox());
    core.attach(link);
    let transport = if is_http {
        Transport::StreamableHttp
    } else {
        Transport::Stdio
    };
    let plan = attempt.plan().expect("a version we know");
    let connection = match attempt.negotiate(&core, transport, plan).await {
        Ok(info) => attempt.finish(core, info),
        Err(Refusal::Final(error)) => Err(error),
        Err(Refusal::NotStreamable(failure)) => Err(failure.into_connect_error(&core)),
        Err(Refusal::Fresh(_)) => Err(core.exited()),
    };
    (connection, far)
}
