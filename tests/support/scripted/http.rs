//! A scripted HTTP host on loopback: rules in order (see [`super::rules`]), every request logged.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Request, Response};
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use super::legacy_sse::Streams;
use super::plain::Plain;
use super::rules::{Rules, Seen};
use super::stdio_play::unhex;
use crate::support::clock;

/// One runtime for all hosts of this process, on a thread of its own.
pub(crate) fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime for scripted hosts");
            sender
                .send(runtime.handle().clone())
                .expect("the test waits for it");
            runtime.block_on(std::future::pending::<()>());
        });
        receiver.recv().expect("the runtime thread lives")
    })
}

pub(super) type Piece = Result<Bytes, std::io::Error>;

pub struct HttpHost {
    pub origin: String,
    listener: Mutex<Option<TcpListener>>,
    state: Arc<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) log: Mutex<Vec<Seen>>,
    rules: Mutex<Rules>,
    pub(super) plain: Mutex<Option<Plain>>,
    pub(super) sessions: Mutex<Sessions>,
    pub(super) streams: Streams,
    pub(super) replies: Mutex<Vec<String>>,
    pub(super) replied: Notify,
    /// Probes with `server/discover` use up no rule.
    pub(super) probes_count: Mutex<bool>,
    /// Answers whose reader went away before the end.
    pub(super) dropped: Mutex<Vec<Seen>>,
}

/// `Mcp-Session-Id` values that were handed out.
#[derive(Default)]
pub(super) struct Sessions {
    pub(super) n_given: usize,
    pub(super) current: Option<String>,
}

impl HttpHost {
    /// The address is known at once; nothing is answered before [`HttpHost::serve`].
    pub fn bind() -> HttpHost {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        let address = listener.local_addr().expect("a bound address");
        listener
            .set_nonblocking(true)
            .expect("a listener for the runtime");
        HttpHost {
            origin: format!("http://{address}"),
            listener: Mutex::new(Some(listener)),
            state: Arc::default(),
        }
    }

    pub fn serve(&self, rules: Vec<Value>, mcp: Map<String, Value>, probes_count: bool) {
        for rule in &rules {
            super::rules::check(rule).expect("rules that this host knows");
        }
        *self.state.rules.lock().expect("no panic while held") = Rules::new(rules);
        *self.state.plain.lock().expect("no panic while held") = Some(Plain::new(mcp));
        *self.state.probes_count.lock().expect("no panic while held") = probes_count;
        let listener = self
            .listener
            .lock()
            .expect("no panic while held")
            .take()
            .expect("served once");
        let state = self.state.clone();
        runtime().spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener of this runtime");
            let app =
                axum::Router::new().fallback(move |request: Request<Body>| answer(state.clone(), request));
            let _ = axum::serve(listener, app).await;
        });
    }

    /// A plain streamable HTTP server at `/mcp` with results laid over.
    pub fn plain(mcp: &Value) -> HttpHost {
        let host = HttpHost::bind();
        let rules = json!([
            { "match": "POST /mcp", "respond": { "mcp": {} } },
            { "match": "* /mcp", "respond": { "status": 405, "text": "" } },
        ]);
        host.serve_rules(&rules, mcp);
        host
    }

    pub fn serve_rules(&self, rules: &Value, mcp: &Value) {
        let rules = rules.as_array().cloned().unwrap_or_default();
        self.serve(rules, mcp.as_object().cloned().unwrap_or_default(), true);
    }

    pub fn entry(&self) -> Value {
        json!({ "url": format!("{}/mcp", self.origin) })
    }

    pub fn log(&self) -> Vec<Seen> {
        self.state.log.lock().expect("no panic while held").clone()
    }

    /// Requests by JSON-RPC method.
    pub fn requests(&self, method: &str) -> Vec<Seen> {
        self.log()
            .into_iter()
            .filter(|seen| seen.rpc() == Some(method))
            .collect()
    }

    /// JSON bodies that the client sent, in order.
    pub fn received(&self) -> Vec<Value> {
        self.log().into_iter().filter_map(|seen| seen.json).collect()
    }

    #[track_caller]
    pub fn wait(&self, what: &str, wanted: impl Fn(&Seen) -> bool) -> Seen {
        clock::eventually(what, || self.log().into_iter().find(|seen| wanted(seen)))
    }

    /// The request whose answer was not wanted any more.
    #[track_caller]
    pub fn wait_dropped(&self, method: &str) -> Seen {
        clock::eventually(&format!("the answer stream of `{method}` to be closed"), || {
            let dropped = self.state.dropped.lock().expect("no panic while held");
            dropped.iter().find(|seen| seen.rpc() == Some(method)).cloned()
        })
    }

    /// A message on every standing stream (GET stream, old event stream, listen).
    pub fn push(&self, message: &Value) {
        self.state.streams.send(&message.to_string());
    }

    /// How many standing streams are open now.
    pub fn n_streams(&self) -> usize {
        self.state.streams.count()
    }
}

