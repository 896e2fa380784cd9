//! The demo's HTTP server: a made-up forecast, in the revision of 2026-07-28.
//!
//! Streamable HTTP on 127.0.0.1: every request stands for itself, says its revision in `_meta` and header, and a
//! question is the result `input_required`, answered by asking again with the state that was handed out.
//! As strict as a real server: wrong headers get `-32020`, a state that was tampered with gets `-32602`.

use std::borrow::Cow;
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const REVISION: &str = "2026-07-28";
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;
const MAX_BODY: usize = 1024 * 1024;

/// Serves on a free port until stdin ends; its address is the one line on stdout.
pub async fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let weather = Rc::new(Weather {
        key: RandomState::new(),
    });
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                continue;
            };
            let weather = Rc::clone(&weather);
            tokio::task::spawn_local(async move {
                let service = service_fn(move |request| {
                    let weather = Rc::clone(&weather);
                    async move { Ok::<_, Infallible>(weather.handle(request).await) }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    };
    let connections = tokio::task::LocalSet::new();
    tokio::select! {
        () = connections.run_until(accept) => {}
        () = stdin_ended() => {}
    }
    Ok(())
}

/// The pipe that whoever started us holds: its end is the order to stop.
async fn stdin_ended() {
    let wait = || std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let _ = tokio::task::spawn_blocking(wait).await;
}

struct Weather {
    /// Seals the state of a question, so that nobody can change what was asked.
    key: RandomState,
}

struct Refusal {
    status: StatusCode,
    code: i64,
    message: String,
    data: Option<Value>,
}

fn refuse(status: StatusCode, code: i64, message: impl Into<String>) -> Refusal {
    Refusal {
        status,
        code,
        message: message.into(),
        data: None,
    }
}

impl Weather {
    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() != "/mcp" {
            return plain(StatusCode::NOT_FOUND, "not found");
        }
        if request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "POST only");
        }
        // A page in a browser must not reach a server on this machine (DNS rebinding).
        if request.headers().contains_key(ORIGIN) || !is_local(request.headers()) {
            return plain(StatusCode::FORBIDDEN, "local programs only");
        }
        let (head, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "too large");
        };
        let Ok(message) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
            return error(
                Value::Null,
                refuse(StatusCode::BAD_REQUEST, -32700, "Parse error"),
            );
        };
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return plain(StatusCode::ACCEPTED, "");
        };
        let params = &message["params"];
        match check(&head.headers, method, params).and_then(|()| self.answer(method, params)) {
            Ok(result) => {
                let body = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                respond(StatusCode::OK, "application/json", body.to_string())
            }
            Err(refusal) => error(id.clone(), refusal),
        }
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        match method {
            "server/discover" => Ok(complete(json!({
                "supportedVersions": [REVISION],
                "capabilities": { "tools": {} },
                "instructions": "The forecast is made up.",
                "ttlMs": 60000, "cacheScope": "public",
            }))),
            "tools/list" => Ok(complete(
                json!({ "tools": tools(), "ttlMs": 60000, "cacheScope": "public" }),
            )),
            "tools/call" => self.call(params),
            _ => Err(refuse(
                StatusCode::NOT_FOUND,
                -32601,
                format!("Method not found: {method}"),
            )),
        }
    }

    fn call(&self, params: &Value) -> Result<Value, Refusal> {
        let city = params["arguments"]["city"].as_str().unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            _ if city.is_empty() => Ok(complete(json!({
                "content": [{ "type": "text", "text": "`city` is missing" }], "isError": true,
            }))),
            "forecast" => Ok(complete(forecast(city))),
            "plan_trip" => self.plan_trip(city, params),
            other => Err(refuse(
                StatusCode::BAD_REQUEST,
                -32602,
                format!("Unknown tool: {other}"),
            )),
        }
    }

    /// Two rounds: the first hands out a question and a sealed state, the second brings both back.
    fn plan_trip(&self, city: &str, params: &Value) -> Result<Value, Refusal> {
        let Some(state) = params["requestState"].as_str() else {
            return Ok(json!({
                "resultType": "input_required",
                "inputRequests": { "day": { "method": "elicitation/create", "params": {
                    "mode": "form",
                    "message": format!("When do you want to go to {city}?"),
                    "requestedSchema": trip_form(),
                } } },
                "requestState": self.seal(city),
                "_meta": server_info(),
            }));
        };
        if state != self.seal(city) {
            return Err(refuse(
                StatusCode::BAD_REQUEST,
                -32602,
                "requestState is not the one handed out",
            ));
        }
        let reply = &params["inputResponses"]["day"];
        let plan = match (reply["action"].as_str(), reply["content"]["day"].as_str()) {
            (Some("accept"), Some(day)) => format!("{city} on {day}: sunny, 21 °C. Take a hat"),
            _ => format!("No trip to {city} then"),
        };
        Ok(complete(json!({ "content": [{ "type": "text", "text": plan }] })))
    }

    fn seal(&self, city: &str) -> String {
        format!("trip-{:016x}", self.key.hash_one(city))
    }
}

