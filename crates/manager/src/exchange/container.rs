//! Where the servers stand in a document: under which key, as a map, as a list, or bare.

use protocol::{Issue, IssueKind};
use serde_json::Value;

use super::document::Fault;
use super::{Dialect, Found, Harvest, Input, Outcome, document, entry, note, references, server_json};

/// Keys under which programs keep their servers.
const KEYS: [&str; 6] = [
    "mcpServers",
    "servers",
    "context_servers",
    "mcp_servers",
    "extensions",
    "amp.mcpServers",
];
/// The one of them that our own files have, as VS Code's do.
const OUR_KEY: &str = "servers";
/// Servers of one text; more is no configuration of a person.
const SERVERS: usize = 500;

/// The servers of a configuration, and whether they stood there as one bare entry.
pub(crate) fn harvest(text: &str, dialect: Dialect) -> Result<(Harvest, bool), Fault> {
    let root = document::read(text)?;
    let mut harvest = Harvest {
        is_foreign: dialect != Dialect::Common,
        ..Harvest::default()
    };
    let is_bare = harvest.document(&root, dialect);
    harvest.switch_off(&root);
    if harvest.found.len() > SERVERS {
        harvest.found.truncate(SERVERS);
        let message = format!("only the first {SERVERS} servers are read");
        harvest.notes.push(Issue::new(IssueKind::NotImported, message));
    }
    Ok((harvest, is_bare))
}

impl Harvest {
    /// Refuses what of another program's text would mean something here that it does not mean there. The kinds of references
    /// that are `meant` there mean the same.
    pub fn refuse_strange(&mut self, meant: &[&str]) {
        for found in &mut self.found {
            if let Outcome::Entry(entry) = &found.outcome
                && let Some(reason) = references::strange(entry, &self.inputs, meant)
            {
                found.outcome = Outcome::Failed(reason);
            }
        }
    }

    fn document(&mut self, root: &Value, dialect: Dialect) -> bool {
        if self.description(root) {
            return true;
        }
        match root {
            Value::Array(items) => self.list(items, dialect, None),
            Value::Object(_) if entry::is_server(root) => {
                let name = own_name(root).unwrap_or_default();
                self.one(&name, root, dialect, None);
                return true;
            }
            Value::Object(members) => {
                let is_map = !self.containers(root, dialect, None)
                    && !members.is_empty()
                    && members.values().all(Value::is_object)
                    && members.values().any(entry::is_server);
                if is_map {
                    self.entries(root, dialect, None);
                }
            }
            _ => {}
        }
        false
    }

    /// Servers under any of the known keys, in the order of the text; whether there was one.
    fn containers(&mut self, root: &Value, dialect: Dialect, scope: Option<&str>) -> bool {
        let mut is_found = false;
        for (key, value) in root.as_object().into_iter().flatten() {
            match key.as_str() {
                key if KEYS.contains(&key) && (value.is_object() || value.is_array()) => {
                    is_found = true;
                    self.is_foreign |= key != OUR_KEY;
                    self.entries(value, dialect.or_of_key(key, value), scope);
                }
                // Old settings of VS Code keep `servers` inside; others keep the servers themselves.
                "mcp" if value.get("servers").is_some_and(Value::is_object) => {
                    is_found = true;
                    self.inputs(&value["inputs"]);
                    self.entries(&value["servers"], dialect, scope);
                }
                "mcp"
                    if value
                        .as_object()
                        .is_some_and(|map| map.values().any(entry::is_server)) =>
                {
                    is_found = true;
                    self.is_foreign = true;
                    self.entries(value, dialect.or_of_key(key, value), scope);
                }
                "inputs" => self.inputs(value),
                // One program keeps the servers of every project in its state file.
                "projects" => {
                    self.is_foreign = true;
                    for (directory, project) in value.as_object().into_iter().flatten() {
                        let scope = format!("project:{directory}");
                        if let Some(servers) = project.get("mcpServers") {
                            is_found = true;
                            self.entries(servers, dialect, Some(&scope));
                        }
                    }
                }
                _ => {}
            }
        }
        is_found
    }

    fn entries(&mut self, value: &Value, dialect: Dialect, scope: Option<&str>) {
        match value {
            Value::Array(items) => self.list(items, dialect, scope),
            Value::Object(members) => {
                for (name, value) in members {
                    self.one(name, value, dialect, scope);
                }
            }
            _ => {}
        }
    }

