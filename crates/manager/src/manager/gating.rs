//! What others ask for: it becomes a request, and nothing of it is started, contacted or discovered before a person
//! agrees.

use std::collections::BTreeMap;
use std::path::PathBuf;

use protocol::{Dir, EntryChange, Error, ErrorKind, Layer, Review, ReviewReason, ServerEntry, Tier, Written};
use serde_json::json;

use super::Manager;
use super::configuring::blocking;
use super::editing::check_entry;
use crate::config::layers::user_file;
use crate::config::{inside, merge};
use crate::consent::agreed::Agreed;
use crate::consent::held::Held;
use crate::consent::ledger::{Action, Place, Request};
use crate::consent::loosens;
use crate::consent::review::{self, Subject};
use crate::consent::{Gate, pending};
use crate::env;
use crate::server::Server;
use crate::sink::RequestContext;

/// A request, and the review a person gets of it.
pub(super) struct Waiting {
    pub place: Place,
    /// `None`: nobody sent it; the file was changed after an approval.
    pub request: Option<Request>,
    /// What belongs to it of a project's file.
    pub held: Option<Held>,
    pub review: Review,
}

impl Manager {
    /// Changes of several entries of one layer as requests, all of them or none. Answers when they lapse.
    pub async fn patch(
        &self,
        context: &RequestContext,
        directory: &Dir,
        layer: Layer,
        changes: BTreeMap<String, EntryChange>,
    ) -> Result<u64, Error> {
        let root = self.root(directory)?;
        self.layers.freshen(&self.core);
        let mut asked = Vec::with_capacity(changes.len());
        for (name, change) in changes {
            if name.is_empty() || name.chars().count() > 200 {
                return Err(
                    Error::new(ErrorKind::InvalidParams, "a name has 1 to 200 characters")
                        .path("/servers")
                        .expected("names of 1 to 200 characters"),
                );
            }
            let known = self
                .layers
                .in_layer(&root, &name, layer)
                .filter(|server| !server.is_empty);
            let action = if change.remove == Some(true) {
                if known.is_none() {
                    return Err(self.unknown(&root, &name));
                }
                Action::Remove
            } else {
                let stored = known.as_ref().map(|server| server.entry());
                let stored = stored.map_or_else(|| json!({}), |entry| json!(*entry));
                let merged = merge::merged(
                    &stored,
                    change.set.as_ref(),
                    change.unset.as_deref().unwrap_or_default(),
                )?;
                let entry: ServerEntry = serde_json::from_value(merged).map_err(|error| {
                    Error::new(ErrorKind::InvalidParams, error.to_string()).path(format!("/servers/{name}"))
                })?;
                check_entry(&entry, &format!("/servers/{name}/set"))?;
                Action::Write(Box::new(entry))
            };
            let is_name = (1..=32).contains(&name.len())
                && name != "pillion"
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            if known.is_none() && !is_name {
                return Err(Error::new(
                    ErrorKind::InvalidParams,
                    format!("`{name}` is no name for an entry"),
                )
                .path("/servers")
                .expected("1 to 32 letters, digits, `_` or `-`"));
            }
            asked.push((self.home(&root, layer, &name).place, action));
        }
        if asked.is_empty() {
            return Err(Error::new(ErrorKind::InvalidParams, "there is nothing to change").path("/servers"));
        }
        let places: Vec<Place> = asked.iter().map(|(place, _)| place.clone()).collect();
        self.ask_for(context, directory, asked).await?;
        let requests = self.layers.ledger().requests;
        let ends = places.iter().filter_map(|place| requests.get(place));
        Ok(ends.map(|request| request.expires_at).min().unwrap_or_default())
    }

    /// Puts requests to the person: all of them or none.
    pub(super) async fn ask_for(
        &self,
        context: &RequestContext,
        directory: &Dir,
        asked: Vec<(Place, Action)>,
    ) -> Result<Written, Error> {
        let now = env::now();
        let by = match context.tier {
            Tier::Local => "host",
            Tier::Full | Tier::ReadOnly => "peer",
        };
        let first = asked.first().map(|(place, _)| place.clone());
        let requests: Vec<(Place, Request)> = asked
            .into_iter()
            .map(|(place, action)| (place, pending::request(action, by, now)))
            .collect();
        let file = user_file(&self.core);
        blocking(move || pending::submit(&file, now, &requests)).await?;
        // Whatever runs under this name ends before this is answered.
        self.layers.reload(&self.core);
        let mut written = Written {
            server: None,
            review: None,
            file: None,
            text: None,
            written: true,
        };
        let Some(place) = first else { return Ok(written) };
        let root = self.core.root(directory);
        for server in self.layers.visible(&root) {
            if matches!(server.gate(), Gate::Pending { .. }) {
                server.stop().await;
            }
        }
        if let Some(server) = self.layers.in_layer(&root, &place.name, place.layer) {
            written.server = Some(self.record(&server, directory));
        }
        if context.tier == Tier::Local {
            let waiting = self.waiting(directory);
            written.review = waiting
                .into_iter()
                .find(|waiting| waiting.place == place)
                .map(|waiting| waiting.review);
        }
        Ok(written)
    }

    /// The reviews that concern a directory.
    pub(super) fn reviews(&self, directory: &Dir) -> Vec<Review> {
        self.waiting(directory)
            .into_iter()
            .map(|waiting| waiting.review)
            .collect()
    }

