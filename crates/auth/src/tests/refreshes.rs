//! Tokens that end: one refresh for everybody, whatever the authorization server answers.

use futures_util::future::join_all;
use serde_json::json;

use super::*;
use crate::AuthError;
use crate::clock;

fn soon() -> u64 {
    clock::now() + 30_000
}

/// An authorization server that takes every refresh token once.
fn rotates(scripted: &Scripted) {
    scripted.on(
        "POST /token",
        [
            token("at-1", Some("rt-1"), 3600).after(200),
            answer(
                400,
                &json!({"error": "invalid_grant", "error_description": "reuse"}),
            ),
        ],
    );
}

#[tokio::test]
async fn many_tasks_of_two_processes_share_one_refresh() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    rotates(&scripted);
    preset(folder.path(), &scripted, json!({"expiresAt": soon()}));
    let processes = [process(folder.path()), process(folder.path())];
    let sources = processes.map(|process| process.source(scripted.settings()));
    let requests = (0..10).map(|at| authorization(&sources[at % 2], &scripted));
    for value in join_all(requests).await {
        assert_eq!(value.as_deref(), Some("Bearer at-1"));
    }
    assert_eq!(scripted.seen("POST /token").len(), 1);
    assert_eq!(stored(folder.path(), &scripted)["refreshToken"], "rt-1");
}

#[tokio::test]
async fn a_caller_that_gives_up_loses_no_rotated_token() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    rotates(&scripted);
    preset(folder.path(), &scripted, json!({"expiresAt": soon()}));
    let authorizer = process(folder.path());
    let source = authorizer.source(scripted.settings());
    let hasty = tokio::time::timeout(
        std::time::Duration::from_millis(50),
        authorization(&source, &scripted),
    );
    assert!(hasty.await.is_err());
    assert_eq!(
        authorization(&source, &scripted).await.as_deref(),
        Some("Bearer at-1")
    );
    assert_eq!(scripted.seen("POST /token").len(), 1);
}

#[tokio::test]
async fn a_refused_refresh_token_is_dropped_and_the_registration_stays() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    scripted.on("POST /token", [answer(400, &json!({"error": "invalid_grant"}))]);
    preset(folder.path(), &scripted, json!({"expiresAt": soon()}));
    let source = process(folder.path()).source(scripted.settings());
    assert_eq!(authorization(&source, &scripted).await, None);
    let record = stored(folder.path(), &scripted);
    assert_eq!(
        (&record["refreshToken"], &record["client"]["id"]),
        (&Value::Null, &json!("c-0"))
    );
    assert_eq!(scripted.seen("POST /token").len(), 1);

    scripted.on("POST /token", [answer(401, &json!({"error": "invalid_client"}))]);
    preset(folder.path(), &scripted, json!({"expiresAt": soon()}));
    assert_eq!(authorization(&source, &scripted).await, None);
    assert_eq!(stored(folder.path(), &scripted), Value::Null);
}

#[tokio::test]
async fn the_loser_of_a_race_keeps_the_winners_tokens() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    scripted.on(
        "POST /token",
        [answer(400, &json!({"error": "invalid_grant"})).after(300)],
    );
    preset(folder.path(), &scripted, json!({"expiresAt": soon()}));
    let source = process(folder.path()).source(scripted.settings());
    let loser = authorization(&source, &scripted);
    let winner = async {
        // A program that knows nothing of our locks.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        preset(
            folder.path(),
            &scripted,
            json!({"accessToken": "at-w", "refreshToken": "rt-w"}),
        );
    };
    let (value, ()) = tokio::join!(loser, winner);
    assert_eq!(value.as_deref(), Some("Bearer at-w"));
    assert_eq!(stored(folder.path(), &scripted)["refreshToken"], "rt-w");
}

#[tokio::test]
async fn a_network_error_keeps_everything() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let broken = Answer {
        status: 503,
        body: "<h1>Bad gateway</h1>".to_owned(),
        ..Answer::default()
    };
    scripted.on("POST /token", [broken, token("at-1", None, 3600)]);
    preset(folder.path(), &scripted, json!({"expiresAt": soon()}));
    let source = process(folder.path()).source(scripted.settings());
    // It is still good for half a minute.
    assert_eq!(
        authorization(&source, &scripted).await.as_deref(),
        Some("Bearer at-0")
    );
    assert_eq!(stored(folder.path(), &scripted)["refreshToken"], "rt-0");
    assert_eq!(
        authorization(&source, &scripted).await.as_deref(),
        Some("Bearer at-1")
    );
    // The answer named no new refresh token.
    assert_eq!(stored(folder.path(), &scripted)["refreshToken"], "rt-0");

    scripted.on("POST /token", [answer(503, &json!({}))]);
    preset(folder.path(), &scripted, json!({"expiresAt": clock::now()}));
    let error = source.headers("POST", &scripted.url("/mcp")).await.unwrap_err();
    assert!(
        error.is_transient() && matches!(error, AuthError::Unavailable { .. }),
        "{error}"
    );
    assert_eq!(stored(folder.path(), &scripted)["accessToken"], "at-0");
}

#[tokio::test]
async fn the_refresh_proves_who_we_are() {
    let (scripted, folder) = (Scripted::start().await, tempfile::tempdir().unwrap());
    let client = json!({"id": "c-9", "secret": "s-9", "method": "client_secret_basic", "kind": "dynamic"});
    preset(
        folder.path(),
        &scripted,
        json!({"expiresAt": soon(), "client": client}),
    );
    let source = process(folder.path()).source(scripted.settings());
    assert_eq!(
        authorization(&source, &scripted).await.as_deref(),
        Some("Bearer at-1")
    );
    let seen = &scripted.seen("POST /token")[0];
    assert_eq!(seen.headers["authorization"], "Basic Yy05OnMtOQ==");
    assert_eq!(seen.parameters.get("client_secret"), None);
    assert_eq!(seen.parameters.get("scope"), None);
    assert_eq!(seen.parameters["resource"], format!("{}/mcp", scripted.0.origin));
}
