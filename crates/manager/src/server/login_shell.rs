//! The `PATH` of the person's login shell, asked once.

use std::ffi::OsString;
use std::process::Stdio;

use tokio::io::AsyncReadExt;
use tokio::sync::OnceCell;

use crate::env::Env;
use crate::limits;

static PATH: OnceCell<Option<OsString>> = OnceCell::const_new();

/// Begins the one line of the shell's output that matters; its start-up files may print anything else.
const MARK: &str = "__pillion_path__:";

/// The login shell's `PATH`, or `None` when it did not say so within [`limits::LOGIN_SHELL`].
pub(crate) async fn path(env: &Env) -> Option<OsString> {
    PATH.get_or_init(|| ask(env)).await.clone()
}

async fn ask(env: &Env) -> Option<OsString> {
    let shell = env.variable("SHELL").filter(|shell| shell.starts_with('/'))?;
    let mut command = tokio::process::Command::new(&shell);
    command
        .args(["-l", "-c", &format!("printf '\\n{MARK}%s\\n' \"$PATH\"")])
        // Its start-up files must not find what somebody put into the folder Pillion runs in.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let read = async {
        let mut child = command.spawn().ok()?;
        let mut output = Vec::new();
        let mut stdout = child.stdout.take()?.take(1 << 20);
        stdout.read_to_end(&mut output).await.ok()?;
        let text = String::from_utf8_lossy(&output).into_owned();
        let line = text.lines().rev().find_map(|line| line.strip_prefix(MARK))?;
        (!line.is_empty()).then(|| OsString::from(line))
    };
    match tokio::time::timeout(limits::LOGIN_SHELL, read).await {
        Ok(path) => path,
        Err(_) => {
            tracing::warn!(shell, "the login shell did not answer in time");
            None
        }
    }
}
