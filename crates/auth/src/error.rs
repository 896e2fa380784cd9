//! How authorization can fail. No secret is in any of these.

use crate::limits::SHOWN_TEXT;

/// Why there is no token.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthError {
    /// Nobody has logged in, or the login is not valid any more.
    #[error("needs authorization")]
    LoginNeeded,
    #[error("needs authorization: the scope `{scope}` is missing")]
    ScopeNeeded { scope: String },
    #[error("the server refuses the scope `{scope}` although it was granted")]
    ScopeRefused { scope: String },
    /// A later try may go better.
    #[error("{url} cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} answers HTTP status {status}")]
    Unavailable { url: String, status: u16 },
    #[error("{what} `{url}` is refused: {reason}")]
    Blocked {
        what: &'static str,
        url: String,
        reason: &'static str,
    },
    /// Nothing that is set makes it one.
    #[error("{what} `{url}` is refused: {reason}")]
    NoWebAddress {
        what: &'static str,
        url: String,
        reason: &'static str,
    },
    #[error("{what} `{url}` is refused: it must be https")]
    Insecure { what: &'static str, url: String },
    #[error("the server wants authorization but does not say where: there is no metadata at {tried}")]
    NoMetadata { tried: String },
    #[error("the server answers HTTP status {status} without a login: it asks for none")]
    NotWanted { status: u16 },
    #[error("the metadata at {url} is not usable: {reason}")]
    BadMetadata { url: String, reason: String },
    #[error("the metadata is for the resource `{found}`, but the server is `{wanted}`")]
    ResourceMismatch { wanted: String, found: String },
    #[error("the metadata of the issuer `{wanted}` names the issuer `{found}`")]
    IssuerMismatch { wanted: String, found: String },
    #[error("the client was registered with the issuer `{known}`, but the server's issuer is now `{found}`")]
    ForeignIssuer { known: String, found: String },
    #[error("the authorization server does not support PKCE with S256 (it lists {listed})")]
    NoPkce { listed: String },
    #[error(
        "the authorization server registers no clients by itself: register one with the redirect URI {redirect_uri} and set its client id"
    )]
    RegistrationNeeded { redirect_uri: String },
    #[error("registration was refused with HTTP status {status}: {reason}")]
    RegistrationRefused { status: u16, reason: String },
    #[error("port {port} of the redirect URI is busy: {reason}")]
    RedirectBusy { port: u16, reason: String },
    #[error("{0}")]
    BadSettings(String),
    /// The person, or the authorization server for them, said no.
    #[error("the login was denied ({error}){}", described(description))]
    Denied { error: String, description: String },
    #[error("the authorization server answered `{error}`{}", described(description))]
    AuthorizationRefused { error: String, description: String },
    #[error("the answer comes from another authorization server: `iss` is {found}, not `{wanted}`")]
    IssMismatch { wanted: String, found: String },
    #[error("the pasted address belongs to another login: its `state` differs")]
    StateMismatch,
    #[error("{0}")]
    BadRedirect(String),
    #[error("nobody logged in within {} minutes", after.as_secs() / 60)]
    TimedOut { after: std::time::Duration },
    #[error("the login was cancelled")]
    Cancelled,
    #[error("no login is under way")]
    NoLogin,
    /// Another program may not take the person's login over.
    #[error("a login that somebody else began is under way")]
    Foreign,
    #[error(
        "the token request was refused with HTTP status {status}: `{error}`{}",
        described(description)
    )]
    TokenRefused {
        status: u16,
        error: String,
        description: String,
    },
    #[error("the token answer is not usable: {0}")]
    BadTokenAnswer(String),
    #[error("`{path}`: {reason}")]
    Store { path: String, reason: String },
}

fn described(description: &str) -> String {
    if description.is_empty() {
        String::new()
    } else {
        format!(": {description}")
    }
}

