//! What stands in an exported text where a secret stood, and what is said of it.

use protocol::{EntryInput, ExportSecrets, ServerEntry};
use serde_json::Value;

use super::input;
use crate::config::secret::{self, Found, Piece};
use crate::exchange::forms::{Form, References};
use crate::exchange::stand_ins::StandIns;

/// An entry with its secrets as wanted, and the questions that stand for them.
pub(super) fn with_secrets(
    name: &str,
    entry: &ServerEntry,
    secrets: ExportSecrets,
    form: Option<&Form>,
    stand_ins: &mut StandIns,
    warnings: &mut Vec<String>,
) -> (Value, Vec<Value>) {
    let mut inputs = Vec::new();
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    match secrets {
        ExportSecrets::Include => {}
        ExportSecrets::Mask => value = serde_json::to_value(secret::masked(entry).0).unwrap_or_default(),
        ExportSecrets::Reference => {
            for Found { pointer, pieces } in secret::found(entry) {
                let Some(slot) = value.pointer_mut(&pointer) else {
                    continue;
                };
                let text = slot.as_str().unwrap_or_default().to_owned();
                let replaced = secret::replaced(&text, &pieces, |piece| {
                    let hidden = &text[piece.range.clone()];
                    let place = place(&pointer, piece);
                    if form.is_some_and(|form| form.has_inputs) {
                        let id = stand_ins.question(name, &pointer, piece, hidden);
                        inputs.push(input(&id, &EntryInput::default()));
                        warnings.push(format!(
                            "`{name}`: {place} was left out: it is asked for as `{id}`"
                        ));
                        return format!("${{input:{id}}}");
                    }
                    let variable = stand_ins.variable(name, &pointer, piece, hidden);
                    warnings.push(format!(
                        "`{name}`: {place} was left out: {}",
                        left_to(form, &pointer, &variable)
                    ));
                    format!("${{{variable}}}")
                });
                *slot = replaced.into();
            }
        }
    }
    (value, inputs)
}

/// How a secret comes to where a variable stands for it.
fn left_to(form: Option<&Form>, pointer: &str, variable: &str) -> String {
    match form {
        None => format!("set `{variable}` where Pillion starts"),
        Some(form)
            if form.only_headers && !pointer.starts_with("/headers")
                || form.references == References::None =>
        {
            format!("write it in place of `${{{variable}}}`")
        }
        Some(form) => format!("set `{variable}` where {} starts", form.title),
    }
}

/// Where a secret stands, in words.
fn place(pointer: &str, piece: &Piece) -> String {
    let whole = whole_place(pointer);
    match piece.word.as_str() {
        "" => whole,
        "password" => format!("the password in {whole}"),
        word => format!("`{word}` in {whole}"),
    }
}

fn whole_place(pointer: &str) -> String {
    let mut steps = pointer.split('/').skip(1);
    let step = |step: &str| step.replace("~1", "/").replace("~0", "~");
    match (steps.next(), steps.next()) {
        (Some("env"), Some(name)) => format!("the variable `{}`", step(name)),
        (Some("headers"), Some(name)) => format!("the header `{}`", step(name)),
        (Some("args"), Some(index)) => {
            let index: usize = index.parse().unwrap_or_default();
            format!("argument {}", index + 1)
        }
        (Some("url"), _) => "the address".to_owned(),
        (Some("oauth"), Some(name)) => format!("`{}` of the login", step(name)),
        (Some(member), _) => format!("`{member}`"),
        (None, _) => "a secret".to_owned(),
    }
}
