//! The `pillion` binary: a session with a host, or one command of the command line.

mod cli;
mod demo;
mod log;
mod memory;
mod serve;
#[cfg(unix)]
mod watchdog;

use clap::Parser;

/// Disk, names of hosts and big parameters go to threads of their own; more than this many only wait for each other.
const BLOCKING_THREADS: usize = 16;

fn main() {
    #[cfg(unix)]
    if watchdog::is_me() {
        return watchdog::run();
    }
    memory::settle();
    let cli = cli::Cli::try_parse().unwrap_or_else(|error| cli::unknown::end(&error));
    // One thread for everything else: hops between threads cost more than all of the work on a call.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .expect("a process that cannot have a runtime cannot do anything");
    runtime.block_on(cli::run(cli))
}
