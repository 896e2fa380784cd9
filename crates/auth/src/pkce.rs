//! Proof key for code exchange (RFC 7636), always with S256, and other values nobody may guess.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

use crate::secret::Secret;

/// A verifier and what is made of it.
#[derive(Clone, Debug)]
pub(crate) struct Pkce {
    pub verifier: Secret,
    pub challenge: String,
}

impl Pkce {
    pub fn new() -> Pkce {
        Pkce::of(random())
    }

    fn of(verifier: String) -> Pkce {
        let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        Pkce {
            challenge: URL_SAFE_NO_PAD.encode(digest),
            verifier: Secret::new(verifier),
        }
    }
}

/// 256 random bits in 43 characters that are allowed everywhere.
pub(crate) fn random() -> String {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system's source of randomness works");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_rfc() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(random().len(), 43);
        assert_ne!(random(), random());
    }
}
