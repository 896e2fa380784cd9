//! A peer: another local program, with one typed function per method of the table, over POST or a WebSocket.

use jsonrpsee::core::client::{ClientT, Error, Subscription, SubscriptionClientT};
use jsonrpsee::core::traits::ToRpcParams;
use jsonrpsee_http_client::{HeaderMap, HeaderValue, HttpClient, HttpClientBuilder};
use jsonrpsee_ws_client::{WsClient, WsClientBuilder};
use protocol::{McpChanged, MethodSpec};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::clock::PATIENCE;
use super::{RpcError, TestEnv};

/// Carries typed requests over one of the two carriers.
pub struct PeerClient {
    carrier: Carrier,
    runtime: tokio::runtime::Runtime,
}

enum Carrier {
    Post(HttpClient),
    WebSocket(WsClient),
}

/// News of one directory.
pub struct News<'p> {
    subscription: Subscription<McpChanged>,
    peer: &'p PeerClient,
}

/// What `peers.json` says of the endpoints of a data folder.
pub fn endpoints(env: &TestEnv) -> Vec<Value> {
    let text = std::fs::read_to_string(env.data().join("peers.json")).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    value["endpoints"].as_array().cloned().unwrap_or_default()
}

/// Parameters by name, as they are.
struct Named(Box<RawValue>);

impl ToRpcParams for Named {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(Some(self.0))
    }
}

macro_rules! typed {
    ($({ $name:literal, $variant:ident, $handler:ident, $params:ident, $result:ident, $tier:ident, $gate:ident, $presence:ident, [$($error:ident),*], $doc:literal })+) => {
        #[allow(dead_code, reason = "made from the whole table; a story needs some of it")]
        impl PeerClient {
            $(
                #[doc = $doc]
                pub fn $handler(&self, params: protocol::$params) -> Result<protocol::$result, RpcError> {
                    self.call::<protocol::methods::$variant>(params)
                }
            )+
        }
    };
}
protocol::for_each_method!(typed);

impl PeerClient {
    /// By POST, with the token of a tier (`full`, `readOnly`) of the first endpoint.
    pub fn by_post(env: &TestEnv, tier: &str) -> PeerClient {
        PeerClient::new(env, tier, |address, headers, _| {
            let client = HttpClientBuilder::default()
                .set_headers(headers)
                .request_timeout(PATIENCE);
            Carrier::Post(client.build(format!("http://{address}")).expect("an address"))
        })
    }

    /// The same over a WebSocket.
    pub fn by_websocket(env: &TestEnv, tier: &str) -> PeerClient {
        PeerClient::new(env, tier, |address, headers, runtime| {
            let client = WsClientBuilder::default()
                .set_headers(headers)
                .request_timeout(PATIENCE);
            let connected = runtime.block_on(client.build(format!("ws://{address}")));
            Carrier::WebSocket(connected.expect("the endpoint"))
        })
    }

    fn new(
        env: &TestEnv,
        tier: &str,
        connect: impl FnOnce(&str, HeaderMap, &tokio::runtime::Runtime) -> Carrier,
    ) -> PeerClient {
        let endpoint = endpoints(env).first().cloned().expect("an endpoint");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (address, token) = (text(&endpoint["address"]), text(&endpoint["tokens"][tier]));
        let mut headers = HeaderMap::new();
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).expect("a header");
        headers.insert("authorization", bearer);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let carrier = {
            let _entered = runtime.enter();
            connect(&address, headers, &runtime)
        };
        PeerClient { carrier, runtime }
    }

    /// A request of the table.
    pub fn call<M: MethodSpec>(&self, params: M::Params) -> Result<M::Result, RpcError> {
        let params = to_raw_value(&params).expect("parameters are JSON");
        let value = self.request(M::METHOD.name(), params)?;
        super::contract::check(M::METHOD.result_type(), &value)
            .unwrap_or_else(|fault| panic!("{fault}: {value}"));
        Ok(serde_json::from_value(value).expect("a result of its type"))
    }

    /// A request that no type allows.
    pub fn ask(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        self.request(method, to_raw_value(params).expect("JSON"))
    }

    fn request(&self, method: &str, params: Box<RawValue>) -> Result<Value, RpcError> {
        let answer = self.runtime.block_on(async {
            match &self.carrier {
                Carrier::Post(client) => client.request(method, Named(params)).await,
                Carrier::WebSocket(client) => client.request(method, Named(params)).await,
            }
        });
        answer.map_err(|error| match error {
            Error::Call(error) => RpcError {
                code: i64::from(error.code()),
                message: error.message().to_owned(),
                data: error.data().map_or(Value::Null, |data| json!(data)),
            },
            other => panic!("{method}: {other}"),
        })
    }

    /// `mcp.subscribe`; over a WebSocket.
    pub fn subscribe(&self, directory: &str) -> News<'_> {
        let Carrier::WebSocket(client) = &self.carrier else {
            panic!("news comes over a WebSocket")
        };
        let params = to_raw_value(&json!({ "directory": directory })).expect("JSON");
        let subscribed = client.subscribe("mcp.subscribe", Named(params), "mcp.unsubscribe");
        News {
            subscription: self.runtime.block_on(subscribed).expect("a subscription"),
            peer: self,
        }
    }
}

impl News<'_> {
    /// The first news that the story looks for.
    pub fn wait(&mut self, wanted: impl Fn(&McpChanged) -> bool) -> McpChanged {
        let found = self.peer.runtime.block_on(async {
            let next = async {
                loop {
                    match self.subscription.next().await {
                        Some(Ok(changed)) if wanted(&changed) => return changed,
                        Some(Ok(_)) => {}
                        other => panic!("no more news: {other:?}"),
                    }
                }
            };
            tokio::time::timeout(PATIENCE, next).await
        });
        found.expect("news in time")
    }

    /// Ends it and hears no more.
    pub fn end(self) {
        let ended = self.peer.runtime.block_on(self.subscription.unsubscribe());
        ended.expect("an end");
    }
}
