//! Entries as other programs write them.
//!
//! What a program cannot say is found twice: by its words, and by reading what was written as that program's file is read.

mod secrets;

use std::collections::BTreeMap;

use protocol::{EntryInput, ExportFormat, ExportSecrets, Issue, IssueKind, ServerEntry};
use serde_json::{Map, Value, json};

use self::secrets::with_secrets;
use super::difference::{BOOKKEEPING, bare, differences};
use super::forms::{Form, Manner, Off, Syntax};
use super::references::only_reference;
use super::stand_ins::StandIns;
use super::{entry, note, programs, toml, yaml};
use crate::config::secret;

/// An exported text, and what a person should know of it.
pub(crate) struct Written {
    pub text: String,
    pub count: usize,
    pub left_out: Vec<Issue>,
    pub warnings: Vec<String>,
}

/// One entry in another program's words.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub value: Value,
    /// Members that the program has no word for, and why where it is not the word.
    pub lost: Vec<(String, Option<String>)>,
    /// Questions that the program asks its person, `${input:id}`.
    pub inputs: Vec<Value>,
    pub warnings: Vec<String>,
}

/// Writes entries in a format.
pub(crate) fn write(
    entries: &BTreeMap<String, ServerEntry>,
    format: ExportFormat,
    secrets: ExportSecrets,
) -> Written {
    let mut written = Written {
        text: String::new(),
        count: 0,
        left_out: Vec::new(),
        warnings: Vec::new(),
    };
    let holds_secrets = entries.values().any(|entry| !secret::masked(entry).1.is_empty());
    if secrets == ExportSecrets::Include && holds_secrets {
        let warning = "the text holds secrets: treat it like a password".to_owned();
        written.warnings.push(warning);
    }
    let mut stand_ins = StandIns::default();
    let Some(form) = programs::form(format) else {
        written.own(entries, format, secrets, &mut stand_ins);
        return written;
    };
    let mut named = Map::new();
    let mut inputs = Vec::new();
    for (name, entry) in entries {
        match render(name, entry, &form, secrets, &mut stand_ins) {
            Ok(rendered) => {
                written.left_out.extend(rendered.issues(name, &form));
                written.warnings.extend(rendered.warnings);
                for input in rendered.inputs {
                    if !inputs.contains(&input) {
                        inputs.push(input);
                    }
                }
                named.insert(name.clone(), rendered.value);
            }
            Err(reason) => written.left_out.push(left_out(name, &reason)),
        }
    }
    written.count = named.len();
    let servers = match form.is_list {
        true => Value::Array(named.into_iter().map(|(_, value)| value).collect()),
        false => Value::Object(named),
    };
    let mut whole = Map::new();
    for (member, value) in form.preamble {
        whole.insert((*member).to_owned(), (*value).into());
    }
    if !inputs.is_empty() {
        whole.insert("inputs".to_owned(), inputs.into());
    }
    whole.insert(form.container.to_owned(), servers);
    written.text = text(form.syntax, &whole.into());
    written
}

/// A whole document.
pub(crate) fn text(syntax: Syntax, whole: &Value) -> String {
    match syntax {
        Syntax::Json => serde_json::to_string_pretty(whole).unwrap_or_default(),
        Syntax::Toml => toml::write(whole).trim_end().to_owned(),
        Syntax::Yaml => yaml::write(whole).trim_end().to_owned(),
    }
}

/// That an entry does not come along at all.
pub(crate) fn left_out(name: &str, reason: &str) -> Issue {
    let message = format!("`{name}` is left out: {reason}");
    let mut issue = note(IssueKind::NotExported, name, message);
    issue.item = Some(name.to_owned());
    issue
}

impl Written {
    /// Our own two forms, which can say everything.
    fn own(
        &mut self,
        entries: &BTreeMap<String, ServerEntry>,
        format: ExportFormat,
        secrets: ExportSecrets,
        stand_ins: &mut StandIns,
    ) {
        let mut map = Map::new();
        let mut list = Vec::new();
        for (name, entry) in entries {
            let (value, _) = with_secrets(name, entry, secrets, None, stand_ins, &mut self.warnings);
            if format == ExportFormat::List {
                list.push(listed(name, value));
            } else {
                map.insert(name.clone(), value);
            }
        }
        self.count = entries.len();
        let whole = match format {
            ExportFormat::List => json!({ "version": 1, "servers": list }),
            _ => json!({ "servers": map }),
        };
        self.text = text(Syntax::Json, &whole);
    }
}

