//! Logins as a host, a person at a terminal and another process see them.

use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::stories;
use crate::support::{AuthorizationServer, Host, HttpHost, TestEnv, browser, clock};

pub fn stories() -> Vec<Trial> {
    stories!("logins":
        a_login_starts_the_server_and_a_logout_stops_it,
        a_pasted_address_completes_a_login,
        a_login_in_a_terminal_reaches_a_running_host,
        a_call_waits_for_more_rights_and_is_repeated,
        what_several_calls_want_is_one_login,
        a_login_is_shown_copied_and_pasted_in_a_terminal,
        over_ssh_every_slip_is_told_and_the_whole_address_logs_in,
        a_pasted_denial_and_what_comes_too_early_have_codes,
        a_denial_and_an_interrupt_have_codes_of_their_own,
        looking_changes_nothing, who_asks_for_no_login,
        others_are_told_that_they_have_no_login,
        accounts_are_kept_apart, hosts_that_want_it_are_kept_apart,
        what_is_configured_goes_before_metadata,
        a_deadline_has_a_code_of_its_own,
        a_crash_at_any_write_loses_no_token,
        no_secret_is_told, what_is_no_web_address_has_a_next_step,
    )
}

fn world() -> (TestEnv, AuthorizationServer) {
    with(AuthorizationServer::start())
}

fn with(server: AuthorizationServer) -> (TestEnv, AuthorizationServer) {
    let env = TestEnv::new();
    env.write_config(&json!({ "srv": server.entry(), "local": { "command": "true" } }));
    (env, server)
}

