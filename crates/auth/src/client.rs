//! Who we are to an authorization server, and how we prove it (RFC 6749 §2.3, RFC 7523 §2.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::AuthError;
use crate::jwt::SigningKey;
use crate::limits::ASSERTION_SECONDS;
use crate::secret::{self, Secret};
use crate::settings::{AuthMethod, Grant, Settings};
use crate::{clock, pkce};

/// A client as the authorization server knows it. It belongs to one issuer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Client {
    pub id: String,
    /// A secret that a registration returned. One of the entry is taken from there each time and never written down.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "secret::write",
        deserialize_with = "secret::read"
    )]
    pub secret: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<AuthMethod>,
    /// Epoch ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// What it may ask for, where its registration said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default)]
    pub kind: ClientKind,
}

/// Where a client id comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    Configured,
    /// Its id is the URL of a document about it.
    Metadata,
    #[default]
    Dynamic,
}

/// A client with everything it needs for a token request.
pub(crate) struct Credentials {
    id: String,
    secret: Option<Secret>,
    method: AuthMethod,
    key: Option<(SigningKey, Option<String>)>,
    issuer: String,
}

impl Credentials {
    pub fn new(client: &Client, settings: &Settings, issuer: &str) -> Result<Credentials, AuthError> {
        let secret = match client.kind {
            ClientKind::Configured => settings.client_secret.clone(),
            ClientKind::Metadata | ClientKind::Dynamic => client.secret.clone(),
        };
        let key = match &settings.grant {
            Grant::ClientCredentials { key: Some(key) } => {
                Some((SigningKey::from_settings(key)?, key.key_id.clone()))
            }
            _ => None,
        };
        let method = client.method.unwrap_or(match (&key, &secret) {
            (Some(_), _) => AuthMethod::PrivateKeyJwt,
            (None, Some(_)) => AuthMethod::ClientSecretBasic,
            (None, None) => AuthMethod::None,
        });
        Ok(Credentials {
            id: client.id.clone(),
            secret,
            method,
            key,
            issuer: issuer.to_owned(),
        })
    }

    /// Adds to a token request what proves who sends it.
    pub fn add(
        &self,
        form: &mut Vec<(&'static str, String)>,
        headers: &mut HeaderMap,
    ) -> Result<(), AuthError> {
        match (self.method, &self.secret, &self.key) {
            (AuthMethod::ClientSecretBasic, Some(secret), _) => {
                // RFC 6749 §2.3.1: both are form-encoded first.
                let encode = |text: &str| -> String {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let both = format!("{}:{}", encode(&self.id), encode(secret.expose()));
                let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(both)))
                    .map_err(|error| AuthError::BadSettings(error.to_string()))?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            (AuthMethod::ClientSecretPost, Some(secret), _) => {
                form.push(("client_id", self.id.clone()));
                form.push(("client_secret", secret.expose().to_owned()));
            }
            (AuthMethod::PrivateKeyJwt, _, Some((key, key_id))) => {
                let assertion = self.assertion(key, key_id.as_deref())?;
                form.push((
                    "client_assertion_type",
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer".to_owned(),
                ));
                form.push(("client_assertion", assertion));
            }
            (AuthMethod::PrivateKeyJwt, _, None) => {
                return Err(AuthError::BadSettings(
                    "`private_key_jwt` needs `oauth.privateKey`".to_owned(),
                ));
            }
            (AuthMethod::None | AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost, _, _) => {
                form.push(("client_id", self.id.clone()));
            }
        }
        Ok(())
    }

    fn assertion(&self, key: &SigningKey, key_id: Option<&str>) -> Result<String, AuthError> {
        let now = clock::now() / 1000;
        let mut header = json!({"typ": "JWT"});
        if let Some(key_id) = key_id {
            header["kid"] = json!(key_id);
        }
        let claims = json!({
            "iss": self.id,
            "sub": self.id,
            "aud": self.issuer,
            "jti": pkce::random(),
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
        });
        key.sign(header, &claims)
    }
}

/// The method to use, from what was registered and what the server lists (RFC 8414 §2).
pub(crate) fn choose_method(
    settings: &Settings,
    registered: Option<AuthMethod>,
    listed: Option<&[String]>,
    has_secret: bool,
) -> AuthMethod {
    if let Some(method) = settings.auth_method.or(registered) {
        return method;
    }
    if let Grant::ClientCredentials { key: Some(_) } = settings.grant {
        return AuthMethod::PrivateKeyJwt;
    }
    if !has_secret {
        return AuthMethod::None;
    }
    secret_method(listed).unwrap_or(AuthMethod::ClientSecretBasic)
}

/// How to show a secret: the first way that the server lists. RFC 8414 gives the order no meaning, but the MCP SDK for
/// Python lists `client_secret_basic` last, and takes it only from clients that repeat their id in the form.
pub(crate) fn secret_method(listed: Option<&[String]>) -> Option<AuthMethod> {
    let ways = [AuthMethod::ClientSecretBasic, AuthMethod::ClientSecretPost];
    let mut names = listed.unwrap_or_default().iter();
    names.find_map(|name| ways.into_iter().find(|way| way.name() == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    fn settings() -> Settings {
        Settings::new(Url::parse("https://h/mcp").unwrap(), "Pillion")
    }

    #[test]
    fn the_order_of_the_list_counts_and_what_was_registered_holds() {
        let list = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let post = list(&["client_secret_post"]);
        let both = list(&["client_secret_post", "client_secret_basic"]);
        let choose = |registered, listed: Option<&[String]>, secret| {
            choose_method(&settings(), registered, listed, secret)
        };
        assert_eq!(choose(None, None, true), AuthMethod::ClientSecretBasic);
        assert_eq!(choose(None, Some(&both), true), AuthMethod::ClientSecretPost);
        assert_eq!(choose(None, Some(&post), true), AuthMethod::ClientSecretPost);
        assert_eq!(choose(None, Some(&post), false), AuthMethod::None);
        assert_eq!(
            choose(Some(AuthMethod::None), Some(&post), true),
            AuthMethod::None
        );
    }

    #[test]
    fn id_and_secret_are_encoded_before_they_are_joined() {
        let mut settings = settings();
        settings.client_secret = Some(Secret::new("s:e c"));
        let client = Client {
            id: "a/b".to_owned(),
            secret: None,
            method: Some(AuthMethod::ClientSecretBasic),
            secret_expires_at: None,
            redirect_uri: None,
            scope: None,
            kind: ClientKind::Configured,
        };
        let credentials = Credentials::new(&client, &settings, "https://as").unwrap();
        let (mut form, mut headers) = (Vec::new(), HeaderMap::new());
        credentials.add(&mut form, &mut headers).unwrap();
        assert!(form.is_empty());
        let value = headers[AUTHORIZATION]
            .to_str()
            .unwrap()
            .strip_prefix("Basic ")
            .unwrap();
        assert_eq!(STANDARD.decode(value).unwrap(), b"a%2Fb:s%3Ae+c");
        let stored = serde_json::to_string(&client).unwrap();
        assert!(!stored.contains("s:e"), "{stored}");
    }
}
