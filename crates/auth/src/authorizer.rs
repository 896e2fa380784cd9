//! The handle on all logins of one data folder.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::callback::redirect::Pasted;
use crate::challenge::Challenge;
use crate::client::Credentials;
use crate::discovery;
use crate::dpop::Nonces;
use crate::error::AuthError;
use crate::flow::{self, Paste, Started};
use crate::limits::REVOKE;
use crate::probe::{self, Report};
use crate::refresh::Renewal;
use crate::settings::{Key, Settings};
use crate::source::ServerTokens;
use crate::store::{self, Record, Store};
use crate::web::{ClientFactory, Web};

/// Logins, their tokens, and what is going on with them. Cheap to clone.
#[derive(Clone)]
pub struct Authorizer(Arc<Shared>);

/// What is stored about a server, without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub key: Key,
    pub issuer: Option<String>,
    pub scope: Option<String>,
    /// There is a token; otherwise a registration only.
    pub has_token: bool,
    /// The access token is over. With a refresh token it will be renewed.
    pub is_expired: bool,
    pub is_renewable: bool,
    /// Epoch ms.
    pub expires_at: Option<u64>,
    /// Its secrets are in the credential store, not in the file.
    pub is_sealed: bool,
    /// Another number means another token.
    pub fingerprint: u64,
}

impl Stored {
    fn new(key: Key, record: &Record, is_sealed: bool) -> Stored {
        Stored {
            key,
            is_sealed,
            issuer: record.issuer.clone(),
            scope: record.scope.clone(),
            has_token: record.access_token.is_some() || record.refresh_token.is_some(),
            is_expired: record.expires_within(0),
            is_renewable: record.refresh_token.is_some(),
            expires_at: record.expires_at,
            fingerprint: fingerprint(record),
        }
    }

    /// Whether requests can be authorized without anybody's help, as far as we know.
    pub fn is_usable(&self) -> bool {
        self.has_token && (!self.is_expired || self.is_renewable)
    }
}

fn fingerprint(record: &Record) -> u64 {
    let token = record.access_token.as_ref().map_or("", |token| token.expose());
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref()[..8]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Shared by everything that has to do with the logins of one data folder.
pub(crate) struct Shared {
    pub web: Web,
    pub store: Arc<Store>,
    pub nonces: Nonces,
    /// What servers asked for last.
    challenges: Mutex<HashMap<Key, Challenge>>,
    renewals: Mutex<HashMap<Key, Renewal>>,
    flows: Mutex<HashMap<Key, Flow>>,
    next_flow: AtomicU64,
}

/// Who begins or ends a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// The person, who may end any.
    Person,
    /// Another program, which may end what one of its kind began.
    Program,
}

/// A login that is under way.
struct Flow {
    number: u64,
    by: Starter,
    cancel: CancellationToken,
    pastes: mpsc::Sender<Paste>,
}

impl Flow {
    fn may_be_ended(&self, by: Starter) -> Result<(), AuthError> {
        match (by, self.by) {
            (Starter::Program, Starter::Person) => Err(AuthError::Foreign),
            _ => Ok(()),
        }
    }
}

impl Shared {
    pub fn challenge(&self, key: &Key) -> Option<Challenge> {
        lock(&self.challenges).get(key).cloned()
    }

    pub fn remember(&self, key: &Key, challenge: Option<Challenge>) {
        let mut challenges = lock(&self.challenges);
        match challenge {
            Some(challenge) => challenges.insert(key.clone(), challenge),
            None => challenges.remove(key),
        };
    }

    /// Remembers what the server asks somebody without a token for, unless a request was refused meanwhile: that knows more.
    pub fn remember_first(&self, key: &Key, challenge: Option<Challenge>) {
        if let Some(challenge) = challenge {
            lock(&self.challenges).entry(key.clone()).or_insert(challenge);
        }
    }

