//! Installs what the tools need from npm and PyPI into the target folder, once per list of versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Where cargo builds, and where everything installed lives.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => root().join("target"),
    }
}

/// How the binary is built.
#[derive(Clone, Copy)]
pub enum Build {
    /// Quickly, for the tests.
    Debug,
    /// As it is handed out: small and fast, and slow to build.
    Dist,
}

/// Builds the binary the tools drive and answers where it is; `PILLION_BINARY` names another one to drive.
pub fn pillion(build: Build) -> Result<PathBuf> {
    if let Some(binary) = std::env::var_os("PILLION_BINARY") {
        let binary = PathBuf::from(binary);
        return binary
            .canonicalize()
            .with_context(|| binary.display().to_string());
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "pillion", "--bin", "pillion"]);
    let folder = match build {
        Build::Debug => "debug",
        Build::Dist => {
            cargo.args(["--profile", "dist"]);
            "dist"
        }
    };
    run(cargo.current_dir(root()))?;
    let binary = target().join(folder).join("pillion");
    binary
        .canonicalize()
        .with_context(|| binary.display().to_string())
}

/// `npm install` of the `package.json` in `from`; answers the folder that holds `node_modules`.
pub fn npm(from: &Path, name: &str) -> Result<PathBuf> {
    let folder = target().join(name);
    once(&folder, &from.join("package.json"), || {
        std::fs::copy(from.join("package.json"), folder.join("package.json"))?;
        run(Command::new("npm")
            .args([
                "install",
                "--no-audit",
                "--no-fund",
                "--no-package-lock",
                "--loglevel=error",
            ])
            .current_dir(&folder))
    })?;
    Ok(folder.canonicalize()?)
}

/// A virtual environment with the packages of a requirements file; answers its `bin`.
pub fn pip(requirements: &Path, name: &str) -> Result<PathBuf> {
    let folder = target().join(name);
    once(&folder, requirements, || {
        run(Command::new("python3")
            .args(["-m", "venv", "."])
            .current_dir(&folder))?;
        run(Command::new(folder.join("bin/pip"))
            .args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
            ])
            .arg(requirements))
    })?;
    Ok(folder.join("bin").canonicalize()?)
}

/// Does the work unless it was done to the end for this very list before.
fn once(folder: &Path, list: &Path, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = std::fs::read(list).with_context(|| list.display().to_string())?;
    let stamp = folder.join(".installed");
    if std::fs::read(&stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    work()?;
    Ok(std::fs::write(stamp, wanted)?)
}

/// Runs to the end; a failure shows what the command printed.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
