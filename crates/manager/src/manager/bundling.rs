//! `mcp.import` of a bundle: looked at, unpacked, and written as an entry of the user; starts nothing.

use std::path::PathBuf;

use protocol::{
    AnswerValue, Error, ErrorKind, ImportNeed, ImportOutcome, ImportStatus, Imported, Issue, IssueKind,
    Layer, McpAdd, McpImport, NewName, Pointer, Scope, ServerName,
};
use serde_json::Value;

use super::Manager;
use super::configuring::blocking;
use crate::bundle::{self, Question, Values};
use crate::config::validate;
use crate::consent::{review, warnings};
use crate::exchange::names;
use crate::sink::RequestContext;

impl Manager {
    /// One bundle. With `dryRun` its questions are the `needs`; without, a required one that is open fails it.
    pub(super) async fn import_bundle(
        &self,
        request: &RequestContext,
        params: McpImport,
        source: String,
    ) -> Result<Imported, Error> {
        let root = self.root(&params.directory)?;
        if params.scope == Some(Scope::Project) {
            return Err(Error::new(
                ErrorKind::InvalidParams,
                "a bundle is unpacked on this machine, so it cannot be written into a project",
            )
            .path("/scope")
            .expected("`user`"));
        }
        let values = values(params.values);
        let dry_run = params.dry_run == Some(true);
        let (core, asked) = (std::sync::Arc::clone(&self.core), values.clone());
        let expected = params.sha256;
        let looked = blocking(move || {
            let bundle = bundle::look(&PathBuf::from(source), expected.as_deref())?;
            let questions = bundle.manifest.questions(&core.env, &bundle.folder(&core));
            let entry = bundle.entry(&core, &asked);
            Ok((bundle, questions, entry))
        });
        let (bundle, questions, entry) = looked.await?;
        let name = names::fitting(&bundle.manifest.name);
        let own = bundle
            .manifest
            .display_name
            .as_ref()
            .unwrap_or(&bundle.manifest.name);
        let mut result = ImportOutcome {
            name: ServerName::from(
                own.chars()
                    .filter(|one| !one.is_control())
                    .take(200)
                    .collect::<String>(),
            ),
            status: ImportStatus::Failed,
            reason: None,
            saved_as: Some(NewName::from(name.as_str())),
            scope: None,
            target: None,
        };
        if result.name.is_empty() {
            result.name = ServerName::from(name.as_str());
        }
        let mut imported = Imported {
            results: Vec::new(),
            added: 0,
            failed: 0,
            not_imported: Vec::new(),
            needs: needs(&questions, &values, dry_run, &name),
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(reason) => {
                result.reason = Some(reason);
                imported.failed = 1;
                imported.results.push(result);
                return Ok(imported);
            }
        };
        result.target = Some(review::target(&entry, self.core.env.home()));
        for warning in warnings::of(&entry, Layer::User, self.core.env.home()) {
            imported.not_imported.push(Issue::new(IssueKind::Note, warning));
        }
        let open: Vec<&str> = questions
            .iter()
            .filter(|question| question.required && question.is_open(&values))
            .map(|question| question.title.as_str())
            .collect();
        if !open.is_empty() && !dry_run {
            result.reason = Some(format!("it needs {}", open.join(", ")));
            imported.failed = 1;
            imported.results.push(result);
            return Ok(imported);
        }
        let old = self.layers.in_layer(&root, &name, Layer::User);
        let old_folder = old.as_ref().and_then(|old| bundle::folder_of(&self.core, old));
        let folder = bundle.folder(&self.core);
        if !dry_run && (old.is_none() || params.replace == Some(true)) {
            let core = std::sync::Arc::clone(&self.core);
            blocking(move || bundle.unpack(&core)).await?;
        }
        let add = McpAdd {
            directory: params.directory.clone(),
            name: NewName::from(name.as_str()),
            entry,
            replace: params.replace,
            dry_run: params.dry_run,
            start: Some(false),
            ..Default::default()
        };
        match self.add(request, add).await {
            Ok(_) => {
                result.status = if old.is_some() {
                    ImportStatus::Replaced
                } else {
                    ImportStatus::Added
                };
                imported.added = u32::from(!dry_run);
            }
            Err(error) if error.kind == ErrorKind::NameTaken => {
                result.status = ImportStatus::Skipped;
                result.reason = Some(error.message);
            }
            Err(error) => {
                self.discard_bundle(folder).await;
                return Err(error);
            }
        }
        if let Some(old_folder) = old_folder.filter(|old| *old != folder && !dry_run) {
            self.discard_bundle(old_folder).await;
        }
        imported.results.push(result);
        Ok(imported)
    }

    /// Deletes an unpacked bundle that no entry starts from any more.
    pub(super) async fn discard_bundle(&self, folder: PathBuf) {
        let (core, servers) = (std::sync::Arc::clone(&self.core), self.layers.all());
        // What could not be deleted is in the log.
        let _ = blocking(move || {
            bundle::discard(&core, &folder, &servers);
            Ok(())
        })
        .await;
    }
}

fn values(given: Option<std::collections::BTreeMap<String, AnswerValue>>) -> Values {
    let given = given.into_iter().flatten();
    let values = given.map(|(key, value)| {
        let value = match value {
            AnswerValue::Text(text) => Value::String(text),
            AnswerValue::Number(number) => Value::Number(number),
            AnswerValue::Boolean(yes) => Value::Bool(yes),
            AnswerValue::Texts(texts) => texts.into_iter().map(Value::String).collect(),
        };
        (key, value)
    });
    values.collect()
}

/// What a person is to be asked for: everything before it is written, what is open and required afterwards.
fn needs(questions: &[Question], values: &Values, dry_run: bool, server: &str) -> Vec<ImportNeed> {
    let asked = questions.iter().filter(|question| match dry_run {
        true => !values.contains_key(&question.key),
        false => question.required && question.is_open(values),
    });
    let needs = asked.map(|question| ImportNeed {
        at: Pointer::from(validate::pointer(&["values", &question.key])),
        label: question.title.clone(),
        secret: question.secret,
        required: question.required,
        description: question.description.clone(),
        default: question.default_text(),
        choices: question.choices(),
        servers: vec![ServerName::from(server)],
    });
    needs.collect()
}
