//! A scripted authorization server, and an MCP server that takes its tokens only. A test lays rules over both.

use serde_json::{Value, json};

use super::HttpHost;

pub struct AuthorizationServer {
    /// The MCP server, at `/mcp`.
    pub resource: HttpHost,
    pub issuer: HttpHost,
}

impl AuthorizationServer {
    /// Everything as the specifications say.
    pub fn start() -> AuthorizationServer {
        AuthorizationServer::with(|_, _| (json!([]), json!([])))
    }

    /// The same with rules that come first: `rules` gets both origins, and gives those of the MCP server and of the issuer.
    pub fn with(rules: impl FnOnce(&str, &str) -> (Value, Value)) -> AuthorizationServer {
        AuthorizationServer::on(HttpHost::bind(), HttpHost::bind(), rules)
    }

    /// The same on hosts that are reached by another address than their own.
    pub fn on(
        resource: HttpHost,
        issuer: HttpHost,
        rules: impl FnOnce(&str, &str) -> (Value, Value),
    ) -> AuthorizationServer {
        let (own, of_issuer) = rules(&resource.origin, &issuer.origin);
        resource.serve_rules(
            &joined(own, resource_rules(&resource.origin, &issuer.origin)),
            &json!({}),
        );
        issuer.serve_rules(&joined(of_issuer, issuer_rules(&issuer.origin)), &json!({}));
        AuthorizationServer { resource, issuer }
    }

    pub fn entry(&self) -> Value {
        self.resource.entry()
    }

    /// Forms that came to the token endpoint.
    pub fn token_requests(&self) -> Vec<super::scripted::rules::Seen> {
        let log = self.issuer.log().into_iter();
        log.filter(|seen| seen.is("POST /token")).collect()
    }
}

fn joined(first: Value, then: Value) -> Value {
    let lists = [first, then];
    lists
        .iter()
        .filter_map(Value::as_array)
        .flatten()
        .cloned()
        .collect()
}

fn resource_rules(resource: &str, issuer: &str) -> Value {
    let metadata = format!("{resource}/.well-known/oauth-protected-resource/mcp");
    json!([
        { "match": "POST /mcp", "when": { "auth": null }, "respond": { "status": 401, "text": "",
            "headers": { "www-authenticate": format!("Bearer resource_metadata=\"{metadata}\"") } } },
        { "match": "POST /mcp", "respond": { "mcp": {} } },
        { "match": "* /mcp", "respond": { "status": 405, "text": "" } },
        { "match": "GET /.well-known/oauth-protected-resource/mcp", "respond": { "json": {
            "resource": format!("{resource}/mcp"), "authorization_servers": [issuer] } } },
    ])
}

fn issuer_rules(issuer: &str) -> Value {
    let token = |number: u8| {
        json!({ "access_token": format!("at-{number}-secret"), "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": format!("rt-{number}-secret") })
    };
    json!([
        { "match": "GET /.well-known/oauth-authorization-server", "respond": { "json": {
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/register"),
            "revocation_endpoint": format!("{issuer}/revoke"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        } } },
        { "match": "POST /register", "respond": { "status": 201, "echo_registration": { "client_id": "c-1" } } },
        { "match": "GET /authorize", "respond": { "status": 302, "redirect_back": { "code": "code-1-secret" } } },
        { "match": "POST /token", "when": { "form": { "grant_type": "authorization_code" } },
            "respond": { "json": token(1) } },
        { "match": "POST /token", "respond": { "json": token(2) } },
        { "match": "POST /revoke", "respond": { "status": 200, "text": "" } },
    ])
}
