//! A browser and the person before it: opens a page, signs in where it is asked to, and goes wherever it is sent.
//!
//! Plain HTTP on this machine only, which is where the servers of test suites are. Forms and cookies, no scripts.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// What the person says to what is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Say {
    Yes,
    No,
}

/// What the person types into every field.
const NAME: &str = "ada";

/// Opens an address on a thread of its own; whoever sent the browser there learns the outcome by itself.
pub fn open(url: &str) {
    let url = url.to_owned();
    std::thread::spawn(move || {
        if let Err(error) = visit(&url, Say::Yes) {
            eprintln!("browser: {error:#}");
        }
    });
}

/// Goes on until a page asks nothing more; answers its heading.
pub fn visit(url: &str, say: Say) -> Result<String> {
    let mut cookies = Vec::new();
    let mut next = Next {
        url: url.to_owned(),
        form: None,
    };
    for _ in 0..15 {
        let answer = fetch(&next, &mut cookies)?;
        let target = match &answer.location {
            Some(location) => Some((location.clone(), None)),
            None => reaction(&answer.body, say),
        };
        let Some((target, form)) = target else {
            let heading = between(&answer.body, "<h1>", "</h1>");
            return Ok(heading.unwrap_or_default().to_owned());
        };
        let url = match target.starts_with('/') {
            true => format!("http://{}{target}", authority(&next.url)?.0),
            false => target,
        };
        next = Next { url, form };
    }
    bail!("sent around too often")
}

struct Next {
    url: String,
    /// What to post.
    form: Option<String>,
}

struct Answer {
    location: Option<String>,
    body: String,
}

struct Cookie {
    authority: String,
    path: String,
    name: String,
    value: String,
}

fn fetch(next: &Next, cookies: &mut Vec<Cookie>) -> Result<Answer> {
    let (authority, path) = authority(&next.url)?;
    let mut stream = TcpStream::connect(authority).with_context(|| authority.to_owned())?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let fitting = cookies
        .iter()
        .filter(|cookie| cookie.authority == authority && path.starts_with(&cookie.path));
    let sent: Vec<String> = fitting
        .map(|cookie| format!("{}={}", cookie.name, cookie.value))
        .collect();
    let mut head = format!("Host: {authority}\r\nConnection: close\r\n");
    if !sent.is_empty() {
        head = format!("{head}Cookie: {}\r\n", sent.join("; "));
    }
    match &next.form {
        None => write!(stream, "GET {path} HTTP/1.1\r\n{head}\r\n")?,
        Some(form) => write!(
            stream,
            "POST {path} HTTP/1.1\r\n{head}Content-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n{form}",
            form.len()
        )?,
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    let mut location = None;
    for line in head.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "location" => location = Some(value.trim().to_owned()),
            "set-cookie" => keep(cookies, authority, value.trim()),
            _ => {}
        }
    }
    Ok(Answer {
        location,
        body: body.to_owned(),
    })
}

fn authority(url: &str) -> Result<(&str, String)> {
    let rest = url.strip_prefix("http://").context("only http is opened")?;
    Ok(match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('?') => (&rest[..at], format!("/{}", &rest[at..])),
        Some(at) => (&rest[..at], rest[at..].to_owned()),
        None => (rest, "/".to_owned()),
    })
}

fn keep(cookies: &mut Vec<Cookie>, authority: &str, text: &str) {
    let mut parts = text.split(';').map(str::trim);
    let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
        return;
    };
    let path = parts.find_map(|part| part.strip_prefix("path=")).unwrap_or("/");
    cookies.retain(|cookie| cookie.authority != authority || cookie.path != path || cookie.name != name);
    cookies.push(Cookie {
        authority: authority.to_owned(),
        path: path.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
    });
}

/// The form of a page filled in, or its way out.
fn reaction(page: &str, say: Say) -> Option<(String, Option<String>)> {
    if say == Say::No {
        let links = page.split("<a href=\"").skip(1);
        let mut targets = links.filter_map(|rest| rest.split('"').next());
        return targets
            .find(|target| target.ends_with("/abort"))
            .map(|target| (target.replace("&amp;", "&"), None));
    }
    let form = between(page, "<form", "</form>")?;
    let action = between(form, "action=\"", "\"")?.replace("&amp;", "&");
    let fields = form.split("<input").skip(1).filter_map(|rest| {
        let tag = rest.split('>').next()?;
        let name = between(tag, "name=\"", "\"")?;
        // Words only: nothing has to be encoded.
        Some(format!(
            "{name}={}",
            between(tag, "value=\"", "\"").unwrap_or(NAME)
        ))
    });
    let fields: Vec<String> = fields.collect();
    Some((action, Some(fields.join("&"))))
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(found, _)| found)
}
