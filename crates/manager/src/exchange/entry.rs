//! One server as any program writes it, as an entry of ours.

use protocol::ServerEntry;
use serde_json::{Map, Value, json};

use super::{Dialect, dialect};
use crate::config::{expand, members, validate};

/// An entry, and what it could not take over.
#[derive(Debug)]
pub(crate) struct Read {
    pub entry: ServerEntry,
    /// Members that have no counterpart.
    pub left_out: Vec<String>,
    pub notes: Vec<String>,
}

/// Members that say nothing about how to run a server.
const BOOKKEEPING: [&str; 19] = [
    "name",
    "serverName",
    "server_name",
    "id",
    "description",
    "display_name",
    "displayName",
    "faviconUrl",
    "gallery",
    "version",
    "bundled",
    "source",
    "settings",
    "remote",
    "title",
    "icon",
    "uuid",
    "createdAt",
    "updatedAt",
];

/// Members of our own that other programs do not have or mean the same by.
const OWN: [&str; 15] = [
    "label",
    "timeoutMs",
    "startTimeoutMs",
    "elicitation",
    "failOnStartupError",
    "autostart",
    "protocol",
    "category",
    "required",
    "parallel",
    "idleStopMs",
    "account",
    "tls",
    "envFile",
    "cwd",
];

/// Whether a value can be one server.
pub(crate) fn is_server(value: &Value) -> bool {
    ["command", "cmd", "url", "serverUrl", "httpUrl", "uri", "baseUrl"]
        .iter()
        .any(|name| value.get(name).is_some_and(|value| !value.is_null()))
}

/// Reads one server.
pub(crate) fn read(value: &Value, dialect: Dialect) -> Result<Read, String> {
    let Some(members) = value.as_object() else {
        return Err(format!(
            "a server must be an object, not {}",
            validate::a_kind(value)
        ));
    };
    let mut reader = Reader {
        dialect,
        out: Map::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        is_sse: None,
        is_empty_remote: false,
    };
    for (name, value) in members {
        if !value.is_null() {
            reader.member(name, value)?;
        }
    }
    reader.finish()
}

