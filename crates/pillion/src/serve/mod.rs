//! `pillion serve`: the conversation with the host that spawned this process.
//!
//! A request's way: `stdio` → `framing` and `pump` → `envelope` → `session` → `registry` and `check` → manager, and
//! its answer's: `call` → `frame` → `outbox` → `stdio`.

mod stdio;

mod framing;
mod pump;

mod envelope;
mod session;

mod lifecycle;
mod requests;

pub mod check;
mod explain;
mod tree;

mod call;
mod registry;

mod peers;
mod rest;

mod frame;
mod host;
mod in_host;
mod outbox;

mod ending;
mod limits;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
#[cfg(unix)]
use std::sync::Arc;

use manager::Env;

use crate::log;

use self::session::Session;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How much to say on stderr
    #[arg(long, value_enum, default_value = "warn", value_name = "LEVEL")]
    log_level: log::Level,
    /// How to say it
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    log_format: log::Format,
    /// Where Pillion keeps its files
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Also let other programs of this machine in, at this loopback address; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

/// The command line cannot be carried out as it is.
const USAGE: i32 = 2;

/// Serves one session; answers the exit code. `unattended`: the host is not asked for a person either.
pub async fn run(args: Args, unattended: bool) -> i32 {
    if let Some(address) = args.listen.filter(|address| !address.ip().is_loopback()) {
        let port = address.port();
        eprintln!(
            "error: `{address}` is no loopback address, and only programs of this machine are let in: write `--listen 127.0.0.1:{port}`"
        );
        return USAGE;
    }
    log::start(args.log_level, args.log_format);
    let code = match serve(args, unattended).await {
        Ok(end) => end.exit_code(),
        Err(fault) => {
            tracing::error!(%fault, "stdin or stdout cannot be used");
            1
        }
    };
    log::finish();
    code
}

async fn serve(args: Args, unattended: bool) -> std::io::Result<ending::End> {
    let is_typed = std::io::stdin().is_terminal();
    let (input, output) = stdio::claim()?;
    let mut env = Env::from_process();
    #[cfg(unix)]
    {
        env = env.with_watchdog(Arc::new(crate::watchdog::watchdog_fd));
    }
    if let Some(data_dir) = args.data_dir {
        env = env.with_data_dir(std::path::absolute(data_dir)?);
    }
    let session = Session::new(env, unattended, input, args.listen);
    ending::watch_signals(session.ends())?;
    if is_typed {
        // Not before a Ctrl-C ends it as it ends any session.
        eprintln!("`pillion serve` is for hosts, which write JSON-RPC to its stdin; try `pillion status`");
    }
    // A task in the queue like those of its requests: else it is polled before any of them, and a host that sends
    // without a pause gets `overloaded` for answers.
    tokio::spawn(session.run(output))
        .await
        .map_err(std::io::Error::other)
}
