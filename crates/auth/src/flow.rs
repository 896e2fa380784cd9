//! One login from its start to the stored tokens (MCP, Authorization Flow Steps).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::authorize;
use crate::authorizer::Shared;
use crate::callback::page::Page;
use crate::callback::redirect::{Fault, Outcome, Pasted, Plan, Redirect};
use crate::callback::{Browser, Listener};
use crate::challenge::Challenge;
use crate::client::ClientKind;
use crate::clock;
use crate::discovery::{self, Trail};
use crate::error::{AuthError, shown};
use crate::grants::{self, Context, device};
use crate::limits::LOGIN;
use crate::pkce::{self, Pkce};
use crate::probe;
use crate::registration;
use crate::secret::Secret;
use crate::settings::{Grant, Settings};

/// A login that was started.
#[derive(Debug)]
pub struct Started {
    /// The address to open in a browser. None where nobody has to do anything.
    pub url: Option<String>,
    /// Where the browser will end.
    pub redirect_uri: Option<String>,
    /// The code to type on the page (RFC 8628).
    pub user_code: Option<String>,
    /// Epoch ms.
    pub expires_at: u64,
    /// Tells how it ended.
    pub completion: oneshot::Receiver<Result<(), AuthError>>,
}

/// What a person pasted, and where to say what became of it.
pub(crate) type Paste = (Pasted, oneshot::Sender<Result<(), AuthError>>);

/// What is going on until the login ends.
pub(crate) enum Waiting {
    Browser(Box<Login>),
    Device(Box<Context>, device::Device),
    /// It is done already.
    Nobody,
}

/// A login in a browser.
pub(crate) struct Login {
    context: Context,
    listener: Listener,
    pkce: Pkce,
    state: String,
}

/// A login that is prepared: what to show, and what to wait for.
pub(crate) struct Prepared {
    pub url: Option<String>,
    pub redirect_uri: Option<String>,
    pub user_code: Option<String>,
    pub lifetime: Duration,
    pub waiting: Waiting,
    /// What the server asked for that this login is about.
    pub answers: Option<Challenge>,
}

/// Discovers, listens and registers, in this order: nothing is registered for a login that cannot take place.
pub(crate) async fn prepare(shared: Arc<Shared>, settings: Arc<Settings>) -> Result<Prepared, AuthError> {
    let key = settings.key();
    let mut lets_in = None;
    if shared.challenge(&key).is_none() {
        // Nobody asked for a login yet: the server itself says best where to begin.
        match probe::challenge(&shared.web, &settings).await {
            Ok((status, challenge)) => {
                lets_in = (200..300).contains(&status).then_some(status);
                shared.remember_first(&key, challenge);
            }
            Err(error) => tracing::debug!("the server was not asked for a challenge: {}", error.logged()),
        }
    }
    if !settings.grant.is_interactive() {
        let answers = shared.challenge(&key);
        grants::acquire(shared, settings).await?;
        return Ok(Prepared {
            url: None,
            redirect_uri: None,
            user_code: None,
            lifetime: Duration::ZERO,
            waiting: Waiting::Nobody,
            answers,
        });
    }
    let plan = match settings.grant {
        Grant::AuthorizationCode => Some(Plan::new(&settings)?),
        _ => None,
    };
    let stored = shared.store.read(&key);
    let challenge = shared.challenge(&key);
    let known = stored.as_ref().and_then(|record| record.issuer.clone());
    // Who lets everybody in and names no authorization server wants no login.
    let unwanted = |error: AuthError| match (error, lets_in) {
        (AuthError::NoMetadata { .. }, Some(status)) => AuthError::NotWanted { status },
        (error, _) => error,
    };
    let discovered = discovery::discover(
        &shared.web,
        &settings,
        challenge.as_ref(),
        known.as_deref(),
        &mut Trail::default(),
    )
    .await
    .map_err(unwanted)?;
    let issuer = &discovered.issuer;
    // Everything stored belongs to the issuer that gave it, and is shown to no other one.
    let (of_issuer, of_another) = stored.into_iter().partition::<Vec<_>, _>(|record| {
        record
            .issuer
            .as_deref()
            .is_none_or(|known| known == issuer.issuer)
    });
    if let Some(client) = of_another.first().and_then(|record| record.client.as_ref())
        && client.kind == ClientKind::Configured
        && settings.issuer.is_none()
        && settings.client_id.as_deref() == Some(client.id.as_str())
    {
        return Err(AuthError::ForeignIssuer {
            known: shown(&known.unwrap_or_default()),
            found: shown(&issuer.issuer),
        });
    }
    let state = pkce::random();
    let listener = match plan {
        Some(plan) => Some(Listener::open(plan, state.clone()).await?),
        None => None,
    };
    let redirect_uri = listener.as_ref().map(|listener| listener.redirect_uri.clone());
    let scope = grants::scope(&shared, &settings, &discovered, &key);
    let answers = shared.challenge(&key);
    let client = registration::client(
        &shared.web,
        &settings,
        issuer,
        of_issuer.first().and_then(|record| record.client.as_ref()),
        redirect_uri.as_deref(),
        &scope,
    )
    .await
    .map_err(unwanted)?;
    let context = grants::context(shared, settings, discovered, Some(client), scope);
    match listener {
        Some(listener) => browser(context, listener, state, answers),
        None => on_device(context, answers).await,
    }
}

