//! New access tokens from refresh tokens (RFC 6749 §6), once for everybody who needs one.
//!
//! A refresh token may be good for one use only, and some servers revoke everything when it is used twice. So tasks of this
//! process share one refresh, processes take turns by a lock, and whoever gets the lock looks first whether the work is done.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use url::Url;

use crate::authorizer::Shared;
use crate::client::{ClientKind, Credentials};
use crate::clock;
use crate::discovery;
use crate::error::AuthError;
use crate::grants;
use crate::jwt::SigningKey;
use crate::secret::Secret;
use crate::settings::{Key, Settings};
use crate::store::Record;
use crate::token::TokenEndpoint;

/// A renewal that several tasks wait for.
pub(crate) type Renewal = SharedFuture<BoxFuture<'static, Result<Record, AuthError>>>;

/// Replaces an access token that is over or was refused. Answers with what is stored afterwards; [`AuthError::LoginNeeded`]
/// when only a person can help.
pub(crate) async fn renew(
    shared: &Arc<Shared>,
    settings: &Arc<Settings>,
    stale: Option<&Secret>,
) -> Result<Record, AuthError> {
    let key = settings.key();
    let renewal = {
        let mut renewals = shared.renewals();
        match renewals.get(&key) {
            Some(renewal) => renewal.clone(),
            None => {
                let (owner, settings, stale) = (Arc::clone(shared), Arc::clone(settings), stale.cloned());
                // On its own task: a caller that gives up must not lose a token that was rotated meanwhile.
                let task = tokio::spawn(async move {
                    let outcome = run(&owner, &settings, stale.as_ref()).await;
                    owner.renewals().remove(&settings.key());
                    outcome
                });
                let renewal = async move {
                    task.await.unwrap_or_else(|error| {
                        Err(AuthError::BadTokenAnswer(format!(
                            "the refresh broke off: {error}"
                        )))
                    })
                };
                let renewal = renewal.boxed().shared();
                renewals.insert(key, renewal.clone());
                renewal
            }
        }
    };
    renewal.await
}

async fn run(
    shared: &Arc<Shared>,
    settings: &Arc<Settings>,
    stale: Option<&Secret>,
) -> Result<Record, AuthError> {
    let key = settings.key();
    if let Some(record) = renewed(shared, &key, stale) {
        return Ok(record);
    }
    let _turn = shared.store.refresh_lock(&key).await?;
    // Another process may have done it while we waited.
    if let Some(record) = renewed(shared, &key, stale) {
        return Ok(record);
    }
    if !settings.grant.is_interactive() {
        return grants::acquire(Arc::clone(shared), Arc::clone(settings)).await;
    }
    refresh(shared, settings, &key).await
}

/// What is stored, if it is newer than the token that is of no use any more.
fn renewed(shared: &Shared, key: &Key, stale: Option<&Secret>) -> Option<Record> {
    let record = shared.store.read(key)?;
    (record.access_token.is_some() && record.access_token.as_ref() != stale).then_some(record)
}

async fn refresh(shared: &Arc<Shared>, settings: &Arc<Settings>, key: &Key) -> Result<Record, AuthError> {
    let record = shared.store.read(key).ok_or(AuthError::LoginNeeded)?;
    let (Some(refresh_token), Some(client), Some(endpoint)) =
        (record.refresh_token, record.client, record.token_endpoint)
    else {
        return Err(AuthError::LoginNeeded);
    };
    let endpoint = Url::parse(&endpoint).map_err(|_| AuthError::LoginNeeded)?;
    let issuer = record.issuer.unwrap_or_default();
    if client.kind == ClientKind::Configured && settings.client_id.as_deref() != Some(client.id.as_str()) {
        // The tokens belong to a client that is not configured any more.
        return Err(AuthError::LoginNeeded);
    }
    let credentials = Credentials::new(&client, settings, &issuer)?;
    let reach = discovery::reach(settings);
    let dpop_key = record.dpop_key.as_ref().and_then(SigningKey::from_stored);
    let mut form = vec![
        ("grant_type", "refresh_token".to_owned()),
        ("refresh_token", refresh_token.expose().to_owned()),
    ];
    form.extend(record.resource.map(|resource| ("resource", resource)));
    let answer = TokenEndpoint {
        web: &shared.web,
        url: &endpoint,
        reach: &reach,
        credentials: Some(&credentials),
        key: dpop_key.as_ref(),
        nonces: &shared.nonces,
    }
    .token(form)
    .await;
    match answer {
        Ok(token) => {
            let saved = shared.store.change(key, move |record| {
                // A login that was made meanwhile is newer than this.
                if record.refresh_token.as_ref() != Some(&refresh_token) {
                    return;
                }
                record.access_token = Some(token.access_token);
                record.expires_at = token.expires_in.map(|seconds| clock::now() + seconds * 1000);
                record.bound = token.is_bound;
                if token.refresh_token.is_some() {
                    record.refresh_token = token.refresh_token;
                }
                if token.scope.is_some() {
                    record.scope = token.scope;
                }
            });
            match saved.await {
                // The store goes on with what it could not write: the old token is void already.
                Err(error @ AuthError::Store { .. }) => {
                    tracing::warn!("a refreshed token could not be written: {}", error.logged());
                    shared.store.read(key).ok_or(error)
                }
                saved => saved,
            }
        }
        Err(AuthError::TokenRefused {
            error,
            status,
            description,
        }) => {
            let forgets_client = match error.as_str() {
                "invalid_grant" => false,
                "invalid_client" | "unauthorized_client" if client.kind != ClientKind::Configured => true,
                _ => {
                    return Err(AuthError::TokenRefused {
                        error,
                        status,
                        description,
                    });
                }
            };
            tracing::info!("the login is not valid any more: {error}");
            let record = shared
                .store
                .change(key, move |record| {
                    // Who loses a race must not throw away the tokens of the winner.
                    if record.refresh_token.as_ref() == Some(&refresh_token) {
                        record.drop_tokens();
                        if forgets_client {
                            record.client = None;
                        }
                    }
                })
                .await?;
            if record.access_token.is_some() {
                Ok(record)
            } else {
                Err(AuthError::LoginNeeded)
            }
        }
        Err(error) => Err(error),
    }
}
