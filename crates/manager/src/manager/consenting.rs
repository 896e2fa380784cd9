//! The person's decisions: requests and trust.

use std::path::Path;

use protocol::{
    Decision, DecisionSubject, Error, ErrorKind, Layer, McpDecide, McpDecideResult, McpPending,
    McpPendingResult, McpTrust, McpTrustResult, Review, ReviewReason, Revision, ServerEntry, Target,
    TrustAction,
};
use serde_json::json;

use super::Manager;
use super::configuring::{blocking, switch};
use super::gating::{Waiting, changes_places, check_inside};
use crate::config::book::TrustItem;
use crate::config::layers::{project_file, trust_file, user_file};
use crate::config::store::{self, Readers};
use crate::consent::agreed::Agreed;
use crate::consent::held::Held;
use crate::consent::ledger::{self, Action, Place};
use crate::consent::review::{self, Subject};
use crate::consent::trust::{self, Trusted};
use crate::consent::{audit, pending};
use crate::server::Server;
use crate::sink::RequestContext;
use crate::{env, limits};

impl Manager {
    /// `mcp.pending`.
    pub async fn pending(&self, _: &RequestContext, params: McpPending) -> Result<McpPendingResult, Error> {
        self.root(&params.directory)?;
        self.layers.freshen(&self.core);
        let mut reviews = self.reviews(&params.directory);
        reviews.truncate(limits::REQUESTS);
        Ok(McpPendingResult {
            reviews,
            limit: limits::REQUESTS as u32,
        })
    }

    /// `mcp.decide`: approval writes the entry and starts nothing; rejection drops what was submitted.
    pub async fn decide(&self, _: &RequestContext, params: McpDecide) -> Result<McpDecideResult, Error> {
        let root = self.root(&params.directory)?;
        if params.subject == Some(DecisionSubject::Tools) {
            let server = self.server(&params.directory, &params.server)?;
            self.decide_tools(&server, &params.revision, params.decision)
                .await?;
            self.core.audit(&audit::Event::Decision {
                server: &server.name,
                layer: server.layer,
                subject: DecisionSubject::Tools.as_str(),
                decision: params.decision.as_str(),
            });
            return Ok(McpDecideResult {
                server: Some(self.record(&server, &params.directory)),
            });
        }
        self.layers.freshen(&self.core);
        let waiting = self.decided_on(&params.directory, &params.server, &params.revision)?;
        let place = waiting.place.clone();
        let action = waiting.request.as_ref().map(|request| &request.action);
        let is_removal = params.decision == Decision::Approve && action == Some(&Action::Remove);
        let removed = self
            .layers
            .in_layer(&root, &place.name, place.layer)
            .filter(|_| is_removal);
        match params.decision {
            Decision::Approve => self.approve(&root, waiting).await?,
            Decision::Reject => self.reject(waiting).await?,
        }
        self.core.audit(&audit::Event::Decision {
            server: &place.name,
            layer: place.layer,
            subject: DecisionSubject::Entry.as_str(),
            decision: params.decision.as_str(),
        });
        self.layers.reload(&self.core);
        if let Some(removed) = removed {
            self.forget_definitions(&removed).await;
        }
        let server = self.layers.in_layer(&root, &place.name, place.layer);
        let shown = server.or_else(|| self.layers.shown(&root, &place.name));
        Ok(McpDecideResult {
            server: shown.map(|server| self.record(&server, &params.directory)),
        })
    }

