//! Says what is wrong with parameters: where, what was expected there, and in words.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use manager::nearest;
use protocol::{Error, ErrorKind};
use serde_json::Value;

use super::tree;

/// Texts and lists in a message are cut to this many characters.
const SHOWN: usize = 40;

pub fn not_an_object(at: &str) -> Error {
    wrong(at, "an object", format!("{} must be an object", subject(at)))
}

pub fn unreadable(fault: &serde_json::Error, at: &str) -> Error {
    wrong(
        at,
        "JSON at most 128 levels deep",
        format!("{} cannot be read: {fault}", subject(at)),
    )
}

pub fn twice(name: &str, at: &str) -> Error {
    wrong(
        at,
        "each member once",
        format!("`{}` stands twice in {}", cut(name), subject(at)),
    )
}

/// Why `members` does not fit `schema`; `validator` is made from it and said so.
pub fn invalid(validator: &Validator, schema: &Value, members: &Value, at: &str) -> Error {
    let errors: Vec<_> = validator.iter_errors(members).collect();
    match first(&errors) {
        Some(error) if matches!(error.kind(), ValidationErrorKind::FalseSchema) => {
            let here = format!("{at}{}", error.instance_path().as_str());
            let name = members.as_object().and_then(|members| members.keys().next());
            let path = match name {
                Some(name) if here == at => format!("{at}/{}", escape(name)),
                _ => here,
            };
            let message = format!("{} is not known; this method takes no parameters", subject(&path));
            wrong(&path, "no such member", message)
        }
        Some(error) => one(error, schema, at),
        None => wrong(
            at,
            "what the schema says",
            format!("{} do not fit the schema", subject(at)),
        ),
    }
}

/// The error to report: an unknown member explains a missing one.
fn first<'e, 'v>(errors: &'e [ValidationError<'v>]) -> Option<&'e ValidationError<'v>> {
    errors.iter().min_by_key(|error| match error.kind() {
        ValidationErrorKind::AdditionalProperties { .. } => 0,
        ValidationErrorKind::Required { .. } => 2,
        _ => 1,
    })
}

fn one(error: &ValidationError<'_>, schema: &Value, at: &str) -> Error {
    let here = format!("{at}{}", error.instance_path().as_str());
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map_or("", String::as_str);
            let known = known_members(error, schema);
            let path = format!("{here}/{}", escape(name));
            let names: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
            let expected = match names.is_empty() {
                true => "no such member".to_owned(),
                false => format!("one of {}", names.join(", ")),
            };
            let error = wrong(&path, &expected, format!("{} is not known", subject(&path)));
            match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            }
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let path = format!("{here}/{}", escape(name));
            let member = beside(error, schema).and_then(|node| node.get("properties")?.get(name));
            let expected = member.map_or_else(|| "a value".to_owned(), |member| kind_of(schema, member));
            let message = format!("{} is missing; it must be {expected}", subject(&path));
            wrong(&path, &expected, message)
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            match meant(context, error) {
                Meant::One(inner) => one(inner, schema, at),
                Meant::Tags(tags) => {
                    let path = format!("{at}{}", tags[0].instance_path().as_str());
                    must_be(
                        &path,
                        &alternatives(tags.iter().map(|tag| expected(tag)).collect()),
                        tags[0],
                    )
                }
                Meant::Nothing => {
                    let kinds = context.iter().filter_map(|branch| first(branch)).map(expected);
                    must_be(&here, &alternatives(kinds.collect()), error)
                }
            }
        }
        _ => must_be(&here, &expected(error), error),
    }
}

/// Which of the alternatives of a union was meant.
enum Meant<'e> {
    /// The one with this fault.
    One(&'e ValidationError<'static>),
    /// Those that are told apart by a member, which has none of their words.
    Tags(Vec<&'e ValidationError<'static>>),
    /// None is of the kind that was sent.
    Nothing,
}

fn meant<'e>(context: &'e [Vec<ValidationError<'static>>], union: &ValidationError<'_>) -> Meant<'e> {
    use ValidationErrorKind as Kind;
    let place = union.instance_path().as_str();
    let fits_kind = |errors: &&Vec<ValidationError<'static>>| {
        !errors.iter().any(|error| {
            let of_kind = matches!(
                error.kind(),
                Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. }
            );
            of_kind && error.instance_path().as_str() == place
        })
    };
    let candidates: Vec<_> = context.iter().filter(fits_kind).collect();
    let tag = |errors: &Vec<ValidationError<'static>>| {
        errors
            .iter()
            .position(|error| matches!(error.kind(), Kind::Constant { .. }))
    };
    match candidates.iter().find(|errors| tag(errors).is_none()) {
        Some(errors) => first(errors).map_or(Meant::Nothing, Meant::One),
        None if candidates.is_empty() => Meant::Nothing,
        None => {
            let tags = candidates
                .iter()
                .filter_map(|errors| tag(errors).map(|position| &errors[position]));
            Meant::Tags(tags.collect())
        }
    }
}

