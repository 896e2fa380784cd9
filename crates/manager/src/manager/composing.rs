//! What a prompt box needs: what can be mentioned, and a text with its mentions and its command carried out.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::{
    CatalogItem, Category, Dir, Error, ErrorKind, Issue, IssueKind, McpMentionsList, McpMentionsListResult,
    McpPromptExpand, McpPromptExpandResult, PromptCalled, PromptItem, PromptPart, ResourceItem, ResourcePart,
    ServerName, TextPart, Tier, Uri,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calling::Wish;
use super::listing::Part;
use super::{Manager, check_directory, near};
use crate::calls::{Call, NewCall};
use crate::compose::command::{self, Command};
use crate::compose::mention::{self, Mention, Offered, Target};
use crate::limits;
use crate::model::{builtin, resource};
use crate::progress::Work;
use crate::server::Server;
use crate::sink::RequestContext;

/// What a text can name.
const NAMED: [Category; 3] = [Category::Resources, Category::Templates, Category::Prompts];

impl Manager {
    /// `mcp.mentions.list`. A read-only peer sees only what is known already.
    pub async fn mentions_list(
        &self,
        request: &RequestContext,
        params: McpMentionsList,
    ) -> Result<McpMentionsListResult, Error> {
        let discover = request.tier != Tier::ReadOnly;
        let wait = params.wait_ms.unwrap_or(limits::LIST_WAIT_MS);
        let servers = self.enabled_servers(&params.directory)?;
        let parts = self.parts(request, &servers, &NAMED, discover, wait).await?;
        let mut issues: Vec<Issue> = parts.iter().flat_map(Part::issues).cloned().collect();
        let mut resources = Vec::new();
        let mut prompts = Vec::new();
        for item in parts
            .iter()
            .flat_map(|part| &part.lists)
            .flat_map(|list| &list.items)
        {
            match &item.shown {
                CatalogItem::Resource(resource) => resources.push(resource.clone()),
                CatalogItem::Prompt(prompt) => prompts.push(prompt.clone()),
                CatalogItem::Tool(_) | CatalogItem::Template(_) => {}
            }
        }
        let reserved = params.reserved.unwrap_or_default();
        prompts.retain(|prompt| !reserved.contains(&prompt.command));
        mention::mark_ambiguous(&mut resources);
        mark_ambiguous_prompts(&mut prompts);
        let prefix = params.prefix.unwrap_or_default().to_lowercase();
        resources.retain(|resource| begins(&resource.mention, &prefix));
        prompts.retain(|prompt| begins(&prompt.command, &prefix));
        let limit = params.limit.map_or(limits::PAGE_ITEMS, |limit| limit as usize);
        let more = resources.len().saturating_sub(limit) + prompts.len().saturating_sub(limit);
        if more > 0 {
            issues.push(Issue::new(IssueKind::Note, format!("{more} more fit: type on")));
        }
        resources.truncate(limit);
        prompts.truncate(limit);
        Ok(McpMentionsListResult {
            resources,
            prompts,
            issues,
        })
    }

    /// `mcp.prompt.expand`: all of it, or an error and the draft stays.
    pub async fn prompt_expand(
        &self,
        request: &RequestContext,
        params: McpPromptExpand,
    ) -> Result<McpPromptExpandResult, Error> {
        let directory = self.open(check_directory(&params.directory)?);
        if request.tier == Tier::ReadOnly {
            return Ok(as_it_is(params.text));
        }
        let nobody = ServerName::from(builtin::SERVER);
        let new = NewCall {
            id: params.call.as_ref(),
            session: params.session.as_ref(),
            directory: &directory,
            server: &nobody,
            tool: None,
            within: None,
        };
        let guard = self.core.calls.begin(request, &self.core.questions, &new)?;
        let whole = Arc::clone(&guard.call);
        let token = params.work_done_token.as_ref();
        let work = Work::begin(
            &self.core.calls,
            &self.core.sink,
            token,
            "Expanding the prompt",
            true,
        )?;
        let outcome = tokio::select! {
            outcome = self.expand(request, &params, &whole) => outcome,
            () = async {
                whole.cancel.cancelled().await;
                tokio::time::sleep(limits::STOP_GRACE).await;
            } => Err(whole.cancelled_error(request)),
        };
        drop(work);
        drop(guard);
        match outcome {
            Err(_) if whole.cancel.is_cancelled() => Err(whole.cancelled_error(request)),
            outcome => outcome,
        }
    }

