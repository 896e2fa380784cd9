//! `pillion search`: servers to add, from the gallery, the official registry and GitHub.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use protocol::{Draft, Hit, McpGallery, McpGalleryResult, McpSearch, McpSearchResult, SearchSource, methods};
use serde_json::{Value, json};

use super::draft;
use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

/// After this long a source is late: what the others found is shown without it.
const LATE: Duration = Duration::from_secs(1);

/// Look for servers to add: in the gallery and the official registry, or on GitHub
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to look for
    #[arg(required = true)]
    words: Vec<String>,
    /// Where to look; may be repeated [default: gallery and registry]
    #[arg(long, value_name = "SOURCE")]
    source: Vec<Source>,
    /// At most this many of each source (1 to 100)
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Source {
    Gallery,
    Registry,
    Github,
    All,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let query = args.words.join(" ");
    let wants = |source: Source| match args.source.as_slice() {
        [] => source != Source::Github,
        given => given.contains(&source) || given.contains(&Source::All),
    };
    let mut answers: Vec<Answer> = Vec::new();
    if wants(Source::Gallery) {
        let params = McpGallery {
            directory: session.directory.clone(),
            query: Some(query.clone()),
            category: None,
        };
        let found = session
            .manager
            .gallery(&session.request, checked::<methods::Gallery>(params)?)
            .await?;
        answers.push(Answer::Gallery(found));
    }
    let mut waiting: Vec<SearchSource> = [
        (SearchSource::Registry, Source::Registry),
        (SearchSource::Github, Source::Github),
    ]
    .into_iter()
    .filter(|(_, name)| wants(*name))
    .map(|(source, _)| source)
    .collect();
    let sources = waiting.clone();
    let mut searches: FuturesUnordered<_> = sources
        .iter()
        .map(|source| search(args, session, &query, *source))
        .collect();
    let mut n_shown = 0;
    while !searches.is_empty() {
        let title = match waiting.len() == sources.len() {
            true => "Searching".to_owned(),
            false => format!("Waiting for {}", in_words(&waiting)),
        };
        // A person reads what is there while a source is late; a program gets everything at once.
        let is_ready = answers[n_shown..].iter().any(|answer| answer.n_hits(args) > 0);
        let next = if is_ready && session.terminal.stdout && !session.json {
            session
                .work(&title, tokio::time::timeout(LATE, searches.next()))
                .await
        } else {
            Ok(session.work(&title, searches.next()).await)
        };
        match next {
            Ok(Some(found)) => {
                let (source, found) = found?;
                waiting.retain(|waiting| *waiting != source);
                answers.push(Answer::Found(source, found));
            }
            Ok(None) => break,
            Err(_) => {
                output::line(&table(args, session, &answers[n_shown..]).text())?;
                n_shown = answers.len();
            }
        }
    }
    // In the same order, whoever was first.
    answers[n_shown..].sort_by_key(|answer| match answer {
        Answer::Gallery(_) => 0,
        Answer::Found(SearchSource::Registry, _) => 1,
        Answer::Found(SearchSource::Github, _) => 2,
    });
    let is_searched = answers.iter().any(Answer::is_searched);
    let exit = if is_searched { Exit::Done } else { Exit::Failed };
    if session.json {
        let document: serde_json::Map<String, Value> = answers.iter().map(Answer::document).collect();
        output::json(&document)?;
        return Ok(exit);
    }
    let is_any = answers.iter().any(|answer| answer.n_hits(args) > 0);
    let is_left = answers[n_shown..].iter().any(|answer| answer.n_hits(args) > 0);
    if is_left {
        output::line(&table(args, session, &answers[n_shown..]).text())?;
    } else if !is_any {
        eprintln!(
            "{}",
            if is_searched {
                "Nothing fits"
            } else {
                "Nothing was searched"
            }
        );
    }
    let paint = session.terminal.on_stderr();
    let found = || {
        answers.iter().filter_map(|answer| match answer {
            Answer::Found(_, found) => Some(found),
            Answer::Gallery(_) => None,
        })
    };
    for notice in found().filter_map(|found| found.notice.as_ref()) {
        warn(paint, &notice.message, notice.hint.as_deref());
    }
    let hint = paint.cyan("hint:");
    if is_any {
        let is_more = found().any(|found| found.next_cursor.is_some());
        let more = if is_more { "; `--limit 100` shows more" } else { "" };
        eprintln!("{hint} `pillion add --from ID` shows one whole and adds it{more}");
    } else if !wants(Source::Github) {
        eprintln!("{hint} `--source github` looks for repositories");
    }
    Ok(exit)
}

