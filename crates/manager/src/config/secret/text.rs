//! Where secrets stand inside of one text: in an address, an option, a header, a connection string, a piece of JSON.

use std::ops::Range;

use super::{is_literal, is_scheme_and_reference, is_secret_name};
use crate::config::expand;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// What it is called there: `password` of an address, the name of an option. Empty where it is the whole text.
    pub word: String,
}

/// From this length on a name before the `@` of an address is a token, not a person.
const TOKEN_CHARS: usize = 20;

/// The secrets of a text, in their order; none overlaps another.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let shade = shade(text);
    let mut found = in_addresses(&shade);
    found.extend(after_equals(&shade));
    found.extend(after_colons(&shade));
    chosen(text, found)
}

/// The secrets of the addresses in a text, those of their queries too.
pub(super) fn pieces_of_addresses(text: &str) -> Vec<Piece> {
    let shade = shade(text);
    let mut found = in_addresses(&shade);
    found.extend(after_equals(&shade).into_iter().filter(|piece| {
        let name = shade[..piece.range.start].trim_end_matches('=');
        matches!(name_before(name).1, Some('?' | '&' | '#'))
    }));
    chosen(text, found)
}

/// A text with a hole that is still to be filled with the secret holds none yet.
fn is_open(text: &str) -> bool {
    text.contains("${input:")
}

/// All of an address that is known to hold a secret, but for the scheme and the host.
pub(super) fn pieces_behind_host(text: &str) -> Vec<Piece> {
    let shade = shade(text);
    let mut found = in_addresses(&shade);
    if !is_open(text) {
        let host = shade.find("://").map_or(0, |index| index + 3);
        let start = shade[host..].find(['/', '?', '#']).map(|index| host + index + 1);
        found.extend(start.filter(|start| *start < text.len()).map(|start| Piece {
            range: start..text.len(),
            word: String::new(),
        }));
    }
    found.extend(after_equals(&shade));
    chosen(text, found)
}

/// The value in an argument that is known to hold a secret: behind the name of its option, else all of it.
pub(super) fn value_of_option(text: &str) -> Vec<Piece> {
    if is_open(text) {
        return pieces(text);
    }
    let option = text.starts_with('-').then(|| shade(text).find('=')).flatten();
    let start = option.map_or(0, |index| index + 1);
    let piece = Piece {
        range: start..text.len(),
        word: option.map_or_else(String::new, |index| {
            text[..index].trim_start_matches('-').to_owned()
        }),
    };
    chosen(text, vec![piece])
}

/// The text with other words in place of its pieces.
pub(crate) fn replaced(text: &str, pieces: &[Piece], mut with: impl FnMut(&Piece) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for piece in pieces {
        out.push_str(&text[end..piece.range.start]);
        out.push_str(&with(piece));
        end = piece.range.end;
    }
    out.push_str(&text[end..]);
    out
}

fn chosen(text: &str, mut found: Vec<Piece>) -> Vec<Piece> {
    found.retain(|piece| {
        let value = &text[piece.range.clone()];
        is_literal(value) && !is_scheme_and_reference(value)
    });
    found.sort_by_key(|piece| (piece.range.start, std::cmp::Reverse(piece.range.end)));
    let mut end = 0;
    found.retain(|piece| {
        let is_apart = piece.range.start >= end;
        end = end.max(piece.range.end);
        is_apart
    });
    found
}

/// The text with references of the same length that hold no sign: what stands in them divides nothing.
fn shade(text: &str) -> String {
    let mut shade = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        shade.push_str(before);
        let length = expand::reference(&from[2..]).map_or(0, |(.., length)| length);
        let taken = 2 + length;
        shade.extend(std::iter::repeat_n('_', taken));
        rest = &from[taken..];
    }
    shade.push_str(rest);
    shade
}

fn is_quote(one: char) -> bool {
    matches!(one, '"' | '\'' | '`')
}