    async fn expand(
        &self,
        request: &RequestContext,
        params: &McpPromptExpand,
        whole: &Call,
    ) -> Result<McpPromptExpandResult, Error> {
        let text = &params.text;
        if !text.contains('@') && command::command(text).is_none() {
            return Ok(as_it_is(text.clone()));
        }
        let servers = self.enabled_servers(&params.directory)?;
        let servers: Vec<Arc<Server>> = servers
            .into_iter()
            .filter(|server| names_it(text, server))
            .collect();
        let parts = self
            .parts(request, &servers, &NAMED, true, limits::LIST_WAIT_MS)
            .await?;
        // Everything is looked at before anything is read: what is missing costs nothing.
        let targets = resolved(text, &parts)?;
        let reserved = params.reserved.as_deref().unwrap_or_default();
        let called = match command::command(text) {
            Some(command) if !reserved.iter().any(|name| name == command.name) => {
                prompt_of(&command, &parts)?.map(|prompt| (command, prompt))
            }
            _ => None,
        };
        let mut issues = Vec::new();
        let (text, prompt) = match called {
            None => (text.clone(), None),
            Some((command, prompt)) => {
                let text = self
                    .prompt_text(request, params, whole, &command, &prompt, &mut issues)
                    .await?;
                let called = PromptCalled {
                    server: prompt.server.clone(),
                    name: prompt.name.clone(),
                };
                (text, Some(called))
            }
        };
        let mut shown = vec![PromptPart::Text(TextPart { text })];
        let mut room = limits::MENTIONED_CHARS;
        for (mention, target) in targets {
            let part = self
                .resource_part(request, params, whole, &mention, &target, &parts)
                .await?;
            let length = part.text.chars().count();
            if length > room {
                return Err(Error::new(
                    ErrorKind::TooLarge,
                    format!(
                        "the resources that the text mentions hold more than {} characters",
                        limits::MENTIONED_CHARS
                    ),
                )
                .limit(limits::MENTIONED_CHARS as u64)
                .names(vec![mention])
                .hint("mention fewer or smaller ones"));
            }
            room -= length;
            shown.push(PromptPart::Resource(part));
        }
        issues.extend(whole.take_issues());
        issues.truncate(limits::ISSUES);
        Ok(McpPromptExpandResult {
            parts: shown,
            prompt,
            issues,
        })
    }

    async fn resource_part(
        &self,
        request: &RequestContext,
        params: &McpPromptExpand,
        whole: &Call,
        mention: &str,
        target: &Target,
        parts: &[Part],
    ) -> Result<ResourcePart, Error> {
        let wish = wish(params, whole, &params.directory, &target.server);
        let (result, issues) = self.read(request, &wish, &target.uri).await?;
        issues.into_iter().for_each(|issue| whole.note(issue));
        let text = resource::text(&result).map_err(|why| {
            Error::new(
                ErrorKind::ProtocolError,
                format!("`{mention}` could not be read: {why}"),
            )
            .server(target.server.clone())
        })?;
        let listed = resources(parts)
            .find(|resource| resource.server == target.server && *resource.uri == *target.uri);
        Ok(ResourcePart {
            mention: mention.to_owned(),
            server: target.server.clone(),
            uri: Uri::from(target.uri.as_str()),
            mime_type: listed.and_then(|resource| resource.mime_type.clone()),
            text,
        })
    }

