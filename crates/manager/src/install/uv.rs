//! Packages of PyPI: `uv pip compile` names every version with the hashes of its files, and `uv pip install` takes
//! nothing that has another hash.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mcp::StdioTarget;
use protocol::{Error, ExactPackage, PackageManager};

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
    let uv = beside(tools, "uv")?;
    let io = |error: std::io::Error| failed(format!("`{}`: {error}", folder.display()));
    files::create_private_dir(folder).map_err(io)?;
    let requirement = wish.requirement(version);
    say(&format!("uv fetches {requirement}"));
    let call = async |args: &[&str], stdin: &str| {
        let mut words: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        if let Some(python) = wish
            .python
            .as_deref()
            .filter(|_| args[0] != "pip" || args[1] != "install")
        {
            words.extend(["--python", python].map(OsStr::new));
        }
        run::run(&uv, &words, tools, folder, stdin, say).await
    };
    let compile = [
        "pip",
        "compile",
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--quiet",
        "-",
    ];
    let requirements = call(&compile, &format!("{requirement}\n")).await?;
    let package = exact(&requirements, wish).ok_or_else(|| {
        failed(format!(
            "uv names no version and hashes of `{}`: it comes from no registry",
            wish.name
        ))
    })?;
    files::write_private(&folder.join("requirements.txt"), requirements.as_bytes()).map_err(io)?;
    call(&["venv", "--quiet", "venv"], "").await?;
    let install = [
        "pip",
        "install",
        "--python",
        "venv",
        "--require-hashes",
        "--requirement",
        "requirements.txt",
    ];
    call(&install, "").await?;
    let name = wish.program.as_deref().unwrap_or(&wish.name);
    let program = Path::new("venv/bin").join(name);
    if name.contains(['/', '\\']) || !folder.join(&program).is_file() {
        return Err(failed(format!("`{}` has no program `{name}`", wish.name))
            .hint("check the arguments of the entry: uvx --from PACKAGE PROGRAM names both"));
    }
    Ok((package, program))
}

/// Whether uv has the package: unpacked or built in its cache, or installed as a tool. `None`: its cache is laid out in a way
/// that is not known here.
pub(super) fn is_cached(home: &Path, set: &dyn Fn(&str) -> Option<PathBuf>, wish: &Wish) -> Option<bool> {
    let name = normal(&wish.name);
    let tools = set("UV_TOOL_DIR").unwrap_or_else(|| {
        let data = set("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        data.join("uv/tools")
    });
    if tools.join(&name).is_dir() {
        return Some(true);
    }
    let cache = set("UV_CACHE_DIR").unwrap_or_else(|| {
        let caches = set("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
        caches.join("uv")
    });
    if !cache.is_dir() {
        return Some(false);
    }
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
        found
            .take(limits::DOCTOR_FILES)
            .map(|found| found.path())
            .collect()
    };
    let begins = |path: &PathBuf, with: &str| {
        path.file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| name.starts_with(with))
    };
    // `wheels-v8/pypi/NAME/1.2.3-py3-none-any`, and `wheels-v8/index/HASH/NAME/…` of other indexes.
    let kinds: Vec<PathBuf> = inside(&cache)
        .into_iter()
        .filter(|path| begins(path, "wheels-v") || begins(path, "sdists-v"))
        .collect();
    if kinds.is_empty() && cache.join("archive-v0").exists() {
        return None;
    }
    // What was only looked at leaves metadata.
    const METADATA: [&str; 4] = ["msgpack", "lock", "http", "rev"];
    let is_content = |path: &PathBuf| {
        let end = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        !METADATA.contains(&end)
    };
    let mut indexes = kinds.iter().map(|kind| kind.join("pypi")).collect::<Vec<_>>();
    indexes.extend(kinds.iter().flat_map(|kind| inside(&kind.join("index"))));
    Some(
        indexes
            .iter()
            .any(|index| inside(&index.join(&name)).iter().any(is_content)),
    )
}

/// A name as PyPI compares it (PEP 503).
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

/// The wished package in what `uv pip compile` wrote: `name==1.2 \` and its `--hash=` lines.
fn exact(requirements: &str, wish: &Wish) -> Option<ExactPackage> {
    let mut lines = requirements.lines();
    let version = lines.find_map(|line| {
        let (name, rest) = line.split_once("==")?;
        let name = name.split('[').next()?;
        let version = rest.split([' ', ';', '\\']).next()?;
        (normal(name.trim()) == normal(&wish.name)).then(|| version.to_owned())
    })?;
    let mut hashes: Vec<&str> = lines
        .map(str::trim)
        .take_while(|line| line.starts_with("--hash="))
        .filter_map(|line| line.strip_prefix("--hash="))
        .map(|hash| hash.trim_end_matches(['\\', ' ']))
        .collect();
    hashes.sort_unstable();
    (!hashes.is_empty()).then(|| ExactPackage {
        manager: PackageManager::Uv,
        name: wish.name.clone(),
        version,
        integrity: hashes.join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_of_the_package_itself_are_taken() {
        let wish = Wish {
            manager: PackageManager::Uv,
            name: "Some_Server".to_owned(),
            spec: "Some_Server".to_owned(),
            program: None,
            python: None,
            own_from: 1,
        };
        let text = "anyio==4.1 \\\n    --hash=sha256:aa\nsome-server[cli]==1.2.3 ; python_version > '3' \\\n    --hash=sha256:cc \\\n    --hash=sha256:bb\nzlib==1 \\\n    --hash=sha256:dd\n";
        let package = exact(text, &wish).unwrap();
        assert_eq!(
            (&*package.version, &*package.integrity),
            ("1.2.3", "sha256:bb sha256:cc")
        );
        assert_eq!(exact("some-server @ git+https://h/r\n", &wish), None);
    }
}