/// `scheme://user:PASSWORD@host`, `https://TOKEN@host`.
fn in_addresses(shade: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    for (index, _) in shade.match_indices(':') {
        let after = &shade[index + 1..];
        let rest = after.trim_start_matches(['/', '\\']);
        // Parsers take a `https:/` for a `https://`, too.
        let scheme = name_before(&shade[..index]).0.to_ascii_lowercase();
        if !after.starts_with("//") && !["http", "https"].contains(&&*scheme) {
            continue;
        }
        let start = shade.len() - rest.len();
        let end = rest
            .find(|one: char| one.is_whitespace() || is_quote(one) || matches!(one, '<' | '>'))
            .unwrap_or(rest.len());
        let rest = &rest[..end];
        let host = &rest[..rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len())];
        // A password may hold a sign that should have been escaped: what follows the colon is no port then.
        let is_cut = !host.starts_with('[')
            && host
                .rsplit_once(':')
                .is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()));
        let at = match host.rfind('@') {
            None if is_cut => rest.rfind('@'),
            at => at,
        };
        let Some(at) = at else { continue };
        let who = &rest[..at];
        let (user, colon) = match who.find(':') {
            Some(colon) => (&who[..colon], Some(colon)),
            None => (who, None),
        };
        if user.len() >= TOKEN_CHARS && !user.contains('.') {
            found.push(Piece {
                range: start..start + user.len(),
                word: "token".to_owned(),
            });
        }
        if let Some(colon) = colon {
            found.push(Piece {
                range: start + colon + 1..start + at,
                word: "password".to_owned(),
            });
        }
    }
    found
}

/// The name that ends where the text ends, and what stands before it.
fn name_before(text: &str) -> (&str, Option<char>) {
    let start = text
        .char_indices()
        .rev()
        .take_while(|(_, one)| one.is_ascii_alphanumeric() || matches!(one, '_' | '-' | '.' | '+' | '%'))
        .last()
        .map_or(text.len(), |(index, _)| index);
    (&text[start..], text[..start].chars().next_back())
}

/// Whether what is assigned to this name is a secret; shorter words count here than for a variable.
pub(super) fn is_secret_word(name: &str) -> bool {
    // A name in a query may be written `api%5Fkey`.
    let decoded = url::form_urlencoded::parse(name.as_bytes()).next();
    let name = decoded.map_or(name.into(), |(name, _)| name);
    let bare = name.trim_start_matches('-').to_ascii_lowercase();
    is_secret_name(&name) || matches!(&*bare, "pwd" | "pass")
}

/// Whether a parameter of an address is a secret; some services call theirs by words that say nothing elsewhere.
fn is_secret_parameter(name: &str) -> bool {
    const WORDS: [&str; 6] = ["sig", "signature", "auth", "jwt", "code", "sas"];
    is_secret_word(name) || WORDS.contains(&&*name.to_ascii_lowercase())
}

/// `--token=x`, `API_KEY=x`, `?api_key=x`, `Server=h;Password=x`.
fn after_equals(shade: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    for (index, _) in shade.match_indices('=') {
        let (name, before) = name_before(&shade[..index]);
        let is_secret = match before {
            Some('?' | '&' | '#') => is_secret_parameter(name),
            _ => is_secret_word(name),
        };
        if name.is_empty() || !is_secret {
            continue;
        }
        let start = index + 1;
        let rest = &shade[start..];
        let ends = |signs: &[char]| {
            rest.find(|one: char| signs.contains(&one) || is_quote(one))
                .unwrap_or(rest.len())
        };
        let (skip, length) = match (before, rest.chars().next()) {
            (None | Some('='), _) => (0, rest.len()),
            (Some('?' | '&' | '#'), _) => (0, ends(&['&', '#', ' '])),
            (_, Some(quote)) if is_quote(quote) => (1, rest[1..].find(quote).unwrap_or(rest.len() - 1)),
            (Some(';'), _) => (0, ends(&[';'])),
            (Some(before), _) if before.is_whitespace() || is_quote(before) => (0, ends(&[';', ' ', ','])),
            _ => continue,
        };
        found.push(Piece {
            range: start + skip..start + skip + length,
            word: name.trim_start_matches('-').to_owned(),
        });
    }
    found
}

