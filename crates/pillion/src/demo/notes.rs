//! The demo's stdio server: a few notes, in the revision of 2025-11-25.
//!
//! One JSON message per line on stdin and stdout, requests from the server included. It speaks the older
//! revision on purpose: it refuses `server/discover`, so that the demo shows how a host is spared the difference.
//! Plain threads and the standard library; a call runs on its own thread, so that it may ask and be cancelled.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";
/// What the process ends with when it is asked to crash.
pub const CRASH_CODE: i32 = 3;
/// Long enough to be seen as progress, short enough not to bore.
const PER_NOTE: Duration = Duration::from_millis(150);

const NOTES: [(&str, &str); 3] = [
    (
        "welcome",
        "# Welcome\n\nThis note is a resource of the demo's stdio server.",
    ),
    ("shopping", "Bread, apples, coffee."),
    ("ideas", "A sidecar sits behind the rider and does not steer."),
];

/// Serves until stdin ends.
pub fn serve() {
    let server = Arc::new(Server::default());
    let stdin = std::io::stdin().lock();
    for line in stdin.lines() {
        let Ok(line) = line else { break };
        if let Ok(message) = serde_json::from_str::<Value>(&line) {
            server.receive(message);
        }
    }
}

/// News for a call that is running.
enum Word {
    Answer(Value),
    Cancelled,
}

#[derive(Default)]
struct Server {
    next_id: AtomicU64,
    /// Calls that run, by the JSON text of their id; a word reaches them here.
    calls: Mutex<HashMap<String, Sender<Word>>>,
    /// Which call waits for the answer to which question of ours.
    questions: Mutex<HashMap<String, Sender<Word>>>,
}

impl Server {
    fn receive(self: &Arc<Self>, message: Value) {
        let id = message.get("id").cloned();
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => self.request(method, id, message["params"].clone()),
            (Some("notifications/cancelled"), None) => {
                let call = message["params"]["requestId"].to_string();
                if let Some(call) = lock(&self.calls).get(&call) {
                    let _ = call.send(Word::Cancelled);
                }
            }
            (Some(_), None) => {}
            (None, Some(id)) => {
                if let Some(call) = lock(&self.questions).remove(&id.to_string()) {
                    let _ = call.send(Word::Answer(message["result"].clone()));
                }
            }
            (None, None) => {}
        }
    }

    fn request(self: &Arc<Self>, method: &str, id: Value, params: Value) {
        match method {
            "initialize" => answer(id, Ok(initialized())),
            "ping" => answer(id, Ok(json!({}))),
            "tools/list" => answer(id, Ok(json!({ "tools": tools() }))),
            "resources/list" => answer(id, Ok(json!({ "resources": resources() }))),
            "resources/templates/list" => answer(id, Ok(json!({ "resourceTemplates": [] }))),
            "resources/read" => answer(id, read(params["uri"].as_str().unwrap_or_default())),
            "prompts/list" => answer(id, Ok(json!({ "prompts": prompts() }))),
            "prompts/get" => answer(id, prompt(&params)),
            "tools/call" => {
                let (words, heard) = channel();
                lock(&self.calls).insert(id.to_string(), words.clone());
                let server = Arc::clone(self);
                std::thread::spawn(move || {
                    let call = Call {
                        server: &server,
                        words,
                        heard,
                        params,
                    };
                    let outcome = call.run();
                    lock(&server.calls).remove(&id.to_string());
                    // A cancelled call gets no answer.
                    if let Some(outcome) = outcome {
                        answer(id, outcome);
                    }
                });
            }
            _ => answer(id, Err((-32601, format!("Method not found: {method}")))),
        }
    }
}

type Outcome = Result<Value, (i64, String)>;

struct Call<'a> {
    server: &'a Server,
    words: Sender<Word>,
    heard: Receiver<Word>,
    params: Value,
}

