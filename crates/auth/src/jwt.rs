//! Signed JSON Web Tokens (RFC 7515, RFC 7519) with the algorithms that `ring` knows.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

use crate::error::AuthError;
use crate::secret::Secret;
use crate::settings::SigningSettings;

/// A private key and the algorithm it signs with (RFC 7518 §3, RFC 8037).
pub(crate) enum SigningKey {
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads the key of a client.
    pub fn from_settings(settings: &SigningSettings) -> Result<SigningKey, AuthError> {
        let (label, der) = pem(settings.private_key.expose())
            .ok_or_else(|| AuthError::BadSettings("`oauth.privateKey` is no PEM text".to_owned()))?;
        let wanted = settings.algorithm.as_deref();
        let key = SigningKey::from_der(&label, &der, wanted)?;
        match wanted {
            Some(wanted) if wanted != key.algorithm() => Err(AuthError::BadSettings(format!(
                "`oauth.privateKey` is a key for {}, not for {wanted}",
                key.algorithm()
            ))),
            _ => Ok(key),
        }
    }

    fn from_der(label: &str, der: &[u8], wanted: Option<&str>) -> Result<SigningKey, AuthError> {
        if let Some(wanted) = wanted
            && !["ES256", "RS256", "EdDSA"].contains(&wanted)
        {
            return Err(AuthError::BadSettings(format!(
                "the algorithm `{wanted}` is not supported; ES256, RS256 and EdDSA are"
            )));
        }
        let unreadable = || {
            AuthError::BadSettings(
                "`oauth.privateKey` cannot be read: it must be a P-256, RSA (2048 bits or more) or Ed25519 key in PKCS#8 (`openssl pkcs8 -topk8 -nocrypt`)"
                    .to_owned(),
            )
        };
        if label == "RSA PRIVATE KEY" {
            return RsaKeyPair::from_der(der)
                .map(SigningKey::Rs256)
                .map_err(|_| unreadable());
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new())
        {
            return Ok(SigningKey::Es256(key));
        }
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(SigningKey::EdDsa(key));
        }
        RsaKeyPair::from_pkcs8(der)
            .map(SigningKey::Rs256)
            .map_err(|_| unreadable())
    }

    /// A new P-256 key, as text for the store.
    pub fn generate() -> Secret {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .expect("the system's source of randomness works");
        Secret::new(STANDARD.encode(document))
    }

    /// Reads what [`SigningKey::generate`] made.
    pub fn from_stored(text: &Secret) -> Option<SigningKey> {
        let der = STANDARD.decode(text.expose()).ok()?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &SystemRandom::new());
        key.ok().map(SigningKey::Es256)
    }

    pub fn algorithm(&self) -> &'static str {
        match self {
            SigningKey::Es256(_) => "ES256",
            SigningKey::Rs256(_) => "RS256",
            SigningKey::EdDsa(_) => "EdDSA",
        }
    }

    /// The public key (RFC 7517) of a P-256 key.
    pub fn public_jwk(&self) -> Option<Value> {
        let SigningKey::Es256(key) = self else {
            return None;
        };
        // An uncompressed point: 4, x, y.
        let (x, y) = key.public_key().as_ref().get(1..65)?.split_at(32);
        Some(json!({
            "kty": "EC",
            "crv": "P-256",
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        }))
    }

    /// Signs claims; `alg` is added to the header.
    pub fn sign(&self, mut header: Value, claims: &Value) -> Result<String, AuthError> {
        header["alg"] = json!(self.algorithm());
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&header), encode(claims));
        let random = SystemRandom::new();
        let failed = |_| AuthError::BadSettings("the key cannot sign".to_owned());
        let signature = match self {
            SigningKey::Es256(key) => key
                .sign(&random, text.as_bytes())
                .map_err(failed)?
                .as_ref()
                .to_vec(),
            SigningKey::EdDsa(key) => key.sign(text.as_bytes()).as_ref().to_vec(),
            SigningKey::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
                    .map_err(failed)?;
                signature
            }
        };
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The first block of a PEM text (RFC 7468): its label and its bytes. Variables of the environment often hold `\n` spelled out.
fn pem(text: &str) -> Option<(String, Vec<u8>)> {
    let text = text.replace("\\n", "\n");
    let rest = text.split_once("-----BEGIN ")?.1;
    let (label, rest) = rest.split_once("-----")?;
    let body = rest.split_once("-----END ")?.0;
    let body: String = body
        .chars()
        .filter(|character| !character.is_whitespace())
        .collect();
    Some((label.to_owned(), STANDARD.decode(body).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    fn settings(pem: String, algorithm: Option<&str>) -> SigningSettings {
        SigningSettings {
            private_key: Secret::new(pem),
            algorithm: algorithm.map(str::to_owned),
            key_id: None,
        }
    }

    #[test]
    fn a_signature_can_be_verified() {
        let stored = SigningKey::generate();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n",
            stored.expose()
        );
        let key = SigningKey::from_settings(&settings(pem.clone(), Some("ES256"))).unwrap();
        let token = key.sign(json!({"typ": "JWT"}), &json!({"sub": "me"})).unwrap();
        let (text, signature) = token.rsplit_once('.').unwrap();
        let jwk = SigningKey::from_stored(&stored).unwrap().public_jwk().unwrap();
        let mut point = vec![4];
        for member in ["x", "y"] {
            point.extend(URL_SAFE_NO_PAD.decode(jwk[member].as_str().unwrap()).unwrap());
        }
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
            .unwrap();
        assert!(SigningKey::from_settings(&settings(pem.clone(), Some("RS256"))).is_err());
        assert!(SigningKey::from_settings(&settings(pem, Some("HS256"))).is_err());
        assert!(SigningKey::from_settings(&settings("nonsense".to_owned(), None)).is_err());
        let ed = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
            STANDARD.encode(ed)
        );
        assert_eq!(
            SigningKey::from_settings(&settings(pem, None))
                .unwrap()
                .algorithm(),
            "EdDSA"
        );
    }
}
