//! One child process in a process group of its own: how it is started, watched and ended.
//!
//! The order matters everywhere here. A process id may be given to somebody else as soon as its process has been reaped, so the
//! group is killed, and the watchdog told, while the leader is still a zombie.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::net::unix::pipe;
use tokio::signal::unix::SignalKind;

use crate::error::{ConnectError, SpawnFailure};
use crate::target::StdioTarget;

/// A running child. Dropping it kills its whole group.
pub(crate) struct Child {
    inner: std::process::Child,
    pid: Pid,
    watchdog: Option<Arc<OwnedFd>>,
    group_killed: bool,
    reaped: bool,
}

/// Our ends of its three pipes.
pub(crate) struct Pipes {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
}

/// Starts the server, without a shell.
pub(crate) fn spawn(target: &StdioTarget) -> Result<(Child, Pipes), ConnectError> {
    if !target.cwd.is_dir() {
        // The kernel says "not found" of a missing command and of a missing directory alike.
        return Err(ConnectError::Spawn {
            failure: SpawnFailure::Cwd,
            message: format!("the working directory `{}` does not exist", target.cwd.display()),
        });
    }
    let mut command = Command::new(&target.command);
    command
        .args(&target.args)
        .env_clear()
        .envs(target.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&target.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let announced = match &target.watchdog {
        Some(watchdog) => {
            Some(announce_to(&mut command, watchdog).map_err(|error| spawn_error(target, &error))?)
        }
        None => None,
    };
    let mut inner = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            if let (Some(announced), Some(watchdog)) = (announced, &target.watchdog) {
                take_back(announced, watchdog);
            }
            return Err(spawn_error(target, &error));
        }
    };
    let pipes = Pipes::of(&mut inner);
    let child = Child {
        pid: Pid::from_child(&inner),
        inner,
        watchdog: target.watchdog.clone(),
        group_killed: false,
        reaped: false,
    };
    match pipes {
        Ok(pipes) => Ok((child, pipes)),
        Err(error) => Err(spawn_error(target, &error)),
    }
}

impl Pipes {
    fn of(child: &mut std::process::Child) -> io::Result<Pipes> {
        let missing = || io::Error::other("a pipe to the child is missing");
        Ok(Pipes {
            stdin: pipe::Sender::from_owned_fd(child.stdin.take().ok_or_else(missing)?.into())?,
            stdout: pipe::Receiver::from_owned_fd(child.stdout.take().ok_or_else(missing)?.into())?,
            stderr: pipe::Receiver::from_owned_fd(child.stderr.take().ok_or_else(missing)?.into())?,
        })
    }
}

impl Child {
    pub(crate) fn pid(&self) -> u32 {
        self.inner.id()
    }

    /// Returns when the leader has ended; it stays a zombie until [`Child::reap`].
    pub(crate) async fn ended(&self) {
        let Ok(mut children) = tokio::signal::unix::signal(SignalKind::child()) else {
            return;
        };
        while !self.has_ended() {
            if children.recv().await.is_none() {
                return;
            }
        }
    }

