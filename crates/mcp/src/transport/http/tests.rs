//! The rules of streamable HTTP, each against a server whose answers the test writes.

mod redirects;
mod sessions;
mod streams;

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::http::HeaderName;
use ::http::header::AUTHORIZATION;
use tokio::sync::mpsc;
use url::Url;

use super::*;
use crate::authorization::{Attempts, Refusal, TokenSource};
use crate::transport::scripted::{Exchange, LIMITS, Server, TestInbox, Told, answer, notification};

const SSE: &str = "200 OK\r\nContent-Type: text/event-stream";

/// A server, a link to its `/mcp`, and what the link says.
struct Setup {
    server: Server,
    link: Arc<dyn Link>,
    inbox: Arc<TestInbox>,
    told: mpsc::UnboundedReceiver<Told>,
}

impl Setup {
    async fn new() -> Setup {
        Setup::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut HttpTarget)) -> Setup {
        let server = Server::start().await;
        let mut target = server.target("/mcp");
        change(&mut target);
        let (inbox, told) = TestInbox::new();
        let weak = Arc::downgrade(&inbox);
        let link = open(target, LIMITS, weak);
        Setup {
            server,
            link,
            inbox,
            told,
        }
    }

    /// A link whose legacy session `s-1` is established.
    async fn in_session() -> Setup {
        let mut setup = Setup::new().await;
        let exchange = setup.call(1, "initialize").await;
        exchange
            .answer(
                "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-1",
                answer(1),
            )
            .await;
        setup.expect_answer(1).await;
        setup.link.negotiated("2025-11-25");
        setup
    }

    /// Sends a request and returns what arrived at the server.
    async fn call(&mut self, id: u64, method: &str) -> Exchange {
        self.link.send(self.inbox.request(id, method));
        self.server.expect("POST", "/mcp").await
    }

    async fn call_modern(&mut self, id: u64, method: &str) -> Exchange {
        let out = Outgoing {
            era: Era::Modern,
            ..self.inbox.request(id, method)
        };
        self.link.send(out);
        self.server.expect("POST", "/mcp").await
    }

    async fn told(&mut self) -> Told {
        self.told.recv().await.expect("the inbox lives")
    }

    async fn message(&mut self) -> (String, Option<u64>) {
        match self.told().await {
            Told::Message(text, origin) => (text, origin),
            other => panic!("{other:?}"),
        }
    }

    async fn expect_answer(&mut self, id: u64) {
        assert_eq!(self.message().await, (answer(id), Some(id)));
    }

    /// How a request failed; notes before it are passed over.
    async fn failure(&mut self, id: u64) -> TransportError {
        loop {
            match self.told().await {
                Told::Failed(failed, error) if failed == id => return error,
                Told::Note(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn note(&mut self) -> String {
        match self.told().await {
            Told::Note(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

/// A new token for each request; how often a refused one is repeated.
struct Tokens {
    next: AtomicUsize,
    repeats: u32,
}

impl Tokens {
    fn repeating(repeats: u32) -> Option<Arc<dyn TokenSource>> {
        Some(Arc::new(Tokens {
            next: AtomicUsize::new(0),
            repeats,
        }))
    }
}

impl TokenSource for Tokens {
    fn headers<'a>(&'a self, _: &'a Method, _: &'a Url) -> BoxFuture<'a, Result<HeaderMap, String>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let value = format!("Bearer t-{number}").parse().expect("a header");
        async move { Ok(HeaderMap::from_iter([(AUTHORIZATION, value)])) }.boxed()
    }

    fn refused<'a>(&'a self, refusal: Refusal<'a>, attempts: &'a mut Attempts) -> BoxFuture<'a, bool> {
        async move {
            assert!(
                refusal
                    .sent
                    .is_some_and(|sent| sent.as_bytes().starts_with(b"Bearer t-"))
            );
            assert_eq!(refusal.challenges, ["Bearer error=\"invalid_token\""]);
            attempts.logins += 1;
            attempts.logins <= self.repeats
        }
        .boxed()
    }

    fn nonce(&self, _: &Url, _: &str) {}
}

#[tokio::test]
async fn a_message_is_a_post_with_the_users_headers_and_ours() {
    let mut setup = Setup::with(|target| {
        let rows = [
            ("authorization", "Bearer fixed"),
            ("x-api-key", "k"),
            ("accept", "text/html"),
            ("content-type", "text/html"),
            ("content-length", "1"),
            ("mcp-session-id", "forged"),
            ("mcp-protocol-version", "forged"),
            ("mcp-method", "forged"),
            ("mcp-name", "forged"),
            ("mcp-param-x", "forged"),
            ("last-event-id", "forged"),
        ];
        for (name, value) in rows {
            target
                .headers
                .append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        target.headers.append("x-api-key", HeaderValue::from_static("k2"));
    })
    .await;
    let mut out = setup.inbox.request(7, "tools/list");
    out.headers.push((
        HeaderName::from_static("mcp-method"),
        HeaderValue::from_static("tools/list"),
    ));
    setup.link.send(out);
    let exchange = setup.server.expect("POST", "/mcp").await;
    assert_eq!(
        exchange.body.as_ref(),
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#
    );
    assert_eq!(
        exchange.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(exchange.header("content-type"), Some("application/json"));
    assert_eq!(exchange.header("authorization"), Some("Bearer fixed"));
    assert_eq!(exchange.header_values("x-api-key"), ["k", "k2"]);
    assert_eq!(exchange.header("mcp-method"), Some("tools/list"));
    for name in [
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-name",
        "mcp-param-x",
        "last-event-id",
    ] {
        assert_eq!(exchange.header(name), None, "{name}");
    }
    exchange.answer_json(&answer(7)).await;
    setup.expect_answer(7).await;
}

#[tokio::test]
async fn each_request_carries_the_token_of_its_moment() {
    let mut setup = Setup::with(|target| {
        target
            .headers
            .append("authorization", HeaderValue::from_static("Bearer fixed"));
        target.tokens = Tokens::repeating(0);
    })
    .await;
    for id in 0..2 {
        let exchange = setup.call(id, "ping").await;
        assert_eq!(
            exchange.header("authorization"),
            Some(format!("Bearer t-{id}").as_str())
        );
        exchange.answer_json(&answer(id)).await;
        setup.expect_answer(id).await;
    }
}

#[tokio::test]
async fn a_refused_request_is_repeated_as_long_as_that_may_help() {
    let mut setup = Setup::with(|target| target.tokens = Tokens::repeating(2)).await;
    let refusal = "401 Unauthorized\r\nwww-authenticate: Bearer error=\"invalid_token\"";
    let mut exchange = setup.call(1, "ping").await;
    for number in 0..2 {
        assert_eq!(
            exchange.header("authorization"),
            Some(format!("Bearer t-{number}").as_str())
        );
        exchange.answer(refusal, "").await;
        exchange = setup.server.expect("POST", "/mcp").await;
    }
    exchange.answer(refusal, "").await;
    assert!(matches!(
        setup.failure(1).await,
        TransportError::Status { status: 401, .. }
    ));
}

#[tokio::test]
async fn media_types_have_parameters_and_any_case() {
    let mut setup = Setup::new().await;
    let event = format!("data: {}\n\n", answer(2));
    let rows = [
        (1, "application/JSON; Charset=utf-8", answer(1)),
        (2, "Text/Event-Stream;charset=UTF-8", event),
        (3, " application/json ", answer(3)),
    ];
    for (id, media, body) in rows {
        let exchange = setup.call(id, "ping").await;
        exchange
            .answer(&format!("200 OK\r\nContent-Type: {media}"), body)
            .await;
        setup.expect_answer(id).await;
    }
}

#[tokio::test]
async fn a_body_is_unpacked_whether_or_not_somebody_asked() {
    let mut setup = Setup::new().await;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(answer(1).as_bytes()).expect("memory");
    let packed = packer.finish().expect("memory");
    let exchange = setup.call(1, "tools/list").await;
    exchange
        .answer(
            "200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip",
            packed,
        )
        .await;
    setup.expect_answer(1).await;
}

#[tokio::test]
async fn a_notification_may_be_answered_with_any_success() {
    let mut setup = Setup::new().await;
    let rows = [
        ("202 Accepted", ""),
        ("200 OK", ""),
        ("200 OK\r\nContent-Type: application/json", "null"),
        ("204 No Content", ""),
        ("200 OK\r\nContent-Type: text/plain", "thanks"),
        ("200 OK\r\nContent-Type: text/event-stream", ": nothing\n\n"),
    ];
    for (head, body) in rows {
        let delivered = setup.link.deliver(notification("notifications/initialized"));
        setup.server.expect("POST", "/mcp").await.answer(head, body).await;
        assert!(delivered.await.is_ok(), "{head}");
    }
    assert!(setup.told.try_recv().is_err());
}

#[tokio::test]
async fn a_notification_that_is_refused_is_told() {
    let mut setup = Setup::new().await;
    let delivered = setup.link.deliver(notification("notifications/initialized"));
    let exchange = setup.server.next().await;
    exchange
        .answer("401 Unauthorized\r\nWWW-Authenticate: Bearer", "")
        .await;
    assert!(matches!(
        delivered.await,
        Err(TransportError::Status { status: 401, .. })
    ));

    setup.link.send(notification("notifications/cancelled"));
    setup.server.next().await.answer("500 Oops", "").await;
    assert_eq!(
        setup.note().await,
        "a message was not taken by the server: HTTP status 500"
    );
}

#[tokio::test]
async fn a_refusal_comes_with_its_reasons() {
    let mut setup = Setup::new().await;
    let exchange = setup.call(1, "initialize").await;
    let head = "401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"a\"\r\nContent-Type: text/plain\r\nWWW-Authenticate: DPoP";
    exchange.answer(head, "no token").await;
    let TransportError::Status {
        status,
        content_type,
        body,
        challenges,
    } = setup.failure(1).await
    else {
        panic!("no status");
    };
    assert_eq!(
        (status, content_type.as_deref(), body.as_str()),
        (401, Some("text/plain"), "no token")
    );
    assert_eq!(challenges, ["Bearer realm=\"a\"", "DPoP"]);

    setup
        .call(2, "initialize")
        .await
        .answer("500 Oops", "x".repeat(100_000))
        .await;
    let TransportError::Status {
        status: 500, body, ..
    } = setup.failure(2).await
    else {
        panic!("no status");
    };
    assert_eq!(body.len(), 64 * 1024);
}

#[tokio::test]
async fn a_success_without_an_answer_is_a_failure() {
    let mut setup = Setup::new().await;
    let rows = [
        ("202 Accepted", "", 202, None),
        ("200 OK", "", 200, None),
        ("204 No Content", "", 204, None),
        (
            "200 OK\r\nContent-Type: text/html",
            "<html>",
            200,
            Some("text/html"),
        ),
        (
            "200 OK\r\nContent-Type: application/json",
            "",
            200,
            Some("application/json"),
        ),
        (
            "200 OK\r\nContent-Type: application/json",
            "{}",
            200,
            Some("application/json"),
        ),
    ];
    for (id, (head, text, expected_status, media)) in (1..).zip(rows) {
        setup.call(id, "tools/list").await.answer(head, text).await;
        if text == "{}" {
            assert_eq!(setup.message().await, ("{}".to_owned(), Some(id)));
        }
        let TransportError::BadMedia {
            status,
            content_type,
            body,
        } = setup.failure(id).await
        else {
            panic!("{head}");
        };
        assert_eq!(
            (status, content_type.as_deref(), body.as_str()),
            (expected_status, media, text),
            "{head}"
        );
    }
}

#[tokio::test]
async fn requests_do_not_wait_for_each_other() {
    let mut setup = Setup::new().await;
    let first = setup.call(1, "tools/call").await;
    let second = setup.call(2, "tools/call").await;
    let delivered = setup.link.deliver(notification("notifications/x"));
    let third = setup.server.next().await;
    assert_eq!(
        (first.rpc(), second.rpc(), third.rpc().as_str()),
        ("tools/call".into(), "tools/call".into(), "notifications/x")
    );
    second.answer_json(&answer(2)).await;
    setup.expect_answer(2).await;
    third.answer("202 Accepted", "").await;
    assert!(delivered.await.is_ok());
    first.answer_json(&answer(1)).await;
    setup.expect_answer(1).await;
}

#[tokio::test]
async fn connections_are_used_again() {
    let mut setup = Setup::new().await;
    for id in 1..4 {
        let exchange = setup.call(id, "ping").await;
        exchange.answer(SSE, format!("data: {}\n\n", answer(id))).await;
        setup.expect_answer(id).await;
        let delivered = setup.link.deliver(notification("notifications/x"));
        setup.server.next().await.answer("202 Accepted", "").await;
        assert!(delivered.await.is_ok());
    }
    assert_eq!(setup.server.n_connections(), 1);
}

#[tokio::test]
async fn a_message_over_the_limit_fails_only_its_request() {
    let mut setup = Setup::new().await;
    let long = "y".repeat(LIMITS.max_message_bytes);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{long}"}}"#);

    setup.call(1, "tools/call").await.answer_json(&body).await;
    assert!(
        matches!(setup.failure(1).await, TransportError::TooLarge { limit } if limit == LIMITS.max_message_bytes)
    );

    let mut exchange = setup.call(2, "tools/call").await;
    exchange
        .write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        .await;
    exchange.write(&body).await;
    assert!(matches!(setup.failure(2).await, TransportError::TooLarge { .. }));

    let mut exchange = setup.call(3, "tools/call").await;
    exchange.start_events().await;
    exchange.write(format!("data: {body}")).await;
    assert!(matches!(setup.failure(3).await, TransportError::TooLarge { .. }));

    let text = "y".repeat(LIMITS.max_message_bytes / 2);
    let body = format!(r#"{{"jsonrpc":"2.0","id":4,"result":"{text}"}}"#);
    setup.call(4, "tools/call").await.answer_json(&body).await;
    assert_eq!(setup.message().await, (body.clone(), Some(4)));
    let body = body.replace("\"id\":4", "\"id\":5");
    setup
        .call(5, "tools/call")
        .await
        .answer(SSE, format!("data: {body}\n\n"))
        .await;
    assert_eq!(setup.message().await, (body, Some(5)));
}
