//! What stands for a secret in a text for another program: a variable, or a question of that program.

use std::collections::BTreeMap;

use super::words;
use crate::config::secret::Piece;
use crate::spelling::variable_name;

/// The names that stand for secrets in one text; two secrets never share one.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    taken: BTreeMap<String, String>,
    /// Whether a variable of `env` gives its name only behind that of its server.
    are_long: bool,
}

impl StandIns {
    /// The names where each server has its own.
    pub fn long() -> StandIns {
        StandIns {
            are_long: true,
            ..StandIns::default()
        }
    }

    /// The variable that stands for a secret: of `env` its own name, else one after server and member.
    pub fn variable(&mut self, server: &str, pointer: &str, piece: &Piece, secret: &str) -> String {
        let own = pointer
            .strip_prefix("/env/")
            .filter(|name| words::is_name(name) && !self.are_long);
        let long = format!("{server}{pointer}");
        let named = |name: &str| match piece.word.as_str() {
            "" => variable_name(name),
            word => variable_name(&format!("{name}_{word}")),
        };
        let wanted = match own {
            Some(name) if piece.word.is_empty() => name.to_owned(),
            Some(name) => named(name),
            None => named(&long),
        };
        let fallback = named(&long);
        self.take(&[wanted, fallback], '_', secret)
    }

    /// The id of the question that asks for a secret.
    pub fn question(&mut self, server: &str, pointer: &str, piece: &Piece, secret: &str) -> String {
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let wanted = match piece.word.as_str() {
            "" => format!("{server}-{last}"),
            word => format!("{server}-{last}-{word}"),
        };
        self.take(&[wanted], '-', secret)
    }

    fn take(&mut self, wanted: &[String], between: char, secret: &str) -> String {
        let last = wanted.last().cloned().unwrap_or_default();
        let numbered = (2..).map(|number| format!("{last}{between}{number}"));
        for name in wanted.iter().cloned().chain(numbered) {
            match self.taken.get(&name) {
                Some(known) if known != secret => {}
                Some(_) => return name,
                None => {
                    self.taken.insert(name.clone(), secret.to_owned());
                    return name;
                }
            }
        }
        last
    }
}
