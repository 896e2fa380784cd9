//! Fields and texts that ask for a credential: a server must never ask for one in a form (MCP, elicitation).
//!
//! A sign, no proof: who means to may always find other words. What is caught is what a person would read as such, also in
//! letters that only look like these, and in some other languages.

use super::letters;

/// Each is a credential by itself.
const WORDS: [&str; 27] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "pin",
    "token",
    "secret",
    "credential",
    "credentials",
    "otp",
    "totp",
    "cvv",
    "cvc",
    "apikey",
    "passwort",
    "kennwort",
    "schlusselwort",
    "geheimnis",
    "contrasena",
    "clave",
    "senha",
    "wachtwoord",
    "haslo",
    "пароль",
    "пин",
    "токен",
];
const PAIRS: [(&str, &str); 22] = [
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("ssh", "key"),
    ("recovery", "key"),
    ("api", "schlussel"),
    ("auth", "code"),
    ("authentication", "code"),
    ("authenticator", "code"),
    ("verification", "code"),
    ("security", "code"),
    ("recovery", "code"),
    ("backup", "code"),
    ("login", "code"),
    ("sms", "code"),
    // `2FA code`: digits are no letters.
    ("fa", "code"),
    ("mfa", "code"),
    ("time", "code"),
    ("seed", "phrase"),
    ("recovery", "phrase"),
];
/// In scripts that put no blanks between words.
const UNDIVIDED: [&str; 7] = [
    "密码",
    "密碼",
    "口令",
    "验证码",
    "パスワード",
    "暗証番号",
    "비밀번호",
];
/// `token` before one of these is a measure, not a secret; in a sentence it is what belongs to a credential.
const MEASURES: [&str; 4] = ["count", "limit", "budget", "length"];
const BELONGINGS: [&str; 30] = [
    "age",
    "count",
    "budget",
    "length",
    "limit",
    "name",
    "names",
    "file",
    "files",
    "path",
    "policy",
    "policies",
    "manager",
    "managers",
    "store",
    "vault",
    "field",
    "fields",
    "type",
    "format",
    "rotation",
    "expiry",
    "scope",
    "scopes",
    "url",
    "location",
    "variable",
    "generator",
    "strength",
    "rules",
];
/// Who says this wants to be given what follows.
const ASKING: [&str; 28] = [
    "enter",
    "type",
    "provide",
    "paste",
    "give",
    "input",
    "supply",
    "submit",
    "insert",
    "share",
    "tell",
    "send",
    "confirm",
    "need",
    "needs",
    "require",
    "requires",
    "fill",
    "geben",
    "gib",
    "entrez",
    "saisissez",
    "ingrese",
    "introduzca",
    "digite",
    "insira",
    "voer",
    "введите",
];
const YOURS: [&str; 15] = [
    "your", "ihr", "ihre", "ihren", "dein", "deine", "deinen", "votre", "ton", "tu", "su", "sua", "seu",
    "uw", "ваш",
];
/// Before it, a text speaks of something else than the credential itself.
const OTHERS: [&str; 20] = [
    "not", "don", "never", "without", "no", "name", "path", "length", "number", "location", "kind",
    "whether", "which", "where", "how", "file", "reset", "folder", "title", "label",
];
/// Words between who asks and what is asked for.
const NEAR: usize = 4;

/// Whether a name or title, split at case changes and non-letters, asks for a credential.
pub(crate) fn looks_like_credential(name: &str) -> bool {
    UNDIVIDED.iter().any(|word| name.contains(word))
        || readings(name)
            .iter()
            .any(|words| (0..words.len()).any(|at| credential(words, at).is_some()))
}

/// Whether a sentence asks for one: it consists of little else, or it says whose it is or what to do with it.
pub(crate) fn asks_for_credential(text: &str) -> bool {
    readings(text).iter().any(|words| {
        (0..words.len()).any(|at| {
            let Some(length) = credential(words, at) else {
                return false;
            };
            let belongs = words.get(at + length);
            if belongs.is_some_and(|word| BELONGINGS.contains(&word.as_str())) {
                return false;
            }
            let before = &words[..at];
            let near = &before[before.len().saturating_sub(NEAR)..];
            let speaks_of_other = |words: &[String]| words.iter().any(|word| OTHERS.contains(&word.as_str()));
            let asked_from = near
                .iter()
                .position(|word| ASKING.contains(&word.as_str()) || YOURS.contains(&word.as_str()));
            match asked_from {
                Some(from) => {
                    let start = before.len() - near.len() + from;
                    let lead = &before[start.saturating_sub(NEAR)..];
                    !speaks_of_other(lead)
                }
                // `GitHub password`, `The API token`
                None => words.len() <= NEAR && at + length == words.len() && !speaks_of_other(before),
            }
        })
    })
}

