//! Packages of a `server.json`, as the command that fetches and runs them: `npx`, `uvx`, `docker` or `dnx`.
//!
//! Names and versions of packages are checked before they become arguments: one that begins with `-` would be an option.

use std::collections::BTreeMap;

use protocol::ServerEntry;
use serde_json::{Value, json};

use super::input::{Inputs, Wanted};
use super::{Way, list, member, runner, shown};
use crate::exchange::words::is_name;

pub(super) fn way(package: &Value) -> Result<Way, String> {
    let kind = member(package, "registryType").as_str().unwrap_or_default();
    let identifier = member(package, "identifier").as_str().unwrap_or_default();
    let transport = member(package, "transport")["type"].as_str().unwrap_or("stdio");
    let named = format!("`{}`", shown(identifier));
    if transport != "stdio" {
        return Err(format!(
            "{named} serves its clients over HTTP: start it yourself, then add its address"
        ));
    }
    let mut building = Building {
        inputs: Inputs::default(),
        args: Vec::new(),
        env: BTreeMap::new(),
        warnings: Vec::new(),
    };
    let (kind, command, rank) = match kind {
        "npm" => ("npm", building.npm(package, identifier)?, 0),
        "pypi" => ("pypi", building.pypi(package, identifier)?, 0),
        "oci" => ("oci", building.oci(package, identifier)?, 2),
        "nuget" => ("nuget", building.nuget(package, identifier)?, 2),
        "mcpb" => {
            return Err(format!(
                "{named} is a bundle: download it, then add the file (`pillion add FILE.mcpb`)"
            ));
        }
        "" => return Err(format!("nothing says where {named} comes from")),
        other => return Err(format!("packages of `{}` cannot be run here", shown(other))),
    };
    let mut warnings = building.warnings;
    warnings.extend(building.inputs.warnings());
    Ok(Way {
        kind,
        entry: ServerEntry {
            command: Some(command.to_owned()),
            args: Some(building.args),
            env: (!building.env.is_empty()).then_some(building.env),
            ..Default::default()
        },
        needs: building.inputs.needs,
        warnings,
        rank,
    })
}

struct Building {
    inputs: Inputs,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    warnings: Vec<String>,
}

