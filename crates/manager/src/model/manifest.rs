//! The lists of tools as they were read last, so that they can be searched while their servers do not run.

use std::path::PathBuf;
use std::sync::Arc;

use protocol::{CatalogItem, Category};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::guard;
use crate::catalog::items::{List, Reader};
use crate::limits;
use crate::server::Server;

/// One list of tools, each as its server wrote it.
#[derive(Serialize, Deserialize)]
struct Manifest {
    version: u32,
    tools: Vec<Box<RawValue>>,
}

fn path(server: &Server) -> PathBuf {
    let folder = server.core.env.data_dir().join("cache/manifests");
    folder.join(format!("{}.json", server.digest))
}

/// Keeps the list of a server for the time when it does not run.
pub(crate) fn keep(server: &Arc<Server>, list: &List) {
    let tools = list.items.iter().filter_map(|item| match &item.shown {
        CatalogItem::Tool(tool) => Some(tool.raw.0.clone()),
        _ => None,
    });
    let manifest = Manifest {
        version: 1,
        tools: tools.collect(),
    };
    let path = path(server);
    let write = move || {
        let text = serde_json::to_string(&manifest).unwrap_or_default();
        if text.len() as u64 > limits::MANIFEST_BYTES
            || files::read_text(&path, limits::MANIFEST_BYTES).is_ok_and(|old| old.as_ref() == Some(&text))
        {
            return;
        }
        let folder = path.parent().map(files::create_private_dir).transpose();
        if let Err(error) = folder.and_then(|_| files::write_cache(&path, text.as_bytes())) {
            tracing::debug!(%error, "a list of tools could not be kept");
        }
    };
    let core = Arc::clone(&server.core);
    tokio::spawn(async move {
        let _turn = core.caches.lock().await;
        // A panic there costs one cached list.
        let _ = tokio::task::spawn_blocking(write).await;
    });
}

/// The list of a server as it was read last, by this or another process. What is held stays hidden.
pub(crate) async fn load(server: &Arc<Server>) -> Option<List> {
    let server = Arc::clone(server);
    let work = tokio::task::spawn_blocking(move || {
        let text = files::read_text(&path(&server), limits::MANIFEST_BYTES).ok()??;
        let manifest: Manifest = serde_json::from_str(&text).ok()?;
        let reader = Reader {
            server: &server.name,
            entry: &server.entry(),
            naming: &server.core.settings().naming,
            header_rules: false,
        };
        let mut list = reader.list(Category::Tools, manifest.tools, Vec::new());
        guard::mark(&server, &server.core.pins.accepted(&server.lineage()), &mut list);
        Some(list)
    });
    work.await.ok().flatten()
}
