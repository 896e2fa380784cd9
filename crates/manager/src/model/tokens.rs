//! How many tokens a text takes, roughly, without a tokenizer.
//!
//! Text is cut the way byte-pair tokenizers cut it first (words with the blank before them, digits by three, runs of
//! signs), and each piece is counted by its length. `docs/hosting.md` gives the error, measured against o200k.

/// Letters of a word that usually are one token.
const WORD: usize = 8;
/// Further letters per token.
const MORE: usize = 4;

/// The estimate for a text.
pub(crate) fn estimate(text: &str) -> u32 {
    let mut tokens = 0usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = Kind::of(first);
        let end = rest
            .char_indices()
            .find(|(_, character)| Kind::of(*character) != kind)
            .map_or(rest.len(), |(at, _)| at);
        let (run, after) = rest.split_at(end);
        tokens += match kind {
            Kind::Letter => words(run),
            Kind::Digit => run.len().div_ceil(3),
            // A single blank belongs to the word behind it.
            Kind::Blank => usize::from(run.len() > 1 || after.is_empty()),
            Kind::Sign => signs(run),
            // Scripts without blanks: a little less than one per character.
            Kind::Other => (run.chars().count() * 4).div_ceil(5),
        };
        rest = after;
    }
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[derive(PartialEq, Clone, Copy)]
enum Kind {
    Letter,
    Digit,
    Blank,
    Sign,
    Other,
}

impl Kind {
    fn of(character: char) -> Kind {
        match character {
            'a'..='z' | 'A'..='Z' => Kind::Letter,
            '0'..='9' => Kind::Digit,
            ' ' | '\n' | '\r' | '\t' => Kind::Blank,
            character if character.is_ascii() => Kind::Sign,
            _ => Kind::Other,
        }
    }
}

/// A run of letters, which a change of case cuts again: `listPullRequests` is three words.
fn words(run: &str) -> usize {
    let bytes = run.as_bytes();
    let mut tokens = 0;
    let mut start = 0;
    for at in 1..=bytes.len() {
        let is_cut =
            at == bytes.len() || (bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase());
        if is_cut {
            let length = at - start;
            tokens += 1 + length.saturating_sub(WORD).div_ceil(MORE);
            start = at;
        }
    }
    tokens
}

/// JSON's own signs come in runs that are one token each (`":"`, `":{"`, `"},"`).
fn signs(run: &str) -> usize {
    run.len().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    /// The figures of docs/hosting.md.
    #[test]
    fn the_error_against_a_real_tokenizer() {
        let tokenizer = tiktoken_rs::o200k_base().unwrap();
        let text = include_str!("../../../../tests/bench/tools/tools.json");
        let servers: BTreeMap<String, Vec<Value>> = serde_json::from_str(text).unwrap();
        let (mut estimated, mut real) = (0.0, 0.0);
        let mut errors = Vec::new();
        for tool in servers.values().flatten().step_by(4) {
            for part in [
                tool["description"].as_str().unwrap_or_default().to_owned(),
                tool["inputSchema"].to_string(),
            ] {
                let (guess, count) = (
                    f64::from(estimate(&part)),
                    tokenizer.encode_ordinary(&part).len() as f64,
                );
                estimated += guess;
                real += count;
                errors.push((guess / count - 1.0).abs());
            }
        }
        errors.sort_by(f64::total_cmp);
        let total = estimated / real - 1.0;
        assert!((-0.05..0.05).contains(&total), "in all: {total:.3}");
        let most = errors[errors.len() * 95 / 100];
        assert!(most < 0.25, "19 of 20: {most:.3}");
    }

    #[test]
    fn other_texts_are_not_far_off() {
        let tokenizer = tiktoken_rs::o200k_base().unwrap();
        for text in [
            include_str!("tokens.rs"),
            include_str!("../../../../docs/hosting.md"),
            "Der schnelle braune Fuchs springt über den faulen Hund und freut sich darüber sehr.",
            "敏捷的棕色狐狸跳过了懒狗，然后回家睡觉。",
            "1234567890 3.14159 0xdeadbeef 2026-07-28T12:00:00Z",
        ] {
            let real = tokenizer.encode_ordinary(text).len() as f64;
            let ratio = f64::from(estimate(text)) / real;
            assert!(
                (0.6..1.6).contains(&ratio),
                "{ratio:.2}: {}",
                &text[..40.min(text.len()) / 3 * 3]
            );
        }
        assert_eq!(estimate(""), 0);
    }
}
