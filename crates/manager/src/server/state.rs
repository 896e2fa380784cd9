//! The states of a server, and the public record computed from them.

use std::time::Instant;

use mcp::{Connection, Era, Transport};
use protocol::{
    Auth, ConnectionStatus, EraName, Error, ErrorKind, Fault, Issue, IssueKind, Layer, McpServerStatus,
    PendingStatus, ProfileName, Remote, Retry, Revision, ServerEntry, State as Name, TransportName,
};

use super::{Reading, Server, in_host};
use crate::config::secret;
use crate::consent::Gate;
use crate::env;
use crate::limits;

/// Why a server does not run, and since when.
#[derive(Clone)]
pub(crate) struct Failure {
    pub error: Error,
    /// Epoch ms.
    pub at: u64,
}

impl Failure {
    pub fn now(error: Error) -> Failure {
        Failure {
            error,
            at: env::now(),
        }
    }

    /// As a record shows it.
    fn fault(&self) -> Fault {
        Fault {
            at: Some(self.at),
            ..Fault::from(&self.error)
        }
    }
}

/// What a server is doing. Each state holds what exists in it.
#[derive(Clone)]
pub(crate) enum State {
    Stopped,
    Connecting,
    /// Crashed, and started again at a time.
    Backoff {
        attempt: u32,
        at: u64,
        failure: Failure,
    },
    Ready {
        connection: Connection,
        started_at: u64,
    },
    NeedsAuth {
        failure: Failure,
        since: Instant,
    },
    /// `last`: only a person's order starts it again.
    Failed {
        failure: Failure,
        since: Instant,
        last: bool,
    },
}

impl State {
    pub fn name(&self) -> Name {
        match self {
            State::Stopped => Name::Stopped,
            State::Connecting | State::Backoff { .. } => Name::Connecting,
            State::Ready { .. } => Name::Ready,
            State::NeedsAuth { .. } => Name::NeedsAuth,
            State::Failed { .. } => Name::Error,
        }
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            State::Backoff { failure, .. }
            | State::NeedsAuth { failure, .. }
            | State::Failed { failure, .. } => Some(failure),
            State::Stopped | State::Connecting | State::Ready { .. } => None,
        }
    }
}

impl Server {
    /// The state by its public name.
    pub fn state_name(&self) -> Name {
        match self.gate() {
            Gate::NeedsTrust => return Name::NeedsTrust,
            Gate::Pending { .. } => return Name::Pending,
            Gate::Refused | Gate::Forbidden { .. } | Gate::Outside { .. } => return Name::Disabled,
            Gate::Open if !self.is_switched_on() => return Name::Disabled,
            Gate::Open => {}
        }
        if !self.faults().is_empty() {
            return Name::Error;
        }
        let state = self.state();
        if self.is_authorizing() {
            Name::Authorizing
        } else if matches!(state, State::Ready { .. }) && self.login_need().is_some() {
            Name::NeedsAuth
        } else if matches!(state, State::NeedsAuth { .. }) && self.has_new_login() {
            // It is about to start with it; another login would be one too many.
            Name::Connecting
        } else {
            state.name()
        }
    }

    /// The public record. `effective`: no entry of a higher layer hides it.
    pub fn status(&self, seq: u64, effective: bool) -> McpServerStatus {
        let entry = self.entry();
        let gate = self.gate();
        if let Gate::Pending { expires_at } = gate {
            return self.pending_status(seq, effective, expires_at);
        }
        let state = self.state();
        let Reading { faults, slips } = self.reading();
        let mut issues = self.catalog.issues();
        if let Gate::Forbidden { reason } = &gate {
            issues.push(Issue {
                server: Some(self.name.clone()),
                ..Issue::new(ErrorKind::Denied, format!("forbidden: {reason}"))
            });
        }
        if let Gate::Outside { reason, .. } = &gate {
            issues.push(Issue {
                server: Some(self.name.clone()),
                hint: Some("choose another profile, or name the server in this one".to_owned()),
                ..Issue::new(IssueKind::Note, reason.clone())
            });
        }
        issues.extend(self.environment().into_iter().map(|note| Issue {
            server: Some(self.name.clone()),
            ..Issue::new(IssueKind::Note, note)
        }));
        let config_fault = faults.first().map(|message| Fault {
            hint: Some("correct the entry in its file".to_owned()),
            ..Fault::new(ErrorKind::ConfigBroken, message.clone())
        });
        for message in faults.iter().skip(1) {
            issues.push(Issue {
                server: Some(self.name.clone()),
                ..Issue::new(ErrorKind::ConfigBroken, message.clone())
            });
        }
        issues.extend(slips.into_iter().map(|slip| Issue {
            server: Some(self.name.clone()),
            hint: Some("correct the entry in its file; the member does nothing until then".to_owned()),
            ..Issue::new(ErrorKind::ConfigBroken, slip)
        }));
        issues.truncate(crate::limits::ISSUES);
        let counts = self.catalog.counts();
        let ready = match &state {
            State::Ready {
                connection,
                started_at,
            } => Some((connection, *started_at)),
            _ => None,
        };
        let retry = match &state {
            State::Backoff { attempt, at, .. } => Some(Retry {
                attempt: *attempt,
                at: *at,
            }),
            _ => None,
        };
        let is_enabled = self.is_enabled();
        let login_key = self.login_key();
        let stored = self.stored_login().filter(|stored| stored.has_token);
        let need = self.login_need().filter(|_| ready.is_some());
        let auth = if self.is_authorizing() {
            Auth::Pending
        } else if login_key.is_some() && (need.is_some() || matches!(state, State::NeedsAuth { .. })) {
            Auth::NeedsAuth
        } else if stored.as_ref().is_some_and(auth::Stored::is_usable) {
            Auth::Authorized
        } else {
            Auth::None
        };
        let (shown, _) = secret::masked(&entry);
        McpServerStatus {
            name: self.name.clone(),
            label: secret::label(&shown, &self.name),
            directory: self.directory.clone(),
            layer: self.layer,
            source: shown.source.clone().unwrap_or_else(|| match self.layer {
                Layer::Host => "host".to_owned(),
                _ => "manual".to_owned(),
            }),
            state: self.state_name(),
            command: (!self.is_empty).then(|| shown_command(&shown, &auth)),
            effective,
            connection: ready.map(|(connection, _)| connection_status(connection)),
            transport: entry.url.is_some().then_some(Remote::Remote),
            auth: entry.url.is_some().then_some(auth),
            auth_stored: login_key.is_some().then_some(stored.is_some()),
            auth_expires_at: stored.as_ref().and_then(|stored| stored.expires_at),
            needs_trust: (gate == Gate::NeedsTrust).then_some(true),
            pending: None,
            tools: counts[0],
            tokens: self
                .catalog
                .seen_costs()
                .map(|costs| costs.iter().map(|cost| cost.tokens).sum()),
            costs: None,
            resources: counts[1],
            templates: counts[2],
            prompts: counts[3],
            left_out_by: match &gate {
                Gate::Outside { profile, .. } => Some(ProfileName::from(profile.as_str())),
                _ => None,
            },
            issues: (!issues.is_empty()).then_some(issues),
            error: config_fault.or_else(|| {
                need.as_ref()
                    .or(state.failure())
                    .filter(|_| is_enabled)
                    .map(Failure::fault)
            }),
            read_only: self.is_read_only(),
            timeout_ms: Some(self.call_timeout().as_millis() as u64),
            prefix: Some(self.prefix()),
            category: entry.category.clone(),
            pid: ready.and_then(|(connection, _)| connection.pid()),
            started_at: ready.map(|(_, started_at)| started_at),
            seq,
            catalog: self.catalog.revision().map(Revision::from),
            retry,
        }
    }
}

