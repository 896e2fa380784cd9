//! What the references of an entry stand for that are no variables: entries of the credential store, the output of
//! programs, and what a person was asked for.
//!
//! They are found out for an entry that may run, never while its file is read. A value is kept in memory for the folder that
//! its entry belongs to: what a person typed for one project is not handed to another.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use auth::vault;
use protocol::{
    BooleanField, Choice, ChoiceField, ClosedReason, Dir, EntryInput, Error, ErrorKind, FormQuestion,
    Question, QuestionField, QuestionId, ServerEntry, ServerName, TextField, Tier,
};

use super::launch::Inherit;
use super::veil::Veil;
use super::{Server, program};
use crate::config::expand::{self, Source};
use crate::config::secret;
use crate::core::Core;
use crate::env;
use crate::exchange::words::split;
use crate::limits;
use crate::question::queue::{Asking, Outcome};

/// The credential store's service of what Pillion keeps for itself.
const SERVICE: &str = "pillion";

/// Values of references, by the folder of their entry.
#[derive(Default)]
pub(crate) struct Secrets {
    known: Mutex<HashMap<(PathBuf, String), String>>,
    /// One person is asked for one thing at a time, and for the same thing once.
    asking: tokio::sync::Mutex<()>,
}

impl Secrets {
    /// The value of a reference, if it was found out already.
    pub fn get(&self, base: &Path, name: &str) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(base.to_owned(), name.to_owned())).cloned()
    }

    fn put(&self, base: &Path, name: &str, value: Option<String>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (base.to_owned(), name.to_owned());
        match value {
            Some(value) => known.insert(place, value),
            None => known.remove(&place),
        };
    }
}

/// For whom references are found out.
pub(crate) struct Subject<'a> {
    pub name: &'a ServerName,
    /// What people call it.
    pub label: &'a str,
    /// From where relative paths are taken, and whose values they are.
    pub base: &'a Path,
    pub inherit: Inherit,
    /// Where a question belongs; `None` where nobody is to be asked.
    pub ask_in: Option<Dir>,
}

impl Server {
    /// Finds out what the references of its entry stand for. `is_start`: programs are run and the credential store is read
    /// anew; otherwise what is known from before is good enough.
    pub async fn find_secrets(&self, is_start: bool) -> Result<(), Error> {
        let entry = self.entry();
        let directory = self.directories().into_iter().next();
        let subject = Subject {
            name: &self.name,
            label: &secret::label(&entry, &self.name),
            base: &self.base,
            inherit: self.inherit(),
            ask_in: Some(directory.unwrap_or_else(|| self.core.default_directory())),
        };
        find(&self.core, &entry, &subject, is_start).await
    }
}

impl Server {
    /// Nobody is asked for a value because another program wants something: its request ends before anything begins.
    pub async fn check_asked_by(&self, by: Tier) -> Result<(), Error> {
        if by == Tier::Local {
            return Ok(());
        }
        for (name, _) in references(&self.entry()) {
            let is_input = matches!(expand::source(&name), Some(Source::Input(_)));
            if !is_input || self.core.secrets.get(&self.base, &name).is_some() {
                continue;
            }
            let account = account_of(&self.base, &name);
            let stored = tokio::task::spawn_blocking(move || vault::read(SERVICE, &account)).await;
            if matches!(stored, Ok(Ok(Some(_)))) {
                continue;
            }
            let message = format!(
                "`{}` wants a value for `${{{name}}}`, and nobody is asked because of another program",
                self.name
            );
            return Err(Error::new(ErrorKind::CannotAsk, message)
                .server(self.name.clone())
                .hint("the person at the host has to start the server first"));
        }
        Ok(())
    }
}

/// Under which name the credential store keeps what a person typed.
fn account_of(base: &Path, name: &str) -> String {
    format!("{}#{name}", base.display())
}

/// Finds out what the references of an entry stand for, so that [`Secrets::get`] knows them.
pub(crate) async fn find(
    core: &Arc<Core>,
    entry: &ServerEntry,
    subject: &Subject<'_>,
    is_start: bool,
) -> Result<(), Error> {
    for (name, has_default) in references(entry) {
        let known = core.secrets.get(subject.base, &name);
        let value = match expand::source(&name) {
            None => continue,
            Some(_) if known.is_some() && !is_start => continue,
            Some(Source::Input(_)) if known.is_some() => continue,
            Some(Source::Keyring(place)) => kept(place, has_default).await?,
            Some(Source::Command(line)) => Some(printed(core, line, subject).await?),
            Some(Source::Input(id)) => match asked(core, entry, id, &name, subject).await {
                Err(_) if has_default => None,
                asked => Some(asked?),
            },
        };
        core.secrets.put(subject.base, &name, value);
    }
    Ok(())
}

/// The references in the members that are filled in, and whether each has a default.
fn references(entry: &ServerEntry) -> BTreeSet<(String, bool)> {
    let mut found = BTreeSet::new();
    expand::texts(&super::launch::relevant(entry), &mut |text| {
        for (name, default) in expand::references(text) {
            if expand::source(name).is_some() {
                found.insert((name.to_owned(), default.is_some()));
            }
        }
    });
    found
}