    fn list(&mut self, items: &[Value], dialect: Dialect, scope: Option<&str>) {
        for item in items {
            match own_name(item) {
                Some(name) => self.one(&name, item, dialect, scope),
                // A list of maps, or of bare servers.
                None if item.is_object() && !entry::is_server(item) => drop(self.document(item, dialect)),
                None => self.one("", item, dialect, scope),
            }
        }
    }

    /// A `server.json`, as the registry and repositories have it.
    fn description(&mut self, value: &Value) -> bool {
        let described = server_json::inside(value).map(server_json::read);
        let is_one = described.is_some();
        if self.described.len() < SERVERS {
            self.described.extend(described);
        }
        is_one
    }

    fn one(&mut self, name: &str, value: &Value, dialect: Dialect, scope: Option<&str>) {
        if self.description(value) {
            return;
        }
        let outcome = match skipped(value, dialect) {
            Some(reason) => Outcome::Skipped(reason),
            None => match entry::read(value, dialect) {
                Ok(read) => {
                    for member in read.left_out {
                        let mut issue = note(
                            IssueKind::NotImported,
                            name,
                            format!("`{member}` has no counterpart here"),
                        );
                        issue.item = Some(member);
                        self.notes.push(issue);
                    }
                    for said in read.notes {
                        self.notes.push(note(IssueKind::Note, name, said));
                    }
                    Outcome::Entry(Box::new(read.entry))
                }
                Err(reason) => Outcome::Failed(reason),
            },
        };
        self.found.push(Found {
            name: name.to_owned(),
            scope: scope.map(str::to_owned),
            outcome,
        });
    }

    /// Gemini keeps which servers it starts beside them: `mcp.allowed` and `mcp.excluded`, in older files
    /// `allowMCPServers` and `excludeMCPServers`.
    fn switch_off(&mut self, root: &Value) {
        let names = |members: [(&'static str, &Value); 2]| {
            let (member, list) = members.into_iter().find(|(_, value)| value.is_array())?;
            let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            let names: Vec<String> = names.map(str::to_owned).collect();
            (!names.is_empty()).then_some((member, names))
        };
        let mcp = &root["mcp"];
        let allowed = names([
            ("mcp.allowed", &mcp["allowed"]),
            ("allowMCPServers", &root["allowMCPServers"]),
        ]);
        let excluded = names([
            ("mcp.excluded", &mcp["excluded"]),
            ("excludeMCPServers", &root["excludeMCPServers"]),
        ]);
        for found in &mut self.found {
            let Outcome::Entry(entry) = &mut found.outcome else {
                continue;
            };
            let why = match (&excluded, &allowed) {
                (Some((member, names)), _) if names.contains(&found.name) => format!("`{member}` names it"),
                (_, Some((member, names))) if !names.contains(&found.name) => {
                    format!("`{member}` does not name it")
                }
                _ => continue,
            };
            entry.enabled = Some(false);
            let said = format!("it is switched off: {why}");
            self.notes.push(note(IssueKind::Note, &found.name, said));
        }
    }

    fn inputs(&mut self, value: &Value) {
        for input in value.as_array().into_iter().flatten() {
            let text = |member: &str| input[member].as_str().map(str::to_owned);
            let Some(id) = text("id") else { continue };
            self.inputs.push(Input {
                id,
                secret: input["password"] == true,
                description: text("description"),
                default: text("default"),
                choices: input["options"].as_array().map(|options| {
                    options
                        .iter()
                        .filter_map(|option| option.as_str().or(option["value"].as_str()))
                        .map(str::to_owned)
                        .collect()
                }),
            });
        }
    }
}

/// What runs inside the other program cannot run here.
fn skipped(value: &Value, dialect: Dialect) -> Option<String> {
    if entry::is_server(value) {
        return None;
    }
    match dialect {
        Dialect::Zed if value.is_object() => Some("an extension of the other program provides it".to_owned()),
        Dialect::Goose => match value["type"].as_str() {
            Some(kind @ ("builtin" | "platform" | "frontend" | "inline_python")) => {
                Some(format!("it is built into the other program (`{kind}`)"))
            }
            _ => None,
        },
        _ => None,
    }
}

fn own_name(value: &Value) -> Option<String> {
    ["name", "serverName", "server_name", "id"]
        .iter()
        .find_map(|member| value[member].as_str())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}