/// `Authorization: Bearer x`, `X-Api-Key:x`, `{"token": "x"}`.
fn after_colons(shade: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    for (index, _) in shade.match_indices(':') {
        let before = shade[..index].trim_end();
        let bare = before.strip_suffix(is_quote);
        let (name, stands_before) = name_before(bare.unwrap_or(before));
        if name.is_empty() || !is_secret_word(name) {
            continue;
        }
        let after = &shade[index + 1..];
        let rest = after.trim_start();
        let start = shade.len() - rest.len();
        let (skip, length) = match rest.chars().next() {
            Some(quote) if is_quote(quote) => (1, rest[1..].find(quote).unwrap_or(rest.len() - 1)),
            _ if bare.is_some() => (0, rest.find([',', '}', ']']).unwrap_or(rest.len())),
            // A header, alone or behind its option; `mysecrets:/data` and `token://` are none.
            Some(first) if first != '/' && matches!(stands_before, None | Some('=')) => {
                let is_header = rest.len() < after.len()
                    || name.contains('-')
                    || ["authorization", "cookie"].contains(&&*name.to_ascii_lowercase());
                if !is_header {
                    continue;
                }
                (0, rest.len())
            }
            _ => continue,
        };
        found.push(Piece {
            range: start + skip..start + skip + length,
            word: name.trim_start_matches('-').to_owned(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_inside_of_texts_are_found() {
        // What is a secret stands between « and ».
        for marked in [
            "plain",
            "postgres://u:«hunter2»@h/db",
            "postgres://u:${PW}@h/db",
            "postgres://u:«p/w?x#1»@h:5432/db",
            "redis://:«pw»@h",
            "https://h:8080/@scope/x",
            "https://h/npm/@scope/x",
            "http://[::1]:80/@x",
            "git+https://git@github.com/a/b",
            "git+https://«ghp_0123456789abcdefghij»@github.com/a/b",
            "mongodb://a:«b»@h1,h2/db?authSource=admin",
            "see https://u:«pw»@h and http://v:«pv»@i",
            "https://u:«pw»@h/mcp?api_key=«k»&x=1&token=${T}#f",
            "--password=«a b»",
            "https://h/api/mcp?code=«k»&sig=«s»&mode=fast#auth=«a»",
            "code=1",
            "--api-key=${K}",
            "--dsn=postgres://u:«pw»@h/db",
            "--env=API_KEY=«k»",
            "API_KEY=«k»",
            "--sort=name",
            "Server=h;Password=«x&y»;Database=d",
            "host=h password=«x» dbname=d",
            "host=h password='«x y»' dbname=d",
            "Pwd=«x»",
            "Authorization: «Bearer x»",
            "Authorization: Bearer ${T}",
            "--header=X-Api-Key:«x»",
            "mysecrets:/data",
            "key:value",
            r#"{"Authorization": "«Bearer x»", "Notion-Version": "1"}"#,
            r#"{"api_key": «12», "b": 1}"#,
            "${keyring:a/token}",
            "ünï://ü:«ö»@ä",
        ] {
            let text = marked.replace(['«', '»'], "");
            let shown = replaced(&text, &pieces(&text), |piece| {
                format!("«{}»", &text[piece.range.clone()])
            });
            assert_eq!(shown, marked);
        }
    }

    #[test]
    fn a_piece_has_a_word() {
        let words =
            |text: &str| -> Vec<String> { pieces(text).into_iter().map(|piece| piece.word).collect() };
        assert_eq!(words("https://u:pw@h/mcp?api_key=k&x=1"), ["password", "api_key"]);
        assert_eq!(words("--auth-token=x"), ["auth-token"]);
    }
}
