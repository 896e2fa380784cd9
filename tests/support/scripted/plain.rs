//! What a plain MCP server answers, and how a script changes that. No IO: a request goes in, a list
//! of steps comes out, and the carrier plays them.
//!
//! A script maps a method to the result (given keys are laid over the default one) or to a list of
//! results for successive requests, the last of which repeats. `tools/call:NAME` (also a prompt's
//! name or a resource's uri after the colon) speaks of that one only; `*` of every method.
//! Keys that begin with `$` are orders:
//!
//! | key | meaning |
//! | --- | --- |
//! | `$error` | answer with this error |
//! | `$none` | never answer |
//! | `$delay_ms` | wait before answering |
//! | `$id` | `"string"`: echo the id as a string |
//! | `$before`, `$after` | messages around the answer; `{"$repeat": n, "message": …}`; `"$same_id": true` |
//! | `$progress` | progress notifications under the request's own token |
//! | `$pause_ms` | in `$before`, `$after` and `$progress`: `{"$pause_ms": n}` waits in between |
//! | `$expect_params` | parameters must match, else error -32602 |
//! | `$stderr_bytes` | so much noise on stderr first |
//! | `$ask` | requests to the client, one after the other, each answered before the next |
//! | `$ask_together` | the same, all sent at once |
//! | `$after_reply_ms` | wait that long after the last reply |
//! | `$while_asking` | what else happens once the question is out: actions of a child script |
//! | `$raw` | the exact text of the result |
//! | `$echo` | a result that holds `arguments` exactly as they came, as its member `echo` |
//! | `$exit` | end the process instead of answering |

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::support::matching;

pub const NEWEST_LEGACY: &str = "2025-11-25";
pub const MODERN: &str = "2026-07-28";

/// A message as it came from the client; parameters keep their spelling.
#[derive(Debug, Deserialize)]
pub struct Incoming {
    pub id: Option<Value>,
    pub method: Option<String>,
    pub params: Option<Box<RawValue>>,
}

impl Incoming {
    pub fn parse(text: &str) -> Option<Incoming> {
        serde_json::from_str(text).ok()
    }

    pub fn params(&self) -> Value {
        self.params
            .as_ref()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or(Value::Null)
    }

    /// `params.arguments`, as spelt.
    pub fn arguments(&self) -> String {
        #[derive(Deserialize)]
        struct Params {
            arguments: Option<Box<RawValue>>,
        }
        let params = self
            .params
            .as_ref()
            .and_then(|raw| serde_json::from_str::<Params>(raw.get()).ok());
        params
            .and_then(|params| params.arguments)
            .map_or_else(|| "null".to_owned(), |raw| raw.get().to_owned())
    }

    /// An answer to a request of ours.
    pub fn is_response(&self) -> bool {
        self.method.is_none() && self.id.is_some()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// One message, whole, without a line end.
    Send(String),
    Pause(u64),
    StderrBytes(usize),
    /// Send these requests and wait until all are answered.
    Ask(Vec<Value>),
    /// Actions of a child script (see `stdio_play`).
    Actions(Vec<Value>),
    /// The answer of the request.
    Answer(String),
    /// Over HTTP a plain server knows no more than this status.
    Unknown {
        status: u16,
        answer: String,
    },
    Exit(i32),
}

pub struct Plain {
    script: Map<String, Value>,
    counts: HashMap<String, usize>,
    questions: usize,
    modern: bool,
}

impl Plain {
    pub fn new(script: Map<String, Value>) -> Plain {
        let modern = script.contains_key("server/discover");
        Plain {
            script,
            counts: HashMap::new(),
            questions: 0,
            modern,
        }
    }

    pub fn is_modern(&self) -> bool {
        self.modern
    }

