//! Names as people mistype them, and as environments spell them.

/// Insertions, removals and replacements of characters from one name to the other; two neighbours that changed places
/// are one (optimal string alignment).
pub fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut above = vec![0; other.len() + 1];
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 0..one.len() {
        let mut next = vec![i + 1; other.len() + 1];
        for j in 0..other.len() {
            let replaced = row[j] + usize::from(one[i] != other[j]);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && one[i] == other[j - 1] && one[i - 1] == other[j] {
                least = least.min(above[j - 1] + 1);
            }
            next[j + 1] = least;
        }
        above = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

/// The known name that was probably meant: a slip away, or what a longer name begins with (`environment`: `env`).
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    /// What is longer than this is no slip, whatever it begins with.
    const LONGEST: usize = 32;
    let wanted = name.to_lowercase();
    let slips = match wanted.chars().count() {
        0..6 => 1,
        6..9 => 2,
        9..=LONGEST => 3,
        _ => return None,
    };
    let measured = known.into_iter().filter_map(|candidate| {
        let lower = candidate.to_lowercase();
        let length = lower.chars().count();
        let slipped = distance(&wanted, &lower);
        if slipped <= slips && slipped < length {
            return Some((slipped, 0, candidate));
        }
        // After every slip; the longest beginning says most.
        (length >= 3 && wanted.starts_with(&lower)).then_some((LONGEST, LONGEST - length, candidate))
    });
    measured.min().map(|(.., candidate)| candidate)
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
            ("cuont", "count", 1),
            ("sevrers", "servers", 1),
            ("ab", "ba", 1),
            ("ä", "a", 1),
        ];
        for (one, other, expected) in rows {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn what_was_meant_is_near() {
        let known = ["command", "cwd", "env", "envFile", "timeoutMs", "url", "tools"];
        let rows = [
            ("comand", Some("command")),
            ("cmd", Some("cwd")),
            ("timeoutms", Some("timeoutMs")),
            ("timeout", Some("timeoutMs")),
            ("environment", Some("env")),
            ("envfiles", Some("envFile")),
            ("toosl", Some("tools")),
            ("colour", None),
            ("nope", None),
            ("", None),
            ("x", None),
        ];
        for (name, expected) in rows {
            assert_eq!(nearest(name, known), expected, "{name}");
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
