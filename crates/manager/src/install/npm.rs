//! Packages of npm: one `npm install` per package, whose lock tells version and integrity. npm checks what it fetched
//! against that integrity itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mcp::StdioTarget;
use protocol::{Error, ExactPackage, PackageManager};
use serde_json::Value;

use super::{Wish, beside, failed, run};
use crate::limits;

/// Installs into a new folder; answers the package and its program, below that folder.
pub(super) async fn install(
    wish: &Wish,
    tools: &StdioTarget,
    folder: &Path,
    version: Option<&str>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(ExactPackage, PathBuf), Error> {
    let npm = beside(tools, "npm")?;
    let io = |error: std::io::Error| failed(format!("`{}`: {error}", folder.display()));
    files::create_private_dir(folder).map_err(io)?;
    // Without one, npm would look for a project above the folder.
    files::write_private(&folder.join("package.json"), b"{\"private\": true}\n").map_err(io)?;
    let requirement = wish.requirement(version);
    say(&format!("npm fetches {requirement}"));
    let args = [
        "install",
        "--save-exact",
        "--no-audit",
        "--no-fund",
        "--package-lock=true",
        "--omit=dev",
        "--",
        &requirement,
    ];
    let args = args.map(OsStr::new);
    run::run(&npm, &args, tools, folder, "", say).await?;
    let lock = document(&folder.join("package-lock.json"))?;
    let entry = &lock["packages"][format!("node_modules/{}", wish.name)];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (Some(version), Some(integrity)) = (text(&entry["version"]), text(&entry["integrity"])) else {
        return Err(failed(format!(
            "npm names no version and integrity of `{}`: it comes from no registry",
            wish.name
        )));
    };
    let package = folder.join("node_modules").join(&wish.name);
    let program = program(&document(&package.join("package.json"))?, wish)?;
    let program = Path::new("node_modules/.bin").join(program);
    if !folder.join(&program).exists() {
        return Err(failed(format!(
            "`{}` brought no `{}`",
            wish.name,
            program.display()
        )));
    }
    let package = ExactPackage {
        manager: PackageManager::Npm,
        name: wish.name.clone(),
        version,
        integrity,
    };
    Ok((package, program))
}

/// The program that `npx` would take: the one that is named, the only one, or the one called like the package.
fn program(manifest: &Value, wish: &Wish) -> Result<String, Error> {
    let short = wish.name.rsplit('/').next().unwrap_or(&wish.name);
    let names: Vec<&str> = match &manifest["bin"] {
        Value::String(_) => vec![short],
        Value::Object(programs) => programs.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let wanted = wish.program.as_deref();
    let found = match wanted {
        Some(wanted) => names.iter().find(|name| **name == wanted),
        None if names.len() == 1 => names.first(),
        None => names.iter().find(|name| **name == short),
    };
    let is_plain = |name: &&&str| !name.contains(['/', '\\']) && !name.starts_with('.');
    found
        .filter(is_plain)
        .map(|name| (*name).to_owned())
        .ok_or_else(|| {
            let named = wanted.unwrap_or(short);
            failed(format!("`{}` has no program `{named}`", wish.name)).hint(
                "check the arguments of the entry: the package has another name than its program, perhaps",
            )
        })
}

fn document(path: &Path) -> Result<Value, Error> {
    let broken = |why: String| failed(format!("`{}`: {why}", path.display()));
    let text = files::read_text(path, limits::CONFIG_FILE_BYTES)
        .map_err(|error| broken(error.to_string()))?
        .ok_or_else(|| broken("npm did not write it".to_owned()))?;
    serde_json::from_str(&text).map_err(|error| broken(error.to_string()))
}

/// Whether npx ran this before: it keeps one folder per list of packages, with a `package.json`.
pub(super) fn is_cached(home: &Path, set: &dyn Fn(&str) -> Option<PathBuf>, wish: &Wish) -> bool {
    let cache = set("npm_config_cache").or_else(|| set("NPM_CONFIG_CACHE"));
    let cache = cache.unwrap_or_else(|| home.join(".npm"));
    let folders = std::fs::read_dir(cache.join("_npx"))
        .into_iter()
        .flatten()
        .flatten();
    folders.take(limits::DOCTOR_FILES).any(|folder| {
        folder
            .path()
            .join("node_modules")
            .join(&wish.name)
            .join("package.json")
            .is_file()
    })
}