/// How many words from here on are a credential.
fn credential(words: &[String], at: usize) -> Option<usize> {
    let word = words[at].as_str();
    let next = words.get(at + 1).map(String::as_str);
    if next.is_some_and(|next| PAIRS.contains(&(word, next))) {
        return Some(2);
    }
    // `mot de passe`
    if word == "mot" && next == Some("de") && words.get(at + 2).is_some_and(|word| word == "passe") {
        return Some(3);
    }
    let is_measure = word == "token" && next.is_some_and(|next| MEASURES.contains(&next));
    (WORDS.contains(&word) && !is_measure).then_some(1)
}

/// The words of a text as they are written, and as they look.
fn readings(text: &str) -> [Vec<String>; 2] {
    let plain = letters::plain(text);
    let seen = letters::as_latin(&plain);
    [split(&plain), split(&seen)]
}

/// Words of a name, in lower case: `clientSecret`, `CLIENT_SECRET` and `client secret` give the same, and so does a word
/// that is s p a c e d.
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
    unspaced(words)
}

/// Runs of single letters as one word.
fn unspaced(words: Vec<String>) -> Vec<String> {
    let is_single = |word: &String| word.chars().nth(1).is_none();
    let mut joined: Vec<String> = Vec::with_capacity(words.len());
    for run in words.chunk_by(|one, other| is_single(one) && is_single(other)) {
        if run.len() > 2 {
            joined.push(run.concat());
        } else {
            joined.extend_from_slice(run);
        }
    }
    joined
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
            "2FA code",
            "one-time code",
            "Verification code",
            "Seed phrase",
            "Passwort",
            "API-Schlüssel",
            "Mot de passe",
            "Contraseña",
            "Пароль",
            "密码",
            "パスワード",
            // Seen as such by a person.
            "P\u{200b}assword",
            "P\u{ad}ass\u{2060}word",
            "P\u{430}ssword",
            "\u{420}\u{430}ssw\u{43e}rd",
            "t\u{3bf}ken",
            "\u{ff30}\u{ff21}\u{ff33}\u{ff33}\u{ff37}\u{ff2f}\u{ff32}\u{ff24}",
            "\u{1d429}\u{1d41a}\u{1d42c}\u{1d42c}\u{1d430}\u{1d428}\u{1d42b}\u{1d41d}",
            "pa\u{301}ssword",
            "p\u{e0061}assword",
            "p a s s w o r d",
            "passw0rd",
            "p@ssword",
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
            "Postal code",
            "Country code",
            "Time zone",
            "Color code",
            "Primary key",
            "Описание",
            "Название проекта",
            "Schlüssel",
            "説明",
            "a b c",
            "v1.0",
        ] {
            assert!(!looks_like_credential(name), "{name}");
        }
    }

    #[test]
    fn sentences_that_ask_are_told_from_those_that_speak_of_it() {
        for text in [
            "Please enter your GitHub password",
            "your password",
            "Your password, please.",
            "API token",
            "GitHub API key",
            "The one-time code",
            "Enter the 6-digit PIN of your card",
            "Paste a personal access token to go on",
            "We sent you a verification code. Type the verification code here",
            "I need your token for this",
            "Provide the client secret",
            "Enter your p\u{430}ssword",
            "Enter your pass\u{200b}word",
            "Bitte geben Sie Ihr Passwort ein",
            "Entrez votre mot de passe",
            "Введите пароль",
        ] {
            assert!(asks_for_credential(text), "{text}");
        }
        for text in [
            "Name of the repository",
            "The name of the token file",
            "Path to the password store",
            "Enter the name of the new token",
            "Enter the length of the password to generate",
            "How many tokens the answer may take",
            "Your token budget for this run",
            "Choose your password manager",
            "Do not enter your password here",
            "Never type your PIN into this form",
            "Which branch shall be deployed?",
            "Whether the token is rotated each month",
            "Enter your postal code",
            "Enter the project key, for instance ABC",
            "The password was reset; which mailbox shall get the news?",
            "This deletes the secret of the repository. Type the name of the repository to confirm",
            "Where is your password file?",
            "Pin the message to the channel?",
            "Введите название проекта",
        ] {
            assert!(!asks_for_credential(text), "{text}");
        }
    }
}
