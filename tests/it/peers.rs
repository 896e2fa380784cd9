//! Other local programs: a port of this machine, a token per tier, and nothing that acts without the person.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HostOptions, TestEnv, clock};

pub fn stories() -> Vec<Trial> {
    stories!("peers":
        tokens_are_tiers, pages_and_strangers_stay_out, a_posted_server_waits_for_the_person, patches_are_all_or_none,
        json_rpc_by_post, news_by_websocket, questions_never_reach_a_peer, only_open_directories, bodies_are_bounded,
        the_file_goes_with_the_endpoint, only_loopback,
    )
}

pub struct Peer {
    address: String,
    token: String,
}

pub fn start(env: &TestEnv) -> (Host, Peer, Peer) {
    let host = Host::start_with(
        env,
        HostOptions {
            args: vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()],
            ..Default::default()
        },
    );
    let endpoint = endpoints(env)[0].clone();
    let peer = |tier: &str| Peer {
        address: endpoint["address"].as_str().expect("an address").to_owned(),
        token: endpoint["tokens"][tier].as_str().expect("a token").to_owned(),
    };
    let (full, read_only) = (peer("full"), peer("readOnly"));
    (host, full, read_only)
}

fn endpoints(env: &TestEnv) -> Vec<Value> {
    let text = std::fs::read_to_string(env.data().join("peers.json")).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    value["endpoints"].as_array().cloned().unwrap_or_default()
}