async fn answer(state: Arc<State>, request: Request<Body>) -> Response<Body> {
    let seen = read(request).await;
    let is_probe = seen.rpc() == Some("server/discover");
    let counts = !is_probe || *state.probes_count.lock().expect("no panic while held");
    state.log.lock().expect("no panic while held").push(seen.clone());
    let streams = &state.streams;
    let chosen = state
        .rules
        .lock()
        .expect("no panic while held")
        .choose(&seen, counts, |index| {
            seen.method == "POST" && streams.takes(index, &seen.path)
        });
    let Some((index, rule)) = chosen else {
        return plain_response(404, None, String::new());
    };
    let respond = &rule["respond"];
    if let Some(delay) = respond["delay_ms"].as_u64() {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    if seen.method == "POST" && streams.takes(index, &seen.path) {
        return state.post_to_stream(index, &seen);
    }
    if let Some(options) = respond["legacy_sse"].as_object() {
        return state.open_legacy(index, options, &seen);
    }
    if respond.get("mcp_stream").is_some() {
        return state.open_stream(index);
    }
    if let Some(options) = respond["mcp"].as_object() {
        return state.mcp(options, &respond["headers"], seen).await;
    }
    if let Some(over) = respond["redirect_back"].as_object() {
        return redirect_back(respond, over, &seen);
    }
    scripted(respond, &seen, &state)
}

/// What an authorization server does once the person agreed.
fn redirect_back(respond: &Value, over: &Map<String, Value>, seen: &Seen) -> Response<Body> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let back = text(seen.query.get("redirect_uri"));
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in over {
        query.append_pair(name, &text(Some(value)));
    }
    query.append_pair("state", &text(seen.query.get("state")));
    let glue = if back.contains('?') { '&' } else { '?' };
    let location = format!("{back}{glue}{}", query.finish());
    let headers = json!({ "headers": { "location": location } });
    let status = respond["status"].as_u64().unwrap_or(302);
    with_headers(status, None, Body::empty(), &headers, None)
}

async fn read(request: Request<Body>) -> Seen {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 256 << 20).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    let mut headers = Map::new();
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match headers.get_mut(name.as_str()) {
            Some(Value::String(all)) => *all = format!("{all}, {value}"),
            _ => {
                headers.insert(name.as_str().to_owned(), json!(value));
            }
        }
    }
    let form = headers.get("content-type").is_some_and(|kind| {
        kind.as_str()
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"))
    });
    Seen {
        order: next_order(),
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: pairs(parts.uri.query().unwrap_or_default()),
        form: if form { pairs(&body) } else { Map::new() },
        json: serde_json::from_str(&body).ok(),
        headers,
        body,
    }
}

fn next_order() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn pairs(text: &str) -> Map<String, Value> {
    url::form_urlencoded::parse(text.as_bytes())
        .map(|(key, value)| (key.into_owned(), json!(value)))
        .collect()
}

/// A response that a rule spells out.
fn scripted(respond: &Value, seen: &Seen, state: &State) -> Response<Body> {
    let status = respond["status"].as_u64().unwrap_or(200);
    let id = |text: &str| state.with_ids(text, seen);
    let (kind, body) = if let Some(json) = respond.get("json") {
        let text = id(&json.to_string());
        (Some("application/json"), text.into_bytes())
    } else if let Some(form) = respond["form"].as_object() {
        let mut text = url::form_urlencoded::Serializer::new(String::new());
        for (key, value) in form {
            text.append_pair(key, value.as_str().unwrap_or(&value.to_string()));
        }
        (
            Some("application/x-www-form-urlencoded"),
            text.finish().into_bytes(),
        )
    } else if let Some(over) = respond["echo_registration"].as_object() {
        let mut answer = seen
            .json
            .as_ref()
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        answer.extend(over.clone());
        (
            Some("application/json"),
            Value::Object(answer).to_string().into_bytes(),
        )
    } else {
        (
            None,
            id(respond["text"].as_str().unwrap_or_default()).into_bytes(),
        )
    };
    let body = match respond["chunks"].as_array() {
        Some(chunks) => {
            let pieces = chunks.iter().filter_map(Value::as_str);
            let pieces = pieces.map(|piece| match piece.strip_prefix("utf8:") {
                Some(text) => id(text).into_bytes(),
                None => unhex(piece),
            });
            in_pieces(pieces.collect(), respond["hang_up"] == true)
        }
        None => match encoding(&respond["encode"], seen) {
            Some(name) => {
                return with_headers(
                    status,
                    kind,
                    Body::from(encode(&name, &body)),
                    respond,
                    Some(&name),
                );
            }
            None if respond["hang_up"] == true => in_pieces(vec![body], true),
            None => Body::from(body),
        },
    };
    with_headers(status, kind, body, respond, None)
}

