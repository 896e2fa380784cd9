//! The part that the test binary plays when Pillion starts it as a server: `child` (the scripted
//! server), `wrapper` (starts the child and waits, as `npx` does).
//!
//! Threads and blocking reads, no runtime: it has to be up in a few milliseconds.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::plain::{Incoming, Plain, Step};
use super::stdio::PLAY;

static LOG_FD: AtomicI32 = AtomicI32::new(-1);
static STAYS_ON_SIGTERM: AtomicBool = AtomicBool::new(false);

/// Plays a part if the arguments say so. Never returns then.
pub fn play_if_asked() {
    let args: Vec<String> = std::env::args().collect();
    let [_, play, role, script, rest @ ..] = args.as_slice() else {
        return;
    };
    if play != PLAY {
        return;
    }
    let code = match role.as_str() {
        "wrapper" => wrap(script, rest),
        _ => Child::start(script, rest).serve(),
    };
    std::process::exit(code);
}

fn wrap(script: &str, args: &[String]) -> i32 {
    let config = read_script(script);
    log_line(&mut open_log(&config), &start_entry("wrapper", args));
    let binary = std::env::current_exe().expect("the path of this binary");
    let status = Command::new(binary)
        .arg(PLAY)
        .arg("child")
        .arg(script)
        .args(args)
        .status();
    status.ok().and_then(|status| status.code()).unwrap_or(1)
}

fn read_script(path: &str) -> Value {
    let text = std::fs::read_to_string(path).expect("the script of a scripted server");
    serde_json::from_str(&text).expect("the script is JSON")
}

fn open_log(config: &Value) -> File {
    let path = config["log"].as_str().expect("a log path");
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("the log can be written")
}

fn start_entry(role: &str, args: &[String]) -> Value {
    let env: Map<String, Value> = std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                json!(value.to_string_lossy()),
            )
        })
        .collect();
    let cwd = std::env::current_dir().unwrap_or_default();
    json!({ "event": "start", "role": role, "pid": std::process::id(), "args": args, "cwd": cwd, "env": env })
}

/// One `write` per line: appends of several processes never mix.
fn log_line(log: &mut File, entry: &Value) {
    let _ = log.write_all(format!("{entry}\n").as_bytes());
}

/// Only what a signal handler may do: `write` and `_exit`.
extern "C" fn on_sigterm(_signal: libc::c_int) {
    let line = b"{\"event\":\"end\",\"name\":\"SIGTERM\"}\n";
    let bye = b"{\"event\":\"exit\",\"code\":143}\n";
    let log = LOG_FD.load(Ordering::Relaxed);
    // SAFETY: both calls are async-signal-safe; the descriptor stays open for the whole process.
    unsafe {
        libc::write(log, line.as_ptr().cast(), line.len());
        if !STAYS_ON_SIGTERM.load(Ordering::Relaxed) {
            libc::write(log, bye.as_ptr().cast(), bye.len());
            libc::_exit(143);
        }
    }
}

type Replies = Arc<(Mutex<HashMap<String, bool>>, Condvar)>;

#[derive(Clone)]
struct Child {
    config: Arc<Value>,
    log: Arc<Mutex<File>>,
    plain: Arc<Mutex<Plain>>,
    /// How often each `on` item was used.
    uses: Arc<Mutex<HashMap<String, usize>>>,
    replies: Replies,
    output: Arc<Mutex<io::Stdout>>,
}

impl Child {
    fn start(script: &str, args: &[String]) -> Child {
        let config = read_script(script);
        let mut log = open_log(&config);
        LOG_FD.store(log.as_raw_fd(), Ordering::Relaxed);
        // SAFETY: the handler does only async-signal-safe things.
        unsafe { libc::signal(libc::SIGTERM, on_sigterm as *const () as libc::sighandler_t) };
        log_line(&mut log, &start_entry("child", args));
        let mcp = config["mcp"].as_object().cloned().unwrap_or_default();
        Child {
            config: Arc::new(config),
            log: Arc::new(Mutex::new(log)),
            plain: Arc::new(Mutex::new(Plain::new(mcp))),
            uses: Arc::default(),
            replies: Arc::default(),
            output: Arc::new(Mutex::new(io::stdout())),
        }
    }

