//! The exit codes of the command line: one table, and what leads to which.

use protocol::ErrorKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    LoginNeeded = 3,
    Denied = 4,
    Deadline = 5,
    /// The tool itself answered `isError`.
    ToolError = 6,
    Interrupted = 130,
}

/// What `pillion help` ends with.
pub const HELP: &str = "\
Exit codes:
    0  done
    1  failed
    2  the command line is wrong
    3  the server needs a login
    4  denied
    5  a deadline passed
    6  the tool answered with an error of its own
  130  interrupted";

impl Exit {
    pub fn of(kind: &ErrorKind) -> Exit {
        match kind {
            ErrorKind::InvalidParams | ErrorKind::ArgumentMissing => Exit::Usage,
            ErrorKind::NeedsAuth | ErrorKind::RegistrationNeeded => Exit::LoginNeeded,
            ErrorKind::Denied | ErrorKind::CannotAsk | ErrorKind::Forbidden | ErrorKind::AuthDenied => {
                Exit::Denied
            }
            ErrorKind::TimedOut | ErrorKind::AuthTimedOut => Exit::Deadline,
            ErrorKind::Cancelled | ErrorKind::AuthCancelled => Exit::Interrupted,
            // `ErrorKind` is open: what is not named above simply failed.
            _ => Exit::Failed,
        }
    }

    pub fn code(self) -> i32 {
        self as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_code() {
        let rows = [
            (ErrorKind::InvalidParams, 2),
            (ErrorKind::NeedsAuth, 3),
            (ErrorKind::Denied, 4),
            (ErrorKind::TimedOut, 5),
            (ErrorKind::Cancelled, 130),
            (ErrorKind::NotFound, 1),
            (ErrorKind::CommandNotFound, 1),
            (ErrorKind::Other("new".to_owned()), 1),
        ];
        for (kind, code) in rows {
            assert_eq!(Exit::of(&kind).code(), code, "{kind:?}");
        }
    }
}
