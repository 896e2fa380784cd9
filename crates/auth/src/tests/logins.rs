//! Logins of a person in a browser: the whole way, and everything that may come in between.

use serde_json::json;

use super::*;
use crate::{AuthError, Starter};

#[tokio::test]
async fn a_login_from_the_challenge_to_the_token() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let authorizer = process(folder.path());
    let settings = scripted.settings();
    let key = settings.key();
    let started = authorizer.start(settings.clone(), Starter::Person).await.unwrap();
    assert!(authorizer.is_pending(&key));
    let url = started.url.unwrap();
    let (status, page) = browse(&url).await;
    assert_eq!(status, 200);
    assert!(page.contains("You are logged in"), "{page}");
    started.completion.await.unwrap().unwrap();
    assert!(!authorizer.is_pending(&key));

    let registration = &scripted.seen("POST /register")[0].json;
    assert_eq!(
        registration,
        &json!({
            "client_name": "Pillion (test)",
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "redirect_uris": [started.redirect_uri.as_deref()],
        })
    );
    let form = &scripted.seen("POST /token")[0].parameters;
    let resource = format!("{}/mcp", scripted.0.origin);
    let rows = [
        ("grant_type", "authorization_code"),
        ("code", "code-1"),
        ("client_id", "c-1"),
        ("redirect_uri", started.redirect_uri.as_deref().unwrap()),
        ("resource", &resource),
    ];
    for (name, value) in rows {
        assert_eq!(form[name], value, "{name}");
    }
    let asked = &scripted.seen("GET /authorize")[0].parameters;
    assert_eq!(
        (asked["client_id"].as_str(), asked["resource"].as_str()),
        ("c-1", resource.as_str())
    );

    // Another process knows it at once.
    let other = process(folder.path());
    let source = other.source(settings);
    assert_eq!(
        authorization(&source, &scripted).await.as_deref(),
        Some("Bearer at-1")
    );
    let known = other.stored(&key).unwrap();
    assert!(known.is_usable() && !known.is_expired && known.is_renewable);
    // Nobody else gets the token.
    let elsewhere = Scripted::start().await;
    assert_eq!(
        source
            .headers("POST", &elsewhere.url("/mcp"))
            .await
            .unwrap()
            .len(),
        0
    );
    other.forget(&key, None).await.unwrap();
    assert!(authorizer.stored(&key).is_none());
    assert!(authorizer.list().is_empty());
}

#[tokio::test]
async fn strangers_at_the_listener_do_not_disturb_a_login() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let authorizer = process(folder.path());
    let started = authorizer
        .start(scripted.settings(), Starter::Person)
        .await
        .unwrap();
    let redirect = started.redirect_uri.unwrap();
    assert_eq!(
        browse(&redirect.replace("/callback", "/favicon.ico")).await.0,
        404
    );
    assert_eq!(browse(&format!("{redirect}?code=zz&state=wrong")).await.0, 400);
    assert_eq!(
        browse(&format!("{redirect}?error=access_denied&state=wrong"))
            .await
            .0,
        400
    );
    let post = client().build().unwrap().post(&redirect).send().await.unwrap();
    assert_eq!(post.status(), 405);
    let rebound = client()
        .build()
        .unwrap()
        .get(&redirect)
        .header("host", "evil.example");
    assert_eq!(rebound.send().await.unwrap().status(), 404);
    assert_eq!(browse(&started.url.unwrap()).await.0, 200);
    started.completion.await.unwrap().unwrap();
    assert_eq!(scripted.seen("POST /token").len(), 1);
    // The listener is gone.
    assert!(client().build().unwrap().get(&redirect).send().await.is_err());
}

/// Ends a login with a redirect that holds these parameters besides the right state.
async fn end_with(scripted: &Scripted, parameters: &str) -> (AuthError, String) {
    let folder = tempfile::tempdir().unwrap();
    let authorizer = process(folder.path());
    let started = authorizer
        .start(scripted.settings(), Starter::Person)
        .await
        .unwrap();
    let url: Url = started.url.unwrap().parse().unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1;
    let (_, page) = browse(&format!(
        "{}?state={state}&{parameters}",
        started.redirect_uri.unwrap()
    ))
    .await;
    let error = started.completion.await.unwrap().unwrap_err();
    assert!(authorizer.list().is_empty());
    (error, page)
}

