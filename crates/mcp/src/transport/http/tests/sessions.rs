//! Legacy sessions: their id, their standalone stream, their end.

use super::*;

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
    assert!(head.starts_with("{\"id\":5,"));
    let Told::Oversize { tail: Some(tail), .. } = setup.told().await else {
        panic!("not skipped")
    };
    assert!(tail.ends_with("y\"}"));
    assert_eq!(setup.message().await, (answer(5), None));
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
