//! Cases of the areas `paste` and `import`: a text goes in, entries come out. No server is started.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Case;
use crate::support::{Host, TestEnv};

const INPUT: &[&str] = &["text", "text_hex", "file", "variants"];
const EXPECT: &[&str] = &[
    "any",
    "each",
    "draft",
    "drafts",
    "warnings_mention",
    "refused",
    "mentions",
    "needs_env",
    "masked_args",
    "servers",
    "failed",
    "skipped",
    "not_imported",
    "needs_input",
    "warnings_mention_elsewhere_than_windows",
];

pub fn run(case: &Case) -> Result<(), String> {
    all_known("input", &case.input, INPUT)?;
    let texts: Vec<Vec<u8>> = match case.input["variants"].as_array() {
        Some(variants) => {
            let own = case.input.get("text").cloned();
            own.iter()
                .chain(variants)
                .map(|text| text_of(text).into_bytes())
                .collect()
        }
        None => vec![bytes(&case.input)?],
    };
    for (index, text) in texts.iter().enumerate() {
        let expect = match case.expect["each"].as_array() {
            Some(each) => each
                .get(index)
                .ok_or("there are fewer expectations than variants")?,
            None => &case.expect,
        };
        one(case, text, expect).map_err(|fault| format!("variant {index}: {fault}"))?;
    }
    Ok(())
}

fn one(case: &Case, text: &[u8], expect: &Value) -> Result<(), String> {
    if let Some(several) = expect["any"].as_array() {
        let faults: Vec<String> = several
            .iter()
            .filter_map(|one_of| one(case, text, one_of).err())
            .collect();
        return if faults.len() < several.len() {
            Ok(())
        } else {
            Err(faults.join("; or "))
        };
    }
    all_known("expect", expect, EXPECT)?;
    let env = TestEnv::new();
    if case.area == "paste" {
        paste(&env, text, expect)
    } else {
        import(&env, &case.input, text, expect)
    }
}

fn all_known(what: &str, value: &Value, known: &[&str]) -> Result<(), String> {
    let unknown: Vec<&String> = value
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys())
        .filter(|name| !known.contains(&name.as_str()))
        .collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(format!("this runner does not know {what} {unknown:?}"))
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn bytes(input: &Value) -> Result<Vec<u8>, String> {
    match input["text_hex"].as_str() {
        None => Ok(text_of(&input["text"]).into_bytes()),
        Some(hex) => (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).map_err(|error| error.to_string()))
            .collect(),
    }
}

fn paste(env: &TestEnv, text: &[u8], expect: &Value) -> Result<(), String> {
    let host = Host::start(env);
    let text = String::from_utf8_lossy(text).into_owned();
    let parsed = host
        .ask("mcp.parse", json!({ "text": text }))
        .map_err(|error| format!("mcp.parse: {error}"))?;
    let drafts = parsed["drafts"].as_array().cloned().unwrap_or_default();
    if expect["refused"] == true {
        if !drafts.is_empty() {
            return Err(format!("it was not refused: {parsed}"));
        }
        return mentions(&parsed["problems"], &expect["mentions"]);
    }
    let one = [expect["draft"].clone()];
    let wanted = expect["drafts"].as_array().map_or(&one[..], Vec::as_slice);
    if drafts.len() != wanted.len() {
        return Err(format!("{} drafts were expected: {parsed}", wanted.len()));
    }
    for (draft, wanted) in drafts.iter().zip(wanted) {
        let mut found = words(&text_of(&draft["name"]), &draft["entry"]);
        found["scope"] = draft["scope"].clone();
        same(&found, wanted, "draft")?;
    }
    let draft = &drafts[0];
    mentions(&draft["warnings"], &expect["warnings_mention"])?;
    if let Some(wanted) = expect["needs_env"].as_array() {
        let needs = draft["needs"].as_array().cloned().unwrap_or_default();
        let names: Vec<Value> = needs
            .iter()
            .filter_map(|need| need["at"].as_str()?.strip_prefix("/env/").map(Value::from))
            .collect();
        if names != *wanted {
            return Err(format!("needs {names:?}, expected {wanted:?}"));
        }
    }
    for index in expect["masked_args"].as_array().into_iter().flatten() {
        let at = index
            .as_u64()
            .and_then(|index| usize::try_from(index).ok())
            .unwrap_or_default();
        if !text_of(&draft["target"]["argv"][at]).contains("********") {
            return Err(format!("argument {at} is shown: {}", draft["target"]));
        }
    }
    Ok(())
}

