//! The ways a session ends, and what ends it from outside: signals and the death of the host.

use tokio::sync::mpsc;

use super::limits;
#[cfg(target_os = "linux")]
use super::stdio;

/// Why the session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `exit`, after `shutdown` or without it.
    Exit {
        orderly: bool,
    },
    /// stdin ended.
    InputClosed,
    /// Nobody reads stdout any more.
    OutputClosed,
    Signal(&'static str),
    /// The process named in `initialize` is gone.
    HostGone,
}

impl End {
    /// LSP's rule: 0 after `shutdown` and `exit`, else 1.
    pub fn exit_code(self) -> i32 {
        match self {
            End::Exit { orderly: true } => 0,
            End::Exit { orderly: false }
            | End::InputClosed
            | End::OutputClosed
            | End::Signal(_)
            | End::HostGone => 1,
        }
    }
}

/// Where ends are told. Room for one of each source: the first one counts.
pub type Ends = mpsc::Sender<End>;

pub fn tell(ends: &Ends, end: End) {
    // Full: the session is ending already.
    let _ = ends.try_send(end);
}

/// Ends the process a little before its time is up, whatever still runs or hangs by then.
pub fn last_resort(end: End) {
    let work = move || {
        std::thread::sleep(limits::LAST_RESORT);
        std::process::exit(end.exit_code());
    };
    if let Err(fault) = std::thread::Builder::new().name("end".to_owned()).spawn(work) {
        tracing::warn!(%fault, "nothing bounds the time that ending takes");
    }
}

/// Vim ends its children with SIGTERM, Emacs with SIGHUP, a terminal with SIGINT.
#[cfg(unix)]
pub fn watch_signals(ends: &Ends) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::hangup(), "SIGHUP"),
        (SignalKind::interrupt(), "SIGINT"),
    ];
    for (kind, name) in kinds {
        let mut signal = signal(kind)?;
        let ends = ends.clone();
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                tell(&ends, End::Signal(name));
            }
        });
    }
    Ok(())
}

#[cfg(not(unix))]
pub fn watch_signals(ends: &Ends) -> std::io::Result<()> {
    let ends = ends.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            tell(&ends, End::Signal("interrupt"));
        }
    });
    Ok(())
}

/// Watches the host's process without polling. One that cannot be seen from here (another container) is left to the
/// end of stdin.
#[cfg(target_os = "linux")]
pub fn watch_host(process_id: u32, ends: &Ends) -> std::io::Result<()> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Some(pid) = i32::try_from(process_id).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let process = stdio::watched(
        pidfd_open(pid, PidfdFlags::empty())?,
        tokio::io::Interest::READABLE,
    )?;
    let ends = ends.clone();
    tokio::spawn(async move {
        // Readable means ended.
        if process.readable().await.is_ok() {
            tell(&ends, End::HostGone);
        }
    });
    Ok(())
}

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
pub fn watch_host(process_id: u32, ends: &Ends) -> std::io::Result<()> {
    use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
    use rustix::process::Pid;
    let Some(pid) = i32::try_from(process_id).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let queue = kqueue()?;
    let filter = EventFilter::Proc {
        pid,
        flags: ProcessEvents::EXIT,
    };
    let exit = [Event::new(
        filter,
        EventFlags::ADD | EventFlags::ONESHOT,
        std::ptr::null_mut(),
    )];
    let ends = ends.clone();
    std::thread::Builder::new()
        .name("host".to_owned())
        .spawn(move || {
            let mut events = Vec::with_capacity(1);
            // SAFETY: the events hold no descriptor that could be closed meanwhile.
            let seen = unsafe { kevent(&queue, &exit, rustix::buffer::spare_capacity(&mut events), None) };
            if seen.is_ok_and(|count| count > 0) {
                tell(&ends, End::HostGone);
            }
        })?;
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd")))]
pub fn watch_host(_: u32, _: &Ends) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_orderly_end_is_success() {
        let rows = [
            (End::Exit { orderly: true }, 0),
            (End::Exit { orderly: false }, 1),
            (End::InputClosed, 1),
            (End::OutputClosed, 1),
            (End::Signal("SIGTERM"), 1),
            (End::HostGone, 1),
        ];
        for (end, code) in rows {
            assert_eq!(end.exit_code(), code, "{end:?}");
        }
    }
}