fn browser(
    context: Context,
    listener: Listener,
    state: String,
    answers: Option<Challenge>,
) -> Result<Prepared, AuthError> {
    let pkce = Pkce::new();
    let (Some(endpoint), Some(client)) = (&context.discovered.issuer.authorization_endpoint, &context.client)
    else {
        return Err(AuthError::LoginNeeded);
    };
    let url = authorize::url(
        endpoint,
        &authorize::Request {
            client_id: &client.id,
            redirect_uri: &listener.redirect_uri,
            challenge: &pkce.challenge,
            state: &state,
            scope: &context.scope,
            resource: context.resource().as_deref(),
            more: &context.settings.authorization_parameters,
        },
    );
    Ok(Prepared {
        url: Some(url.into()),
        redirect_uri: Some(listener.redirect_uri.clone()),
        user_code: None,
        lifetime: LOGIN,
        waiting: Waiting::Browser(Box::new(Login {
            context,
            listener,
            pkce,
            state,
        })),
        answers,
    })
}

async fn on_device(context: Context, answers: Option<Challenge>) -> Result<Prepared, AuthError> {
    let device = device::start(&context).await?;
    Ok(Prepared {
        url: Some(device.url.clone()),
        redirect_uri: None,
        user_code: Some(device.user_code.clone()),
        lifetime: device.lifetime,
        waiting: Waiting::Device(Box::new(context), device),
        answers,
    })
}

/// Waits until the login ends, one way or another.
pub(crate) async fn finish(
    waiting: Waiting,
    lifetime: Duration,
    pastes: mpsc::Receiver<Paste>,
    cancel: CancellationToken,
) -> Result<(), AuthError> {
    let work = async {
        match waiting {
            Waiting::Nobody => Ok(()),
            Waiting::Device(context, device) => {
                let token = device::wait(&context, &device).await?;
                context.store(token).await.map(drop)
            }
            Waiting::Browser(login) => login.wait(pastes).await,
        }
    };
    tokio::select! {
        // A login that is done is not cancelled any more.
        biased;
        outcome = work => outcome,
        () = cancel.cancelled() => Err(AuthError::Cancelled),
        () = tokio::time::sleep(lifetime) => Err(AuthError::TimedOut { after: lifetime }),
    }
}

impl Login {
    async fn wait(mut self, mut pastes: mpsc::Receiver<Paste>) -> Result<(), AuthError> {
        loop {
            tokio::select! {
                visit = self.listener.visit() => match visit {
                    Some(visit) => return self.visited(visit).await,
                    None => return Err(AuthError::Cancelled),
                },
                Some((pasted, reply)) = pastes.recv() => {
                    let redirect = match self.read(pasted) {
                        Ok(redirect) => redirect,
                        Err(error) => {
                            // A slip of the hand does not end the login.
                            let _ = reply.send(Err(error));
                            continue;
                        }
                    };
                    let outcome = self.redirected(redirect).await;
                    let _ = reply.send(outcome.clone());
                    return outcome;
                }
            }
        }
    }

    async fn visited(&self, visit: (Redirect, Browser)) -> Result<(), AuthError> {
        let (redirect, browser) = visit;
        let outcome = self.redirected(redirect).await;
        browser
            .answer(Page::of(&outcome, &self.context.settings.title))
            .await;
        outcome
    }

    fn read(&self, pasted: Pasted) -> Result<Redirect, AuthError> {
        match pasted {
            Pasted::Query(query) => Redirect::parse(&query, &self.state).map_err(Fault::into_error),
            Pasted::Code(_) if self.context.discovered.issuer.names_itself => Err(AuthError::BadRedirect(
                "this authorization server names itself in its answer: the code alone is not enough"
                    .to_owned(),
            )),
            Pasted::Code(code) => Ok(Redirect {
                outcome: Outcome::Code(code),
                iss: None,
            }),
        }
    }

    /// Who answered is checked before anything of the answer is used (RFC 9207 §2.4).
    async fn redirected(&self, redirect: Redirect) -> Result<(), AuthError> {
        self.check_iss(redirect.iss.as_deref())?;
        let code = match redirect.outcome {
            Outcome::Code(code) => code,
            Outcome::Error { error, description } if error == "access_denied" => {
                return Err(AuthError::Denied { error, description });
            }
            Outcome::Error { error, description } => {
                return Err(AuthError::AuthorizationRefused { error, description });
            }
        };
        self.exchange(&code).await
    }

    fn check_iss(&self, iss: Option<&str>) -> Result<(), AuthError> {
        let issuer = &self.context.discovered.issuer;
        // Without metadata there is nothing to compare with.
        if issuer.is_guessed {
            return Ok(());
        }
        match iss {
            Some(iss) if iss != issuer.issuer => Err(AuthError::IssMismatch {
                wanted: shown(&issuer.issuer),
                found: format!("`{}`", shown(iss)),
            }),
            None if issuer.names_itself => Err(AuthError::IssMismatch {
                wanted: shown(&issuer.issuer),
                found: "missing".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    async fn exchange(&self, code: &Secret) -> Result<(), AuthError> {
        let mut form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.expose().to_owned()),
            ("redirect_uri", self.listener.redirect_uri.clone()),
            ("code_verifier", self.pkce.verifier.expose().to_owned()),
        ];
        form.extend(self.context.resource().map(|resource| ("resource", resource)));
        let token = self.context.token(form).await?;
        self.context.store(token).await?;
        Ok(())
    }
}

/// When a login that begins now is over.
pub(crate) fn deadline(lifetime: Duration) -> u64 {
    clock::now() + lifetime.as_millis() as u64
}
