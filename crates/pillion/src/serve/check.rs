//! Parameters from the host's text to the type a handler takes: put right, checked against the published schema, read.
//!
//! The schema that is checked is the one in `schema/`, so that what a client generator promises and what is accepted
//! cannot diverge.

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use jsonschema::Validator;
use protocol::{
    Error, ErrorKind, InitializationOptions, McpHostLayers, McpHostMessage, Method, MethodSpec, RestAdd,
    RestPatch,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::explain;
use super::tree::{self, RawMember};

/// One published schema, ready to check.
#[derive(Debug)]
pub struct Checker {
    schema: Value,
    validator: Option<Validator>,
    raw: Vec<RawMember>,
}

/// The parameters of a method; `None` where the message had none.
pub fn params<M: MethodSpec>(text: Option<&str>) -> Result<M::Params, Error> {
    static CHECKERS: [OnceLock<Checker>; Method::ALL.len()] = [const { OnceLock::new() }; Method::ALL.len()];
    let checker =
        CHECKERS[M::METHOD as usize].get_or_init(|| Checker::new(protocol::schema::params_schema(M::METHOD)));
    checker.read(text, "")
}

/// `initializationOptions`, the one strict part of `initialize`.
pub fn initialization_options(text: Option<&str>) -> Result<InitializationOptions, Error> {
    static CHECKER: LazyLock<Checker> =
        LazyLock::new(|| Checker::new(protocol::schema::standalone::<InitializationOptions>()));
    CHECKER.read(text, "/initializationOptions")
}

/// The params of `mcp.host.message`; the message itself stays as it came.
pub fn host_message(text: Option<&str>) -> Result<McpHostMessage, Error> {
    static CHECKER: LazyLock<Checker> =
        LazyLock::new(|| Checker::new(protocol::schema::standalone::<McpHostMessage>()));
    CHECKER.read(text, "")
}

/// The body of `POST /mcp`.
pub fn rest_add(text: &str) -> Result<RestAdd, Error> {
    static CHECKER: LazyLock<Checker> =
        LazyLock::new(|| Checker::new(protocol::schema::standalone::<RestAdd>()));
    CHECKER.read(Some(text), "")
}

/// The body of `PATCH /config`.
pub fn rest_patch(text: &str) -> Result<RestPatch, Error> {
    static CHECKER: LazyLock<Checker> =
        LazyLock::new(|| Checker::new(protocol::schema::standalone::<RestPatch>()));
    CHECKER.read(Some(text), "")
}

/// The same of `mcp.host.layers`.
pub fn host_layers(text: Option<&str>) -> Result<McpHostLayers, Error> {
    static CHECKER: LazyLock<Checker> =
        LazyLock::new(|| Checker::new(protocol::schema::standalone::<McpHostLayers>()));
    CHECKER.read(text, "")
}

impl Checker {
    fn new(schema: Value) -> Checker {
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .build(&schema)
            .inspect_err(|fault| tracing::error!(%fault, "a schema of ours does not compile"))
            .ok();
        let raw = raw_members(&schema);
        Checker {
            schema,
            validator,
            raw,
        }
    }

    fn read<T: DeserializeOwned>(&self, text: Option<&str>, at: &str) -> Result<T, Error> {
        let text = self.check(text.unwrap_or("{}"), at)?;
        // The schema leaves nothing to object to, but serde has the last word.
        serde_json::from_str(&text).map_err(|fault| {
            Error::new(
                ErrorKind::InvalidParams,
                format!("the parameters do not read: {fault}"),
            )
            .path(at)
        })
    }

    /// The text that serde reads: as it came, unless something had to be put right.
    fn check<'t>(&self, text: &'t str, at: &str) -> Result<Cow<'t, str>, Error> {
        let mut text = text.trim_ascii();
        if text == "null" || is_empty_array(text) {
            text = "{}";
        }
        if !text.starts_with('{') {
            return Err(explain::not_an_object(at));
        }
        let mut tree = tree::read(text, &self.raw).map_err(|fault| explain::unreadable(&fault, at))?;
        if let Some(name) = &tree.twice {
            return Err(explain::twice(name, at));
        }
        if tree.empty {
            tree.changed |= tree::settle(&self.schema, &self.schema, &mut tree.members, false);
        }
        let Some(validator) = &self.validator else {
            return Err(Error::new(
                ErrorKind::Internal,
                "the schema of these parameters is broken",
            ));
        };
        if !validator.is_valid(&tree.members) {
            return Err(explain::invalid(validator, &self.schema, &tree.members, at));
        }
        Ok(if tree.changed {
            Cow::Owned(tree.text())
        } else {
            Cow::Borrowed(text)
        })
    }
}

