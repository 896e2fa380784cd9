//! Writes the generated files, or says which are stale.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

#[derive(clap::Args)]
pub struct Arguments {
    /// Write nothing; fail if a file is stale
    #[arg(long)]
    check: bool,
}

/// Folders in which every file is generated, so that one which no method makes any more is stale too.
const GENERATED: [&str; 1] = ["schema/methods"];

pub fn run(arguments: &Arguments) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = protocol::generated_files();
    let stale: Vec<&(String, String)> = files
        .iter()
        .filter(|(path, text)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(text))
        .collect();
    let left_over = left_over(&root, &files)?;

    if arguments.check {
        if stale.is_empty() && left_over.is_empty() {
            return Ok(());
        }
        let names = stale.iter().map(|(path, _)| path.clone()).chain(left_over);
        let list: String = names.map(|name| format!("\n  {name}")).collect();
        bail!("generated files are stale:{list}\nhint: run `cargo xtask codegen` and commit what it writes");
    }

    for (path, text) in stale {
        let target = root.join(path);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        fs::write(&target, text).with_context(|| format!("cannot write `{path}`"))?;
        println!("wrote {path}");
    }
    for path in left_over {
        fs::remove_file(root.join(&path)).with_context(|| format!("cannot remove `{path}`"))?;
        println!("removed {path}");
    }
    Ok(())
}

/// Files in the generated folders that nothing makes any more.
fn left_over(root: &Path, files: &[(String, String)]) -> Result<Vec<String>> {
    let made: BTreeSet<PathBuf> = files.iter().map(|(path, _)| root.join(path)).collect();
    let mut left_over = Vec::new();
    for folder in GENERATED {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list `{folder}`"))?;
            if !made.contains(&entry.path()) {
                left_over.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    left_over.sort();
    Ok(left_over)
}
