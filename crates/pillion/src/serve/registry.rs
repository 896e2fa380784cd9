//! The one registry of methods, for every carrier: jsonrpsee's `RpcModule`, filled from the method table.
//!
//! Stdio calls a method's callback itself and finds the answer in the slot of a [`Call`] it left in the extensions.
//! Other carriers leave their [`Tier`] there and get a response of jsonrpsee's.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use jsonrpsee::{ConnectionId, Extensions, MethodCallback, Methods, PendingSubscriptionSink, RpcModule};
use manager::{Manager, RequestContext};
use protocol::{Error, ErrorKind, McpChanged, Method, MethodSpec, Tier};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::check;

#[derive(Clone, Debug)]
pub struct Registry(Methods);

impl Registry {
    pub fn new(manager: Manager) -> Registry {
        let mut module = RpcModule::new(manager);
        // The names come from one table, in which none stands twice.
        if let Err(fault) = fill(&mut module) {
            tracing::error!(%fault, "a method could not be registered");
        }
        Registry(module.into())
    }

    /// Carries a request of the host out; the answer is in its slot afterwards.
    pub async fn dispatch(&self, method: Method, call: Arc<Call>) {
        let Some(MethodCallback::Async(callback)) = self.0.method(method.name()) else {
            call.answer::<()>(Err(absent(method)));
            return;
        };
        let mut extensions = Extensions::new();
        extensions.insert(call);
        callback(
            Id::Null,
            Params::new(None),
            ConnectionId(0),
            usize::MAX,
            extensions,
        )
        .await;
    }
}

/// The peers' subscription to `mcp.changed`.
pub const SUBSCRIBE: &str = "mcp.subscribe";
pub const UNSUBSCRIBE: &str = "mcp.unsubscribe";

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscribe {
    directory: protocol::Dir,
}

/// The same methods for peers, and news for those who subscribe.
pub fn for_peers(manager: Manager, news: broadcast::Sender<McpChanged>) -> Methods {
    let mut module = RpcModule::new(manager);
    let subscription = move |params: Params<'static>,
                             pending: PendingSubscriptionSink,
                             manager: Arc<Manager>,
                             extensions: Extensions| {
        let mut news = news.subscribe();
        async move {
            let tier = extensions.get().copied().unwrap_or(Tier::ReadOnly);
            let directory = match params.parse::<Subscribe>() {
                Ok(params) if manager.is_open(&params.directory) => params.directory,
                Ok(params) => return pending.reject(object(not_open(&params.directory))).await,
                Err(fault) => {
                    let error = Error::new(ErrorKind::InvalidParams, fault.message()).path("/directory");
                    return pending.reject(object(error)).await;
                }
            };
            // Who is gone already needs no news.
            let Ok(mut sink) = pending.accept().await else {
                return;
            };
            while let Ok(changed) = news.recv().await {
                if changed.directory != directory {
                    continue;
                }
                let Ok(text) = shown(tier, &changed) else { return };
                if sink.try_send(text).is_err() {
                    return;
                }
            }
        }
    };
    let filled = fill(&mut module).and_then(|()| {
        module
            .register_subscription(SUBSCRIBE, "mcp.changed", UNSUBSCRIBE, subscription)
            .map(|_| ())
    });
    if let Err(fault) = filled {
        tracing::error!(%fault, "a method could not be registered");
    }
    module.into()
}

/// A result as a tier may see it: read-only peers learn nothing of processes.
fn shown<T: serde::Serialize>(tier: Tier, result: &T) -> Result<Box<RawValue>, serde_json::Error> {
    fn strip(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(members) => {
                members.shift_remove("pid");
                members.shift_remove("stderrTail");
                members.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    if tier != Tier::ReadOnly {
        return to_raw_value(result);
    }
    let mut value = serde_json::to_value(result)?;
    strip(&mut value);
    to_raw_value(&value)
}

/// A peer may name only directories that the host has open, so that no request can write into any folder it likes.
fn permit_directory(manager: &Manager, params: Option<&str>) -> Result<(), Error> {
    #[derive(serde::Deserialize)]
    struct Probe {
        directory: Option<protocol::Dir>,
    }
    // What does not read is refused by the schema afterwards.
    let probe = params.and_then(|text| serde_json::from_str::<Probe>(text).ok());
    match probe.and_then(|probe| probe.directory) {
        Some(directory) if !manager.is_open(&directory) => Err(not_open(&directory)),
        _ => Ok(()),
    }
}

/// Parameters of a peer without the members by which a host knows its own requests: progress under such a token would
/// reach the host, and a call under such an id could not be told from one of the host's. `None`: there are none.
fn without_names_of_the_host(params: &str) -> Option<String> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(params).ok()?;
    let token = members.remove("workDoneToken");
    let call = members.remove("call");
    token.or(call)?;
    serde_json::to_string(&members).ok()
}

pub fn not_open(directory: &str) -> Error {
    Error::new(ErrorKind::Forbidden, format!("`{directory}` is not open"))
        .hint("peers may name directories that the host has open")
}

/// Whether a request of `tier` may use the method. Asked on every carrier.
pub fn permit(method: Method, tier: Tier) -> Result<(), Error> {
    if method.allows(tier) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Forbidden,
        format!("`{method}` is not open to {tier} peers"),
    )
    .by(tier.as_str())
    .hint("ask the person at the local host"))
}

