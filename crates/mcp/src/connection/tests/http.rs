//! Conversations over real HTTP, where the way to a connection has several turns.

use super::*;
use crate::error::CallError;
use crate::target::{Era, HttpTarget, Target, Transport};
use crate::transport::scripted::{Exchange, Server};

/// What the server was asked, as `POST /mcp initialize`.
type Log = Arc<Mutex<Vec<String>>>;

/// Answers every request with `serve`, in the order in which they come.
async fn serving<F>(mut serve: F) -> (HttpTarget, Log)
where
    F: AsyncFnMut(Exchange, &str) + 'static,
{
    let mut server = Server::start().await;
    let target = server.target("/mcp");
    let log = Log::default();
    let lines = log.clone();
    tokio::task::spawn_local(async move {
        loop {
            let exchange = server.next().await;
            let rpc = if exchange.method == "POST" {
                exchange.rpc()
            } else {
                String::new()
            };
            let line = format!("{} {} {rpc}", exchange.method, exchange.path);
            lines.lock().expect("no panic").push(line.trim_end().to_owned());
            serve(exchange, &rpc).await;
        }
    });
    (target, log)
}

async fn start(target: HttpTarget, host: &Arc<TestHost>) -> Result<Connection, ConnectError> {
    crate::connect(Target::Http(target), options(), host.clone()).await
}

fn id_of(exchange: &Exchange) -> String {
    let message: Value = serde_json::from_slice(&exchange.body).expect("JSON");
    message["id"].to_string()
}

async fn answer(exchange: Exchange, result: &str) {
    let id = id_of(&exchange);
    exchange
        .answer_json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
        .await;
}

async fn status(exchange: Exchange, head: &str, body: &str) {
    exchange.answer(head, body).await;
}

fn log_of(log: &Log) -> Vec<String> {
    log.lock().expect("no panic").clone()
}

/// Runs on one thread, as the program does.
async fn local<T>(story: impl Future<Output = T>) -> T {
    tokio::task::LocalSet::new().run_until(story).await
}

#[tokio::test]
async fn a_legacy_session_from_the_handshake_to_its_deletion() {
    local(async {
        let (target, log) = serving(async |exchange: Exchange, rpc: &str| match rpc {
            "server/discover" => status(exchange, "400 Bad Request", "Bad Request: not initialized").await,
            "initialize" => {
                assert_eq!(exchange.header("mcp-session-id"), None);
                let id = id_of(&exchange);
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{INITIALIZED}}}"#);
                exchange
                    .answer(
                        "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-1",
                        body,
                    )
                    .await;
            }
            "tools/call" => {
                assert_eq!(exchange.header("mcp-session-id"), Some("s-1"));
                assert_eq!(exchange.header("mcp-protocol-version"), Some("2025-11-25"));
                assert_eq!(exchange.header("mcp-method"), None);
                answer(exchange, r#"{"n":1.10}"#).await;
            }
            _ if exchange.method == "GET" => status(exchange, "405 Method Not Allowed", "").await,
            _ => status(exchange, "202 Accepted", "").await,
        })
        .await;
        let host = TestHost::silent();
        let connection = start(target, &host).await.expect("connected");
        assert_eq!(connection.info().transport, Transport::StreamableHttp);
        let expected = [
            "POST /mcp server/discover",
            "POST /mcp initialize",
            "POST /mcp notifications/initialized",
            "GET /mcp",
        ];
        assert_eq!(log_of(&log), expected);
        let result = connection
            .request("tools/call", raw("{}"), calling(1))
            .await
            .expect("an answer");
        assert_eq!(result.get(), r#"{"n":1.10}"#);
        connection.close().await;
        assert_eq!(log_of(&log).last().map(String::as_str), Some("DELETE /mcp"));
    })
    .await;
}

