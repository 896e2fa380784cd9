//! Points of a write at which tests let the process die or the disk fail.
//!
//! Only in builds with debug assertions, and only where the environment asks for it: `PILLION_FAULT=crash:rename:2`
//! ends the process at the second time it comes to `rename`, `full:write:1` makes the first `write` fail as on a full
//! disk.

use std::io;

#[cfg(debug_assertions)]
pub(crate) fn point(name: &str) -> io::Result<()> {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Plan {
        crash: bool,
        point: String,
        countdown: AtomicU32,
    }
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    let plan = PLAN.get_or_init(|| {
        let text = std::env::var("PILLION_FAULT").ok()?;
        let mut parts = text.splitn(3, ':');
        Some(Plan {
            crash: parts.next()? == "crash",
            point: parts.next()?.to_owned(),
            countdown: AtomicU32::new(parts.next()?.parse().ok()?),
        })
    });
    let Some(plan) = plan else { return Ok(()) };
    if plan.point != name || plan.countdown.fetch_sub(1, Ordering::Relaxed) != 1 {
        return Ok(());
    }
    if plan.crash {
        std::process::abort();
    }
    Err(io::Error::from(io::ErrorKind::StorageFull))
}

#[cfg(not(debug_assertions))]
pub(crate) fn point(_: &str) -> io::Result<()> {
    Ok(())
}
