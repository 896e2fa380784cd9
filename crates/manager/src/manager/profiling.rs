//! Profiles: which there are, and the choice of one for the session.

use std::path::Path;

use protocol::{ChosenProfile, Error, ErrorKind, Layer, McpProfile, McpProfileResult, ProfileEntry};

use super::{Manager, near};
use crate::config::profiles;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.profile`: what leaves stops when it is idle, what stays is not touched.
    pub async fn profile(&self, _: &RequestContext, params: McpProfile) -> Result<McpProfileResult, Error> {
        let root = self.root(&params.directory)?;
        self.layers.freshen(&self.core);
        if let Some(name) = &params.profile {
            let known = self.layers.with_profile(Some(name), |choice| {
                choice.map(|choice| (choice.is_known(), choice.known(), choice.unknown_name()))
            });
            if let Some((false, known, message)) = known {
                return Err(Error::new(ErrorKind::NotFound, message)
                    .what("profile")
                    .candidates(near(name, known))
                    .hint("`mcp.profile` lists the profiles"));
            }
            let was_out: Vec<_> = self
                .layers
                .all()
                .into_iter()
                .filter(|server| !server.is_enabled())
                .collect();
            self.layers.choose_profile(&self.core, name);
            self.start_eagerly(|server| was_out.iter().any(|out| std::ptr::eq(&**out, server)));
        }
        Ok(McpProfileResult {
            profile: self.chosen_profile(&root),
            profiles: self.profiles(&root),
        })
    }

    /// The profile in use, as seen from a directory.
    pub(super) fn chosen_profile(&self, root: &Path) -> Option<ChosenProfile> {
        let visible = self.layers.visible(root);
        self.layers.with_profile(None, |choice| {
            choice.map(|choice| choice.shown(|name| visible.iter().any(|server| *server.name == *name)))
        })
    }

    /// The profiles of the user's file and of a directory's.
    pub(super) fn profiles(&self, root: &Path) -> Vec<ProfileEntry> {
        let visible = self.layers.visible(root);
        let exists = |name: &str| visible.iter().any(|server| *server.name == *name);
        let files = self.layers.files(root).into_iter();
        let own = files.filter(|(layer, _)| matches!(layer, Layer::User | Layer::Project));
        own.flat_map(|(layer, file)| profiles::entries(&file, layer, exists))
            .collect()
    }
}
