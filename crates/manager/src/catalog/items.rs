//! From what a server lists to what a host sees. One malformed item never costs the rest.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};

use mcp::ToolHeaders;
use protocol::{
    CatalogItem, Category, HiddenReason, Issue, IssueKind, PromptArgument, PromptItem, Raw, ResourceItem,
    ServerEntry, ServerName, TemplateItem, ToolCost, ToolItem, Uri,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::names::{self, Naming};

/// One list of a server, ready to be shown.
#[derive(Default)]
pub(crate) struct List {
    pub items: Vec<Item>,
    pub issues: Vec<Issue>,
    costs: OnceLock<Arc<[ToolCost]>>,
}

impl List {
    /// A list of which nothing is known but what went wrong.
    pub fn failed(issue: Issue) -> List {
        List {
            issues: vec![issue],
            ..List::default()
        }
    }

    /// What its tools would take of a model's context, those a model is not offered left out. Counted once.
    pub fn costs(&self) -> Arc<[ToolCost]> {
        let count = || {
            crate::model::offer::tools(self)
                .filter(|(_, tool)| tool.hidden.is_none())
                .map(|(_, tool)| ToolCost {
                    tool: tool.name.clone(),
                    tokens: crate::model::offer::tokens_of(tool, &crate::model::offer::input_schema(tool)),
                })
                .collect()
        };
        Arc::clone(self.costs.get_or_init(count))
    }
}

/// One item, with what is needed to use it.
pub(crate) struct Item {
    pub shown: CatalogItem,
    pub tool: Option<Tool>,
}

/// What a call of a tool needs.
pub(crate) struct Tool {
    /// Arguments that a server over HTTP wants repeated in headers (SEP-2243).
    pub headers: Option<Arc<ToolHeaders>>,
    output_schema: Option<Box<RawValue>>,
    validator: OnceLock<Option<jsonschema::Validator>>,
    schema_fault: OnceLock<Option<String>>,
    /// It can only be called as a task (`execution.taskSupport` of revision 2025-11-25).
    pub only_as_task: bool,
}

impl Tool {
    /// The check of structured results; `None` without an output schema, or with one that is no schema.
    pub fn validator(&self) -> Option<&jsonschema::Validator> {
        self.validator
            .get_or_init(|| {
                let schema: Value = serde_json::from_str(self.output_schema.as_ref()?.get()).ok()?;
                jsonschema::validator_for(&schema).ok()
            })
            .as_ref()
    }

    /// Why no model's service would take the schema of the arguments. Judged once.
    pub fn schema_fault(&self, schema: &str) -> Option<String> {
        self.schema_fault
            .get_or_init(|| crate::model::offer::schema_fault(schema))
            .clone()
    }
}

/// The members of an item that we look at; everything else stays in its raw text.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(default)]
    name: Value,
    #[serde(default)]
    title: Value,
    #[serde(default)]
    description: Value,
    #[serde(default)]
    annotations: Value,
    #[serde(default, rename = "mimeType")]
    mime_type: Value,
    #[serde(default)]
    size: Value,
    #[serde(default)]
    uri: Value,
    #[serde(default, rename = "uriTemplate")]
    uri_template: Value,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    execution: Value,
    #[serde(default, rename = "_meta")]
    meta: Value,
    #[serde(borrow, default, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
}

impl Seen<'_> {
    fn title(&self) -> Option<String> {
        text(&self.title).or_else(|| text(&self.annotations["title"]))
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What reading a list depends on.
pub(crate) struct Reader<'a> {
    pub server: &'a ServerName,
    pub entry: &'a ServerEntry,
    pub naming: &'a Naming,
    /// A server of the modern era over HTTP: the header annotations of its tools count.
    pub header_rules: bool,
}

