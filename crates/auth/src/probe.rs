//! Asking a server without a token what it wants (RFC 9110 §11.6.1), and looking at what it and its authorization server say.
//! Nothing is registered, refreshed or stored here.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::authorizer::Shared;
use crate::challenge::{self, Challenge};
use crate::client::ClientKind;
use crate::discovery::{self, Step, Trail};
use crate::error::AuthError;
use crate::limits::PROBE;
use crate::settings::Settings;
use crate::web::{Answer, Web};

/// What a server says about itself. No secret is in it.
#[derive(Debug)]
pub struct Report {
    pub status: Option<u16>,
    pub challenge: Option<Challenge>,
    pub resource: Option<String>,
    pub issuer: Option<String>,
    /// By their names in the metadata.
    pub endpoints: Vec<(&'static str, String)>,
    /// How the client is, or would be, known.
    pub registration: Option<ClientKind>,
    pub steps: Vec<Step>,
    /// Why no login can take place.
    pub error: Option<AuthError>,
}

/// The status of a server for nobody, and its challenge if it has one.
pub(crate) async fn challenge(web: &Web, settings: &Settings) -> Result<(u16, Option<Challenge>), AuthError> {
    let answer = ask(web, settings).await?;
    let challenge = match answer.status {
        401 | 403 => challenge::bearer(&answer.challenges()),
        _ => None,
    };
    Ok((answer.status, challenge))
}

/// An `initialize` of nobody.
async fn ask(web: &Web, settings: &Settings) -> Result<Answer, AuthError> {
    let body: Value = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": settings.client_name, "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let accept = HeaderValue::from_static("application/json, text/event-stream");
    let headers = HeaderMap::from_iter([(ACCEPT, accept)]);
    let reach = discovery::reach(settings);
    web.post_json("the server", &settings.server_url, &body, headers, &reach, PROBE)
        .await
}

/// Looks at everything a login would look at.
pub(crate) async fn report(shared: &Shared, settings: &Settings) -> Report {
    let mut report = Report {
        status: None,
        challenge: None,
        resource: None,
        issuer: None,
        endpoints: Vec::new(),
        registration: None,
        steps: Vec::new(),
        error: None,
    };
    let mut trail = Trail::default();
    match ask(&shared.web, settings).await {
        Ok(answer) => {
            report.status = Some(answer.status);
            report.challenge = challenge::bearer(&answer.challenges());
            trail.good(&settings.server_url, format!("HTTP status {}", answer.status));
            // Only a server that wants a login is asked about logins.
            if matches!(answer.status, 401 | 403) {
                look(shared, settings, &mut report, &mut trail).await;
            }
        }
        Err(error) => {
            trail.bad(&settings.server_url, error.to_string());
            report.error = Some(error);
        }
    }
    report.steps = trail.steps;
    report
}

async fn look(shared: &Shared, settings: &Settings, report: &mut Report, trail: &mut Trail) {
    let stored = shared.store.read(&settings.key());
    let known = stored.as_ref().and_then(|record| record.issuer.clone());
    let discovered = discovery::discover(
        &shared.web,
        settings,
        report.challenge.as_ref(),
        known.as_deref(),
        trail,
    )
    .await;
    match discovered {
        Ok(discovered) => {
            let issuer = &discovered.issuer;
            report.registration = if settings.client_id.is_some() {
                Some(ClientKind::Configured)
            } else if settings.client_metadata_url.is_some() && issuer.client_metadata {
                Some(ClientKind::Metadata)
            } else {
                issuer.registration_endpoint.as_ref().map(|_| ClientKind::Dynamic)
            };
            report.endpoints = issuer.endpoints();
            report.issuer = Some(crate::error::shown(&issuer.issuer));
            report.resource = discovered.resource.as_deref().map(crate::error::shown);
        }
        Err(error) => report.error = Some(error),
    }
}
