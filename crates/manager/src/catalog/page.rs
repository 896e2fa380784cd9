//! Pages of a list over many servers: bounded in items and bytes, with a cursor for one state of the catalog.

use protocol::{CatalogItem, Cursor, Error, ErrorKind};

use crate::config::file;
use crate::limits;

/// One page, and where the next begins.
pub(crate) struct Page {
    pub items: Vec<CatalogItem>,
    pub next: Option<Cursor>,
}

/// Cuts a page out of all items. `state` stands for the method, its other parameters and the catalog.
pub(crate) fn cut<'a>(
    items: impl Iterator<Item = &'a CatalogItem>,
    state: &str,
    cursor: Option<&Cursor>,
    limit: Option<u32>,
) -> Result<Page, Error> {
    let digest = file::digest(state.as_bytes());
    let start = match cursor {
        None => 0,
        Some(cursor) => offset(cursor, &digest).ok_or_else(stale)?,
    };
    let limit = limit.map_or(limits::PAGE_ITEMS, |limit| limit as usize);
    let mut page = Page {
        items: Vec::new(),
        next: None,
    };
    let mut bytes = 0;
    for (index, item) in items.enumerate().skip(start) {
        let size = size(item);
        // A page holds at least one item, however large.
        if page.items.len() == limit || (bytes + size > limits::PAGE_BYTES && !page.items.is_empty()) {
            page.next = Some(Cursor::from(format!("{index}-{digest}")));
            break;
        }
        bytes += size;
        page.items.push(item.clone());
    }
    Ok(page)
}

/// The answer to a cursor of another list.
pub(crate) fn stale() -> Error {
    Error::new(
        ErrorKind::StaleCursor,
        "the list changed since this cursor was given",
    )
    .hint("begin again without a cursor")
}

/// Where the page of a cursor begins; `None` when it was given for something else.
pub(crate) fn offset(cursor: &str, digest: &str) -> Option<usize> {
    let (offset, given) = cursor.split_once('-')?;
    (given == digest).then(|| offset.parse().ok()).flatten()
}

/// Roughly what an item takes on the wire.
fn size(item: &CatalogItem) -> usize {
    let raw = match item {
        CatalogItem::Tool(item) => item.raw.get().len() + item.description.as_ref().map_or(0, String::len),
        CatalogItem::Resource(item) => {
            item.raw.get().len() + item.description.as_ref().map_or(0, String::len)
        }
        CatalogItem::Template(item) => {
            item.raw.get().len() + item.description.as_ref().map_or(0, String::len)
        }
        CatalogItem::Prompt(item) => item.raw.get().len() + item.description.as_ref().map_or(0, String::len),
    };
    raw + 256
}
