//! Questions of both eras.

use tokio::sync::oneshot;

use super::*;
use crate::error::CallError;
use crate::transport::memory::say;

/// Answers with what is sent here, one question after the other; tells whether the question was dropped.
fn by_hand() -> (
    Arc<TestHost>,
    tokio::sync::mpsc::UnboundedReceiver<(InputRequest, oneshot::Sender<InputReply>)>,
) {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let host = TestHost::new(Box::new(move |request| {
        let (answer, answered) = oneshot::channel();
        let _ = sender.send((request, answer));
        async move {
            answered.await.unwrap_or(InputReply::Error {
                code: -1,
                message: "nobody answered".into(),
            })
        }
        .boxed()
    }));
    (host, receiver)
}

const ACCEPT: &str = r#"{"action":"accept","content":{"n":1.10}}"#;

#[tokio::test(start_paused = true)]
async fn a_legacy_question_stops_the_clock_and_is_answered_once() {
    let (host, mut questions) = by_hand();
    let script = legacy(|message| match message["method"].as_str() {
        Some("tools/call") => say(
            r#"{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}"#,
        ),
        // The answer to the question: now the call ends.
        None if message["id"] == "q-1" => {
            let mut acts = vec![Act::Wait(SECOND / 5)];
            acts.extend(say(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#));
            acts
        }
        _ => Vec::new(),
    });
    let (connection, far) = connected(script, &host).await;
    let options = CallOptions {
        tag: Some(7),
        ..CallOptions::new(SECOND)
    };
    let (answer, ()) = tokio::join!(connection.request("tools/call", raw("{}"), options), async {
        let (question, answer) = questions.recv().await.expect("a question");
        assert_eq!(question.calls, [7]);
        assert_eq!(question.params.get(), r#"{"message":"m","requestedSchema":{}}"#);
        tokio::time::sleep(30 * SECOND).await;
        let _ = answer.send(InputReply::Result(raw(ACCEPT)));
    });
    assert_eq!(answer.expect("an answer").get(), "{}");
    assert!(
        far.got()
            .contains(&format!(r#"{{"jsonrpc":"2.0","id":"q-1","result":{ACCEPT}}}"#))
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_the_server_takes_back_is_withdrawn_and_not_answered() {
    let (host, mut questions) = by_hand();
    let (_connection, far) = connected(legacy(|_| Vec::new()), &host).await;
    far.say(r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{}}"#);
    let (question, mut answer) = questions.recv().await.expect("a question");
    assert!(question.calls.is_empty());
    far.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}"#);
    settle().await;
    assert!(!answer.is_closed());
    far.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
    answer.closed().await;
    settle().await;
    assert!(!far.got().iter().any(|text| text.contains(r#""id":5"#)));
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_question_of_a_task_names_the_task() {
    let host = TestHost::answering(ACCEPT);
    let (_connection, far) = connected(legacy(|_| Vec::new()), &host).await;
    far.say(
        r#"{"id":5,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#,
    );
    settle().await;
    let expected = r#"{"jsonrpc":"2.0","id":5,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"action":"accept","content":{"n":1.10}}}"#;
    assert_eq!(far.got().last().map(String::as_str), Some(expected));
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_call_is_over_is_answered_with_cancel() {
    let (host, mut questions) = by_hand();
    let script = legacy(|message| match message["method"].as_str() {
        Some("tools/call") => say(r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{}}"#),
        _ => Vec::new(),
    });
    let (connection, far) = connected(script, &host).await;
    let options = calling(1);
    let cancel = options.cancel.clone();
    let (answer, ()) = tokio::join!(connection.request("tools/call", raw("{}"), options), async {
        let (_, mut answer) = questions.recv().await.expect("a question");
        cancel.cancel();
        answer.closed().await;
    });
    assert!(matches!(answer, Err(CallError::Cancelled)));
    settle().await;
    assert!(
        far.got()
            .contains(&r#"{"jsonrpc":"2.0","id":5,"result":{"action":"cancel"}}"#.to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn rounds_of_input_carry_the_state_letter_by_letter() {
    let state = r#""opa\u0071ue \/ \ud83d""#;
    let mut round = 0;
    let script = modern(move |message| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        round += 1;
        match round {
            1 => result(&format!(
                r#"{{"resultType":"input_required","requestState":{state},"inputRequests":{{"k\u0031":{{"method":"elicitation/create","params":{{"message":"m"}}}}}}}}"#
            )),
            2 => result(r#"{"resultType":"input_required","requestState":"second"}"#),
            3 => result(
                r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"elicitation/create"}}}"#,
            ),
            _ => result(r#"{"resultType":"complete","content":[]}"#),
        }
    });
    let host = TestHost::answering(ACCEPT);
    let (connection, far) = connected(script, &host).await;
    let answer = connection
        .request(
            "tools/call",
            raw(r#"{"name":"t","arguments":{"x":1.0}}"#),
            calling(3),
        )
        .await;
    assert_eq!(
        answer.expect("an answer").get(),
        r#"{"resultType":"complete","content":[]}"#
    );

    let texts: Vec<String> = far
        .got()
        .into_iter()
        .filter(|text| text.contains("tools/call"))
        .collect();
    assert_eq!(texts.len(), 4);
    assert!(
        texts
            .iter()
            .all(|text| text.contains(r#""name":"t","arguments":{"x":1.0}"#))
    );
    assert!(
        texts[1].contains(&format!(
            r#""inputResponses":{{"k\u0031":{ACCEPT}}},"requestState":{state}"#
        )),
        "{}",
        texts[1]
    );
    assert!(texts[2].contains(r#""requestState":"second""#) && !texts[2].contains("inputResponses"));
    assert!(
        texts[3].contains(&format!(r#""inputResponses":{{"a":{ACCEPT},"b":{ACCEPT}}}"#))
            && !texts[3].contains("requestState")
    );
    let ids: std::collections::HashSet<String> = far
        .got_method("tools/call")
        .iter()
        .map(|call| call["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn rounds_have_an_end() {
    let asking = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create"}}}"#;
    let host = TestHost::answering(r#"{"action":"decline"}"#);
    let (connection, far) = connected(modern(move |_| result(asking)), &host).await;
    let answer = connection.request("tools/call", raw("{}"), calling(1)).await;
    assert!(
        matches!(&answer, Err(CallError::Protocol(text)) if text.contains("after 10 rounds")),
        "{answer:?}"
    );
    let calls = far.got_method("tools/call");
    assert_eq!(calls.len(), 11);
    // Declining is an answer like any other.
    assert_eq!(calls[1]["params"]["inputResponses"]["k"]["action"], "decline");
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_do_not_see_each_others_state() {
    let script = modern(|message| {
        let name = message["params"]["name"].as_str().unwrap_or_default();
        match message["params"]["requestState"].as_str() {
            None => result(&format!(
                r#"{{"resultType":"input_required","requestState":"of {name}","inputRequests":{{"k":{{"method":"elicitation/create"}}}}}}"#
            )),
            Some(state) => result(&format!(r#""{name} {state}""#)),
        }
    });
    let host = TestHost::answering(ACCEPT);
    let (connection, _far) = connected(script, &host).await;
    let call = |name: &str, tag| {
        let connection = connection.clone();
        let params = raw(&format!(r#"{{"name":"{name}"}}"#));
        async move {
            connection
                .request("tools/call", params, calling(tag))
                .await
                .expect("an answer")
                .get()
                .to_owned()
        }
    };
    let answers = tokio::join!(call("a", 1), call("b", 2), call("c", 3));
    assert_eq!(
        answers,
        (r#""a of a""#.into(), r#""b of b""#.into(), r#""c of c""#.into())
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_fails_the_call() {
    let check = async |answer: &'static str, options: CallOptions, method: &str, expected: &str| {
        let host = TestHost::answering(ACCEPT);
        let (connection, _far) = connected(modern(move |_| result(answer)), &host).await;
        let error = connection
            .request(method, raw("{}"), options)
            .await
            .expect_err("fails");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let asking = |method: &str| -> &'static str {
        match method {
            "sample" => {
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"sampling/createMessage"}}}"#
            }
            _ => r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}}}"#,
        }
    };
    check(asking("sample"), calling(1), "tools/call", "not offered").await;
    check(
        asking("elicit"),
        CallOptions::new(SECOND),
        "tools/call",
        "nobody can give",
    )
    .await;
    check(asking("elicit"), calling(1), "tools/list", "not possible").await;
    check(
        r#"{"resultType":"input_required"}"#,
        calling(1),
        "tools/call",
        "names no question",
    )
    .await;
    check(
        r#"{"resultType":"input_required","requestState":5}"#,
        calling(1),
        "tools/call",
        "not a string",
    )
    .await;
    check(
        r#"{"resultType":"hologram"}"#,
        calling(1),
        "tools/call",
        "hologram",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_page_to_visit_first() {
    const REQUIRED: &str = r#"{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://h.example/x","message":"m"}]}}"#;
    let mut calls = 0;
    let script = legacy(move |message| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        calls += 1;
        if calls == 1 { error(REQUIRED) } else { result("{}") }
    });
    let (host, mut questions) = by_hand();
    let (connection, far) = connected(script, &host).await;
    let started = tokio::time::Instant::now();
    let options = CallOptions {
        tag: Some(1),
        ..CallOptions::new(SECOND)
    };
    let (answer, ()) = tokio::join!(connection.request("tools/call", raw("{}"), options), async {
        let (question, answer) = questions.recv().await.expect("a question");
        assert!(question.params.get().contains("https://h.example/x"));
        let _ = answer.send(InputReply::Result(raw(r#"{"action":"accept"}"#)));
        tokio::time::sleep(5 * SECOND).await;
        far.say(r#"{"method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#);
    });
    answer.expect("an answer");
    assert_eq!(started.elapsed(), 5 * SECOND);
    assert_eq!(far.got_method("tools/call").len(), 2);

    let host = TestHost::answering(r#"{"action":"decline"}"#);
    let (connection, far) = connected(legacy(|_| error(REQUIRED)), &host).await;
    let answer = connection.request("tools/call", raw("{}"), calling(1)).await;
    assert!(
        matches!(answer, Err(CallError::Rpc { code: -32042, .. })),
        "{answer:?}"
    );
    assert_eq!(far.got_method("tools/call").len(), 1);

    // A server that never stops asking.
    let host = TestHost::answering(r#"{"action":"accept"}"#);
    let (connection, far) = connected(legacy(|_| error(REQUIRED)), &host).await;
    let answer = connection.request("tools/call", raw("{}"), calling(1)).await;
    assert!(
        matches!(answer, Err(CallError::Rpc { code: -32042, .. })),
        "{answer:?}"
    );
    assert!(far.got_method("tools/call").len() < 40);
}