impl AuthError {
    /// Whether the same thing may go well a little later, with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            AuthError::Unreachable { .. } | AuthError::Unavailable { .. } | AuthError::Store { .. }
        )
    }

    /// The error for the process's own log, where nobody knows what is secret in an address: each ends at its host.
    pub(crate) fn logged(&self) -> String {
        let text = self.to_string();
        let mut parts = text.split("://");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_end = |one: char| one.is_whitespace() || matches!(one, '`' | ',' | ')' | '\'' | '"');
            let (address, rest) = part.split_at(part.find(is_end).unwrap_or(part.len()));
            let host = address.split(['/', '?', '#']).next().unwrap_or_default();
            out.push_str("://");
            out.push_str(host);
            if host.len() < address.len() {
                out.push_str("/…");
            }
            out.push_str(rest);
        }
        out
    }

    /// The error code of the authorization server (RFC 6749 §4.1.2.1 and §5.2).
    pub fn oauth_error(&self) -> Option<&str> {
        match self {
            AuthError::Denied { error, .. }
            | AuthError::AuthorizationRefused { error, .. }
            | AuthError::TokenRefused { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The next step, for people.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            AuthError::LoginNeeded | AuthError::ScopeNeeded { .. } | AuthError::TimedOut { .. } => {
                "log in with `mcp.auth` or `pillion auth`"
            }
            AuthError::ScopeRefused { .. } => "ask who runs the server which rights your account needs",
            AuthError::Unreachable { .. } | AuthError::Unavailable { .. } => {
                "try again later; what is stored was kept"
            }
            AuthError::Blocked { .. } => {
                "if you trust this address, add \"private-addresses\" to `oauth.tolerate` of the entry"
            }
            AuthError::NoWebAddress { .. } => {
                "it is never opened or asked; ask who runs the server to name a plain https address, or correct `oauth` of the entry"
            }
            AuthError::Insecure { .. } => "ask who runs the server to offer it over https",
            AuthError::NoMetadata { .. } => {
                "it may want a key instead: set `headers`, and `oauth: false` to leave OAuth out"
            }
            AuthError::NotWanted { .. } => "use it as it is; `mcp.debug` shows what it answers",
            AuthError::BadMetadata { .. } | AuthError::BadTokenAnswer(_) => {
                "ask who runs the server; `mcp.debug` shows what it says about itself"
            }
            AuthError::ResourceMismatch { .. } => {
                "check `url` of the entry; if it is right, add \"resource-mismatch\" to `oauth.tolerate`"
            }
            AuthError::IssuerMismatch { .. } => {
                "if you trust this authorization server, add \"issuer-mismatch\" to `oauth.tolerate`"
            }
            AuthError::ForeignIssuer { .. } => {
                "register a client there and set `oauth.clientId` and `oauth.issuer`, or forget the old login first"
            }
            AuthError::NoPkce { .. } => "the authorization server must offer S256 (RFC 7636)",
            AuthError::RegistrationNeeded { .. } => "set `oauth.clientId` and a fixed `oauth.callbackPort`",
            AuthError::RegistrationRefused { .. } => {
                "register a client by hand and set `oauth.clientId` (and `oauth.clientSecret`)"
            }
            AuthError::RedirectBusy { .. } => {
                "end the program that uses the port, or choose another `oauth.callbackPort`"
            }
            AuthError::BadSettings(_) => "correct `oauth` of the entry",
            AuthError::Denied { .. } | AuthError::AuthorizationRefused { .. } => {
                "start the login again with `mcp.auth`"
            }
            AuthError::IssMismatch { .. } => "start the login again; if it repeats, do not trust this server",
            AuthError::StateMismatch => {
                "open the newest address of the login, and paste where the browser ends then"
            }
            AuthError::BadRedirect(_) => "paste the whole address of the page the browser ended on",
            AuthError::Cancelled | AuthError::NoLogin => "start a login with `mcp.auth`",
            AuthError::Foreign => "wait until it has ended; the person at the host can end it",
            AuthError::TokenRefused { error, .. } if error == "invalid_client" => {
                "check `oauth.clientId` and `oauth.clientSecret`"
            }
            AuthError::TokenRefused { .. } => "start the login again with `mcp.auth`",
            AuthError::Store { .. } => "check that the data folder may be written",
        })
    }
}

/// Text of a stranger as it may be shown: one line, no control or direction characters, not too long.
pub(crate) fn shown(text: &str) -> String {
    let harmless = text.chars().filter(|character| {
        !character.is_control()
            && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    });
    let mut shown: String = harmless.take(SHOWN_TEXT).collect();
    if text.chars().count() > SHOWN_TEXT {
        shown.push('…');
    }
    shown
}

/// A URL as it may be shown: without user, query and fragment.
pub(crate) fn shown_url(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = match rest.find('/') {
                Some(at) => rest.split_at(at),
                None => (rest, ""),
            };
            let host = authority.rsplit('@').next().unwrap_or_default();
            shown(&format!("{scheme}://{host}{path}"))
        }
        None => shown(bare),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_no_path() {
        let error = AuthError::Unreachable {
            url: "http://h:1/a/b".to_owned(),
            reason: "see `https://x/y?z`, or (http://w)".to_owned(),
        };
        assert_eq!(
            error.logged(),
            "http://h:1/… cannot be reached: see `https://x/…`, or (http://w)"
        );
    }
}
