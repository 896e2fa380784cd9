//! `pillion add --from ID`: a server of the gallery, of the registry or of a repository, as `pillion search` names it.

use protocol::{Draft, Hit, McpGallery, McpSearch, SearchSource, methods};

use super::draft::{self, Wanted};
use super::exit::Exit;
use super::failure::{Failure, warn};
use super::output;
use super::session::{Session, checked};

pub async fn run(
    id: &str,
    way: Option<&str>,
    wanted: &Wanted<'_>,
    session: &Session,
) -> Result<Exit, Failure> {
    let drafts = drafts(id.trim(), session).await?;
    let draft = match way {
        None => &drafts[0],
        Some(way) => drafts
            .iter()
            .find(|draft| draft::word(draft) == way)
            .ok_or_else(|| {
                let ways: Vec<&str> = drafts.iter().map(draft::word).collect();
                Failure::usage(format!("`{id}` cannot be had with `{way}`"))
                    .hint(format!("`--way` is one of: {}", ways.join(", ")))
            })?,
    };
    if way.is_none() && drafts.len() > 1 && !session.json {
        let others: Vec<String> = drafts[1..]
            .iter()
            .map(|draft| format!("--way {}", draft::word(draft)))
            .collect();
        eprintln!("Other ways to have it: {}", others.join(", "));
    }
    let written = draft::add(draft, wanted, session).await?;
    if let Some(written) = written.as_ref().filter(|_| session.json) {
        output::json(written)?;
    }
    Ok(draft::exit(written.is_some()))
}

/// What the id stands for, best way first; never empty.
async fn drafts(id: &str, session: &Session) -> Result<Vec<Draft>, Failure> {
    if let Some(repository) = id.strip_prefix("github:") {
        if repository.split('/').filter(|part| !part.is_empty()).count() != 2 {
            return Err(Failure::usage(format!("`{id}` names no repository"))
                .hint("write `github:OWNER/NAME`, as in the address of the repository"));
        }
        return searched(id, repository, SearchSource::Github, session).await;
    }
    if let Some((namespace, _)) = id.split_once('/') {
        if !namespace.contains('.') {
            return Err(
                Failure::usage(format!("`{id}` is no name of the registry")).hint(format!(
                    "a repository is written `github:{id}`; `pillion search` finds names of the registry"
                )),
            );
        }
        return searched(
            id,
            id.strip_prefix("registry:").unwrap_or(id),
            SearchSource::Registry,
            session,
        )
        .await;
    }
    let params = McpGallery {
        directory: session.directory.clone(),
        ..Default::default()
    };
    let params = checked::<methods::Gallery>(params)?;
    let gallery = session.manager.gallery(&session.request, params).await?;
    if let Some(item) = gallery.items.iter().find(|item| item.id == id) {
        return Ok(vec![item.draft.clone()]);
    }
    let near: Vec<&str> = gallery
        .items
        .iter()
        .map(|item| item.id.as_str())
        .filter(|known| known.contains(id) || id.contains(known))
        .collect();
    let failure = Failure::usage(format!("the gallery has no `{id}`")).hint(format!(
        "`pillion search {id}` looks in the registry too; `pillion gallery` lists all"
    ));
    Err(if near.is_empty() {
        failure
    } else {
        failure.note(format!("Near: {}", near.join(", ")))
    })
}

async fn searched(
    id: &str,
    query: &str,
    source: SearchSource,
    session: &Session,
) -> Result<Vec<Draft>, Failure> {
    let params = McpSearch {
        directory: session.directory.clone(),
        query: query.to_owned(),
        source,
        cursor: None,
        limit: Some(20),
        work_done_token: session.token(),
    };
    let search = session
        .manager
        .search(&session.request, checked::<methods::Search>(params)?);
    let result = session.work("Searching", search).await?;
    let notice = result.notice;
    let Some(hit) = result
        .hits
        .into_iter()
        .find(|hit| hit.id.eq_ignore_ascii_case(query))
    else {
        let failure = match notice {
            Some(notice) => {
                let failure = Failure::new(notice.message);
                return Err(match notice.hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                });
            }
            None => Failure::new(format!("there is no `{id}`")),
        };
        return Err(failure.hint(match source {
            SearchSource::Registry => {
                "`pillion search WORDS` finds its name; a repository is written `github:OWNER/NAME`"
            }
            SearchSource::Github => "write `github:OWNER/NAME`, as in the address of the repository",
        }));
    };
    if let Some(notice) = &notice {
        warn(
            session.terminal.on_stderr(),
            &notice.message,
            notice.hint.as_deref(),
        );
    }
    let Hit {
        draft,
        alternatives,
        note,
        url,
        ..
    } = hit;
    if let Some(note) = &note
        && draft.is_some()
    {
        warn(session.terminal.on_stderr(), note, None);
    }
    match draft {
        Some(draft) => Ok(std::iter::once(draft).chain(alternatives).collect()),
        None => Err(
            Failure::new(format!("`{id}` cannot be added from its description"))
                .cause(note.unwrap_or_default())
                .hint(format!("its page says more: {url}")),
        ),
    }
}
