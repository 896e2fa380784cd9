//! The network of one server, where its entry has wishes of its own: certificates, or a socket in place of a host.

use std::sync::{Arc, OnceLock};

use crate::guard::{PublicResolver, Span};
use crate::web::{self, ClientFactory};

/// How the server itself is reached, and how everybody else is on its behalf.
///
/// A client certificate says who the person is, and a socket leads to one server: both belong to the server's own origin.
/// The authorities that the person trusts for it count for the authorization servers, too.
#[derive(Clone)]
pub struct Network(Arc<Clients>);

struct Clients {
    own: ClientFactory,
    others: ClientFactory,
    to_own: OnceLock<reqwest::Client>,
    any: OnceLock<reqwest::Client>,
    public: OnceLock<reqwest::Client>,
}

impl Network {
    /// `own` makes clients for the server's origin, `others` for all other hosts.
    pub fn new(own: ClientFactory, others: ClientFactory) -> Network {
        Network(Arc::new(Clients {
            own,
            others,
            to_own: OnceLock::new(),
            any: OnceLock::new(),
            public: OnceLock::new(),
        }))
    }

    /// The client for a request that may go so far.
    pub(crate) fn client(&self, is_own: bool, span: Span, proxies: &[String]) -> &reqwest::Client {
        let clients = &self.0;
        if is_own {
            return clients.to_own.get_or_init(|| web::client(&clients.own, None));
        }
        match span {
            Span::Any => clients.any.get_or_init(|| web::client(&clients.others, None)),
            Span::Public => clients.public.get_or_init(|| {
                let proxies = proxies.to_vec();
                web::client(&clients.others, Some(Arc::new(PublicResolver { proxies })))
            }),
        }
    }
}

/// What it was made from may hold a key.
impl std::fmt::Debug for Network {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Network")
    }
}
