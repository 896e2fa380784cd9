//! Fields that look like credentials: a server must never ask for those in a form.

const WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "pin",
    "token",
    "secret",
    "credential",
    "credentials",
    "otp",
    "passcode",
];
const PAIRS: [(&str, &str); 5] = [
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("client", "secret"),
    ("auth", "code"),
];
/// `token` before one of these is a measure, not a secret.
const MEASURES: [&str; 4] = ["count", "limit", "budget", "length"];

/// Whether a name or title, split at case changes and non-letters, asks for a credential.
pub(crate) fn looks_like_credential(name: &str) -> bool {
    let words = split(name);
    words.iter().enumerate().any(|(index, word)| {
        let next = words.get(index + 1).map(String::as_str);
        let is_measure = word == "token" && next.is_some_and(|next| MEASURES.contains(&next));
        let is_pair = next.is_some_and(|next| PAIRS.contains(&(word.as_str(), next)));
        (WORDS.contains(&word.as_str()) && !is_measure) || is_pair || word == "apikey"
    })
}

/// Words of a name, in lower case: `clientSecret`, `CLIENT_SECRET` and `client secret` give the same.
fn split(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_alphabetic() {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
            continue;
        }
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(index + 1);
        let starts_word = character.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || (before.is_some_and(char::is_uppercase)
                    && after.is_some_and(|after| after.is_lowercase())));
        if starts_word && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(character.to_lowercase());
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_told_from_harmless_names() {
        for name in [
            "password",
            "api_key",
            "apiKey",
            "API_KEY",
            "APIKey",
            "clientSecret",
            "Your PIN",
            "authCode",
            "access-token",
            "otp",
            "OTPCode",
            "private key",
        ] {
            assert!(looks_like_credential(name), "{name}");
        }
        for name in [
            "max_tokens",
            "keyboard",
            "tokenLimit",
            "token_count",
            "pinned",
            "spinner",
            "monkey",
            "key",
            "author",
            "code",
            "compass",
            "tokens",
        ] {
            assert!(!looks_like_credential(name), "{name}");
        }
    }
}
