//! Entries from elsewhere and for elsewhere: paste, import, export.

use std::path::Path;

use protocol::{Draft, Error, Layer, McpParse, McpParseResult, Need, NewName, Pointer, ServerEntry};

use super::Manager;
use crate::config::{secret, validate};
use crate::consent::review;
use crate::exchange::paste::{self, PastedServer};
use crate::exchange::{Input, names};
use crate::sink::RequestContext;

impl Manager {
    /// `mcp.parse`: what a pasted text would add. Nothing is written or started.
    pub async fn parse(&self, _: &RequestContext, params: McpParse) -> Result<McpParseResult, Error> {
        let root = self.root(&params.directory)?;
        let pasted = paste::read(&params.text);
        let mut drafts: Vec<Draft> = Vec::with_capacity(pasted.servers.len());
        for server in pasted.servers {
            let name = names::free(&name_of(&server.name, &server.entry), |name| {
                drafts.iter().any(|draft| *draft.name == *name)
            });
            drafts.push(self.draft(&root, name, server, &pasted.inputs));
        }
        Ok(McpParseResult {
            form: pasted.form,
            drafts,
            problems: pasted.problems,
        })
    }

    fn draft(&self, root: &Path, name: String, server: PastedServer, inputs: &[Input]) -> Draft {
        let mut entry = server.entry;
        if !server.name.is_empty() && server.name != name && entry.label.is_none() {
            entry.label = Some(server.name.chars().take(200).collect());
        }
        entry.source.get_or_insert_with(|| "paste".to_owned());
        let mut needs = needs(&entry, inputs);
        for variable in server.needs {
            let at = Pointer::from(validate::pointer(&["env", &variable]));
            if !needs.iter().any(|need| need.at == at) {
                needs.push(Need {
                    at,
                    secret: secret::is_secret_name(&variable),
                    label: variable,
                    required: true,
                    description: None,
                    default: None,
                    choices: None,
                });
            }
        }
        let mut warnings = server.warnings;
        warnings.extend(review::warnings(&entry, Layer::User));
        Draft {
            name_taken: self.layers.in_layer(root, &name, Layer::User).is_some(),
            name: NewName::from(name),
            scope: server.scope,
            target: review::target(&entry, self.core.env.home()),
            entry,
            needs,
            warnings,
        }
    }
}

fn name_of(name: &str, entry: &ServerEntry) -> String {
    if name.is_empty() {
        names::guessed(entry)
    } else {
        names::fitting(name)
    }
}

/// What a person must still fill in: inputs that the other program asks for, secrets left empty, placeholders.
fn needs(entry: &ServerEntry, inputs: &[Input]) -> Vec<Need> {
    let mut needs = Vec::new();
    let args = entry.args.iter().flatten().enumerate();
    let args = args.map(|(index, value)| (format!("/args/{index}"), index.to_string(), value));
    let maps = [("env", &entry.env), ("headers", &entry.headers)];
    let maps = maps.into_iter().flat_map(|(member, map)| {
        map.iter()
            .flatten()
            .map(move |(name, value)| (validate::pointer(&[member, name]), name.clone(), value))
    });
    let url = entry
        .url
        .iter()
        .map(|url| ("/url".to_owned(), "url".to_owned(), &url.0));
    for (at, name, value) in maps.chain(args).chain(url) {
        let input = inputs
            .iter()
            .find(|input| value.contains(&format!("${{input:{}}}", input.id)));
        let is_secret = secret::is_secret_name(&name);
        let need = match input {
            Some(input) => Need {
                at: Pointer::from(at),
                label: input.id.clone(),
                secret: input.secret || is_secret,
                required: true,
                description: input.description.clone(),
                default: input.default.clone().filter(|_| !input.secret),
                choices: input.choices.clone(),
            },
            None if (is_secret && value.is_empty()) || is_placeholder(value) => Need {
                at: Pointer::from(at),
                label: name,
                secret: is_secret,
                required: true,
                description: None,
                default: None,
                choices: None,
            },
            None => continue,
        };
        needs.push(need);
    }
    needs
}

/// `<your-key>`, `YOUR_API_KEY`, `xxxx`: what instructions write where a value belongs.
fn is_placeholder(value: &str) -> bool {
    let value = value.trim().strip_prefix("Bearer ").unwrap_or(value.trim());
    let lower = value.to_lowercase();
    (value.starts_with('<') && value.ends_with('>') && value.len() > 2)
        || (lower.starts_with("your") && lower[4..].starts_with(['_', '-', ' ']))
        || (lower.len() >= 4 && lower.bytes().all(|byte| byte == b'x' || byte == b'*'))
}
