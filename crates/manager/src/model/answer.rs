//! From a tool's result to what a model reads: its blocks as they came, and what is too large as a preview.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::{Dir, Issue, IssueKind, Raw, Session, Spilled, Uri};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::builtin::Reading;
use super::spill::{Entry, Spills};
use crate::limits;

/// A server's result of a tool call, taken apart.
pub(crate) struct Parts {
    pub content: Vec<Box<RawValue>>,
    pub structured: Option<Box<RawValue>>,
    pub is_error: bool,
}

impl Parts {
    /// Takes a result apart. What is no result of a tool becomes one text.
    pub fn of(result: &RawValue) -> Parts {
        #[derive(Deserialize)]
        struct Seen {
            #[serde(default)]
            content: Option<Vec<Box<RawValue>>>,
            #[serde(default, rename = "structuredContent")]
            structured: Option<Box<RawValue>>,
            #[serde(default, rename = "isError")]
            is_error: Option<Box<RawValue>>,
        }
        let seen = serde_json::from_str::<Seen>(result.get()).ok();
        match seen {
            Some(seen) if seen.content.is_some() || seen.structured.is_some() => Parts {
                content: seen
                    .content
                    .unwrap_or_default()
                    .into_iter()
                    .map(|block| {
                        if block.get().starts_with('{') {
                            block
                        } else {
                            text(block.get())
                        }
                    })
                    .collect(),
                structured: seen.structured,
                is_error: seen.is_error.is_some_and(|flag| flag.get() == "true"),
            },
            _ => Parts {
                content: vec![text(result.get())],
                structured: None,
                is_error: false,
            },
        }
    }
}

/// A text block.
pub(crate) fn text(text: &str) -> Box<RawValue> {
    Raw::from(&json!({ "type": "text", "text": text })).0
}

/// What fits into a model's budget.
#[derive(Default)]
pub(crate) struct Fitted {
    pub content: Vec<Raw>,
    pub structured: Option<Box<RawValue>>,
    pub spilled: Vec<Spilled>,
    pub issues: Vec<Issue>,
}

/// The members of a block that tell how large it is.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default, rename = "mimeType")]
    mime_type: Option<String>,
    #[serde(default)]
    resource: Option<Box<Block>>,
    #[serde(default)]
    blob: Option<String>,
}

/// What a block holds.
enum Holds {
    Text(String),
    Binary { bytes: Vec<u8>, mime_type: String },
    Other,
}

impl Holds {
    fn of(raw: &RawValue) -> Holds {
        let Ok(block) = serde_json::from_str::<Block>(raw.get()) else {
            return Holds::Other;
        };
        let block = match block.resource {
            Some(resource) => *resource,
            None => block,
        };
        if let Some(text) = block.text {
            return Holds::Text(text);
        }
        let Some(data) = block.data.or(block.blob) else {
            return Holds::Other;
        };
        match STANDARD.decode(data.as_bytes()) {
            Ok(bytes) => Holds::Binary {
                bytes,
                mime_type: block
                    .mime_type
                    .unwrap_or_else(|| "application/octet-stream".to_owned()),
            },
            Err(_) => Holds::Other,
        }
    }
}

/// Where large parts go, and how they are read again.
pub(crate) struct Budget<'a> {
    pub chars: usize,
    pub spills: &'a Spills,
    pub session: Option<&'a Session>,
    pub reading: Reading,
}

