//! `mcp.gallery`: the bundled list of servers, with what each would add.

use protocol::{Draft, Error, GalleryItem, McpGallery, McpGalleryResult, NewName};

use super::Manager;
use crate::consent::review;
use crate::find::gallery;
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
}
