//! The official MCP registry (its API `v0.1`): its list is copied once, kept up to date by what changed since, and
//! searched here, also without a network.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue};
use protocol::{ErrorKind, SearchNotice};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::mirror::{self, Mirror, Record};
use super::web;
use super::{date, web::notice};
use crate::core::Core;
use crate::env;
use crate::exchange::server_json::{self, ServerJson};
use crate::limits;
use crate::model::search::{self, Document};
use crate::progress::Work;

/// Names the registry, where it is not the official one.
const VARIABLE: &str = "PILLION_REGISTRY_URL";
const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// A server of the registry.
pub(crate) struct Listed {
    pub server: ServerJson,
    /// Why it should not be taken any more; may be empty.
    pub deprecated: Option<String>,
    pub updated_at: Option<u64>,
}

/// What a search came to.
pub(crate) struct Found {
    /// Those of this page.
    pub hits: Vec<Listed>,
    /// How many there are in all.
    pub n_hits: usize,
    /// Stands for the state of the list.
    pub state: String,
    pub notice: Option<SearchNotice>,
}

/// Which part of the hits is wanted.
pub(crate) struct Wanted<'a> {
    pub query: &'a str,
    pub start: usize,
    pub limit: usize,
    /// The list must not change between two pages.
    pub as_it_is: bool,
}

#[derive(Deserialize)]
struct Page {
    servers: Vec<Value>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// Searches the registry.
pub(crate) async fn search(core: &Core, wanted: &Wanted<'_>, work: &Work<'_>) -> Found {
    let base = match web::base(core.env.variable(VARIABLE), VARIABLE, OFFICIAL) {
        Ok(base) => base,
        Err(notice) => {
            return Found {
                hits: Vec::new(),
                n_hits: 0,
                state: String::new(),
                notice: Some(notice),
            };
        }
    };
    let path = mirror::path(core.env.data_dir(), base.as_str());
    let registry = Registry {
        core,
        base,
        path,
        deadline: Instant::now() + limits::MIRROR_READING,
    };
    // One server by its name needs no list of all.
    let mut is_silent = false;
    if !wanted.as_it_is && is_name(wanted.query) {
        let begun = Instant::now();
        if let Some(found) = registry.named(wanted.query).await {
            return found;
        }
        is_silent = begun.elapsed() >= limits::MIRROR_REFRESH;
    }
    let (mirror, notice) = registry.mirror(wanted, is_silent, work).await;
    let query = wanted.query.to_owned();
    let (start, limit) = (wanted.start, wanted.limit);
    let found = tokio::task::spawn_blocking(move || {
        let records: Vec<&Record> = mirror.records.values().collect();
        let ranked = ranked(&records, &query);
        let hits = ranked
            .iter()
            .skip(start)
            .take(limit)
            .map(|index| listed(records[*index]));
        Found {
            hits: hits.collect(),
            n_hits: ranked.len(),
            state: mirror.state(),
            notice,
        }
    });
    found.await.unwrap_or_else(|_| Found {
        hits: Vec::new(),
        n_hits: 0,
        state: String::new(),
        notice: Some(web::notice(
            ErrorKind::Internal,
            "the search did not end well",
            "",
        )),
    })
}

/// `io.github.me/weather`, `com.example/mcp`.
fn is_name(query: &str) -> bool {
    query.split_once('/').is_some_and(|(namespace, name)| {
        namespace.contains('.')
            && !name.is_empty()
            && query.len() <= 200
            && query
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || "-._/".contains(one))
            && !name.contains('/')
    })
}

fn listed(record: &Record) -> Listed {
    let value: Value = serde_json::from_str(record.server.get()).unwrap_or_default();
    Listed {
        server: server_json::read(&value),
        deprecated: record.deprecated.clone(),
        updated_at: record.updated_at,
    }
}

