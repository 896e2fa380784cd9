//! The `manifest.json` of a bundle (MCPB specification, versions 0.1 to 0.4; `dxt_version` is its older name), and the
//! entry it becomes.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use protocol::{Dir, ServerEntry};
use serde::Deserialize;
use serde_json::Value;

use super::{places, platform};
use crate::config::{secret, validate};
use crate::env::Env;

/// The versions of the specification that are understood.
const VERSIONS: [&str; 4] = ["0.1", "0.2", "0.3", "0.4"];

/// Answers to the questions of a bundle, by key.
pub(crate) type Values = BTreeMap<String, Value>;

#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    manifest_version: Option<String>,
    dxt_version: Option<String>,
    pub name: String,
    pub display_name: Option<String>,
    pub version: String,
    server: Launch,
    #[serde(default)]
    user_config: serde_json::Map<String, Value>,
    #[serde(default)]
    compatibility: Compatibility,
}

#[derive(Debug, Deserialize)]
struct Launch {
    #[serde(rename = "type")]
    kind: Kind,
    entry_point: Option<String>,
    mcp_config: Option<Config>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Node,
    Python,
    Binary,
    Uv,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Config {
    command: Option<String>,
    args: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    platform_overrides: BTreeMap<String, Config>,
}

#[derive(Debug, Default, Deserialize)]
struct Compatibility {
    platforms: Option<Vec<String>>,
}

/// Something that a bundle asks the person for.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub key: String,
    pub title: String,
    pub description: Option<String>,
    pub kind: Answer,
    pub required: bool,
    pub secret: bool,
    pub multiple: bool,
    default: Option<Value>,
    min: Option<f64>,
    max: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Text,
    Number,
    Boolean,
    Path,
}

