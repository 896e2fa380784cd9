//! Tokens without a browser, and tokens that are bound to a key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;
use crate::jwt::SigningKey;
use crate::{Attempts, AuthError, Enterprise, Grant, Secret, SigningSettings, Starter, Verdict};

/// The claims of a JWT.
fn claims(jwt: &str) -> Value {
    let part = jwt.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// A request that is refused, and what it is repeated with.
async fn retried(settings: crate::Settings, scripted: &Scripted) -> Result<Option<String>, AuthError> {
    let folder = tempfile::tempdir().unwrap();
    let source = process(folder.path()).source(settings);
    let refusal = crate::Refusal {
        url: &scripted.url("/mcp"),
        status: 401,
        challenges: &[],
        sent: None,
        nonce: None,
    };
    match source.refused(&refusal, &mut Attempts::default()).await {
        Verdict::Retry => Ok(authorization(&source, scripted).await),
        Verdict::Login(error) | Verdict::Refuse(Some(error)) => Err(error),
        Verdict::Refuse(None) => Ok(None),
    }
}

#[tokio::test]
async fn a_client_logs_in_for_itself() {
    let scripted = Scripted::start().await;
    scripted.on("POST /token", [token("at-1", None, 3600)]);
    let mut settings = scripted.settings();
    settings.grant = Grant::ClientCredentials { key: None };
    let error = retried(settings.clone(), &scripted).await.unwrap_err();
    assert!(error.to_string().contains("clientId"));
    settings.client_id = Some("me".to_owned());
    settings.client_secret = Some(Secret::new("s"));
    assert_eq!(
        retried(settings.clone(), &scripted).await.unwrap().as_deref(),
        Some("Bearer at-1")
    );
    let seen = &scripted.seen("POST /token")[0];
    assert_eq!(seen.headers["authorization"], "Basic bWU6cw==");
    assert_eq!(seen.parameters["grant_type"], "client_credentials");

    let key = SigningKey::generate();
    settings.client_secret = None;
    settings.grant = Grant::ClientCredentials {
        key: Some(SigningSettings {
            private_key: Secret::new(format!(
                "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
                key.expose()
            )),
            algorithm: None,
            key_id: Some("k1".to_owned()),
        }),
    };
    retried(settings, &scripted).await.unwrap();
    let form = &scripted.seen("POST /token")[1].parameters;
    let claims = claims(&form["client_assertion"]);
    assert_eq!(
        (&claims["iss"], &claims["sub"], &claims["aud"]),
        (&json!("me"), &json!("me"), &json!(scripted.0.origin))
    );
    assert_eq!(form.get("client_id"), None);
}

#[tokio::test]
async fn a_client_signs_with_an_rsa_key() {
    let scripted = Scripted::start().await;
    let pem = include_str!("rsa-2048.pem");
    let mut settings = scripted.settings();
    settings.client_id = Some("me".to_owned());
    let with = |algorithm: Option<&str>| Grant::ClientCredentials {
        key: Some(SigningSettings {
            private_key: Secret::new(pem),
            algorithm: algorithm.map(str::to_owned),
            key_id: None,
        }),
    };
    settings.grant = with(Some("ES256"));
    let error = retried(settings.clone(), &scripted).await.unwrap_err();
    assert!(
        error.to_string().contains("a key for RS256, not for ES256"),
        "{error}"
    );
    for algorithm in [None, Some("RS256")] {
        settings.grant = with(algorithm);
        retried(settings.clone(), &scripted).await.unwrap();
        let form = &scripted.seen("POST /token").last().unwrap().parameters.clone();
        let jwt = &form["client_assertion"];
        let (signed, signature) = jwt.rsplit_once('.').unwrap();
        let header = URL_SAFE_NO_PAD.decode(signed.split('.').next().unwrap()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&header).unwrap()["alg"], "RS256");
        let der = base64::engine::general_purpose::STANDARD
            .decode(
                pem.lines()
                    .filter(|line| !line.starts_with('-'))
                    .collect::<String>(),
            )
            .unwrap();
        let key = ring::signature::RsaKeyPair::from_pkcs8(&der).unwrap();
        let public = ring::signature::KeyPair::public_key(&key);
        ring::signature::UnparsedPublicKey::new(&ring::signature::RSA_PKCS1_2048_8192_SHA256, public)
            .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
            .unwrap();
    }
}

#[tokio::test]
async fn an_assertion_of_somebody_else_is_presented_once() {
    let scripted = Scripted::start().await;
    scripted.on("POST /token", [answer(400, &json!({"error": "invalid_grant"}))]);
    let mut settings = scripted.settings();
    settings.grant = Grant::JwtBearer {
        assertion: Secret::new("a.b.c"),
    };
    let error = retried(settings, &scripted).await.unwrap_err();
    assert_eq!(error.oauth_error(), Some("invalid_grant"));
    let seen = scripted.seen("POST /token");
    assert_eq!(
        (seen.len(), seen[0].parameters["assertion"].as_str()),
        (1, "a.b.c")
    );
}