impl Peer {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("the endpoint");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        stream
    }

    /// A request with headers beside the usual ones; status and body.
    pub fn send(&self, verb: &str, path: &str, more: &[(&str, &str)], body: &str) -> (u16, Value) {
        let mut stream = self.connect();
        let mut head = format!("{verb} {path} HTTP/1.1\r\nConnection: close\r\n");
        let mut usual = vec![
            ("Host", self.address.clone()),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Content-Length", body.len().to_string()),
        ];
        usual.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        for (name, value) in usual.into_iter().chain(more) {
            if !value.is_empty() {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        // What is refused may be answered before all of it is read.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or_else(|| panic!("no status in {answer:?}"));
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn rpc(&self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let (status, answer) = self.send("POST", "/", &[], &body.to_string());
        assert_eq!((status, &answer["id"]), (200, &json!(7)), "{answer}");
        answer
    }
}

fn tokens_are_tiers() {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": { "command": "x", "env": { "API_KEY": "k-1" } } }));
    let (_host, full, read_only) = start(&env);
    for peer in [&full, &read_only] {
        let (status, servers) = peer.send("GET", "/mcp", &[], "");
        assert_eq!(
            (status, &servers),
            (200, &json!({ "srv": { "status": "stopped" } }))
        );
        let (status, config) = peer.send("GET", "/config", &[], "");
        assert_eq!(
            (status, &config["servers"]["srv"]["env"]["API_KEY"]),
            (200, &json!("********"))
        );
    }
    let (status, error) = read_only.send("POST", "/mcp", &[], r#"{"name":"n","entry":{"command":"x"}}"#);
    assert_eq!(
        (status, &error["error"]["data"]["kind"]),
        (403, &json!("forbidden"))
    );
    let (status, _) = read_only.send("PATCH", "/config", &[], r#"{"servers":{"srv":{"remove":true}}}"#);
    assert_eq!(status, 403);
    assert_eq!(read_only.send("GET", "/nowhere", &[], "").0, 404);
    assert_eq!(read_only.send("DELETE", "/mcp", &[], "").0, 404);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(env.data().join("peers.json"))
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn pages_and_strangers_stay_out() {
    let env = TestEnv::new();
    let (_host, full, _) = start(&env);
    let status = |more: &[(&str, &str)]| full.send("GET", "/mcp", more, "").0;
    assert_eq!(status(&[]), 200);
    let local = full.address.replace("127.0.0.1", "localhost");
    assert_eq!(status(&[("Host", &local)]), 200);
    for origin in ["https://evil.example", "null", "http://127.0.0.1"] {
        assert_eq!(status(&[("Origin", origin)]), 403, "{origin}");
    }
    // A name that was made to point here.
    for host in ["evil.example", "evil.example:80", "127.0.0.1:1", "127.0.0.1"] {
        assert_eq!(status(&[("Host", host)]), 403, "{host}");
    }
    let almost = format!("Bearer {}0", &full.token[..full.token.len() - 1]);
    for authorization in ["Bearer x", "Basic eDp5", almost.as_str(), full.token.as_str()] {
        assert_eq!(
            status(&[("Authorization", authorization)]),
            401,
            "{authorization}"
        );
    }
    assert_eq!(
        full.send("GET", "/mcp?token=x", &[("Authorization", "")], "").0,
        401
    );
}

fn a_posted_server_waits_for_the_person() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    let (host, full, _) = start(&env);
    let body = json!({ "name": "srv", "entry": server.entry() }).to_string();
    let (status, answer) = full.send("POST", "/mcp", &[], &body);
    assert_eq!((status, &answer["srv"]["status"]), (202, &json!("pending")));
    assert!(answer["srv"]["expiresAt"].is_u64(), "{answer}");
    host.wait_state("srv", "pending");
    let (_, servers) = full.send("GET", "/mcp", &[], "");
    assert_eq!(
        servers["srv"],
        json!({ "status": "pending", "expiresAt": answer["srv"]["expiresAt"] })
    );
    // Neither seen, nor decided, nor started from there.
    assert_eq!(full.send("GET", "/config", &[], "").1, json!({ "servers": {} }));
    let directory = json!({ "directory": host.directory() });
    let config = full.rpc("mcp.config", &directory);
    assert_eq!(config["result"]["servers"], json!([]));
    for method in [
        "mcp.pending",
        "mcp.trust",
        "mcp.grants",
        "mcp.questions",
        "mcp.stop",
    ] {
        let answer = full.rpc(method, &directory);
        assert_eq!(answer["error"]["data"]["kind"], "forbidden", "{method}: {answer}");
    }
    let start = full.rpc(
        "mcp.start",
        &json!({ "directory": host.directory(), "server": "srv" }),
    );
    assert_eq!(start["error"]["data"]["reason"], "pending");
    assert_eq!(server.log.starts().len(), 0);
    let review = host.must("mcp.pending", json!({}))["reviews"][0].clone();
    assert_eq!(review["requestedBy"], "peer");
    let decide = json!({ "server": "srv", "revision": review["revision"], "decision": "approve" });
    host.must("mcp.decide", decide);
    // From here on a full peer may use it as any other.
    let start = full.rpc(
        "mcp.start",
        &json!({ "directory": host.directory(), "server": "srv" }),
    );
    assert_eq!(start["result"]["server"]["state"], "ready");
    // Switching it is asked about again, and ends it meanwhile.
    let off = json!({ "directory": host.directory(), "server": "srv", "enabled": true });
    assert_eq!(
        full.rpc("mcp.enable", &off)["result"]["server"]["state"],
        "pending"
    );
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
}

fn patches_are_all_or_none() {
    let env = TestEnv::new();
    env.write_config(&json!({ "a": { "command": "x", "env": { "API_KEY": "k-1" } } }));
    let (host, full, _) = start(&env);
    let patch = |path: &str, servers: Value| {
        full.send("PATCH", path, &[], &json!({ "servers": servers }).to_string())
    };
    let (status, error) = patch(
        "/global/config",
        json!({ "a": { "set": { "args": ["y"] } }, "b": { "set": { "command": "x", "url": "https://h" } } }),
    );
    assert_eq!(
        (status, &error["error"]["data"]["kind"]),
        (400, &json!("invalid_params"))
    );
    assert_eq!(host.must("mcp.status", json!({}))["pending"], 0);
    let (status, answer) = patch(
        "/global/config",
        json!({ "a": { "set": { "args": ["y"], "env": { "API_KEY": "" } } }, "b": { "set": { "command": "z" } } }),
    );
    assert_eq!(
        (status, answer.as_object().map(serde_json::Map::len)),
        (202, Some(2)),
        "{answer}"
    );
    let reviews = host.must("mcp.pending", json!({}))["reviews"].clone();
    let of_a = reviews
        .as_array()
        .into_iter()
        .flatten()
        .find(|review| review["server"] == "a");
    assert_eq!(
        of_a.map(|review| &review["keeps"]),
        Some(&json!(["/env/API_KEY"]))
    );
    // A project's file by the same way.
    let path = format!("/config?directory={}", host.directory());
    let (status, _) = patch(&path, json!({ "p": { "set": { "command": "z" } } }));
    assert_eq!(status, 202);
    assert_eq!(host.status("p")["layer"], "project");
    assert!(!env.project().join(".pillion/mcp.json").exists());
    for body in [
        "",
        "[]",
        "{\"servers\":{}}",
        "{\"servers\":{\"a\":{\"st\":{}}}}",
        "{",
    ] {
        assert_eq!(full.send("PATCH", "/config", &[], body).0, 400, "{body}");
    }
}

fn json_rpc_by_post() {
    let env = TestEnv::new();
    let (host, full, read_only) = start(&env);
    let directory = json!({ "directory": host.directory() });
    assert!(read_only.rpc("mcp.status", &directory)["result"]["servers"].is_array());
    for (method, kind) in [
        ("mcp.nowhere", "method_not_found"),
        ("initialize", "method_not_found"),
    ] {
        let answer = full.rpc(method, &directory);
        assert_eq!(answer["error"]["data"]["kind"], kind, "{answer}");
    }
    for (body, kind) in [
        ("[]", "invalid_request"),
        ("{", "parse_error"),
        ("{\"jsonrpc\":\"2.0\"}", "invalid_request"),
        ("", "parse_error"),
    ] {
        let (_, answer) = full.send("POST", "/", &[], body);
        assert_eq!(answer["error"]["data"]["kind"], kind, "{body}: {answer}");
    }
    let answer = full.rpc("mcp.status", &json!({ "directory": host.directory(), "more": 1 }));
    assert_eq!(answer["error"]["data"]["kind"], "invalid_params");
}

/// The smallest WebSocket client (RFC 6455): masked text frames out, unmasked ones in.
struct Socket(TcpStream);

impl Socket {
    fn open(peer: &Peer) -> Socket {
        let mut stream = peer.connect();
        let head = format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            peer.address, peer.token
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("an answer");
            answer.push(byte[0]);
        }
        assert!(
            answer.starts_with(b"HTTP/1.1 101"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        Socket(stream)
    }

    fn send(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let length = u16::try_from(bytes.len()).expect("a short message");
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        // A mask of zeros leaves the text as it is.
        frame.extend([0; 4]);
        frame.extend(bytes);
        self.0.write_all(&frame).expect("sent");
    }

    fn receive(&mut self) -> Value {
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head).expect("a frame");
            let length = match head[1] & 0x7f {
                126 => {
                    let mut length = [0; 2];
                    self.0.read_exact(&mut length).expect("a length");
                    u64::from(u16::from_be_bytes(length))
                }
                127 => {
                    let mut length = [0; 8];
                    self.0.read_exact(&mut length).expect("a length");
                    u64::from_be_bytes(length)
                }
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).expect("it fits")];
            self.0.read_exact(&mut payload).expect("a payload");
            if head[0] & 0x0f == 1 {
                return serde_json::from_slice(&payload).expect("JSON");
            }
        }
    }
}

fn news_by_websocket() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let (host, full, read_only) = start(&env);
    for (peer, sees_pid) in [(&full, true), (&read_only, false)] {
        let mut socket = Socket::open(peer);
        let subscribe = json!({ "jsonrpc": "2.0", "id": 1, "method": "mcp.subscribe", "params": { "directory": host.directory() } });
        socket.send(&subscribe.to_string());
        let subscription = socket.receive()["result"].clone();
        assert!(!subscription.is_null());
        host.start_server("srv");
        let ready = loop {
            let news = socket.receive();
            assert_eq!(
                (&news["method"], &news["params"]["subscription"]),
                (&json!("mcp.changed"), &subscription)
            );
            let changed = news["params"]["result"].clone();
            if changed["status"]["state"] == "ready" {
                break changed;
            }
        };
        assert_eq!(ready["status"]["pid"].is_u64(), sees_pid, "{ready}");
        host.must("mcp.stop", json!({ "server": "srv" }));
        // Requests go over the same connection, and what is not there is said in our words.
        socket.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "mcp.nowhere", "params": {} }).to_string());
        let answer = loop {
            let message = socket.receive();
            if message["id"] == 2 {
                break message;
            }
        };
        assert_eq!(answer["error"]["data"]["kind"], "method_not_found", "{answer}");
    }
}

