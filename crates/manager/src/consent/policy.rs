//! The administrator's file: which servers may run on this machine at all.
//!
//! `/etc/pillion/policy.json` (macOS: `/Library/Application Support/pillion/policy.json`, Windows:
//! `%ProgramData%\\pillion\\policy.json`). A second file may be named by `PILLION_POLICY`; it can only forbid more.
//! A file that does not read forbids everything: an administrator's rule must not be lifted by damaging it.

use std::path::{Path, PathBuf};

use protocol::ServerEntry;
use serde::Deserialize;

use super::warnings;
use crate::catalog::items::matches as matches_pattern;
use crate::env::Env;
use crate::limits;

/// What the administrator allows.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    files: Vec<(PathBuf, Option<files::Stamp>)>,
    rules: Vec<Result<Rules, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rules {
    /// If it is there, what it does not list is forbidden.
    allow: Option<Vec<Rule>>,
    #[serde(default)]
    deny: Vec<Rule>,
    /// Shown where a server is forbidden.
    reason: Option<String>,
}

/// All members that are given must fit; `*` stands for anything.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    name: Option<String>,
    command: Option<String>,
    /// Of the arguments joined by blanks.
    args: Option<String>,
    url: Option<String>,
    reason: Option<String>,
}

/// What is about to run, in the words of the rules.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub name: &'a str,
    pub command: Option<&'a str>,
    pub args: &'a str,
    pub url: Option<&'a str>,
}

impl Policy {
    pub fn read(env: &Env) -> Policy {
        let mut policy = Policy::default();
        for path in paths(env) {
            let stamp = files::stamp(&path);
            match files::read_text(&path, limits::CONFIG_FILE_BYTES) {
                Ok(None) => {}
                Ok(Some(text)) => policy.rules.push(serde_json::from_str(&text).map_err(|error| {
                    format!("the administrator's `{}` does not read: {error}", path.display())
                })),
                Err(error) => policy.rules.push(Err(format!(
                    "the administrator's `{}` does not read: {error}",
                    path.display()
                ))),
            }
            policy.files.push((path, stamp));
        }
        policy
    }

    /// Where one may be.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    pub fn outdated(&self) -> bool {
        self.files
            .iter()
            .any(|(path, stamp)| files::stamp(path) != *stamp)
    }

    /// Why an entry may not run.
    pub fn forbids(&self, name: &str, entry: &ServerEntry) -> Option<String> {
        if self.rules.is_empty() {
            return None;
        }
        let args = entry.args.clone().unwrap_or_default().join(" ");
        let itself = self.forbids_candidate(Candidate {
            name,
            command: entry.command.as_deref(),
            args: &args,
            url: entry.url.as_deref(),
        });
        itself.or_else(|| {
            let programs = warnings::programs(entry);
            programs.iter().find_map(|words| self.denies_program(name, words))
        })
    }

    /// Why a program may not be run for a secret. What is allowed is a matter of servers.
    fn denies_program(&self, name: &str, words: &[String]) -> Option<String> {
        let (command, args) = words.split_first()?;
        let args = args.join(" ");
        let candidate = Candidate {
            name,
            command: Some(command),
            args: &args,
            url: None,
        };
        self.rules.iter().find_map(|rules| match rules {
            Err(problem) => Some(problem.clone()),
            Ok(rules) => rules.denies(candidate),
        })
    }

    /// Why something may not run, references filled in.
    pub fn forbids_candidate(&self, candidate: Candidate<'_>) -> Option<String> {
        self.rules.iter().find_map(|rules| match rules {
            Err(problem) => Some(problem.clone()),
            Ok(rules) => rules.forbids(candidate),
        })
    }
}

fn paths(env: &Env) -> Vec<PathBuf> {
    let machine = if cfg!(target_os = "macos") {
        PathBuf::from("/Library/Application Support/pillion/policy.json")
    } else if cfg!(windows) {
        let data = env
            .variable("ProgramData")
            .unwrap_or_else(|| "C:\\ProgramData".to_owned());
        Path::new(&data).join("pillion/policy.json")
    } else {
        PathBuf::from("/etc/pillion/policy.json")
    };
    let further = env.variable_os("PILLION_POLICY").map(PathBuf::from);
    std::iter::once(machine).chain(further).collect()
}

impl Rules {
    fn forbids(&self, candidate: Candidate<'_>) -> Option<String> {
        self.denies(candidate).or_else(|| {
            let allow = self.allow.as_ref()?;
            (!allow.iter().any(|rule| rule.fits(candidate))).then(|| self.reason_of(None))
        })
    }

    fn denies(&self, candidate: Candidate<'_>) -> Option<String> {
        let rule = self.deny.iter().find(|rule| rule.fits(candidate))?;
        Some(self.reason_of(Some(rule)))
    }

    fn reason_of(&self, rule: Option<&Rule>) -> String {
        let said = rule
            .and_then(|rule| rule.reason.clone())
            .or_else(|| self.reason.clone());
        said.unwrap_or_else(|| "the administrator of this machine does not allow it".to_owned())
    }
}

impl Rule {
    fn fits(&self, candidate: Candidate<'_>) -> bool {
        let fits = |pattern: &Option<String>, text: Option<&str>| match (pattern, text) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(pattern), Some(text)) => matches_pattern(pattern, text),
        };
        // `npx` means the program of that name wherever it lies.
        let program = candidate
            .command
            .and_then(|command| Path::new(command).file_name()?.to_str());
        fits(&self.name, Some(candidate.name))
            && (fits(&self.command, candidate.command) || fits(&self.command, program))
            && fits(&self.args, Some(candidate.args))
            && fits(&self.url, candidate.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(rules: serde_json::Value, entry: serde_json::Value, forbidden: Option<&str>) {
        let policy = Policy {
            files: Vec::new(),
            rules: vec![serde_json::from_value(rules).map_err(|error| error.to_string())],
        };
        let entry: ServerEntry = serde_json::from_value(entry).unwrap();
        assert_eq!(policy.forbids("srv", &entry).as_deref(), forbidden);
    }

    #[test]
    fn deny_wins_and_a_list_allows_only_what_it_lists() {
        let npx = json!({"command": "/usr/bin/npx", "args": ["-y", "good"]});
        check(
            json!({"deny": [{"command": "npx", "reason": "no npx"}]}),
            npx.clone(),
            Some("no npx"),
        );
        check(
            json!({"allow": [{"command": "npx", "args": "-y good"}]}),
            npx.clone(),
            None,
        );
        check(
            json!({"allow": [{"url": "https://*.example.com/*"}], "reason": "ours only"}),
            npx,
            Some("ours only"),
        );
        check(
            json!({"allow": [{"url": "https://*.example.com/*"}]}),
            json!({"url": "https://a.example.com/mcp"}),
            None,
        );
        for entry in [
            json!({"url": "https://h/mcp", "headersHelper": ["/usr/bin/npx", "x"]}),
            json!({"url": "https://h/mcp", "headers": {"a": "${cmd:npx x}"}}),
        ] {
            check(
                json!({"deny": [{"command": "npx"}], "reason": "no"}),
                entry,
                Some("no"),
            );
        }
    }
}
