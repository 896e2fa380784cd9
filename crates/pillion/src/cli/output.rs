//! The one door to stdout: data for people as tables and text, data for programs as one JSON document.
//!
//! A reader that left (`pillion tools | head -1`) ends the writing quietly.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write};

use comfy_table::{Attribute, Cell, ContentArrangement, Table, presets};
use serde::Serialize;

use super::failure::Failure;
use super::terminal::{Terminal, one_line};

/// Columns from which on a table is worth wrapping.
const NARROWEST: u16 = 20;

/// Writes to stdout as it is.
pub fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// One line or several, ended by a newline.
pub fn line(text: &str) -> Result<(), Failure> {
    raw(format!("{text}\n").as_bytes())
}

/// One JSON document on one line. What belongs to an MCP server stands in it as the server wrote it.
pub fn json(result: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(result)
        .map_err(|error| Failure::new(format!("cannot write the result as JSON: {error}")))?;
    line(&text)
}

/// A table without lines: a row is a line when stdout is no terminal, and wraps to its width when it is one.
pub struct Rows {
    table: Table,
}

impl Rows {
    pub fn new(terminal: Terminal, header: &[&str]) -> Rows {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        // Some terminals say that they have no columns, or a few: nobody could read what fits there.
        if terminal.stdout && table.width().is_none_or(|columns| columns >= NARROWEST) {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        let bold = terminal.on_stdout().0;
        table.set_header(header.iter().map(|title| {
            let cell = Cell::new(title);
            if bold {
                cell.add_attribute(Attribute::Bold)
            } else {
                cell
            }
        }));
        for column in 0..header.len() {
            if let Some(column) = table.column_mut(column) {
                column.set_padding((0, 2));
            }
        }
        Rows { table }
    }

    pub fn add<const N: usize>(&mut self, cells: [&str; N]) {
        self.table.add_row(cells.map(one_line));
    }

    /// An empty list is no data: it is said on stderr.
    pub fn print_unless_empty(&self, otherwise: &str) -> Result<(), Failure> {
        if self.table.is_empty() {
            eprintln!("{otherwise}");
            return Ok(());
        }
        line(&self.text())
    }

    pub fn text(&self) -> String {
        self.table.trim_fmt()
    }
}

/// Text moved in by `by` spaces.
pub fn indented(text: &str, by: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let _ = writeln!(out, "{:by$}{line}", "");
    }
    out.truncate(out.trim_end().len());
    out
}

/// The width that text should keep to; `None` where no person reads it.
pub fn width(terminal: Terminal) -> Option<usize> {
    let width = Table::new().width().filter(|_| terminal.stdout);
    width.map(usize::from).filter(|width| *width >= 40)
}

/// A text in lines of at most `width` columns, broken between words; a longer word stays whole.
pub fn wrapped(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else {
        return vec![text.to_owned()];
    };
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits = lines
            .last()
            .is_some_and(|line| line.is_empty() || columns(line) + 1 + columns(word) <= width);
        match lines.last_mut().filter(|_| fits) {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Characters that show: what sets a colour does not.
fn columns(text: &str) -> usize {
    let mut is_escape = false;
    let shows = |c: &char| match (is_escape, *c) {
        (false, '\x1b') => {
            is_escape = true;
            false
        }
        (true, 'm') => {
            is_escape = false;
            false
        }
        (is_escape, _) => !is_escape,
    };
    text.chars().filter(shows).count()
}

/// `12 B`, `3.4 kB`, `5.6 MB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_plain_and_aligned() {
        let terminal = Terminal::test(false);
        let mut rows = Rows::new(terminal, &["NAME", "STATE"]);
        rows.add(["docs", "ready\nnow"]);
        rows.add(["a-longer-name", "\x1b[2Jstopped"]);
        assert_eq!(
            rows.text(),
            "NAME           STATE\ndocs           ready now\na-longer-name  \\u{1b}[2Jstopped"
        );
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [size(999), size(1_500), size(2_340_000)],
            ["999 B", "1.5 kB", "2.3 MB"]
        );
    }
}