async fn kept(place: &str, has_default: bool) -> Result<Option<String>, Error> {
    let shown = format!("${{keyring:{place}}}");
    let (Some((service, account)), false) = (place.split_once('/'), place.ends_with('/')) else {
        return Err(Error::new(
            ErrorKind::StartFailed,
            format!("`{shown}` names no entry of the credential store"),
        )
        .hint("write it as `${keyring:SERVICE/ACCOUNT}`"));
    };
    let (service, account) = (service.to_owned(), account.to_owned());
    let read = tokio::task::spawn_blocking(move || vault::read(&service, &account));
    let read = tokio::time::timeout(limits::SECRET_WAIT, read).await;
    let problem = match read {
        Ok(Ok(Ok(Some(secret)))) => return Ok(Some(secret.expose().to_owned())),
        _ if has_default => return Ok(None),
        Ok(Ok(Ok(None))) => "the credential store has no such entry".to_owned(),
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!(
            "the credential store did not answer within {} s",
            limits::SECRET_WAIT.as_secs()
        ),
    };
    Err(
        Error::new(ErrorKind::StartFailed, format!("`{shown}`: {problem}"))
            .hint("put the secret there, or write `${NAME}` and set that variable"),
    )
}

async fn printed(core: &Arc<Core>, line: &str, subject: &Subject<'_>) -> Result<String, Error> {
    let written = split(line).unwrap_or_default();
    let veil = Veil::of_words(&written, &|name| core.env.variable(name));
    let problem = |what: String| {
        let what = veil.text(&what);
        Error::new(ErrorKind::StartFailed, format!("`${{cmd:{line}}}`: {what}"))
            .hint("run the program in a terminal to see what it says")
    };
    let words = program::words(&core.env, line).map_err(problem)?;
    let output = program::run(
        &core.env,
        &words,
        &[],
        subject.base,
        subject.inherit,
        limits::SECRET_WAIT,
    )
    .await
    .map_err(problem)?;
    let text = String::from_utf8(output).map_err(|_| problem("it printed no text".to_owned()))?;
    let value = text.trim_end_matches(['\r', '\n']);
    if value.is_empty() {
        return Err(problem("it printed nothing".to_owned()));
    }
    Ok(value.to_owned())
}

/// What a person fills in for an input.
fn field(id: &str, how: Option<&EntryInput>) -> QuestionField {
    let (name, label) = ("value".to_owned(), id.to_owned());
    let description = how.and_then(|how| how.description.clone());
    let default = how.and_then(|how| how.default.clone());
    if let Some(choices) = how.and_then(|how| how.choices.as_ref()) {
        let options = choices.iter().map(|choice| Choice {
            value: choice.clone(),
            label: choice.clone(),
        });
        return QuestionField::Choice(ChoiceField {
            name,
            label,
            description,
            required: true,
            default: default.filter(|default| choices.contains(default)),
            options: options.collect(),
            typed: choices.len() > 9,
        });
    }
    QuestionField::Text(TextField {
        name,
        label,
        description,
        required: true,
        default,
        min_length: Some(1),
        max_length: Some(limits::INPUT_CHARS),
        format: None,
        secret: Some(how.is_none_or(|how| how.secret != Some(false))),
    })
}

async fn asked(
    core: &Arc<Core>,
    entry: &ServerEntry,
    id: &str,
    name: &str,
    subject: &Subject<'_>,
) -> Result<String, Error> {
    let _turn = core.secrets.asking.lock().await;
    // Somebody else may have asked for it meanwhile.
    if let Some(value) = core.secrets.get(subject.base, name) {
        return Ok(value);
    }
    let account = account_of(subject.base, name);
    let looked_up = account.clone();
    let stored = tokio::task::spawn_blocking(move || vault::read(SERVICE, &looked_up)).await;
    let has_store = match stored {
        Ok(Ok(Some(secret))) => return Ok(secret.expose().to_owned()),
        Ok(Ok(None)) => true,
        _ => false,
    };
    let nobody = |why: &str| {
        Error::new(
            ErrorKind::CannotAsk,
            format!("`{}` wants a value for `${{{name}}}`, and {why}", subject.name),
        )
        .hint("start it in a terminal, or write `${NAME}` in its place and set that variable")
    };
    let directory = match &subject.ask_in {
        Some(directory) if core.settings().capabilities.questions == Some(true) => directory.clone(),
        _ => return Err(nobody("nobody can be asked")),
    };
    let how = entry.inputs.as_ref().and_then(|inputs| inputs.get(id));
    let mut fields = vec![field(id, how)];
    if has_store {
        fields.push(QuestionField::Boolean(BooleanField {
            name: "keep".to_owned(),
            label: "Keep it in the credential store".to_owned(),
            description: None,
            required: false,
            default: Some(false),
        }));
    }
    let asking = Asking {
        question: Question::Form(FormQuestion {
            id: QuestionId::from(""),
            directory,
            server: subject.name.clone(),
            session: None,
            call: None,
            calls: None,
            title: format!("{} needs a value to start", subject.label),
            message: format!("Its entry asks for `{id}`. It is kept in memory until Pillion ends."),
            asked_at: env::now(),
            tool: None,
            fields: fields.clone(),
        }),
        fields: Some(fields),
        tags: Vec::new(),
        why_gone: Box::new(|| ClosedReason::ServerGone),
        remembered: None,
    };
    let outcome = tokio::time::timeout(limits::INPUT_WAIT, core.questions.ask(asking)).await;
    let content = match outcome {
        Ok(Ok(Outcome::Accept(content))) => content,
        Ok(Ok(Outcome::Decline | Outcome::Cancel)) => return Err(nobody("the person gave none")),
        Ok(Err(_)) => return Err(nobody("too many questions wait already")),
        Err(_) => return Err(nobody("nobody answered")),
    };
    let value = content
        .get("value")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if content.get("keep") == Some(&serde_json::Value::Bool(true)) {
        let secret = auth::Secret::new(value.clone());
        let kept = tokio::task::spawn_blocking(move || vault::write(SERVICE, &account, &secret)).await;
        if !matches!(kept, Ok(Ok(()))) {
            tracing::warn!("a value could not be kept in the credential store");
        }
    }
    Ok(value)
}
