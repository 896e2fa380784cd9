//! Whatever a `server.json` says: an entry that is valid and harmless, or a reason.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(package: Value, command: &str, args: &[&str]) {
    let read = read(&json!({"name": "io.github.me/x-mcp", "version": "1", "packages": [package]}));
    let way = read.ways.first().unwrap_or_else(|| panic!("{:?}", read.refused));
    assert_eq!(way.entry.command.as_deref(), Some(command));
    assert_eq!(way.entry.args.as_deref().unwrap_or_default(), args);
}

#[track_caller]
fn refuses(package: Value, why: &str) {
    let read = read(&json!({"name": "io.github.me/x-mcp", "version": "1", "packages": [package]}));
    assert!(read.ways.is_empty(), "{:?}", read.ways);
    assert!(read.refused.join(" ").contains(why), "{:?}", read.refused);
}

#[test]
fn packages_become_commands() {
    check(
        json!({"registryType": "pypi", "identifier": "x-mcp", "version": "1.0", "runtimeHint": "uvx",
            "runtimeArguments": [{"type": "named", "name": "--python", "value": "3.12"}]}),
        "uvx",
        &["--python", "3.12", "x-mcp@1.0"],
    );
    // The older spelling, and a runtime that nobody may choose.
    check(
        json!({"registry_type": "npm", "identifier": "@me/x", "version": "2.0.0", "runtime_hint": "bash",
            "package_arguments": [{"type": "positional", "value": "a b; rm -rf ~"}]}),
        "npx",
        &["-y", "@me/x@2.0.0", "a b; rm -rf ~"],
    );
    check(
        json!({"registryType": "oci", "identifier": "ghcr.io/me/x", "version": "1",
            "runtimeArguments": [
                {"type": "named", "name": "-e", "value": "MODE={mode}", "isRequired": true,
                    "variables": {"mode": {"default": "safe"}}},
                {"type": "named", "name": "--mount", "isRequired": true,
                    "value": "type=bind,src={source},dst=/project", "variables": {"source": {"isRequired": true}}}],
            "environmentVariables": [{"name": "KEY", "isSecret": true, "isRequired": true}]}),
        "docker",
        &[
            "run",
            "-i",
            "--rm",
            "-e",
            "MODE",
            "--mount",
            "type=bind,src=${input:source},dst=/project",
            "-e",
            "KEY",
            "ghcr.io/me/x:1",
        ],
    );
    check(
        json!({"registryType": "nuget", "identifier": "Me.X", "version": "0.4.0-beta",
            "packageArguments": [{"type": "positional", "value": "mcp"}]}),
        "dnx",
        &["Me.X@0.4.0-beta", "--yes", "--", "mcp"],
    );
}

/// What its runner is told: the words that stay, and what a person hears of them.
#[track_caller]
fn is_told(kind: &str, runtime: &[&str], words: &[&str], warnings: &[&str]) {
    let arguments: Vec<Value> = runtime
        .iter()
        .map(|word| json!({"type": "positional", "value": word}))
        .collect();
    let read = read(&json!({"name": "io.github.me/x-mcp", "packages": [
        {"registryType": kind, "identifier": "good", "version": "1", "runtimeArguments": arguments,
            "packageArguments": [{"type": "positional", "value": "evil"}]}]}));
    let way = read.ways.first().unwrap_or_else(|| panic!("{:?}", read.refused));
    assert_eq!(
        way.entry.args.as_deref().unwrap_or_default(),
        words,
        "{runtime:?}"
    );
    let said: Vec<&String> = way.warnings.iter().collect();
    assert_eq!(said.len(), warnings.len(), "{runtime:?} {said:?}");
    for (said, expected) in said.iter().zip(warnings) {
        assert!(said.contains(expected), "{runtime:?} {said}");
    }
}

