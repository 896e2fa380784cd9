//! The JSON Schema bundle (draft 2020-12).

/// The generated files: path relative to the repository, content.
pub fn generated_files() -> Vec<(String, String)> {
    Vec::new()
}
