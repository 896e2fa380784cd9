//! `pillion doctor`: what could keep servers from working, by area, and repairs after a look at them.

use protocol::{Area, CheckLevel, Finding, McpDoctor, McpDoctorResult, Repair, methods};

use super::exit::Exit;
use super::failure::Failure;
use super::hint;
use super::output;
use super::session::{Common, Session, checked};
use super::terminal::{Paint, one_line};

/// Look for what could keep servers from working; starts none of them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The exit code is 1 while an error is found; docs/doctor.md lists the codes in brackets."
)]
pub struct Args {
    /// Only what concerns this server
    server: Option<String>,
    /// Try every enabled server too, at most 20 seconds each
    #[arg(long)]
    start: bool,
    /// Repair what can be repaired safely, after showing it
    #[arg(long)]
    fix: bool,
    /// Do not ask before repairs
    #[arg(long, short, requires = "fix")]
    yes: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Result<Exit, Failure> {
    let mut result = examine(args, session, None).await?;
    if args.fix && !session.json {
        show(&result, session)?;
    }
    let repairs: Vec<&Repair> = result
        .checks
        .iter()
        .filter_map(|check| check.repair.as_ref())
        .collect();
    if args.fix && !repairs.is_empty() {
        for repair in &repairs {
            eprintln!("would {}", one_line(&repair.message));
        }
        let agreed = args.yes || session.confirm("Do that?", "`--yes` carries it out").await? == Some(true);
        if agreed {
            let ids = repairs.iter().map(|repair| repair.id.clone()).collect();
            result = examine(args, session, Some(ids)).await?;
            for check in &result.checks {
                let Some(repair) = &check.repair else { continue };
                match check.repaired {
                    Some(true) => eprintln!("done: {}", one_line(&repair.message)),
                    Some(false) => {
                        let why = check.evidence.last().map_or("", String::as_str);
                        eprintln!("not done: {}: {}", one_line(&repair.message), one_line(why));
                    }
                    None => {}
                }
            }
        } else {
            eprintln!("Nothing was changed");
        }
    }
    if session.json {
        output::json(&result)?;
    } else if !args.fix {
        show(&result, session)?;
    }
    let open = |check: &&Finding| check.level == CheckLevel::Error && check.repaired != Some(true);
    Ok(match result.checks.iter().any(|check| open(&check)) {
        true => Exit::Failed,
        false => Exit::Done,
    })
}

async fn examine(
    args: &Args,
    session: &Session,
    repair: Option<Vec<String>>,
) -> Result<McpDoctorResult, Failure> {
    let params = McpDoctor {
        directory: session.directory.clone(),
        server: args.server.as_deref().map(Into::into),
        start: args.start.then_some(true),
        repair,
        work_done_token: session.token(),
    };
    let work = session
        .manager
        .doctor(&session.request, checked::<methods::Doctor>(params)?);
    Ok(session.work("Looking", work).await?)
}

/// The areas in the order in which they are shown.
const AREAS: [(Area, &str); 8] = [
    (Area::Runtime, "Runtimes"),
    (Area::Cache, "Caches"),
    (Area::Network, "Network"),
    (Area::File, "Files"),
    (Area::Clock, "Clock"),
    (Area::Login, "Logins"),
    (Area::Server, "Servers"),
    (Area::Tool, "Tools"),
];

fn show(result: &McpDoctorResult, session: &Session) -> Result<(), Failure> {
    let paint = session.terminal.on_stdout();
    let width = output::width(session.terminal);
    let mut text = String::new();
    for (area, title) in AREAS {
        let checks: Vec<&Finding> = result.checks.iter().filter(|check| check.area == area).collect();
        if !checks.is_empty() {
            text.push_str(&format!("{}\n", paint.bold(title)));
            text.push_str(&section(&checks, paint, width));
        }
    }
    output::line(text.trim_end())?;
    eprintln!("{}", summary(&result.checks));
    Ok(())
}

/// What is there on one line, then what is wrong, each with what shows it and what to do.
fn section(checks: &[&Finding], paint: Paint, width: Option<usize>) -> String {
    let mut text = String::new();
    let mut add = |mark: &str, painted: &str, line: &str| {
        let lines = output::wrapped(line, width.map(|width| width.saturating_sub(11)));
        for (index, line) in lines.iter().enumerate() {
            if index == 0 && !mark.is_empty() {
                text.push_str(&format!("  {painted}{:pad$}{line}\n", "", pad = 9 - mark.len()));
            } else {
                text.push_str(&format!("{:11}{line}\n", ""));
            }
        }
    };
    let facts = checks.iter().filter(|check| check.level == CheckLevel::Ok);
    let facts: Vec<String> = facts.map(|check| one_line(&check.message)).collect();
    if !facts.is_empty() {
        add("ok", &paint.green("ok"), &facts.join(", "));
    }
    for check in checks {
        let painted = match check.level {
            CheckLevel::Ok => continue,
            CheckLevel::Warning => paint.yellow("warning"),
            CheckLevel::Error => paint.red("error"),
        };
        let mark = check.level.as_str();
        add(
            mark,
            &painted,
            &format!("{} [{}]", one_line(&check.message), check.id),
        );
        for evidence in &check.evidence {
            add("", "", &paint.dim(&one_line(evidence)));
        }
        if let Some(hint) = &check.hint {
            let typed = hint::typed(hint, check.server.as_deref());
            add("", "", &format!("{} {}", paint.cyan("hint:"), one_line(&typed)));
        }
        if let Some(repair) = &check.repair {
            add(
                "",
                "",
                &format!("{} {}", paint.cyan("--fix would"), one_line(&repair.message)),
            );
        }
    }
    text
}

fn summary(checks: &[Finding]) -> String {
    let count = |level: CheckLevel| checks.iter().filter(|check| check.level == level).count();
    let (errors, warnings) = (count(CheckLevel::Error), count(CheckLevel::Warning));
    let noun = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    };
    let repairs = checks.iter().filter(|check| check.repair.is_some()).count();
    let repairs = match repairs {
        0 => String::new(),
        _ => format!("; `pillion doctor --fix` repairs {repairs}"),
    };
    match (errors, warnings) {
        (0, 0) => "Nothing is wrong".to_owned(),
        (0, _) => format!("{}{repairs}", noun(warnings, "warning")),
        (_, 0) => format!("{}{repairs}", noun(errors, "error")),
        _ => format!(
            "{}, {}{repairs}",
            noun(errors, "error"),
            noun(warnings, "warning")
        ),
    }
}