    /// What was asked for is granted. What was asked for meanwhile, with the new token too, stays.
    pub fn granted(&self, key: &Key, challenge: Option<&Challenge>) {
        let mut challenges = lock(&self.challenges);
        if challenges.get(key) == challenge {
            challenges.remove(key);
        }
    }

    /// Whether a login is under way in this process.
    pub fn is_under_way(&self, key: &Key) -> bool {
        lock(&self.flows).contains_key(key)
    }

    pub fn renewals(&self) -> MutexGuard<'_, HashMap<Key, Renewal>> {
        lock(&self.renewals)
    }
}

impl Authorizer {
    /// `path`: the store. `factory` makes HTTP clients; `proxies` are the names of configured proxies.
    pub fn new(path: PathBuf, factory: ClientFactory, proxies: Vec<String>) -> Authorizer {
        Authorizer(Arc::new(Shared {
            web: Web::new(factory, proxies),
            store: Arc::new(Store::new(path)),
            nonces: Nonces::default(),
            challenges: Mutex::default(),
            renewals: Mutex::default(),
            flows: Mutex::default(),
            next_flow: AtomicU64::new(0),
        }))
    }

    /// The tokens for the requests to one server.
    pub fn source(&self, settings: Settings) -> ServerTokens {
        ServerTokens::new(Arc::clone(&self.0), Arc::new(settings))
    }

    /// What is stored about a server.
    pub fn stored(&self, key: &Key) -> Option<Stored> {
        let record = self.0.store.read(key)?;
        Some(Stored::new(key.clone(), &record, self.0.store.is_sealed(key)))
    }

    /// Everything that is stored.
    pub fn list(&self) -> Vec<Stored> {
        let all = self.0.store.all().into_iter();
        all.map(|(key, record)| {
            let is_sealed = self.0.store.is_sealed(&key);
            Stored::new(key, &record, is_sealed)
        })
        .collect()
    }

    /// Why secrets are kept in the file although this build could keep them in the credential store. Blocks.
    pub fn store_problem(&self) -> Option<String> {
        store::sealed::problem()
    }

    /// The stamp of the store: it differs when this or another process wrote.
    pub fn stamp(&self) -> Option<files::Stamp> {
        self.0.store.stamp()
    }

    /// Whether a login is under way in this process.
    pub fn is_pending(&self, key: &Key) -> bool {
        self.0.is_under_way(key)
    }

    /// Starts a login. One that is under way for the same server is cancelled, where `by` may end it.
    pub async fn start(&self, settings: Settings, by: Starter) -> Result<Started, AuthError> {
        let key = settings.key();
        let cancel = CancellationToken::new();
        let (pastes, received) = mpsc::channel(4);
        let number = self.0.next_flow.fetch_add(1, Ordering::Relaxed);
        let flow = Flow {
            number,
            by,
            cancel: cancel.clone(),
            pastes,
        };
        {
            let mut flows = lock(&self.0.flows);
            if let Some(earlier) = flows.get(&key) {
                earlier.may_be_ended(by)?;
                earlier.cancel.cancel();
            }
            flows.insert(key.clone(), flow);
        }
        let entered = Entered {
            shared: Arc::clone(&self.0),
            key,
            number,
        };
        let settings = Arc::new(settings);
        let prepared = cancel
            .run_until_cancelled(flow::prepare(Arc::clone(&self.0), settings))
            .await
            .unwrap_or(Err(AuthError::Cancelled))?;
        let (settled, completion) = oneshot::channel();
        let started = Started {
            url: prepared.url,
            redirect_uri: prepared.redirect_uri,
            user_code: prepared.user_code,
            expires_at: flow::deadline(prepared.lifetime),
            completion,
        };
        tokio::spawn(async move {
            let outcome = flow::finish(prepared.waiting, prepared.lifetime, received, cancel).await;
            if outcome.is_ok() {
                entered.shared.granted(&entered.key, prepared.answers.as_ref());
            }
            entered.leave();
            // Nobody may be interested any more.
            let _ = settled.send(outcome);
        });
        Ok(started)
    }

