//! Packages that are fetched once, and locks that name them exactly.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, List};
use crate::word::{open_words, words};
use crate::{Dir, ServerName, Token};

/// Params of `mcp.prefetch`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpPrefetch {
    /// The directory.
    pub directory: Dir,
    /// Only these servers; default: every enabled one that is started with `npx` or `uvx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ServerName, 200>>")]
    pub servers: Option<Vec<ServerName>>,
    /// Looks for a newer version that the entry allows, where it is not locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<bool>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

/// Answer of `mcp.prefetch`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPrefetchResult {
    /// One row per server.
    #[schemars(with = "List<Prefetched, 1000>")]
    pub servers: Vec<Prefetched>,
}

/// What became of one server's package.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prefetched {
    /// The server.
    pub server: ServerName,
    /// How it went.
    pub status: PrefetchStatus,
    /// The package that is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<ExactPackage>,
    /// Why not, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

open_words! {
    /// How fetching a package went.
    pub enum PrefetchStatus {
        /// It was fetched.
        Fetched = "fetched",
        /// It was there already.
        Present = "present",
        /// It could not be fetched, or is not what the lock names.
        Failed = "failed",
        /// Its command fetches nothing that could be kept.
        NotNeeded = "not_needed",
    }
}

/// One version of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExactPackage {
    /// Who brings it.
    pub manager: PackageManager,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Subresource integrity of npm (`sha512-…`), or the hashes of all files of PyPI (`sha256:…`, blank between).
    pub integrity: String,
}

words! {
    /// Who brings packages.
    pub enum PackageManager {
        Npm = "npm",
        Uv = "uv",
    }
}

/// Params of `mcp.lock`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpLock {
    /// The directory.
    pub directory: Dir,
    /// Only these servers; default: every enabled one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<ServerName, 200>>")]
    pub servers: Option<Vec<ServerName>>,
    /// What to do; default `check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<LockAction>,
    /// Asks for `$/progress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<Token>,
}

words! {
    /// What `mcp.lock` does.
    pub enum LockAction {
        /// Compares; asks nobody, fetches and writes nothing.
        Check = "check",
        /// Fetches and locks what is not locked yet, and adds tools that were not known.
        Write = "write",
        /// Fetches the newest version that each entry allows, and locks that and the tools of now.
        Update = "update",
    }
}

/// Answer of `mcp.lock`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpLockResult {
    /// One row per server that could be locked, and per lock without a server.
    #[schemars(with = "List<LockRow, 1000>")]
    pub servers: Vec<LockRow>,
    /// The lock files that were written.
    #[schemars(with = "List<Dir, 200>")]
    pub written: Vec<Dir>,
}

/// How a server stands to its lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockRow {
    /// The server.
    pub server: ServerName,
    /// How it stands.
    pub status: LockStatus,
    /// What the lock names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked: Option<ExactPackage>,
    /// What is fetched here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<ExactPackage>,
    /// Tools that differ from the lock, each with how.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Dict<ToolDrift, 1000>")]
    pub tools: BTreeMap<String, ToolDrift>,
    /// One sentence for people.
    pub message: String,
    /// The next step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

open_words! {
    /// How a server stands to its lock.
    pub enum LockStatus {
        /// As the lock says.
        Locked = "locked",
        /// As the lock says, and not fetched here yet: it does not start before it is.
        NotInstalled = "not_installed",
        /// It could be locked and is not.
        Unlocked = "unlocked",
        /// It differs from the lock, and does not start.
        Drifted = "drifted",
        /// The lock is of a server that does not exist here.
        Unused = "unused",
        /// Its package could not be fetched.
        Failed = "failed",
    }
}

words! {
    /// How a tool differs from the lock.
    pub enum ToolDrift {
        Added = "added",
        Removed = "removed",
        Changed = "changed",
    }
}
