//! From a server's challenge to the endpoints of its authorization server (MCP, Authorization Server Discovery).
//!
//! First the server describes itself ([`resource`], RFC 9728), then the authorization server it names ([`issuer`], RFC 8414
//! and OpenID Connect Discovery). A server that describes nothing is its own authorization server (MCP 2025-03-26).

pub(crate) mod issuer;
pub(crate) mod resource;

use url::Url;

use crate::challenge::Challenge;
use crate::error::{AuthError, shown, shown_url};
use crate::guard::Reach;
use crate::limits::AUTHORIZATION_SERVERS;
use crate::settings::Settings;
use crate::web::Web;
use issuer::Issuer;

/// What is known before a login begins.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    /// The resource exactly as its metadata spells it.
    pub resource: Option<String>,
    /// The scopes of the resource's metadata.
    pub scopes: Vec<String>,
    /// The resource takes only tokens that are bound to a key (RFC 9728 §2).
    pub bound_tokens: bool,
    pub issuer: Issuer,
}

/// What was looked at, for people who look for a fault.
#[derive(Debug, Default)]
pub struct Trail {
    pub steps: Vec<Step>,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Step {
    pub url: String,
    pub is_good: bool,
    pub outcome: String,
}

impl Trail {
    pub(crate) fn good(&mut self, url: &Url, outcome: impl Into<String>) {
        self.push(url, true, outcome.into());
    }

    pub(crate) fn bad(&mut self, url: &Url, outcome: impl Into<String>) {
        self.push(url, false, outcome.into());
    }

    fn push(&mut self, url: &Url, is_good: bool, outcome: String) {
        self.steps.push(Step {
            url: shown_url(url.as_str()),
            is_good,
            outcome: shown(&outcome),
        });
    }
}

/// Finds the authorization server of a server. `known` is the issuer of a stored login: it is preferred where several are named.
pub(crate) async fn discover(
    web: &Web,
    settings: &Settings,
    challenge: Option<&Challenge>,
    known: Option<&str>,
    trail: &mut Trail,
) -> Result<Discovered, AuthError> {
    let reach = reach(settings);
    let described = resource::find(web, settings, challenge, &reach, trail).await?;
    let Some(described) = described else {
        let issuer = issuer::own(web, settings, &reach, trail).await?;
        return Ok(Discovered {
            resource: None,
            scopes: Vec::new(),
            bound_tokens: false,
            issuer: configured(settings, issuer)?,
        });
    };
    let issuer = if described.authorization_servers.is_empty() {
        issuer::own(web, settings, &reach, trail).await?
    } else {
        let named = &described.authorization_servers;
        let found = first_usable(web, settings, named, known, &reach, trail).await;
        match (found, &settings.token_endpoint, named.first()) {
            // Without a document, what is configured is enough.
            (Err(AuthError::NoMetadata { .. }), Some(endpoint), Some(issuer)) => {
                issuer::bare(issuer.clone(), endpoint_of("tokenEndpoint", endpoint)?)
            }
            (found, _, _) => found?,
        }
    };
    Ok(Discovered {
        resource: Some(described.resource),
        scopes: described.scopes,
        bound_tokens: described.bound_tokens,
        issuer: configured(settings, issuer)?,
    })
}

/// How far requests for this server may go.
pub(crate) fn reach(settings: &Settings) -> Reach {
    Reach::new(&settings.server_url, settings.tolerates("private-addresses")).over(settings.network.clone())
}

/// Tries the named authorization servers, the wanted one first.
async fn first_usable(
    web: &Web,
    settings: &Settings,
    named: &[String],
    known: Option<&str>,
    reach: &Reach,
    trail: &mut Trail,
) -> Result<Issuer, AuthError> {
    let mut issuers: Vec<&String> = named.iter().take(AUTHORIZATION_SERVERS).collect();
    if let Some(wanted) = settings.issuer.as_deref() {
        issuers.retain(|issuer| issuer::is_same(issuer, wanted));
        if issuers.is_empty() {
            return Err(AuthError::ForeignIssuer {
                known: shown(wanted),
                found: shown(&named[0]),
            });
        }
    }
    // A stable sort: the order of the server stays otherwise.
    issuers.sort_by_key(|issuer| known != Some(issuer.as_str()));
    let mut first_error = None;
    for issuer in issuers {
        match issuer::find(web, settings, issuer, reach, trail).await {
            Ok(found) => return Ok(found),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(AuthError::LoginNeeded))
}

/// A configured client is shown to the issuer that gave it out, and to nobody else.
fn configured(settings: &Settings, mut issuer: Issuer) -> Result<Issuer, AuthError> {
    if let Some(endpoint) = &settings.authorization_endpoint {
        issuer.authorization_endpoint = Some(endpoint_of("authorizationEndpoint", endpoint)?);
    }
    if let Some(endpoint) = &settings.token_endpoint {
        issuer.token_endpoint = endpoint_of("tokenEndpoint", endpoint)?;
    }
    match settings.issuer.as_deref() {
        Some(wanted) if !issuer::is_same(wanted, &issuer.issuer) => Err(AuthError::ForeignIssuer {
            known: shown(wanted),
            found: shown(&issuer.issuer),
        }),
        _ => Ok(issuer),
    }
}

/// An endpoint that a person configured.
fn endpoint_of(member: &str, text: &str) -> Result<Url, AuthError> {
    let url = Url::parse(text)
        .map_err(|error| AuthError::BadSettings(format!("`oauth.{member}` is no URL: {error}")))?;
    crate::guard::is_web("the endpoint of the entry", &url)?;
    Ok(url)
}
