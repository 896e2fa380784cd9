//! Other local programs: a port of this machine, a token per tier, and nothing that acts without the person.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::peer::endpoints;
use crate::support::{
    AuthorizationServer, Host, HostOptions, HttpHost, PeerClient, RpcError, TestEnv, browser, clock, frames,
};

pub fn stories() -> Vec<Trial> {
    stories!("peers":
        tokens_are_tiers, pages_and_strangers_stay_out, a_posted_server_waits_for_the_person, patches_are_all_or_none,
        every_carrier_answers_alike, odd_messages_over_every_carrier, news_by_websocket, questions_never_reach_a_peer,
        a_login_is_the_persons, nobody_is_asked_for_a_peer,
        only_open_directories, bodies_are_bounded, the_file_goes_with_the_endpoint, a_killed_endpoint_is_tidied_away, only_loopback,
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
    assert_eq!(read_only.send("DELETE", "/mcp", &[], "").0, 405);
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
    let (start, last) = full.token.split_at(full.token.len() - 1);
    let almost = format!("Bearer {start}{}", if last == "0" { "1" } else { "0" });
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
    let client = PeerClient::by_post(&env, "full");
    let directory = protocol::Dir::from(host.directory());
    let here = || directory.clone();
    let config = client.config(protocol::McpConfig {
        directory: here(),
        ..Default::default()
    });
    assert_eq!(config.expect("a configuration").servers, []);
    let wanted = host.must("mcp.pending", json!({}))["reviews"][0].clone();
    assert_eq!(wanted["expiresAt"], answer["srv"]["expiresAt"]);
    let decision = json!({
        "directory": here(), "server": "srv", "revision": wanted["revision"], "decision": "approve",
    });
    for tier in ["full", "readOnly"] {
        let peer = PeerClient::by_websocket(&env, tier);
        let refused = peer.ask("mcp.decide", &decision).expect_err(tier);
        assert_eq!(refused.kind(), "forbidden", "{tier}");
    }
    for method in [
        "mcp.pending",
        "mcp.trust",
        "mcp.grants",
        "mcp.questions",
        "mcp.stop",
    ] {
        let refused = client
            .ask(method, &json!({ "directory": here() }))
            .expect_err(method);
        assert_eq!(refused.kind(), "forbidden", "{method}");
    }
    let start = || protocol::McpStart {
        directory: here(),
        server: "srv".into(),
        ..Default::default()
    };
    assert_eq!(
        client.start(start()).expect_err("pending").data["reason"],
        "pending"
    );
    assert_eq!(server.log.starts().len(), 0);
    let review = host.must("mcp.pending", json!({}))["reviews"][0].clone();
    assert_eq!(review["requestedBy"], "peer");
    let decide = json!({ "server": "srv", "revision": review["revision"], "decision": "approve" });
    host.must("mcp.decide", decide);
    // From here on a full peer may use it as any other.
    let started = client.start(start()).expect("a record").server;
    assert_eq!(started.state, protocol::State::Ready);
    // Switching it is asked about again, and ends it meanwhile.
    let switched = client.enable(protocol::McpEnable {
        directory: here(),
        server: "srv".into(),
        enabled: true,
        ..Default::default()
    });
    let record = switched.expect("a request").server.expect("a record");
    assert_eq!(record.state, protocol::State::Pending);
    clock::eventually("its process to end", || {
        env.server_processes().is_empty().then_some(())
    });
    // So is the same as a patch, and the one too many is told from what is wrong.
    let patch = |servers: Value| {
        let body = json!({ "servers": servers }).to_string();
        full.send("PATCH", "/global/config", &[], &body)
    };
    let (status, answer) = patch(json!({ "srv": { "set": { "enabled": true } } }));
    assert_eq!((status, &answer["srv"]["status"]), (202, &json!("pending")));
    for n in 0..9 {
        let (status, _) = patch(json!({ format!("s{n}"): { "set": { "command": "x" } } }));
        assert_eq!(status, 202);
    }
    let (status, error) = patch(json!({ "more": { "set": { "command": "x" } } }));
    assert_eq!(
        (status, &error["error"]["data"]["kind"]),
        (429, &json!("too_many_pending"))
    );
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

/// By POST and by WebSocket, with both tokens: one table of methods, one set of words.
fn every_carrier_answers_alike() {
    let env = TestEnv::new();
    let server = env.plain_server("srv", json!({}));
    env.write_config(&json!({ "srv": server.entry() }));
    let (host, ..) = start(&env);
    let directory = protocol::Dir::from(host.directory());
    let status = || protocol::McpStatus {
        directory: directory.clone(),
        ..Default::default()
    };
    for tier in ["full", "readOnly"] {
        for client in [
            PeerClient::by_post(&env, tier),
            PeerClient::by_websocket(&env, tier),
        ] {
            let names: Vec<String> = client
                .status(status())
                .expect("a status")
                .servers
                .iter()
                .map(|record| record.name.to_string())
                .collect();
            assert_eq!(names, ["srv"]);
            let kind = |method: &str, params: Value| -> String {
                client.ask(method, &params).expect_err(method).kind().to_owned()
            };
            let here = json!({ "directory": host.directory() });
            assert_eq!(kind("mcp.nowhere", here.clone()), "method_not_found");
            assert_eq!(kind("initialize", here.clone()), "method_not_found");
            assert_eq!(kind("mcp.questions", json!({})), "forbidden");
            assert_eq!(
                kind("mcp.status", json!({ "directory": host.directory(), "more": 1 })),
                "invalid_params"
            );
            let listed = client.tools_list(protocol::McpToolsList {
                directory: directory.clone(),
                ..Default::default()
            });
            if tier == "full" {
                assert_eq!(listed.expect("tools").items.len(), 1);
            } else {
                assert_eq!(listed.expect_err("not for it").kind(), "forbidden");
            }
        }
    }
}

/// What is no request is refused in the words and codes that a host hears.
fn odd_messages_over_every_carrier() {
    let env = TestEnv::new();
    let (host, full, _) = start(&env);
    let mut socket = Socket::open(&full);
    let rows: [(&str, i64, &str, Value); 8] = [
        ("{", -32700, "parse_error", Value::Null),
        ("", -32700, "parse_error", Value::Null),
        ("nonsense", -32700, "parse_error", Value::Null),
        ("[]", -32600, "invalid_request", Value::Null),
        ("7", -32600, "invalid_request", Value::Null),
        (r#"{"jsonrpc":"2.0","id":3}"#, -32600, "invalid_request", json!(3)),
        (
            r#"{"jsonrpc":"1.0","id":"x","method":"mcp.status"}"#,
            -32600,
            "invalid_request",
            json!("x"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":-4,"method":"mcp.nowhere"}"#,
            -32601,
            "method_not_found",
            json!(-4),
        ),
    ];
    for (body, code, kind, id) in rows {
        let (_, by_post) = full.send("POST", "/", &[], body);
        socket.send(body);
        let by_socket = socket.receive();
        assert_eq!(by_post, by_socket, "{body}");
        assert_eq!(
            (
                &by_post["error"]["code"],
                &by_post["error"]["data"]["kind"],
                &by_post["id"]
            ),
            (&json!(code), &json!(kind), &id),
            "{body}: {by_post}"
        );
        // And as a host hears it, where it can be framed at all.
        if !body.is_empty() {
            host.write(&frames::encode(body));
            let wanted = by_post["error"]["code"].clone();
            host.wait_for("the same for the host", |messages| {
                messages.iter().find(|one| {
                    let error = one.message.error.as_ref().map(|error| error.get().to_owned());
                    let error: Value = serde_json::from_str(&error.unwrap_or_default()).unwrap_or_default();
                    one.message.id.clone().unwrap_or_default() == id && error["code"] == wanted
                })?;
                Some(())
            });
        }
    }
    // A notification and a response get no answer; what comes next does.
    for quiet in [
        r#"{"jsonrpc":"2.0","method":"mcp.status"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        assert_eq!(full.send("POST", "/", &[], quiet), (202, Value::Null));
        socket.send(quiet);
    }
    // A message above the bound: the same kind as by POST, and the connection goes on.
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"mcp.status","params":{{"directory":"{}"}}}}"#,
        "x".repeat(1 << 20)
    );
    assert_eq!(
        full.send("POST", "/", &[], &large).1["error"]["data"]["kind"],
        "too_large"
    );
    socket.send(&large);
    let answer = socket.receive();
    assert_eq!(
        (
            &answer["error"]["data"]["kind"],
            &answer["error"]["data"]["limit"]
        ),
        (&json!("too_large"), &json!(1 << 20)),
        "{answer}"
    );
    socket.send(&json!({ "jsonrpc": "2.0", "id": 6, "method": "mcp.status", "params": { "directory": host.directory() } }).to_string());
    assert_eq!(socket.receive()["id"], 6);
    // More in one second than a tier has.
    for id in 100..250 {
        socket.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "mcp.nowhere" }).to_string());
    }
    let answers: Vec<Value> = (0..150).map(|_| socket.receive()).collect();
    let refused = answers
        .iter()
        .find(|answer| answer["error"]["data"]["kind"] == "overloaded");
    assert!(
        refused
            .is_some_and(|answer| answer["id"].is_u64() && answer["error"]["data"]["retryAfterMs"] == 1000)
    );
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
        let mut frame = vec![0x81];
        match u16::try_from(bytes.len()) {
            Ok(length) => {
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(0x80 | 127);
                frame.extend((bytes.len() as u64).to_be_bytes());
            }
        }
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
    let (host, ..) = start(&env);
    for (tier, sees_pid) in [("full", true), ("readOnly", false)] {
        let client = PeerClient::by_websocket(&env, tier);
        let mut news = client.subscribe(host.directory());
        host.start_server("srv");
        let ready = news.wait(|changed| {
            changed
                .status
                .as_ref()
                .is_some_and(|record| record.state == protocol::State::Ready)
        });
        assert_eq!(ready.status.and_then(|record| record.pid).is_some(), sees_pid);
        host.must("mcp.stop", json!({ "server": "srv" }));
        // Requests go over the same connection.
        let kind = |error: RpcError| error.kind().to_owned();
        let refused = client.ask("mcp.nowhere", &json!({})).map_err(kind);
        assert_eq!(refused, Err("method_not_found".to_owned()));
        news.end();
    }
    // A directory that nobody opened brings no news.
    let client = PeerClient::by_websocket(&env, "full");
    let elsewhere = client
        .ask("mcp.subscribe", &json!({ "directory": "/" }))
        .expect_err("not open");
    assert_eq!(elsewhere.kind(), "forbidden");
    // By POST there is nobody to bring it to.
    let refused =
        PeerClient::by_post(&env, "full").ask("mcp.subscribe", &json!({ "directory": host.directory() }));
    assert_eq!(refused.expect_err("no connection").kind(), "invalid_command");
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
    let (host, ..) = start(&env);
    let client = PeerClient::by_post(&env, "full");
    let read = json!({ "directory": host.directory(), "server": "srv", "uri": "x://y" });
    // Whatever the server makes of the refusal.
    let _ = client.ask("mcp.resource.read", &read);
    assert_eq!(host.notifications("mcp.question"), [] as [Value; 0]);
    let reply = server.log.wait("the reply to its question", |message| {
        message["result"]["action"].is_string()
    });
    assert_eq!(reply["result"]["action"], "decline");
}