    async fn prompt_text(
        &self,
        request: &RequestContext,
        params: &McpPromptExpand,
        whole: &Call,
        command: &Command<'_>,
        prompt: &PromptItem,
        issues: &mut Vec<Issue>,
    ) -> Result<String, Error> {
        let arguments = command::arguments(command.rest, &prompt.arguments);
        let wish = wish(params, whole, &params.directory, &prompt.server);
        let arguments = (!prompt.arguments.is_empty()).then_some(&arguments);
        let (result, more) = self.fill_in(request, &wish, &prompt.name, arguments).await?;
        more.into_iter().for_each(|issue| whole.note(issue));
        let (mut texts, omitted) = texts(&result).map_err(|why| {
            Error::new(
                ErrorKind::ProtocolError,
                format!("the prompt `{}` cannot be read: {why}", prompt.name),
            )
            .server(prompt.server.clone())
        })?;
        for (kind, times) in omitted {
            let mut issue = Issue::new(
                IssueKind::Note,
                format!(
                    "the prompt `{}` also holds {times} × {kind}, which is left out",
                    prompt.name
                ),
            );
            issue.server = Some(prompt.server.clone());
            issue.item = Some(prompt.name.clone());
            issues.push(issue);
        }
        if prompt.arguments.is_empty() && !command.rest.is_empty() {
            texts.push(command.rest.to_owned());
        }
        Ok(texts.join("\n\n"))
    }
}

fn wish<'a>(params: &'a McpPromptExpand, whole: &'a Call, directory: &'a Dir, server: &'a str) -> Wish<'a> {
    Wish {
        directory,
        server,
        call: params.call.as_ref(),
        session: params.session.as_ref(),
        timeout_ms: params.timeout_ms,
        token: None,
        title: String::new(),
        tool: None,
        within: Some(whole),
    }
}

fn as_it_is(text: String) -> McpPromptExpandResult {
    McpPromptExpandResult {
        parts: vec![PromptPart::Text(TextPart { text })],
        prompt: None,
        issues: Vec::new(),
    }
}

/// Whether a text may speak of a server: only those are asked.
fn names_it(text: &str, server: &Server) -> bool {
    let called = command::command(text).and_then(|command| command.name[1..].split(':').next());
    let is_called = called
        .is_some_and(|name| *name == *server.name || name == crate::catalog::names::alias(&server.name));
    is_called || mention::speaks_of(text, &server.name)
}

/// What begins like the word that is being typed; without its first sign, any word of it.
fn begins(name: &str, prefix: &str) -> bool {
    let name = name.to_lowercase();
    if name.starts_with(prefix) {
        return true;
    }
    let typed = prefix.trim_start_matches(['@', '/']);
    let is_same_kind = !prefix.starts_with(['@', '/']) || name.starts_with(&prefix[..1]);
    is_same_kind
        && !typed.is_empty()
        && name[1..]
            .split([':', '_', '-', '.', '/'])
            .any(|word| word.starts_with(typed))
}

fn resources(parts: &[Part]) -> impl Iterator<Item = &ResourceItem> {
    let items = parts
        .iter()
        .flat_map(|part| &part.lists)
        .flat_map(|list| &list.items);
    items.filter_map(|item| match &item.shown {
        CatalogItem::Resource(resource) => Some(resource),
        _ => None,
    })
}

/// The resources a text mentions, each with its mention. One that is missing or ambiguous stops everything.
fn resolved(text: &str, parts: &[Part]) -> Result<Vec<(String, Target)>, Error> {
    let offered: Vec<Offered<'_>> = parts
        .iter()
        .map(|part| Offered {
            server: &part.server.name,
            items: part
                .lists
                .iter()
                .flat_map(|list| &list.items)
                .map(|item| &item.shown)
                .collect(),
        })
        .collect();
    let mentions = mention::mentions(text, &offered);
    let unresolved: Vec<&Mention> = mentions
        .iter()
        .filter(|mention| mention.targets.len() != 1)
        .collect();
    if let Some(first) = unresolved.first() {
        let candidates = if first.targets.is_empty() {
            near(
                &first.text,
                resources(parts)
                    .map(|resource| resource.mention.clone())
                    .collect(),
            )
        } else {
            let targets = first.targets.iter();
            targets
                .map(|target| format!("@{}:{}", target.server, target.uri))
                .collect()
        };
        let why = if first.targets.is_empty() {
            format!("there is no resource `{}`", first.text)
        } else {
            format!("`{}` may mean {} resources", first.text, first.targets.len())
        };
        // Why there may be none: its server said nothing.
        let fault = parts
            .iter()
            .flat_map(Part::issues)
            .next()
            .filter(|_| first.targets.is_empty());
        let why = fault.map_or(why.clone(), |issue| format!("{why} ({})", issue.message));
        return Err(Error::new(ErrorKind::MentionUnresolved, why)
            .names(
                unresolved
                    .iter()
                    .map(|mention| mention.text.clone())
                    .collect::<Vec<_>>(),
            )
            .candidates(candidates)
            .hint("correct the mention; nothing was read"));
    }
    let mut targets: Vec<(String, Target)> = Vec::new();
    for mention in mentions {
        let Some(target) = mention.targets.into_iter().next() else {
            continue;
        };
        if !targets.iter().any(|(_, known)| *known == target) {
            targets.push((mention.text, target));
        }
    }
    if targets.len() > limits::MENTIONS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "a text mentions at most {} resources, this one {}",
                limits::MENTIONS,
                targets.len()
            ),
        )
        .limit(limits::MENTIONS as u64)
        .hint("mention fewer"));
    }
    Ok(targets)
}

