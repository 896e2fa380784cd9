//! Placeholders of a case, filled in before it runs. Those that only a request can fill (`{id}`,
//! `{state}`) stay.

use std::collections::BTreeMap;
use std::net::TcpListener;

use serde_json::{Map, Value};

pub struct Places {
    known: BTreeMap<String, String>,
    ports: BTreeMap<String, String>,
    /// Keeps `{port:busy}` busy.
    busy: Option<TcpListener>,
}

impl Places {
    pub fn new(known: BTreeMap<String, String>) -> Places {
        Places {
            known,
            ports: BTreeMap::new(),
            busy: None,
        }
    }

    /// Another origin for one name, as a kit on another host needs it.
    pub fn with(&self, name: &str, text: &str) -> Places {
        let mut known = self.known.clone();
        known.insert(name.to_owned(), text.to_owned());
        Places {
            known,
            ports: self.ports.clone(),
            busy: None,
        }
    }

    pub fn fill(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(members) => {
                let filled = members
                    .iter()
                    .map(|(key, member)| (self.text(key), self.fill(member)));
                Value::Object(filled.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    pub fn text(&mut self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let Some(end) = rest.find('}') else { break };
            match self.place(&rest[1..end]) {
                Some(value) => {
                    filled.push_str(&value);
                    rest = &rest[end + 1..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    fn place(&mut self, name: &str) -> Option<String> {
        if let Some(text) = self.known.get(name) {
            return Some(text.clone());
        }
        if let Some(repeat) = name.strip_prefix("repeat:") {
            let (unit, times) = repeat.rsplit_once('*')?;
            return Some(unit.repeat(times.parse().ok()?));
        }
        let port = name.strip_prefix("port:")?;
        if let Some(known) = self.ports.get(port) {
            return Some(known.clone());
        }
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        let number = listener.local_addr().ok()?.port().to_string();
        if port == "busy" {
            self.busy = Some(listener);
        }
        self.ports.insert(port.to_owned(), number.clone());
        Some(number)
    }
}
