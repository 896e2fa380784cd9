//! The process that ends all children when Pillion itself is killed.
//!
//! It is this very binary under another name, in a session of its own, started before the first child. Each child
//! writes its id into a pipe between fork and exec; an id is taken out after its group was killed and before it is
//! reaped, so that none is ever reused while it stands here. When the pipe ends, Pillion is gone: whatever is still
//! written down is killed, with its descendants. After an orderly end nothing is.
//!
//! Windows has job objects instead.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use crate::memory;

/// The name it runs under: whoever ends all processes called like the binary must not end this one with them.
const NAME: &str = "mcp-watch";

/// Whether this process was started to be the watchdog.
pub fn is_me() -> bool {
    let mut arguments = std::env::args_os();
    arguments.next().as_deref() == Some(OsStr::new(NAME)) && arguments.next().is_none()
}

/// The pipe to the watchdog, which starts with the first call; `None` where it does not start.
pub fn watchdog_fd() -> Option<Arc<OwnedFd>> {
    static PIPE: OnceLock<Option<Arc<OwnedFd>>> = OnceLock::new();
    let start = || match parent::start() {
        Ok(pipe) => Some(Arc::new(pipe)),
        Err(fault) => {
            tracing::warn!(%fault, "no watchdog: if this process is killed, its children may stay");
            None
        }
    };
    PIPE.get_or_init(start).clone()
}

/// Reads ids until the pipe ends, then kills what is left.
pub fn run() {
    child::settle();
    // From here on it waits.
    memory::forget_code();
    let ids = child::read_until_end();
    if !ids.is_empty() {
        child::kill(&ids);
    }
}

mod parent {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    pub fn start() -> io::Result<OwnedFd> {
        let (reader, writer) = io::pipe()?;
        let writer = OwnedFd::from(writer);
        // Were it full or its reader dead, a child between fork and exec must neither wait nor die of it: the writing
        // end does not block, and the reading end stays open here too.
        let flags = rustix::fs::fcntl_getfl(&writer)?;
        rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK)?;
        let kept = reader.try_clone()?;
        let mut command = Command::new(executable()?);
        command
            .arg0(super::NAME)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(reader))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: `setsid` is async-signal-safe and touches no memory of ours.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(())
            });
        }
        // Never waited for: it ends after us.
        command.spawn()?;
        std::mem::forget(kept);
        Ok(writer)
    }

    #[cfg(target_os = "linux")]
    fn executable() -> io::Result<&'static str> {
        // Right even when the file was replaced by an update meanwhile.
        Ok("/proc/self/exe")
    }

    #[cfg(not(target_os = "linux"))]
    fn executable() -> io::Result<std::path::PathBuf> {
        std::env::current_exe()
    }
}

mod child {
    use std::collections::BTreeSet;
    use std::io::{BufRead, BufReader};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    /// Rounds of looking for processes that were started while others were killed.
    const ROUNDS: usize = 20;
    const PAUSE: Duration = Duration::from_millis(10);

    /// Lets go of everything the parent had open, and of everything that would end this process early.
    pub fn settle() {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: nothing in this process has opened a descriptor yet, and the arguments are plain numbers.
            unsafe {
                libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
                libc::prctl(libc::PR_SET_NAME, c"mcp-watch".as_ptr());
            }
        }
        for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT] {
            // SAFETY: ignoring a signal installs no handler.
            unsafe {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }

    /// Lines `+pid` and `-pid`; the ids that are left at the end.
    pub fn read_until_end() -> BTreeSet<i32> {
        let mut ids = BTreeSet::new();
        let mut line = String::new();
        let mut input = BufReader::with_capacity(512, std::io::stdin());
        while matches!(input.read_line(&mut line), Ok(1..)) {
            note(&mut ids, line.trim_end());
            line.clear();
        }
        ids
    }

    fn note(ids: &mut BTreeSet<i32>, line: &str) {
        let id = line
            .get(1..)
            .and_then(|id| id.parse::<i32>().ok())
            .filter(|id| *id > 1);
        match (line.as_bytes().first(), id) {
            (Some(b'+'), Some(id)) => {
                ids.insert(id);
            }
            (Some(b'-'), Some(id)) => {
                ids.remove(&id);
            }
            _ => {}
        }
    }

    /// Kills the groups, and the descendants that left their group (`setsid`), which only their parents lead to.
    pub fn kill(ids: &BTreeSet<i32>) {
        let mut found = ids.clone();
        for _ in 0..ROUNDS {
            let before = found.len();
            // All parents are looked up before any is killed: an orphan's parent is init.
            add_descendants(&mut found, &parents());
            let mut alive = false;
            for pid in found.iter().filter_map(|id| Pid::from_raw(*id)) {
                alive |= kill_process_group(pid, Signal::KILL).is_ok();
                // A registered id that is no longer there was killed with its group.
                alive |= kill_process(pid, Signal::KILL).is_ok();
            }
            if !alive && found.len() == before {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn add_descendants(found: &mut BTreeSet<i32>, parents: &[(i32, i32)]) {
        loop {
            let before = found.len();
            found.extend(
                parents
                    .iter()
                    .filter(|(_, parent)| found.contains(parent))
                    .map(|(id, _)| *id)
                    .collect::<Vec<_>>(),
            );
            if found.len() == before {
                return;
            }
        }
    }

    /// Every process with its parent.
    #[cfg(target_os = "linux")]
    fn parents() -> Vec<(i32, i32)> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let ids = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        ids.filter_map(|id| {
            Some((
                id,
                parent(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?,
            ))
        })
        .collect()
    }

    /// Elsewhere groups must do: there is no `/proc` to walk.
    #[cfg(not(target_os = "linux"))]
    fn parents() -> Vec<(i32, i32)> {
        Vec::new()
    }

    /// The fourth field of `/proc/<pid>/stat`; the second is a name in parentheses that may hold anything.
    #[cfg(target_os = "linux")]
    fn parent(stat: &str) -> Option<i32> {
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn ids_come_and_go() {
            let mut ids = BTreeSet::new();
            for line in ["+10", "+11", "-10", "+x", "+1", "+-5", "", "12", "-99"] {
                note(&mut ids, line);
            }
            assert_eq!(ids, BTreeSet::from([11]));
        }

        #[test]
        fn descendants_of_descendants_are_found() {
            let mut found = BTreeSet::from([10]);
            add_descendants(&mut found, &[(13, 12), (12, 11), (11, 10), (20, 1), (21, 20)]);
            assert_eq!(found, BTreeSet::from([10, 11, 12, 13]));
        }

        #[cfg(target_os = "linux")]
        #[test]
        fn a_name_may_hold_anything() {
            assert_eq!(parent("7 (a) (b) ) S 42 7 7 0"), Some(42));
            let me = std::process::id() as i32;
            assert!(parents().iter().any(|(id, parent)| *id == me && *parent > 0));
        }
    }
}