/// The prompt a command calls; `None` where its server is none of ours, so that it stays text.
fn prompt_of(command: &Command<'_>, parts: &[Part]) -> Result<Option<PromptItem>, Error> {
    let (server, name) = command.name[1..].split_once(':').unwrap_or_default();
    let of: Vec<&Part> = parts
        .iter()
        .filter(|part| {
            *server == *part.server.name || server == crate::catalog::names::alias(&part.server.name)
        })
        .collect();
    if of.is_empty() {
        return Ok(None);
    }
    let prompts: Vec<&PromptItem> = of
        .iter()
        .flat_map(|part| &part.lists)
        .flat_map(|list| &list.items)
        .filter_map(|item| match &item.shown {
            CatalogItem::Prompt(prompt) => Some(prompt),
            _ => None,
        })
        .collect();
    let found: Vec<&&PromptItem> = prompts
        .iter()
        .filter(|prompt| prompt.command == command.name || prompt.name == name)
        .collect();
    match found.as_slice() {
        [prompt] => Ok(Some((**prompt).clone())),
        _ => {
            let commands = prompts.iter().map(|prompt| prompt.command.clone()).collect();
            let why = if found.is_empty() {
                let fault = of.iter().flat_map(|part| part.issues()).next();
                let fault = fault.map_or(String::new(), |issue| format!(" ({})", issue.message));
                format!("there is no prompt `{}`{fault}", command.name)
            } else {
                format!("`{}` may mean {} prompts", command.name, found.len())
            };
            Err(Error::new(ErrorKind::MentionUnresolved, why)
                .names(vec![command.name.to_owned()])
                .candidates(near(command.name, commands))
                .hint("correct the command; nothing was read"))
        }
    }
}

fn mark_ambiguous_prompts(prompts: &mut [PromptItem]) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for prompt in prompts.iter() {
        *times.entry(prompt.command.clone()).or_default() += 1;
    }
    for prompt in prompts {
        if times.get(&prompt.command).is_some_and(|times| *times > 1) {
            prompt.ambiguous = Some(true);
        }
    }
}

/// The texts of a prompt, and what else it holds, counted by kind.
fn texts(result: &RawValue) -> Result<(Vec<String>, BTreeMap<String, usize>), String> {
    #[derive(Deserialize)]
    struct Got {
        messages: Vec<Message>,
    }
    #[derive(Deserialize)]
    struct Message {
        content: OneOrMany,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(Content),
        Many(Vec<Content>),
    }
    #[derive(Deserialize)]
    struct Content {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        text: Option<String>,
    }
    let got: Got = serde_json::from_str(result.get()).map_err(|error| error.to_string())?;
    let mut texts = Vec::new();
    let mut omitted: BTreeMap<String, usize> = BTreeMap::new();
    let contents = got
        .messages
        .into_iter()
        .flat_map(|message| match message.content {
            OneOrMany::One(content) => vec![content],
            OneOrMany::Many(contents) => contents,
        });
    for content in contents {
        match (content.kind.as_str(), content.text) {
            ("text", Some(text)) => texts.push(text),
            _ => *omitted.entry(content.kind).or_default() += 1,
        }
    }
    Ok((texts, omitted))
}
