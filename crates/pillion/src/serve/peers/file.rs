//! `peers.json`: where the endpoints of this data folder are, and their tokens, for programs of the same person.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use protocol::Tier;
use serde_json::{Value, json};

use crate::serve::limits;

/// One secret per tier, made anew each time.
pub struct Tokens {
    full: String,
    read_only: String,
}

impl Tokens {
    pub fn new() -> std::io::Result<Tokens> {
        let token = || {
            let mut bytes = [0u8; 32];
            fill_random(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        };
        Ok(Tokens {
            full: token()?,
            read_only: token()?,
        })
    }

    pub fn tier(&self, given: &str) -> Option<Tier> {
        // Both are compared whatever the first says: how long it takes tells nothing.
        let (full, read_only) = (same(given, &self.full), same(given, &self.read_only));
        match (full, read_only) {
            (true, _) => Some(Tier::Full),
            (false, true) => Some(Tier::ReadOnly),
            (false, false) => None,
        }
    }
}

fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    use std::io::Read as _;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

/// Takes the same time wherever the difference is. The length of a token is no secret.
fn same(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    given.len() == token.len()
        && std::hint::black_box(given.iter().zip(token).fold(0u8, |all, (a, b)| all | (a ^ b))) == 0
}

/// Writes our endpoint into `peers.json`, or takes it out again, and with it those that nobody answers at any more; the
/// last one takes the file along.
pub fn publish(file: &Path, own: Option<SocketAddr>, tokens: Option<&Tokens>) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        files::create_private_dir(folder)?;
    }
    let _lock = files::Lock::take(file, limits::PEER_FILE_WAIT)?;
    let text = files::read_text(file, limits::PEER_BODY_BYTES as u64)?.unwrap_or_default();
    let known: Value = serde_json::from_str(&text).unwrap_or_default();
    let own = own.map(|address| address.to_string());
    let is_other = |endpoint: &&Value| endpoint["address"].as_str() != own.as_deref() && answers(endpoint);
    let mut endpoints: Vec<Value> = known["endpoints"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(is_other)
        .cloned()
        .collect();
    if let (Some(tokens), Some(address)) = (tokens, &own) {
        endpoints.push(json!({
            "address": address,
            "pid": std::process::id(),
            "tokens": {"full": tokens.full, "readOnly": tokens.read_only},
        }));
    }
    if endpoints.is_empty() {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    if known["endpoints"].as_array() == Some(&endpoints) {
        return Ok(());
    }
    let text = serde_json::to_vec_pretty(&json!({"endpoints": endpoints}))?;
    files::write_private(file, &text)
}

/// Whether an endpoint is still there: its process was perhaps killed, and its number given to another one.
fn answers(endpoint: &Value) -> bool {
    let address = endpoint["address"]
        .as_str()
        .and_then(|text| text.parse::<SocketAddr>().ok());
    let pid = endpoint["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw);
    let is_alive = pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    is_alive
        && address.is_some_and(|address| {
            address.ip().is_loopback() && TcpStream::connect_timeout(&address, limits::PEER_ANSWERS).is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_apart() {
        let tokens = Tokens::new().unwrap();
        assert_eq!(tokens.tier(&tokens.full), Some(Tier::Full));
        assert_eq!(tokens.tier(&tokens.read_only), Some(Tier::ReadOnly));
        assert_eq!(tokens.tier(""), None);
        assert_eq!(tokens.tier(&tokens.full[1..]), None);
        assert_ne!(tokens.full, Tokens::new().unwrap().full);
    }
}