impl Manifest {
    /// Reads a manifest, and refuses what cannot be started here.
    pub fn read(text: &str) -> Result<Manifest, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let manifest: Manifest =
            serde_json::from_str(text).map_err(|error| format!("its `manifest.json`: {error}"))?;
        let version = manifest
            .manifest_version
            .as_ref()
            .or(manifest.dxt_version.as_ref());
        match version {
            None => return Err("its `manifest.json` says no `manifest_version`".to_owned()),
            Some(version) if !VERSIONS.contains(&version.as_str()) => {
                return Err(format!(
                    "it is of manifest version {version}; {} to {} are understood",
                    VERSIONS[0],
                    VERSIONS[VERSIONS.len() - 1]
                ));
            }
            Some(_) => {}
        }
        if let Some(platforms) = &manifest.compatibility.platforms
            && !platforms.iter().any(|one| one == platform())
        {
            return Err(format!(
                "it is for {}, not for {}",
                platforms.join(", "),
                platform()
            ));
        }
        if let Some(entry_point) = &manifest.server.entry_point {
            let is_inside = Path::new(entry_point)
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            if !is_inside {
                return Err(format!("its entry point `{entry_point}` lies outside of it"));
            }
        }
        Ok(manifest)
    }

    /// What it asks for, in its own order.
    pub fn questions(&self, env: &Env, folder: &Path) -> Vec<Question> {
        let places = places(env, folder);
        let asked = self.user_config.iter().map(|(key, asked)| {
            let text = |name: &str| asked[name].as_str().map(str::to_owned);
            let filled = |text: &str| fill(text, |name| places.get(name).cloned().map(Filled::One));
            let default = match &asked["default"] {
                Value::Null => None,
                Value::String(text) => Some(Value::String(filled(text))),
                Value::Array(items) => Some(
                    items
                        .iter()
                        .map(|item| {
                            item.as_str()
                                .map_or_else(|| item.clone(), |text| Value::String(filled(text)))
                        })
                        .collect(),
                ),
                other => Some(other.clone()),
            };
            Question {
                key: key.clone(),
                title: text("title").unwrap_or_else(|| key.clone()),
                description: text("description"),
                kind: match asked["type"].as_str() {
                    Some("number") => Answer::Number,
                    Some("boolean") => Answer::Boolean,
                    Some("directory" | "file") => Answer::Path,
                    _ => Answer::Text,
                },
                required: asked["required"] == true,
                secret: asked["sensitive"] == true,
                multiple: asked["multiple"] == true,
                default,
                min: asked["min"].as_f64(),
                max: asked["max"].as_f64(),
            }
        });
        asked.collect()
    }

    /// The entry, with what the person answered.
    pub(crate) fn entry(&self, env: &Env, folder: &Path, values: &Values) -> Result<ServerEntry, String> {
        let questions = self.questions(env, folder);
        if let Some(unknown) = values
            .keys()
            .find(|key| !questions.iter().any(|asked| asked.key == **key))
        {
            return Err(format!("it asks for no `{unknown}`"));
        }
        let mut answers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for question in &questions {
            let answer = values.get(&question.key).or(question.default.as_ref());
            let answer = answer.map(|answer| question.texts(answer)).transpose()?;
            answers.insert(&question.key, answer.unwrap_or_default());
        }
        let places = places(env, folder);
        let look = |name: &str| match name.strip_prefix("user_config.") {
            Some(key) => answers.get(key).map(|answer| Filled::Many(answer.clone())),
            None => places.get(name).cloned().map(Filled::One),
        };
        let config = self.config()?;
        let secrets: Vec<String> = questions
            .iter()
            .filter(|question| question.secret)
            .map(|question| format!("${{user_config.{}}}", question.key))
            .collect();
        let holds_secret = |text: &str| secrets.iter().any(|secret| text.contains(secret));
        let mut marks = Vec::new();
        let mut args = Vec::new();
        for argument in config.args.iter().flatten() {
            let start = args.len();
            match alone(argument).and_then(look) {
                Some(Filled::Many(many)) => args.extend(many),
                _ => args.push(fill(argument, look)),
            }
            if holds_secret(argument) {
                marks.extend((start..args.len()).map(|index| format!("/args/{index}")));
            }
        }
        let mut variables = BTreeMap::new();
        for (name, value) in &config.env {
            // What was left open is not set at all, rather than set to nothing.
            let is_open = matches!(alone(value).and_then(look), Some(Filled::Many(many)) if many.is_empty());
            if holds_secret(value) {
                marks.push(validate::pointer(&["env", name]));
            }
            if !is_open {
                variables.insert(name.clone(), fill(value, look));
            }
        }
        let command = fill(config.command.as_deref().unwrap_or_default(), look);
        // A program of the bundle itself is named by its path in it.
        let is_inside = command.contains('/') && !Path::new(&command).is_absolute();
        let is_own = is_inside || (self.server.kind == Kind::Binary && folder.join(&command).is_file());
        let command = if is_own {
            folder.join(&command).display().to_string()
        } else {
            command
        };
        let mut entry = ServerEntry {
            command: Some(command),
            args: (!args.is_empty()).then_some(args),
            env: (!variables.is_empty()).then_some(variables),
            cwd: Some(Dir::from(folder.display().to_string())),
            label: self
                .display_name
                .as_ref()
                .map(|name| name.chars().take(200).collect()),
            source: Some(
                format!("bundle:{}@{}", self.name, self.version)
                    .chars()
                    .take(256)
                    .collect(),
            ),
            ..ServerEntry::default()
        };
        secret::mark(&mut entry, marks);
        Ok(entry)
    }

    /// What is started on this platform.
    fn config(&self) -> Result<Config, String> {
        let mut config = self.server.mcp_config.clone().unwrap_or_default();
        if let Some(here) = config.platform_overrides.remove(platform()) {
            config.command = here.command.or(config.command);
            config.args = here.args.or(config.args);
            config.env.extend(here.env);
        }
        if config.command.is_some() {
            return Ok(config);
        }
        let Some(entry_point) = &self.server.entry_point else {
            return Err("its manifest names neither a command nor an entry point".to_owned());
        };
        let file = format!("${{__dirname}}/{entry_point}");
        let (command, args) = match self.server.kind {
            Kind::Node => ("node".to_owned(), vec![file]),
            Kind::Python => ("python3".to_owned(), vec![file]),
            Kind::Binary => (file, Vec::new()),
            // The dependencies stand in `pyproject.toml`; uv installs them at the first start.
            Kind::Uv => {
                let words = ["run", "--directory", "${__dirname}", entry_point];
                ("uv".to_owned(), words.map(str::to_owned).to_vec())
            }
        };
        config.command = Some(command);
        config.args = Some(config.args.unwrap_or(args));
        Ok(config)
    }

    /// Lets the programs of an unpacked bundle be run: zip files made on Windows have no such right.
    pub(super) fn make_runnable(&self, folder: &Path) -> std::io::Result<()> {
        if self.server.kind != Kind::Binary {
            return Ok(());
        }
        let config = self.config().unwrap_or_default();
        let command = config
            .command
            .as_deref()
            .map(|command| command.replace("${__dirname}/", ""));
        for name in self.server.entry_point.iter().cloned().chain(command) {
            let is_inside = Path::new(&name)
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            let path = folder.join(&name);
            #[cfg(unix)]
            if is_inside && path.is_file() {
                std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            }
            #[cfg(not(unix))]
            let _ = (is_inside, path);
        }
        Ok(())
    }
}

