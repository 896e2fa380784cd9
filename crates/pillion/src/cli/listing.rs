//! What the three lists (tools, resources, prompts) share: all pages as one, and what it means when a server is missing.

use protocol::{Cursor, Issue, IssueKind};

use super::failure::Failure;

/// How long a list waits for servers to start: a first `npx` downloads the server.
pub const WAIT_MS: u64 = 60_000;

/// What a list says about an item.
pub fn description<'a>(description: &'a Option<String>, title: &'a Option<String>) -> &'a str {
    first_sentence(description.as_deref().or(title.as_deref()).unwrap_or_default())
}

/// Enough for a list; descriptions are written for models and can fill pages.
pub fn first_sentence(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    line.split_once(". ")
        .map_or(line, |(sentence, _)| sentence)
        .trim_end_matches('.')
}

/// One page as the protocol has it.
pub struct Page<T> {
    pub items: Vec<T>,
    pub issues: Vec<Issue>,
    pub next: Option<Cursor>,
}

/// All pages as one list; an issue that each page repeats is kept once.
pub async fn pages<T>(
    fetch: impl AsyncFn(Option<Cursor>) -> Result<Page<T>, protocol::Error>,
) -> Result<(Vec<T>, Vec<Issue>), protocol::Error> {
    let mut items = Vec::new();
    let mut issues: Vec<Issue> = Vec::new();
    let mut cursor = None;
    loop {
        let page = fetch(cursor).await?;
        items.extend(page.items);
        for issue in page.issues {
            if !issues.contains(&issue) {
                issues.push(issue);
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok((items, issues));
        }
    }
}

/// A server that was asked for by name and could not be listed is a failure; one of many is an issue.
pub fn named_server_failed(server: Option<&str>, is_empty: bool, issues: &[Issue]) -> Option<Failure> {
    server.filter(|_| is_empty)?;
    issues.iter().find_map(|issue| match &issue.kind {
        IssueKind::Error(kind) => {
            let mut error = protocol::Error::new(kind.clone(), issue.message.clone());
            error.data.hint.clone_from(&issue.hint);
            error.data.server = server.map(Into::into);
            Some(Failure::from(error))
        }
        IssueKind::ItemSkipped
        | IssueKind::SchemaRewritten
        | IssueKind::NotImported
        | IssueKind::NotExported
        | IssueKind::DeclinedUnseen
        | IssueKind::Note => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit::Exit;
    use protocol::ErrorKind;

    #[test]
    fn a_list_shows_the_first_sentence() {
        assert_eq!(first_sentence("Read a file. Handles text.\nMore"), "Read a file");
        assert_eq!(first_sentence("\n Only v1.2 works.\n"), "Only v1.2 works");
    }

    #[test]
    fn only_the_named_server_makes_a_list_fail() {
        let issues = [
            Issue::new(IssueKind::Note, "slow"),
            Issue::new(ErrorKind::TimedOut, "no answer"),
        ];
        let failed = named_server_failed(Some("a"), true, &issues);
        assert_eq!(failed.map(|failure| failure.exit), Some(Exit::Deadline));
        assert!(named_server_failed(Some("a"), false, &issues).is_none());
        assert!(named_server_failed(None, true, &issues).is_none());
        assert!(named_server_failed(Some("a"), true, &issues[..1]).is_none());
    }
}
