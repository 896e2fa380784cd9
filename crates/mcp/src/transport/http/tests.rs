use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::http::HeaderName;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::*;
use crate::target::TokenSource;
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

struct Tokens(AtomicUsize);

impl TokenSource for Tokens {
    fn token(&self) -> BoxFuture<'_, Option<String>> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        async move { Some(format!("Bearer t-{number}")) }.boxed()
    }
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
        target.tokens = Some(Arc::new(Tokens(AtomicUsize::new(0))));
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
async fn an_event_stream_cut_at_every_byte_brings_all_its_messages() {
    let mut setup = Setup::new().await;
    let mut exchange = setup.call(4, "tools/call").await;
    exchange.start_events().await;
    let progress =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"naïve λ 日本 😀"}}"#;
    let text = format!(
        "\u{feff}: open\r\n\r\nevent: ping\r\ndata: x\r\n\r\ndata: {progress}\r\n\r\ndata: {}\r\n\r\n",
        answer(4)
    );
    for byte in text.into_bytes() {
        exchange.write([byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(setup.message().await, (progress.to_owned(), Some(4)));
    setup.expect_answer(4).await;
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
async fn a_session_begins_with_the_answer_to_initialize() {
    let mut setup = Setup::new().await;
    let exchange = setup.call(1, "initialize").await;
    assert_eq!(
        (
            exchange.header("mcp-session-id"),
            exchange.header("mcp-protocol-version")
        ),
        (None, None)
    );
    exchange
        .answer(
            &format!("{SSE}\r\nMCP-Session-Id: s-1"),
            format!("data: {}\n\n", answer(1)),
        )
        .await;
    setup.expect_answer(1).await;
    setup.link.negotiated("2025-06-18");

    for id in 2..4 {
        let exchange = setup.call(id, "tools/list").await;
        assert_eq!(exchange.header("mcp-session-id"), Some("s-1"));
        assert_eq!(exchange.header("mcp-protocol-version"), Some("2025-06-18"));
        // Only `initialize` opens a session.
        let head = "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: other";
        exchange.answer(head, answer(id)).await;
        setup.expect_answer(id).await;
    }

    let exchange = setup.call(5, "initialize").await;
    assert_eq!(
        (
            exchange.header("mcp-session-id"),
            exchange.header("mcp-protocol-version")
        ),
        (None, None)
    );
    exchange.answer_json(&answer(5)).await;
    setup.expect_answer(5).await;
    setup.link.negotiated("2025-03-26");
    let exchange = setup.call(6, "tools/list").await;
    assert_eq!(
        (
            exchange.header("mcp-session-id"),
            exchange.header("mcp-protocol-version")
        ),
        (None, None)
    );
}

#[tokio::test]
async fn a_session_id_has_visible_characters_only() {
    for id in ["", "two words", "s\u{e9}"] {
        let mut setup = Setup::new().await;
        let exchange = setup.call(1, "initialize").await;
        let head = format!("200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: {id}");
        exchange.answer(&head, answer(1)).await;
        assert!(
            matches!(setup.failure(1).await, TransportError::Protocol(_)),
            "{id:?}"
        );
    }
}

#[tokio::test]
async fn a_forgotten_session_is_told_apart() {
    let mut setup = Setup::in_session().await;
    let gone = [
        (
            "404 Not Found",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        ("410 Gone", "Gone"),
        ("400 Bad Request", "Bad Request: No valid session ID provided"),
    ];
    for (id, (head, body)) in (2..).zip(gone) {
        setup.call(id, "tools/call").await.answer(head, body).await;
        assert!(
            matches!(setup.failure(id).await, TransportError::SessionGone),
            "{head}"
        );
    }
    setup
        .call(9, "tools/call")
        .await
        .answer("400 Bad Request", "no such tool")
        .await;
    assert!(matches!(
        setup.failure(9).await,
        TransportError::Status { status: 400, .. }
    ));

    let mut setup = Setup::new().await;
    setup
        .call(1, "tools/call")
        .await
        .answer("404 Not Found", "")
        .await;
    assert!(matches!(
        setup.failure(1).await,
        TransportError::Status { status: 404, .. }
    ));
}

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

#[tokio::test]
async fn a_standalone_stream_that_is_not_offered_is_not_asked_for_again() {
    let heads = [
        "405 Method Not Allowed",
        "404 Not Found",
        "400 Bad Request",
        "501 Not Implemented",
        "503 Unavailable",
        "200 OK\r\nContent-Type: text/plain",
        "202 Accepted",
    ];
    for head in heads {
        let mut setup = Setup::in_session().await;
        let listening = tokio::spawn(setup.link.listen());
        let exchange = setup.server.expect("GET", "/mcp").await;
        assert_eq!(exchange.header("accept"), Some("text/event-stream"));
        assert_eq!(exchange.header("mcp-session-id"), Some("s-1"));
        assert_eq!(exchange.header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(exchange.header("last-event-id"), None);
        exchange.answer(head, "use POST").await;
        listening.await.expect("no panic");
        if !head.starts_with("405") {
            setup.note().await;
        }
        setup.call(2, "tools/call").await.answer_json(&answer(2)).await;
        setup.expect_answer(2).await;
        setup.link.close().now_or_never();
        assert!(setup.server.is_idle(), "{head}");
    }
}

#[tokio::test]
async fn the_standalone_stream_is_ready_with_its_head_and_taken_up_where_it_was_lost() {
    let mut setup = Setup::in_session().await;
    let listening = tokio::spawn(setup.link.listen());
    let mut exchange = setup.server.expect("GET", "/mcp").await;
    assert!(!listening.is_finished());
    exchange.start_events().await;
    listening.await.expect("no panic");

    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    exchange
        .write(format!("id: 7\nretry: 1\ndata: {ping}\n\nid: 8\ndata: {ping}"))
        .await;
    assert_eq!(setup.message().await, (ping.to_owned(), None));
    drop(exchange);

    let mut exchange = setup.server.expect("GET", "/mcp").await;
    assert_eq!(exchange.header("last-event-id"), Some("7"));
    exchange.start_events().await;
    exchange.write(format!("data: {ping}\n\n")).await;
    assert_eq!(setup.message().await, (ping.to_owned(), None));

    setup.link.close().now_or_never();
    exchange.closed().await;
}

#[tokio::test]
async fn a_new_session_listens_anew() {
    let mut setup = Setup::in_session().await;
    let listening = tokio::spawn(setup.link.listen());
    let mut first = setup.server.expect("GET", "/mcp").await;
    first.start_events().await;
    listening.await.expect("no panic");
    let listening = tokio::spawn(setup.link.listen());
    setup.server.expect("GET", "/mcp").await.start_events().await;
    listening.await.expect("no panic");
    first.closed().await;
}

#[tokio::test]
async fn an_event_over_the_limit_on_the_standalone_stream_costs_only_itself() {
    let mut setup = Setup::in_session().await;
    let listening = tokio::spawn(setup.link.listen());
    let mut exchange = setup.server.expect("GET", "/mcp").await;
    exchange.start_events().await;
    listening.await.expect("no panic");
    let long = "y".repeat(LIMITS.max_message_bytes);
    exchange
        .write(format!(
            "data: {{\"id\":5,\"x\":\"{long}\"}}\n\ndata: {}\n\n",
            answer(5)
        ))
        .await;
    let Told::Oversize { head, tail: None } = setup.told().await else {
        panic!("not too large")
    };
    assert!(head.starts_with("data: {\"id\":5,"));
    let Told::Oversize { tail: Some(tail), .. } = setup.told().await else {
        panic!("not skipped")
    };
    assert!(tail.ends_with("y\"}"));
    assert_eq!(setup.message().await, (answer(5), None));
}

#[tokio::test]
async fn a_lost_answer_is_taken_up_after_the_wait_the_server_asked_for() {
    let mut setup = Setup::in_session().await;
    let mut exchange = setup.call(2, "tools/call").await;
    exchange.start_events().await;
    exchange.write("id: e-1\nretry: 150\ndata:\n\n").await;
    let lost = std::time::Instant::now();
    drop(exchange);

    let exchange = setup.server.expect("GET", "/mcp").await;
    assert!(lost.elapsed() >= Duration::from_millis(150));
    assert_eq!(exchange.header("last-event-id"), Some("e-1"));
    assert_eq!(exchange.header("mcp-session-id"), Some("s-1"));
    assert_eq!(exchange.header("accept"), Some("text/event-stream"));
    exchange
        .answer(SSE, "id: e-2\ndata:\n\nid: e-3\ndata: {\"cut\":")
        .await;

    let exchange = setup.server.expect("GET", "/mcp").await;
    assert_eq!(exchange.header("last-event-id"), Some("e-2"));
    exchange.answer(SSE, format!("data: {}\n\n", answer(2))).await;
    setup.expect_answer(2).await;

    setup.call(3, "ping").await.answer_json(&answer(3)).await;
    setup.expect_answer(3).await;
    assert!(setup.server.is_idle());
}

#[tokio::test]
async fn an_answer_that_cannot_be_taken_up_is_lost() {
    let heads = [
        "404 Not Found",
        "405 Method Not Allowed",
        "401 Unauthorized",
        "200 OK\r\nContent-Type: application/json",
    ];
    for head in heads {
        let mut setup = Setup::in_session().await;
        let exchange = setup.call(2, "tools/call").await;
        exchange.answer(SSE, "id: e-1\nretry: 1\ndata:\n\n").await;
        setup.server.expect("GET", "/mcp").await.answer(head, "").await;
        assert!(
            matches!(setup.failure(2).await, TransportError::StreamEnded),
            "{head}"
        );
    }
}

#[tokio::test]
async fn a_stream_without_event_ids_is_lost_with_its_end() {
    let mut setup = Setup::in_session().await;
    for (id, events) in [
        (2, ": hello\n\n"),
        (3, "data: {\"method\":\"x\"}\n\n"),
        (4, "id: 1\n"),
        (5, ""),
    ] {
        setup.call(id, "tools/call").await.answer(SSE, events).await;
        if id == 3 {
            setup.message().await;
        }
        let error = setup.failure(id).await;
        assert_eq!(error.to_string(), "the stream ended before the answer");
    }
    // Cut off in the middle, as opposed to properly ended.
    let mut exchange = setup.call(6, "tools/call").await;
    exchange
        .write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n: x\n\n")
        .await;
    drop(exchange);
    assert!(matches!(setup.failure(6).await, TransportError::StreamEnded));
    assert!(setup.server.is_idle());
}

#[tokio::test]
async fn a_connection_lost_before_the_head_leaves_the_outcome_open() {
    let mut setup = Setup::new().await;
    let exchange = setup.call(1, "tools/call").await;
    drop(exchange);
    assert!(matches!(setup.failure(1).await, TransportError::StreamEnded));
    assert!(setup.server.is_idle());
}

#[tokio::test]
async fn a_modern_stream_is_never_taken_up() {
    let mut setup = Setup::new().await;
    let exchange = setup.call_modern(1, "tools/call").await;
    assert_eq!(
        (
            exchange.header("mcp-session-id"),
            exchange.header("last-event-id")
        ),
        (None, None)
    );
    exchange
        .answer(
            &format!("{SSE}\r\nMcp-Session-Id: s-1"),
            "id: e-1\nretry: 1\ndata:\n\n",
        )
        .await;
    assert!(matches!(setup.failure(1).await, TransportError::StreamEnded));

    let exchange = setup.call_modern(2, "tools/call").await;
    assert_eq!(exchange.header("mcp-session-id"), None);
    exchange.answer_json(&answer(2)).await;
    setup.expect_answer(2).await;
    setup.link.close().await;
    assert!(setup.server.is_idle(), "neither GET nor DELETE");
}

#[tokio::test]
async fn giving_up_closes_the_connection_before_and_within_the_response() {
    let mut setup = Setup::new().await;
    let exchange = setup.call_modern(1, "tools/call").await;
    setup.link.cancel(1);
    exchange.closed().await;

    let mut exchange = setup.call_modern(2, "tools/call").await;
    exchange.start_events().await;
    exchange.write("data: {\"method\":\"x\"}\n\n").await;
    setup.message().await;
    setup.link.cancel(2);
    exchange.closed().await;

    let mut exchange = setup.call_modern(3, "tools/call").await;
    exchange
        .write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        .await;
    setup.link.cancel(3);
    exchange.closed().await;
    assert!(setup.told.try_recv().is_err());
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

#[tokio::test]
async fn closing_ends_everything_and_says_farewell() {
    let mut setup = Setup::in_session().await;
    let exchange = setup.call(2, "tools/call").await;
    let closing = tokio::spawn(setup.link.close());
    let Told::Closed(closed) = setup.told().await else {
        panic!("not closed")
    };
    assert_eq!(closed.reason, CloseReason::Ordered);
    exchange.closed().await;
    let farewell = setup.server.expect("DELETE", "/mcp").await;
    assert_eq!(farewell.header("mcp-session-id"), Some("s-1"));
    assert_eq!(farewell.header("mcp-protocol-version"), Some("2025-11-25"));
    farewell.answer("405 Method Not Allowed", "").await;
    closing.await.expect("no panic");

    setup.link.close().await;
    setup.link.send(setup.inbox.request(3, "ping"));
    assert!(matches!(setup.failure(3).await, TransportError::Closed));
    assert!(matches!(
        setup.link.deliver(notification("x")).await,
        Err(TransportError::Closed)
    ));
    assert!(setup.told.try_recv().is_err());
    assert!(setup.server.is_idle());
}

#[tokio::test]
async fn a_link_nobody_holds_ends() {
    let mut setup = Setup::in_session().await;
    let exchange = setup.call(2, "tools/call").await;
    drop(setup.link);
    exchange.closed().await;
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
                "transport::http::tests::the_environment_says_what_goes_past_the_proxy",
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
