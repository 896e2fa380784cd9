//! Where the browser ends after a login (RFC 8252 §7.3), and what it brings from there (RFC 6749 §4.1.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url, form_urlencoded};

use crate::error::{AuthError, shown, shown_url};
use crate::guard;
use crate::secret::Secret;
use crate::settings::Settings;

/// The path of the redirect URI with a fixed port.
const FIXED_PATH: &str = "/mcp/oauth/callback";
/// The path with a random port.
const RANDOM_PATH: &str = "/callback";

/// Where to listen, decided before anything is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The addresses to listen at; the first must work.
    pub addresses: Vec<IpAddr>,
    /// 0: any.
    pub port: u16,
    pub path: String,
    /// The configured redirect URI, exactly as it is registered.
    pub uri: Option<String>,
    /// The browser comes here itself, so its `Host` is ours.
    pub is_direct: bool,
}

impl Plan {
    /// `redirectUri` goes before `callbackPort`, and that before a random port.
    pub fn new(settings: &Settings) -> Result<Plan, AuthError> {
        let Some(uri) = &settings.redirect_uri else {
            return Ok(Plan {
                addresses: vec![Ipv4Addr::LOCALHOST.into()],
                port: settings.callback_port.unwrap_or(0),
                path: match settings.callback_port {
                    Some(_) => FIXED_PATH,
                    None => RANDOM_PATH,
                }
                .to_owned(),
                uri: None,
                is_direct: true,
            });
        };
        let url = redirect_url(uri).map_err(|reason| {
            AuthError::BadSettings(format!("`oauth.redirectUri` `{}` {reason}", shown_url(uri)))
        })?;
        let addresses = match url.host() {
            Some(Host::Ipv6(address)) if address.is_loopback() => vec![Ipv6Addr::LOCALHOST.into()],
            // Browsers try either address for this name.
            Some(Host::Domain("localhost")) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            _ => vec![Ipv4Addr::LOCALHOST.into()],
        };
        Ok(Plan {
            addresses,
            port: url.port_or_known_default().unwrap_or(0),
            path: url.path().to_owned(),
            uri: Some(uri.clone()),
            is_direct: guard::is_loopback(&url),
        })
    }

    /// The redirect URI with the port that was bound.
    pub fn redirect_uri(&self, port: u16) -> String {
        match &self.uri {
            Some(uri) => uri.clone(),
            None => format!("http://127.0.0.1:{port}{}", self.path),
        }
    }
}

/// A redirect URI that may be configured, parsed; else what is wrong with it.
pub fn redirect_url(uri: &str) -> Result<Url, &'static str> {
    let url = Url::parse(uri).map_err(|_| "is no URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must be http or https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not name a user");
    }
    if url.fragment().is_some() {
        return Err("must not have a fragment");
    }
    Ok(url)
}

/// What the browser brought.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub outcome: Outcome,
    /// Who answered (RFC 9207).
    pub iss: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Code(Secret),
    Error { error: String, description: String },
}

/// Why something is not the redirect that is waited for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It belongs to another login.
    State,
    /// It says of no login that it belongs to it.
    NoState,
    /// A parameter is there twice.
    Repeated(&'static str),
    /// Neither a code nor an error.
    Empty,
}

impl Fault {
    /// The same for what a person pasted.
    pub fn into_error(self) -> AuthError {
        match self {
            Fault::State => AuthError::StateMismatch,
            Fault::NoState => AuthError::BadRedirect(
                "the pasted address is not whole: its part `state=` is missing".to_owned(),
            ),
            Fault::Repeated(name) => AuthError::BadRedirect(format!("`{name}` is there twice")),
            Fault::Empty => AuthError::BadRedirect("there is neither a code nor an error in it".to_owned()),
        }
    }
}

impl Redirect {
    /// Reads a query. The state comes first: nothing of a stranger's redirect is used.
    pub fn parse(query: &str, state: &str) -> Result<Redirect, Fault> {
        let one = |name: &'static str| -> Result<Option<String>, Fault> {
            let mut values = form_urlencoded::parse(query.as_bytes())
                .filter(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned());
            let first = values.next();
            match values.next() {
                None => Ok(first),
                Some(_) => Err(Fault::Repeated(name)),
            }
        };
        match one("state")? {
            Some(found) if found == state => {}
            Some(_) => return Err(Fault::State),
            None => return Err(Fault::NoState),
        }
        let iss = one("iss")?;
        let outcome = match (one("error")?, one("code")?) {
            (Some(error), _) => Outcome::Error {
                error: shown(&error),
                description: shown(&one("error_description")?.unwrap_or_default()),
            },
            (None, Some(code)) if !code.is_empty() => Outcome::Code(Secret::new(code)),
            (None, _) => return Err(Fault::Empty),
        };
        Ok(Redirect { outcome, iss })
    }
}

