//! The login of one server: what is needed, whose tokens its requests carry, and waiting for a person meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use auth::{
    AuthError, AuthMethod, Enterprise, Grant, Key, Resource, Secret, Settings, SigningSettings, Verdict,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method};
use mcp::CallError;
use protocol::{
    ChangeReason, Error, ErrorKind, GrantType, LogLevel, LogSource, OAuth, OauthSetting, ResourceSetting,
    ServerEntry, Tier, TokenEndpointAuthMethod,
};
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

use super::Server;
use super::launch::{self, Origin};
use super::network::{self, Network};
use super::state::{Failure, State};
use super::veil::Veil;
use crate::config::expand::Expander;
use crate::config::secret;
use crate::core::Core;
use crate::error::{auth_error, call_error};
use crate::limits;

/// What is known about the login of a server.
pub(crate) struct Login {
    known: Mutex<Known>,
    /// Counts what happens to the login, for those who wait.
    news: watch::Sender<u64>,
}

#[derive(Default)]
struct Known {
    /// Why a running server needs one.
    need: Option<Failure>,
    /// Why a request was refused last.
    refusal: Option<Error>,
    /// What was stored when it was looked at last.
    seen: Option<Seen>,
}

/// A login that is stored, as far as it can be told apart from another one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    is_usable: bool,
    fingerprint: u64,
}

impl Default for Login {
    fn default() -> Login {
        Login {
            known: Mutex::default(),
            news: watch::Sender::new(0),
        }
    }
}

impl Login {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Why the last request was refused, in the words of the one who knows.
    pub fn refusal(&self) -> Option<Error> {
        self.known().refusal.clone()
    }
}

impl Server {
    /// What its login is stored under; `None` for servers that have none.
    pub fn login_key(&self) -> Option<Key> {
        let entry = self.entry();
        if matches!(entry.oauth, Some(OauthSetting::Off(_))) {
            return None;
        }
        let lookup = |name: &str| self.core.reference(&self.base, name);
        let mut expander = Expander::new(&lookup);
        let url = Url::parse(&expander.text(entry.url.as_ref()?)).ok()?;
        if !expander.unset().is_empty() {
            return None;
        }
        let account = self.core.settings().account(entry.account.as_deref());
        Some(Key::new(&url, account.as_deref()))
    }

    /// What is stored of its login.
    pub fn stored_login(&self) -> Option<auth::Stored> {
        self.core.authorizer().stored(&self.login_key()?)
    }

    /// Whether a person is logging in at this moment.
    pub fn is_authorizing(&self) -> bool {
        self.login_key()
            .is_some_and(|key| self.core.authorizer().is_pending(&key))
    }

    fn seen_now(&self) -> Option<Seen> {
        self.stored_login().map(|stored| Seen {
            is_usable: stored.is_usable(),
            fingerprint: stored.fingerprint,
        })
    }

    /// Whether another process logged in since this one looked.
    pub fn has_new_login(&self) -> bool {
        let now = self.seen_now();
        now.is_some_and(|now| now.is_usable) && self.login.known().seen != now
    }

    /// Takes note of what another process did to the login.
    pub fn notice_login(self: &Arc<Self>) {
        let is_new = self.has_new_login();
        let now = self.seen_now();
        let before = std::mem::replace(&mut self.login.known().seen, now);
        let is_usable = |seen: Option<Seen>| seen.is_some_and(|seen| seen.is_usable);
        if is_new && self.needs_login() {
            self.logged_in();
        } else if is_usable(before) != is_usable(now) {
            self.login_moved();
        }
    }

    /// Whether it does not work for want of a login.
    pub fn needs_login(&self) -> bool {
        matches!(self.state(), State::NeedsAuth { .. }) || self.login.known().need.is_some()
    }

    /// Why it needs a login although it runs. Tokens that are stored already and take effect in a moment are enough.
    pub fn login_need(&self) -> Option<Failure> {
        let need = self.login.known().need.clone()?;
        (!self.has_new_login()).then_some(need)
    }

