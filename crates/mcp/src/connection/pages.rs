//! Lists that come in pages, read within bounds.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::call::CallOptions;
use super::envelope::quoted;
use super::{Connection, members};
use crate::error::CallError;
use crate::host::ListKind;
use crate::limits::{MAX_ITEMS, MAX_PAGES};

const INVALID_PARAMS: i64 = -32602;

/// How much of a list is read.
#[derive(Clone, Copy, Debug)]
pub struct ListLimits {
    pub pages: usize,
    pub items: usize,
}

impl Default for ListLimits {
    fn default() -> ListLimits {
        ListLimits {
            pages: MAX_PAGES,
            items: MAX_ITEMS,
        }
    }
}

/// What was read of a list.
#[derive(Debug, Default)]
pub struct Listed {
    /// As the server wrote them, in its order.
    pub items: Vec<Box<RawValue>>,
    /// Why the list may be incomplete, for people.
    pub issues: Vec<String>,
    /// How long the server says it stays true: the least of all pages.
    pub ttl_ms: Option<u64>,
}

impl ListKind {
    pub fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Resources => "resources/list",
            ListKind::ResourceTemplates => "resources/templates/list",
            ListKind::Prompts => "prompts/list",
        }
    }

    fn member(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::ResourceTemplates => "resourceTemplates",
            ListKind::Prompts => "prompts",
        }
    }
}

impl Connection {
    /// Reads a list to its end, or to a limit. `options` hold for each page.
    pub async fn list(
        &self,
        kind: ListKind,
        limits: ListLimits,
        options: CallOptions,
    ) -> Result<Listed, CallError> {
        let mut restarted = false;
        'again: loop {
            let mut reading = Reading::new(kind, limits);
            while let Some(params) = reading.next_params() {
                match self
                    .request(kind.method(), members::raw(&params), options.clone())
                    .await
                {
                    Ok(page) => reading.take(&page),
                    // The server has forgotten the cursor.
                    Err(CallError::Rpc {
                        code: INVALID_PARAMS, ..
                    }) if reading.pages > 0 && !restarted => {
                        restarted = true;
                        continue 'again;
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(reading.listed);
        }
    }
}

struct Reading {
    kind: ListKind,
    limits: ListLimits,
    listed: Listed,
    pages: usize,
    next: Next,
    seen: HashSet<String>,
}

enum Next {
    First,
    /// An empty one is a cursor like any other.
    Cursor(String),
    Done,
}

impl Reading {
    fn new(kind: ListKind, limits: ListLimits) -> Reading {
        Reading {
            kind,
            limits,
            listed: Listed::default(),
            pages: 0,
            next: Next::First,
            seen: HashSet::new(),
        }
    }

    fn next_params(&self) -> Option<String> {
        match &self.next {
            Next::First => Some("{}".into()),
            Next::Cursor(cursor) => Some(format!(r#"{{"cursor":{}}}"#, quoted(cursor))),
            Next::Done => None,
        }
    }

    fn take(&mut self, page: &RawValue) {
        self.pages += 1;
        self.next = Next::Done;
        let method = self.kind.method();
        let text = page.get();
        let Some(items) = members::member(text, self.kind.member()).and_then(members::elements) else {
            self.listed.issues.push(format!(
                "the answer to `{method}` has no list `{}`",
                self.kind.member()
            ));
            return;
        };
        for item in items {
            if self.listed.items.len() >= self.limits.items {
                self.listed.issues.push(format!(
                    "`{method}`: only the first {} entries were read",
                    self.limits.items
                ));
                return;
            }
            self.listed.items.push(members::raw(item));
        }
        let ttl = members::member(text, "ttlMs").map(|ttl| ttl.parse().unwrap_or(0));
        self.listed.ttl_ms = match (self.listed.ttl_ms, ttl) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
        let Some(cursor) = members::member(text, "nextCursor").filter(|cursor| *cursor != "null") else {
            return;
        };
        let Some(cursor) = members::string(cursor) else {
            self.listed.issues.push(format!(
                "`{method}`: the cursor is not a string, the rest was not read"
            ));
            return;
        };
        if !self.seen.insert(cursor.clone().into_owned()) {
            self.listed
                .issues
                .push(format!("`{method}`: the cursor repeats, the rest was not read"));
            return;
        }
        if self.pages >= self.limits.pages {
            self.listed.issues.push(format!(
                "`{method}`: there is a cursor after {} pages, the rest was not read",
                self.pages
            ));
            return;
        }
        self.next = Next::Cursor(cursor.into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pages, the last one again and again, and tells the requests, the items and the issues.
    fn check(limits: ListLimits, pages: &[&str], requests: usize, items: usize, issue: &str) {
        let mut reading = Reading::new(ListKind::Tools, limits);
        let mut sent = 0;
        while reading.next_params().is_some() {
            let page = pages[sent.min(pages.len() - 1)].replace("{n}", &sent.to_string());
            sent += 1;
            reading.take(&members::raw(&page));
        }
        assert_eq!((sent, reading.listed.items.len()), (requests, items), "{pages:?}");
        assert!(
            reading.listed.issues.join(" ").contains(issue),
            "{:?}",
            reading.listed.issues
        );
        assert_eq!(reading.listed.issues.is_empty(), issue.is_empty());
    }

    #[test]
    fn pages() {
        let all = ListLimits::default();
        check(all, &[r#"{"tools":[1,2],"nextCursor":null}"#], 1, 2, "");
        check(
            all,
            &[r#"{"tools":[1],"nextCursor":""}"#, r#"{"tools":[2]}"#],
            2,
            2,
            "",
        );
        check(all, &[r#"{"tools":[1],"nextCursor":""}"#], 2, 2, "cursor");
        check(all, &[r#"{"tools":[1],"nextCursor":"c"}"#], 2, 2, "cursor");
        check(all, &[r#"{"tools":[1],"nextCursor":"{n}"}"#], 100, 100, "cursor");
        check(all, &[r#"{"tools":[1],"nextCursor":7}"#], 1, 1, "cursor");
        check(all, &["{}"], 1, 0, "no list");
        check(
            ListLimits { pages: 9, items: 3 },
            &[r#"{"tools":[1,2],"nextCursor":"{n}"}"#],
            2,
            3,
            "first 3 entries",
        );
    }

    #[test]
    fn the_shortest_time_counts() {
        let mut reading = Reading::new(ListKind::Tools, ListLimits::default());
        reading.take(&members::raw(
            r#"{"tools":[{"a":1.10}],"ttlMs":5000,"nextCursor":"x"}"#,
        ));
        reading.take(&members::raw(r#"{"tools":[],"ttlMs":200}"#));
        assert_eq!(reading.listed.ttl_ms, Some(200));
        assert_eq!(reading.listed.items[0].get(), r#"{"a":1.10}"#);
    }
}