fn questions_never_reach_a_peer() {
    let env = TestEnv::new();
    let asks = json!({ "$ask": [{ "method": "elicitation/create", "params": {
        "message": "Which?", "requestedSchema": { "type": "object", "properties": { "a": { "type": "string" } } },
    } }] });
    let server = env.plain_server(
        "srv",
        json!({
            "initialize": { "capabilities": { "resources": {} } },
            "resources/read": asks,
        }),
    );
    env.write_config(&json!({ "srv": server.entry() }));
    let (host, full, _) = start(&env);
    let params = json!({ "directory": host.directory(), "server": "srv", "uri": "x://y" });
    let answer = full.rpc("mcp.resource.read", &params);
    assert!(answer.get("result").is_some() || answer.get("error").is_some());
    assert_eq!(host.notifications("mcp.question"), [] as [Value; 0]);
    let reply = server.log.wait("the reply to its question", |message| {
        message["result"]["action"].is_string()
    });
    assert_eq!(reply["result"]["action"], "decline");
}

fn only_open_directories() {
    let env = TestEnv::new();
    let (host, full, read_only) = start(&env);
    let elsewhere = env.tmp().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let params = json!({ "directory": elsewhere });
    for peer in [&full, &read_only] {
        assert_eq!(
            peer.rpc("mcp.status", &params)["error"]["data"]["kind"],
            "forbidden"
        );
        let path = format!("/mcp?directory={}", elsewhere.display());
        assert_eq!(peer.send("GET", &path, &[], "").0, 403);
    }
    let add = json!({ "directory": elsewhere, "name": "n", "entry": { "command": "x" }, "scope": "project" });
    assert_eq!(full.rpc("mcp.add", &add)["error"]["data"]["kind"], "forbidden");
    assert!(!elsewhere.join(".pillion").exists());
    let path = format!("/mcp?directory={}", host.directory());
    assert_eq!(full.send("GET", &path, &[], "").0, 200);
    assert_eq!(full.send("GET", "/mcp?directory=relative", &[], "").0, 403);
    assert_eq!(full.send("GET", "/mcp?colour=red", &[], "").0, 400);
}

