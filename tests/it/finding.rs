//! From finding a server to running it: gallery, registry, GitHub, paste and manual, over the protocol and in the terminal.
//!
//! The registry and GitHub are scripted hosts that answer in their shapes; `npx` and `uvx` are scripts that start a
//! scripted MCP server and write down how they were called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::stories;
use crate::support::{Host, HttpHost, TestEnv};
use crate::terminal::Terminal;

pub fn stories() -> Vec<Trial> {
    stories!("finding":
        the_list_is_copied_and_kept, offline_and_back, a_silent_registry, pages_of_hits, a_registry_that_misbehaves,
        from_the_registry, a_remote_of_the_registry, repositories_by_stars, tokens_of_github, limits_of_github,
        a_guess_is_confirmed, a_manifest_names_its_package, from_the_gallery, pasted, by_hand,
        described_by_a_file, mistakes, what_is_missing_is_named_once, in_a_terminal, searched_in_the_terminal,
        who_is_late_is_named,
    )
}

/// One element of the registry's list.
fn listed(server: Value, status: &str) -> Value {
    json!({
        "server": server,
        "_meta": { "io.modelcontextprotocol.registry/official": {
            "status": status, "publishedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-02-03T04:05:06.789Z",
            "isLatest": true } },
    })
}

fn weather() -> Value {
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.ada/weather-mcp", "title": "Weather", "description": "Forecasts for any place",
        "version": "1.2.0",
        "repository": { "url": "https://github.com/ada/weather-mcp", "source": "github" },
        "packages": [{
            "registryType": "npm", "registryBaseUrl": "https://registry.npmjs.org", "identifier": "@ada/weather-mcp",
            "version": "1.2.0", "runtimeHint": "npx", "transport": { "type": "stdio" },
            "packageArguments": [
                { "type": "named", "name": "--units", "default": "metric", "isRequired": true },
                { "type": "positional", "valueHint": "place", "description": "Where", "isRequired": true },
            ],
            "environmentVariables": [
                { "name": "WEATHER_KEY", "description": "Key of the service", "isRequired": true, "isSecret": true },
                { "name": "WEATHER_LANG", "default": "en" },
            ],
        }],
    })
}

fn simple(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "version": "1.0.0",
        "packages": [{ "registryType": "npm", "identifier": "plain-package", "version": "1.0.0",
            "transport": { "type": "stdio" } }] })
}

fn page(servers: &[Value], next: Option<&str>) -> Value {
    json!({ "servers": servers, "metadata": { "count": servers.len(), "nextCursor": next } })
}

/// A registry whose whole list is one page.
fn registry(servers: &[Value]) -> HttpHost {
    let host = HttpHost::bind();
    let mut rules = vec![json!({ "match": "GET /v0.1/servers", "respond": { "json": page(servers, None) } })];
    for listed in servers {
        let name = listed["server"]["name"]
            .as_str()
            .unwrap_or_default()
            .replace('/', "%2F");
        rules.push(json!({ "match": format!("GET /v0.1/servers/{name}/versions/latest"), "respond": { "json": listed } }));
    }
    host.serve_rules(&json!(rules), &json!({}));
    host
}

fn env_with(registry: &HttpHost) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("PILLION_REGISTRY_URL", &registry.origin);
    env
}

