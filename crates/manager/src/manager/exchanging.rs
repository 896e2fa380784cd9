//! Entries from elsewhere and for elsewhere: paste, import, export.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{
    Draft, Error, ErrorKind, ExportFormat, ExportSecrets, ImportNeed, ImportOutcome, ImportStatus, Imported,
    Issue, IssueKind, Layer, McpAdd, McpExport, McpExportResult, McpImport, McpImportDetect,
    McpImportDetectResult, McpParse, McpParseResult, Need, NewName, Pointer, Scope, ServerEntry, ServerName,
};

use super::Manager;
use super::configuring::blocking;
use super::foreign_files::{check_source, looked_at, read_servers, shortened};
use crate::bundle;
use crate::config::{secret, validate};
use crate::consent::{Gate, review, warnings};
use crate::exchange::paste::{self, PastedServer};
use crate::exchange::programs::{self, Place};
use crate::exchange::server_json::ServerJson;
use crate::exchange::{Dialect, Found, Harvest, Input, Outcome, declared, harvest, names, write};
use crate::server::Server;
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
        let mut problems = pasted.problems;
        for server in &pasted.described {
            let name = names::free(&server.short_name(), |name| {
                drafts.iter().any(|draft| *draft.name == *name)
            });
            let mut ways = self.drafts_of(&root, &name, server).into_iter();
            if let Some(mut draft) = ways.next() {
                draft.warnings.extend(other_ways(server));
                drafts.push(draft);
            } else {
                let mut issue = Issue::new(ErrorKind::InvalidParams, server.refused.join("; "));
                issue.item = Some(shortened(&server.name));
                problems.push(issue);
            }
        }
        Ok(McpParseResult {
            form: pasted.form,
            drafts,
            problems,
        })
    }

    /// `mcp.import`: writes the servers of another program's configuration; starts none.
    pub async fn import(&self, request: &RequestContext, params: McpImport) -> Result<Imported, Error> {
        if let Some(source) = &params.source {
            let (root, source) = (self.root(&params.directory)?, PathBuf::from(source));
            blocking(move || check_source(&source, &root)).await?;
        }
        if let (None, Some(source)) = (&params.text, &params.source)
            && bundle::is_bundle(source)
        {
            let source = source.clone();
            return self.import_bundle(request, params, source).await;
        }
        let harvest = match (params.text.clone(), params.source.clone()) {
            (Some(text), None) => {
                let (mut harvest, _) = harvest(&text, Dialect::Common)
                    .map_err(|fault| Error::new(ErrorKind::InvalidParams, fault.to_string()).path("/text"))?;
                if harvest.is_foreign {
                    harvest.refuse_strange(&[]);
                }
                harvest
            }
            (None, Some(source)) => {
                let places = self.places(&self.root(&params.directory)?);
                let is_known = places.iter().any(|place| place.path == Path::new(&source));
                blocking(move || read_servers(Path::new(&source), is_known)).await?
            }
            _ => {
                let message = "either `text` or `source` is needed";
                return Err(Error::new(ErrorKind::InvalidParams, message).path("/text"));
            }
        };
        self.import_found(request, &params, harvest).await
    }

    /// Writes what was found as entries of ours.
    pub(super) async fn import_found(
        &self,
        request: &RequestContext,
        params: &McpImport,
        harvest: Harvest,
    ) -> Result<Imported, Error> {
        let root = self.root(&params.directory)?;
        let layer = match params.scope {
            Some(Scope::Project) => Layer::Project,
            Some(Scope::User) | None => Layer::User,
        };
        let mut imported = Imported {
            results: Vec::new(),
            added: 0,
            failed: 0,
            not_imported: harvest.notes,
            needs: Vec::new(),
        };
        let mut used: Vec<String> = Vec::new();
        let described = harvest
            .described
            .into_iter()
            .map(|server| as_found(server, &mut imported.not_imported));
        let described: Vec<(Found, Option<Vec<Need>>)> = described.collect();
        let configured = harvest.found.into_iter().map(|found| (found, None));
        for (found, asked) in configured.chain(described) {
            let is_wanted = |names: &Vec<ServerName>| names.iter().any(|name| **name == *found.name);
            if !params.names.as_ref().is_none_or(is_wanted) {
                continue;
            }
            let Found { name, scope, outcome } = found;
            let mut result = ImportOutcome {
                name: ServerName::from(shortened(&name)),
                status: ImportStatus::Failed,
                reason: None,
                saved_as: None,
                scope,
                target: None,
            };
            match outcome {
                Outcome::Failed(reason) => result.reason = Some(reason),
                Outcome::Skipped(reason) => {
                    result.status = ImportStatus::Skipped;
                    result.reason = Some(reason);
                }
                Outcome::Entry(mut entry) => {
                    let new = names::free(&name_of(&name, &entry), |name| {
                        used.iter().any(|used| used == name)
                    });
                    used.push(new.clone());
                    if !name.is_empty() && name != new && entry.label.is_none() {
                        entry.label = Some(shortened(&name));
                    }
                    if asked.is_none() {
                        entry.source = Some("import".to_owned());
                    }
                    let is_taken = self.layers.in_layer(&root, &new, layer).is_some();
                    declared::ask_as(&mut entry, &harvest.inputs);
                    let needs = asked.unwrap_or_else(|| needs(&entry));
                    declared::remember(&mut entry, &needs);
                    let base = match layer {
                        Layer::Project => &root,
                        _ => self.core.env.home(),
                    };
                    let warnings = warnings::of(&entry, layer, base);
                    let add = McpAdd {
                        directory: params.directory.clone(),
                        name: NewName::from(new.as_str()),
                        entry: *entry,
                        scope: params.scope,
                        replace: params.replace,
                        dry_run: params.dry_run,
                        start: Some(false),
                        ..Default::default()
                    };
                    match self.add(request, add).await {
                        Ok(_) => {
                            result.status = if is_taken {
                                ImportStatus::Replaced
                            } else {
                                ImportStatus::Added
                            };
                            for need in needs {
                                ask_for(&mut imported.needs, need, &new);
                            }
                            for warning in warnings {
                                let mut issue = Issue::new(IssueKind::Note, warning);
                                issue.server = Some(ServerName::from(new.as_str()));
                                if !imported.not_imported.contains(&issue) {
                                    imported.not_imported.push(issue);
                                }
                            }
                            result.saved_as = Some(NewName::from(new));
                            imported.added += u32::from(params.dry_run != Some(true));
                        }
                        Err(error) if error.kind == ErrorKind::NameTaken => {
                            result.status = ImportStatus::Skipped;
                            result.reason = Some(error.message);
                        }
                        Err(error) if error.kind == ErrorKind::InvalidParams => {
                            result.reason = Some(error.message)
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            if result.name.is_empty() {
                let name = result.saved_as.as_ref().map_or("unnamed", |name| &**name);
                result.name = ServerName::from(name);
            }
            imported.failed += u32::from(result.status == ImportStatus::Failed);
            imported.results.push(result);
        }
        Ok(imported)
    }

    /// `mcp.import.detect`: the configurations of other programs on this machine and in the directory.
    pub async fn import_detect(
        &self,
        _: &RequestContext,
        params: McpImportDetect,
    ) -> Result<McpImportDetectResult, Error> {
        let root = self.root(&params.directory)?;
        let places = self.places(&root);
        let looked = move || {
            Ok(places
                .iter()
                .filter_map(|place| looked_at(place, &root))
                .collect())
        };
        let sources = blocking(looked).await?;
        Ok(McpImportDetectResult { sources })
    }

    /// `mcp.export`: entries of the user and the project as a text.
    pub async fn export(&self, _: &RequestContext, params: McpExport) -> Result<McpExportResult, Error> {
        let root = self.root(&params.directory)?;
        let (entries, mut warnings) = self.to_export(&root, params.scope, params.servers.as_deref())?;
        let written = write::write(
            &entries,
            params.format.unwrap_or(ExportFormat::Store),
            params.secrets.unwrap_or(ExportSecrets::Reference),
        );
        warnings.extend(written.warnings);
        Ok(McpExportResult {
            text: written.text,
            count: u32::try_from(written.count).unwrap_or(u32::MAX),
            not_exported: written.left_out,
            warnings,
        })
    }

    /// The entries of the user and the project, and what a person should know of those that are left out.
    pub(super) fn to_export(
        &self,
        root: &Path,
        scope: Option<Scope>,
        wanted: Option<&[ServerName]>,
    ) -> Result<(BTreeMap<String, ServerEntry>, Vec<String>), Error> {
        self.layers.freshen(&self.core);
        let visible = self.layers.visible(root);
        for name in wanted.into_iter().flatten() {
            if !visible.iter().any(|server| server.name == *name) {
                return Err(self.unknown(root, name));
            }
        }
        let is_wanted = |server: &Arc<Server>| wanted.is_none_or(|names| names.contains(&server.name));
        let mut entries: BTreeMap<String, ServerEntry> = BTreeMap::new();
        let mut warnings = Vec::new();
        for server in visible.iter().filter(|server| is_wanted(server)) {
            let of = match server.layer {
                Layer::User => Scope::User,
                Layer::Project => Scope::Project,
                _ => continue,
            };
            let gate = server.gate();
            if scope.is_some_and(|scope| scope != of)
                || server.is_empty
                || matches!(gate, Gate::Pending { .. })
            {
                continue;
            }
            // Another program would run it without a question.
            if let Some(why) = kept_back(&gate) {
                warnings.push(format!("`{}` is left out: {why}", server.name));
                continue;
            }
            if entries.contains_key(&*server.name) {
                warnings.push(format!(
                    "`{}` of the layer {} is left out",
                    server.name, server.layer
                ));
                continue;
            }
            entries.insert(server.name.to_string(), ServerEntry::clone(&server.entry()));
        }
        for name in wanted.into_iter().flatten() {
            let begin = format!("`{name}` ");
            if !entries.contains_key(&**name) && !warnings.iter().any(|said| said.starts_with(&begin)) {
                warnings.push(format!(
                    "{begin}is left out: it is no entry of yours or of the project, or waits for a decision"
                ));
            }
        }
        Ok((entries, warnings))
    }

    /// Where other programs may keep their servers.
    pub(super) fn places(&self, root: &Path) -> Vec<Place> {
        let env = &self.core.env;
        let folder = |name: &str| {
            let folder = env.variable_os(name).map(PathBuf::from);
            folder.filter(|path| path.is_absolute())
        };
        let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| env.home().join(".config"));
        programs::places(&programs::Folders {
            home: env.home(),
            config: &config,
            claude: folder("CLAUDE_CONFIG_DIR").as_deref(),
            project: root,
        })
    }

    fn draft(&self, root: &Path, name: String, server: PastedServer, inputs: &[Input]) -> Draft {
        let mut entry = server.entry;
        if !server.name.is_empty() && server.name != name && entry.label.is_none() {
            entry.label = Some(server.name.chars().take(200).collect());
        }
        entry.source.get_or_insert_with(|| "paste".to_owned());
        declared::ask_as(&mut entry, inputs);
        let mut needs = needs(&entry);
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
        declared::remember(&mut entry, &needs);
        let mut warnings = server.warnings;
        warnings.extend(warnings::of(&entry, Layer::User, self.core.env.home()));
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

/// Why an entry that does not run here is not given to a program that would run it.
fn kept_back(gate: &Gate) -> Option<String> {
    match gate {
        Gate::NeedsTrust => Some(
            "its project is not trusted, and another program would run it at once; look at what it would run, and \
             trust the project first"
                .to_owned(),
        ),
        Gate::Refused => Some("it was refused here; switch it on first if it may run after all".to_owned()),
        Gate::Forbidden { reason } => Some(format!("the administrator of this machine does not allow it: {reason}")),
        Gate::Open | Gate::Pending { .. } | Gate::Outside { .. } => None,
    }
}

/// What a description adds: the best way to its server, and what a person must fill in.
fn as_found(mut server: ServerJson, notes: &mut Vec<Issue>) -> (Found, Option<Vec<Need>>) {
    let name = server.short_name();
    let others = other_ways(&server);
    let mut note = |message: String| {
        let mut issue = Issue::new(IssueKind::Note, message);
        issue.server = Some(ServerName::from(name.as_str()));
        notes.push(issue);
    };
    if server.ways.is_empty() {
        let outcome = Outcome::Failed(server.refused.join("; "));
        return (
            Found {
                name,
                scope: None,
                outcome,
            },
            None,
        );
    }
    let way = server.ways.swap_remove(0);
    way.warnings.into_iter().chain(others).for_each(&mut note);
    let outcome = Outcome::Entry(Box::new(way.entry));
    (
        Found {
            name,
            scope: None,
            outcome,
        },
        Some(way.needs),
    )
}

/// Says that there are other ways than the one that is offered.
fn other_ways(server: &ServerJson) -> Option<String> {
    let others: Vec<&str> = server.ways.iter().skip(1).map(|way| way.kind).collect();
    (!others.is_empty()).then(|| format!("it can also be had as: {}", others.join(", ")))
}

/// Gathers what several servers need alike.
fn ask_for(needs: &mut Vec<ImportNeed>, need: Need, server: &str) {
    let server = ServerName::from(server);
    if let Some(known) = needs
        .iter_mut()
        .find(|known| known.label == need.label && known.description == need.description)
    {
        if !known.servers.contains(&server) {
            known.servers.push(server);
        }
        return;
    }
    needs.push(ImportNeed {
        at: need.at,
        label: need.label,
        secret: need.secret,
        required: need.required,
        description: need.description,
        default: need.default,
        choices: need.choices,
        servers: vec![server],
    });
}

fn name_of(name: &str, entry: &ServerEntry) -> String {
    if name.is_empty() {
        names::guessed(entry)
    } else {
        names::fitting(name)
    }
}

/// What a person must still fill in: inputs that the other program asks for, secrets left empty, placeholders.
fn needs(entry: &ServerEntry) -> Vec<Need> {
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
        let inputs = entry.inputs.iter().flatten();
        let input = inputs
            .into_iter()
            .find(|(id, _)| value.contains(&format!("${{input:{id}}}")));
        let is_secret = secret::is_secret_name(&name);
        let need = match input {
            Some((id, input)) => Need {
                at: Pointer::from(at),
                label: id.clone(),
                secret: input.secret != Some(false) || is_secret,
                required: true,
                description: input.description.clone(),
                default: input.default.clone(),
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

/// `<your-key>`, `YOUR_API_KEY`, `/path/to/repo`, `xxxx`: what instructions write where a value belongs.
fn is_placeholder(value: &str) -> bool {
    let value = value.trim().strip_prefix("Bearer ").unwrap_or(value.trim());
    let lower = value.to_lowercase();
    (value.starts_with('<') && value.ends_with('>') && value.len() > 2)
        || value.starts_with("/path/to/")
        || (lower.starts_with("your") && lower[4..].starts_with(['_', '-', ' ']))
        || (lower.len() >= 4 && lower.bytes().all(|byte| byte == b'x' || byte == b'*'))
}
