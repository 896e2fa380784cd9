//! Remote servers with a network of their own: certificates, sockets, and a program that prints headers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::front::{self, Authority};
use crate::support::{AuthorizationServer, Host, HttpHost, TestEnv};

pub fn stories() -> Vec<Trial> {
    stories!("network":
        certificates_of_its_own, a_certificate_that_is_missing_or_wrong, a_login_shows_the_certificate_to_the_server_only,
        a_socket_in_place_of_a_host, a_login_at_a_socket, a_program_prints_headers, a_helper_that_fails_tells_nothing,
        a_helper_of_a_project_waits_for_trust,
    )
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn write(env: &TestEnv, name: &str, content: &str) -> PathBuf {
    let path = env.tmp().join(name);
    fs::write(&path, content).expect("a small file");
    path
}

/// A program of the test, and its path.
fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a small file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode can be set");
    path.to_string_lossy().into_owned()
}

fn started(env: &TestEnv, entry: &Value) -> (Host, Value) {
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(env);
    let record = host.start_server("srv");
    (host, record)
}

fn certificates_of_its_own() {
    let mut env = TestEnv::new();
    let authority = Authority::new();
    let mut server = HttpHost::plain(&json!({}));
    let shown = front::tls(&mut server, &authority, true);
    let (certificate, key) = authority.sign();
    let ca = write(&env, "ca.pem", &authority.pem);
    write(&env, "own.pem", &certificate);
    write(&env, "own.key", &key);
    write(&env, "both.pem", &format!("{key}{certificate}"));
    env.set("CERTS", &env.tmp().to_string_lossy());
    for tls in [
        json!({ "ca": ca, "cert": "${CERTS}/own.pem", "key": "${CERTS}/own.key" }),
        json!({ "ca": ca, "cert": "${CERTS}/both.pem" }),
    ] {
        let before = shown.load(Ordering::SeqCst);
        let entry = json!({ "url": format!("{}/mcp", server.origin), "tls": tls, "oauth": false });
        let (host, record) = started(&env, &entry);
        assert_eq!(text(&record["state"]), "ready", "{record}");
        host.call("srv", "echo", json!({}))
            .expect("a call like any other");
        assert!(shown.load(Ordering::SeqCst) > before);
        let secret = key.lines().nth(1).expect("PEM");
        assert!(!host.stderr().contains(secret));
    }
}

fn a_certificate_that_is_missing_or_wrong() {
    let env = TestEnv::new();
    let (authority, another) = (Authority::new(), Authority::new());
    let mut server = HttpHost::plain(&json!({}));
    front::tls(&mut server, &authority, true);
    let (certificate, key) = authority.sign();
    let (_, foreign_key) = another.sign();
    let file = |name: &str, content: &str| json!(write(&env, name, content));
    let ca = file("ca.pem", &authority.pem);
    let (own, own_key) = (file("own.pem", &certificate), file("own.key", &key));
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAo=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let rows = [
        (json!({}), "connect_failed", "tls.ca"),
        (
            json!({ "ca": file("other.pem", &another.pem) }),
            "connect_failed",
            "tls.ca",
        ),
        (json!({ "ca": ca }), "connect_failed", "certificate"),
        (json!({ "ca": "nowhere.pem" }), "start_failed", "nowhere.pem"),
        (
            json!({ "ca": file("empty.pem", "") }),
            "start_failed",
            "no certificate",
        ),
        (json!({ "ca": ca, "cert": own }), "start_failed", "no private key"),
        (
            json!({ "ca": ca, "cert": own, "key": file("locked.key", locked) }),
            "start_failed",
            "passphrase",
        ),
        (
            json!({ "ca": ca, "cert": own, "key": file("foreign.key", &foreign_key) }),
            "start_failed",
            "belong together",
        ),
        (
            json!({ "ca": ca, "cert": own_key, "key": own_key }),
            "start_failed",
            "no certificate",
        ),
    ];
    let entries: serde_json::Map<String, Value> = rows
        .iter()
        .enumerate()
        .map(|(index, (tls, _, _))| {
            let entry = json!({ "url": format!("{}/mcp", server.origin), "tls": tls, "oauth": false });
            (format!("srv-{index}"), entry)
        })
        .collect();
    env.write_config(&Value::Object(entries));
    let host = Host::start(&env);
    for (index, (tls, kind, said)) in rows.iter().enumerate() {
        let name = format!("srv-{index}");
        let error = host.ask("mcp.start", json!({ "server": name })).map_or_else(
            |error| json!({ "kind": error.kind(), "message": error.message, "hint": error.data["hint"] }),
            |started| started["server"]["error"].clone(),
        );
        assert_eq!(text(&error["kind"]), *kind, "{tls}: {error}");
        let told = format!("{} {}", text(&error["message"]), text(&error["hint"]));
        assert!(told.contains(said), "{tls}: {told}");
    }
    assert!(
        server.log().is_empty(),
        "nothing was said to a server that is not trusted"
    );
}