impl Building {
    fn npm(&mut self, package: &Value, identifier: &str) -> Result<&'static str, String> {
        let part = |part: &str| {
            part.starts_with(|one: char| one.is_ascii_alphanumeric() || one == '~')
                && part
                    .chars()
                    .all(|one| one.is_ascii_alphanumeric() || "-._~".contains(one))
        };
        let is_fitting = match identifier.strip_prefix('@') {
            Some(scoped) => scoped
                .split_once('/')
                .is_some_and(|(scope, name)| part(scope) && part(name)),
            None => part(identifier),
        };
        named_fittingly("npm", identifier, is_fitting)?;
        from_registry(package, &["registry.npmjs.org"])?;
        let command = self.runtime(package, &["npx", "bunx"]);
        let pinned = pinned(self, identifier, package, "@")?;
        self.of_runtime(package, command)?;
        let asks_nothing = self.args.iter().any(|arg| arg == "-y" || arg == "--yes");
        if command == "npx" && !asks_nothing {
            self.args.insert(0, "-y".to_owned());
            self.moved();
        }
        self.args.push(pinned);
        self.arguments(list(package, "packageArguments"))?;
        self.variables(package)?;
        Ok(command)
    }

    fn pypi(&mut self, package: &Value, identifier: &str) -> Result<&'static str, String> {
        let is_fitting = identifier.starts_with(|one: char| one.is_ascii_alphanumeric())
            && identifier
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || "-._[],".contains(one));
        named_fittingly("PyPI", identifier, is_fitting)?;
        from_registry(package, &["pypi.org"])?;
        let command = self.runtime(package, &["uvx"]);
        let pinned = pinned(self, identifier, package, "@")?;
        self.of_runtime(package, command)?;
        self.args.push(pinned);
        self.arguments(list(package, "packageArguments"))?;
        self.variables(package)?;
        Ok(command)
    }

    fn oci(&mut self, package: &Value, identifier: &str) -> Result<&'static str, String> {
        let is_fitting = identifier.starts_with(|one: char| one.is_ascii_lowercase() || one.is_ascii_digit())
            && identifier
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || "-._/:@".contains(one));
        named_fittingly("container images", identifier, is_fitting)?;
        let mut image = identifier.to_owned();
        let host = registry_host(package)?;
        let has_host = identifier
            .split_once('/')
            .is_some_and(|(first, _)| first.contains(['.', ':']) || first == "localhost");
        if let Some(host) = host.filter(|host| !has_host && !host.ends_with("docker.io")) {
            image = format!("{host}/{image}");
        }
        let last = image.rsplit('/').next().unwrap_or_default();
        if !last.contains([':', '@']) {
            image = pinned(self, &image, package, ":")?;
        }
        let command = self.runtime(package, &["docker", "podman"]);
        for word in ["run", "-i", "--rm"] {
            self.args.push(word.to_owned());
        }
        self.of_runtime(package, command)?;
        // Given by name: values stay out of the command line, where every user of the machine could read them.
        for variable in list(package, "environmentVariables") {
            let name = member(variable, "name").as_str().unwrap_or_default();
            if !is_name(name) {
                return Err("one of its variables has no name that a container can take".to_owned());
            }
            self.by_name(name);
        }
        self.args.push(image);
        self.arguments(list(package, "packageArguments"))?;
        self.variables(package)?;
        Ok(command)
    }

    fn nuget(&mut self, package: &Value, identifier: &str) -> Result<&'static str, String> {
        let is_fitting = identifier.starts_with(|one: char| one.is_ascii_alphanumeric())
            && identifier
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || "-._".contains(one));
        named_fittingly("NuGet", identifier, is_fitting)?;
        from_registry(package, &["api.nuget.org", "nuget.org", "www.nuget.org"])?;
        let command = self.runtime(package, &["dnx"]);
        let pinned = pinned(self, identifier, package, "@")?;
        self.args.push(pinned);
        self.args.push("--yes".to_owned());
        self.of_runtime(package, command)?;
        let own = list(package, "packageArguments");
        if !own.is_empty() {
            self.args.push("--".to_owned());
            self.arguments(own)?;
        }
        self.variables(package)?;
        Ok(command)
    }

    /// The program that the description wants, if it is one of those that fit; a stranger names no other.
    fn runtime(&mut self, package: &Value, known: &[&'static str]) -> &'static str {
        match member(package, "runtimeHint").as_str() {
            None | Some("") => known[0],
            Some(hint) => known
                .iter()
                .find(|known| **known == hint)
                .copied()
                .unwrap_or_else(|| {
                    self.warnings.push(format!(
                        "its description wants to be run with `{}`; `{}` is taken instead",
                        shown(hint),
                        known[0]
                    ));
                    known[0]
                }),
        }
    }

    /// What the program itself is told: nothing that would change which package it runs.
    fn of_runtime(&mut self, package: &Value, command: &str) -> Result<(), String> {
        let first = self.args.len();
        for argument in list(package, "runtimeArguments") {
            let is_container = matches!(command, "docker" | "podman");
            if !(is_container && self.variable_of_container(argument)?) {
                self.argument(argument)?;
            }
        }
        let words = self.args.split_off(first);
        let kept = runner::kept(command, words, std::mem::take(&mut self.inputs.needs), first);
        self.args.extend(kept.words);
        self.inputs.needs = kept.needs;
        self.warnings.extend(kept.warnings);
        Ok(())
    }

    /// Arguments in their order.
    fn arguments(&mut self, arguments: &[Value]) -> Result<(), String> {
        arguments.iter().try_for_each(|argument| self.argument(argument))
    }

    fn argument(&mut self, argument: &Value) -> Result<(), String> {
        match argument["type"].as_str() {
            Some("named") => self.named(argument),
            _ => self.positional(argument),
        }
    }

    fn positional(&mut self, argument: &Value) -> Result<(), String> {
        let hint = member(argument, "valueHint")
            .as_str()
            .or(argument["name"].as_str());
        let name = hint.unwrap_or("argument").to_owned();
        let at = format!("/args/{}", self.args.len());
        if let Wanted::Text(text) = self.inputs.argument(argument, &name, &at)? {
            self.args.push(text);
        }
        Ok(())
    }

    fn named(&mut self, argument: &Value) -> Result<(), String> {
        let Some(name) = argument["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err("one of its arguments has no name".to_owned());
        };
        if name.contains('\0') || name.contains("${") {
            return Err("one of its arguments has a name that cannot be used".to_owned());
        }
        let is_bare = [
            "value",
            "default",
            "description",
            "choices",
            "isRequired",
            "format",
            "placeholder",
        ]
        .iter()
        .all(|member_name| member(argument, member_name).is_null());
        if is_bare {
            self.args.push(name.to_owned());
            return Ok(());
        }
        if let Some(stem) = name.strip_suffix('=') {
            let at = format!("/args/{}", self.args.len());
            if let Wanted::Text(text) = self.inputs.argument(argument, stem, &at)? {
                // The value is asked for alone: only a hole can stand behind the sign.
                let is_given = self
                    .inputs
                    .needs
                    .last()
                    .is_some_and(|need| *need.at == *at && need.default.is_some());
                if is_given {
                    self.inputs.needs.pop();
                }
                self.args.push(format!("{name}{text}"));
            }
            return Ok(());
        }
        let at = format!("/args/{}", self.args.len() + 1);
        if let Wanted::Text(text) = self.inputs.argument(argument, name, &at)? {
            self.args.push(name.to_owned());
            self.args.push(text);
        }
        Ok(())
    }

    /// `-e NAME=VALUE` of a container as a variable of the entry.
    fn variable_of_container(&mut self, argument: &Value) -> Result<bool, String> {
        let is_env = matches!(argument["name"].as_str(), Some("-e" | "--env"));
        let assigned = argument["value"].as_str().and_then(|value| value.split_once('='));
        let Some((name, value)) = assigned.filter(|(name, _)| is_env && is_name(name)) else {
            return Ok(false);
        };
        let mut variable = argument.clone();
        variable["name"] = json!(name);
        variable["value"] = json!(value);
        self.inputs.named_value("env", &variable, &mut self.env)?;
        self.by_name(name);
        Ok(true)
    }

    fn by_name(&mut self, name: &str) {
        if !self
            .args
            .windows(2)
            .any(|pair| pair[0] == "-e" && pair[1] == name)
        {
            self.args.push("-e".to_owned());
            self.args.push(name.to_owned());
        }
    }

    fn variables(&mut self, package: &Value) -> Result<(), String> {
        for variable in list(package, "environmentVariables") {
            self.inputs.named_value("env", variable, &mut self.env)?;
        }
        Ok(())
    }

    /// An argument was put in front: what is asked for stands one place further on.
    fn moved(&mut self) {
        for need in &mut self.inputs.needs {
            if let Some(index) = need
                .at
                .strip_prefix("/args/")
                .and_then(|index| index.parse::<usize>().ok())
            {
                need.at = format!("/args/{}", index + 1).into();
            }
        }
    }
}

fn named_fittingly(whose: &str, identifier: &str, is_fitting: bool) -> Result<(), String> {
    if is_fitting && identifier.len() <= 300 {
        return Ok(());
    }
    Err(format!("`{}` is no name of {whose}", shown(identifier)))
}

/// The package with its version; without one, whatever is newest runs.
fn pinned(building: &mut Building, identifier: &str, package: &Value, sign: &str) -> Result<String, String> {
    let version = member(package, "version").as_str().unwrap_or_default();
    if version.is_empty() || version == "latest" {
        building
            .warnings
            .push("it names no version: the newest one is run".to_owned());
        return Ok(identifier.to_owned());
    }
    let is_version = version.starts_with(|one: char| one.is_ascii_alphanumeric())
        && version.len() <= 128
        && version
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || ".-+_!".contains(one));
    if !is_version {
        return Err(format!(
            "`{}` is no version of `{}`",
            shown(version),
            shown(identifier)
        ));
    }
    Ok(format!("{identifier}{sign}{version}"))
}

fn registry_host(package: &Value) -> Result<Option<String>, String> {
    let Some(base) = member(package, "registryBaseUrl")
        .as_str()
        .filter(|base| !base.is_empty())
    else {
        return Ok(None);
    };
    let host = url::Url::parse(base).ok().and_then(|url| {
        let host = url.host_str()?.to_owned();
        (url.scheme() == "https").then_some(host)
    });
    host.map(Some)
        .ok_or_else(|| format!("`{}` is no package registry", shown(base)))
}

/// Packages are taken from the public registries only: another one could hold anything under a known name.
fn from_registry(package: &Value, known: &[&str]) -> Result<(), String> {
    match registry_host(package)? {
        Some(host) if !known.contains(&host.as_str()) => Err(format!(
            "its package comes from {host}, which is not the public registry"
        )),
        _ => Ok(()),
    }
}
