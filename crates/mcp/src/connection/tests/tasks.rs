//! Calls that become tasks.

use super::*;
use crate::error::CallError;

#[tokio::test(start_paused = true)]
async fn a_task_of_the_older_era_is_followed_to_its_result() {
    let mut looks = 0;
    let script = Box::new(move |message: &Value| match message["method"].as_str() {
        Some("server/discover") => error(r#"{"code":-32601,"message":"?"}"#),
        Some("initialize") => result(&INITIALIZED.replace(
            r#""tools":{}"#,
            r#""tools":{},"tasks":{"requests":{"tools":{"call":{}}}}"#,
        )),
        Some("tools/call") => result(r#"{"task":{"taskId":"t1","status":"working","pollInterval":2000}}"#),
        Some("tasks/get") => {
            looks += 1;
            let status = if looks < 3 { "working" } else { "completed" };
            result(&format!(
                r#"{{"taskId":"t1","status":"{status}","pollInterval":2000}}"#
            ))
        }
        Some("tasks/result") => result(r#"{"content":[]}"#),
        _ => Vec::new(),
    });
    let host = TestHost::silent();
    let (connection, far) = connected(script, &host).await;
    let options = CallOptions {
        as_task: true,
        ..calling(1)
    };
    let answer = connection
        .request("tools/call", raw(r#"{"name":"t"}"#), options)
        .await;
    assert_eq!(answer.expect("an answer").get(), r#"{"content":[]}"#);
    assert_eq!(far.got_method("tasks/get").len(), 3);
    assert_eq!(far.got_method("tasks/result")[0]["params"]["taskId"], "t1");
    assert!(far.got_method("tools/call")[0]["params"]["task"]["ttl"].is_number());
    assert!(far.got_method("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_newer_era_asks_each_question_once_and_ends() {
    let mut looks = 0;
    let script = modern(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            result(r#"{"resultType":"task","taskId":"t1","status":"working","pollIntervalMs":500}"#)
        }
        Some("tasks/get") => {
            looks += 1;
            match looks {
                1 | 2 => result(
                    r#"{"resultType":"complete","taskId":"t1","status":"input_required","inputRequests":{"k":{"method":"elicitation/create"}}}"#,
                ),
                3 => result(r#"{"resultType":"complete","taskId":"t1","status":"working"}"#),
                _ => result(
                    r#"{"resultType":"complete","taskId":"t1","status":"completed","result":{"content":[1.10]}}"#,
                ),
            }
        }
        _ => result("{}"),
    });
    let host = TestHost::answering(r#"{"action":"accept"}"#);
    let (connection, far) = connected(script, &host).await;
    let answer = connection.request("tools/call", raw("{}"), calling(1)).await;
    assert_eq!(answer.expect("an answer").get(), r#"{"content":[1.10]}"#);
    let updates = far.got_method("tasks/update");
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["params"]["inputResponses"]["k"]["action"], "accept");
    assert!(far.got_method("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_given_up_is_cancelled_and_a_failed_one_is_an_error() {
    let script = modern(|message| match message["method"].as_str() {
        Some("tools/call") if message["params"]["name"] == "fails" => result(
            r#"{"resultType":"task","taskId":"t2","status":"failed","error":{"code":-5,"message":"broken"}}"#,
        ),
        Some("tools/call") => result(r#"{"resultType":"task","taskId":"t1","status":"working"}"#),
        Some("tasks/get") => result(r#"{"taskId":"t1","status":"working"}"#),
        _ => result("{}"),
    });
    let host = TestHost::silent();
    let (connection, far) = connected(script, &host).await;
    let answer = connection
        .request("tools/call", raw(r#"{"name":"fails"}"#), calling(1))
        .await;
    assert!(
        matches!(answer, Err(CallError::Rpc { code: -5, .. })),
        "{answer:?}"
    );

    let options = CallOptions {
        hard_limit: 20 * SECOND,
        ..calling(1)
    };
    let answer = connection.request("tools/call", raw("{}"), options).await;
    assert!(matches!(answer, Err(CallError::TimedOut { .. })), "{answer:?}");
    settle().await;
    let cancels = far.got_method("tasks/cancel");
    assert_eq!(cancels.len(), 1);
    assert_eq!(cancels[0]["params"]["taskId"], "t1");
}
