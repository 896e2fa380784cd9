//! The command line: the same manager that hosts use, driven by a person or a script.
//!
//! One file per command. Data goes to stdout, everything else to stderr; what a command ends with stands in `exit`.

mod exit;
pub mod failure;
mod fields;
mod hint;
pub mod output;
pub mod terminal;
pub mod unknown;

mod progress;
mod screen;
mod session;

pub mod ask;
mod asking;
mod form;
mod typing;

mod arguments;
mod content;
mod listing;
mod parameters;

mod add;
mod approve;
mod auth;
mod auth_list;
mod bundle;
mod call;
mod client;
mod completions;
mod config;
mod debug;
mod doctor;
mod draft;
mod edit;
mod enable;
mod expand;
mod export;
mod from;
mod gallery;
mod grants;
mod import;
mod lock;
mod logout;
mod logs;
mod paste;
mod pin;
mod prefetch;
mod prompt;
mod prompts;
mod read;
mod remove;
mod resources;
mod restart;
mod review;
mod schema;
mod search;
mod search_tools;
mod status;
mod sync;
mod test;
mod tools;
mod trust;
mod wizard;

use clap::{Parser, Subcommand};

use self::failure::Failure;
use self::session::Session;
use self::terminal::Terminal;
use crate::demo;

pub use self::exit::Exit;

/// The MCP side of an editor or agent, as a process of its own
///
/// An editor extension or agent host starts `pillion serve` and speaks JSON-RPC with it over stdin and stdout.
/// The other commands use the same servers from a terminal.
#[derive(Debug, Parser)]
#[command(name = "pillion", version, after_help = exit::HELP, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Ask nobody, in a terminal neither; PILLION_NON_INTERACTIVE=1 means the same for every command
    #[arg(long, global = true)]
    pub non_interactive: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Speak the protocol over stdin and stdout; for the host that starts this process
    Serve(crate::serve::Args),
    Status(status::Args),
    Tools(tools::Args),
    SearchTools(search_tools::Args),
    Pin(pin::Args),
    Call(call::Args),
    Client(client::Args),
    Resources(resources::Args),
    Read(read::Args),
    Prompts(prompts::Args),
    Prompt(prompt::Args),
    Expand(expand::Args),
    Logs(logs::Args),
    Auth(auth::Args),
    Logout(logout::Args),
    Debug(debug::Args),
    Doctor(doctor::Args),
    Add(add::Args),
    Edit(edit::Args),
    Remove(remove::Args),
    /// Switch a server on
    Enable(enable::Args),
    /// Switch a server off; its entry stays
    Disable(enable::Args),
    Restart(restart::Args),
    Gallery(gallery::Args),
    Search(search::Args),
    Test(test::Args),
    Prefetch(prefetch::Args),
    Lock(lock::Args),
    Config(config::Args),
    Import(import::Args),
    Export(export::Args),
    Sync(sync::Args),
    Trust(trust::Args),
    Approve(approve::Args),
    Grants(grants::Args),
    Demo(demo::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    DemoServer(demo::ServerArgs),
}

/// Carries a command out and ends the process.
///
/// Not by returning: a prompt that was left behind still waits for a key on its thread, and nobody waits for it.
pub async fn run(
    Cli {
        command,
        non_interactive,
    }: Cli,
) -> ! {
    let terminal = Terminal::detect(non_interactive);
    if terminal.unattended {
        terminal::leave_keyboard();
    }
    let finish = |outcome, json| finish(outcome, terminal, json);
    macro_rules! with_session {
        ($args:ident, $run:path) => {{
            let run = async |session: &Session| $run(&$args, session).await;
            let outcome = Session::with(&$args.common, terminal, run).await;
            finish(outcome, $args.common.json)
        }};
    }
    let exit = match command {
        Command::Serve(args) => crate::serve::run(args, terminal.unattended).await,
        Command::Status(args) => with_session!(args, status::run),
        Command::Tools(args) => with_session!(args, tools::run),
        Command::SearchTools(args) => with_session!(args, search_tools::run),
        Command::Pin(args) => with_session!(args, pin::run),
        Command::Call(args) => with_session!(args, call::run),
        Command::Client(args) => with_session!(args, client::run),
        Command::Resources(args) => with_session!(args, resources::run),
        Command::Read(args) => with_session!(args, read::run),
        Command::Prompts(args) => with_session!(args, prompts::run),
        Command::Prompt(args) => with_session!(args, prompt::run),
        Command::Expand(args) => with_session!(args, expand::run),
        Command::Logs(args) => with_session!(args, logs::run),
        Command::Auth(auth::Args {
            what: Some(auth::What::List(args)),
            ..
        }) => with_session!(args, auth_list::run),
        Command::Auth(args) => with_session!(args, auth::run),
        Command::Logout(args) => with_session!(args, logout::run),
        Command::Debug(args) => with_session!(args, debug::run),
        Command::Doctor(args) => with_session!(args, doctor::run),
        Command::Add(args) => with_session!(args, add::run),
        Command::Edit(args) => with_session!(args, edit::run),
        Command::Remove(args) => with_session!(args, remove::run),
        Command::Enable(args) => with_session!(args, enable::on),
        Command::Disable(args) => with_session!(args, enable::off),
        Command::Restart(args) => with_session!(args, restart::run),
        Command::Gallery(args) => with_session!(args, gallery::run),
        Command::Search(args) => with_session!(args, search::run),
        Command::Test(args) => with_session!(args, test::run),
        Command::Prefetch(args) => with_session!(args, prefetch::run),
        Command::Lock(args) => with_session!(args, lock::run),
        Command::Import(args) => with_session!(args, import::run),
        Command::Export(args) => with_session!(args, export::run),
        Command::Sync(args) => with_session!(args, sync::run),
        Command::Config(args) => with_session!(args, config::run),
        Command::Trust(args) => with_session!(args, trust::run),
        Command::Approve(args) => with_session!(args, approve::run),
        Command::Grants(args) => with_session!(args, grants::run),
        Command::Demo(args) => finish(demo::run(&args, terminal).await, args.json),
        Command::DemoServer(args) => finish(demo::serve(&args).await, false),
        Command::Schema(args) => finish(schema::run(&args), args.json),
        Command::Completions(args) => finish(completions::run(&args), false),
    };
    std::process::exit(exit)
}

/// Says what went wrong, if something did, and gives the exit code.
fn finish(outcome: Result<Exit, Failure>, terminal: Terminal, json: bool) -> i32 {
    let exit = outcome.unwrap_or_else(|failure| {
        failure.report(terminal.on_stderr(), json);
        failure.exit
    });
    exit.code()
}
