//! Names as people mistype them, and as environments spell them.

/// Insertions, removals and replacements of characters from one name to the other.
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// A text as the name of an environment variable: `pg3-url` is `PG3_URL`.
pub fn variable_name(text: &str) -> String {
    let spelt = |one: char| match one.is_ascii_alphanumeric() {
        true => one.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = text.chars().map(spelt).collect();
    match name.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        let rows = [
            ("", "", 0),
            ("a", "", 1),
            ("comand", "command", 1),
            ("kitten", "sitting", 3),
            ("ä", "a", 1),
        ];
        for (one, other, expected) in rows {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn variables_begin_with_no_digit() {
        assert_eq!(
            [variable_name("pg3-url"), variable_name("3 keys")],
            ["PG3_URL", "_3_KEYS"]
        );
    }
}
