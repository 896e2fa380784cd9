//! `cargo xtask fuzz`: feeds the readers what nobody would write, for a bounded time.
//!
//! The targets are in the layout of cargo-fuzz, but its program is not needed: what it adds are these flags, which the
//! stable compiler takes too.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::checks::Checks;
use crate::install;

/// One for each reader of what others write.
const TARGETS: [&str; 6] = ["config", "paste", "import", "server_json", "bundle", "framing"];

/// Counters at every edge, and what is compared, as libFuzzer wants them.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Ccodegen-units=1",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// One text may take this long.
const SECONDS_OF_ONE: u64 = 10;
const MEGABYTES: u64 = 2048;
/// Beyond the time asked for, for the seeds and for making a finding small.
const GRACE: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
pub struct Arguments {
    /// How long each target runs
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The targets; all of them when none is named
    targets: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(unknown) = arguments
        .targets
        .iter()
        .find(|name| !TARGETS.contains(&name.as_str()))
    {
        bail!("there is no target `{unknown}`, only {}", TARGETS.join(", "));
    }
    let binaries = build()?;
    let mut checks = Checks::new(None);
    let is_wanted =
        |name: &&&str| arguments.targets.is_empty() || arguments.targets.iter().any(|one| one == **name);
    for target in TARGETS.iter().filter(is_wanted) {
        checks.check(target, || fuzz(&binaries, target, arguments.seconds));
    }
    checks.end("fuzz")
}

/// Builds all targets; answers the folder they are in.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let target = install::target().join("fuzz");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--bins",
            "--target",
            &host,
            "--manifest-path",
        ])
        .arg(install::root().join("tests/fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"))
        .status()
        .context("cargo")?;
    ensure!(status.success(), "the targets cannot be built");
    Ok(target.join(host).join("debug").canonicalize()?)
}

/// The platform of the compiler: named outright, it keeps the flags away from build scripts.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .args(["--version", "--verbose"])
        .output()
        .context("rustc")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc` names no host")?.to_owned())
}

fn fuzz(binaries: &Path, target: &str, seconds: u64) -> Result<()> {
    let folder = install::target().join("fuzz");
    let (found, seeds, crashes) = (
        folder.join("corpus").join(target),
        folder.join("seeds").join(target),
        folder.join("artifacts").join(target),
    );
    for folder in [&found, &seeds, &crashes] {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    write_seeds(target, &seeds)?;
    let material = install::root().join("tests/fuzz");
    let log = folder.join(format!("{target}.log"));
    let mut fuzzer = Command::new(binaries.join(target));
    fuzzer
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={SECONDS_OF_ONE}"))
        .arg(format!("-rss_limit_mb={MEGABYTES}"))
        .args(["-max_len=8192", "-print_final_stats=1"])
        .arg(format!("-dict={}", material.join("words.dict").display()))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .args([&found, &seeds])
        .args(
            ["seeds", "corpus"]
                .map(|kind| material.join(kind).join(target))
                .iter()
                .filter(|folder| folder.is_dir()),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log)?);
    let mut fuzzer = fuzzer.spawn().with_context(|| target.to_owned())?;
    let end = Instant::now() + Duration::from_secs(seconds) + GRACE;
    let status = loop {
        match fuzzer.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > end => {
                fuzzer.kill()?;
                fuzzer.wait()?;
                bail!("it did not end; see {}", log.display());
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    ensure!(
        status.success(),
        "{}\nall of it is in {}",
        finding(&said),
        log.display()
    );
    Ok(())
}

/// What a person needs of a failed run: the promise that was broken, and the file that breaks it.
fn finding(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let panic = panic.map_or(&[][..], |at| &lines[at..lines.len().min(at + 4)]);
    let file = lines
        .iter()
        .filter(|line| line.contains("Test unit written to") || line.contains("SUMMARY"));
    panic
        .iter()
        .chain(file)
        .map(|line| format!("  {line}\n"))
        .collect()
}

/// Seeds out of what the repository holds anyway: the cases of the tests, and the examples of the documentation.
fn write_seeds(target: &str, folder: &Path) -> Result<()> {
    let mut texts = Vec::new();
    for name in ["paste", "import"] {
        let path = install::root().join(format!("tests/cases/{name}.json"));
        let cases: Value =
            serde_json::from_slice(&std::fs::read(&path).with_context(|| path.display().to_string())?)?;
        let cases = cases.as_array().into_iter().flatten();
        texts.extend(
            cases
                .filter_map(|case| case["input"]["text"].as_str())
                .map(str::to_owned),
        );
    }
    for page in std::fs::read_dir(install::root().join("docs"))? {
        let path = page?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            texts.extend(examples(&std::fs::read_to_string(path)?));
        }
    }
    // Bytes in front that choose; see the entry points.
    let choice: &[u8] = match target {
        "config" | "bundle" => &[0],
        "import" => &[0, 0],
        _ => &[],
    };
    for (index, text) in texts.iter().enumerate() {
        let bytes = match target {
            "framing" => format!("\u{20}Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes(),
            _ => [choice, text.as_bytes()].concat(),
        };
        std::fs::write(folder.join(format!("{index:04}")), bytes)?;
    }
    Ok(())
}

/// The contents of the code blocks of a page.
fn examples(page: &str) -> Vec<String> {
    let parts = page.split("\n```").skip(1).step_by(2);
    parts
        .filter_map(|part| part.split_once('\n').map(|(_, text)| text.to_owned()))
        .collect()
}
