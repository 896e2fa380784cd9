//! Finding out which era a server speaks.

use super::*;
use crate::target::Era;
use crate::transport::TransportError;

/// What came of it: era, version, whether settled; or the error.
async fn outcome(
    script: crate::transport::memory::Script,
    is_http: bool,
    options: Options,
) -> (String, Vec<String>) {
    let host = TestHost::silent();
    let (connection, far) = connect_in_memory(script, is_http, options, host).await;
    let text = match connection {
        Ok(connection) => {
            let info = connection.info();
            let settled = if info.settled { "" } else { " unsettled" };
            format!("{:?} {}{settled}", info.era, info.protocol_version)
        }
        Err(error) => format!("{error}"),
    };
    let methods = far.got().into_iter().map(|text| {
        let message: Value = serde_json::from_str(&text).expect("JSON");
        message["method"].as_str().unwrap_or("response").to_owned()
    });
    (text, methods.collect())
}

const HANDSHAKE: [&str; 3] = ["server/discover", "initialize", "notifications/initialized"];

#[tokio::test(start_paused = true)]
async fn any_error_to_the_probe_means_the_older_era() {
    for code in [-32601, -32602, -32600, -32000, 0, 42] {
        let refusal = format!(r#"{{"code":{code},"message":"no"}}"#);
        let script = Box::new(move |message: &Value| match message["method"].as_str() {
            Some("server/discover") => error(&refusal),
            Some("initialize") => result(INITIALIZED),
            _ => Vec::new(),
        });
        let (text, methods) = outcome(script, false, options()).await;
        assert_eq!(text, "Legacy 2025-11-25");
        assert_eq!(methods, HANDSHAKE);
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_no_handshake() {
    let host = TestHost::silent();
    let (connection, far) = connected(modern(|_| Vec::new()), &host).await;
    settle().await;
    let info = connection.info();
    assert_eq!((info.era, &*info.protocol_version), (Era::Modern, "2026-07-28"));
    assert_eq!(info.instructions.as_deref(), Some("be kind"));
    let probe: Value = serde_json::from_str(&far.got()[0]).expect("JSON");
    assert_eq!(probe["id"], "probe-1");
    let meta = &probe["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "pillion");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"]["url"].is_object());
    assert!(far.got_method("initialize").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_refused_and_named_is_tried_once_more() {
    let mut refused = 0;
    let script = Box::new(move |message: &Value| match message["method"].as_str() {
        Some("server/discover") if refused == 0 => {
            refused += 1;
            error(r#"{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}"#)
        }
        Some("server/discover") => result(DISCOVERED),
        _ => Vec::new(),
    });
    let (text, methods) = outcome(script, false, options()).await;
    assert_eq!(text, "Modern 2026-07-28");
    assert_eq!(methods[..2], ["server/discover", "server/discover"]);

    let always =
        Box::new(|_: &Value| error(r#"{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}"#));
    let (text, methods) = outcome(always, false, options()).await;
    assert!(text.contains("no common protocol version"), "{text}");
    assert_eq!(methods.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_in_a_handshake_on_the_same_pipe_and_late_answers_are_dropped() {
    let script = Box::new(|message: &Value| match message["method"].as_str() {
        Some("server/discover") => vec![
            Act::Wait(12 * SECOND),
            Act::Say(r#"{"jsonrpc":"2.0","id":"probe-1","error":{"code":-32601,"message":"late"}}"#.into()),
        ],
        Some("initialize") => result(INITIALIZED),
        _ => Vec::new(),
    });
    let (text, methods) = outcome(script, false, options()).await;
    assert_eq!(text, "Legacy 2025-11-25 unsettled");
    assert_eq!(methods, HANDSHAKE);
}

#[tokio::test(start_paused = true)]
async fn a_slow_modern_server_is_not_mistaken() {
    let script = Box::new(|message: &Value| match message["method"].as_str() {
        Some("server/discover") => {
            let mut acts = vec![Act::Wait(12 * SECOND)];
            acts.extend(result(DISCOVERED));
            acts
        }
        Some("initialize") => error(r#"{"code":-32601,"message":"Method not found"}"#),
        _ => Vec::new(),
    });
    assert_eq!(outcome(script, false, options()).await.0, "Modern 2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn another_version_named_in_an_error_is_taken() {
    for refusal in [
        r#"{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"],"requested":"x"}}"#,
        r#"{"code":-32000,"message":"Bad Request: Unsupported protocol version (supported versions: 2024-11-05)"}"#,
    ] {
        let script = Box::new(move |message: &Value| match message["method"].as_str() {
            Some("initialize") if message["params"]["protocolVersion"] == "2024-11-05" => {
                result(&INITIALIZED.replace("2025-11-25", "2024-11-05"))
            }
            Some("initialize") => error(refusal),
            Some("server/discover") => error(r#"{"code":1,"message":"?"}"#),
            _ => Vec::new(),
        });
        assert_eq!(outcome(script, false, options()).await.0, "Legacy 2024-11-05");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_from_the_future_is_refused() {
    let script = Box::new(|message: &Value| match message["method"].as_str() {
        Some("initialize") => result(&INITIALIZED.replace("2025-11-25", "2099-01-01")),
        _ => error(r#"{"code":1,"message":"?"}"#),
    });
    let (text, _) = outcome(script, false, options()).await;
    assert!(text.contains("the server speaks 2099-01-01"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn statuses_over_http() {
    let status = |status: u16, body: &str| {
        vec![Act::Fail(TransportError::Status {
            status,
            content_type: None,
            body: body.into(),
            challenges: vec!["Bearer".into()],
        })]
    };
    let check = async |code: u16, body: &'static str, expected: &str, n_messages: usize| {
        let script = Box::new(move |message: &Value| match message["method"].as_str() {
            Some("server/discover") => status(code, body),
            Some("initialize") => result(INITIALIZED),
            _ => Vec::new(),
        });
        let (text, methods) = outcome(script, true, options()).await;
        assert_eq!(text, expected, "{code} {body}");
        assert_eq!(methods.len(), n_messages);
    };
    let legacy = "Legacy 2025-11-25";
    check(400, "<html>", legacy, 3).await;
    check(
        404,
        r#"{"jsonrpc":"2.0","id":"probe-1","error":{"code":-32601,"message":"m"}}"#,
        legacy,
        3,
    )
    .await;
    check(
        400,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}}"#,
        legacy,
        3,
    )
    .await;
    check(405, "", legacy, 3).await;
    check(401, "", "HTTP status 401: authorization is needed", 1).await;
    check(403, "", "HTTP status 403: authorization is needed", 1).await;
    check(
        500,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m"}}"#,
        "HTTP status 500",
        1,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn choices() {
    let with = |protocol, verdict| Options {
        protocol,
        verdict,
        ..options()
    };
    let check = async |options, expected: &str, first: &str| {
        let (text, methods) = outcome(legacy(|_| Vec::new()), false, options).await;
        assert!(text.contains(expected), "{text}");
        assert_eq!(methods[0], first);
    };
    check(
        with(ProtocolChoice::Legacy, None),
        "Legacy 2025-11-25",
        "initialize",
    )
    .await;
    check(
        with(ProtocolChoice::Auto, Some(Era::Legacy)),
        "Legacy 2025-11-25",
        "initialize",
    )
    .await;
    check(
        with(ProtocolChoice::Auto, Some(Era::Modern)),
        "Legacy 2025-11-25",
        "server/discover",
    )
    .await;
    check(
        with(ProtocolChoice::Pin("2026-07-28".into()), None),
        "no common protocol",
        "server/discover",
    )
    .await;
    check(
        with(ProtocolChoice::Pin("2025-11-25".into()), None),
        "Legacy 2025-11-25",
        "initialize",
    )
    .await;
    check(
        with(ProtocolChoice::Pin("2025-06-18".into()), None),
        "no common protocol",
        "initialize",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_remembered_era_that_is_no_longer_true_is_found_out() {
    let script = Box::new(|message: &Value| match message["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        _ => error(r#"{"code":-32601,"message":"Method not found"}"#),
    });
    let remembered = Options {
        verdict: Some(Era::Legacy),
        ..options()
    };
    assert_eq!(outcome(script, false, remembered).await.0, "Modern 2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_without_discover() {
    let script = Box::new(|message: &Value| match message["method"].as_str() {
        Some("tools/list") => result(r#"{"tools":[]}"#),
        _ => error(r#"{"code":-32601,"message":"Method not found"}"#),
    });
    assert_eq!(outcome(script, true, options()).await.0, "Modern 2026-07-28");
}