fn is_empty_array(text: &str) -> bool {
    text.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// The top-level members marked `x-raw`.
fn raw_members(schema: &Value) -> Vec<RawMember> {
    let top = tree::resolve(schema, schema);
    let properties = top.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .filter_map(|(name, member)| {
            let raw = tree::branches(schema, member)
                .into_iter()
                .find(|branch| branch["x-raw"] == true)?;
            Some(RawMember {
                name: name.clone(),
                object: raw["type"] == "object",
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use protocol::methods;
    use serde_json::json;

    use super::*;

    fn read<M: MethodSpec>(text: &str) -> Result<Value, Error> {
        params::<M>(Some(text)).map(|params| serde_json::to_value(params).unwrap())
    }

    #[test]
    fn what_clients_send_for_nothing_reads_as_nothing() {
        for text in [None, Some("null"), Some("[]"), Some(" [ ] "), Some("{}")] {
            assert!(params::<methods::Questions>(text).is_ok(), "{text:?}");
        }
        let bare = json!({"directory": "/w", "server": "s", "name": "t"});
        for more in [
            r#""call":null,"session":null"#,
            r#""arguments":null"#,
            r#""workDoneToken":null,"timeoutMs":null"#,
        ] {
            let text = format!(r#"{{"directory":"/w","server":"s","name":"t",{more}}}"#);
            assert_eq!(read::<methods::ToolCall>(&text).unwrap(), bare, "{more}");
        }
        let text = r#"{"directory":"/w","name":"n","entry":{"command":"c","env":[],"headers":null,"tls":[],"args":[]}}"#;
        let entry = json!({"command": "c", "env": {}, "tls": {}, "args": []});
        assert_eq!(read::<methods::Add>(text).unwrap()["entry"], entry);
        let text = r#"{"directory":"/w","server":"s","name":"t","timeoutMs":2e3,"workDoneToken":1.0}"#;
        let params = read::<methods::ToolCall>(text).unwrap();
        assert_eq!(
            (&params["timeoutMs"], &params["workDoneToken"]),
            (&json!(2000), &json!(1))
        );
    }

    #[test]
    fn what_belongs_to_a_server_is_not_touched() {
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        let raw = format!(
            r#"{{"b":1.0, "a":[ ],"n":null,"a":1e400,"s":"\ud800","big":123456789012345678901234567890,"deep":{deep}}}"#
        );
        for more in ["", r#","timeoutMs":2000.0"#] {
            let text = format!(r#"{{"directory":"/w","server":"s","name":"t","arguments": {raw} {more}}}"#);
            let params = params::<methods::ToolCall>(Some(&text)).unwrap();
            assert_eq!(params.arguments.unwrap().get(), raw, "{more}");
        }
        let text = r#"{"directory":"/w","server":"s","name":"t","arguments":[ ]}"#;
        assert_eq!(
            params::<methods::ToolCall>(Some(text))
                .unwrap()
                .arguments
                .unwrap()
                .get(),
            "{}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        fn check<M: MethodSpec>(text: &str, path: &str, message: &str) {
            let error = params::<M>(Some(text))
                .err()
                .unwrap_or_else(|| panic!("accepted: {text}"));
            assert_eq!(error.kind, ErrorKind::InvalidParams, "{text}");
            assert_eq!(
                (error.data.path.as_deref(), &*error.message),
                (Some(path), message),
                "{text}"
            );
            assert!(error.data.expected.is_some(), "{text}");
        }
        check::<methods::Status>("7", "", "the parameters must be an object");
        check::<methods::Status>("[1]", "", "the parameters must be an object");
        check::<methods::Status>("{}", "/directory", "`directory` is missing; it must be a text");
        check::<methods::Status>(
            r#"{"directory":""}"#,
            "/directory",
            "`directory` must be a text that is not empty, not an empty text",
        );
        check::<methods::Status>(
            r#"{"directory":7}"#,
            "/directory",
            "`directory` must be a text, not 7",
        );
        check::<methods::Status>(
            r#"{"directory":"/w","server":false}"#,
            "/server",
            "`server` must be a text, not false",
        );
        check::<methods::Status>(r#"{"dir/ctory":"/w"}"#, "/dir~1ctory", "`dir/ctory` is not known");
        check::<methods::Status>(
            r#"{"directory":"/w","directory":"/x"}"#,
            "",
            "`directory` stands twice in the parameters",
        );
        check::<methods::Add>(
            r#"{"directory":"/w","name":"n","entry":{"args":["a",5]}}"#,
            "/entry/args/1",
            "`entry.args[1]` must be a text, not 5",
        );
        check::<methods::Add>(
            r#"{"directory":"/w","name":"n","entry":{"env":{"A":"x","A":"y"}}}"#,
            "",
            "`A` stands twice in the parameters",
        );
        check::<methods::Add>(
            r#"{"directory":"/w","name":"n","entry":{"oauth":5}}"#,
            "/entry/oauth",
            "`entry.oauth` must be true or false or an object, not 5",
        );
        check::<methods::Add>(
            r#"{"directory":"/w","name":"pillion","entry":{}}"#,
            "/name",
            "`name` must be anything but `pillion`, not a text of 7 characters",
        );
        check::<methods::Add>(
            r#"{"directory":"/w","name":"n","entry":{"transport":"htp"}}"#,
            "/entry/transport",
            "`entry.transport` must be `http`, `sse` or `host`, not a text of 3 characters",
        );
        check::<methods::ToolCall>(
            r#"{"directory":"/w","server":"s","name":"t","arguments":[1]}"#,
            "/arguments",
            "`arguments` must be an object, not a list",
        );
        check::<methods::ToolCall>(
            r#"{"directory":"/w","server":"s","name":"t","timeoutMs":5}"#,
            "/timeoutMs",
            "`timeoutMs` must be at least 1000, not 5",
        );
        check::<methods::Complete>(
            r#"{"directory":"/w","server":"s","ref":{"type":"tool","name":"x"},"argument":"a","value":""}"#,
            "/ref/type",
            "`ref.type` must be `prompt` or `template`, not a text of 4 characters",
        );
        check::<methods::Complete>(
            r#"{"directory":"/w","server":"s","ref":{"type":"template","uri":"x"},"argument":"a","value":""}"#,
            "/ref/uri",
            "`ref.uri` is not known",
        );
    }

    #[test]
    fn a_slip_of_the_pen_gets_a_hint() {
        let hint = |text| {
            params::<methods::Status>(Some(text))
                .err()
                .and_then(|error| error.data.hint)
        };
        assert_eq!(
            hint(r#"{"dirctory":"/w"}"#).as_deref(),
            Some("did you mean `directory`?")
        );
        assert_eq!(
            hint(r#"{"Server":"s","directory":"/w"}"#).as_deref(),
            Some("did you mean `server`?")
        );
        assert_eq!(hint(r#"{"directory":"/w","x":1}"#), None);
    }

    #[test]
    fn every_schema_compiles() {
        for method in Method::ALL {
            assert!(
                Checker::new(protocol::schema::params_schema(*method))
                    .validator
                    .is_some(),
                "{method}"
            );
        }
        let error = initialization_options(Some(r#"{"start":"soon"}"#)).unwrap_err();
        assert_eq!(error.data.path.as_deref(), Some("/initializationOptions/start"));
        assert!(initialization_options(None).is_ok());
    }
}
