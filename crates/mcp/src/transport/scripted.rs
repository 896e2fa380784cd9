//! For the tests of the remote transports: an HTTP server whose every answer the test writes itself, byte by byte where
//! it matters, and an inbox that records what it was given.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ::http::HeaderMap;
use bytes::Bytes;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use url::Url;

use super::http::client::{ClientOptions, client_builder};
use super::{Inbox, LinkLimits, OutKind, Outgoing, TransportError};
use crate::error::Closed;
use crate::target::{Era, Flavour, HttpTarget};

pub(crate) const LIMITS: LinkLimits = LinkLimits {
    max_message_bytes: 1024 * 1024,
    stop_grace: std::time::Duration::from_secs(1),
};

/// Takes connections and hands each request to the test.
pub(crate) struct Server {
    pub origin: String,
    exchanges: mpsc::UnboundedReceiver<Exchange>,
    connections: Arc<AtomicUsize>,
}

/// A request and the means to answer it.
pub(crate) struct Exchange {
    pub method: String,
    /// Path and query.
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Bytes,
    stream: TcpStream,
    queue: mpsc::UnboundedSender<Exchange>,
}

impl Server {
    pub async fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let origin = format!("http://{}", listener.local_addr().expect("a bound address"));
        let (queue, exchanges) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(read_request(stream, queue.clone()));
            }
        });
        Server {
            origin,
            exchanges,
            connections,
        }
    }

    /// How many connections were made to it.
    pub fn n_connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn target(&self, path: &str) -> HttpTarget {
        HttpTarget {
            url: Url::parse(&format!("{}{path}", self.origin)).expect("an address"),
            headers: HeaderMap::new(),
            flavour: Flavour::Auto,
            // As the real one, but blind to the proxies of whoever runs the tests.
            client: client_builder(&ClientOptions::default())
                .no_proxy()
                .tls_certs_only([])
                .build()
                .expect("a client"),
            tokens: None,
        }
    }

    /// The next request.
    pub async fn next(&mut self) -> Exchange {
        self.exchanges.recv().await.expect("the server runs")
    }

    /// The next request, which has to be this one.
    pub async fn expect(&mut self, method: &str, path: &str) -> Exchange {
        let exchange = self.next().await;
        assert_eq!((exchange.method.as_str(), exchange.path.as_str()), (method, path));
        exchange
    }

    /// Whether no request has arrived that the test did not take.
    pub fn is_idle(&mut self) -> bool {
        self.exchanges.try_recv().is_err()
    }
}

impl Exchange {
    /// All values of a header, in order.
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// The one value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let values = self.header_values(name);
        assert!(values.len() <= 1, "several {name}");
        values.first().copied()
    }

    /// The JSON-RPC method of the body.
    pub fn rpc(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).expect("a JSON body");
        body["method"].as_str().unwrap_or_default().to_owned()
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream
            .write_all(bytes.as_ref())
            .await
            .expect("the client reads");
        self.stream.flush().await.expect("the client reads");
    }

    /// Answers and lets the connection live. `head`: status and headers, such as `200 OK\r\nContent-Type: text/plain`.
    pub async fn answer(mut self, head: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let length = if head.starts_with("204") {
            String::new()
        } else {
            format!("\r\nContent-Length: {}", body.len())
        };
        self.write(format!("HTTP/1.1 {head}{length}\r\n\r\n")).await;
        self.write(body).await;
        tokio::spawn(read_request(self.stream, self.queue));
    }

    pub async fn answer_json(self, body: &str) {
        self.answer("200 OK\r\nContent-Type: application/json", body)
            .await;
    }

    /// Starts an event stream, which ends with the connection.
    pub async fn start_events(&mut self) {
        self.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            .await;
    }

    /// Waits until the client closes the connection.
    pub async fn closed(mut self) {
        let mut rest = [0; 1024];
        while self.stream.read(&mut rest).await.is_ok_and(|length| length > 0) {}
    }
}

async fn read_request(mut stream: TcpStream, queue: mpsc::UnboundedSender<Exchange>) {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read_buf(&mut bytes).await {
            Ok(length) if length > 0 => {}
            _ => return,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.trim_end().split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().expect("a length"));
    while bytes.len() < head_end + length {
        match stream.read_buf(&mut bytes).await {
            Ok(length) if length > 0 => {}
            _ => return,
        }
    }
    let body = Bytes::from(bytes.split_off(head_end));
    // The test may be over.
    let _ = queue.clone().send(Exchange {
        method,
        path,
        headers,
        body,
        stream,
        queue,
    });
}

/// What an inbox was told.
#[derive(Debug)]
pub(crate) enum Told {
    Message(String, Option<u64>),
    Failed(u64, TransportError),
    Oversize { head: String, tail: Option<String> },
    Note(String),
    Closed(Closed),
}

pub(crate) struct TestInbox {
    told: mpsc::UnboundedSender<Told>,
    pending: Mutex<HashSet<u64>>,
}

impl TestInbox {
    pub fn new() -> (Arc<TestInbox>, mpsc::UnboundedReceiver<Told>) {
        let (told, receiver) = mpsc::unbounded_channel();
        (
            Arc::new(TestInbox {
                told,
                pending: Mutex::default(),
            }),
            receiver,
        )
    }

    pub fn is_pending(&self, id: u64) -> bool {
        self.pending.lock().expect("no panic").contains(&id)
    }

    /// A request that the inbox waits for from now on.
    pub fn request(&self, id: u64, method: &str) -> Outgoing {
        self.pending.lock().expect("no panic").insert(id);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        Outgoing {
            kind: OutKind::Request(id),
            text: Bytes::from(text),
            headers: Vec::new(),
            opens_session: method == "initialize",
            era: Era::Legacy,
        }
    }

    fn tell(&self, told: Told) {
        // The test may be over.
        let _ = self.told.send(told);
    }
}

pub(crate) fn notification(method: &str) -> Outgoing {
    Outgoing {
        kind: OutKind::Notification,
        text: Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)),
        headers: Vec::new(),
        opens_session: false,
        era: Era::Legacy,
    }
}

/// The answer to a request.
pub(crate) fn answer(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

impl Inbox for TestInbox {
    fn message(&self, text: &[u8], origin: Option<u64>) {
        if let Ok(Value::Object(message)) = serde_json::from_slice(text)
            && (message.contains_key("result") || message.contains_key("error"))
            && let Some(id) = message.get("id").and_then(Value::as_u64)
        {
            self.pending.lock().expect("no panic").remove(&id);
        }
        self.tell(Told::Message(String::from_utf8_lossy(text).into_owned(), origin));
    }

    fn waits_for(&self, id: u64) -> bool {
        self.is_pending(id)
    }

    fn failed(&self, id: u64, error: TransportError) {
        if self.pending.lock().expect("no panic").remove(&id) {
            self.tell(Told::Failed(id, error));
        }
    }

    fn oversize(&self, head: &[u8], tail: Option<&[u8]>) -> bool {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.tell(Told::Oversize {
            head: text(head),
            tail: tail.map(text),
        });
        false
    }

    fn stuck(&self) {}

    fn noise(&self, _text: &str) {}

    fn stderr(&self, _line: String) {}

    fn note(&self, text: String) {
        self.tell(Told::Note(text));
    }

    fn closed(&self, closed: Closed) {
        self.tell(Told::Closed(closed));
    }
}