/// A peer may ask for a login; what is stored and what the person began is not its own.
fn a_login_is_the_persons() {
    let env = TestEnv::new();
    let authority = AuthorizationServer::start();
    let plain = env.plain_server("plain", json!({}));
    let web = HttpHost::plain(&json!({}));
    let open = web.entry();
    env.write_config(&json!({ "srv": authority.entry(), "plain": plain.entry(), "open": open }));
    let (host, ..) = start(&env);
    let peer = PeerClient::by_post(&env, "full");
    let auth = |server: &str, action: &str| {
        let params = json!({ "directory": host.directory(), "server": server, "action": action });
        peer.ask("mcp.auth", &params)
    };
    let refused = |server: &str, action: &str| {
        let error = auth(server, action).expect_err("refused");
        assert_eq!(error.kind(), "forbidden", "{server} {action}");
        assert!(
            error.data["hint"].is_string() && error.data["candidates"].is_null(),
            "{:?}",
            error.data
        );
    };
    let begin = || host.must("mcp.auth", json!({ "server": "srv" }));

    // It may begin one that is wanted, and end it.
    host.start_server("srv");
    let began = auth("srv", "start").expect("a login");
    assert!(began["url"].is_string());
    host.wait_state("srv", "authorizing");
    refused("srv", "complete");
    auth("srv", "cancel").expect("its own");
    host.wait_state("srv", "needs_auth");

    // One that the person began goes on whatever a peer says.
    let ack = begin();
    for action in ["start", "cancel", "complete", "forget"] {
        refused("srv", action);
    }
    assert_eq!(browser::open(ack["url"].as_str().expect("an address")), Some(200));
    host.wait_state("srv", "ready");

    // What is stored is kept, and nothing is told of it.
    for server in ["srv", "#nope", "open", "plain", "nobody"] {
        refused(server, "forget");
        refused(server, "complete");
    }
    refused("srv", "start");
    let stored = host.must("mcp.auth.list", json!({}))["credentials"].take();
    assert_eq!(stored.as_array().map(Vec::len), Some(1));
    env.write_config(&json!({ "open": open }));
    host.must("mcp.reload", json!({}));
    let orphan = host.must("mcp.auth.list", json!({}))["credentials"][0]["server"].take();
    refused(orphan.as_str().expect("a handle"), "forget");
    let unknown = auth("#nope", "start").expect_err("no such server");
    assert!(
        !unknown.data["candidates"].to_string().contains('#'),
        "{:?}",
        unknown.data
    );
    assert_eq!(
        host.must("mcp.auth.list", json!({}))["credentials"][0]["server"],
        orphan
    );

    // The person's own word about a server that has no login stops nothing.
    host.start_server("open");
    let kept = host.must("mcp.auth", json!({ "server": "open", "action": "forget" }));
    assert_eq!(kept["server"]["state"], "ready");
}