    /// As `ended`, but at most for this long; says whether it has.
    pub(crate) async fn ended_within(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.ended()).await.is_ok()
    }

    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(rustix::process::waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    pub(crate) fn terminate_group(&self) {
        // An error means that nobody is left.
        let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
    }

    /// Kills the group, for good and all. Must come before [`Child::reap`].
    pub(crate) fn kill_group(&mut self) {
        if self.group_killed || self.reaped {
            return;
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        self.group_killed = true;
        if let Some(watchdog) = &self.watchdog {
            let line = format!("-{}\n", self.pid.as_raw_nonzero());
            let _ = rustix::io::write(watchdog, line.as_bytes());
        }
    }

    /// Takes the exit status, if the leader has ended.
    pub(crate) fn reap(&mut self) -> Option<ExitStatus> {
        self.kill_group();
        let status = self.inner.try_wait().ok().flatten();
        self.reaped |= status.is_some();
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.kill_group();
        // A killed process ends at once, except in uninterruptible sleep, which nobody should wait for.
        let deadline = Instant::now() + Duration::from_millis(100);
        while self.reap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A pipe that holds more, so that big messages need fewer wake-ups. Refused beyond the user's quota, which is fine.
pub(crate) fn enlarge(pipe: &impl AsFd) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, crate::limits::PIPE_SIZE);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// How an exit is told: its code, or the name of the signal.
pub(crate) fn describe(status: Option<ExitStatus>) -> (Option<i32>, Option<String>, String) {
    let Some(status) = status else {
        return (None, None, "the server closed its output".into());
    };
    if let Some(code) = status.code() {
        return (Some(code), None, format!("the server exited with code {code}"));
    }
    let signal = status.signal().map_or_else(|| "a signal".to_owned(), signal_name);
    let message = format!("the server was ended by {signal}");
    (None, Some(signal), message)
}

fn signal_name(number: i32) -> String {
    let name = match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

/// Lets the child write `+pid` for the watchdog between fork and exec. The pipe that is returned gets the id too: where exec fails,
/// it is the only way to learn which id has to be taken back.
fn announce_to(command: &mut Command, watchdog: &Arc<OwnedFd>) -> io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let watchdog_fd: RawFd = watchdog.as_raw_fd();
    let announce = move || {
        let mut line = [0u8; 16];
        let line = announcement(rustix::process::getpid().as_raw_nonzero().get(), &mut line);
        // SAFETY: the watchdog's descriptor is open in the parent until the child has been spawned, so the fork has it too.
        let watchdog = unsafe { rustix::fd::BorrowedFd::borrow_raw(watchdog_fd) };
        // Best effort: a server without a watchdog is better than none. If the watchdog is gone, writing would kill us.
        // SAFETY: `signal` may be called between fork and exec, and both actions are predefined.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        let _ = rustix::io::write(watchdog, line);
        let _ = rustix::io::write(&write, line);
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls: it neither allocates nor takes a lock.
    unsafe { command.pre_exec(announce) };
    Ok(read)
}

/// `+pid` and a line end, without allocating.
fn announcement(pid: i32, line: &mut [u8; 16]) -> &[u8] {
    let mut at = line.len() - 1;
    line[at] = b'\n';
    let mut rest = pid.unsigned_abs();
    loop {
        at -= 1;
        line[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    at -= 1;
    line[at] = b'+';
    &line[at..]
}

fn take_back(announced: OwnedFd, watchdog: &OwnedFd) {
    let mut line = [0u8; 16];
    if rustix::io::ioctl_fionbio(&announced, true).is_err() {
        return;
    }
    if let Ok(length) = rustix::io::read(&announced, &mut line)
        && length > 1
    {
        line[0] = b'-';
        let _ = rustix::io::write(watchdog, &line[..length]);
    }
}

fn spawn_error(target: &StdioTarget, error: &io::Error) -> ConnectError {
    let command = target.command.display();
    let (failure, message) = match error.kind() {
        io::ErrorKind::NotFound if target.command.exists() => (
            SpawnFailure::NotFound,
            format!("the interpreter of `{command}` was not found"),
        ),
        io::ErrorKind::NotFound => (SpawnFailure::NotFound, format!("command not found: `{command}`")),
        io::ErrorKind::PermissionDenied => (
            SpawnFailure::Permission,
            format!("`{command}` may not be executed"),
        ),
        _ => (
            SpawnFailure::Other,
            format!("`{command}` could not be started: {error}"),
        ),
    };
    ConnectError::Spawn { failure, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements() {
        let check = |pid, expected: &[u8]| assert_eq!(announcement(pid, &mut [0; 16]), expected);
        check(1, b"+1\n");
        check(4_194_304, b"+4194304\n");
        check(i32::MAX, b"+2147483647\n");
    }
}
