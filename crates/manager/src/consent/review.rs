//! What a person is shown of an entry: what would run or be reached, what it reads, what it loosens. Never a secret.

use std::collections::BTreeSet;
use std::path::Path;

use protocol::{
    Dir, Layer, LocalTarget, OauthSetting, Pointer, RemoteTarget, RemoteTransport, Review, ReviewReason,
    Revision, ServerEntry, ServerName, Target,
};
use serde_json::{Value, json};

use super::held::Held;
use super::{agreed, login, loosens, warnings};
use crate::config::{expand, file, secret};
use crate::limits;
use crate::server::launch;

/// Where the entry stands and why it is asked about.
pub(crate) struct Subject<'a> {
    pub directory: &'a Dir,
    pub name: &'a str,
    pub layer: Layer,
    pub base: &'a Path,
    pub why: ReviewReason,
    /// What belongs to it of a project's file.
    pub held: Option<&'a Held>,
    /// What the revision must cover besides the entry.
    pub state: Value,
}

/// Digest of everything that decides what is started and what it may read: what an approval or trust holds for.
///
/// What its tools are called and said to do counts too: it is the half of a definition that no server can be held to. So
/// do the guards of the entry, and what a person is told who is asked for a value.
pub(crate) fn digest(entry: &ServerEntry, held: Option<&Held>) -> String {
    let mut whole = vec![launch::relevant(entry), json!(entry.tls), json!(entry.account)];
    if let Some(overrides) = entry.tools.as_ref().and_then(|tools| tools.overrides.as_ref()) {
        whole.push(json!(overrides));
    }
    // Digests stand in files: members that few entries have must not make other ones of the rest.
    whole.extend(loosens::guards(entry).map(|guards| json!({ "guards": guards })));
    whole.extend(entry.inputs.as_ref().map(|inputs| json!({ "inputs": inputs })));
    // Without such a file it is the digest of the entry alone.
    whole.extend(held.map(|held| json!({ "envFile": held.digest() })));
    file::strong_digest(Value::from(whole).to_string().as_bytes())
}

/// The review of an entry; `stored` is what stands there now.
pub(crate) fn review(subject: &Subject<'_>, entry: &ServerEntry, stored: Option<&ServerEntry>) -> Review {
    let (masked, pointers) = secret::masked_to_decide(entry, stored);
    let keeps = kept(entry, stored);
    let differs = stored.filter(|stored| digest(stored, None) != digest(entry, None));
    let before = differs.map(|stored| drawn(&secret::masked(stored).0, subject.base));
    let changed = stored.map_or_else(Vec::new, |stored| agreed::changed(stored, entry));
    let revision = file::strong_digest(
        json!([
            subject.layer,
            subject.name,
            entry,
            stored.map(|stored| digest(stored, None)),
            subject.state,
            subject.held.map(Held::digest),
        ])
        .to_string()
        .as_bytes(),
    );
    Review {
        directory: subject.directory.clone(),
        server: ServerName::from(subject.name),
        layer: subject.layer,
        revision: Revision::from(revision),
        why: subject.why,
        requested_by: None,
        requested_at: None,
        expires_at: None,
        target: drawn(&masked, subject.base),
        before,
        changed,
        reads: reads(&masked),
        keeps: keeps.into_iter().map(Pointer::from).collect(),
        relaxes: loosens::of(&masked, stored, subject.layer),
        masked: pointers.into_iter().map(Pointer::from).collect(),
        enabled: entry.enabled != Some(false),
        warnings: warnings::of(entry, subject.layer, subject.base),
    }
}

/// Whether no review could show an entry of a project whole, with these faults.
pub(crate) fn is_too_long(
    name: &str,
    entry: &ServerEntry,
    faults: usize,
    (layer, base): (Layer, &Path),
) -> bool {
    // Most entries are far from it, and a review looks at the disk.
    if faults + length(entry) < limits::SHORT_ENTRY_BYTES {
        return false;
    }
    let subject = Subject {
        directory: &Dir::from(&*base.to_string_lossy()),
        name,
        layer,
        base,
        why: ReviewReason::Project,
        state: Value::Null,
        held: None,
    };
    faults + length(&review(&subject, entry, None)) > limits::REVIEW_BYTES - limits::REVIEW_NOTES_BYTES
}

/// The bytes of something as it is sent.
pub(crate) fn length(shown: &impl serde::Serialize) -> usize {
    serde_json::to_string(shown).map_or(usize::MAX, |text| text.len())
}

/// What would run or be reached, without secrets.
pub(crate) fn target(entry: &ServerEntry, base: &Path) -> Target {
    drawn(&secret::masked_to_decide(entry, None).0, base)
}