/// What one source knows.
enum Answer {
    Gallery(McpGalleryResult),
    Found(SearchSource, McpSearchResult),
}

impl Answer {
    /// How many rows it has.
    fn n_hits(&self, args: &Args) -> usize {
        match self {
            Answer::Gallery(found) => found.items.len().min(args.limit as usize),
            Answer::Found(_, found) => found.hits.len(),
        }
    }

    fn is_searched(&self) -> bool {
        match self {
            Answer::Gallery(_) => true,
            Answer::Found(_, found) => found.notice.is_none() || !found.hits.is_empty(),
        }
    }

    fn document(&self) -> (String, Value) {
        match self {
            Answer::Gallery(found) => ("gallery".to_owned(), json!(found)),
            Answer::Found(source, found) => (source.as_str().to_owned(), json!(found)),
        }
    }
}

async fn search(
    args: &Args,
    session: &Session,
    query: &str,
    source: SearchSource,
) -> Result<(SearchSource, McpSearchResult), Failure> {
    let params = McpSearch {
        directory: session.directory.clone(),
        query: query.to_owned(),
        source,
        cursor: None,
        limit: Some(args.limit),
        // Reading the registry's list is what takes long; one token is for one request.
        work_done_token: session.token().filter(|_| source == SearchSource::Registry),
    };
    let found = session
        .manager
        .search(&session.request, checked::<methods::Search>(params)?)
        .await?;
    Ok((source, found))
}

fn in_words(sources: &[SearchSource]) -> String {
    let words = sources.iter().map(|source| match source {
        SearchSource::Registry => "the registry",
        SearchSource::Github => "GitHub",
    });
    words.collect::<Vec<_>>().join(" and ")
}

fn table(args: &Args, session: &Session, answers: &[Answer]) -> Rows {
    let mut rows = Rows::new(session.terminal, &["ID", "WHAT IT DOES", "HOW", "KNOWN BY"]);
    for answer in answers {
        match answer {
            Answer::Gallery(found) => {
                for item in found.items.iter().take(args.limit as usize) {
                    rows.add([
                        &item.id,
                        &item.description,
                        &how(Some(&item.draft), None),
                        &format!("gallery, by {}", item.publisher),
                    ]);
                }
            }
            Answer::Found(source, found) => found.hits.iter().for_each(|hit| add(&mut rows, hit, *source)),
        }
    }
    rows
}

fn add(rows: &mut Rows, hit: &Hit, source: SearchSource) {
    let (id, known) = match source {
        SearchSource::Registry => (
            hit.id.clone(),
            match &hit.version {
                Some(version) => format!("registry, {version}"),
                None => "registry".to_owned(),
            },
        ),
        SearchSource::Github => (
            format!("github:{}", hit.id),
            format!("GitHub, {} stars", hit.stars.unwrap_or_default()),
        ),
    };
    rows.add([
        &id,
        &hit.description,
        &how(hit.draft.as_ref(), hit.note.as_deref()),
        &known,
    ]);
}

/// `npx - needs API_KEY`, or why it cannot be added.
pub fn how(draft: Option<&Draft>, note: Option<&str>) -> String {
    let Some(draft) = draft else {
        return note.unwrap_or("cannot be added from its description").to_owned();
    };
    let names: Vec<&str> = draft
        .needs
        .iter()
        .filter(|need| manager::is_open(&draft.entry, need))
        .map(|need| need.label.as_str())
        .collect();
    let mut how = draft::word(draft).to_owned();
    if !names.is_empty() {
        how = format!("{how} - needs {}", names.join(", "));
    }
    if draft
        .warnings
        .iter()
        .any(|warning| warning.starts_with("unverified"))
    {
        how.push_str(" - unverified");
    }
    if let Some(note) = note {
        how = format!("{how} - {note}");
    }
    how
}
