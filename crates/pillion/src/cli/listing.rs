//! What the three lists (tools, resources, prompts) share: all pages as one, what it means when a server is missing, and
//! how all of it is printed.

use protocol::{Cursor, Issue, IssueKind};
use serde::Serialize;

use super::exit::Exit;
use super::failure::Failure;
use super::output::{self, Rows};
use super::session::Session;

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

/// One page as the protocol has it, or all of them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub items: Vec<T>,
    pub issues: Vec<Issue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
}

/// All pages as one; an issue that each page repeats is kept once. Says meanwhile which servers are waited for.
pub async fn all<T>(
    session: &Session,
    title: &str,
    fetch: impl AsyncFn(Option<Cursor>) -> Result<Page<T>, protocol::Error>,
) -> Result<Page<T>, Failure> {
    let pages = async {
        let mut all = fetch(None).await?;
        while let Some(cursor) = all.next_cursor.take() {
            let page = fetch(Some(cursor)).await?;
            all.items.extend(page.items);
            for issue in page.issues {
                if !all.issues.contains(&issue) {
                    all.issues.push(issue);
                }
            }
            all.next_cursor = page.next_cursor;
        }
        Ok::<_, protocol::Error>(all)
    };
    Ok(session.work(title, pages).await?)
}

/// All pages of a list method, over all servers or one.
macro_rules! list {
    ($session:expr, $server:expr, $title:literal, $params:ident, $method:ident, $call:ident) => {{
        let (session, server): (&$crate::cli::session::Session, Option<&str>) = ($session, $server);
        let fetch = async move |cursor| {
            let params = protocol::$params {
                directory: session.directory.clone(),
                server: server.map(Into::into),
                cursor,
                wait_ms: Some($crate::cli::listing::WAIT_MS),
                work_done_token: session.token(),
                ..Default::default()
            };
            let params = $crate::cli::session::checked::<protocol::methods::$method>(params)?;
            let page = session.manager.$call(&session.request, params).await?;
            Ok($crate::cli::listing::Page {
                items: page.items,
                issues: page.issues,
                next_cursor: page.next_cursor,
            })
        };
        $crate::cli::listing::all(session, $title, fetch)
    }};
}
pub(super) use list;

/// Prints a list. A named server without one is a failure.
pub fn print<T: Serialize>(
    session: &Session,
    server: Option<&str>,
    list: &Page<T>,
    table: impl FnOnce(&[T]) -> Rows,
    nothing: &str,
) -> Result<Exit, Failure> {
    if session.json {
        output::json(list)?;
    }
    if let Some(failure) = named_server_failed(server, list.items.is_empty(), &list.issues) {
        return Err(failure.already_printed(session.json));
    }
    if !session.json {
        session.warn(&list.issues);
        table(&list.items).print_unless_empty(nothing)?;
    }
    Ok(Exit::Done)
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
