//! `initialize`, `initialized`, `shutdown` and `exit`, through tower-lsp's `LspService`, one message at a time.
//!
//! The service keeps LSP's state machine and speaks its types. What it cannot know is added here: our strict options,
//! everything a host may get wrong in the rest of `initialize`, and the kinds of our errors.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use manager::{Env, Manager};
use protocol::{Dir, Error, ErrorKind, InitializationOptions};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tower_lsp::jsonrpc::{ErrorCode, Request, Result as LspResult};
use tower_lsp::ls_types::{
    ClientCapabilities, ClientInfo, InitializeParams, InitializeResult, ServerCapabilities, ServerInfo, Uri,
    WorkspaceFolder,
};
use tower_lsp::{LanguageServer, LspService};
use tower_service::Service;
use url::Url;

use super::check;
use super::host::{Host, Wishes};

/// The conversation's state, and the manager once there is one.
pub struct Lifecycle {
    service: LspService<Backend>,
    phase: Phase,
}

/// What a host may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing but `initialize`.
    Fresh,
    Initialized,
    /// Nothing but `exit`.
    ShutDown,
}

/// What `initialize` settled for the session.
pub struct Settled {
    pub manager: Manager,
    pub max_message_bytes: Option<usize>,
    pub process_id: Option<u32>,
}

