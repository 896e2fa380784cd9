//! Each entry: whether it counts, and whether everything is there that its start needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use protocol::{Error, ErrorKind, ServerEntry};

use super::code::Code;
use super::{Found, Ground, shown};
use crate::config::expand;
use crate::config::members::Unknown;
use crate::consent::Gate;
use crate::limits;
use crate::progress::Work;
use crate::server::Server;
use crate::server::launch;
use crate::server::state::State;
use crate::server::trial::{self, Trial};

pub(super) async fn look(ground: &Arc<Ground>) -> Vec<Found> {
    let mut found = Vec::new();
    let concerned = ground.visible.iter().zip(&ground.unknown);
    let concerned: Vec<_> = concerned.filter(|(server, _)| ground.concerns(server)).collect();
    for (server, unknown) in &concerned {
        found.extend(standing(ground, server, unknown));
    }
    found.extend(twice(ground));
    let counting = concerned
        .iter()
        .map(|(server, _)| *server)
        .filter(|server| ground.effective.iter().any(|other| Arc::ptr_eq(other, server)))
        .filter(|server| server.is_enabled());
    let looks = counting.map(|server| startable(ground, server));
    found.extend(join_all(looks).await.into_iter().flatten());
    found
}

/// How an entry stands, whatever it starts.
fn standing(ground: &Ground, server: &Arc<Server>, unknown: &[Unknown]) -> Vec<Found> {
    let mut found = Vec::new();
    let name = &server.name;
    match server.gate() {
        Gate::Open => {}
        Gate::NeedsTrust => found.push(
            Found::new(
                Code::NeedsTrust,
                format!("`{name}` comes with the project, which is not trusted"),
            )
            .of(server)
            .hint("`mcp.trust` shows what it would run"),
        ),
        Gate::Pending { .. } => found.push(
            Found::new(
                Code::RequestPending,
                format!("a request for `{name}` waits for a decision"),
            )
            .of(server)
            .hint("`mcp.pending` shows what is asked"),
        ),
        Gate::Forbidden { reason } => found.push(
            Found::new(
                Code::Forbidden,
                format!("`{name}` is forbidden by the administrator: {reason}"),
            )
            .of(server),
        ),
        Gate::Outside { reason, .. } => found.push(
            Found::new(Code::NotInProfile, format!("`{name}` is not used: {reason}"))
                .of(server)
                .hint("choose another profile with `mcp.profile`, or name the server in the profile in `mcp.json`"),
        ),
        Gate::Refused => {}
    }
    if !unknown.is_empty() {
        let message = format!("the entry of `{name}` has members that nobody knows; they do nothing");
        let slips: Vec<String> = unknown
            .iter()
            .filter(|unknown| unknown.meant.is_some())
            .map(Unknown::said)
            .collect();
        let hint = match slips.is_empty() {
            true => "check their spelling; docs/configuration.md lists the members".to_owned(),
            false => slips.join("; "),
        };
        found.push(
            Found::new(Code::MemberUnknown, message)
                .of(server)
                .shown_by(unknown.iter().map(Unknown::name))
                .hint(hint),
        );
    }
    let counting = ground.effective.iter().find(|other| other.name == *name);
    if let Some(above) = counting.filter(|above| !Arc::ptr_eq(above, server) && !server.needs_trust()) {
        let place = |server: &Server| match &server.file {
            Some(file) => format!("{} ({})", shown(file), server.layer),
            None => server.layer.to_string(),
        };
        found.push(
            Found::new(
                Code::EntryShadowed,
                format!("two entries are called `{name}`, and only one counts"),
            )
            .of(server)
            .shown_by([
                format!("counts: {}", place(above)),
                format!("hidden: {}", place(server)),
            ])
            .hint("rename or remove one if that is not meant"),
        );
    }
    found
}

/// Enabled entries that launch the same thing. Those with a fault launch nothing.
fn twice(ground: &Ground) -> Vec<Found> {
    let mut by_launch: BTreeMap<&str, Vec<&Arc<Server>>> = BTreeMap::new();
    for server in ground.effective.iter() {
        if !server.is_enabled() || !server.faults().is_empty() {
            continue;
        }
        by_launch.entry(&server.digest).or_default().push(server);
    }
    let doubles = by_launch
        .into_values()
        .filter(|servers| servers.len() > 1 && servers.iter().any(|server| ground.concerns(server)));
    let told = doubles.map(|servers| {
        let names: Vec<String> = servers
            .iter()
            .map(|server| format!("`{}`", server.name))
            .collect();
        Found::new(
            Code::EntryTwice,
            format!("{} start the same", names.join(" and ")),
        )
        .of(servers[1])
        .hint("remove or disable one: each runs, and each brings the same tools")
    });
    told.collect()
}

