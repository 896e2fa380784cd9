//! Requests to the token endpoint, and its answers as servers really give them (RFC 6749 §5).

use http::HeaderMap;
use serde_json::Value;
use url::Url;

use crate::client::Credentials;
use crate::dpop::{self, DPOP, Nonces};
use crate::error::{AuthError, shown, shown_url};
use crate::guard::Reach;
use crate::jwt::SigningKey;
use crate::secret::Secret;
use crate::web::{Answer, Web};

/// What a grant brought.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub access_token: Secret,
    /// The scheme of the `Authorization` header.
    pub is_bound: bool,
    /// Seconds.
    pub expires_in: Option<u64>,
    pub refresh_token: Option<Secret>,
    pub scope: Option<String>,
}

/// A token endpoint and how to speak with it.
pub(crate) struct TokenEndpoint<'a> {
    pub web: &'a Web,
    pub url: &'a Url,
    pub reach: &'a Reach,
    /// `None` for a grant that identifies nobody.
    pub credentials: Option<&'a Credentials>,
    /// Binds the token to this key.
    pub key: Option<&'a SigningKey>,
    pub nonces: &'a Nonces,
}

impl TokenEndpoint<'_> {
    /// One grant.
    pub async fn token(&self, form: Vec<(&'static str, String)>) -> Result<Token, AuthError> {
        let members = self.request(form).await?;
        read(&members)
    }

    /// One request and the members of its successful answer.
    pub async fn request(&self, form: Vec<(&'static str, String)>) -> Result<Members, AuthError> {
        let mut is_repeated = false;
        loop {
            let mut headers = HeaderMap::new();
            let mut form = form.clone();
            if let Some(credentials) = self.credentials {
                credentials.add(&mut form, &mut headers)?;
            }
            if let Some(key) = self.key {
                let nonce = self.nonces.get(self.url);
                headers.insert(DPOP, dpop::proof(key, "POST", self.url, None, nonce.as_deref())?);
            }
            let pairs: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = self
                .web
                .post_form("token_endpoint", self.url, &pairs, headers, self.reach)
                .await?;
            if let Some(nonce) = answer.dpop_nonce() {
                self.nonces.put(self.url, nonce);
            }
            let outcome = members(self.url, &answer);
            match &outcome {
                // RFC 9449 §8: once more, with the nonce.
                Err(AuthError::TokenRefused { error, .. })
                    if error == "use_dpop_nonce" && self.key.is_some() && !is_repeated =>
                {
                    is_repeated = true;
                }
                _ => return outcome,
            }
        }
    }
}

/// The members of an answer.
pub(crate) type Members = serde_json::Map<String, Value>;

fn members(url: &Url, answer: &Answer) -> Result<Members, AuthError> {
    let unavailable = || AuthError::Unavailable {
        url: shown_url(url.as_str()),
        status: answer.status,
    };
    let members = match answer.json() {
        Some(Value::Object(members)) => members,
        // GitHub's older endpoint answers with a form although JSON is asked for.
        _ => {
            let form: Members = url::form_urlencoded::parse(&answer.body)
                .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
                .collect();
            let is_form = form.contains_key("access_token") || form.contains_key("error");
            match (is_form, answer.status) {
                (true, _) => form,
                (false, 429 | 500..) => return Err(unavailable()),
                (false, status) => {
                    return Err(AuthError::BadTokenAnswer(format!(
                        "HTTP status {status} without JSON"
                    )));
                }
            }
        }
    };
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(shown);
    let error = text("error").or_else(|| {
        // Slack says `ok: false`; others send an error object of their own with a status.
        let is_refused = members.get("ok") == Some(&Value::Bool(false)) || !answer.is_success();
        is_refused.then(|| text("message").unwrap_or_else(|| "unknown_error".to_owned()))
    });
    match error {
        None => Ok(members),
        Some(error)
            if error == "temporarily_unavailable" || error == "server_error" || answer.status >= 500 =>
        {
            Err(unavailable())
        }
        Some(error) => Err(AuthError::TokenRefused {
            status: answer.status,
            error,
            description: text("error_description").unwrap_or_default(),
        }),
    }
}

/// Reads a token out of an answer.
pub(crate) fn read(members: &Members) -> Result<Token, AuthError> {
    let text = |name: &str| {
        members
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let access_token = text("access_token")
        .ok_or_else(|| AuthError::BadTokenAnswer("it holds no access_token".to_owned()))?;
    if !access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AuthError::BadTokenAnswer(
            "its access_token holds characters that no header may have".to_owned(),
        ));
    }
    let is_bound = match text("token_type") {
        None => false,
        Some(kind) if kind.eq_ignore_ascii_case("bearer") => false,
        Some(kind) if kind.eq_ignore_ascii_case("dpop") => true,
        Some(kind) => {
            return Err(AuthError::BadTokenAnswer(format!(
                "tokens of the type `{}` are not supported",
                shown(kind)
            )));
        }
    };
    Ok(Token {
        access_token: Secret::new(access_token),
        is_bound,
        expires_in: members.get("expires_in").and_then(seconds),
        refresh_token: text("refresh_token").map(Secret::new),
        scope: scope(members.get("scope")),
    })
}

/// Seconds as a number or as text. A negative number says nothing.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (seconds >= 0.0).then_some(seconds.min(1e10) as u64)
}

/// A scope as text, or as a list of texts.
fn scope(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(crate::scope::valid(text)),
        Value::Array(items) => {
            let scopes = items.iter().filter_map(Value::as_str);
            Some(crate::scope::valid(&scopes.collect::<Vec<_>>().join(" ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str) -> Result<Token, AuthError> {
        let answer = Answer {
            status,
            headers: HeaderMap::new(),
            body: body.as_bytes().to_vec(),
        };
        read(&members(&Url::parse("https://as/token").unwrap(), &answer)?)
    }

    #[test]
    fn answers_are_read_as_servers_give_them() {
        let token = check(
            200,
            r#"{"access_token":"a","token_type":"bearer","expires_in":"30","scope":["x","y"]}"#,
        )
        .unwrap();
        assert_eq!(
            (token.expires_in, token.scope.as_deref()),
            (Some(30), Some("x y"))
        );
        assert_eq!(format!("{:?}", token.access_token), "********");
        let token = check(200, "access_token=a&scope=repo+read%3Aorg&token_type=bearer").unwrap();
        assert_eq!(token.scope.as_deref(), Some("repo read:org"));
        assert!(
            check(200, r#"{"access_token":"a","token_type":"DPoP","expires_in":-5}"#)
                .is_ok_and(|token| token.is_bound && token.expires_in.is_none())
        );
        let refused = |status, body: &str| check(status, body).unwrap_err().to_string();
        assert!(refused(200, r#"{"error":"bad_verification_code"}"#).contains("bad_verification_code"));
        assert!(refused(200, r#"{"ok":false,"error":"invalid_code"}"#).contains("invalid_code"));
        assert!(refused(200, r#"{"access_token":"a","token_type":"mac"}"#).contains("mac"));
        assert!(refused(200, r#"{"access_token":"a\nb"}"#).contains("characters"));
        assert!(refused(200, "<html>").contains("without JSON"));
        assert!(refused(200, "{}").contains("no access_token"));
        assert!(check(503, "<h1>").unwrap_err().is_transient());
        assert!(check(500, r#"{"error":"x"}"#).unwrap_err().is_transient());
        assert!(
            !check(400, r#"{"error":"invalid_grant"}"#)
                .unwrap_err()
                .is_transient()
        );
    }
}