fn bodies_are_bounded() {
    let env = TestEnv::new();
    let (_host, full, _) = start(&env);
    let body = format!(
        "{{\"name\":\"n\",\"entry\":{{\"command\":\"{}\"}}}}",
        "x".repeat(2 << 20)
    );
    assert_eq!(full.send("POST", "/mcp", &[], &body).0, 413);
    assert_eq!(
        full.send("POST", "/mcp", &[("Content-Length", "99999999999")], "x")
            .0,
        413
    );
    // Too many in one second.
    let statuses: Vec<u16> = (0..150).map(|_| full.send("GET", "/mcp", &[], "").0).collect();
    assert!(
        statuses.iter().all(|status| [200, 429].contains(status)),
        "{statuses:?}"
    );
}

fn the_file_goes_with_the_endpoint() {
    let env = TestEnv::new();
    let (first, ..) = start(&env);
    let second = Host::start_with(
        &env,
        HostOptions {
            args: vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()],
            ..Default::default()
        },
    );
    assert_eq!(endpoints(&env).len(), 2);
    drop(second);
    clock::eventually("one to leave", || (endpoints(&env).len() == 1).then_some(()));
    drop(first);
    clock::eventually("the file to go", || {
        (!env.data().join("peers.json").exists()).then_some(())
    });
}

fn only_loopback() {
    let env = TestEnv::new();
    let host = Host::start_with(
        &env,
        HostOptions {
            args: vec!["--listen".to_owned(), "0.0.0.0:0".to_owned()],
            ..Default::default()
        },
    );
    host.must("mcp.status", json!({}));
    assert!(!env.data().join("peers.json").exists());
    clock::eventually("the reason on stderr", || {
        host.stderr().contains("no loopback address").then_some(())
    });
}