fn start_login(host: &Host) -> Value {
    host.must("mcp.auth", json!({ "server": "srv" }))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where the browser would end, had it gone there.
fn redirect(ack: &Value) -> String {
    let url = text(&ack["url"]);
    let state = url.split("state=").nth(1).and_then(|rest| rest.split('&').next());
    format!(
        "{}?code=code-1-secret&state={}",
        text(&ack["redirectUri"]),
        state.expect("a state")
    )
}

fn a_login_starts_the_server_and_a_logout_stops_it() {
    let (env, server) = world();
    let host = Host::start(&env);
    let record = host.start_server("srv");
    assert_eq!(
        (text(&record["state"]), text(&record["auth"])),
        ("needs_auth", "needs_auth")
    );
    assert_eq!(text(&record["error"]["message"]), "needs authorization");
    assert!(text(&record["command"]).ends_with("/mcp [oauth: needs authorization]"));
    let ack = start_login(&host);
    let record = host.wait_state("srv", "authorizing");
    assert_eq!(text(&record["auth"]), "pending");
    assert!(text(&record["command"]).ends_with("[oauth: waiting for the browser]"));
    assert_eq!(browser::open(text(&ack["url"])), Some(200));
    let record = host.wait_state("srv", "ready");
    assert_eq!(
        (text(&record["auth"]), &record["authStored"]),
        ("authorized", &json!(true))
    );
    assert!(record["authExpiresAt"].is_u64() && record["error"].is_null());
    let listed = host.must("mcp.auth.list", json!({}));
    assert_eq!(listed["credentials"][0]["server"], "srv");
    assert_eq!(listed["credentials"][0]["issuer"], json!(server.issuer.origin));
    // Nobody but the person or the host opens anything.
    assert!(env.opened().is_empty());

    let forgotten = host.must("mcp.auth", json!({ "server": "srv", "action": "forget" }));
    assert_eq!(
        (
            text(&forgotten["server"]["state"]),
            text(&forgotten["server"]["auth"])
        ),
        ("stopped", "none")
    );
    assert_eq!(host.must("mcp.auth.list", json!({}))["credentials"], json!([]));
    server.issuer.wait("the revocation", |seen| {
        seen.is("POST /revoke") && seen.form["token"] == "rt-1-secret"
    });
}

fn a_pasted_address_completes_a_login() {
    let (env, server) = world();
    let host = Host::start(&env);
    host.start_server("srv");
    let ack = start_login(&host);
    let complete = |redirect: &str| {
        host.ask(
            "mcp.auth",
            json!({ "server": "srv", "action": "complete", "redirect": redirect }),
        )
    };
    let foreign = complete(&format!("{}?code=x&state=other", text(&ack["redirectUri"]))).unwrap_err();
    assert_eq!(foreign.kind(), "state_mismatch");
    assert_eq!(
        complete("http://127.0.0.1/").unwrap_err().data["path"],
        "/redirect"
    );
    let done = complete(&redirect(&ack)).unwrap();
    assert_eq!(
        (text(&done["server"]["state"]), text(&done["server"]["auth"])),
        ("ready", "authorized")
    );
    assert_eq!(server.token_requests().len(), 1);
    assert!(complete(&redirect(&ack)).is_err());
}

fn a_login_in_a_terminal_reaches_a_running_host() {
    let (env, _server) = world();
    let host = Host::start(&env);
    assert_eq!(text(&host.start_server("srv")["state"]), "needs_auth");
    let (mut command, url) = log_in(&env);
    assert_eq!(browser::open(&url), Some(200));
    assert_eq!(command.wait().expect("our own child").code(), Some(0));
    host.wait_state("srv", "ready");
    let logout = env
        .command()
        .args(["logout", "srv"])
        .output()
        .expect("the binary starts");
    assert_eq!(logout.status.code(), Some(0));
    host.wait_notification("mcp.changed", |params| params["status"]["authStored"] == false);
}

/// `pillion auth srv` for a program: its process and the address it prints.
fn log_in(env: &TestEnv) -> (std::process::Child, String) {
    let mut command = env.command();
    command.args(["auth", "srv"]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a line of text");
    (child, line.trim().to_owned())
}

fn a_call_waits_for_more_rights_and_is_repeated() {
    let challenge = r#"Bearer error="insufficient_scope", scope="files:write""#;
    let (env, server) = with(AuthorizationServer::with(|_, _| {
        let refused = json!({ "match": "POST /mcp", "when": { "rpc": "tools/call" }, "times": 1, "respond": {
            "status": 403, "text": "", "headers": { "www-authenticate": challenge } } });
        (json!([refused]), json!([]))
    }));
    let host = Host::start(&env);
    host.start_server("srv");
    browser::open(text(&start_login(&host)["url"]));
    host.wait_state("srv", "ready");
    let call = host.send_call("srv", "echo", json!({}));
    host.wait_notification("mcp.changed", |params| {
        text(&params["status"]["error"]["message"]).contains("files:write")
    });
    let ack = start_login(&host);
    assert!(text(&ack["url"]).contains("scope=files%3Awrite"), "{ack}");
    // The person takes longer than the call itself might.
    assert!(call.wait_within(Duration::from_millis(2500)).is_none());
    browser::open(text(&ack["url"]));
    let answer = call.wait().expect("it was repeated");
    assert_eq!(answer["result"]["content"][0]["text"], "ok");
    assert_eq!(text(&host.status("srv")["state"]), "ready");
    assert_eq!(server.resource.requests("tools/call").len(), 2);
}

/// A second refusal wants other rights while the login for the first one is open.
fn what_several_calls_want_is_one_login() {
    for (status, error) in [(403, "error=\"insufficient_scope\", "), (401, "")] {
        let refused = |scope: &str| {
            let challenge = format!("Bearer {error}scope=\"{scope}\"");
            json!({ "match": "POST /mcp", "when": { "rpc": "tools/call" }, "times": 1, "respond": {
                "status": status, "text": "", "headers": { "www-authenticate": challenge } } })
        };
        let (env, server) = with(AuthorizationServer::with(|_, _| {
            // Without a refresh token, so that nothing but a login helps.
            let token = |number: u8| {
                json!({ "match": "POST /token", "times": 1, "respond": { "json": {
                    "access_token": format!("at-{number}-secret"), "token_type": "Bearer", "expires_in": 3600 } } })
            };
            (
                json!([refused("files:write"), refused("files:admin")]),
                json!([token(1), token(2)]),
            )
        }));
        let host = Host::start(&env);
        host.start_server("srv");
        browser::open(text(&start_login(&host)["url"]));
        host.wait_state("srv", "ready");
        // Who asks for a login once more gets one for everything that is wanted by then.
        let login_for = |scopes: &[&str]| {
            clock::eventually("a login for all of it", || {
                let ack = start_login(&host);
                let url = text(&ack["url"]).to_owned();
                scopes.iter().all(|scope| url.contains(scope)).then_some(url)
            })
        };
        let first = host.send_call("srv", "echo", json!({}));
        login_for(&["files%3Awrite"]);
        let second = host.send_call("srv", "echo", json!({}));
        let url = login_for(&["files%3Awrite", "files%3Aadmin"]);
        browser::open(&url);
        for call in [first, second] {
            let answer = call.wait().expect("it was repeated");
            assert_eq!(answer["result"]["content"][0]["text"], "ok", "{status}");
        }
        assert_eq!(
            server.token_requests().len(),
            2,
            "{status}: the early login led nowhere"
        );
        assert_eq!(server.resource.requests("tools/call").len(), 4, "{status}");
    }
}

fn a_login_is_shown_copied_and_pasted_in_a_terminal() {
    let (env, _server) = world();
    let mut command = env.command();
    command.args(["auth"]);
    let mut terminal = Terminal::run(command);
    terminal.when("paste the address", "c");
    let screen = clock::eventually("a second copy", || {
        let screen = terminal.screen();
        (screen.matches("auth URL copied").count() == 2).then_some(screen)
    });
    assert_eq!(screen.matches("\x1b]52;c;").count(), 2);
    let url = address(&screen);
    let redirect_uri = url::Url::parse(&url).expect("a URL");
    let redirect_uri = redirect_uri
        .query_pairs()
        .find(|(name, _)| name == "redirect_uri")
        .expect("it has one")
        .1;
    let pasted = redirect(&json!({ "url": url, "redirectUri": redirect_uri }));
    terminal.when("auth URL copied", &format!("{pasted}\r"));
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("`srv` is authorized and ready, with 1 tool\r\n"),
        "{screen}"
    );
    assert!(env.opened().is_empty());
}

/// `pillion auth srv` of a person who came over SSH: the terminal, and where the browser would end.
fn log_in_over_ssh(env: &TestEnv) -> (Terminal, String) {
    let mut command = env.command();
    command.args(["auth", "srv"]).env("NO_COLOR", "1");
    command.env("SSH_CONNECTION", "198.51.100.7 50512 192.0.2.4 22");
    let mut terminal = Terminal::run(command);
    terminal.when("paste the address here", "");
    let url = address(&terminal.screen());
    let redirect_uri = url::Url::parse(&url).expect("a URL");
    let redirect_uri = redirect_uri
        .query_pairs()
        .find(|(name, _)| name == "redirect_uri")
        .expect("it has one")
        .1;
    let ends = redirect(&json!({ "url": url, "redirectUri": redirect_uri }));
    (terminal, ends)
}

/// The address that is printed.
fn address(screen: &str) -> String {
    let start = screen.find("http://127.0.0.1").expect("an address");
    screen[start..]
        .chars()
        .take_while(|c| !c.is_whitespace())
        .collect()
}

fn over_ssh_every_slip_is_told_and_the_whole_address_logs_in() {
    let (env, server) = world();
    let (mut terminal, ends) = log_in_over_ssh(&env);
    let screen = terminal.screen();
    assert!(
        screen.contains("in the browser of your own machine within 5 minutes"),
        "{screen}"
    );
    assert!(screen.contains("You are here over SSH"), "{screen}");
    let (half, state) = ends.split_once("&state=").expect("a state");
    let slips = [
        (half.to_owned(), "its part `state=` is missing"),
        (
            ends.split('?').next().unwrap_or_default().to_owned(),
            "is not whole",
        ),
        (format!("{half}&state=x{state}"), "belongs to another login"),
        (address(&screen), "this is the address to open"),
        (
            "two words".to_owned(),
            "neither an address with a code nor a code",
        ),
    ];
    for (nth, (slip, said)) in slips.iter().enumerate() {
        terminal.when("paste the address here", &format!("{slip}\r"));
        clock::eventually(said, || {
            let screen = terminal.screen();
            let waits = screen.matches("Still waiting for the login to `srv`").count() == nth + 1;
            (screen.contains(said) && waits).then_some(())
        });
    }
    // A slip of the finger is taken back, on the screen too.
    terminal.when("Still waiting", &format!("{ends}zz\x7f\x7f\r"));
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("zz\x08 \x08\x08 \x08"), "{screen}");
    assert!(screen.contains("`srv` is authorized and ready"), "{screen}");
    assert_eq!(server.token_requests().len(), 1);
}

