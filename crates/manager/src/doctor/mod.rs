//! What could keep servers from working, found without starting one: every look is bounded in time, all run at once.
//!
//! A finding has a stable code (`code`), what shows it, and, where that is safe, a repair (`repair`).

mod caches;
mod code;
mod entries;
mod network;
mod offers;
mod own_files;
mod repair;
mod runtimes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use protocol::{Finding, Repair, ServerName};

use crate::config::file::ConfigFile;
use crate::config::members::Unknown;
use crate::core::Core;
use crate::limits;
use crate::progress::Work;
use crate::server::Server;
use code::Code;
use repair::Fix;

/// What is looked at.
pub(crate) struct Ground {
    pub core: Arc<Core>,
    /// All servers of the directory, shadowed ones too.
    pub visible: Vec<Arc<Server>>,
    /// Those that count: one per name.
    pub effective: Vec<Arc<Server>>,
    pub files: Vec<ConfigFile>,
    /// Members that we do not know, by place in `visible`.
    pub unknown: Vec<Vec<Unknown>>,
    /// Only what concerns this server.
    pub only: Option<ServerName>,
    /// Whether servers are tried.
    pub start: bool,
}

impl Ground {
    fn concerns(&self, server: &Server) -> bool {
        self.only.as_ref().is_none_or(|only| *only == server.name)
    }

    /// The servers that would be started.
    fn enabled(&self) -> impl Iterator<Item = &Arc<Server>> {
        let enabled = self.effective.iter().filter(|server| server.is_enabled());
        enabled.filter(|server| self.concerns(server))
    }
}

/// A finding, and what would repair it.
pub(crate) struct Found {
    finding: Finding,
    fix: Option<Fix>,
}

impl Found {
    fn new(code: Code, message: impl Into<String>) -> Found {
        Found {
            finding: Finding {
                id: code.as_str().to_owned(),
                area: code.area(),
                server: None,
                level: code.level(),
                message: message.into(),
                evidence: Vec::new(),
                hint: None,
                repair: None,
                repaired: None,
            },
            fix: None,
        }
    }

    fn of(mut self, server: &Server) -> Found {
        self.finding.server = Some(server.name.clone());
        self
    }

    fn shown_by(mut self, evidence: impl IntoIterator<Item = String>) -> Found {
        self.finding.evidence.extend(evidence);
        self.finding.evidence.truncate(limits::EVIDENCE);
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Found {
        self.finding.hint = Some(hint.into());
        self
    }

    fn fix(mut self, fix: Fix) -> Found {
        self.finding.repair = Some(Repair {
            id: format!("{}:{}", self.finding.id, fix.path().display()),
            message: fix.message(),
        });
        self.fix = Some(fix);
        self
    }
}

/// Looks at everything. `repairs` are carried out where they are still due.
pub(crate) async fn examine(ground: Ground, repairs: &[String], work: &Work<'_>) -> Vec<Finding> {
    let ground = Arc::new(ground);
    let longest = if ground.start {
        limits::TRIAL + limits::DOCTOR
    } else {
        limits::DOCTOR
    };
    let looks: [(&str, BoxFuture<'_, Vec<Found>>); 6] = [
        ("runtimes", runtimes::look(&ground).boxed()),
        ("caches", blocking(&ground, caches::look).boxed()),
        ("network", network::look(&ground).boxed()),
        ("files", blocking(&ground, own_files::look).boxed()),
        ("servers", entries::look(&ground).boxed()),
        ("tools and logins", offers::look(&ground).boxed()),
    ];
    let looks = looks.map(|(name, look)| bounded(name, look, longest, work));
    let mut found: Vec<Found> = join_all(looks).await.into_iter().flatten().collect();
    for one in &mut found {
        let is_wanted = |repair: &Repair| repairs.contains(&repair.id);
        if let (Some(fix), true) = (&one.fix, one.finding.repair.as_ref().is_some_and(is_wanted)) {
            let fix = fix.clone();
            let done = tokio::task::spawn_blocking(move || fix.apply()).await;
            let failed = match done {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            one.finding.repaired = Some(failed.is_none());
            one.finding
                .evidence
                .extend(failed.map(|why| format!("the repair failed: {why}")));
        }
    }
    found
        .into_iter()
        .map(|one| veiled(&ground, one.finding))
        .collect()
}

/// A finding without what references of its server stood for.
fn veiled(ground: &Ground, mut finding: Finding) -> Finding {
    let of_server = |server: &&Arc<Server>| finding.server.as_ref() == Some(&server.name);
    for server in ground
        .visible
        .iter()
        .filter(of_server)
        .cloned()
        .collect::<Vec<_>>()
    {
        let veil = server.veil();
        finding.message = veil.text(&finding.message);
        for text in finding.evidence.iter_mut().chain(&mut finding.hint) {
            *text = veil.text(text);
        }
    }
    finding
}

async fn bounded(
    name: &str,
    look: BoxFuture<'_, Vec<Found>>,
    longest: Duration,
    work: &Work<'_>,
) -> Vec<Found> {
    let found = tokio::time::timeout(longest, look).await;
    work.message(&format!("looked at {name}"));
    found.unwrap_or_else(|_| {
        let message = format!("looking at {name} took longer than {} s", longest.as_secs());
        vec![Found::new(Code::CheckLate, message)]
    })
}

/// A look that blocks on the disk.
async fn blocking(ground: &Arc<Ground>, look: fn(&Ground) -> Vec<Found>) -> Vec<Found> {
    let ground = Arc::clone(ground);
    // A panic there costs the findings of one area, not the answer.
    tokio::task::spawn_blocking(move || look(&ground))
        .await
        .unwrap_or_default()
}

fn shown(path: &std::path::Path) -> String {
    path.display().to_string()
}

/// The user's folder of caches, as the platform's programs take it.
fn cache_folder(core: &Core) -> PathBuf {
    let set = core.env.variable_os("XDG_CACHE_HOME").map(PathBuf::from);
    set.filter(|path| path.is_absolute())
        .unwrap_or_else(|| core.env.home().join(".cache"))
}