/// A program on `PATH` that starts a scripted server and writes its arguments down.
fn stand_in(env: &TestEnv, program: &str) {
    let server = env.plain_server(&format!("{program}-server"), json!({}));
    let file = env.bin().join(program);
    let text = format!(
        "#!/bin/sh\nfor arg in \"$@\"; do printf '%s\\n' \"$arg\"; done > '{}'\necho \"$WEATHER_KEY\" > '{}'\nexec '{}'\n",
        args_file(env, program).display(),
        env.tmp().join("key").display(),
        server.command
    );
    fs::write(&file, text).expect("a small file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("mode can be set");
}

fn args_file(env: &TestEnv, program: &str) -> std::path::PathBuf {
    env.tmp().join(format!("{program}.args"))
}

fn called_with(env: &TestEnv, program: &str) -> Vec<String> {
    let text = fs::read_to_string(args_file(env, program)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(env: &TestEnv, args: &[&str]) -> Ran {
    let output = env.command().args(args).output().expect("the binary starts");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn runs(env: &TestEnv, args: &[&str]) -> Ran {
    let ran = run(env, args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran
}

fn ids(result: &Value) -> Vec<&str> {
    let hits = result["hits"].as_array().map(Vec::as_slice).unwrap_or_default();
    hits.iter().filter_map(|hit| hit["id"].as_str()).collect()
}

fn search(host: &Host, source: &str, query: &str) -> Value {
    host.must("mcp.search", json!({ "query": query, "source": source }))
}

/// Lets the copy look `hours` old.
fn age_the_copy(env: &TestEnv, hours: u64) {
    for file in fs::read_dir(env.data().join("cache"))
        .expect("the cache")
        .flatten()
    {
        let path = file.path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            let text = fs::read_to_string(&path).expect("the copy");
            let (head, rest) = text.split_once('\n').expect("a head");
            let mut head: Value = serde_json::from_str(head).expect("JSON");
            for member in ["begun", "wholeAt"] {
                let then = head[member].as_u64().expect("a time");
                head[member] = json!(then - hours * 3_600_000);
            }
            fs::write(&path, format!("{head}\n{rest}")).expect("it can be written");
        }
    }
}

fn the_list_is_copied_and_kept() {
    let host = HttpHost::bind();
    let gone = simple("com.example/gone", "It will be deleted");
    let old = simple("com.example/rain-old", "Rain, as it was");
    host.serve_rules(
        &json!([
            { "match": "GET /v0.1/servers", "when": { "query": { "updated_since": "~^20" } }, "respond": { "json": page(&[
                listed(json!({ "name": "com.example/gone" }), "deleted"),
                listed(simple("com.example/rain-new", "Rain, as it is"), "active"),
                { let mut one = listed(old.clone(), "deprecated");
                  one["_meta"]["io.modelcontextprotocol.registry/official"]["statusMessage"] = json!("use rain-new");
                  one },
            ], None) } },
            { "match": "GET /v0.1/servers", "when": { "query": { "cursor": "c-2" } }, "respond": { "json": page(&[
                listed(gone.clone(), "active"),
                json!("no server at all"),
                listed(json!({ "name": 5 }), "active"),
            ], None) } },
            { "match": "GET /v0.1/servers", "when": { "query": { "version": "latest" } }, "respond": { "json":
                page(&[listed(weather(), "active"), listed(old, "active")], Some("c-2")) } },
        ]),
        &json!({}),
    );
    let env = env_with(&host);
    let pillion = Host::start(&env);
    let found = search(&pillion, "registry", "forecast");
    assert_eq!(ids(&found), ["io.github.ada/weather-mcp"], "{found}");
    let hit = &found["hits"][0];
    assert_eq!(
        (
            &hit["title"],
            &hit["version"],
            &hit["publisher"],
            &hit["updatedAt"]
        ),
        (
            &json!("Weather"),
            &json!("1.2.0"),
            &json!("io.github.ada"),
            &json!(1_770_091_506_789_u64)
        )
    );
    assert_eq!(
        ids(&search(&pillion, "registry", "deleted")),
        ["com.example/gone"]
    );
    // Within the hour nothing more is asked.
    assert_eq!(host.log().len(), 2);
    age_the_copy(&env, 2);
    let found = search(&pillion, "registry", "rain");
    assert_eq!(
        ids(&found),
        ["com.example/rain-new", "com.example/rain-old"],
        "{found}"
    );
    assert_eq!(host.log().len(), 3);
    let note = found["hits"][1]["note"].as_str().unwrap_or_default();
    assert!(note.contains("use rain-new"), "{note}");
    assert_eq!(ids(&search(&pillion, "registry", "deleted")), [""; 0]);
    let none = search(&pillion, "registry", "nothing like it anywhere");
    assert_eq!((ids(&none).len(), &none["notice"]), (0, &Value::Null));
}

fn offline_and_back() {
    let host = registry(&[listed(weather(), "active")]);
    let mut env = env_with(&host);
    {
        let pillion = Host::start(&env);
        assert_eq!(ids(&search(&pillion, "registry", "weather")).len(), 1);
    }
    // Another address has another copy, and nothing answers there.
    age_the_copy(&env, 26);
    let copy = fs::read_dir(env.data().join("cache"))
        .expect("the cache")
        .flatten();
    let copy = copy
        .map(|file| file.path())
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let dead = HttpHost::bind();
    env.set("PILLION_REGISTRY_URL", "http://127.0.0.1:9");
    drop(dead);
    let pillion = Host::start(&env);
    let nothing = search(&pillion, "registry", "weather");
    assert_eq!(
        (ids(&nothing).len(), &nothing["notice"]["kind"]),
        (0, &json!("unreachable")),
        "{nothing}"
    );
    // The copy of the address that does not answer is searched, and its age is said.
    let made = fs::read_dir(env.data().join("cache"))
        .expect("the cache")
        .flatten();
    let made = made
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let copy = copy.expect("a copy");
    for path in made.filter(|path| *path != copy) {
        fs::copy(&copy, path).expect("it can be copied");
    }
    let found = search(&pillion, "registry", "weather");
    assert_eq!(ids(&found), ["io.github.ada/weather-mcp"], "{found}");
    let message = found["notice"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("26 hours ago"), "{found}");
    assert!(found["notice"]["hint"].is_string());
}

/// A network that swallows packets: the copy answers soon, by words and by name.
fn a_silent_registry() {
    let registry = HttpHost::bind();
    let list = page(&[listed(weather(), "active")], None);
    let rules = json!([
        { "match": "GET /v0.1/servers", "times": 1, "respond": { "json": list } },
        { "match": "* *", "respond": { "delay_ms": 9000, "status": 503 } },
    ]);
    registry.serve_rules(&rules, &json!({}));
    let env = env_with(&registry);
    let pillion = Host::start(&env);
    assert_eq!(ids(&search(&pillion, "registry", "weather")).len(), 1);
    age_the_copy(&env, 26);
    for query in ["weather", "io.github.ada/weather-mcp"] {
        let begun = Instant::now();
        let found = search(&pillion, "registry", query);
        assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
        assert_eq!(ids(&found), ["io.github.ada/weather-mcp"], "{found}");
        let message = found["notice"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("did not answer within 2 s"), "{found}");
        assert!(message.contains("26 hours ago"), "{found}");
    }
}

fn pages_of_hits() {
    let servers: Vec<Value> = (0..25)
        .map(|number| listed(simple(&format!("com.example/rain-{number}"), "Rain"), "active"))
        .collect();
    let host = registry(&servers);
    let env = env_with(&host);
    let pillion = Host::start(&env);
    let mut seen: Vec<String> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = pillion.must(
            "mcp.search",
            json!({ "query": "rain", "source": "registry", "limit": 10, "cursor": cursor }),
        );
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((count, seen.len()), (25, 25));
    for cursor in ["x", "10-abc", "10-abc-def"] {
        let stale = pillion
            .ask(
                "mcp.search",
                json!({ "query": "rain", "source": "registry", "cursor": cursor }),
            )
            .expect_err("no cursor of ours");
        assert_eq!(stale.kind(), "stale_cursor");
    }
}

fn a_registry_that_misbehaves() {
    let check = |respond: Value, kind: &str| {
        let host = HttpHost::bind();
        host.serve_rules(
            &json!([{ "match": "GET /v0.1/servers", "respond": respond }]),
            &json!({}),
        );
        let env = env_with(&host);
        let pillion = Host::start(&env);
        let found = search(&pillion, "registry", "rain");
        assert_eq!(
            (ids(&found).len(), &found["notice"]["kind"]),
            (0, &json!(kind)),
            "{found}"
        );
        found
    };
    check(json!({ "status": 500, "text": "oops" }), "unreachable");
    check(json!({ "text": "<html>" }), "unreachable");
    check(json!({ "json": { "servers": "none" } }), "unreachable");
    check(
        json!({ "status": 302, "headers": { "location": "http://127.0.0.1:9/elsewhere" }, "text": "" }),
        "unreachable",
    );
    let limited = check(
        json!({ "status": 429, "headers": { "retry-after": "60" }, "text": "" }),
        "rate_limited",
    );
    assert!(limited["notice"]["retryAt"].is_u64(), "{limited}");
    let mut env = TestEnv::new();
    env.set("PILLION_REGISTRY_URL", "ftp://nowhere");
    let pillion = Host::start(&env);
    let found = search(&pillion, "registry", "rain");
    let message = found["notice"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("PILLION_REGISTRY_URL"), "{found}");
}

fn from_the_registry() {
    let host = registry(&[
        listed(weather(), "active"),
        listed(simple("com.example/rain", "Rain"), "active"),
    ]);
    let env = env_with(&host);
    stand_in(&env, "npx");
    let pillion = Host::start(&env);
    let found = search(&pillion, "registry", "weather forecasts");
    let draft = found["hits"][0]["draft"].clone();
    assert_eq!(draft["name"], json!("weather"));
    assert_eq!(
        draft["entry"]["args"],
        json!([
            "-y",
            "@ada/weather-mcp@1.2.0",
            "--units",
            "metric",
            "${input:place}"
        ])
    );
    assert!(draft["entry"]["env"].is_null(), "nothing is prefilled: {draft}");
    let needs = draft["needs"].as_array().expect("needs");
    let need = |label: &str| {
        needs
            .iter()
            .find(|need| need["label"] == label)
            .expect("it is named")
    };
    assert_eq!(need("WEATHER_KEY")["secret"], json!(true));
    assert_eq!(
        (&need("place")["at"], &need("place")["required"]),
        (&json!("/args/4"), &json!(true))
    );
    assert_eq!(need("WEATHER_LANG")["required"], json!(false));
    let mut entry = draft["entry"].clone();
    entry["args"][4] = json!("Oslo; rm -rf $HOME");
    entry["env"] = json!({ "WEATHER_KEY": "k-1" });
    assert_eq!(
        pillion.must("mcp.test", json!({ "entry": entry }))["ok"],
        json!(true)
    );
    pillion.must("mcp.add", json!({ "name": "weather", "entry": entry }));
    let tools = pillion.must("mcp.tools.list", json!({ "server": "weather" }));
    assert!(
        tools["items"].as_array().is_some_and(|items| !items.is_empty()),
        "{tools}"
    );
    // One argument stays one argument: no shell saw it.
    assert_eq!(
        called_with(&env, "npx"),
        [
            "-y",
            "@ada/weather-mcp@1.2.0",
            "--units",
            "metric",
            "Oslo; rm -rf $HOME"
        ]
    );
    drop(pillion);

    let env = env_with(&host);
    stand_in(&env, "npx");
    let ran = runs(&env, &["search", "weather"]);
    assert!(ran.stdout.contains("io.github.ada/weather-mcp"), "{}", ran.stdout);
    assert!(ran.stdout.contains("needs place, WEATHER_KEY"), "{}", ran.stdout);
    let ran = runs(
        &env,
        &[
            "add",
            "--from",
            "io.github.ada/weather-mcp",
            "--yes",
            "--env",
            "WEATHER_KEY=k-2",
            "--",
            "Oslo",
        ],
    );
    assert!(ran.stderr.contains("`pillion tools weather`"), "{}", ran.stderr);
    runs(&env, &["tools", "weather"]);
    assert_eq!(called_with(&env, "npx").last().map(String::as_str), Some("Oslo"));
    assert_eq!(
        fs::read_to_string(env.tmp().join("key"))
            .unwrap_or_default()
            .trim(),
        "k-2"
    );
}

fn a_remote_of_the_registry() {
    // A description never leads to this machine, so the address is one that the person writes.
    let server = json!({ "name": "com.example/mcp", "description": "Far away", "version": "1.0.0",
        "remotes": [
            { "type": "sse", "url": "https://mcp.example.com/sse" },
            { "type": "streamable-http", "url": "https://{region}.example.com/mcp",
              "variables": { "region": { "isRequired": true, "choices": ["eu", "us"] } },
              "headers": [{ "name": "Authorization", "value": "Bearer {token}", "isRequired": true,
                  "variables": { "token": { "isSecret": true, "isRequired": true } } }] },
            { "type": "streamable-http", "url": "http://localhost:{port}/mcp" },
        ] });
    let host = registry(&[listed(server, "active")]);
    let env = env_with(&host);
    let pillion = Host::start(&env);
    let found = search(&pillion, "registry", "com.example/mcp");
    let hit = &found["hits"][0];
    let draft = &hit["draft"];
    assert_eq!(draft["name"], json!("example"));
    assert_eq!(
        draft["entry"]["url"],
        json!("https://${input:region}.example.com/mcp"),
        "{hit}"
    );
    assert_eq!(
        draft["entry"]["headers"]["Authorization"],
        json!("Bearer ${input:token}")
    );
    assert_eq!(
        hit["alternatives"][0]["entry"]["transport"],
        json!("sse"),
        "{hit}"
    );
    assert_eq!(hit["alternatives"].as_array().map(Vec::len), Some(1));
    drop(pillion);
    let wrong = run(
        &env,
        &[
            "add",
            "--from",
            "com.example/mcp",
            "--yes",
            "--set",
            "region=mars",
            "--set",
            "token=t",
        ],
    );
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("`region` is one of eu, us"),
        "{}",
        wrong.stderr
    );
    runs(
        &env,
        &[
            "add",
            "far",
            "--from",
            "com.example/mcp",
            "--yes",
            "--set",
            "region=eu",
            "--set",
            "token=${TOKEN}",
        ],
    );
    let text = fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    let entry = serde_json::from_str::<Value>(&text).expect("JSON")["servers"]["far"].take();
    assert_eq!(entry["url"], json!("https://eu.example.com/mcp"));
    assert_eq!(entry["headers"]["Authorization"], json!("Bearer ${TOKEN}"));
    assert_eq!(entry["source"], json!("registry:com.example/mcp"));
    let other = runs(
        &env,
        &[
            "add",
            "sse",
            "--from",
            "com.example/mcp",
            "--dry-run",
            "--set",
            "region=eu",
            "--set",
            "token=t",
        ],
    );
    assert!(other.stdout.contains("eu.example.com"), "{}", other.stdout);
}

fn repository(name: &str, stars: u64, language: &str) -> Value {
    json!({ "full_name": name, "description": format!("What {name} does"), "stargazers_count": stars,
        "html_url": format!("https://github.com/{name}"), "language": language,
        "pushed_at": "2026-03-04T05:06:07Z", "archived": false })
}

fn github(rules: Value) -> (HttpHost, TestEnv) {
    let host = HttpHost::bind();
    host.serve_rules(&rules, &json!({}));
    let mut env = TestEnv::new();
    env.set("PILLION_GITHUB_URL", &host.origin);
    // The GitHub command line of this machine, if there is one, has no say in it.
    script(&env, "gh", "exit 1");
    (host, env)
}

fn script(env: &TestEnv, name: &str, body: &str) {
    let file = env.bin().join(name);
    fs::write(&file, format!("#!/bin/sh\n{body}\n")).expect("a small file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("mode can be set");
}

fn found_repositories() -> Value {
    json!([{ "match": "GET /search/repositories", "when": { "query": { "sort": "stars", "order": "desc" } },
        "respond": { "json": { "total_count": 3, "incomplete_results": false, "items": [
            repository("ada/rain-mcp", 900, "TypeScript"), repository("bob/rain", 30, "Python"), { "odd": true } ] } } }])
}

fn repositories_by_stars() {
    let (server, env) = github(found_repositories());
    let pillion = Host::start(&env);
    let found = pillion.must(
        "mcp.search",
        json!({ "query": "rain", "source": "github", "limit": 2 }),
    );
    assert_eq!(ids(&found), ["ada/rain-mcp", "bob/rain"], "{found}");
    assert_eq!(found["hits"][0]["stars"], json!(900));
    let draft = &found["hits"][1]["draft"];
    assert_eq!(
        (&draft["entry"]["command"], &draft["entry"]["args"]),
        (&json!("uvx"), &json!(["rain"]))
    );
    assert!(draft["warnings"].to_string().contains("unverified"), "{draft}");
    assert_eq!(server.log()[0].query["q"], json!("rain mcp"));
    let next = pillion.must(
        "mcp.search",
        json!({ "query": "rain", "source": "github", "limit": 2, "cursor": found["nextCursor"] }),
    );
    assert_eq!(
        (&server.log()[1].query["page"], &next["nextCursor"]),
        (&json!("2"), &Value::Null)
    );
}

fn tokens_of_github() {
    let authorization = |server: &HttpHost| {
        let log = server.log();
        log.last()
            .and_then(|seen| seen.headers.get("authorization").cloned())
    };
    let (server, mut env) = github(found_repositories());
    search(&Host::start(&env), "github", "rain");
    assert_eq!(authorization(&server), None, "nobody is logged in");
    script(&env, "gh", "[ \"$1 $2\" = 'auth token' ] && echo gh-token-secret");
    search(&Host::start(&env), "github", "rain");
    assert_eq!(authorization(&server), Some(json!("Bearer gh-token-secret")));
    env.set("GITHUB_TOKEN", "env-token-secret");
    let pillion = Host::start(&env);
    search(&pillion, "github", "rain");
    assert_eq!(authorization(&server), Some(json!("Bearer env-token-secret")));
    drop(pillion);
    // A token that is refused is said, and the search goes on without.
    let (server, mut env) = github(json!([
        { "match": "GET /search/repositories", "when": { "auth": null }, "respond": { "json": {
            "total_count": 1, "items": [repository("ada/rain-mcp", 1, "Go")] } } },
        { "match": "GET /search/repositories", "respond": { "status": 401, "json": { "message": "Bad credentials" } } },
    ]));
    env.set("GITHUB_TOKEN", "env-token-secret");
    let pillion = Host::start(&env);
    let found = search(&pillion, "github", "rain");
    assert_eq!(
        (ids(&found).len(), &found["notice"]["kind"]),
        (1, &json!("auth_denied")),
        "{found}"
    );
    assert_eq!(server.log().len(), 2);
    let said = format!("{found}{}", pillion.stderr());
    assert!(!said.contains("token-secret"), "{said}");
}

fn limits_of_github() {
    let (_server, env) = github(
        json!([{ "match": "GET /search/repositories", "respond": { "status": 403,
        "headers": { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1796047200" },
        "json": { "message": "API rate limit exceeded" } } }]),
    );
    let pillion = Host::start(&env);
    let found = search(&pillion, "github", "rain");
    assert_eq!(ids(&found).len(), 0);
    let notice = &found["notice"];
    assert_eq!(
        (&notice["kind"], &notice["httpStatus"], &notice["retryAt"]),
        (&json!("rate_limited"), &json!(403), &json!(1_796_047_200_000_u64)),
        "{notice}"
    );
    drop(pillion);
    let ran = runs(
        &env,
        &["search", "--source", "github", "--source", "gallery", "memory"],
    );
    assert!(
        ran.stdout.contains("gallery, by"),
        "the gallery goes on: {}",
        ran.stdout
    );
    assert!(
        ran.stderr
            .contains("GitHub rate limit reached; it ends at 2026-11-30T14:00:00Z"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("GITHUB_TOKEN"), "{}", ran.stderr);
}

fn a_guess_is_confirmed() {
    let (_server, env) = github(json!([
        { "match": "GET /search/repositories", "respond": { "json": { "total_count": 1,
            "items": [repository("ada/rain-mcp", 900, "TypeScript")] } } },
        { "match": "GET /repos/ada/rain-mcp", "respond": { "json": repository("ada/rain-mcp", 900, "TypeScript") } },
        { "match": "* *", "respond": { "status": 404, "json": { "message": "Not Found" } } },
    ]));
    stand_in(&env, "npx");
    let pillion = Host::start(&env);
    let entry = search(&pillion, "github", "rain")["hits"][0]["draft"]["entry"].clone();
    for (method, mut params) in [
        ("mcp.test", json!({ "entry": entry })),
        ("mcp.add", json!({ "name": "rain", "entry": entry })),
    ] {
        let refused = pillion
            .ask(method, params.clone())
            .expect_err("nobody looked at it");
        assert_eq!(refused.kind(), "invalid_params", "{method}");
        params["acceptUnverified"] = json!(true);
        pillion.must(method, params);
    }
    let tools = pillion.must("mcp.tools.list", json!({ "server": "rain" }));
    assert!(
        tools["items"].as_array().is_some_and(|items| !items.is_empty()),
        "{tools}"
    );
    assert_eq!(pillion.status("rain")["source"], json!("github:ada/rain-mcp"));
    // What a person changed is no guess any more.
    let mut changed = entry.clone();
    changed["args"] = json!(["-y", "@ada/rain"]);
    pillion.must(
        "mcp.add",
        json!({ "name": "other", "entry": changed, "start": false }),
    );
    drop(pillion);

    let (_server, mut env) = github(json!([
        { "match": "GET /repos/ada/rain-mcp", "respond": { "json": repository("ada/rain-mcp", 900, "TypeScript") } },
        { "match": "* *", "respond": { "status": 404, "json": { "message": "Not Found" } } },
    ]));
    stand_in(&env, "npx");
    let refused = run(&env, &["add", "--from", "github:ada/rain-mcp", "--yes"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("add `--accept-unverified`"),
        "{}",
        refused.stderr
    );
    runs(
        &env,
        &[
            "add",
            "--from",
            "github:ada/rain-mcp",
            "--yes",
            "--accept-unverified",
            "--test",
        ],
    );
    runs(&env, &["tools", "rain"]);
    let none = run(&env, &["add", "--from", "github:ada/nothing", "--yes"]);
    assert!(
        none.stderr.contains("there is no `github:ada/nothing`"),
        "{}",
        none.stderr
    );
    env.set("PILLION_GITHUB_URL", "http://127.0.0.1:9");
    let unsearched = run(&env, &["search", "files", "--source", "github"]);
    assert_eq!(
        (unsearched.code, unsearched.stdout.as_str()),
        (Some(1), ""),
        "{}",
        unsearched.stderr
    );
    assert!(
        unsearched.stderr.contains("Nothing was searched"),
        "{}",
        unsearched.stderr
    );
}

fn a_manifest_names_its_package() {
    let (server, env) = github(json!([
        { "match": "GET /repos/ada/rain-mcp", "respond": { "json": repository("ada/rain-mcp", 900, "TypeScript") } },
        { "match": "GET /repos/ada/rain-mcp/contents/package.json", "respond": { "json": {
            "name": "@ada/rain", "bin": { "rain": "dist/index.js" } } } },
        { "match": "* *", "respond": { "status": 404, "json": { "message": "Not Found" } } },
    ]));
    stand_in(&env, "npx");
    let pillion = Host::start(&env);
    let draft = search(&pillion, "github", "ada/rain-mcp")["hits"][0]["draft"].clone();
    assert_eq!(draft["entry"]["args"], json!(["-y", "@ada/rain"]));
    assert_eq!(draft["warnings"], json!([]));
    assert_eq!(
        pillion.must("mcp.test", json!({ "entry": draft["entry"] }))["ok"],
        json!(true)
    );
    assert!(server.log().iter().all(|seen| seen.method == "GET"));
}

fn from_the_gallery() {
    let env = TestEnv::new();
    stand_in(&env, "npx");
    let pillion = Host::start(&env);
    let item = pillion.must("mcp.gallery", json!({ "query": "filesystem" }))["items"][0].clone();
    let need = &item["draft"]["needs"][0];
    assert_eq!(need["at"], json!("/args/2"));
    let mut entry = item["draft"]["entry"].clone();
    entry["args"]
        .as_array_mut()
        .expect("a list")
        .push(json!("/srv/docs"));
    pillion.must("mcp.add", json!({ "name": "filesystem", "entry": entry }));
    pillion.must("mcp.tools.list", json!({ "server": "filesystem" }));
    assert_eq!(
        called_with(&env, "npx"),
        ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]
    );
    drop(pillion);

    let env = TestEnv::new();
    stand_in(&env, "npx");
    let ran = runs(&env, &["gallery", "filesystem"]);
    assert!(ran.stdout.contains("filesystem"), "{}", ran.stdout);
    runs(&env, &["add", "--from", "filesystem", "--yes", "--", "/srv/docs"]);
    runs(&env, &["tools", "filesystem"]);
    assert_eq!(
        called_with(&env, "npx"),
        ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]
    );
    let unknown = run(&env, &["add", "--from", "file", "--yes"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("the gallery has no `file`") && unknown.stderr.contains("Near: filesystem"),
        "{}",
        unknown.stderr
    );
}

fn pasted() {
    let env = TestEnv::new();
    stand_in(&env, "npx");
    let pillion = Host::start(&env);
    let parsed = pillion.must("mcp.parse", json!({ "text": "npx -y @ada/notes-mcp ." }));
    let draft = &parsed["drafts"][0];
    pillion.must(
        "mcp.add",
        json!({ "name": draft["name"], "entry": draft["entry"] }),
    );
    pillion.must("mcp.tools.list", json!({ "server": draft["name"] }));
    assert_eq!(called_with(&env, "npx"), ["-y", "@ada/notes-mcp", "."]);
    // The registry's own format is a paste too.
    let parsed = pillion.must(
        "mcp.parse",
        json!({ "text": format!("```json\n{}\n```", weather()) }),
    );
    assert_eq!(parsed["drafts"][0]["name"], json!("weather"), "{parsed}");
    assert_eq!(
        parsed["drafts"][0]["needs"].as_array().map(Vec::len),
        Some(4),
        "{parsed}"
    );
    drop(pillion);

    let env = TestEnv::new();
    stand_in(&env, "npx");
    runs(&env, &["add", "--yes", "--paste", "npx -y @ada/notes-mcp ."]);
    runs(&env, &["tools", "notes"]);
    assert_eq!(called_with(&env, "npx"), ["-y", "@ada/notes-mcp", "."]);
}

fn by_hand() {
    let env = TestEnv::new();
    stand_in(&env, "uvx");
    let pillion = Host::start(&env);
    pillion.must(
        "mcp.add",
        json!({ "name": "notes", "entry": { "command": "uvx", "args": ["notes-mcp"] } }),
    );
    pillion.must("mcp.tools.list", json!({ "server": "notes" }));
    assert_eq!(called_with(&env, "uvx"), ["notes-mcp"]);
    let http = HttpHost::plain(&json!({}));
    pillion.must("mcp.add", json!({ "name": "far", "entry": http.entry() }));
    pillion.must("mcp.tools.list", json!({ "server": "far" }));
    drop(pillion);

    let env = TestEnv::new();
    stand_in(&env, "uvx");
    runs(&env, &["add", "notes", "--test", "--", "uvx", "notes-mcp"]);
    runs(&env, &["tools", "notes"]);
    let url = http.entry()["url"].as_str().expect("a URL").to_owned();
    runs(&env, &["add", "far", "--url", &url]);
    runs(&env, &["tools", "far"]);
    let failed = run(&env, &["add", "dead", "--test", "--", "no-such-program-anywhere"]);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    let text = fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    assert!(!text.contains("dead"), "a failed test writes nothing: {text}");
}

fn described_by_a_file() {
    let env = TestEnv::new();
    let file = env.project().join("server.json");
    fs::write(&file, weather().to_string()).expect("a small file");
    let pillion = Host::start(&env);
    let imported = pillion.must("mcp.import", json!({ "source": file.display().to_string() }));
    assert_eq!(imported["results"][0]["savedAs"], json!("weather"), "{imported}");
    assert!(
        imported["needs"].to_string().contains("WEATHER_KEY"),
        "{imported}"
    );
    let bundle = json!({ "name": "com.example/bundle", "version": "1",
        "packages": [{ "registryType": "mcpb", "identifier": "https://github.com/a/b.mcpb", "fileSha256": "0".repeat(64) }] });
    let imported = pillion.must("mcp.import", json!({ "text": bundle.to_string() }));
    assert_eq!(imported["results"][0]["status"], json!("failed"));
    assert!(
        imported["results"][0]["reason"].to_string().contains("bundle"),
        "{imported}"
    );
}

/// What a newcomer types wrong, and what to do next.
fn mistakes() {
    let env = TestEnv::new();
    let file = |name: &str, text: &str| fs::write(env.project().join(name), text).expect("a small file");
    file("five.json", "{\"command\": 5}");
    file("broken.json", "{\"mcpServers\": {");
    fs::create_dir_all(env.project().join(".pillion")).expect("a folder");
    file(
        ".pillion/mcp.json",
        "{\"servers\": {\"theirs\": {\"command\": \"npx\"}, \"odd\": {\"command\": 5}}}",
    );
    let rows: [(&[&str], &str); 14] = [
        (&["add"], "pillion add --from ID"),
        (&["add", "files", "npx", "x"], "hint: pillion add files -- npx x"),
        (&["add", "my files", "--", "npx"], "`my files` is no name"),
        (&["add", "x", "--url", "example.com/mcp"], "lacks the `https://`"),
        (&["add", "--from", "a/b", "--yes"], "`github:a/b`"),
        (&["add", "--from", "github:a", "--yes"], "github:OWNER/NAME"),
        (
            &[
                "add",
                "--yes",
                "--paste",
                "{\"mcpServers\": {\"a\": {\"command\": 5}}}",
            ],
            "a: `command` must be a text",
        ),
        (
            &["import", "five.json"],
            "`command` must be a text such as `npx`, or a list, not a number",
        ),
        (&["import", "broken.json"], "broken.json`: line 1"),
        (&["import", "nowhere.json"], "`pillion import` without a file"),
        (&["tools", "theirs"], "`pillion trust`"),
        (&["test", "theirs"], "`pillion trust`"),
        (&["status"], "`command` must be a text, not a number"),
        (&["gallery", "--category", "tools"], "the categories are core"),
    ];
    for (args, expected) in rows {
        let ran = run(&env, args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(expected), "{args:?}: {said}");
        assert!(!said.contains("/entry"), "{args:?}: {said}");
    }
}

fn what_is_missing_is_named_once() {
    let host = registry(&[listed(weather(), "active")]);
    let env = env_with(&host);
    let ran = run(&env, &["add", "--from", "io.github.ada/weather-mcp", "--yes"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("error: still to be given: place, WEATHER_KEY"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("hint: give --env 'WEATHER_KEY=${WEATHER_KEY}' -- PLACE"),
        "{}",
        ran.stderr
    );
    assert!(!env.data().join("mcp.json").exists());
    let unseen = run(
        &env,
        &["add", "--from", "io.github.ada/weather-mcp", "--", "Oslo"],
    );
    assert!(
        unseen.stderr.contains("\"Oslo\"]")
            && unseen
                .stderr
                .contains("`--yes` adds what is shown above; give also: --env"),
        "{}",
        unseen.stderr
    );
    let wrong = run(
        &env,
        &[
            "add",
            "--from",
            "io.github.ada/weather-mcp",
            "--yes",
            "--set",
            "nothing=1",
        ],
    );
    assert!(
        wrong.stderr.contains("it asks for: units, place"),
        "{}",
        wrong.stderr
    );
}

fn in_a_terminal() {
    let host = registry(&[listed(weather(), "active")]);
    let env = env_with(&host);
    stand_in(&env, "npx");
    let mut command = env.command();
    command
        .args(["add", "--from", "io.github.ada/weather-mcp"])
        .env("NO_COLOR", "1");
    let mut terminal = Terminal::run(command);
    // What is needed is listed first; only the questions have such a help.
    terminal.when("[Where]", "Oslo\r");
    terminal.when("[Key of the service; not shown", "k-3-secret\r");
    // The second of three: it is tried first.
    terminal.when("Add `weather`?", "\x1b[B\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("k-3-secret"), "{screen}");
    assert!(screen.contains("Connected in "), "{screen}");
    let text = fs::read_to_string(env.data().join("mcp.json")).expect("the file");
    assert!(text.contains("k-3-secret") && text.contains("Oslo"), "{text}");
}

/// What one source found is read while another one does not answer.
fn who_is_late_is_named() {
    let registry = registry(&[listed(weather(), "active")]);
    let (_github, mut env) =
        github(json!([{ "match": "* *", "respond": { "delay_ms": 9000, "status": 503 } }]));
    env.set("PILLION_REGISTRY_URL", &registry.origin);
    let mut command = env.command();
    command.args(["search", "weather", "--source", "registry", "--source", "github"]);
    let mut terminal = Terminal::run(command);
    // A narrow terminal breaks the name.
    terminal.when("io.github", "");
    terminal.when("Waiting for GitHub", "\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
}

fn searched_in_the_terminal() {
    let host = registry(&[listed(weather(), "active")]);
    let env = env_with(&host);
    let ran = runs(&env, &["search", "weather", "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).expect("one document");
    assert_eq!(ids(&document["registry"]), ["io.github.ada/weather-mcp"]);
    assert!(document["gallery"]["items"].is_array());
    let ran = runs(&env, &["search", "no such thing at all"]);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("Nothing fits"), "{}", ran.stderr);
}
