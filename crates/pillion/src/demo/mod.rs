//! `pillion demo`: a host in small plays against this very binary, with three servers that ship inside it.
//!
//! Nothing is downloaded, nothing is installed, nothing stays: no process, no file.

mod arguments;
mod browser;
mod calendar;
mod home;
mod host;
mod issuer;
mod login;
mod masked;
mod modern;
mod notes;
mod play;
mod player;
mod servers;
mod stage;
mod trace;
mod weather;

use crate::cli::Exit;
use crate::cli::failure::Failure;

pub use self::play::run;

/// See what a host sees: servers added, tools called, a question asked, a crash survived, a login made
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show every message between host and Pillion
    #[arg(long)]
    pub trace: bool,
    /// Print the steps as one JSON document; takes the defaults of questions
    #[arg(long, conflicts_with = "trace")]
    pub json: bool,
}

/// A server of the demo
#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    transport: Transport,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Transport {
    Stdio,
    Http,
    /// HTTP, for those who logged in.
    Login,
}

/// Is one of the demo's servers, until stdin ends.
pub async fn serve(args: &ServerArgs) -> Result<Exit, Failure> {
    let served = match args.transport {
        Transport::Stdio => {
            notes::serve();
            Ok(())
        }
        Transport::Http => weather::serve().await,
        Transport::Login => calendar::serve().await,
    };
    served.map_err(|error| Failure::new("the demo's HTTP server cannot listen").cause(error.to_string()))?;
    Ok(Exit::Done)
}