/// The redirect of a browser that a person pastes.
fn pasted(ack: &Value) -> String {
    let url = url::Url::parse(text(&ack["url"])).expect("an address");
    let state = url
        .query_pairs()
        .find(|(name, _)| name == "state")
        .expect("a state")
        .1;
    format!("{}?code=code-1-secret&state={state}", text(&ack["redirectUri"]))
}

fn a_login_shows_the_certificate_to_the_server_only() {
    let env = TestEnv::new();
    let authority = Authority::new();
    let (mut resource, mut issuer) = (HttpHost::bind(), HttpHost::bind());
    let to_resource = front::tls(&mut resource, &authority, true);
    let to_issuer = front::tls(&mut issuer, &authority, false);
    let server = AuthorizationServer::on(resource, issuer, |_, _| (json!([]), json!([])));
    let (certificate, key) = authority.sign();
    let mut entry = server.entry();
    entry["tls"] = json!({ "ca": write(&env, "ca.pem", &authority.pem),
        "cert": write(&env, "own.pem", &certificate), "key": write(&env, "own.key", &key) });
    let (host, record) = started(&env, &entry);
    assert_eq!(text(&record["state"]), "needs_auth", "{record}");
    let ack = host.must("mcp.auth", json!({ "server": "srv" }));
    let complete = json!({ "server": "srv", "action": "complete", "redirect": pasted(&ack) });
    let done = host.must("mcp.auth", complete);
    assert_eq!(text(&done["server"]["state"]), "ready", "{done}");
    assert_eq!(server.token_requests().len(), 1);
    assert!(to_resource.load(Ordering::SeqCst) > 0);
    assert_eq!(
        to_issuer.load(Ordering::SeqCst),
        0,
        "the person is not shown to others"
    );
}

fn a_socket_in_place_of_a_host() {
    let mut env = TestEnv::new();
    let mut server = HttpHost::plain(&json!({}));
    let socket = env.tmp().join("my server.sock");
    front::socket(&mut server, &socket);
    env.set("SOCKETS", &env.tmp().to_string_lossy());
    // Nothing that stands in the environment leads a socket astray.
    env.set("HTTP_PROXY", "http://127.0.0.1:9");
    let (host, record) = started(&env, &json!({ "url": "unix://${SOCKETS}/my%20server.sock#/mcp" }));
    assert_eq!(text(&record["state"]), "ready", "{record}");
    assert!(
        text(&record["command"]).contains("my%20server.sock#/mcp"),
        "{record}"
    );
    host.call("srv", "echo", json!({}))
        .expect("a call like any other");
    for seen in server.log() {
        assert_eq!(
            (seen.path.as_str(), &seen.headers["host"]),
            ("/mcp", &json!("localhost"))
        );
        assert_eq!(seen.headers.get("origin"), None, "not a browser");
    }
    drop(host);
    let (_host, record) = started(&env, &json!({ "url": "unix://${SOCKETS}/nobody.sock#/mcp" }));
    assert_eq!(text(&record["error"]["kind"]), "connect_failed", "{record}");
}

fn a_login_at_a_socket() {
    let env = TestEnv::new();
    let mut resource = HttpHost::bind();
    let socket = env.tmp().join("a.sock");
    front::socket(&mut resource, &socket);
    let server = AuthorizationServer::on(resource, HttpHost::bind(), |_, _| (json!([]), json!([])));
    let url = format!("unix://{}#/mcp", socket.display());
    let (host, record) = started(&env, &json!({ "url": url }));
    assert_eq!(text(&record["state"]), "needs_auth", "{record}");
    let ack = host.must("mcp.auth", json!({ "server": "srv" }));
    let complete = json!({ "server": "srv", "action": "complete", "redirect": pasted(&ack) });
    assert_eq!(text(&host.must("mcp.auth", complete)["server"]["state"]), "ready");
    let listed = host.must("mcp.auth.list", json!({}));
    assert_eq!(
        listed["credentials"][0]["url"],
        json!(format!("unix://{}", socket.display()))
    );
    assert_eq!(
        server.token_requests()[0].form["resource"],
        "http://localhost/mcp"
    );
}

/// A server that takes the second token of a helper, but not the first.
fn picky() -> HttpHost {
    let server = HttpHost::bind();
    server.serve_rules(
        &json!([
            { "match": "POST /mcp", "when": { "auth": "Bearer h-1-secret", "rpc": "tools/call" },
                "respond": { "status": 401, "text": "" } },
            { "match": "POST /mcp", "when": { "auth": null }, "respond": { "status": 401, "text": "" } },
            { "match": "POST /mcp", "respond": { "mcp": {} } },
            { "match": "* /mcp", "respond": { "status": 405, "text": "" } },
        ]),
        &json!({}),
    );
    server
}

