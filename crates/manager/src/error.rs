//! What a connection reports, in the words of the host's protocol.

use auth::AuthError;
use mcp::{CallError, CloseReason, Closed, ConnectError, SpawnFailure};
use protocol::{Error, ErrorKind, Json, McpFault, ServerName};

/// Characters of a server's own text that an error repeats.
const SAID: usize = 500;

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SAID) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Why a server did not start.
pub(crate) fn start_error(error: &ConnectError) -> Error {
    match error {
        ConnectError::Spawn { failure, message } => {
            let (kind, hint) = match failure {
                SpawnFailure::NotFound => (ErrorKind::CommandNotFound, "correct `command` of the entry"),
                SpawnFailure::Permission => (
                    ErrorKind::StartFailed,
                    "make the file executable, or correct `command` of the entry",
                ),
                SpawnFailure::Cwd => (ErrorKind::StartFailed, "correct `cwd` of the entry"),
                SpawnFailure::Other => (
                    ErrorKind::StartFailed,
                    "run the command in a terminal to see what it says",
                ),
            };
            hinted(kind, format!("could not start: {message}"), hint)
        }
        ConnectError::Exited { closed, first_noise } => {
            let mut refused = exit_error(closed, "the server ended during its start");
            if let Some(line) = first_noise {
                refused.message = format!("{}; it printed: {}", refused.message, shortened(line));
            }
            refused
        }
        ConnectError::TimedOut {
            phase,
            after,
            stderr_tail,
            first_noise,
        } => {
            let mut message = format!("no answer to `{phase}` within {} s", after.as_secs_f32());
            let said = last_line(stderr_tail)
                .map(str::to_owned)
                .or_else(|| first_noise.clone());
            if let Some(said) = said {
                message = format!("{message}; it printed: {}", shortened(&said));
            }
            let mut silent = hinted(
                ErrorKind::TimedOut,
                message,
                "a first start may download packages: try again, or raise `startTimeoutMs` of the entry",
            );
            silent.data.stderr_tail = Some(stderr_tail.clone()).filter(|tail| !tail.is_empty());
            silent
        }
        ConnectError::Unauthorized {
            status,
            challenges: _,
        } => hinted(
            ErrorKind::NeedsAuth,
            "needs authorization",
            "log in with `mcp.auth`, or put a token into `headers` of the entry",
        )
        .http_status(*status),
        ConnectError::Http { status, body, also } => {
            let mut message = format!("the server answered HTTP status {status}");
            let said = page(body);
            if !said.is_empty() {
                message = format!("{message}: {said}");
            }
            if let Some(also) = also
                .as_ref()
                .filter(|also| **also != format!("HTTP status {status}"))
            {
                message = format!("{message} (as HTTP+SSE: {})", shortened(also));
            }
            let hint = match status {
                404 | 405 => "check the path of `url`",
                500.. => "the server has a fault of its own; try again later",
                _ => "check `url` and `headers` of the entry",
            };
            hinted(ErrorKind::ConnectFailed, message, hint).http_status(*status)
        }
        ConnectError::Authorization(reason) => hinted(
            ErrorKind::AuthFailed,
            reason.clone(),
            "try again later; what is stored was kept",
        ),
        ConnectError::Unreachable(reason) => hinted(
            ErrorKind::ConnectFailed,
            format!("the server cannot be reached: {reason}"),
            match reason {
                // The words of rustls.
                _ if reason.contains("UnknownIssuer") || reason.contains("BadSignature") => {
                    "if you know who signed its certificate, name their certificate as `tls.ca` of the entry"
                }
                _ if reason.contains("CertificateRequired") => {
                    "it wants to see a certificate of yours: set `tls.cert` and `tls.key` of the entry"
                }
                _ if reason.contains("InvalidContentType") => {
                    "this port speaks no TLS: write `http://` in `url`"
                }
                _ => "check that it runs, the address, and proxy settings",
            },
        ),
        ConnectError::UnsupportedVersion { .. } => hinted(
            ErrorKind::UnsupportedProtocol,
            error.to_string(),
            "update the server, or set `protocol` of the entry",
        ),
        ConnectError::Rpc { code, message, .. } => hinted(
            ErrorKind::StartFailed,
            format!(
                "the server refused the handshake: {} ({code})",
                shortened(message)
            ),
            "`mcp.logs` may say more",
        ),
        ConnectError::Protocol(what) => hinted(
            ErrorKind::ProtocolError,
            format!("the server does not keep to the protocol: {}", shortened(what)),
            "check that `command` or `url` really is an MCP server",
        ),
        ConnectError::Redirect(target) => hinted(
            ErrorKind::ConnectFailed,
            format!("the server sends a redirect to {target}, which is not followed"),
            "if you trust that address, write it as `url`",
        ),
        ConnectError::TooLarge { limit } => hinted(
            ErrorKind::TooLarge,
            format!("the handshake is larger than {limit} bytes"),
            "the server has a fault",
        ),
    }
}

