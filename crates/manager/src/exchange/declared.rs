//! What a list, a bundle or another program says of the values that an entry wants: an entry remembers it, for a value looks
//! like any other once it is filled in.

use protocol::{EntryInput, Need, ServerEntry};

use super::Input;
use crate::config::{expand, secret};

/// Characters of a description, and of a value to offer or to choose.
const DESCRIPTION: usize = 2048;
const VALUE: usize = 4096;
/// Values to choose from.
const CHOICES: usize = 100;
/// Inputs of one entry.
const INPUTS: usize = 64;

/// Which values are secrets, and how a person is asked for those that stay open as `${input:LABEL}`.
pub(crate) fn remember(entry: &mut ServerEntry, needs: &[Need]) {
    let secrets = needs.iter().filter(|need| need.secret);
    secret::mark(entry, secrets.map(|need| need.at.to_string()));
    let inputs: Vec<Input> = needs
        .iter()
        .map(|need| Input {
            id: need.label.clone(),
            secret: need.secret,
            description: need.description.clone(),
            default: need.default.clone(),
            choices: need.choices.clone(),
        })
        .collect();
    ask_as(entry, &inputs);
}

/// How a person is asked for the inputs that the entry wants.
pub(crate) fn ask_as(entry: &mut ServerEntry, inputs: &[Input]) {
    let wanted = wanted(entry);
    let known = entry.inputs.get_or_insert_default();
    for input in inputs {
        let is_wanted = wanted.contains(&input.id) && known.len() < INPUTS;
        if !is_wanted || known.contains_key(&input.id) {
            continue;
        }
        let short = |text: &String, most: usize| -> Option<String> {
            Some(text.chars().take(most).collect()).filter(|text: &String| !text.is_empty())
        };
        let choices = input.choices.iter().flatten().take(CHOICES);
        let choices: Vec<String> = choices.filter_map(|choice| short(choice, VALUE)).collect();
        let is_secret = input.secret || secret::is_secret_name(&input.id);
        let how = EntryInput {
            description: input
                .description
                .as_ref()
                .and_then(|text| short(text, DESCRIPTION)),
            secret: (!is_secret).then_some(false),
            default: input
                .default
                .as_ref()
                .filter(|_| !is_secret)
                .and_then(|text| short(text, VALUE)),
            choices: (!choices.is_empty()).then_some(choices),
        };
        known.insert(input.id.clone(), how);
    }
    forget_others(entry);
}

/// Drops what is said of inputs that the entry wants no more.
pub(crate) fn forget_others(entry: &mut ServerEntry) {
    let wanted = wanted(entry);
    if let Some(inputs) = &mut entry.inputs {
        inputs.retain(|id, _| wanted.contains(id));
    }
    entry.inputs.take_if(|inputs| inputs.is_empty());
}

/// The ids of the inputs that an entry names.
fn wanted(entry: &ServerEntry) -> Vec<String> {
    let mut wanted = Vec::new();
    expand::texts(&serde_json::json!(entry), &mut |text| {
        for (name, _) in expand::references(text) {
            if let Some(expand::Source::Input(id)) = expand::source(name) {
                wanted.push(id.to_owned());
            }
        }
    });
    wanted
}