impl Question {
    /// Its default as a text to offer; a secret has none.
    pub fn default_text(&self) -> Option<String> {
        let default = self.default.as_ref().filter(|_| !self.secret)?;
        self.texts(default).ok().map(|texts| texts.join(","))
    }

    /// What there is to choose from.
    pub fn choices(&self) -> Option<Vec<String>> {
        (self.kind == Answer::Boolean).then(|| ["true", "false"].map(str::to_owned).to_vec())
    }

    /// Whether somebody must be asked.
    pub fn is_open(&self, values: &Values) -> bool {
        let given = values.get(&self.key).or(self.default.as_ref());
        given.is_none_or(|given| {
            matches!(given, Value::Null) || given == "" || given == &Value::Array(Vec::new())
        })
    }

    /// An answer as the texts that are filled in.
    fn texts(&self, answer: &Value) -> Result<Vec<String>, String> {
        let wrong = |wanted: &str| Err(format!("`{}` must be {wanted}", self.key));
        let items: Vec<&Value> = match answer {
            Value::Array(items) if self.multiple => items.iter().collect(),
            Value::Array(_) => return wrong("one value"),
            one => vec![one],
        };
        let mut texts = Vec::new();
        for item in items {
            let text = match item {
                Value::Null => continue,
                Value::String(text) if text.is_empty() => continue,
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => item.to_string(),
                Value::Array(_) | Value::Object(_) => return wrong("a text, a number or `true` or `false`"),
            };
            match self.kind {
                Answer::Number => {
                    let Ok(number) = text.parse::<f64>() else {
                        return wrong("a number");
                    };
                    if self.min.is_some_and(|min| number < min) || self.max.is_some_and(|max| number > max) {
                        let (min, max) = (self.min.unwrap_or(f64::MIN), self.max.unwrap_or(f64::MAX));
                        return wrong(&format!("from {min} to {max}"));
                    }
                }
                Answer::Boolean if text != "true" && text != "false" => return wrong("`true` or `false`"),
                Answer::Boolean | Answer::Text | Answer::Path => {}
            }
            texts.push(text);
        }
        Ok(texts)
    }
}

/// What stands for a reference.
enum Filled {
    One(String),
    Many(Vec<String>),
}

/// The name in a text that is one reference and nothing else.
fn alone(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    (!name.contains(['$', '{', '}'])).then_some(name)
}

