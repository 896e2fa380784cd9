//! Authorization server metadata (RFC 8414; OpenID Connect Discovery 1.0 §4): its endpoints and what it can do.

use serde_json::Value;
use url::Url;

use super::Trail;
use super::resource::strings;
use crate::error::{AuthError, shown, shown_url};
use crate::guard::{self, Reach};
use crate::settings::{Grant, Settings};
use crate::web::Web;

const WHAT: &str = "the authorization server";

/// An authorization server as its checked metadata describes it.
#[derive(Clone, Debug)]
pub(crate) struct Issuer {
    /// Exactly as the document spells it: answers are compared with this, byte by byte (RFC 9207 §2.4).
    pub issuer: String,
    /// There is no document: these are the default endpoints of MCP 2025-03-26.
    pub is_guessed: bool,
    pub authorization_endpoint: Option<Url>,
    pub token_endpoint: Url,
    pub registration_endpoint: Option<Url>,
    pub revocation_endpoint: Option<Url>,
    pub device_authorization_endpoint: Option<Url>,
    pub scopes: Option<Vec<String>>,
    pub response_types: Option<Vec<String>>,
    pub auth_methods: Option<Vec<String>>,
    pub challenge_methods: Option<Vec<String>>,
    /// Takes the URL of a document as client id.
    pub client_metadata: bool,
    /// Names itself in the answer to an authorization request (RFC 9207 §3).
    pub names_itself: bool,
}

/// Reads the metadata of an issuer, in the order that MCP prescribes.
pub(crate) async fn find(
    web: &Web,
    settings: &Settings,
    issuer: &str,
    reach: &Reach,
    trail: &mut Trail,
) -> Result<Issuer, AuthError> {
    let url = Url::parse(issuer).map_err(|error| AuthError::BadMetadata {
        url: shown(issuer),
        reason: format!("the issuer is no URL: {error}"),
    })?;
    reach.check(WHAT, &url)?;
    let wanted = Wanted {
        issuer,
        settings,
        reach,
    };
    match wanted.look(web, &places(&url), trail).await? {
        Some(found) => Ok(found),
        None => Err(AuthError::NoMetadata {
            tried: shown_url(issuer),
        }),
    }
}

/// The server's own origin as authorization server (MCP 2025-03-26, Server Metadata Discovery and its fallback).
pub(crate) async fn own(
    web: &Web,
    settings: &Settings,
    reach: &Reach,
    trail: &mut Trail,
) -> Result<Issuer, AuthError> {
    let origin = settings.server_url.origin().ascii_serialization();
    let url = Url::parse(&origin).map_err(|error| AuthError::BadSettings(error.to_string()))?;
    let wanted = Wanted {
        issuer: &origin,
        settings,
        reach,
    };
    if let Some(found) = wanted.look(web, &places(&url), trail).await? {
        return Ok(found);
    }
    let endpoint = |path: &str| {
        url.join(path)
            .map_err(|error| AuthError::BadSettings(error.to_string()))
    };
    Ok(Issuer {
        authorization_endpoint: Some(endpoint("/authorize")?),
        registration_endpoint: Some(endpoint("/register")?),
        ..bare(origin, endpoint("/token")?)
    })
}

/// An authorization server without a document, of which nothing but the token endpoint is known.
pub(crate) fn bare(issuer: String, token_endpoint: Url) -> Issuer {
    Issuer {
        issuer,
        is_guessed: true,
        authorization_endpoint: None,
        token_endpoint,
        registration_endpoint: None,
        revocation_endpoint: None,
        device_authorization_endpoint: None,
        scopes: None,
        response_types: None,
        auth_methods: None,
        challenge_methods: None,
        client_metadata: false,
        names_itself: false,
    }
}

/// Whether two spellings name the same issuer. Only a slash after the bare origin may differ: both name the same URL, and
/// large public servers differ in exactly this.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let bare = |text: &str| {
        Url::parse(text)
            .is_ok_and(|url| url.path() == "/" && url.query().is_none() && url.fragment().is_none())
    };
    one == other || (bare(one) && bare(other) && one.trim_end_matches('/') == other.trim_end_matches('/'))
}

/// RFC 8414 §3.1 with the path inserted, then OpenID with the path inserted and appended.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/').to_owned();
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    let mut places = vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        places.push(at(format!("{path}/.well-known/openid-configuration")));
    }
    places
}

struct Wanted<'a> {
    issuer: &'a str,
    settings: &'a Settings,
    reach: &'a Reach,
}