/// Members of a server that only the other program has a use for.
pub(crate) fn strangers(value: &Value, dialect: Dialect) -> Vec<String> {
    let left_out = read(value, dialect).map(|read| read.left_out).unwrap_or_default();
    let is_stranger = |name: &str| {
        BOOKKEEPING.contains(&name)
            || left_out
                .iter()
                .any(|path| path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    };
    let names = value.as_object().into_iter().flatten().map(|(name, _)| name);
    names.filter(|name| is_stranger(name)).cloned().collect()
}

struct Reader {
    dialect: Dialect,
    out: Map<String, Value>,
    left_out: Vec<String>,
    notes: Vec<String>,
    is_sse: Option<bool>,
    is_empty_remote: bool,
}

impl Reader {
    fn member(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "type" | "transport" | "transportType" => self.transport(value)?,
            // Here it is the revision of MCP, elsewhere how a server is reached.
            "protocol" if value.as_str().is_some_and(is_transport) => self.transport(value)?,
            "command" | "cmd" => self.command(value)?,
            "args" | "arguments" => {
                let args = self.texts(name, value)?;
                self.list("args").extend(args);
            }
            "env" | "environment" | "envs" => self.map("env", name, value)?,
            "env_vars" | "env_keys" => self.inherited(value),
            "working_dir" | "workingDirectory" => self.text("cwd", name, value)?,
            "env_file" => self.text("envFile", name, value)?,
            "url" | "serverUrl" | "httpUrl" | "uri" | "baseUrl" => self.url(name, value)?,
            "headers" | "http_headers" => self.map("headers", name, value)?,
            "headersHelper" => self.helper(value)?,
            "requestOptions" => {
                for (inner, value) in value.as_object().into_iter().flatten() {
                    match inner.as_str() {
                        "headers" => self.map("headers", inner, value)?,
                        other => self.left_out.push(format!("requestOptions.{other}")),
                    }
                }
            }
            "env_http_headers" => {
                for (header, variable) in value.as_object().into_iter().flatten() {
                    let variable = variable.as_str().unwrap_or_default();
                    self.object("headers")
                        .insert(header.clone(), format!("${{{variable}}}").into());
                }
            }
            "bearer_token_env_var" | "bearerTokenEnv" | "bearerTokenEnvVar" => {
                let variable = value.as_str().unwrap_or_default();
                let bearer = format!("Bearer ${{{variable}}}");
                self.object("headers")
                    .insert("Authorization".to_owned(), bearer.into());
            }
            "oauth" | "auth" => self.oauth(value),
            "oauth_resource" => self.oauth_member("resource", value),
            "scopes" | "oauthScopes" | "authScope" => self.scope(value),
            "clientId" | "clientSecret" => {
                let value = self.spelt(value);
                self.oauth_member(name, &value);
            }
            "oauthPort" => self.oauth_member("callbackPort", value),
            "enabled" if value.is_boolean() => self.enabled(value == true),
            "disabled" if value.is_boolean() => self.enabled(value == false),
            "timeout" => self.time("timeoutMs", value, self.dialect.timeout_unit()),
            "toolCallTimeoutMs" => self.time("timeoutMs", value, 1.0),
            "tool_timeout_sec" => self.time("timeoutMs", value, 1000.0),
            "startup_timeout_sec" => self.time("startTimeoutMs", value, 1000.0),
            "startup_timeout_ms" | "connectionTimeout" => self.time("startTimeoutMs", value, 1.0),
            "includeTools" | "enabled_tools" | "available_tools" => self.tools("allow", name, value)?,
            "excludeTools" | "disabled_tools" | "disabledTools" => self.tools("deny", name, value)?,
            "supports_parallel_tool_calls" => drop(self.out.insert("parallel".to_owned(), value.clone())),
            "tools" => self.own_tools(value)?,
            "reconnect" => drop(self.out.insert("reconnect".to_owned(), value.clone())),
            "secrets" if is_list_of_pointers(value) => {
                // A text from elsewhere hides no argument and no address.
                let by_name = |mark: &&Value| {
                    let mark = mark.as_str().unwrap_or_default();
                    mark.starts_with("/env/") || mark.starts_with("/headers/")
                };
                let marks: Vec<Value> = value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(by_name)
                    .cloned()
                    .collect();
                if !marks.is_empty() {
                    self.out.insert("secrets".to_owned(), marks.into());
                }
            }
            "inputs" if is_map_of_objects(value) => drop(self.out.insert("inputs".to_owned(), value.clone())),
            own if OWN.contains(&own) => match value {
                // The exported list writes what is not set as an empty text.
                Value::String(text) if text.is_empty() => {}
                Value::String(text) => {
                    let text = self.dialect.references(text);
                    self.out.insert(own.to_owned(), text.into());
                }
                other => drop(self.out.insert(own.to_owned(), other.clone())),
            },
            other if BOOKKEEPING.contains(&other) => {}
            other => self.left_out.push(other.to_owned()),
        }
        Ok(())
    }

    fn object(&mut self, name: &str) -> &mut Map<String, Value> {
        let slot = self.out.entry(name).or_insert_with(|| json!({}));
        if !slot.is_object() {
            *slot = json!({});
        }
        slot.as_object_mut()
            .unwrap_or_else(|| unreachable!("it was just made one"))
    }

    fn list(&mut self, name: &str) -> &mut Vec<Value> {
        let slot = self.out.entry(name).or_insert_with(|| json!([]));
        if !slot.is_array() {
            *slot = json!([]);
        }
        slot.as_array_mut()
            .unwrap_or_else(|| unreachable!("it was just made one"))
    }

    fn transport(&mut self, value: &Value) -> Result<(), String> {
        let Some(word) = value.as_str() else {
            return Err("its transport is no text".to_owned());
        };
        match word.to_lowercase().replace(['-', '_'], "").as_str() {
            "http" | "streamablehttp" => self.is_sse = Some(false),
            "sse" => self.is_sse = Some(true),
            "stdio" | "local" | "remote" | "" => {}
            _ => return Err(format!("there is no transport `{word}` here")),
        }
        Ok(())
    }

    fn command(&mut self, value: &Value) -> Result<(), String> {
        match value {
            // The exported list writes what is not set as an empty text.
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => {
                let text = self.dialect.references(text);
                self.out.insert("command".to_owned(), text.into());
            }
            Value::Array(_) => {
                let mut words = self.texts("command", value)?.into_iter();
                let Some(program) = words.next() else {
                    return Err("its command is empty".to_owned());
                };
                self.out.insert("command".to_owned(), program);
                let mut args: Vec<Value> = words.collect();
                let rest = std::mem::take(self.list("args"));
                args.extend(rest);
                *self.list("args") = args;
            }
            Value::Object(inside) => {
                for (name, value) in inside {
                    match name.as_str() {
                        "path" => self.command(value)?,
                        "args" | "arguments" | "env" => self.member(name, value)?,
                        other => self.left_out.push(format!("command.{other}")),
                    }
                }
            }
            other => {
                return Err(format!(
                    "`command` must be a text such as `npx`, or a list, not {}",
                    validate::a_kind(other)
                ));
            }
        }
        Ok(())
    }

    fn texts(&self, name: &str, value: &Value) -> Result<Vec<Value>, String> {
        let Some(items) = value.as_array() else {
            return Err(format!(
                "`{name}` must be a list, not {}",
                validate::a_kind(value)
            ));
        };
        let text = |item: &Value| match plain(item) {
            Some(text) => Ok(Value::from(self.dialect.references(&text))),
            None => Err(format!("`{name}` holds what is no text")),
        };
        items.iter().map(text).collect()
    }

    fn text(&mut self, member: &str, name: &str, value: &Value) -> Result<(), String> {
        let Some(text) = value.as_str() else {
            return Err(format!(
                "`{name}` must be a text, not {}",
                validate::a_kind(value)
            ));
        };
        if !text.is_empty() {
            let text = self.dialect.references(text);
            self.out.insert(member.to_owned(), text.into());
        }
        Ok(())
    }

    /// A map, or a list of names and values.
    fn map(&mut self, member: &str, name: &str, value: &Value) -> Result<(), String> {
        let pairs: Vec<(String, Value)> = match value {
            Value::Object(members) => members.clone().into_iter().collect(),
            Value::Array(items) => items
                .iter()
                .filter_map(|item| Some((item["name"].as_str()?.to_owned(), item["value"].clone())))
                .collect(),
            _ => {
                return Err(format!(
                    "`{name}` must be an object, not {}",
                    validate::a_kind(value)
                ));
            }
        };
        for (key, value) in pairs {
            let text = match &value {
                // The other program takes it from its own environment.
                Value::Null => format!("${{{key}}}"),
                value => match plain(value) {
                    Some(text) => self.dialect.references(&text),
                    None => return Err(format!("`{name}.{key}` is no text")),
                },
            };
            self.object(member).insert(key, text.into());
        }
        Ok(())
    }

    fn inherited(&mut self, value: &Value) {
        for item in value.as_array().into_iter().flatten() {
            if let Some(name) = item.as_str().or(item["name"].as_str()) {
                let reference = format!("${{{name}}}");
                self.object("env").entry(name).or_insert_with(|| reference.into());
            }
        }
    }

    /// Claude Code hands the line to a shell; here it is a program with its arguments.
    fn helper(&mut self, value: &Value) -> Result<(), String> {
        let words: Vec<Value> = match value {
            Value::String(line) => match super::words::split(line) {
                Ok(words) => words.into_iter().map(Value::from).collect(),
                Err(_) => ["sh", "-c", line.as_str()].map(Value::from).into(),
            },
            Value::Array(_) => self.texts("headersHelper", value)?,
            _ => return Err("`headersHelper` is no text".to_owned()),
        };
        self.out.insert("headersHelper".to_owned(), words.into());
        Ok(())
    }

    fn url(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let Some(text) = value.as_str() else {
            return Err(format!(
                "`{name}` must be a text, not {}",
                validate::a_kind(value)
            ));
        };
        if text.is_empty() {
            self.is_empty_remote = true;
            return Ok(());
        }
        if self.dialect == Dialect::Gemini {
            match name {
                "url" if self.out.contains_key("url") => return Ok(()),
                "url" => self.is_sse = self.is_sse.or(Some(true)),
                "httpUrl" => self.is_sse = None,
                _ => {}
            }
        }
        let text = self.dialect.references(text);
        self.out.insert("url".to_owned(), text.into());
        Ok(())
    }

    fn oauth_member(&mut self, name: &str, value: &Value) {
        if self.out.get("oauth") != Some(&Value::Bool(false)) {
            self.object("oauth").insert(name.to_owned(), value.clone());
        }
    }

    fn oauth(&mut self, value: &Value) {
        if value == false {
            self.out.insert("oauth".to_owned(), false.into());
            return;
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            let member = match name.as_str() {
                "clientId" | "client_id" | "CLIENT_ID" => "clientId",
                "clientSecret" | "client_secret" | "CLIENT_SECRET" => "clientSecret",
                "redirectUri" | "redirect_uri" => "redirectUri",
                "callbackPort" => "callbackPort",
                "scope" | "scopes" => {
                    self.scope(value);
                    continue;
                }
                "enabled" => continue,
                // It lets a deviation of the server pass: a person decides that here, not a text.
                "tolerate" => {
                    self.left_out.push("oauth.tolerate".to_owned());
                    continue;
                }
                own => own,
            };
            let value = self.spelt(value);
            self.oauth_member(member, &value);
        }
    }

    /// A list, or a text with blanks between.
    fn scope(&mut self, value: &Value) {
        let scope = match value {
            Value::Array(scopes) => {
                let scopes: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
                scopes.join(" ").into()
            }
            other => self.spelt(other),
        };
        self.oauth_member("scope", &scope);
    }

    /// A value with its references in our spelling.
    fn spelt(&self, value: &Value) -> Value {
        match value.as_str() {
            Some(text) => self.dialect.references(text).into(),
            None => value.clone(),
        }
    }

    fn enabled(&mut self, enabled: bool) {
        if !enabled {
            self.out.insert("enabled".to_owned(), false.into());
        }
    }

    fn time(&mut self, member: &str, value: &Value, unit: f64) {
        let Some(number) = value.as_f64().filter(|number| *number > 0.0) else {
            return;
        };
        let wanted = number * unit;
        let time = wanted.clamp(1000.0, 600_000.0);
        if time != wanted {
            self.notes.push(format!("its time limit became {time} ms"));
        }
        self.out.insert(member.to_owned(), (time as u64).into());
    }

    fn tools(&mut self, list: &str, name: &str, value: &Value) -> Result<(), String> {
        let names = self.texts(name, value)?;
        if !names.is_empty() {
            self.object("tools").insert(list.to_owned(), names.into());
        }
        Ok(())
    }

    /// Our own lists, or the list of tools that a few programs mean by it.
    fn own_tools(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::Array(names) if names.iter().all(|name| name == "*") => {}
            Value::Array(_) => self.tools("allow", "tools", value)?,
            Value::Object(lists) => {
                for (list, names) in lists {
                    if ["allow", "deny", "ask"].contains(&list.as_str()) {
                        self.tools(list, list, names)?;
                    } else {
                        // `auto` too: nothing that comes from elsewhere loosens a guard.
                        self.left_out.push(format!("tools.{list}"));
                    }
                }
            }
            _ => self.left_out.push("tools".to_owned()),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Read, String> {
        // Some programs write every member.
        for member in ["args", "env", "headers"] {
            if self.out.get(member).is_some_and(is_blank) {
                self.out.remove(member);
            }
        }
        let is_remote = self.out.contains_key("url");
        if is_remote && !self.out.contains_key("command") {
            if let Some(is_sse) = self.is_sse {
                // Without the word both are tried, which is what `http` means elsewhere.
                if is_sse {
                    self.out.insert("transport".to_owned(), "sse".into());
                }
            }
        } else if !is_remote && !self.out.contains_key("command") {
            let what = if self.is_empty_remote { "an empty" } else { "no" };
            return Err(format!("it has no command and {what} address"));
        }
        let (known, unknown) = members::known_members(&Value::Object(self.out));
        self.left_out.extend(unknown.iter().map(members::Unknown::name));
        if let Some(problem) = validate::problems(&known).first() {
            return Err(format!("{}: {}", problem.pointer(), problem.message));
        }
        expand::texts(&known, &mut |text| {
            for reference in dialect::of_editors(text) {
                let note =
                    format!("nothing here fills in `{reference}`: write what it stands for in its place");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        });
        let entry: ServerEntry = serde_json::from_value(known).map_err(|error| error.to_string())?;
        let is_cmd = entry.command.as_deref().is_some_and(|command| {
            let name = command
                .rsplit(['/', '\\'])
                .next()
                .unwrap_or(command)
                .to_lowercase();
            ["cmd", "cmd.exe", "powershell", "powershell.exe"].contains(&name.as_str())
        });
        if is_cmd && !cfg!(windows) {
            self.notes.push("its command is a shell of Windows".to_owned());
        }
        Ok(Read {
            entry,
            left_out: self.left_out,
            notes: self.notes,
        })
    }
}

/// Our own `secrets`; other programs may mean something else by the word.
fn is_list_of_pointers(value: &Value) -> bool {
    let is_pointer = |item: &Value| item.as_str().is_some_and(|text| text.starts_with('/'));
    value.as_array().is_some_and(|items| items.iter().all(is_pointer))
}

/// Our own `inputs`; elsewhere they are a list, and stand beside the servers.
fn is_map_of_objects(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|members| members.values().all(Value::is_object))
}

fn is_transport(word: &str) -> bool {
    ["stdio", "http", "sse", "streamable-http"].contains(&word)
}

fn is_blank(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Texts, and what people write without quotes.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        _ => None,
    }
}
