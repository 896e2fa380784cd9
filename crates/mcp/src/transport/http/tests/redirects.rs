//! Where requests go and where they never go.

use bytes::Bytes;

use super::*;

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_and_remembered() {
    let mut setup = Setup::with(|target| {
        target
            .headers
            .append("authorization", HeaderValue::from_static("Bearer fixed"));
    })
    .await;
    let exchange = setup.call(1, "initialize").await;
    let body = exchange.body.clone();
    exchange
        .answer("307 Temporary Redirect\r\nLocation: /mcp/?a=1", "")
        .await;
    let exchange = setup.server.expect("POST", "/mcp/?a=1").await;
    assert_eq!(exchange.body, body);
    assert_eq!(exchange.header("authorization"), Some("Bearer fixed"));
    assert_eq!(exchange.header("content-type"), Some("application/json"));
    exchange.answer_json(&answer(1)).await;
    setup.expect_answer(1).await;

    setup.link.send(setup.inbox.request(2, "tools/list"));
    setup
        .server
        .expect("POST", "/mcp/?a=1")
        .await
        .answer_json(&answer(2))
        .await;
    setup.expect_answer(2).await;
    let listening = tokio::spawn(setup.link.listen());
    setup
        .server
        .expect("GET", "/mcp/?a=1")
        .await
        .answer("405 Method Not Allowed", "")
        .await;
    listening.await.expect("no panic");
}

#[tokio::test]
async fn a_redirect_elsewhere_is_refused_and_nothing_is_sent_there() {
    let mut evil = Server::start().await;
    let mut setup = Setup::new().await;
    let rows = [
        (
            format!(
                "307 Temporary Redirect\r\nLocation: {}/collect?secret=1",
                evil.origin
            ),
            format!("{}/collect", evil.origin),
        ),
        (
            "301 Moved Permanently\r\nLocation: /other".to_owned(),
            format!("{}/other", setup.server.origin),
        ),
        (
            "303 See Other\r\nLocation: /other".to_owned(),
            format!("{}/other", setup.server.origin),
        ),
        (
            "308 Permanent Redirect\r\nLocation: //user@localhost/".to_owned(),
            "http://localhost/".to_owned(),
        ),
    ];
    for (id, (head, expected)) in (1..).zip(rows) {
        setup.call(id, "initialize").await.answer(&head, "").await;
        let error = setup.failure(id).await;
        assert!(
            matches!(&error, TransportError::Redirect(to) if *to == expected),
            "{error:?}"
        );
        assert!(error.to_string().contains("redirect"));
    }
    assert!(evil.is_idle());
    assert!(setup.server.is_idle());
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let mut setup = Setup::new().await;
    setup.link.send(setup.inbox.request(1, "initialize"));
    for _ in 0..6 {
        setup
            .server
            .expect("POST", "/mcp")
            .await
            .answer("308 Permanent Redirect\r\nLocation: /mcp", "")
            .await;
    }
    assert!(matches!(setup.failure(1).await, TransportError::Redirect(_)));
    assert!(setup.server.is_idle());
}

#[tokio::test]
async fn a_server_that_is_not_there_cannot_be_reached() {
    let mut setup = Setup::with(|target| target.url.set_port(Some(1)).expect("an address with a port")).await;
    setup.link.send(setup.inbox.request(1, "initialize"));
    let TransportError::Connect(reason) = setup.failure(1).await else {
        panic!("no connection error");
    };
    assert!(reason.contains("refused"), "{reason}");
    assert!(!reason.contains("/mcp"), "{reason}");
}

#[test]
fn redirects_stay_with_their_origin() {
    let url = |text: &str| url::Url::parse(text).expect("an address");
    let rows = [
        ("http://a/x", "http://a/y", true),
        ("http://a/x", "http://a:80/y", true),
        ("http://a/x", "https://a/y", true),
        ("http://a:8080/x", "https://a/y", false),
        ("http://a/x", "https://a:8443/y", false),
        ("https://a/x", "http://a/y", false),
        ("https://a/x", "https://b/y", false),
        ("https://a/x", "https://a.b/y", false),
        ("https://a/x", "https://a:444/y", false),
        ("https://a/x", "https://u@a/y", false),
        ("https://u:p@a/x", "https://a/y", true),
        ("https://u:p@a/x", "https://u:p@a/y", true),
        ("https://u:p@a/x", "https://u:q@a/y", false),
    ];
    for (from, to, expected) in rows {
        assert_eq!(
            exchange::is_harmless(&url(from), &url(to)),
            expected,
            "{from} to {to}"
        );
    }
}

/// Runs itself again in an environment with a proxy, as only a new process can.
#[tokio::test]
async fn the_environment_says_what_goes_past_the_proxy() {
    const ADDRESS: &str = "PILLION_TEST_ADDRESS";
    if let Ok(address) = std::env::var(ADDRESS) {
        let response = client(&ClientOptions::default())
            .get(address)
            .send()
            .await
            .expect("an answer");
        assert_eq!(response.status(), 204);
        return;
    }
    let mut server = Server::start().await;
    let mut proxy = Server::start().await;
    for (no_proxy, is_direct) in [("localhost,127.0.0.1", true), ("example.org", false)] {
        let program = std::env::current_exe().expect("a test program");
        let child = tokio::process::Command::new(program)
            .args([
                "--exact",
                "transport::http::tests::redirects::the_environment_says_what_goes_past_the_proxy",
            ])
            .env_clear()
            .envs(
                [
                    ("HTTP_PROXY", &proxy.origin),
                    ("http_proxy", &proxy.origin),
                    (ADDRESS, &format!("{}/x", server.origin)),
                ]
                .map(|(name, value)| (name.to_owned(), value.clone())),
            )
            .env("no_proxy", no_proxy)
            .stdout(std::process::Stdio::null())
            .status();
        let child = tokio::spawn(child);
        let exchange = if is_direct {
            server.next().await
        } else {
            proxy.next().await
        };
        assert_eq!(
            exchange.header("user-agent"),
            Some(concat!("Pillion/", env!("CARGO_PKG_VERSION")))
        );
        exchange.answer("204 No Content", Bytes::new()).await;
        assert!(
            child
                .await
                .expect("no panic")
                .expect("the program starts")
                .success()
        );
        assert!(server.is_idle() && proxy.is_idle());
    }
}