fn register<M, Run, Ran>(module: &mut RpcModule<Manager>, run: Run) -> Result<(), RegisterMethodError>
where
    M: MethodSpec + 'static,
    Run: Fn(Arc<Manager>, RequestContext, M::Params) -> Ran + Clone + Send + Sync + 'static,
    Ran: Future<Output = Result<M::Result, Error>> + Send + 'static,
{
    let callback = move |params: Params<'static>, manager, extensions: Extensions| {
        let run = run.clone();
        async move {
            if let Some(call) = extensions.get::<Arc<Call>>() {
                let params = match permit(M::METHOD, call.context.tier) {
                    Ok(()) => call.params::<M>().await,
                    Err(error) => Err(error),
                };
                let outcome = match params {
                    Ok(params) => run(manager, call.context.clone(), params).await,
                    Err(error) => Err(error),
                };
                call.answer(outcome);
                return Ok(RawValue::NULL.to_owned());
            }
            let tier = extensions.get().copied().unwrap_or(Tier::ReadOnly);
            let context = RequestContext {
                cancel: CancellationToken::new(),
                tier,
            };
            let allowed = permit(M::METHOD, tier).and_then(|()| permit_directory(&manager, params.as_str()));
            let own = params.as_str().and_then(without_names_of_the_host);
            let params = own.as_deref().or(params.as_str());
            let outcome = match allowed.and_then(|()| check::params::<M>(params)) {
                Ok(params) => run(manager, context, params).await,
                Err(error) => Err(error),
            };
            outcome
                .and_then(|result| shown(tier, &result).map_err(internal))
                .map_err(object)
        }
    };
    module
        .register_async_method(M::METHOD.name(), callback)
        .map(|_| ())
}

fn internal(fault: serde_json::Error) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("the result could not be written down: {fault}"),
    )
}

pub fn object(error: Error) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(error.code(), error.message, Some(error.data))
}

pub fn absent(method: Method) -> Error {
    Error::new(
        ErrorKind::InvalidCommand,
        format!("this version of Pillion does not have `{method}`"),
    )
    .hint("`capabilities.experimental.mcp.methods` in the answer to `initialize` lists what it has")
}

macro_rules! fill_from_table {
    ($({ $name:literal, $variant:ident, $handler:ident, $params:ident, $result:ident, $tier:ident, $gate:ident, $presence:ident, [$($error:ident),*], $doc:literal })+) => {
        /// One line per method: parameters in, result out; the manager decides everything.
        fn fill(module: &mut RpcModule<Manager>) -> Result<(), RegisterMethodError> {
            $(fill_from_table!(@$presence module $variant $handler);)+
            Ok(())
        }
    };
    (@available $module:ident $variant:ident $handler:ident) => {
        register::<protocol::methods::$variant, _, _>($module, |manager, context, params| async move {
            manager.$handler(&context, params).await
        })?;
    };
    (@absent $module:ident $variant:ident $handler:ident) => {};
}
protocol::for_each_method!(fill_from_table);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use manager::{Env, HostSink};
    use protocol::Notification;
    use serde_json::json;

    use super::*;

    struct Nobody;

    impl HostSink for Nobody {
        fn notify(&self, _: Notification) {}

        fn show_document(&self, _: String) -> std::pin::Pin<Box<dyn Future<Output = bool> + Send>> {
            Box::pin(std::future::ready(false))
        }
    }

    async fn ask(tier: Option<Tier>, request: Value) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::from_process().with_data_dir(folder.path().into());
        let manager = Manager::new(env, Arc::new(Nobody));
        manager.initialize(protocol::InitializationOptions::default(), Vec::new());
        let mut methods = Registry::new(manager).0;
        if let Some(tier) = tier {
            methods.extensions_mut().insert(tier);
        }
        let (response, _) = methods.raw_json_request(&request.to_string(), 1).await.unwrap();
        serde_json::from_str(response.get()).unwrap()
    }

    #[tokio::test]
    async fn other_carriers_get_answers_too() {
        let questions = json!({"jsonrpc": "2.0", "id": 1, "method": "mcp.questions", "params": {}});
        let answer = ask(Some(Tier::Local), questions.clone()).await;
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": 1, "result": {"open": [], "waiting": 0}})
        );
        for tier in [Some(Tier::Full), Some(Tier::ReadOnly), None] {
            let answer = ask(tier, questions.clone()).await;
            assert_eq!(answer["error"]["code"], -32050, "{tier:?}");
            assert_eq!(answer["error"]["data"]["kind"], "forbidden", "{tier:?}");
        }
        let elsewhere =
            json!({"jsonrpc": "2.0", "id": 1, "method": "mcp.status", "params": {"directory": "/elsewhere"}});
        assert_eq!(
            ask(Some(Tier::Full), elsewhere).await["error"]["data"]["kind"],
            "forbidden"
        );
        let status = json!({"jsonrpc": "2.0", "id": 1, "method": "mcp.status", "params": {}});
        assert_eq!(ask(None, status).await["error"]["data"]["path"], "/directory");
    }
}
