//! What loosens a guard: members of an entry that allow more than usual, and guards of it that would go away.

use std::collections::BTreeSet;

use protocol::{Layer, OAuth, OauthSetting, ServerEntry};
use serde_json::{Value, json};

/// The guards of an entry that are no part of what is started; `None` where it has none.
pub(crate) fn guards(entry: &ServerEntry) -> Option<Value> {
    let tools = entry.tools.as_ref()?;
    let guards = [
        ("deny", &tools.deny),
        ("ask", &tools.ask),
        ("allow", &tools.allow),
    ];
    // No tool is denied by an empty list, and none allowed.
    let is_one = |(name, list): &(&str, &Option<Vec<String>>)| match list {
        Some(list) => !list.is_empty() || *name == "allow",
        None => false,
    };
    let guards: serde_json::Map<String, Value> = guards
        .into_iter()
        .filter(is_one)
        .map(|(name, list)| (name.to_owned(), json!(list)))
        .collect();
    (!guards.is_empty()).then(|| guards.into())
}

/// What an entry loosens by itself, and what it takes away of the guards of the one that is `stored`. `tools.auto` of a
/// project counts for nothing.
pub(crate) fn of(entry: &ServerEntry, stored: Option<&ServerEntry>, layer: Layer) -> Vec<String> {
    let mut relaxes = stored.map_or_else(Vec::new, |stored| taken_away(stored, entry));
    if let Some(auto) = entry.tools.as_ref().and_then(|tools| tools.auto.as_ref())
        && !auto.is_empty()
        && !matches!(layer, Layer::Project | Layer::ProjectPackage)
    {
        relaxes.push(format!("tools.auto: nobody is asked before {}", auto.join(", ")));
    }
    if let Some(OauthSetting::On(oauth)) = &entry.oauth {
        if let Some(tolerate) = oauth.tolerate.as_ref().filter(|list| !list.is_empty()) {
            relaxes.push(format!("oauth.tolerate: {}", tolerate.join(", ")));
        }
        if oauth.authorization_endpoint.is_some() || oauth.token_endpoint.is_some() {
            relaxes.push("oauth: endpoints that the authorization server does not name".to_owned());
        }
        if matches!(oauth.resource, Some(protocol::ResourceSetting::Off(_))) {
            relaxes.push("oauth.resource: tokens are not bound to this server".to_owned());
        }
    }
    let overrides = entry
        .tools
        .iter()
        .flat_map(|tools| tools.overrides.iter().flatten());
    for (tool, shown) in overrides {
        let to = shown.name.as_ref().map(|name| format!(" as `{name}`"));
        let said = shown.description.is_some() || shown.title.is_some();
        let said = if said {
            " in other words than the server's"
        } else {
            ""
        };
        relaxes.push(format!(
            "tools.overrides: `{tool}` is shown{}{said}",
            to.unwrap_or_default()
        ));
    }
    if let Some(protocol) = entry.protocol.as_ref().filter(|pinned| *pinned != "auto") {
        relaxes.push(format!("protocol: {protocol}"));
    }
    if entry.tls.is_some() {
        relaxes.push("tls: certificates of its own".to_owned());
    }
    relaxes
}

/// The guards of an entry that are not in what would stand in its place.
fn taken_away(before: &ServerEntry, after: &ServerEntry) -> Vec<String> {
    let mut gone = Vec::new();
    let (old, new) = (before.tools.clone(), after.tools.clone());
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    for pattern in missing(&old.deny, &new.deny) {
        gone.push(format!("tools.deny: `{pattern}` is not kept away any more"));
    }
    for pattern in missing(&old.ask, &new.ask) {
        gone.push(format!("tools.ask: nobody is asked before `{pattern}` any more"));
    }
    match (&old.allow, &new.allow) {
        (Some(_), None) => gone.push("tools.allow: every tool is allowed".to_owned()),
        (Some(_), Some(_)) => gone.extend(
            missing(&new.allow, &old.allow)
                .map(|pattern| format!("tools.allow: `{pattern}` is allowed, too")),
        ),
        (None, _) => {}
    }
    if before.elicitation == Some(false) && after.elicitation != Some(false) {
        gone.push("elicitation: the server may ask you questions".to_owned());
    }
    if before.parallel == Some(false) && after.parallel != Some(false) {
        gone.push("parallel: the server gets several calls at a time".to_owned());
    }
    for (id, input) in after.inputs.iter().flatten() {
        let known = before.inputs.as_ref().and_then(|inputs| inputs.get(id));
        if input.secret == Some(false) && known.is_none_or(|known| known.secret != Some(false)) {
            gone.push(format!("inputs: what is typed for `{id}` may be seen"));
        }
    }
    let (old, new) = (oauth(before), oauth(after));
    if old.issuer.is_some() && new.issuer.is_none() {
        gone.push("oauth.issuer: the client is shown to whichever authorization server is named".to_owned());
    }
    if old.dpop == Some(true) && new.dpop != Some(true) {
        gone.push("oauth.dpop: tokens are not bound to a key".to_owned());
    }
    if matches!(before.oauth, Some(OauthSetting::Off(_)))
        && !matches!(after.oauth, Some(OauthSetting::Off(_)))
    {
        gone.push("oauth: the server may ask for a login".to_owned());
    }
    gone
}

fn oauth(entry: &ServerEntry) -> OAuth {
    match &entry.oauth {
        Some(OauthSetting::On(oauth)) => oauth.clone(),
        Some(OauthSetting::Off(_)) | None => OAuth::default(),
    }
}

/// The members whose guards an entry does not have in the place of another one.
pub(crate) fn names_of_lost(before: &ServerEntry, after: &ServerEntry) -> BTreeSet<String> {
    let gone = taken_away(before, after).into_iter();
    gone.filter_map(|told| Some(told.split_once(':')?.0.to_owned()))
        .collect()
}

/// What of a list is not in another one.
fn missing<'l>(
    list: &'l Option<Vec<String>>,
    other: &'l Option<Vec<String>>,
) -> impl Iterator<Item = &'l String> {
    let is_there = |item: &&String| other.as_ref().is_some_and(|other| other.contains(item));
    list.iter().flatten().filter(move |item| !is_there(item))
}