#[tokio::test]
async fn a_session_the_server_forgot_is_opened_anew() {
    local(async {
        let mut sessions = 0;
        let (target, log) = serving(async move |exchange: Exchange, rpc: &str| match rpc {
            "server/discover" => status(exchange, "404 Not Found", "").await,
            "initialize" => {
                sessions += 1;
                let id = id_of(&exchange);
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{INITIALIZED}}}"#);
                let head =
                    format!("200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-{sessions}");
                exchange.answer(&head, body).await;
            }
            "tools/call" if exchange.header("mcp-session-id") == Some("s-1") => {
                let body =
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
                status(exchange, "404 Not Found\r\nContent-Type: application/json", body).await;
            }
            "tools/call" => answer(exchange, "{}").await,
            _ if exchange.method == "GET" => status(exchange, "405 Method Not Allowed", "").await,
            _ => status(exchange, "202 Accepted", "").await,
        })
        .await;
        let host = TestHost::silent();
        let connection = start(target, &host).await.expect("connected");
        connection
            .request("tools/call", raw("{}"), calling(1))
            .await
            .expect("an answer");
        let count = |line: &str| log_of(&log).iter().filter(|other| *other == line).count();
        assert_eq!(count("POST /mcp initialize"), 2);
        assert_eq!(count("POST /mcp tools/call"), 2);
    })
    .await;
}

#[tokio::test]
async fn a_version_refused_by_status() {
    local(async {
        let (target, _log) = serving(async |exchange: Exchange, rpc: &str| match rpc {
            "server/discover" => status(exchange, "400 Bad Request", "").await,
            "initialize" if String::from_utf8_lossy(&exchange.body).contains("2025-06-18") => {
                answer(exchange, &INITIALIZED.replace("2025-11-25", "2025-06-18")).await;
            }
            "initialize" => {
                let body = "Bad Request: Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26, 2024-11-05)";
                status(exchange, "400 Bad Request", body).await;
            }
            "tools/list" => {
                assert_eq!(exchange.header("mcp-protocol-version"), Some("2025-06-18"));
                answer(exchange, "{}").await;
            }
            _ if exchange.method == "GET" => status(exchange, "405 Method Not Allowed", "").await,
            _ => status(exchange, "202 Accepted", "").await,
        })
        .await;
        let host = TestHost::silent();
        let connection = start(target, &host).await.expect("connected");
        assert_eq!(connection.info().protocol_version, "2025-06-18");
        connection.request("tools/list", raw("{}"), CallOptions::new(SECOND)).await.expect("an answer");
    })
    .await;
}