/// What a person would have to type is not asked for because another program wants something.
fn nobody_is_asked_for_a_peer() {
    let env = TestEnv::new();
    let web = HttpHost::plain(&json!({}));
    let url = format!("{}/mcp", web.origin);
    let server = env.plain_server("srv", json!({}));
    let mut local = server.entry();
    local["env"] = json!({ "X": "${input:q}" });
    let remote = |value: &str| json!({ "url": url, "headers": { "x-key": value } });
    env.write_config(&json!({
        "local": local, "remote": remote("${input:k}"), "soft": remote("${input:s:-none}"),
        "login": { "url": url, "oauth": { "clientId": "${input:id}" } },
    }));
    let (host, ..) = start(&env);
    let peer = PeerClient::by_post(&env, "full");
    let here = |more: Value| {
        let mut params = json!({ "directory": host.directory() });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        params
    };
    for name in ["local", "remote", "soft", "login"] {
        for (method, more) in [
            ("mcp.start", json!({})),
            ("mcp.resource.read", json!({ "uri": "x://y" })),
            ("mcp.prompt.get", json!({ "name": "p" })),
            ("mcp.auth", json!({ "action": "start" })),
            ("mcp.debug", json!({})),
        ] {
            if name == "local" && ["mcp.auth", "mcp.debug"].contains(&method) {
                continue;
            }
            let mut params = here(more);
            params["server"] = json!(name);
            let error = peer.ask(method, &params).expect_err("nobody is asked");
            assert_eq!(error.kind(), "cannot_ask", "{name} {method}");
            assert!(error.data["hint"].is_string(), "{:?}", error.data);
        }
    }
    for method in ["mcp.tools.list", "mcp.catalog"] {
        let listed = peer.ask(method, &here(json!({}))).expect("a list");
        let issues = listed["issues"].as_array().map_or(0, Vec::len);
        assert_eq!(issues, 4, "{listed}");
        assert_eq!(listed["issues"][0]["kind"], "cannot_ask", "{listed}");
    }
    assert_eq!(host.notifications("mcp.question"), [] as [Value; 0]);
    assert!(server.log.starts().is_empty() && web.log().is_empty());
    // It is nothing that happened to the server: the person's own start asks, and then a peer's goes through.
    assert_eq!(host.status("local")["state"], "stopped");
    let start = host.send_here("mcp.start", json!({ "server": "local" }));
    host.answer(&host.wait_question(0), "accept", Some(json!({ "value": "v" })))
        .expect("it is open");
    start.wait().expect("started");
    host.must("mcp.stop", json!({ "server": "local" }));
    let started = peer
        .ask("mcp.start", &here(json!({ "server": "local" })))
        .expect("nobody has to be asked");
    assert_eq!(started["server"]["state"], "ready");
}

