//! The ordered rules of a scripted HTTP host: which one answers a request. No IO.

use serde_json::{Map, Value};

use crate::support::matching;

/// A request as it is logged and matched.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Place among the requests of all hosts.
    pub order: u64,
    pub method: String,
    pub path: String,
    pub query: Map<String, Value>,
    pub headers: Map<String, Value>,
    pub form: Map<String, Value>,
    pub body: String,
    pub json: Option<Value>,
}

impl Seen {
    pub fn rpc(&self) -> Option<&str> {
        self.json.as_ref()?.get("method")?.as_str()
    }

    /// `"METHOD /path"`, `* *` for everything.
    pub fn is(&self, pattern: &str) -> bool {
        let (method, path) = pattern.split_once(' ').unwrap_or((pattern, "*"));
        (method == "*" || method == self.method) && (path == "*" || path == self.path)
    }

    /// The conditions of `when` and `with`, without `seen_before`.
    pub fn fits(&self, when: &Map<String, Value>) -> Result<(), String> {
        for (key, wanted) in when {
            let members = wanted.as_object();
            match key.as_str() {
                "auth" => matching::matches(wanted, self.headers.get("authorization"))?,
                "header" => self.names(members, &self.headers, true)?,
                "query" => self.names(members, &self.query, false)?,
                "form" => self.names(members, &self.form, false)?,
                "json" => matching::matches(wanted, self.json.as_ref())?,
                "rpc" => {
                    let rpc = self.rpc().map(|method| Value::String(method.to_owned()));
                    matching::matches(wanted, rpc.as_ref())?;
                }
                "seen_before" => {}
                other => return Err(format!("unknown condition `{other}`")),
            }
        }
        Ok(())
    }

    fn names(
        &self,
        wanted: Option<&Map<String, Value>>,
        found: &Map<String, Value>,
        lower: bool,
    ) -> Result<(), String> {
        for (name, value) in wanted.into_iter().flatten() {
            let key = if lower { name.to_lowercase() } else { name.clone() };
            matching::matches(value, found.get(&key)).map_err(|reason| format!("{name}: {reason}"))?;
        }
        Ok(())
    }
}

/// The rules of one host with their use counts.
#[derive(Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

struct Rule {
    text: Value,
    /// Answered by this rule.
    n_used: u64,
    /// Fitting requests, whoever answered them.
    n_seen: u64,
}

impl Rules {
    pub fn new(rules: Vec<Value>) -> Rules {
        Rules {
            rules: rules
                .into_iter()
                .map(|text| Rule {
                    text,
                    n_used: 0,
                    n_seen: 0,
                })
                .collect(),
        }
    }

    /// The first rule that matches and is not used up. `counts`: whether this request uses it.
    /// `also` lets a rule take a request that its `match` does not name (the POST side of an old
    /// event stream).
    pub fn choose(
        &mut self,
        request: &Seen,
        counts: bool,
        also: impl Fn(usize) -> bool,
    ) -> Option<(usize, Value)> {
        let none = Map::new();
        let mut chosen = None;
        for (index, rule) in self.rules.iter_mut().enumerate() {
            let when = rule.text["when"].as_object().unwrap_or(&none);
            let fits = request.is(rule.text["match"].as_str().unwrap_or("* *")) && request.fits(when).is_ok();
            if !fits && !also(index) {
                continue;
            }
            let too_early = when
                .get("seen_before")
                .and_then(Value::as_u64)
                .is_some_and(|n| rule.n_seen < n);
            let used_up = rule.text["times"]
                .as_u64()
                .is_some_and(|times| rule.n_used >= times);
            if chosen.is_none() && !too_early && !used_up {
                chosen = Some((index, rule.text.clone()));
                rule.n_used += u64::from(counts);
            }
            rule.n_seen += u64::from(counts);
        }
        chosen
    }
}

/// The keys a rule may have, so that a misspelt or unsupported one fails instead of being ignored.
pub fn check(rule: &Value) -> Result<(), String> {
    let known = |what: &str, value: &Value, keys: &[&str]| {
        for key in value.as_object().into_iter().flat_map(Map::keys) {
            if !keys.contains(&key.as_str()) {
                return Err(format!("{what} `{key}` is not known to this runner"));
            }
        }
        Ok(())
    };
    known("rule key", rule, &["match", "when", "times", "respond"])?;
    known(
        "condition",
        &rule["when"],
        &["auth", "header", "query", "form", "json", "rpc", "seen_before"],
    )?;
    known("response key", &rule["respond"], RESPOND)?;
    known("option of mcp", &rule["respond"]["mcp"], MCP)?;
    known(
        "option of legacy_sse",
        &rule["respond"]["legacy_sse"],
        &["endpoint", "raw", "post"],
    )
}

/// `mcp_stream` is ours: the standalone GET stream of a session, kept open. `hang_up` too: the
/// connection breaks after the body.
const RESPOND: &[&str] = &[
    "status",
    "headers",
    "json",
    "form",
    "text",
    "chunks",
    "encode",
    "delay_ms",
    "mcp",
    "legacy_sse",
    "echo_registration",
    "redirect_back",
    "mcp_stream",
    "hang_up",
];
const MCP: &[&str] = &[
    "as",
    "content_type",
    "encode",
    "version",
    "session",
    "result",
    "split",
];
