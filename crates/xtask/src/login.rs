//! `cargo xtask login`: logins at a real authorization server, for real MCP servers, through the command line and a host.
//!
//! `oidc-provider` from npm guards one server, a second one is its own authorization server; both are `fastmcp` from
//! PyPI. A scripted person signs in and consents on the pages. What happened is read from the servers, not from Pillion.

mod person;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::browser::Say;
use crate::checks::Checks;
use crate::host::{self, Host, Setup};
use crate::install;
use crate::listening::Listening;
use person::Person;

#[derive(clap::Args)]
pub struct Arguments {}

/// What the tool of the MCP servers says to those who may see it.
const TODAY: &str = "seen with calendar:read";
/// The client that may ask what a token is worth.
const INTROSPECTOR: [(&str, &str); 2] = [
    ("INTROSPECTOR", "calendar"),
    ("INTROSPECTOR_SECRET", "known to nobody else"),
];
const LOGIN_NEEDED: i32 = 3;
const DENIED: i32 = 4;

/// What is started for the checks, and where.
struct Place {
    binary: PathBuf,
    node: PathBuf,
    provider: PathBuf,
    python: PathBuf,
    home: PathBuf,
}

impl Place {
    fn install() -> Result<Place> {
        let binary = install::pillion(install::Build::Debug)?;
        let folder = install::root().join("tests/login");
        let npm = install::npm(&folder, "login-npm")?;
        // The script finds the packages beside it.
        let provider = npm.join("provider.mjs");
        std::fs::copy(folder.join("provider.mjs"), &provider)?;
        let python = install::pip(&folder.join("requirements.txt"), "login-python")?.join("python");
        let home = install::target().canonicalize()?.join("login-run");
        if home.exists() {
            std::fs::remove_dir_all(&home)?;
        }
        std::fs::create_dir_all(&home)?;
        Ok(Place {
            binary,
            node: npm.join("node_modules/node/bin/node"),
            provider,
            python,
            home,
        })
    }

    fn provider(&self) -> Result<Listening> {
        let mut command = Command::new(&self.node);
        command.arg(&self.provider).envs(INTROSPECTOR);
        Listening::start(&mut command, &self.home.join("provider.log"))
    }

    /// An MCP server whose tokens that issuer gives out, else itself.
    fn server(&self, issuer: Option<&Listening>, log: &str) -> Result<Listening> {
        let mut command = Command::new(&self.python);
        command
            .arg(install::root().join("tests/login/server.py"))
            .envs(INTROSPECTOR);
        if let Some(issuer) = issuer {
            command.env("ISSUER", format!("http://127.0.0.1:{}", issuer.port));
        }
        Listening::start(&mut command, &self.home.join(log))
    }
}

pub fn run(_: &Arguments) -> Result<()> {
    let place = Place::install()?;
    let mut checks = Checks::new(None);
    behind_a_provider(&mut checks, &place);
    on_its_own(&mut checks, &place);
    checks.end("login")
}

