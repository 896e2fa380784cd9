//! What a person typed for `${input:…}` and wanted kept: found again after a restart, in a credential store of this test.
#![cfg(feature = "keyring")]

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use manager::{Env, HostSink, Manager, RequestContext};
use protocol::{Answer, Dir, InitializationOptions, McpStart, Notification, Question, ServerName};
use serde_json::json;
use tokio::sync::mpsc;

/// A host that hands its questions over.
struct Host(mpsc::UnboundedSender<Question>);

impl HostSink for Host {
    fn notify(&self, notification: Notification) {
        if let Notification::Question(question) = notification {
            let _ = self.0.send(question);
        }
    }

    fn show_document(&self, _: String) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(std::future::ready(false))
    }
}

/// Starts the server in a process of its own, as far as the manager can tell; answers what it was given, and how often
/// somebody was asked.
async fn started(folder: &Path, server: &str, keep: bool) -> (String, usize) {
    let (sink, mut questions) = mpsc::unbounded_channel();
    let env = Env::from_process().with_data_dir(folder.to_owned());
    let manager = Manager::new(env, Arc::new(Host(sink)));
    let directory = Dir::from(folder.display().to_string());
    let options: InitializationOptions =
        serde_json::from_value(json!({ "capabilities": { "questions": true } })).unwrap();
    manager.initialize(options, vec![directory.clone()]);
    let request = RequestContext::local();
    let start = McpStart {
        directory,
        server: ServerName::from(server),
        work_done_token: None,
    };
    let mut n_asked = 0;
    let mut start = std::pin::pin!(manager.start(&request, start));
    loop {
        tokio::select! {
            // The program is no server: that its start fails does not matter.
            _ = &mut start => break,
            Some(question) = questions.recv() => {
                n_asked += 1;
                let answer: Answer = serde_json::from_value(json!({
                    "question": question.id(), "action": "accept", "content": { "value": "typed-1", "keep": keep },
                }))
                .unwrap();
                manager.answer(&request, answer).await.unwrap();
            }
        }
    }
    manager.shutdown().await;
    let seen = std::fs::read_to_string(folder.join(server)).unwrap_or_default();
    (seen.trim().to_owned(), n_asked)
}

#[tokio::test]
async fn what_is_to_be_kept_is_found_after_a_restart() {
    keyring_core::set_default_store(keyring_core::mock::Store::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let entry = |name: &str| {
        let script = format!("echo \"$WANTED\" > '{}'", folder.path().join(name).display());
        json!({ "command": "sh", "args": ["-c", script], "env": { "WANTED": format!("${{input:{name}}}") } })
    };
    let servers = json!({ "servers": { "kept": entry("kept"), "once": entry("once") } });
    std::fs::write(folder.path().join("mcp.json"), servers.to_string()).unwrap();
    for (server, keep, asked) in [("kept", true, [1, 0]), ("once", false, [1, 1])] {
        for n_asked in asked {
            let seen = started(folder.path(), server, keep).await;
            assert_eq!(seen, ("typed-1".to_owned(), n_asked), "{server}");
        }
    }
    // It stands in no file.
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let is_own = ["kept", "once"].iter().any(|name| file.file_name() == *name);
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        assert!(is_own || !text.contains("typed-1"), "{}", file.path().display());
    }
}
