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

/// The longest part of what follows the colon that names something; signs at its end may belong to the sentence.
fn resolve(server: &str, rest: &str, offered: &[&Offered<'_>]) -> Mention {
    let mut name = rest;
    loop {
        let targets = targets(name, offered);
        if !targets.is_empty() {
            return Mention {
                text: format!("@{server}:{name}"),
                targets,
            };
        }
        match name.char_indices().next_back() {
            Some((at, last)) if !last.is_alphanumeric() => name = &name[..at],
            _ => break,
        }
    }
    let end = rest
        .char_indices()
        .find(|(_, character)| !character.is_alphanumeric() && !"_-./:".contains(*character))
        .map_or(rest.len(), |(at, _)| at);
    let name = rest[..end].trim_end_matches(['.', ':', '/', '-']);
    Mention {
        text: format!("@{server}:{name}"),
        targets: Vec::new(),
    }
}

fn targets(name: &str, offered: &[&Offered<'_>]) -> Vec<Target> {
    if name.is_empty() {
        return Vec::new();
    }
    let target = |server: &ServerName, uri: &str| Target {
        server: server.clone(),
        uri: uri.to_owned(),
    };
    let mut by_uri = Vec::new();
    let mut by_alias = Vec::new();
    let mut by_template = Vec::new();
    for of in offered {
        for item in &of.items {
            match item {
                CatalogItem::Resource(resource) if *resource.uri == *name => {
                    by_uri.push(target(of.server, name))
                }
                CatalogItem::Resource(resource) if alias(&resource.name) == name || resource.name == name => {
                    by_alias.push(target(of.server, &resource.uri));
                }
                CatalogItem::Template(template) if makes(&template.uri_template, name) => {
                    by_template.push(target(of.server, name));
                }
                _ => {}
            }
        }
    }
    // A whole URI says exactly what is meant.
    let mut found = [by_uri, by_alias, by_template]
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default();
    found.sort();
    found.dedup();
    found
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
