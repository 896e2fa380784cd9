//! Install links: `cursor://…/mcp/install?name=…&config=…` and `vscode:mcp/install?…`, also behind their web pages.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use url::Url;

use super::command::{Commanded, of_json};

/// Reads an install link; `None` where the text is none.
pub(crate) fn read(text: &str) -> Option<Result<Commanded, String>> {
    let (scheme, _) = text.split_once(':')?;
    match scheme {
        "vscode" | "vscode-insiders" | "vscodium" => {
            let (_, query) = text.split_once("mcp/install?")?;
            Some(vscode(query))
        }
        "cursor" => Some(cursor(text)),
        "https"
            if text.starts_with("https://cursor.com/")
                && text.contains("mcp")
                && text.contains("config=") =>
        {
            Some(cursor(text))
        }
        "https" if text.contains("/redirect/mcp/install?") => Some(web(text)),
        "https"
            if text.starts_with("https://insiders.vscode.dev/redirect")
                || text.starts_with("https://vscode.dev/redirect") =>
        {
            let inner = query_value(text, "url")?;
            read(&inner)
        }
        _ => None,
    }
}

fn query_value(text: &str, wanted: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    url.query_pairs()
        .find(|(name, _)| name == wanted)
        .map(|(_, value)| value.into_owned())
}

fn vscode(query: &str) -> Result<Commanded, String> {
    let json = percent_decoded(query)?;
    of_json(&json, "")
}

/// The web page gives name and configuration one by one.
fn web(text: &str) -> Result<Commanded, String> {
    let name = query_value(text, "name").unwrap_or_default();
    let config = query_value(text, "config").ok_or("the link holds no `config`")?;
    of_json(&config, &name)
}

fn cursor(text: &str) -> Result<Commanded, String> {
    let name = query_value(text, "name").unwrap_or_default();
    let config = query_value(text, "config").ok_or("the link holds no `config`")?;
    // A `+` that nobody escaped reads as a blank.
    let config = config.replace([' ', '-'], "+").replace('_', "/");
    let lenient = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let bytes = lenient
        .decode(config.trim())
        .map_err(|_| "the `config` of the link is no base64".to_owned())?;
    let json = String::from_utf8(bytes).map_err(|_| "the `config` of the link is no text".to_owned())?;
    of_json(&json, &name)
}

fn percent_decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next().unwrap_or_default(), rest.next().unwrap_or_default()];
        let value = std::str::from_utf8(&digits)
            .ok()
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or("the link is cut off: an escape is not whole")?);
    }
    String::from_utf8(bytes).map_err(|_| "the link is no UTF-8".to_owned())
}
