//! Tools as they were listed last, stored logins, and the clocks of remote servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use protocol::CatalogItem;
use url::Url;

use super::code::Code;
use super::{Found, Ground, network};
use crate::limits;

pub(super) async fn look(ground: &Arc<Ground>) -> Vec<Found> {
    let mut found = tools(ground).await;
    found.extend(logins(ground));
    if ground.start {
        found.extend(clocks(ground).await);
    }
    found
}

async fn tools(ground: &Arc<Ground>) -> Vec<Found> {
    let mut found = Vec::new();
    let mut offered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for server in ground.effective.iter().filter(|server| server.is_enabled()) {
        let Some(list) = server.catalog.seen_tools(server).await else {
            continue;
        };
        for item in &list.items {
            if let CatalogItem::Tool(tool) = &item.shown
                && tool.hidden.is_none()
            {
                let offers = offered.entry(tool.name.clone()).or_default();
                offers.insert(server.name.to_string());
            }
        }
        if !ground.concerns(server) {
            continue;
        }
        let (pins, lineage) = (Arc::clone(&ground.core), server.lineage());
        let book = tokio::task::spawn_blocking(move || pins.pins.accepted(&lineage)).await;
        let held: Vec<String> = list
            .items
            .iter()
            .filter_map(|item| match (&item.shown, &book) {
                (CatalogItem::Tool(tool), Ok(book)) if book.holds(&tool.name) => Some(tool.name.clone()),
                _ => None,
            })
            .collect();
        if !held.is_empty() {
            let message = format!(
                "tools of `{}` changed since they were accepted, and are held",
                server.name
            );
            found.push(
                Found::new(Code::ToolsHeld, message)
                    .of(server)
                    .shown_by(held)
                    .hint("`mcp.tools.review` shows the difference"),
            );
        }
    }
    let concerned = |offers: &BTreeSet<String>| {
        offers.len() > 1 && ground.only.as_ref().is_none_or(|only| offers.contains(&**only))
    };
    let doubles: Vec<String> = offered
        .iter()
        .filter(|(_, offers)| concerned(offers))
        .map(|(tool, offers)| {
            let offers: Vec<&str> = offers.iter().map(String::as_str).collect();
            format!("{tool}: {}", offers.join(", "))
        })
        .collect();
    if !doubles.is_empty() {
        let number = doubles.len();
        let noun = if number == 1 { "tool has" } else { "tools have" };
        let message =
            format!("{number} {noun} the same name on several servers: a model may take the wrong one");
        found.push(Found::new(Code::ToolDuplicate, message).shown_by(doubles).hint(
            "disable a server that is not needed, or deny some of its tools in `tools.deny` of its entry",
        ));
    }
    found
}

/// Whether there is a token and until when; never the token.
fn logins(ground: &Ground) -> Vec<Found> {
    let now = crate::env::now();
    let logins = ground.enabled().filter_map(|server| {
        let stored = server.stored_login().filter(|stored| stored.has_token)?;
        let name = &server.name;
        if !stored.is_usable() {
            let message = format!("the login of `{name}` is over and cannot be renewed");
            return Some(
                Found::new(Code::LoginExpired, message)
                    .of(server)
                    .hint("log in again with `mcp.auth`"),
            );
        }
        let until = match stored.expires_at {
            Some(at) if at > now => format!("logged in for {} more minutes", (at - now) / 60_000),
            _ => "logged in".to_owned(),
        };
        let renewed = if stored.is_renewable {
            ", renewed by itself"
        } else {
            ""
        };
        Some(Found::new(Code::Login, format!("{name}: {until}{renewed}")).of(server))
    });
    logins.collect()
}

/// The clocks of remote servers with a login, whose ends are counted by ours.
async fn clocks(ground: &Ground) -> Vec<Found> {
    let client = ground.core.client();
    let looks = ground.enabled().filter_map(|server| {
        server.stored_login().filter(|stored| stored.has_token)?;
        let url = Url::parse(server.entry().url.as_deref()?).ok()?;
        Some(async move { (server, network::clock_of(client, &url).await) })
    });
    let answers = join_all(looks).await.into_iter();
    let skewed = answers.filter_map(|(server, skew)| {
        let skew = skew.filter(|skew| skew.unsigned_abs() > limits::CLOCK_SKEW_S)?;
        let side = if skew > 0 { "behind" } else { "ahead of" };
        let message = format!(
            "the clock of this machine is {} s {side} that of `{}`",
            skew.unsigned_abs(),
            server.name
        );
        Some(
            Found::new(Code::ClockSkew, message)
                .of(server)
                .hint("set the clock: tokens are judged to be fresh or over by it"),
        )
    });
    skewed.collect()
}