#[tokio::test]
async fn a_login_ends_with_what_the_authorization_server_says() {
    let scripted = Scripted::start().await;
    let (error, page) = end_with(&scripted, "error=access_denied&error_description=%3Cb%3Eno").await;
    assert!(matches!(error, AuthError::Denied { .. }));
    assert!(
        page.contains("access_denied") && page.contains("&lt;b&gt;no"),
        "{page}"
    );
    let (error, _) = end_with(&scripted, "error=server_error").await;
    assert_eq!(error.oauth_error(), Some("server_error"));
    let (error, page) = end_with(
        &scripted,
        "error=x&error_description=secret-text&iss=https://evil.example",
    )
    .await;
    assert!(matches!(error, AuthError::IssMismatch { .. }), "{error}");
    assert!(!page.contains("secret-text"));
    scripted.metadata(json!({"authorization_response_iss_parameter_supported": true}));
    let (error, _) = end_with(&scripted, "code=code-1").await;
    assert!(error.to_string().contains("iss"), "{error}");
    let slash = format!("code=code-1&iss={}/", scripted.0.origin);
    assert!(matches!(
        end_with(&scripted, &slash).await.0,
        AuthError::IssMismatch { .. }
    ));
    assert!(scripted.seen("POST /token").is_empty());
    scripted.metadata(json!({}));
    scripted.on(
        "POST /token",
        [answer(200, &json!({"ok": false, "error": "invalid_code"}))],
    );
    let (error, page) = end_with(&scripted, "code=code-1").await;
    assert!(error.to_string().contains("invalid_code") && page.contains("invalid_code"));
}

#[tokio::test]
async fn an_address_can_be_pasted_instead() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let authorizer = process(folder.path());
    let settings = scripted.settings();
    let key = settings.key();
    assert!(matches!(
        authorizer.complete(&key, "code").await,
        Err(AuthError::NoLogin)
    ));
    let started = authorizer.start(settings, Starter::Person).await.unwrap();
    let url: Url = started.url.unwrap().parse().unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1;
    let redirect = started.redirect_uri.unwrap();
    let wrong = authorizer
        .complete(&key, &format!("{redirect}?code=code-1&state=other"))
        .await;
    assert!(matches!(wrong, Err(AuthError::StateMismatch)));
    assert!(matches!(
        authorizer.complete(&key, "http://127.0.0.1/").await,
        Err(AuthError::BadRedirect(_))
    ));
    assert!(authorizer.is_pending(&key));
    authorizer
        .complete(&key, &format!(" {redirect}?code=code-1&state={state}\n"))
        .await
        .unwrap();
    started.completion.await.unwrap().unwrap();
    assert_eq!(stored(folder.path(), &scripted)["accessToken"], "at-1");
}

#[tokio::test]
async fn one_login_per_server_and_cancelled_ones_end_at_once() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let authorizer = process(folder.path());
    let settings = scripted.settings();
    let key = settings.key();
    let first = authorizer.start(settings.clone(), Starter::Person).await.unwrap();
    let second = authorizer.start(settings, Starter::Person).await.unwrap();
    assert!(matches!(
        first.completion.await.unwrap(),
        Err(AuthError::Cancelled)
    ));
    assert!(authorizer.is_pending(&key));
    // Another program neither ends it nor takes its place.
    assert!(authorizer.cancel(&key, Starter::Program).is_err());
    let foreign = authorizer.start(scripted.settings(), Starter::Program).await;
    assert!(matches!(foreign, Err(AuthError::Foreign)));
    assert!(authorizer.is_pending(&key));
    assert!(authorizer.cancel(&key, Starter::Person).unwrap());
    assert!(matches!(
        second.completion.await.unwrap(),
        Err(AuthError::Cancelled)
    ));
    assert!(!authorizer.cancel(&key, Starter::Person).unwrap() && !authorizer.is_pending(&key));
    assert!(
        client()
            .build()
            .unwrap()
            .get(second.redirect_uri.unwrap())
            .send()
            .await
            .is_err()
    );
}

