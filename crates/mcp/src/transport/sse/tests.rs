//! The rules of HTTP+SSE, each against a server whose answers the test writes.

use tokio::sync::mpsc;
use url::Url;

use super::*;
use crate::transport::scripted::{Exchange, LIMITS, Server, TestInbox, Told, answer, notification};

/// A server, its stream after the address was named, a link, and what the link says.
struct Setup {
    server: Server,
    stream: Exchange,
    link: Arc<dyn Link>,
    inbox: Arc<TestInbox>,
    told: mpsc::UnboundedReceiver<Told>,
}

impl Setup {
    async fn new() -> Setup {
        let mut server = Server::start().await;
        let (inbox, told) = TestInbox::new();
        let (opened, stream) = begin(
            &mut server,
            "/sse",
            &inbox,
            "event: endpoint\ndata: /messages?sid=1\n\n",
        )
        .await;
        Setup {
            server,
            stream,
            link: opened.expect("a link"),
            inbox,
            told,
        }
    }

    async fn told(&mut self) -> Told {
        self.told.recv().await.expect("the inbox lives")
    }
}

/// Opens a link at a path and has the server say this first.
async fn begin(
    server: &mut Server,
    path: &str,
    inbox: &Arc<TestInbox>,
    events: &str,
) -> (Result<Arc<dyn Link>, TransportError>, Exchange) {
    let mut target = server.target(path);
    target.headers.append("x-api-key", HeaderValue::from_static("k"));
    let inbox = Arc::downgrade(inbox);
    let opening = tokio::spawn(open(target, LIMITS, inbox));
    let mut stream = server.expect("GET", path).await;
    assert_eq!(stream.header("accept"), Some("text/event-stream"));
    assert_eq!(stream.header("x-api-key"), Some("k"));
    stream.start_events().await;
    stream.write(events).await;
    (opening.await.expect("no panic"), stream)
}

#[tokio::test]
async fn messages_go_to_the_address_the_stream_names_and_answers_come_on_the_stream() {
    let mut setup = Setup::new().await;
    setup.link.send(setup.inbox.request(1, "initialize"));
    let exchange = setup.server.expect("POST", "/messages?sid=1").await;
    assert_eq!(exchange.header("content-type"), Some("application/json"));
    assert_eq!(exchange.header("x-api-key"), Some("k"));
    // The answer may be there before the POST is done.
    setup
        .stream
        .write(format!("event: message\r\ndata: {}\r\n\r\n", answer(1)))
        .await;
    assert!(matches!(setup.told().await, Told::Message(text, None) if text == answer(1)));
    exchange.answer("202 Accepted", "Accepted").await;

    let delivered = setup.link.deliver(notification("notifications/initialized"));
    setup
        .server
        .expect("POST", "/messages?sid=1")
        .await
        .answer("200 OK", "")
        .await;
    assert!(delivered.await.is_ok());
    setup.link.listen().await;
    assert!(setup.told.try_recv().is_err());
}

#[tokio::test]
async fn the_address_may_be_relative() {
    let rows = [
        ("/sse", "/messages?sid=1", "/messages?sid=1"),
        ("/api/sse", "messages?sid=7", "/api/messages?sid=7"),
        ("/api/sse?x=1", "?sid=7", "/api/sse?sid=7"),
        ("/api/sse", "{origin}/m", "/m"),
        ("/api/sse", " ../m ", "/m"),
    ];
    for (path, named, expected) in rows {
        let mut server = Server::start().await;
        let (inbox, _told) = TestInbox::new();
        let named = named.replace("{origin}", &server.origin);
        let events = format!(": hello\n\ndata: too early\n\nevent: endpoint\ndata: {named}\n\n");
        let (opened, _stream) = begin(&mut server, path, &inbox, &events).await;
        let link = opened.expect("a link");
        link.send(inbox.request(1, "initialize"));
        server.expect("POST", expected).await;
    }
}

#[tokio::test]
async fn an_address_elsewhere_is_refused() {
    let mut evil = Server::start().await;
    let host = Url::parse(&evil.origin).expect("an address");
    for named in [
        format!("{host}collect"),
        format!("//{}/collect", host.authority()),
        "http://[".to_owned(),
    ] {
        let mut server = Server::start().await;
        let (inbox, _told) = TestInbox::new();
        let (opened, _stream) = begin(
            &mut server,
            "/sse",
            &inbox,
            &format!("event: endpoint\ndata: {named}\n\n"),
        )
        .await;
        assert!(matches!(opened, Err(TransportError::Protocol(_))), "{named}");
    }
    assert!(evil.is_idle());
}

