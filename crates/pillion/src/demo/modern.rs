//! What the demo's HTTP servers have in common: streamable HTTP on 127.0.0.1, in the revision of 2026-07-28.
//!
//! Every request stands for itself and says its revision in `_meta` and header.
//! As strict as a real server: wrong headers get `-32020`, an unknown revision gets `-32022`.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::arguments;

const REVISION: &str = "2026-07-28";
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;
const MAX_BODY: usize = 1024 * 1024;

/// What one of the servers is.
pub trait Server {
    fn name(&self) -> &'static str;
    fn title(&self) -> &'static str;
    fn instructions(&self) -> &'static str;
    fn tools(&self) -> Value;
    /// `tools/call`.
    fn call(&self, headers: &HeaderMap, params: &Value) -> Result<Value, Refusal>;

    /// What is answered instead of, or beside, the endpoint `/mcp`.
    fn aside(&self, _asked: &Asked) -> Option<Answer> {
        None
    }
}

/// A request, read to its end.
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What is sent back.
pub struct Answer {
    pub status: StatusCode,
    pub headers: Vec<(HeaderName, String)>,
    pub body: String,
}

impl Answer {
    pub fn new(status: StatusCode, media_type: &str, body: impl Into<String>) -> Answer {
        Answer {
            status,
            headers: vec![(CONTENT_TYPE, media_type.to_owned())],
            body: body.into(),
        }
    }

    pub fn plain(status: StatusCode, text: &str) -> Answer {
        Answer::new(status, "text/plain", text)
    }

    pub fn json(status: StatusCode, body: &Value) -> Answer {
        Answer::new(status, "application/json", body.to_string())
    }

    pub fn header(mut self, name: HeaderName, value: String) -> Answer {
        self.headers.push((name, value));
        self
    }
}

/// An error of the protocol, with the HTTP status it comes with.
pub struct Refusal {
    status: StatusCode,
    code: i64,
    message: String,
    data: Option<Value>,
}

pub fn refuse(status: StatusCode, code: i64, message: impl Into<String>) -> Refusal {
    Refusal {
        status,
        code,
        message: message.into(),
        data: None,
    }
}

/// A header that repeats what the body says, and differs.
pub fn mismatch(message: impl Into<String>) -> Refusal {
    refuse(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message)
}

pub fn unknown_tool(name: &str) -> Refusal {
    refuse(StatusCode::BAD_REQUEST, -32602, format!("Unknown tool: {name}"))
}

/// Serves on a free port until stdin ends; its address is the first line on stdout.
pub async fn serve<S: Server + 'static>(make: impl FnOnce(&str) -> S) -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let origin = format!("http://{}", listener.local_addr()?);
    println!("{origin}/mcp");
    let server = Rc::new(make(&origin));
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                continue;
            };
            let server = Rc::clone(&server);
            tokio::task::spawn_local(async move {
                let service = service_fn(move |request| {
                    let server = Rc::clone(&server);
                    async move { Ok::<_, Infallible>(respond(handle(&*server, request).await)) }
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

async fn handle(server: &impl Server, request: Request<Incoming>) -> Answer {
    // A page in a browser must not reach a server on this machine (DNS rebinding).
    if request.headers().contains_key(ORIGIN) || !is_local(request.headers()) {
        return Answer::plain(StatusCode::FORBIDDEN, "local programs only");
    }
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return Answer::plain(StatusCode::PAYLOAD_TOO_LARGE, "too large");
    };
    let asked = Asked {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: body.to_bytes(),
    };
    match server.aside(&asked) {
        Some(answer) => answer,
        None => endpoint(server, &asked),
    }
}

fn endpoint(server: &impl Server, asked: &Asked) -> Answer {
    if asked.path != "/mcp" {
        return Answer::plain(StatusCode::NOT_FOUND, "not found");
    }
    if asked.method != Method::POST {
        return Answer::plain(StatusCode::METHOD_NOT_ALLOWED, "POST only");
    }
    let Ok(message) = serde_json::from_slice::<Value>(&asked.body) else {
        return error(
            Value::Null,
            refuse(StatusCode::BAD_REQUEST, -32700, "Parse error"),
        );
    };
    let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
        return Answer::plain(StatusCode::ACCEPTED, "");
    };
    let params = &message["params"];
    let result = check(&asked.headers, method, params);
    match result.and_then(|()| answer(server, &asked.headers, method, params)) {
        Ok(result) => Answer::json(
            StatusCode::OK,
            &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        ),
        Err(refusal) => error(id.clone(), refusal),
    }
}

fn answer(server: &impl Server, headers: &HeaderMap, method: &str, params: &Value) -> Result<Value, Refusal> {
    let mut result = match method {
        "server/discover" => json!({
            "supportedVersions": [REVISION], "capabilities": { "tools": {} },
            "instructions": server.instructions(), "ttlMs": 60000, "cacheScope": "public",
        }),
        "tools/list" => json!({ "tools": server.tools(), "ttlMs": 60000, "cacheScope": "public" }),
        "tools/call" => match arguments::fault(&server.tools(), params) {
            Some(fault) => fault,
            None => server.call(headers, params)?,
        },
        _ => {
            let message = format!("Method not found: {method}");
            return Err(refuse(StatusCode::NOT_FOUND, -32601, message));
        }
    };
    if result.get("resultType").is_none() {
        result["resultType"] = json!("complete");
    }
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": {
        "name": server.name(), "title": server.title(), "version": env!("CARGO_PKG_VERSION"),
    } });
    Ok(result)
}

/// The revision in header and `_meta`, and the headers that repeat what the body says.
fn check(headers: &HeaderMap, method: &str, params: &Value) -> Result<(), Refusal> {
    let accept = header(headers, ACCEPT.as_str()).unwrap_or_default();
    if !accept.contains("application/json") || !accept.contains("text/event-stream") {
        let message = "Accept must name both media types";
        return Err(refuse(StatusCode::NOT_ACCEPTABLE, -32600, message));
    }
    let revision = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
        .as_str()
        .unwrap_or_default();
    if header(headers, "mcp-protocol-version").unwrap_or_default() != revision {
        return Err(mismatch("MCP-Protocol-Version differs from _meta"));
    }
    if revision != REVISION {
        let message = "Unsupported protocol version";
        return Err(Refusal {
            data: Some(json!({ "supported": [REVISION], "requested": revision })),
            ..refuse(StatusCode::BAD_REQUEST, UNSUPPORTED_VERSION, message)
        });
    }
    if header(headers, "mcp-method") != Some(method) {
        return Err(mismatch(format!("Mcp-Method is not `{method}`")));
    }
    if method == "tools/call" && header(headers, "mcp-name") != params["name"].as_str() {
        return Err(mismatch("Mcp-Name is not the tool's name"));
    }
    Ok(())
}

pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn is_local(headers: &HeaderMap) -> bool {
    header(headers, HOST.as_str()).is_some_and(|host| host.starts_with("127.0.0.1:"))
}

fn error(id: Value, refusal: Refusal) -> Answer {
    let mut body =
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": refusal.code, "message": refusal.message } });
    if let Some(data) = refusal.data {
        body["error"]["data"] = data;
    }
    Answer::json(refusal.status, &body)
}

fn respond(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = answer.status;
    for (name, value) in answer.headers {
        // What somebody asked with may stand in a value, such as the address of a redirect.
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
