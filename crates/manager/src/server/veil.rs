//! What is said about a server, with the secrets of its entry taken out again.
//!
//! A start works on texts with their references filled in, and whatever goes wrong then is told with these texts. Here
//! they turn back into what is configured: the reference, or the mask of a secret that stands in the entry itself.
//! Everything that Pillion says of a server in its own words goes through this one place.

use std::path::Path;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use protocol::{Error, ServerEntry};
use serde_json::json;
use url::{Url, form_urlencoded};

use super::Server;
use super::launch::relevant;
use crate::config::{expand, secret};
use crate::core::Core;

/// A shorter value stands in every text by chance, and hides nothing.
const SHORTEST: usize = 4;

/// So much of the beginning of a value is one, where a text was cut off.
const BEGINNING: usize = 8;

/// What a path of an address cannot hold as it is (WHATWG URL, path percent-encode set).
const IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Values, each with what stands for it; the longest first.
#[derive(Clone, Default)]
pub(crate) struct Veil(Vec<(String, String)>);

impl Veil {
    /// Over what an entry says; `lookup` fills its references in.
    pub fn new(entry: &ServerEntry, lookup: &dyn Fn(&str) -> Option<String>) -> Veil {
        let mut veil = Veil::default();
        expand::texts(&relevant(entry), &mut |text| veil.add_references(text, lookup));
        let whole = json!(entry);
        for found in secret::found(entry) {
            let text = whole.pointer(&found.pointer).and_then(|text| text.as_str());
            for piece in found.pieces {
                let value = text.and_then(|text| text.get(piece.range));
                veil.add(value.unwrap_or_default(), secret::MASK);
            }
        }
        veil.sorted()
    }

    /// Over the words of a command line.
    pub fn of_words<'a>(
        words: impl IntoIterator<Item = &'a String>,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Veil {
        let mut veil = Veil::default();
        for word in words {
            veil.add_references(word, lookup);
        }
        veil.sorted()
    }

    pub fn of(core: &Core, entry: &ServerEntry, base: &Path) -> Veil {
        Veil::new(entry, &|name| core.reference(base, name))
    }

    fn add_references(&mut self, text: &str, lookup: &dyn Fn(&str) -> Option<String>) {
        for (name, _) in expand::references(text) {
            self.add(&lookup(name).unwrap_or_default(), &format!("${{{name}}}"));
        }
    }

    fn add(&mut self, value: &str, shown: &str) {
        let mut forms = vec![value.to_owned(), value.trim_start_matches('~').to_owned()];
        // An address is taken apart on its way; its host may be told.
        if let Ok(url) = Url::parse(value)
            && url.has_host()
        {
            let parts = [
                Some(url.as_str()),
                Some(url.path().trim_start_matches('/')),
                Some(url.username()),
                url.password(),
                url.query(),
                url.fragment(),
            ];
            forms.extend(parts.into_iter().flatten().map(str::to_owned));
        }
        for form in forms.clone() {
            forms.push(form.trim_matches('/').to_owned());
            forms.push(utf8_percent_encode(&form, IN_PATH).to_string());
            forms.push(form_urlencoded::byte_serialize(form.as_bytes()).collect());
        }
        forms.retain(|form| form.chars().count() >= SHORTEST);
        self.0
            .extend(forms.into_iter().map(|form| (form, shown.to_owned())));
    }

    fn sorted(mut self) -> Veil {
        self.0
            .sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.0.dedup_by(|(one, _), (other, _)| one == other);
        self
    }

    /// The text with what is configured in the place of what it stood for.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let here = self
                .0
                .iter()
                .find_map(|(value, shown)| Some((begins(rest, value)?, shown)));
            let length = match here {
                Some((length, shown)) => {
                    out.push_str(shown);
                    length
                }
                None => {
                    out.push(next);
                    next.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        out
    }

    /// The same for an error. What the server itself wrote stays as it is.
    pub fn error(&self, mut error: Error) -> Error {
        if self.0.is_empty() {
            return error;
        }
        error.message = self.text(&error.message);
        let data = &mut error.data;
        for text in [
            &mut data.hint,
            &mut data.expected,
            &mut data.by,
            &mut data.oauth_error,
        ] {
            *text = text.take().map(|text| self.text(&text));
        }
        for texts in [&mut data.candidates, &mut data.redirect_uris]
            .into_iter()
            .flatten()
        {
            texts.iter_mut().for_each(|text| *text = self.text(text));
        }
        data.file = data.file.take().map(|file| self.text(&file).into());
        error
    }
}

/// How much of a text's beginning is the value, or what is left of it where the text was cut off.
fn begins(text: &str, value: &str) -> Option<usize> {
    if text.starts_with(value) {
        return Some(value.len());
    }
    let alike = text
        .chars()
        .zip(value.chars())
        .take_while(|(one, other)| one == other);
    let (mut count, mut length) = (0, 0);
    for (one, _) in alike {
        count += 1;
        length += one.len_utf8();
    }
    (count >= BEGINNING && text[length..].starts_with('…')).then_some(length)
}

impl Server {
    /// What takes the secrets of its entry out of a text.
    pub fn veil(&self) -> Veil {
        Veil::of(&self.core, &self.entry(), &self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_in_reads_as_configured() {
        let entry: ServerEntry = serde_json::from_value(json!({
            "url": "https://h.example/www/${A}",
            "headers": { "x-key": "literal-1" },
            "oauth": { "issuer": "${cmd:b}" },
        }))
        .unwrap();
        let veil = Veil::new(&entry, &|name| {
            let value = match name {
                "A" => "se cret/value",
                "cmd:b" => "https://as.example/tenant-9/x",
                _ => return None,
            };
            Some(value.to_owned())
        });
        for (said, shown) in [
            (
                "at https://h.example/www/se%20cret/value?",
                "at https://h.example/www/${A}?",
            ),
            ("se cret/value, se cret/va…", "${A}, ${A}…"),
            ("state=se+cret%2Fvalue", "state=${A}"),
            ("se cret", "se cret"),
            (
                "https://as.example/.well-known/x/tenant-9/x",
                "https://as.example/.well-known/x/${cmd:b}",
            ),
            ("https://as.example/other", "https://as.example/other"),
            ("é literal-1", "é ********"),
        ] {
            assert_eq!(veil.text(said), shown);
        }
    }
}