fn only_open_directories() {
    let env = TestEnv::new();
    let (host, full, read_only) = start(&env);
    let elsewhere = env.tmp().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    for (peer, tier) in [(&full, "full"), (&read_only, "readOnly")] {
        let client = PeerClient::by_websocket(&env, tier);
        let refused = client
            .ask("mcp.status", &json!({ "directory": elsewhere }))
            .expect_err("not open");
        assert_eq!(refused.kind(), "forbidden");
        let path = format!("/mcp?directory={}", elsewhere.display());
        assert_eq!(peer.send("GET", &path, &[], "").0, 403);
    }
    let add = json!({ "directory": elsewhere, "name": "n", "entry": { "command": "x" }, "scope": "project" });
    let refused = PeerClient::by_post(&env, "full")
        .ask("mcp.add", &add)
        .expect_err("not open");
    assert_eq!(refused.kind(), "forbidden");
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

/// What a killed process left is known by its silence, also where its number belongs to another process now.
fn a_killed_endpoint_is_tidied_away() {
    let env = TestEnv::new();
    let (host, ..) = start(&env);
    let left = endpoints(&env);
    host.signal(libc::SIGKILL);
    host.wait_exit(Duration::from_secs(10));
    assert_eq!(endpoints(&env), left);
    // Any later process sees to it, whether or not it lets peers in.
    let other = Host::start(&env);
    clock::eventually("the file to go", || {
        (!env.data().join("peers.json").exists()).then_some(())
    });
    let mut reused = left;
    reused[0]["pid"] = json!(std::process::id());
    std::fs::write(
        env.data().join("peers.json"),
        json!({ "endpoints": reused }).to_string(),
    )
    .expect("a file");
    let (_second, ..) = start(&env);
    let now = endpoints(&env);
    assert_eq!(now.len(), 1);
    assert_ne!(now[0]["address"], reused[0]["address"]);
    drop(other);
}

fn only_loopback() {
    let env = TestEnv::new();
    for address in ["0.0.0.0:0", "[::]:80", "192.0.2.1:1"] {
        let mut command = env.command();
        let output = command
            .args(["serve", "--listen", address])
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(2), 1),
            "{said}"
        );
        assert!(said.contains("no loopback address"), "{said}");
    }
    assert!(!env.data().join("peers.json").exists());
    // A port that is taken is no reason not to serve the host, who is told.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let options = HostOptions {
        args: vec!["--listen".to_owned(), address.clone()],
        ..Default::default()
    };
    let host = Host::start_with(&env, options);
    let told = host.wait_notification("window/logMessage", |params| params["type"] == 1);
    assert!(
        told["message"]
            .as_str()
            .is_some_and(|text| text.contains(&address)),
        "{told}"
    );
    host.must("mcp.status", json!({}));
}
