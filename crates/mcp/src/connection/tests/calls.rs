//! Requests: results as the server wrote them, cancellation, progress, limits.

use super::*;
use crate::error::CallError;
use crate::host::ListKind;
use crate::{ListLimits, Progress};

#[tokio::test(start_paused = true)]
async fn a_result_stays_the_servers_own_text() {
    let texts = [
        r#"{"z":1,"a":2,"n":1.10,"big":123456789012345678901234567890,"e":1e400,"s":"\ud800","z":3}"#,
        r#" { "spaced" : [ ] } "#,
        "null",
        r#"[{"type":"hologram"}]"#,
    ];
    let host = TestHost::silent();
    let (connection, _far) = connected(
        legacy(move |message| {
            let index: usize = message["params"]["index"]
                .as_u64()
                .and_then(|index| index.try_into().ok())
                .unwrap_or(0);
            result(texts[index])
        }),
        &host,
    )
    .await;
    for (index, text) in texts.iter().enumerate() {
        let params = raw(&format!(r#"{{"index":{index}}}"#));
        let answer = connection
            .request("x/y", params, CallOptions::new(SECOND))
            .await
            .expect("an answer");
        assert_eq!(answer.get(), text.trim());
    }
    let deep = format!("{}{}", "[".repeat(3000), "]".repeat(3000));
    let (connection, _far) = connected(
        legacy({
            let deep = deep.clone();
            move |_| result(&deep)
        }),
        &host,
    )
    .await;
    let answer = connection
        .request("x/y", raw("{}"), CallOptions::new(SECOND))
        .await
        .expect("an answer");
    assert_eq!(answer.get(), deep);
}

#[tokio::test(start_paused = true)]
async fn params_reach_the_server_as_they_were_written() {
    let host = TestHost::silent();
    let (connection, far) = connected(modern(|_| result("{}")), &host).await;
    let params = r#"{"name":"t","arguments":{"b":1.10,"a":1e400,"a":"\ud800"},"_meta":{"trace":1.0}}"#;
    connection
        .request("tools/call", raw(params), calling(1))
        .await
        .expect("an answer");
    let sent = far
        .got()
        .into_iter()
        .find(|text| text.contains("tools/call"))
        .expect("sent");
    assert!(
        sent.contains(r#""name":"t","arguments":{"b":1.10,"a":1e400,"a":"\ud800"}"#),
        "{sent}"
    );
    assert!(
        sent.contains(r#""trace":1.0"#) && sent.contains("progressToken"),
        "{sent}"
    );
}

#[tokio::test(start_paused = true)]
async fn ids_in_any_form_and_batches_and_unknown_ids() {
    let host = TestHost::silent();
    let (connection, _far) = connected(
        legacy(|message| {
            let id = &message["id"];
            match message["method"].as_str() {
                Some("text") => say(format!(r#"{{"id":"{id}","result":1}}"#)),
                Some("float") => say(format!(r#"{{"id":{id}.0,"result":1}}"#)),
                Some("batch") => say(format!(r#"[{{"id":77777,"result":2}},{{"id":{id},"result":1}}]"#)),
                Some("twice") => say(format!(r#"[{{"id":{id},"result":1}},{{"id":{id},"result":2}}]"#)),
                _ => say(r#"{"id":null,"error":{"code":-32700,"message":"Parse error"}}"#),
            }
        }),
        &host,
    )
    .await;
    for method in ["text", "float", "batch", "twice"] {
        let answer = connection
            .request(method, raw("{}"), CallOptions::new(SECOND))
            .await;
        assert_eq!(answer.expect("an answer").get(), "1", "{method}");
    }
    let answer = connection
        .request("unreadable", raw("{}"), CallOptions::new(SECOND))
        .await;
    assert!(
        matches!(answer, Err(CallError::Rpc { code: -32700, .. })),
        "{answer:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn giving_up_tells_the_server_with_the_same_id() {
    let host = TestHost::silent();
    let (connection, far) = connected(legacy(|_| Vec::new()), &host).await;
    let options = calling(1);
    let cancel = options.cancel.clone();
    let (answer, ()) = tokio::join!(connection.request("tools/call", raw("{}"), options), async {
        settle().await;
        cancel.cancel();
    });
    assert!(matches!(answer, Err(CallError::Cancelled)));
    let dropped = connection.request("tools/call", raw("{}"), calling(2));
    assert!(tokio::time::timeout(SECOND, dropped).await.is_err());
    let answer = connection
        .request("tools/call", raw("{}"), CallOptions::new(SECOND))
        .await;
    assert!(
        matches!(answer, Err(CallError::TimedOut { after: SECOND })),
        "{answer:?}"
    );

    let calls = far.got_method("tools/call");
    let cancelled = far.got_method("notifications/cancelled");
    assert_eq!((calls.len(), cancelled.len()), (3, 3));
    for (call, cancelled) in calls.iter().zip(&cancelled) {
        assert!(call["id"].is_number());
        assert_eq!(call["id"], cancelled["params"]["requestId"]);
    }
    // The late answer to a call that was given up disturbs nobody.
    far.say(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#,
        calls[0]["id"]
    ));
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn progress_comes_in_order_before_the_answer_and_keeps_the_call_alive() {
    let host = TestHost::silent();
    let (connection, _far) = connected(
        legacy(|message| {
            let token = &message["params"]["_meta"]["progressToken"];
            let progress = |number: &str| {
                Act::Say(format!(
                    r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":{number},"total":9,"message":"m"}}}}"#
                ))
            };
            let mut acts = Vec::new();
            for number in ["1", "2.5", "2", "7"] {
                acts.push(progress(number));
                acts.push(Act::Wait(8 * SECOND));
            }
            acts.extend(result("{}"));
            acts
        }),
        &host,
    )
    .await;
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    let sink = seen.clone();
    let options = CallOptions {
        progress: Some(Arc::new(move |progress: Progress| {
            assert_eq!(progress.total, Some(9.0));
            sink.lock().expect("no panic").push(progress.progress);
        })),
        ..CallOptions::new(10 * SECOND)
    };
    connection
        .request("tools/call", raw("{}"), options)
        .await
        .expect("an answer");
    assert_eq!(*seen.lock().expect("no panic"), [1.0, 2.5, 7.0]);
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_and_foreign_requests_refused_with_their_own_id() {
    let host = TestHost::silent();
    let (_connection, far) = connected(legacy(|_| Vec::new()), &host).await;
    far.say(r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#);
    far.say(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    far.say(r#"{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}"#);
    far.say(r#"{"jsonrpc":"2.0","id":1.50,"method":"no/such"}"#);
    settle().await;
    let got = far.got();
    assert_eq!(
        got[got.len() - 4..],
        [
            r#"{"jsonrpc":"2.0","id":"p-1","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}"#,
            r#"{"jsonrpc":"2.0","id":1.50,"error":{"code":-32601,"message":"Method not found"}}"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_refused_and_the_others_wait() {
    let host = TestHost::silent();
    let options = Options {
        max_in_flight: 2,
        ..options()
    };
    let (connection, far) = connect_in_memory(legacy(|_| Vec::new()), false, options, host).await;
    let connection = connection.expect("connected");
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move {
                connection
                    .request("tools/call", raw("{}"), CallOptions::new(60 * SECOND))
                    .await
            })
        })
        .collect();
    settle().await;
    let calls_sent = far.got_method("tools/call");
    assert_eq!(calls_sent.len(), 2);
    let overloaded = calls.iter().filter(|call| call.is_finished()).count();
    assert_eq!(overloaded, 2);
    far.say(&format!(r#"{{"id":{},"result":{{}}}}"#, calls_sent[0]["id"]));
    settle().await;
    assert_eq!(far.got_method("tools/call").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_server_fails_every_waiter() {
    let host = TestHost::silent();
    let (connection, far) = connected(legacy(|_| Vec::new()), &host).await;
    let closed = connection.closed();
    let (answer, ()) = tokio::join!(connection.request("tools/call", raw("{}"), calling(1)), async {
        settle().await;
        far.exit();
    });
    assert!(matches!(answer, Err(CallError::Closed(_))), "{answer:?}");
    closed.await;
    let answer = connection.request("tools/call", raw("{}"), calling(1)).await;
    assert!(matches!(answer, Err(CallError::Closed(_))), "{answer:?}");
    assert!(
        host.events()
            .last()
            .is_some_and(|event| event.starts_with("Closed"))
    );
}

#[tokio::test(start_paused = true)]
async fn lists_are_read_page_by_page() {
    let host = TestHost::silent();
    let (connection, far) = connected(
        legacy(|message| match message["params"]["cursor"].as_str() {
            None => result(r#"{"tools":[{"name":"a"}],"nextCursor":""}"#),
            Some("") => result(r#"{"tools":[{"name":"b"}],"nextCursor":"2"}"#),
            Some(_) => result(r#"{"tools":[{"name":"c"}],"nextCursor":null}"#),
        }),
        &host,
    )
    .await;
    let listed = connection
        .list(ListKind::Tools, ListLimits::default(), CallOptions::new(SECOND))
        .await
        .expect("a list");
    let items: Vec<&str> = listed.items.iter().map(|item| item.get()).collect();
    assert_eq!(items, [r#"{"name":"a"}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#]);
    assert!(listed.issues.is_empty());
    assert_eq!(far.got_method("tools/list").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_session_is_renewed_and_the_request_repeated_once() {
    use crate::transport::TransportError;

    let mut calls = 0;
    let host = TestHost::silent();
    let script = legacy(move |message| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        calls += 1;
        if calls == 1 {
            vec![Act::Fail(TransportError::SessionGone)]
        } else {
            result(r#""done""#)
        }
    });
    let (connection, far) = connect_in_memory(script, true, options(), host).await;
    let connection = connection.expect("connected");
    let answer = connection
        .request("tools/call", raw(r#"{"name":"t"}"#), calling(1))
        .await;
    assert_eq!(answer.expect("an answer").get(), r#""done""#);
    assert_eq!(far.got_method("initialize").len(), 2);
    assert_eq!(far.got_method("notifications/initialized").len(), 2);
    let calls = far.got_method("tools/call");
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
}

use crate::transport::memory::say;