    /// `overlay` are options of the rule that matched: `version` and `result` of the answer.
    pub fn steps(&mut self, request: &Incoming, overlay: &Map<String, Value>) -> Vec<Step> {
        let (Some(method), Some(id)) = (&request.method, &request.id) else {
            return Vec::new();
        };
        let params = request.params();
        let spec = self.spec(method, &params);
        let known = spec.is_some() || overlay.contains_key("result");
        let mut spec = spec.unwrap_or_default();
        for (key, value) in self
            .script
            .get("*")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            spec.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let mut default = self.default_result(method);
        if let Some(Value::Object(result)) = overlay.get("result") {
            default.get_or_insert_default().extend(result.clone());
        }
        if method == "initialize"
            && let Some(version) = overlay.get("version")
        {
            default
                .get_or_insert_default()
                .insert("protocolVersion".to_owned(), version.clone());
        }
        let id = if spec.get("$id") == Some(&json!("string")) {
            json!(id.as_str().map_or_else(|| id.to_string(), str::to_owned))
        } else {
            id.clone()
        };
        let answer = if known || default.is_some() {
            self.answer(&id, request, &spec, default.unwrap_or_default())
        } else {
            self.refusal(method, &id)
        };
        self.around(&spec, &id, &params, answer)
    }

    /// The spec for this very request: by name before by method, and the next of a list.
    fn spec(&mut self, method: &str, params: &Value) -> Option<Map<String, Value>> {
        let name = ["name", "uri"].iter().find_map(|key| params.get(key)?.as_str());
        let keys = [
            name.map(|name| format!("{method}:{name}")),
            Some(method.to_owned()),
        ];
        for key in keys.into_iter().flatten() {
            let Some(value) = self.script.get(&key) else {
                continue;
            };
            let count = self.counts.entry(key).or_insert(0);
            let index = *count;
            *count += 1;
            let value = match value {
                Value::Array(list) => list.get(index.min(list.len().saturating_sub(1)))?,
                one => one,
            };
            return Some(value.as_object().cloned().unwrap_or_default());
        }
        None
    }

    /// `echo`, and the tools that the script speaks of by name.
    fn tools(&self) -> Vec<Value> {
        let named = self
            .script
            .keys()
            .filter_map(|key| key.strip_prefix("tools/call:"));
        let names = std::iter::once("echo").chain(named);
        names
            .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
            .collect()
    }

    fn default_result(&self, method: &str) -> Option<Map<String, Value>> {
        let mut result = match method {
            "initialize" if !self.modern => json!({
                "protocolVersion": NEWEST_LEGACY,
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "plain", "version": "1.0.0" },
            }),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": self.tools() }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "ok" }] }),
            "server/discover" if self.modern => json!({
                "supportedVersions": [MODERN],
                "capabilities": { "tools": {} },
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            _ => return None,
        };
        if self.modern {
            result["resultType"] = json!("complete");
        }
        result.as_object().cloned()
    }

    fn answer(
        &self,
        id: &Value,
        request: &Incoming,
        spec: &Map<String, Value>,
        default: Map<String, Value>,
    ) -> Step {
        if let Some(expected) = spec.get("$expect_params")
            && let Err(reason) = matching::matches(expected, Some(&request.params()))
        {
            let error = json!({ "code": -32602, "message": format!("unexpected parameters: {reason}") });
            return Step::Answer(response(id, "error", &error.to_string()));
        }
        if let Some(code) = spec.get("$exit").and_then(Value::as_i64) {
            return Step::Exit(i32::try_from(code).unwrap_or(1));
        }
        if let Some(error) = spec.get("$error") {
            return Step::Answer(response(id, "error", &error.to_string()));
        }
        if let Some(Value::String(raw)) = spec.get("$raw") {
            return Step::Answer(response(id, "result", raw));
        }
        if spec.get("$echo").is_some() {
            let result = format!("{{\"content\":[],\"echo\":{}}}", request.arguments());
            return Step::Answer(response(id, "result", &result));
        }
        let mut result = default;
        for (key, value) in spec.iter().filter(|(key, _)| !key.starts_with('$')) {
            result.insert(key.clone(), value.clone());
        }
        if self.modern {
            result.entry("resultType").or_insert_with(|| json!("complete"));
        }
        Step::Answer(response(id, "result", &Value::Object(result).to_string()))
    }

    fn refusal(&self, method: &str, id: &Value) -> Step {
        let error = if self.modern && method == "initialize" {
            let data = json!({ "supported": [MODERN], "requested": NEWEST_LEGACY });
            json!({ "code": -32022, "message": "Unsupported protocol version", "data": data })
        } else {
            json!({ "code": -32601, "message": "Method not found" })
        };
        let status = if self.modern && method != "initialize" {
            404
        } else {
            400
        };
        Step::Unknown {
            status,
            answer: response(id, "error", &error.to_string()),
        }
    }

    fn around(&mut self, spec: &Map<String, Value>, id: &Value, params: &Value, answer: Step) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(n_bytes) = spec.get("$stderr_bytes").and_then(Value::as_u64) {
            steps.push(Step::StderrBytes(usize::try_from(n_bytes).unwrap_or_default()));
        }
        messages(spec.get("$before"), id, &mut steps);
        self.ask(spec, &mut steps);
        if let Some(pause) = spec.get("$after_reply_ms").and_then(Value::as_u64) {
            steps.push(Step::Pause(pause));
        }
        let token = params.pointer("/_meta/progressToken");
        for report in spec
            .get("$progress")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Some(pause) = report.get("$pause_ms").and_then(Value::as_u64) {
                steps.push(Step::Pause(pause));
            } else if let Some(token) = token {
                let mut report = report.clone();
                report["progressToken"] = token.clone();
                let message =
                    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": report });
                steps.push(Step::Send(message.to_string()));
            }
        }
        if let Some(pause) = spec.get("$delay_ms").and_then(Value::as_u64) {
            steps.push(Step::Pause(pause));
        }
        if !spec.get("$none").is_some_and(|none| none != &Value::Bool(false)) {
            steps.push(answer);
        }
        messages(spec.get("$after"), id, &mut steps);
        steps
    }

