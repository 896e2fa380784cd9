//! Finding tools by words: BM25 over names, titles, descriptions and parameters.

use std::collections::HashMap;

use serde_json::Value;

/// Saturation of repeated words and weight of a text's length, as usual for BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// A word in a name says more than one in a text.
const NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
const DESCRIPTION: f64 = 1.0;
const PARAMETER: f64 = 0.7;
const SERVER: f64 = 1.5;
const DEED: f64 = 2.0;

/// What tools do, in the word their names use most, and other words for it (in their plain form).
const DEEDS: [(&str, &[&str]); 9] = [
    ("=list", &["list", "show", "all", "which", "enumerat", "brows"]),
    (
        "=get",
        &[
            "get", "read", "open", "view", "detail", "fetch", "retriev", "describ", "full", "inspect", "look",
        ],
    ),
    (
        "=creat",
        &["creat", "make", "mak", "new", "add", "insert", "writ", "start"],
    ),
    (
        "=delet",
        &["delet", "remov", "rid", "drop", "eras", "destroy", "purg"],
    ),
    (
        "=updat",
        &["updat", "chang", "edit", "modify", "set", "renam", "patch"],
    ),
    ("=search", &["search", "find", "look", "query", "lookup"]),
    ("=archiv", &["archiv", "away", "clos"]),
    ("=send", &["send", "post", "mail", "reply", "notify", "publish"]),
    ("=run", &["run", "execut", "trigger", "invok", "call", "launch"]),
];

/// The words of one tool, weighted.
pub(crate) struct Document {
    words: HashMap<String, f64>,
    length: f64,
}

impl Document {
    pub fn new(
        server: &str,
        name: &str,
        title: Option<&str>,
        description: Option<&str>,
        schema: &Value,
    ) -> Document {
        let mut document = Document {
            words: HashMap::new(),
            length: 0.0,
        };
        document.add(server, SERVER);
        document.add(name, NAME);
        document.add_deeds(name);
        document.add(title.unwrap_or_default(), TITLE);
        document.add(description.unwrap_or_default(), DESCRIPTION);
        for (parameter, inner) in schema["properties"].as_object().into_iter().flatten() {
            document.add(parameter, PARAMETER);
            document.add(inner["description"].as_str().unwrap_or_default(), PARAMETER / 2.0);
        }
        document
    }

    /// What the words of the name do, in the one word for it.
    fn add_deeds(&mut self, name: &str) {
        for deed in words(name).iter().filter_map(|word| deed(word)) {
            *self.words.entry(deed.to_owned()).or_default() += DEED;
        }
    }

    fn add(&mut self, text: &str, weight: f64) {
        for word in words(text) {
            *self.words.entry(word).or_default() += weight;
            self.length += weight;
        }
    }
}

/// The documents that fit, best first, with their scores. Equal ones keep their order.
pub(crate) fn search(documents: &[Document], query: &str, limit: usize) -> Vec<(usize, f64)> {
    let mut wanted = words(query);
    let deeds: Vec<String> = wanted
        .iter()
        .filter_map(|word| deed(word))
        .map(str::to_owned)
        .collect();
    wanted.extend(deeds);
    wanted.sort();
    wanted.dedup();
    let count = documents.len() as f64;
    let average = documents.iter().map(|document| document.length).sum::<f64>() / count.max(1.0);
    let rarity: Vec<f64> = wanted
        .iter()
        .map(|word| {
            let n_with = documents
                .iter()
                .filter(|document| document.words.contains_key(word))
                .count() as f64;
            (1.0 + (count - n_with + 0.5) / (n_with + 0.5)).ln()
        })
        .collect();
    let mut hits: Vec<(usize, f64)> = documents
        .iter()
        .enumerate()
        .map(|(index, document)| {
            let norm = K1 * (1.0 - B + B * document.length / average.max(f64::MIN_POSITIVE));
            let score = wanted.iter().zip(&rarity).filter_map(|(word, rarity)| {
                let times = document.words.get(word)?;
                Some(rarity * times * (K1 + 1.0) / (times + norm))
            });
            (index, score.sum())
        })
        .filter(|(_, score)| *score > 0.0)
        .collect();
    hits.sort_by(|a, b| b.1.total_cmp(&a.1));
    hits.truncate(limit);
    hits
}

/// Words that say nothing about what is wanted.
const EMPTY: [&str; 24] = [
    "a", "an", "and", "as", "at", "by", "for", "from", "i", "in", "into", "is", "it", "me", "my", "of", "on",
    "or", "that", "the", "this", "to", "with", "you",
];

/// The one word for what a word does.
fn deed(word: &str) -> Option<&'static str> {
    DEEDS
        .iter()
        .find(|(_, words)| words.contains(&word))
        .map(|(deed, _)| *deed)
}

/// The words of a text in their plain form: `listPullRequests` has three.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for character in text.chars().chain(std::iter::once(' ')) {
        let is_cut = character.is_uppercase() && was_lower;
        if !word.is_empty() && (is_cut || !character.is_alphanumeric()) {
            let whole = stem(&std::mem::take(&mut word));
            if !EMPTY.contains(&whole.as_str()) {
                words.push(whole);
            }
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase() || character.is_ascii_digit();
    }
    words
}

/// English endings that change nothing about what is meant.
fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    let cut = |word: &str, ending: &str, more: &str| {
        word.strip_suffix(ending)
            .filter(|stem| stem.len() >= 3)
            .map(|stem| format!("{stem}{more}"))
    };
    let word = cut(word, "ies", "y")
        .or_else(|| cut(word, "sses", "ss"))
        .or_else(|| cut(word, "s", "").filter(|_| !word.ends_with("ss") && !word.ends_with("us")))
        .unwrap_or_else(|| word.to_owned());
    let word = cut(&word, "ing", "")
        .or_else(|| cut(&word, "ed", ""))
        .unwrap_or(word);
    cut(&word, "e", "").unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_right_tool_comes_first() {
        let tools = [
            ("github", "create_issue", "Open a new issue in a repository"),
            (
                "github",
                "list_pull_requests",
                "List the pull requests of a repository",
            ),
            ("fs", "read_file", "Read the complete contents of a file"),
            ("mail", "send", "Send a message to somebody"),
        ];
        let documents: Vec<Document> = tools
            .iter()
            .map(|(server, name, text)| {
                Document::new(
                    server,
                    name,
                    None,
                    Some(text),
                    &json!({"properties": {"path": {"type": "string"}}}),
                )
            })
            .collect();
        for (query, expected) in [
            ("create an issue", 0),
            ("listing pull requests", 1),
            ("reading files", 2),
            ("sends messages", 3),
            ("pullRequest", 1),
        ] {
            assert_eq!(search(&documents, query, 5)[0].0, expected, "{query}");
        }
        assert_eq!(search(&documents, "zebra", 5), []);
        assert_eq!(search(&documents, "path", 2).len(), 2);
        assert_eq!(search(&[], "path", 2), []);
    }
}