impl Reader<'_> {
    /// Reads the raw items of a category.
    pub fn list(&self, category: Category, raw: Vec<Box<RawValue>>, notes: Vec<String>) -> List {
        let mut list = List::default();
        for note in notes {
            list.issues
                .push(self.issue(IssueKind::Note, category, None, note));
        }
        let mut known = HashSet::new();
        for (index, raw) in raw.into_iter().enumerate() {
            let read = match category {
                Category::Tools => self.tool(&raw),
                Category::Resources => self.resource(&raw),
                Category::Templates => self.template(&raw),
                Category::Prompts => self.prompt(&raw),
            };
            match read {
                Ok((key, item, notes)) => {
                    for note in notes {
                        list.issues
                            .push(self.issue(IssueKind::Note, category, Some(&key), note));
                    }
                    if known.insert(key.clone()) {
                        list.items.push(item);
                    } else {
                        let note = format!("`{key}` is listed twice; the first one counts");
                        list.issues
                            .push(self.issue(IssueKind::ItemSkipped, category, Some(&key), note));
                    }
                }
                Err((key, why)) => {
                    let named = key
                        .clone()
                        .map_or_else(|| format!("item {}", index + 1), |key| format!("`{key}`"));
                    let note = format!("{named} of {} was skipped: {why}", category.as_str());
                    list.issues
                        .push(self.issue(IssueKind::ItemSkipped, category, key.as_deref(), note));
                }
            }
        }
        if category == Category::Tools {
            self.apply_overrides(&mut list);
        }
        list.issues.truncate(crate::limits::ISSUES);
        list
    }

    /// Shows tools as the entry wants them. A name that another tool has is given to none.
    fn apply_overrides(&self, list: &mut List) {
        let overrides = self
            .entry
            .tools
            .as_ref()
            .and_then(|tools| tools.overrides.as_ref());
        let Some(overrides) = overrides.filter(|_| !list.items.is_empty()) else {
            return;
        };
        let mut unknown: BTreeSet<&str> = overrides.keys().map(String::as_str).collect();
        let mut own = HashSet::new();
        for item in &list.items {
            let CatalogItem::Tool(tool) = &item.shown else {
                continue;
            };
            unknown.remove(tool.name.as_str());
            own.insert(tool.name.clone());
        }
        let mut notes: Vec<(String, String)> = Vec::new();
        for item in &mut list.items {
            let CatalogItem::Tool(tool) = &mut item.shown else {
                continue;
            };
            let Some(shown) = overrides.get(&tool.name) else {
                continue;
            };
            match &shown.name {
                Some(name) if *name == tool.name => {}
                Some(name) if own.contains(name) => notes.push((
                    tool.name.clone(),
                    format!("`{}` keeps its name: the server has a tool `{name}`", tool.name),
                )),
                Some(name) => {
                    tool.exposed = self.naming.exposed(self.server, name);
                    tool.renamed = Some(name.clone());
                }
                None => {}
            }
            for (shown, own) in [
                (&shown.title, &mut tool.title),
                (&shown.description, &mut tool.description),
            ] {
                if shown.is_some() {
                    own.clone_from(shown);
                }
            }
        }
        notes.extend(unknown.into_iter().map(|tool| {
            let message =
                format!("the entry shows a tool `{tool}` in other words, which the server does not offer");
            (tool.to_owned(), message)
        }));
        for (tool, note) in notes {
            let mut issue = self.issue(IssueKind::Note, Category::Tools, Some(&tool), note);
            issue.hint = Some("`tools.overrides` of the entry names the server's tools".to_owned());
            list.issues.push(issue);
        }
    }

    fn issue(&self, kind: IssueKind, category: Category, item: Option<&str>, message: String) -> Issue {
        Issue {
            server: Some(self.server.clone()),
            category: Some(category),
            item: item.map(str::to_owned),
            ..Issue::new(kind, message)
        }
    }

    fn tool(&self, raw: &RawValue) -> Read {
        let seen = seen(raw)?;
        let name = text(&seen.name).ok_or((None, "it has no name".to_owned()))?;
        let mut notes = Vec::new();
        match seen.input_schema.map(RawValue::get) {
            None | Some("null") => notes.push(format!(
                "`{name}` has no input schema; it is taken to accept any object"
            )),
            Some(schema) => {
                let describes_object = serde_json::from_str::<Value>(schema).is_ok_and(|schema| {
                    schema
                        .as_object()
                        .is_some_and(|schema| schema.get("type").is_none_or(|kind| kind == "object"))
                });
                if !describes_object {
                    return Err((
                        Some(name),
                        "its input schema does not describe an object".to_owned(),
                    ));
                }
            }
        }
        let headers = match seen.input_schema.filter(|_| self.header_rules) {
            Some(schema) => match ToolHeaders::from_schema(schema) {
                Ok(headers) => Some(Arc::new(headers)),
                Err(why) => return Err((Some(name), why)),
            },
            None => None,
        };
        let lists = self.entry.tools.as_ref();
        let is_listed = |list: Option<&Vec<String>>| {
            list.map(|patterns| patterns.iter().any(|pattern| matches(pattern, &name)))
        };
        let denied = is_listed(lists.and_then(|lists| lists.deny.as_ref())) == Some(true)
            || is_listed(lists.and_then(|lists| lists.allow.as_ref())) == Some(false);
        let hidden = if denied {
            Some(HiddenReason::Denied)
        } else if is_for_apps_only(&seen.meta) {
            Some(HiddenReason::AppOnly)
        } else {
            None
        };
        let item = ToolItem {
            server: self.server.clone(),
            exposed: self.naming.exposed(self.server, &name),
            title: seen.title(),
            description: text(&seen.description),
            raw: Raw(raw.to_owned()),
            hidden,
            renamed: None,
            name: name.clone(),
        };
        let tool = Tool {
            headers,
            output_schema: seen
                .output_schema
                .filter(|schema| schema.get() != "null")
                .map(ToOwned::to_owned),
            validator: OnceLock::new(),
            schema_fault: OnceLock::new(),
            only_as_task: seen.execution["taskSupport"] == "required",
        };
        Ok((
            name,
            Item {
                shown: item.into(),
                tool: Some(tool),
            },
            notes,
        ))
    }

    fn resource(&self, raw: &RawValue) -> Read {
        let seen = seen(raw)?;
        let uri = text(&seen.uri).ok_or((text(&seen.name), "it has no URI".to_owned()))?;
        let name = text(&seen.name).unwrap_or_else(|| uri.clone());
        let item = ResourceItem {
            server: self.server.clone(),
            mention: format!("@{}:{}", names::alias(self.server), names::alias(&name)),
            title: seen.title(),
            description: text(&seen.description),
            raw: Raw(raw.to_owned()),
            mime_type: text(&seen.mime_type),
            size: seen.size.as_u64(),
            uri: Uri::from(uri.as_str()),
            name,
            ambiguous: None,
        };
        Ok((
            uri,
            Item {
                shown: item.into(),
                tool: None,
            },
            Vec::new(),
        ))
    }

    fn template(&self, raw: &RawValue) -> Read {
        let seen = seen(raw)?;
        let uri = text(&seen.uri_template).ok_or((text(&seen.name), "it has no URI template".to_owned()))?;
        let item = TemplateItem {
            server: self.server.clone(),
            name: text(&seen.name).unwrap_or_else(|| uri.clone()),
            title: seen.title(),
            description: text(&seen.description),
            raw: Raw(raw.to_owned()),
            mime_type: text(&seen.mime_type),
            uri_template: Uri::from(uri.as_str()),
        };
        Ok((
            uri,
            Item {
                shown: item.into(),
                tool: None,
            },
            Vec::new(),
        ))
    }

    fn prompt(&self, raw: &RawValue) -> Read {
        let seen = seen(raw)?;
        let name = text(&seen.name).ok_or((None, "it has no name".to_owned()))?;
        let arguments = seen
            .arguments
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|argument| {
                Some(PromptArgument {
                    name: text(&argument["name"])?,
                    description: text(&argument["description"]),
                    required: argument["required"].as_bool().unwrap_or(false),
                })
            });
        let item = PromptItem {
            server: self.server.clone(),
            command: format!("/{}:{}", names::alias(self.server), names::alias(&name)),
            title: seen.title(),
            description: text(&seen.description),
            arguments: arguments.collect(),
            raw: Raw(raw.to_owned()),
            name: name.clone(),
            ambiguous: None,
        };
        Ok((
            name,
            Item {
                shown: item.into(),
                tool: None,
            },
            Vec::new(),
        ))
    }
}

