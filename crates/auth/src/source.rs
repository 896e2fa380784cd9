//! What every request to a server is authorized with, and what to do when the server refuses (RFC 6750, RFC 9449 §7).

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::authorizer::Shared;
use crate::challenge::{self, Challenge};
use crate::dpop::{self, DPOP};
use crate::error::{AuthError, shown};
use crate::jwt::SigningKey;
use crate::limits::{LOGINS_PER_REQUEST, REFRESH_BEFORE_MS};
use crate::refresh;
use crate::scope;
use crate::settings::{Key, Settings};
use crate::store::Record;

/// The tokens of one server.
pub struct ServerTokens {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    key: Key,
}

/// A request that was refused.
#[derive(Debug)]
pub struct Refusal<'a> {
    pub url: &'a Url,
    pub status: u16,
    /// The values of `WWW-Authenticate`.
    pub challenges: &'a [String],
    /// The `Authorization` header it carried.
    pub sent: Option<&'a HeaderValue>,
    /// The `DPoP-Nonce` of the answer.
    pub nonce: Option<&'a str>,
}

/// What one request has already led to, so that nothing goes on for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    pub renewed: bool,
    pub nonce: bool,
    pub logins: u32,
}

/// What to do about a refusal.
#[derive(Debug)]
pub enum Verdict {
    /// Send it again: the headers will be other ones.
    Retry,
    /// Only a login helps; afterwards it may be sent again.
    Login(AuthError),
    /// It stays refused. The reason, where authorization has to do with it.
    Refuse(Option<AuthError>),
}

impl ServerTokens {
    pub(crate) fn new(shared: Arc<Shared>, settings: Arc<Settings>) -> ServerTokens {
        ServerTokens {
            key: settings.key(),
            shared,
            settings,
        }
    }

    /// The headers that authorize a request. None without a login: the server may not want one.
    pub async fn headers(&self, method: &str, url: &Url) -> Result<HeaderMap, AuthError> {
        let mut headers = HeaderMap::new();
        if !self.is_for(url) {
            return Ok(headers);
        }
        let Some(record) = self.current().await? else {
            return Ok(headers);
        };
        let Some(token) = &record.access_token else {
            return Ok(headers);
        };
        let key = record.dpop_key.as_ref().filter(|_| record.bound);
        let scheme = if record.bound { "DPoP" } else { "Bearer" };
        let bad =
            |_| AuthError::BadTokenAnswer("the token holds characters that no header may have".to_owned());
        let mut value = HeaderValue::try_from(format!("{scheme} {}", token.expose())).map_err(bad)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        if let Some(key) = key.and_then(SigningKey::from_stored) {
            let nonce = self.shared.nonces.get(url);
            let proof = dpop::proof(&key, method, url, Some(token.expose()), nonce.as_deref())?;
            headers.insert(DPOP, proof);
        }
        Ok(headers)
    }

    /// The stored login, refreshed first when its end is near.
    async fn current(&self) -> Result<Option<Record>, AuthError> {
        let Some(record) = self.shared.store.read(&self.key) else {
            return Ok(None);
        };
        let is_renewable = record.refresh_token.is_some() || !self.settings.grant.is_interactive();
        if record.access_token.is_none() && record.refresh_token.is_none()
            || !record.expires_within(REFRESH_BEFORE_MS)
            || !is_renewable
        {
            return Ok(Some(record));
        }
        match refresh::renew(&self.shared, &self.settings, record.access_token.as_ref()).await {
            Ok(record) => Ok(Some(record)),
            // The server will ask for a login, and say what for.
            Err(AuthError::LoginNeeded) => Ok(None),
            // A minute is long for a network that failed once.
            Err(error) if error.is_transient() && !record.expires_within(0) => {
                tracing::warn!("a token was not refreshed: {}", error.logged());
                Ok(Some(record))
            }
            Err(error) => Err(error),
        }
    }

    /// A token goes to the origin it was issued for, or from http to https at the same host.
    fn is_for(&self, url: &Url) -> bool {
        let server = &self.settings.server_url;
        let is_upgrade = server.scheme() == "http"
            && url.scheme() == "https"
            && server.host() == url.host()
            && server.port().is_none()
            && url.port().is_none();
        server.origin() == url.origin() || is_upgrade
    }

    /// The server sent a nonce for the next proof along with a good answer (RFC 9449 §8.2).
    pub fn nonce(&self, url: &Url, nonce: &str) {
        self.shared.nonces.put(url, nonce);
    }