/// Indexes of the records that fit, best first.
fn ranked(records: &[&Record], query: &str) -> Vec<usize> {
    let documents: Vec<Document> = records
        .iter()
        .map(|record| {
            // The first half of a name is a domain: of it, only the publisher says anything.
            let (namespace, name) = record.name.split_once('/').unwrap_or(("", &record.name));
            let publisher = namespace.rsplit('.').next().unwrap_or_default();
            Document::new(
                publisher,
                name,
                record.title.as_deref(),
                Some(&record.description),
                &Value::Null,
            )
        })
        .collect();
    let mut hits = search::search(&documents, query, limits::FOUND);
    let lower = query.trim().to_lowercase();
    for (index, score) in &mut hits {
        let name = records[*index].name.to_lowercase();
        if name == lower || name.rsplit('/').next() == Some(lower.as_str()) {
            *score *= 2.0;
        }
        if records[*index].deprecated.is_some() {
            *score /= 2.0;
        }
    }
    hits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut ranked: Vec<usize> = hits.into_iter().map(|(index, _)| index).collect();
    // `postg` finds `postgres`, after all that holds the word itself.
    if lower.len() >= 3 {
        let known: std::collections::HashSet<usize> = ranked.iter().copied().collect();
        let parts = records.iter().enumerate().filter(|(index, record)| {
            let holds = |text: &str| text.to_lowercase().contains(&lower);
            !known.contains(index)
                && (holds(&record.name)
                    || record.title.as_deref().is_some_and(holds)
                    || holds(&record.description))
        });
        ranked.extend(parts.map(|(index, _)| index).take(limits::FOUND));
    }
    ranked
}

struct Registry<'a> {
    core: &'a Core,
    base: Url,
    path: PathBuf,
    deadline: Instant,
}

impl Registry<'_> {
    /// The list, read on or brought up to date where that is due and possible. A registry that was just silent is not
    /// waited for again where there is a copy.
    async fn mirror(
        &self,
        wanted: &Wanted<'_>,
        is_silent: bool,
        work: &Work<'_>,
    ) -> (Mirror, Option<SearchNotice>) {
        let mut mirror = load(&self.path).await;
        let age = env::now().saturating_sub(mirror.head.whole_at);
        if wanted.as_it_is || (mirror.head.whole_at > 0 && age < limits::MIRROR_FRESH_MS) {
            return (mirror, None);
        }
        if is_silent && mirror.head.whole_at > 0 {
            let reason = format!("it did not answer within {} s", limits::MIRROR_REFRESH.as_secs());
            let notice = of_the_copy(unreachable(&reason), &mirror);
            return (mirror, Some(notice));
        }
        let wait = if mirror.head.whole_at > 0 {
            Duration::ZERO
        } else {
            limits::MIRROR_READING
        };
        let path = self.path.clone();
        let lock = tokio::task::spawn_blocking(move || {
            if let Some(folder) = path.parent() {
                files::create_private_dir(folder)?;
            }
            files::Lock::take(&path, wait)
        });
        let Ok(Ok(_lock)) = lock.await else {
            // Somebody else reads it at this moment.
            return (mirror, None);
        };
        if !wait.is_zero() {
            // While this one waited, the list may have come.
            mirror = load(&self.path).await;
            if mirror.head.whole_at > 0 {
                return (mirror, None);
            }
        }
        let outcome = self.read_on(&mut mirror, work).await;
        let path = self.path.clone();
        let saved = tokio::task::spawn_blocking(move || {
            if let Err(error) = mirror.save(&path) {
                tracing::warn!(%error, "the copy of the registry's list cannot be written");
            }
            mirror
        });
        let Ok(mut mirror) = saved.await else {
            return (Mirror::default(), None);
        };
        let notice = match outcome {
            Ok(true) if mirror.is_full => Some(notice(
                ErrorKind::TooLarge,
                &format!("only {} servers of the registry are kept", mirror.records.len()),
                "",
            )),
            Ok(true) => None,
            Ok(false) => {
                self.by_words(&mut mirror, wanted.query).await;
                Some(notice(
                    ErrorKind::TimedOut,
                    &format!(
                        "the registry is still being read: {} servers so far",
                        mirror.records.len()
                    ),
                    "search again to go on reading",
                ))
            }
            Err(trouble) => Some(of_the_copy(trouble, &mirror)),
        };
        (mirror, notice)
    }

    /// Reads page after page; `false` when the time was not enough.
    async fn read_on(&self, mirror: &mut Mirror, work: &Work<'_>) -> Result<bool, SearchNotice> {
        let begun = env::now();
        let is_first = mirror.head.whole_at == 0;
        if is_first && mirror.head.cursor.is_none() {
            mirror.head.begun = begun;
        }
        let since = (!is_first).then(|| mirror.head.begun.saturating_sub(limits::MIRROR_OVERLAP_MS));
        let mut cursor = mirror.head.cursor.clone().filter(|_| is_first);
        // Once the registry answers, it may take its time.
        let mut limit = if is_first {
            limits::FIND_EXCHANGE
        } else {
            limits::MIRROR_REFRESH
        };
        loop {
            let mut query = vec![("limit", "100".to_owned()), ("version", "latest".to_owned())];
            query.extend(since.map(|since| ("updated_since", date::rfc3339(since))));
            query.extend(cursor.clone().map(|cursor| ("cursor", cursor)));
            let page = self.page(&query, limit).await?;
            limit = limits::FIND_EXCHANGE;
            for listed in page.servers {
                mirror.take(listed);
            }
            let next = page.metadata.and_then(|metadata| metadata.next_cursor);
            let next = next.filter(|next| !next.is_empty() && Some(next) != cursor.as_ref());
            work.message(&format!("{} servers of the registry", mirror.records.len()));
            if next.is_none() || mirror.is_full {
                mirror.head.whole_at = env::now();
                mirror.head.cursor = None;
                if !is_first {
                    mirror.head.begun = begun;
                }
                return Ok(true);
            }
            if is_first {
                mirror.head.cursor.clone_from(&next);
            }
            cursor = next;
            if Instant::now() >= self.deadline {
                return Ok(false);
            }
        }
    }

    /// While the list is not whole, the registry itself is asked for names with the first word.
    async fn by_words(&self, mirror: &mut Mirror, query: &str) {
        let Some(word) = query.split_whitespace().next() else {
            return;
        };
        let query = [
            ("limit", "100".to_owned()),
            ("version", "latest".to_owned()),
            ("search", word.to_owned()),
        ];
        if let Ok(page) = self.page(&query, limits::FIND_EXCHANGE).await {
            page.servers.into_iter().for_each(|listed| mirror.take(listed));
        }
    }

    /// One server that is asked for by its name; `None` where the list has to be looked at.
    async fn named(&self, name: &str) -> Option<Found> {
        let path = format!("/v0.1/servers/{}/versions/latest", name.replace('/', "%2F"));
        let url = web::below(&self.base, &path)?;
        let limit = match self.path.exists() {
            true => limits::MIRROR_REFRESH,
            false => limits::FIND_EXCHANGE,
        };
        let answer = web::get(self.core.finder(), &url, &json_only(), limit)
            .await
            .ok()?;
        let value: Value = serde_json::from_slice(&answer.body)
            .ok()
            .filter(|_| answer.is_success())?;
        let mut one = Mirror::default();
        one.take(value);
        let record = one.records.get(name)?;
        Some(Found {
            hits: vec![listed(record)],
            n_hits: 1,
            state: String::new(),
            notice: None,
        })
    }

    async fn page(&self, query: &[(&str, String)], limit: Duration) -> Result<Page, SearchNotice> {
        let mut url =
            web::below(&self.base, "/v0.1/servers").ok_or_else(|| unreachable("its address is wrong"))?;
        url.query_pairs_mut().extend_pairs(query);
        let answer = web::get(self.core.finder(), &url, &json_only(), limit)
            .await
            .map_err(|reason| unreachable(&reason))?;
        if !answer.is_success() {
            let mut notice = match answer.status {
                429 => web::notice(
                    ErrorKind::RateLimited,
                    "the registry asks for patience",
                    "search again later",
                ),
                status => unreachable(&format!("it answered with status {status}")),
            };
            notice.http_status = Some(answer.status);
            let seconds = answer
                .headers
                .get("retry-after")
                .and_then(|value| value.to_str().ok());
            notice.retry_at = seconds
                .and_then(|seconds| seconds.parse::<u64>().ok())
                .map(|seconds| env::now().saturating_add(seconds.saturating_mul(1000)));
            return Err(notice);
        }
        serde_json::from_slice(&answer.body).map_err(|_| unreachable("its answer is no list of servers"))
    }
}

