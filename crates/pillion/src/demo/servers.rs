//! The HTTP servers of the demo: processes of this very program, ended by the end of their stdin.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::trace::Trace;

/// A server ends at once when its stdin does.
const GRACE: Duration = Duration::from_secs(2);

pub struct HttpServer {
    child: Child,
    pub address: String,
}

impl HttpServer {
    /// Starts one and reads its address; what it says afterwards is shown by `--trace`.
    pub async fn start(program: &Path, kind: &str, trace: Trace) -> std::io::Result<HttpServer> {
        let mut child = Command::new(program)
            .args(["demo-server", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| std::io::Error::other("no stdout"))?;
        let mut lines = BufReader::new(stdout).lines();
        let address = lines.next_line().await?.unwrap_or_default();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                trace.line(&line);
            }
        });
        Ok(HttpServer { child, address })
    }

    pub async fn end(mut self) {
        drop(self.child.stdin.take());
        // One that stays is killed when it is dropped.
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }
}
