//! A prompt of a server called as a command: `/server:prompt first "second one" all the rest`.

use std::collections::BTreeMap;

use protocol::PromptArgument;

/// A text that begins with a command.
#[derive(Debug, PartialEq)]
pub(crate) struct Command<'a> {
    /// With the leading `/`.
    pub name: &'a str,
    /// What follows it.
    pub rest: &'a str,
}

/// The command a text begins with, if it looks like one of a server's.
pub(crate) fn command(text: &str) -> Option<Command<'_>> {
    let text = text.trim_start();
    if !text.starts_with('/') {
        return None;
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name[1..].contains(':').then_some(Command {
        name,
        rest: rest.trim(),
    })
}

/// The values of the declared arguments, in their order; the last one takes what is left.
pub(crate) fn arguments(rest: &str, declared: &[PromptArgument]) -> BTreeMap<String, String> {
    let words = words(rest);
    let mut values = BTreeMap::new();
    for (index, argument) in declared.iter().enumerate() {
        let is_last = index + 1 == declared.len();
        let value = match words.get(index..) {
            None | Some([]) => break,
            Some([first, more @ ..]) if is_last => more.iter().fold(first.text.clone(), |mut value, word| {
                value.push_str(word.before);
                value.push_str(&word.text);
                value
            }),
            Some([first, ..]) => first.text.clone(),
        };
        values.insert(argument.name.clone(), value);
    }
    values
}

struct Word<'a> {
    /// The blanks before it.
    before: &'a str,
    text: String,
}

/// Words, where quotes around a whole word hold it together. A quote within a word is a sign like any other.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start();
        let before = &rest[..rest.len() - trimmed.len()];
        if trimmed.is_empty() {
            return words;
        }
        let (text, after) = quoted(trimmed).unwrap_or_else(|| {
            let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
            (trimmed[..end].to_owned(), &trimmed[end..])
        });
        words.push(Word { before, text });
        rest = after;
    }
}

/// A quoted word at the beginning of a text; `\` keeps a quote or another `\` from its meaning.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            let after = &text[at + character.len_utf8()..];
            let is_end = after.chars().next().is_none_or(char::is_whitespace);
            return is_end.then_some((value, after));
        }
        match characters.peek() {
            Some((_, next)) if character == '\\' && (*next == quote || *next == '\\') => {
                value.push(*next);
                characters.next();
            }
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_servers_command_is_one() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let found = command(text).map(|command| (command.name, command.rest));
            assert_eq!(found, expected, "{text}");
        };
        check("/docs:review a b\n", Some(("/docs:review", "a b")));
        check("  /docs:review", Some(("/docs:review", "")));
        check("/help me: now", None);
        check("see /docs:review", None);
        check("", None);
    }

    #[test]
    fn the_last_argument_takes_the_rest() {
        let check = |n: usize, rest: &str, expected: &[&str]| {
            let declared: Vec<PromptArgument> = (0..n)
                .map(|index| PromptArgument {
                    name: format!("a{index}"),
                    description: None,
                    required: false,
                })
                .collect();
            let values: Vec<String> = arguments(rest, &declared).into_values().collect();
            assert_eq!(values, expected, "{rest}");
        };
        check(2, "one two", &["one", "two"]);
        check(2, "one two three  four", &["one", "two three  four"]);
        check(2, "'one two' \"three \\\" four\"", &["one two", "three \" four"]);
        check(2, "one \"two three\" four", &["one", "two three four"]);
        check(2, "one", &["one"]);
        check(2, "", &[]);
        check(1, "it's fine, isn't it", &["it's fine, isn't it"]);
        check(1, "\"not closed", &["\"not closed"]);
        check(1, "first line\nsecond line", &["first line\nsecond line"]);
        check(2, "'' x", &["", "x"]);
        check(0, "one two", &[]);
    }
}
