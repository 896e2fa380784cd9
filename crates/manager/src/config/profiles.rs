//! Profiles: named sets of servers in an `mcp.json`, and which of the servers the chosen one leaves out.
//!
//! The user's profile decides about every server; a project's profile of the same name can only take away servers of
//! that project. So no repository decides about the person's own servers, and what is switched off stays off.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use jsonc_parser::cst::CstObject;
use protocol::{ChosenProfile, ErrorKind, Issue, Layer, Profile, ProfileChoice, ProfileEntry, ProfileName};
use serde_json::Value;

use super::file::{ConfigFile, Fault};
use super::members::Unknown;
use super::syntax::Document;
use super::{entries, store, validate};
use crate::spelling::nearest;

/// Every server. It always exists.
pub(crate) const ALL: &str = "all";
/// The members of a profile.
const MEMBERS: [&str; 2] = ["servers", "description"];
/// Profiles of one file.
const PROFILES: usize = 100;

static VALIDATOR: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let schema = protocol::schema::standalone::<Profile>();
    jsonschema::validator_for(&schema).expect("the published schema of a profile is a valid schema")
});

/// What one file says about profiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Profiles {
    pub by_name: BTreeMap<String, Profile>,
    pub default: Option<String>,
}

impl Profiles {
    /// The profiles of a file, and the first thing that is wrong with them. What is wrong is left out.
    pub fn read(document: &Document<'_>, root: &Value) -> (Profiles, Option<Fault>) {
        let mut found = Profiles::default();
        let mut fault = None;
        let mut wrong = |message: String, place| {
            fault.get_or_insert(Fault {
                message,
                place: Some(place),
            });
        };
        match &root["defaultProfile"] {
            Value::Null => {}
            Value::String(name) if is_name(name) => found.default = Some(name.clone()),
            other => {
                // Kept as a name that nobody has: a mistake in it must not switch everything on.
                found.default = Some(other.to_string().chars().take(64).collect());
                wrong(
                    "`defaultProfile` must be the name of a profile".to_owned(),
                    document.place(&["defaultProfile"]),
                );
            }
        }
        let profiles = match &root["profiles"] {
            Value::Null => return (found, fault),
            Value::Object(profiles) => profiles,
            _ => {
                wrong(
                    "`profiles` must be an object of profiles by name".to_owned(),
                    document.place(&["profiles"]),
                );
                return (found, fault);
            }
        };
        let repeated = document.repeated_names(&["profiles"]);
        for (name, value) in profiles {
            let problem = if !is_name(name) {
                Some(
                    "a profile was left out: a name has 1 to 64 letters, digits, `_`, `-` and `.`".to_owned(),
                )
            } else if name == ALL {
                Some(format!(
                    "`{ALL}` stands for every server: give the profile another name"
                ))
            } else if repeated.contains(name) {
                Some(format!("the profile `{name}` occurs twice"))
            } else if found.by_name.len() == PROFILES {
                Some(format!("only the first {PROFILES} profiles are read"))
            } else {
                None
            };
            if let Some(problem) = problem {
                wrong(problem, document.place_of_name(&["profiles"], name));
                continue;
            }
            let members = value.as_object();
            let strange =
                members.and_then(|members| members.keys().find(|member| !MEMBERS.contains(&member.as_str())));
            if let Some(member) = strange {
                let unknown = Unknown {
                    pointer: validate::pointer(&[member]),
                    meant: nearest(member, MEMBERS).map(str::to_owned),
                };
                wrong(
                    entries::cut(format!("the profile `{name}` was left out: {}", unknown.said())),
                    document.place_of_name(&["profiles", name], member),
                );
                continue;
            }
            if let Some(problem) = VALIDATOR
                .iter_errors(value)
                .next()
                .map(|error| validate::schema_problem(&error))
            {
                let mut path = vec!["profiles".to_owned(), name.clone()];
                path.extend(problem.path);
                let message = problem.message.replace("the entry ", "it ");
                wrong(
                    entries::cut(format!("the profile `{name}` was left out: {message}")),
                    document.place(&path),
                );
                continue;
            }
            if let Ok(profile) = serde_json::from_value(value.clone()) {
                found.by_name.insert(name.clone(), profile);
            }
        }
        (found, fault)
    }
}