pub(super) fn with_headers(
    status: u64,
    kind: Option<&str>,
    body: Body,
    respond: &Value,
    encoded: Option<&str>,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = u16::try_from(status)
        .ok()
        .and_then(|code| code.try_into().ok())
        .expect("a status");
    let mut set = |name: &str, value: &str, replace: bool| {
        let name: HeaderName = name.parse().expect("a header name");
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
        if replace {
            response.headers_mut().insert(name, value);
        } else {
            response.headers_mut().append(name, value);
        }
    };
    if let Some(kind) = kind {
        set("content-type", kind, true);
    }
    if let Some(name) = encoded {
        set("content-encoding", name, true);
    }
    for (name, value) in respond["headers"].as_object().into_iter().flatten() {
        match value {
            Value::Null => {}
            Value::Array(lines) => lines
                .iter()
                .for_each(|line| set(name, line.as_str().unwrap_or_default(), false)),
            one => set(name, one.as_str().unwrap_or(&one.to_string()), true),
        }
    }
    for (name, _) in respond["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.is_null())
    {
        response.headers_mut().remove(name.as_str());
    }
    response
}

pub(super) fn plain_response(status: u64, kind: Option<&str>, text: String) -> Response<Body> {
    with_headers(status, kind, Body::from(text), &Value::Null, None)
}

/// Pieces that leave one by one, so that the reader sees the seams.
pub(super) fn in_pieces(pieces: Vec<Vec<u8>>, hang_up: bool) -> Body {
    Body::from_stream(stream::unfold(
        (pieces.into_iter(), hang_up),
        |(mut pieces, hang_up)| async move {
            let Some(piece) = pieces.next() else {
                let broken = std::io::Error::other("hung up as the script says");
                return hang_up.then(|| (Err(broken), (pieces, false)));
            };
            tokio::time::sleep(Duration::from_micros(200)).await;
            Some((Piece::Ok(Bytes::from(piece)), (pieces, hang_up)))
        },
    ))
}

/// `negotiate:a,b` takes the first that the request offers.
pub(super) fn encoding(option: &Value, seen: &Seen) -> Option<String> {
    let option = option.as_str()?;
    let Some(list) = option.strip_prefix("negotiate:") else {
        return Some(option.to_owned());
    };
    let offered = seen
        .headers
        .get("accept-encoding")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let offered: Vec<&str> = offered
        .split(',')
        .filter_map(|part| part.split(';').next())
        .map(str::trim)
        .collect();
    list.split(',')
        .map(str::trim)
        .find(|name| offered.contains(name))
        .map(str::to_owned)
}

pub(super) fn encode(name: &str, body: &[u8]) -> Vec<u8> {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use std::io::Write as _;
    let level = Compression::default();
    let encoded = match name {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
        other => panic!("this runner cannot encode `{other}`"),
    };
    encoded.expect("writing to memory")
}

impl State {
    /// `{id}` and `{id:METHOD}` where a rule spells an answer out.
    fn with_ids(&self, text: &str, seen: &Seen) -> String {
        let id = |json: Option<&Value>| {
            json.and_then(|json| json.get("id"))
                .cloned()
                .unwrap_or(Value::Null)
        };
        let mut text = replace_id(text, "{id}", &id(seen.json.as_ref()));
        while let Some(start) = text.find("{id:") {
            let Some(length) = text[start..].find('}') else {
                break;
            };
            let mark = text[start..=start + length].to_owned();
            let method = mark[4..mark.len() - 1].to_owned();
            let log = self.log.lock().expect("no panic while held");
            let last = log.iter().rev().find(|seen| seen.rpc() == Some(method.as_str()));
            text = replace_id(&text, &mark, &id(last.and_then(|seen| seen.json.as_ref())));
        }
        text
    }
}

pub(super) fn receive(receiver: mpsc::Receiver<Piece>) -> impl futures_util::Stream<Item = Piece> {
    stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    })
}

pub(super) fn stream_response(receiver: mpsc::Receiver<Piece>) -> Response<Body> {
    with_headers(
        200,
        Some("text/event-stream"),
        Body::from_stream(receive(receiver)),
        &Value::Null,
        None,
    )
}

pub(super) fn accepted() -> Response<Body> {
    plain_response(202, None, String::new())
}

/// A JSON string that is exactly the mark becomes the id; elsewhere its text is put in.
fn replace_id(text: &str, mark: &str, id: &Value) -> String {
    text.replace(&format!("\"{mark}\""), &id.to_string())
        .replace(mark, &id.to_string())
}
