//! The plain HTTP routes for other programs of the machine: bodies and answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Dict, List};
use crate::word::words;
use crate::{Auth, Error, NewName, Pointer, ServerEntry, State, Time};

/// What `GET /mcp` says of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestServer {
    /// Its state.
    pub status: State,
    /// When the request lapses, while it is `pending`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// How its login stands, of a server reached by URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// How many tools; absent while unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<u32>,
}

/// Answer of `GET /mcp`: the servers by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RestServers(#[schemars(with = "Dict<RestServer, 1000>")] pub BTreeMap<String, RestServer>);

/// Body of `POST /mcp`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestAdd {
    /// The name of the new entry.
    pub name: NewName,
    /// The entry.
    pub entry: ServerEntry,
    /// Ask to replace an entry of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
}

/// A request that waits for the person's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestPending {
    /// Always `pending`.
    pub status: RestPendingStatus,
    /// When it lapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

words! {
    /// Marks a request that waits.
    pub enum RestPendingStatus {
        /// Nothing was started, and nothing will be before the decision.
        Pending = "pending",
    }
}

/// Answer of a request for changes: what waits now, by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RestAccepted(#[schemars(with = "Dict<RestPending, 10>")] pub BTreeMap<String, RestPending>);

/// Answer of `GET /config`: the entries as they stand in their files, secrets masked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestConfig {
    /// The entries by name, without those that wait for a decision.
    #[schemars(with = "Dict<ServerEntry, 1000>")]
    pub servers: BTreeMap<String, ServerEntry>,
}

/// Body of `PATCH /config`: all of it is asked for, or none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestPatch {
    /// The changes by name.
    #[schemars(with = "Dict<EntryChange, 10>", extend("propertyNames" = { "minLength": 1, "maxLength": 200 }))]
    pub servers: BTreeMap<String, EntryChange>,
}

/// What is wanted of one entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryChange {
    /// Members to set; maps are merged, lists replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<ServerEntry>,
    /// Members to take away, first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<List<Pointer, 512>>")]
    pub unset: Option<Vec<Pointer>>,
    /// Take the whole entry away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove: Option<bool>,
}

/// What every refusal says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestError {
    /// The error, as over JSON-RPC.
    #[schemars(with = "crate::error::ErrorObject")]
    pub error: Error,
}
