//! Streams that answer a request: complete, lost, taken up again, given up.

use std::time::Duration;

use super::*;

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
