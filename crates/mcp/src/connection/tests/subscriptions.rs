//! Change notices and subscriptions of both eras.

use super::*;
use crate::error::CallError;
use crate::transport::TransportError;

const ACK: &str = r#"{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":$id}}}"#;

#[tokio::test(start_paused = true)]
async fn the_newer_era_listens_and_changes_its_filter_without_a_gap() {
    let script = modern(|message| match message["method"].as_str() {
        Some("subscriptions/listen") => vec![Act::Say(ACK.into())],
        _ => Vec::new(),
    });
    let host = TestHost::silent();
    let (connection, far) = connected(script, &host).await;
    settle().await;
    connection
        .subscribe(vec!["x:1".into()])
        .await
        .expect("subscribed");
    settle().await;
    far.say(r#"{"method":"notifications/resources/updated","params":{"uri":"x:1"}}"#);
    far.say(r#"{"method":"notifications/tools/list_changed"}"#);
    settle().await;
    let listens = far.got_method("subscriptions/listen");
    assert_eq!(listens.len(), 2);
    assert_eq!(
        listens[0]["params"]["notifications"],
        serde_json::json!({"toolsListChanged": true})
    );
    assert_eq!(
        listens[1]["params"]["notifications"]["resourceSubscriptions"],
        serde_json::json!(["x:1"])
    );
    let cancelled = far.got_method("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], listens[0]["id"]);
    assert_eq!(host.events(), [r#"ResourceUpdated("x:1")"#, "ListChanged(Tools)"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_is_opened_again_and_everything_counts_as_changed() {
    let mut opened = 0;
    let script = modern(move |message| {
        if message["method"] != "subscriptions/listen" {
            return Vec::new();
        }
        opened += 1;
        let mut acts = vec![Act::Say(ACK.into())];
        if opened < 3 {
            acts.extend([Act::Wait(SECOND), Act::Fail(TransportError::StreamEnded)]);
        }
        acts
    });
    let host = TestHost::silent();
    let (_connection, far) = connected(script, &host).await;
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(far.got_method("subscriptions/listen").len(), 3);
    assert_eq!(host.events(), ["ListChanged(Tools)", "ListChanged(Tools)"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_listen_is_left_alone() {
    let script = modern(|_| error(r#"{"code":-32601,"message":"no"}"#));
    let host = TestHost::silent();
    let (connection, far) = connected(script, &host).await;
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(far.got_method("subscriptions/listen").len(), 1);
    let refused = connection.subscribe(vec!["x:1".into()]).await;
    assert!(
        matches!(refused, Err(CallError::Rpc { code: -32601, .. })),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_older_era_subscribes_to_the_difference() {
    let host = TestHost::silent();
    let (connection, far) = connected(legacy(|_| result("{}")), &host).await;
    connection
        .subscribe(vec!["a".into(), "b".into()])
        .await
        .expect("subscribed");
    connection
        .subscribe(vec!["b".into(), "c".into()])
        .await
        .expect("subscribed");
    let uris = |method| -> Vec<String> {
        far.got_method(method)
            .iter()
            .map(|message| message["params"]["uri"].as_str().unwrap_or_default().into())
            .collect()
    };
    assert_eq!(uris("resources/subscribe"), ["a", "b", "c"]);
    assert_eq!(uris("resources/unsubscribe"), ["a"]);
}
