//! The `WWW-Authenticate` header (RFC 9110 §11.6.1), as servers really send it: several challenges in one value,
//! quoted and unquoted parameters, commas inside quotes.

/// One challenge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// As sent; compare without case.
    pub scheme: String,
    /// Names in lower case, values unquoted.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The scopes that are needed (RFC 6750 §3), separated by blanks.
    pub fn scope(&self) -> Option<&str> {
        self.parameter("scope")
    }

    /// The same, asking for the scopes of another one besides its own, as that one does.
    pub(crate) fn asking_with(mut self, other: &Challenge) -> Challenge {
        let scope = crate::scope::union([self.scope(), other.scope()].into_iter().flatten());
        let error = other.error().unwrap_or_default().to_owned();
        self.parameters
            .retain(|(name, _)| name != "scope" && name != "error");
        for (name, value) in [("scope", scope), ("error", error)] {
            if !value.is_empty() {
                self.parameters.push((name.to_owned(), value));
            }
        }
        self
    }

    /// Where the protected resource describes itself (RFC 9728 §5.1).
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// The error code (RFC 6750 §3.1).
    pub fn error(&self) -> Option<&str> {
        self.parameter("error")
    }
}

/// The first `Bearer` or `DPoP` challenge of all header values.
pub fn bearer<S: AsRef<str>>(values: &[S]) -> Option<Challenge> {
    let mut challenges = values.iter().flat_map(|value| parse(value.as_ref()));
    challenges.find(|challenge| {
        ["bearer", "dpop"]
            .iter()
            .any(|scheme| challenge.scheme.eq_ignore_ascii_case(scheme))
    })
}

/// All challenges of one header value. What cannot be read is left out.
pub fn parse(value: &str) -> Vec<Challenge> {
    let mut challenges: Vec<Challenge> = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let (token, after) = token(rest);
        if token.is_empty() {
            // Something that no grammar allows here: go on after it.
            let mut characters = rest.chars();
            if characters.next().is_none() {
                return challenges;
            }
            rest = characters.as_str();
            continue;
        }
        let trimmed = after.trim_start_matches([' ', '\t']);
        match (trimmed.strip_prefix('='), challenges.last_mut()) {
            // `name = value` continues the challenge before it; a padding of a token68 is no parameter.
            (Some(value), Some(challenge)) if !value.starts_with('=') => {
                let (value, after) = parameter_value(value.trim_start_matches([' ', '\t']));
                challenge.parameters.push((token.to_ascii_lowercase(), value));
                rest = after;
            }
            (Some(padding), _) => rest = padding.trim_start_matches('='),
            (None, _) => {
                challenges.push(Challenge {
                    scheme: token.to_owned(),
                    parameters: Vec::new(),
                });
                rest = after;
            }
        }
    }
}

/// A token of RFC 9110 §5.6.2 from the start of a text, and what follows it.
fn token(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(c)))
        .unwrap_or(text.len());
    text.split_at(end)
}

/// A quoted string, or everything up to the next comma or blank.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(character),
        }
    }
    // The closing quote is missing: the value is what there is.
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bearer_challenge_among_others() {
        let value = r#"Basic realm="a, Bearer scope=decoy", Bearer error="insufficient_scope", scope="a b", resource_metadata=https://h/.well-known/x, error_description="say \"scope=z\"", Negotiate dG9rZW4=="#;
        let challenge = bearer(&[value]).unwrap();
        assert_eq!(challenge.scope(), Some("a b"));
        assert_eq!(challenge.error(), Some("insufficient_scope"));
        assert_eq!(challenge.resource_metadata(), Some("https://h/.well-known/x"));
        assert_eq!(challenge.parameter("error_description"), Some("say \"scope=z\""));
        assert_eq!(parse(value).len(), 3, "{:?}", parse(value));
    }

    #[test]
    fn spaces_around_the_equals_sign_and_odd_case() {
        let challenge = bearer(&["bEaReR Scope = \"x\" , REALM=r"]).unwrap();
        assert_eq!(
            (challenge.scope(), challenge.parameter("realm")),
            (Some("x"), Some("r"))
        );
        assert_eq!(bearer(&["Basic realm=x"]), None);
        assert_eq!(bearer::<&str>(&[]), None);
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(value in "\\PC{0,200}") {
            let _ = parse(&value);
        }

        #[test]
        fn quoted_values_come_back(value in "[ -~]{0,40}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Bearer scope=\"{quoted}\", error=\"e\"");
            let challenge = bearer(&[header]).unwrap();
            prop_assert_eq!(challenge.scope(), Some(value.as_str()));
            prop_assert_eq!(challenge.error(), Some("e"));
        }
    }
}