impl Rendered {
    /// What is lost, one issue for each member.
    pub fn issues(&self, name: &str, form: &Form) -> Vec<Issue> {
        let issue = |(member, why): &(String, Option<String>)| {
            let message = match why {
                Some(why) => format!("`{name}`: {} {why}, in {}", form.title, said(member)),
                None => format!("`{name}`: {} cannot say {}", form.title, said(member)),
            };
            let mut issue = note(IssueKind::NotExported, name, message);
            issue.item = Some(member.clone());
            issue
        };
        self.lost.iter().map(issue).collect()
    }
}

/// A member of an entry in the words of people.
fn said(member: &str) -> String {
    let said = match member {
        "timeoutMs" => "the time limit of its calls",
        "startTimeoutMs" => "the time limit of its start",
        "enabled" => "that it is switched off",
        "label" => "its label",
        "category" => "its category",
        "transport" => "its transport",
        "cwd" => "its working directory",
        "envFile" => "its file of variables",
        "env" => "its variables",
        "args" => "its arguments",
        "command" => "its command",
        "headers" => "its headers",
        "url" => "its address",
        "tools.allow" => "which tools are allowed",
        "tools.deny" => "which tools are denied",
        "tools.ask" => "which tools are asked for",
        "tools.auto" => "which tools need no question",
        "parallel" => "whether its calls may run side by side",
        "required" => "that it is required",
        "reconnect.enabled" => "whether it is started again",
        "elicitation" => "whether it may ask questions",
        "autostart" => "when it is started",
        "idleStopMs" => "when it is stopped",
        "failOnStartupError" => "what a failed start means",
        "protocol" => "its revision of MCP",
        "account" => "which login it uses",
        "oauth" => "its login",
        other => {
            return match other.split_once('.') {
                Some(("oauth", inner)) => format!("`{inner}` of its login"),
                Some(("tls", inner)) => format!("`{inner}` of its certificates"),
                _ => format!("its `{other}`"),
            };
        }
    };
    said.to_owned()
}

/// One entry in a form; an error where the program cannot run such a server at all.
pub(crate) fn render(
    name: &str,
    entry: &ServerEntry,
    form: &Form,
    secrets: ExportSecrets,
    stand_ins: &mut StandIns,
) -> Result<Rendered, String> {
    let mut warnings = Vec::new();
    let (value, inputs) = with_secrets(name, entry, secrets, Some(form), stand_ins, &mut warnings);
    let mut writer = Writer {
        form,
        rest: value.as_object().cloned().unwrap_or_default(),
        out: Map::new(),
        lost: Vec::new(),
    };
    writer.entry(name)?;
    let mut rendered = Rendered {
        lost: writer.lost,
        value: Value::Object(writer.out),
        inputs,
        warnings,
    };
    for member in writer.rest.keys() {
        if !BOOKKEEPING.contains(&member.as_str()) {
            for leaf in leaves(member, &writer.rest[member]) {
                rendered.lose(leaf, None);
            }
        }
    }
    // What reads back as something else was not said either, for instance `$5` where the program fills in variables.
    let back = entry::read(&rendered.value, form.dialect)
        .map(|read| bare(&read.entry))
        .unwrap_or_default();
    let meant: ServerEntry = serde_json::from_value(value).unwrap_or_default();
    for member in differences(&bare(&meant), &back) {
        rendered.lose(member, None);
    }
    if form.has_inputs {
        rendered.ask_for_inputs(entry);
    }
    Ok(rendered)
}

impl Rendered {
    /// A member is lost; of `env` and its variables one is said.
    fn lose(&mut self, member: String, why: Option<String>) {
        let is_known = self.lost.iter().any(|(known, _)| {
            *known == member
                || known.starts_with(&format!("{member}."))
                || member.starts_with(&format!("{known}."))
        });
        if !is_known {
            self.lost.push((member, why));
        }
    }

    /// Inputs that came from elsewhere are declared again.
    fn ask_for_inputs(&mut self, entry: &ServerEntry) {
        let text = self.value.to_string();
        for part in text.split("${input:").skip(1) {
            let Some((id, _)) = part.split_once('}') else {
                continue;
            };
            if id.is_empty() || self.inputs.iter().any(|input| input["id"] == id) {
                continue;
            }
            let how = entry.inputs.as_ref().and_then(|inputs| inputs.get(id));
            let how = how.cloned().unwrap_or_else(|| EntryInput {
                secret: Some(secret::is_secret_name(id)),
                ..EntryInput::default()
            });
            self.inputs.push(input(id, &how));
        }
    }
}