/// Key, item and remarks; or the key, where there is one, and why the item was skipped.
type Read = Result<(String, Item, Vec<String>), (Option<String>, String)>;

fn seen(raw: &RawValue) -> Result<Seen<'_>, (Option<String>, String)> {
    serde_json::from_str(raw.get()).map_err(|_| (None, "it is no object".to_owned()))
}

/// A tool of an MCP App that the model does not see (`_meta.ui.visibility` without `model`).
fn is_for_apps_only(meta: &Value) -> bool {
    meta["ui"]["visibility"]
        .as_array()
        .is_some_and(|visibility| !visibility.iter().any(|to| to == "model"))
}

/// Whether a pattern of an allow or deny list fits a name; `*` fits any run of characters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reader", false),
            ("read*", "reader", true),
            ("*", "", true),
            ("*_file", "read_file", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn one_bad_tool_never_costs_the_rest() {
        let server = ServerName::from("s");
        let entry = ServerEntry::default();
        let naming = Naming::new(None);
        let reading = Reader {
            server: &server,
            entry: &entry,
            naming: &naming,
            header_rules: false,
        };
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let list = reading.list(
            Category::Tools,
            vec![
                raw(r#"{"name":"good","inputSchema":{"type":"object"},"x":1.10}"#),
                raw(r#"{"name":"noschema"}"#),
                raw(r#"{"name":"strschema","inputSchema":{"type":"string"}}"#),
                raw(r#"{"description":"nameless"}"#),
                raw("7"),
                raw(r#"{"name":"good"}"#),
                raw(r#"{"name":"odd","title":5,"annotations":null,"inputSchema":{"anyOf":[{"type":"object"}]}}"#),
            ],
            Vec::new(),
        );
        let names: Vec<&str> = list
            .items
            .iter()
            .filter_map(|item| match &item.shown {
                CatalogItem::Tool(tool) => Some(tool.name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["good", "noschema", "odd"]);
        assert_eq!(list.issues.len(), 6, "{:?}", list.issues);
        let CatalogItem::Tool(good) = &list.items[0].shown else {
            panic!()
        };
        assert!(good.raw.get().contains("1.10"));
    }
}
