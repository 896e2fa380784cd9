//! Changes to the configuration of a local host: the user's file, and the switch of a host's own entries.

use std::path::PathBuf;
use std::sync::Arc;

use protocol::{
    Dir, Error, ErrorKind, Layer, McpAdd, McpConfig, McpConfigResult, McpEnable, McpReload, McpReloadResult,
    McpRemove, McpRemoveResult, McpServerEntry, Pointer, Revision, Scope, ServerEntry, ServerName, Written,
};
use serde_json::{Value, json};

use super::{Manager, check_directory};
use crate::config::layers::user_file;
use crate::config::validate::Problem;
use crate::config::{file, secret, store, validate};
use crate::env;
use crate::server::Server;
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.add`: writes an entry of the user's file, and starts it unless told otherwise.
    pub async fn add(&self, _: &RequestContext, params: McpAdd) -> Result<Written, Error> {
        self.open(check_directory(&params.directory)?);
        if params.scope == Some(Scope::Project) {
            return Err(Error::new(
                ErrorKind::InvalidParams,
                "entries of a project are not supported by this version",
            )
            .path("/scope")
            .expected("`user`"));
        }
        if params.gate == Some(true) {
            return Err(Error::new(
                ErrorKind::InvalidParams,
                "this version has no approval gate for entries",
            )
            .path("/gate")
            .expected("`false`, or leave it out"));
        }
        let mut entry = params.entry;
        let value = serde_json::to_value(&entry).unwrap_or_default();
        check_entry(&validate::problems(&value))?;
        check_no_mask(&entry)?;
        self.layers.freshen(&self.core);
        if params.replace != Some(true) && self.layers.in_layer(&params.name, Layer::User).is_some() {
            return Err(
                Error::new(ErrorKind::NameTaken, format!("`{}` is already used", params.name))
                    .by("user")
                    .hint("choose another name, or set `replace: true`"),
            );
        }
        let now = env::now();
        entry.created_at.get_or_insert(now);
        entry.updated_at = Some(now);
        let value = serde_json::to_value(&entry).unwrap_or_default();
        let shown = serde_json::to_string_pretty(&secret::masked(&entry).0).unwrap_or_default();
        let file = user_file(&self.core);
        if params.dry_run == Some(true) {
            return Ok(Written {
                server: None,
                review: None,
                file: Some(dir(&file)),
                text: Some(shown),
                written: false,
            });
        }
        let name = params.name.to_string();
        let old = self.layers.in_layer(&name, Layer::User);
        write(file.clone(), move |servers| {
            let input = store::input(&value);
            match servers.get(&name) {
                Some(property) => property.set_value(input),
                None => drop(servers.append(&name, input)),
            }
            Ok(())
        })
        .await?;
        // A person ordered it: the replaced server ends at once.
        if let Some(old) = old {
            old.stop().await;
        }
        self.layers.reload(&self.core);
        let server = self.server(&params.directory, &params.name)?;
        if params.start != Some(false) {
            start_behind(&server);
        }
        Ok(Written {
            server: Some(self.record(&server)),
            review: None,
            file: Some(dir(&file)),
            text: Some(shown),
            written: true,
        })
    }

    /// `mcp.remove`.
    pub async fn remove(&self, _: &RequestContext, params: McpRemove) -> Result<McpRemoveResult, Error> {
        let server = self.server_in(&params.directory, &params.server, params.layer)?;
        writable(&server)?;
        let name = params.server.to_string();
        write(user_file(&self.core), move |servers| {
            if let Some(property) = servers.get(&name) {
                property.remove();
            }
            Ok(())
        })
        .await?;
        server.stop().await;
        self.layers.reload(&self.core);
        Ok(McpRemoveResult {
            server: self.layers.find(&params.server).map(|lower| self.record(&lower)),
        })
    }

    /// `mcp.enable`.
    pub async fn enable(&self, _: &RequestContext, params: McpEnable) -> Result<Written, Error> {
        let server = self.server_in(&params.directory, &params.server, params.layer)?;
        let mut written = Written {
            server: None,
            review: None,
            file: None,
            text: None,
            written: false,
        };
        if server.layer == Layer::User {
            let name = params.server.to_string();
            let enabled = params.enabled;
            let file = user_file(&self.core);
            written.file = Some(dir(&file));
            written.written = true;
            write(file, move |servers| {
                let Some(entry) = servers.object_value(&name) else {
                    return Ok(());
                };
                let input = store::input(&json!(enabled));
                match entry.get("enabled") {
                    Some(property) => property.set_value(input),
                    None => drop(entry.append("enabled", input)),
                }
                Ok(())
            })
            .await?;
            self.layers.reload(&self.core);
        } else {
            // The host's own entry: the switch lasts as long as the connection.
            server.switch(params.enabled);
        }
        let server = self.server_in(&params.directory, &params.server, Some(server.layer))?;
        if params.enabled {
            start_behind(&server);
        } else {
            server.stop().await;
        }
        written.server = Some(self.record(&server));
        Ok(written)
    }

    /// `mcp.config`: every entry of every layer, without secrets.
    pub async fn config(&self, _: &RequestContext, params: McpConfig) -> Result<McpConfigResult, Error> {
        self.open(check_directory(&params.directory)?);
        self.layers.freshen(&self.core);
        let user = self.layers.user();
        let servers = self.layers.all();
        let entries = servers
            .iter()
            .filter(|server| params.server.as_ref().is_none_or(|name| *name == server.name))
            .map(|server| {
                let (entry, masked) = secret::masked(&server.entry());
                let text = serde_json::to_string(&*server.entry()).unwrap_or_default();
                let is_user = server.layer == Layer::User;
                let unknown = user
                    .entries
                    .iter()
                    .find(|known| is_user && known.name == *server.name)
                    .map(|known| known.unknown.clone());
                let above = servers.iter().find(|other| {
                    other.name == server.name && other.is_effective() && other.layer != server.layer
                });
                McpServerEntry {
                    name: server.name.clone(),
                    layer: server.layer,
                    file: is_user.then(|| dir(&user.path)),
                    revision: Revision::from(file::digest(text.as_bytes())),
                    entry,
                    masked: masked.into_iter().map(Pointer::from).collect(),
                    unknown: unknown
                        .unwrap_or_default()
                        .into_iter()
                        .map(Pointer::from)
                        .collect(),
                    read_only: !is_user,
                    shadowed_by: above.map(|other| other.layer),
                    pending: None,
                }
            });
        Ok(McpConfigResult {
            servers: entries.collect(),
            files: self.files(),
        })
    }

    /// `mcp.reload`: reads the files again; an unchanged running server is not touched.
    pub async fn reload(&self, _: &RequestContext, params: McpReload) -> Result<McpReloadResult, Error> {
        self.open(check_directory(&params.directory)?);
        let reloaded = self.layers.reload(&self.core);
        Ok(McpReloadResult {
            added: reloaded.added,
            removed: reloaded.removed,
            changed: reloaded.changed,
            unchanged: reloaded.unchanged,
        })
    }
}

/// Starts a server without waiting; its record follows by `mcp.changed`.
fn start_behind(server: &Arc<Server>) {
    if server.is_enabled() {
        let server = Arc::clone(server);
        tokio::spawn(async move { drop(server.start().await) });
    }
}

fn dir(path: &std::path::Path) -> Dir {
    Dir::from(path.display().to_string())
}

fn writable(server: &Server) -> Result<(), Error> {
    if server.layer == Layer::User {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::ReadOnly,
        format!("`{}` comes from the host and cannot be changed here", server.name),
    )
    .by(server.layer.as_str())
    .hint("`mcp.enable` switches it off all the same")
    .server(ServerName::clone(&server.name)))
}

fn check_entry(problems: &[Problem]) -> Result<(), Error> {
    let Some(problem) = problems.first() else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidParams, problem.message.clone())
        .path(format!("/entry{}", problem.pointer()))
        .expected("an entry as docs/configuration.md describes it"))
}

/// A mask never reaches the disk.
fn check_no_mask(entry: &ServerEntry) -> Result<(), Error> {
    fn find(value: &Value, path: &mut Vec<String>) -> bool {
        match value {
            Value::String(text) => text.contains(secret::MASK),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .any(|(index, item)| step(index.to_string(), item, path)),
            Value::Object(members) => members
                .iter()
                .any(|(name, member)| step(name.clone(), member, path)),
            _ => false,
        }
    }
    fn step(name: String, value: &Value, path: &mut Vec<String>) -> bool {
        path.push(name);
        let found = find(value, path);
        if !found {
            path.pop();
        }
        found
    }
    let mut path = Vec::new();
    if !find(&serde_json::to_value(entry).unwrap_or_default(), &mut path) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidParams,
        format!("`{}` is the mask of a secret, not a value", secret::MASK),
    )
    .path(format!("/entry{}", validate::pointer(&path)))
    .expected("the secret itself, or a reference such as `${NAME}`"))
}

/// Runs a change of the user's file where it may block.
async fn write(
    path: PathBuf,
    change: impl FnOnce(&jsonc_parser::cst::CstObject) -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let written = tokio::task::spawn_blocking(move || store::edit(&path, change)).await;
    written.unwrap_or_else(|error| {
        Err(Error::new(
            ErrorKind::Internal,
            format!("the change was not made: {error}"),
        ))
    })
}