/// Fills references in; one that nobody knows stays, and reads a variable when the server starts.
fn fill(text: &str, look: impl Fn(&str) -> Option<Filled>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}').map(|end| start + end) else {
            break;
        };
        filled.push_str(&rest[..start]);
        match look(&rest[start + 2..end]) {
            Some(Filled::One(one)) => filled.push_str(&one),
            Some(Filled::Many(many)) => filled.push_str(&many.join(",")),
            None => filled.push_str(&rest[start..=end]),
        }
        rest = &rest[end + 1..];
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(manifest: Value, values: Value) -> Result<Value, String> {
        let manifest = Manifest::read(&manifest.to_string())?;
        let values: Values = serde_json::from_value(values).unwrap();
        let entry = manifest.entry(&Env::from_process(), Path::new("/b"), &values)?;
        Ok(json!([entry.command, entry.args, entry.env]))
    }

    fn of(server: Value, user_config: Value) -> Value {
        json!({ "manifest_version": "0.3", "name": "x", "version": "1", "server": server, "user_config": user_config })
    }

    #[test]
    fn what_is_started() {
        let check = |server: Value, expected: Value| {
            assert_eq!(entry(of(server, json!({})), json!({})), Ok(expected));
        };
        check(
            json!({"type": "node", "entry_point": "s/i.js"}),
            json!(["node", ["/b/s/i.js"], null]),
        );
        check(
            json!({"type": "uv", "entry_point": "s.py"}),
            json!(["uv", ["run", "--directory", "/b", "s.py"], null]),
        );
        check(
            json!({"type": "binary", "entry_point": "s/run"}),
            json!(["/b/s/run", null, null]),
        );
        check(
            json!({"type": "binary", "entry_point": "s/run", "mcp_config": {"command": "s/run", "args": ["--x"],
                "platform_overrides": {platform(): {"args": ["--y"], "env": {"A": "${__dirname}${/}l"}}}}}),
            json!(["/b/s/run", ["--y"], {"A": "/b/l"}]),
        );
    }

    #[test]
    fn answers_are_filled_in() {
        let server = json!({"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node",
            "args": ["${__dirname}/i.js", "${user_config.dirs}", "--n=${user_config.n}"],
            "env": {"KEY": "${user_config.key}", "OPEN": "${user_config.open}", "OTHER": "${ELSEWHERE}"}}});
        let config = json!({
            "dirs": {"type": "directory", "multiple": true, "required": true},
            "n": {"type": "number", "default": 3, "min": 1, "max": 9},
            "key": {"type": "string", "sensitive": true, "required": true},
            "open": {"type": "string"},
        });
        assert_eq!(
            entry(
                of(server.clone(), config.clone()),
                json!({"dirs": ["/a b", "/c"], "key": "k"})
            ),
            Ok(json!(["node", ["/b/i.js", "/a b", "/c", "--n=3"], {"KEY": "k", "OTHER": "${ELSEWHERE}"}]))
        );
        let wrong = |values: Value| entry(of(server.clone(), config.clone()), values).unwrap_err();
        assert!(wrong(json!({"n": 12})).contains("`n` must be from 1 to 9"));
        assert!(wrong(json!({"n": "x"})).contains("a number"));
        assert!(wrong(json!({"nope": 1})).contains("`nope`"));
        assert!(wrong(json!({"key": ["a"]})).contains("one value"));
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let refused = |change: Value| {
            let mut manifest = of(json!({"type": "node", "entry_point": "i.js"}), json!({}));
            for (name, value) in change.as_object().unwrap() {
                manifest[name] = value.clone();
            }
            Manifest::read(&manifest.to_string()).unwrap_err()
        };
        assert!(refused(json!({"manifest_version": "1.0"})).contains("1.0"));
        assert!(refused(json!({"manifest_version": null})).contains("manifest_version"));
        assert!(refused(json!({"compatibility": {"platforms": ["plan9"]}})).contains("plan9"));
        assert!(refused(json!({"server": {"type": "node", "entry_point": "../x"}})).contains("outside"));
        assert!(refused(json!({"server": {"type": "wasm"}})).contains("manifest.json"));
        let old = json!({"dxt_version": "0.1", "name": "x", "version": "1", "server": {"type": "node", "entry_point": "i.js"}});
        assert!(Manifest::read(&old.to_string()).is_ok());
    }
}