/// A question as VS Code asks it.
fn input(id: &str, how: &EntryInput) -> Value {
    let description = how.description.as_deref().unwrap_or(id);
    let mut input = match &how.choices {
        Some(choices) => {
            json!({ "id": id, "type": "pickString", "description": description, "options": choices })
        }
        None => json!({
            "id": id, "type": "promptString", "description": description, "password": how.secret != Some(false),
        }),
    };
    if let Some(default) = &how.default {
        input["default"] = default.as_str().into();
    }
    input
}

/// The names of what stands in a member, one level down where it is an object.
fn leaves(member: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) if !members.is_empty() && member != "env" && member != "headers" => {
            members.keys().map(|inner| format!("{member}.{inner}")).collect()
        }
        _ => vec![member.to_owned()],
    }
}

struct Writer<'f> {
    form: &'f Form,
    /// What is not written yet.
    rest: Map<String, Value>,
    out: Map<String, Value>,
    lost: Vec<(String, Option<String>)>,
}

impl Writer<'_> {
    fn entry(&mut self, name: &str) -> Result<(), String> {
        let form = self.form;
        if form.is_named {
            self.out.insert("name".to_owned(), name.into());
        }
        let is_remote = self.rest.contains_key("url");
        let is_sse = self.rest.get("transport").is_some_and(|word| word == "sse");
        let [http, sse] = form.url;
        if is_remote && http.is_empty() {
            return Err(format!("{} runs programs only", form.title));
        }
        let word = match (is_remote, is_sse) {
            (false, _) => form.kind.local,
            (true, false) => form.kind.http,
            (true, true) => form.kind.sse,
        };
        if !word.is_empty() {
            self.out.insert(form.kind.member.to_owned(), word.into());
        }
        if is_remote {
            // Whether it arrived is seen when it is read back.
            self.rest.remove("transport");
            let member = if is_sse { sse } else { http };
            self.text("url", member);
            self.headers();
        } else {
            self.command();
        }
        self.variables();
        for (ours, theirs, manner) in form.members {
            self.member(ours, theirs, *manner);
        }
        self.login();
        self.switch();
        if form.names_every_tool && !self.out.contains_key("tools") {
            self.out.insert("tools".to_owned(), json!(["*"]));
        }
        Ok(())
    }

    /// A text in their spelling.
    fn spelt(&mut self, member: &str, text: &str) -> Value {
        let form = self.form;
        if form.only_headers && member != "headers" {
            let spelt = super::forms::References::None.spell(text);
            self.note(member, spelt.lost);
            return spelt.text.into();
        }
        let spelt = form.references.spell(text);
        self.note(member, spelt.lost);
        if !form.has_inputs && text.contains("${input:") {
            self.note(member, vec!["asks for no `${input:…}`".to_owned()]);
        }
        spelt.text.into()
    }

    fn note(&mut self, member: &str, lost: Vec<String>) {
        for why in lost {
            let said = (member.to_owned(), Some(why));
            if !self.lost.contains(&said) {
                self.lost.push(said);
            }
        }
    }

    fn text(&mut self, member: &str, theirs: &str) {
        if let Some(Value::String(text)) = self.rest.remove(member) {
            let text = self.spelt(member, &text);
            self.out.insert(theirs.to_owned(), text);
        }
    }

    fn command(&mut self) {
        let form = self.form;
        let args = match self.rest.remove("args") {
            Some(Value::Array(args)) => args,
            _ => Vec::new(),
        };
        let mut args: Vec<Value> = args
            .iter()
            .filter_map(Value::as_str)
            .map(|text| self.spelt("args", text))
            .collect();
        self.text("command", form.command);
        if form.is_one_list {
            let command = self.out.remove(form.command).unwrap_or_default();
            args.insert(0, command);
            self.out.insert(form.command.to_owned(), args.into());
        } else if !args.is_empty() || form.are_pairs {
            self.out.insert("args".to_owned(), args.into());
        }
    }

    fn variables(&mut self) {
        let form = self.form;
        let Some(Value::Object(env)) = self.rest.remove("env") else {
            if form.are_pairs && self.out.contains_key("command") {
                self.out.insert("env".to_owned(), json!([]));
            }
            return;
        };
        let mut passed_on = Vec::new();
        let mut given = Map::new();
        for (name, value) in env {
            let text = value.as_str().unwrap_or_default();
            if !form.env_names.is_empty() && only_reference(text) == Some(name.as_str()) {
                passed_on.push(Value::from(name));
            } else {
                let text = self.spelt("env", text);
                given.insert(name, text);
            }
        }
        if !given.is_empty() {
            let given = pairs(given, form.are_pairs);
            self.out.insert(form.env.to_owned(), given);
        }
        if !passed_on.is_empty() {
            self.out.insert(form.env_names.to_owned(), passed_on.into());
        }
    }

    fn headers(&mut self) {
        let form = self.form;
        let Some(Value::Object(headers)) = self.rest.remove("headers") else {
            if form.are_pairs {
                self.out.insert("headers".to_owned(), json!([]));
            }
            return;
        };
        let mut given = Map::new();
        let mut by_name = Map::new();
        for (name, value) in headers {
            let text = value.as_str().unwrap_or_default();
            let bearer = text.strip_prefix("Bearer ").and_then(only_reference);
            if form.has_header_names && name == "Authorization" && bearer.is_some() {
                self.out.insert("bearer_token_env_var".to_owned(), bearer.into());
            } else if form.has_header_names
                && let Some(variable) = only_reference(text)
            {
                by_name.insert(name, variable.into());
            } else {
                let text = self.spelt("headers", text);
                given.insert(name, text);
            }
        }
        if !given.is_empty() {
            put(&mut self.out, form.headers, pairs(given, form.are_pairs));
        }
        if !by_name.is_empty() {
            self.out.insert("env_http_headers".to_owned(), by_name.into());
        }
    }

    fn member(&mut self, ours: &str, theirs: &str, manner: Manner) {
        let value = match ours.split_once('.') {
            None => self.rest.remove(ours),
            Some((outer, inner)) => match self.rest.get_mut(outer) {
                Some(Value::Object(members)) => {
                    let value = members.remove(inner);
                    if members.is_empty() {
                        self.rest.remove(outer);
                    }
                    value
                }
                _ => None,
            },
        };
        let Some(value) = value else { return };
        let value = match (manner, value) {
            (Manner::Seconds, value) => match value.as_u64() {
                Some(time) if time % 1000 == 0 => (time / 1000).into(),
                // Part of a second more, never less time than meant; that it is not the same is seen when it is read back.
                Some(time) => time.div_ceil(1000).into(),
                None => value,
            },
            (Manner::Words, Value::String(text)) => text
                .split_whitespace()
                .map(|word| Value::from(word.to_owned()))
                .collect(),
            (_, Value::String(text)) => self.spelt(ours, &text),
            (_, other) => other,
        };
        put(&mut self.out, theirs, value);
    }

    fn login(&mut self) {
        let form = self.form;
        let Some(oauth) = self.rest.remove("oauth") else {
            return;
        };
        let is_said = match &oauth {
            Value::Bool(false) => form.has_oauth_off,
            _ => form.has_own_oauth,
        };
        if is_said {
            self.out.insert("oauth".to_owned(), oauth);
        } else {
            self.rest.insert("oauth".to_owned(), oauth);
        }
    }

    fn switch(&mut self) {
        let is_on = self.rest.get("enabled") != Some(&Value::Bool(false));
        let member = match (self.form.off, is_on) {
            (Off::Never, false) => return,
            (Off::Never | Off::Disabled | Off::Enabled, true) => None,
            (Off::Disabled, false) => Some(("disabled", true)),
            (Off::Enabled, false) => Some(("enabled", false)),
            (Off::EnabledAlways, is_on) => Some(("enabled", is_on)),
        };
        self.rest.remove("enabled");
        if let Some((member, value)) = member {
            self.out.insert(member.to_owned(), value.into());
        }
    }
}