/// Whether everything is there that the start needs; nothing is started unless that was asked for.
async fn startable(ground: &Ground, server: &Arc<Server>) -> Vec<Found> {
    let name = &server.name;
    if let Some(fault) = server.faults().first() {
        return vec![
            Found::new(
                Code::EntryBroken,
                format!("the entry of `{name}` has a fault: {fault}"),
            )
            .of(server)
            .shown_by(server.file.as_deref().map(shown))
            .hint("correct the entry in its file"),
        ];
    }
    let entry = server.entry();
    let core = &ground.core;
    // A program that prints headers is part of a start.
    let still = ServerEntry {
        headers_helper: None,
        ..(*entry).clone()
    };
    let prepared = launch::prepare(core, &still, name, &server.origin()).await;
    if let Err(error) = prepared
        && let Some(found) = unstartable(server, error)
    {
        return vec![found];
    }
    if let Some(found) = failed(server) {
        return vec![found];
    }
    if !ground.start {
        let state = server.state_name().as_str().replace('_', " ");
        return vec![Found::new(Code::Server, format!("{name}: {state}")).of(server)];
    }
    let trial = Trial {
        name: name.clone(),
        entry: (*entry).clone(),
        is_saved: true,
        origin: server.origin(),
    };
    let silent = Work::begin(&core.calls, &core.sink, None, "", false);
    let Ok(silent) = silent else { return Vec::new() };
    let result = trial::run(core, &trial, limits::TRIAL, &silent).await;
    let Some(fault) = result.fault else {
        return vec![
            Found::new(
                Code::Server,
                format!("{name}: {}", result.message.trim_end_matches('.')),
            )
            .of(server),
        ];
    };
    let code = match fault.kind {
        ErrorKind::NeedsAuth => Code::LoginNeeded,
        _ => Code::ServerFailed,
    };
    let message = match fault.kind {
        ErrorKind::TimedOut => format!("did not list its tools within {} s", limits::TRIAL.as_secs()),
        _ => fault.message,
    };
    let mut found = Found::new(code, format!("`{name}`: {message}")).of(server);
    found = found.shown_by(last_lines(fault.stderr_tail.as_deref()));
    found.finding.hint = fault.hint;
    vec![found]
}

/// Why it could not be started. What comes from the credential store, a program or a person is found out by a start only.
fn unstartable(server: &Server, mut error: Error) -> Option<Found> {
    if let (ErrorKind::UnsetVariable, Some(names)) = (&error.kind, &mut error.data.names) {
        names.retain(|name| expand::source(name).is_none());
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            return None;
        }
        error.message = format!("the variable {} is not set", names.join(", "));
    }
    let code = match error.kind {
        ErrorKind::CommandNotFound => Code::CommandMissing,
        ErrorKind::UnsetVariable => Code::VariableUnset,
        _ => Code::LaunchImpossible,
    };
    let mut found = Found::new(code, format!("`{}`: {}", server.name, error.message)).of(server);
    found = found.shown_by(server.file.as_deref().map(shown));
    found.finding.hint = error.data.hint;
    Some(found)
}

/// What went wrong with it in this process.
fn failed(server: &Server) -> Option<Found> {
    let (code, failure) = match server.state() {
        State::Failed { failure, .. } | State::Backoff { failure, .. } => (Code::ServerFailed, failure),
        State::NeedsAuth { failure, .. } => (Code::LoginNeeded, failure),
        State::Stopped | State::Connecting | State::Ready { .. } => return None,
    };
    let error = failure.error;
    let mut found = Found::new(code, format!("`{}`: {}", server.name, error.message)).of(server);
    found = found.shown_by(last_lines(error.data.stderr_tail.as_deref()));
    found.finding.hint = error.data.hint;
    Some(found)
}

fn last_lines(tail: Option<&str>) -> Vec<String> {
    let lines: Vec<&str> = tail
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.len().saturating_sub(limits::EVIDENCE_LINES);
    lines[first..].iter().map(|line| (*line).to_owned()).collect()
}
