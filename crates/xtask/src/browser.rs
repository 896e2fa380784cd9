//! A browser with nobody in front of it: it opens a page and goes wherever it is sent.
//!
//! Plain HTTP on this machine only, which is where the servers of test suites are.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Opens an address on a thread of its own; whoever sent the browser there learns the outcome by itself.
pub fn open(url: &str) {
    let url = url.to_owned();
    std::thread::spawn(move || {
        if let Err(error) = follow(&url) {
            eprintln!("browser: {error:#}");
        }
    });
}

fn follow(url: &str) -> Result<()> {
    let mut url = url.to_owned();
    for _ in 0..10 {
        let rest = url.strip_prefix("http://").context("only http is opened")?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let slash = if path.starts_with('?') { "/" } else { "" };
        let mut stream = TcpStream::connect(authority).with_context(|| authority.to_owned())?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        write!(
            stream,
            "GET {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let head = answer.split("\r\n\r\n").next().unwrap_or_default();
        let location = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("location")
                .then(|| value.trim().to_owned())
        });
        match location {
            Some(next) if next.starts_with('/') => url = format!("http://{authority}{next}"),
            Some(next) => url = next,
            None => return Ok(()),
        }
    }
    bail!("sent around too often")
}