fn unreachable(reason: &str) -> SearchNotice {
    let message = format!("the registry cannot be reached ({reason})");
    notice(
        ErrorKind::Unreachable,
        &message,
        "check the network and the proxy; the gallery works without",
    )
}

/// With what is searched instead.
fn of_the_copy(mut trouble: SearchNotice, mirror: &Mirror) -> SearchNotice {
    let known = match (mirror.head.whole_at, mirror.records.len()) {
        (0, 0) => return trouble,
        (0, count) => format!("{count} of its servers are known"),
        (then, _) => format!("this is its list of {} ago", age_of(then)),
    };
    trouble.message = format!("{}; {known}", trouble.message);
    trouble
}

fn json_only() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))])
}

async fn load(path: &Path) -> Mirror {
    let path = path.to_owned();
    let loaded = tokio::task::spawn_blocking(move || Mirror::load(&path)).await;
    loaded.unwrap_or_default()
}

/// `5 minutes`, `3 hours`, `2 days`.
fn age_of(then: u64) -> String {
    let minutes = env::now().saturating_sub(then) / 60_000;
    let (count, unit) = match minutes {
        0..60 => (minutes, "minute"),
        60..2_880 => (minutes / 60, "hour"),
        _ => (minutes / 1_440, "day"),
    };
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{end}")
}