    /// Ends the login that is under way, where `by` may end it. Says whether there was one.
    pub fn cancel(&self, key: &Key, by: Starter) -> Result<bool, AuthError> {
        let mut flows = lock(&self.0.flows);
        let Some(flow) = flows.get(key) else {
            return Ok(false);
        };
        flow.may_be_ended(by)?;
        flow.cancel.cancel();
        flows.remove(key);
        Ok(true)
    }

    /// Finishes the login that is under way with what a person pasted. Answers after the exchange.
    pub async fn complete(&self, key: &Key, pasted: &str) -> Result<(), AuthError> {
        let pastes = lock(&self.0.flows).get(key).map(|flow| flow.pastes.clone());
        let pastes = pastes.ok_or(AuthError::NoLogin)?;
        let pasted = Pasted::new(pasted)?;
        let (reply, outcome) = oneshot::channel();
        pastes
            .send((pasted, reply))
            .await
            .map_err(|_| AuthError::NoLogin)?;
        outcome.await.unwrap_or(Err(AuthError::NoLogin))
    }

    /// Drops registration and tokens, and tells the authorization server where it wants to know (RFC 7009).
    pub async fn forget(&self, key: &Key, settings: Option<&Settings>) -> Result<(), AuthError> {
        self.cancel(key, Starter::Person)?;
        self.0.remember(key, None);
        let Some(record) = self.0.store.read(key) else {
            return Ok(());
        };
        self.0
            .store
            .change(key, |record| *record = Record::default())
            .await?;
        let revoked = tokio::time::timeout(REVOKE, self.revoke(key, settings, &record)).await;
        if !matches!(revoked, Ok(Ok(()))) {
            tracing::info!("the tokens were dropped here, but could not be revoked");
        }
        Ok(())
    }

    async fn revoke(&self, key: &Key, settings: Option<&Settings>, record: &Record) -> Result<(), AuthError> {
        let (Some(endpoint), Some(client)) = (&record.revocation_endpoint, &record.client) else {
            return Ok(());
        };
        let Some(token) = record.refresh_token.as_ref().or(record.access_token.as_ref()) else {
            return Ok(());
        };
        let endpoint = Url::parse(endpoint).map_err(|error| AuthError::BadSettings(error.to_string()))?;
        let own;
        let settings = match settings {
            Some(settings) => settings,
            None => {
                let url =
                    Url::parse(key.as_str()).map_err(|error| AuthError::BadSettings(error.to_string()))?;
                own = Settings::new(url, "");
                &own
            }
        };
        let credentials = Credentials::new(client, settings, record.issuer.as_deref().unwrap_or_default())?;
        let mut headers = HeaderMap::new();
        let mut form = vec![("token", token.expose().to_owned())];
        credentials.add(&mut form, &mut headers)?;
        let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reach = discovery::reach(settings);
        let answer = self
            .0
            .web
            .post_form("revocation_endpoint", &endpoint, &form, headers, &reach)
            .await?;
        if answer.is_success() {
            return Ok(());
        }
        Err(AuthError::Unavailable {
            url: crate::error::shown_url(endpoint.as_str()),
            status: answer.status,
        })
    }

    /// Looks at what a server says about logins, without logging in.
    pub async fn debug(&self, settings: &Settings) -> Report {
        probe::report(&self.0, settings).await
    }
}

/// The place of a login among those under way; it is left when the login ends or its start fails.
struct Entered {
    shared: Arc<Shared>,
    key: Key,
    number: u64,
}

impl Entered {
    fn leave(&self) {
        let mut flows = lock(&self.shared.flows);
        // A later login may have taken the place.
        if flows
            .get(&self.key)
            .is_some_and(|flow| flow.number == self.number)
        {
            flows.remove(&self.key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.leave();
    }
}
