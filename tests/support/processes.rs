//! What runs on behalf of one test. Each test puts a mark of its own into the environment it starts
//! Pillion with; whatever inherited it, however deep and in whichever session, belongs to that test.

use std::fs;

/// The variable that carries the mark.
pub const MARK: &str = "PILLION_TEST_MARK";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub command: Vec<String>,
}

/// Every living process with this mark. Zombies have no environment any more and do not count.
pub fn marked(mark: &str) -> Vec<Process> {
    let needle = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else {
            continue;
        };
        if environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == needle.as_bytes())
        {
            found.push(Process {
                pid,
                command: command(pid),
            });
        }
    }
    found
}

fn command(pid: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0)
        .filter(|part| !part.is_empty())
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect()
}

pub fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Resident memory in bytes.
pub fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or("0 kB");
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .unwrap_or(0)
        * 1024
}

pub fn signal(pid: i32, signal: i32) {
    // SAFETY: plain system call on a process id that this test got from its own child or mark.
    unsafe { libc::kill(pid, signal) };
}

/// Takes from a program that root starts what lets root pass over the modes of files. Who is not root has nothing to lose.
#[cfg(target_os = "linux")]
pub fn drop_rights_over_files(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    /// `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`, see capabilities(7).
    const OVER_FILES: [libc::c_ulong; 2] = [1, 2];
    // SAFETY: `prctl` may be called between fork and exec, and changes the child only.
    unsafe {
        command.pre_exec(|| {
            for capability in OVER_FILES {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            Ok(())
        });
    }
}