    fn ask(&mut self, spec: &Map<String, Value>, steps: &mut Vec<Step>) {
        let meanwhile = spec.get("$while_asking").and_then(Value::as_array).cloned();
        let mut number = |request: &Value| {
            self.questions += 1;
            let mut request = request.clone();
            request["jsonrpc"] = json!("2.0");
            if request.get("id").is_none() {
                request["id"] = json!(format!("ask-{}", self.questions));
            }
            request
        };
        let list = |key: &str| {
            spec.get(key)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let together: Vec<Value> = list("$ask_together").iter().map(&mut number).collect();
        let single = list("$ask")
            .iter()
            .map(|request| vec![number(request)])
            .collect::<Vec<_>>();
        for mut requests in single
            .into_iter()
            .chain((!together.is_empty()).then_some(together))
        {
            if let Some(actions) = &meanwhile {
                // Out first, without waiting, so that the rest happens while the question is open.
                steps.extend(requests.drain(..).map(|request| Step::Send(request.to_string())));
                steps.push(Step::Actions(actions.clone()));
            } else {
                steps.push(Step::Ask(requests));
            }
        }
    }
}

/// Built as text: a scripted result may hold what a `Value` cannot.
pub fn response(id: &Value, member: &str, text: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{text}}}")
}

fn messages(list: Option<&Value>, id: &Value, steps: &mut Vec<Step>) {
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        if let Some(pause) = item.get("$pause_ms").and_then(Value::as_u64) {
            steps.push(Step::Pause(pause));
            continue;
        }
        let n_times = item.get("$repeat").and_then(Value::as_u64).unwrap_or(1);
        let mut message = item
            .get("message")
            .filter(|_| item.get("$repeat").is_some())
            .unwrap_or(item)
            .clone();
        if let Some(members) = message.as_object_mut()
            && members.shift_remove("$same_id").is_some()
        {
            members.insert("id".to_owned(), id.clone());
            members.entry("jsonrpc").or_insert_with(|| json!("2.0"));
        }
        for _ in 0..n_times {
            steps.push(Step::Send(message.to_string()));
        }
    }
}