    /// Everything that waits for a decision and concerns a directory.
    pub(super) fn waiting(&self, directory: &Dir) -> Vec<Waiting> {
        let root = self.core.root(directory);
        let ledger = self.layers.ledger();
        let servers = self.layers.visible(&root);
        let pending = servers.iter().filter_map(|server| match server.gate() {
            Gate::Pending { expires_at } => Some((server, expires_at)),
            _ => None,
        });
        let waiting = pending.filter_map(|(server, expires_at)| {
            let place = server.place();
            let request = ledger.requests.get(&place).cloned();
            let stored = (!server.is_empty).then(|| server.entry());
            let proposed = match &request {
                Some(request) => pending::proposed(&request.action, stored.as_deref()),
                None => stored.as_deref().cloned(),
            }?;
            let base = if server.is_empty {
                self.base(&place)
            } else {
                server.base.clone()
            };
            let held = match &request {
                Some(_) => self.held_after(Some(server), &place, &proposed),
                None => server.held(),
            };
            let subject = Subject {
                directory,
                name: &place.name,
                layer: place.layer,
                base: &base,
                why: ReviewReason::Request,
                held: held.as_ref(),
                state: json!([
                    place.root,
                    request
                        .as_ref()
                        .map(|request| (request.requested_at, kind(&request.action)))
                ]),
            };
            let before = request.as_ref().and(stored.as_deref());
            let mut review = review::review(&subject, &proposed, before);
            review.expires_at = Some(expires_at);
            let is_removal = request
                .as_ref()
                .is_some_and(|request| request.action == Action::Remove);
            if is_removal || stored.is_none() {
                let below = self.layers.below(&root, &place.name, place.layer);
                review
                    .warnings
                    .extend(below.map(|below| changes_places(&below, &proposed, is_removal)));
            }
            match &request {
                Some(request) => {
                    review.requested_by.clone_from(&request.requested_by);
                    review.requested_at = Some(request.requested_at);
                    if is_removal {
                        review.warnings.insert(0, "the entry would be removed".to_owned());
                    }
                }
                None => {
                    let text = "the entry was changed in its file after it had been approved";
                    review.warnings.insert(0, text.to_owned());
                    if let Some(agreed) = ledger.approved.get(&place) {
                        review.before = agreed.target.clone().or_else(|| self.trusted_target(&place));
                        review.changed = agreed.changed(&proposed, held.as_ref());
                    }
                }
            }
            Some(Waiting {
                place,
                request,
                held,
                review,
            })
        });
        waiting.collect()
    }

    /// What is kept of an approval. What an entry of a project runs is kept with the trust in it.
    pub(super) fn approval(&self, place: &Place, entry: &ServerEntry, held: Option<&Held>) -> Agreed {
        let base = self.base(place);
        let target = place.root.is_none().then(|| review::target(entry, &base));
        Agreed::new(entry, target, held)
    }

    /// What belongs to an entry of a project's file when it comes to stand in a place, after what is `stored`. What was
    /// looked at of the file before goes on counting, so that nothing of it is agreed to unseen. Blocks on the disk.
    pub(super) fn held_after(
        &self,
        stored: Option<&Server>,
        place: &Place,
        entry: &ServerEntry,
    ) -> Option<Held> {
        if let Some(stored) = stored.filter(|stored| stored.entry().env_file == entry.env_file) {
            let held = stored.held();
            if held.is_some() || place.root.is_some() {
                return held;
            }
        }
        let (env, base) = (&self.core.env, self.base(place));
        match &place.root {
            Some(root) => Held::read(env, entry, &base, root),
            None => {
                let open = self.core.real_directories();
                Held::find(env, entry, &base, open.iter().map(|(root, _)| root))
            }
        }
    }

    pub(super) fn base(&self, place: &Place) -> PathBuf {
        place
            .root
            .clone()
            .unwrap_or_else(|| self.core.env.home().to_owned())
    }

    /// The one request that a decision names by the revision that was shown.
    pub(super) fn decided_on(&self, directory: &Dir, name: &str, revision: &str) -> Result<Waiting, Error> {
        let mut named: Vec<Waiting> = self
            .waiting(directory)
            .into_iter()
            .filter(|waiting| waiting.place.name == name)
            .collect();
        if let Some(found) = named
            .iter()
            .position(|waiting| *waiting.review.revision == *revision)
        {
            return Ok(named.swap_remove(found));
        }
        let root = self.core.root(directory);
        let is_known = !named.is_empty() || self.layers.shown(&root, name).is_some();
        Err(if is_known {
            pending::stale(name)
        } else {
            self.unknown(&root, name)
        })
    }
}

/// What to say of an entry that comes before another one of its name, or goes and leaves that one in its place.
pub(super) fn changes_places(below: &Server, entry: &ServerEntry, is_removal: bool) -> String {
    let (other, layer) = (below.entry(), below.layer);
    let (before, after, what) = match is_removal {
        false => (&*other, entry, "is hidden by it"),
        true => (entry, &*other, "takes its place"),
    };
    let lost = loosens::names_of_lost(before, after);
    let lost: Vec<&str> = lost.iter().map(String::as_str).collect();
    let lost = match lost.is_empty() {
        true => String::new(),
        false => format!(", and guards go away: {}", lost.join(", ")),
    };
    format!("the server of this name in the layer `{layer}` {what}{lost}")
}

fn kind(action: &Action) -> &'static str {
    match action {
        Action::Write(_) => "write",
        Action::Remove => "remove",
        Action::Switch(true) => "on",
        Action::Switch(false) => "off",
    }
}

/// The error of a file of a project that lies somewhere else.
pub(super) fn check_inside(path: &std::path::Path, root: &std::path::Path) -> Result<(), Error> {
    if !files::leads_out(path, root) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::WriteFailed, inside::told(path))
        .hint("remove the link; nothing was changed")
        .file(path.display().to_string()))
}
