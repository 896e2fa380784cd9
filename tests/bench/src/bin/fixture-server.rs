//! A tiny MCP server for benchmarks: what it costs itself must be nothing next to what is measured.
//!
//! Newline-delimited JSON on stdio, both eras. `--tools N` (the first four are echo, sleep, big and fail),
//! `--init-delay MS` (waits before it answers the handshake, without burning time),
//! `--mode ok|hang|crash` (hang never answers the handshake, crash ends at once).

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Write};
use std::sync::Mutex;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

struct Settings {
    hangs: bool,
    delay: Duration,
    tools: String,
}

/// When the answer is written.
enum When {
    Never,
    Now,
    After(Duration),
}

const INFO: &str = r#"{"name":"fixture","version":"0.1.0"}"#;
const CAPABILITIES: &str = r#""capabilities":{"tools":{"listChanged":true}}"#;
const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn handle(settings: &Settings, line: &str, out: &mut Vec<u8>) -> When {
    let Ok(message) = serde_json::from_str::<Message>(line) else { return When::Never };
    let Some(id) = message.id else { return When::Never };
    let params = message.params.map_or("{}", RawValue::get);
    // A client of the 2026-07-28 revision names it in `_meta` of every request, and wants more in a result.
    let modern = line.len() < 65536 && line.contains("io.modelcontextprotocol/protocolVersion");
    let more = if modern { r#""resultType":"complete","ttlMs":0,"cacheScope":"private","# } else { "" };
    let mut when = When::Now;
    let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{},"#, id.get());
    match &*message.method {
        "" => return When::Never,
        method @ ("initialize" | "server/discover") => {
            if settings.hangs {
                return When::Never;
            }
            if !settings.delay.is_zero() {
                when = When::After(settings.delay);
            }
            let _ = if method == "initialize" {
                let asked = serde_json::from_str::<Value>(params).unwrap_or_default();
                let asked = asked["protocolVersion"].as_str().filter(|version| LEGACY.contains(version));
                let version = asked.unwrap_or("2025-11-25");
                write!(out, r#""result":{{"protocolVersion":"{version}",{CAPABILITIES},"serverInfo":{INFO}}}}}"#)
            } else {
                let versions = format!(r#""supportedVersions":["{MODERN}","2025-11-25"]"#);
                let meta = format!(r#""_meta":{{"io.modelcontextprotocol/serverInfo":{INFO}}}"#);
                let result = format!(r#"{versions},{CAPABILITIES},"serverInfo":{INFO},{meta}"#);
                let cached = r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#;
                write!(out, r#""result":{{{cached},{result}}}}}"#)
            };
        }
        "tools/list" => {
            let _ = write!(out, r#""result":{{{more}"tools":{}}}}}"#, settings.tools);
        }
        "tools/call" => {
            let _ = write!(out, r#""result":{{{more}"content":[{{"type":"text","text":""#);
            let (failed, then) = call(params, out);
            when = then;
            let _ = write!(out, r#""}}],"isError":{failed}}}}}"#);
        }
        "ping" | "logging/setLevel" => {
            let _ = write!(out, r#""result":{{}}}}"#);
        }
        other => {
            let text = json!(format!("no method {other}"));
            let _ = write!(out, r#""error":{{"code":-32601,"message":{text}}}}}"#);
        }
    }
    when
}

/// Writes the text of a result; answers whether the tool failed, and when to send it.
fn call(params: &str, out: &mut Vec<u8>) -> (bool, When) {
    let none = Call { name: "".into(), arguments: None };
    let call = serde_json::from_str::<Call>(params).unwrap_or(none);
    let arguments = call.arguments.map_or("{}", RawValue::get);
    let number = |name: &str| {
        let arguments = serde_json::from_str::<Value>(arguments).unwrap_or_default();
        arguments[name].as_u64().unwrap_or(0)
    };
    match &*call.name {
        "echo" => {
            // The arguments as a JSON string, without its quotes.
            let text = serde_json::to_string(arguments).unwrap_or_default();
            out.extend_from_slice(&text.as_bytes()[1..text.len() - 1]);
        }
        "sleep" => {
            out.extend_from_slice(b"slept");
            return (false, When::After(Duration::from_millis(number("ms"))));
        }
        "big" => fill(out, number("n") as usize),
        "fail" => {
            out.extend_from_slice(b"failed");
            return (true, When::Now);
        }
        _ => out.extend_from_slice(b"ok"),
    }
    (false, When::Now)
}

/// That many bytes that look a little like prose, with an escape every 77.
fn fill(out: &mut Vec<u8>, bytes: usize) {
    const LINE: &[u8] = b"the quick brown fox jumps over the lazy dog 0123456789 abcdefghijklmnopqrstu\\n";
    out.reserve(bytes + 16);
    let mut left = bytes;
    while left >= LINE.len() {
        out.extend_from_slice(LINE);
        left -= LINE.len();
    }
    out.extend(std::iter::repeat_n(b'x', left));
}

fn put(lock: &Mutex<()>, bytes: &[u8]) {
    let _guard = lock.lock();
    if std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()).is_err() {
        std::process::exit(0);
    }
}

fn serve(settings: &'static Settings) {
    static LOCK: Mutex<()> = Mutex::new(());
    let mut stdin = BufReader::with_capacity(1 << 16, std::io::stdin());
    let (mut line, mut out, mut pending) = (String::new(), Vec::new(), Vec::new());
    while stdin.read_line(&mut line).is_ok_and(|length| length > 0) {
        out.clear();
        match handle(settings, line.trim_end(), &mut out) {
            When::Never => {}
            When::Now => {
                out.push(b'\n');
                pending.extend_from_slice(&out);
            }
            When::After(delay) => {
                out.push(b'\n');
                let bytes = std::mem::take(&mut out);
                let sleeper = std::thread::Builder::new().stack_size(64 << 10);
                let _ = sleeper.spawn(move || {
                    std::thread::sleep(delay);
                    put(&LOCK, &bytes);
                });
            }
        }
        line.clear();
        // A burst of requests is answered with one write.
        if !pending.is_empty() && (stdin.buffer().is_empty() || pending.len() > 1 << 16) {
            put(&LOCK, &pending);
            pending.clear();
            if pending.capacity() > 1 << 20 {
                (pending, out) = (Vec::new(), Vec::new());
            }
        }
    }
}

fn tool(index: usize) -> Value {
    let (name, properties) = match index {
        0 => ("echo".to_owned(), json!({ "text": { "type": "string", "description": "what to send back" } })),
        1 => ("sleep".into(), json!({ "ms": { "type": "integer", "description": "milliseconds to wait" } })),
        2 => ("big".into(), json!({ "n": { "type": "integer", "description": "bytes of text to return" } })),
        3 => ("fail".into(), json!({})),
        _ => (
            format!("t{index}"),
            json!({
                "path": { "type": "string", "description": "Absolute path of the file to work on, inside the workspace" },
                "limit": { "type": "integer", "description": "Most entries to return", "default": 100 },
                "mode": { "type": "string", "enum": ["fast", "exact"], "description": "How to search" }
            }),
        ),
    };
    let description = format!("Tool {index}, with a description about as long as those of real tools are in the wild.");
    json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": properties } })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1).map(String::as_str)
    };
    let number = |name: &str, default| option(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    if option("--mode") == Some("crash") {
        eprintln!("fixture: crashes as told");
        std::process::exit(1);
    }
    let tools: Vec<Value> = (0..number("--tools", 4)).map(tool).collect();
    serve(Box::leak(Box::new(Settings {
        hangs: option("--mode") == Some("hang"),
        delay: Duration::from_millis(number("--init-delay", 0) as u64),
        tools: json!(tools).to_string(),
    })));
}