fn a_pasted_denial_and_what_comes_too_early_have_codes() {
    let (env, _server) = world();
    let early = env
        .command()
        .args(["call", "srv", "echo", "a=1", "--json"])
        .output();
    let early = early.expect("the binary starts");
    let said: Value = serde_json::from_slice(&early.stdout).expect("one document");
    assert_eq!(
        (early.status.code(), &said["error"]["data"]["kind"]),
        (Some(3), &json!("needs_auth"))
    );
    let (mut terminal, ends) = log_in_over_ssh(&env);
    let denied = ends.replace("code=code-1-secret", "error=access_denied");
    terminal.when("paste the address here", &format!("{denied}\r"));
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(4), "{screen}");
    assert!(
        screen.contains("start the login again with `pillion auth srv`"),
        "{screen}"
    );
    let (mut terminal, _) = log_in_over_ssh(&env);
    terminal.when("paste the address here", "\x03");
    assert_eq!(terminal.end().0, Some(130));
}

fn a_denial_and_an_interrupt_have_codes_of_their_own() {
    let (env, _server) = with(AuthorizationServer::with(|_, _| {
        let denied = json!({ "match": "GET /authorize", "times": 1, "respond": { "status": 302,
            "redirect_back": { "error": "access_denied" } } });
        (json!([]), json!([denied]))
    }));
    let (mut command, url) = log_in(&env);
    browser::open(&url);
    assert_eq!(command.wait().expect("our own child").code(), Some(4));
    let (mut command, _) = log_in(&env);
    crate::support::processes::signal(i32::try_from(command.id()).expect("a process id"), libc::SIGINT);
    assert_eq!(command.wait().expect("our own child").code(), Some(130));
}

