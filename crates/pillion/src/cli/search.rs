//! `pillion search`: servers to add, from the gallery, the official registry and GitHub.

use protocol::{Draft, GalleryItem, Hit, McpGallery, McpSearch, SearchNotice, SearchSource, methods};
use serde_json::json;

use super::draft;
use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output::{self, Rows};
use super::session::{Common, Session, checked};

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
    let mut document = serde_json::Map::new();
    let mut rows = Rows::new(session.terminal, &["ID", "WHAT IT DOES", "HOW", "KNOWN BY"]);
    let mut notices: Vec<SearchNotice> = Vec::new();
    let mut is_any = false;
    let mut is_searched = false;
    let mut is_more = false;
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
        is_searched = true;
        for item in found.items.iter().take(args.limit as usize) {
            is_any = true;
            let GalleryItem {
                id,
                description,
                publisher,
                draft,
                ..
            } = item;
            rows.add([
                id,
                description,
                &how(Some(draft), None),
                &format!("gallery, by {publisher}"),
            ]);
        }
        document.insert("gallery".to_owned(), json!(found));
    }
    for (source, name) in [
        (SearchSource::Registry, Source::Registry),
        (SearchSource::Github, Source::Github),
    ] {
        if !wants(name) {
            continue;
        }
        let params = McpSearch {
            directory: session.directory.clone(),
            query: query.clone(),
            source,
            cursor: None,
            limit: Some(args.limit),
            work_done_token: session.token(),
        };
        let search = session
            .manager
            .search(&session.request, checked::<methods::Search>(params)?);
        let found = session.work("Searching", search).await?;
        for hit in &found.hits {
            is_any = true;
            add(&mut rows, hit, source);
        }
        is_more |= found.next_cursor.is_some();
        is_searched |= found.notice.is_none() || !found.hits.is_empty();
        notices.extend(found.notice.clone());
        document.insert(source.as_str().to_owned(), json!(found));
    }
    if session.json {
        output::json(&document)?;
        return Ok(if is_searched { Exit::Done } else { Exit::Failed });
    }
    if is_searched {
        rows.print_unless_empty("Nothing fits")?;
    } else {
        eprintln!("Nothing was searched");
    }
    let paint = session.terminal.on_stderr();
    for notice in &notices {
        warn(paint, &notice.message, notice.hint.as_deref());
    }
    let hint = paint.cyan("hint:");
    if is_any {
        let more = if is_more { "; `--limit 100` shows more" } else { "" };
        eprintln!("{hint} `pillion add --from ID` shows one whole and adds it{more}");
    } else if !wants(Source::Github) {
        eprintln!("{hint} `--source github` looks for repositories");
    }
    Ok(if is_searched { Exit::Done } else { Exit::Failed })
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
