//! The bundled list of servers, as it stands in `gallery.json`.
//!
//! Each entry is what the server's vendor documents today. No secret is in it: what is missing stands in `needs`.

use std::sync::LazyLock;

use protocol::{Need, ServerEntry};
use serde::Deserialize;

/// The categories, in the order they are shown.
pub(crate) const CATEGORIES: [&str; 6] = ["core", "dev", "data", "search", "productivity", "cloud"];

/// One server of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    pub id: String,
    pub category: String,
    pub publisher: String,
    pub label: String,
    pub description: String,
    pub homepage: String,
    pub entry: ServerEntry,
    pub needs: Vec<Need>,
    /// What a person should know first, for instance what it replaces.
    pub note: Option<String>,
}

static LIST: LazyLock<Vec<Listed>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("gallery.json")).expect("the bundled list fits; a test reads it")
});

/// The servers that fit, in the order of the list.
pub(crate) fn find<'a>(
    query: &str,
    category: Option<&'a str>,
) -> impl Iterator<Item = &'static Listed> + use<'a> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    LIST.iter().filter(move |listed| {
        category.is_none_or(|category| listed.category == category)
            && words.iter().all(|word| listed.mentions(word))
    })
}

/// The server with this id.
pub(crate) fn listed(id: &str) -> Option<&'static Listed> {
    LIST.iter().find(|listed| listed.id == id)
}

impl Listed {
    fn mentions(&self, word: &str) -> bool {
        let texts = [
            &self.id,
            &self.label,
            &self.description,
            &self.publisher,
            &self.category,
        ];
        texts.iter().any(|text| text.to_lowercase().contains(word))
    }

    /// Marks entries that were made from it.
    pub fn source(&self) -> String {
        format!("catalog:{}", self.id)
    }

    /// The entry to write.
    pub fn entry(&self) -> ServerEntry {
        ServerEntry {
            label: Some(self.label.clone()),
            category: Some(self.category.clone()),
            source: Some(self.source()),
            ..self.entry.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{secret, validate};

    #[test]
    fn every_entry_is_valid_and_holds_no_secret() {
        let mut ids = BTreeSet::new();
        for listed in LIST.iter() {
            let id = &listed.id;
            assert!(ids.insert(id), "{id} stands twice");
            assert!(
                id.len() <= 32 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "{id}"
            );
            assert!(CATEGORIES.contains(&listed.category.as_str()), "{id}");
            let entry = listed.entry();
            let value = serde_json::to_value(&entry).unwrap();
            assert_eq!(validate::problems(&value), [], "{id}");
            assert!(
                entry.env.is_none() && entry.headers.is_none(),
                "{id}: nothing is prefilled"
            );
            assert_eq!(secret::masked(&entry).1, Vec::<String>::new(), "{id}");
            for need in &listed.needs {
                assert!(
                    value.pointer(&need.at).is_none(),
                    "{id}: {} is prefilled",
                    &*need.at
                );
                assert!(
                    !need.secret || need.default.is_none(),
                    "{id}: {} has a default",
                    need.label
                );
            }
        }
        assert!(ids.len() >= 40, "{}", ids.len());
    }

    #[test]
    fn words_and_categories_narrow_the_list() {
        let ids =
            |query, category| -> Vec<&str> { find(query, category).map(|listed| &*listed.id).collect() };
        assert_eq!(ids("postgres bytebase", None), ["postgres"]);
        assert_eq!(ids("", Some("core")).len(), 7);
        assert!(ids("no such thing", None).is_empty());
    }
}
