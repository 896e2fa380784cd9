//! What is done when a server refuses a request.

use http::HeaderValue;
use serde_json::json;

use super::*;
use crate::{Attempts, AuthError, ServerTokens, Starter, Verdict};

async fn refused(
    source: &ServerTokens,
    scripted: &Scripted,
    status: u16,
    challenge: &str,
    sent: &str,
    attempts: &mut Attempts,
) -> Verdict {
    let challenges = [challenge.to_owned()];
    let sent = HeaderValue::from_str(sent).unwrap();
    source
        .refused(
            &crate::Refusal {
                url: &scripted.url("/mcp"),
                status,
                challenges: &challenges,
                sent: Some(&sent),
                nonce: None,
            },
            attempts,
        )
        .await
}

#[tokio::test]
async fn an_unauthorized_request_is_repeated_once_with_a_new_token() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    preset(folder.path(), &scripted, json!({}));
    let source = process(folder.path()).source(scripted.settings());
    let mut attempts = Attempts::default();
    let verdict = refused(&source, &scripted, 401, "Bearer", "Bearer at-0", &mut attempts).await;
    assert!(matches!(verdict, Verdict::Retry));
    let verdict = refused(&source, &scripted, 401, "Bearer", "Bearer at-1", &mut attempts).await;
    assert!(matches!(verdict, Verdict::Login(AuthError::LoginNeeded)));
    // A token that is newer than the request's is tried without another refresh.
    let verdict = refused(
        &source,
        &scripted,
        401,
        "Bearer",
        "Bearer at-0",
        &mut Attempts::default(),
    )
    .await;
    assert!(matches!(verdict, Verdict::Retry));
    assert_eq!(scripted.seen("POST /token").len(), 1);
    let verdict = refused(
        &source,
        &scripted,
        403,
        "Bearer",
        "Bearer at-1",
        &mut Attempts::default(),
    )
    .await;
    assert!(matches!(verdict, Verdict::Refuse(None)));
}

#[tokio::test]
async fn a_missing_scope_is_asked_for_with_what_was_granted() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    preset(folder.path(), &scripted, json!({"scope": "files:read"}));
    let authorizer = process(folder.path());
    let source = authorizer.source(scripted.settings());
    let challenge = r#"Bearer error="insufficient_scope", scope="files:write""#;
    let verdict = refused(
        &source,
        &scripted,
        403,
        challenge,
        "Bearer at-0",
        &mut Attempts::default(),
    )
    .await;
    let Verdict::Login(error) = verdict else {
        panic!("{verdict:?}");
    };
    assert!(error.to_string().contains("files:write"));
    assert!(scripted.seen("POST /token").is_empty());
    let started = authorizer
        .start(scripted.settings(), Starter::Person)
        .await
        .unwrap();
    browse(&started.url.unwrap()).await;
    started.completion.await.unwrap().unwrap();
    assert_eq!(
        scripted.seen("GET /authorize")[0].parameters["scope"],
        "files:read files:write"
    );
    // It was granted, and is still refused: no login can help.
    let verdict = refused(
        &source,
        &scripted,
        403,
        challenge,
        "Bearer at-1",
        &mut Attempts::default(),
    )
    .await;
    assert!(matches!(
        verdict,
        Verdict::Refuse(Some(AuthError::ScopeRefused { .. }))
    ));
    let another = r#"Bearer error="insufficient_scope", scope="admin""#;
    let mut attempts = Attempts {
        logins: 3,
        ..Attempts::default()
    };
    let verdict = refused(&source, &scripted, 403, another, "Bearer at-1", &mut attempts).await;
    assert!(matches!(verdict, Verdict::Refuse(_)));
}

#[tokio::test]
async fn another_issuer_sees_nothing_of_the_old_one() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    preset(
        folder.path(),
        &scripted,
        json!({"issuer": "https://old.example", "client": {"id": "c-old"}}),
    );
    let authorizer = process(folder.path());
    let started = authorizer
        .start(scripted.settings(), Starter::Person)
        .await
        .unwrap();
    browse(&started.url.unwrap()).await;
    started.completion.await.unwrap().unwrap();
    assert_eq!(scripted.seen("POST /register").len(), 1);
    assert_eq!(scripted.seen("GET /authorize")[0].parameters["client_id"], "c-1");
    let record = stored(folder.path(), &scripted);
    assert_eq!(record["issuer"], scripted.0.origin);

    // A client of the entry is not carried over silently.
    let client = json!({"id": "mine", "kind": "configured"});
    preset(
        folder.path(),
        &scripted,
        json!({"issuer": "https://old.example", "client": client}),
    );
    let mut settings = scripted.settings();
    settings.client_id = Some("mine".to_owned());
    let error = authorizer
        .start(settings.clone(), Starter::Person)
        .await
        .unwrap_err();
    assert!(matches!(error, AuthError::ForeignIssuer { .. }), "{error}");
    settings.issuer = Some(scripted.0.origin.clone());
    assert!(authorizer.start(settings, Starter::Person).await.is_ok());
}

#[tokio::test]
async fn a_login_that_took_place_meanwhile_is_enough() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    // Nothing to refresh with: without the newer token only a login would help.
    preset(
        folder.path(),
        &scripted,
        json!({"accessToken": "at-9", "refreshToken": null}),
    );
    let source = process(folder.path()).source(scripted.settings());
    let mut attempts = Attempts::default();
    let verdict = refused(&source, &scripted, 401, "Bearer", "Bearer at-0", &mut attempts).await;
    assert!(matches!(verdict, Verdict::Retry), "{verdict:?}");
    let verdict = refused(&source, &scripted, 401, "Bearer", "Bearer at-9", &mut attempts).await;
    assert!(matches!(verdict, Verdict::Login(_)), "{verdict:?}");
}

#[tokio::test]
async fn one_login_is_for_all_requests_that_wait_for_it() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    preset(
        folder.path(),
        &scripted,
        json!({"scope": "files:read", "refreshToken": null}),
    );
    let authorizer = process(folder.path());
    let source = authorizer.source(scripted.settings());
    let more = r#"Bearer error="insufficient_scope", scope="files:write""#;
    for (status, challenge) in [
        (403, more),
        (401, r#"Bearer error="invalid_token", scope="files:list""#),
        (401, "Bearer"),
    ] {
        let verdict = refused(
            &source,
            &scripted,
            status,
            challenge,
            "Bearer at-0",
            &mut Attempts::default(),
        )
        .await;
        assert!(matches!(verdict, Verdict::Login(_)), "{challenge}: {verdict:?}");
    }
    let started = authorizer
        .start(scripted.settings(), Starter::Person)
        .await
        .unwrap();
    let url = Url::parse(started.url.as_deref().unwrap()).unwrap();
    let scope = url.query_pairs().find(|(name, _)| name == "scope").unwrap().1;
    assert!(scope.contains("files:write"), "{scope}");
}