/// Why a login did not work.
pub(crate) fn auth_error(error: &AuthError) -> Error {
    let kind = match error {
        AuthError::LoginNeeded | AuthError::ScopeNeeded { .. } => ErrorKind::NeedsAuth,
        AuthError::Denied { .. } => ErrorKind::AuthDenied,
        AuthError::TimedOut { .. } => ErrorKind::AuthTimedOut,
        AuthError::Cancelled => ErrorKind::AuthCancelled,
        AuthError::Foreign => ErrorKind::Forbidden,
        AuthError::StateMismatch => ErrorKind::StateMismatch,
        AuthError::RegistrationNeeded { .. } => ErrorKind::RegistrationNeeded,
        AuthError::RedirectBusy { .. } => ErrorKind::RedirectBusy,
        _ => ErrorKind::AuthFailed,
    };
    let mut shown = Error::new(kind, error.to_string());
    shown.data.hint = error.hint().map(str::to_owned);
    shown.data.oauth_error = error.oauth_error().map(str::to_owned);
    match error {
        AuthError::RegistrationNeeded { redirect_uri } => {
            shown.data.redirect_uris = Some(vec![redirect_uri.clone()]);
        }
        AuthError::RedirectBusy { port, .. } => shown.data.by = Some(format!("port {port}")),
        _ => {}
    }
    shown
}

fn hinted(kind: ErrorKind, message: impl Into<String>, hint: &str) -> Error {
    Error::new(kind, message).hint(hint)
}

/// How a process ended, with what it said last.
pub(crate) fn exit_error(closed: &Closed, what: &str) -> Error {
    let mut message = match (closed.exit_code, &closed.signal) {
        (Some(code), _) => format!("{what} with exit code {code}"),
        (None, Some(signal)) => format!("{what} by signal {signal}"),
        (None, None) => format!("{what}: {}", closed.message),
    };
    if let Some(line) = last_line(&closed.stderr_tail) {
        message = format!("{message}: {}", shortened(line));
    }
    let mut error = hinted(
        ErrorKind::Exited,
        message,
        "the log of the server (`mcp.logs`) says more",
    );
    error.data.exit_code = closed.exit_code;
    error.data.signal.clone_from(&closed.signal);
    error.data.stderr_tail = Some(closed.stderr_tail.clone()).filter(|tail| !tail.is_empty());
    error
}

/// The last line that says something; stack traces end in braces and blanks, and npm ends with where its log is. What
/// npm could not find stands further up.
fn last_line(text: &str) -> Option<&str> {
    let lines = || text.lines().rev().map(str::trim);
    let missing = lines().find(|line| line.starts_with("npm ") && line.contains(" 404 Not Found - "));
    missing.or_else(|| {
        lines().find(|line| {
            line.chars().any(char::is_alphanumeric)
                && !line.contains("A complete log of this run can be found")
        })
    })
}

/// The body of an answer as an error repeats it: of a page its title, and else its text.
fn page(body: &str) -> String {
    if !body.trim_start().starts_with('<') {
        return shortened(body);
    }
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let start = at + lower[at..].find('>')? + 1;
        let end = start + lower[start..].find('<')?;
        body.get(start..end)
    });
    let words: Vec<&str> = title.unwrap_or_default().split_whitespace().collect();
    shortened(&words.join(" "))
}

