//! GitHub: repositories that a search finds, most starred first.
//!
//! A repository says nothing about how its server is run. What is offered is a guess from its name and marked as one;
//! only where the repository itself names its package is it more than that.

use http::HeaderMap;
use http::header::{ACCEPT, AUTHORIZATION, HeaderName, HeaderValue};
use protocol::{ErrorKind, SearchNotice, ServerEntry};
use serde::Deserialize;
use url::Url;

use super::date;
use super::web::{self, Answer, notice};
use crate::core::Core;
use crate::env;
use crate::exchange::toml;
use crate::limits;
use crate::server::launch;

/// Names the API, where it is not that of github.com.
const VARIABLE: &str = "PILLION_GITHUB_URL";
const PUBLIC: &str = "https://api.github.com";
/// Begins the source of an entry whose command is only a guess.
const GUESSED: &str = "unverified:";

/// A repository.
#[derive(Debug, Deserialize)]
pub(crate) struct Repository {
    pub full_name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub html_url: String,
    #[serde(default)]
    pub stargazers_count: u64,
    #[serde(default)]
    pub language: Option<String>,
    #[serde(default)]
    pushed_at: Option<String>,
    #[serde(default)]
    pub archived: bool,
    /// The package that its own manifest names.
    #[serde(skip)]
    pub package: Option<Package>,
}

/// A package that a manifest names, as what runs it.
#[derive(Debug)]
pub(crate) enum Package {
    Npm(String),
    PyPi(String),
}

/// What a search came to.
#[derive(Default)]
pub(crate) struct Found {
    pub repositories: Vec<Repository>,
    pub n_hits: usize,
    pub notice: Option<SearchNotice>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    total_count: usize,
    #[serde(default)]
    items: Vec<serde_json::Value>,
}

/// Searches for repositories; `page` counts from 1. A query `owner/name` is that one repository, looked at closely.
pub(crate) async fn search(core: &Core, query: &str, page: usize, limit: usize) -> Found {
    let base = match web::base(core.env.variable(VARIABLE), VARIABLE, PUBLIC) {
        Ok(base) => base,
        Err(notice) => {
            return Found {
                notice: Some(notice),
                ..Default::default()
            };
        }
    };
    let mut github = GitHub {
        core,
        base,
        token: token(core).await,
        refused: None,
    };
    let found = match one(query) {
        Some((owner, name)) => github.repository(owner, name).await,
        None => github.page(query, page, limit).await,
    };
    let mut found = found.unwrap_or_else(|notice| Found {
        notice: Some(notice),
        ..Default::default()
    });
    found.notice = found.notice.or(github.refused);
    found
}

/// `owner/name`.
fn one(query: &str) -> Option<(&str, &str)> {
    let (owner, name) = query.trim().split_once('/')?;
    let is_word = |word: &str| {
        !word.is_empty()
            && word.len() <= 100
            && !word.starts_with('.')
            && word
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || "-._".contains(one))
    };
    (is_word(owner) && is_word(name)).then_some((owner, name))
}

struct GitHub<'a> {
    core: &'a Core,
    base: Url,
    token: Option<HeaderValue>,
    /// Said beside the results when the token was not taken.
    refused: Option<SearchNotice>,
}

