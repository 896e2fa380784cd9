//! What stands around a pasted thing: Markdown's code blocks, badges and links, and the typography of pages.

/// The contents of Markdown's code blocks.
pub(super) fn fences(text: &str) -> Vec<String> {
    let mut fences = Vec::new();
    let mut open: Option<(String, Vec<&str>)> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let mark: String = bare
            .chars()
            .take_while(|one| *one == '`' || *one == '~')
            .collect();
        match &mut open {
            Some((fence, lines)) => {
                if mark.starts_with(fence.as_str()) && bare.trim_end() == mark {
                    fences.push(lines.join("\n"));
                    open = None;
                } else {
                    lines.push(line);
                }
            }
            None if mark.len() >= 3 && (mark.starts_with("```") || mark.starts_with("~~~")) => {
                open = Some((mark, Vec::new()));
            }
            None => {}
        }
    }
    // People miss the last line when they copy.
    fences.extend(open.map(|(_, lines)| lines.join("\n")));
    fences
}

/// The addresses that Markdown and HTML link to, in the order of the text.
pub(super) fn addresses(text: &str) -> Vec<String> {
    let ends: [(&str, &[char]); 3] = [("](", &[')']), ("href=\"", &['"']), ("href='", &['\''])];
    let mut found = Vec::new();
    for (before, after) in ends {
        for (at, _) in text.match_indices(before) {
            let start = at + before.len();
            let rest = &text[start..];
            let end = rest.find(|one: char| after.contains(&one) || one.is_whitespace());
            let address = end.map_or(rest, |end| &rest[..end]);
            found.push((start, address.replace("&amp;", "&")));
        }
    }
    found.sort_by_key(|(start, _)| *start);
    found.into_iter().map(|(_, address)| address).collect()
}

/// With the quotes, blanks and dashes of a keyboard where a page or a text editor made them prettier.
pub(super) fn straightened(text: &str) -> String {
    // Quotes inside of straight ones are part of a value.
    let has_double = text.contains('"');
    let has_single = text.contains('\'') || !(text.contains('‘') && text.contains('’'));
    let mut out = String::with_capacity(text.len());
    let mut is_start = true;
    for one in text.chars() {
        match one {
            '\u{a0}' | '\u{2007}' | '\u{202f}' => out.push(' '),
            '\u{200b}' | '\u{2060}' | '\u{feff}' => {}
            '“' | '”' | '„' if !has_double => out.push('"'),
            '‘' | '’' if !has_single => out.push('\''),
            // Two hyphens before an option become one dash.
            '—' if is_start => out.push_str("--"),
            '–' if is_start => out.push('-'),
            one => out.push(one),
        }
        is_start = one.is_whitespace();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_typed_again() {
        assert_eq!(straightened("a\u{a0}“b” —c"), "a \"b\" --c");
        assert_eq!(straightened("a \"“b”\" don’t 1—2"), "a \"“b”\" don’t 1—2");
    }

    #[test]
    fn links_are_found() {
        let text = "[![x](https://a/b.svg)](https://c?d=1) <a href=\"https://e?f=1&amp;g=2\">";
        assert_eq!(
            addresses(text),
            ["https://a/b.svg", "https://c?d=1", "https://e?f=1&g=2"]
        );
    }
}