/// Follows an entry of the same file that gets another name.
pub(crate) fn rename(whole: &CstObject, from: &str, to: &str) {
    let Some(Value::Object(profiles)) = store::get(whole, &["profiles"]) else {
        return;
    };
    for (name, mut profile) in profiles {
        let servers = profile["servers"].as_array_mut().into_iter().flatten();
        let named: Vec<_> = servers.filter(|server| **server == *from).collect();
        if !named.is_empty() {
            named.into_iter().for_each(|server| *server = Value::from(to));
            store::set(whole, &["profiles", &name, "servers"], Some(&profile["servers"]));
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The profile that counts, with the files that may say what it holds.
pub(crate) struct Choice<'f> {
    pub name: &'f str,
    pub by: ProfileChoice,
    pub user: &'f ConfigFile,
    /// The files of the open projects, by their roots.
    pub projects: Vec<(&'f Path, &'f ConfigFile)>,
}

impl<'f> Choice<'f> {
    /// What was chosen, else the default of the user's file.
    pub fn new(
        chosen: Option<&'f str>,
        user: &'f ConfigFile,
        projects: Vec<(&'f Path, &'f ConfigFile)>,
    ) -> Option<Choice<'f>> {
        let (name, by) = match chosen {
            Some(name) => (name, ProfileChoice::Host),
            None => (user.profiles.default.as_deref()?, ProfileChoice::File),
        };
        Some(Choice {
            name,
            by,
            user,
            projects,
        })
    }

    fn of_user(&self) -> Option<&Profile> {
        self.user.profiles.by_name.get(self.name)
    }

    fn of_project(&self, root: &Path) -> Option<&Profile> {
        let mut projects = self.projects.iter();
        let (_, file) = projects.find(|(own, _)| *own == root)?;
        file.profiles.by_name.get(self.name)
    }

    /// The names that can be chosen, `all` last.
    pub fn known(&self) -> Vec<String> {
        let files = std::iter::once(self.user).chain(self.projects.iter().map(|(_, file)| *file));
        let mut names: Vec<String> = files
            .flat_map(|file| file.profiles.by_name.keys().cloned())
            .collect();
        names.sort();
        names.dedup();
        names.push(ALL.to_owned());
        names
    }

    pub fn is_known(&self) -> bool {
        self.known().iter().any(|name| name == self.name)
    }

    /// Why a server is not in it, if it is not. `root`: the project whose server it is.
    pub fn leaves_out(&self, root: Option<&Path>, server: &str) -> Option<String> {
        if self.name == ALL {
            return None;
        }
        let own = root.and_then(|root| self.of_project(root));
        let mut sets = self.of_user().into_iter().chain(own).peekable();
        if sets.peek().is_some() && sets.all(|set| set.servers.iter().any(|name| **name == *server)) {
            return None;
        }
        Some(match self.is_known() {
            true => format!("not in profile `{}`", self.name),
            false => self.unknown_name(),
        })
    }

    /// That nobody knows the name, and which names there are.
    pub fn unknown_name(&self) -> String {
        let known: Vec<String> = self.known().iter().map(|name| format!("`{name}`")).collect();
        format!(
            "there is no profile `{}`; there is {}",
            self.name,
            known.join(", ")
        )
    }

    /// As hosts see it; `exists` says which servers there are.
    pub fn shown(&self, exists: impl Fn(&str) -> bool) -> ChosenProfile {
        let mut issues = Vec::new();
        if !self.is_known() {
            let file = self.user.path.display();
            issues.push(Issue {
                hint: Some(match self.by {
                    ProfileChoice::File => format!("correct `defaultProfile` in {file}"),
                    _ => "no server is used until a profile is chosen that exists".to_owned(),
                }),
                ..Issue::new(ErrorKind::NotFound, self.unknown_name())
            });
        }
        let unknown = self.of_user().into_iter().flat_map(|set| &set.servers);
        for server in unknown.filter(|server| !exists(server)) {
            issues.push(Issue {
                hint: Some("correct the name in the profile, or add the server".to_owned()),
                ..Issue::new(
                    ErrorKind::TargetMismatch,
                    format!(
                        "profile `{}` names `{server}`, which does not exist here",
                        self.name
                    ),
                )
            });
        }
        issues.truncate(crate::limits::ISSUES);
        ChosenProfile {
            name: ProfileName::from(self.name),
            chosen_by: self.by,
            issues: (!issues.is_empty()).then_some(issues),
        }
    }
}

/// The profiles of a file, as hosts see them.
pub(crate) fn entries(file: &ConfigFile, layer: Layer, exists: impl Fn(&str) -> bool) -> Vec<ProfileEntry> {
    let profiles = file.profiles.by_name.iter().map(|(name, profile)| {
        let unknown: Vec<_> = profile
            .servers
            .iter()
            .filter(|server| !exists(server))
            .cloned()
            .collect();
        ProfileEntry {
            name: ProfileName::from(name.as_str()),
            layer,
            file: file.path.display().to_string().into(),
            description: profile.description.clone(),
            servers: profile.servers.clone(),
            unknown: (!unknown.is_empty()).then_some(unknown),
        }
    });
    profiles.collect()
}