fn looking_changes_nothing() {
    let (env, server) = world();
    let host = Host::start(&env);
    let report = host.must("mcp.debug", json!({ "server": "srv" }));
    assert_eq!(
        (&report["httpStatus"], &report["registration"]),
        (&json!(401), &json!("dynamic"))
    );
    assert_eq!(report["issuer"], json!(server.issuer.origin));
    assert_eq!(report["stored"], false);
    let log = server.issuer.log();
    assert!(log.iter().all(|seen| seen.method == "GET"), "{log:?}");
    let debug = env
        .command()
        .args(["debug", "srv"])
        .output()
        .expect("the binary starts");
    assert_eq!(debug.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&debug.stdout).contains("a login is asked for"));
}

fn who_asks_for_no_login() {
    let env = TestEnv::new();
    let server = HttpHost::plain(&json!({}));
    env.write_config(&json!({ "open": server.entry() }));
    let host = Host::start(&env);
    let refused = host
        .ask("mcp.auth", json!({ "server": "open" }))
        .expect_err("there is nothing to log in to");
    assert_eq!(refused.kind(), "auth_failed");
    assert!(
        refused.message.contains("it asks for none"),
        "{}",
        refused.message
    );
}

fn others_are_told_that_they_have_no_login() {
    let (env, server) = world();
    env.write_config(&json!({
        "local": { "command": "true" },
        "off": { "url": server.entry()["url"], "oauth": false },
        "disabled": { "url": server.entry()["url"], "enabled": false },
    }));
    let host = Host::start(&env);
    for (name, reason) in [
        ("local", "local"),
        ("off", "oauth_disabled"),
        ("disabled", "disabled"),
        ("none", "unknown"),
    ] {
        let error = host.ask("mcp.auth", json!({ "server": name })).unwrap_err();
        assert_eq!(
            (error.kind(), text(&error.data["reason"])),
            ("target_mismatch", reason)
        );
    }
    assert!(server.issuer.log().is_empty() && server.resource.log().is_empty());
}

fn accounts_are_kept_apart() {
    let (env, server) = world();
    let mut work = server.entry();
    work["account"] = json!("work");
    env.write_config(&json!({ "srv": server.entry(), "job": work }));
    let host = Host::start(&env);
    host.start_server("srv");
    browser::open(text(&start_login(&host)["url"]));
    host.wait_state("srv", "ready");
    assert_eq!(text(&host.start_server("job")["state"]), "needs_auth");
    browser::open(text(&host.must("mcp.auth", json!({ "server": "job" }))["url"]));
    host.wait_state("job", "ready");
    let listed = host.must("mcp.auth.list", json!({}));
    let accounts: Vec<(&str, &str, &str)> = listed["credentials"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (text(&one["server"]), text(&one["account"]), text(&one["keptIn"])))
        .collect();
    assert_eq!(accounts, [("srv", "", "file"), ("job", "work", "file")]);
}