impl Wanted<'_> {
    async fn look(&self, web: &Web, places: &[Url], trail: &mut Trail) -> Result<Option<Issuer>, AuthError> {
        let mut first_error = None;
        for url in places {
            let answer = match web.get(WHAT, url, self.reach).await {
                Ok(answer) => answer,
                Err(error) => {
                    trail.bad(url, error.to_string());
                    return Err(error);
                }
            };
            if answer.status >= 500 && answer.status != 502 {
                trail.bad(url, format!("HTTP status {}", answer.status));
                return Err(AuthError::Unavailable {
                    url: shown_url(url.as_str()),
                    status: answer.status,
                });
            }
            if !answer.is_success() {
                trail.bad(url, format!("HTTP status {}", answer.status));
                continue;
            }
            let Some(document) = answer.json().filter(Value::is_object) else {
                trail.bad(url, "no authorization server metadata");
                continue;
            };
            match self.read(url, &document) {
                Ok(found) => {
                    trail.good(url, format!("issuer `{}`", found.issuer));
                    return Ok(Some(found));
                }
                Err(error) => {
                    trail.bad(url, error.to_string());
                    first_error = first_error.or(Some(error));
                }
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    fn read(&self, url: &Url, document: &Value) -> Result<Issuer, AuthError> {
        let bad = |reason: String| AuthError::BadMetadata {
            url: shown_url(url.as_str()),
            reason,
        };
        let text = |name: &str| document[name].as_str();
        let issuer = text("issuer").ok_or_else(|| bad("it names no issuer".to_owned()))?;
        if !is_same(issuer, self.issuer) && !self.settings.tolerates("issuer-mismatch") {
            return Err(AuthError::IssuerMismatch {
                wanted: shown(self.issuer),
                found: shown(issuer),
            });
        }
        let endpoint = |name: &'static str| -> Result<Option<Url>, AuthError> {
            let Some(value) = text(name) else {
                return Ok(None);
            };
            let url = Url::parse(value).map_err(|error| bad(format!("its {name} is no URL: {error}")))?;
            Ok(Some(url))
        };
        // What the browser opens need not be reachable from here, what we ask ourselves must be.
        let asked = |name: &'static str| -> Result<Option<Url>, AuthError> {
            let url = endpoint(name)?;
            if let Some(url) = &url {
                self.reach.check(name, url)?;
            }
            Ok(url)
        };
        let authorization_endpoint = endpoint("authorization_endpoint")?;
        if let Some(url) = &authorization_endpoint {
            guard::is_web("authorization_endpoint", url)?;
        }
        let found = Issuer {
            issuer: issuer.to_owned(),
            is_guessed: false,
            authorization_endpoint,
            token_endpoint: asked("token_endpoint")?
                .ok_or_else(|| bad("it names no token_endpoint".to_owned()))?,
            registration_endpoint: asked("registration_endpoint")?,
            revocation_endpoint: asked("revocation_endpoint").unwrap_or_default(),
            device_authorization_endpoint: asked("device_authorization_endpoint")?,
            scopes: strings(&document["scopes_supported"]),
            response_types: strings(&document["response_types_supported"]),
            auth_methods: strings(&document["token_endpoint_auth_methods_supported"]),
            challenge_methods: strings(&document["code_challenge_methods_supported"]),
            client_metadata: document["client_id_metadata_document_supported"] == true,
            names_itself: document["authorization_response_iss_parameter_supported"] == true,
        };
        if matches!(self.settings.grant, Grant::AuthorizationCode) {
            found.can_log_in_people(&bad)?;
        }
        Ok(found)
    }
}

impl Issuer {
    fn can_log_in_people(&self, bad: &dyn Fn(String) -> AuthError) -> Result<(), AuthError> {
        if self.authorization_endpoint.is_none() {
            return Err(bad("it names no authorization_endpoint".to_owned()));
        }
        if let Some(types) = &self.response_types
            && !types.iter().any(|name| name == "code")
        {
            return Err(bad("it does not support the response type `code`".to_owned()));
        }
        match &self.challenge_methods {
            Some(methods) if !methods.iter().any(|method| method == "S256") => Err(AuthError::NoPkce {
                listed: shown(&methods.join(", ")),
            }),
            _ => Ok(()),
        }
    }

    /// The endpoints by their names in the metadata, as they may be shown.
    pub fn endpoints(&self) -> Vec<(&'static str, String)> {
        [
            ("authorization_endpoint", self.authorization_endpoint.as_ref()),
            ("token_endpoint", Some(&self.token_endpoint)),
            ("registration_endpoint", self.registration_endpoint.as_ref()),
            ("revocation_endpoint", self.revocation_endpoint.as_ref()),
            (
                "device_authorization_endpoint",
                self.device_authorization_endpoint.as_ref(),
            ),
        ]
        .into_iter()
        .filter_map(|(name, url)| Some((name, shown_url(url?.as_str()))))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_may_differ_in_the_slash_of_its_origin_only() {
        let rows = [
            ("https://as", "https://as", true),
            ("https://as/", "https://as", true),
            ("https://as/t", "https://as/t/", false),
            ("https://as", "https://AS", false),
            ("https://as", "https://as:443", false),
            ("https://as", "https://as//", false),
            ("https://as", "https://as?x", false),
        ];
        for (one, other, expected) in rows {
            assert_eq!(is_same(one, other), expected, "{one} {other}");
            assert_eq!(is_same(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn a_path_is_inserted_before_it_is_appended() {
        let places = |issuer: &str| -> Vec<String> {
            super::places(&Url::parse(issuer).unwrap())
                .into_iter()
                .map(String::from)
                .collect()
        };
        assert_eq!(
            places("https://as/tenant1/"),
            [
                "https://as/.well-known/oauth-authorization-server/tenant1",
                "https://as/.well-known/openid-configuration/tenant1",
                "https://as/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places("https://as"),
            [
                "https://as/.well-known/oauth-authorization-server",
                "https://as/.well-known/openid-configuration",
            ]
        );
    }
}