    fn serve(self) -> i32 {
        for action in self.config["start"].as_array().into_iter().flatten() {
            self.act(action, None);
        }
        let controlled = self.clone();
        // Counted before anything is read, so that no order given to this process can be missed.
        let n_old = self.orders().lines().count();
        thread::spawn(move || controlled.obey(n_old));
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(n_bytes) if n_bytes > 0 => self.receive(String::from_utf8_lossy(&line).trim_end()),
                _ => break,
            }
        }
        self.note(&json!({ "event": "end", "name": "eof" }));
        if self.ignores("eof") {
            loop {
                thread::park();
            }
        }
        self.exit(0)
    }

    fn ignores(&self, what: &str) -> bool {
        let start = self.config["start"].as_array();
        start.into_iter().flatten().any(|item| {
            item["ignore"]
                .as_array()
                .is_some_and(|list| list.iter().any(|entry| entry == what))
        })
    }

    fn receive(&self, line: &str) {
        self.note(&json!({ "event": "received", "line": line }));
        let Some(message) = Incoming::parse(line) else {
            return;
        };
        if message.is_response() {
            let id = message.id.unwrap_or_default().to_string();
            self.replies
                .0
                .lock()
                .expect("no panic while held")
                .insert(id, true);
            self.replies.1.notify_all();
            return;
        }
        if let Some(actions) = self.scripted(&message) {
            self.run(actions.into_iter().map(Act::Action).collect(), message);
        } else if self.config["rest"] == "plain" {
            let steps = self
                .plain
                .lock()
                .expect("no panic while held")
                .steps(&message, &Map::new());
            self.run(steps.into_iter().map(Act::Step).collect(), message);
        }
    }

    /// The actions of the `on` item for this method; several items serve successive requests.
    fn scripted(&self, message: &Incoming) -> Option<Vec<Value>> {
        let method = message.method.as_deref()?;
        let items = self.config["on"].as_array()?;
        let items: Vec<&Value> = items.iter().filter(|item| item["on"] == method).collect();
        let last = items.len().checked_sub(1)?;
        let mut uses = self.uses.lock().expect("no panic while held");
        let count = uses.entry(method.to_owned()).or_insert(0);
        let item = items[(*count).min(last)];
        *count += 1;
        item["do"].as_array().cloned()
    }

    /// What has to wait gets a thread, the rest stays in the order of arrival.
    fn run(&self, acts: Vec<Act>, message: Incoming) {
        let child = self.clone();
        let play = move || {
            for act in acts {
                match act {
                    Act::Action(action) => child.act(&action, Some(&message)),
                    Act::Step(step) => child.step(step),
                }
            }
        };
        thread::spawn(play);
    }

    fn act(&self, action: &Value, request: Option<&Incoming>) {
        if action == "answer" {
            return self.plain_answer(request, &Map::new(), true);
        }
        let Some(members) = action.as_object() else { return };
        let integer = |key: &str| action[key].as_u64().unwrap_or_default();
        if let Some(line) = action["out"].as_str() {
            self.write(line.as_bytes(), true);
        } else if let Some(hex) = action["out_hex"].as_str() {
            self.write(&unhex(hex), false);
        } else if members.contains_key("out_bytes") {
            self.flood(integer("out_bytes"));
        } else if let Some(line) = action["err"].as_str() {
            eprintln!("{line}");
        } else if members.contains_key("err_bytes") {
            write_noise(
                integer("err_bytes"),
                integer("line"),
                action["fill"].as_str().unwrap_or("e"),
            );
        } else if let Some(code) = action["exit"].as_i64() {
            self.exit(i32::try_from(code).unwrap_or(1));
        } else if members.contains_key("exit_after_ms") {
            let (child, delay) = (self.clone(), integer("exit_after_ms"));
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(delay));
                child.exit(1)
            });
        } else if members.contains_key("wait_ms") {
            thread::sleep(Duration::from_millis(integer("wait_ms")));
        } else if let Some(ignored) = action["ignore"].as_array() {
            STAYS_ON_SIGTERM.store(ignored.iter().any(|name| name == "SIGTERM"), Ordering::Relaxed);
        } else if let Some(spawn) = members.get("spawn") {
            spawn_other(spawn);
        } else if let Some(result) = members.get("answer") {
            let mut overlay = Map::new();
            overlay.insert("result".to_owned(), result.clone());
            self.plain_answer(request, &overlay, true);
        } else if members.contains_key("answer_no_newline") {
            self.plain_answer(request, &Map::new(), false);
        }
    }

    /// Only the answer itself: an `on` item replaces what else the plain server would do.
    fn plain_answer(&self, request: Option<&Incoming>, overlay: &Map<String, Value>, newline: bool) {
        let Some(request) = request else { return };
        let steps = self
            .plain
            .lock()
            .expect("no panic while held")
            .steps(request, overlay);
        for step in steps {
            match step {
                Step::Answer(text) | Step::Unknown { answer: text, .. } => {
                    self.write(text.as_bytes(), newline)
                }
                other => self.step(other),
            }
        }
    }

    fn step(&self, step: Step) {
        match step {
            Step::Send(text) | Step::Answer(text) | Step::Unknown { answer: text, .. } => {
                self.write(text.as_bytes(), true);
            }
            Step::Pause(pause) => thread::sleep(Duration::from_millis(pause)),
            Step::StderrBytes(n_bytes) => write_noise(n_bytes as u64, 80, "e"),
            Step::Ask(requests) => self.ask(&requests),
            Step::Actions(actions) => actions.iter().for_each(|action| self.act(action, None)),
            Step::Exit(code) => {
                self.exit(code);
            }
        }
    }

    fn ask(&self, requests: &[Value]) {
        for request in requests {
            self.write(request.to_string().as_bytes(), true);
        }
        let mut replies = self.replies.0.lock().expect("no panic while held");
        while !requests
            .iter()
            .all(|request| replies.contains_key(&request["id"].to_string()))
        {
            replies = self.replies.1.wait(replies).expect("no panic while held");
        }
    }

    /// The control file, as the test writes it.
    fn orders(&self) -> String {
        let path = self.config["control"].as_str().unwrap_or_default();
        std::fs::read_to_string(path).unwrap_or_default()
    }

    fn obey(&self, n_old: usize) {
        let mut n_done = n_old;
        loop {
            let text = self.orders();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            for line in whole.lines().skip(n_done) {
                n_done += 1;
                let actions: Value = serde_json::from_str(line).unwrap_or_default();
                actions
                    .as_array()
                    .into_iter()
                    .flatten()
                    .for_each(|action| self.act(action, None));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn write(&self, bytes: &[u8], newline: bool) {
        let mut whole = bytes.to_vec();
        if newline {
            whole.extend_from_slice(self.config["line_end"].as_str().unwrap_or("\n").as_bytes());
        }
        let mut output = self.output.lock().expect("no panic while held").lock();
        let _ = output.write_all(&whole).and_then(|()| output.flush());
    }

    fn flood(&self, n_bytes: u64) {
        let mut output = self.output.lock().expect("no panic while held").lock();
        let block = [b'x'; 65536];
        let mut left = n_bytes;
        while left > 0 {
            let now = left.min(block.len() as u64);
            let bytes = &block[..usize::try_from(now).unwrap_or(block.len())];
            if output.write_all(bytes).is_err() {
                return;
            }
            left -= now;
        }
        let _ = output.flush();
    }

    fn note(&self, entry: &Value) {
        log_line(&mut self.log.lock().expect("no panic while held"), entry);
    }

    fn exit(&self, code: i32) -> i32 {
        self.note(&json!({ "event": "exit", "code": code }));
        std::process::exit(code)
    }
}

enum Act {
    Action(Value),
    Step(Step),
}

/// `line` 0: no newline at all.
fn write_noise(n_bytes: u64, line: u64, fill: &str) {
    let n_bytes = usize::try_from(n_bytes).unwrap_or_default();
    let mut noise: Vec<u8> = fill.bytes().cycle().take(n_bytes).collect();
    if let Some(width) = usize::try_from(line).ok().filter(|width| *width > 0) {
        noise
            .iter_mut()
            .skip(width - 1)
            .step_by(width)
            .for_each(|byte| *byte = b'\n');
    }
    let _ = io::stderr().lock().write_all(&noise);
}

fn spawn_other(spawn: &Value) {
    let mut command = match spawn {
        Value::Array(words) => {
            let mut words = words.iter().filter_map(Value::as_str);
            let mut command = Command::new(words.next().unwrap_or("true"));
            command.args(words);
            command
        }
        other => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(other.as_str().unwrap_or("sleep 600"));
            command
        }
    };
    // Its own streams: what it inherits would keep our pipes open, which is the point for some tests.
    let _ = command.spawn();
}

pub fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .filter_map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok())
        .collect()
}
