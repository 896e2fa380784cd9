//! A person at a terminal with one server behind a login, `docs`: what they type, and what comes of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::LOGIN_NEEDED;
use crate::browser::{self, Say};
use crate::host;
use crate::listening::Listening;

/// No command takes longer, on the slowest of machines.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Person {
    binary: PathBuf,
    home: PathBuf,
}

impl Person {
    /// A home in which the server at that port is configured.
    pub fn new(binary: &Path, home: &Path, port: u16) -> Result<Person> {
        std::fs::create_dir_all(home)?;
        let url = format!("http://127.0.0.1:{port}/mcp");
        host::write_servers(home, json!({ "docs": { "url": url } }))?;
        Ok(Person {
            binary: binary.to_owned(),
            home: home.to_owned(),
        })
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The file with the logins.
    pub fn store(&self) -> PathBuf {
        host::data_folder(&self.home).join("mcp-auth.json")
    }

    /// What is stored about the server.
    pub fn stored(&self) -> Result<Value> {
        let document: Value = serde_json::from_slice(&std::fs::read(self.store())?)?;
        let servers = document["servers"].as_object();
        Ok(servers
            .and_then(|servers| servers.values().next().cloned())
            .unwrap_or_default())
    }

    fn start(&self, args: &[&str]) -> Result<Running> {
        let mut child = Command::new(&self.binary)
            .args(args)
            .current_dir(&self.home)
            .env("HOME", &self.home)
            .env("PILLION_HOME", host::data_folder(&self.home))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let command = args.join(" ");
        Ok(Running {
            child,
            stdout,
            command,
        })
    }

    /// Runs a command that must end with this code; answers its stdout.
    pub fn run(&self, args: &[&str], code: i32) -> Result<String> {
        self.start(args)?.ended(code)
    }

    /// Begins a call of the server's tool.
    pub fn call(&self) -> Result<Running> {
        self.start(&["call", "docs", "today"])
    }

    pub fn sees(&self, text: &str) -> Result<()> {
        let said = self.call()?.ended(0)?;
        ensure!(said.contains(text), "`{text}` is not in: {said}");
        Ok(())
    }

    pub fn is_refused(&self) -> Result<()> {
        self.call()?.ended(LOGIN_NEEDED).map(drop)
    }

    /// Types `pillion auth docs`, opens the address, and says yes or no there.
    pub fn log_in(&self, say: Say, code: i32) -> Result<()> {
        let mut running = self.start(&["auth", "docs"])?;
        let mut address = String::new();
        running.stdout.read_line(&mut address)?;
        ensure!(address.starts_with("http://"), "no address: {address}");
        let heading = browser::visit(address.trim(), say)?;
        let wanted = match say {
            Say::Yes => "You are logged in",
            Say::No => "No access was given",
        };
        running.ended(code)?;
        ensure!(heading == wanted, "the browser shows `{heading}`");
        Ok(())
    }
}

pub struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    command: String,
}

impl Running {
    /// Waits for the end, and answers what is left of stdout.
    pub fn ended(mut self, code: i32) -> Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            ensure!(Instant::now() < deadline, "`{}` does not end", self.command);
            std::thread::sleep(Duration::from_millis(20));
        };
        let (mut said, mut complained) = (String::new(), String::new());
        self.stdout.read_to_string(&mut said)?;
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut complained)?;
        }
        ensure!(
            status.code() == Some(code),
            "`{}` ended with {status}, not {code}: {said}{complained}",
            self.command
        );
        Ok(said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a JSON document.
pub fn get(server: &Listening, path: &str) -> Result<Value> {
    Ok(serde_json::from_str(&exchange(server, "GET", path)?)?)
}

pub fn post(server: &Listening, path: &str) -> Result<()> {
    exchange(server, "POST", path).map(drop)
}

fn exchange(server: &Listening, method: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    ensure!(head.contains(" 200 "), "{method} {path}: {head}");
    Ok(body.to_owned())
}
