//! Through an enterprise's identity provider (MCP extension Enterprise-Managed Authorization; draft Identity Assertion
//! Authorization Grant): the provider exchanges what it knows about the person (RFC 8693) for an assertion that the server's
//! authorization server accepts (RFC 7523).

use serde_json::Value;
use url::Url;

use super::Context;
use crate::client::{Client, ClientKind, Credentials};
use crate::error::AuthError;
use crate::guard::Reach;
use crate::secret::Secret;
use crate::settings::{AuthMethod, Enterprise, Settings};
use crate::token::TokenEndpoint;

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// An assertion about the person for the server's authorization server. It is used once and never stored.
pub(crate) async fn assertion(context: &Context, enterprise: &Enterprise) -> Result<Secret, AuthError> {
    let endpoint = Url::parse(&enterprise.token_endpoint)
        .map_err(|error| AuthError::BadSettings(format!("`oauth.enterprise.tokenEndpoint`: {error}")))?;
    // The person configured this address, so it may lie in a private network.
    let settings = &context.settings;
    let reach = Reach::new(&settings.server_url, true).over(settings.network.clone());
    let credentials = credentials(context, enterprise)?;
    let mut form = vec![
        ("grant_type", TOKEN_EXCHANGE.to_owned()),
        ("requested_token_type", ID_JAG.to_owned()),
        ("audience", context.discovered.issuer.issuer.clone()),
        ("subject_token", enterprise.subject_token.expose().to_owned()),
        (
            "subject_token_type",
            enterprise
                .subject_token_type
                .clone()
                .unwrap_or_else(|| ID_TOKEN.to_owned()),
        ),
    ];
    context.indicate(&mut form);
    let answer = TokenEndpoint {
        web: &context.shared.web,
        url: &endpoint,
        reach: &reach,
        credentials: Some(&credentials),
        key: None,
        nonces: &context.shared.nonces,
    }
    .request(form)
    .await?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    match (text("issued_token_type"), text("access_token")) {
        (Some(kind), _) if kind != ID_JAG => Err(AuthError::BadTokenAnswer(
            "the identity provider issued another kind of token than was asked for".to_owned(),
        )),
        (_, Some(assertion)) => Ok(Secret::new(assertion)),
        (_, None) => Err(AuthError::BadTokenAnswer(
            "the identity provider's answer holds no assertion".to_owned(),
        )),
    }
}

/// Who we are to the identity provider: another client than the one the server's authorization server knows.
fn credentials(context: &Context, enterprise: &Enterprise) -> Result<Credentials, AuthError> {
    let mut settings = Settings::new(context.settings.server_url.clone(), "");
    settings.client_secret.clone_from(&enterprise.client_secret);
    let client = Client {
        id: enterprise.client_id.clone(),
        secret: None,
        method: Some(match enterprise.client_secret {
            Some(_) => AuthMethod::ClientSecretPost,
            None => AuthMethod::None,
        }),
        secret_expires_at: None,
        redirect_uri: None,
        scope: None,
        kind: ClientKind::Configured,
    };
    Credentials::new(
        &client,
        &settings,
        enterprise.issuer.as_deref().unwrap_or_default(),
    )
}
