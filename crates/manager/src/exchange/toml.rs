//! TOML: read as JSON, written, and changed in place. Comments and order stay.

use serde_json::{Map, Value};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike};

use super::document::{Fault, fault_at};
use super::edit::Target;

/// The document, or why it is none.
pub(crate) fn read(text: &str) -> Result<Value, Fault> {
    Ok(of_table(parse(text)?.as_table()))
}

fn parse(text: &str) -> Result<DocumentMut, Fault> {
    text.parse::<DocumentMut>().map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let first = error.message().lines().next().unwrap_or_default().to_owned();
        fault_at(text, offset, format!("no TOML: {first}"))
    })
}

fn of_table(table: &dyn TableLike) -> Value {
    let members = table.iter().map(|(name, item)| (name.to_owned(), of_item(item)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn of_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => of_value(value),
        Item::Table(table) => of_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| of_table(table)).collect(),
    }
}

fn of_value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => text.value().clone().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(is_true) => (*is_true.value()).into(),
        Toml::Datetime(time) => time.value().to_string().into(),
        Toml::Array(items) => items.iter().map(of_value).collect(),
        Toml::InlineTable(table) => of_table(table),
    }
}

/// Writes a document.
pub(crate) fn write(whole: &Value) -> String {
    let mut document = DocumentMut::new();
    for (name, value) in whole.as_object().into_iter().flatten() {
        let item = match value {
            Value::Object(servers) => {
                let mut table = Table::new();
                table.set_implicit(true);
                for (name, server) in servers {
                    table.insert(name, Item::Table(table_of(server)));
                }
                Item::Table(table)
            }
            Value::Array(servers) => {
                let tables: ArrayOfTables = servers.iter().map(table_of).collect();
                Item::ArrayOfTables(tables)
            }
            other => Item::Value(to_value(other)),
        };
        document.insert(name, item);
    }
    document.to_string()
}

/// Sets one server and leaves the rest of the text as it is.
pub(crate) fn set(text: &str, target: &Target<'_>) -> Result<String, Fault> {
    let mut document = parse(text)?;
    let fault = |what: &str| Fault::new(format!("`{}` is no {what}", target.container));
    if target.is_list {
        let slot = document
            .entry(target.container)
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let tables = slot
            .as_array_of_tables_mut()
            .ok_or_else(|| fault("list of tables"))?;
        let known = tables
            .iter_mut()
            .find(|table| table.get("name").and_then(Item::as_str) == Some(target.name));
        match known {
            Some(table) => update(table, target.value),
            None => tables.push(table_of(target.value)),
        }
        return Ok(document.to_string());
    }
    let slot = document.entry(target.container).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let is_inline = slot.is_inline_table();
    let servers = slot.as_table_like_mut().ok_or_else(|| fault("table"))?;
    match servers.get_mut(target.name).and_then(Item::as_table_like_mut) {
        Some(known) => update(known, target.value),
        None if is_inline => drop(servers.insert(target.name, Item::Value(to_value(target.value)))),
        None => drop(servers.insert(target.name, Item::Table(table_of(target.value)))),
    }
    Ok(document.to_string())
}

/// What stays the same keeps its place, its comments and its spelling.
fn update(table: &mut dyn TableLike, value: &Value) {
    let Some(members) = value.as_object() else { return };
    let gone: Vec<String> = table
        .iter()
        .map(|(name, _)| name.to_owned())
        .filter(|name| !members.contains_key(name))
        .collect();
    for name in gone {
        table.remove(&name);
    }
    for (name, value) in members {
        match table.get_mut(name) {
            Some(item) if of_item(item) == *value => {}
            Some(item) => match item.as_table_like_mut() {
                Some(inner) if value.is_object() => update(inner, value),
                _ => {
                    let mut new = to_value(value);
                    if let Some(old) = item.as_value() {
                        *new.decor_mut() = old.decor().clone();
                    }
                    *item = Item::Value(new);
                }
            },
            None => drop(table.insert(name, Item::Value(to_value(value)))),
        }
    }
}

/// A table whose members stand on lines of their own.
fn table_of(value: &Value) -> Table {
    let mut table = Table::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        table.insert(name, Item::Value(to_value(value)));
    }
    table
}

fn to_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Null => String::new().into(),
        Value::Bool(is_true) => (*is_true).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(to_value).collect::<Array>().into(),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, to_value(value));
            }
            table.into()
        }
    }
}
