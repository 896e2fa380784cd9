//! Logging in to servers: starting, completing, cancelling and forgetting logins, and looking at what a server says about them.

use std::sync::Arc;

use auth::{AuthError, ClientKind, Key, Starter};
use protocol::{
    AuthAck, AuthAction, Challenge, Check, CheckLevel, Credential, DebugReport, Dir, Error, ErrorKind,
    KeptIn, McpAuth, McpAuthList, McpAuthListResult, McpDebug, OauthSetting, Registration, ServerName, Tier,
};
use url::Url;

use super::Manager;
use crate::error::auth_error;
use crate::progress::Work;
use crate::server::Server;
use crate::server::login;
use crate::server::veil::Veil;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.auth`.
    pub async fn auth(&self, request: &RequestContext, params: McpAuth) -> Result<AuthAck, Error> {
        let action = params.action.unwrap_or(AuthAction::Start);
        let by = match request.tier {
            Tier::Local => Starter::Person,
            _ => Starter::Program,
        };
        // Said before anything is looked up: what is stored is nobody's business but the person's.
        if by == Starter::Program && matches!(action, AuthAction::Forget | AuthAction::Complete) {
            let message = format!("only the person at the host may {action} a login");
            return Err(Error::new(ErrorKind::Forbidden, message)
                .path("/action")
                .hint("another program may begin a login that a server asks for, and cancel what it began"));
        }
        if action == AuthAction::Forget && params.server.starts_with('#') {
            return self.forget_orphan(&params.server).await;
        }
        let server = self.server(&params.directory, &params.server)?;
        server.check_asked_by(request.tier).await?;
        let key = login_key(&server).await?;
        let of_server = |error: AuthError| server.auth_error(&error);
        let authorizer = self.core.authorizer();
        match action {
            AuthAction::Start => {
                if let Some(refusal) = server.refusal() {
                    return Err(refusal);
                }
                if by == Starter::Program && !self.wants_login(&server, &key) {
                    let message = format!("`{}` has a login", server.name);
                    return Err(Error::new(ErrorKind::Forbidden, message)
                        .server(server.name.clone())
                        .hint("only the person at the host may replace a login"));
                }
                let start = self.start_login(&server, by);
                tokio::select! {
                    started = start => started,
                    () = request.cancel.cancelled() => {
                        let _ = authorizer.cancel(&key, by);
                        server.login_moved();
                        Err(Error::new(ErrorKind::Cancelled, "cancelled by the host"))
                    }
                }
            }
            AuthAction::Cancel => {
                authorizer.cancel(&key, by).map_err(of_server)?;
                Ok(AuthAck::default())
            }
            AuthAction::Complete => {
                let redirect = params.redirect.unwrap_or_default();
                authorizer
                    .complete(&key, &redirect)
                    .await
                    .map_err(|error| match error {
                        AuthError::BadRedirect(_) => of_server(error).path("/redirect"),
                        error => of_server(error),
                    })?;
                // Its record is to show what the login brought.
                let _ = server.start(request.tier).await;
                Ok(self.with_record(&server, &params.directory))
            }
            AuthAction::Forget => {
                if authorizer.stored(&key).is_none() && !authorizer.is_pending(&key) {
                    return Ok(self.with_record(&server, &params.directory));
                }
                server.stop().await;
                let settings = login::settings(&server).await.ok();
                let forgotten = authorizer.forget(&key, settings.as_ref()).await;
                server.login_forgotten();
                forgotten.map_err(of_server)?;
                Ok(self.with_record(&server, &params.directory))
            }
        }
    }

    fn with_record(&self, server: &Server, directory: &Dir) -> AuthAck {
        AuthAck {
            server: Some(self.record(server, directory)),
            ..AuthAck::default()
        }
    }

    /// Whether there is no login, or none that is of use.
    fn wants_login(&self, server: &Server, key: &Key) -> bool {
        let stored = self.core.authorizer().stored(key);
        server.needs_login() || !stored.is_some_and(|stored| stored.is_usable())
    }

    async fn start_login(&self, server: &Arc<Server>, by: Starter) -> Result<AuthAck, Error> {
        let settings = login::settings(server)
            .await
            .map_err(|error| error.server(server.name.clone()))?;
        let started = match self.core.authorizer().start(settings, by).await {
            Ok(started) => started,
            // The login under way goes on.
            Err(error @ AuthError::Foreign) => return Err(server.auth_error(&error)),
            Err(error) => {
                server.login_failed(&error);
                return Err(server.auth_error(&error));
            }
        };
        server.login_moved();
        let waiting = Arc::clone(server);
        let completion = started.completion;
        tokio::spawn(async move {
            match completion.await.unwrap_or(Err(AuthError::Cancelled)) {
                Ok(()) => waiting.logged_in(),
                Err(error) => waiting.login_failed(&error),
            }
        });
        Ok(AuthAck {
            expires_at: started.url.is_some().then_some(started.expires_at),
            url: started.url,
            redirect_uri: started.redirect_uri,
            user_code: started.user_code,
            server: None,
        })
    }

    /// Drops what is stored about a server whose entry is gone.
    async fn forget_orphan(&self, handle: &str) -> Result<AuthAck, Error> {
        let authorizer = self.core.authorizer();
        let stored = authorizer.list();
        let Some(found) = stored.iter().find(|stored| stored.key.handle() == handle) else {
            let known: Vec<String> = stored.iter().take(5).map(|stored| stored.key.handle()).collect();
            return Err(Error::new(
                ErrorKind::TargetMismatch,
                format!("nothing is stored as `{handle}`"),
            )
            .reason("unknown")
            .candidates(known)
            .hint("`mcp.auth.list` shows what is stored"));
        };
        authorizer
            .forget(&found.key, None)
            .await
            .map_err(|error| auth_error(&error))?;
        Ok(AuthAck::default())
    }

    /// `mcp.auth.list`.
    pub async fn auth_list(
        &self,
        _: &RequestContext,
        params: McpAuthList,
    ) -> Result<McpAuthListResult, Error> {
        let servers = match &params.directory {
            Some(directory) => {
                let root = self.root(directory)?;
                self.layers.freshen(&self.core);
                self.layers.visible(&root)
            }
            None => self.layers.all(),
        };
        let named: Vec<(Key, &Arc<Server>)> = servers
            .iter()
            .filter(|server| !server.needs_trust())
            .filter_map(|server| Some((server.login_key()?, server)))
            .collect();
        let mut credentials = Vec::new();
        for stored in self.core.authorizer().list() {
            let (url, account) = stored.key.shown();
            let named: Vec<(&ServerName, Veil)> = named
                .iter()
                .filter(|(key, _)| *key == stored.key)
                .map(|(_, server)| (&server.name, server.veil()))
                .collect();
            // Several entries with one login say differently what is secret in its address.
            let shown = |text: &str| {
                named
                    .iter()
                    .fold(text.to_owned(), |text, (_, veil)| veil.text(&text))
            };
            let credential = |server: ServerName, configured: bool| Credential {
                server,
                url: match configured {
                    true => shown(&url),
                    // What is secret in it is not known any more.
                    false => origin_of(&url),
                },
                account: account.clone(),
                issuer: stored.issuer.as_deref().map(|issuer| match configured {
                    true => shown(issuer),
                    false => origin_of(issuer),
                }),
                configured,
                kept_in: match stored.is_sealed {
                    true => KeptIn::CredentialStore,
                    false => KeptIn::File,
                },
                expired: !stored.has_token || stored.is_expired,
                expires_at: stored.expires_at,
                scope: stored.scope.clone(),
            };
            if named.is_empty() {
                credentials.push(credential(ServerName::from(stored.key.handle()), false));
            }
            credentials.extend(named.iter().map(|(name, _)| credential((*name).clone(), true)));
        }
        let authorizer = self.core.authorizer().clone();
        let problem = tokio::task::spawn_blocking(move || authorizer.store_problem());
        let note = problem.await.ok().flatten();
        Ok(McpAuthListResult {
            credentials,
            note: note.map(|problem| format!("tokens are kept in `mcp-auth.json`: {problem}")),
        })
    }

    /// `mcp.debug`: asks the server without a token, and looks at everything a login would look at.
    pub async fn debug(&self, request: &RequestContext, params: McpDebug) -> Result<DebugReport, Error> {
        let server = self.server(&params.directory, &params.server)?;
        server.check_asked_by(request.tier).await?;
        let key = login_key(&server).await?;
        if let Some(refusal) = server.refusal() {
            return Err(refusal);
        }
        let title = format!("Looking at {}", server.name);
        let _work = Work::begin(
            &self.core.calls,
            &self.core.sink,
            params.work_done_token.as_ref(),
            &title,
            true,
        )?;
        let settings = login::settings(&server).await?;
        let authorizer = self.core.authorizer();
        let report = tokio::select! {
            report = authorizer.debug(&settings) => report,
            () = request.cancel.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "cancelled by the host")),
        };
        let veil = server.veil();
        let mut steps: Vec<Check> = report
            .steps
            .iter()
            .map(|step| Check {
                id: "request".to_owned(),
                server: None,
                level: if step.is_good {
                    CheckLevel::Ok
                } else {
                    CheckLevel::Warning
                },
                message: veil.text(&format!("{}: {}", step.url, step.outcome)),
                hint: None,
            })
            .collect();
        steps.extend(report.error.as_ref().map(|error| Check {
            id: "login".to_owned(),
            server: None,
            level: CheckLevel::Error,
            message: veil.text(&error.to_string()),
            hint: error.hint().map(str::to_owned),
        }));
        let stored = authorizer.stored(&key).filter(|stored| stored.has_token);
        Ok(DebugReport {
            url: veil.text(&key.shown().0),
            http_status: report.status,
            challenge: report.challenge.as_ref().map(|challenge| Challenge {
                scheme: challenge.scheme.clone(),
                scope: challenge.scope().map(str::to_owned),
                error: challenge.error().map(str::to_owned),
            }),
            resource: report.resource.map(|resource| veil.text(&resource)),
            issuer: report.issuer.map(|issuer| veil.text(&issuer)),
            endpoints: (!report.endpoints.is_empty()).then(|| {
                let endpoints = report.endpoints.into_iter();
                endpoints
                    .map(|(name, url)| (name.to_owned(), veil.text(&url)))
                    .collect()
            }),
            registration: match report.registration {
                Some(ClientKind::Configured) => Registration::Configured,
                Some(ClientKind::Metadata) => Registration::Metadata,
                Some(ClientKind::Dynamic) => Registration::Dynamic,
                None => Registration::None,
            },
            expired: stored.as_ref().is_some_and(|stored| stored.is_expired),
            expires_at: stored.as_ref().and_then(|stored| stored.expires_at),
            stored: stored.is_some(),
            steps,
        })
    }

    /// Takes note of logins that another process made or dropped.
    pub(super) fn notice_logins(&self) {
        for server in self.layers.all() {
            // What nobody agreed to is not looked at either.
            if server.is_enabled() && server.login_key().is_some() {
                server.notice_login();
            }
        }
    }
}

/// Scheme, host and port; whether there is more is told by the `…`.
fn origin_of(address: &str) -> String {
    let Ok(url) = Url::parse(address) else {
        return "…".to_owned();
    };
    let origin = url.origin().ascii_serialization();
    match url.path() {
        "" | "/" => origin,
        _ => format!("{origin}/…"),
    }
}

/// What the login of a server is stored under, for servers that may have one.
async fn login_key(server: &Server) -> Result<Key, Error> {
    let mismatch = |what: &str, reason: &str| {
        Error::new(ErrorKind::TargetMismatch, format!("`{}` {what}", server.name))
            .reason(reason)
            .server(server.name.clone())
    };
    let entry = server.entry();
    // Of what was only asked for nothing is known here.
    if let Some(refusal) = server.refusal().filter(|_| server.is_empty) {
        return Err(refusal);
    }
    if entry.url.is_none() {
        return Err(mismatch("runs on this machine and needs no login", "local"));
    }
    if matches!(entry.oauth, Some(OauthSetting::Off(_))) {
        return Err(
            mismatch("has OAuth switched off", "oauth_disabled").hint("remove `oauth: false` from the entry")
        );
    }
    if let Some(key) = server.login_key() {
        return Ok(key);
    }
    // A reference that is not set is told by name; one that stands for a secret may be found out only now.
    login::settings(server).await?;
    server.login_key().ok_or_else(|| mismatch("has no URL", "local"))
}
