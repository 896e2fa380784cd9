//! Which addresses may be asked because a server named them (SSRF; RFC 9728 §7.7, MCP security best practices).
//!
//! A server on the internet must not make us ask machines of this network. An address is checked twice: as it is written,
//! and after its name was resolved, by the resolver of the very connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::error::{AuthError, shown_url};
use crate::network::Network;

/// From where a URL came: what may be reached depends on the server that named it.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    endpoint: Url,
    allow_private: bool,
    network: Option<Network>,
}

/// How far a request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// Public addresses only.
    Public,
    /// Anywhere: the person configured this address, or it is as local as the server itself.
    Any,
}

impl Reach {
    pub fn new(endpoint: &Url, allow_private: bool) -> Reach {
        Reach {
            endpoint: endpoint.clone(),
            allow_private,
            network: None,
        }
    }

    /// The same, over the network of the server's own entry.
    pub fn over(mut self, network: Option<Network>) -> Reach {
        self.network = network;
        self
    }

    /// The network of the server's entry, and whether the URL is the server's own.
    pub fn network(&self, url: &Url) -> Option<(&Network, bool)> {
        let is_own = url.origin() == self.endpoint.origin();
        self.network.as_ref().map(|network| (network, is_own))
    }

    /// Checks a URL before it is asked. `what` says whose it is.
    pub fn check(&self, what: &'static str, url: &Url) -> Result<Span, AuthError> {
        is_web(what, url)?;
        let same_origin = url.origin() == self.endpoint.origin();
        let both_local = is_loopback(&self.endpoint) && is_loopback(url);
        if same_origin || both_local || self.allow_private {
            return Ok(Span::Any);
        }
        let refused = |reason| AuthError::Blocked {
            what,
            url: shown_url(url.as_str()),
            reason,
        };
        match url.host() {
            None => Err(refused("it has no host")),
            Some(Host::Ipv4(address)) if !is_public(IpAddr::V4(address)) => {
                Err(refused("it is an address of a private network"))
            }
            Some(Host::Ipv6(address)) if !is_public(IpAddr::V6(address)) => {
                Err(refused("it is an address of a private network"))
            }
            Some(Host::Domain(name)) if is_local_name(name) => Err(refused("it is a name of this network")),
            Some(_) => Ok(Span::Public),
        }
    }
}

/// The rule for every URL of an authorization server: https, or http on this machine; no user, no fragment.
pub(crate) fn is_web(what: &'static str, url: &Url) -> Result<(), AuthError> {
    let refused = |reason| AuthError::NoWebAddress {
        what,
        url: shown_url(url.as_str()),
        reason,
    };
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(url) => {}
        "http" => {
            return Err(AuthError::Insecure {
                what,
                url: shown_url(url.as_str()),
            });
        }
        _ => return Err(refused("it is no web address (https)")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("it names a user"));
    }
    if url.fragment().is_some() {
        return Err(refused("it has a fragment"));
    }
    Ok(())
}

/// Whether a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || [".localhost", ".local", ".internal", ".home.arpa"]
            .iter()
            .any(|suffix| name.ends_with(suffix))
        // A name without a dot is looked up in the search list of this network.
        || !name.contains('.')
}

/// Whether an address belongs to the internet at large.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = a == 0
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || a >= 240
        // Carrier-grade NAT, protocol assignments, documentation, benchmarks (RFC 6890).
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 198 && (b == 18 || b == 19 || (b == 51 && c == 100)))
        || (a == 203 && b == 0 && c == 113);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    // ::, ::1, IPv4-mapped and IPv4-compatible.
    if segments[..5] == [0; 5] {
        return segments[5] == 0xffff && is_public_v4(embedded(segments[6], segments[7]));
    }
    // NAT64 and 6to4 lead to the IPv4 address inside.
    if segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return is_public_v4(embedded(segments[6], segments[7]));
    }
    if segments[0] == 0x2002 {
        return is_public_v4(embedded(segments[1], segments[2]));
    }
    let special = (segments[0] & 0xfe00) == 0xfc00
        || (segments[0] & 0xffc0) == 0xfe80
        || (segments[0] & 0xffc0) == 0xfec0
        || (segments[0] & 0xff00) == 0xff00
        || (segments[0] == 0x64 && segments[1] == 0xff9b)
        // Teredo and documentation.
        || (segments[0] == 0x2001 && (segments[1] == 0 || segments[1] == 0xdb8));
    !special
}

/// Resolves names to public addresses only.
pub(crate) struct PublicResolver {
    /// Names of configured proxies: they may be anywhere.
    pub proxies: Vec<String>,
}

/// A name that leads into a private network.
#[derive(Debug, thiserror::Error)]
#[error("its name leads to an address of a private network")]
pub(crate) struct PrivateAddress;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self.proxies.iter().any(|proxy| proxy == name.as_str());
        Box::pin(async move {
            let addresses: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address among public ones is the pattern of DNS rebinding: the name is refused as a whole.
            if !is_proxy && addresses.iter().any(|address| !is_public(address.ip())) {
                return Err(PrivateAddress.into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_internet_and_others() {
        for public in [
            "1.1.1.1",
            "192.0.1.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "192.0.2.7",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn what_a_server_may_name_depends_on_where_it_is() {
        let check = |endpoint: &str, url: &str| {
            let reach = Reach::new(&Url::parse(endpoint).unwrap(), false);
            reach.check("the URL", &Url::parse(url).unwrap()).ok()
        };
        let remote = "https://mcp.example.com/mcp";
        assert_eq!(check(remote, "https://as.example.com/x"), Some(Span::Public));
        assert_eq!(check(remote, "https://mcp.example.com/x"), Some(Span::Any));
        for refused in [
            "http://as.example.com/x",
            "https://127.0.0.1/x",
            "http://localhost/x",
            "https://10.1.2.3/x",
            "https://[::1]/x",
            "https://metadata.google.internal/x",
            "https://intranet/x",
            "file:///etc/passwd",
            "https://u:p@as.example.com/",
            "https://as.example.com/#f",
            "https://0x7f.1/",
            "https://2130706433/",
        ] {
            assert_eq!(check(remote, refused), None, "{refused}");
        }
        let local = "http://127.0.0.1:8000/mcp";
        assert_eq!(check(local, "http://localhost:9000/x"), Some(Span::Any));
        assert_eq!(check(local, "https://192.168.0.1/x"), None);
        assert_eq!(
            check("https://10.0.0.5/mcp", "https://10.0.0.5/as"),
            Some(Span::Any)
        );
        assert_eq!(check("https://10.0.0.5/mcp", "https://10.0.0.6/as"), None);
    }
}