#[test]
fn the_package_stays_the_one_that_is_named() {
    let npx = |runtime: &[&str], kept: &[&str], warnings: &[&str]| {
        let words: Vec<&str> = kept.iter().copied().chain(["good@1", "evil"]).collect();
        is_told("npm", runtime, &words, warnings);
    };
    npx(
        &["--yes", "--prefer-offline"],
        &["--yes", "--prefer-offline"],
        &[],
    );
    npx(
        &["-y", "--loglevel", "silent"],
        &["-y", "--loglevel", "silent"],
        &[],
    );
    npx(&["evil"], &["-y"], &["`evil` is left out"]);
    npx(
        &["-y", "--", "evil"],
        &["-y"],
        &["`--` is left out", "`evil` is left out"],
    );
    npx(
        &["-c", "touch x"],
        &["-y"],
        &["`-c` is left out", "`touch x` is left out"],
    );
    npx(
        &["-p", "evil"],
        &["-y"],
        &["`-p` is left out", "`evil` is left out"],
    );
    npx(&["--package", "evil"], &["-y"], &["`--package` is left out"]);
    npx(&["--package=evil"], &["-y"], &["`--package=evil` is left out"]);
    npx(&["--pack=evil"], &["-y"], &["`--pack=evil` is left out"]);
    npx(&["--cal", "touch x"], &["-y"], &["`--cal` is left out"]);
    // An option at the end would take the package for its value, and the next word for the package.
    npx(&["--registry"], &["-y"], &["`--registry` is left out"]);
    npx(&["--node-options"], &["-y"], &["`--node-options` is left out"]);
    npx(&["--registry", "-y"], &["-y"], &["`--registry` is left out"]);
    npx(
        &["--registry", "http://evil"],
        &["-y", "--registry=http://evil"],
        &["`npx` is started with `--registry=http://evil`"],
    );
    npx(
        &["--node-options=--require=./x"],
        &["-y", "--node-options=--require=./x"],
        &["`npx` is started with `--node-options=--require=./x`"],
    );
    let uvx = |runtime: &[&str], kept: &[&str], warnings: &[&str]| {
        let words: Vec<&str> = kept.iter().copied().chain(["good@1", "evil"]).collect();
        is_told("pypi", runtime, &words, warnings);
    };
    uvx(
        &["--python", ">=3.11", "--isolated"],
        &["--python", ">=3.11", "--isolated"],
        &[],
    );
    uvx(&["-p", "cpython@3.12"], &["-p", "cpython@3.12"], &[]);
    uvx(
        &["--python", "./evil"],
        &["--python", "./evil"],
        &["`--python ./evil`"],
    );
    uvx(&["--python=evil"], &["--python=evil"], &["`--python=evil`"]);
    uvx(&["--from", "git+https://h/evil"], &[], &["`--from` is left out"]);
    uvx(
        &["--with", "evil"],
        &["--with=evil"],
        &["`uvx` is started with `--with=evil`"],
    );
    uvx(
        &["--index-url=http://evil"],
        &["--index-url=http://evil"],
        &["--index-url"],
    );
    uvx(&["--quiet", "evil"], &["--quiet"], &["`evil` is left out"]);
    let docker = |runtime: &[&str], kept: &[&str], warnings: &[&str]| {
        let words: Vec<&str> = ["run", "-i", "--rm"]
            .iter()
            .chain(kept)
            .copied()
            .chain(["good:1", "evil"])
            .collect();
        is_told("oci", runtime, &words, warnings);
    };
    docker(&["--name", "x", "-it"], &["--name", "x", "-it"], &[]);
    docker(&["evil"], &[], &["`evil` is left out"]);
    docker(&["--rm", "evil"], &["--rm"], &["`evil` is left out"]);
    docker(&["--name"], &[], &["`--name` is left out"]);
    docker(&["-itv"], &[], &["`-itv` is left out"]);
    docker(
        &["-v", "/:/host", "--privileged"],
        &["-v", "/:/host", "--privileged"],
        &["the container is started with `-v /:/host`", "`--privileged`"],
    );
    docker(&["--new-option", "x"], &["--new-option=x"], &["`--new-option=x`"]);
}

#[test]
fn what_is_asked_for_follows_its_word() {
    let read = read(&json!({"name": "io.github.me/x-mcp", "packages": [
        {"registryType": "npm", "identifier": "good", "version": "1", "runtimeArguments": [
            {"type": "positional", "valueHint": "other", "isRequired": true},
            {"type": "named", "name": "--registry", "value": "https://{host}/", "isRequired": true,
                "variables": {"host": {"isRequired": true}}},
            {"type": "named", "name": "--loglevel", "isRequired": true, "description": "how much"}]}]}));
    let way = &read.ways[0];
    assert_eq!(
        way.entry.args.as_deref().unwrap_or_default(),
        [
            "-y",
            "--registry=https://${input:host}/",
            "--loglevel",
            "${input:loglevel}",
            "good@1"
        ]
    );
    let needs: Vec<(&str, &str)> = way
        .needs
        .iter()
        .map(|need| (&*need.at, need.label.as_str()))
        .collect();
    assert_eq!(needs, [("/args/1", "host"), ("/args/3", "loglevel")]);
}

