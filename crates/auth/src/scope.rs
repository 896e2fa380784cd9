//! Which scope to ask for (RFC 6749 §3.3; MCP, Scope Selection Strategy and Step-Up Authorization).

/// The wanted scopes of several sources, each once, in order.
pub(crate) fn union<'a>(sources: impl IntoIterator<Item = &'a str>) -> String {
    let mut scopes: Vec<&str> = Vec::new();
    for scope in sources.into_iter().flat_map(str::split_ascii_whitespace) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes.join(" ")
}

/// Whether every scope of `wanted` is among `granted`.
pub(crate) fn covers(granted: &str, wanted: &str) -> bool {
    wanted
        .split_ascii_whitespace()
        .all(|scope| granted.split_ascii_whitespace().any(|known| known == scope))
}

/// A scope without the tokens that no scope may have (RFC 6749, appendix A.4).
pub(crate) fn valid(scope: &str) -> String {
    let tokens = scope.split_ascii_whitespace().filter(|token| {
        token
            .bytes()
            .all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
    });
    tokens.collect::<Vec<_>>().join(" ")
}

/// What the choice is made from.
#[derive(Default)]
pub(crate) struct Wishes<'a> {
    /// Of the entry; it is asked for as it is.
    pub configured: Option<&'a str>,
    /// What the server's challenge names.
    pub challenged: Option<&'a str>,
    /// What earlier logins asked for or got, when the challenge wants more than that.
    pub earlier: Option<&'a str>,
    /// Of the resource's metadata.
    pub resource: &'a [String],
    /// Of the authorization server's metadata, if it lists any.
    pub issuer: Option<&'a [String]>,
}

/// The scope of the next login; empty for none.
///
/// `offline_access` is added only where the authorization server lists it, and never to what the person configured.
pub(crate) fn choose(wishes: &Wishes<'_>) -> String {
    let lists = |name: &str| {
        wishes
            .issuer
            .map(|scopes| scopes.iter().any(|scope| scope == name))
    };
    let asked = match (wishes.configured, wishes.challenged) {
        (Some(configured), challenged) => {
            let more = challenged.filter(|_| wishes.earlier.is_some());
            return valid(&union([configured].into_iter().chain(more).chain(wishes.earlier)));
        }
        (None, Some(challenged)) => challenged.to_owned(),
        (None, None) => {
            let scopes = wishes.resource.iter().map(String::as_str);
            let scopes = scopes.filter(|scope| *scope != "offline_access" || lists(scope) != Some(false));
            union(scopes)
        }
    };
    let mut scope = valid(&union(wishes.earlier.into_iter().chain([asked.as_str()])));
    if !scope.is_empty() && lists("offline_access") == Some(true) {
        scope = union([scope.as_str(), "offline_access"]);
    }
    scope
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_goes_before_the_metadata() {
        let listed = ["a".to_owned(), "b".to_owned()];
        let offline = ["a".to_owned(), "offline_access".to_owned()];
        let rows: [(Wishes<'_>, &str); 8] = [
            (Wishes::default(), ""),
            (
                Wishes {
                    resource: &listed,
                    ..Wishes::default()
                },
                "a b",
            ),
            (
                Wishes {
                    challenged: Some("c"),
                    resource: &listed,
                    ..Wishes::default()
                },
                "c",
            ),
            (
                Wishes {
                    challenged: Some("w"),
                    earlier: Some("r"),
                    ..Wishes::default()
                },
                "r w",
            ),
            (
                Wishes {
                    configured: Some("x"),
                    challenged: Some("c"),
                    ..Wishes::default()
                },
                "x",
            ),
            (
                Wishes {
                    configured: Some("x"),
                    challenged: Some("c"),
                    earlier: Some("x"),
                    ..Wishes::default()
                },
                "x c",
            ),
            (
                Wishes {
                    challenged: Some("c"),
                    issuer: Some(&offline),
                    ..Wishes::default()
                },
                "c offline_access",
            ),
            (
                Wishes {
                    resource: &offline,
                    issuer: Some(&listed),
                    ..Wishes::default()
                },
                "a",
            ),
        ];
        for (wishes, expected) in rows {
            assert_eq!(choose(&wishes), expected);
        }
        assert_eq!(valid("a \"b c\u{7f} d"), "a d");
        assert!(covers("a b", "b") && !covers("a", "a b") && covers("a", ""));
    }
}
