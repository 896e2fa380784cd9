//! Proofs that a request comes from whoever holds the key of a token (RFC 9449).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderName, HeaderValue};
use serde_json::json;
use url::Url;

use crate::clock;
use crate::error::AuthError;
use crate::jwt::SigningKey;
use crate::pkce;

pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The newest nonce of every server, by origin (RFC 9449 §8 and §9).
#[derive(Default)]
pub(crate) struct Nonces(Mutex<HashMap<String, String>>);

impl Nonces {
    pub fn get(&self, url: &Url) -> Option<String> {
        self.all().get(&url.origin().ascii_serialization()).cloned()
    }

    pub fn put(&self, url: &Url, nonce: &str) {
        // NQSCHAR of RFC 6749: anything else would not come back as it was.
        if nonce.len() <= 1024 && nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.all()
                .insert(url.origin().ascii_serialization(), nonce.to_owned());
        }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A proof for one request. `token`: the access token that goes with it.
pub(crate) fn proof(
    key: &SigningKey,
    method: &str,
    url: &Url,
    token: Option<&str>,
    nonce: Option<&str>,
) -> Result<HeaderValue, AuthError> {
    let mut target = url.clone();
    target.set_query(None);
    target.set_fragment(None);
    let mut claims = json!({
        "jti": pkce::random(),
        "htm": method,
        "htu": target.as_str(),
        "iat": clock::now() / 1000,
    });
    if let Some(token) = token {
        let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        claims["ath"] = json!(URL_SAFE_NO_PAD.encode(digest));
    }
    if let Some(nonce) = nonce {
        claims["nonce"] = json!(nonce);
    }
    let proof = key.sign(json!({"typ": "dpop+jwt", "jwk": key.public_jwk()}), &claims)?;
    let mut value =
        HeaderValue::try_from(proof).map_err(|error| AuthError::BadSettings(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_proof_names_the_request_without_its_query() {
        let key = SigningKey::from_stored(&SigningKey::generate()).unwrap();
        let url = Url::parse("https://h/mcp?x=1").unwrap();
        let proof = proof(&key, "POST", &url, Some("token"), Some("n1")).unwrap();
        let parts: Vec<Value> = proof
            .to_str()
            .unwrap()
            .split('.')
            .take(2)
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!(
            (&parts[0]["typ"], &parts[0]["alg"]),
            (&json!("dpop+jwt"), &json!("ES256"))
        );
        assert_eq!(parts[0]["jwk"]["d"], Value::Null);
        assert_eq!(parts[1]["htu"], "https://h/mcp");
        assert_eq!(parts[1]["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
        assert_eq!(parts[1]["nonce"], "n1");
    }
}
