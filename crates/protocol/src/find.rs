//! Finding servers: the bundled gallery, the official registry, GitHub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Int, Text};
use crate::word::words;
use crate::{Cursor, Dir, Draft, ErrorKind, Time, Token};

/// Params of `mcp.gallery`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpGallery {
    /// The directory.
    pub directory: Dir,
    /// Words to look for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<0, 200>>")]
    pub query: Option<String>,
    /// Only this category.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<1, 64>>")]
    pub category: Option<String>,
}

/// Answer of `mcp.gallery`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpGalleryResult {
    /// What was found.
    pub items: Vec<GalleryItem>,
    /// All categories.
    pub categories: Vec<String>,
}

/// A server of the bundled list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GalleryItem {
    /// Its id.
    pub id: String,
    /// Its category.
    pub category: String,
    /// Who publishes it.
    pub publisher: String,
    /// What it does.
    pub description: String,
    /// Its page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// An entry made from it exists.
    pub added: bool,
    /// The entry it makes.
    pub draft: Draft,
}

/// Params of `mcp.search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpSearch {
    /// The directory.
    pub directory: Dir,
    /// Words to look for.
    #[schemars(with = "Text<1, 200>")]
    pub query: String,
    /// Where to look.
    pub source: SearchSource,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// At most this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Int<1, 100>>")]
    pub limit: Option<u32>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

words! {
    /// Where to search.
    pub enum SearchSource {
        /// The official MCP registry.
        Registry = "registry",
        /// Repositories on GitHub.
        Github = "github",
    }
}

/// Answer of `mcp.search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpSearchResult {
    /// What was found.
    pub hits: Vec<Hit>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// Why there is less than there could be, for instance a rate limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<SearchNotice>,
}

/// A server that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Its id there.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it does.
    pub description: String,
    /// Its page.
    pub url: String,
    /// Who publishes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many people starred it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stars: Option<u64>,
    /// When it changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
    /// The entry it makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// Entries for other ways to run or reach it, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Draft>,
    /// Why there is no draft, or what to look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Why there is less than there could be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchNotice {
    /// What went wrong.
    pub kind: ErrorKind,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The HTTP status of the answer (RFC 9110 §15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
}