impl Server {
    /// Whether its entry stands in a file that is not changed here.
    pub fn is_read_only(&self) -> bool {
        !matches!(self.layer, Layer::User | Layer::Project)
    }

    /// The record while a request waits: nothing of what would run, or runs under this name otherwise.
    fn pending_status(&self, seq: u64, effective: bool, expires_at: u64) -> McpServerStatus {
        McpServerStatus {
            name: self.name.clone(),
            label: self.name.to_string(),
            directory: self.directory.clone(),
            layer: self.layer,
            source: "request".to_owned(),
            state: Name::Pending,
            command: None,
            effective,
            connection: None,
            transport: None,
            auth: None,
            auth_stored: None,
            auth_expires_at: None,
            needs_trust: None,
            pending: Some(PendingStatus { expires_at }),
            tools: None,
            tokens: None,
            costs: None,
            resources: None,
            templates: None,
            prompts: None,
            left_out_by: None,
            issues: None,
            error: None,
            read_only: self.is_read_only(),
            timeout_ms: None,
            prefix: None,
            category: None,
            pid: None,
            started_at: None,
            seq,
            catalog: None,
            retry: None,
        }
    }
}

fn connection_status(connection: &Connection) -> ConnectionStatus {
    let info = connection.info();
    ConnectionStatus {
        transport: match info.transport {
            Transport::Stdio => TransportName::Stdio,
            Transport::StreamableHttp => TransportName::StreamableHttp,
            Transport::Sse => TransportName::Sse,
            Transport::Relay => TransportName::Host,
        },
        protocol_version: info.protocol_version.clone(),
        era: match info.era {
            Era::Legacy => EraName::Legacy,
            Era::Modern => EraName::Modern,
        },
    }
}

/// The command line, quoted, or the URL without query and credentials; of an entry without secrets.
fn shown_command(entry: &ServerEntry, auth: &Auth) -> String {
    if let Some(url) = &entry.url {
        let url = secret::bare_url(url);
        return match auth {
            Auth::None => url,
            Auth::NeedsAuth => format!("{url} [oauth: needs authorization]"),
            Auth::Pending => format!("{url} [oauth: waiting for the browser]"),
            Auth::Authorized => format!("{url} [oauth: authorized]"),
        };
    }
    if in_host::is_in_host(entry) {
        return "(in the host's own process)".to_owned();
    }
    let command = entry.command.clone().unwrap_or_default();
    let args = entry.args.as_deref().unwrap_or_default();
    let mut shown = std::iter::once(&command)
        .chain(args)
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ");
    if let Some((end, _)) = shown.char_indices().nth(limits::SHOWN_COMMAND_CHARS) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

/// A word as a POSIX shell would read it back.
fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte));
    if is_plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_is_quoted_and_masked() {
        let entry = serde_json::from_value(
            json!({"command": "npx", "args": ["-y", "a b", "--token", "s3cr3t", "it's", ""]}),
        )
        .unwrap();
        assert_eq!(
            shown_command(&secret::masked(&entry).0, &Auth::None),
            "npx -y 'a b' --token '********' 'it'\\''s' ''"
        );
        let entry = serde_json::from_value(json!({"url": "https://u:p@h/mcp?key=1"})).unwrap();
        assert_eq!(shown_command(&entry, &Auth::None), "https://h/mcp");
    }
}