#[tokio::test]
async fn a_server_has_to_name_its_address_in_time() {
    let mut server = Server::start().await;
    let (inbox, _told) = TestInbox::new();
    let inbox = Arc::downgrade(&inbox);
    let wait = Duration::from_millis(50);
    let opening = tokio::spawn(open_within(wait, server.target("/sse"), LIMITS, inbox.clone()));
    let mut stream = server.next().await;
    stream.start_events().await;
    stream.write("data: hello\n\n").await;
    let Err(error) = opening.await.expect("no panic") else {
        panic!("opened")
    };
    assert_eq!(error.to_string(), "no `endpoint` event came within 0.05 s");

    let opening = tokio::spawn(open(server.target("/sse"), LIMITS, inbox));
    server
        .next()
        .await
        .answer("200 OK\r\nContent-Type: text/event-stream", ": bye\n\n")
        .await;
    assert!(matches!(
        opening.await.expect("no panic"),
        Err(TransportError::Protocol(_))
    ));
}

#[tokio::test]
async fn a_get_that_is_no_stream_tells_why() {
    let mut server = Server::start().await;
    let (inbox, _told) = TestInbox::new();
    let opening = tokio::spawn(open(
        server.target("/sse"),
        LIMITS,
        Arc::downgrade(&inbox) as Weak<dyn Inbox>,
    ));
    server
        .next()
        .await
        .answer("401 Unauthorized\r\nWWW-Authenticate: Bearer", "no")
        .await;
    let Err(TransportError::Status {
        status,
        challenges,
        body,
        ..
    }) = opening.await.expect("no panic")
    else {
        panic!("no status");
    };
    assert_eq!(
        (status, challenges.as_slice(), body.as_str()),
        (401, ["Bearer".to_owned()].as_slice(), "no")
    );

    let opening = tokio::spawn(open(
        server.target("/sse"),
        LIMITS,
        Arc::downgrade(&inbox) as Weak<dyn Inbox>,
    ));
    server
        .next()
        .await
        .answer("200 OK\r\nContent-Type: text/html", "<html>")
        .await;
    assert!(matches!(
        opening.await.expect("no panic"),
        Err(TransportError::BadMedia { status: 200, .. })
    ));
}

#[tokio::test]
async fn a_message_that_is_not_taken_fails_at_once() {
    let mut setup = Setup::new().await;
    setup.link.send(setup.inbox.request(1, "tools/call"));
    setup.server.next().await.answer("500 Oops", "broken").await;
    let Told::Failed(
        1,
        TransportError::Status {
            status: 500, body, ..
        },
    ) = setup.told().await
    else {
        panic!("not failed");
    };
    assert_eq!(body, "broken");

    setup.link.send(notification("notifications/cancelled"));
    setup.server.next().await.answer("400 Bad Request", "").await;
    assert!(matches!(setup.told().await, Told::Note(_)));
}

#[tokio::test]
async fn a_lost_stream_is_a_lost_connection() {
    let mut setup = Setup::new().await;
    setup.link.send(setup.inbox.request(1, "tools/call"));
    setup.server.next().await.answer("202 Accepted", "").await;
    drop(setup.stream);
    let Some(Told::Closed(closed)) = setup.told.recv().await else {
        panic!("not closed")
    };
    assert_eq!(closed.reason, CloseReason::StreamEnded);

    setup.link.send(setup.inbox.request(2, "tools/call"));
    assert!(matches!(
        setup.told.recv().await,
        Some(Told::Failed(2, TransportError::Closed))
    ));
    setup.link.close().await;
    assert!(setup.told.try_recv().is_err());
}

#[tokio::test]
async fn an_event_over_the_limit_costs_only_itself() {
    let mut setup = Setup::new().await;
    let long = "y".repeat(LIMITS.max_message_bytes);
    setup
        .stream
        .write(format!(
            "data: {{\"id\":5,\"x\":\"{long}\"}}\n\ndata: {}\n\n",
            answer(6)
        ))
        .await;
    assert!(matches!(setup.told().await, Told::Oversize { tail: None, .. }));
    assert!(matches!(setup.told().await, Told::Oversize { tail: Some(_), .. }));
    assert!(matches!(setup.told().await, Told::Message(text, None) if text == answer(6)));
}

#[tokio::test]
async fn closing_closes_the_stream() {
    let mut setup = Setup::new().await;
    setup.link.close().await;
    assert!(matches!(setup.told().await, Told::Closed(closed) if closed.reason == CloseReason::Ordered));
    setup.stream.closed().await;
    setup.link.close().await;
    assert!(setup.told.try_recv().is_err());
    assert!(setup.server.is_idle());
}

#[tokio::test]
async fn a_link_nobody_holds_ends() {
    let setup = Setup::new().await;
    drop(setup.link);
    setup.stream.closed().await;
}
