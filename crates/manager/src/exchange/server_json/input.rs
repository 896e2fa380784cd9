//! Inputs of a `server.json`: values that its publisher fixed, values with holes, and values that a person gives.

use std::collections::BTreeMap;

use protocol::Need;
use serde_json::Value;

use super::{is_required, is_secret, member, need, plain, shown, variables};
use crate::config::validate;

/// What a person may be asked for by one entry.
const NEEDS: usize = 64;

/// What was found out while an entry was put together.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub needs: Vec<Need>,
    /// What the server takes but does not need.
    optional: Vec<String>,
    /// Defaults that were put into the middle of a text.
    assumed: Vec<String>,
}

/// What becomes of an argument's value.
pub(super) enum Wanted {
    Text(String),
    /// It is left out.
    Nothing,
}

impl Inputs {
    /// A fixed text, its `{holes}` filled with what its variables say. `None`: a hole can only be filled by a person, and
    /// nobody needs the text.
    pub fn template(
        &mut self,
        text: &str,
        given: &Value,
        at: &str,
        optional: bool,
    ) -> Result<Option<String>, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            out.push_str(&rest[..start]);
            let after = &rest[start + 1..];
            let hole = after.split_once('}').and_then(|(name, rest)| {
                let variable = variables(given)?.get(name)?;
                Some((name, variable, rest))
            });
            let Some((name, variable, further)) = hole else {
                // What no variable names stays as it is.
                out.push('{');
                rest = after;
                continue;
            };
            rest = further;
            let secret = is_secret(variable, name);
            let fixed = plain(member(variable, "value")).filter(|_| !secret);
            let default = plain(member(variable, "default")).filter(|_| !secret);
            if let Some(fixed) = fixed {
                out.push_str(&fixed);
            } else if let Some(default) = default {
                self.assumed
                    .push(format!("{} = {}", shown(name), shown(&default)));
                out.push_str(&default);
            } else if optional && !is_required(variable) {
                return Ok(None);
            } else {
                let label = label(name);
                out.push_str(&placeholder(&label));
                self.ask(need(at, &label, variable, secret, true))?;
            }
        }
        out.push_str(rest);
        self.harmless(&out, text)?;
        Ok(Some(out))
    }

    /// The value of a variable or a header, put into `map` where there is something to put.
    pub fn named_value(
        &mut self,
        map_name: &str,
        input: &Value,
        map: &mut BTreeMap<String, String>,
    ) -> Result<(), String> {
        let name = member(input, "name").as_str().unwrap_or_default();
        if name.is_empty() || name.chars().count() > 256 {
            return Err(format!("one of its {map_name} has no name"));
        }
        let at = validate::pointer(&[map_name, name]);
        // Of a name that stands twice the first one counts: the other one's value is none of it.
        if map.contains_key(name) || self.needs.iter().any(|need| *need.at == *at) {
            return Ok(());
        }
        let secret = is_secret(input, name);
        let has_variables = variables(member(input, "variables")).is_some();
        if let Some(value) = plain(member(input, "value"))
            // A secret that everybody can read in the registry is none of this person.
            && (!secret || has_variables)
        {
            let optional = !is_required(input);
            if let Some(text) = self.template(&value, member(input, "variables"), &at, optional)? {
                map.insert(name.to_owned(), text);
            } else {
                self.optional.push(name.to_owned());
            }
            return Ok(());
        }
        let wanted = need(&at, name, input, secret, is_required(input));
        if let Some(default) = wanted.default.clone().filter(|_| wanted.required) {
            self.harmless(&default, &default)?;
            map.insert(name.to_owned(), default);
        }
        self.ask(wanted)
    }

    /// The value of an argument. `name` is what a person is asked for.
    pub fn argument(&mut self, input: &Value, name: &str, at: &str) -> Result<Wanted, String> {
        let required = is_required(input);
        let secret = is_secret(input, name);
        let has_variables = variables(member(input, "variables")).is_some();
        if let Some(value) = plain(member(input, "value"))
            && (!secret || has_variables)
        {
            return Ok(
                match self.template(&value, member(input, "variables"), at, !required)? {
                    Some(text) => Wanted::Text(text),
                    None => self.left_out(name, input),
                },
            );
        }
        if !required {
            return Ok(self.left_out(name, input));
        }
        let label = label(name);
        let wanted = need(at, &label, input, secret, true);
        let text = match &wanted.default {
            Some(default) => {
                self.harmless(default, default)?;
                default.clone()
            }
            None => placeholder(&label),
        };
        self.ask(wanted)?;
        Ok(Wanted::Text(text))
    }

    fn left_out(&mut self, name: &str, input: &Value) -> Wanted {
        let described = member(input, "description").as_str().map(shown);
        self.optional.push(match described {
            Some(description) => format!("{} ({description})", shown(name)),
            None => shown(name),
        });
        Wanted::Nothing
    }

    fn ask(&mut self, mut need: Need) -> Result<(), String> {
        if self.needs.len() == NEEDS {
            return Err(format!("it asks for more than {NEEDS} values"));
        }
        if need.at.chars().count() > 512 {
            return Err("the name of a value is too long".to_owned());
        }
        // The same hole twice in one text is one question.
        if self
            .needs
            .iter()
            .any(|known| known.at == need.at && known.label == need.label)
        {
            return Ok(());
        }
        need.label = shown(&need.label);
        self.needs.push(need);
        Ok(())
    }

    /// `${NAME}` in an entry reads a variable of this machine when the server starts: a stranger's text must not.
    fn harmless(&self, text: &str, origin: &str) -> Result<(), String> {
        let mut own = text.to_owned();
        for need in &self.needs {
            own = own.replace(&placeholder(&need.label), "");
        }
        if own.contains("${") {
            return Err(format!(
                "`{}` would read a variable of this machine, and is not taken over",
                shown(origin).chars().take(80).collect::<String>()
            ));
        }
        if text.contains('\0') {
            return Err("one of its values holds a zero byte".to_owned());
        }
        Ok(())
    }

    /// A text with something in every hole, to see whether it can be right.
    pub fn sample(&self, text: &str) -> String {
        let mut sample = text.to_owned();
        for need in &self.needs {
            sample = sample.replace(&placeholder(&need.label), "x");
        }
        sample
    }

    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.assumed.is_empty() {
            warnings.push(format!("taken as given: {}", self.assumed.join(", ")));
        }
        if !self.optional.is_empty() {
            let shown: Vec<&str> = self.optional.iter().take(20).map(String::as_str).collect();
            warnings.push(format!("it also takes {}", shown.join(", ")));
        }
        warnings
    }
}

/// Where a value is still missing in a text.
pub(super) fn placeholder(label: &str) -> String {
    format!("${{input:{label}}}")
}

/// A name without what would end a placeholder.
fn label(name: &str) -> String {
    let label: String = shown(name)
        .chars()
        .map(|one| {
            if matches!(one, '{' | '}' | '$' | ':') {
                '_'
            } else {
                one
            }
        })
        .take(100)
        .collect();
    let label = label.trim_start_matches('-').to_owned();
    if label.is_empty() {
        "value".to_owned()
    } else {
        label
    }
}