#[tokio::test]
async fn nothing_is_registered_for_a_login_that_cannot_take_place() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let authorizer = process(folder.path());
    let busy = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = busy.local_addr().unwrap().port();
    let mut settings = scripted.settings();
    settings.callback_port = Some(port);
    let refused = |error: AuthError| error.to_string();
    let error = authorizer
        .start(settings.clone(), Starter::Person)
        .await
        .unwrap_err();
    assert!(refused(error).contains(&port.to_string()));
    drop(busy);
    let good = scripted.settings();
    let rows = [
        (
            json!({"authorization_endpoint": "file:///etc/passwd"}),
            "authorization_endpoint",
        ),
        (json!({"token_endpoint": "http://192.0.2.7/token"}), "https"),
        (
            json!({"token_endpoint": "https://192.168.0.7/token"}),
            "private network",
        ),
        (json!({"code_challenge_methods_supported": ["plain"]}), "S256"),
        (json!({"issuer": "https://evil.example"}), "issuer"),
        (json!({"issuer": null}), "issuer"),
        (json!({"response_types_supported": ["token"]}), "`code`"),
    ];
    for (change, expected) in rows {
        scripted.metadata(change);
        let error = authorizer.start(good.clone(), Starter::Person).await.unwrap_err();
        assert!(refused(error).contains(expected), "{expected}");
    }
    assert!(scripted.seen("POST /register").is_empty());
    assert!(!authorizer.is_pending(&good.key()));
    scripted.metadata(json!({"registration_endpoint": null}));
    let error = authorizer
        .start(settings.clone(), Starter::Person)
        .await
        .unwrap_err();
    let expected = format!("http://127.0.0.1:{port}/mcp/oauth/callback");
    assert!(matches!(error, AuthError::RegistrationNeeded { redirect_uri } if redirect_uri == expected));
    settings.client_id = Some("mine".to_owned());
    settings.issuer = Some("https://another.example".to_owned());
    let error = authorizer.start(settings, Starter::Person).await.unwrap_err();
    assert!(matches!(error, AuthError::ForeignIssuer { .. }), "{error}");
}

#[tokio::test]
async fn a_fixed_port_keeps_its_registration() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let authorizer = process(folder.path());
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut settings = scripted.settings();
    settings.callback_port = Some(free.local_addr().unwrap().port());
    drop(free);
    for _ in 0..2 {
        let started = authorizer.start(settings.clone(), Starter::Person).await.unwrap();
        assert_eq!(browse(&started.url.unwrap()).await.0, 200);
        started.completion.await.unwrap().unwrap();
    }
    assert_eq!(scripted.seen("POST /register").len(), 1);
}

#[tokio::test]
async fn a_server_without_metadata_is_its_own_authorization_server() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    scripted.on(
        "GET /.well-known/oauth-protected-resource/mcp",
        [answer(404, &json!({}))],
    );
    scripted.on(
        "GET /.well-known/oauth-authorization-server",
        [answer(404, &json!({}))],
    );
    let authorizer = process(folder.path());
    let started = authorizer
        .start(scripted.settings(), Starter::Person)
        .await
        .unwrap();
    assert_eq!(browse(&started.url.unwrap()).await.0, 200);
    started.completion.await.unwrap().unwrap();
    scripted.on("POST /register", [answer(404, &json!({}))]);
    let error = authorizer
        .start(scripted.settings(), Starter::Person)
        .await
        .unwrap_err();
    assert!(matches!(error, AuthError::NoMetadata { .. }), "{error}");
}

#[tokio::test]
async fn a_report_changes_nothing() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let challenge = r#"Bearer scope="files:read""#;
    scripted.on(
        "POST /mcp",
        [answer(401, &json!({})).header("www-authenticate", challenge)],
    );
    let authorizer = process(folder.path());
    let report = authorizer.debug(&scripted.settings()).await;
    assert_eq!(report.status, Some(401));
    assert_eq!(report.challenge.unwrap().scope(), Some("files:read"));
    assert_eq!(report.issuer.as_deref(), Some(scripted.0.origin.as_str()));
    assert_eq!(report.registration, Some(crate::ClientKind::Dynamic));
    assert!(
        report.error.is_none() && report.steps.iter().all(|step| step.is_good),
        "{:?}",
        report.steps
    );
    assert!(scripted.seen("POST /register").is_empty());
    assert!(!folder.path().join("mcp-auth.json").exists());
}
