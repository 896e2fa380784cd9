//! Pillion's own tools for the model: reading resources and spilled results, and finding tools.
//!
//! Definitions and texts only; carrying them out is the manager's.

use protocol::{ModelApproval, ModelTool, Raw, ResourceTools, ServerName};
use serde_json::{Value, json};

use super::spill::Entry;
use super::tokens;
use crate::limits;

/// The name of Pillion itself among servers; no entry may have it.
pub(crate) const SERVER: &str = "pillion";

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// Resources and templates of all servers or one, as lines.
    List,
    /// The text of a resource or spilled result.
    Read,
    /// The same under the names of other hosts.
    SharedResources,
    SharedTemplates,
    SharedRead,
    /// Finds tools and shows their schemas.
    SearchTools,
    /// Calls a tool that was found.
    CallTool,
}

impl Builtin {
    const ALL: [Builtin; 7] = [
        Builtin::List,
        Builtin::Read,
        Builtin::SharedResources,
        Builtin::SharedTemplates,
        Builtin::SharedRead,
        Builtin::SearchTools,
        Builtin::CallTool,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Builtin::List => "mcp_resource_list",
            Builtin::Read => "mcp_resource_read",
            Builtin::SharedResources => "list_mcp_resources",
            Builtin::SharedTemplates => "list_mcp_resource_templates",
            Builtin::SharedRead => "read_mcp_resource",
            Builtin::SearchTools => "mcp_tool_search",
            Builtin::CallTool => "mcp_tool_call",
        }
    }

    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    fn description(self) -> &'static str {
        match self {
            Builtin::List => {
                "List the resources and resource templates of the connected MCP servers, or of one of them. \
                 Each line holds server, URI, name, MIME type and description, separated by tabs."
            }
            Builtin::SharedResources => {
                "List the resources of the connected MCP servers, or of one of them. \
                 Each line holds server, URI, name, MIME type and description, separated by tabs."
            }
            Builtin::SharedTemplates => {
                "List the resource templates of the connected MCP servers, or of one of them. \
                 Each line holds server, URI template, name, MIME type and description, separated by tabs."
            }
            Builtin::Read | Builtin::SharedRead => {
                "Read the text of a resource of an MCP server. A long text goes on at `offset`. \
                 Binary content is named, not shown."
            }
            Builtin::SearchTools => {
                "Find tools of the connected MCP servers by what they do. \
                 Answers with names, descriptions and argument schemas; call one with mcp_tool_call."
            }
            Builtin::CallTool => {
                "Call a tool that mcp_tool_search found, with arguments that fit its schema."
            }
        }
    }

    fn schema(self) -> Value {
        let server = json!({ "type": "string", "description": "Only this server" });
        match self {
            Builtin::List | Builtin::SharedResources | Builtin::SharedTemplates => json!({
                "type": "object",
                "properties": { "server": server },
            }),
            Builtin::Read | Builtin::SharedRead => json!({
                "type": "object",
                "properties": {
                    "server": { "type": "string", "description": "The server that has the resource" },
                    "uri": { "type": "string", "description": "The URI of the resource" },
                    "offset": { "type": "integer", "minimum": 0, "description": "Characters to skip" },
                },
                "required": ["server", "uri"],
            }),
            Builtin::SearchTools => json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "What the tool should do, in a few words" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 20, "description": "At most so many, default 5" },
                },
                "required": ["query"],
            }),
            Builtin::CallTool => json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "The name as the search gave it" },
                    "arguments": { "type": "object", "description": "The arguments of that tool" },
                },
                "required": ["name"],
            }),
        }
    }

    /// The tool as the model is offered it.
    pub fn offer(self) -> ModelTool {
        let schema = self.schema();
        let text = format!("{} {} {schema}", self.name(), self.description());
        ModelTool {
            name: self.name().to_owned(),
            server: ServerName::from(SERVER),
            tool: self.name().to_owned(),
            title: None,
            description: Some(self.description().to_owned()),
            input_schema: Raw::from(&schema),
            output_schema: None,
            annotations: (self != Builtin::CallTool).then(|| Raw::from(&json!({ "readOnlyHint": true }))),
            approval: ModelApproval::Auto,
            tokens: tokens::estimate(&text),
        }
    }
}

/// How a model reads a spilled result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Pillion,
    Shared,
    /// It has no tool for that; only the file is named.
    FileOnly,
}

impl Reading {
    pub fn of(tools: ResourceTools) -> Reading {
        match tools {
            ResourceTools::Pillion => Reading::Pillion,
            ResourceTools::Shared => Reading::Shared,
            ResourceTools::None => Reading::FileOnly,
        }
    }

    /// The tool that reads.
    pub fn tool(self) -> Option<Builtin> {
        match self {
            Reading::Pillion => Some(Builtin::Read),
            Reading::Shared => Some(Builtin::SharedRead),
            Reading::FileOnly => None,
        }
    }

    /// The sentence that says how to go on.
    pub fn how(self, entry: &Entry, offset: usize) -> String {
        match self.tool() {
            Some(tool) => format!(
                "read {} of server {SERVER} with {}, offset {offset}",
                entry.uri,
                tool.name()
            ),
            None => format!("the whole is in the file {}", entry.path.display()),
        }
    }
}

/// One line of a list for the model.
pub(crate) fn line(
    server: &str,
    uri: &str,
    name: &str,
    mime_type: Option<&str>,
    description: Option<&str>,
) -> String {
    let cells = [
        server,
        uri,
        name,
        mime_type.unwrap_or_default(),
        description.unwrap_or_default(),
    ];
    cells.map(cell).join("\t").trim_end().to_owned()
}

/// What could not be listed, as a line.
pub(crate) fn issue_line(server: &str, message: &str) -> String {
    format!("! {}: {}", cell(server), cell(message))
}

/// What would break the line becomes a blank.
fn cell(text: &str) -> String {
    let breaks = |character: char| {
        matches!(
            character,
            '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    text.replace("\r\n", " ").replace(breaks, " ")
}

/// The lines a model reads: no more than there is room for, and how many more there are.
pub(crate) fn lines(mut lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(limits::MODEL_LINES);
    lines.truncate(limits::MODEL_LINES);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_lines_and_how_many_more() {
        let check = |n: usize, n_lines: usize, last: &str| {
            let text = lines((1..=n).map(|n| format!("line {n}")).collect());
            assert_eq!(text.lines().count(), n_lines);
            assert!(text.ends_with(last), "{text}");
        };
        check(199, 199, "line 199");
        check(200, 200, "line 200");
        check(201, 201, "… and 1 more");
    }

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(
            line("s", "x:1", "a\tb", Some("text/plain"), Some("one\r\ntwo\nthree")),
            "s\tx:1\ta b\ttext/plain\tone two three"
        );
        assert_eq!(line("s", "x:1", "n", None, None), "s\tx:1\tn");
    }
}
