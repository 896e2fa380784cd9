//! What a host sends of what it brings itself: messages of servers in its own process, and its entries.
//!
//! Both are notifications, so nothing is answered. What cannot be used is told by `window/logMessage`.

use manager::{HostSink, Manager};
use protocol::{Error, ErrorKind, HostNotification, LogMessage, MessageType, Notification};
use serde_json::value::RawValue;

use super::check;
use super::host::Host;

/// Carries a notification out. They are taken one after another, in the order in which they came.
pub fn notified(manager: &Manager, host: &Host, name: HostNotification, params: Option<&RawValue>) {
    let params = params.map(RawValue::get);
    let outcome = match name {
        HostNotification::Message => check::host_message(params).and_then(|said| manager.host_message(&said)),
        HostNotification::Layers => check::host_layers(params).map(|layers| manager.host_layers(layers)),
    };
    let Err(error) = outcome else { return };
    let kind = match error.kind {
        // Said before the host knew of the end: no fault of anybody's.
        ErrorKind::CallCancelled => MessageType::Log,
        _ => MessageType::Warning,
    };
    tracing::warn!(%error, notification = name.as_str(), "a notification of the host was dropped");
    host.notify(Notification::LogMessage(LogMessage {
        kind,
        message: text(name, &error),
    }));
}

fn text(name: HostNotification, error: &Error) -> String {
    let place = error.data.path.as_deref().filter(|path| !path.is_empty());
    let place = place.map(|path| format!(" (at `{path}`)")).unwrap_or_default();
    format!("`{}` was dropped: {}{place}", name.as_str(), error.message)
}

/// A frame that was too large may hold an answer that somebody waits for: `head` and `tail` are its ends.
pub fn too_large(manager: &Manager, head: &[u8], tail: &[u8]) {
    let find = |text: &[u8], what: &str| memchr::memmem::find(text, what.as_bytes());
    if find(head, r#""mcp.host.message""#).is_none() {
        return;
    }
    let Some(at) = find(head, r#""message""#) else {
        return;
    };
    let before = number_after(&head[..at], r#""connection""#);
    let Some(connection) = before.or_else(|| number_after(tail, r#""connection""#)) else {
        return;
    };
    let message = head[at + r#""message""#.len()..].trim_ascii_start();
    let message = message.strip_prefix(b":").unwrap_or(message).trim_ascii_start();
    let end = tail.trim_ascii_end();
    // The message, its params and the frame end together where the message stands last.
    let end = end.strip_suffix(b"}}").unwrap_or(end);
    manager.host_message_too_large(connection, message, end);
}

/// The whole number of the last member of that name.
fn number_after(text: &[u8], name: &str) -> Option<u64> {
    let at = memchr::memmem::rfind(text, name.as_bytes())?;
    let rest = text[at + name.len()..].trim_ascii_start().strip_prefix(b":")?;
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}
