//! Puts `_meta` and other members into the text of params, leaving every other byte as it is.

use super::members::{self, Member};

/// The parts of which new params consist; joined they are the text.
#[derive(Debug)]
pub(crate) struct Spliced<'a> {
    parts: Vec<&'a str>,
    meta: String,
    /// Where `meta` stands among the parts.
    at: usize,
}

impl Spliced<'_> {
    pub(crate) fn parts(&self) -> Vec<&str> {
        let mut parts = self.parts.clone();
        parts.insert(self.at, &self.meta);
        parts
    }
}

/// `params` with these members in their `_meta`. `ours` is the inside of an object; where a member of it is there already, ours wins.
/// The caller's other `_meta` members are kept.
pub(crate) fn with_meta<'a>(params: &'a str, ours: &str) -> Spliced<'a> {
    let params = params.trim();
    if !may_have_meta(params) {
        return fresh_meta(params, ours);
    }
    let Some(theirs) = members::members(params)
        .filter(|member| member.is("_meta"))
        .last()
    else {
        return fresh_meta(params, ours);
    };
    let range = theirs.value_range();
    Spliced {
        parts: vec![&params[..range.start], &params[range.end..]],
        meta: merged(theirs.value, ours),
        at: 1,
    }
}

/// An object with further members in front. `extra` is the inside of an object.
pub(crate) fn with_members(params: &str, extra: &str) -> String {
    let inside = inside(params.trim());
    let comma = if extra.is_empty() || inside.is_empty() {
        ""
    } else {
        ","
    };
    format!("{{{extra}{comma}{inside}}}")
}

/// A quick look that never misses a member: a key is written plainly, or with an escape that begins `\u00`.
fn may_have_meta(params: &str) -> bool {
    memchr::memmem::find(params.as_bytes(), b"_meta\"").is_some()
        || memchr::memmem::find(params.as_bytes(), b"\\u00").is_some()
}

fn fresh_meta<'a>(params: &'a str, ours: &str) -> Spliced<'a> {
    let inside = inside(params);
    let comma = if inside.is_empty() { "" } else { "," };
    Spliced {
        parts: vec![inside, "}"],
        meta: format!(r#"{{"_meta":{{{ours}}}{comma}"#),
        at: 0,
    }
}

fn inside(object: &str) -> &str {
    object
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or("")
        .trim()
}

fn merged(theirs: &str, ours: &str) -> String {
    let object = format!("{{{ours}}}");
    let mine: Vec<Member<'_>> = members::members(&object).collect();
    let mut text = object[..object.len() - 1].to_owned();
    for member in members::members(theirs) {
        let key = members::string(member.key);
        if key.is_some_and(|key| mine.iter().any(|own| own.is(&key))) {
            continue;
        }
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&theirs[member.span.0..member.span.1]);
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn splice(params: &str, ours: &str) -> String {
        with_meta(params, ours).parts().concat()
    }

    #[test]
    fn splices() {
        let check = |params, ours, expected| assert_eq!(splice(params, ours), expected);
        check("{}", r#""t":1"#, r#"{"_meta":{"t":1}}"#);
        check(r#" {"name":"x"} "#, r#""t":1"#, r#"{"_meta":{"t":1},"name":"x"}"#);
        check(
            r#"{"_meta":{"traceparent":"00","t":5},"name":"x"}"#,
            r#""t":1"#,
            r#"{"_meta":{"t":1,"traceparent":"00"},"name":"x"}"#,
        );
        check(
            r#"{"a":{"_meta":{"x":1}}}"#,
            r#""t":1"#,
            r#"{"_meta":{"t":1},"a":{"_meta":{"x":1}}}"#,
        );
        check(
            r#"{"a":1,"\u005fmeta":{"x":1.10}}"#,
            r#""t":1"#,
            r#"{"a":1,"\u005fmeta":{"t":1,"x":1.10}}"#,
        );
        check(r#"{"_meta":null}"#, "", r#"{"_meta":{}}"#);
        check(
            r#"{"_meta":{"\ud800":1}}"#,
            r#""t":1"#,
            r#"{"_meta":{"t":1,"\ud800":1}}"#,
        );
    }

    #[test]
    fn members_in_front() {
        assert_eq!(with_members("{ }", r#""a":1"#), r#"{"a":1}"#);
        assert_eq!(with_members(r#"{"b":2}"#, r#""a":1"#), r#"{"a":1,"b":2}"#);
        assert_eq!(with_members(r#"{"b":2}"#, ""), r#"{"b":2}"#);
    }

    proptest! {
        #[test]
        fn the_rest_stays_as_it_is(
            before in prop::collection::vec(("[a-z]{1,5}", r#"(1\.10|"([a-z{}]|\\\\|\\"){0,6}"|\[1, 2\]|null)"#), 0..4),
            after in prop::collection::vec(("[a-z]{1,5}", "(1e400|\"_meta\"|\\{\"_meta\":\\{\\}\\})"), 0..4),
            theirs in prop::option::of(prop::collection::vec(("[a-z/.]{1,8}", "(1|\"x\"|\\{\\})"), 0..4)),
        ) {
            let list = |pairs: &[(String, String)]| {
                pairs.iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect::<Vec<_>>()
            };
            let mut all = list(&before);
            if let Some(theirs) = &theirs {
                all.push(format!("\"_meta\":{{{}}}", list(theirs).join(",")));
            }
            all.extend(list(&after));
            let params = format!("{{{}}}", all.join(" , "));
            let spliced = splice(&params, r#""io.x/y":1"#);

            let rest = |text: &str| members::members(text)
                .filter(|member| !member.is("_meta"))
                .map(|member| text[member.span.0..member.span.1].to_owned())
                .collect::<Vec<_>>();
            prop_assert_eq!(rest(&params), rest(&spliced));
            let meta = members::member(&spliced, "_meta").expect("put in");
            prop_assert_eq!(members::member(meta, "io.x/y"), Some("1"));
            let kept: Vec<_> = members::members(meta).skip(1).map(|member| meta[member.span.0..member.span.1].to_owned()).collect();
            let expected: Vec<_> = theirs.as_deref().map(list).unwrap_or_default();
            prop_assert_eq!(kept, expected);
            prop_assert_eq!(members::members(&spliced).filter(|member| member.is("_meta")).count(), 1);
            serde_json::from_str::<&serde_json::value::RawValue>(&spliced)?;
        }
    }
}
