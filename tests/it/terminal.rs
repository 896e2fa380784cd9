//! Questions in a real terminal: a pseudo terminal stands in for the person's.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::json;

use crate::stories;
use crate::support::{TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("terminal":
        answered, corrected, declined, interrupted, named_while_waited_for, no_colour, the_demo, the_demo_interrupted, serving_nobody,
        servers_are_told_the_same,
    )
}

/// A command in a terminal of 100 columns.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    pub fn run(mut command: Command) -> Terminal {
        let (master, slave) = open();
        for stream in 0..3 {
            let end = slave.try_clone().expect("a descriptor");
            match stream {
                0 => command.stdin(end),
                1 => command.stdout(end),
                _ => command.stderr(end),
            };
        }
        command.env("TERM", "xterm-256color");
        // SAFETY: both calls are async-signal-safe and touch no memory of ours.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().expect("the binary starts");
        drop((command, slave));
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut reader, seen) = (master.try_clone().expect("a descriptor"), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Ends with an error once the last program has left the terminal.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]);
                seen.lock().expect("no panic while held").push_str(&text);
            }
        });
        Terminal {
            child,
            keyboard: master,
            screen,
        }
    }

    pub fn screen(&self) -> String {
        self.screen.lock().expect("no panic while held").clone()
    }

    /// Waits until the text was written, then presses keys.
    #[track_caller]
    pub fn when(&mut self, text: &str, keys: &str) {
        clock::eventually(text, || self.screen().contains(text).then_some(()));
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the terminal is open");
    }

    /// The exit code and all that was written.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        let ended = clock::poll(Duration::from_secs(20), || {
            self.child.try_wait().expect("our own child")
        });
        let status = ended.unwrap_or_else(|| panic!("it goes on: {}", self.screen()));
        // What the program wrote last may still be on its way.
        clock::poll(Duration::from_millis(500), || {
            (Arc::strong_count(&self.screen) == 1).then_some(())
        });
        (status.code(), self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open() -> (File, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    let size = libc::winsize {
        ws_row: 40,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: `openpty` fills both descriptors when it answers 0; name and settings may be null.
    unsafe {
        let opened = libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        );
        assert_eq!(opened, 0, "a pseudo terminal");
        for descriptor in [master, slave] {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    }
}

fn share(env: &TestEnv) -> Terminal {
    env.write_config(&json!({
        "notes": { "command": env!("CARGO_BIN_EXE_pillion"), "args": ["demo-server", "stdio"] },
    }));
    let mut command = env.command();
    // Words stand together without colours between them.
    command
        .args(["call", "notes", "share_note", "note=ideas"])
        .env("NO_COLOR", "1");
    Terminal::run(command)
}

const ENTER: &str = "\r";
const DOWN: &str = "\x1b[B";
const ESCAPE: &str = "\x1b";
const CONTROL_C: &str = "\x03";
const BACKSPACE: &str = "\x7f";

fn answered() {
    let env = TestEnv::new();
    let mut terminal = share(&env);
    terminal.when("notes asks for input", "");
    terminal.when("Title:", ENTER);
    terminal.when("Audience:", &format!("{DOWN}{ENTER}"));
    terminal.when("Mark as urgent (optional):", ENTER);
    terminal.when("What now?", ENTER);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("Shared \"My ideas\" with company"), "{screen}");
}

/// What does not fit is asked again, and only that.
fn corrected() {
    let env = TestEnv::new();
    let mut terminal = share(&env);
    let too_long = "x".repeat(61);
    terminal.when("Title:", &format!("{too_long}{ENTER}"));
    terminal.when("Audience:", ENTER);
    terminal.when("Mark as urgent (optional):", ENTER);
    terminal.when("What now?", ENTER);
    terminal.when("! Title: ", "");
    clock::eventually("the second prompt", || {
        let screen = terminal.screen();
        let (_, after) = screen.split_once("! Title: ")?;
        after.contains("Title:").then_some(())
    });
    terminal.when("! Title: ", &format!("{}Shorter{ENTER}", BACKSPACE.repeat(80)));
    clock::eventually("the second look", || {
        let screen = terminal.screen();
        let (_, after) = screen.split_once("! Title: ")?;
        after.contains("What now?").then_some(())
    });
    terminal.when("Shorter", ENTER);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("Shared \"Shorter\" with team"), "{screen}");
}

