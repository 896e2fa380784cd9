//! Mentions of resources in a text: `@server:resource`, by alias, by whole URI, or by a URI that a template makes.

use std::collections::BTreeMap;

use protocol::{CatalogItem, ResourceItem, ServerName};

use crate::catalog::items::matches;
use crate::catalog::names::alias;

/// What a server offers, as far as mentions go.
pub(crate) struct Offered<'a> {
    pub server: &'a ServerName,
    pub items: Vec<&'a CatalogItem>,
}

/// One mention of a text, with what it may mean.
#[derive(Debug, PartialEq)]
pub(crate) struct Mention {
    /// As it stands in the text, with the `@`.
    pub text: String,
    /// One: found. None: missing. Several: ambiguous.
    pub targets: Vec<Target>,
}

/// A resource that can be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub server: ServerName,
    pub uri: String,
}

/// The mentions of a text in order, each resource once. Only `@` before the name of a server is one, so that `@media` and
/// addresses stay text.
pub(crate) fn mentions(text: &str, offered: &[Offered<'_>]) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|character| character.is_alphanumeric() || "_-./@:".contains(character)) {
            continue;
        }
        let run: &str = text[at + 1..]
            .split(char::is_whitespace)
            .next()
            .unwrap_or_default();
        let Some((server, rest)) = run.split_once(':') else {
            continue;
        };
        let of: Vec<&Offered<'_>> = offered
            .iter()
            .filter(|offered| *server == **offered.server || server == alias(offered.server))
            .collect();
        if of.is_empty() {
            continue;
        }
        let mention = resolve(server, rest, &of);
        let is_known = mentions.iter().any(|known| {
            known.text == mention.text || (!mention.targets.is_empty() && known.targets == mention.targets)
        });
        if !is_known {
            mentions.push(mention);
        }
    }
    mentions
}

/// Whether a text speaks of a server.
pub(crate) fn speaks_of(text: &str, server: &ServerName) -> bool {
    let offered = [Offered {
        server,
        items: Vec::new(),
    }];
    !mentions(text, &offered).is_empty()
}

