//! Options that `add` and `edit` share: what any entry may have, local or remote.

use protocol::{Reconnect, ServerEntry, ToolLists};

#[derive(Debug, clap::Args)]
pub struct Fields {
    /// What people are shown
    #[arg(long)]
    pub label: Option<String>,
    /// Give calls up after SECONDS without an answer or progress (1 to 600)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: Option<u64>,
    /// Do not start it again after a crash
    #[arg(long)]
    pub no_reconnect: bool,
    /// Offer only tools of this name, * for any run of characters; may be repeated
    #[arg(long, value_name = "TOOL")]
    pub allow_tool: Vec<String>,
    /// Never offer tools of this name; may be repeated
    #[arg(long, value_name = "TOOL")]
    pub deny_tool: Vec<String>,
    /// Ask before a model's call of tools of this name; may be repeated
    #[arg(long, value_name = "TOOL")]
    pub ask_tool: Vec<String>,
}

impl Fields {
    pub fn is_empty(&self) -> bool {
        self.of(ServerEntry::default()) == ServerEntry::default()
    }

    /// The entry with what is given.
    pub fn of(&self, entry: ServerEntry) -> ServerEntry {
        let list = |patterns: &[String]| (!patterns.is_empty()).then(|| patterns.to_vec());
        let tools = ToolLists {
            allow: list(&self.allow_tool),
            deny: list(&self.deny_tool),
            ask: list(&self.ask_tool),
            ..ToolLists::default()
        };
        ServerEntry {
            label: self.label.clone(),
            timeout_ms: self.timeout.map(|seconds| seconds * 1000),
            reconnect: self.no_reconnect.then_some(Reconnect { enabled: false }),
            tools: (tools != ToolLists::default()).then_some(tools),
            ..entry
        }
    }
}