    /// Decides about a refused request, after a refresh where that may help.
    pub async fn refused(&self, refusal: &Refusal<'_>, attempts: &mut Attempts) -> Verdict {
        let challenge = challenge::bearer(refusal.challenges);
        if let Some(nonce) = refusal.nonce {
            self.shared.nonces.put(refusal.url, nonce);
            let wants_nonce =
                challenge.as_ref().and_then(|challenge| challenge.error()) == Some("use_dpop_nonce");
            if wants_nonce && !attempts.nonce {
                attempts.nonce = true;
                return Verdict::Retry;
            }
        }
        if !self.is_for(refusal.url) {
            return Verdict::Refuse(None);
        }
        let wants_scope =
            challenge.as_ref().and_then(|challenge| challenge.error()) == Some("insufficient_scope");
        let verdict = match refusal.status {
            401 => self.unauthorized(refusal, attempts).await,
            403 if wants_scope => {
                let wanted = challenge.as_ref().and_then(|challenge| challenge.scope());
                self.forbidden(refusal, wanted, attempts).await
            }
            _ => return Verdict::Refuse(None),
        };
        if !matches!(verdict, Verdict::Retry) {
            // The login that follows needs to know what was asked for. A server that is silent about it asks for nothing.
            let challenge = match verdict {
                Verdict::Login(_) => self.joined(challenge),
                Verdict::Retry | Verdict::Refuse(_) => challenge,
            };
            self.shared.remember(&self.key, challenge);
        }
        if matches!(verdict, Verdict::Login(_)) && attempts.logins >= LOGINS_PER_REQUEST {
            return Verdict::Refuse(Some(AuthError::LoginNeeded));
        }
        verdict
    }

    /// What was asked for last, with what other requests want meanwhile: the one login is for all.
    fn joined(&self, challenge: Option<Challenge>) -> Option<Challenge> {
        let is_under_way = self.shared.is_under_way(&self.key);
        let waiting = self
            .shared
            .challenge(&self.key)
            .filter(|waiting| is_under_way || waiting.error() == Some("insufficient_scope"));
        match (waiting, challenge) {
            (Some(waiting), Some(challenge)) => Some(challenge.asking_with(&waiting)),
            (waiting, challenge) => challenge.or(waiting),
        }
    }

    async fn unauthorized(&self, refusal: &Refusal<'_>, attempts: &mut Attempts) -> Verdict {
        let record = self.shared.store.read(&self.key);
        // Somebody logged in while the request was on its way; that it cannot be renewed does not matter then.
        let is_old = record
            .as_ref()
            .is_some_and(|record| is_newer(record, refusal.sent));
        if is_old && !attempts.renewed {
            attempts.renewed = true;
            return Verdict::Retry;
        }
        let is_renewable = !self.settings.grant.is_interactive()
            || record
                .as_ref()
                .is_some_and(|record| record.refresh_token.is_some());
        if attempts.renewed || !is_renewable {
            return match self.settings.grant.is_interactive() {
                true => Verdict::Login(AuthError::LoginNeeded),
                // Nobody can log in, and a fresh token was refused.
                false => Verdict::Refuse(Some(AuthError::LoginNeeded)),
            };
        }
        attempts.renewed = true;
        let challenge = challenge::bearer(refusal.challenges);
        self.shared.remember(&self.key, challenge);
        let stale = record.and_then(|record| record.access_token);
        match refresh::renew(&self.shared, &self.settings, stale.as_ref()).await {
            Ok(_) => Verdict::Retry,
            Err(AuthError::LoginNeeded) if self.settings.grant.is_interactive() => {
                Verdict::Login(AuthError::LoginNeeded)
            }
            Err(error) => Verdict::Refuse(Some(error)),
        }
    }

    /// More rights are needed (MCP, Step-Up Authorization Flow). A refresh cannot bring them.
    async fn forbidden(
        &self,
        refusal: &Refusal<'_>,
        wanted: Option<&str>,
        attempts: &mut Attempts,
    ) -> Verdict {
        let record = self.shared.store.read(&self.key);
        if let Some(record) = &record {
            if is_newer(record, refusal.sent) && !attempts.renewed {
                attempts.renewed = true;
                return Verdict::Retry;
            }
            let known = record.known_scope();
            let is_known = wanted.map_or(attempts.logins > 0, |wanted| scope::covers(&known, wanted));
            if record.access_token.is_some() && is_known {
                return Verdict::Refuse(Some(AuthError::ScopeRefused {
                    scope: shown(wanted.unwrap_or(&known)),
                }));
            }
        }
        let error = AuthError::ScopeNeeded {
            scope: shown(wanted.unwrap_or_default()),
        };
        if self.settings.grant.is_interactive() || attempts.renewed {
            return Verdict::Login(error);
        }
        attempts.renewed = true;
        self.shared
            .remember(&self.key, challenge::bearer(refusal.challenges));
        let stale = record.and_then(|record| record.access_token);
        match refresh::renew(&self.shared, &self.settings, stale.as_ref()).await {
            Ok(_) => Verdict::Retry,
            Err(error) => Verdict::Refuse(Some(error)),
        }
    }
}

/// Whether the stored token is another one than the request carried.
fn is_newer(record: &Record, sent: Option<&HeaderValue>) -> bool {
    let Some(token) = &record.access_token else {
        return false;
    };
    let carried = sent
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .map(|(_, token)| token);
    carried != Some(token.expose())
}
