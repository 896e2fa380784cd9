//! Bundles: an MCP server in one zip file with a `manifest.json` (MCPB, formerly DXT). Nothing of one is run here.
//!
//! A bundle is unpacked below the data folder, under the digest of its bytes; its entry's `cwd` is that folder.

mod manifest;
pub(crate) mod unpack;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use protocol::{Error, ErrorKind, Layer, ServerEntry};
use sha2::{Digest as _, Sha256};

use crate::config::file::hex;
use crate::core::Core;
use crate::env::Env;
use crate::limits;
use crate::server::Server;
pub(crate) use manifest::{Manifest, Question, Values};

/// Whether a file is taken for a bundle, by its name.
pub(crate) fn is_bundle(path: &str) -> bool {
    let extension = Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        extension.eq_ignore_ascii_case("mcpb") || extension.eq_ignore_ascii_case("dxt")
    })
}

/// A bundle that was looked at.
pub(crate) struct Bundle {
    path: PathBuf,
    pub sha256: String,
    pub manifest: Manifest,
}

/// Reads a bundle's manifest and digest; `expected`: the SHA-256 it must have. Blocks on the disk.
pub(crate) fn look(path: &Path, expected: Option<&str>) -> Result<Bundle, Error> {
    let refused = |why: String| {
        Error::new(ErrorKind::InvalidParams, format!("`{}`: {why}", path.display())).path("/source")
    };
    let metadata = std::fs::metadata(path).map_err(|error| {
        Error::new(ErrorKind::NotFound, format!("`{}`: {error}", path.display())).path("/source")
    })?;
    if !path.is_absolute() || !metadata.is_file() {
        return Err(refused("it is no file with an absolute path".to_owned()));
    }
    if metadata.len() > limits::BUNDLE_BYTES {
        return Err(refused(format!(
            "it is larger than {} MB",
            limits::BUNDLE_BYTES >> 20
        )));
    }
    let mut file = std::fs::File::open(path).map_err(|error| refused(error.to_string()))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file
            .read(&mut buffer)
            .map_err(|error| refused(error.to_string()))?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
    }
    let sha256 = hex(&digest.finalize());
    if let Some(expected) = expected
        && !expected.trim().eq_ignore_ascii_case(&sha256)
    {
        return Err(refused(format!(
            "its SHA-256 is {sha256}, not the expected {}",
            expected.trim()
        ))
        .hint("it was changed or damaged on its way: fetch it again from its publisher"));
    }
    let text = unpack::manifest(path).map_err(refused)?;
    let manifest = Manifest::read(&text).map_err(refused)?;
    Ok(Bundle {
        path: path.to_owned(),
        sha256,
        manifest,
    })
}

impl Bundle {
    /// Where it is unpacked to.
    pub fn folder(&self, core: &Core) -> PathBuf {
        let name: String = self
            .manifest
            .name
            .chars()
            .map(|one| {
                if one.is_ascii_alphanumeric() || one == '-' {
                    one
                } else {
                    '_'
                }
            })
            .take(40)
            .collect();
        root(core).join(format!("{name}-{}", &self.sha256[..16]))
    }

    /// The entry it becomes.
    pub fn entry(&self, core: &Core, values: &Values) -> Result<ServerEntry, String> {
        self.manifest.entry(&core.env, &self.folder(core), values)
    }

    /// Unpacks it, unless that was done before. Blocks on the disk.
    pub fn unpack(&self, core: &Core) -> Result<(), Error> {
        let folder = self.folder(core);
        if folder.is_dir() {
            return Ok(());
        }
        let failed = |why: String| {
            Error::new(
                ErrorKind::WriteFailed,
                format!("`{}` was not unpacked: {why}", self.path.display()),
            )
            .path("/source")
        };
        let io = |error: std::io::Error| failed(error.to_string());
        files::create_private_dir(&root(core)).map_err(io)?;
        let staging = tempfile::Builder::new()
            .prefix(".unpack-")
            .tempdir_in(root(core))
            .map_err(io)?;
        // What was judged is what is unpacked, whatever happened to the file since.
        let digest = unpack::unpack(&self.path, staging.path()).map_err(failed)?;
        if digest != self.sha256 {
            return Err(failed("it changed while it was read".to_owned()));
        }
        self.manifest.make_runnable(staging.path()).map_err(io)?;
        match std::fs::rename(staging.path(), &folder) {
            // Another process was quicker with the same bytes.
            Err(_) if folder.is_dir() => Ok(()),
            Err(error) => Err(io(error)),
            Ok(()) => {
                // What it holds lies elsewhere now.
                let _ = staging.keep();
                Ok(())
            }
        }
    }
}

fn root(core: &Core) -> PathBuf {
    core.env.data_dir().join("bundles")
}

/// The unpacked bundle that an entry of the user starts from.
pub(crate) fn folder_of(core: &Core, server: &Server) -> Option<PathBuf> {
    let cwd = PathBuf::from(&**server.entry().cwd.as_ref()?);
    let is_ours = server.layer == Layer::User && cwd.parent() == Some(root(core).as_path());
    is_ours.then_some(cwd)
}

/// Deletes an unpacked bundle that no entry starts from any more. Blocks on the disk.
pub(crate) fn discard(core: &Core, folder: &Path, servers: &[std::sync::Arc<Server>]) {
    let is_used = servers
        .iter()
        .any(|server| folder_of(core, server).as_deref() == Some(folder));
    if is_used || folder.parent() != Some(root(core).as_path()) {
        return;
    }
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "an unpacked bundle could not be deleted");
    }
}

/// The names of platforms as manifests write them (those of Node.js).
fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// The folders that manifests may name.
fn places(env: &Env, folder: &Path) -> BTreeMap<&'static str, String> {
    let home = env.home();
    let text = |path: PathBuf| path.display().to_string();
    BTreeMap::from([
        ("__dirname", text(folder.to_owned())),
        ("HOME", text(home.to_owned())),
        ("DESKTOP", text(home.join("Desktop"))),
        ("DOCUMENTS", text(home.join("Documents"))),
        ("DOWNLOADS", text(home.join("Downloads"))),
        ("pathSeparator", std::path::MAIN_SEPARATOR.to_string()),
        ("/", std::path::MAIN_SEPARATOR.to_string()),
    ])
}
