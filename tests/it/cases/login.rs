//! Logins of a case: the person with the browser, the listener as seen from outside, and the token store.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::run::{Trace, note, note_state};
use super::world::World;
use crate::support::matching::matches;
use crate::support::{Host, TestEnv, browser, clock};

/// What happened around logins.
#[derive(Default)]
pub struct Logins {
    /// The addresses handed over.
    urls: Vec<String>,
    redirect_uri: Option<String>,
    statuses: Vec<Option<u16>>,
    probe: Map<String, Value>,
    pub stored_after_first: Option<Value>,
}

/// `start`, `follow`, or `{"get": […]}`.
pub fn authorize(world: &World, host: &Host, how: &Value, trace: &Mutex<Trace>) -> Result<(), String> {
    let logins =
        |work: &mut dyn FnMut(&mut Logins)| work(&mut trace.lock().expect("no panic while held").logins);
    let is_open = host.status(world.main())["state"] == "authorizing";
    if !is_open {
        let started = host.ask("mcp.auth", json!({ "server": world.main() }));
        if let Ok(ack) = &started {
            logins(&mut |logins| {
                logins.urls.extend(ack["url"].as_str().map(str::to_owned));
                logins.redirect_uri = ack["redirectUri"].as_str().map(str::to_owned);
            });
        }
        let failed = started.is_err();
        note(trace, started);
        if failed || how == "start" {
            note_state(world, host, trace);
            return Ok(());
        }
    }
    let (url, redirect) = {
        let locked = trace.lock().expect("no panic while held");
        let url = locked
            .logins
            .urls
            .last()
            .cloned()
            .ok_or("no address was handed over")?;
        (url, locked.logins.redirect_uri.clone().unwrap_or_default())
    };
    let one = json!(["follow"]);
    let pages = if how == "follow" { &one } else { &how["get"] };
    for page in pages.as_array().ok_or("`authorize` takes start, follow or get")? {
        let page = page
            .as_str()
            .unwrap_or_default()
            .replace("{state}", &parameter(&url, "state"));
        let target = match page.as_str() {
            "follow" => url.clone(),
            query if query.starts_with('?') => format!("{redirect}{query}"),
            path => {
                let origin: String = redirect.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
                format!("{origin}{path}")
            }
        };
        let status = browser::open(&target);
        logins(&mut |logins| logins.statuses.push(status));
    }
    clock::poll(Duration::from_secs(10), || {
        let state = host.status(world.main())["state"].clone();
        (state != "authorizing" && state != "connecting").then_some(())
    });
    note_state(world, host, trace);
    Ok(())
}

/// Tries to connect to the port of the listener at several addresses.
pub fn probe(addresses: &Value, trace: &Mutex<Trace>) -> Result<(), String> {
    let mut locked = trace.lock().expect("no panic while held");
    let redirect = locked.logins.redirect_uri.clone().ok_or("nothing listens")?;
    let port = redirect
        .split('/')
        .nth(2)
        .and_then(|host| host.rsplit(':').next()?.parse().ok());
    let port: u16 = port.ok_or("the redirect URI has no port")?;
    for name in addresses
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let address = match name {
            "0.0.0.0-other-interface" => other_interface(),
            name => name.parse().ok(),
        };
        let opens = address.is_some_and(|address| {
            TcpStream::connect_timeout(&SocketAddr::new(address, port), Duration::from_millis(500)).is_ok()
        });
        let word = if opens { "open" } else { "closed" };
        locked.logins.probe.insert(name.to_owned(), json!(word));
    }
    Ok(())
}

/// The address other machines would use; nothing is sent to find it.
fn other_interface() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Writes the store as an earlier login would have left it.
pub fn preset(store: &Value, server: &Value, origin: &str, env: &TestEnv) {
    let url = &server["url"];
    let text = |name: &str| store.get(name).cloned().unwrap_or_default();
    let mut record = json!({
        "issuer": origin,
        "resource": url,
        "tokenEndpoint": format!("{origin}/token"),
        "client": { "id": text("client_id"), "kind": "dynamic" },
        "accessToken": text("access_token"),
        "refreshToken": text("refresh_token"),
        "scope": text("scope"),
    });
    if let Some(secret) = store.get("client_secret") {
        record["client"]["secret"] = secret.clone();
    }
    if let Some(seconds) = store["expires_in"].as_u64() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = u64::try_from(now.expect("a clock after 1970").as_millis()).expect("this century");
        record["expiresAt"] = json!(now + seconds * 1000);
    }
    let store = json!({ "version": 1, "servers": { url.as_str().unwrap_or_default(): record } });
    std::fs::write(env.data().join("mcp-auth.json"), store.to_string())
        .expect("the data folder can be written");
}

