//! Which keys a case may use. A key outside these lists fails the case.

use serde_json::{Map, Value};

use super::Case;

const INPUT: &[&str] = &[
    "server",
    "servers",
    "hosts",
    "kits",
    "env",
    "steps",
    "child",
    "child_rest",
    "child_line_end",
    "parent_env",
    "dirs",
    "files",
    "mcp",
    "name",
    "other_server",
    "call_timeout_ms",
    "processes",
    "store",
    // elicitation
    "request",
    "user",
    "repeat",
    "while_idle",
    "then_result_after_ms",
    "server_then",
    "call_error",
    "calls",
];

const EXPECT: &[&str] = &[
    "any",
    "state",
    "states",
    "states_by_process",
    "tools",
    "tools_include",
    "tools_exclude",
    "tools_count",
    "resources",
    "resources_include",
    "prompts",
    "prompts_include",
    "calls",
    "call",
    "called",
    "seen",
    "unseen",
    "order",
    "transport",
    "protocol",
    "requests_count",
    "client_sent",
    "issues",
    "issues_mention",
    "issues_mentions",
    "issues_lacks",
    "diagnostics",
    "diagnostics_mention",
    "diagnostics_mentions",
    "diagnostics_lacks",
    "error_mention",
    "error_mentions",
    "error_lacks",
    "exposed",
    "exposed_pattern",
    "exposed_unique",
    "exposed_stable_over_reconnect",
    "child_env",
    "child_args",
    "child_cwd",
    "spawned",
    "alive_after_ms",
    "signals_order",
    "within_ms",
    "opened",
    "opened_files",
    "other_server",
    "rss_growth_below",
    "restarts",
    // logins
    "auth_url",
    "callback_status",
    "flow",
    "probe",
    "stored",
    "stored_after_first",
    // elicitation
    "form",
    "forms",
    "shown",
    "reply",
    "replies",
    "replies_without",
];

const STEPS: &[&str] = &[
    "connect",
    "stop",
    "catalog",
    "list",
    "reload",
    "call",
    "call_exposed_for",
    "edit",
    "edit_file",
    "wait_ms",
    "parallel",
    "process",
    "do",
    "authorize",
    "probe",
];

/// What no case of an area that runs needs so far, and what belongs to features that are not there yet: imports, pastes,
/// approvals.
const LATER: &[&str] = &[
    "store_raw",
    "write_store",
    "expire",
    "entries",
    "review",
    "approve",
    "reject",
    "approve_all",
    "replace",
    "peer_patch",
    "propose_many",
    "clock_h",
    "lower_layer",
    "trusted",
    "text",
    "text_hex",
    "variants",
    "each",
];

/// Why this case cannot run yet, if it cannot.
pub fn not_yet(case: &Case) -> Option<String> {
    let steps = steps(&case.input["steps"]);
    let names = members(&case.input)
        .chain(members(&case.expect))
        .chain(steps.iter().map(String::as_str));
    let later: Vec<&str> = names.filter(|name| LATER.contains(name)).collect();
    (!later.is_empty()).then(|| format!("not runnable yet: it needs {}", later.join(", ")))
}

/// Fails on what this runner would otherwise pass over.
pub fn check(case: &Case) -> Result<(), String> {
    all_known("input", members(&case.input), INPUT)?;
    check_expect(&case.expect)?;
    all_known(
        "step",
        steps(&case.input["steps"]).iter().map(String::as_str),
        STEPS,
    )
}

fn check_expect(expect: &Value) -> Result<(), String> {
    all_known("expect", members(expect), EXPECT)?;
    expect["any"]
        .as_array()
        .into_iter()
        .flatten()
        .try_for_each(check_expect)
}

fn all_known<'a>(what: &str, found: impl Iterator<Item = &'a str>, known: &[&str]) -> Result<(), String> {
    let unknown: Vec<&str> = found.filter(|name| !known.contains(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(format!("this runner does not know {what} {}", unknown.join(", ")))
}

fn members(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
}

fn steps(list: &Value) -> Vec<String> {
    let mut names = Vec::new();
    let one = std::slice::from_ref(list);
    for step in list.as_array().map_or(one, Vec::as_slice) {
        match step {
            Value::String(name) => names.push(name.clone()),
            Value::Object(members) => {
                names.extend(members.keys().cloned());
                for key in ["parallel", "do"] {
                    names.extend(members.get(key).map(steps).unwrap_or_default());
                }
            }
            _ => {}
        }
    }
    names
}
