//! Logging in on another device (RFC 8628): a short code is typed there, and the token endpoint is asked until that is done.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::{Context, DEVICE_CODE};
use crate::error::{AuthError, shown};
use crate::guard;
use crate::limits::{DEVICE_INTERVAL, DEVICE_INTERVAL_MAX, LOGIN};
use crate::secret::Secret;
use crate::token::{Token, TokenEndpoint, seconds};

/// What the person has to do, and how it is found out that it was done.
pub(crate) struct Device {
    pub url: String,
    pub user_code: String,
    pub lifetime: Duration,
    code: Secret,
    interval: Duration,
}

/// Asks for a code (RFC 8628 §3.1).
pub(crate) async fn start(context: &Context) -> Result<Device, AuthError> {
    let Some(endpoint) = &context.discovered.issuer.device_authorization_endpoint else {
        return Err(AuthError::BadSettings(
            "the authorization server offers no login on another device (device_code)".to_owned(),
        ));
    };
    let mut form = Vec::new();
    context.indicate(&mut form);
    let (credentials, reach) = (context.credentials()?, context.reach());
    let answer = TokenEndpoint {
        web: &context.shared.web,
        url: endpoint,
        reach: &reach,
        credentials: credentials.as_ref(),
        key: None,
        nonces: &context.shared.nonces,
    }
    .request(form)
    .await?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let bad = |what: &str| AuthError::BadTokenAnswer(format!("the answer for a device holds no {what}"));
    let page = text("verification_uri")
        .or_else(|| text("verification_url"))
        .ok_or_else(|| bad("verification_uri"))?;
    let page = text("verification_uri_complete").unwrap_or(page);
    let url = Url::parse(page).map_err(|_| bad("valid verification_uri"))?;
    guard::is_web("verification_uri", &url)?;
    let lifetime = answer
        .get("expires_in")
        .and_then(seconds)
        .filter(|seconds| *seconds > 0);
    let interval = answer.get("interval").and_then(seconds);
    Ok(Device {
        url: url.into(),
        user_code: shown(text("user_code").ok_or_else(|| bad("user_code"))?),
        lifetime: lifetime.map_or(LOGIN, Duration::from_secs).min(LOGIN),
        code: Secret::new(text("device_code").ok_or_else(|| bad("device_code"))?),
        interval: interval
            .map_or(DEVICE_INTERVAL, Duration::from_secs)
            .min(DEVICE_INTERVAL_MAX),
    })
}

/// Asks until the person is done (RFC 8628 §3.4 and §3.5).
pub(crate) async fn wait(context: &Context, device: &Device) -> Result<Token, AuthError> {
    let deadline = Instant::now() + device.lifetime;
    let mut interval = device.interval;
    loop {
        tokio::time::sleep(interval).await;
        if Instant::now() >= deadline {
            return Err(AuthError::TimedOut {
                after: device.lifetime,
            });
        }
        let mut form = vec![
            ("grant_type", DEVICE_CODE.to_owned()),
            ("device_code", device.code.expose().to_owned()),
        ];
        form.extend(context.resource().map(|resource| ("resource", resource)));
        match context.token(form).await {
            Err(AuthError::TokenRefused {
                error, description, ..
            }) => match error.as_str() {
                "authorization_pending" => {}
                "slow_down" => interval = (interval + DEVICE_INTERVAL).min(DEVICE_INTERVAL_MAX),
                "expired_token" => {
                    return Err(AuthError::TimedOut {
                        after: device.lifetime,
                    });
                }
                _ => return Err(AuthError::Denied { error, description }),
            },
            // RFC 8628 §3.5: after a lost connection, ask less often.
            Err(error) if error.is_transient() => {
                interval = (interval * 2).clamp(DEVICE_INTERVAL, DEVICE_INTERVAL_MAX);
            }
            outcome => return outcome,
        }
    }
}