#[tokio::test]
async fn refusals_and_what_is_tried_after_them() {
    local(async {
        let check = async |head: &'static str, body: &'static str, expected: &str, n_requests: usize| {
            let (target, log) =
                serving(async move |exchange: Exchange, _rpc: &str| status(exchange, head, body).await).await;
            let error = start(target, &TestHost::silent()).await.err().expect("fails");
            assert!(format!("{error} {error:?}").contains(expected), "{error:?}");
            assert_eq!(log_of(&log).len(), n_requests, "{head}");
        };
        check(
            "500 Internal Server Error",
            "database is down",
            "database is down",
            1,
        )
        .await;
        let reason = "App is not enabled for MCP access";
        check(
            "400 Bad Request\r\nContent-Type: application/json",
            r#"{"error":"App is not enabled for MCP access"}"#,
            reason,
            3,
        )
        .await;
        check("404 Not Found", "no such page", "no such page", 3).await;
        check(
            "401 Unauthorized\r\nWWW-Authenticate: Bearer",
            "",
            "Unauthorized",
            1,
        )
        .await;
        check(
            "200 OK\r\nContent-Type: text/html",
            "<html>hello",
            "<html>hello",
            2,
        )
        .await;
        check(
            "307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/x?secret=1",
            "",
            "redirects to http://127.0.0.1:9/x",
            1,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_older_remote_transport_is_found() {
    local(async {
        let mut stream: Option<Exchange> = None;
        let (target, log) = serving(async move |mut exchange: Exchange, rpc: &str| {
            if exchange.method == "GET" {
                exchange.start_events().await;
                exchange.write("event: endpoint\ndata: /messages?s=1\n\n").await;
                stream = Some(exchange);
                return;
            }
            if exchange.path == "/mcp" {
                return status(exchange, "405 Method Not Allowed", "").await;
            }
            let result = if rpc == "initialize" { INITIALIZED } else { "{}" };
            let event = format!(
                "data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n\n",
                id_of(&exchange)
            );
            status(exchange, "202 Accepted", "").await;
            if !rpc.starts_with("notifications/") {
                stream.as_mut().expect("open").write(event).await;
            }
        })
        .await;
        let host = TestHost::silent();
        let connection = start(target, &host).await.expect("connected");
        assert_eq!(connection.info().transport, Transport::Sse);
        connection
            .request("tools/list", raw("{}"), CallOptions::new(SECOND))
            .await
            .expect("an answer");
        assert_eq!(log_of(&log)[2..4], ["GET /mcp", "POST /messages?s=1 initialize"]);
    })
    .await;
}

#[tokio::test]
async fn a_modern_server_sees_the_headers_and_a_cancelled_call_as_a_closed_stream() {
    local(async {
        let (closed, mut is_closed) = tokio::sync::mpsc::unbounded_channel();
        let (target, log) = serving(async move |mut exchange: Exchange, rpc: &str| {
            assert_eq!(exchange.header("mcp-method"), Some(rpc));
            assert_eq!(exchange.header("mcp-protocol-version"), Some("2026-07-28"));
            match rpc {
                "server/discover" => answer(exchange, &DISCOVERED.replace("true", "false")).await,
                "tools/call" => {
                    assert_eq!(exchange.header("mcp-name"), Some("t"));
                    exchange.start_events().await;
                    exchange.write(": thinking\n\n").await;
                    exchange.closed().await;
                    let _ = closed.send(());
                }
                _ => answer(exchange, "{}").await,
            }
        })
        .await;
        let host = TestHost::silent();
        let connection = start(target, &host).await.expect("connected");
        assert_eq!(connection.info().era, Era::Modern);
        let options = CallOptions {
            timeout: SECOND / 5,
            ..calling(1)
        };
        let outcome = connection
            .request("tools/call", raw(r#"{"name":"t"}"#), options)
            .await;
        assert!(matches!(outcome, Err(CallError::TimedOut { .. })), "{outcome:?}");
        is_closed.recv().await;
        assert_eq!(
            log_of(&log),
            ["POST /mcp server/discover", "POST /mcp tools/call"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_question_belongs_to_the_call_on_whose_stream_it_comes() {
    local(async {
        let mut call: Option<(String, Exchange)> = None;
        let (target, _log) = serving(async move |mut exchange: Exchange, rpc: &str| match rpc {
            "server/discover" => status(exchange, "400 Bad Request", "").await,
            "initialize" => answer(exchange, INITIALIZED).await,
            "tools/call" if String::from_utf8_lossy(&exchange.body).contains("quiet") => {
                exchange.start_events().await;
                // Stays open, so that there are two calls in flight.
                tokio::task::spawn_local(exchange.closed());
            }
            "tools/call" => {
                exchange.start_events().await;
                exchange
                    .write("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}\n\n")
                    .await;
                call = Some((id_of(&exchange), exchange));
            }
            "" if exchange.method == "POST" => {
                let text = String::from_utf8_lossy(&exchange.body).into_owned();
                assert_eq!(text, r#"{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}"#);
                status(exchange, "202 Accepted", "").await;
                let (id, mut call) = call.take().expect("a call");
                call.write(format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n\n")).await;
            }
            _ if exchange.method == "GET" => status(exchange, "405 Method Not Allowed", "").await,
            _ => status(exchange, "202 Accepted", "").await,
        })
        .await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let host = TestHost::new(Box::new(move |request| {
            seen.lock().expect("no panic").push(request.calls);
            std::future::ready(InputReply::Result(raw(r#"{"action":"decline"}"#))).boxed()
        }));
        let connection = start(target, &host).await.expect("connected");
        let quiet = connection.request("tools/call", raw(r#"{"name":"quiet"}"#), calling(1));
        let asking = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            connection.request("tools/call", raw(r#"{"name":"asking"}"#), calling(2)).await
        };
        tokio::select! {
            _ = quiet => panic!("never answered"),
            answer = asking => { answer.expect("an answer"); }
        }
        assert_eq!(*asked.lock().expect("no panic"), [vec![2]]);
    })
    .await;
}
