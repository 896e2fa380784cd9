//! The members of the user's `mcp.json` beside `servers`: requests, tombstones, approvals, personal switches, packages.
//!
//! All are kept by place: the layer (with its directory, where there is one) and the name. What does not read is left
//! out, never guessed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstObject;
use protocol::{Layer, ServerEntry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agreed::Agreed;
use crate::config::store;
use crate::{env, limits};

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub layer: Layer,
    /// The real path of its project, for the layers of a project.
    pub root: Option<PathBuf>,
    pub name: String,
}

impl Place {
    pub fn user(name: &str) -> Place {
        Place {
            layer: Layer::User,
            root: None,
            name: name.to_owned(),
        }
    }

    /// The name of its layer's object.
    pub fn shelf(&self) -> String {
        match &self.root {
            Some(root) => format!("{}:{}", self.layer, root.display()),
            None => self.layer.to_string(),
        }
    }

    fn read(shelf: &str, name: &str) -> Option<Place> {
        let (layer, root) = match shelf.split_once(':') {
            Some((layer, root)) => (layer, Some(Path::new(root).to_owned())),
            None => (shelf, None),
        };
        let layer: Layer = serde_json::from_value(json!(layer)).ok()?;
        let of_project = matches!(layer, Layer::Project | Layer::ProjectPackage);
        (of_project == root.is_some() && name.chars().count() <= 200).then(|| Place {
            layer,
            root,
            name: name.to_owned(),
        })
    }
}

/// What somebody asked for and a person has to decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    pub requested_at: u64,
    pub expires_at: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action {
    /// The entry is to stand like this.
    Write(Box<ServerEntry>),
    Remove,
    Switch(bool),
}

impl Request {
    /// Whether its time is over. A request from the future was made before the clock was set back: nobody can say how
    /// old it is.
    pub fn is_over(&self, now: u64) -> bool {
        now >= self.expires_at
            || self.expires_at > self.requested_at + limits::REQUEST_LIFE_MS
            || self.requested_at > now + limits::CLOCK_SLACK_MS
    }
}

/// All of it, as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ledger {
    pub requests: BTreeMap<Place, Request>,
    /// Names that were rejected or lapsed, with the time.
    pub tombstones: BTreeMap<Place, u64>,
    /// What was approved, for entries that came through the gate.
    pub approved: BTreeMap<Place, Agreed>,
    /// Personal switches of entries whose file is not the person's alone.
    pub switches: BTreeMap<Place, bool>,
    /// Packages that are switched off, by folder.
    pub packages_off: Vec<String>,
}

impl Ledger {
    pub fn read(beside: &Value) -> Ledger {
        let packages = beside["packages"].as_object();
        Ledger {
            requests: shelves(beside, "pending"),
            tombstones: shelves(beside, "tombstones"),
            approved: shelves(beside, "approved"),
            switches: shelves(beside, "switches"),
            packages_off: packages
                .into_iter()
                .flatten()
                .filter(|(_, package)| package["enabled"] == false)
                .map(|(folder, _)| folder.clone())
                .collect(),
        }
    }

    /// Whether anything hangs on a place.
    pub fn knows(&self, place: &Place) -> bool {
        self.requests.contains_key(place)
            || self.tombstones.contains_key(place)
            || self.approved.contains_key(place)
            || self.switches.contains_key(place)
    }

    /// The same, from a file that is about to be changed.
    pub fn of(whole: &CstObject) -> Ledger {
        let mut beside = json!({});
        for member in ["pending", "tombstones", "approved", "switches", "packages"] {
            if let Some(value) = store::get(whole, &[member]) {
                beside[member] = value;
            }
        }
        Ledger::read(&beside)
    }

    /// When the next request lapses.
    pub fn next_end(&self) -> Option<u64> {
        self.requests.values().map(|request| request.expires_at).min()
    }
}

fn shelves<T: serde::de::DeserializeOwned>(beside: &Value, member: &str) -> BTreeMap<Place, T> {
    let mut found = BTreeMap::new();
    for (shelf, entries) in beside[member].as_object().into_iter().flatten() {
        for (name, value) in entries.as_object().into_iter().flatten() {
            if let Some(place) = Place::read(shelf, name)
                && let Ok(value) = serde_json::from_value(value.clone())
            {
                found.insert(place, value);
            }
        }
    }
    found
}

