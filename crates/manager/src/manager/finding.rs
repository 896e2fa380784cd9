//! `mcp.gallery`: the bundled list of servers, with what each would add. `mcp.search`: the registry and GitHub.

use std::path::Path;

use protocol::{
    Cursor, Draft, Error, ErrorKind, GalleryItem, Hit, Layer, McpGallery, McpGalleryResult, McpSearch,
    McpSearchResult, Need, NewName, SearchSource, ServerEntry,
};

use super::Manager;
use crate::catalog::page;
use crate::config::file;
use crate::consent::{review, warnings};
use crate::exchange::names;
use crate::exchange::server_json::{ServerJson, Way};
use crate::find::{gallery, github, registry};
use crate::limits;
use crate::progress::Work;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.gallery`. Reads no file but those of the configuration, and asks nobody.
    pub async fn gallery(&self, _: &RequestContext, params: McpGallery) -> Result<McpGalleryResult, Error> {
        let root = self.root(&params.directory)?;
        self.layers.freshen_soon(&self.core);
        let present = self.layers.visible(&root);
        let query = params.query.unwrap_or_default();
        let found = gallery::find(&query, params.category.as_deref());
        let items = found.map(|listed| {
            let (entry, source) = (listed.entry(), listed.source());
            let is_there = |one: &std::sync::Arc<crate::server::Server>| {
                one.entry().source.as_deref() == Some(source.as_str())
            };
            GalleryItem {
                id: listed.id.clone(),
                category: listed.category.clone(),
                publisher: listed.publisher.clone(),
                description: listed.description.clone(),
                homepage: Some(listed.homepage.clone()),
                added: present.iter().any(is_there),
                draft: Draft {
                    name: NewName::from(listed.id.as_str()),
                    name_taken: self.layers.shown(&root, &listed.id).is_some(),
                    scope: None,
                    target: review::target(&entry, self.core.env.home()),
                    entry,
                    needs: listed.needs.clone(),
                    warnings: listed.note.iter().cloned().collect(),
                },
            }
        });
        Ok(McpGalleryResult {
            items: items.collect(),
            categories: gallery::CATEGORIES.map(str::to_owned).to_vec(),
        })
    }

    /// `mcp.search`. What cannot be reached is a notice; nothing is written but the copy of the registry's list.
    pub async fn search(
        &self,
        request: &RequestContext,
        params: McpSearch,
    ) -> Result<McpSearchResult, Error> {
        let root = self.root(&params.directory)?;
        self.layers.freshen_soon(&self.core);
        let title = format!("Searching {}", params.source.as_str());
        let token = params.work_done_token.as_ref();
        let work = Work::begin(&self.core.calls, &self.core.sink, token, &title, true)?;
        let searching = async {
            match params.source {
                SearchSource::Registry => self.search_registry(&root, &params, &work).await,
                SearchSource::Github => self.search_github(&root, &params).await,
            }
        };
        tokio::select! {
            result = searching => result,
            () = request.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "cancelled by the host")),
        }
    }

    async fn search_registry(
        &self,
        root: &Path,
        params: &McpSearch,
        work: &Work<'_>,
    ) -> Result<McpSearchResult, Error> {
        let limit = params.limit.map_or(limits::FOUND_PAGE, |limit| limit as usize);
        // The state of the list stands behind the digest of what was asked for.
        let asked = file::digest(format!("registry {}", params.query).as_bytes());
        let (start, state) = match &params.cursor {
            None => (0, None),
            Some(cursor) => {
                let (cursor, state) = cursor.rsplit_once('-').ok_or_else(page::stale)?;
                (
                    page::offset(cursor, &asked).ok_or_else(page::stale)?,
                    Some(state.to_owned()),
                )
            }
        };
        let wanted = registry::Wanted {
            query: &params.query,
            start,
            limit,
            as_it_is: state.is_some(),
        };
        let found = registry::search(&self.core, &wanted, work).await;
        let now = file::digest(found.state.as_bytes());
        if state.is_some_and(|state| state != now) {
            return Err(page::stale());
        }
        let next = start + found.hits.len();
        let next_cursor = (next < found.n_hits && !found.hits.is_empty())
            .then(|| Cursor::from(format!("{next}-{asked}-{now}")));
        Ok(McpSearchResult {
            hits: found
                .hits
                .into_iter()
                .map(|listed| self.registry_hit(root, listed))
                .collect(),
            next_cursor,
            notice: found.notice,
        })
    }

    fn registry_hit(&self, root: &Path, listed: registry::Listed) -> Hit {
        let server = listed.server;
        let name = server.short_name();
        let mut notes = Vec::new();
        if let Some(why) = &listed.deprecated {
            notes.push(match why.as_str() {
                "" => "its publisher says that it should not be used any more".to_owned(),
                why => format!("its publisher says that it should not be used any more: {why}"),
            });
        }
        let mut drafts = self.drafts_of(root, &name, &server).into_iter();
        let draft = drafts.next();
        if draft.is_none() {
            notes.extend(server.refused.iter().cloned());
        }
        Hit {
            title: server.title.clone().unwrap_or_else(|| server.name.clone()),
            url: server
                .page
                .clone()
                .unwrap_or_else(|| format!("https://registry.modelcontextprotocol.io/?q={}", server.name)),
            publisher: server
                .name
                .split_once('/')
                .map(|(namespace, _)| namespace.to_owned()),
            id: server.name,
            description: server.description,
            version: server.version,
            stars: None,
            updated_at: listed.updated_at,
            draft,
            alternatives: drafts.collect(),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        }
    }

    /// What each way of a description would add, best first.
    pub(super) fn drafts_of(&self, root: &Path, name: &str, server: &ServerJson) -> Vec<Draft> {
        let drafts = server.ways.iter().map(|way| {
            let Way {
                entry,
                needs,
                warnings,
                ..
            } = way;
            self.found_draft(root, name, entry.clone(), needs.clone(), warnings.clone())
        });
        drafts.collect()
    }

    fn found_draft(
        &self,
        root: &Path,
        name: &str,
        entry: ServerEntry,
        needs: Vec<Need>,
        mut warnings: Vec<String>,
    ) -> Draft {
        for warning in warnings::of(&entry, Layer::User, self.core.env.home()) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Draft {
            name: NewName::from(name),
            name_taken: self.layers.in_layer(root, name, Layer::User).is_some(),
            scope: None,
            target: review::target(&entry, self.core.env.home()),
            entry,
            needs,
            warnings,
        }
    }

    async fn search_github(&self, root: &Path, params: &McpSearch) -> Result<McpSearchResult, Error> {
        let limit = params.limit.map_or(limits::FOUND_PAGE, |limit| limit as usize);
        let asked = file::digest(format!("github {limit} {}", params.query).as_bytes());
        let number = match &params.cursor {
            None => 1,
            Some(cursor) => page::offset(cursor, &asked).ok_or_else(page::stale)?,
        };
        let found = github::search(&self.core, &params.query, number, limit).await;
        let is_more = !found.repositories.is_empty() && number.saturating_mul(limit) < found.n_hits;
        let hits = found
            .repositories
            .into_iter()
            .map(|repository| self.github_hit(root, repository));
        Ok(McpSearchResult {
            hits: hits.collect(),
            next_cursor: is_more.then(|| Cursor::from(format!("{}-{asked}", number + 1))),
            notice: found.notice,
        })
    }

    fn github_hit(&self, root: &Path, repository: github::Repository) -> Hit {
        let offered = repository.entry();
        let draft = offered.map(|(entry, is_verified)| {
            let mut warnings = Vec::new();
            if !is_verified {
                warnings.push(
                    "unverified: the command is a guess from the repository's name; compare it with the README"
                        .to_owned(),
                );
            }
            let name = names::fitting(&names::short(repository.full_name.rsplit('/').next().unwrap_or_default()));
            self.found_draft(root, &name, entry, Vec::new(), warnings)
        });
        Hit {
            title: repository.full_name.clone(),
            description: repository.description.clone().unwrap_or_default(),
            url: repository.html_url.clone(),
            publisher: repository
                .full_name
                .split_once('/')
                .map(|(owner, _)| owner.to_owned()),
            version: None,
            stars: Some(repository.stargazers_count),
            updated_at: repository.pushed_at(),
            draft,
            alternatives: Vec::new(),
            note: repository
                .archived
                .then(|| "the repository is archived".to_owned()),
            id: repository.full_name,
        }
    }
}
