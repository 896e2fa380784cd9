//! Our references in the spelling of another program, and texts of another program that would become references here.

use protocol::ServerEntry;

use super::Input;
use super::forms::References;
use crate::config::expand::{self, Source};

/// A text in another spelling, and what of it the other program would not understand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spelt {
    pub text: String,
    pub lost: Vec<String>,
}

impl References {
    /// Writes a text of ours for a program that fills these references in.
    pub fn spell(self, text: &str) -> Spelt {
        let mut spelt = Spelt {
            text: String::with_capacity(text.len()),
            lost: Vec::new(),
        };
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            spelt.text.push_str(before);
            match expand::reference(&from[2..]) {
                Some((name, default, length)) => {
                    self.one(name, default, &from[..2 + length], &mut spelt);
                    rest = &from[2 + length..];
                }
                None => {
                    spelt.text.push_str("${");
                    rest = &from[2..];
                }
            }
        }
        spelt.text.push_str(rest);
        spelt
    }

    fn one(self, name: &str, default: Option<&str>, whole: &str, spelt: &mut Spelt) {
        match expand::source(name) {
            None => {}
            // Who asks for values is known elsewhere.
            Some(Source::Input(_)) => return spelt.text.push_str(whole),
            Some(Source::Keyring(_) | Source::Command(_)) => {
                let kind = name.split(':').next().unwrap_or_default();
                spelt.lost.push(format!("fills in no `${{{kind}:…}}`"));
                return spelt.text.push_str(whole);
            }
        }
        let text = match self {
            References::Own => whole.to_owned(),
            References::Braces | References::Shell => format!("${{{name}}}"),
            References::Env => format!("${{env:{name}}}"),
            References::Opencode => format!("{{env:{name}}}"),
            References::Secrets => format!("${{{{ secrets.{name} }}}}"),
            References::None => {
                spelt.lost.push(format!("fills in no `{whole}`"));
                whole.to_owned()
            }
        };
        if default.is_some() && !matches!(self, References::Own | References::None) {
            spelt.lost.push(format!("knows no default for `{name}`"));
        }
        spelt.text.push_str(&text);
    }
}

/// Why an entry out of another program's file cannot be taken over: a text that means nothing there would make a program
/// run here, read the credential store, or ask a person. We have no spelling for such a text that stays one.
///
/// `inputs` are the values that the other program asks for; an entry may bring its own.
pub(crate) fn strange(entry: &ServerEntry, inputs: &[Input], meant: &[&str]) -> Option<String> {
    let mut found = None;
    expand::texts(&serde_json::json!(entry), &mut |text| {
        for (name, _) in expand::references(text) {
            let kind = name.split(':').next().unwrap_or_default();
            let would = match expand::source(name) {
                None => continue,
                Some(_) if meant.contains(&kind) => continue,
                Some(Source::Command(_)) => "would run a program",
                Some(Source::Keyring(_)) => "would read the credential store",
                Some(Source::Input(id)) => {
                    let is_own = entry.inputs.iter().flatten().any(|(own, _)| own == id);
                    if is_own || inputs.iter().any(|input| input.id == id) {
                        continue;
                    }
                    "would ask you for a value"
                }
            };
            found.get_or_insert_with(|| {
                format!("it holds `${{{kind}:…}}`, which means nothing in that file and {would} here: change it there, or add the server by hand")
            });
        }
    });
    found
}

/// The variable that a text consists of: `TOKEN` for `${TOKEN}`.
pub(crate) fn only_reference(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("${")?;
    let (name, default, length) = expand::reference(inside)?;
    let is_whole = default.is_none() && length == inside.len();
    (is_whole && expand::source(name).is_none()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_get_their_spelling() {
        let check = |references: References, expected: &str, lost: usize| {
            let spelt = references.spell("a${X} $Y ${Z:-d} ${input:q}");
            assert_eq!((spelt.text.as_str(), spelt.lost.len()), (expected, lost));
        };
        check(References::Own, "a${X} $Y ${Z:-d} ${input:q}", 0);
        check(References::Env, "a${env:X} $Y ${env:Z} ${input:q}", 1);
        check(References::Opencode, "a{env:X} $Y {env:Z} ${input:q}", 1);
        check(
            References::Secrets,
            "a${{ secrets.X }} $Y ${{ secrets.Z }} ${input:q}",
            1,
        );
        check(References::None, "a${X} $Y ${Z:-d} ${input:q}", 2);
        assert_eq!(only_reference("${A}"), Some("A"));
        assert_eq!(only_reference("${A}b"), None);
        assert_eq!(only_reference("${keyring:a/b}"), None);
        let spelt = References::Env.spell("${keyring:a/b} ${cmd:x ${Y}}");
        assert_eq!(
            (spelt.text.as_str(), spelt.lost.len()),
            ("${keyring:a/b} ${cmd:x ${Y}}", 2)
        );
    }
}