fn put(whole: &CstObject, member: &str, place: &Place, value: Option<&Value>) {
    store::set(whole, &[member, &place.shelf(), &place.name], value);
}

pub(crate) fn put_request(whole: &CstObject, place: &Place, request: Option<&Request>) {
    let value = request.map(|request| serde_json::to_value(request).unwrap_or_default());
    put(whole, "pending", place, value.as_ref());
}

pub(crate) fn put_tombstone(whole: &CstObject, place: &Place, at: Option<u64>) {
    put(whole, "tombstones", place, at.map(|at| json!(at)).as_ref());
}

pub(crate) fn put_approved(whole: &CstObject, place: &Place, agreed: Option<&Agreed>) {
    put(
        whole,
        "approved",
        place,
        agreed.map(|agreed| json!(agreed)).as_ref(),
    );
}

pub(crate) fn put_switch(whole: &CstObject, place: &Place, enabled: Option<bool>) {
    put(
        whole,
        "switches",
        place,
        enabled.map(|enabled| json!(enabled)).as_ref(),
    );
}

/// Whether somebody asked for something that no person decided yet.
pub(crate) fn is_asked(whole: &CstObject, place: &Place) -> bool {
    let requests = Ledger::of(whole).requests;
    requests
        .get(place)
        .is_some_and(|request| !request.is_over(env::now()))
}

/// Whether a person has to decide about an entry of this digest before it counts, or decided against it.
pub(crate) fn is_undecided(whole: &CstObject, place: &Place, digest: &str) -> bool {
    let ledger = Ledger::of(whole);
    ledger.requests.contains_key(place)
        || ledger.tombstones.contains_key(place)
        || ledger
            .approved
            .get(place)
            .is_some_and(|approved| approved.digest != digest)
}

/// Drops what was asked or refused. What was approved goes on counting: what differs from it is asked again.
pub(crate) fn reopen(whole: &CstObject, place: &Place) {
    put_request(whole, place, None);
    put_tombstone(whole, place, None);
}

/// What hangs on an entry follows a person's change of it, to its new name too. `is_open`: nothing was to be decided
/// about it, so what was approved is now what the person wrote; else it stays what it was. `is_switched`: the change was
/// about the switch.
pub(crate) fn follow(
    whole: &CstObject,
    (from, to): (&Place, &Place),
    agreed: &Agreed,
    is_open: bool,
    is_switched: bool,
) {
    let ledger = Ledger::of(whole);
    if ledger.approved.contains_key(from) && is_open {
        put_approved(whole, from, None);
        put_approved(whole, to, Some(agreed));
    }
    let switch = ledger.switches.get(from).copied();
    if from != to {
        put_tombstone(whole, to, None);
        put_switch(whole, from, None);
        put_switch(whole, to, switch);
    }
    if is_switched {
        put_switch(whole, to, None);
    }
}

/// Drops everything that hangs on a place: a person decided anew.
pub(crate) fn clear(whole: &CstObject, place: &Place) {
    put_request(whole, place, None);
    put_tombstone(whole, place, None);
    put_approved(whole, place, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_read_is_left_out() {
        let beside = json!({
            "pending": {"user": {"a": {"action": "remove", "requestedAt": 1, "expiresAt": 2}, "b": 7}, "nowhere": {"c": {}}},
            "tombstones": {"project": {"no-root": 1}, "project:/w": {"p": 5}},
            "switches": {"host": {"h": false}},
            "packages": {"x": {"enabled": false}, "y": {}},
        });
        let ledger = Ledger::read(&beside);
        assert_eq!(ledger.requests.keys().collect::<Vec<_>>(), [&Place::user("a")]);
        assert_eq!(ledger.tombstones.len(), 1);
        assert_eq!(ledger.switches.values().collect::<Vec<_>>(), [&false]);
        assert_eq!(ledger.packages_off, ["x"]);
    }

    #[test]
    fn no_clock_makes_a_request_live_longer() {
        let request = |requested_at, expires_at| Request {
            action: Action::Remove,
            requested_by: None,
            requested_at,
            expires_at,
        };
        let day = limits::REQUEST_LIFE_MS;
        let now = 10 * day;
        assert!(!request(now, now + day).is_over(now));
        assert!(request(now, now + day).is_over(now + day));
        assert!(
            request(now, now + 9 * day).is_over(now),
            "a longer life than any has"
        );
        assert!(
            request(now + day, now + 2 * day).is_over(now),
            "made in the future"
        );
    }
}