impl GitHub<'_> {
    async fn page(&mut self, query: &str, page: usize, limit: usize) -> Result<Found, SearchNotice> {
        let mut words = query.trim().to_owned();
        if !words.to_lowercase().contains("mcp") {
            words.push_str(" mcp");
        }
        let answer = self
            .get(
                "/search/repositories",
                &[
                    ("q", words.as_str()),
                    ("sort", "stars"),
                    ("order", "desc"),
                    ("per_page", &limit.to_string()),
                    ("page", &page.to_string()),
                ],
            )
            .await?;
        if !answer.is_success() {
            return Err(trouble(&answer));
        }
        let page: Page = serde_json::from_slice(&answer.body)
            .map_err(|_| unreachable("its answer is no list of repositories"))?;
        // One repository that does not read must not hide the others.
        let repositories = page
            .items
            .into_iter()
            .filter_map(|item| serde_json::from_value(item).ok());
        Ok(Found {
            repositories: repositories.collect(),
            n_hits: page.total_count.min(limits::GITHUB_RESULTS),
            notice: None,
        })
    }

    /// One repository, with what its manifest says.
    async fn repository(&mut self, owner: &str, name: &str) -> Result<Found, SearchNotice> {
        let path = format!("/repos/{owner}/{name}");
        let answer = self.get(&path, &[]).await?;
        if answer.status == 404 {
            return Ok(Found::default());
        }
        if !answer.is_success() {
            return Err(trouble(&answer));
        }
        let mut repository: Repository =
            serde_json::from_slice(&answer.body).map_err(|_| unreachable("its answer is no repository"))?;
        for manifest in ["package.json", "pyproject.toml"] {
            let file = self.get(&format!("{path}/contents/{manifest}"), &[]).await?;
            if !file.is_success() {
                continue;
            }
            let text = String::from_utf8_lossy(&file.body);
            repository.package = match manifest {
                "package.json" => npm_package(&text).map(Package::Npm),
                _ => python_package(&text).map(Package::PyPi),
            };
            if repository.package.is_some() {
                break;
            }
        }
        Ok(Found {
            repositories: vec![repository],
            n_hits: 1,
            notice: None,
        })
    }

    /// A refused token is left away, and the rest goes on without.
    async fn get(&mut self, path: &str, query: &[(&str, &str)]) -> Result<Answer, SearchNotice> {
        let mut url = web::below(&self.base, path).ok_or_else(|| unreachable("its address is wrong"))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        loop {
            let accepted = if path.contains("/contents/") {
                "application/vnd.github.raw+json"
            } else {
                "application/vnd.github+json"
            };
            let mut headers = HeaderMap::from_iter([
                (ACCEPT, HeaderValue::from_static(accepted)),
                (
                    HeaderName::from_static("x-github-api-version"),
                    HeaderValue::from_static("2022-11-28"),
                ),
            ]);
            headers.extend(self.token.clone().map(|token| (AUTHORIZATION, token)));
            let answer = web::get(self.core.finder(), &url, &headers, limits::FIND_EXCHANGE)
                .await
                .map_err(|reason| unreachable(&reason))?;
            if answer.status == 401 && self.token.take().is_some() {
                self.refused = Some(notice(
                    ErrorKind::AuthDenied,
                    "GitHub does not take the token; it was asked without",
                    "renew `GITHUB_TOKEN`, or log in again with `gh auth login`",
                ));
                continue;
            }
            return Ok(answer);
        }
    }
}

/// Why there are no results: a limit, with its end, or anything else.
fn trouble(answer: &Answer) -> SearchNotice {
    let number = |name: &str| {
        let value = answer.headers.get(name)?.to_str().ok()?;
        value.trim().parse::<u64>().ok()
    };
    let is_used_up = number("x-ratelimit-remaining") == Some(0);
    let waits = number("retry-after");
    let mut notice = if answer.status == 429 || (answer.status == 403 && (is_used_up || waits.is_some())) {
        let mut limited = notice(
            ErrorKind::RateLimited,
            "GitHub rate limit reached",
            "set `GITHUB_TOKEN` or log in with `gh auth login` for more; everything else goes on working",
        );
        let after = waits.map(|seconds| env::now().saturating_add(seconds.saturating_mul(1000)));
        limited.retry_at = after.or(number("x-ratelimit-reset").map(|seconds| seconds.saturating_mul(1000)));
        if let Some(at) = limited.retry_at {
            limited.message = format!("GitHub rate limit reached; it ends at {}", date::rfc3339(at));
        }
        limited
    } else {
        unreachable(&format!("it answered with status {}", answer.status))
    };
    notice.http_status = Some(answer.status);
    notice
}

fn unreachable(reason: &str) -> SearchNotice {
    notice(
        ErrorKind::Unreachable,
        &format!("GitHub cannot be reached ({reason})"),
        "check the network and the proxy; the gallery works without",
    )
}

