//! Protected resource metadata (RFC 9728): what a server says about itself.

use serde_json::Value;
use url::Url;

use super::Trail;
use crate::challenge::Challenge;
use crate::error::{AuthError, shown, shown_url};
use crate::guard::Reach;
use crate::settings::Settings;
use crate::web::Web;

const WHAT: &str = "the resource metadata";

/// The parts of the document that matter here.
#[derive(Debug)]
pub(crate) struct ProtectedResource {
    pub resource: String,
    pub authorization_servers: Vec<String>,
    pub scopes: Vec<String>,
    pub bound_tokens: bool,
}

/// Looks where the challenge says, below the path of the endpoint, and at the root, in this order (RFC 9728 §3.1 and §5.1).
pub(crate) async fn find(
    web: &Web,
    settings: &Settings,
    challenge: Option<&Challenge>,
    reach: &Reach,
    trail: &mut Trail,
) -> Result<Option<ProtectedResource>, AuthError> {
    for url in places(&settings.server_url, challenge) {
        let answer = match web.get(WHAT, &url, reach).await {
            Ok(answer) => answer,
            // An address that may not be asked counts as not given.
            Err(
                error @ (AuthError::Blocked { .. }
                | AuthError::NoWebAddress { .. }
                | AuthError::Insecure { .. }
                | AuthError::BadMetadata { .. }),
            ) => {
                trail.bad(&url, error.to_string());
                continue;
            }
            Err(error) => {
                trail.bad(&url, error.to_string());
                return Err(error);
            }
        };
        if answer.status >= 500 && answer.status != 502 {
            trail.bad(&url, format!("HTTP status {}", answer.status));
            return Err(AuthError::Unavailable {
                url: shown_url(url.as_str()),
                status: answer.status,
            });
        }
        if !answer.is_success() {
            trail.bad(&url, format!("HTTP status {}", answer.status));
            continue;
        }
        // A single-page application answers everything with a page.
        let Some(found) = answer.json().and_then(|document| read(&document)) else {
            trail.bad(&url, "no resource metadata");
            continue;
        };
        if !is_for(&found.resource, &settings.server_url) && !settings.tolerates("resource-mismatch") {
            trail.bad(&url, format!("it is for `{}`", found.resource));
            return Err(AuthError::ResourceMismatch {
                wanted: shown_url(settings.server_url.as_str()),
                found: shown(&found.resource),
            });
        }
        trail.good(&url, format!("resource `{}`", found.resource));
        return Ok(Some(found));
    }
    Ok(None)
}

fn places(endpoint: &Url, challenge: Option<&Challenge>) -> Vec<Url> {
    let mut places = Vec::new();
    if let Some(named) = challenge.and_then(Challenge::resource_metadata)
        && let Ok(url) = Url::parse(named)
    {
        places.push(url);
    }
    for path in [endpoint.path().trim_end_matches('/'), ""] {
        let mut url = endpoint.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        url.set_path(&format!("/.well-known/oauth-protected-resource{path}"));
        if path.is_empty() {
            url.set_query(None);
        }
        if !places.contains(&url) {
            places.push(url);
        }
    }
    places
}

fn read(document: &Value) -> Option<ProtectedResource> {
    Some(ProtectedResource {
        resource: document.get("resource")?.as_str()?.to_owned(),
        authorization_servers: strings(&document["authorization_servers"]).unwrap_or_default(),
        scopes: strings(&document["scopes_supported"]).unwrap_or_default(),
        bound_tokens: document["dpop_bound_access_tokens_required"] == true,
    })
}

/// The strings of a list; `None` when it is no list.
pub(super) fn strings(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    Some(items.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Whether a resource names the endpoint, or a path above it at the same origin: many servers publish their origin only.
fn is_for(resource: &str, endpoint: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let above = resource.path().trim_end_matches('/');
    let path = endpoint.path().trim_end_matches('/');
    resource.origin() == endpoint.origin()
        && resource.origin().is_tuple()
        && path
            .strip_prefix(above)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_the_endpoint_or_above_it() {
        let rows = [
            ("https://h/mcp", true),
            ("https://h/mcp/", true),
            ("https://h", true),
            ("https://H:443/", true),
            ("https://h/mc", false),
            ("https://h/mcp/x", false),
            ("http://h/mcp", false),
            ("https://h:8443/mcp", false),
            ("https://h.evil/mcp", false),
            ("mcp", false),
            ("urn:x", false),
        ];
        let endpoint = Url::parse("https://h/mcp?tenant=1").unwrap();
        for (resource, expected) in rows {
            assert_eq!(is_for(resource, &endpoint), expected, "{resource}");
        }
    }

    #[test]
    fn places_are_asked_once_and_in_order() {
        let places = |endpoint: &str, header: &str| -> Vec<String> {
            let challenge = crate::challenge::bearer(&[header]);
            super::places(&Url::parse(endpoint).unwrap(), challenge.as_ref())
                .into_iter()
                .map(String::from)
                .collect()
        };
        let root = "https://h/.well-known/oauth-protected-resource";
        let path = "https://h/.well-known/oauth-protected-resource/a/mcp";
        assert_eq!(places("https://u:p@h/a/mcp", ""), [path, root]);
        assert_eq!(places("https://h", ""), [root]);
        assert_eq!(
            places("https://h/a/mcp", &format!("Bearer resource_metadata=\"{root}\"")),
            [root, path]
        );
        assert_eq!(
            places("https://h/", "Bearer resource_metadata=\"not a url\""),
            [root]
        );
    }
}
