//! What strangers wrote, as names, texts and comments that cannot leave their place in a program.

use std::collections::HashSet;

/// Characters of one description. They are written for models and can fill pages.
const DESCRIPTION: usize = 2_000;

/// The words of a name: `getUser`, `get-user` and `get_user` have the same two.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    let mut begins = true;
    for character in name.chars() {
        if !character.is_ascii_alphanumeric() {
            begins = true;
            continue;
        }
        let is_hump = character.is_ascii_uppercase() && was_lower;
        was_lower = !character.is_ascii_uppercase();
        match words.last_mut() {
            Some(word) if !begins && !is_hump => word.push(character.to_ascii_lowercase()),
            _ => words.push(character.to_ascii_lowercase().to_string()),
        }
        begins = false;
    }
    words
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `GetUser`; what begins with a digit or has no letters gets some before it.
pub fn pascal(name: &str) -> String {
    let name: String = words(name).iter().map(|word| capital(word)).collect();
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name
    } else {
        format!("X{name}")
    }
}

/// `getUser`.
pub fn camel(name: &str) -> String {
    let name = pascal(name);
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_ascii_lowercase())
}

/// `get_user`.
pub fn snake(name: &str) -> String {
    let name = words(name).join("_");
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name
    } else {
        format!("x{name}")
    }
}

/// A name that is not taken yet.
pub fn free(wanted: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{wanted}{number}"));
    let free = std::iter::once(wanted.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .unwrap_or(wanted);
    taken.insert(free.clone());
    free
}

/// A text between double quotes, as JavaScript and Python both read it. `wide` writes what does not fit into four digits.
pub fn literal(text: &str, wide: impl Fn(u32) -> String) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            _ if character.is_alphanumeric() => quoted.push(character),
            _ if u32::from(character) <= 0xffff => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => quoted.push_str(&wide(character.into())),
        }
    }
    quoted.push('"');
    quoted
}

/// The lines of a description, without characters that nobody sees or that move a cursor.
pub fn lines(text: &str) -> Vec<String> {
    let cut: String = text.trim().chars().take(DESCRIPTION).collect();
    let lines = cut.lines().map(|line| {
        let shown = line.chars().filter(|character| !is_hidden(*character));
        let shown: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
        shown.trim_end().to_owned()
    });
    let mut lines: Vec<String> = lines.collect();
    if cut.len() < text.trim().len() {
        lines.push("…".to_owned());
    }
    lines
}

/// Format characters: zero width, direction, tags; and the two line ends that are no control characters.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_apart() {
        for (name, in_pascal, in_camel, in_snake) in [
            ("get-user", "GetUser", "getUser", "get_user"),
            ("getUser", "GetUser", "getUser", "get_user"),
            ("GET_URL", "GetUrl", "getUrl", "get_url"),
            ("2fa", "X2fa", "x2fa", "x2fa"),
            ("__init__", "Init", "init", "init"),
            ("日本", "X", "x", "x"),
        ] {
            assert_eq!(
                [pascal(name), camel(name), snake(name)],
                [in_pascal, in_camel, in_snake],
                "{name}"
            );
        }
        let mut taken = HashSet::new();
        let names = ["a", "a", "a2"].map(|name| free(name.to_owned(), &mut taken));
        assert_eq!(names, ["a", "a2", "a22"]);
    }

    #[test]
    fn texts_stay_in_their_quotes() {
        let wide = |code| format!("\\U{code:08x}");
        assert_eq!(literal("a\"\\\n\u{202e}é", wide), r#""a\"\\\u000a\u202eé""#);
        assert_eq!(literal("\u{1f600}", wide), r#""\U0001f600""#);
        assert_eq!(lines("one\r\n  two\u{200b}\u{7}x\n"), ["one", "  two x"]);
        assert_eq!(lines(&"x".repeat(2_001)).last().map(String::as_str), Some("…"));
    }
}