    /// A login has begun, or its start failed.
    pub fn login_moved(self: &Arc<Self>) {
        self.login.tell();
        self.changed(ChangeReason::Auth);
    }

    /// A login was made, here or by another process: whoever waits goes on, and a server that stands still for it starts.
    pub fn logged_in(self: &Arc<Self>) {
        let seen = self.seen_now();
        {
            let mut known = self.login.known();
            known.need = None;
            known.refusal = None;
            known.seen = seen;
        }
        self.login_moved();
        match self.state() {
            State::Ready { connection, .. } => super::runner::greet(self, &connection),
            State::Connecting | State::Backoff { .. } => {}
            State::Stopped | State::NeedsAuth { .. } | State::Failed { .. } => {
                let server = Arc::clone(self);
                // A failure shows in the status.
                tokio::spawn(async move { drop(server.start(Tier::Local).await) });
            }
        }
    }

    /// A login ended without tokens.
    pub fn login_failed(self: &Arc<Self>, error: &AuthError) {
        self.log(LogSource::Pillion, LogLevel::Warning, &error.to_string());
        // Who cancels knows it; what was needed is needed still.
        if !matches!(error, AuthError::Cancelled) {
            let failure = Failure::now(self.auth_error(error));
            let mut known = self.login.known();
            if known.need.is_some() {
                known.need = Some(failure.clone());
            }
            drop(known);
            self.replace_login_failure(failure);
        }
        self.login_moved();
    }

    /// Everything about the login was dropped.
    pub fn login_forgotten(self: &Arc<Self>) {
        *self.login.known() = Known::default();
        self.login_moved();
    }

    /// The error of a call, with what is known about a refusal.
    pub fn call_error(&self, error: CallError) -> Error {
        match (&error, self.login.refusal()) {
            (CallError::Unauthorized { status, .. }, Some(refusal)) => {
                refusal.http_status(*status).server(self.name.clone())
            }
            _ => self.veil().error(call_error(error, &self.name)),
        }
    }

    /// The error of a login.
    pub fn auth_error(&self, error: &AuthError) -> Error {
        self.veil().error(auth_error(error)).server(self.name.clone())
    }

    /// Waits for a login that is under way or begins soon. Says whether there is one now.
    async fn wait_for_login(&self) -> bool {
        let mut news = self.login.news.subscribe();
        let deadline = Instant::now() + limits::LOGIN_GRACE;
        loop {
            if self.login.known().need.is_none() {
                return true;
            }
            if self.is_authorizing() {
                // It lapses by itself.
                let _ = news.changed().await;
                continue;
            }
            tokio::select! {
                _ = news.changed() => {}
                () = tokio::time::sleep_until(deadline) => return false,
            }
        }
    }
}

/// The tokens for the requests to a server; `None` where logins are switched off.
pub(super) async fn tokens(server: &Arc<Server>) -> Result<Option<Arc<dyn mcp::TokenSource>>, Error> {
    if matches!(server.entry().oauth, Some(OauthSetting::Off(_))) {
        return Ok(None);
    }
    let tokens = server.core.authorizer().source(settings(server).await?);
    // A new start finds out anew.
    *server.login.known() = Known {
        seen: server.seen_now(),
        ..Known::default()
    };
    Ok(Some(Arc::new(Source {
        server: Arc::downgrade(server),
        tokens,
    })))
}

struct Source {
    server: Weak<Server>,
    tokens: auth::ServerTokens,
}

