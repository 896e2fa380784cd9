//! Where a login of an entry goes beside what the server itself names: a person is shown every address that gets a secret.

use std::collections::BTreeMap;

use protocol::{OauthSetting, ServerEntry};
use url::Url;

/// The addresses, by their members of `oauth`. A redirect to this machine is none.
pub(crate) fn addresses(entry: &ServerEntry) -> BTreeMap<String, String> {
    let Some(OauthSetting::On(oauth)) = &entry.oauth else {
        return BTreeMap::new();
    };
    let enterprise = oauth.enterprise.as_ref();
    let redirect = oauth.redirect_uri.as_ref().filter(|uri| !is_loopback(uri));
    let all = [
        ("issuer", oauth.issuer.as_ref()),
        ("authorizationEndpoint", oauth.authorization_endpoint.as_ref()),
        ("tokenEndpoint", oauth.token_endpoint.as_ref()),
        ("clientMetadataUrl", oauth.client_metadata_url.as_ref()),
        ("redirectUri", redirect),
        (
            "enterprise.tokenEndpoint",
            enterprise.map(|provider| &provider.token_endpoint),
        ),
        (
            "enterprise.issuer",
            enterprise.and_then(|provider| provider.issuer.as_ref()),
        ),
    ];
    let given = all.into_iter().filter_map(|(name, uri)| Some((name, uri?)));
    given
        .map(|(name, uri)| (name.to_owned(), uri.to_string()))
        .collect()
}

/// What to say of those that are on another host than the server, or nobody knows where.
pub(crate) fn warnings(entry: &ServerEntry) -> Vec<String> {
    let own = entry.url.as_deref().and_then(host);
    let elsewhere = addresses(entry).into_iter().filter_map(|(member, uri)| {
        let found = host(&uri);
        if found.is_some() && found == own {
            return None;
        }
        let host = found.unwrap_or(uri);
        let what = match member.as_str() {
            "authorizationEndpoint" => "you would log in at",
            "tokenEndpoint" => "its tokens come from, and its secrets go to,",
            "enterprise.tokenEndpoint" => "your identity is proven to, and its secrets go to,",
            "redirectUri" => "the answer to a login goes to",
            "clientMetadataUrl" => "the login presents a client of",
            _ => "the login trusts",
        };
        Some(format!("{what} `{host}`, which is not the host of the address"))
    });
    elsewhere.collect()
}

fn is_loopback(uri: &str) -> bool {
    let Ok(url) = Url::parse(uri) else { return false };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The host of an address as it is reached; `None` where a reference decides it.
fn host(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let host = url.host_str()?;
    (!text.contains("${")).then(|| host.to_owned())
}
