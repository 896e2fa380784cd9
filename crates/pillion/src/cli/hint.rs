//! The manager's hints are written for hosts; here they are put into the words of the command line.

/// What a host would do, and what a person types instead. `SERVER` stands for the server's name.
const WORDS: [(&str, &str); 15] = [
    ("`mcp.status`", "`pillion status`"),
    ("`mcp.tools.list`", "`pillion tools SERVER`"),
    ("`mcp.resources.list`", "`pillion resources SERVER`"),
    ("`mcp.prompts.list`", "`pillion prompts SERVER`"),
    ("`mcp.tools.review`", "`pillion pin SERVER`"),
    (
        "`mcp.decide` with subject `tools`",
        "`pillion pin SERVER --accept REVISION`",
    ),
    ("`mcp.logs`", "`pillion logs SERVER`"),
    ("`mcp.auth` or `pillion auth`", "`pillion auth SERVER`"),
    ("`mcp.auth.list`", "`pillion auth list`"),
    ("`mcp.auth`", "`pillion auth SERVER`"),
    ("`mcp.debug`", "`pillion debug SERVER`"),
    ("`mcp.enable`", "`pillion enable SERVER`"),
    ("`mcp.remove`", "`pillion remove SERVER`"),
    ("set `replace: true`", "add `--replace`"),
    ("in `args`", "as key=value"),
];

pub fn typed(hint: &str, server: Option<&str>) -> String {
    let mut hint = hint.to_owned();
    for (host, person) in WORDS {
        if hint.contains(host) {
            hint = hint.replace(host, &person.replace("SERVER", server.unwrap_or("SERVER")));
        }
    }
    hint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_to_type() {
        assert_eq!(
            typed("the log of the server (`mcp.logs`) says more", Some("notes")),
            "the log of the server (`pillion logs notes`) says more"
        );
        assert_eq!(typed("see `mcp.tools.list`", None), "see `pillion tools SERVER`");
        assert_eq!(
            typed("choose another name, or set `replace: true`", None),
            "choose another name, or add `--replace`"
        );
    }
}