/// `GITHUB_TOKEN`, else what the GitHub command line is logged in with.
async fn token(core: &Core) -> Option<HeaderValue> {
    let set = core
        .env
        .variable("GITHUB_TOKEN")
        .filter(|token| !token.trim().is_empty());
    let token = match set {
        Some(token) => Some(token),
        None => of_command_line(core).await,
    };
    let mut value = HeaderValue::try_from(format!("Bearer {}", token?.trim())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

async fn of_command_line(core: &Core) -> Option<String> {
    let variables = core.env.variables().iter();
    let (_, path) = variables.into_iter().find(|(name, _)| name == "PATH")?;
    // By its whole path, and from nobody's folder: a search is made in any repository.
    let program = launch::search("gh", path)?;
    let mut command = tokio::process::Command::new(program);
    command
        .args(["auth", "token"])
        .current_dir("/")
        .env_clear()
        .envs(core.env.variables().iter().map(|(name, value)| (name, value)))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(limits::GH_TOKEN, command.output())
        .await
        .ok()?
        .ok()?;
    let text = String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())?;
    let token = text.trim();
    (!token.is_empty() && token.len() <= 1024 && !token.contains(char::is_whitespace))
        .then(|| token.to_owned())
}

impl Repository {
    /// When it changed last, in epoch ms.
    pub fn pushed_at(&self) -> Option<u64> {
        self.pushed_at.as_deref().and_then(date::epoch_ms)
    }

    fn name(&self) -> &str {
        self.full_name.rsplit('/').next().unwrap_or_default()
    }

    /// The entry to offer, and whether it is more than a guess. `None`: a name that nothing can be run by.
    pub fn entry(&self) -> Option<(ServerEntry, bool)> {
        let source = format!("github:{}", self.full_name);
        let (command, args, is_verified) = match &self.package {
            Some(Package::Npm(name)) => ("npx", vec!["-y".to_owned(), name.clone()], true),
            Some(Package::PyPi(name)) => ("uvx", vec![name.clone()], true),
            None => {
                let (command, args) = guess(self.name(), self.language.as_deref() == Some("Python"))?;
                (command, args, false)
            }
        };
        let source = if is_verified {
            source
        } else {
            format!("{GUESSED}{source}")
        };
        let entry = ServerEntry {
            command: Some(command.to_owned()),
            args: Some(args),
            source: Some(source).filter(|source| source.len() <= 256),
            ..Default::default()
        };
        Some((entry, is_verified))
    }
}

fn guess(name: &str, is_python: bool) -> Option<(&'static str, Vec<String>)> {
    if !name.starts_with(|one: char| one.is_ascii_alphanumeric()) {
        return None;
    }
    let name = name.to_lowercase();
    Some(if is_python {
        ("uvx", vec![name])
    } else {
        ("npx", vec!["-y".to_owned(), name])
    })
}

/// The command of an entry that nobody has looked at: it is still what was guessed from the repository's name.
pub(crate) fn guessed_command(entry: &ServerEntry) -> Option<String> {
    let name = entry
        .source
        .as_deref()?
        .strip_prefix(GUESSED)?
        .rsplit('/')
        .next()?;
    let args = entry.args.as_deref().unwrap_or_default();
    let is_guess = [true, false].into_iter().any(|is_python| {
        guess(name, is_python)
            .is_some_and(|(command, guessed)| entry.command.as_deref() == Some(command) && guessed == args)
    });
    is_guess.then(|| {
        format!(
            "{} {}",
            entry.command.as_deref().unwrap_or_default(),
            args.join(" ")
        )
    })
}

/// The source of an entry that a person has looked at.
pub(crate) fn confirmed_source(source: &str) -> &str {
    source.strip_prefix(GUESSED).unwrap_or(source)
}

fn npm_package(text: &str) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_str(text).ok()?;
    // Without `bin` there is nothing that `npx` could run.
    if manifest["private"] == true || manifest["bin"].is_null() {
        return None;
    }
    let name = manifest["name"].as_str()?;
    let is_name = name.len() <= 214
        && name.starts_with(|one: char| one.is_ascii_alphanumeric() || one == '@')
        && name
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "-._~@/".contains(one));
    is_name.then(|| name.to_owned())
}

fn python_package(text: &str) -> Option<String> {
    let manifest = toml::read(text).ok()?;
    let project = manifest.get("project")?;
    // Without a script there is nothing that `uvx` could run.
    project.get("scripts")?;
    let name = project.get("name")?.as_str()?;
    let is_name = name.len() <= 200
        && name.starts_with(|one: char| one.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "-._".contains(one));
    is_name.then(|| name.to_owned())
}