impl mcp::TokenSource for Source {
    fn headers<'a>(&'a self, method: &'a Method, url: &'a Url) -> BoxFuture<'a, Result<HeaderMap, String>> {
        async move {
            self.tokens
                .headers(method.as_str(), url)
                .await
                .map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        refusal: mcp::Refusal<'a>,
        attempts: &'a mut mcp::Attempts,
    ) -> BoxFuture<'a, bool> {
        async move {
            let mut own = own_attempts(attempts);
            let before = self.server.upgrade().and_then(|server| server.seen_now());
            let verdict = self.tokens.refused(&own_refusal(&refusal), &mut own).await;
            attempts.renewed = own.renewed;
            attempts.nonce = own.nonce;
            let Some(server) = self.server.upgrade() else {
                return false;
            };
            let (error, may_log_in) = match verdict {
                Verdict::Retry => return true,
                Verdict::Refuse(error) => (error, false),
                Verdict::Login(error) => (Some(error), true),
            };
            let error = error.map(|error| server.veil().error(auth_error(&error)));
            let seen = server.seen_now();
            // A login took effect while this was decided: to ask for another one now would be one too many.
            if may_log_in && seen != before && seen.is_some_and(|seen| seen.is_usable) {
                attempts.logins += 1;
                attempts.renewed = false;
                return true;
            }
            // A server that does not run yet ends its start with it.
            let is_running = server.connected().is_some();
            {
                let mut known = server.login.known();
                known.refusal.clone_from(&error);
                known.seen = seen;
                let Some(error) = error.filter(|_| may_log_in && is_running) else {
                    return false;
                };
                known.need = Some(Failure::now(error));
            }
            server.changed(ChangeReason::State);
            server.login_moved();
            let logged_in = server.wait_for_login().await;
            if logged_in {
                attempts.logins += 1;
                // The token is another one: it may end while the request is repeated.
                attempts.renewed = false;
            }
            logged_in
        }
        .boxed()
    }

    fn nonce(&self, url: &Url, nonce: &str) {
        self.tokens.nonce(url, nonce);
    }
}

/// What the transport keeps, in the terms of the logins.
pub(super) fn own_attempts(attempts: &mcp::Attempts) -> auth::Attempts {
    auth::Attempts {
        renewed: attempts.renewed,
        nonce: attempts.nonce,
        logins: attempts.logins,
    }
}

pub(super) fn own_refusal<'a>(refusal: &mcp::Refusal<'a>) -> auth::Refusal<'a> {
    auth::Refusal {
        url: refusal.url,
        status: refusal.status,
        challenges: refusal.challenges,
        sent: refusal.sent,
        nonce: refusal.nonce,
    }
}

/// How to log in to a server: its entry, with all references filled in. What they stand for is found out only where the
/// server may run.
pub(crate) async fn settings(server: &Server) -> Result<Settings, Error> {
    if server.refusal().is_none() {
        server.find_secrets(false).await?;
    }
    settings_of(&server.core, &server.entry(), &server.name, &server.origin()).await
}

/// The same, for an entry that no server was made from.
pub(super) async fn settings_of(
    core: &Core,
    entry: &ServerEntry,
    name: &str,
    origin: &Origin,
) -> Result<Settings, Error> {
    let filled = filled(core, entry, name, origin).await;
    filled.map_err(|error| Veil::of(core, entry, &origin.base).error(error))
}