/// What is stored for the server of the case, in the words of the cases.
pub fn stored(world: &World) -> Value {
    let text = std::fs::read_to_string(world.env.data().join("mcp-auth.json")).unwrap_or_default();
    let store: Value = serde_json::from_str(&text).unwrap_or_default();
    let url = world.input["server"]["url"].as_str().unwrap_or_default();
    let record = &store["servers"][url];
    json!({
        "access_token": record["accessToken"],
        "refresh_token": record["refreshToken"],
        "client_id": record["client"]["id"],
        "scope": record["scope"],
    })
}

pub const EXPECT: &[&str] = &[
    "auth_url",
    "callback_status",
    "flow",
    "probe",
    "stored",
    "stored_after_first",
];

pub fn check(world: &World, trace: &Trace, key: &str, wanted: &Value) -> Result<(), String> {
    let logins = &trace.logins;
    let equal = |found: &Value| matches(wanted, Some(found));
    match key {
        "auth_url" => auth_url(wanted, logins.urls.last()),
        "callback_status" => {
            let wanted = wanted.as_array().ok_or("a list of statuses")?;
            let fits = |(wanted, found): (&Value, &Option<u16>)| {
                let found = found.map(|status| status.to_string()).unwrap_or_default();
                let wanted = wanted.as_str().unwrap_or_default();
                found == wanted || (wanted.ends_with("xx") && found.starts_with(&wanted[..1]))
            };
            if wanted.len() == logins.statuses.len() && wanted.iter().zip(&logins.statuses).all(fits) {
                Ok(())
            } else {
                Err(format!("{:?}, not {wanted:?}", logins.statuses))
            }
        }
        "flow" => {
            let error = world.sidecars[0].status(world.main())["error"].clone();
            let ended = match error["kind"].as_str() {
                Some("auth_denied") => "denied",
                Some("auth_failed" | "state_mismatch") => "failed",
                _ => "unknown",
            };
            equal(&json!(ended)).map_err(|reason| format!("{reason}; {error}"))
        }
        "probe" => equal(&Value::Object(logins.probe.clone())),
        "stored" => equal(&stored(world)),
        _ => equal(logins.stored_after_first.as_ref().unwrap_or(&Value::Null)),
    }
}

fn auth_url(wanted: &Value, url: Option<&String>) -> Result<(), String> {
    let (Some(members), Some(url)) = (wanted.as_object(), url) else {
        return matches(wanted, Some(&json!(url)));
    };
    let pairs = pairs(url);
    for (key, value) in members {
        let verdict = match key.as_str() {
            "query" => value
                .as_object()
                .into_iter()
                .flatten()
                .try_for_each(|(name, value)| {
                    let found = pairs.iter().find(|(key, _)| key == name);
                    matches(value, found.map(|(_, value)| json!(value)).as_ref())
                        .map_err(|reason| format!("{name}: {reason}"))
                }),
            "each_once" => {
                let mut names: Vec<&String> = pairs.iter().map(|(name, _)| name).collect();
                names.sort();
                names.dedup();
                matches(value, Some(&json!(names.len() == pairs.len())))
            }
            "question_marks" => matches(value, Some(&json!(url.matches('?').count()))),
            "no_raw" => {
                let raw = value
                    .as_str()
                    .unwrap_or_default()
                    .chars()
                    .find(|raw| url.contains(*raw));
                raw.map_or(Ok(()), |raw| Err(format!("`{raw}` is in it")))
            }
            other => Err(format!("this runner does not know `{other}`")),
        };
        verdict.map_err(|reason| format!("{reason}; {url}"))?;
    }
    Ok(())
}

fn parameter(url: &str, name: &str) -> String {
    let found = pairs(url).into_iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value).unwrap_or_default()
}

fn pairs(url: &str) -> Vec<(String, String)> {
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}