fn declined() {
    let env = TestEnv::new();
    let mut terminal = share(&env);
    terminal.when("Title:", ESCAPE);
    terminal.when("What now?", &format!("{DOWN}{ENTER}"));
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("Kept `ideas` private"), "{screen}");
}

fn interrupted() {
    let env = TestEnv::new();
    let mut terminal = share(&env);
    terminal.when("Title:", CONTROL_C);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!screen.contains("Kept"), "{screen}");
    env.assert_nothing_left(Duration::from_secs(1));
}

/// A list names whom it waits for, and ends at once when the person has waited enough.
fn named_while_waited_for() {
    let env = TestEnv::new();
    let quick = env.plain_server("quick", json!({}));
    let hanging = env.scripted_server("hanging", json!({}));
    env.write_config(&json!({ "hanging": hanging.entry(), "quick": quick.entry() }));
    for (list, said) in [
        (vec!["tools"], "1 of 2 servers, waiting for hanging"),
        (vec!["resources"], "1 of 2 servers, waiting for hanging"),
        (vec!["prompts"], "1 of 2 servers, waiting for hanging"),
        (vec!["tools", "--model"], "Listing tools: waiting for hanging"),
    ] {
        let mut command = env.command();
        command.args(list);
        let mut terminal = Terminal::run(command);
        terminal.when(said, CONTROL_C);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(130), "{screen}");
        env.assert_nothing_left(Duration::from_secs(1));
    }
}

fn no_colour() {
    let mut env = TestEnv::new();
    env.set("NO_COLOR", "1");
    let mut command = env.command();
    command.arg("status");
    let (code, screen) = Terminal::run(command).end();
    assert_eq!((code, screen.contains('\u{1b}')), (Some(0), false), "{screen}");
}

fn the_demo() {
    let mut env = TestEnv::new();
    let tmp = env.tmp().to_string_lossy().into_owned();
    env.set("TMPDIR", &tmp);
    let mut command = env.command();
    command.arg("demo");
    let mut terminal = Terminal::run(command);
    terminal.when("Title:", ENTER);
    terminal.when("Audience:", ENTER);
    terminal.when("Mark as urgent (optional):", ENTER);
    terminal.when("What now?", ENTER);
    terminal.when("Day:", &format!("{DOWN}{ENTER}"));
    clock::eventually("the second look", || {
        let screen = terminal.screen();
        let (_, after) = screen.split_once("Day:")?;
        after.contains("What now?").then_some(())
    });
    terminal.when("Day:", ENTER);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("Lisbon on Sunday"), "{screen}");
    assert!(screen.contains("Everything came out as expected"), "{screen}");
    env.assert_nothing_left(Duration::from_secs(1));
    assert_eq!(
        std::fs::read_dir(env.tmp()).expect("a folder").count(),
        0,
        "files are left"
    );
}

/// What a server offers may depend on what the client can do: a lock made in a terminal must hold in a script.
fn servers_are_told_the_same() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let mut command = env.command();
    command.args(["tools", "srv"]);
    assert_eq!(Terminal::run(command).end().0, Some(0));
    let piped = env
        .command()
        .args(["tools", "srv"])
        .output()
        .expect("the binary starts");
    assert!(piped.status.success(), "{piped:?}");
    let told: Vec<_> = server
        .log
        .requests("initialize")
        .iter()
        .map(|request| request["params"]["capabilities"].clone())
        .collect();
    let [in_terminal, in_script] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(in_terminal, in_script);
    assert!(in_script["elicitation"]["url"].is_object(), "{in_script}");
}

/// What was asked is gone from the screen before the end is told.
fn the_demo_interrupted() {
    let mut env = TestEnv::new();
    let tmp = env.tmp().to_string_lossy().into_owned();
    env.set("TMPDIR", &tmp);
    let mut command = env.command();
    command.arg("demo").env("NO_COLOR", "1");
    let mut terminal = Terminal::run(command);
    terminal.when("Title:", CONTROL_C);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("\r\u{1b}[Jerror: interrupted"), "{screen:?}");
    env.assert_nothing_left(Duration::from_secs(1));
}

/// A person who starts what is for hosts is told so.
fn serving_nobody() {
    let env = TestEnv::new();
    let mut command = env.command();
    command.arg("serve");
    let mut terminal = Terminal::run(command);
    terminal.when("try `pillion status`", CONTROL_C);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(1), "{screen}");
}
