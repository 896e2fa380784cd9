//! The OpenAPI document of the plain HTTP routes, for generators of clients and for testers.

use serde_json::{Map, Value, json};

use crate::PROTOCOL_VERSION;
use crate::schema::rest_definitions;

/// One verb of one route.
struct Route {
    path: &'static str,
    verb: &'static str,
    id: &'static str,
    doc: &'static str,
    /// The type of its body.
    body: Option<&'static str>,
    /// The status and the type of its answer.
    answer: (u16, &'static str),
    /// Whether `?directory=` selects an open directory.
    by_directory: bool,
}

const ROUTES: [Route; 6] = [
    Route {
        path: "/mcp",
        verb: "get",
        id: "listServers",
        doc: "The servers of a directory, else those of the user's file, with their state. Starts nothing.",
        body: None,
        answer: (200, "RestServers"),
        by_directory: true,
    },
    Route {
        path: "/mcp",
        verb: "post",
        id: "addServer",
        doc: "Asks for a new server in the user's file; the person decides.",
        body: Some("RestAdd"),
        answer: (202, "RestAccepted"),
        by_directory: true,
    },
    Route {
        path: "/config",
        verb: "get",
        id: "readConfig",
        doc: "The entries that count in a directory, else those of the user's file; secrets masked.",
        body: None,
        answer: (200, "RestConfig"),
        by_directory: true,
    },
    Route {
        path: "/config",
        verb: "patch",
        id: "changeConfig",
        doc: "Asks for changes in the project's file of a directory, else in the user's; all of them or none.",
        body: Some("RestPatch"),
        answer: (202, "RestAccepted"),
        by_directory: true,
    },
    Route {
        path: "/global/config",
        verb: "get",
        id: "readGlobalConfig",
        doc: "The entries of the user's file; secrets masked.",
        body: None,
        answer: (200, "RestConfig"),
        by_directory: true,
    },
    Route {
        path: "/global/config",
        verb: "patch",
        id: "changeGlobalConfig",
        doc: "Asks for changes in the user's file; all of them or none.",
        body: Some("RestPatch"),
        answer: (202, "RestAccepted"),
        by_directory: true,
    },
];

/// What may go wrong, by status.
const REFUSALS: [(u16, &str); 10] = [
    (
        400,
        "The query or the body is not as described, or an entry breaks a rule between its members.",
    ),
    (401, "There is no token, or a wrong one."),
    (
        403,
        "The token is one to read with, the directory is not open, or the request comes from a web page.",
    ),
    (404, "There is no such server."),
    (405, "The route does not have this verb."),
    (409, "The name is taken, or what was read is no longer so."),
    (413, "The body is larger than 1 MiB."),
    (422, "The file to change does not parse."),
    (
        429,
        "Too many requests in one second, or ten requests wait for the person already.",
    ),
    (500, "It could not be carried out."),
];

/// The OpenAPI 3.1 document.
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let operations = paths.entry(route.path).or_insert_with(|| json!({}));
        operations[route.verb] = operation(&route);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Pillion",
            "version": PROTOCOL_VERSION,
            "description": "The plain HTTP routes of `pillion serve --listen`. Address and token stand in `peers.json` of the data folder.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:{port}", "variables": { "port": { "default": "0" } } }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": rest_definitions(),
        },
    });
    crate::openrpc::point_at_components(&mut document);
    document
}

/// The verbs of a route, in upper case; empty where there is no such route.
pub fn verbs(path: &str) -> Vec<String> {
    let of_path = ROUTES.iter().filter(|route| route.path == path);
    of_path.map(|route| route.verb.to_uppercase()).collect()
}

fn operation(route: &Route) -> Value {
    let mut responses = Map::new();
    let (status, answer) = route.answer;
    let said = if status == 202 {
        "It waits for the person's decision."
    } else {
        "The answer."
    };
    responses.insert(status.to_string(), response(said, answer));
    for (status, said) in REFUSALS {
        responses.insert(status.to_string(), response(said, "RestError"));
    }
    responses.insert(
        "431".to_owned(),
        json!({ "description": "The head of the request is larger than 16 KiB; there is no body." }),
    );
    let mut operation = json!({ "operationId": route.id, "summary": route.doc, "responses": responses });
    if route.by_directory {
        operation["parameters"] = json!([{
            "name": "directory",
            "in": "query",
            "description": "A directory that the host has open, as an absolute path.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 4096 },
        }]);
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({ "required": true, "content": content(body) });
    }
    operation
}

fn response(said: &str, name: &str) -> Value {
    json!({ "description": said, "content": content(name) })
}

fn content(name: &str) -> Value {
    json!({ "application/json": { "schema": { "$ref": format!("#/$defs/{name}") } } })
}