fn drawn(entry: &ServerEntry, base: &Path) -> Target {
    if let Some(url) = &entry.url {
        return Target::Remote(RemoteTarget {
            url: url.to_string(),
            transport: match entry.transport {
                None | Some(protocol::EntryTransport::Host) => RemoteTransport::Auto,
                Some(protocol::EntryTransport::Http) => RemoteTransport::Http,
                Some(protocol::EntryTransport::Sse) => RemoteTransport::Sse,
            },
            header_names: entry
                .headers
                .iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect(),
            headers_helper: entry.headers_helper.clone(),
            oauth: !matches!(entry.oauth, Some(OauthSetting::Off(_))),
            login_addresses: Some(login::addresses(entry)).filter(|addresses| !addresses.is_empty()),
        });
    }
    let cwd = entry
        .cwd
        .as_ref()
        .map_or_else(|| base.to_owned(), |cwd| base.join(&**cwd));
    Target::Local(LocalTarget {
        command: entry.command.clone().unwrap_or_default(),
        argv: entry.args.clone().unwrap_or_default(),
        env_names: entry.env.iter().flatten().map(|(name, _)| name.clone()).collect(),
        cwd: cwd.display().to_string(),
    })
}

/// Variables and files that the start of an entry would read, shown without its secrets.
fn reads(entry: &ServerEntry) -> Vec<String> {
    let mut reads = BTreeSet::new();
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    // No reference is replaced there.
    value["tools"] = Value::Null;
    expand::texts(&value, &mut |text| {
        for (name, _) in expand::references(text) {
            reads.insert(format!("${{{name}}}"));
        }
    });
    if let Some(path) = &entry.env_file {
        reads.insert(path.to_string());
    }
    if let Some(tls) = value["tls"].as_object() {
        reads.extend(tls.values().filter_map(Value::as_str).map(str::to_owned));
    }
    reads.into_iter().collect()
}

/// Secrets that stand in the file already and that the new command or URL would be given.
fn kept(entry: &ServerEntry, stored: Option<&ServerEntry>) -> Vec<String> {
    let Some(stored) = stored else { return Vec::new() };
    let (new, old) = (
        serde_json::to_value(entry).unwrap_or_default(),
        serde_json::to_value(stored).unwrap_or_default(),
    );
    secret::masked(entry)
        .1
        .into_iter()
        .filter(|pointer| new.pointer(pointer) == old.pointer(pointer))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(entry: Value, stored: Option<Value>) -> Review {
        let entry = serde_json::from_value(entry).unwrap();
        let stored: Option<ServerEntry> = stored.map(|stored| serde_json::from_value(stored).unwrap());
        let subject = Subject {
            directory: &Dir::from("/w"),
            name: "a",
            layer: Layer::User,
            base: Path::new("/home/me"),
            why: ReviewReason::Request,
            held: None,
            state: Value::Null,
        };
        review(&subject, &entry, stored.as_ref())
    }

    #[test]
    fn everything_that_is_read_is_named_and_no_value_shown() {
        let review = shown(
            json!({"command": "npx", "args": ["--token=tk-2", "${A}"], "env": {"X_KEY": "k-1", "Y": "${B:-d-3}"}, "envFile": "~/x.env"}),
            None,
        );
        assert_eq!(review.reads, ["${A}", "${B}", "~/x.env"]);
        let text = serde_json::to_string(&review).unwrap();
        for hidden in ["tk-2", "k-1", "d-3"] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }

    #[test]
    fn programs_that_are_asked_for_secrets_are_shown() {
        let review = shown(
            json!({"url": "https://h/mcp", "headersHelper": ["./print", "--token", "tk-4"],
                "headers": {"x-api-key": "${cmd:op read op://dev/key}", "x-token": "${keyring:a/b}${input:c}"}}),
            None,
        );
        assert_eq!(
            review.reads,
            ["${cmd:op read op://dev/key}", "${input:c}", "${keyring:a/b}"]
        );
        assert_eq!(
            review.warnings,
            [
                "runs `./print --token ********` at each start, for a secret",
                "runs `op read op://dev/key` at each start, for a secret"
            ]
        );
        assert!(!serde_json::to_string(&review).unwrap().contains("tk-4"));
    }

    #[test]
    fn a_stored_secret_that_goes_elsewhere_is_named() {
        let review = shown(
            json!({"url": "https://evil.example/mcp", "headers": {"x-api-key": "k-1", "x-other-key": "k-2"}}),
            Some(json!({"url": "https://good.example/mcp", "headers": {"x-api-key": "k-1"}})),
        );
        assert_eq!(review.keeps, [Pointer::from("/headers/x-api-key")]);
        assert!(matches!(review.before, Some(Target::Remote(target)) if target.url.contains("good")));
    }
}
