//! Proxies, the fixed ports of logins, and what other sidecars left in `peers.json`.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use protocol::OauthSetting;
use serde_json::Value;
use tokio::net::TcpStream;
use url::Url;

use super::code::Code;
use super::repair::Fix;
use super::{Found, Ground, shown};
use crate::limits;

/// The variables of proxies, in upper case.
const PROXIES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

pub(super) async fn look(ground: &Arc<Ground>) -> Vec<Found> {
    let mut found = proxies(ground).await;
    found.extend(caught(ground));
    found.extend(ports(ground));
    found.extend(peers(ground));
    found
}

async fn proxies(ground: &Ground) -> Vec<Found> {
    let env = &ground.core.env;
    let mut found = Vec::new();
    let mut tried: Vec<String> = Vec::new();
    for name in PROXIES.into_iter().chain(["NO_PROXY"]) {
        let (upper, lower) = (env.variable(name), env.variable(&name.to_lowercase()));
        if let (Some(upper), Some(lower)) = (&upper, &lower)
            && upper != lower
        {
            let message = format!("`{name}` and `{}` differ", name.to_lowercase());
            found.push(
                Found::new(Code::ProxyDiffers, message)
                    .hint("programs prefer one or the other: set both alike"),
            );
        }
        let Some(value) = lower.or(upper).filter(|value| !value.trim().is_empty()) else {
            continue;
        };
        if name == "NO_PROXY" {
            continue;
        }
        let url = match value.contains("://") {
            true => Url::parse(&value),
            false => Url::parse(&format!("http://{value}")),
        };
        // The value may hold a password: only host and port are shown.
        let place = url.ok().and_then(|url| {
            let host = url.host_str()?.to_owned();
            let port = url
                .port_or_known_default()
                .or(Some(1080).filter(|_| url.scheme().starts_with("socks")))?;
            Some((host, port))
        });
        let Some((host, port)) = place else {
            let message = format!("`{name}` holds no address of a proxy");
            found.push(
                Found::new(Code::ProxyInvalid, message).hint("write it as http://HOST:PORT, or unset it"),
            );
            continue;
        };
        let address = format!("{host}:{port}");
        if tried.contains(&address) {
            continue;
        }
        let connect = TcpStream::connect((host.trim_start_matches('[').trim_end_matches(']'), port));
        let why = match tokio::time::timeout(limits::PROXY_CONNECT, connect).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no answer".to_owned()),
        };
        found.push(match why {
            None => Found::new(Code::Proxy, format!("proxy {address}")).shown_by([name.to_owned()]),
            Some(why) => Found::new(
                Code::ProxyUnreachable,
                format!("the proxy {address} cannot be reached: {why}"),
            )
            .shown_by([format!("set by {name}")])
            .hint("correct or unset the variable; nothing remote works without the proxy it names"),
        });
        tried.push(address);
    }
    found
}

/// Servers of this machine that would be asked for at a proxy, which has no way back to them.
fn caught(ground: &Ground) -> Vec<Found> {
    let matcher = Matcher::from_env();
    let caught = ground.enabled().filter_map(|server| {
        let url = Url::parse(server.entry().url.as_deref()?).ok()?;
        let is_loopback = match url.host()? {
            url::Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            url::Host::Ipv4(ip) => ip.is_loopback(),
            url::Host::Ipv6(ip) => ip.is_loopback(),
        };
        let uri: http::Uri = url.as_str().parse().ok()?;
        (is_loopback && matcher.intercept(&uri).is_some()).then(|| {
            let host = url.host_str().unwrap_or_default().to_owned();
            let message = format!(
                "`{}` is on this machine, and would be asked for at the proxy",
                server.name
            );
            Found::new(Code::ProxyCatchesLoopback, message)
                .of(server)
                .hint(format!("add `{host}` to NO_PROXY"))
        })
    });
    caught.collect()
}

/// The fixed ports that browsers come back to after a login.
fn ports(ground: &Ground) -> Vec<Found> {
    let mut found = Vec::new();
    for server in ground.enabled() {
        let entry = server.entry();
        let Some(OauthSetting::On(oauth)) = &entry.oauth else {
            continue;
        };
        let redirect = oauth.redirect_uri.as_deref().and_then(|uri| Url::parse(uri).ok());
        let Some(port) = oauth
            .callback_port
            .or_else(|| redirect.as_ref().and_then(Url::port))
        else {
            continue;
        };
        if server.is_authorizing() {
            continue;
        }
        if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            let message = format!(
                "port {port}, to which the login of `{}` comes back, is taken: {error}",
                server.name
            );
            found.push(
                Found::new(Code::CallbackPortBusy, message)
                    .of(server)
                    .shown_by(holder(port))
                    .hint("end that program, or register another port and set it with `pillion edit`"),
            );
        }
    }
    found
}

/// The process that listens on a port, as far as this user may see it.
fn holder(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let text: String = tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .collect();
    let suffix = format!(":{port:04X}");
    let inode = text.lines().find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        // Local address, state 0A (listening), inode: proc(5).
        let listens = columns.get(1)?.ends_with(&suffix) && *columns.get(3)? == "0A";
        listens.then(|| columns.get(9).map(|inode| format!("socket:[{inode}]")))?
    })?;
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let descriptors = std::fs::read_dir(process.path().join("fd")).into_iter().flatten();
        let holds = descriptors
            .flatten()
            .any(|fd| std::fs::read_link(fd.path()).is_ok_and(|link| link.as_os_str() == inode.as_str()));
        if holds {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("held by process {pid} ({})", name.trim()));
        }
    }
    None
}

fn peers(ground: &Ground) -> Option<Found> {
    let path = ground.core.env.data_dir().join("peers.json");
    let text = files::read_text(&path, limits::CONFIG_FILE_BYTES).ok()??;
    let document: Value = serde_json::from_str(&text).ok()?;
    let gone: Vec<String> = document["endpoints"]
        .as_array()?
        .iter()
        .filter(|endpoint| is_gone(endpoint))
        .filter_map(|endpoint| {
            Some(format!(
                "{} of process {}",
                endpoint["address"].as_str()?,
                endpoint["pid"]
            ))
        })
        .collect();
    if gone.is_empty() {
        return None;
    }
    let message = format!("`{}` names sidecars that are gone", shown(&path));
    Some(
        Found::new(Code::PeersStale, message)
            .shown_by(gone)
            .fix(Fix::ForgetPeers(path)),
    )
}

/// Whether the process of an endpoint of `peers.json` is over.
pub(super) fn is_gone(endpoint: &Value) -> bool {
    let pid = endpoint["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    #[cfg(unix)]
    {
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
            return true;
        };
        matches!(
            rustix::process::test_kill_process(pid),
            Err(rustix::io::Errno::SRCH)
        )
    }
    #[cfg(not(unix))]
    {
        pid.is_none()
    }
}

/// How far the clock of a web server is from ours (RFC 9110 §6.6.1), in seconds.
pub(super) async fn clock_of(client: &reqwest::Client, url: &Url) -> Option<i64> {
    let asked = client.head(url.clone()).timeout(Duration::from_secs(5)).send();
    let response = asked.await.ok()?;
    let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
    let theirs = httpdate::parse_http_date(date).ok()?;
    let theirs = theirs.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    Some(theirs as i64 - (crate::env::now() / 1000) as i64)
}