impl Budget<'_> {
    /// Makes a result fit. Blocks on the disk when something must go there.
    pub fn fit(&self, parts: Parts) -> Fitted {
        let mut fitted = Fitted::default();
        let mut content = parts.content;
        if content.len() > limits::MODEL_BLOCKS {
            self.gather(&mut content, limits::MODEL_BLOCKS, &mut fitted);
        }
        let mut sizes: Vec<usize> = content.iter().map(|block| size(block)).collect();
        let preview = (self.chars / 4).min(limits::PREVIEW_CHARS);
        // The largest first, as long as a preview is smaller than what it stands for.
        while sizes.iter().sum::<usize>() > self.chars {
            let Some(index) = (0..sizes.len()).max_by_key(|index| sizes[*index]) else {
                break;
            };
            if sizes[index] <= preview + limits::PREVIEW_NOTE_CHARS {
                break;
            }
            content[index] = self.spill(index, &content[index], preview, &mut fitted);
            sizes[index] = size(&content[index]).min(preview + limits::PREVIEW_NOTE_CHARS);
        }
        if sizes.iter().sum::<usize>() > self.chars {
            let mut kept = 0;
            let room = self.chars.saturating_sub(limits::PREVIEW_NOTE_CHARS);
            let n_kept = sizes
                .iter()
                .take_while(|size| {
                    kept += **size;
                    kept <= room
                })
                .count();
            self.gather(&mut content, n_kept + 1, &mut fitted);
        }
        if let Some(structured) = parts.structured {
            if structured.get().chars().count() <= self.chars {
                fitted.structured = Some(structured);
            } else {
                self.structured(&structured, &mut content, preview, &mut fitted);
            }
        }
        fitted.content = content.into_iter().map(Raw).collect();
        fitted
    }

    /// Puts the blocks from the last that has room on into one file.
    fn gather(&self, content: &mut Vec<Box<RawValue>>, length: usize, fitted: &mut Fitted) {
        let at = length.saturating_sub(1).min(content.len());
        let rest = content.split_off(at);
        let n_blocks = rest.len();
        let text = serde_json::to_string(&rest).unwrap_or_default();
        fitted.spilled.retain(|spilled| (spilled.block as usize) < at);
        let block = match self.keep(at, text.as_bytes(), "application/json", fitted) {
            Some(entry) => format!(
                "[{n_blocks} more blocks are kept: {}]",
                self.reading.how(&entry, 0)
            ),
            None => format!("[{n_blocks} more blocks were left out]"),
        };
        content.push(self::text(&block));
    }

    fn spill(&self, index: usize, block: &RawValue, preview: usize, fitted: &mut Fitted) -> Box<RawValue> {
        let (bytes, mime_type, text) = match Holds::of(block) {
            Holds::Binary { bytes, mime_type } => {
                let label = format!("[{mime_type}, {} bytes", bytes.len());
                let block = match self.keep(index, &bytes, &mime_type, fitted) {
                    Some(entry) => format!("{label}, kept as the file {}]", entry.path.display()),
                    None => format!("{label}, too large to keep]"),
                };
                return self::text(&block);
            }
            Holds::Text(text) => (text.clone().into_bytes(), "text/plain", text),
            Holds::Other => (
                block.get().as_bytes().to_vec(),
                "application/json",
                block.get().to_owned(),
            ),
        };
        let kept = self.keep(index, &bytes, mime_type, fitted);
        self::text(&self.preview(&text, preview, kept.as_ref()))
    }

    fn preview(&self, text: &str, length: usize, kept: Option<&Entry>) -> String {
        let total = text.chars().count();
        let head: String = text.chars().take(length).collect();
        let more = total - length.min(total);
        match kept {
            Some(entry) => format!(
                "{head}\n[{more} more characters: {}]",
                self.reading.how(entry, length)
            ),
            None => format!("{head}\n[{more} more characters were left out]"),
        }
    }

    /// Structured content that is too large: once, as text, unless a text block says the same.
    fn structured(
        &self,
        structured: &RawValue,
        content: &mut Vec<Box<RawValue>>,
        preview: usize,
        fitted: &mut Fitted,
    ) {
        let message = "the structured content is larger than the budget and is not repeated here";
        fitted.issues.push(Issue::new(IssueKind::Note, message));
        if content.is_empty() {
            let kept = self.keep(0, structured.get().as_bytes(), "application/json", fitted);
            content.push(self::text(&self.preview(
                structured.get(),
                preview,
                kept.as_ref(),
            )));
        }
    }

    fn keep(&self, index: usize, bytes: &[u8], mime_type: &str, fitted: &mut Fitted) -> Option<Entry> {
        match self.spills.keep(self.session, bytes, mime_type) {
            Ok(entry) => {
                fitted.spilled.push(Spilled {
                    block: index as u32,
                    uri: Uri::from(entry.uri.as_str()),
                    path: Dir::from(entry.path.display().to_string()),
                    mime_type: entry.mime_type.clone(),
                    bytes: entry.bytes,
                });
                Some(entry)
            }
            Err(error) => {
                let message = format!("a part of the result could not be kept: {error}");
                fitted.issues.push(Issue::new(IssueKind::Note, message));
                None
            }
        }
    }
}

/// Characters that a block costs a model: its text, or its own JSON text.
pub(crate) fn size(raw: &RawValue) -> usize {
    // The JSON text is never shorter than what it says.
    match serde_json::from_str::<Block>(raw.get()) {
        Ok(Block {
            text: Some(text),
            resource: None,
            ..
        }) => text.chars().count(),
        _ => raw.get().chars().count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(chars: usize, result: serde_json::Value) -> (Fitted, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let spills = Spills::new(folder.path().join("results"));
        let budget = Budget {
            chars,
            spills: &spills,
            session: None,
            reading: Reading::Pillion,
        };
        let raw = RawValue::from_string(result.to_string()).unwrap();
        (budget.fit(Parts::of(&raw)), folder)
    }

    #[test]
    fn the_budget_is_exact() {
        for (length, n_spilled) in [(1999, 0), (2000, 0), (2001, 1)] {
            let (fitted, _folder) = fit(
                2000,
                json!({"content": [{"type": "text", "text": "ä".repeat(length)}]}),
            );
            assert_eq!(fitted.spilled.len(), n_spilled, "{length}");
            assert!(fitted.content.iter().map(|block| size(&block.0)).sum::<usize>() <= 2000);
        }
    }

    #[test]
    fn many_small_blocks_go_together() {
        let blocks: Vec<_> = (0..400)
            .map(|n| json!({"type": "text", "text": format!("line {n:03}")}))
            .collect();
        let (fitted, _folder) = fit(1000, json!({"content": blocks}));
        assert_eq!(fitted.spilled.len(), 1);
        assert_eq!(fitted.spilled[0].block as usize, fitted.content.len() - 1);
        assert!(fitted.content.iter().map(|block| size(&block.0)).sum::<usize>() <= 1000);
    }

    #[test]
    fn pictures_are_files_not_text() {
        let data = STANDARD.encode(vec![7u8; 3000]);
        let (fitted, _folder) = fit(
            1000,
            json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}),
        );
        assert_eq!(
            (fitted.spilled[0].bytes, fitted.spilled[0].mime_type.as_str()),
            (3000, "image/png")
        );
        assert!(
            fitted.content[0]
                .get()
                .contains("[image/png, 3000 bytes, kept as the file")
        );
    }

    #[test]
    fn what_is_no_result_is_a_text() {
        let (fitted, _folder) = fit(1000, json!({"toolResult": 7}));
        assert!(fitted.content[0].get().contains("toolResult"));
    }
}
