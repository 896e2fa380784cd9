//! The grants that bring a token: one file for each that needs more than one request.

pub(crate) mod device;
pub(crate) mod enterprise;

use std::sync::Arc;

use url::Url;

use crate::authorizer::Shared;
use crate::client::{Client, ClientKind, Credentials};
use crate::clock;
use crate::discovery::{self, Discovered};
use crate::error::AuthError;
use crate::guard::Reach;
use crate::jwt::SigningKey;
use crate::registration;
use crate::secret::Secret;
use crate::settings::{Grant, Key, Resource, Settings};
use crate::store::Record;
use crate::token::{Token, TokenEndpoint};

pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// All that a grant is made with.
pub(crate) struct Context {
    pub shared: Arc<Shared>,
    pub settings: Arc<Settings>,
    pub discovered: Discovered,
    pub client: Option<Client>,
    pub scope: String,
    /// Tokens will be bound to this key.
    pub dpop_key: Option<Secret>,
}

impl Context {
    pub fn reach(&self) -> Reach {
        discovery::reach(&self.settings)
    }

    /// The resource indicator to send with every request (RFC 8707 §2).
    pub fn resource(&self) -> Option<String> {
        match &self.settings.resource {
            Resource::Omitted => None,
            Resource::Fixed(resource) => Some(resource.clone()),
            Resource::AsPublished => Some(
                self.discovered
                    .resource
                    .clone()
                    .unwrap_or_else(|| canonical(&self.settings.server_url)),
            ),
        }
    }

    /// Adds scope and resource to a request.
    pub fn indicate(&self, form: &mut Vec<(&'static str, String)>) {
        if !self.scope.is_empty() {
            form.push(("scope", self.scope.clone()));
        }
        form.extend(self.resource().map(|resource| ("resource", resource)));
    }

    pub fn credentials(&self) -> Result<Option<Credentials>, AuthError> {
        let issuer = &self.discovered.issuer.issuer;
        let client = self.client.as_ref();
        client
            .map(|client| Credentials::new(client, &self.settings, issuer))
            .transpose()
    }

    /// One request to the token endpoint of the discovered authorization server.
    pub async fn token(&self, form: Vec<(&'static str, String)>) -> Result<Token, AuthError> {
        let credentials = self.credentials()?;
        let key = self.dpop_key.as_ref().and_then(SigningKey::from_stored);
        let reach = self.reach();
        let endpoint = TokenEndpoint {
            web: &self.shared.web,
            url: &self.discovered.issuer.token_endpoint,
            reach: &reach,
            credentials: credentials.as_ref(),
            key: key.as_ref(),
            nonces: &self.shared.nonces,
        };
        endpoint.token(form).await
    }

    /// Stores what a grant brought. It replaces whatever was there: the newest login counts.
    pub async fn store(&self, token: Token) -> Result<Record, AuthError> {
        let issuer = &self.discovered.issuer;
        let new = Record {
            issuer: Some(issuer.issuer.clone()),
            resource: self.resource(),
            client: self.client.clone(),
            token_endpoint: Some(issuer.token_endpoint.to_string()),
            revocation_endpoint: issuer.revocation_endpoint.as_ref().map(Url::to_string),
            expires_at: token.expires_in.map(|seconds| clock::now() + seconds * 1000),
            scope: Some(token.scope.unwrap_or_else(|| self.scope.clone())).filter(|scope| !scope.is_empty()),
            asked_scope: Some(self.scope.clone()).filter(|scope| !scope.is_empty()),
            dpop_key: self.dpop_key.clone(),
            bound: token.is_bound,
            access_token: Some(token.access_token),
            refresh_token: token.refresh_token,
            rest: serde_json::Map::new(),
        };
        let change = move |record: &mut Record| {
            let rest = std::mem::take(&mut record.rest);
            *record = Record { rest, ..new };
        };
        self.shared.store.change(&self.settings.key(), change).await
    }
}

/// The canonical spelling of a server's URL (MCP, Canonical Server URI): no slash after a bare origin.
fn canonical(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    match (url.path(), url.query()) {
        ("/", None) => url.as_str().trim_end_matches('/').to_owned(),
        _ => url.into(),
    }
}

/// Gets a token for a grant that needs nobody, and stores it.
pub(crate) async fn acquire(shared: Arc<Shared>, settings: Arc<Settings>) -> Result<Record, AuthError> {
    let key = settings.key();
    let mut trail = discovery::Trail::default();
    let challenge = shared.challenge(&key);
    let known = shared.store.read(&key).and_then(|record| record.issuer);
    let discovered = discovery::discover(
        &shared.web,
        &settings,
        challenge.as_ref(),
        known.as_deref(),
        &mut trail,
    )
    .await?;
    let client = registration::known(&settings, &discovered.issuer, None)?;
    let client = client.filter(|client| client.kind == ClientKind::Configured);
    let needs_client = !matches!(settings.grant, Grant::JwtBearer { .. });
    if client.is_none() && needs_client {
        return Err(AuthError::BadSettings(
            "this grant needs `oauth.clientId`".to_owned(),
        ));
    }
    let scope = scope(&shared, &settings, &discovered, &key);
    let context = context(shared, settings, discovered, client, scope);
    let mut form = match &context.settings.grant {
        Grant::ClientCredentials { .. } => vec![("grant_type", "client_credentials".to_owned())],
        Grant::JwtBearer { assertion } => jwt_bearer(assertion),
        Grant::Enterprise(enterprise) => jwt_bearer(&enterprise::assertion(&context, enterprise).await?),
        Grant::AuthorizationCode | Grant::DeviceCode => return Err(AuthError::LoginNeeded),
    };
    context.indicate(&mut form);
    let token = context.token(form).await?;
    context.store(token).await
}

fn jwt_bearer(assertion: &Secret) -> Vec<(&'static str, String)> {
    vec![
        ("grant_type", JWT_BEARER.to_owned()),
        ("assertion", assertion.expose().to_owned()),
    ]
}

/// The scope to ask for.
pub(crate) fn scope(shared: &Shared, settings: &Settings, discovered: &Discovered, key: &Key) -> String {
    let challenge = shared.challenge(key);
    let wants_more = challenge.as_ref().and_then(|challenge| challenge.error()) == Some("insufficient_scope");
    let earlier = shared
        .store
        .read(key)
        .filter(|record| wants_more && record.issuer.as_deref() == Some(discovered.issuer.issuer.as_str()))
        .map(|record| record.known_scope());
    crate::scope::choose(&crate::scope::Wishes {
        configured: settings.scope.as_deref(),
        challenged: challenge.as_ref().and_then(|challenge| challenge.scope()),
        earlier: earlier.as_deref(),
        resource: &discovered.scopes,
        issuer: discovered.issuer.scopes.as_deref(),
    })
}

/// Brings together what a grant needs; decides whether tokens are bound.
pub(crate) fn context(
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    discovered: Discovered,
    client: Option<Client>,
    scope: String,
) -> Context {
    let dpop_key = (settings.dpop || discovered.bound_tokens).then(SigningKey::generate);
    Context {
        shared,
        settings,
        discovered,
        client,
        scope,
        dpop_key,
    }
}
