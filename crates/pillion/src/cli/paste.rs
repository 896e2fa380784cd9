//! `pillion add --paste`: shows what a pasted text would run or reach, asks, and writes it.

use protocol::{McpParse, methods};

use super::draft::{self, Wanted};
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::session::{Session, checked};

pub async fn run(text: &str, wanted: &Wanted<'_>, session: &Session) -> Result<Exit, Failure> {
    let text = if text == "-" {
        super::import::stdin()?
    } else {
        text.to_owned()
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("nothing was pasted").hint(
            "give a command, an address, an install link or a configuration, or - to read it from stdin",
        ));
    }
    let params = McpParse {
        directory: session.directory.clone(),
        text,
    };
    let parsed = session
        .manager
        .parse(&session.request, checked::<methods::Parse>(params)?)
        .await?;
    session.warn(&parsed.problems);
    if parsed.drafts.is_empty() {
        return Err(Failure::usage("nothing in the text can be added"));
    }
    if wanted.name.is_some() && parsed.drafts.len() > 1 {
        return Err(Failure::usage(
            "the text holds several servers, and a name fits one only",
        ));
    }
    let mut written = Vec::with_capacity(parsed.drafts.len());
    for draft in &parsed.drafts {
        written.extend(draft::add(draft, wanted, session).await?);
    }
    if session.json {
        match written.as_slice() {
            [one] if parsed.drafts.len() == 1 => output::json(one)?,
            several => output::json(&several)?,
        }
    }
    Ok(draft::exit(!written.is_empty()))
}