/// Prints another token each time it is run, and notes what it was told.
fn counting(folder: &Path) -> String {
    let script = format!(
        "cd '{0}'; echo \"$PILLION_SERVER_NAME $PILLION_SERVER_URL $*\" >> runs\n\
         echo \"{{\\\"Authorization\\\": \\\"Bearer h-$(wc -l < runs | tr -d ' ')-secret\\\", \\\"X-Team\\\": \\\"a\\\", \\\"Accept\\\": \\\"x\\\"}}\"",
        folder.display()
    );
    program(folder, "print-headers", &script)
}

fn a_program_prints_headers() {
    let env = TestEnv::new();
    let server = picky();
    let helper = counting(&env.tmp());
    let mut entry = server.entry();
    entry["headersHelper"] = json!([helper, "--for", "me; you"]);
    entry["headers"] = json!({ "Authorization": "Bearer old", "X-Own": "1" });
    let (host, record) = started(&env, &entry);
    assert_eq!(text(&record["state"]), "ready", "{record}");
    host.call("srv", "echo", json!({}))
        .expect("it was repeated with new headers");
    host.call("srv", "echo", json!({}))
        .expect("the new headers are kept");
    let runs = fs::read_to_string(env.tmp().join("runs")).expect("it was run");
    let wanted = format!("srv {}/mcp --for me; you\n", server.origin);
    assert_eq!(runs, wanted.repeat(2));
    let last = server.log().pop().expect("a request");
    assert_eq!(
        (
            &last.headers["authorization"],
            &last.headers["x-team"],
            &last.headers["x-own"]
        ),
        (&json!("Bearer h-2-secret"), &json!("a"), &json!("1"))
    );
    assert!(
        text(&last.headers["accept"]).contains("json"),
        "the protocol's own headers stay"
    );
    for one in host.messages() {
        assert!(!one.text.contains("-secret"), "{}", one.text);
    }
    assert!(!host.stderr().contains("-secret"));
}

fn a_helper_that_fails_tells_nothing() {
    let env = TestEnv::new();
    let server = picky();
    let rows = [
        ("not-json", "echo h-secret", "no JSON object"),
        ("no-text", "echo '{\"X-A\": 5}'", "no text"),
        (
            "bad-value",
            "printf '{\"X-A\": \"h-secret\\\\u0001\"}'",
            "no header may have",
        ),
        ("exits", "echo h-secret >&2; echo h-secret; exit 3", "code 3"),
        ("endless", "yes h-secret", "more than"),
    ];
    let mut entries = serde_json::Map::new();
    for (name, script, _) in rows {
        let mut entry = server.entry();
        entry["headersHelper"] = json!([program(&env.tmp(), name, script)]);
        entries.insert(name.to_owned(), entry);
    }
    entries.insert(
        "missing".to_owned(),
        json!({ "url": server.entry()["url"], "headersHelper": ["no-such-helper"] }),
    );
    env.write_config(&Value::Object(entries));
    let host = Host::start(&env);
    for (name, said) in rows
        .map(|(name, _, said)| (name, said))
        .into_iter()
        .chain([("missing", "not found")])
    {
        let record = host.start_server(name);
        assert_eq!(text(&record["error"]["kind"]), "start_failed", "{record}");
        let message = text(&record["error"]["message"]);
        assert!(
            message.contains("`headersHelper`") && message.contains(said),
            "{message}"
        );
    }
    assert!(server.log().is_empty());
    for one in host.messages() {
        assert!(!one.text.contains("h-secret"), "{}", one.text);
    }
    assert!(!host.stderr().contains("h-secret"));
}

fn a_helper_of_a_project_waits_for_trust() {
    let env = TestEnv::new();
    let server = picky();
    let helper = counting(&env.tmp());
    let mut entry = server.entry();
    entry["headersHelper"] = json!([helper]);
    entry["headers"] = json!({ "X-Key": format!("${{cmd:{helper}}}") });
    let folder = env.project().join(".pillion");
    fs::create_dir(&folder).expect("a new folder");
    fs::write(
        folder.join("mcp.json"),
        json!({ "servers": { "srv": entry } }).to_string(),
    )
    .expect("a file");
    let host = Host::start(&env);
    host.must("mcp.status", json!({}));
    host.must("mcp.tools.list", json!({}));
    assert!(host.ask("mcp.start", json!({ "server": "srv" })).is_err());
    assert!(host.ask("mcp.auth", json!({ "server": "srv" })).is_err());
    assert!(!env.tmp().join("runs").exists(), "nothing of it ran");
    let review = host.must("mcp.trust", json!({}));
    let shown = review.to_string();
    assert!(
        shown.contains("print-headers") && shown.contains("for a secret"),
        "{shown}"
    );
}
