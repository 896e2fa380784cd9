//! The address a person opens to log in (RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2).

use url::{Url, form_urlencoded};

/// What the address asks for.
pub(crate) struct Request<'a> {
    pub client_id: &'a str,
    pub redirect_uri: &'a str,
    pub challenge: &'a str,
    pub state: &'a str,
    pub scope: &'a str,
    pub resource: Option<&'a str>,
    /// What the person configured besides; it replaces nothing of ours but `prompt`.
    pub more: &'a [(String, String)],
}

/// Adds the request to the endpoint's own query, in which each parameter is there once.
pub(crate) fn url(endpoint: &Url, request: &Request<'_>) -> Url {
    let mut ours = vec![
        ("response_type", "code"),
        ("client_id", request.client_id),
        ("redirect_uri", request.redirect_uri),
        ("code_challenge", request.challenge),
        ("code_challenge_method", "S256"),
        ("state", request.state),
    ];
    if !request.scope.is_empty() {
        ours.push(("scope", request.scope));
    }
    if let Some(resource) = request.resource {
        ours.push(("resource", resource));
    }
    for (name, value) in request.more {
        if !ours.iter().any(|(known, _)| known == name) {
            ours.push((name, value));
        }
    }
    // OpenID Connect Core §11: `offline_access` must be consented to.
    let has_prompt = ours.iter().any(|(name, _)| *name == "prompt");
    if !has_prompt && request.scope.split(' ').any(|scope| scope == "offline_access") {
        ours.push(("prompt", "consent"));
    }
    let mut parts: Vec<String> = Vec::new();
    let mut seen: Vec<String> = ours.iter().map(|(name, _)| (*name).to_owned()).collect();
    for part in endpoint.query().unwrap_or_default().split('&') {
        let name = form_urlencoded::parse(part.as_bytes())
            .next()
            .map(|(name, _)| name.into_owned());
        if let Some(name) = name
            && !seen.contains(&name)
        {
            seen.push(name);
            parts.push(part.to_owned());
        }
    }
    parts.extend(ours.iter().map(|(name, value)| {
        // `%20`, since not every server reads `+` as a blank.
        let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        format!("{name}={}", value.replace('+', "%20"))
    }));
    let mut url = endpoint.clone();
    url.set_query(Some(&parts.join("&")));
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request<'a>(scope: &'a str, resource: &'a str) -> Request<'a> {
        Request {
            client_id: "c",
            redirect_uri: "http://127.0.0.1:1/callback",
            challenge: "ch",
            state: "st",
            scope,
            resource: Some(resource),
            more: &[],
        }
    }

    #[test]
    fn the_own_query_of_an_endpoint_stays() {
        let endpoint = Url::parse("https://as/authorize?tenant=a%2Fb&resource=x&tenant=2").unwrap();
        let url = url(&endpoint, &request("a b", "https://h/mcp"));
        assert_eq!(
            url.as_str(),
            "https://as/authorize?tenant=a%2Fb&response_type=code&client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback&code_challenge=ch&code_challenge_method=S256&state=st&scope=a%20b&resource=https%3A%2F%2Fh%2Fmcp"
        );
        let offline = super::url(
            &Url::parse("https://as/authorize").unwrap(),
            &request("offline_access", "r"),
        );
        assert!(offline.as_str().ends_with("&prompt=consent"));
    }

    proptest! {
        #[test]
        fn every_parameter_is_there_once_and_reads_back(own in "[a-z=&%+ ]{0,30}", scope in "[!-~ ]{1,20}", resource in "\\PC{0,20}") {
            let mut endpoint = Url::parse("https://as/authorize").unwrap();
            endpoint.set_query(Some(&own));
            let url = url(&endpoint, &request(&scope, &resource));
            prop_assert_eq!(url.as_str().matches('?').count(), 1);
            for (name, value) in [("scope", scope.as_str()), ("resource", &resource), ("state", "st")] {
                let values: Vec<String> = url
                    .query_pairs()
                    .filter(|(key, _)| key == name)
                    .map(|(_, value)| value.into_owned())
                    .collect();
                prop_assert_eq!(values, [value.to_owned()]);
            }
        }
    }
}