/// The revision in header and `_meta`, and the headers that repeat what the body says.
fn check(headers: &HeaderMap, method: &str, params: &Value) -> Result<(), Refusal> {
    let bad = |message: String| Err(refuse(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message));
    let accept = header(headers, ACCEPT.as_str()).unwrap_or_default();
    if !accept.contains("application/json") || !accept.contains("text/event-stream") {
        return Err(refuse(
            StatusCode::NOT_ACCEPTABLE,
            -32600,
            "Accept must name both media types",
        ));
    }
    let revision = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
        .as_str()
        .unwrap_or_default();
    if header(headers, "mcp-protocol-version").unwrap_or_default() != revision {
        return bad("MCP-Protocol-Version differs from _meta".to_owned());
    }
    if revision != REVISION {
        return Err(Refusal {
            data: Some(json!({ "supported": [REVISION], "requested": revision })),
            ..refuse(
                StatusCode::BAD_REQUEST,
                UNSUPPORTED_VERSION,
                "Unsupported protocol version",
            )
        });
    }
    if header(headers, "mcp-method") != Some(method) {
        return bad(format!("Mcp-Method is not `{method}`"));
    }
    if method == "tools/call" {
        if header(headers, "mcp-name") != params["name"].as_str() {
            return bad("Mcp-Name is not the tool's name".to_owned());
        }
        let city = header(headers, "mcp-param-city").map(decoded);
        if city.as_deref() != params["arguments"]["city"].as_str() {
            return bad("Mcp-Param-City is not the argument `city`".to_owned());
        }
    }
    Ok(())
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// What does not fit a header comes as `=?base64?…?=` (2026-07-28, Streamable HTTP).
fn decoded(value: &str) -> Cow<'_, str> {
    let bytes = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
        .and_then(|encoded| STANDARD.decode(encoded).ok());
    match bytes.map(String::from_utf8) {
        Some(Ok(text)) => text.into(),
        _ => value.into(),
    }
}

fn is_local(headers: &HeaderMap) -> bool {
    header(headers, HOST.as_str()).is_some_and(|host| host.starts_with("127.0.0.1:"))
}

fn tools() -> Value {
    let city = json!({
        "type": "string", "description": "Name of the city", "minLength": 1, "x-mcp-header": "City",
    });
    json!([
        {
            "name": "forecast", "title": "Forecast", "description": "Tomorrow's weather in a city",
            "inputSchema": { "type": "object", "properties": { "city": city }, "required": ["city"] },
            "outputSchema": { "type": "object", "properties": {
                "city": { "type": "string" }, "celsius": { "type": "number" }, "sky": { "type": "string" },
            }, "required": ["city", "celsius", "sky"] },
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "plan_trip", "title": "Plan a trip", "description": "Plan a trip to a city; asks when",
            "inputSchema": { "type": "object", "properties": { "city": city }, "required": ["city"] },
        },
    ])
}

fn trip_form() -> Value {
    json!({
        "type": "object",
        "properties": { "day": {
            "type": "string", "title": "Day", "enum": ["Friday", "Saturday", "Sunday"], "default": "Saturday",
        } },
        "required": ["day"],
    })
}

fn forecast(city: &str) -> Value {
    json!({
        "content": [{ "type": "text", "text": format!("Tomorrow in {city}: sunny, 21.5 °C") }],
        "structuredContent": { "city": city, "celsius": 21.5, "sky": "sunny" },
    })
}

fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["_meta"] = server_info();
    result
}

fn server_info() -> Value {
    json!({ "io.modelcontextprotocol/serverInfo": {
        "name": "pillion-demo-weather", "title": "Weather", "version": env!("CARGO_PKG_VERSION"),
    } })
}

fn error(id: Value, refusal: Refusal) -> Response<Full<Bytes>> {
    let mut body =
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": refusal.code, "message": refusal.message } });
    if let Some(data) = refusal.data {
        body["error"]["data"] = data;
    }
    respond(refusal.status, "application/json", body.to_string())
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    respond(status, "text/plain", text.to_owned())
}

fn respond(status: StatusCode, media_type: &str, body: String) -> Response<Full<Bytes>> {
    let response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, media_type);
    response
        .body(Full::new(Bytes::from(body)))
        .expect("status and media type are constants of ours")
}