#[test]
fn what_cannot_be_run_has_a_reason() {
    refuses(
        json!({"registryType": "npm", "identifier": "--call=sh"}),
        "no name of npm",
    );
    refuses(
        json!({"registryType": "npm", "identifier": "git+ssh://h/x"}),
        "no name of npm",
    );
    refuses(
        json!({"registryType": "npm", "identifier": "x", "version": "--call"}),
        "no version",
    );
    refuses(
        json!({"registryType": "oci", "identifier": "-v=/:/host"}),
        "no name of container images",
    );
    refuses(
        json!({"registryType": "cargo", "identifier": "x"}),
        "`cargo` cannot be run",
    );
    refuses(
        json!({"registryType": "mcpb", "identifier": "https://h/x.mcpb"}),
        "bundle",
    );
    refuses(
        json!({"registryType": "npm", "identifier": "x", "registryBaseUrl": "https://npm.example.com"}),
        "npm.example.com",
    );
    refuses(
        json!({"registryType": "npm", "identifier": "x",
            "packageArguments": [{"type": "positional", "value": "--key=${AWS_SECRET_ACCESS_KEY}"}]}),
        "would read a variable",
    );
    // A reference put together from pieces is one all the same.
    refuses(
        json!({"registryType": "npm", "identifier": "x", "environmentVariables": [
            {"name": "A", "isRequired": true, "value": "${a}", "variables": {"a": {"value": "{HOME}"}}}]}),
        "would read a variable",
    );
    refuses(
        json!({"registryType": "npm", "identifier": "x", "transport": {"type": "streamable-http", "url": "http://localhost:1/"}}),
        "over HTTP",
    );
}

/// Values as a stranger might write them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,6}",
        Just("${HOME}".to_owned()),
        Just("{a}${b}{c".to_owned()),
        Just("$(rm -rf ~)`x`; | & \" '".to_owned()),
        Just("-y\u{0}\n\u{202e}".to_owned()),
        Just("https://{a}.example.com/{b}".to_owned()),
        ".{0,12}",
    ]
}

fn input() -> impl Strategy<Value = Value> {
    let flag = any::<Option<bool>>();
    (
        proptest::option::of(text()),
        proptest::option::of(text()),
        text(),
        flag,
        any::<Option<bool>>(),
        proptest::collection::btree_map(
            "[abc]",
            (proptest::option::of(text()), any::<bool>(), any::<bool>()),
            0..3,
        ),
        prop_oneof![Just("named"), Just("positional"), Just("odd")],
    )
        .prop_map(|(value, default, name, required, secret, variables, kind)| {
            let variables: Value = variables
                .into_iter()
                .map(|(name, (value, required, secret))| {
                    (
                        name,
                        json!({"default": value, "isRequired": required, "isSecret": secret}),
                    )
                })
                .collect::<Map<String, Value>>()
                .into();
            json!({"type": kind, "name": name, "valueHint": name, "value": value, "default": default,
                "isRequired": required, "isSecret": secret, "variables": variables})
        })
}

fn package() -> impl Strategy<Value = Value> {
    let inputs = || proptest::collection::vec(input(), 0..3);
    (
        prop_oneof![
            Just("npm"),
            Just("pypi"),
            Just("oci"),
            Just("nuget"),
            Just("mcpb"),
            Just("")
        ],
        prop_oneof![Just("@me/x".to_owned()), Just("me.x".to_owned()), text()],
        prop_oneof![Just("1.0.0".to_owned()), text()],
        text(),
        inputs(),
        inputs(),
        inputs(),
    )
        .prop_map(|(kind, identifier, version, hint, runtime, own, env)| {
            json!({"registryType": kind, "identifier": identifier, "version": version, "runtimeHint": hint,
                "runtimeArguments": runtime, "packageArguments": own, "environmentVariables": env})
        })
}

fn remote() -> impl Strategy<Value = Value> {
    (text(), text(), input(), proptest::collection::vec(input(), 0..3)).prop_map(
        |(kind, url, from, headers)| {
            let kind = if kind.is_empty() { "streamable-http" } else { "sse" };
            json!({"type": kind, "url": url, "variables": from["variables"], "headers": headers})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn anything_is_an_entry_or_a_reason(
        packages in proptest::collection::vec(package(), 0..3),
        remotes in proptest::collection::vec(remote(), 0..3),
        name in text(),
    ) {
        let read = read(&json!({"name": name, "title": name, "packages": packages, "remotes": remotes}));
        crate::fuzzing::is_harmless(&read);
    }

    #[test]
    fn nonsense_is_no_panic(text in ".{0,40}", number in any::<i64>()) {
        for value in [json!(text), json!({"name": text, "packages": text}), json!({"packages": [number], "remotes": [text]}),
            json!({"packages": [{"registryType": number, "identifier": [text]}]})] {
            let _ = read(&value);
            let _ = inside(&value);
        }
    }
}