/// `fastmcp` behind `oidc-provider`.
fn behind_a_provider(checks: &mut Checks, place: &Place) {
    let mut started = None;
    checks.check("oidc-provider and fastmcp start", || {
        let provider = place.provider()?;
        let server = place.server(Some(&provider), "server.log")?;
        let person = Person::new(&place.binary, &place.home.join("provider"), server.port)?;
        started = Some((provider, server, person));
        Ok(())
    });
    let Some((provider, _server, person)) = started else {
        return;
    };
    let events = || person::get(&provider, "/test/events");
    let count = |name: &str| -> Result<u64> { Ok(events()?[name].as_u64().unwrap_or(0)) };

    checks.check("a call wants a login", || person.is_refused());
    checks.check("debug shows what was discovered and changes nothing", || {
        let said = person.run(&["debug", "docs", "--json"], 0)?;
        let report: Value = serde_json::from_str(&said)?;
        let issuer = format!("http://127.0.0.1:{}", provider.port);
        ensure!(
            report["issuer"] == json!(issuer) && report["registration"] == "dynamic",
            "{report}"
        );
        ensure!(count("registration_create.success")? == 0, "{}", events()?);
        Ok(())
    });
    checks.check("a no on the page is a denial", || {
        person.log_in(Say::No, DENIED)?;
        ensure!(count("authorization.error")? == 1, "{}", events()?);
        person.is_refused()
    });
    checks.check("discovery, registration, sign-in, consent, PKCE", || {
        person.log_in(Say::Yes, 0)?;
        ensure!(count("registration_create.success")? == 2, "{}", events()?);
        ensure!(count("grant.success")? == 1, "{}", events()?);
        person.sees(TODAY)
    });
    checks.check(
        "an expired token is refreshed, and the refresh token rotated",
        || {
            for round in 1..=2 {
                let before = person.stored()?["refreshToken"].clone();
                person::post(&provider, "/test/expire")?;
                person.sees(TODAY)?;
                ensure!(
                    count("refresh_token.consumed")? == round,
                    "round {round}: {}",
                    events()?
                );
                ensure!(person.stored()?["refreshToken"] != before, "it was not rotated");
            }
            Ok(())
        },
    );
    checks.check("two processes refresh once", || {
        let before = count("refresh_token.consumed")?;
        person::post(&provider, "/test/expire")?;
        let (one, other) = (person.call()?, person.call()?);
        for call in [one, other] {
            let said = call.ended(0)?;
            ensure!(said.contains(TODAY), "{said}");
        }
        ensure!(count("refresh_token.consumed")? == before + 1, "{}", events()?);
        Ok(())
    });
    checks.check("a host uses the login and keeps it fresh", || {
        let home = person.home();
        let mut host = Host::open(&Setup {
            arguments: &[],
            binary: &place.binary,
            home,
            environment: Vec::new(),
        })?;
        let target = json!({ "directory": home, "server": "docs", "name": "today", "arguments": {} });
        for _ in 0..2 {
            let answer = host.request("mcp.tool.call", target.clone())?;
            ensure!(answer.to_string().contains(TODAY), "{answer}");
            person::post(&provider, "/test/expire")?;
        }
        host.close()
    });
    checks.check("a refresh token that was used before ends the login", || {
        let old = std::fs::read(person.store())?;
        person::post(&provider, "/test/expire")?;
        person.sees(TODAY)?;
        // As if somebody had copied the file.
        std::fs::write(person.store(), old)?;
        person::post(&provider, "/test/expire")?;
        person.is_refused()?;
        ensure!(count("grant.revoked")? == 1, "{}", events()?);
        ensure!(
            person.stored()?["refreshToken"].is_null(),
            "the token is still stored"
        );
        Ok(())
    });
    checks.check("a new login, which a running host takes up", || {
        let home = person.home();
        let mut host = host::Host::open(&Setup {
            arguments: &[],
            binary: &place.binary,
            home,
            environment: Vec::new(),
        })?;
        person.log_in(Say::Yes, 0)?;
        let answer = host.request("mcp.start", json!({ "directory": home, "server": "docs" }))?;
        ensure!(answer["server"]["auth"] == "authorized", "{answer}");
        person.run(&["logout", "docs"], 0)?;
        host.wait_for("logout", Duration::from_secs(10), |method, params| {
            method == "mcp.changed" && params["status"]["authStored"] == false
        })?;
        host.close()
    });
    checks.check("a logout revokes", || {
        ensure!(count("grant.revoked")? == 2, "{}", events()?);
        let listed: Value = serde_json::from_str(&person.run(&["auth", "list", "--json"], 0)?)?;
        ensure!(listed["credentials"] == json!([]), "{listed}");
        person.is_refused()
    });
    checks.check("a login after the logout", || {
        person.log_in(Say::Yes, 0)?;
        person.sees(TODAY)
    });
}

/// `fastmcp` as its own authorization server.
fn on_its_own(checks: &mut Checks, place: &Place) {
    let mut started = None;
    let log = "own.log";
    checks.check("fastmcp starts as its own authorization server", || {
        let server = place.server(None, log)?;
        let person = Person::new(&place.binary, &place.home.join("own"), server.port)?;
        started = Some((server, person));
        Ok(())
    });
    let Some((_server, person)) = started else {
        return;
    };
    let asked = |request: &str| -> Result<usize> {
        let log = std::fs::read_to_string(place.home.join(log))?;
        Ok(log.lines().filter(|line| line.contains(request)).count())
    };
    checks.check("fastmcp: login and call", || {
        person.is_refused()?;
        person.log_in(Say::Yes, 0)?;
        person.sees(TODAY)
    });
    checks.check("fastmcp: a token near its end is refreshed first", || {
        let before = expire(&person.store())?;
        person.sees(TODAY)?;
        ensure!(person.stored()?["refreshToken"] != before, "it was not rotated");
        ensure!(asked("POST /token")? == 2, "not one login and one refresh");
        Ok(())
    });
    checks.check("fastmcp: logout and login again", || {
        person.run(&["logout", "docs"], 0)?;
        ensure!(asked("POST /revoke HTTP/1.1\" 200")? == 1, "nothing was revoked");
        person.is_refused()?;
        person.log_in(Say::Yes, 0)?;
        person.sees(TODAY)
    });
}

/// Lets what is stored be over soon; answers the refresh token.
fn expire(store: &Path) -> Result<Value> {
    let mut document: Value = serde_json::from_slice(&std::fs::read(store)?)?;
    let servers = document["servers"].as_object_mut().context("no servers")?;
    let record = servers.values_mut().next().context("nothing is stored")?;
    record["expiresAt"] = json!(1);
    let token = record["refreshToken"].clone();
    std::fs::write(store, document.to_string())?;
    Ok(token)
}
