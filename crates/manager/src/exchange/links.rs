//! Install links: `cursor://…/mcp/install?name=…&config=…`, `lmstudio://…`, `goose://…` and `vscode:mcp/install?…`, also
//! behind their web pages.

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
        "cursor" | "lmstudio" => Some(encoded(text)),
        "goose" if text.starts_with("goose://extension?") => Some(goose(text)),
        "https" if text.starts_with("https://lmstudio.ai/install-mcp?") => Some(encoded(text)),
        "https" if text.starts_with("https://kiro.dev/launch/mcp/add?") => Some(web(text)),
        "https"
            if text.starts_with("https://cursor.com/")
                && text.contains("mcp")
                && text.contains("config=") =>
        {
            Some(encoded(text))
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
    let mut commanded = of_json(&config, &name)?;
    if let Some(inputs) = query_value(text, "inputs") {
        let asked = of_json(
            &format!("{{\"inputs\": {inputs}, \"servers\": {{\"x\": {config}}}}}"),
            &name,
        )?;
        commanded.inputs = asked.inputs;
    }
    Ok(commanded)
}

/// A command word by word, or an address; `env=NAME=DESCRIPTION` names what a person must give.
fn goose(text: &str) -> Result<Commanded, String> {
    let url = Url::parse(text).map_err(|_| "the link cannot be read".to_owned())?;
    let mut commanded = Commanded::default();
    let mut args = Vec::new();
    let mut name = None;
    for (key, value) in url.query_pairs() {
        let value = value.into_owned();
        match key.as_ref() {
            "cmd" => commanded.entry.command = Some(value),
            "arg" => args.push(value),
            "url" => commanded.entry.url = Some(value.into()),
            "type" if value == "sse" => commanded.entry.transport = Some(protocol::EntryTransport::Sse),
            "id" => commanded.name = value,
            "name" => name = Some(value),
            "env" => commanded.needs.extend(value.split('=').next().map(str::to_owned)),
            _ => {}
        }
    }
    if commanded.entry.command.is_none() && commanded.entry.url.is_none() {
        return Err("the link holds neither a command nor an address".to_owned());
    }
    if commanded.name.is_empty() {
        commanded.name = name.unwrap_or_default();
    }
    commanded.entry.args = (!args.is_empty()).then_some(args);
    let value = serde_json::to_value(&commanded.entry).unwrap_or_default();
    match crate::config::validate::problems(&value).first() {
        Some(problem) => Err(problem.message.clone()),
        None => Ok(commanded),
    }
}

/// With the configuration in base64.
fn encoded(text: &str) -> Result<Commanded, String> {
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
