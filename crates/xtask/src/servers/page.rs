//! One page on loopback, for the server that fetches pages.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use anyhow::Result;

const PAGE: &str = "<html><head><title>A page</title></head><body><article><h1>Tandem riding</h1>\
<p>The pillion seat is behind the rider.</p><p>It comes along, it does not steer.</p></article></body></html>";

/// Serves the page to everyone until the program ends; `robots.txt` is not there, so everything is allowed.
pub fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let mut request = String::new();
            if reader.read_line(&mut request).is_err() {
                continue;
            }
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
                line.clear();
            }
            let (status, body) = if request.contains("robots.txt") {
                ("404 Not Found", "")
            } else {
                ("200 OK", PAGE)
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}");
            // A reader that hung up has nothing to be told.
            let _ = write!(&stream, "{head}\r\nConnection: close\r\n\r\n{body}");
        }
    });
    Ok(format!("http://{address}/tandem"))
}