/// Puts a value at a path of members with dots between them.
fn put(out: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(out.insert(path.to_owned(), value)),
        Some((outer, inner)) => {
            let slot = out.entry(outer).or_insert_with(|| json!({}));
            if let Some(members) = slot.as_object_mut() {
                put(members, inner, value);
            }
        }
    }
}

fn pairs(map: Map<String, Value>, are_pairs: bool) -> Value {
    if !are_pairs {
        return map.into();
    }
    map.into_iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}

/// As `mcp-servers.json` has it: a list with the name inside.
fn listed(name: &str, mut value: Value) -> Value {
    let transport = match (value.get("url"), value["transport"].as_str()) {
        (None, _) => "stdio",
        (_, Some("sse")) => "sse",
        _ => "streamable-http",
    };
    let label = value["label"].as_str().unwrap_or(name).to_owned();
    let enabled = value["enabled"] != false;
    let mut out = json!({ "serverName": name, "label": label, "enabled": enabled, "transport": transport });
    if let Some(members) = value.as_object_mut() {
        for member in ["label", "enabled", "transport"] {
            members.remove(member);
        }
        for (member, value) in std::mem::take(members) {
            let member = if member == "timeoutMs" {
                "toolCallTimeoutMs".to_owned()
            } else {
                member
            };
            out[member] = value;
        }
    }
    out
}
