//! Becoming known to an authorization server (MCP, Client Registration Approaches): a configured client, a client id metadata
//! document, dynamic registration (RFC 7591), in this order.

use http::HeaderMap;
use serde_json::{Value, json};
use url::Url;

use crate::client::{self, Client, ClientKind};
use crate::clock;
use crate::discovery;
use crate::discovery::issuer::Issuer;
use crate::error::{AuthError, shown, shown_url};
use crate::guard;
use crate::limits::EXCHANGE;
use crate::scope::covers;
use crate::secret::Secret;
use crate::settings::{AuthMethod, Grant, Settings};
use crate::token::seconds;
use crate::web::Web;

/// The client to log in with, and to ask for this scope. `stored` is a registration with this very issuer.
pub(crate) async fn client(
    web: &Web,
    settings: &Settings,
    issuer: &Issuer,
    stored: Option<&Client>,
    redirect_uri: Option<&str>,
    scope: &str,
) -> Result<Client, AuthError> {
    if let Some(client) = known(settings, issuer, redirect_uri)? {
        return Ok(client);
    }
    let is_kept = |client: &&Client| {
        client.kind == ClientKind::Dynamic
            && client.redirect_uri.as_deref() == redirect_uri
            && client.secret_expires_at.is_none_or(|at| at > clock::now())
            && client.scope.as_deref().is_none_or(|known| covers(known, scope))
    };
    if let Some(client) = stored.filter(is_kept) {
        return Ok(client.clone());
    }
    match &issuer.registration_endpoint {
        Some(endpoint) => register(web, settings, issuer, endpoint, redirect_uri, scope).await,
        None => Err(AuthError::RegistrationNeeded {
            redirect_uri: redirect_uri.unwrap_or_default().to_owned(),
        }),
    }
}

/// A client that need not be registered now.
pub(crate) fn known(
    settings: &Settings,
    issuer: &Issuer,
    redirect_uri: Option<&str>,
) -> Result<Option<Client>, AuthError> {
    let make = |id: &str, kind: ClientKind, has_secret: bool| Client {
        id: id.to_owned(),
        secret: None,
        method: Some(client::choose_method(
            settings,
            None,
            issuer.auth_methods.as_deref(),
            has_secret,
        )),
        secret_expires_at: None,
        redirect_uri: redirect_uri.map(str::to_owned),
        scope: None,
        kind,
    };
    if let Some(id) = &settings.client_id {
        return Ok(Some(make(
            id,
            ClientKind::Configured,
            settings.client_secret.is_some(),
        )));
    }
    let Some(document) = &settings.client_metadata_url else {
        return Ok(None);
    };
    check_document(document)?;
    Ok(issuer
        .client_metadata
        .then(|| make(document, ClientKind::Metadata, false)))
}

/// The rules for a client id that is a URL (draft-ietf-oauth-client-id-metadata-document §3).
fn check_document(document: &str) -> Result<(), AuthError> {
    let bad = |reason: &str| {
        AuthError::BadSettings(format!(
            "`oauth.clientMetadataUrl` `{}` {reason}",
            shown_url(document)
        ))
    };
    let url = Url::parse(document).map_err(|_| bad("is no URL"))?;
    guard::is_web("`oauth.clientMetadataUrl`", &url)?;
    if url.scheme() != "https" {
        return Err(bad("must be https"));
    }
    if url.path() == "/" {
        return Err(bad("must have a path"));
    }
    Ok(())
}

async fn register(
    web: &Web,
    settings: &Settings,
    issuer: &Issuer,
    endpoint: &Url,
    redirect_uri: Option<&str>,
    scope: &str,
) -> Result<Client, AuthError> {
    let reach = discovery::reach(settings);
    let mut body = request(settings, issuer, redirect_uri, scope);
    let post = async |body: &Value| {
        let headers = HeaderMap::new();
        web.post_json("registration_endpoint", endpoint, body, headers, &reach, EXCHANGE)
            .await
    };
    let mut answer = post(&body).await?;
    if answer.status == 400 && !body["scope"].is_null() {
        // Some take any scope later, and none now.
        body = request(settings, issuer, redirect_uri, "");
        answer = post(&body).await?;
    }
    if issuer.is_guessed && matches!(answer.status, 404 | 405) {
        return Err(AuthError::NoMetadata {
            tried: shown_url(settings.server_url.as_str()),
        });
    }
    let document = answer.json().unwrap_or_default();
    let text = |name: &str| document[name].as_str().filter(|text| !text.is_empty());
    // Some answer 200 instead of 201, and some an error with status 200.
    let Some(id) = text("client_id").filter(|_| answer.is_success()) else {
        if matches!(answer.status, 429 | 500..) {
            return Err(AuthError::Unavailable {
                url: shown_url(endpoint.as_str()),
                status: answer.status,
            });
        }
        let reason = [text("error"), text("error_description")].into_iter().flatten();
        let reason = reason.collect::<Vec<_>>().join(": ");
        return Err(AuthError::RegistrationRefused {
            status: answer.status,
            reason: match reason.as_str() {
                "" => "the answer names no client id".to_owned(),
                reason => shown(reason),
            },
        });
    };
    let secret = text("client_secret");
    let registered = text("token_endpoint_auth_method").and_then(AuthMethod::from_name);
    let expires_at = seconds(&document["client_secret_expires_at"]).filter(|at| *at > 0);
    Ok(Client {
        id: id.to_owned(),
        secret: secret.map(Secret::new),
        method: Some(client::choose_method(
            settings,
            registered,
            issuer.auth_methods.as_deref(),
            secret.is_some(),
        )),
        secret_expires_at: expires_at.map(|at| at * 1000),
        redirect_uri: redirect_uri.map(str::to_owned),
        scope: body["scope"].as_str().map(str::to_owned),
        kind: ClientKind::Dynamic,
    })
}

/// What we say about ourselves (RFC 7591 §2). The scope is what the login will ask for: some let a client ask for
/// nothing that it was not registered with, such as the MCP SDK for Python.
fn request(settings: &Settings, issuer: &Issuer, redirect_uri: Option<&str>, scope: &str) -> Value {
    let is_external = redirect_uri
        .and_then(|uri| Url::parse(uri).ok())
        .is_some_and(|uri| !guard::is_loopback(&uri));
    let listed = issuer.auth_methods.as_deref();
    let takes_none = listed.is_none_or(|names| names.iter().any(|name| name == AuthMethod::None.name()));
    let method = settings
        .auth_method
        .or_else(|| client::secret_method(listed).filter(|_| !takes_none))
        .unwrap_or(AuthMethod::None);
    let mut request = json!({
        "client_name": settings.client_name,
        "token_endpoint_auth_method": method.name(),
        "application_type": if is_external { "web" } else { "native" },
    });
    match (&settings.grant, redirect_uri) {
        (Grant::DeviceCode, _) => {
            request["grant_types"] = json!([crate::grants::DEVICE_CODE, "refresh_token"]);
        }
        (_, redirect_uri) => {
            request["grant_types"] = json!(["authorization_code", "refresh_token"]);
            request["response_types"] = json!(["code"]);
            request["redirect_uris"] = json!([redirect_uri]);
        }
    }
    if !scope.is_empty() {
        request["scope"] = json!(scope);
    }
    request
}