    async fn approve(&self, root: &Path, waiting: Waiting) -> Result<(), Error> {
        let now = env::now();
        let file = user_file(&self.core);
        let Waiting {
            place, request, held, ..
        } = waiting;
        let of_project = place.layer == Layer::Project;
        let known = self.layers.in_layer(root, &place.name, place.layer);
        let stored = known
            .filter(|server| !server.is_empty)
            .map(|server| server.entry());
        let action = request.as_ref().map(|request| request.action.clone());
        let approved = match &action {
            Some(action) => pending::proposed(action, stored.as_deref()),
            None => stored.as_deref().cloned(),
        };
        // The project's file first: until the request is gone, what stands there counts for nothing.
        if of_project && !matches!(action, None | Some(Action::Switch(_))) {
            let (path, name) = (project_file(root), place.name.clone());
            check_inside(&path, root)?;
            let value = match &action {
                Some(Action::Write(entry)) => Some(serde_json::to_value(entry).unwrap_or_default()),
                _ => None,
            };
            let before = stored.as_deref().map(text);
            blocking(move || {
                store::edit(&path, Readers::Everyone, |whole| {
                    let now = pending::stored(whole, &name);
                    if now.as_ref().map(text) != before {
                        return Err(pending::stale(&name));
                    }
                    store::set(whole, &["servers", &name], value.as_ref());
                    Ok(())
                })
            })
            .await?;
        }
        let is_removal = action == Some(Action::Remove);
        let to_keep = approved
            .as_ref()
            .map(|entry| self.approval(&place, entry, held.as_ref()));
        let (wanted, before) = (place.clone(), stored.as_deref().map(text));
        blocking(move || {
            pending::change(&file, now, |whole, ledger| {
                if ledger.requests.get(&wanted) != request.as_ref() {
                    return Err(pending::stale(&wanted.name));
                }
                if wanted.layer == Layer::User {
                    let now = pending::stored(whole, &wanted.name);
                    if now.as_ref().map(text) != before {
                        return Err(pending::stale(&wanted.name));
                    }
                }
                ledger::clear(whole, &wanted);
                match &action {
                    Some(Action::Write(entry)) if wanted.layer == Layer::User => {
                        let value = serde_json::to_value(entry).unwrap_or_default();
                        store::set(whole, &["servers", &wanted.name], Some(&value));
                    }
                    Some(Action::Remove) => {
                        if wanted.layer == Layer::User {
                            store::set(whole, &["servers", &wanted.name], None);
                        }
                        return Ok(());
                    }
                    Some(Action::Switch(enabled)) => switch(whole, &wanted, *enabled),
                    Some(Action::Write(_)) | None => {}
                }
                ledger::put_approved(whole, &wanted, to_keep.as_ref());
                Ok(())
            })
        })
        .await?;
        match approved {
            Some(entry) if of_project => {
                if is_removal {
                    return self.forget_trust(root, &place.name).await;
                }
                self.trust_entry(
                    root,
                    &project_key(&place.name),
                    agreed(&entry, root, held.as_ref()),
                )
                .await
            }
            _ => Ok(()),
        }
    }

    async fn reject(&self, waiting: Waiting) -> Result<(), Error> {
        let now = env::now();
        let file = user_file(&self.core);
        let Waiting { place, request, .. } = waiting;
        blocking(move || {
            pending::change(&file, now, |whole, ledger| {
                if ledger.requests.get(&place) != request.as_ref() {
                    return Err(pending::stale(&place.name));
                }
                // What was approved stays: an entry that differs from it is asked again before it is switched on.
                ledger::put_request(whole, &place, None);
                ledger::put_tombstone(whole, &place, Some(now));
                Ok(())
            })
        })
        .await
    }

    /// `mcp.trust`.
    pub async fn trust(&self, _: &RequestContext, params: McpTrust) -> Result<McpTrustResult, Error> {
        let root = self.root(&params.directory)?;
        self.layers.freshen(&self.core);
        let (items, revision, trusted) = self.layers.to_trust(&root);
        match params.action.unwrap_or(TrustAction::Review) {
            TrustAction::Review => {}
            TrustAction::Grant => {
                if params.revision.as_deref() != Some(&*revision) {
                    return Err(
                        Error::new(ErrorKind::StaleReview, "the project is not as it was shown")
                            .hint("look at `mcp.trust` again and decide again"),
                    );
                }
                let entries = items
                    .iter()
                    .map(|item| {
                        (
                            item.key.clone(),
                            agreed(&item.entry, &item.base, item.held.as_ref()),
                        )
                    })
                    .collect();
                let granted = Trusted {
                    granted_at: env::now(),
                    entries,
                };
                self.change_trust(&root, move |_| Some(granted)).await?;
            }
            TrustAction::Revoke => self.change_trust(&root, |_| None).await?,
        }
        if let Some(action) = params.action.filter(|action| *action != TrustAction::Review) {
            self.core.audit(&audit::Event::Trust {
                directory: &params.directory,
                action: action.as_str(),
            });
            self.layers.reload(&self.core);
            self.core
                .changes
                .mark_all(&self.core, protocol::ChangeReason::Trust);
        }
        let reviews = items
            .iter()
            .map(|item| {
                let below = self.layers.below(&root, &item.name, item.layer);
                project_review(&params, item, trusted.as_ref(), below.as_deref())
            })
            .collect();
        Ok(McpTrustResult {
            state: self.layers.trust_state(&root),
            revision: Revision::from(revision),
            reviews,
        })
    }