#[tokio::test]
async fn an_identity_provider_vouches_for_the_person() {
    let scripted = Scripted::start().await;
    let id_jag = "urn:ietf:params:oauth:token-type:id-jag";
    scripted.on(
        "POST /idp",
        [answer(200, &json!({"issued_token_type": id_jag, "token_type": "N_A", "access_token": "jag", "expires_in": 300}))],
    );
    let mut settings = scripted.settings();
    settings.client_id = Some("me".to_owned());
    settings.grant = Grant::Enterprise(Enterprise {
        token_endpoint: scripted.url("/idp").into(),
        issuer: None,
        client_id: "me-at-idp".to_owned(),
        client_secret: None,
        subject_token: Secret::new("id-token"),
        subject_token_type: None,
    });
    assert_eq!(
        retried(settings, &scripted).await.unwrap().as_deref(),
        Some("Bearer at-1")
    );
    let exchange = &scripted.seen("POST /idp")[0].parameters;
    assert_eq!(
        (exchange["audience"].as_str(), exchange["client_id"].as_str()),
        (scripted.0.origin.as_str(), "me-at-idp")
    );
    assert_eq!(exchange["resource"], format!("{}/mcp", scripted.0.origin));
    assert_eq!(scripted.seen("POST /token")[0].parameters["assertion"], "jag");
}

#[tokio::test]
async fn a_person_logs_in_on_another_device() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    scripted.metadata(json!({"device_authorization_endpoint": format!("{}/device", scripted.0.origin)}));
    scripted.on(
        "POST /device",
        [answer(200, &json!({
            "device_code": "d-1", "user_code": "ABCD-EFGH", "verification_uri": format!("{}/activate", scripted.0.origin),
            "expires_in": "300", "interval": 0,
        }))],
    );
    let pending = answer(400, &json!({"error": "authorization_pending"}));
    scripted.on("POST /token", [pending, token("at-1", None, 3600)]);
    let mut settings = scripted.settings();
    settings.grant = Grant::DeviceCode;
    let started = process(folder.path())
        .start(settings, Starter::Person)
        .await
        .unwrap();
    assert_eq!(started.user_code.as_deref(), Some("ABCD-EFGH"));
    assert!(started.url.unwrap().ends_with("/activate"));
    started.completion.await.unwrap().unwrap();
    assert_eq!(scripted.seen("POST /token").len(), 2);
    assert_eq!(
        scripted.seen("POST /register")[0].json["redirect_uris"],
        Value::Null
    );
    assert_eq!(stored(folder.path(), &scripted)["accessToken"], "at-1");
}

#[tokio::test]
async fn a_bound_token_comes_with_a_fresh_proof_and_the_servers_nonce() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    scripted.on(
        "POST /token",
        [
            answer(400, &json!({"error": "use_dpop_nonce"})).header("dpop-nonce", "n-as"),
            answer(200, &json!({"access_token": "at-d", "token_type": "DPoP"})),
        ],
    );
    let mut settings = scripted.settings();
    settings.dpop = true;
    let authorizer = process(folder.path());
    let started = authorizer.start(settings.clone(), Starter::Person).await.unwrap();
    assert_eq!(browse(&started.url.unwrap()).await.0, 200);
    started.completion.await.unwrap().unwrap();
    let proofs: Vec<Value> = scripted
        .seen("POST /token")
        .iter()
        .map(|seen| claims(seen.headers["dpop"].to_str().unwrap()))
        .collect();
    assert_eq!(
        (&proofs[0]["nonce"], &proofs[1]["nonce"]),
        (&Value::Null, &json!("n-as"))
    );
    assert_ne!(proofs[0]["jti"], proofs[1]["jti"]);

    let source = authorizer.source(settings);
    let url = scripted.url("/mcp");
    let refusal = crate::Refusal {
        url: &url,
        status: 401,
        challenges: &[r#"DPoP error="use_dpop_nonce""#.to_owned()],
        sent: Some(&http::HeaderValue::from_static("DPoP at-d")),
        nonce: Some("n-rs"),
    };
    let mut attempts = Attempts::default();
    assert!(matches!(
        source.refused(&refusal, &mut attempts).await,
        Verdict::Retry
    ));
    let headers = source.headers("POST", &url).await.unwrap();
    assert_eq!(headers["authorization"], "DPoP at-d");
    let proof = claims(headers["dpop"].to_str().unwrap());
    assert_eq!(
        (&proof["nonce"], &proof["htm"], &proof["htu"]),
        (&json!("n-rs"), &json!("POST"), &json!(url.as_str()))
    );
    assert!(!matches!(
        source.refused(&refusal, &mut attempts).await,
        Verdict::Retry
    ));
}