/// The file at the place where its program keeps it, read by its path.
fn import(env: &TestEnv, input: &Value, text: &[u8], expect: &Value) -> Result<(), String> {
    let file: PathBuf = env.home().join(text_of(&input["file"]));
    fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).map_err(|error| error.to_string())?;
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let host = Host::start(env);
    let imported = host
        .ask("mcp.import", json!({ "source": file }))
        .map_err(|error| format!("mcp.import: {error}"))?;
    let results = imported["results"].as_array().cloned().unwrap_or_default();
    let names = |status: &str| -> Vec<Value> {
        results
            .iter()
            .filter(|one| one["status"] == status)
            .map(|one| one["name"].clone())
            .collect()
    };
    for (key, status) in [("failed", "failed"), ("skipped", "skipped")] {
        if let Some(wanted) = expect[key].as_array()
            && names(status) != *wanted
        {
            return Err(format!(
                "{status}: {:?}, expected {wanted:?}: {imported}",
                names(status)
            ));
        }
    }
    let stored: Value = fs::read_to_string(env.data().join("mcp.json"))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let added: Vec<&Value> = results.iter().filter(|one| one["status"] == "added").collect();
    let wanted = expect["servers"].as_array().cloned().unwrap_or_default();
    if added.len() != wanted.len() {
        return Err(format!(
            "{} entries, expected {}: {imported}",
            added.len(),
            wanted.len()
        ));
    }
    for (one, wanted) in added.iter().zip(&wanted) {
        let name = text_of(&one["savedAs"]);
        let mut found = words(&name, &stored["servers"][&name]);
        found["scope"] = one["scope"].clone();
        same(&found, wanted, &name)?;
    }
    let left_out: Vec<&Value> = imported["notImported"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|issue| &issue["item"])
        .collect();
    for wanted in expect["not_imported"].as_array().into_iter().flatten() {
        if !left_out.contains(&wanted) {
            return Err(format!("{wanted} was not reported: {}", imported["notImported"]));
        }
    }
    if let Some(wanted) = expect["needs_input"].as_array() {
        let needs = imported["needs"].as_array().cloned().unwrap_or_default();
        for (index, wanted) in wanted.iter().enumerate() {
            let need = needs.get(index).cloned().unwrap_or_default();
            let found = json!({
                "id": need["label"],
                "secret": need["secret"],
                "description": need["description"],
                "used_by": need["servers"],
            });
            same(&found, wanted, "needs_input")?;
        }
    }
    if !cfg!(windows) {
        for wanted in expect["warnings_mention_elsewhere_than_windows"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let notes = imported["notImported"].as_array();
            let is_said = notes
                .into_iter()
                .flatten()
                .any(|issue| issue["kind"] == "note" && issue["server"] == *wanted);
            if !is_said {
                return Err(format!("nothing is said of {wanted}: {imported}"));
            }
        }
    }
    Ok(())
}

/// An entry in the words of the cases: what is not listed is empty.
fn words(name: &str, entry: &Value) -> Value {
    let or = |value: &Value, default: Value| if value.is_null() { default } else { value.clone() };
    let transport = match (&entry["url"], entry["transport"].as_str()) {
        (Value::Null, _) => "stdio",
        (_, Some("sse")) => "sse",
        _ => "http",
    };
    json!({
        "name": name,
        "transport": transport,
        "command": entry["command"],
        "args": or(&entry["args"], json!([])),
        "env": or(&entry["env"], json!({})),
        "cwd": entry["cwd"],
        "url": entry["url"],
        "headers": or(&entry["headers"], json!({})),
        "enabled": or(&entry["enabled"], json!(true)),
        "timeout_ms": entry["timeoutMs"],
        "label": entry["label"],
        "oauth": entry["oauth"],
    })
}

/// Keys that the expectation leaves out are empty; name, label and scope are free.
fn same(found: &Value, wanted: &Value, what: &str) -> Result<(), String> {
    let defaults = json!({
        "args": [], "env": {}, "headers": {}, "enabled": true, "command": null, "url": null, "cwd": null, "timeout_ms": null,
        "oauth": null,
    });
    let mut wanted = wanted.clone();
    if wanted.get("transport").is_some() {
        for (key, value) in defaults.as_object().into_iter().flatten() {
            if wanted.get(key).is_none() {
                wanted[key] = value.clone();
            }
        }
        if found["name"].as_str().is_none_or(|name| {
            name.is_empty()
                || name.len() > 32
                || name.contains(|one: char| !(one.is_ascii_alphanumeric() || "_-".contains(one)))
        }) {
            return Err(format!("no fitting name: {}", found["name"]));
        }
    }
    for (key, value) in wanted.as_object().into_iter().flatten() {
        if found[key] != *value {
            return Err(format!("{what}: `{key}` is {}, expected {value}", found[key]));
        }
    }
    Ok(())
}

fn mentions(problems: &Value, wanted: &Value) -> Result<(), String> {
    let said = problems.to_string().to_lowercase();
    for word in wanted.as_array().into_iter().flatten() {
        if !said.contains(&text_of(word).to_lowercase()) {
            return Err(format!("{word} is not mentioned: {problems}"));
        }
    }
    Ok(())
}
