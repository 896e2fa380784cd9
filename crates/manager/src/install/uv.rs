//! Packages of PyPI: `uv pip compile` names every version with the hashes of its files, and `uv pip install` takes
//! nothing that has another hash.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mcp::StdioTarget;
use protocol::{Error, ExactPackage, PackageManager};

use super::{Wish, beside, failed, run};

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

/// The wished package in what `uv pip compile` wrote: `name==1.2 \` and its `--hash=` lines.
fn exact(requirements: &str, wish: &Wish) -> Option<ExactPackage> {
    let normal = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
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