/// Why a call got no result.
pub(crate) fn call_error(error: CallError, server: &ServerName) -> Error {
    let error = match error {
        CallError::Rpc { code, message, data } => {
            let shown = if message.is_empty() {
                format!("the server answered error {code}")
            } else {
                shortened(&message)
            };
            Error::new(ErrorKind::McpError, shown).mcp(McpFault {
                code,
                message,
                data: data.map(Json),
            })
        }
        CallError::TimedOut { after } => Error::new(
            ErrorKind::TimedOut,
            format!("no answer within {} s", after.as_secs_f32()),
        )
        .hint("raise `timeoutMs` of the call or of the entry"),
        CallError::Cancelled => Error::new(ErrorKind::CallCancelled, "the call was cancelled").by("host"),
        CallError::TooLarge { limit } => Error::new(
            ErrorKind::TooLarge,
            format!("the answer is too large: more than {limit} bytes"),
        )
        .limit(limit as u64)
        .hint("ask for less, or raise `maxMessageBytes` in the handshake"),
        CallError::Closed(closed) if closed.reason == CloseReason::Ordered => Error::new(
            ErrorKind::CallCancelled,
            "the server was stopped while the call ran",
        )
        .by("stop"),
        CallError::Closed(closed) => exit_error(&closed, "the server ended while the call ran"),
        CallError::Http { status, body } => {
            let said = match page(&body) {
                said if said.is_empty() => said,
                said => format!(": {said}"),
            };
            Error::new(
                ErrorKind::ConnectFailed,
                format!("the server answered HTTP status {status}{said}"),
            )
            .http_status(status)
        }
        CallError::Unauthorized { status, .. } => Error::new(ErrorKind::NeedsAuth, "needs authorization")
            .http_status(status)
            .hint("log in with `mcp.auth`, or put a token into `headers` of the entry"),
        CallError::Authorization(reason) => {
            Error::new(ErrorKind::AuthFailed, reason).hint("try again later; what is stored was kept")
        }
        CallError::Unreachable(reason) => Error::new(
            ErrorKind::ConnectFailed,
            format!("the server cannot be reached: {reason}"),
        )
        .hint("check that it runs, the address, and proxy settings"),
        CallError::Protocol(what) => Error::new(
            ErrorKind::ProtocolError,
            format!("the server does not keep to the protocol: {}", shortened(&what)),
        ),
        CallError::StreamEnded => Error::new(
            ErrorKind::ConnectFailed,
            "the stream ended before the answer came",
        )
        .hint("whether the server carried the call out is unknown; it was not repeated"),
        CallError::Refused { message, .. } => Error::new(
            ErrorKind::Denied,
            format!("the host refused what the server asked for: {message}"),
        )
        .by("person"),
        CallError::Overloaded => Error::new(
            ErrorKind::Overloaded,
            "too many requests are waiting for this server",
        )
        .retry_after_ms(1000u64)
        .hint("send it again later"),
    };
    error.server(server.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_why() {
        let npm = "npm error code E404\nnpm error 404 Not Found - GET https://r/x - Not found\nnpm error 404\n\
            npm error A complete log of this run can be found in: /l\n";
        for (text, line) in [
            (npm, Some("npm error 404 Not Found - GET https://r/x - Not found")),
            (
                "npm error code EACCES\nnpm error A complete log of this run can be found in: /l",
                Some("npm error code EACCES"),
            ),
            ("boom\n}\n\n", Some("boom")),
            ("}\n", None),
        ] {
            assert_eq!(last_line(text), line);
        }
    }

    #[test]
    fn a_page_is_its_title() {
        for (body, said) in [
            ("no such path\n", "no such path"),
            (
                "<!DOCTYPE html><html><head>\n<TITLE>Not\n found</TITLE></head><body>x</body></html>",
                "Not found",
            ),
            ("<html><body>x</body></html>", ""),
            ("<title", ""),
        ] {
            assert_eq!(page(body), said);
        }
    }
}