fn must_be(path: &str, expected: &str, error: &ValidationError<'_>) -> Error {
    let message = format!(
        "{} must be {expected}, not {}",
        subject(path),
        shown(error.instance())
    );
    wrong(path, expected, message)
}

/// What would have been accepted, to be read after "must be".
fn expected(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Type {
            kind: TypeKind::Single(kind),
        } => a_kind(*kind).to_owned(),
        Kind::Type {
            kind: TypeKind::Multiple(kinds),
        } => {
            // `null` is the other way to leave a member out.
            let kinds = kinds.iter().filter(|kind| *kind != JsonType::Null);
            alternatives(kinds.map(|kind| a_kind(kind).to_owned()).collect())
        }
        Kind::MinLength { limit: 1 } => "a text that is not empty".to_owned(),
        Kind::MinLength { limit } => format!("a text of at least {limit} characters"),
        Kind::MaxLength { limit } => format!("a text of at most {limit} characters"),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::MinItems { limit } => format!("a list of at least {limit} items"),
        Kind::MaxItems { limit } => format!("a list of at most {limit} items"),
        Kind::MinProperties { limit } => format!("an object of at least {limit} members"),
        Kind::MaxProperties { limit } => format!("an object of at most {limit} members"),
        Kind::Pattern { pattern } => format!("a text that matches `{pattern}`"),
        Kind::Constant { expected_value } => format!("`{}`", plain(expected_value)),
        Kind::Enum { options } => {
            let options = options
                .as_array()
                .into_iter()
                .flatten()
                .filter(|option| !option.is_null());
            alternatives(options.map(|option| format!("`{}`", plain(option))).collect())
        }
        Kind::Not { schema } if schema.get("const").is_some() => {
            format!("anything but `{}`", plain(&schema["const"]))
        }
        other => format!("valid for `{}`", other.keyword()),
    }
}

fn a_kind(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a text",
    }
}

fn alternatives(mut words: Vec<String>) -> String {
    words.retain(|word| word != "null");
    words.dedup();
    match words.pop() {
        None => "valid".to_owned(),
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} or {last}", words.join(", ")),
    }
}

/// What was sent: its kind, and the value where it is short and no text. A text may be a secret.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => cut(&value.to_string()),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) => format!("a text of {} characters", text.chars().count()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The schema in which the keyword stands that refused something.
fn beside<'s>(error: &ValidationError<'_>, schema: &'s Value) -> Option<&'s Value> {
    let place = error.schema_path().as_str();
    schema.pointer(place.rsplit_once('/').map_or("", |(parent, _)| parent))
}

fn known_members(error: &ValidationError<'_>, schema: &Value) -> Vec<String> {
    let properties = beside(error, schema).and_then(|node| node.get("properties")?.as_object());
    properties
        .into_iter()
        .flat_map(|properties| properties.keys().cloned())
        .collect()
}

/// What a member of that schema is, roughly.
fn kind_of(root: &Value, schema: &Value) -> String {
    let kind = |branch: &Value| match (
        branch.get("enum").and_then(Value::as_array),
        branch["type"].as_str(),
    ) {
        (Some(words), _) => alternatives(words.iter().map(|word| format!("`{}`", plain(word))).collect()),
        (None, Some("array")) => "a list".to_owned(),
        (None, Some("boolean")) => "true or false".to_owned(),
        (None, Some("integer")) => "a whole number".to_owned(),
        (None, Some("number")) => "a number".to_owned(),
        (None, Some("object")) => "an object".to_owned(),
        (None, Some("string")) => "a text".to_owned(),
        _ => "a value".to_owned(),
    };
    alternatives(tree::branches(root, schema).into_iter().map(kind).collect())
}

fn wrong(path: &str, expected: &str, message: String) -> Error {
    Error::new(ErrorKind::InvalidParams, message)
        .path(path)
        .expected(expected)
}

/// The member as people write it: `entry.env.HOME`, `args[0]`.
fn subject(pointer: &str) -> String {
    if pointer.is_empty() {
        return "the parameters".to_owned();
    }
    let mut name = String::new();
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        if !name.is_empty() && !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            name.push_str(&format!("[{segment}]"));
            continue;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&cut(&segment));
    }
    format!("`{name}`")
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
