//! HTTP servers that a chore runs itself, on a free port, until it has done with them.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

/// An HTTP server that this tool runs itself, ended when it is dropped.
pub struct Listening {
    child: Child,
    pub port: u16,
}

impl Listening {
    /// Starts the command with `PORT` set and waits until it listens there.
    pub fn start(command: &mut Command, log: &Path) -> Result<Listening> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = std::fs::File::create(log)?;
        let child = command
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut listening = Listening { child, port };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = listening.child.try_wait()? {
                bail!("{command:?} ended with {status}");
            }
            ensure!(Instant::now() < deadline, "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(listening)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
