//! The codes of findings, in one table; docs/doctor.md lists them for people.

use protocol::{Area, CheckLevel};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, $area:ident, $level:ident;)+) => {
        /// What a finding says, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            #[cfg(test)]
            const ALL: &'static [Code] = &[$(Code::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $word,)+
                }
            }

            pub fn area(self) -> Area {
                match self {
                    $(Code::$variant => Area::$area,)+
                }
            }

            pub fn level(self) -> CheckLevel {
                match self {
                    $(Code::$variant => CheckLevel::$level,)+
                }
            }
        }
    };
}

codes! {
    /// A program that starts servers is there.
    Runtime = "runtime", Runtime, Ok;
    /// A program that starts servers does not run.
    RuntimeBroken = "runtime_broken", Runtime, Error;
    /// Node.js is older than what today's servers need.
    RuntimeOld = "runtime_old", Runtime, Warning;
    /// The program of an entry is only on the login shell's `PATH`.
    PathShort = "path_short", Runtime, Warning;
    /// The program of an entry is only on the `PATH` of this process.
    PathTerminalOnly = "path_terminal_only", Runtime, Warning;
    /// The two `PATH`s lead to different programs.
    PathDiffers = "path_differs", Runtime, Warning;
    /// Docker is there, its engine does not answer.
    DockerUnreachable = "docker_unreachable", Runtime, Error;
    /// A cache of packages is there.
    Cache = "cache", Cache, Ok;
    /// A cache of packages cannot be written.
    CacheUnwritable = "cache_unwritable", Cache, Error;
    /// Little room is left.
    DiskFull = "disk_full", Cache, Warning;
    /// A proxy is configured.
    Proxy = "proxy", Network, Ok;
    /// A proxy variable holds no address.
    ProxyInvalid = "proxy_invalid", Network, Error;
    /// The upper and the lower case variable differ.
    ProxyDiffers = "proxy_differs", Network, Warning;
    /// Nothing listens at the proxy's address.
    ProxyUnreachable = "proxy_unreachable", Network, Error;
    /// A server of this machine would be reached through a proxy.
    ProxyCatchesLoopback = "proxy_catches_loopback", Network, Error;
    /// The fixed port of a login is taken.
    CallbackPortBusy = "callback_port_busy", Network, Error;
    /// `peers.json` names processes that are gone.
    PeersStale = "peers_stale", Network, Warning;
    /// The data folder is there.
    DataFolder = "data_folder", File, Ok;
    /// The data folder cannot be written.
    FolderUnwritable = "folder_unwritable", File, Error;
    /// Others can read a file that is for the person only.
    FileMode = "file_mode", File, Warning;
    /// A file belongs to somebody else.
    FileOwner = "file_owner", File, Error;
    /// A file cannot be read.
    FileBroken = "file_broken", File, Error;
    /// A copy of a broken file was put beside it.
    FileSetAside = "file_set_aside", File, Warning;
    /// A write that did not end left a file.
    FileLeftover = "file_leftover", File, Warning;
    /// Another process keeps a lock.
    LockHeld = "lock_held", File, Warning;
    /// Files come from the future: the clock went back.
    ClockBehind = "clock_behind", Clock, Warning;
    /// A remote server's clock differs.
    ClockSkew = "clock_skew", Clock, Warning;
    /// A server can be started, as far as that can be seen.
    Server = "server", Server, Ok;
    /// The entry has a fault.
    EntryBroken = "entry_broken", Server, Error;
    /// Members of an entry that nobody knows.
    MemberUnknown = "member_unknown", Server, Warning;
    /// An entry of a higher layer hides this one.
    EntryShadowed = "entry_shadowed", Server, Warning;
    /// Two entries start the same.
    EntryTwice = "entry_twice", Server, Warning;
    /// The program of an entry is not found.
    CommandMissing = "command_missing", Server, Error;
    /// A variable that the entry refers to is not set.
    VariableUnset = "variable_unset", Server, Error;
    /// The working folder, the file of variables or the address cannot be used.
    LaunchImpossible = "launch_impossible", Server, Error;
    /// The project is not trusted yet.
    NeedsTrust = "needs_trust", Server, Warning;
    /// A request waits for a decision.
    RequestPending = "request_pending", Server, Warning;
    /// The administrator's policy forbids it.
    Forbidden = "forbidden", Server, Warning;
    /// The profile in use does not hold it.
    NotInProfile = "not_in_profile", Server, Warning;
    /// It did not start, or crashed.
    ServerFailed = "server_failed", Server, Error;
    /// Several servers offer a tool of the same name.
    ToolDuplicate = "tool_duplicate", Tool, Warning;
    /// Tools changed since they were accepted.
    ToolsHeld = "tools_held", Tool, Warning;
    /// A login is stored.
    Login = "login", Login, Ok;
    /// The server wants a login.
    LoginNeeded = "login_needed", Login, Error;
    /// The stored login is over and cannot be renewed.
    LoginExpired = "login_expired", Login, Warning;
    /// A look took too long.
    CheckLate = "check_late", Runtime, Warning;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        let page = include_str!("../../../../docs/doctor.md");
        for code in Code::ALL {
            let row = format!("| `{}` | {} |", code.as_str(), code.level());
            assert!(page.contains(&row), "docs/doctor.md lacks {row}");
        }
    }
}