    async fn change_trust(
        &self,
        root: &Path,
        change: impl FnOnce(Option<Trusted>) -> Option<Trusted> + Send + 'static,
    ) -> Result<(), Error> {
        let (file, root) = (trust_file(&self.core), root.to_owned());
        blocking(move || trust::change(&file, &root, change)).await
    }

    /// Trust follows a person's change of an entry, to its new name too, where it was trusted as it was before.
    pub(super) async fn follow_trust(
        &self,
        root: &Path,
        (from, to): (&str, &str),
        before: String,
        entry: Agreed,
    ) -> Result<(), Error> {
        let (from, to) = (project_key(from), project_key(to));
        self.change_trust(root, move |trusted| {
            let mut trusted = trusted?;
            let known = trusted.entries.remove(&from);
            // A name that was trusted before says nothing about what comes to stand there.
            trusted.entries.remove(&to);
            if known.is_some_and(|known| known.digest == before) {
                trusted.entries.insert(to, entry);
            }
            left(trusted)
        })
        .await
    }

    /// What an entry of a project ran when it was trusted.
    pub(super) fn trusted_target(&self, place: &Place) -> Option<Target> {
        let (_, _, trusted) = self.layers.to_trust(place.root.as_deref()?);
        trusted?.entries.remove(&project_key(&place.name))?.target
    }

    /// Trust in an entry that is no more: the same text is asked about should it come back.
    pub(super) async fn forget_trust(&self, root: &Path, name: &str) -> Result<(), Error> {
        let key = project_key(name);
        let (_, _, trusted) = self.layers.to_trust(root);
        if !trusted.is_some_and(|trusted| trusted.entries.contains_key(&key)) {
            return Ok(());
        }
        self.change_trust(root, move |trusted| {
            let mut trusted = trusted?;
            trusted.entries.remove(&key);
            left(trusted)
        })
        .await
    }

    /// Trusts one entry as it stands, and leaves the rest of its project as trusted as it was.
    pub(super) async fn trust_entry(&self, root: &Path, key: &str, entry: Agreed) -> Result<(), Error> {
        let key = key.to_owned();
        self.change_trust(root, move |trusted| {
            let mut trusted = trusted.unwrap_or_else(|| Trusted {
                granted_at: env::now(),
                ..Trusted::default()
            });
            trusted.entries.insert(key, entry);
            Some(trusted)
        })
        .await
    }
}

/// An entry of a project's own file in `trust.json`.
pub(super) fn project_key(name: &str) -> String {
    format!("project:{name}")
}

/// A directory of which nothing is trusted any more has no place in the file.
fn left(trusted: Trusted) -> Option<Trusted> {
    (!trusted.entries.is_empty()).then_some(trusted)
}

/// What a person agrees to who was shown this entry.
pub(super) fn agreed(entry: &ServerEntry, base: &Path, held: Option<&Held>) -> Agreed {
    Agreed::new(entry, Some(review::target(entry, base)), held)
}

/// What a change of the text shows by.
fn text(entry: &ServerEntry) -> String {
    review::digest(entry, None)
}

fn project_review(
    params: &McpTrust,
    item: &TrustItem,
    trusted: Option<&Trusted>,
    below: Option<&Server>,
) -> Review {
    let known = trusted.and_then(|trusted| trusted.entries.get(&item.key));
    let subject = Subject {
        directory: &params.directory,
        name: &item.name,
        layer: item.layer,
        base: &item.base,
        why: match trusted {
            Some(_) if known.is_none_or(|known| known.digest != item.digest) => ReviewReason::ProjectChanged,
            _ => ReviewReason::Project,
        },
        held: item.held.as_ref(),
        state: json!(item.key),
    };
    let mut review = review::review(&subject, &item.entry, None);
    if let Some(known) = known.filter(|known| known.digest != item.digest) {
        review.before.clone_from(&known.target);
        review.changed = known.changed(&item.entry, item.held.as_ref());
        if review::length(&review) > limits::REVIEW_BYTES - limits::REVIEW_NOTES_BYTES {
            (review.before, review.changed) = (None, Vec::new());
            let note = "it is not what was trusted; the difference is too long to be shown";
            review.warnings.insert(0, note.to_owned());
        }
    }
    let hidden = below.map(|below| changes_places(below, &item.entry, false));
    review.warnings.extend(hidden);
    let faults = item.faults.iter();
    review.warnings.splice(
        0..0,
        faults.map(|fault| format!("does not start as it stands: {fault}")),
    );
    review
}