/// A host with a profile of its own for logins neither uses those of others nor gives its own away.
fn hosts_that_want_it_are_kept_apart() {
    let (env, server) = world();
    env.write_config(&json!({ "srv": server.entry() }));
    let host = Host::start(&env);
    host.start_server("srv");
    browser::open(text(&start_login(&host)["url"]));
    host.wait_state("srv", "ready");
    let apart = Host::start_with(&env, crate::handshake::options(json!({ "profile": "zed" })));
    assert_eq!(text(&apart.start_server("srv")["state"]), "needs_auth");
    browser::open(text(&start_login(&apart)["url"]));
    apart.wait_state("srv", "ready");
    let listed = apart.must("mcp.auth.list", json!({}));
    let accounts: Vec<&str> = listed["credentials"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| text(&one["account"]))
        .collect();
    assert_eq!(accounts, ["", "~zed"]);
}

fn what_is_configured_goes_before_metadata() {
    let (env, server) = with(AuthorizationServer::with(|_, _| {
        let none = json!({ "match": "GET /.well-known/oauth-authorization-server", "respond": { "status": 404, "text": "" } });
        let page = json!({ "match": "GET /login", "respond": { "status": 302, "redirect_back": { "code": "code-1-secret" } } });
        (json!([]), json!([none, page]))
    }));
    let mut entry = server.entry();
    let issuer = &server.issuer.origin;
    entry["oauth"] = json!({ "clientId": "me", "authorizationEndpoint": format!("{issuer}/login"),
        "tokenEndpoint": format!("{issuer}/token"), "authorizationParameters": { "login_hint": "a b" } });
    env.write_config(&json!({ "srv": entry }));
    let host = Host::start(&env);
    host.start_server("srv");
    let ack = start_login(&host);
    assert!(
        text(&ack["url"]).contains("/login?") && text(&ack["url"]).contains("login_hint=a%20b"),
        "{ack}"
    );
    assert_eq!(browser::open(text(&ack["url"])), Some(200));
    host.wait_state("srv", "ready");
    assert_eq!(server.token_requests()[0].form["client_id"], "me");
}

fn a_deadline_has_a_code_of_its_own() {
    let (env, server) = with(AuthorizationServer::with(|_, issuer| {
        let metadata = json!({ "match": "GET /.well-known/oauth-authorization-server", "respond": { "json": {
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/register"),
            "device_authorization_endpoint": format!("{issuer}/device"),
            "code_challenge_methods_supported": ["S256"],
        } } });
        let device = json!({ "match": "POST /device", "respond": { "json": { "device_code": "d-1-secret",
            "user_code": "ABCD-EFGH", "verification_uri": format!("{issuer}/page"), "expires_in": 1, "interval": 1 } } });
        let pending = json!({ "match": "POST /token", "respond": { "status": 400, "json": { "error": "authorization_pending" } } });
        (json!([]), json!([metadata, device, pending]))
    }));
    let mut entry = server.entry();
    entry["oauth"] = json!({ "grant": "device_code" });
    env.write_config(&json!({ "srv": entry }));
    let output = env
        .command()
        .args(["auth", "srv", "--non-interactive"])
        .output()
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("ABCD-EFGH"), "{said}");
    hides(&said);
}

/// The process dies at each place where it writes, in turn, while it refreshes and uses a token.
fn a_crash_at_any_write_loses_no_token() {
    std::thread::scope(|scope| {
        for point in ["create", "write", "half", "sync", "rename", "folder"] {
            scope.spawn(move || crashes_at(point));
        }
    });
}

/// Dies when it comes to this point of a write for the first time, then for the second, until it comes no more.
fn crashes_at(point: &str) {
    let server = AuthorizationServer::start();
    let store = |env: &TestEnv| -> Value {
        let text = std::fs::read_to_string(env.data().join("mcp-auth.json")).expect("it is never gone");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    };
    let url = text(&server.entry()["url"]).to_owned();
    let record = json!({
        "issuer": server.issuer.origin, "tokenEndpoint": format!("{}/token", server.issuer.origin),
        "client": { "id": "c-0", "kind": "dynamic" }, "accessToken": "at-0-secret", "expiresAt": 1, "refreshToken": "rt-0-secret",
    });
    let other = json!({ "accessToken": "at-9-secret", "client": { "id": "c-9" } });
    for count in 1.. {
        assert!(count < 30, "{point}: it dies again and again");
        let mut env = TestEnv::new();
        env.write_config(&json!({ "srv": server.entry() }));
        let whole =
            json!({ "version": 1, "servers": { url.as_str(): record, "https://other.example/mcp": other } });
        std::fs::write(env.data().join("mcp-auth.json"), whole.to_string()).expect("a small file");
        env.set("PILLION_FAULT", &format!("crash:{point}:{count}"));
        let before = server.resource.log().len();
        let call = |env: &TestEnv| {
            let output = env.command().args(["call", "srv", "echo"]).output();
            output.expect("the binary starts").status
        };
        let is_alive = call(&env).success();
        let after = store(&env);
        let kept = text(&after["servers"][&url]["refreshToken"]).to_owned();
        let is_used = server.resource.log()[before..]
            .iter()
            .any(|seen| seen.headers.get("authorization") == Some(&json!("Bearer at-2-secret")));
        assert!(
            kept == "rt-2-secret" || (kept == "rt-0-secret" && !is_used),
            "{point} {count}: {kept} is stored, used: {is_used}"
        );
        assert_eq!(
            after["servers"]["https://other.example/mcp"], other,
            "{point} {count}"
        );
        env.set("PILLION_FAULT", "");
        assert!(
            call(&env).success(),
            "{point} {count}: nothing is in the way of the next one"
        );
        if is_alive {
            assert_eq!(kept, "rt-2-secret");
            return;
        }
    }
}