impl Call<'_> {
    /// `None` when the call was cancelled.
    fn run(&self) -> Option<Outcome> {
        if let Some(fault) = super::arguments::fault(&tools(), &self.params) {
            return Some(Ok(fault));
        }
        let arguments = &self.params["arguments"];
        match self.params["name"].as_str().unwrap_or_default() {
            "list_notes" => {
                let names: Vec<&str> = NOTES.iter().map(|(name, _)| *name).collect();
                Some(Ok(text(&names.join("\n"))))
            }
            "import_notes" => self.import(arguments["count"].as_u64().unwrap_or(5).clamp(1, 20)),
            "share_note" => self.share(arguments["note"].as_str().unwrap_or("welcome")),
            "crash" => {
                eprintln!("notes: crashing on purpose");
                std::process::exit(CRASH_CODE);
            }
            other => Some(Err((-32602, format!("Unknown tool: {other}")))),
        }
    }

    fn import(&self, count: u64) -> Option<Outcome> {
        let token = &self.params["_meta"]["progressToken"];
        for done in 1..=count {
            match self.heard.recv_timeout(PER_NOTE) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(_) | Err(RecvTimeoutError::Disconnected) => return None,
            }
            if !token.is_null() {
                send(&json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {
                        "progressToken": token, "progress": done, "total": count,
                        "message": format!("note {done} of {count}"),
                    },
                }));
            }
        }
        Some(Ok(text(&format!("Imported {count} notes"))))
    }

    fn share(&self, note: &str) -> Option<Outcome> {
        if !NOTES.iter().any(|(name, _)| *name == note) {
            let mut failed = text(&format!("No note is called `{note}`"));
            failed["isError"] = json!(true);
            return Some(Ok(failed));
        }
        let id = format!("ask-{}", self.server.next_id.fetch_add(1, Ordering::Relaxed) + 1);
        lock(&self.server.questions).insert(json!(id).to_string(), self.words.clone());
        send(&json!({
            "jsonrpc": "2.0",
            "id": id,
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": format!("How should `{note}` be shared?"),
                "requestedSchema": share_form(note),
            },
        }));
        let Ok(Word::Answer(reply)) = self.heard.recv() else {
            return None;
        };
        if reply["action"] != "accept" {
            return Some(Ok(text(&format!("Kept `{note}` private"))));
        }
        let content = &reply["content"];
        let urgent = if content["urgent"] == true {
            ", marked urgent"
        } else {
            ""
        };
        Some(Ok(text(&format!(
            "Shared \"{}\" with {}{urgent}",
            content["title"].as_str().unwrap_or(note),
            content["audience"].as_str().unwrap_or("nobody"),
        ))))
    }
}

fn initialized() -> Value {
    json!({
        "protocolVersion": REVISION,
        "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
        "serverInfo": { "name": "pillion-demo-notes", "title": "Notes", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Notes of the demo. Nothing is stored.",
    })
}

fn tools() -> Value {
    json!([
        {
            "name": "list_notes", "title": "List notes", "description": "Name every note",
            "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true },
        },
        {
            "name": "import_notes", "title": "Import notes", "description": "Import notes one by one, with progress",
            "inputSchema": { "type": "object", "properties": {
                "count": { "type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": "How many notes" },
            } },
        },
        {
            "name": "share_note", "title": "Share a note", "description": "Share a note; asks how",
            "inputSchema": { "type": "object", "properties": {
                "note": { "type": "string", "description": "Name of the note" },
            }, "required": ["note"] },
        },
        {
            "name": "crash", "title": "Crash", "description": "End the server's process on purpose",
            "inputSchema": { "type": "object" }, "annotations": { "destructiveHint": true },
        },
    ])
}

fn share_form(note: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": { "type": "string", "title": "Title", "description": "What others will see",
                "minLength": 1, "maxLength": 60, "default": format!("My {note}") },
            "audience": { "type": "string", "title": "Audience", "default": "team", "oneOf": [
                { "const": "team", "title": "My team" },
                { "const": "company", "title": "The whole company" },
                { "const": "everyone", "title": "Everyone" },
            ] },
            "urgent": { "type": "boolean", "title": "Mark as urgent", "default": false },
        },
        "required": ["title", "audience"],
    })
}

fn resources() -> Vec<Value> {
    let resource = |(name, text): &(&str, &str)| {
        json!({
            "uri": format!("note://{name}"), "name": name, "mimeType": "text/markdown", "size": text.len(),
        })
    };
    NOTES.iter().map(resource).collect()
}

fn read(uri: &str) -> Outcome {
    let note = NOTES
        .iter()
        .find(|(name, _)| uri.strip_prefix("note://") == Some(name));
    let Some((_, text)) = note else {
        return Err((-32002, format!("Resource not found: {uri}")));
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", "text": text }] }))
}

fn prompts() -> Value {
    json!([{
        "name": "summarize", "title": "Summarize a note", "description": "Ask for a summary of one note",
        "arguments": [
            { "name": "note", "description": "Name of the note", "required": true },
            { "name": "style", "description": "For example `one line`", "required": false },
        ],
    }])
}

fn prompt(params: &Value) -> Outcome {
    if params["name"] != "summarize" {
        return Err((-32602, format!("Unknown prompt: {}", params["name"])));
    }
    let note = params["arguments"]["note"].as_str().unwrap_or_default();
    let Some((_, text)) = NOTES.iter().find(|(name, _)| *name == note) else {
        return Err((-32602, format!("No note is called `{note}`")));
    };
    let style = params["arguments"]["style"].as_str().unwrap_or("a few sentences");
    Ok(json!({
        "description": format!("Summary of {note}"),
        "messages": [{ "role": "user", "content": {
            "type": "text", "text": format!("Summarize this note in {style}: {text}"),
        } }],
    }))
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn answer(id: Value, outcome: Outcome) {
    send(&match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, message)) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    });
}

/// Whole lines only: calls on other threads write too. A closed stdout is noticed at the end of stdin.
fn send(message: &Value) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{message}").and_then(|()| stdout.flush());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