/// What a person pasted: the address the browser ended on, its query, or the code alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pasted {
    Query(String),
    Code(Secret),
}

impl Pasted {
    pub fn new(text: &str) -> Result<Pasted, AuthError> {
        let text = text.trim().trim_matches(['"', '\'', '<', '>']);
        let has = |query: &str, wanted: &[&str]| {
            form_urlencoded::parse(query.as_bytes()).any(|(name, _)| wanted.contains(&&*name))
        };
        let has_parameters = |query: &str| has(query, &["code", "error"]);
        if let Some((_, query)) = text.split_once('?') {
            let query = query.split('#').next().unwrap_or_default();
            if has_parameters(query) {
                return Ok(Pasted::Query(query.to_owned()));
            }
            let message = match has(query, &["response_type"]) {
                true => {
                    "this is the address to open; what is needed is the one the browser ends on after the login"
                }
                false => {
                    "the pasted address is not whole, or another one: there is neither `code=` nor `error=` in it"
                }
            };
            return Err(AuthError::BadRedirect(message.to_owned()));
        }
        if text.contains('=') && has_parameters(text) {
            return Ok(Pasted::Query(text.to_owned()));
        }
        if text.is_empty() || text.contains("://") || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AuthError::BadRedirect(
                "what was pasted is neither an address with a code nor a code".to_owned(),
            ));
        }
        Ok(Pasted::Code(Secret::new(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_redirect_uri_decides_where_to_listen() {
        let plan = |uri: Option<&str>, port: Option<u16>| {
            let mut settings = Settings::new(Url::parse("https://h/mcp").unwrap(), "Pillion");
            settings.redirect_uri = uri.map(str::to_owned);
            settings.callback_port = port;
            Plan::new(&settings)
        };
        assert_eq!(
            plan(None, None).unwrap().redirect_uri(4),
            "http://127.0.0.1:4/callback"
        );
        let fixed = plan(None, Some(19876)).unwrap();
        assert_eq!(
            (fixed.port, fixed.redirect_uri(19876).as_str()),
            (19876, "http://127.0.0.1:19876/mcp/oauth/callback")
        );
        let both = plan(Some("http://[::1]:9/cb?x=1"), Some(5)).unwrap();
        assert_eq!(
            (both.addresses, both.port, both.path.as_str()),
            (vec![Ipv6Addr::LOCALHOST.into()], 9, "/cb")
        );
        let external = plan(Some("https://login.example.com/cb"), None).unwrap();
        assert_eq!((external.port, external.is_direct), (443, false));
        assert_eq!(plan(Some("http://localhost/cb"), None).unwrap().port, 80);
        for bad in [
            "nonsense",
            "ftp://127.0.0.1/",
            "http://u@127.0.0.1/",
            "http://127.0.0.1/#f",
        ] {
            assert!(plan(Some(bad), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_state_comes_first() {
        let fault = |query: &str| Redirect::parse(query, "s").err();
        assert_eq!(fault("code=c&state=x"), Some(Fault::State));
        assert_eq!(fault("code=c"), Some(Fault::NoState));
        assert_eq!(fault("error=access_denied&state=x"), Some(Fault::State));
        assert_eq!(fault("state=s"), Some(Fault::Empty));
        assert_eq!(fault("state=s&code="), Some(Fault::Empty));
        assert_eq!(fault("state=s&state=s&code=c"), Some(Fault::Repeated("state")));
        assert_eq!(fault("state=s&code=c&code=d"), Some(Fault::Repeated("code")));
        let good = Redirect::parse("code=a%20b&state=s&iss=https%3A%2F%2Fas%2F", "s").unwrap();
        assert!(matches!(good.outcome, Outcome::Code(code) if code.expose() == "a b"));
        assert_eq!(good.iss.as_deref(), Some("https://as/"));
    }

    #[test]
    fn people_paste_in_many_ways() {
        let query = |text: &str| match Pasted::new(text) {
            Ok(Pasted::Query(query)) => query,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(
            query(" http://127.0.0.1:1/callback?code=c&state=s#x \n"),
            "code=c&state=s"
        );
        assert_eq!(
            query("<http://127.0.0.1:1/callback?code=c&state=s>"),
            "code=c&state=s"
        );
        assert_eq!(query("code=c&state=s"), "code=c&state=s");
        assert_eq!(
            Pasted::new("4/0Ab=").unwrap(),
            Pasted::Code(Secret::new("4/0Ab="))
        );
        for bad in ["", "http://127.0.0.1/callback", "http://h/?x=1", "two words"] {
            assert!(Pasted::new(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_paste_and_any_query_is_read_without_a_panic(text in "\\PC{0,80}") {
            let _ = Pasted::new(&text);
            let _ = Redirect::parse(&text, "s");
        }
    }
}