/// A full run, with a login, a refresh, a refusal and a logout: none of the secrets may show up anywhere but in the store.
fn no_secret_is_told() {
    let (mut env, _server) = with(AuthorizationServer::with(|_, _| {
        let broken = json!({ "match": "POST /mcp", "when": { "auth": "Bearer at-1-secret", "rpc": "tools/call" },
            "respond": { "status": 401, "text": "at-1-secret is over" } });
        (json!([broken]), json!([]))
    }));
    for name in ["PILLION_LOG", "RUST_LOG"] {
        env.set(name, "trace");
    }
    let host = Host::start(&env);
    host.start_server("srv");
    let ack = start_login(&host);
    browser::open(text(&ack["url"]));
    host.wait_state("srv", "ready");
    host.call("srv", "echo", json!({}))
        .expect("it was repeated with a new token");
    let store = std::fs::read_to_string(env.data().join("mcp-auth.json")).expect("a store");
    assert!(store.contains("rt-2-secret"));
    host.must("mcp.logs", json!({ "server": "srv", "limit": 5000 }));
    host.must("mcp.debug", json!({ "server": "srv" }));
    host.must("mcp.auth.list", json!({}));
    for command in [
        ["status"].as_slice(),
        &["auth", "list"],
        &["debug", "srv"],
        &["config", "--json"],
    ] {
        quiet(env.command().args(command));
    }
    host.must("mcp.auth", json!({ "server": "srv", "action": "forget" }));
    for one in host.messages() {
        let message = &one.message;
        for part in [&message.params, &message.result, &message.error]
            .into_iter()
            .flatten()
        {
            hides(part.get());
        }
    }
    hides(&host.stderr());
    drop(host);
    // Nor in any file besides: caches, accepted definitions, configuration, locks.
    let mut folders = vec![env.data(), env.home(), env.project(), env.tmp()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name() != "mcp-auth.json" {
                let bytes = std::fs::read(&path).expect("a file of ours");
                hides(&String::from_utf8_lossy(&bytes));
            }
        }
    }
}

fn quiet(command: &mut Command) {
    let output = command.output().expect("the binary starts");
    hides(&String::from_utf8_lossy(&output.stdout));
    hides(&String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
fn hides(text: &str) {
    for secret in ["-secret", "code_verifier"] {
        assert!(!text.contains(secret), "`{secret}` is in {text}");
    }
}

/// No setting makes such an address a good one, so none is proposed.
fn what_is_no_web_address_has_a_next_step() {
    for address in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "vscode://x/y",
        "https://u@127.0.0.1/x",
    ] {
        let server = AuthorizationServer::with(|_, issuer| {
            let metadata = json!({
                "issuer": issuer, "authorization_endpoint": address, "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"), "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            });
            let rule = json!({ "match": "GET /.well-known/oauth-authorization-server", "respond": { "json": metadata } });
            (json!([]), json!([rule]))
        });
        let (env, _server) = with(server);
        let host = Host::start(&env);
        let refused = host
            .ask("mcp.auth", json!({ "server": "srv" }))
            .expect_err("refused");
        assert!(
            refused.message.contains("is refused: it "),
            "{address}: {}",
            refused.message
        );
        let hint = text(&refused.data["hint"]);
        assert!(
            hint.contains("ask who runs the server") && !hint.contains("tolerate"),
            "{address}: {hint}"
        );
    }
}