/// The longest part of what follows the colon that names something; signs at its end may belong to the sentence.
fn resolve(server: &str, rest: &str, offered: &[&Offered<'_>]) -> Mention {
    let mention = |name: &str, targets| Mention {
        text: format!("@{server}:{name}"),
        targets,
    };
    let mut name = rest;
    loop {
        let targets = listed(name, offered);
        if !targets.is_empty() {
            return mention(name, targets);
        }
        match name.char_indices().next_back() {
            Some((at, last)) if !last.is_alphanumeric() => name = &name[..at],
            _ => break,
        }
    }
    let name = rest.trim_end_matches(|character| ".,;:!?)]}>\"'".contains(character));
    let targets = made(name, offered);
    if !targets.is_empty() {
        return mention(name, targets);
    }
    let end = rest
        .char_indices()
        .find(|(_, character)| !character.is_alphanumeric() && !"_-./:".contains(*character))
        .map_or(rest.len(), |(at, _)| at);
    mention(rest[..end].trim_end_matches(['.', ':', '/', '-']), Vec::new())
}

/// The resources of this name: by URI, which says exactly what is meant, else by alias.
fn listed(name: &str, offered: &[&Offered<'_>]) -> Vec<Target> {
    if name.is_empty() {
        return Vec::new();
    }
    let mut by_uri = Vec::new();
    let mut by_alias = Vec::new();
    for (server, item) in items(offered) {
        let CatalogItem::Resource(resource) = item else {
            continue;
        };
        let target = Target {
            server: server.clone(),
            uri: resource.uri.to_string(),
        };
        if *resource.uri == *name {
            by_uri.push(target);
        } else if alias(&resource.name) == name || resource.name == name {
            by_alias.push(target);
        }
    }
    distinct(if by_uri.is_empty() { by_alias } else { by_uri })
}

/// The servers whose templates make this URI.
fn made(uri: &str, offered: &[&Offered<'_>]) -> Vec<Target> {
    let targets = items(offered).filter_map(|(server, item)| match item {
        CatalogItem::Template(template) if makes(&template.uri_template, uri) => Some(Target {
            server: server.clone(),
            uri: uri.to_owned(),
        }),
        _ => None,
    });
    distinct(targets.collect())
}

fn items<'a>(offered: &'a [&Offered<'a>]) -> impl Iterator<Item = (&'a ServerName, &'a CatalogItem)> {
    offered
        .iter()
        .flat_map(|of| of.items.iter().map(|item| (of.server, *item)))
}

fn distinct(mut targets: Vec<Target>) -> Vec<Target> {
    targets.sort();
    targets.dedup();
    targets
}

/// Whether a template (RFC 6570) can make a URI. Roughly: whatever stands for its variables.
fn makes(template: &str, uri: &str) -> bool {
    let mut pattern = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else {
            return false;
        };
        pattern.push_str(before);
        pattern.push('*');
        rest = after;
    }
    pattern.push_str(rest);
    uri.contains(':') && pattern.contains('*') && matches(&pattern, uri)
}

/// Marks resources whose alias another resource has too.
pub(crate) fn mark_ambiguous(resources: &mut [ResourceItem]) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for resource in resources.iter() {
        *times.entry(resource.mention.clone()).or_default() += 1;
    }
    for resource in resources {
        if times.get(&resource.mention).is_some_and(|times| *times > 1) {
            resource.ambiguous = Some(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Raw, TemplateItem, Uri};
    use serde_json::json;

    use super::*;

    fn resource(server: &str, name: &str, uri: &str) -> CatalogItem {
        CatalogItem::Resource(ResourceItem {
            server: ServerName::from(server),
            name: name.to_owned(),
            title: None,
            description: None,
            raw: Raw::from(&json!({})),
            uri: Uri::from(uri),
            mime_type: None,
            size: None,
            mention: format!("@{}:{}", alias(server), alias(name)),
            ambiguous: None,
        })
    }

    fn template(server: &str, uri: &str) -> CatalogItem {
        CatalogItem::Template(TemplateItem {
            server: ServerName::from(server),
            name: "t".to_owned(),
            title: None,
            description: None,
            raw: Raw::from(&json!({})),
            uri_template: Uri::from(uri),
            mime_type: None,
        })
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &[&str])]) {
        let docs = ServerName::from("docs");
        let items = [
            resource("docs", "Read Me", "file:///read me"),
            resource("docs", "a.b", "x:ab"),
            resource("docs", "twice", "x:1"),
            resource("docs", "twice", "x:2"),
            template("docs", "note://{id}/text"),
        ];
        let offered = [Offered {
            server: &docs,
            items: items.iter().collect(),
        }];
        let found = mentions(text, &offered);
        let found: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|mention| {
                let uris = mention.targets.iter().map(|target| target.uri.as_str());
                (mention.text.as_str(), uris.collect())
            })
            .collect();
        let expected: Vec<(&str, Vec<&str>)> = expected
            .iter()
            .map(|(text, uris)| (*text, uris.to_vec()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn mentions_are_found() {
        check("see @docs:Read_Me.", &[("@docs:Read_Me", &["file:///read me"])]);
        check("(@docs:a.b), @docs:a.b!", &[("@docs:a.b", &["x:ab"])]);
        check("@docs:x:ab and @docs:a.b", &[("@docs:x:ab", &["x:ab"])]);
        check("@docs:twice", &[("@docs:twice", &["x:1", "x:2"])]);
        check("@docs:x:2", &[("@docs:x:2", &["x:2"])]);
        check(
            "@docs:note://7/text?",
            &[("@docs:note://7/text", &["note://7/text"])],
        );
        check("@docs:nothing, sorry", &[("@docs:nothing", &[])]);
        check("me@docs:twice @media:print @docs @other:x", &[]);
    }
}
