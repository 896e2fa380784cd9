//! From the lists of servers to the tools that a model is offered: what is hidden left out, schemas projected, each
//! tool judged alone.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{
    CatalogItem, Category, Dialect, HiddenReason, Issue, IssueKind, ModelApproval, ModelTool, Raw,
    ServerName, ToolItem,
};
use serde_json::Value;

use super::definition::Parts;
use super::{project, tokens};
use crate::catalog::items::{Item, List};
use crate::limits;

/// The tools of one server, ready for a model.
#[derive(Default)]
pub(crate) struct Offer {
    pub tools: Vec<ModelTool>,
    pub issues: Vec<Issue>,
}

/// Makes the offer of one list. `taken` holds the names that are in use already.
pub(crate) fn offer(
    list: &List,
    dialect: Dialect,
    approval: impl Fn(&str) -> ModelApproval,
    taken: &mut HashSet<String>,
) -> Offer {
    let mut offer = Offer::default();
    for (item, tool) in tools(list) {
        if tool.hidden.is_some() {
            continue;
        }
        if !taken.insert(tool.exposed.clone()) {
            let message = format!(
                "`{}` is left out: another tool has the name `{}`",
                tool.name, tool.exposed
            );
            offer
                .issues
                .push(issue(&tool.server, &tool.name, IssueKind::ItemSkipped, message));
            continue;
        }
        match model_tool(item, tool, dialect) {
            Ok((mut shown, changes)) => {
                shown.approval = approval(&tool.name);
                let more = changes.len().saturating_sub(limits::CHANGES_PER_TOOL);
                for change in changes.into_iter().take(limits::CHANGES_PER_TOOL) {
                    let message = format!("the schema of `{}` was changed {change}", tool.name);
                    offer.issues.push(issue(
                        &tool.server,
                        &tool.name,
                        IssueKind::SchemaRewritten,
                        message,
                    ));
                }
                if more > 0 {
                    let message = format!("the schema of `{}` was changed at {more} more places", tool.name);
                    offer.issues.push(issue(
                        &tool.server,
                        &tool.name,
                        IssueKind::SchemaRewritten,
                        message,
                    ));
                }
                offer.tools.push(shown);
            }
            Err(why) => {
                taken.remove(&tool.exposed);
                let message = format!("`{}` is left out: {why}", tool.name);
                offer
                    .issues
                    .push(issue(&tool.server, &tool.name, IssueKind::ItemSkipped, message));
            }
        }
    }
    offer
}

/// The tools of a list, with what calls need.
pub(crate) fn tools(list: &List) -> impl Iterator<Item = (&Item, &ToolItem)> {
    list.items.iter().filter_map(|item| match &item.shown {
        CatalogItem::Tool(tool) => Some((item, tool)),
        _ => None,
    })
}

/// What the model cannot see, and may not call either.
pub(crate) fn is_hidden(tool: &ToolItem) -> bool {
    matches!(
        tool.hidden,
        Some(HiddenReason::AppOnly | HiddenReason::Invalid | HiddenReason::Other(_))
    )
}

fn issue(server: &ServerName, tool: &str, kind: IssueKind, message: String) -> Issue {
    Issue {
        server: Some(server.clone()),
        category: Some(Category::Tools),
        item: Some(tool.to_owned()),
        ..Issue::new(kind, message)
    }
}

/// The schema of a tool's arguments, verbatim; "any object" where it has none.
pub(crate) fn input_schema(tool: &ToolItem) -> Raw {
    let parts = Parts::of(tool.raw.get());
    match parts.and_then(|parts| parts.input) {
        Some(schema) => Raw(schema.to_owned()),
        None => Raw::from(&serde_json::json!({ "type": "object" })),
    }
}

/// How many tokens the definition of a tool takes.
pub(crate) fn tokens_of(tool: &ToolItem, schema: &Raw) -> u32 {
    let description = tool.description.as_deref().unwrap_or_default();
    tokens::estimate(&tool.exposed) + tokens::estimate(description) + tokens::estimate(schema.get())
}

fn model_tool(item: &Item, tool: &ToolItem, dialect: Dialect) -> Result<(ModelTool, Vec<String>), String> {
    let parts = Parts::of(tool.raw.get()).ok_or("its definition cannot be read")?;
    let verbatim = input_schema(tool);
    let mut changes = Vec::new();
    let mut schema = verbatim;
    if dialect == Dialect::None {
        if let Some(fault) = item
            .tool
            .as_ref()
            .and_then(|known| known.schema_fault(schema.get()))
        {
            return Err(fault);
        }
    } else {
        let value: Value = serde_json::from_str(schema.get())
            .map_err(|error| format!("its schema cannot be read: {error}"))?;
        let projected = project::project(&value, dialect)?;
        if let Err(error) = jsonschema::draft202012::meta::validate(&projected.schema) {
            return Err(format!(
                "its schema is no JSON Schema at `{}`",
                pointer(&error.instance_path().to_string())
            ));
        }
        changes = projected.changes;
        // What needs no change stays as its server wrote it.
        if projected.schema != value {
            schema = Raw::from(&projected.schema);
        }
    }
    let shown = ModelTool {
        name: tool.exposed.clone(),
        server: tool.server.clone(),
        tool: tool.name.clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        tokens: tokens_of(tool, &schema),
        input_schema: schema,
        output_schema: parts.output.map(|schema| Raw(schema.to_owned())),
        annotations: parts.annotations.map(|annotations| Raw(annotations.to_owned())),
        approval: ModelApproval::Auto,
    };
    Ok((shown, changes))
}

/// Why every service would refuse this schema, if they would.
pub(crate) fn schema_fault(schema: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(schema) {
        Ok(value) => value,
        Err(error) => return Some(format!("its schema cannot be read: {error}")),
    };
    // Few servers say which draft they follow, and services differ in what they take: any of them will do.
    if jsonschema::draft7::meta::is_valid(&value) || jsonschema::draft4::meta::is_valid(&value) {
        return None;
    }
    let error = jsonschema::draft202012::meta::validate(&value).err()?;
    Some(format!(
        "its schema is no JSON Schema at `{}`",
        pointer(&error.instance_path().to_string())
    ))
}

fn pointer(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// The list that holds a tool of this exposed name.
pub(crate) fn find<'a>(lists: &'a [Arc<List>], exposed: &str) -> Option<&'a ToolItem> {
    lists
        .iter()
        .flat_map(|list| tools(list))
        .map(|(_, tool)| tool)
        .find(|tool| tool.exposed == exposed)
}