impl Lifecycle {
    pub fn new(env: Env, unattended: bool, host: Host) -> Lifecycle {
        let (service, _) = LspService::new(|_| Backend {
            env,
            unattended,
            host,
            settled: OnceLock::new(),
        });
        Lifecycle {
            service,
            phase: Phase::Fresh,
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What `initialize` settled; `None` before it.
    pub fn settled(&self) -> Option<&Settled> {
        self.service.inner().settled.get()
    }

    pub async fn initialize(&mut self, params: Option<&RawValue>) -> Result<Value, Error> {
        let result = self.ask("initialize", Some(put_right(params)?)).await?;
        self.phase = Phase::Initialized;
        Ok(result)
    }

    /// Only marks the end; whoever calls stops the manager.
    pub async fn shutdown(&mut self) -> Result<Value, Error> {
        let result = self.ask("shutdown", None).await?;
        self.phase = Phase::ShutDown;
        Ok(result)
    }

    /// Tells the service of a notification: `initialized` or `exit`.
    pub async fn note(&mut self, method: &'static str) {
        let request = Request::build(method);
        let request = if method == "initialized" {
            request.params(json!({}))
        } else {
            request
        };
        // Only a service that has exited already refuses.
        let _ = self.service.call(request.finish()).await;
    }

    async fn ask(&mut self, method: &'static str, params: Option<Value>) -> Result<Value, Error> {
        // The host's own id may be one that the service's type does not hold; the session puts it back.
        let request = Request::build(method).id(1_i64);
        let request = match params {
            Some(params) => request.params(params),
            None => request,
        };
        let response = self.service.call(request.finish()).await;
        let Ok(Some(response)) = response else {
            return Err(Error::new(ErrorKind::ShuttingDown, "the session is over"));
        };
        response.into_parts().1.map_err(|error| self.ours(method, &error))
    }

    fn ours(&self, method: &str, error: &tower_lsp::jsonrpc::Error) -> Error {
        let message = error.message.to_string();
        match error.code {
            ErrorCode::InvalidParams => Error::new(ErrorKind::InvalidParams, message),
            ErrorCode::InvalidRequest => refused(self.phase, method),
            ErrorCode::MethodNotFound => Error::new(ErrorKind::MethodNotFound, message),
            ErrorCode::ServerError(-32002) => refused(Phase::Fresh, method),
            _ => Error::new(ErrorKind::Internal, message),
        }
    }
}

/// Why `method` cannot be had in this phase.
pub fn refused(phase: Phase, method: &str) -> Error {
    match phase {
        Phase::Fresh => Error::new(
            ErrorKind::NotInitialized,
            format!("`{method}` came before `initialize`"),
        )
        .hint("send `initialize` first"),
        Phase::Initialized => Error::new(
            ErrorKind::InvalidRequest,
            format!("`{method}` was already carried out"),
        )
        .hint("send it once"),
        Phase::ShutDown => Error::new(
            ErrorKind::ShuttingDown,
            format!("`{method}` came after `shutdown`"),
        )
        .hint("only `exit` is left"),
    }
}

/// What the service calls.
struct Backend {
    env: Env,
    /// Nobody sits at the host, whatever it declares.
    unattended: bool,
    host: Host,
    settled: OnceLock<Settled>,
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> LspResult<InitializeResult> {
        let folders = folders(&params);
        let mut options: InitializationOptions = match params.initialization_options {
            None => InitializationOptions::default(),
            Some(options) => serde_json::from_value(options)
                .map_err(|fault| tower_lsp::jsonrpc::Error::invalid_params(fault.to_string()))?,
        };
        if self.unattended
            && let Some(host) = &mut options.capabilities
        {
            host.questions = None;
            host.open_url = None;
        }
        let opens_urls = options
            .capabilities
            .as_ref()
            .is_some_and(|host| host.open_url == Some(true));
        let opt_out = options.opt_out.clone().unwrap_or_default();
        self.host.wishes(Wishes { opt_out, opens_urls });
        let env = match &options.data_dir {
            Some(data_dir) => self.env.clone().with_data_dir(data_dir.as_ref().into()),
            None => self.env.clone(),
        };
        let max_message_bytes = options
            .max_message_bytes
            .and_then(|bytes| usize::try_from(bytes).ok());
        let manager = Manager::new(env, Arc::new(self.host.clone()));
        let capabilities = manager.initialize(options, folders);
        let settled = Settled {
            manager,
            max_message_bytes,
            process_id: params.process_id,
        };
        if self.settled.set(settled).is_err() {
            return Err(tower_lsp::jsonrpc::Error::invalid_request());
        }
        Ok(InitializeResult {
            capabilities: ServerCapabilities {
                experimental: Some(json!({ "mcp": capabilities })),
                ..ServerCapabilities::default()
            },
            server_info: Some(ServerInfo {
                name: "pillion".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
            ..InitializeResult::default()
        })
    }

    async fn shutdown(&self) -> LspResult<()> {
        Ok(())
    }
}

/// The parameters as LSP's types take them: our own part checked, everything else kept only where it reads.
fn put_right(params: Option<&RawValue>) -> Result<Value, Error> {
    let text = params.map_or("{}", RawValue::get);
    let members: Map<String, Value> = match text.trim_start().as_bytes().first() {
        Some(b'{') => serde_json::from_str(text).map_err(|fault| {
            Error::new(
                ErrorKind::InvalidParams,
                format!("the parameters cannot be read: {fault}"),
            )
        })?,
        _ => Map::new(),
    };
    let mut right = Map::new();
    keep::<u32>(&members, "processId", &mut right);
    keep::<ClientInfo>(&members, "clientInfo", &mut right);
    keep::<Uri>(&members, "rootUri", &mut right);
    keep::<String>(&members, "rootPath", &mut right);
    let folders = members
        .get("workspaceFolders")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let folders = folders
        .filter(|folder| reads::<WorkspaceFolder>(folder))
        .cloned()
        .collect::<Vec<_>>();
    if !folders.is_empty() {
        right.insert("workspaceFolders".to_owned(), Value::Array(folders));
    }
    right.insert("capabilities".to_owned(), json!({}));
    keep::<ClientCapabilities>(&members, "capabilities", &mut right);
    let options = members.get("initializationOptions").map(Value::to_string);
    let options = check::initialization_options(options.as_deref())?;
    let options = serde_json::to_value(options).map_err(|fault| {
        Error::new(
            ErrorKind::Internal,
            format!("the options could not be passed on: {fault}"),
        )
    })?;
    right.insert("initializationOptions".to_owned(), options);
    Ok(Value::Object(right))
}

fn keep<T: DeserializeOwned>(members: &Map<String, Value>, name: &str, right: &mut Map<String, Value>) {
    if let Some(value) = members.get(name).filter(|value| !value.is_null()) {
        if reads::<T>(value) {
            right.insert(name.to_owned(), value.clone());
        } else {
            tracing::warn!(
                member = name,
                "a member of `initialize` is not what LSP says, and is left out"
            );
        }
    }
}

fn reads<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

/// The folders that are open: all of them, else the one root, in its newer or older form.
#[expect(
    deprecated,
    reason = "hosts that know one folder only still send the older members"
)]
fn folders(params: &InitializeParams) -> Vec<Dir> {
    if let Some(folders) = &params.workspace_folders {
        return folders
            .iter()
            .filter_map(|folder| directory(folder.uri.as_str()))
            .collect();
    }
    let root = params.root_uri.as_ref().and_then(|uri| directory(uri.as_str()));
    let path = || {
        params
            .root_path
            .as_deref()
            .filter(|path| Path::new(path).is_absolute())
            .map(Dir::from)
    };
    root.or_else(path).into_iter().collect()
}

/// What `workspace/didChangeWorkspaceFolders` adds and removes.
pub fn folder_changes(params: Option<&RawValue>) -> (Vec<Dir>, Vec<Dir>) {
    #[derive(Default, Deserialize)]
    struct Changes {
        #[serde(default)]
        event: Event,
    }
    #[derive(Default, Deserialize)]
    struct Event {
        #[serde(default)]
        added: Vec<Folder>,
        #[serde(default)]
        removed: Vec<Folder>,
    }
    #[derive(Deserialize)]
    struct Folder {
        uri: String,
    }
    let Changes { event } = params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    let directories = |folders: Vec<Folder>| {
        folders
            .iter()
            .filter_map(|folder| directory(&folder.uri))
            .collect()
    };
    (directories(event.added), directories(event.removed))
}

/// The path of a `file:` URI; folders of other schemes are not on this machine.
fn directory(uri: &str) -> Option<Dir> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    Some(Dir::from(url.to_file_path().ok()?.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn only_our_own_part_of_initialize_is_strict() {
        let wrong = json!({
            "processId": "x", "clientInfo": 7, "rootUri": 5, "trace": "loud", "future": {},
            "capabilities": {"workspace": 3},
            "workspaceFolders": [{"uri": "file:///w", "name": "w"}, {"uri": 7}, "x"],
        });
        let right = put_right(Some(&raw(&wrong))).unwrap();
        let expected = json!({
            "workspaceFolders": [{"uri": "file:///w", "name": "w"}],
            "capabilities": {},
            "initializationOptions": {},
        });
        assert_eq!(right, expected);
        for empty in [None, Some(raw(&Value::Null)), Some(raw(&json!([])))] {
            let right = put_right(empty.as_deref()).unwrap();
            assert_eq!(right, json!({"capabilities": {}, "initializationOptions": {}}));
        }
        let ours = json!({"initializationOptions": {"capabilities": {"question": true}}});
        let error = put_right(Some(&raw(&ours))).unwrap_err();
        let path = error.data.path.as_deref();
        assert_eq!(path, Some("/initializationOptions/capabilities/question"));
    }

    #[test]
    fn folders_in_each_of_their_forms() {
        let rows = [
            (
                json!({"workspaceFolders": [
                {"uri": "file:///w%20x", "name": "w"}, {"uri": "vscode-remote://a/b", "name": "b"},
            ], "rootUri": "file:///r"}),
                vec!["/w x"],
            ),
            (
                json!({"workspaceFolders": null, "rootUri": "file:///r", "rootPath": "/p"}),
                vec!["/r"],
            ),
            (
                json!({"workspaceFolders": [], "rootUri": null, "rootPath": "/p"}),
                vec!["/p"],
            ),
            (json!({"rootPath": "p"}), vec![]),
        ];
        for (params, expected) in rows {
            let right = put_right(Some(&raw(&params))).unwrap();
            let found = folders(&serde_json::from_value(right).unwrap());
            assert_eq!(
                found.iter().map(|dir| &**dir).collect::<Vec<_>>(),
                expected,
                "{params}"
            );
        }
        let changes =
            json!({"event": {"added": [{"uri": "file:///a", "name": ""}], "removed": [{"uri": "x:/b"}]}});
        assert_eq!(
            folder_changes(Some(&raw(&changes))),
            (vec![Dir::from("/a")], vec![])
        );
        assert_eq!(folder_changes(None), (vec![], vec![]));
    }
}
