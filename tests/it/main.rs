//! The boundary tests: the real binary, spawned as a host spawns it, against scripted MCP servers.
//!
//! `cargo test` runs everything, `cargo test <filter>` a part. Each test is `<feature>::<story>`; the
//! shared cases are `cases::<area>::<id>`. The harness is our own `main`, since this binary also
//! plays the scripted servers that Pillion starts.

#[path = "../support/mod.rs"]
mod support;

mod adding;
mod approval;
mod budget;
mod bundles;
mod calls;
mod cases;
mod catalog;
mod census;
mod cli;
mod client_code;
mod config;
mod consent_cli;
mod demo;
mod doctor;
mod entries;
mod environment;
mod eras;
mod exchange;
mod finding;
mod framing;
mod gallery;
mod gates;
mod handshake;
mod held;
mod hostile;
mod in_host;
mod install;
mod lifecycle;
mod logins;
mod mentions;
mod model;
mod moving;
mod network;
mod offers;
mod orphans;
mod overrides;
mod peers;
mod policy;
mod profiles;
mod prompt_expand;
mod questions;
mod references;
mod resource_tools;
mod reviews;
mod rug_pull;
mod schema;
mod scripted;
mod secrecy;
mod shutdown;
mod store;
mod store_files;
mod terminal;
mod testing;
mod transports;
mod trust;
mod unattended;
mod upward;
mod watching;

use libtest_mimic::{Arguments, Trial};

fn main() {
    support::scripted::stdio_play::play_if_asked();
    let mut arguments = Arguments::from_args();
    // Most of a story is waiting for processes.
    arguments.test_threads.get_or_insert(6);
    support::clock::watch();
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(scripted::stories());
    trials.extend(handshake::stories());
    trials.extend(framing::stories());
    trials.extend(shutdown::stories());
    trials.extend(secrecy::stories());
    trials.extend(orphans::stories());
    trials.extend(lifecycle::stories());
    trials.extend(calls::stories());
    trials.extend(questions::stories());
    trials.extend(catalog::stories());
    trials.extend(offers::stories());
    trials.extend(eras::stories());
    trials.extend(transports::stories());
    trials.extend(network::stories());
    trials.extend(references::stories());
    trials.extend(logins::stories());
    trials.extend(upward::stories());
    trials.extend(config::stories());
    trials.extend(entries::stories());
    trials.extend(profiles::stories());
    trials.extend(exchange::stories());
    trials.extend(moving::stories());
    trials.extend(trust::stories());
    trials.extend(reviews::stories());
    trials.extend(environment::stories());
    trials.extend(consent_cli::stories());
    trials.extend(adding::stories());
    trials.extend(unattended::stories());
    trials.extend(peers::stories());
    trials.extend(policy::stories());
    trials.extend(store::stories());
    trials.extend(watching::stories());
    trials.extend(store_files::stories());
    trials.extend(testing::stories());
    trials.extend(gallery::stories());
    trials.extend(bundles::stories());
    trials.extend(install::stories());
    trials.extend(finding::stories());
    trials.extend(hostile::stories());
    trials.extend(census::stories());
    trials.extend(in_host::stories());
    trials.extend(approval::stories());
    trials.extend(gates::stories());
    trials.extend(budget::stories());
    trials.extend(mentions::stories());
    trials.extend(model::stories());
    trials.extend(overrides::stories());
    trials.extend(prompt_expand::stories());
    trials.extend(resource_tools::stories());
    trials.extend(rug_pull::stories());
    trials.extend(held::stories());
    trials.extend(schema::stories());
    trials.extend(cli::stories());
    trials.extend(client_code::stories());
    trials.extend(demo::stories());
    trials.extend(doctor::stories());
    trials.extend(terminal::stories());
    trials.extend(cases::trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// Names functions of a module as trials: `stories!("handshake": a, b)`.
#[macro_export]
macro_rules! stories {
    ($feature:literal: $($story:ident),+ $(,)?) => {
        vec![$(libtest_mimic::Trial::test(
            concat!($feature, "::", stringify!($story)),
            || {
                $crate::support::clock::watched(concat!($feature, "::", stringify!($story)), $story);
                Ok(())
            },
        )),+]
    };
}