async fn filled(core: &Core, entry: &ServerEntry, name: &str, origin: &Origin) -> Result<Settings, Error> {
    let base = origin.base.as_path();
    let wishes = match &entry.oauth {
        Some(OauthSetting::On(oauth)) => oauth.clone(),
        Some(OauthSetting::Off(_)) | None => OAuth::default(),
    };
    let lookup = |name: &str| core.reference(base, name);
    let mut expander = Expander::new(&lookup);
    let url = expander.text(entry.url.as_deref().unwrap_or_default());
    let mut filled = |text: &Option<String>| text.as_deref().map(|text| expander.text(text));
    let uri = |uri: &Option<protocol::Uri>| uri.as_ref().map(ToString::to_string);
    let (client_id, client_secret) = (filled(&wishes.client_id), filled(&wishes.client_secret));
    let (scope, redirect_uri) = (filled(&wishes.scope), filled(&uri(&wishes.redirect_uri)));
    let (client_metadata_url, issuer) = (
        filled(&uri(&wishes.client_metadata_url)),
        filled(&uri(&wishes.issuer)),
    );
    let (authorization_endpoint, token_endpoint) = (
        filled(&uri(&wishes.authorization_endpoint)),
        filled(&uri(&wishes.token_endpoint)),
    );
    let authorization_parameters: Vec<(String, String)> = wishes
        .authorization_parameters
        .iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), filled(&Some(value.clone()))?)))
        .collect();
    let (private_key, assertion) = (filled(&wishes.private_key), filled(&wishes.assertion));
    let resource = match &wishes.resource {
        None => Resource::AsPublished,
        Some(ResourceSetting::Off(_)) => Resource::Omitted,
        Some(ResourceSetting::Uri(uri)) => {
            Resource::Fixed(filled(&Some(uri.to_string())).unwrap_or_default())
        }
    };
    let enterprise = wishes.enterprise.as_ref().map(|enterprise| Enterprise {
        token_endpoint: filled(&Some(enterprise.token_endpoint.to_string())).unwrap_or_default(),
        issuer: filled(&uri(&enterprise.issuer)),
        client_id: filled(&Some(enterprise.client_id.clone())).unwrap_or_default(),
        client_secret: filled(&enterprise.client_secret).map(Secret::new),
        subject_token: Secret::new(filled(&Some(enterprise.subject_token.clone())).unwrap_or_default()),
        subject_token_type: enterprise.subject_token_type.clone(),
    });
    launch::unset(expander)?;
    let wrong =
        |message: String| Error::new(ErrorKind::AuthFailed, message).hint("correct `oauth` of the entry");
    let missing = |name: &str, grant: &str| wrong(format!("the grant `{grant}` needs `oauth.{name}`"));
    let configured = Url::parse(&url).map_err(|error| wrong(format!("`url`: {error}")))?;
    let (server_url, socket) = network::address(configured);
    let network = Network::read(entry, socket.as_ref(), &lookup, &core.env, origin).await?;
    let grant = match &wishes.grant {
        None | Some(GrantType::AuthorizationCode) => Grant::AuthorizationCode,
        Some(GrantType::DeviceCode) => Grant::DeviceCode,
        Some(GrantType::ClientCredentials) => Grant::ClientCredentials {
            key: private_key.map(|key| SigningSettings {
                private_key: Secret::new(key),
                algorithm: wishes.signing_algorithm.clone(),
                key_id: wishes.key_id.clone(),
            }),
        },
        Some(GrantType::JwtBearer) => Grant::JwtBearer {
            assertion: Secret::new(assertion.ok_or_else(|| missing("assertion", "jwt_bearer"))?),
        },
        Some(GrantType::Enterprise) => {
            Grant::Enterprise(enterprise.ok_or_else(|| missing("enterprise", "enterprise"))?)
        }
        Some(GrantType::Other(grant)) => return Err(wrong(format!("the grant `{grant}` is not known"))),
    };
    let auth_method = match &wishes.token_endpoint_auth_method {
        None => None,
        Some(TokenEndpointAuthMethod::None) => Some(AuthMethod::None),
        Some(TokenEndpointAuthMethod::ClientSecretBasic) => Some(AuthMethod::ClientSecretBasic),
        Some(TokenEndpointAuthMethod::ClientSecretPost) => Some(AuthMethod::ClientSecretPost),
        Some(TokenEndpointAuthMethod::PrivateKeyJwt) => Some(AuthMethod::PrivateKeyJwt),
        Some(TokenEndpointAuthMethod::Other(method)) => {
            return Err(wrong(format!("the method `{method}` is not known")));
        }
    };
    let settings = core.settings();
    let host = &settings.client_name;
    Ok(Settings {
        network: network.of_logins(),
        socket,
        account: settings.account(entry.account.as_deref()),
        title: secret::label(entry, name),
        client_id,
        client_secret: client_secret.map(Secret::new),
        issuer,
        authorization_endpoint,
        token_endpoint,
        authorization_parameters,
        auth_method,
        scope,
        callback_port: wishes.callback_port,
        redirect_uri,
        client_metadata_url,
        grant,
        resource,
        tolerate: wishes.tolerate.unwrap_or_default(),
        dpop: wishes.dpop == Some(true),
        ..Settings::new(server_url, format!("Pillion ({host})"))
    })
}
