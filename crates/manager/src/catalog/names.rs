//! Names under which tools are exposed: legal for every model, short, and never changed by another server.

use protocol::ToolNames;
use sha2::{Digest, Sha256};

use crate::config::file::hex;
use crate::model::builtin::Builtin;

const TEMPLATE: &str = "mcp__{server}__{tool}";
const LENGTH: usize = 64;
/// Hexadecimal digits that tell apart what had to be changed or cut.
const SUFFIX: usize = 8;

/// How a host wants names to be made.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    template: String,
    length: usize,
}

impl Naming {
    pub fn new(wanted: Option<&ToolNames>) -> Naming {
        let template = wanted
            .and_then(|names| names.template.clone())
            .filter(|template| template.contains("{tool}"));
        let length = wanted
            .and_then(|names| names.max_length)
            .map_or(LENGTH, |length| length as usize);
        Naming {
            template: template.unwrap_or_else(|| TEMPLATE.to_owned()),
            length,
        }
    }

    /// The name of one tool. It depends on server, tool, template and length only.
    pub fn exposed(&self, server: &str, tool: &str) -> String {
        let plain = self.template.replace("{server}", server).replace("{tool}", tool);
        let legal: String = plain
            .chars()
            .map(|character| if is_legal(character) { character } else { '_' })
            .collect();
        let is_clear = legal == plain
            && legal.len() <= self.length
            && !self.is_ambiguous(server, tool)
            && Builtin::from_name(&legal).is_none();
        if is_clear {
            return legal;
        }
        let mut hash = Sha256::new();
        hash.update(server.as_bytes());
        hash.update([0]);
        hash.update(tool.as_bytes());
        let suffix = &hex(&hash.finalize())[..SUFFIX];
        let kept = self.length.saturating_sub(SUFFIX + 1).min(legal.len());
        format!("{}_{suffix}", &legal[..kept])
    }

    /// Two pairs of server and tool could give this text: the template names no server or has nothing between the two, or
    /// what it has between them occurs where they meet.
    fn is_ambiguous(&self, server: &str, tool: &str) -> bool {
        let (Some(at_server), Some(at_tool)) = (self.template.find("{server}"), self.template.find("{tool}"))
        else {
            return true;
        };
        let (first, second, between) = if at_server < at_tool {
            (
                server,
                tool,
                &self.template[at_server + "{server}".len()..at_tool],
            )
        } else {
            (tool, server, &self.template[at_tool + "{tool}".len()..at_server])
        };
        let joined = format!("{first}{between}{second}");
        between.is_empty()
            || joined.find(between) != Some(first.len())
            || joined.rfind(between) != Some(first.len())
    }

    /// What the names of a server's tools begin with.
    pub fn prefix(&self, server: &str) -> String {
        let before = self.template.split("{tool}").next().unwrap_or_default();
        before.replace("{server}", server)
    }
}

fn is_legal(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// A server's or resource's name as it stands in a mention or a slash command: no blanks, nothing that ends a word.
pub(crate) fn alias(name: &str) -> String {
    let alias: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "_-./".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    if alias.is_empty() { "_".to_owned() } else { alias }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_stay_plain() {
        let naming = Naming::new(None);
        assert_eq!(naming.exposed("docs", "read"), "mcp__docs__read");
        assert_eq!(naming.prefix("docs"), "mcp__docs__");
        assert_eq!(naming.exposed("srv", "notion_search"), "mcp__srv__notion_search");
    }

    #[test]
    fn built_in_names_are_taken() {
        let naming = naming("{tool}");
        assert!(
            naming
                .exposed("docs", "mcp_resource_read")
                .starts_with("mcp_resource_read_")
        );
    }

    #[test]
    fn a_template_that_tells_no_servers_apart_is_helped() {
        let check = |template: &str, one: (&str, &str), other: (&str, &str)| {
            let naming = naming(template);
            assert_ne!(
                naming.exposed(one.0, one.1),
                naming.exposed(other.0, other.1),
                "{template}"
            );
        };
        check("{tool}", ("mine", "read"), ("theirs", "read"));
        check("x_{tool}", ("mine", "read"), ("theirs", "read"));
        check("{server}{tool}", ("a", "bc"), ("ab", "c"));
        check("{tool}_{server}", ("c", "a_b"), ("b_c", "a"));
        assert_eq!(naming("{tool}__{server}").exposed("docs", "read"), "read__docs");
    }

    fn naming(template: &str) -> Naming {
        Naming::new(Some(&ToolNames {
            template: Some(template.to_owned()),
            max_length: None,
        }))
    }

    #[test]
    fn names_that_collapse_are_told_apart() {
        let naming = Naming::new(None);
        let dotted = naming.exposed("srv", "notion.search");
        assert!(dotted.starts_with("mcp__srv__notion_search_"));
        assert_ne!(dotted, naming.exposed("srv", "notion/search"));
        assert_ne!(naming.exposed("a__b", "c"), naming.exposed("a", "b__c"));
        assert_ne!(naming.exposed("a_", "b"), naming.exposed("a", "_b"));
    }

    proptest! {
        #[test]
        fn every_name_is_legal(server in "\\PC{1,40}", tool in "\\PC{1,100}") {
            let name = Naming::new(None).exposed(&server, &tool);
            prop_assert!(name.len() <= LENGTH && name.chars().all(is_legal));
        }

        #[test]
        fn different_tools_have_different_names(a in ("[a-c_.]{1,6}", "[a-c_.]{1,6}"), b in ("[a-c_.]{1,6}", "[a-c_.]{1,6}")) {
            prop_assume!(a != b);
            for template in [TEMPLATE, "{tool}", "{server}{tool}", "{tool}_{server}", "{tool}.{server}{tool}"] {
                let naming = naming(template);
                prop_assert_ne!(naming.exposed(&a.0, &a.1), naming.exposed(&b.0, &b.1));
            }
        }
    }
}
