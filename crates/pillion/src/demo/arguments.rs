//! Whether the arguments of a call are those that the tool of a demo's server asks for.

use serde_json::{Value, json};

/// What is wrong with them, for the model to read (MCP, Tools, Error Handling: invalid input is a tool's error).
pub fn fault(tools: &Value, params: &Value) -> Option<Value> {
    let tool = tools
        .as_array()?
        .iter()
        .find(|tool| tool["name"] == params["name"])?;
    let given = match &params["arguments"] {
        Value::Null => json!({}),
        given => given.clone(),
    };
    let error = jsonschema::validate(&tool["inputSchema"], &given).err()?;
    let path = error.instance_path().to_string();
    let place = path
        .strip_prefix('/')
        .map_or_else(String::new, |name| format!("`{name}`: "));
    Some(json!({
        "content": [{ "type": "text", "text": format!("{place}{error}") }], "isError": true,
    }))
}
